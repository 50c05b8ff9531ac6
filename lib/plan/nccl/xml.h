/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * XML as a tree of elements with attributes, from texts by anybody: no DTD, no
 * entities but the five of XML itself, limits on everything. Inside lib/plan
 * only: nccl_*.c.
 */
#ifndef LIB_PLAN_XML_H
#define LIB_PLAN_XML_H

#include "plan/plan.h"

#define XML_BYTES	(16u << 20)
#define XML_ELEMENTS	262144u
#define XML_DEPTH	64u
#define XML_ATTRIBUTES	32u	/* of one element */
#define XML_VALUE	1024u	/* bytes, of a name or a value */

struct xml_attribute {
	char *name, *value;
};

struct xml_element {
	char *name;
	uint32_t line;
	uint32_t nattributes;
	struct xml_attribute *attributes;
	struct xml_element *parent, *first, *last, *next;
	uint32_t mark;		/* the caller's */
};

/* NULL, and @e has "name:line: ...". @text need not end with a NUL. */
struct xml_element *xml_parse(const char *text, size_t length,
			      const char *name, struct plan_error *e);
void xml_free(struct xml_element *root);
/* Elements, @x and all that is in it. */
uint32_t xml_count(const struct xml_element *x);
/* NULL: it has no such attribute. */
const char *xml_get(const struct xml_element *x, const char *name);
/* First child of that name, next sibling of that name; NULL: none. */
struct xml_element *xml_child(const struct xml_element *x, const char *name);
struct xml_element *xml_sibling(const struct xml_element *x, const char *name);
/* Letters, digits, "_", ".", "-"; no digit at first. */
bool xml_plain_name(const char *name);
/*
 * name="value", with a blank before it, special characters escaped. What XML
 * has no way to say becomes "?".
 */
void xml_put(FILE *f, const char *name, const char *value);

#endif
