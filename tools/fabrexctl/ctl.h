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
	OPT_JSON, OPT_FPORT, OPT_FABRIC, OPT_COLOR, OPT_NO_PAGER, OPT_HELP, OPT_VERSION,
	OPT_DRY_RUN, OPT_FORCE, OPT_TIMEOUT, OPT_TO, OPT_HOST, OPT_APPLIANCE,
	OPT_SWITCH, OPT_FREE, OPT_BOUND, OPT_STATE, OPT_KIND, OPT_WIDE,
	OPT_PRUNE, OPT_DETAILED, OPT_TYPE, OPT_READY, OPT_INTERVAL, OPT_COUNT,
	OPT_NO_WAIT, OPT_ONCE, OPT_NO_PREFLIGHT, OPT_REQUIRE_P2P,
	OPT_OUTPUT, OPT_LIVE, OPT_TOPOLOGY, OPT_DEVICES, OPT_FORMAT,
	OPT_COLLECTIVE, OPT_ROOT, OPT_SIZE, OPT_LOADS, OPT_SCHEDULE,
	OPT_RING_SCHEDULE, OPT_RINGS, OPT_RINGS_FILE, OPT_TUNER_FILE,
	OPT_NO_PREDICTION,
	OPT_JOBS, OPT_MODEL, OPT_LAYERS, OPT_HIDDEN, OPT_BATCH, OPT_SEQUENCE,
	OPT_PARALLEL, OPT_TFLOPS, OPT_MEMORY, OPT_VALUE_BYTES, OPT_OVERLAP,
	OPT_RECOMPUTE, OPT_KV_HIDDEN, OPT_SWITCHES, OPT_SWITCH_PORTS,
	OPT_BOXES, OPT_UPLINKS, OPT_GPUS, OPT_HOST_PORTS, OPT_ISLS, OPT_LIMIT,
	OPT_LINKS,
	OPT_MAX
};

/* A set of options. */
__extension__ typedef unsigned __int128 optset;

_Static_assert(OPT_MAX <= 128, "a set of options has 128 bits");

#define OPT_BIT(o) ((optset)1 << (o))
#define OPT(o) OPT_BIT(OPT_##o)
#define GLOBAL_OPTS (OPT(JSON) | OPT(FPORT) | OPT(FABRIC) | OPT(COLOR) | \
		     OPT(NO_PAGER) | OPT(HELP))

/* What a word of the command line may be, for completion. */
enum words {
	WORDS_NONE, WORDS_FILE, WORDS_NOUN, WORDS_ENDPOINT, WORDS_FREE,
	WORDS_BOUND, WORDS_HOST, WORDS_TARGET, WORDS_APPLIANCE, WORDS_SWITCH,
	WORDS_PORT, WORDS_PORT_ACTION, WORDS_COUNTED, WORDS_STATE, WORDS_KIND,
	WORDS_P2P, WORDS_EVENT, WORDS_COLOR, WORDS_COMMAND, WORDS_SHELL,
	WORDS_FPORT, WORDS_VERB, WORDS_GRAPH, WORDS_FORMAT, WORDS_COLLECTIVE,
	WORDS_LOADS, WORDS_PARALLEL
};

struct ctl;

struct command {
	const char *name;
	const char *args;	/* as in the synopsis */
	const char *summary;
	optset options;	/* besides the global ones */
	enum words words;
	int (*run)(struct ctl *c, int argc, char **argv);
	/* The first word is one of these; ends with a NULL name. */
	const struct command *verbs;
};

struct ctl {
	struct backend *be;
	struct backend *own;	/* one that is ours to free */
	bool opened;
	const struct command *command;
	const struct command *verb;	/* of a command that has verbs */
	const char *arg[OPT_MAX];	/* NULL: not given; "" without value */
	struct err err;
	struct model *model;
	char no_fabric[512];	/* why, after ctl_load_any() */
	int no_fabric_code;
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
/*
 * As ctl_open() or ctl_load(), for what makes sense without a fabric, too.
 * Return: 1: this machine has none that the user may use, see c->no_fabric; unless
 * --fport or --fabric wants one
 */
int ctl_open_any(struct ctl *c);
int ctl_load_any(struct ctl *c);
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
const struct command *command_verb(const struct command *cmd,
				   const char *name);
/* All options that a command takes besides the global ones, or its verbs. */
optset command_options(const struct command *cmd);
/* @verb: of @cmd, or NULL */
void command_usage(FILE *f, const struct command *cmd,
		   const struct command *verb);
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
int options_parse(struct ctl *c, int argc, char **argv, optset accept,
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
int cmd_doctor(struct ctl *c, int argc, char **argv);
int cmd_holders(struct ctl *c, int argc, char **argv);
int cmd_plan_collective(struct ctl *c, int argc, char **argv);
extern const struct command topology_verbs[];
int cmd_completion(struct ctl *c, int argc, char **argv);
int cmd_complete(struct ctl *c, int argc, char **argv);
int cmd_help(struct ctl *c, int argc, char **argv);
int cmd_version(struct ctl *c, int argc, char **argv);

#endif
