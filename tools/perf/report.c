// SPDX-License-Identifier: GPL-2.0-only
/*
 * Results as a table or as JSON, the same numbers in both, and the reference:
 * what one thread's memcpy() moves on this machine in the same run.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf.h"
#include "plot.h"

#define MEMCPY_SPAN	(16u << 20)
#define MEMCPY_NS	150000000u
#define PROGRESS_NS	200000000u

const char *size_str(uint64_t size, char *buffer)
{
	static const char units[] = "KMGT";
	int u = -1;

	while (size && !(size % 1024) && u < 3) {
		size /= 1024;
		u++;
	}
	if (u < 0)
		snprintf(buffer, SIZE_STR, "%llu", (unsigned long long)size);
	else
		snprintf(buffer, SIZE_STR, "%llu%c", (unsigned long long)size,
			 units[u]);
	return buffer;
}

/* Blocks of one size through a span of memory, as the tests do it. */
double memcpy_gbps(uint64_t size)
{
	uint64_t start, bytes = 0, at = 0, span = MEMCPY_SPAN;
	char *from, *to;
	double gbps = 0;

	if (size > span)
		span = size;
	from = malloc(span);
	to = malloc(span);
	if (from && to) {
		memset(from, 1, span);
		memset(to, 2, span);
		start = now_ns();
		while (now_ns() - start < MEMCPY_NS) {
			memcpy(to + at, from + at, size);
			__asm__ volatile("" :: "r"(to), "r"(from) : "memory");
			bytes += size;
			at = at + 2 * size <= span ? at + size : 0;
		}
		gbps = (double)bytes / (double)(now_ns() - start);
	}
	free(from);
	free(to);
	return gbps;
}

void json_string(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == '"' || c == '\\')
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void json_head(const struct report *r)
{
	const struct options *o = r->o;

	printf("{\"test\": ");
	json_string(stdout, r->test->name);
	printf(", \"fabric\": ");
	json_string(stdout, r->s->attr.fabric);
	printf(", \"port\": ");
	json_string(stdout, r->s->attr.name);
	printf(", \"peer\": ");
	json_string(stdout, r->s->peer.name);
	printf(", \"driver\": ");
	json_string(stdout, r->s->attr.driver);
	printf(", \"emulated\": %s, \"queues\": %u, \"depth\": %u, "
	       "\"batch\": %u, \"check\": %s, \"memcpy_gb_per_s\": %.3f",
	       r->s->attr.emulated ? "true" : "false", o->queues, o->depth,
	       o->batch, o->check ? "true" : "false", r->memcpy_gbps);
	if (o->reference_gbps > 0)
		printf(", \"reference_gb_per_s\": %.3f", o->reference_gbps);
	printf(", \"results\": [");
}

static void table_head(const struct report *r)
{
	const struct options *o = r->o;

	printf("%s  %s -> %s  fabric %s, driver %s%s\n", r->test->name,
	       r->s->attr.name, r->s->peer.name, r->s->attr.fabric,
	       r->s->attr.driver, r->s->attr.emulated ? " (emulated)" : "");
	printf("queues %u, depth %u, batch %u%s%s\n", o->queues, o->depth,
	       o->batch, o->check ? ", end-to-end check" : "",
	       o->verify ? ", contents verified" : "");
	printf("memcpy of one thread here: %.2f GB/s", r->memcpy_gbps);
	if (o->reference_gbps > 0)
		printf("; reference given: %.2f GB/s", o->reference_gbps);
	printf("\n%9s %10s %9s %9s %9s %9s %10s %8s%s\n", "size", "ops",
	       "min us", "med us", "p99 us", "max us", "MB/s", "Mmsg/s",
	       o->reference_gbps > 0 ? "  of ref" : "");
}

void report_begin(struct report *r, const struct options *o,
		  const struct test *test, struct session *s)
{
	memset(r, 0, sizeof(*r));
	r->o = o;
	r->test = test;
	r->s = s;
	r->memcpy_gbps = memcpy_gbps(o->size_to < 1 << 20 ? 1 << 20 :
							    o->size_to);
	if (o->json)
		json_head(r);
	else
		table_head(r);
	fflush(stdout);
}

static double mb_per_s(const struct result *row)
{
	return row->seconds > 0 ? (double)row->bytes / row->seconds / 1e6 : 0;
}

static double mmsg_per_s(const struct result *row)
{
	return row->seconds > 0 ?
	       (double)row->iterations / row->seconds / 1e6 : 0;
}

static void json_row(const struct report *r, const struct result *row)
{
	printf("%s\n  {\"size\": %llu, \"operations\": %llu, "
	       "\"seconds\": %.6f, \"min_us\": %.3f, \"median_us\": %.3f, "
	       "\"p99_us\": %.3f, \"max_us\": %.3f, \"mb_per_s\": %.3f, "
	       "\"mmsg_per_s\": %.6f, \"verified\": %s",
	       r->rows ? "," : "", (unsigned long long)row->size,
	       (unsigned long long)row->iterations, row->seconds,
	       row->min_us, row->median_us, row->p99_us, row->max_us,
	       mb_per_s(row), mmsg_per_s(row),
	       row->verified ? "true" : "false");
	if (r->o->reference_gbps > 0)
		printf(", \"of_reference\": %.4f",
		       mb_per_s(row) / 1e3 / r->o->reference_gbps);
	printf("}");
}

static void table_row(const struct report *r, const struct result *row)
{
	char size[SIZE_STR];

	printf("%9s %10llu %9.2f %9.2f %9.2f %9.2f %10.1f %8.4f",
	       size_str(row->size, size), (unsigned long long)row->iterations,
	       row->min_us, row->median_us, row->p99_us, row->max_us,
	       mb_per_s(row), mmsg_per_s(row));
	if (r->o->reference_gbps > 0)
		printf(" %6.1f %%",
		       mb_per_s(row) / 10 / r->o->reference_gbps);
	printf("\n");
}

/* Of latencies the middle and the end, of all else how much. */
static void plot_row(struct report *r, const struct result *row)
{
	double x = (double)row->size;
	bool latency = strstr(r->test->name, "-lat");
	bool ok;

	if (!r->plot)
		r->plot = calloc(1, sizeof(*r->plot));
	if (!r->plot)
		return;
	snprintf(r->plot->title, sizeof(r->plot->title), "%s, %s to %s%s",
		 r->test->name, r->s->attr.name, r->s->peer.name,
		 r->s->attr.emulated ? " (emulated)" : "");
	snprintf(r->plot->x, sizeof(r->plot->x), "bytes");
	snprintf(r->plot->y, sizeof(r->plot->y), latency ? "us" : "MB/s");
	ok = latency ? plot_add(r->plot, "median", x, row->median_us) &&
		       plot_add(r->plot, "99 of 100 are below", x, row->p99_us) :
		       plot_add(r->plot, r->test->name, x, mb_per_s(row));
	if (!ok)
		fprintf(stderr, "fabrex-perf: --plot: out of memory\n");
}

void report_row(struct report *r, const struct result *row)
{
	report_progress_clear(r);
	if (r->o->json)
		json_row(r, row);
	else
		table_row(r, row);
	r->rows++;
	fflush(stdout);
	if (r->o->plot)
		plot_row(r, row);
}

void report_moved(const struct options *o, struct session *s)
{
	uint64_t p2p, host;

	if (!session_moved(s, &p2p, &host))
		return;
	printf(o->json ? ", \"memory\": \"%s\", \"p2p_bytes\": %llu, \"host_bytes\": %llu" :
			 "memory here: %s; %llu bytes moved from endpoint to endpoint, %llu to or from host memory\n",
	       memory_name(o->memory), (unsigned long long)p2p,
	       (unsigned long long)host);
}

int report_end(struct report *r, int code)
{
	int ret = 0;

	report_progress_clear(r);
	if (r->o->json)
		printf("\n], \"exit_code\": %d", code);
	report_moved(r->o, r->s);
	if (r->o->json)
		printf("}\n");
	fflush(stdout);
	if (r->plot) {
		ret = plot_draw(r->plot, r->o->plot);
		plot_free(r->plot);
		free(r->plot);
		r->plot = NULL;
	}
	return code ? code : ret;
}

void report_progress(struct report *r, uint64_t size, double part)
{
	uint64_t now = now_ns();
	char text[SIZE_STR];

	if (r->o->quiet || !isatty(STDERR_FILENO) ||
	    now - r->last_progress < PROGRESS_NS)
		return;
	r->last_progress = now;
	fprintf(stderr, "\r%s %s: %3.0f %%\033[K", r->test->name,
		size_str(size, text), part > 1 ? 100 : part * 100);
}

void report_progress_clear(struct report *r)
{
	if (r->last_progress)
		fprintf(stderr, "\r\033[K");
	r->last_progress = 0;
}
