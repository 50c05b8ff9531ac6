// SPDX-License-Identifier: GPL-2.0-only
/*
 * One run from the command line to the exit code: options, the fabric,
 * output that appears whole or not at all. Called by main.c and by tests.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl.h"
#include "json.h"
#include "names.h"
#include "switchtec/switchtec.h"
#include "topology/visible.h"

static bool fport_is(const struct fport *p, const char *word)
{
	const char *digits = word;
	uint64_t n;

	if (!strcmp(p->name, word) || !strcmp(p->device, word))
		return true;
	if (!strncmp(digits, "/dev/", 5))
		digits += 5;
	if (!strncmp(digits, "fabrex", 6))
		digits += 6;
	return parse_u64(digits, 0, UINT32_MAX, &n) && n == p->index;
}

static int choose_fport(struct ctl *c)
{
	struct model *m = c->model;
	const char *want = c->arg[OPT_FPORT];
	size_t i;

	if (!m->nfports)
		return err_set(&c->err, ENODEV, "fabrex", "this machine has no "
			       "fabric port; is the adapter there (lspci -d "
			       "1234:da00) and fabrex_draco loaded?");
	c->be->has_fport = true;
	c->be->fport = m->fports[0].index;
	if (!want)
		return 0;
	for (i = 0; i < m->nfports; i++)
		if (fport_is(&m->fports[i], want)) {
			c->be->fport = m->fports[i].index;
			return 0;
		}
	return err_set(&c->err, ENODEV, want, "this machine has no fabric port "
		       "\"%s\"; see \"fabrexctl list fports\"", want);
}

static int open_backend(struct ctl *c)
{
	int r = c->be->ops->open(c->be, &c->err);

	if (r)
		return r;
	c->opened = true;
	model_free(c->model);
	c->model = model_new();
	c->model->whole_ports = c->be->whole_ports;
	return c->be->ops->fports(c->be, c->model, &c->err);
}

static void close_backend(struct ctl *c)
{
	if (c->opened)
		c->be->ops->close(c->be);
	c->opened = false;
}

static int open_switchtec(struct ctl *c)
{
	int r;

	close_backend(c);
	err_clear(&c->err);
	if (!c->own)
		c->own = switchtec_backend(c->arg[OPT_FABRIC], NULL);
	c->be = c->own;
	r = open_backend(c);
	return r ? r : choose_fport(c);
}

/*
 * The kernel's fabric, if this machine has a port of one; else that of the
 * Switchtecs, if somebody has set it up.
 */
static int open_any(struct ctl *c)
{
	bool none;
	int r;

	if (IS_SET(c, FABRIC) || c->own)
		return open_switchtec(c);
	r = open_backend(c);
	none = r == -ENODEV || (!r && !c->model->nfports);
	if (none && switchtec_is_set_up())
		return open_switchtec(c);
	if (!r)
		r = choose_fport(c);
	if (none && switchtec_is_here())
		err_append(&c->err, ". This machine has a Switchtec PFX: to use "
			   "it, name its topology file with --fabric FILE");
	return r;
}

int ctl_open(struct ctl *c)
{
	return c->opened ? 0 : open_any(c);
}

int ctl_load(struct ctl *c)
{
	struct filter all = { 0 };
	int r = ctl_open(c);

	if (r)
		return r;
	model_clear(c->model);
	return c->be->ops->objects(c->be, &all, c->model, &c->err);
}

/* Without a module there is no fabric, nor with one that has no port. */
int ctl_open_any(struct ctl *c)
{
	int r = *c->no_fabric ? 1 : ctl_open(c);

	if (r >= 0 || IS_SET(c, FPORT) || IS_SET(c, FABRIC) || r == -ENOMEM ||
	    (c->own ? r != -ENODEV && r != -EACCES && r != -EPERM
		    : c->opened && (r != -ENODEV || c->model->nfports)))
		return r;
	snprintf(c->no_fabric, sizeof(c->no_fabric), "%s", c->err.message);
	c->no_fabric_code = c->own ? c->err.code : ENODEV;
	err_clear(&c->err);
	return 1;
}

int ctl_load_any(struct ctl *c)
{
	int r = ctl_open_any(c);

	return r ? r : ctl_load(c);
}

const struct fport *ctl_fport(const struct ctl *c)
{
	size_t i;

	for (i = 0; i < c->model->nfports; i++)
		if (c->model->fports[i].index == c->be->fport)
			return &c->model->fports[i];
	return &c->model->fports[0];
}

int ctl_ask_port(struct ctl *c, uint32_t fport, uint32_t id, struct object *o,
		 struct err *e)
{
	const uint32_t chosen = c->be->fport;
	int r;

	c->be->fport = fport;
	r = c->be->ops->object(c->be, 0, id, NULL, o, e);
	c->be->fport = chosen;
	return r;
}

int ctl_seconds(struct ctl *c, enum opt o, double otherwise, double *out)
{
	*out = otherwise;
	if (!c->arg[o] || parse_seconds(c->arg[o], out))
		return 0;
	return err_usage(&c->err, c->arg[o], "--%s: \"%s\" is no number of "
			 "seconds", option_info[o].name, c->arg[o]);
}

int ctl_number(struct ctl *c, enum opt o, uint64_t otherwise, uint64_t *out)
{
	*out = otherwise;
	if (!c->arg[o] || parse_u64(c->arg[o], 1, UINT32_MAX, out))
		return 0;
	return err_usage(&c->err, c->arg[o], "--%s: \"%s\" is no number from 1 "
			 "on", option_info[o].name, c->arg[o]);
}

/* Text into the user's pager. Return: false if that was not possible. */
static bool page(const char *text, size_t len)
{
	const char *pager = getenv("PAGER");
	FILE *p;

	setenv("LESS", "FRX", 0);
	p = popen(pager && *pager ? pager : "less", "w");
	if (!p)
		return false;
	fwrite(text, 1, len, p);
	return WEXITSTATUS(pclose(p)) != 127;
}

static bool wants_pager(const struct ctl *c, const char *text)
{
	struct winsize ws;
	unsigned int lines = 0;

	if (IS_SET(c, NO_PAGER) || c->real_out != stdout || c->streaming ||
	    !isatty(STDOUT_FILENO) ||
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) || !ws.ws_row)
		return false;
	while ((text = strchr(text, '\n'))) {
		text++;
		lines++;
	}
	return lines >= ws.ws_row;
}

static int write_out(struct ctl *c, const char *text, size_t len)
{
	if (fwrite(text, 1, len, c->real_out) == len && !fflush(c->real_out))
		return 0;
	return err_set(&c->err, EIO, "stdout", "could not write the result: "
		       "%s", strerror(errno));
}

void ctl_stream(struct ctl *c)
{
	c->streaming = true;
	c->out = c->real_out;
}

int ctl_flush(struct ctl *c)
{
	char *text;
	int r;

	if (!c->json || !c->doc)
		return write_out(c, "", 0);
	text = xasprintf("%s\n", json_object_to_json_string_ext(c->doc,
			 JSON_C_TO_STRING_PLAIN |
			 JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(c->doc);
	c->doc = NULL;
	r = write_out(c, text, strlen(text));
	free(text);
	return r;
}

/* Indented for people, without a blank for programs. */
static int json_flags(const struct ctl *c)
{
	bool people = c->real_out == stdout && isatty(STDOUT_FILENO);

	return JSON_C_TO_STRING_NOSLASHESCAPE |
	       (people ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
		       : JSON_C_TO_STRING_PLAIN);
}

static void print_error(struct ctl *c)
{
	struct err *e = &c->err;

	if (c->json) {
		json_object *doc = json_error(e);

		fprintf(c->real_out, "%s\n",
			json_object_to_json_string_ext(doc, json_flags(c)));
		fflush(c->real_out);
		json_object_put(doc);
		return;
	}
	visible(e->message);
	fprintf(c->real_err, "fabrexctl: %s\n", e->message);
}

static int choose_color(struct ctl *c)
{
	const char *when = IS_SET(c, COLOR) ? c->arg[OPT_COLOR] : "auto";

	if (!strcmp(when, "always"))
		c->color = true;
	else if (!strcmp(when, "auto"))
		c->color = c->real_out == stdout && isatty(STDOUT_FILENO) &&
			   !getenv("NO_COLOR");
	else if (strcmp(when, "never"))
		return err_usage(&c->err, when, "--color: \"%s\" is not one of "
				 "auto, always, never", when);
	return 0;
}

/* The verb that the first word is. */
static int find_verb(struct ctl *c, const char *word)
{
	const char *names[32], *near, *cmd = c->command->name;
	const struct command *verb;
	size_t n = 0;

	if (!word)
		return err_usage(&c->err, cmd, "%s: name a verb; see "
				 "\"fabrexctl %s --help\"", cmd, cmd);
	c->verb = command_verb(c->command, word);
	if (c->verb)
		return 0;
	for (verb = c->command->verbs; verb->name; verb++)
		names[n++] = verb->name;
	names[n] = NULL;
	near = nearest_word(names, word);
	if (near)
		return err_usage(&c->err, word, "%s: no verb \"%s\"; did you "
				 "mean \"%s\"?", cmd, word, near);
	return err_usage(&c->err, word, "%s: no verb \"%s\"; see \"fabrexctl "
			 "%s --help\"", cmd, word, cmd);
}

/* Options of one verb mean nothing to another. */
static int check_verb_options(struct ctl *c)
{
	int o;

	for (o = 0; o < OPT_MAX; o++)
		if (c->arg[o] && !((c->verb->options | GLOBAL_OPTS) & OPT_BIT(o)))
			return err_usage(&c->err, option_info[o].name, "--%s "
					 "does not apply to \"%s %s\"",
					 option_info[o].name, c->command->name,
					 c->verb->name);
	return 0;
}

static int run_verb(struct ctl *c, int argc, char **argv)
{
	int r = find_verb(c, argc ? argv[0] : NULL);

	if (!r)
		r = check_verb_options(c);
	return r ? r : c->verb->run(c, argc - 1, argv + 1);
}

static int run_command(struct ctl *c, int argc, char **argv)
{
	const struct command *cmd = c->command;
	int first, r;

	if (!strcmp(cmd->name, "__complete"))
		return cmd->run(c, argc, argv);
	first = options_parse(c, argc, argv,
			      command_options(cmd) | GLOBAL_OPTS, false);
	c->json = IS_SET(c, JSON);
	if (first < 0)
		return first;
	if (IS_SET(c, HELP)) {
		command_usage(c->out, cmd, first < argc ?
			      command_verb(cmd, argv[first]) : NULL);
		c->json = false;
		return 0;
	}
	r = choose_color(c);
	if (r)
		return r;
	return cmd->verbs ? run_verb(c, argc - first, argv + first)
			  : cmd->run(c, argc - first, argv + first);
}

static int find_command(struct ctl *c, const char *word)
{
	const char *names[32], *near;
	const struct command *cmd;
	size_t n = 0;

	c->command = command_find(word);
	if (c->command)
		return 0;
	for (cmd = command_table(); cmd->name; cmd++)
		if (cmd->summary)
			names[n++] = cmd->name;
	names[n] = NULL;
	near = nearest_word(names, word);
	if (near)
		return err_usage(&c->err, word, "no command \"%s\"; did you "
				 "mean \"%s\"?", word, near);
	return err_usage(&c->err, word, "no command \"%s\"; see \"fabrexctl "
			 "help\"", word);
}

/* Whether the user wants JSON, even if the command line has an error. */
static bool asks_for_json(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j"))
			return true;
	return false;
}

/* "fabrexctl" and nothing else: what is there? */
static int run_command_alone(struct ctl *c)
{
	char name[] = "list", *argv[] = { name, NULL };
	int r;

	c->command = command_find(name);
	c->json = IS_SET(c, JSON);
	r = choose_color(c);
	return r ? r : c->command->run(c, 0, argv + 1);
}

static int dispatch(struct ctl *c, int argc, char **argv)
{
	int first, r;

	first = options_parse(c, argc, argv, GLOBAL_OPTS | OPT(VERSION), true);
	if (first < 0)
		return first;
	if (IS_SET(c, VERSION))
		return cmd_version(c, 0, NULL);
	if (IS_SET(c, HELP) && first == argc) {
		command_overview(c->out);
		c->json = false;
		return 0;
	}
	if (first == argc)
		return run_command_alone(c);
	r = find_command(c, argv[first]);
	return r ? r : run_command(c, argc - first, argv + first);
}

/* What the command has made, all of it; nothing of it after an error. */
static int finish(struct ctl *c, char *text, size_t len)
{
	const char *json;

	if (c->json) {
		if (!c->doc)
			return 0;
		json = json_object_to_json_string_ext(c->doc, json_flags(c));
		if (write_out(c, json, strlen(json)))
			return -EIO;
		return write_out(c, "\n", 1);
	}
	if (wants_pager(c, text) && page(text, len))
		return 0;
	return write_out(c, text, len);
}

static void release_ctl(struct ctl *c)
{
	close_backend(c);
	switchtec_free(c->own);
	model_free(c->model);
	json_object_put(c->doc);
}

int ctl_run(struct backend *be, int argc, char **argv, FILE *out, FILE *errf)
{
	struct ctl c = { .be = be, .real_out = out, .real_err = errf };
	char *text = NULL;
	FILE *buffer;
	size_t len = 0;
	int r;

	buffer = open_memstream(&text, &len);
	if (!buffer)
		return EXIT_FAILED;
	c.out = buffer;
	c.json = asks_for_json(argc, argv);
	r = dispatch(&c, argc, argv);
	fclose(buffer);
	if (!r)
		r = finish(&c, text, len);
	if (r < 0 && !c.err.code)
		err_set(&c.err, -r, NULL, "%s", strerror(-r));
	if (c.err.code)
		print_error(&c);
	release_ctl(&c);
	free(text);
	return c.err.code ? err_exit_code(&c.err) : c.exit_code;
}
