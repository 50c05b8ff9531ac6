// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Typed access to libconfig settings with messages people can act on. Used by
 * topology.c and elements.c only.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "topology/parse.h"

#define NAME_BUCKETS	4096

struct name_entry {
	struct name_entry *next;
	unsigned int line;
	char what[12];
	char name[TOPO_NAME_LEN];
};

struct topo_names {
	struct name_entry *buckets[NAME_BUCKETS];
};

int topo_fail(struct topo_parse *p, const struct topo_at *at, const char *fmt,
	      ...)
{
	const char *file = at->set ? config_setting_source_file(at->set) : NULL;
	unsigned int line = at->set ? config_setting_source_line(at->set) : 0;
	int n = 0;
	va_list ap;

	if (line)
		n = snprintf(p->err, p->err_len, "%s:%u: ",
			     file ? file : p->file, line);
	else
		n = snprintf(p->err, p->err_len, "%s: ", p->file);
	if (at->what && at->name && (size_t)n < p->err_len)
		n += snprintf(p->err + n, p->err_len - n, "%s \"%s\": ",
			      at->what, at->name);
	else if (at->what && (size_t)n < p->err_len)
		n += snprintf(p->err + n, p->err_len - n, "%s: ", at->what);
	if ((size_t)n < p->err_len) {
		va_start(ap, fmt);
		vsnprintf(p->err + n, p->err_len - n, fmt, ap);
		va_end(ap);
	}
	return -1;
}

/* The place of one member, for messages about its value. */
static struct topo_at member(const struct topo_at *at, config_setting_t *m)
{
	struct topo_at place = *at;

	place.set = m;
	return place;
}

int topo_known(struct topo_parse *p, const struct topo_at *at,
	       const char *const *known)
{
	int n = config_setting_length(at->set);

	for (int i = 0; i < n; i++) {
		config_setting_t *m = config_setting_get_elem(at->set, i);
		const char *name = config_setting_name(m);
		struct topo_at place = member(at, m);
		const char *const *k = known;

		while (*k && strcmp(*k, name))
			k++;
		if (!*k)
			return topo_fail(p, &place,
					 "unknown setting \"%s\"; remove it or correct its spelling",
					 name);
	}
	return 0;
}

int topo_list(struct topo_parse *p, const struct topo_at *at, const char *key,
	      bool required, config_setting_t **list, unsigned int *count)
{
	config_setting_t *m = config_setting_get_member(at->set, key);
	struct topo_at place = member(at, m);

	*list = m;
	*count = 0;
	if (!m && !required)
		return 0;
	if (!m)
		return topo_fail(p, at, "\"%s\" is missing; add %s = ( ... );",
				 key, key);
	if (!config_setting_is_list(m) && !config_setting_is_array(m))
		return topo_fail(p, &place,
				 "\"%s\" is not a list; write %s = ( ... );",
				 key, key);
	*count = config_setting_length(m);
	if (!*count && required)
		return topo_fail(p, &place,
				 "\"%s\" is empty; put at least one element into it",
				 key);
	return 0;
}

void *topo_array(struct topo_parse *p, const struct topo_at *at,
		 unsigned int *count, size_t size)
{
	void *array = calloc(*count ? *count : 1, size);

	if (!array) {
		*count = 0;
		topo_fail(p, at, "out of memory; free some");
	}
	return array;
}

int topo_each(struct topo_parse *p, config_setting_t *list, unsigned int count,
	      const char *what, int (*read_one)(struct topo_parse *p,
						struct topo_at *at,
						unsigned int i))
{
	for (unsigned int i = 0; i < count; i++) {
		struct topo_at at;

		if (topo_group(p, list, i, what, &at) || read_one(p, &at, i))
			return -1;
	}
	return 0;
}

int topo_string(struct topo_parse *p, const struct topo_at *at,
		const char *key, bool required, const char **value)
{
	config_setting_t *m = config_setting_get_member(at->set, key);
	struct topo_at place = member(at, m);

	if (!m && !required)
		return 0;
	if (!m)
		return topo_fail(p, at,
				 "\"%s\" is missing; add %s = \"...\";", key, key);
	*value = config_setting_get_string(m);
	if (!*value)
		return topo_fail(p, &place,
				 "\"%s\" is not a string; write %s = \"...\";",
				 key, key);
	return 0;
}

int topo_int(struct topo_parse *p, const struct topo_at *at, const char *key,
	     unsigned int min, unsigned int max, unsigned int *value)
{
	config_setting_t *m = config_setting_get_member(at->set, key);
	struct topo_at place = member(at, m);
	long long v;

	if (!m)
		return 0;
	if (config_setting_type(m) != CONFIG_TYPE_INT &&
	    config_setting_type(m) != CONFIG_TYPE_INT64)
		return topo_fail(p, &place,
				 "\"%s\" is not an integer; write a number from %u to %u",
				 key, min, max);
	v = config_setting_get_int64(m);
	if (v < (long long)min || v > (long long)max)
		return topo_fail(p, &place,
				 "\"%s\" is %lld; choose %u to %u", key, v, min,
				 max);
	*value = v;
	return 0;
}

int topo_gbps(struct topo_parse *p, const struct topo_at *at, const char *key,
	      double *value)
{
	config_setting_t *m = config_setting_get_member(at->set, key);
	struct topo_at place = member(at, m);
	double v;

	if (!m)
		return 0;
	if (!config_setting_is_number(m))
		return topo_fail(p, &place,
				 "\"%s\" is not a number; write GB/s such as 27.0",
				 key);
	v = config_setting_type(m) == CONFIG_TYPE_FLOAT ?
	    config_setting_get_float(m) : (double)config_setting_get_int64(m);
	if (!(v > 0.0 && v <= 100000.0))
		return topo_fail(p, &place,
				 "\"%s\" is %g; choose GB/s above 0 and up to 100000",
				 key, v);
	*value = v;
	return 0;
}

int topo_bool(struct topo_parse *p, const struct topo_at *at, const char *key,
	      bool *value)
{
	config_setting_t *m = config_setting_get_member(at->set, key);
	struct topo_at place = member(at, m);

	if (!m)
		return 0;
	if (config_setting_type(m) != CONFIG_TYPE_BOOL)
		return topo_fail(p, &place,
				 "\"%s\" is neither true nor false; write one of them",
				 key);
	*value = config_setting_get_bool(m);
	return 0;
}

static const char *size_text(uint64_t v, char *buf, size_t len)
{
	static const char unit[] = { 0, 'K', 'M', 'G' };
	unsigned int u = 0;

	while (u < 3 && v && !(v & 1023)) {
		v >>= 10;
		u++;
	}
	snprintf(buf, len, "%llu%.1s", (unsigned long long)v,
		 u ? &unit[u] : "");
	return buf;
}

int topo_size(struct topo_parse *p, const struct topo_at *at, const char *key,
	      uint64_t min, uint64_t max, uint64_t *value)
{
	config_setting_t *m = config_setting_get_member(at->set, key);
	struct topo_at place = member(at, m);
	const char *s = NULL, *end;
	char lo[24], hi[24];
	uint64_t v;

	if (!m)
		return 0;
	if (topo_string(p, at, key, true, &s))
		return -1;
	if (!size_parse(s, "KMG", &v, &end) || *end)
		return topo_fail(p, &place,
				 "\"%s\" is \"%s\"; write digits and K, M or G, such as \"64M\"",
				 key, s);
	if (v < min || v > max || (v & (v - 1)))
		return topo_fail(p, &place,
				 "\"%s\" is \"%s\"; choose a power of two from %s to %s",
				 key, s, size_text(min, lo, sizeof(lo)),
				 size_text(max, hi, sizeof(hi)));
	*value = v;
	return 0;
}

int topo_group(struct topo_parse *p, config_setting_t *list, unsigned int i,
	       const char *what, struct topo_at *at)
{
	at->set = config_setting_get_elem(list, i);
	at->what = what;
	at->name = NULL;
	if (!at->set || !config_setting_is_group(at->set)) {
		at->set = at->set ? at->set : list;
		return topo_fail(p, at,
				 "element %u is not a group; write { ... }",
				 i + 1);
	}
	return 0;
}

static bool valid_name(const char *s)
{
	size_t n = strlen(s);

	if (n < 1 || n >= TOPO_NAME_LEN || !isalnum((unsigned char)s[0]))
		return false;
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

int topo_name(struct topo_parse *p, struct topo_at *at, char *name)
{
	config_setting_t *m = config_setting_get_member(at->set, "name");
	struct topo_at place = member(at, m);
	const char *s = NULL;

	if (topo_string(p, at, "name", true, &s))
		return -1;
	if (!valid_name(s))
		return topo_fail(p, &place,
				 "name \"%s\" is not valid; use 1 to %u of A-Z a-z 0-9 . _ - and begin with a letter or digit",
				 s, TOPO_NAME_LEN - 1);
	memcpy(name, s, strlen(s) + 1);
	at->name = name;
	return topo_claim(p, at, name);
}

static unsigned int hash(const char *s)
{
	unsigned int h = 2166136261u;

	while (*s)
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return h % NAME_BUCKETS;
}

int topo_claim(struct topo_parse *p, const struct topo_at *at,
	       const char *name)
{
	struct name_entry **b = &p->names->buckets[hash(name)];
	struct name_entry *e;

	for (e = *b; e; e = e->next) {
		if (!strcmp(e->name, name))
			return topo_fail(p, at,
					 "the name \"%s\" is already taken by the %s in line %u; choose another",
					 name, e->what, e->line);
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return topo_fail(p, at, "out of memory; free some");
	snprintf(e->name, sizeof(e->name), "%s", name);
	snprintf(e->what, sizeof(e->what), "%s", at->what);
	e->line = config_setting_source_line(at->set);
	e->next = *b;
	*b = e;
	return 0;
}

struct topo_names *topo_names_new(void)
{
	return calloc(1, sizeof(struct topo_names));
}

void topo_names_free(struct topo_names *names)
{
	if (!names)
		return;
	for (unsigned int i = 0; i < NAME_BUCKETS; i++) {
		struct name_entry *e = names->buckets[i];

		while (e) {
			struct name_entry *next = e->next;

			free(e);
			e = next;
		}
	}
	free(names);
}
