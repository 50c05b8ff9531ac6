// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of commands, and the usage texts made from it.
 * Called by run.c, help.c and complete.c.
 */
#include <string.h>

#include "ctl.h"

#define PREFLIGHT (OPT(NO_PREFLIGHT) | OPT(REQUIRE_P2P))
#define STEPS (OPT(DRY_RUN) | OPT(TIMEOUT) | OPT(NO_WAIT) | PREFLIGHT)

#define PLANNED (OPT(LIVE) | OPT(TOPOLOGY) | OPT(HOST) | OPT(DEVICES) | \
		 OPT(COLLECTIVE) | OPT(ROOT) | OPT(SIZE))

static const struct command commands[] = {
	{ "list", "[switches|ports|hosts|appliances|endpoints|fports|devices|machine]",
	  "show the fabric as a tree, or one kind of element as a table",
	  OPT(HOST) | OPT(APPLIANCE) | OPT(SWITCH) | OPT(FREE) | OPT(BOUND) |
	  OPT(STATE) | OPT(KIND) | OPT(WIDE), WORDS_NOUN, cmd_list, NULL },
	{ "compose", "ENDPOINT|KIND[:COUNT][@APPLIANCE]... --to HOST[.PORT]",
	  "attach endpoints to a host", STEPS | OPT(TO), WORDS_FREE,
	  cmd_compose, NULL },
	{ "release", "ENDPOINT...", "detach endpoints from their hosts",
	  OPT(DRY_RUN) | OPT(TIMEOUT) | OPT(FORCE), WORDS_BOUND, cmd_release, NULL },
	{ "move", "ENDPOINT... --to HOST[.PORT]",
	  "release endpoints and attach them to another host",
	  STEPS | OPT(TO) | OPT(FORCE), WORDS_BOUND, cmd_move, NULL },
	{ "plan", "FILE", "show what \"apply\" would change",
	  OPT(PRUNE) | OPT(DETAILED) | PREFLIGHT, WORDS_FILE, cmd_plan, NULL },
	{ "apply", "FILE", "make the bindings match a file",
	  STEPS | OPT(PRUNE) | OPT(FORCE), WORDS_FILE, cmd_apply, NULL },
	{ "topology", "VERB [ARGUMENTS]",
	  "show, check, convert, draw, compare and design wirings", 0,
	  WORDS_VERB, NULL, topology_verbs },
	{ "plan-collective", "FILE|live",
	  "the best schedule of a collective, with its proof",
	  PLANNED | OPT(JOBS) | OPT(SCHEDULE) | OPT(RING_SCHEDULE) |
	  OPT(RINGS) | OPT(RINGS_FILE) | OPT(TUNER_FILE) | OPT(FORMAT) |
	  OPT(NO_PREDICTION),
	  WORDS_GRAPH,
	  cmd_plan_collective, NULL },
	{ "monitor", "", "print events as they happen",
	  OPT(TYPE) | OPT(TIMEOUT) | OPT(COUNT) | OPT(READY), WORDS_NONE,
	  cmd_monitor, NULL },
	{ "port", "PORT [enable|disable|reset]",
	  "show or control a switch port", OPT(DRY_RUN) | OPT(FORCE),
	  WORDS_PORT, cmd_port, NULL },
	{ "stats", "[PORT|ENDPOINT...]", "show counters and rates",
	  OPT(INTERVAL) | OPT(COUNT) | OPT(WIDE) | OPT(LINKS) | OPT(TOPOLOGY),
	  WORDS_COUNTED, cmd_stats, NULL },
	{ "p2p", "[PORT|ENDPOINT|PCI-DEVICE [PORT|ENDPOINT|PCI-DEVICE]]",
	  "show which devices can access each other's memory, and if not, why",
	  OPT(WIDE), WORDS_P2P, cmd_p2p, NULL },
	{ "doctor", "", "say what this machine has, and what can be done with it",
	  0, WORDS_NONE, cmd_doctor, NULL },
	{ "holders", "ENDPOINT|PCI-DEVICE",
	  "show what keeps a device of this host in use", 0, WORDS_ENDPOINT,
	  cmd_holders, NULL },
	{ "agent", "", "answer requests to release endpoints of this host",
	  OPT(TIMEOUT) | OPT(ONCE) | OPT(READY), WORDS_NONE, cmd_agent, NULL },
	{ "completion", "bash", "print the completion script of a shell", 0,
	  WORDS_SHELL, cmd_completion, NULL },
	{ "help", "[COMMAND]", "show the manual page of a command", 0,
	  WORDS_COMMAND, cmd_help, NULL },
	{ "version", "", "show the version", 0, WORDS_NONE, cmd_version, NULL },
	{ "__complete", NULL, NULL, 0, WORDS_NONE, cmd_complete, NULL },
	{ NULL, NULL, NULL, 0, WORDS_NONE, NULL, NULL }
};

const struct command *command_table(void)
{
	return commands;
}

const struct command *command_find(const char *name)
{
	const struct command *cmd;

	for (cmd = commands; cmd->name; cmd++)
		if (!strcmp(cmd->name, name))
			return cmd;
	return NULL;
}

const struct command *command_verb(const struct command *cmd, const char *name)
{
	const struct command *verb;

	for (verb = cmd->verbs; verb && verb->name; verb++)
		if (!strcmp(verb->name, name))
			return verb;
	return NULL;
}

optset command_options(const struct command *cmd)
{
	const struct command *verb;
	optset mask = cmd->options;

	for (verb = cmd->verbs; verb && verb->name; verb++)
		mask |= verb->options;
	return mask;
}

static void print_options(FILE *f, optset mask)
{
	char word[64];
	int o;

	for (o = 0; o < OPT_MAX; o++) {
		const struct option_info *i = &option_info[o];

		if (!(mask & OPT_BIT(o)))
			continue;
		snprintf(word, sizeof(word), "--%s%s%s", i->name,
			 i->value ? " " : "", i->value ? i->value : "");
		fprintf(f, "  %c%c%s %-24s %s\n", i->letter ? '-' : ' ',
			i->letter ? i->letter : ' ', i->letter ? "," : " ",
			word, i->text);
	}
}

static void print_verbs(FILE *f, const struct command *cmd)
{
	const struct command *verb;

	fputs("\nverbs:\n", f);
	for (verb = cmd->verbs; verb->name; verb++)
		fprintf(f, "  %-10s %-30s %s\n", verb->name, verb->args,
			verb->summary);
}

void command_usage(FILE *f, const struct command *cmd,
		   const struct command *verb)
{
	const struct command *of = verb ? verb : cmd;

	fprintf(f, "usage: fabrexctl %s%s%s%s%s [OPTIONS]\n\n%s\n", cmd->name,
		verb ? " " : "", verb ? verb->name : "",
		of->args && *of->args ? " " : "", of->args ? of->args : "",
		of->summary ? of->summary : "");
	if (of->verbs)
		print_verbs(f, of);
	if (command_options(of)) {
		fputs("\noptions:\n", f);
		print_options(f, command_options(of));
	}
	fputs("\nglobal options:\n", f);
	print_options(f, GLOBAL_OPTS);
}

void command_overview(FILE *f)
{
	const struct command *cmd;

	fputs("usage: fabrexctl [OPTIONS] COMMAND [ARGUMENTS]\n\ncommands:\n",
	      f);
	for (cmd = commands; cmd->name; cmd++)
		if (cmd->summary)
			fprintf(f, "  %-15s %s\n", cmd->name, cmd->summary);
	fputs("\noptions:\n", f);
	print_options(f, GLOBAL_OPTS | OPT(VERSION));
	fputs("\n\"fabrexctl help COMMAND\" shows the manual page.\n", f);
}
