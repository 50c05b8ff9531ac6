// SPDX-License-Identifier: LGPL-2.1-or-later
/* See visible.h. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "topology/visible.h"

/* Bytes of the character that begins here, and which one; 0: no UTF-8. */
static size_t character(const unsigned char *p, size_t left, uint32_t *code)
{
	size_t n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 :
		   *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0, i;

	if (n > left)
		return 0;
	*code = n > 1 ? *p & (0x7f >> n) : *p;
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (p[i] & 0x3f);
	}
	if ((n == 3 && *code < 0x800) || (n == 4 && *code < 0x10000) ||
	    *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return n;
}

/* C0, DEL and C1, but for the end of a line. */
static bool is_control(uint32_t code)
{
	return (code < 0x20 && code != '\n') || (code >= 0x7f && code < 0xa0);
}

static void replace(char *s, size_t len, bool controls)
{
	size_t from = 0, to = 0, n;
	uint32_t code = 0;

	while (from < len) {
		n = character((unsigned char *)s + from, len - from, &code);
		if (!n || (controls && is_control(code))) {
			s[to++] = '?';
			from += n ? n : 1;
			continue;
		}
		memmove(s + to, s + from, n);
		to += n;
		from += n;
	}
	if (to < len)
		s[to] = '\0';
}

void visible(char *s)
{
	replace(s, strlen(s), true);
}

void visible_utf8(char *s, size_t len)
{
	replace(s, len, false);
}
