/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One run of fabrexctl: its command, its options, its fabric, its output.
 * Every command has the form int cmd(struct ctl *, argc, argv).
 */
#ifndef CTL_H
#define CTL_H

#include <json-c/json.h>
#include <stdio.h>

#include "backend.h"
#include "err.h"
#include "model.h"
#include "util.h"

/* Every option of every command; options.c describes them. */
enum opt {
	OPT_JSON, OPT_FPORT, OPT_COLOR, OPT_NO_PAGER, OPT_HELP, OPT_VERSION,
	OPT_DRY_RUN, OPT_FORCE, OPT_TIMEOUT, OPT_TO, OPT_HOST, OPT_APPLIANCE,
	OPT_SWITCH, OPT_FREE, OPT_BOUND, OPT_STATE, OPT_KIND, OPT_WIDE,
	OPT_PRUNE, OPT_DETAILED, OPT_TYPE, OPT_READY, OPT_INTERVAL, OPT_COUNT,
	OPT_NO_WAIT, OPT_ONCE, OPT_NO_PREFLIGHT, OPT_REQUIRE_P2P,
	OPT_MAX
};

#define OPT(o) (1ull << OPT_##o)
#define GLOBAL_OPTS (OPT(JSON) | OPT(FPORT) | OPT(COLOR) | OPT(NO_PAGER) | \
		     OPT(HELP))

/* What a word of the command line may be, for completion. */
enum words {
	WORDS_NONE, WORDS_FILE, WORDS_NOUN, WORDS_ENDPOINT, WORDS_FREE,
	WORDS_BOUND, WORDS_HOST, WORDS_TARGET, WORDS_APPLIANCE, WORDS_SWITCH,
	WORDS_PORT, WORDS_PORT_ACTION, WORDS_COUNTED, WORDS_STATE, WORDS_KIND,
	WORDS_P2P, WORDS_EVENT, WORDS_COLOR, WORDS_COMMAND, WORDS_SHELL, WORDS_FPORT
};

struct ctl;

struct command {
	const char *name;
	const char *args;	/* as in the synopsis */
	const char *summary;
	uint64_t options;	/* besides the global ones */
	enum words words;
	int (*run)(struct ctl *c, int argc, char **argv);
};

struct ctl {
	struct backend *be;
	bool opened;
	const struct command *command;
	const char *arg[OPT_MAX];	/* NULL: not given; "" without value */
	struct err err;
	struct model *model;
	json_object *doc;	/* what --json prints */
	FILE *out;		/* text; printed whole if all went well */
	FILE *real_out, *real_err;
	bool json, color, streaming;
	int exit_code;		/* if there is no error */
};

#define IS_SET(c, o) ((c)->arg[OPT_##o] != NULL)

/**
 * ctl_run() - all of fabrexctl
 * @be:   the fabric; opened only if the command needs it
 * @out:  where results go
 * @errf: where messages and progress go
 *
 * Return: the exit code
 */
int ctl_run(struct backend *be, int argc, char **argv, FILE *out, FILE *errf);

/* Connect, if not done yet, and choose the local port. */
int ctl_open(struct ctl *c);
/* ctl_open(), and the whole fabric into c->model. */
int ctl_load(struct ctl *c);
/* The chosen local port (after ctl_open()). */
const struct fport *ctl_fport(const struct ctl *c);
/*
 * One element as local port @fport knows it: of the endpoints' PCI devices
 * each port knows those behind itself.
 */
int ctl_ask_port(struct ctl *c, uint32_t fport, uint32_t id, struct object *o,
		 struct err *e);
/* From now on c->out is printed at once: commands that go on, like monitor. */
void ctl_stream(struct ctl *c);
/* Print what there is so far; c->doc as one line. */
int ctl_flush(struct ctl *c);
/* Seconds given with an option, or @otherwise. */
int ctl_seconds(struct ctl *c, enum opt o, double otherwise, double *out);
int ctl_number(struct ctl *c, enum opt o, uint64_t otherwise, uint64_t *out);

/* command.c */
const struct command *command_find(const char *name);
const struct command *command_table(void);	/* ends with a NULL name */
void command_usage(FILE *f, const struct command *cmd);
void command_overview(FILE *f);

/* options.c */
struct option_info {
	const char *name;
	char letter;
	const char *value;	/* NULL: takes none */
	const char *text;
	enum words words;
};
extern const struct option_info option_info[OPT_MAX];
/**
 * options_parse() - take options out of @argv
 * @accept: mask of OPT()
 * @stop:   stop at the first word that is no option
 *
 * Return: index of the first word left, or a negative errno
 */
int options_parse(struct ctl *c, int argc, char **argv, uint64_t accept,
		  bool stop);

/* One per noun, in the file of that name. */
int cmd_list(struct ctl *c, int argc, char **argv);
int cmd_compose(struct ctl *c, int argc, char **argv);
int cmd_release(struct ctl *c, int argc, char **argv);
int cmd_move(struct ctl *c, int argc, char **argv);
int cmd_plan(struct ctl *c, int argc, char **argv);
int cmd_apply(struct ctl *c, int argc, char **argv);
int cmd_monitor(struct ctl *c, int argc, char **argv);
int cmd_port(struct ctl *c, int argc, char **argv);
int cmd_stats(struct ctl *c, int argc, char **argv);
int cmd_agent(struct ctl *c, int argc, char **argv);
int cmd_p2p(struct ctl *c, int argc, char **argv);
int cmd_holders(struct ctl *c, int argc, char **argv);
int cmd_completion(struct ctl *c, int argc, char **argv);
int cmd_complete(struct ctl *c, int argc, char **argv);
int cmd_help(struct ctl *c, int argc, char **argv);
int cmd_version(struct ctl *c, int argc, char **argv);

#endif
