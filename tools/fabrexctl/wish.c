// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading declarative files (libconfig). A topology file is one too: of it,
 * only the list "bindings" matters here.
 */
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "util.h"
#include "wish.h"

struct reader {
	const char *path;
	struct wishes *w;
	struct err *e;
};

static int complain(struct reader *rd, config_setting_t *at, const char *what,
		    const char *more)
{
	return err_set(rd->e, EINVAL, rd->path, "%s:%u: %s%s", rd->path,
		       config_setting_source_line(at), what, more);
}

/* A name; @value is "" if the setting is not there. */
static int read_name(struct reader *rd, config_setting_t *group,
		     const char *key, char *value)
{
	config_setting_t *s = config_setting_get_member(group, key);
	const char *text;

	value[0] = '\0';
	if (!s)
		return 0;
	text = config_setting_get_string(s);
	if (!text || !*text || strlen(text) >= CTL_NAME_LEN)
		return complain(rd, s, key, " must be a name in quotation "
				"marks, of 1 to 31 characters");
	strcpy(value, text);
	return 0;
}

static int check_keys(struct reader *rd, config_setting_t *group)
{
	static const char *const keys[] = { "endpoint", "port", "host", "class",
					    "count", "appliance", NULL };
	int i, k;

	for (i = 0; i < config_setting_length(group); i++) {
		config_setting_t *s = config_setting_get_elem(group, i);
		const char *name = config_setting_name(s), *near;
		char hint[96];

		for (k = 0; keys[k] && strcmp(keys[k], name); k++)
			;
		if (keys[k])
			continue;
		near = nearest_word(keys, name);
		snprintf(hint, sizeof(hint), near ? " is no setting of a "
			 "binding; did you mean %s?" : " is no setting of a "
			 "binding", near);
		return complain(rd, s, name, hint);
	}
	return 0;
}

static int read_kind(struct reader *rd, config_setting_t *group,
		     struct wish *w)
{
	config_setting_t *s;
	char word[CTL_NAME_LEN];
	int r = read_name(rd, group, "class", word);

	if (r || !*word)
		return r;
	w->kind = endpoint_kind(word);
	w->count = 1;
	if (!w->kind)
		return complain(rd, config_setting_get_member(group, "class"),
				"class must be gpu, nvme, nic or fpga, not ",
				word);
	s = config_setting_get_member(group, "count");
	if (s)
		w->count = config_setting_get_int(s);
	if (s && (config_setting_type(s) != CONFIG_TYPE_INT || !w->count ||
		  w->count > 65536))
		return complain(rd, s, "count", " must be a number from 1 on");
	return 0;
}

static int read_target(struct reader *rd, config_setting_t *group,
		       struct wish *w)
{
	char host[CTL_NAME_LEN];
	int r = read_name(rd, group, "port", w->target);

	if (!r)
		r = read_name(rd, group, "host", host);
	if (r)
		return r;
	if (*host && *w->target)
		return complain(rd, group, "use either host or port", "");
	if (*host)
		strcpy(w->target, host);
	if (!*w->target)
		return complain(rd, group, "has neither host nor port", "");
	return 0;
}

static int read_wish(struct reader *rd, config_setting_t *group)
{
	struct wish *w = &rd->w->v[rd->w->n];
	int r;

	if (config_setting_type(group) != CONFIG_TYPE_GROUP)
		return complain(rd, group, "each binding is a group: "
				"{ endpoint = \"...\"; port = \"...\"; }", "");
	w->line = config_setting_source_line(group);
	r = check_keys(rd, group);
	if (!r)
		r = read_name(rd, group, "endpoint", w->endpoint);
	if (!r)
		r = read_name(rd, group, "appliance", w->appliance);
	if (!r)
		r = read_kind(rd, group, w);
	if (!r)
		r = read_target(rd, group, w);
	if (r)
		return r;
	if (!*w->endpoint == !w->kind)
		return complain(rd, group, "use either endpoint or class", "");
	if (!w->kind && (config_setting_get_member(group, "count") ||
			 *w->appliance))
		return complain(rd, group, "count and appliance go with class, "
				"not with endpoint", "");
	rd->w->n++;
	return 0;
}

static int read_file(struct reader *rd, config_t *cfg)
{
	config_setting_t *list = config_lookup(cfg, "bindings");
	int i, n, r;

	r = read_name(rd, config_root_setting(cfg), "fabric", rd->w->fabric);
	if (r)
		return r;
	if (!list)
		return err_set(rd->e, EINVAL, rd->path, "%s: there is no list "
			       "\"bindings\"; an empty one is bindings = ();",
			       rd->path);
	if (config_setting_type(list) != CONFIG_TYPE_LIST)
		return complain(rd, list, "bindings must be a list: "
				"bindings = ( ... );", "");
	n = config_setting_length(list);
	rd->w->v = xcalloc(n, sizeof(*rd->w->v));
	for (i = 0; i < n && !r; i++)
		r = read_wish(rd, config_setting_get_elem(list, i));
	return r;
}

int wishes_read(const char *path, struct wishes *w, struct err *e)
{
	struct reader rd = { .path = path, .w = w, .e = e };
	config_t cfg;
	FILE *f;
	int r;

	memset(w, 0, sizeof(*w));
	snprintf(w->file, sizeof(w->file), "%s", path);
	f = fopen(path, "re");
	if (!f)
		return err_set(e, errno, path, "cannot read %s: %s", path,
			       strerror(errno));
	config_init(&cfg);
	if (config_read(&cfg, f) == CONFIG_TRUE)
		r = read_file(&rd, &cfg);
	else
		r = err_set(e, EINVAL, path, "%s:%d: %s", path,
			    config_error_line(&cfg), config_error_text(&cfg));
	config_destroy(&cfg);
	fclose(f);
	if (r)
		wishes_free(w);
	return r;
}

void wishes_free(struct wishes *w)
{
	free(w->v);
	w->v = NULL;
	w->n = 0;
}
