// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What both validators check, see nccl/check.h. Called by nccl/validate.c and
 * nccl/graph_validate.c.
 *
 * The libraries' parser is no XML parser. It reads byte by byte: one blank or
 * none between attributes, no line break or tab inside a tag, no blank around
 * "=", no XML declaration, no entities, values of at most 253 bytes.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/check.h"

#define VALUE_LIMIT	253u
#define ATTRIBUTE_LIMIT	16u

/* ---- violations ---------------------------------------------------------- */

static void violation(struct nccl_check *c, uint32_t line, const char *element,
		      const char *busid, const char *what, bool refused)
{
	if (c->violations++ && (c->refused || !refused))
		return;
	c->refused = refused;
	plan_fail(c->e, refused ? E2BIG : EINVAL, "%.100s:%u: %s%.20s%s%.20s%s%.300s", c->name,
		  line, element ? "<" : "", element ? element : "",
		  busid ? " busid=" : "", busid ? busid : "",
		  element ? ">: " : "", what);
}

void nccl_violation(struct nccl_check *c, const struct xml_element *x,
		    const char *fmt, ...)
{
	char what[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	violation(c, x->line, x->name, xml_get(x, "busid"), what, false);
}

void nccl_refusal(struct nccl_check *c, const struct xml_element *x,
		  const char *fmt, ...)
{
	char what[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	violation(c, x->line, x->name, xml_get(x, "busid"), what, true);
}

int nccl_check_done(struct nccl_check *c)
{
	size_t length;

	if (c->memory)
		return plan_fail(c->e, ENOMEM, "%.100s: out of memory",
				 c->name);
	if (!c->violations)
		return 0;
	if (c->e && c->violations > 1) {
		length = strlen(c->e->text);
		snprintf(c->e->text + length, sizeof(c->e->text) - length,
			 " (and %u more)", c->violations - 1);
	}
	return c->refused ? -E2BIG : -EINVAL;
}

/* ---- bytes --------------------------------------------------------------- */

/* The text is well-formed: all that is opened is closed. */
struct scan {
	struct nccl_check *c;
	const char *p, *end;
	uint32_t line;
};

static void odd(struct scan *s, const char *what)
{
	violation(s->c, s->line, NULL, NULL, what, false);
}

static char at(const struct scan *s)
{
	return s->p < s->end ? *s->p : 0;
}

static void step(struct scan *s)
{
	if (s->p >= s->end)
		return;
	s->line += *s->p == '\n';
	s->p++;
}

static bool follows(const struct scan *s, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(s->end - s->p) >= n && !memcmp(s->p, word, n);
}

static void skip_past(struct scan *s, const char *word)
{
	while (s->p < s->end && !follows(s, word))
		step(s);
	s->p += s->p < s->end ? strlen(word) : 0;
}

/* The library reads the first word of a comment as it reads a name. */
static void comment(struct scan *s)
{
	size_t n;

	for (n = 1; s->p + n < s->end && !strchr(" />\r\n", s->p[n]); n++)
		if (s->p[n] == '=' || n > VALUE_LIMIT) {
			odd(s, "a comment whose first word has a \"=\" or no end; write a blank after \"<!--\"");
			break;
		}
	s->p += 4;
	skip_past(s, "-->");
}

static void value(struct scan *s)
{
	char quote = at(s);
	uint32_t length = 0;

	if (quote != '"')
		odd(s, "a value that does not begin with \" right after \"=\"; write name=\"value\"");
	while (strchr(" \t\r\n", at(s)) && s->p < s->end)
		step(s);
	quote = at(s);
	for (step(s); s->p < s->end && at(s) != quote; step(s), length++) {
		if (at(s) == '&')
			odd(s, "an entity in a value; the library does not read them, write what is meant without");
		else if (strchr("\t\r\n", at(s)))
			odd(s, "a tab or a line break in a value; write it on one line");
	}
	step(s);
	if (length > VALUE_LIMIT)
		violation(s->c, s->line, NULL, NULL,
			  "a value of more than 253 bytes, which the library does not load; shorten it",
			  true);
	if (s->p < s->end && !strchr(" />", at(s)))
		odd(s, "a tab or a line break after a value; the library wants one blank, \"/>\" or \">\"");
}

static void tag(struct scan *s)
{
	uint32_t attributes = 0;

	while (s->p < s->end && !strchr(" \t\r\n/>", at(s)))
		step(s);
	while (s->p < s->end && at(s) != '>') {
		if (strchr("\t\r\n", at(s)))
			odd(s, "a tab or a line break in a tag; write it on one line");
		if (strchr(" \t\r\n/", at(s))) {
			step(s);
			continue;
		}
		while (s->p < s->end && !strchr(" \t\r\n=", at(s)))
			step(s);
		if (at(s) != '=')
			odd(s, "a blank before \"=\"; take it out");
		while (s->p < s->end && at(s) != '=')
			step(s);
		step(s);
		value(s);
		attributes++;
	}
	step(s);
	if (attributes > ATTRIBUTE_LIMIT)
		odd(s, "more than 16 attributes; the library passes over the others, leave some out");
}

static void end_tag(struct scan *s)
{
	while (s->p < s->end && at(s) != '>') {
		if (strchr(" \t\r\n", at(s)))
			odd(s, "a blank in a closing tag; take it out");
		step(s);
	}
	step(s);
}

static void between(struct scan *s)
{
	if (at(s) == '\t') {
		odd(s, "a tab between elements; indent with blanks");
		step(s);
	} else if (strchr(" \r\n", at(s)) && s->p < s->end) {
		step(s);
	} else {	/* a byte order mark; text was refused before */
		odd(s, "something before the first \"<\"; take it out");
		while (s->p < s->end && at(s) != '<')
			step(s);
	}
}

void nccl_check_bytes(struct nccl_check *c, const char *text, size_t length)
{
	struct scan s = { c, text, text + length, 1 };

	while (s.p < s.end) {
		if (at(&s) != '<') {
			between(&s);
		} else if (follows(&s, "<?")) {
			odd(&s, "an XML declaration; the library takes it for an element, take it out");
			skip_past(&s, "?>");
		} else if (follows(&s, "<!--")) {
			comment(&s);
		} else if (follows(&s, "<!")) {
			odd(&s, "marked text; all that counts is in attributes, take it out");
			skip_past(&s, "]]>");
		} else if (follows(&s, "</")) {
			end_tag(&s);
		} else {
			tag(&s);
		}
	}
}

/* ---- attributes ---------------------------------------------------------- */

static bool hex_digits(const char *text, size_t least, size_t most)
{
	size_t n = strspn(text, "0123456789abcdefABCDEF");

	return !text[n] && n >= least && n <= most;
}

static bool cpu_masks(const char *text)
{
	size_t n;

	while (*text) {
		n = strspn(text, "0123456789abcdefABCDEF");
		if (!n || n > 8)
			return false;
		text += n;
		if (*text && (*text != ',' || !*++text))
			return false;
	}
	return true;
}

static bool is_vendor(const char *text)
{
	return !strcmp(text, "GenuineIntel") || !strcmp(text, "AuthenticAMD") ||
	       !strcmp(text, "CentaurHauls") || !strcmp(text, "  Shanghai  ");
}

/* The library reads hex: "10" is 16. */
static bool is_dev(const char *text)
{
	if (!strncmp(text, "0x", 2))
		return hex_digits(text + 2, 1, 16);
	return text[0] && !text[1] && isdigit((unsigned char)text[0]);
}

static bool fits_number(enum nccl_type type, const char *text)
{
	double real;
	int64_t n;

	if (type == NCCL_REAL)
		return nccl_float(text, &real) && real >= 0;
	if (!nccl_int(text, &n))
		return false;
	switch (type) {
	case NCCL_COUNT:
		return n > 0;
	case NCCL_INDEX:
		return n >= 0;
	case NCCL_FLAG:
		return n == 0 || n == 1;
	case NCCL_WIDTH:
		return n >= 0 && n <= 32;
	default:
		return true;
	}
}

static bool fits(const struct nccl_check *c, enum nccl_type type,
		 const char *text)
{
	switch (type) {
	case NCCL_TEXT:
		return true;
	case NCCL_ID:
		return !strncmp(text, "0x", 2) && hex_digits(text + 2, 1, 8);
	case NCCL_HASH:
		return hex_digits(text + (strncmp(text, "0x", 2) ? 0 : 2), 1,
				  16);
	case NCCL_CPUS:
		return cpu_masks(text);
	case NCCL_ARCH:
		return !strcmp(text, "x86_64") || !strcmp(text, "arm64") ||
		       !strcmp(text, "ppc64");
	case NCCL_VENDOR:
		return is_vendor(text);
	case NCCL_BUSID:
		return nccl_busid_strict(text);
	case NCCL_CLASS:
		return !strncmp(text, "0x", 2) &&
		       (hex_digits(text + 2, 2, 2) ||
			hex_digits(text + 2, 6, 6));
	case NCCL_SPEED:
		return nccl_speed_known(text);
	case NCCL_PATH:
		return nccl_path_type(text) &&
		       (c->dialect == PLAN_NCCL || strcmp(text, "P2C"));
	case NCCL_DEV:
		return is_dev(text);
	default:
		return fits_number(type, text);
	}
}

static const char *remedy(enum nccl_type type)
{
	static const char *const remedies[] = {
		[NCCL_INT] = "give a number",
		[NCCL_COUNT] = "give a number from 1",
		[NCCL_INDEX] = "give a number from 0",
		[NCCL_FLAG] = "give 0 or 1",
		[NCCL_REAL] = "give a number that is not negative",
		[NCCL_ID] = "write it as 0x1002",
		[NCCL_HASH] = "give hexadecimal digits",
		[NCCL_CPUS] = "write it as ffffffff,00000000",
		[NCCL_ARCH] = "x86_64, arm64 and ppc64 are known",
		[NCCL_VENDOR] = "GenuineIntel, AuthenticAMD, CentaurHauls and \"  Shanghai  \" are known",
		[NCCL_BUSID] = "write it as 0000:c1:00.0, in lower case",
		[NCCL_CLASS] = "write it as 0x060400",
		[NCCL_SPEED] = "the library takes this for 8.0 GT/s, write it as 16.0 GT/s PCIe",
		[NCCL_WIDTH] = "give a number of lanes, 0 to 32",
		[NCCL_PATH] = "LOC, NVL, NVB, PIX, PXB, PXN, PHB and SYS are known",
		[NCCL_DEV] = "the library reads hexadecimal, write it as 0xa",
	};

	return remedies[type];
}

void nccl_check_attributes(struct nccl_check *c, const struct xml_element *x,
			   const struct nccl_attribute *table)
{
	unsigned int need = c->dialect == PLAN_RCCL ? NCCL_NEED_RCCL :
						      NCCL_NEED_NCCL;
	const char *text;

	for (; table->element; table++) {
		if (strcmp(table->element, x->name))
			continue;
		text = xml_get(x, table->name);
		if (!text && table->needed & need)
			nccl_violation(c, x, "no %s; the library needs it",
				       table->name);
		else if (text && !fits(c, table->type, text))
			nccl_violation(c, x, "%s \"%.60s\"; %s", table->name,
				       text, remedy(table->type));
	}
}
