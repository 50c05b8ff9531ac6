// SPDX-License-Identifier: GPL-2.0-only
/*
 * "list": asks for what is needed and no more, makes records, shows them as
 * JSON, as a table or as a tree. Called by run.c.
 */
#include <string.h>

#include "columns.h"
#include "ctl.h"
#include "json.h"
#include "machine.h"
#include "names.h"
#include "tree.h"

struct noun {
	const char *name;
	uint32_t type;		/* 0: local ports */
	optset filters;	/* options that make sense */
	unsigned int also;	/* other types that its records name */
	json_object *(*record)(const struct model *m, const struct object *o);
	const struct column *columns;
	int (*machine)(struct ctl *c);	/* it is of this machine, no fabric's */
};

static const struct noun nouns[] = {
	{ "switches", T_SWITCH, 0, T_BIT(T_PORT), json_switch, switch_columns,
	  NULL },
	{ "ports", T_PORT,
	  OPT(HOST) | OPT(APPLIANCE) | OPT(SWITCH) | OPT(STATE) | OPT(KIND),
	  T_ANY, json_port, port_columns, NULL },
	{ "hosts", T_HOST, OPT(STATE), T_BIT(T_PORT), json_host, host_columns,
	  NULL },
	{ "appliances", T_APPLIANCE, OPT(KIND), T_BIT(T_PORT), json_appliance,
	  appliance_columns, NULL },
	{ "endpoints", T_ENDPOINT,
	  OPT(HOST) | OPT(APPLIANCE) | OPT(SWITCH) | OPT(FREE) | OPT(BOUND) |
	  OPT(STATE) | OPT(KIND), T_ANY, json_endpoint, endpoint_columns,
	  NULL },
	{ "fports", 0, 0, 0, NULL, fport_columns, NULL },
	{ "devices", 0, OPT(KIND), 0, NULL, function_columns, machine_table },
	{ "machine", 0, 0, 0, NULL, NULL, machine_tree },
};

#define ALL_FILTERS (OPT(HOST) | OPT(APPLIANCE) | OPT(SWITCH) | OPT(FREE) | \
		     OPT(BOUND) | OPT(STATE) | OPT(KIND))

/* What --host and so on came to. */
struct chosen {
	uint32_t host, appliance, sw;
	int state;
	int kind;
};

static const struct noun *find_noun(struct ctl *c, const char *word)
{
	const char *names[ARRAY_SIZE(nouns) + 1] = { NULL }, *near;
	size_t i, len = strlen(word);

	for (i = 0; i < ARRAY_SIZE(nouns); i++) {
		names[i] = nouns[i].name;
		/* "endpoint" and "switch" will do */
		if (!strcmp(word, names[i]) ||
		    (len + 2 >= strlen(names[i]) && len >= 4 &&
		     !strncmp(word, names[i], len)))
			return &nouns[i];
	}
	near = nearest_word(names, word);
	if (near)
		err_usage(&c->err, word, "list: nothing called \"%s\"; did you "
			  "mean \"%s\"?", word, near);
	else
		err_usage(&c->err, word, "list: nothing called \"%s\"; there "
			  "are switches, ports, hosts, appliances, endpoints, "
			  "fports, devices, machine", word);
	return NULL;
}

static int check_filters(struct ctl *c, const struct noun *noun)
{
	int o;

	for (o = 0; o < OPT_MAX; o++) {
		optset bit = OPT_BIT(o);

		if (!c->arg[o] || !(ALL_FILTERS & bit) ||
		    (noun && (noun->filters & bit)))
			continue;
		return err_usage(&c->err, option_info[o].name, "--%s does not "
				 "apply to %s", option_info[o].name,
				 noun ? noun->name : "the tree; name what is "
				 "to be listed, as in \"list endpoints\"");
	}
	if (IS_SET(c, FREE) && (IS_SET(c, BOUND) || IS_SET(c, HOST)))
		return err_usage(&c->err, "free", "a free endpoint is bound to "
				 "no host: --free excludes --bound and --host");
	return 0;
}

static int word_number(struct ctl *c, enum opt o, const char *const *words,
		       int *out)
{
	int i;

	*out = -1;
	if (!c->arg[o])
		return 0;
	for (i = 0; words[i]; i++)
		if (!strcmp(words[i], c->arg[o]) && strcmp(words[i], "?"))
			*out = i;
	if (*out >= 0)
		return 0;
	err_usage(&c->err, c->arg[o], "--%s: no %s \"%s\"; there are",
		  option_info[o].name, option_info[o].name, c->arg[o]);
	for (i = 0; words[i]; i++)
		if (strcmp(words[i], "?"))
			err_append(&c->err, "%s %s", i ? "," : "", words[i]);
	return -EINVAL;
}

/* Id of a name given with an option; one request, no dump. */
static int named_id(struct ctl *c, enum opt o, uint32_t type, uint32_t *id)
{
	struct object obj;
	int r;

	*id = 0;
	if (!c->arg[o])
		return 0;
	r = c->be->ops->object(c->be, type, 0, c->arg[o], &obj, &c->err);
	if (r == -ENOENT) {
		/* Only for the suggestion. */
		struct filter f = { .type = type };

		if (!c->be->ops->objects(c->be, &f, c->model, &c->err))
			model_want(c->model, c->arg[o], T_BIT(type), &c->err);
		return r;
	}
	if (r)
		return r;
	model_put(c->model, &obj);
	*id = obj.id;
	return 0;
}

static int parse_filters(struct ctl *c, const struct noun *noun,
			 struct chosen *ch)
{
	int r;

	r = word_number(c, OPT_STATE, state_words(noun->type), &ch->state);
	if (!r)
		r = word_number(c, OPT_KIND, kind_words(noun->type), &ch->kind);
	if (!r)
		r = ctl_open(c);
	if (!r)
		r = named_id(c, OPT_HOST, T_HOST, &ch->host);
	if (!r)
		r = named_id(c, OPT_APPLIANCE, T_APPLIANCE, &ch->appliance);
	if (!r)
		r = named_id(c, OPT_SWITCH, T_SWITCH, &ch->sw);
	return r;
}

static int fetch_one(struct ctl *c, uint32_t id)
{
	struct object o;
	int r;

	if (!id || model_get(c->model, id))
		return 0;
	r = c->be->ops->object(c->be, 0, id, NULL, &o, &c->err);
	if (r == -ENOENT) {
		/* It went away since; its name is then not shown. */
		err_clear(&c->err);
		return 0;
	}
	if (!r)
		model_put(c->model, &o);
	return r;
}

/* Elements that the records of filtered ones name, one request for each. */
static int fetch_named(struct ctl *c)
{
	struct model *m = c->model;
	size_t i;
	int r;

	/* The model grows in this loop: what is fetched names more. */
	for (i = 0; i < m->n; i++) {
		struct object *o = m->objects[i];

		if (o->type != T_PORT && o->type != T_ENDPOINT)
			continue;
		r = fetch_one(c, o->parent);
		if (!r)
			r = fetch_one(c, o->link);
		if (!r)
			r = fetch_one(c, o->bound);
		if (r)
			return r;
	}
	return 0;
}

/* The kernel filters by host, parent and type; the rest is done here. */
static int fetch(struct ctl *c, const struct noun *noun,
		 const struct chosen *ch)
{
	struct filter f = { .type = noun->type };
	uint32_t t;
	int r;

	if (noun->type == T_ENDPOINT) {
		f.host_id = ch->host;
		f.parent = ch->appliance;
	} else if (noun->type == T_PORT) {
		f.parent = ch->sw;
	}
	if (f.host_id || f.parent) {
		r = c->be->ops->objects(c->be, &f, c->model, &c->err);
		return r ? r : fetch_named(c);
	}
	if (noun->also == T_ANY)
		f.type = 0;
	r = c->be->ops->objects(c->be, &f, c->model, &c->err);
	for (t = T_SWITCH; !r && f.type && t < T_MAX; t++) {
		f.type = t;
		if (noun->also & T_BIT(t))
			r = c->be->ops->objects(c->be, &f, c->model, &c->err);
	}
	return r;
}

static bool endpoint_matches(const struct ctl *c, const struct object *o,
			     const struct chosen *ch)
{
	const struct object *host = model_owner(c->model, o);
	const struct object *uplink = model_get(c->model, o->link);

	if (IS_SET(c, FREE) && o->state != FABREX_ENDPOINT_STATE_FREE)
		return false;
	if (IS_SET(c, BOUND) && !o->bound)
		return false;
	if (ch->host && (!host || host->id != ch->host))
		return false;
	if (ch->sw && (!uplink || uplink->parent != ch->sw))
		return false;
	return !ch->appliance || o->parent == ch->appliance;
}

static bool matches(const struct ctl *c, const struct object *o,
		    const struct chosen *ch)
{
	if (ch->state >= 0 && o->state != (uint32_t)ch->state)
		return false;
	if (ch->kind >= 0 && o->kind != (uint32_t)ch->kind)
		return false;
	if (o->type == T_ENDPOINT)
		return endpoint_matches(c, o, ch);
	if (o->type != T_PORT)
		return true;
	return (!ch->host || o->link == ch->host) &&
	       (!ch->appliance || o->link == ch->appliance) &&
	       (!ch->sw || o->parent == ch->sw);
}

static json_object *records(const struct ctl *c, const struct noun *noun,
			    const struct chosen *ch)
{
	json_object *rows = json_object_new_array();
	const struct model *m = c->model;
	size_t i;

	for (i = 0; i < m->nfports && !noun->type; i++)
		if (!IS_SET(c, FPORT) || m->fports[i].index == c->be->fport)
			json_object_array_add(rows, json_fport(&m->fports[i]));
	for (i = 0; i < m->n && noun->type; i++)
		if (m->objects[i]->type == noun->type &&
		    matches(c, m->objects[i], ch))
			json_object_array_add(rows,
					noun->record(m, m->objects[i]));
	return rows;
}

static int list_noun(struct ctl *c, const struct noun *noun)
{
	struct chosen ch = { .state = -1, .kind = -1 };
	json_object *rows;
	int r = 0;

	r = ctl_open_any(c);
	if (r > 0)
		return err_set(&c->err, c->no_fabric_code, noun->name, "%s; \"fabrexctl list\" shows this machine without a fabric",
			       c->no_fabric);
	if (!r && noun->type)
		r = parse_filters(c, noun, &ch);
	if (!r && noun->type)
		r = fetch(c, noun, &ch);
	if (r)
		return r;
	rows = records(c, noun, &ch);
	c->doc = json_object_new_object();
	rec_put(c->doc, noun->name, rows);
	if (!c->json)
		table_print(c->out, rows, noun->columns, IS_SET(c, WIDE),
			    c->color);
	return 0;
}

static int list_machine(struct ctl *c, int (*show)(struct ctl *c))
{
	c->doc = json_object_new_object();
	return show(c);
}

/* Without a fabric there is the machine itself. */
static int list_no_fabric(struct ctl *c)
{
	size_t i;

	c->doc = json_object_new_object();
	rec_str(c->doc, "fabric", NULL);
	rec_str(c->doc, "fport", NULL);
	rec_str(c->doc, "no_fabric", c->no_fabric);
	for (i = 0; i < ARRAY_SIZE(nouns); i++)
		if (!nouns[i].machine)
			rec_put(c->doc, nouns[i].name, json_object_new_array());
	return machine_tree(c);
}

static int list_tree(struct ctl *c)
{
	struct chosen ch = { .state = -1, .kind = -1 };
	size_t i;
	int r = ctl_load_any(c);

	if (r)
		return r < 0 ? r : list_no_fabric(c);
	c->doc = json_object_new_object();
	rec_str(c->doc, "fabric", ctl_fport(c)->fabric);
	rec_str(c->doc, "fport", ctl_fport(c)->name);
	rec_str(c->doc, "no_fabric", NULL);
	for (i = 0; i < ARRAY_SIZE(nouns); i++)
		rec_put(c->doc, nouns[i].name, nouns[i].machine ? NULL :
			records(c, &nouns[i], &ch));
	rec_put(c->doc, "notes", NULL);
	if (!c->json)
		tree_print(c->out, c->doc, c->color);
	return 0;
}

int cmd_list(struct ctl *c, int argc, char **argv)
{
	const struct noun *noun = NULL;
	int r;

	if (argc > 1)
		return err_usage(&c->err, argv[1], "list: one kind at a time; "
				 "\"%s\" is too much", argv[1]);
	if (argc && !(noun = find_noun(c, argv[0])))
		return -EINVAL;
	r = check_filters(c, noun);
	if (r)
		return r;
	if (noun && noun->machine)
		return list_machine(c, noun->machine);
	return noun ? list_noun(c, noun) : list_tree(c);
}
