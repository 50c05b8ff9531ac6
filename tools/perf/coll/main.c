// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf all_reduce and so on: options.
 */
#include <stdlib.h>
#include <string.h>

#include "../commands.h"
#include "../plot.h"
#include "coll.h"

enum { OPT_RANK = 256, OPT_SIZE, OPT_STREAM, OPT_DEATH };

static const struct option longs[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "sizes", required_argument, NULL, 's' },
	{ "size", required_argument, NULL, 's' },
	{ "type", required_argument, NULL, 'y' },
	{ "op", required_argument, NULL, 'o' },
	{ "root", required_argument, NULL, 'r' },
	{ "iterations", required_argument, NULL, 'i' },
	{ "duration", required_argument, NULL, 't' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "check", required_argument, NULL, 'c' },
	{ "memory", required_argument, NULL, 'm' },
	{ "algorithms", required_argument, NULL, 'A' },
	{ "schedule", required_argument, NULL, 'S' },
	{ "bootstrap", required_argument, NULL, 'B' },
	{ "rank", required_argument, NULL, OPT_RANK },
	{ "world", required_argument, NULL, OPT_SIZE },
	{ "device", required_argument, NULL, 'd' },
	{ "timeout", required_argument, NULL, 'T' },
	{ "death", required_argument, NULL, OPT_DEATH },
	{ "plot", required_argument, NULL, 'p' },
	{ "stream", no_argument, NULL, OPT_STREAM },
	{ "no-pin", no_argument, NULL, 'N' },
	{ "json", no_argument, NULL, 'j' },
	{ "quiet", no_argument, NULL, 'Q' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void usage(FILE *f)
{
	fprintf(f, "usage: fabrex-perf all_reduce|all_gather|reduce_scatter|broadcast|reduce|\n"
		"                   all_to_all|sendrecv|barrier [-n RANKS] [OPTIONS]\n\n"
		"  -n, --ranks N            start N local ranks, over loopback unless a port\n"
		"                           is named; without it a launcher has\n"
		"  -s, --sizes FROM:TO:FACTOR, --size N   bytes, with K, M or G (8:64M:4)\n"
		"  -y, --type NAME          int8 to uint64, fp16, bf16, fp32, fp64 (fp32)\n"
		"  -o, --op NAME            sum, prod, min, max, avg (sum)\n"
		"  -r, --root RANK          of broadcast and reduce (0)\n"
		"  -i, --iterations N       for each size, or\n"
		"  -t, --duration SECONDS   for each size (0.1)\n"
		"  -w, --warmup N           iterations before that (5)\n"
		"  -c, --check N            0: do not compare results (1)\n"
		"  -m, --memory KIND        alloc, malloc, hip or cuda (alloc)\n"
		"      --stream             enqueue the operations in a stream\n"
		"  -A, --algorithms TEXT    instead of the library's table\n"
		"  -S, --schedule FILE      to be followed\n"
		"  -B, --bootstrap WHERE    fabric:SERVICE, tcp:HOST:PORT or launcher\n"
		"      --rank N, --world N  with --bootstrap: this one, and how many\n"
		"  -d, --device NAME        local port (default $FABREX_PORT); several, as\n"
		"                           a,b; or all of this host: all\n"
		"      --death SECONDS      before a rank that does not answer counts as dead (1)\n"
		"  -T, --timeout SECONDS   -p, --plot FILE.svg|.png\n"
		"  -j, --json   -Q, --quiet   --no-pin\n");
}

static bool take_text(int c, const char *arg, struct coll_options *o)
{
	const char **text = c == 'A' ? &o->algorithms :
			    c == 'S' ? &o->schedule :
			    c == 'B' ? &o->bootstrap :
			    c == 'd' ? &o->device : c == 'p' ? &o->plot : NULL;

	if (text)
		*text = arg;
	return text;
}

static bool take_flag(int c, struct coll_options *o)
{
	if (c == 'N')
		o->pin = false;
	else if (c == 'j')
		o->json = true;
	else if (c == 'Q')
		o->quiet = true;
	else if (c == OPT_STREAM)
		o->stream = true;
	return c == 'N' || c == 'j' || c == 'Q' || c == OPT_STREAM;
}

static bool parse_small(const char *text, uint64_t max, uint32_t *value)
{
	uint64_t wide;
	bool ok = parse_u64(text, 0, max, &wide);

	*value = (uint32_t)wide;
	return ok;
}

static bool take_time(const char *arg, int32_t *ms)
{
	double seconds;
	bool ok = parse_double(arg, 0.001, 1e6, &seconds);

	*ms = ok ? (int32_t)(seconds * 1000) : 0;
	return ok;
}

static bool take_number(int c, const char *arg, struct coll_options *o)
{
	switch (c) {
	case 'n':
		return parse_u32(arg, GROUP_MAX, &o->start);
	case 'r':
		return parse_small(arg, UINT32_MAX - 1, &o->root);
	case 'i':
		return parse_u64(arg, 1, 1ull << 40, &o->iterations);
	case 't':
		return parse_double(arg, 1e-6, 86400, &o->seconds);
	case 'w':
		return parse_small(arg, 1u << 30, &o->warmup);
	case 'c':
		return parse_small(arg, 1, &o->check);
	case OPT_RANK:
		return parse_small(arg, UINT32_MAX - 1, &o->rank);
	case OPT_SIZE:
		return parse_u32(arg, UINT32_MAX - 1, &o->size);
	}
	return false;
}

static bool take_option(int c, const char *arg, struct coll_options *o)
{
	switch (c) {
	case 's':
		return parse_sizes(arg, &o->size_from, &o->size_to,
				   &o->size_factor);
	case 'y':
		return coll_type_parse(arg, &o->type);
	case 'o':
		return coll_op_parse(arg, &o->op);
	case 'm':
		return memory_parse(arg, &o->memory);
	case 'T':
		return take_time(arg, &o->timeout_ms);
	case OPT_DEATH:
		return take_time(arg, &o->death_ms);
	}
	return take_text(c, arg, o) || take_flag(c, o) ||
	       take_number(c, arg, o);
}

static int refuse(const char *why)
{
	fprintf(stderr, "fabrex-perf: %s\n", why);
	return EXIT_USAGE;
}

static int check(const struct coll_options *o)
{
	uint32_t ranks = o->start ? o->start : o->size;

	if (o->start && (o->size || o->rank != FABREX_RANK_AUTO))
		return refuse("--rank and --world are for ranks that others start; leave out -n or them");
	if (!o->size != (o->rank == FABREX_RANK_AUTO))
		return refuse("--rank and --world go together");
	if (o->size && o->rank >= o->size)
		return refuse("--rank: ranks count from 0 to one less than --world");
	if (o->kind->rooted && ranks && o->root >= ranks)
		return refuse("--root: there is no such rank; they count from 0");
	if (o->schedule && !o->kind->id)
		return refuse("--schedule: sendrecv is no collective, and follows none");
	if (o->plot && o->kind->id == FABREX_BARRIER)
		return refuse("--plot: a barrier has no sizes to plot over");
	if (o->plot && !plot_name_ok(o->plot))
		return EXIT_USAGE;
	return 0;
}

static int parse(int argc, char **argv, struct coll_options *o)
{
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "n:s:y:o:r:i:t:w:c:m:A:S:B:d:T:p:NjQh",
				longs, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		if (c == 'h') {
			usage(stdout);
			return -1;
		}
		if (!take_option(c, optarg, o))
			return bad_value(longs, c, optarg);
	}
	if (argc > optind) {
		usage(stderr);
		return EXIT_USAGE;
	}
	return check(o);
}

bool is_collective(const char *name)
{
	return coll_kind_find(name);
}

int coll_main(int argc, char **argv)
{
	struct coll_options o = {
		.kind = coll_kind_find(argv[0]), .size_from = 8,
		.size_to = 64 << 20, .size_factor = 4, .seconds = 0.1,
		.warmup = 5, .check = 1, .rank = FABREX_RANK_AUTO,
		.timeout_ms = 30000, .type = FABREX_FLOAT32, .op = FABREX_SUM,
		.pin = true,
	};
	int ret = parse(argc, argv, &o);

	if (ret)
		return ret < 0 ? 0 : ret;
	environment_read(&o.environment);
	return coll_ranks_run(&o, coll_run);
}
