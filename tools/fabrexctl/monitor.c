// SPDX-License-Identifier: GPL-2.0-only
/*
 * "monitor": one line for each event. After a loss the fabric is read again
 * and what has changed meanwhile is shown as events marked "resync".
 */
#include <poll.h>
#include <string.h>
#include <time.h>

#include "ctl.h"
#include "json.h"
#include "names.h"
#include "table.h"

struct monitor {
	struct ctl *c;
	uint32_t types;		/* mask of 1 << event type; 0: all */
	uint64_t left;		/* events until the end */
	bool counted;
};

static int parse_types(struct ctl *c, uint32_t *mask)
{
	char *list, *word, *save;
	uint32_t type;
	int r = 0;

	*mask = 0;
	if (!IS_SET(c, TYPE))
		return 0;
	list = xstrdup(c->arg[OPT_TYPE]);
	for (word = strtok_r(list, ",", &save); word && !r;
	     word = strtok_r(NULL, ",", &save)) {
		const char *near = nearest_word(event_words(), word);

		type = event_type(word);
		*mask |= 1u << type;
		if (!type)
			r = err_usage(&c->err, word, "--type: no event \"%s\"%s"
				      "%s%s", word, near ? "; did you mean \""
				      : "", near ? near : "", near ? "\"?" : "");
	}
	free(list);
	if (!r && !*mask)
		r = err_usage(&c->err, NULL, "--type needs at least one type");
	return r;
}

static void print_time(FILE *f, uint64_t ns)
{
	time_t t = ns / 1000000000;
	char text[32];
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	fprintf(f, "%s.%03u ", text, (unsigned int)(ns / 1000000 % 1000));
}

static void print_event(const struct ctl *c, json_object *o, uint64_t ns)
{
	const char *state = rec_get_str(o, "state");
	const char *on = c->color ? state_color(state) : "";
	FILE *f = c->out;

	print_time(f, ns);
	fprintf(f, "%-15s", rec_get_str(o, "type"));
	if (rec_get_str(o, "name"))
		fprintf(f, " %s", rec_get_str(o, "name"));
	if (state)
		fprintf(f, " %s%s%s", on, state, *on ? COLOR_OFF : "");
	if (rec_get_str(o, "port") &&
	    (!rec_get_str(o, "name") ||
	     strcmp(rec_get_str(o, "port"), rec_get_str(o, "name"))))
		fprintf(f, " port %s", rec_get_str(o, "port"));
	if (rec_get_num(o, "slot"))
		fprintf(f, " slot %d", (int)rec_get_num(o, "slot"));
	if (rec_get_num(o, "generation"))
		fprintf(f, " generation %d",
			(int)rec_get_num(o, "generation"));
	if (rec_get_str(o, "pci_name"))
		fprintf(f, " %s", rec_get_str(o, "pci_name"));
	if (rec_get_flag(o, "surprise"))
		fputs(" surprise", f);
	if (rec_get_flag(o, "resync"))
		fputs(" (resync)", f);
	fputc('\n', f);
}

static int show(struct monitor *mon, const struct event *ev, bool resync)
{
	struct ctl *c = mon->c;
	json_object *o;
	int r;

	if ((mon->types && !(mon->types & 1u << (ev->type & 31))) ||
	    (IS_SET(c, FPORT) && ev->fport != c->be->fport))
		return 0;
	o = json_event(ev);
	rec_bool(o, "resync", resync);
	if (c->json) {
		c->doc = o;
	} else {
		print_event(c, o, ev->time_ns);
		json_object_put(o);
	}
	r = ctl_flush(c);
	if (r)
		return r;
	return mon->counted && !--mon->left ? 1 : 0;
}

/* Keep the model as the events say, to know what a loss has hidden. */
static void follow(struct model *m, const struct event *ev)
{
	struct object *o = model_get(m, ev->object);

	if (!o || !ev->has_state || o->type != ev->object_type)
		return;
	o->state = ev->state;
	if (o->type == T_ENDPOINT)
		o->bound = ev->state == FABREX_ENDPOINT_STATE_FREE ||
			   ev->state == FABREX_ENDPOINT_STATE_GONE ? 0
								    : ev->port;
}

static int on_event(const struct event *ev, void *arg)
{
	struct monitor *mon = arg;

	follow(mon->c->model, ev);
	return show(mon, ev, false);
}

static int show_difference(struct monitor *mon, const struct object *o)
{
	bool ep = o->type == T_ENDPOINT;
	struct event ev = {
		.fport = mon->c->be->fport,
		.type = ep ? FABREX_EVENT_TYPE_ENDPOINT
			   : FABREX_EVENT_TYPE_LINK,
		.time_ns = realtime_ns(),
		.object_type = o->type, .object = o->id,
		.has_state = true, .state = o->state,
		.port = o->bound, .slot = ep ? o->slot : 0,
	};

	snprintf(ev.name, sizeof(ev.name), "%s", o->name);
	if (o->bound)
		snprintf(ev.port_name, sizeof(ev.port_name), "%s",
			 model_name(mon->c->model, o->bound) ?: "");
	return show(mon, &ev, true);
}

/* Read the fabric again; show what differs from what the events said. */
static int resync(struct monitor *mon)
{
	struct ctl *c = mon->c;
	struct model *old = c->model;
	size_t i;
	int r;

	c->model = model_new();
	r = c->be->ops->fports(c->be, c->model, &c->err);
	if (!r)
		r = ctl_load(c);
	for (i = 0; i < c->model->n && !r; i++) {
		const struct object *o = c->model->objects[i];
		const struct object *was = model_get(old, o->id);

		if ((o->type != T_ENDPOINT && o->type != T_PORT) ||
		    (was && was->state == o->state && was->bound == o->bound))
			continue;
		r = show_difference(mon, o);
	}
	model_free(old);
	return r;
}

static int on_loss(struct monitor *mon)
{
	struct event ev = {
		.fport = mon->c->be->fport,
		.type = FABREX_EVENT_TYPE_LOST,
		.time_ns = realtime_ns(),
	};
	int r = show(mon, &ev, false);

	return r ? r : resync(mon);
}

static int listen_until(struct monitor *mon, double end)
{
	struct ctl *c = mon->c;
	struct pollfd p = { .fd = c->be->ops->event_fd(c->be),
			    .events = POLLIN };
	double left;
	int r = 0, n;

	while (!r) {
		left = end ? end - now() : 0;
		if (end && left <= 0)
			break;
		n = poll(&p, 1, end ? left * 1000 + 1 : -1);
		if (n <= 0)
			continue;
		r = c->be->ops->events(c->be, on_event, mon, &c->err);
		if (r == -ENOBUFS)
			r = on_loss(mon);
	}
	if (r || !mon->counted)
		return r > 0 ? 0 : r;
	return err_set(&c->err, ETIMEDOUT, "monitor", "%llu of the requested events "
		       "did not arrive in time",
		       (unsigned long long)mon->left);
}

static int say_ready(struct ctl *c)
{
	if (!IS_SET(c, READY))
		return 0;
	if (c->json) {
		c->doc = json_object_new_object();
		rec_str(c->doc, "type", "ready");
	} else {
		fputs("ready\n", c->out);
	}
	return ctl_flush(c);
}

int cmd_monitor(struct ctl *c, int argc, char **argv)
{
	struct monitor mon = { .c = c, .counted = IS_SET(c, COUNT) };
	double timeout;
	int r;

	if (argc)
		return err_usage(&c->err, argv[0], "monitor: \"%s\" is too "
				 "much; types are given with --type", argv[0]);
	r = parse_types(c, &mon.types);
	if (!r)
		r = ctl_seconds(c, OPT_TIMEOUT, 0, &timeout);
	if (!r)
		r = ctl_number(c, OPT_COUNT, 0, &mon.left);
	if (!r)
		r = ctl_open(c);
	if (!r)
		r = c->be->ops->subscribe(c->be, FABREX_MCGRP_EVENTS, &c->err);
	if (!r)
		r = ctl_load(c);
	if (r)
		return r;
	ctl_stream(c);
	r = say_ready(c);
	return r ? r : listen_until(&mon, timeout > 0 ? now() + timeout : 0);
}
