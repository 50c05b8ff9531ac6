// SPDX-License-Identifier: GPL-2.0-only
/*
 * "stats": counters of ports and endpoints, once or again and again with
 * rates. Called by run.c.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"
#include "json.h"
#include "names.h"
#include "table.h"

/* In the order of struct counters; also the JSON keys. */
const char *const counter_names[NCOUNTERS] = {
	"tx_bytes", "rx_bytes", "tx_ops", "rx_ops", "errors", "p2p_bytes",
	"host_bytes", "window_reads", "window_writes", "doorbells",
	"link_downs", "crc_errors", "interrupts",
};

static const char *const rate_names[NCOUNTERS] = {
	"tx_bytes_per_second", "rx_bytes_per_second", "tx_ops_per_second",
	"rx_ops_per_second", "errors_per_second", "p2p_bytes_per_second",
	"host_bytes_per_second", "window_reads_per_second",
	"window_writes_per_second", "doorbells_per_second",
	"link_downs_per_second", "crc_errors_per_second",
	"interrupts_per_second",
};

static const struct column columns[] = {
	{ "NAME", "name", F_TEXT, false },
	{ "TYPE", "type", F_TEXT, true },
	{ "TX", "tx_bytes", F_SIZE, false },
	{ "RX", "rx_bytes", F_SIZE, false },
	{ "TX OPS", "tx_ops", F_NUMBER, false },
	{ "RX OPS", "rx_ops", F_NUMBER, false },
	{ "ERRORS", "errors", F_NUMBER, false },
	{ "P2P", "p2p_bytes", F_SIZE, false },
	{ "HOST", "host_bytes", F_SIZE, false },
	{ "WIN RD", "window_reads", F_NUMBER, false },
	{ "WIN WR", "window_writes", F_NUMBER, false },
	{ "DOORBELLS", "doorbells", F_NUMBER, true },
	{ "LINK DOWNS", "link_downs", F_NUMBER, true },
	{ "CRC", "crc_errors", F_NUMBER, true },
	{ "IRQS", "interrupts", F_NUMBER, true },
	{ NULL, NULL, F_TEXT, false }
};

static const struct column rate_columns[] = {
	{ "NAME", "name", F_TEXT, false },
	{ "TX/s", "tx_bytes_per_second", F_RATE, false },
	{ "RX/s", "rx_bytes_per_second", F_RATE, false },
	{ "TX OPS/s", "tx_ops_per_second", F_RATE, false },
	{ "RX OPS/s", "rx_ops_per_second", F_RATE, false },
	{ "P2P/s", "p2p_bytes_per_second", F_RATE, false },
	{ "HOST/s", "host_bytes_per_second", F_RATE, false },
	{ "ERRORS/s", "errors_per_second", F_RATE, false },
	{ "WIN RD/s", "window_reads_per_second", F_RATE, true },
	{ "WIN WR/s", "window_writes_per_second", F_RATE, true },
	{ "DOORBELLS/s", "doorbells_per_second", F_RATE, true },
	{ "LINK DOWNS/s", "link_downs_per_second", F_RATE, true },
	{ "CRC/s", "crc_errors_per_second", F_RATE, true },
	{ "IRQS/s", "interrupts_per_second", F_RATE, true },
	{ NULL, NULL, F_TEXT, false }
};

struct sample {
	const struct object *o;
	struct counters now, before;
	double t, t_before;
};

static int take(struct ctl *c, struct sample *s)
{
	int r;

	s->before = s->now;
	s->t_before = s->t;
	r = c->be->ops->counters(c->be, s->o->id, &s->now, &c->err);
	s->t = now();
	if (r)
		err_about(&c->err, s->o->name);
	return r;
}

static json_object *sample_json(const struct sample *s, bool rates)
{
	json_object *o = json_object_new_object();
	double dt = s->t - s->t_before;
	int i;

	rec_str(o, "name", s->o->name);
	rec_str(o, "type", type_name(s->o->type));
	for (i = 0; i < NCOUNTERS; i++)
		rec_put(o, counter_names[i],
			 json_object_new_uint64(s->now.v[i]));
	for (i = 0; i < NCOUNTERS && rates; i++) {
		/* A reset of the switch sets counters back. */
		uint64_t d = s->now.v[i] >= s->before.v[i] ?
			     s->now.v[i] - s->before.v[i] : s->now.v[i];

		rec_double(o, rate_names[i], dt > 0 ? d / dt : 0, 1);
	}
	return o;
}

static void make_doc(struct ctl *c, const struct sample *v, size_t n,
		     bool rates)
{
	json_object *rows = json_object_new_array();
	struct timespec ts;
	size_t i;

	clock_gettime(CLOCK_REALTIME, &ts);
	for (i = 0; i < n; i++)
		json_object_array_add(rows, sample_json(&v[i], rates));
	c->doc = json_object_new_object();
	rec_double(c->doc, "time", ts.tv_sec + ts.tv_nsec / 1e9, 3);
	rec_put(c->doc, "counters", rows);
	if (!c->json)
		table_print(c->out, rows, rates ? rate_columns : columns,
			    IS_SET(c, WIDE), c->color);
}

static int take_all(struct ctl *c, struct sample *v, size_t n)
{
	size_t i;
	int r = 0;

	for (i = 0; i < n && !r; i++)
		r = take(c, &v[i]);
	return r;
}

static void pause_for(double seconds)
{
	struct timespec ts = { .tv_sec = seconds };

	ts.tv_nsec = (seconds - ts.tv_sec) * 1e9;
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

static int repeat(struct ctl *c, struct sample *v, size_t n, double interval,
		  uint64_t count)
{
	uint64_t i;
	int r = take_all(c, v, n);

	if (r)
		return r;
	ctl_stream(c);
	for (i = 0; !count || i < count; i++) {
		pause_for(interval);
		r = take_all(c, v, n);
		if (r)
			break;
		make_doc(c, v, n, true);
		if (!c->json) {
			json_object_put(c->doc);
			c->doc = NULL;
		}
		r = ctl_flush(c);
		if (r)
			break;
	}
	return r;
}

/* The objects that are meant: those named, else this host's port. */
static int choose(struct ctl *c, int argc, char **argv, struct sample *v)
{
	int i;

	for (i = 0; i < argc; i++) {
		v[i].o = model_want(c->model, argv[i],
				    T_BIT(T_PORT) | T_BIT(T_ENDPOINT), &c->err);
		if (!v[i].o)
			return -c->err.code;
	}
	if (argc)
		return 0;
	v[0].o = model_get(c->model, ctl_fport(c)->object_id);
	if (!v[0].o)
		return err_set(&c->err, ENODEV, ctl_fport(c)->name, "%s is not "
			       "in the fabric; see dmesg", ctl_fport(c)->name);
	return 0;
}

int cmd_stats(struct ctl *c, int argc, char **argv)
{
	size_t n = argc ? argc : 1;
	struct sample *v;
	uint64_t count;
	double interval;
	int r;

	r = ctl_seconds(c, OPT_INTERVAL, IS_SET(c, COUNT), &interval);
	if (!r)
		r = ctl_number(c, OPT_COUNT, 0, &count);
	if (!r && IS_SET(c, INTERVAL) && interval <= 0)
		r = err_usage(&c->err, c->arg[OPT_INTERVAL], "--interval must "
			      "be more than 0");
	if (!r)
		r = ctl_load(c);
	if (r)
		return r;
	v = xcalloc(n, sizeof(*v));
	r = choose(c, argc, argv, v);
	if (!r && interval > 0) {
		r = repeat(c, v, n, interval, count);
	} else if (!r) {
		r = take_all(c, v, n);
		if (!r)
			make_doc(c, v, n, false);
	}
	free(v);
	return r;
}
