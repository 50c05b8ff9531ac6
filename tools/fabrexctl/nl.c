// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's netlink family as a backend: requests, dumps, extack texts,
 * events. Reached through backend.h only; nl_parse.c decodes attributes, and
 * nl_change.c waits for changes.
 */
#include <linux/netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "nl.h"
#include "util.h"

#define RECV_BUFFER	(4 << 20)
#define MSG_BUFFER	(64 << 10)
#define DUMP_TRIES	5

static void take_extack(struct reply *rp, const void *attrs, int len)
{
	struct nlattr *a;

	if (len <= 0)
		return;
	a = nla_find((struct nlattr *)attrs, len, NLMSGERR_ATTR_MSG);
	if (a)
		nla_strlcpy(rp->text, a, sizeof(rp->text));
}

/* An error, or an acknowledgement that carries a text. */
static int on_error(struct sockaddr_nl *from, struct nlmsgerr *e, void *arg)
{
	struct nlmsghdr *h = (struct nlmsghdr *)((char *)e - NLMSG_HDRLEN);
	struct reply *rp = arg;
	int skip = sizeof(*e);

	(void)from;
	rp->error = e->error;
	rp->done = true;
	if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
		return NL_STOP;
	if (!(h->nlmsg_flags & NLM_F_CAPPED))
		skip += NLMSG_ALIGN(e->msg.nlmsg_len) - sizeof(e->msg);
	take_extack(rp, (char *)e + skip,
		    (int)h->nlmsg_len - NLMSG_HDRLEN - skip);
	return NL_STOP;
}

static int on_ack(struct nl_msg *msg, void *arg)
{
	struct reply *rp = arg;

	(void)msg;
	rp->done = true;
	return NL_STOP;
}

/* The end of a dump, which may say that the dump failed. */
static int on_finish(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct reply *rp = arg;
	int len = nlmsg_datalen(h);

	rp->done = true;
	if (len >= (int)sizeof(int))
		memcpy(&rp->error, nlmsg_data(h), sizeof(int));
	if (rp->error < 0 && (h->nlmsg_flags & NLM_F_ACK_TLVS))
		take_extack(rp, (char *)nlmsg_data(h) + sizeof(int),
			    len - sizeof(int));
	return NL_STOP;
}

static int on_valid(struct nl_msg *msg, void *arg)
{
	struct nlattr *tb[NL_MAX_ATTR + 1];
	struct reply *rp = arg;

	if (!rp->fn || genlmsg_parse(nlmsg_hdr(msg), 0, tb, rp->max, NULL))
		return NL_SKIP;
	rp->fn(tb, rp->arg);
	return NL_OK;
}

static const char *hint(int code)
{
	switch (code) {
	case EPERM:
		return "not allowed; changing the fabric needs CAP_SYS_ADMIN: "
		       "run it as root";
	case EOPNOTSUPP:
		return "the kernel module does not support this request; is "
		       "it older than fabrexctl?";
	case ENODEV:
		return "the fabric port is gone or does not work; see dmesg";
	}
	return strerror(code);
}

static int reply_error(const struct reply *rp, struct err *e)
{
	int code = -rp->error;

	return err_set(e, code, NULL, "%s", *rp->text ? rp->text : hint(code));
}

static int receive(struct nl *nl, struct reply *rp, struct err *e)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	int r = 0;

	if (!cb)
		return err_set(e, ENOMEM, NULL, "out of memory");
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, rp);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_ack, rp);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, rp);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, rp);
	while (!rp->done && (r >= 0 || r == -NLE_INTR))
		r = nl_recvmsgs(nl->sk, cb);
	nl_cb_put(cb);
	if (r == -NLE_DUMP_INTR)
		return -EAGAIN;
	if (r < 0 && !rp->error)
		return err_set(e, r == -NLE_NOMEM ? ENOBUFS : EIO, "netlink",
			       "no answer from the kernel: %s", nl_geterror(r));
	return rp->error < 0 ? reply_error(rp, e) : 0;
}

struct nl_msg *nl_request(struct nl *nl, int cmd, int flags)
{
	struct nl_msg *msg = nlmsg_alloc();

	if (!msg || !genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, nl->family, 0,
				 flags, cmd, FABREX_FAMILY_VERSION)) {
		fputs("fabrexctl: out of memory\n", stderr);
		exit(1);
	}
	return msg;
}

int nl_transact(struct nl *nl, struct nl_msg *msg, struct reply *rp,
		struct err *e)
{
	int r = nl_send_auto(nl->sk, msg);

	nlmsg_free(msg);
	if (r < 0)
		return err_set(e, EIO, "netlink", "could not send a request to "
			       "the kernel: %s", nl_geterror(r));
	return receive(nl, rp, e);
}

static struct nl_sock *new_socket(struct err *e)
{
	struct nl_sock *sk = nl_socket_alloc();
	int one = 1, size = RECV_BUFFER, r;

	if (!sk) {
		err_set(e, ENOMEM, NULL, "out of memory");
		return NULL;
	}
	r = genl_connect(sk);
	if (r) {
		err_set(e, EIO, "netlink", "could not open a generic netlink "
			"socket: %s", nl_geterror(r));
		nl_socket_free(sk);
		return NULL;
	}
	setsockopt(nl_socket_get_fd(sk), SOL_NETLINK, NETLINK_EXT_ACK, &one,
		   sizeof(one));
	setsockopt(nl_socket_get_fd(sk), SOL_NETLINK, NETLINK_CAP_ACK, &one,
		   sizeof(one));
	if (setsockopt(nl_socket_get_fd(sk), SOL_SOCKET, SO_RCVBUFFORCE, &size,
		       sizeof(size)))
		setsockopt(nl_socket_get_fd(sk), SOL_SOCKET, SO_RCVBUF, &size,
			   sizeof(size));
	nl_socket_set_msg_buf_size(sk, MSG_BUFFER);
	nl_socket_disable_msg_peek(sk);
	return sk;
}

static int kernel_open(struct backend *b, struct err *e)
{
	struct nl *nl = to_nl(b);

	nl->sk = new_socket(e);
	if (!nl->sk)
		return -e->code;
	nl->family = genl_ctrl_resolve(nl->sk, FABREX_FAMILY_NAME);
	if (nl->family >= 0)
		return 0;
	nl_socket_free(nl->sk);
	nl->sk = NULL;
	return err_set(e, ENODEV, "fabrex", "the fabrex kernel module is not "
		       "loaded; \"modprobe fabrex_draco\" loads it");
}

static void kernel_close(struct backend *b)
{
	struct nl *nl = to_nl(b);

	if (nl->sk)
		nl_socket_free(nl->sk);
	if (nl->events)
		nl_socket_free(nl->events);
	if (nl->changes)
		nl_socket_free(nl->changes);
	nl->sk = nl->events = nl->changes = NULL;
}

static int add_fport(struct nlattr **tb, void *arg)
{
	struct fport p;

	parse_fport(tb, &p);
	model_put_fport(arg, &p);
	return 0;
}

static int kernel_fports(struct backend *b, struct model *m, struct err *e)
{
	struct reply rp = { .fn = add_fport, .arg = m,
			    .max = FABREX_A_FPORT_MAX };
	struct nl *nl = to_nl(b);

	return nl_transact(nl, nl_request(nl, FABREX_CMD_FPORT_GET, NLM_F_DUMP), &rp,
			e);
}

void nl_put_fport(struct nl *nl, struct nl_msg *msg, int attr)
{
	if (nl->b.has_fport)
		nla_put_u32(msg, attr, nl->b.fport);
}

static void put_u32(struct nl_msg *msg, int attr, uint32_t v)
{
	if (v)
		nla_put_u32(msg, attr, v);
}

/* Objects of one dump; kept apart until it is known to be consistent. */
struct dump {
	struct object *v;
	size_t n, cap;
};

static int add_object(struct nlattr **tb, void *arg)
{
	struct dump *d = arg;

	if (d->n == d->cap) {
		d->cap = d->cap ? d->cap * 2 : 256;
		d->v = xrealloc(d->v, d->cap * sizeof(*d->v));
	}
	parse_object(tb, &d->v[d->n++]);
	return 0;
}

static int dump_once(struct nl *nl, const struct filter *f, struct dump *d,
		     struct err *e)
{
	struct reply rp = { .fn = add_object, .arg = d,
			    .max = FABREX_A_OBJECT_MAX };
	struct nl_msg *msg;

	d->n = 0;
	msg = nl_request(nl, FABREX_CMD_OBJECT_GET, NLM_F_DUMP);
	nl_put_fport(nl, msg, FABREX_A_OBJECT_FPORT);
	put_u32(msg, FABREX_A_OBJECT_TYPE, f->type);
	put_u32(msg, FABREX_A_OBJECT_PARENT, f->parent);
	put_u32(msg, FABREX_A_OBJECT_BOUND, f->bound);
	put_u32(msg, FABREX_A_OBJECT_HOST_ID, f->host_id);
	return nl_transact(nl, msg, &rp, e);
}

static int kernel_objects(struct backend *b, const struct filter *f,
		      struct model *m, struct err *e)
{
	struct dump d = { 0 };
	int tries, r = -EAGAIN;
	size_t i;

	for (tries = 0; r == -EAGAIN && tries < DUMP_TRIES; tries++)
		r = dump_once(to_nl(b), f, &d, e);
	if (r == -EAGAIN)
		r = err_set(e, EAGAIN, "fabric", "the fabric changes faster "
			    "than it can be read; try again");
	for (i = 0; !r && i < d.n; i++)
		model_put(m, &d.v[i]);
	free(d.v);
	return r;
}

struct one_object {
	struct object *o;
	bool seen;
};

static int take_object(struct nlattr **tb, void *arg)
{
	struct one_object *one = arg;

	parse_object(tb, one->o);
	one->seen = true;
	return 0;
}

static int kernel_object(struct backend *b, uint32_t type, uint32_t id,
		     const char *name, struct object *o, struct err *e)
{
	struct one_object one = { .o = o };
	struct reply rp = { .fn = take_object, .arg = &one,
			    .max = FABREX_A_OBJECT_MAX };
	struct nl *nl = to_nl(b);
	struct nl_msg *msg;
	int r;

	if (name && strlen(name) >= CTL_NAME_LEN)
		return err_set(e, ENOENT, name, "\"%s\" is longer than any "
			       "name in a fabric", name);
	msg = nl_request(nl, FABREX_CMD_OBJECT_GET, 0);
	nl_put_fport(nl, msg, FABREX_A_OBJECT_FPORT);
	put_u32(msg, FABREX_A_OBJECT_TYPE, type);
	put_u32(msg, FABREX_A_OBJECT_ID, id);
	if (name)
		nla_put_string(msg, FABREX_A_OBJECT_NAME, name);
	r = nl_transact(nl, msg, &rp, e);
	if (!r && !one.seen)
		r = err_set(e, EPROTO, name, "the kernel answered without the "
			    "object");
	return r;
}

static int take_counters(struct nlattr **tb, void *arg)
{
	parse_counters(tb, arg);
	return 0;
}

static int kernel_counters(struct backend *b, uint32_t id, struct counters *c,
		       struct err *e)
{
	struct reply rp = { .fn = take_counters, .arg = c,
			    .max = FABREX_A_COUNTERS_MAX };
	struct nl *nl = to_nl(b);
	struct nl_msg *msg = nl_request(nl, FABREX_CMD_COUNTERS_GET, 0);

	memset(c, 0, sizeof(*c));
	nl_put_fport(nl, msg, FABREX_A_COUNTERS_FPORT);
	put_u32(msg, FABREX_A_COUNTERS_ID, id);
	return nl_transact(nl, msg, &rp, e);
}

static int add_link(struct nlattr **tb, void *arg)
{
	parse_link(tb, link_list_add(arg));
	return 0;
}

static int kernel_links(struct backend *b, struct link_list *l, struct err *e)
{
	struct reply rp = { .fn = add_link, .arg = l,
			    .max = FABREX_A_LINK_MAX };
	struct nl *nl = to_nl(b);
	struct nl_msg *msg = nl_request(nl, FABREX_CMD_LINK_GET, NLM_F_DUMP);

	nl_put_fport(nl, msg, FABREX_A_LINK_FPORT);
	return nl_transact(nl, msg, &rp, e);
}

int nl_join(struct nl *nl, struct nl_sock **sk, const char *group,
	    struct err *e)
{
	int id, r;

	id = genl_ctrl_resolve_grp(nl->sk, FABREX_FAMILY_NAME, group);
	if (id < 0)
		return err_set(e, EOPNOTSUPP, group, "the kernel module has no "
			       "event group \"%s\"", group);
	if (!*sk) {
		*sk = new_socket(e);
		if (!*sk)
			return -e->code;
		nl_socket_disable_seq_check(*sk);
		nl_socket_set_nonblocking(*sk);
	}
	r = nl_socket_add_membership(*sk, id);
	if (r)
		return err_set(e, r == -NLE_PERM ? EPERM : EIO, group,
			       "could not join the event group \"%s\": %s",
			       group, r == -NLE_PERM ? "it needs CAP_SYS_ADMIN: "
			       "run it as root" : nl_geterror(r));
	return 0;
}

static int kernel_subscribe(struct backend *b, const char *group, struct err *e)
{
	struct nl *nl = to_nl(b);

	return nl_join(nl, &nl->events, group, e);
}

static int kernel_event_fd(struct backend *b)
{
	return nl_socket_get_fd(to_nl(b)->events);
}

static int any_sequence(struct nl_msg *msg, void *arg)
{
	(void)msg;
	(void)arg;
	return NL_OK;
}

int nl_drain(struct nl_sock *sk, nl_recvmsg_msg_cb_t fn, void *arg,
	     const int *stop, struct err *e)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	int r;

	if (!cb)
		return err_set(e, ENOMEM, NULL, "out of memory");
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, fn, arg);
	nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, any_sequence, NULL);
	do {
		r = nl_recvmsgs(sk, cb);
	} while (r >= 0 && !*stop);
	nl_cb_put(cb);
	if (r >= 0 || r == -NLE_AGAIN || r == -NLE_INTR)
		return 0;
	if (r == -NLE_NOMEM)
		return -ENOBUFS;
	return err_set(e, EIO, "netlink", "receiving events: %s",
		       nl_geterror(r));
}

struct listener {
	int (*fn)(const struct event *ev, void *arg);
	void *arg;
	int r;
};

static int on_event(struct nl_msg *msg, void *arg)
{
	struct nlattr *tb[FABREX_A_EVENT_MAX + 1];
	struct genlmsghdr *h = genlmsg_hdr(nlmsg_hdr(msg));
	struct listener *l = arg;
	struct event ev;

	if (h->cmd != FABREX_CMD_EVENT ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, tb, FABREX_A_EVENT_MAX, NULL))
		return NL_SKIP;
	parse_event(tb, &ev);
	if (!l->r)
		l->r = l->fn(&ev, l->arg);
	return NL_OK;
}

static int kernel_events(struct backend *b,
		     int (*fn)(const struct event *ev, void *arg), void *arg,
		     struct err *e)
{
	struct listener l = { .fn = fn, .arg = arg };
	int r = nl_drain(to_nl(b)->events, on_event, &l, &l.r, e);

	return l.r ? l.r : r;
}

static int kernel_release_reply(struct backend *b, const struct event *ev,
			    const struct holder *h, struct err *e)
{
	struct reply rp = { .max = FABREX_A_CHANGE_MAX };
	struct nl *nl = to_nl(b);
	struct nl_msg *msg = nl_request(nl, FABREX_CMD_RELEASE_REPLY, 0);

	nla_put_u32(msg, FABREX_A_CHANGE_FPORT, ev->fport);
	nla_put_u32(msg, FABREX_A_CHANGE_ID, ev->object);
	nla_put_u64(msg, FABREX_A_CHANGE_TOKEN, ev->token);
	if (h) {
		nla_put_flag(msg, FABREX_A_CHANGE_BUSY);
		put_u32(msg, FABREX_A_CHANGE_HOLDER_PID, h->pid);
		nla_put_string(msg, FABREX_A_CHANGE_HOLDER_COMM, h->comm);
		nla_put_string(msg, FABREX_A_CHANGE_HOLDER_REASON, h->reason);
	}
	return nl_transact(nl, msg, &rp, e);
}

static const struct backend_ops nl_ops = {
	.open = kernel_open,
	.close = kernel_close,
	.fports = kernel_fports,
	.objects = kernel_objects,
	.object = kernel_object,
	.bind = nl_bind,
	.unbind = nl_unbind,
	.unbind_all = nl_unbind_all,
	.port_set = nl_port_set,
	.counters = kernel_counters,
	.links = kernel_links,
	.subscribe = kernel_subscribe,
	.event_fd = kernel_event_fd,
	.events = kernel_events,
	.release_reply = kernel_release_reply,
};

struct backend *nl_backend(void)
{
	static struct nl nl = { .b.ops = &nl_ops };

	return &nl.b;
}
