// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steps, and how they are undone. Undoing looks at what is, not at what was
 * done: a request that was interrupted may have worked all the same.
 */
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "json.h"
#include "names.h"
#include "preflight.h"
#include "progress.h"
#include "steps.h"
#include "together.h"

#define DEVICE_TIMEOUT	10.0
#define SETTLE_TIME	1.0	/* seconds */
#define TIMEOUT_MAX	30	/* seconds; what the netlink family accepts */
#define POLL_INTERVAL	0.1

static volatile sig_atomic_t interrupted;

void steps_add(struct steps *s, enum step_op op, uint32_t ep, uint32_t port)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->v = xrealloc(s->v, s->cap * sizeof(*s->v));
	}
	s->v[s->n++] = (struct step){ .op = op, .ep = ep, .port = port };
}

void steps_warn(struct steps *s, const char *fmt, ...)
{
	va_list ap;
	char *text;
	size_t i;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = xstrdup("out of memory");
	va_end(ap);
	for (i = 0; i < s->nwarnings; i++)
		if (!strcmp(s->warnings[i], text)) {
			free(text);
			return;
		}
	s->warnings = xrealloc(s->warnings,
			       (s->nwarnings + 1) * sizeof(*s->warnings));
	s->warnings[s->nwarnings++] = text;
}

void steps_sort(struct steps *s, size_t first)
{
	struct step *v = xcalloc(s->n, sizeof(*v));
	size_t i, n = 0;
	int op;

	for (op = STEP_UNBIND; op <= STEP_BIND; op++)
		for (i = first; i < s->n; i++)
			if ((int)s->v[i].op == op)
				v[n++] = s->v[i];
	for (i = 0; i < n; i++)
		s->v[first + i] = v[i];
	free(v);
}

void steps_free(struct steps *s)
{
	while (s->nwarnings)
		free(s->warnings[--s->nwarnings]);
	free(s->warnings);
	free(s->v);
	ids_free(&s->unchanged);
	memset(s, 0, sizeof(*s));
}

int steps_options(struct ctl *c, struct steps *s)
{
	double t;
	int r = ctl_seconds(c, OPT_TIMEOUT, 0, &t);

	if (!r && t > TIMEOUT_MAX)
		r = err_usage(&c->err, NULL, "--timeout is at most %d s: "
			      "an owner that does not answer by then is down; "
			      "see --force", TIMEOUT_MAX);
	s->force = IS_SET(c, FORCE);
	s->wait = !IS_SET(c, NO_WAIT);
	s->timeout_ms = t * 1000;
	s->device_timeout = t > 0 ? t : DEVICE_TIMEOUT;
	return r;
}

static const char *name_of(const struct ctl *c, uint32_t id)
{
	const char *name = model_name(c->model, id);

	return name ? name : "?";
}

/* The switch refused; say about what, and what to do if it was held. */
static int step_error(struct ctl *c, const struct step *st, bool force)
{
	struct err *e = &c->err;

	err_about(e, name_of(c, st->ep));
	/* The backend's message already says what else can be done. */
	if (c->be->cannot_ask)
		return -e->code;
	if (st->op == STEP_UNBIND && e->code == EBUSY && !force &&
	    !strstr(e->message, "--force"))
		err_append(e, strstr(e->message, "stop it") ?
			   ", or remove it with --force" :
			   "; --force takes it away all the same");
	if (st->op == STEP_UNBIND && e->code == ETIMEDOUT && !force &&
	    !strstr(e->message, "--force"))
		err_append(e, "; remove it with --force, or wait longer with "
			   "--timeout");
	return -e->code;
}

/* Whether an earlier step empties the way for this one. */
static bool depends_on_earlier(const struct steps *s, size_t i)
{
	size_t j;

	for (j = 0; j < i; j++)
		if (s->v[j].ep == s->v[i].ep)
			return true;
	return false;
}

/*
 * Once it has been released. Where the owner cannot be asked to take it back,
 * what would fail then has to be known before; that it is bound is no reason.
 */
static int bind_later(struct ctl *c, struct step *st)
{
	int r = 0;

	if (st->op == STEP_BIND && c->be->cannot_ask)
		r = c->be->ops->bind(c->be, st->ep, st->port, true, &st->slot,
				     &c->err);
	if (r != -EADDRINUSE)
		return r;
	err_clear(&c->err);
	return 0;
}

int steps_preflight(struct ctl *c, struct steps *s)
{
	const struct backend_ops *ops = c->be->ops;
	int r = together(c, s);
	size_t i;

	for (i = 0; i < s->n && !r; i++) {
		struct step *st = &s->v[i];

		st->slot = s->v[st->with].slot;
		if (st->with != i)
			continue;
		if (depends_on_earlier(s, i))
			r = bind_later(c, st);
		else if (st->op == STEP_BIND)
			r = ops->bind(c->be, st->ep, st->port, true,
				      &st->slot, &c->err);
		else
			r = ops->unbind(c->be, st->ep, s->force, true,
					s->timeout_ms, &c->err);
		if (r)
			return step_error(c, st, s->force);
	}
	return r ? r : preflight(c, s);
}

static const char *step_text(const struct ctl *c, const struct step *st,
			     char *buf, size_t len)
{
	snprintf(buf, len, "%s %s %s %s",
		 st->op == STEP_BIND ? "compose" : "release",
		 name_of(c, st->ep), st->op == STEP_BIND ? "to" : "from",
		 name_of(c, st->port));
	return buf;
}

/* What an earlier step has done along with its own. */
static int step_done(struct step *st, const struct step *with)
{
	st->slot = with->slot;
	st->start = with->start;
	st->seconds = with->seconds;
	st->done = true;
	return 0;
}

static int step_run(struct ctl *c, struct steps *s, size_t i)
{
	const struct backend_ops *ops = c->be->ops;
	struct step *st = &s->v[i];
	char text[128];
	int r;

	if (st->with != i)
		return step_done(st, &s->v[st->with]);
	if (interrupted)
		return err_set(&c->err, EINTR, name_of(c, st->ep),
			       "interrupted before %s",
			       step_text(c, st, text, sizeof(text)));
	progress_start(c->real_err, "[%zu/%zu] %s", i + 1, s->n,
		       step_text(c, st, text, sizeof(text)));
	st->start = now();
	if (st->op == STEP_BIND)
		r = ops->bind(c->be, st->ep, st->port, false, &st->slot,
			      &c->err);
	else
		r = ops->unbind(c->be, st->ep, s->force, false, s->timeout_ms,
				&c->err);
	st->seconds = now() - st->start;
	progress_stop();
	st->done = !r;
	return r ? step_error(c, st, s->force) : 0;
}

/* How many releases follow one another. */
static size_t count_releases(const struct steps *s, size_t first)
{
	size_t n = 0;

	while (first + n < s->n && s->v[first + n].op == STEP_UNBIND)
		n++;
	return n;
}

/* Releases at once: each waits for an owner of its own. */
static int releases_run(struct ctl *c, struct steps *s, size_t first, size_t n)
{
	struct release *v = xcalloc(n, sizeof(*v));
	const struct step *failed = &s->v[first];
	size_t i;
	int r;

	progress_start(c->real_err, "[%zu-%zu/%zu] release %s and %zu more",
		       first + 1, first + n, s->n, name_of(c, s->v[first].ep),
		       n - 1);
	for (i = 0; i < n; i++) {
		v[i].ep = s->v[first + i].ep;
		s->v[first + i].start = now();
	}
	r = c->be->ops->unbind_all(c->be, v, n, s->force, s->timeout_ms,
				   &c->err);
	progress_stop();
	for (i = n; i-- > 0;) {
		struct step *st = &s->v[first + i];

		st->done = v[i].done;
		st->unsure = v[i].err.code == EINTR ||
			     v[i].err.code == ETIMEDOUT;
		st->seconds = v[i].seconds;
		if (v[i].err.code && !strcmp(v[i].err.message, c->err.message))
			failed = st;
	}
	free(v);
	return r ? step_error(c, failed, s->force) : 0;
}

/* Steps that have had an effect, or may have had one, are those before it. */
static size_t count_reached(const struct steps *s)
{
	size_t i = s->n;

	while (i && !s->v[i - 1].done && !s->v[i - 1].unsure)
		i--;
	return i;
}

static int steps_make(struct ctl *c, struct steps *s)
{
	size_t i, n;
	int r = 0;

	for (i = 0; i < s->n && !r; i += n) {
		n = count_releases(s, i);
		if (n > 1 && !interrupted && c->be->ops->unbind_all) {
			r = releases_run(c, s, i, n);
			continue;
		}
		n = 1;
		r = step_run(c, s, i);
		s->v[i].unsure = r == -EINTR || r == -ETIMEDOUT ||
				 (r && c->err.unsure);
	}
	return r;
}

static bool local_host_up(const struct ctl *c, const struct step *st)
{
	return st->op == STEP_BIND && model_local(c->model, st->port);
}

/*
 * Of a host with several ports each knows only devices behind itself.
 * Return: 1 when the kernel has the device, 0 if not yet.
 */
static int device_there(struct ctl *c, struct step *st)
{
	const struct fport *fp = model_local(c->model, st->port);
	struct object o;
	int r;

	r = ctl_ask_port(c, fp ? fp->index : c->be->fport, st->ep, &o,
			 &c->err);
	if (r)
		return r;
	if (!*o.pci_name)
		return 0;
	snprintf(st->pci_name, sizeof(st->pci_name), "%s", o.pci_name);
	if (!st->slot)
		st->slot = o.slot;
	model_put(c->model, &o);
	return 1;
}

static int device_wait(struct ctl *c, const struct steps *s, struct step *st,
		       struct device_watch *w)
{
	int r;

	progress_start(c->real_err, "waiting for the PCI device of %s",
		       name_of(c, st->ep));
	while (!(r = device_there(c, st)) && !interrupted &&
	       now() - st->start < s->device_timeout)
		device_watch_wait(w, POLL_INTERVAL);
	progress_stop();
	st->seconds = now() - st->start;
	if (r)
		return r < 0 ? r : 0;
	if (interrupted)
		return err_set(&c->err, EINTR, name_of(c, st->ep),
			       "interrupted");
	return err_set(&c->err, ETIMEDOUT, name_of(c, st->ep), "%s is bound to "
		       "%s slot %u, but no PCI device appeared within %.1f s; "
		       "see dmesg about pciehp and that slot",
		       name_of(c, st->ep), name_of(c, st->port), st->slot,
		       s->device_timeout);
}

static int devices_wait(struct ctl *c, struct steps *s, struct device_watch *w)
{
	size_t i;
	int r = 0;

	for (i = 0; i < s->n && !r && s->wait; i++)
		if (local_host_up(c, &s->v[i]))
			r = device_wait(c, s, &s->v[i], w);
	return r;
}

static bool is_changing(const struct object *o)
{
	return o->state == FABREX_ENDPOINT_STATE_RELEASING ||
	       o->state == FABREX_ENDPOINT_STATE_BINDING;
}

/* How it is, once a change that has just failed shows in the model. */
static int object_settled(struct ctl *c, uint32_t id, struct object *o,
			  struct err *e)
{
	double most = c->be->change_seconds;
	double end = now() + (most > 0 ? most : SETTLE_TIME);
	int r;

	do {
		r = c->be->ops->object(c->be, 0, id, NULL, o, e);
	} while (!r && is_changing(o) && now() < end && nap(10));
	return r;
}

/*
 * Undo one step. What is bound neither where it was nor where we put it has
 * been changed by somebody else, and is left alone.
 */
static bool undo(struct ctl *c, const struct step *st, struct err *why)
{
	const struct backend_ops *ops = c->be->ops;
	uint32_t want = st->op == STEP_BIND ? 0 : st->port;
	uint32_t slot;
	struct object o;
	int r;

	if (object_settled(c, st->ep, &o, why))
		return false;
	if (o.state == FABREX_ENDPOINT_STATE_RELEASING) {
		err_set(why, EALREADY, o.name, "its owner has let it go; it is "
			"free as soon as its slot is empty");
		return false;
	}
	if (o.state == FABREX_ENDPOINT_STATE_BINDING) {
		err_set(why, EALREADY, o.name, "it is still being bound");
		return false;
	}
	if (st->op == STEP_UNBIND && !want) {
		err_set(why, ENOENT, o.name, "its host is not known, so it "
			"cannot be bound back");
		return o.state == FABREX_ENDPOINT_STATE_BOUND;
	}
	if (o.bound == want)
		return true;
	/* Where owners cannot be asked: the host has had it for seconds only. */
	if (st->op == STEP_BIND && o.bound == st->port)
		r = ops->unbind(c->be, st->ep, c->be->cannot_ask, false, 0, why);
	else if (st->op == STEP_UNBIND && !o.bound)
		r = ops->bind(c->be, st->ep, want, false, &slot, why);
	else
		r = err_set(why, EBUSY, o.name, "somebody else has bound it "
			    "meanwhile");
	return !r && !ops->object(c->be, 0, st->ep, NULL, &o, why) &&
	       o.bound == want;
}

static void rollback(struct ctl *c, struct steps *s, size_t reached)
{
	struct err first = { 0 };
	char names[256] = "";
	size_t i, n = 0;

	progress_start(c->real_err, "undoing %zu of %zu steps", reached, s->n);
	for (i = reached; i-- > 0;) {
		struct err why = { 0 };

		if (s->v[i].with != i || undo(c, &s->v[i], &why))
			continue;
		if (!n)
			first = why;
		if (n < sizeof(names))
			n += snprintf(names + n, sizeof(names) - n, "%s%s",
				      n ? ", " : "", name_of(c, s->v[i].ep));
	}
	progress_stop();
	if (n)
		err_append(&c->err, "; NOT all could be undone, look at %s%s%s",
			   names, *first.message ? ": " : "", first.message);
	else if (reached)
		err_append(&c->err, "; all bindings are as they were before");
}

/* Such as one GPU more than there should be. */
static void compare_devices(struct ctl *c, struct steps *s)
{
	char text[256];
	size_t i;

	for (i = 0; i < s->n && s->wait && c->be->ops->differs; i++)
		if (s->v[i].with == i && local_host_up(c, &s->v[i]) &&
		    c->be->ops->differs(c->be, s->v[i].ep, text, sizeof(text)))
			steps_warn(s, "%s", text);
}

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

static void catch_signals(struct sigaction old[2], bool on)
{
	struct sigaction sa = { .sa_handler = on_signal };

	if (on) {
		interrupted = 0;
		sigaction(SIGINT, &sa, &old[0]);
		sigaction(SIGTERM, &sa, &old[1]);
	} else {
		sigaction(SIGINT, &old[0], NULL);
		sigaction(SIGTERM, &old[1], NULL);
	}
}

int steps_run(struct ctl *c, struct steps *s)
{
	struct device_watch *w = device_watch_new();
	double start = now();
	struct sigaction old[2];
	int r;

	catch_signals(old, true);
	c->be->stop = &interrupted;
	r = steps_make(c, s);
	if (!r)
		r = devices_wait(c, s, w);
	if (!r)
		compare_devices(c, s);
	/* What puts things back is not given up. */
	c->be->stop = NULL;
	if (r)
		rollback(c, s, count_reached(s));
	catch_signals(old, false);
	device_watch_free(w);
	s->seconds = now() - start;
	return r;
}

static json_object *step_json(const struct ctl *c, const struct step *st,
			      bool dry)
{
	const struct object *host = model_port_host(c->model, st->port);
	json_object *o = json_object_new_object();
	struct device_text d = { 0 };

	if (*st->pci_name)
		device_describe(st->pci_name, &d);
	rec_str(o, "action", st->op == STEP_BIND ? "compose" : "release");
	rec_str(o, "endpoint", name_of(c, st->ep));
	rec_str(o, "port", name_of(c, st->port));
	rec_str(o, "host", host ? host->name : NULL);
	rec_put(o, "slot", st->op == STEP_BIND && !dry ?
		 json_object_new_int64(st->slot) : NULL);
	rec_str(o, "pci_name", st->pci_name);
	rec_str(o, "driver", d.driver);
	if (dry)
		rec_put(o, "seconds", NULL);
	else
		rec_double(o, "seconds", st->seconds, 3);
	return o;
}

static void print_step(FILE *f, json_object *o, bool dry)
{
	bool bind = !strcmp(rec_get_str(o, "action"), "compose");
	const char *driver = rec_get_str(o, "driver");

	fprintf(f, "%s %s %s %s", dry ? (bind ? "+" : "-")
				      : (bind ? "composed" : "released"),
		rec_get_str(o, "endpoint"), bind ? "to" : "from",
		rec_get_str(o, "port"));
	if (!dry && bind)
		fprintf(f, " slot %d", (int)rec_get_num(o, "slot"));
	if (rec_get_str(o, "pci_name"))
		fprintf(f, ", %s (%s)", rec_get_str(o, "pci_name"),
			driver ? driver : "no driver");
	if (!dry)
		fprintf(f, " in %s s", rec_get_str(o, "seconds"));
	fputc('\n', f);
}

void steps_report(struct ctl *c, const struct steps *s, bool dry)
{
	json_object *changes = json_object_new_array();
	json_object *same = json_object_new_array();
	json_object *warnings = json_object_new_array();
	size_t i;

	c->doc = json_object_new_object();
	for (i = 0; i < s->n; i++) {
		json_object *o = step_json(c, &s->v[i], dry);

		json_object_array_add(changes, o);
		print_step(c->out, o, dry);
	}
	for (i = 0; i < s->unchanged.n; i++) {
		const char *name = name_of(c, s->unchanged.v[i]);

		json_object_array_add(same, json_object_new_string(name));
		fprintf(c->out, "%s%s is as it should be\n", dry ? "= " : "",
			name);
	}
	for (i = 0; i < s->nwarnings; i++) {
		json_object_array_add(warnings,
				      json_object_new_string(s->warnings[i]));
		fprintf(c->out, "! %s\n", s->warnings[i]);
	}
	rec_put(c->doc, "changes", changes);
	rec_put(c->doc, "unchanged", same);
	rec_put(c->doc, "warnings", warnings);
	rec_bool(c->doc, "dry_run", dry);
	if (dry)
		rec_put(c->doc, "seconds", NULL);
	else
		rec_double(c->doc, "seconds", s->seconds, 3);
}

int steps_execute(struct ctl *c, struct steps *s)
{
	bool dry = IS_SET(c, DRY_RUN);
	int r = steps_preflight(c, s);

	if (!r && !dry)
		r = steps_run(c, s);
	if (!r)
		steps_report(c, s, dry);
	return r;
}
