// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes by netlink: the kernel answers with a ticket and tells when the change
 * is over, to whoever listens then. Called through the table in nl.c.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nl.h"
#include "util.h"

/* How often a user's interrupt is looked for, and how often the kernel is asked
 * about what it should have told.
 */
#define LOOK_MS		100
#define ASK_SECONDS	2.0
/* At once; the kernel takes 32, which are for everybody. */
#define AT_ONCE		16

struct change {
	uint64_t ticket;
	bool over;
	uint32_t slot;
	int code;		/* errno, 0: it was made */
	char text[320];
};

/* What is waited for: some of @n. */
struct waiting {
	struct nl *nl;
	struct change *v;
	size_t n;
	bool cancelled;
	double asked;
};

static int take_ticket(struct nlattr **tb, void *arg)
{
	*(uint64_t *)arg = attr_u64(tb[FABREX_A_CHANGE_TICKET]);
	return 0;
}

static void change_over(struct change *ch, struct nlattr **tb)
{
	if (tb[FABREX_A_CHANGE_PENDING])
		return;
	ch->over = true;
	ch->slot = attr_u32(tb[FABREX_A_CHANGE_SLOT]);
	ch->code = attr_u32(tb[FABREX_A_CHANGE_ERROR]);
	attr_text(ch->text, sizeof(ch->text), tb[FABREX_A_CHANGE_MESSAGE]);
}

static int take_change(struct nlattr **tb, void *arg)
{
	change_over(arg, tb);
	return 0;
}

static int on_change(struct nl_msg *msg, void *arg)
{
	struct nlattr *tb[FABREX_A_CHANGE_MAX + 1];
	struct genlmsghdr *h = genlmsg_hdr(nlmsg_hdr(msg));
	struct waiting *w = arg;
	uint64_t ticket;
	size_t i;

	if (h->cmd != FABREX_CMD_CHANGE_DONE ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, tb, FABREX_A_CHANGE_MAX, NULL))
		return NL_SKIP;
	ticket = attr_u64(tb[FABREX_A_CHANGE_TICKET]);
	for (i = 0; i < w->n; i++)
		if (w->v[i].ticket == ticket && !w->v[i].over)
			change_over(&w->v[i], tb);
	return NL_OK;
}

static struct nl_msg *about(struct nl *nl, int cmd, uint64_t ticket)
{
	struct nl_msg *msg = nl_request(nl, cmd, 0);

	nl_put_fport(nl, msg, FABREX_A_CHANGE_FPORT);
	nla_put_u64(msg, FABREX_A_CHANGE_TICKET, ticket);
	return msg;
}

static void ask(struct nl *nl, struct change *ch)
{
	struct reply rp = { .fn = take_change, .arg = ch,
			    .max = FABREX_A_CHANGE_MAX };
	struct err e = { 0 };

	if (!nl_transact(nl, about(nl, FABREX_CMD_CHANGE_GET, ch->ticket), &rp,
			 &e))
		return;
	ch->over = true;
	ch->code = e.code;
	snprintf(ch->text, sizeof(ch->text), "its result is not known, list "
		 "the fabric: %.200s", e.message);
}

static bool under_way(const struct change *ch)
{
	return ch->ticket && !ch->over;
}

static void ask_all(struct waiting *w)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (under_way(&w->v[i]))
			ask(w->nl, &w->v[i]);
	w->asked = now();
}

/* One that is over meanwhile is no error. */
static void cancel_all(struct waiting *w)
{
	struct reply rp;
	struct err e;
	size_t i;

	for (i = 0; i < w->n; i++) {
		memset(&rp, 0, sizeof(rp));
		memset(&e, 0, sizeof(e));
		rp.max = FABREX_A_CHANGE_MAX;
		if (under_way(&w->v[i]))
			nl_transact(w->nl, about(w->nl,
				    FABREX_CMD_CHANGE_CANCEL,
				    w->v[i].ticket), &rp, &e);
	}
	w->cancelled = true;
}

static size_t count_under_way(const struct waiting *w)
{
	size_t i, n = 0;

	for (i = 0; i < w->n; i++)
		n += under_way(&w->v[i]);
	return n;
}

/* Wait until one of them is over, or for a moment. */
static int wait_some(struct waiting *w, struct err *e)
{
	const volatile sig_atomic_t *stop = w->nl->b.stop;
	static const int never;
	struct pollfd p = { .events = POLLIN };
	int r;

	if (!w->nl->changes) {
		r = nl_join(w->nl, &w->nl->changes, "changes", e);
		if (r)
			return r;
	}
	/* What has been told before somebody listened. */
	if (!w->asked)
		ask_all(w);
	if (stop && *stop && !w->cancelled)
		cancel_all(w);
	if (!count_under_way(w))
		return 0;
	p.fd = nl_socket_get_fd(w->nl->changes);
	poll(&p, 1, LOOK_MS);
	r = nl_drain(w->nl->changes, on_change, w, &never, e);
	if (r == -ENOBUFS || now() - w->asked > ASK_SECONDS)
		ask_all(w);
	return r == -ENOBUFS ? 0 : r;
}

static int change_error(const struct waiting *w, const struct change *ch,
			struct err *e)
{
	if (!ch->code)
		return 0;
	if (ch->code == ECANCELED && w->cancelled)
		return err_set(e, EINTR, NULL, "interrupted: %s", ch->text);
	return err_set(e, ch->code, NULL, "%s", *ch->text ? ch->text :
		       strerror(ch->code));
}

static int start(struct waiting *w, struct change *ch, struct nl_msg *msg,
		 struct err *e)
{
	struct reply rp = { .fn = take_ticket, .arg = &ch->ticket,
			    .max = FABREX_A_CHANGE_MAX };
	int r = nl_transact(w->nl, msg, &rp, e);

	w->asked = 0;
	if (!r && !ch->ticket)
		r = err_set(e, EPROTO, NULL, "the kernel module returned no "
			    "ticket for a change; is it "
			    "older than fabrexctl?");
	return r;
}

/* Have one change made, and wait for it. */
static int make(struct nl *nl, struct nl_msg *msg, struct change *ch,
		struct err *e)
{
	struct waiting w = { .nl = nl, .v = ch, .n = 1 };
	int r = start(&w, ch, msg, e);

	while (!r && under_way(ch))
		r = wait_some(&w, e);
	return r ? r : change_error(&w, ch, e);
}

static struct nl_msg *unbind_request(struct nl *nl, uint32_t ep, bool force,
				     bool dry, uint32_t timeout_ms)
{
	struct nl_msg *msg = nl_request(nl, FABREX_CMD_UNBIND, 0);

	nl_put_fport(nl, msg, FABREX_A_CHANGE_FPORT);
	nla_put_u32(msg, FABREX_A_CHANGE_ID, ep);
	if (force)
		nla_put_flag(msg, FABREX_A_CHANGE_FORCE);
	if (dry)
		nla_put_flag(msg, FABREX_A_CHANGE_DRY_RUN);
	if (timeout_ms)
		nla_put_u32(msg, FABREX_A_CHANGE_TIMEOUT_MS, timeout_ms);
	return msg;
}

int nl_bind(struct backend *b, uint32_t ep, uint32_t port, bool dry,
	    uint32_t *slot, struct err *e)
{
	struct nl *nl = to_nl(b);
	struct nl_msg *msg = nl_request(nl, FABREX_CMD_BIND, 0);
	struct change ch = { 0 };
	int r;

	nl_put_fport(nl, msg, FABREX_A_CHANGE_FPORT);
	nla_put_u32(msg, FABREX_A_CHANGE_ID, ep);
	nla_put_u32(msg, FABREX_A_CHANGE_TARGET, port);
	if (dry)
		nla_put_flag(msg, FABREX_A_CHANGE_DRY_RUN);
	r = make(nl, msg, &ch, e);
	*slot = ch.slot;
	return r;
}

int nl_unbind(struct backend *b, uint32_t ep, bool force, bool dry,
	      uint32_t timeout_ms, struct err *e)
{
	struct nl *nl = to_nl(b);
	struct change ch = { 0 };

	return make(nl, unbind_request(nl, ep, force, dry, timeout_ms), &ch, e);
}

int nl_port_set(struct backend *b, uint32_t id, uint32_t action,
		struct err *e)
{
	struct nl *nl = to_nl(b);
	struct nl_msg *msg = nl_request(nl, FABREX_CMD_PORT_SET, 0);
	struct change ch = { 0 };

	nl_put_fport(nl, msg, FABREX_A_CHANGE_FPORT);
	nla_put_u32(msg, FABREX_A_CHANGE_ID, id);
	nla_put_u32(msg, FABREX_A_CHANGE_ACTION, action);
	return make(nl, msg, &ch, e);
}

/* ---- several releases ---------------------------------------------------- */

struct releases {
	struct waiting w;
	struct release *v;
	size_t next;		/* to be begun */
	double begun;
	bool force;
	uint32_t timeout_ms;
	int r;			/* of the first that failed */
	struct err *e;
};

static void begin_some(struct releases *rs)
{
	const volatile sig_atomic_t *stop = rs->w.nl->b.stop;
	size_t running = count_under_way(&rs->w);

	while (!rs->r && !(stop && *stop) && rs->next < rs->w.n &&
	       running < AT_ONCE) {
		struct release *rel = &rs->v[rs->next];
		struct nl_msg *msg = unbind_request(rs->w.nl, rel->ep,
						    rs->force, false,
						    rs->timeout_ms);
		int r = start(&rs->w, &rs->w.v[rs->next], msg, &rel->err);

		/* Others have taken the places; ours come free. */
		if (r == -EAGAIN && running) {
			err_clear(&rel->err);
			return;
		}
		rs->next++;
		running++;
		if (r) {
			rs->r = r;
			*rs->e = rel->err;
		}
	}
}

static void look(struct releases *rs)
{
	size_t i;

	for (i = 0; i < rs->next; i++) {
		struct change *ch = &rs->w.v[i];
		struct release *rel = &rs->v[i];

		if (!ch->over || rel->done || rel->err.code)
			continue;
		rel->seconds = now() - rs->begun;
		rel->done = !change_error(&rs->w, ch, &rel->err);
		if (!rel->done && !rs->r) {
			rs->r = -rel->err.code;
			*rs->e = rel->err;
		}
	}
	/* The others would only be undone. */
	if (rs->r && !rs->w.cancelled)
		cancel_all(&rs->w);
}

int nl_unbind_all(struct backend *b, struct release *v, size_t n, bool force,
		  uint32_t timeout_ms, struct err *e)
{
	struct releases rs = {
		.w = { .nl = to_nl(b), .v = xcalloc(n, sizeof(struct change)),
		       .n = n },
		.v = v, .begun = now(), .force = force,
		.timeout_ms = timeout_ms, .e = e,
	};
	struct err lost = { 0 };

	do {
		begin_some(&rs);
		if (count_under_way(&rs.w) && wait_some(&rs.w, &lost)) {
			rs.r = -lost.code;
			*e = lost;
			break;
		}
		look(&rs);
	} while (count_under_way(&rs.w) ||
		 (!rs.r && rs.next < n && !(b->stop && *b->stop)));
	free(rs.w.v);
	if (!rs.r && rs.next < n)
		rs.r = err_set(e, EINTR, NULL, "interrupted");
	return rs.r;
}
