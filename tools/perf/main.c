// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf: options and the table of tests. Everything else is behind
 * perf.h.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"
#include "commands.h"
#include "plot.h"

atomic_int interrupted;

static const struct test tests[] = {
	{ "write-bw", T_WRITE_BW, "bandwidth of writes", run_bandwidth,
	  "64:4M:4", 32, 8 },
	{ "read-bw", T_READ_BW, "bandwidth of reads", run_bandwidth,
	  "64:4M:4", 32, 8 },
	{ "msg-rate", T_MSG_RATE, "small writes per second", run_bandwidth,
	  "8", 256, 32 },
	{ "write-lat", T_WRITE_LAT, "latency of a write", run_latency,
	  "8:64K:8", 1, 1 },
	{ "read-lat", T_READ_LAT, "latency of a read", run_latency,
	  "8:64K:8", 1, 1 },
	{ "atomic-lat", T_ATOMIC_LAT, "latency of fetch-and-add", run_latency,
	  "8", 1, 1 },
	{ "send-lat", T_SEND_LAT, "latency of a datagram, half of an echo",
	  run_send_latency, "8:4K:8", 1, 1 },
	{ "window-lat", T_WINDOW_LAT, "store through a window and read back",
	  run_window, "8:4K:8", 1, 1 },
	{ "window-bw", T_WINDOW_BW, "stores through a window", run_window,
	  "64:256K:8", 1, 1 },
	{ "transfer", T_TRANSFER, "write once, compare checksums",
	  run_transfer, "256M", 16, 1 },
};
#define NTESTS	(sizeof(tests) / sizeof(tests[0]))

static const struct option longs[] = {
	{ "peer", required_argument, NULL, 'p' },
	{ "device", required_argument, NULL, 'd' },
	{ "service", required_argument, NULL, 'S' },
	{ "size", required_argument, NULL, 's' },
	{ "sizes", required_argument, NULL, 's' },
	{ "iterations", required_argument, NULL, 'n' },
	{ "duration", required_argument, NULL, 't' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "depth", required_argument, NULL, 'D' },
	{ "batch", required_argument, NULL, 'b' },
	{ "queues", required_argument, NULL, 'q' },
	{ "events", no_argument, NULL, 'e' },
	{ "check", no_argument, NULL, 'c' },
	{ "verify", no_argument, NULL, 'V' },
	{ "json", no_argument, NULL, 'j' },
	{ "reference-gbps", required_argument, NULL, 'r' },
	{ "file", required_argument, NULL, 'f' },
	{ "memory", required_argument, NULL, 'm' },
	{ "plot", required_argument, NULL, 'P' },
	{ "timeout", required_argument, NULL, 'T' },
	{ "once", no_argument, NULL, '1' },
	{ "quiet", no_argument, NULL, 'Q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'v' },
	{ NULL, 0, NULL, 0 },
};

static void usage(FILE *f)
{
	size_t i;

	fprintf(f, "usage: fabrex-perf server [--once] [OPTIONS]\n"
		"       fabrex-perf TEST --peer NAME [OPTIONS]\n"
		"       fabrex-perf COLLECTIVE [-n RANKS] [OPTIONS]; see fabrex-perf all_reduce --help\n"
		"       fabrex-perf compare [latency|bandwidth|collectives|ranks|all] [OPTIONS]\n"
		"       fabrex-perf footprint [OPTIONS]\n"
		"       fabrex-perf ports [--near ADDRESS|PORT] [--json]\n\ntests:\n");
	for (i = 0; i < NTESTS; i++)
		fprintf(f, "  %-11s %s (sizes %s)\n", tests[i].name,
			tests[i].what, tests[i].size);
	fprintf(f, "\noptions:\n"
		"  -p, --peer NAME          host, port or peer number of the server\n"
		"  -d, --device NAME        local port (default $FABREX_PORT or the first)\n"
		"  -S, --service N          where the two sides meet (default %d)\n"
		"  -s, --sizes FROM:TO:FACTOR, --size N   bytes, with K, M or G\n"
		"  -n, --iterations N       operations for each size and queue\n"
		"  -t, --duration SECONDS   or time for each size (default 0.5)\n"
		"  -w, --warmup SECONDS     before that (default 0.05)\n"
		"  -D, --depth N            operations outstanding in a queue\n"
		"  -b, --batch N            operations for each doorbell\n"
		"  -q, --queues N           queues, one thread each\n"
		"  -e, --events             sleep until there are completions, do not spin\n"
		"  -c, --check              end-to-end CRC32C of each operation\n"
		"  -V, --verify             compare contents after each size\n"
		"  -r, --reference-gbps X   print results as part of X GB/s\n"
		"  -f, --file PATH          transfer: what to write\n"
		"  -m, --memory KIND        of this side: host, malloc, hip or cuda (host)\n"
		"      --plot FILE.svg|.png a picture over the sizes, by gnuplot\n"
		"  -j, --json   -Q, --quiet   -T, --timeout SECONDS   --once (server)\n",
		DEFAULT_SERVICE);
}

static bool parse_timeout(const char *text, struct options *o)
{
	double seconds;
	bool ok = parse_double(text, 0, 1e6, &seconds);

	o->timeout_ms = ok ? (int)(seconds * 1000) : 0;
	return ok;
}

static bool take_flag(int c, struct options *o)
{
	bool *flag = c == 'c' ? &o->check : c == 'V' ? &o->verify :
		     c == 'e' ? &o->events : c == 'j' ? &o->json : c == '1' ? &o->once :
		     c == 'Q' ? &o->quiet : NULL;

	if (flag)
		*flag = true;
	return flag;
}

static bool take_option(int c, const char *arg, struct options *o)
{
	switch (c) {
	case 'p':
		o->peer = arg;
		return true;
	case 'd':
		o->device = arg;
		return true;
	case 'f':
		o->file = arg;
		return true;
	case 'P':
		o->plot = arg;
		return true;
	case 'm':
		return memory_parse(arg, &o->memory);
	case 'S':
		return parse_u64(arg, 1, UINT64_MAX, &o->service);
	case 's':
		return parse_sizes(arg, &o->size_from, &o->size_to,
				   &o->size_factor);
	case 'n':
		return parse_u64(arg, 1, 1ull << 40, &o->iterations);
	case 't':
		return parse_double(arg, 0.001, 86400, &o->seconds);
	case 'w':
		return parse_double(arg, 0, 3600, &o->warmup);
	case 'D':
		return parse_u32(arg, MAX_DEPTH, &o->depth);
	case 'b':
		return parse_u32(arg, MAX_DEPTH, &o->batch);
	case 'q':
		return parse_u32(arg, MAX_QUEUES, &o->queues);
	case 'r':
		return parse_double(arg, 0.001, 1e6, &o->reference_gbps);
	case 'T':
		return parse_timeout(arg, o);
	}
	return false;
}

/* 0, an exit code, or -1 if the work is done already. */
static int parse(int argc, char **argv, struct options *o)
{
	int c, at;

	while ((c = getopt_long(argc, argv, "p:d:S:s:n:t:w:D:b:q:ecVjr:f:m:T:Qhv",
				longs, &at)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		if (c == 'h') {
			usage(stdout);
			return -1;
		}
		if (c == 'v') {
			printf("fabrex-perf, libfabrex %s\n",
			       fabrex_version());
			return -1;
		}
		if (!take_flag(c, o) && !take_option(c, optarg, o))
			return bad_value(longs, c, optarg);
	}
	return 0;
}

static const struct test *find_test(const char *name)
{
	size_t i;

	for (i = 0; i < NTESTS; i++)
		if (!strcmp(tests[i].name, name))
			return &tests[i];
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static int set_defaults(struct options *o, const struct test *test)
{
	if (!o->size_from &&
	    !parse_sizes(test->size, &o->size_from, &o->size_to,
			 &o->size_factor))
		return EXIT_USAGE;
	if (!o->depth)
		o->depth = test->depth;
	if (!o->batch)
		o->batch = test->batch < o->depth ? test->batch : o->depth;
	if (o->batch > o->depth)
		o->batch = o->depth;
	if (o->plot && !plot_name_ok(o->plot))
		return EXIT_USAGE;
	if (o->plot && test->id == T_TRANSFER) {
		fprintf(stderr, "fabrex-perf: transfer has one size; nothing to --plot\n");
		return EXIT_USAGE;
	}
	if (test->id == T_ATOMIC_LAT &&
	    (o->size_from != 8 || o->size_to != 8)) {
		fprintf(stderr, "fabrex-perf: atomic-lat: atomics have 8 bytes; omit --sizes\n");
		return EXIT_USAGE;
	}
	if (!o->peer) {
		fprintf(stderr, "fabrex-perf: %s needs --peer NAME, where fabrex-perf server runs\n",
			test->name);
		return EXIT_USAGE;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {
		.service = DEFAULT_SERVICE, .seconds = 0.5, .warmup = 0.05,
		.queues = 1, .timeout_ms = 10000,
	};
	const struct sigaction sa = { .sa_handler = on_signal };
	const struct test *test;
	int ret;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (argc > 1 && !strcmp(argv[1], "compare"))
		return compare_main(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "footprint"))
		return footprint_main(argc - 1, argv + 1);
	if (argc > 1 && is_collective(argv[1]))
		return coll_main(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "ports"))
		return ports_main(argc - 1, argv + 1);
	ret = parse(argc, argv, &o);
	if (ret)
		return ret < 0 ? 0 : ret;
	if (argc - optind != 1) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[optind], "server"))
		return serve(&o);
	test = find_test(argv[optind]);
	if (!test) {
		fprintf(stderr, "fabrex-perf: no test is called \"%s\"; see fabrex-perf --help\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	ret = set_defaults(&o, test);
	return ret ? ret : test->run(&o, test);
}
