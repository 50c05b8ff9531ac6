// SPDX-License-Identifier: GPL-2.0-only
/*
 * "stats": counters of ports and endpoints, once or again and again with
 * rates; those of links are in links.c. Called by run.c.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"
#include "json.h"
#include "names.h"
#include "stats.h"
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

struct samples {
	struct sample *v;
	size_t n;
};

/* ---- Once, or again and again ---- */

double meter_rate(uint64_t value, uint64_t before, double seconds)
{
	uint64_t d = value >= before ? value - before : value;

	return seconds > 0 ? d / seconds : 0;
}

void meter_doc(struct ctl *c, const char *key, json_object *rows)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	c->doc = json_object_new_object();
	rec_double(c->doc, "time", ts.tv_sec + ts.tv_nsec / 1e9, 3);
	rec_put(c->doc, key, rows);
}

static void pause_for(double seconds)
{
	struct timespec ts = { .tv_sec = seconds };

	ts.tv_nsec = (seconds - ts.tv_sec) * 1e9;
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

static int repeat(struct ctl *c, const struct meter *m, double interval,
		  uint64_t count)
{
	uint64_t i;
	int r = 0;

	ctl_stream(c);
	for (i = 0; !r && (!count || i < count); i++) {
		pause_for(interval);
		r = m->take(c, m->arg);
		if (r)
			break;
		m->show(c, m->arg, true);
		if (!c->json) {
			json_object_put(c->doc);
			c->doc = NULL;
		}
		r = ctl_flush(c);
	}
	return r;
}

int meter_run(struct ctl *c, const struct meter *m, double interval,
	      uint64_t count)
{
	int r = m->take(c, m->arg);

	if (!r && interval > 0)
		return repeat(c, m, interval, count);
	if (!r)
		m->show(c, m->arg, false);
	return r;
}

/* ---- Counters of elements ---- */

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
	int i;

	rec_str(o, "name", s->o->name);
	rec_str(o, "type", type_name(s->o->type));
	for (i = 0; i < NCOUNTERS; i++)
		rec_put(o, counter_names[i],
			 json_object_new_uint64(s->now.v[i]));
	for (i = 0; i < NCOUNTERS && rates; i++)
		rec_double(o, rate_names[i],
			   meter_rate(s->now.v[i], s->before.v[i],
				      s->t - s->t_before), 1);
	return o;
}

static void show(struct ctl *c, void *arg, bool rates)
{
	json_object *rows = json_object_new_array();
	const struct samples *s = arg;
	size_t i;

	for (i = 0; i < s->n; i++)
		json_object_array_add(rows, sample_json(&s->v[i], rates));
	meter_doc(c, "counters", rows);
	if (!c->json)
		table_print(c->out, rows, rates ? rate_columns : columns,
			    IS_SET(c, WIDE), c->color);
}

static int take_all(struct ctl *c, void *arg)
{
	struct samples *s = arg;
	size_t i;
	int r = 0;

	for (i = 0; i < s->n && !r; i++)
		r = take(c, &s->v[i]);
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

static int stats_elements(struct ctl *c, int argc, char **argv, double interval,
			  uint64_t count)
{
	struct samples s = { .n = argc ? argc : 1 };
	const struct meter m = { take_all, show, &s };
	int r;

	s.v = xcalloc(s.n, sizeof(*s.v));
	r = choose(c, argc, argv, s.v);
	if (!r)
		r = meter_run(c, &m, interval, count);
	free(s.v);
	return r;
}

int cmd_stats(struct ctl *c, int argc, char **argv)
{
	uint64_t count;
	double interval;
	int r;

	r = ctl_seconds(c, OPT_INTERVAL, IS_SET(c, COUNT), &interval);
	if (!r)
		r = ctl_number(c, OPT_COUNT, 0, &count);
	if (!r && IS_SET(c, INTERVAL) && interval <= 0)
		r = err_usage(&c->err, c->arg[OPT_INTERVAL], "--interval must "
			      "be more than 0");
	if (!r && IS_SET(c, TOPOLOGY) && !IS_SET(c, LINKS))
		r = err_usage(&c->err, c->arg[OPT_TOPOLOGY], "--topology gives "
			      "capacities of links; add --links");
	if (!r)
		r = ctl_load(c);
	if (r)
		return r;
	return IS_SET(c, LINKS) ?
	       stats_links(c, argc, argv, interval, count) :
	       stats_elements(c, argc, argv, interval, count);
}
