/* SPDX-License-Identifier: GPL-2.0-only */
/* The fabric as a tree, drawn from the records of "list". Called by list.c. */
#ifndef CTL_TREE_H
#define CTL_TREE_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

void tree_print(FILE *f, json_object *doc, bool color);

#endif
