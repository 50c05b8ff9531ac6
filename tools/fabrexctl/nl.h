/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside the netlink backend: requests and answers (nl.c), and changes, which
 * are accepted first and over later (nl_change.c).
 */
#ifndef CTL_NL_H
#define CTL_NL_H

#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "nl_parse.h"

#define NL_MAX_ATTR	64

struct nl {
	struct backend b;
	struct nl_sock *sk;
	struct nl_sock *events;
	struct nl_sock *changes;
	int family;
};

/* One exchange. */
struct reply {
	int (*fn)(struct nlattr **tb, void *arg);
	void *arg;
	int max;		/* highest attribute */
	int error;		/* negative errno */
	bool done;
	char text[320];		/* extack */
};

static inline struct nl *to_nl(struct backend *b)
{
	return (struct nl *)b;
}

struct nl_msg *nl_request(struct nl *nl, int cmd, int flags);
void nl_put_fport(struct nl *nl, struct nl_msg *msg, int attr);
/* Send @msg, wait for all of the answer; takes @msg. */
int nl_transact(struct nl *nl, struct nl_msg *msg, struct reply *rp,
		struct err *e);
/* Have *@sk, which is made if it is NULL, receive what is sent to @group. */
int nl_join(struct nl *nl, struct nl_sock **sk, const char *group,
	    struct err *e);
/* @fn for each message that is there, until *@stop; ENOBUFS: some were lost */
int nl_drain(struct nl_sock *sk, nl_recvmsg_msg_cb_t fn, void *arg,
	     const int *stop, struct err *e);

int nl_bind(struct backend *b, uint32_t ep, uint32_t port, bool dry,
	    uint32_t *slot, struct err *e);
int nl_unbind(struct backend *b, uint32_t ep, bool force, bool dry,
	      uint32_t timeout_ms, struct err *e);
int nl_unbind_all(struct backend *b, struct release *v, size_t n, bool force,
		  uint32_t timeout_ms, struct err *e);
int nl_port_set(struct backend *b, uint32_t id, uint32_t action,
		struct err *e);

#endif
