/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the text of a schedule does, found out by doing it: knows nothing of
 * lib/coll, and is as simple as can be. For tests.
 */
#ifndef LIB_TESTS_INTERPRET_H
#define LIB_TESTS_INTERPRET_H

#include <stdbool.h>
#include <stddef.h>

/* Every rank that needs a chunk has all of it in the end, once. */
bool interpret(const char *text);

#endif
