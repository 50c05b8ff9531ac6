// SPDX-License-Identifier: LGPL-2.1-or-later
/* Trees of XML elements, by libexpat. Called by the files of nccl/. */
#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/xml.h"

struct reader {
	XML_Parser expat;
	const char *name;
	struct plan_error *e;
	struct xml_element *root, *at;
	uint32_t elements, depth;
	int err;
};

static uint32_t line_of(XML_Parser expat)
{
#ifdef XML_ATTR_DEPRECATED	/* as new as the function's new name */
	return (uint32_t)XML_GetCurrentLineNumber64(expat);
#else
	return (uint32_t)XML_GetCurrentLineNumber(expat);
#endif
}

static void stop(struct reader *r, int code, const char *what,
		 const char *remedy)
{
	if (r->err)
		return;
	r->err = plan_fail(r->e, code, "%.100s:%u: %s; %s", r->name,
			   line_of(r->expat), what, remedy);
	XML_StopParser(r->expat, XML_FALSE);
}

static void free_element(struct xml_element *x)
{
	uint32_t i;

	for (i = 0; i < x->nattributes; i++) {
		free(x->attributes[i].name);
		free(x->attributes[i].value);
	}
	free(x->attributes);
	free(x->name);
	free(x);
}

void xml_free(struct xml_element *root)
{
	struct xml_element *x = root, *up;

	while (x) {
		if (x->first) {
			up = x->first;
			x->first = up->next;
			x = up;
			continue;
		}
		up = x->parent;
		free_element(x);
		x = up;
	}
}

static bool set_attributes(struct xml_element *x, const char **attributes)
{
	uint32_t n = 0, i;

	while (attributes[2 * n])
		n++;
	x->attributes = calloc(n ? n : 1, sizeof(*x->attributes));
	if (!x->attributes)
		return false;
	x->nattributes = n;
	for (i = 0; i < n; i++) {
		x->attributes[i].name = strdup(attributes[2 * i]);
		x->attributes[i].value = strdup(attributes[2 * i + 1]);
		if (!x->attributes[i].name || !x->attributes[i].value)
			return false;
	}
	return true;
}

static bool too_long(const char *name, const char **attributes)
{
	uint32_t i;

	if (strlen(name) > XML_VALUE)
		return true;
	for (i = 0; attributes[i]; i++)
		if (strlen(attributes[i]) > XML_VALUE)
			return true;
	return false;
}

static bool limits(struct reader *r, const char *name, const char **attributes)
{
	if (++r->elements > XML_ELEMENTS)
		stop(r, E2BIG, "more than 262144 elements",
		     "give one system at a time");
	else if (++r->depth > XML_DEPTH)
		stop(r, E2BIG, "elements are nested more than 64 deep",
		     "no PCI tree is so deep, see what wrote the file");
	else if (too_long(name, attributes))
		stop(r, E2BIG, "a name or a value of more than 1024 bytes",
		     "shorten it");
	else if (XML_GetSpecifiedAttributeCount(r->expat) >
		 2 * (int)XML_ATTRIBUTES)
		stop(r, E2BIG, "an element has more than 32 attributes",
		     "the libraries read 16 of them, leave out the others");
	return !r->err;
}

static void XMLCALL start_element(void *user, const XML_Char *name,
				  const XML_Char **attributes)
{
	struct reader *r = user;
	struct xml_element *x;

	if (r->err || !limits(r, name, attributes))
		return;
	x = calloc(1, sizeof(*x));
	if (!x) {
		stop(r, ENOMEM, "out of memory", "give a smaller file");
		return;
	}
	x->parent = r->at;
	if (!r->at)
		r->root = x;
	else if (r->at->last)
		r->at->last->next = x;
	else
		r->at->first = x;
	if (r->at)
		r->at->last = x;
	r->at = x;
	x->line = line_of(r->expat);
	x->name = strdup(name);
	if (!x->name || !set_attributes(x, attributes))
		stop(r, ENOMEM, "out of memory", "give a smaller file");
}

static void XMLCALL end_element(void *user, const XML_Char *name)
{
	struct reader *r = user;

	(void)name;
	if (r->err)
		return;
	r->at = r->at->parent;
	r->depth--;
}

static void XMLCALL text_between(void *user, const XML_Char *text, int length)
{
	int i;

	for (i = 0; i < length; i++)
		if (!strchr(" \t\r\n", text[i])) {
			stop(user, EINVAL, "text between elements",
			     "all that counts is in attributes, take it out");
			return;
		}
}

static void XMLCALL doctype(void *user, const XML_Char *name,
			    const XML_Char *system_id, const XML_Char *public_id,
			    int internal)
{
	(void)name;
	(void)system_id;
	(void)public_id;
	(void)internal;
	stop(user, EINVAL, "a document type declaration",
	     "neither library reads one, take it out");
}

static void prepare(struct reader *r)
{
	XML_SetUserData(r->expat, r);
	XML_SetElementHandler(r->expat, start_element, end_element);
	XML_SetCharacterDataHandler(r->expat, text_between);
	XML_SetStartDoctypeDeclHandler(r->expat, doctype);
}

struct xml_element *xml_parse(const char *text, size_t length,
			      const char *name, struct plan_error *e)
{
	struct reader r = { .name = name, .e = e };

	if (length > XML_BYTES) {
		plan_fail(e, E2BIG, "%.100s: more than %u MiB; no system takes so much",
			  name, XML_BYTES >> 20);
		return NULL;
	}
	r.expat = XML_ParserCreate(NULL);
	if (!r.expat) {
		plan_fail(e, ENOMEM, "%.100s: out of memory", name);
		return NULL;
	}
	prepare(&r);
	if (XML_Parse(r.expat, text, (int)length, 1) != XML_STATUS_OK && !r.err)
		r.err = plan_fail(e, EINVAL, "%.100s:%u: this is no XML: %s; see what wrote it",
				  name, line_of(r.expat),
				  XML_ErrorString(XML_GetErrorCode(r.expat)));
	XML_ParserFree(r.expat);
	if (r.err) {
		xml_free(r.root);
		return NULL;
	}
	return r.root;
}

/* Nested at most XML_DEPTH deep. */
uint32_t xml_count(const struct xml_element *x)
{
	uint32_t n = 1;

	for (x = x->first; x; x = x->next)
		n += xml_count(x);
	return n;
}

const char *xml_get(const struct xml_element *x, const char *name)
{
	uint32_t i;

	for (i = 0; i < x->nattributes; i++)
		if (!strcmp(x->attributes[i].name, name))
			return x->attributes[i].value;
	return NULL;
}

static struct xml_element *named(struct xml_element *x, const char *name)
{
	while (x && strcmp(x->name, name))
		x = x->next;
	return x;
}

struct xml_element *xml_child(const struct xml_element *x, const char *name)
{
	return named(x->first, name);
}

struct xml_element *xml_sibling(const struct xml_element *x, const char *name)
{
	return named(x->next, name);
}

bool xml_plain_name(const char *name)
{
	const char *p;

	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	for (p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_.-", *p))
			return false;
	return true;
}

/* Bytes of the character at @p, if XML allows it; 0: it does not. */
static unsigned int utf8(const char *p)
{
	unsigned char c = (unsigned char)*p;
	unsigned int n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 :
			 c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0, i;
	uint32_t code = c & (0xff >> (n > 1 ? n + 1 : 0));

	for (i = 1; i < n; i++) {
		if (((unsigned char)p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | ((unsigned char)p[i] & 0x3f);
	}
	if ((n == 3 && code < 0x800) || (n == 4 && code < 0x10000) ||
	    code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
	    code == 0xfffe || code == 0xffff)
		return 0;
	return code >= 0x20 || strchr("\t\n\r", (int)code) ? n : 0;
}

static void put_character(FILE *f, const char *p, unsigned int n)
{
	if (!n)
		fputc('?', f);
	else if (*p == '&')
		fputs("&amp;", f);
	else if (*p == '<')
		fputs("&lt;", f);
	else if (*p == '"')
		fputs("&quot;", f);
	else if (n == 1 && *p < 0x20)	/* would be read back as a blank */
		fprintf(f, "&#%d;", *p);
	else
		fwrite(p, 1, n, f);
}

void xml_put(FILE *f, const char *name, const char *value)
{
	unsigned int n;

	fprintf(f, " %s=\"", name);
	for (; *value; value += n ? n : 1) {
		n = utf8(value);
		put_character(f, value, n);
	}
	fputc('"', f);
}
