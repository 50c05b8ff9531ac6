/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generic netlink by hand, for tests: full control over buffers and malformed
 * requests, no libnl in between. Used by netlink/ and fuzz/.
 */
#ifndef SELFTEST_NL_H
#define SELFTEST_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/fabrex_netlink.h>

#define NL_MAX_ATTR	64
#define NL_SMALL	8192	/* the smallest that takes every message */

struct nl {
	int fd;
	uint32_t seq;
	uint16_t family;
	uint32_t events;	/* multicast group ids */
	uint32_t agent;
	uint32_t changes;
	char extack[256];	/* of the last failure, "" if there was none */
};

/* A request under construction, or a message received. */
struct nl_msg {
	size_t len;
	_Alignas(8) uint8_t buf[16384];
};

int nl_open(struct nl *nl);
void nl_close(struct nl *nl);

void nl_begin(struct nl *nl, struct nl_msg *msg, uint8_t cmd, uint16_t flags);
void nl_put(struct nl_msg *msg, uint16_t type, const void *data, size_t len);
void nl_put_u32(struct nl_msg *msg, uint16_t type, uint32_t value);
void nl_put_str(struct nl_msg *msg, uint16_t type, const char *value);
int nl_send(struct nl *nl, const struct nl_msg *msg);
/* One datagram into buf; bytes, or a negative errno. */
long nl_recv(struct nl *nl, void *buf, size_t size, int timeout_ms);

/* Attributes of a genetlink message by type; false if it is malformed. */
bool nl_parse(const struct nlmsghdr *nlh, const struct nlattr *attr[]);
uint32_t nl_u32(const struct nlattr *attr);
const char *nl_str(const struct nlattr *attr);

/* Send and wait for the answer: 0 or the negative errno, extack kept. If
 * reply is not NULL the first message of the family is copied there.
 */
int nl_do(struct nl *nl, struct nl_msg *msg, struct nl_msg *reply);

/* As nl_do() for a command that is accepted first: wait until the change is over;
 * 0 or its negative errno, its message kept as extack is.
 */
int nl_change(struct nl *nl, struct nl_msg *msg);

typedef void (*nl_each)(const struct nlattr *attr[], void *arg);
/* Dump with a receive buffer of that size; messages, or a negative errno.
 * *calls counts datagrams, *interrupted whether NLM_F_DUMP_INTR was seen.
 */
int nl_dump(struct nl *nl, struct nl_msg *msg, size_t bufsize, nl_each each,
	    void *arg, int *calls, bool *interrupted);

#endif
