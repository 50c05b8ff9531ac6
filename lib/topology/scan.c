// SPDX-License-Identifier: LGPL-2.1-or-later
/* A first look at libconfig text before libconfig parses it; see scan.h. */
#include <stdio.h>
#include <string.h>

#include "topology/scan.h"

#define DEPTH		32
#define SETTINGS	1024	/* of one group */

struct look {
	const char *p, *end;
	const char *name;	/* of the file */
	unsigned int line;
	const char *word;	/* the newest name or value */
	size_t word_length;
	unsigned int depth;
	unsigned int settings[DEPTH + 1];	/* of the groups around */
	struct topo_scan *out;
	char *err;
	size_t err_len;
};

static int refuse(const struct look *l, const char *why)
{
	snprintf(l->err, l->err_len, "%.200s:%u: %s", l->name, l->line, why);
	return -1;
}

/* Skip up to behind the next @stop; lines are counted. False: there is none. */
static bool skip(struct look *l, const char *stop, bool escapes)
{
	size_t n = strlen(stop);

	for (; l->p < l->end; l->p++) {
		if (escapes && *l->p == '\\' && l->p + 1 < l->end) {
			l->line += *++l->p == '\n';
			continue;
		} else if ((size_t)(l->end - l->p) >= n &&
			   !memcmp(l->p, stop, n)) {
			l->p += n;
			l->line += *stop == '\n';
			return true;
		}
		l->line += *l->p == '\n';
	}
	return false;
}

static bool in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '*' ||
	       c == '.' || c == '+';
}

static bool word_is(const struct look *l, const char *word)
{
	return l->word_length == strlen(word) &&
	       !memcmp(l->word, word, l->word_length);
}

static int setting(struct look *l)
{
	if (++l->settings[l->depth] > SETTINGS)
		return refuse(l, "more than 1024 settings in one group; use lists of groups");
	if (!l->depth && word_is(l, "fabric"))
		l->out->fabric = true;
	if (!l->depth && word_is(l, "graph"))
		l->out->graph = true;
	return 0;
}

static int open_bracket(struct look *l)
{
	if (++l->depth > DEPTH)
		return refuse(l, "brackets in brackets, more than 32 deep; close some");
	l->settings[l->depth] = 0;
	return 0;
}

/* Skip a comment that begins here. */
static bool comment(struct look *l)
{
	const char *next = l->p + 1 < l->end ? l->p + 1 : "";

	if (*l->p == '#' || (*l->p == '/' && *next == '/'))
		return skip(l, "\n", false) || true;
	if (*l->p == '/' && *next == '*') {
		l->p += 2;
		return skip(l, "*/", false) || true;
	}
	return false;
}

/* libconfig would tell the last line of the file. */
static int string(struct look *l)
{
	unsigned int line = l->line;

	if (skip(l, "\"", true))
		return 0;
	l->line = line;
	return refuse(l, "a string that begins here has no end; put a quotation mark there");
}

static int mark(struct look *l)
{
	switch (*l->p++) {
	case '"':
		return string(l);
	case '\n':
		l->line++;
		return 0;
	case '{':
	case '(':
	case '[':
		return open_bracket(l);
	case '}':
	case ')':
	case ']':
		l->depth -= l->depth > 0;
		return 0;
	case '=':
	case ':':
		return setting(l);
	case '@':
		return refuse(l, "\"@\" (@include reads other files, which is not done here); put everything into one file");
	default:
		return 0;
	}
}

static int step(struct look *l)
{
	if (comment(l))
		return 0;
	if (!in_word(*l->p))
		return mark(l);
	l->word = l->p;
	while (l->p < l->end && in_word(*l->p))
		l->p++;
	l->word_length = (size_t)(l->p - l->word);
	return 0;
}

int topology_scan(const char *text, size_t length, const char *name,
		  struct topo_scan *out, char *err, size_t err_len)
{
	struct look l = { .p = text, .end = text + length, .name = name,
			  .line = 1, .word = "", .out = out, .err = err,
			  .err_len = err_len };
	int r = 0;

	*out = (struct topo_scan){ 0 };
	if (memchr(text, 0, length)) {
		snprintf(err, err_len, "%.200s: a NUL byte; it is no text",
			 name);
		return -1;
	}
	while (!r && l.p < l.end)
		r = step(&l);
	return r;
}
