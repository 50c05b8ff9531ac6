/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Text by anybody on its way to a terminal or into JSON. Called where such text
 * comes in (source.c), where messages are printed (run.c), and by json.c.
 */
#ifndef CTL_VISIBLE_H
#define CTL_VISIBLE_H

#include <stddef.h>

/*
 * In place: control characters, which would command a terminal, and bytes that
 * are no UTF-8 become "?".
 */
void visible(char *s);
/* In place: only bytes that are no UTF-8 do; JSON escapes the rest itself. */
void visible_utf8(char *s, size_t len);

#endif
