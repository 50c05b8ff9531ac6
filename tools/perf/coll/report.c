// SPDX-License-Identifier: GPL-2.0-only
/*
 * Results of a collective test: a table with the columns of nccl-tests, the
 * same as one JSON object, or a picture of the bandwidths.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../plot.h"
#include "coll.h"

#define PROGRESS_NS	200000000u

struct coll_report {
	const struct coll_rank *rank;
	const struct coll_options *o;
	uint32_t rows;
	uint64_t wrong;
	uint64_t last_progress;
	double busbw;		/* sum of it, for the average */
	uint32_t places;
	bool plotted;		/* every point was kept */
	struct plot plot;
};

static const char *memory_word(const struct coll_options *o)
{
	return o->memory == MEMORY_HOST ? "alloc" : memory_name(o->memory);
}

/* ---- table ------------------------------------------------------------- */

static void table_columns(const char *time, const char *algbw,
			  const char *busbw, const char *wrong,
			  const char *p2p, const char *host)
{
	printf("  %9s %7s %7s %6s %10s %10s", time, algbw, busbw, wrong, p2p,
	       host);
}

static void table_head(const struct coll_report *r)
{
	const struct coll_options *o = r->o;
	const struct environment *e = &o->environment;

	printf("# %s, %u ranks, memory: %s; %s, processors %s, %s; %s\n",
	       o->kind->name, r->rank->ranks, memory_word(o), e->processor,
	       e->cpus, e->kernel, e->library);
	printf("# fabric %s, driver %s%s\n", r->rank->attr.fabric,
	       r->rank->attr.driver,
	       r->rank->attr.emulated ? " (emulated)" : "");
	printf("# warm-up %u, iterations ", o->warmup);
	if (o->iterations)
		printf("%llu", (unsigned long long)o->iterations);
	else
		printf("for %g s", o->seconds);
	printf(", check %u%s%s%s%s%s\n", o->check,
	       o->stream ? ", in a stream" : "",
	       o->algorithms ? ", algorithms: " : "",
	       o->algorithms ? o->algorithms : "",
	       o->schedule ? ", schedule: " : "",
	       o->schedule ? o->schedule : "");
	printf("#%72s%54s\n", "out of place", "in place");
	printf("#%9s %10s %6s %5s %4s", "size", "count", "type", "op", "root");
	table_columns("time", "algbw", "busbw", "#wrong", "p2p", "host");
	table_columns("time", "algbw", "busbw", "#wrong", "p2p", "host");
	printf("  algorithm\n#%9s %10s %6s %5s %4s", "(B)", "(elements)", "",
	       "", "");
	table_columns("(us)", "(GB/s)", "(GB/s)", "", "(B)", "(B)");
	table_columns("(us)", "(GB/s)", "(GB/s)", "", "(B)", "(B)");
	printf("\n");
}

/* In one iteration, on average. */
static void table_moved(const struct coll_place *p, uint64_t bytes)
{
	uint64_t n = p->iterations;

	if (p->moved.counted)
		printf(" %10llu", (unsigned long long)((bytes + n / 2) / n));
	else
		printf(" %10s", "-");
}

static void table_place(const struct coll_report *r,
			const struct coll_row *row,
			const struct coll_place *p)
{
	double algbw = (double)row->bytes / p->seconds / 1e9;
	bool barrier = r->o->kind->id == FABREX_BARRIER;

	if (!p->done) {
		table_columns("-", "-", "-", "-", "-", "-");
		return;
	}
	printf("  %9.2f %7.2f %7.2f ", p->seconds * 1e6, algbw,
	       algbw * coll_kind_factor(r->o->kind, r->rank->ranks));
	if (r->o->check && !barrier)
		printf("%6llu", (unsigned long long)p->wrong);
	else
		printf("%6s", "N/A");
	table_moved(p, p->moved.p2p);
	table_moved(p, p->moved.host);
}

static void table_row(const struct coll_report *r, const struct coll_row *row)
{
	const struct coll_options *o = r->o;
	char root[16] = "-";

	if (o->kind->rooted)
		snprintf(root, sizeof(root), "%u", o->root);
	printf("%10llu %10llu %6s %5s %4s", (unsigned long long)row->bytes,
	       (unsigned long long)row->count,
	       o->kind->id == FABREX_BARRIER ? "-" : coll_type_name(o->type),
	       o->kind->reduces ? coll_op_name(o->op) : "-", root);
	table_place(r, row, &row->out);
	table_place(r, row, &row->in);
	printf("  %s\n", row->algorithm);
}

static void table_end(const struct coll_report *r)
{
	printf("# wrong results: %llu%s\n", (unsigned long long)r->wrong,
	       r->wrong ? " (of all ranks and sizes)" : "");
	if (r->places && r->o->kind->id != FABREX_BARRIER)
		printf("# average bus bandwidth: %.4g GB/s\n",
		       r->busbw / r->places);
}

/* ---- JSON -------------------------------------------------------------- */

static void json_text(const char *key, const char *text)
{
	printf(", \"%s\": ", key);
	if (text)
		json_string(stdout, text);
	else
		printf("null");
}

static void json_head(const struct coll_report *r)
{
	const struct coll_options *o = r->o;
	const struct environment *e = &o->environment;

	printf("{\"test\": \"%s\", \"ranks\": %u, \"root\": %u, \"warmup\": %u, \"check\": %s",
	       o->kind->name, r->rank->ranks, o->root, o->warmup,
	       o->check ? "true" : "false");
	json_text("type", coll_type_name(o->type));
	json_text("op", o->kind->reduces ? coll_op_name(o->op) : NULL);
	json_text("memory", memory_word(o));
	json_text("fabric", r->rank->attr.fabric);
	json_text("driver", r->rank->attr.driver);
	printf(", \"stream\": %s, \"emulated\": %s",
	       o->stream ? "true" : "false",
	       r->rank->attr.emulated ? "true" : "false");
	json_text("algorithms", o->algorithms);
	json_text("schedule", o->schedule);
	printf(", ");
	environment_json(e, stdout);
	printf(", \"rows\": [");
}

static void json_moved(const struct coll_moved *m)
{
	if (m->counted)
		printf(", \"p2p_bytes\": %llu, \"host_bytes\": %llu",
		       (unsigned long long)m->p2p,
		       (unsigned long long)m->host);
	else
		printf(", \"p2p_bytes\": null, \"host_bytes\": null");
}

static void json_place(const struct coll_report *r,
		       const struct coll_row *row, const char *key,
		       const struct coll_place *p)
{
	double algbw = (double)row->bytes / p->seconds / 1e9;

	printf(", \"%s\": ", key);
	if (!p->done) {
		printf("null");
		return;
	}
	printf("{\"iterations\": %llu, \"time_us\": %.4f, \"algbw_gb_per_s\": %.4f, \"busbw_gb_per_s\": %.4f",
	       (unsigned long long)p->iterations, p->seconds * 1e6, algbw,
	       algbw * coll_kind_factor(r->o->kind, r->rank->ranks));
	json_moved(&p->moved);
	if (r->o->check && r->o->kind->id != FABREX_BARRIER)
		printf(", \"wrong\": %llu}", (unsigned long long)p->wrong);
	else
		printf(", \"wrong\": null}");
}

static void json_row(const struct coll_report *r, const struct coll_row *row)
{
	printf("%s\n  {\"size\": %llu, \"count\": %llu, \"iterations\": %llu",
	       r->rows ? "," : "", (unsigned long long)row->bytes,
	       (unsigned long long)row->count,
	       (unsigned long long)row->iterations);
	json_text("algorithm", row->algorithm);
	json_place(r, row, "out_of_place", &row->out);
	json_place(r, row, "in_place", &row->in);
	printf("}");
}

/* ---- picture ----------------------------------------------------------- */

static void plot_place(struct coll_report *r, const struct coll_row *row,
		       const char *name, const struct coll_place *p)
{
	double busbw;

	if (!p->done || !row->bytes)
		return;
	busbw = (double)row->bytes / p->seconds / 1e9 *
		coll_kind_factor(r->o->kind, r->rank->ranks);
	r->busbw += busbw;
	r->places++;
	r->wrong += p->wrong;
	if (r->o->plot)
		r->plotted &= plot_add(&r->plot, name, (double)row->bytes,
				       busbw);
}

static int draw(struct coll_report *r)
{
	const struct coll_options *o = r->o;
	bool op = o->kind->reduces;

	if (!r->plotted) {
		fprintf(stderr, "fabrex-perf: --plot: out of memory\n");
		return EXIT_SETUP;
	}
	snprintf(r->plot.title, sizeof(r->plot.title), "%s, %u ranks, %s%s%s",
		 o->kind->name, r->rank->ranks, coll_type_name(o->type),
		 op ? " " : "", op ? coll_op_name(o->op) : "");
	snprintf(r->plot.x, sizeof(r->plot.x), "bytes");
	snprintf(r->plot.y, sizeof(r->plot.y), "bus bandwidth, GB/s");
	return plot_draw(&r->plot, o->plot);
}

/* ---- all of them ------------------------------------------------------- */

struct coll_report *coll_report_begin(const struct coll_rank *rank)
{
	struct coll_report *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->rank = rank;
	r->o = rank->o;
	r->plotted = true;
	if (r->o->json)
		json_head(r);
	else
		table_head(r);
	fflush(stdout);
	return r;
}

void coll_report_progress(struct coll_report *r, uint64_t bytes,
			  const char *what, double lasts)
{
	uint64_t now = now_ns();
	char size[SIZE_STR];

	if (r->o->quiet || !isatty(STDERR_FILENO) ||
	    (now - r->last_progress < PROGRESS_NS &&
	     lasts * 1e9 < PROGRESS_NS))
		return;
	r->last_progress = now;
	fprintf(stderr, "\r%s %s: %s", r->o->kind->name,
		size_str(bytes, size), what);
	if (lasts * 1e9 >= PROGRESS_NS)
		fprintf(stderr, " for %.1f s", lasts);
	fprintf(stderr, "\033[K");
}

static void clear(struct coll_report *r)
{
	if (r->last_progress)
		fprintf(stderr, "\r\033[K");
	r->last_progress = 0;
}

void coll_report_row(struct coll_report *r, const struct coll_row *row)
{
	clear(r);
	if (r->o->json)
		json_row(r, row);
	else
		table_row(r, row);
	plot_place(r, row, "out of place", &row->out);
	plot_place(r, row, "in place", &row->in);
	r->rows++;
	fflush(stdout);
}

int coll_report_end(struct coll_report *r, int code)
{
	int ret = 0;

	clear(r);
	if (r->o->json)
		printf("\n], \"wrong\": %llu, \"exit_code\": %d}\n",
		       (unsigned long long)r->wrong, code);
	else
		table_end(r);
	fflush(stdout);
	if (r->o->plot && r->rows)
		ret = draw(r);
	plot_free(&r->plot);
	free(r);
	return code ? code : ret;
}
