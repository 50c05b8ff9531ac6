// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options: one table for parsing, usage texts and completion.
 * Called by run.c, command.c and complete.c.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "names.h"

const struct option_info option_info[OPT_MAX] = {
	[OPT_JSON] = { "json", 'j', NULL, "print JSON", WORDS_NONE },
	[OPT_FPORT] = { "fport", 'p', "PORT",
			"use this local fabric port (name or number)",
			WORDS_FPORT },
	[OPT_FABRIC] = { "fabric", 'F', "FILE",
			 "the fabric is one of Switchtec switches, wired as this topology file says",
			 WORDS_FILE },
	[OPT_COLOR] = { "color", 0, "WHEN", "auto, always or never",
			WORDS_COLOR },
	[OPT_NO_PAGER] = { "no-pager", 0, NULL,
			   "do not pipe long output into a pager", WORDS_NONE },
	[OPT_HELP] = { "help", 'h', NULL, "show help for the command",
		       WORDS_NONE },
	[OPT_VERSION] = { "version", 'V', NULL, "show the version",
			  WORDS_NONE },
	[OPT_DRY_RUN] = { "dry-run", 'n', NULL,
			  "show what would be done, change nothing",
			  WORDS_NONE },
	[OPT_FORCE] = { "force", 'f', NULL, "do it even if that does harm",
			WORDS_NONE },
	[OPT_TIMEOUT] = { "timeout", 't', "SECONDS", "time out after this time",
			  WORDS_NONE },
	[OPT_TO] = { "to", 0, "HOST[.PORT]", "where to", WORDS_TARGET },
	[OPT_HOST] = { "host", 'H', "HOST", "only elements that belong to this host",
		       WORDS_HOST },
	[OPT_APPLIANCE] = { "appliance", 'a', "APPLIANCE",
			    "only elements that belong to this appliance",
			    WORDS_APPLIANCE },
	[OPT_SWITCH] = { "switch", 's', "SWITCH",
			 "only elements that belong to this switch", WORDS_SWITCH },
	[OPT_FREE] = { "free", 0, NULL, "only free endpoints", WORDS_NONE },
	[OPT_BOUND] = { "bound", 0, NULL, "only endpoints bound to a host",
			WORDS_NONE },
	[OPT_STATE] = { "state", 0, "STATE", "only elements in this state",
			WORDS_STATE },
	[OPT_KIND] = { "kind", 'k', "KIND", "only this kind", WORDS_KIND },
	[OPT_WIDE] = { "wide", 'w', NULL, "all columns", WORDS_NONE },
	[OPT_PRUNE] = { "prune", 0, NULL,
			"release endpoints that are not in the file", WORDS_NONE },
	[OPT_DETAILED] = { "detailed-exitcode", 0, NULL,
			   "exit with 8 if there are differences", WORDS_NONE },
	[OPT_TYPE] = { "type", 0, "TYPE[,TYPE...]", "only events of this type",
		       WORDS_EVENT },
	[OPT_READY] = { "ready", 0, NULL,
			"print \"ready\" when events are being received", WORDS_NONE },
	[OPT_INTERVAL] = { "interval", 'i', "SECONDS",
			   "repeat, with rates", WORDS_NONE },
	[OPT_COUNT] = { "count", 'c', "N", "exit after this many", WORDS_NONE },
	[OPT_NO_WAIT] = { "no-wait", 0, NULL,
			  "do not wait for the PCI device", WORDS_NONE },
	[OPT_NO_PREFLIGHT] = { "no-preflight", 0, NULL,
			       "do not check slots beforehand", WORDS_NONE },
	[OPT_REQUIRE_P2P] = { "require-p2p", 0, NULL,
			      "refuse if the port cannot access the endpoint's memory",
			      WORDS_NONE },
	[OPT_ONCE] = { "once", 0, NULL, "exit after one request", WORDS_NONE },
	[OPT_OUTPUT] = { "output", 'o', "FILE",
			 "write to this file, completely or not at all",
			 WORDS_FILE },
	[OPT_LIVE] = { "live", 0, NULL, "use the fabric as it is composed now",
		       WORDS_NONE },
	[OPT_TOPOLOGY] = { "topology", 0, "FILE",
			   "file with meshes and capacities of the live fabric",
			   WORDS_FILE },
	[OPT_DEVICES] = { "devices", 'd', "LIST",
			  "only these GPUs, in this order: 0,2,5 or names",
			  WORDS_NONE },
	[OPT_FORMAT] = { "format", 0, "FORMAT", "rccl, nccl, graph or topo",
			 WORDS_FORMAT },
	[OPT_COLLECTIVE] = { "collective", 0, "NAME",
			     "the collective; default is all-reduce",
			     WORDS_COLLECTIVE },
	[OPT_ROOT] = { "root", 0, "RANK",
		       "root of broadcast and reduce; default is 0", WORDS_NONE },
	[OPT_SIZE] = { "size", 0, "BYTES",
		       "predict for this size; default is 1G", WORDS_NONE },
	[OPT_LOADS] = { "schedule", 0, "WHICH",
			"show load of links: rings, optimal or none",
			WORDS_LOADS },
	[OPT_SCHEDULE] = { "schedule", 0, "FILE",
			   "write the optimal schedule for libfabrex",
			   WORDS_FILE },
	[OPT_RING_SCHEDULE] = { "ring-schedule", 0, "FILE",
				"write the schedule of the rings", WORDS_FILE },
	[OPT_RINGS] = { "rings", 0, NULL, "print NCCL_RINGS and nothing else",
			WORDS_NONE },
	[OPT_RINGS_FILE] = { "rings-file", 0, "FILE",
			     "write the rings as NCCL_GRAPH_FILE",
			     WORDS_FILE },
	[OPT_TUNER_FILE] = { "tuner-file", 0, "FILE",
			     "write the faster protocol of each size as NCCL_TUNER_CONFIG_FILE",
			     WORDS_FILE },
	[OPT_NO_PREDICTION] = { "no-prediction", 0, NULL,
				"do not simulate the schedules", WORDS_NONE },
	[OPT_JOBS] = { "jobs", 0, "RANKS;RANKS",
		       "predict several jobs together, as in \"0-7;8-15\"",
		       WORDS_NONE },
	[OPT_MODEL] = { "model", 0, "PARAMETERS", "parameters of the model, as in 6.7B",
			WORDS_NONE },
	[OPT_LAYERS] = { "layers", 0, "N", "of the model", WORDS_NONE },
	[OPT_HIDDEN] = { "hidden", 0, "N", "width of the model", WORDS_NONE },
	[OPT_BATCH] = { "batch", 0, "N",
			"samples of all GPUs in a step; sequences decoded together",
			WORDS_NONE },
	[OPT_SEQUENCE] = { "sequence", 0, "N", "tokens of a sample, so far, or of a prompt",
			   WORDS_NONE },
	[OPT_PARALLEL] = { "parallel", 0, "HOW", "data, zero1, zero3, tensor or prefill",
			   WORDS_PARALLEL },
	[OPT_TFLOPS] = { "tflops", 0, "N", "what each GPU achieves",
			 WORDS_NONE },
	[OPT_MEMORY] = { "memory", 0, "GB/S",
			 "rate at which each GPU reads its memory", WORDS_NONE },
	[OPT_VALUE_BYTES] = { "value-bytes", 0, "N",
			      "size of a parameter; default is 2", WORDS_NONE },
	[OPT_OVERLAP] = { "overlap", 0, "SHARE",
			  "share of communication that overlaps computation, 0 to 1",
			  WORDS_NONE },
	[OPT_RECOMPUTE] = { "recompute", 0, NULL,
			    "activations are recomputed", WORDS_NONE },
	[OPT_KV_HIDDEN] = { "kv-hidden", 0, "N",
			    "width of keys and values, if less than hidden",
			    WORDS_NONE },
	[OPT_SWITCHES] = { "switches", 0, "N", "how many there are",
			   WORDS_NONE },
	[OPT_SWITCH_PORTS] = { "switch-ports", 0, "N",
			       "ports of each switch; default is 6", WORDS_NONE },
	[OPT_BOXES] = { "boxes", 0, "N", "appliances", WORDS_NONE },
	[OPT_UPLINKS] = { "uplinks", 0, "N", "uplinks of each appliance, 2 or 4",
			  WORDS_NONE },
	[OPT_GPUS] = { "gpus", 0, "N", "GPUs of each appliance; default is 8",
		       WORDS_NONE },
	[OPT_HOST_PORTS] = { "host-ports", 0, "N", "of the server",
			     WORDS_NONE },
	[OPT_ISLS] = { "isls", 0, "N",
		       "maximum number of cables between switches; default is 0",
		       WORDS_NONE },
	[OPT_LINKS] = { "links", 'l', NULL,
			"bytes on each link, in each direction", WORDS_NONE },
	[OPT_LIMIT] = { "limit", 0, "N", "number of wirings to show; default is 3",
			WORDS_NONE },
};

struct getopt_tables {
	char shorts[2 + 2 * OPT_MAX + 1];
	struct option longs[OPT_MAX + 1];
};

static void make_tables(struct getopt_tables *t, optset accept, bool stop)
{
	size_t n = 0, s = 0;
	int o;

	memset(t, 0, sizeof(*t));
	if (stop)
		t->shorts[s++] = '+';
	t->shorts[s++] = ':';
	for (o = 0; o < OPT_MAX; o++) {
		const struct option_info *i = &option_info[o];

		if (!(accept & OPT_BIT(o)))
			continue;
		t->longs[n].name = i->name;
		t->longs[n].has_arg = i->value ? required_argument
					       : no_argument;
		t->longs[n++].val = 256 + o;
		if (!i->letter)
			continue;
		t->shorts[s++] = i->letter;
		if (i->value)
			t->shorts[s++] = ':';
	}
}

static int option_of_letter(int letter)
{
	int o;

	for (o = 0; o < OPT_MAX; o++)
		if (letter && option_info[o].letter == letter)
			return o;
	return -1;
}

/* getopt() has met something it does not know, or a value is missing. */
static int option_error(struct ctl *c, int what, const char *word,
			optset accept)
{
	const char *names[OPT_MAX + 1] = { NULL }, *near, *cmd;
	size_t n = 0;
	int o;

	cmd = c->command ? c->command->name : "";
	if (what == ':')
		return err_usage(&c->err, word, "option %s needs a value; see "
				 "\"fabrexctl help %s\"", word, cmd);
	for (o = 0; o < OPT_MAX; o++)
		if (accept & OPT_BIT(o))
			names[n++] = option_info[o].name;
	near = strncmp(word, "--", 2) ? NULL : nearest_word(names, word + 2);
	if (near)
		return err_usage(&c->err, word, "unknown option %s; did you "
				 "mean --%s?", word, near);
	return err_usage(&c->err, word, "%s%sunknown option %s; see "
			 "\"fabrexctl help %s\"", cmd, *cmd ? ": " : "", word,
			 cmd);
}

int options_parse(struct ctl *c, int argc, char **argv, optset accept,
		  bool stop)
{
	struct getopt_tables t;
	char letter[3] = "-?";
	int v, o;

	make_tables(&t, accept, stop);
	optind = 0;
	opterr = 0;
	for (;;) {
		v = getopt_long(argc, argv, t.shorts, t.longs, NULL);
		if (v == -1)
			return optind;
		letter[1] = optopt;
		if (v == '?' || v == ':')
			return option_error(c, v, optopt > 0 && optopt < 256 ?
					    letter : argv[optind - 1], accept);
		o = v >= 256 ? v - 256 : option_of_letter(v);
		c->arg[o] = option_info[o].value ? optarg : "";
	}
}
