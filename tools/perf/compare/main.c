// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf compare: options, and where results go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../commands.h"
#include "../plot.h"
#include "compare.h"

#define RANKS	"2,4,8,16,32,64,128,256"	/* of "compare ranks" */

static const struct option longs[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "sizes", required_argument, NULL, 's' },
	{ "size", required_argument, NULL, 's' },
	{ "repetitions", required_argument, NULL, 'r' },
	{ "duration", required_argument, NULL, 't' },
	{ "only", required_argument, NULL, 'O' },
	{ "peers", required_argument, NULL, 'P' },
	{ "output", required_argument, NULL, 'o' },
	{ "counts", required_argument, NULL, 'C' },
	{ "plot", required_argument, NULL, 'p' },
	{ "aims", no_argument, NULL, 'a' },
	{ "json", no_argument, NULL, 'j' },
	{ "no-pin", no_argument, NULL, 'N' },
	{ "quiet", no_argument, NULL, 'Q' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void usage(FILE *f)
{
	fprintf(f, "usage: fabrex-perf compare [latency|bandwidth|collectives|ranks|all] [OPTIONS]\n\n"
		"  -n, --ranks N[,N...]     ranks of collectives (2; for ranks 2 to 256)\n"
		"  -s, --sizes FROM:TO:FACTOR   instead of the usual ones\n"
		"  -r, --repetitions N      of all contenders in turn (9)\n"
		"  -t, --duration SECONDS   of each sample (0.05)\n"
		"      --only NAME[,NAME...]    write_lat, all_reduce, ...\n"
		"      --peers NAME[,NAME...]   openmpi, mpich, ucc, gloo, ucx,\n"
		"                           libfabric, tcp, memcpy, line, bound\n"
		"  -o, --output FILE.md|.json   results into a file, too; can be given twice\n"
		"      --counts FILE        lines \"NAME: COUNT LIMIT\" to be shown with the rest\n"
		"  -p, --plot FILE.svg|.png time over size, a line for each\n"
		"      --aims               with the ratios that are aimed at\n"
		"  -j, --json   --no-pin   -Q, --quiet\n");
}

static bool take_text(int c, const char *arg, struct compare_options *o)
{
	const char **text = c == 'O' ? &o->only : c == 'P' ? &o->peers :
			    c == 'C' ? &o->counts : c == 'p' ? &o->plot : NULL;

	if (text)
		*text = arg;
	return text;
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && !strcmp(text + n - m, end);
}

static bool take_output(const char *arg, struct compare_options *o)
{
	if (ends_in(arg, ".md"))
		o->markdown = arg;
	else if (ends_in(arg, ".json"))
		o->json_file = arg;
	else
		return false;
	return true;
}

static bool take_flag(int c, struct compare_options *o)
{
	bool *flag = c == 'a' ? &o->aims : c == 'j' ? &o->json :
		     c == 'Q' ? &o->quiet : NULL;

	if (flag)
		*flag = true;
	if (c == 'N')
		o->pin = false;
	return flag || c == 'N';
}

static bool take_option(int c, const char *arg, struct compare_options *o)
{
	switch (c) {
	case 'n':
		return parse_ranks(arg, GROUP_MAX, o->ranks, MAX_NUMBERS,
				   &o->nranks);
	case 's':
		return parse_sizes(arg, &o->size_from, &o->size_to,
				   &o->size_factor);
	case 'r':
		return parse_u32(arg, MAX_REPETITIONS, &o->repetitions);
	case 't':
		return parse_double(arg, 1e-6, 60, &o->seconds);
	case 'o':
		return take_output(arg, o);
	}
	return take_text(c, arg, o) || take_flag(c, o);
}

static int parse(int argc, char **argv, struct compare_options *o)
{
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "n:s:r:t:o:p:jQh", longs, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		if (c == 'h') {
			usage(stdout);
			return -1;
		}
		if (!take_option(c, optarg, o))
			return bad_value(longs, c, optarg);
	}
	if (argc - optind > 1) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (o->plot && !plot_name_ok(o->plot))
		return EXIT_USAGE;
	if (argc > optind)
		o->what = argv[optind];
	if (strcmp(o->what, "all") && strcmp(o->what, "latency") &&
	    strcmp(o->what, "bandwidth") && strcmp(o->what, "collectives") &&
	    strcmp(o->what, "ranks")) {
		fprintf(stderr, "fabrex-perf: compare: no \"%s\"; there are latency, bandwidth, collectives, ranks and all\n",
			o->what);
		return EXIT_USAGE;
	}
	if (!o->nranks)
		parse_ranks(strcmp(o->what, "ranks") ? "2" : RANKS, GROUP_MAX,
			    o->ranks, MAX_NUMBERS, &o->nranks);
	return 0;
}

static int write_file(const struct comparison *c, const char *path,
		      void (*write)(const struct comparison *c, FILE *f))
{
	FILE *f = path ? fopen(path, "w") : NULL;

	if (f)
		write(c, f);
	if (!path || (f && !fclose(f)))
		return 0;
	fprintf(stderr, "fabrex-perf: cannot write %s: %s\n", path,
		strerror(errno));
	return EXIT_SETUP;
}

/* Nothing of ours could be measured: that is no comparison. */
static int judge(const struct comparison *c)
{
	uint32_t i;

	for (i = 0; i < c->nrows; i++)
		if (!c->rows[i].who[0].n) {
			fprintf(stderr, "fabrex-perf: compare: %s with %u ranks failed: %s\n",
				c->rows[i].what, c->rows[i].ranks,
				c->rows[i].who[0].why);
			return EXIT_FAILED;
		}
	return 0;
}

static int show(const struct comparison *c)
{
	int ret;

	if (c->o.json)
		cmp_json(c, stdout);
	else
		cmp_table(c, stdout);
	fflush(stdout);
	ret = write_file(c, c->o.markdown, cmp_markdown);
	if (!ret)
		ret = write_file(c, c->o.json_file, cmp_json);
	if (!ret && c->o.plot)
		ret = cmp_plot(c);
	return ret ? ret : judge(c);
}

int compare_main(int argc, char **argv)
{
	struct comparison *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return EXIT_SETUP;
	c->o = (struct compare_options){
		.what = "all", .repetitions = 9,
		.seconds = 0.05, .pin = true,
	};
	cpus_allowed(&c->cpus);
	ret = parse(argc, argv, &c->o);
	if (!ret)
		ret = cmp_plan(c);
	if (!ret)
		ret = cmp_run(c);
	if (!ret)
		ret = show(c);
	cmp_plan_free(c);
	free(c);
	return ret < 0 ? 0 : ret;
}
