// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of commands, and the usage texts made from it.
 * Called by run.c, help.c and complete.c.
 */
#include <string.h>

#include "ctl.h"

#define PREFLIGHT (OPT(NO_PREFLIGHT) | OPT(REQUIRE_P2P))
#define STEPS (OPT(DRY_RUN) | OPT(TIMEOUT) | OPT(NO_WAIT) | PREFLIGHT)

static const struct command commands[] = {
	{ "list", "[switches|ports|hosts|appliances|endpoints|fports]",
	  "show the fabric as a tree, or one kind of element as a table",
	  OPT(HOST) | OPT(APPLIANCE) | OPT(SWITCH) | OPT(FREE) | OPT(BOUND) |
	  OPT(STATE) | OPT(KIND) | OPT(WIDE), WORDS_NOUN, cmd_list },
	{ "compose", "ENDPOINT|KIND[:COUNT][@APPLIANCE]... --to HOST[.PORT]",
	  "attach endpoints to a host", STEPS | OPT(TO), WORDS_FREE,
	  cmd_compose },
	{ "release", "ENDPOINT...", "take endpoints away from their hosts",
	  OPT(DRY_RUN) | OPT(TIMEOUT) | OPT(FORCE), WORDS_BOUND, cmd_release },
	{ "move", "ENDPOINT... --to HOST[.PORT]",
	  "release endpoints and attach them to another host",
	  STEPS | OPT(TO) | OPT(FORCE), WORDS_BOUND, cmd_move },
	{ "plan", "FILE", "show what \"apply\" would change",
	  OPT(PRUNE) | OPT(DETAILED) | PREFLIGHT, WORDS_FILE, cmd_plan },
	{ "apply", "FILE", "make the bindings what a file says",
	  STEPS | OPT(PRUNE) | OPT(FORCE), WORDS_FILE, cmd_apply },
	{ "monitor", "", "print events as they happen",
	  OPT(TYPE) | OPT(TIMEOUT) | OPT(COUNT) | OPT(READY), WORDS_NONE,
	  cmd_monitor },
	{ "port", "PORT [enable|disable|reset]",
	  "show or control a switch port", OPT(DRY_RUN) | OPT(FORCE),
	  WORDS_PORT, cmd_port },
	{ "stats", "[PORT|ENDPOINT...]", "show counters and rates",
	  OPT(INTERVAL) | OPT(COUNT) | OPT(WIDE), WORDS_COUNTED, cmd_stats },
	{ "p2p", "[PORT|ENDPOINT|PCI-DEVICE [PORT|ENDPOINT|PCI-DEVICE]]",
	  "show which devices reach each other's memory, and why not",
	  OPT(WIDE), WORDS_P2P, cmd_p2p },
	{ "holders", "ENDPOINT|PCI-DEVICE",
	  "show what keeps a device of this host in use", 0, WORDS_ENDPOINT,
	  cmd_holders },
	{ "agent", "", "answer requests to release endpoints of this host",
	  OPT(TIMEOUT) | OPT(ONCE) | OPT(READY), WORDS_NONE, cmd_agent },
	{ "completion", "bash", "print the shell's completion script", 0,
	  WORDS_SHELL, cmd_completion },
	{ "help", "[COMMAND]", "show the manual page of a command", 0,
	  WORDS_COMMAND, cmd_help },
	{ "version", "", "show the version", 0, WORDS_NONE, cmd_version },
	{ "__complete", NULL, NULL, 0, WORDS_NONE, cmd_complete },
	{ NULL, NULL, NULL, 0, WORDS_NONE, NULL }
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

static void print_options(FILE *f, uint64_t mask)
{
	char word[64];
	int o;

	for (o = 0; o < OPT_MAX; o++) {
		const struct option_info *i = &option_info[o];

		if (!(mask & 1ull << o))
			continue;
		snprintf(word, sizeof(word), "--%s%s%s", i->name,
			 i->value ? " " : "", i->value ? i->value : "");
		fprintf(f, "  %c%c%s %-24s %s\n", i->letter ? '-' : ' ',
			i->letter ? i->letter : ' ', i->letter ? "," : " ",
			word, i->text);
	}
}

void command_usage(FILE *f, const struct command *cmd)
{
	fprintf(f, "usage: fabrexctl %s%s%s [OPTIONS]\n\n%s\n", cmd->name,
		cmd->args && *cmd->args ? " " : "", cmd->args ? cmd->args : "",
		cmd->summary ? cmd->summary : "");
	if (cmd->options) {
		fputs("\noptions:\n", f);
		print_options(f, cmd->options);
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
			fprintf(f, "  %-11s %s\n", cmd->name, cmd->summary);
	fputs("\noptions:\n", f);
	print_options(f, GLOBAL_OPTS | OPT(VERSION));
	fputs("\n\"fabrexctl help COMMAND\" shows the manual page.\n", f);
}
