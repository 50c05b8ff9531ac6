// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion: the script that shells load, and the words it asks for. Gets
 * the words of the command line, the unfinished one last, and prints what it
 * may become. Never an error: then there is nothing to complete.
 */
#include <stdlib.h>
#include <string.h>

#include <fabrex/plan.h>

#include "ctl.h"
#include "names.h"
#include "pcitree.h"

struct completion {
	struct ctl *c;
	char **words;
	int n;			/* finished words */
	const char *cur;
	const char *before;	/* what the answer repeats: "--to=" */
	const struct command *cmd, *verb;	/* NULL: not named yet */
	int args;		/* words behind them */
	optset mask;		/* options that may come */
};

static const char script[] =
"# bash completion for fabrexctl; every answer comes from fabrexctl itself.\n"
"_fabrexctl()\n"
"{\n"
"\tlocal line=${COMP_LINE:0:COMP_POINT} cur word\n"
"\tlocal -a words\n"
"\tread -ra words <<<\"$line\"\n"
"\t[[ $line == *[[:space:]] ]] && words+=('')\n"
"\tcur=${words[${#words[@]} - 1]}\n"
"\tCOMPREPLY=()\n"
"\twhile IFS= read -r word; do\n"
"\t\tif [[ $word == :file ]]; then\n"
"\t\t\tcompopt -o filenames\n"
"\t\t\twhile IFS= read -r word; do\n"
"\t\t\t\tCOMPREPLY+=(\"$word\")\n"
"\t\t\tdone < <(compgen -f -- \"$cur\")\n"
"\t\t\treturn\n"
"\t\tfi\n"
"\t\t# Words are broken at : and =, so what is before them is there already.\n"
"\t\t[[ $cur == *:* && $COMP_WORDBREAKS == *:* ]] &&\n"
"\t\t\tword=${word#\"${cur%\"${cur##*:}\"}\"}\n"
"\t\t[[ $cur == *=* && $COMP_WORDBREAKS == *=* ]] &&\n"
"\t\t\tword=${word#\"${cur%\"${cur##*=}\"}\"}\n"
"\t\t[[ $word == *[:=] ]] && compopt -o nospace\n"
"\t\tCOMPREPLY+=(\"$word\")\n"
"\tdone < <(\"${words[0]}\" __complete \"${words[@]:1}\" 2>/dev/null)\n"
"}\n"
"complete -F _fabrexctl fabrexctl\n";

static void offer(struct completion *k, const char *word)
{
	if (!strncmp(word, k->cur, strlen(k->cur)))
		fprintf(k->c->out, "%s%s\n", k->before, word);
}

static void offer_list(struct completion *k, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(*words, "?"))
			offer(k, *words);
}

static bool typed_already(const struct completion *k, const char *word)
{
	int i;

	for (i = 0; i < k->n; i++)
		if (!strcmp(k->words[i], word))
			return true;
	return false;
}

static bool fits(const struct object *o, enum words what)
{
	switch (what) {
	case WORDS_FREE:
		return o->state == FABREX_ENDPOINT_STATE_FREE;
	case WORDS_BOUND:
		return o->bound;
	case WORDS_TARGET:
		return o->type != T_PORT || o->kind == FABREX_PORT_KIND_HOST;
	default:
		return true;
	}
}

static void offer_objects(struct completion *k, uint32_t type, enum words what)
{
	struct filter f = { .type = type };
	struct ctl *c = k->c;
	size_t i;

	if (ctl_open(c))
		return;
	model_clear(c->model);
	if (c->be->ops->objects(c->be, &f, c->model, &c->err))
		return;
	for (i = 0; i < c->model->n; i++) {
		const struct object *o = c->model->objects[i];

		if (o->type == type && fits(o, what) &&
		    !typed_already(k, o->name))
			offer(k, o->name);
	}
}

static void offer_fports(struct completion *k)
{
	size_t i;

	if (ctl_open(k->c))
		return;
	for (i = 0; i < k->c->model->nfports; i++)
		offer(k, k->c->model->fports[i].name);
}

static void offer_commands(struct completion *k, const struct command *cmd)
{
	for (; cmd->name; cmd++)
		if (cmd->summary)
			offer(k, cmd->name);
}

static void offer_collectives(struct completion *k)
{
	int i;

	for (i = FABREX_PLAN_ALL_GATHER; i <= FABREX_PLAN_REDUCE; i++)
		offer(k, fabrex_plan_collective_str(i));
}

/* States and kinds depend on what is listed. */
static uint32_t listed_type(const struct completion *k)
{
	if (typed_already(k, "ports"))
		return T_PORT;
	if (typed_already(k, "hosts"))
		return T_HOST;
	if (typed_already(k, "appliances"))
		return T_APPLIANCE;
	return T_ENDPOINT;
}

/* Names of objects of the fabric; false if others are wanted. */
static bool offer_named(struct completion *k, enum words what)
{
	switch (what) {
	case WORDS_FREE:
		offer_list(k, kind_words(T_ENDPOINT));
		/* fall through */
	case WORDS_ENDPOINT:
	case WORDS_BOUND:
		offer_objects(k, T_ENDPOINT, what);
		return true;
	case WORDS_TARGET:
		offer_objects(k, T_HOST, what);
		offer_objects(k, T_PORT, what);
		return true;
	case WORDS_HOST:
		offer_objects(k, T_HOST, what);
		return true;
	case WORDS_APPLIANCE:
		offer_objects(k, T_APPLIANCE, what);
		return true;
	case WORDS_SWITCH:
		offer_objects(k, T_SWITCH, what);
		return true;
	case WORDS_COUNTED:
		offer_objects(k, T_PORT, what);
		offer_objects(k, T_ENDPOINT, what);
		return true;
	case WORDS_P2P:
		offer_objects(k, T_PORT, WORDS_TARGET);
		offer_objects(k, T_ENDPOINT, WORDS_BOUND);
		return true;
	case WORDS_PORT:
		offer_objects(k, T_PORT, what);
		return true;
	case WORDS_FPORT:
		offer_fports(k);
		return true;
	default:
		return false;
	}
}

/* Words that are always the same; NULL if others are wanted. */
static const char *const *fixed_words(const struct completion *k,
				      enum words what)
{
	static const char *const nouns[] = { "switches", "ports", "hosts",
					     "appliances", "endpoints",
					     "fports", "devices", "machine",
					     NULL };
	static const char *const colors[] = { "auto", "always", "never", NULL };
	static const char *const shells[] = { "bash", NULL };
	static const char *const formats[] = { "rccl", "nccl", "graph", "topo",
					       NULL };
	static const char *const loads[] = { "rings", "optimal", "none", NULL };
	static const char *const parallels[] = { "data", "zero1", "zero3",
						 "tensor", "prefill", NULL };

	switch (what) {
	case WORDS_NOUN:
		return nouns;
	case WORDS_PORT_ACTION:
		return action_words();
	case WORDS_STATE:
		return state_words(listed_type(k));
	case WORDS_KIND:
		return typed_already(k, "devices") ? function_kind_words() :
			kind_words(listed_type(k));
	case WORDS_EVENT:
		return event_words();
	case WORDS_COLOR:
		return colors;
	case WORDS_SHELL:
		return shells;
	case WORDS_FORMAT:
		return formats;
	case WORDS_LOADS:
		return loads;
	case WORDS_PARALLEL:
		return parallels;
	default:
		return NULL;
	}
}

static void offer_words(struct completion *k, enum words what)
{
	const char *const *fixed = fixed_words(k, what);

	if (fixed)
		offer_list(k, fixed);
	if (fixed || offer_named(k, what))
		return;
	if (what == WORDS_GRAPH)
		offer(k, "live");
	if (what == WORDS_FILE || what == WORDS_GRAPH)
		fputs(":file\n", k->c->out);
	else if (what == WORDS_COMMAND)
		offer_commands(k, command_table());
	else if (what == WORDS_VERB)
		offer_commands(k, k->cmd->verbs);
	else if (what == WORDS_COLLECTIVE)
		offer_collectives(k);
}

static bool is_option(const struct option_info *i, const char *word)
{
	size_t len = strcspn(word, "=");

	if (!strncmp(word, "--", 2) && strlen(i->name) == len - 2 &&
	    !strncmp(word + 2, i->name, len - 2))
		return true;
	return word[0] == '-' && word[1] && word[1] == i->letter && !word[2];
}

/* Of those with one name, the command's. */
static const struct option_info *find_option(const struct completion *k,
					     const char *word)
{
	const struct option_info *found = NULL;
	int o;

	for (o = 0; o < OPT_MAX; o++)
		if (is_option(&option_info[o], word) &&
		    (!found || k->mask & OPT_BIT(o)))
			found = &option_info[o];
	return found;
}

static bool takes_next_word(const struct completion *k, const char *word)
{
	const struct option_info *i = find_option(k, word);

	return i && i->value && !strchr(word, '=');
}

static void offer_options(struct completion *k, optset mask)
{
	char word[64];
	int o;

	for (o = 0; o < OPT_MAX; o++) {
		if (!(mask & OPT_BIT(o)))
			continue;
		snprintf(word, sizeof(word), "--%s", option_info[o].name);
		if (!typed_already(k, word))
			offer(k, word);
	}
}

/* "--to=a": completes what is behind the sign. */
static bool offer_value(struct completion *k)
{
	const struct option_info *i;
	const char *eq = strchr(k->cur, '=');
	char *before;

	if (strncmp(k->cur, "--", 2) || !eq)
		return false;
	i = find_option(k, k->cur);
	if (!i)
		return true;
	before = xasprintf("%.*s", (int)(eq + 1 - k->cur), k->cur);
	k->before = before;
	k->cur = eq + 1;
	offer_words(k, i->words);
	k->before = "";
	free(before);
	return true;
}

/* Command, verb and what their options are. */
static void look_back(struct completion *k)
{
	int i;

	k->mask = GLOBAL_OPTS | OPT(VERSION);
	for (i = 0; i < k->n; i++) {
		if (k->words[i][0] == '-') {
			i += takes_next_word(k, k->words[i]);
			continue;
		}
		if (!k->cmd) {
			k->cmd = command_find(k->words[i]);
			if (k->cmd)
				k->mask = GLOBAL_OPTS | command_options(k->cmd);
		} else if (k->cmd->verbs && !k->verb && !k->args) {
			k->verb = command_verb(k->cmd, k->words[i]);
			if (k->verb)
				k->mask = GLOBAL_OPTS | k->verb->options;
			else
				k->args++;
		} else {
			k->args++;
		}
	}
}

static void complete(struct completion *k)
{
	const char *last = k->n ? k->words[k->n - 1] : "";

	look_back(k);
	if (takes_next_word(k, last))
		offer_words(k, find_option(k, last)->words);
	else if (offer_value(k))
		;
	else if (k->cur[0] == '-')
		offer_options(k, k->mask);
	else if (!k->cmd)
		offer_commands(k, command_table());
	else if (k->verb)
		offer_words(k, k->verb->words);
	else if (k->cmd->words == WORDS_PORT && k->args)
		offer_words(k, k->args == 1 ? WORDS_PORT_ACTION : WORDS_NONE);
	else if (k->cmd->words != WORDS_VERB || !k->args)
		offer_words(k, k->cmd->words);
}

int cmd_complete(struct ctl *c, int argc, char **argv)
{
	struct completion k = { .c = c, .before = "" };

	c->json = false;
	k.cur = argc > 1 ? argv[argc - 1] : "";
	k.words = argv + 1;
	k.n = argc > 2 ? argc - 2 : 0;
	complete(&k);
	err_clear(&c->err);
	return 0;
}

int cmd_completion(struct ctl *c, int argc, char **argv)
{
	if (argc != 1 || strcmp(argv[0], "bash"))
		return err_usage(&c->err, argc ? argv[0] : NULL, "completion: "
				 "name a shell; there is bash");
	if (c->json) {
		c->doc = json_object_new_object();
		json_object_object_add(c->doc, "bash",
				       json_object_new_string(script));
		return 0;
	}
	fputs(script, c->out);
	return 0;
}
