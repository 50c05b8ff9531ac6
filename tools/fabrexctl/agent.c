// SPDX-License-Identifier: GPL-2.0-only
/*
 * "agent": answers for this host when somebody wants an endpoint back. Grants
 * if nothing uses the device, else refuses and says who. Called by run.c.
 */
#include <poll.h>
#include <string.h>

#include "ctl.h"
#include "holders.h"
#include "json.h"
#include "names.h"

#define MAX_SETTLE	3.0	/* seconds */

struct agent {
	struct ctl *c;
	bool answered;
};

/*
 * The slot may still be coming up: then there will be a device that can be
 * let go in order, so wait for it, but not so long that the answer is late.
 */
static void settle(struct ctl *c, struct event *ev)
{
	double wait = ev->timeout_ms / 2000.0;
	double end = now() + (wait < MAX_SETTLE ? wait : MAX_SETTLE);
	struct err e = { 0 };
	struct object o;

	while (!*ev->pci_name && now() < end) {
		if (ctl_ask_port(c, ev->fport, ev->object, &o, &e))
			return;
		snprintf(ev->pci_name, sizeof(ev->pci_name), "%s", o.pci_name);
		if (!*ev->pci_name)
			poll(NULL, 0, 50);
	}
}

/* Return: true if @h says who holds the device. */
static bool find_holder(const struct event *ev, struct holder *h)
{
	struct holders all = { 0 };
	struct err e = { 0 };
	size_t len;
	int r;

	memset(h, 0, sizeof(*h));
	/* No device: it never came up, or is gone; nobody can use it. */
	if (!*ev->pci_name)
		return false;
	r = holders_find(&system_roots, ev->pci_name, &all, &e);
	if (r == -ENODEV)
		return false;
	if (r) {
		snprintf(h->comm, sizeof(h->comm), "fabrexctl");
		snprintf(h->reason, sizeof(h->reason), "the agent cannot determine "
			 "who uses it: %.60s", strerror(-r));
		return true;
	}
	if (all.n)
		*h = all.v[0];
	len = strlen(h->reason);
	if (all.n > 1)
		snprintf(h->reason + len, sizeof(h->reason) - len,
			 " (and %zu more)", all.n - 1);
	r = all.n;
	holders_free(&all);
	return r;
}

static int log_answer(struct ctl *c, const struct event *ev,
		      const char *verdict, const struct holder *h,
		      const char *trouble)
{
	json_object *o = json_object_new_object();

	rec_str(o, "endpoint", ev->name);
	rec_str(o, "port", ev->port_name);
	rec_str(o, "pci_name", ev->pci_name);
	rec_str(o, "answer", verdict);
	rec_put(o, "pid", h && h->pid ? json_object_new_int64(h->pid) : NULL);
	rec_str(o, "comm", h ? h->comm : NULL);
	rec_str(o, "reason", h ? h->reason : NULL);
	rec_str(o, "error", trouble);
	if (c->json) {
		c->doc = o;
		return ctl_flush(c);
	}
	fprintf(c->out, "%s (%s): %s", ev->name,
		*ev->pci_name ? ev->pci_name : "no device", verdict);
	if (h && h->pid)
		fprintf(c->out, ": pid %u (%s) %s", h->pid, h->comm, h->reason);
	else if (h)
		fprintf(c->out, ": %s", h->reason);
	if (trouble)
		fprintf(c->out, "; the answer was not accepted: %s", trouble);
	fputc('\n', c->out);
	json_object_put(o);
	return ctl_flush(c);
}

static int on_event(const struct event *request, void *arg)
{
	struct agent *a = arg;
	struct ctl *c = a->c;
	struct event copy = *request, *ev = &copy;
	struct err trouble = { 0 };
	struct holder h;
	bool busy;
	int r;

	if (ev->type != FABREX_EVENT_TYPE_RELEASE_REQUEST ||
	    (IS_SET(c, FPORT) && ev->fport != c->be->fport))
		return 0;
	a->answered = true;
	if (ev->surprise) {
		r = log_answer(c, ev, "taken away by force", NULL, NULL);
		return r ? r : IS_SET(c, ONCE);
	}
	settle(c, ev);
	busy = find_holder(ev, &h);
	c->be->ops->release_reply(c->be, ev, busy ? &h : NULL, &trouble);
	r = log_answer(c, ev, busy ? "refused" : "granted", busy ? &h : NULL,
		       trouble.code ? trouble.message : NULL);
	return r ? r : IS_SET(c, ONCE);
}

static int serve(struct agent *a, double timeout)
{
	struct ctl *c = a->c;
	struct pollfd p = { .fd = c->be->ops->event_fd(c->be),
			    .events = POLLIN };
	double end = now() + timeout, left;
	int r = 0, n;

	while (!r) {
		left = timeout > 0 ? end - now() : 0;
		if (timeout > 0 && left <= 0)
			return IS_SET(c, ONCE) && !a->answered ?
			       err_set(&c->err, ETIMEDOUT, "agent",
				       "no request before the timeout") : 0;
		n = poll(&p, 1, timeout > 0 ? left * 1000 + 1 : -1);
		if (n <= 0)
			continue;
		r = c->be->ops->events(c->be, on_event, a, &c->err);
		/* The switch asks again or gives up; nothing to repeat here. */
		if (r == -ENOBUFS)
			r = 0;
	}
	return r > 0 ? 0 : r;
}

int cmd_agent(struct ctl *c, int argc, char **argv)
{
	struct agent a = { .c = c };
	double timeout;
	int r;

	if (argc)
		return err_usage(&c->err, argv[0], "agent: \"%s\" is too much",
				 argv[0]);
	r = ctl_seconds(c, OPT_TIMEOUT, 0, &timeout);
	if (!r)
		r = ctl_open(c);
	if (!r)
		r = c->be->ops->subscribe(c->be, FABREX_MCGRP_AGENT, &c->err);
	if (r)
		return r;
	ctl_stream(c);
	if (IS_SET(c, READY)) {
		fputs(c->json ? "{\"type\":\"ready\"}\n" : "ready\n", c->out);
		r = ctl_flush(c);
	}
	return r ? r : serve(&a, timeout);
}
