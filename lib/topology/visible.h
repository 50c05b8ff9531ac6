/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text of unknown origin made safe for a terminal or for JSON. Called where files
 * are read and where messages are printed.
 */
#ifndef LIB_TOPOLOGY_VISIBLE_H
#define LIB_TOPOLOGY_VISIBLE_H

#include <stddef.h>

/*
 * In place: control characters, which would command a terminal, and bytes that
 * are no UTF-8 become "?".
 */
void visible(char *s);
/* In place: only bytes that are no UTF-8 do; JSON escapes the rest itself. */
void visible_utf8(char *s, size_t len);

#endif
