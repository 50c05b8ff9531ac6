/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This machine's PCI functions as records, as a table and as a tree: what there
 * is to show without a fabric. Called by list.c and doctor.c.
 */
#ifndef CTL_MACHINE_H
#define CTL_MACHINE_H

#include <json-c/json.h>
#include <stdio.h>

#include "ctl.h"
#include "pcitree.h"

json_object *json_function(const struct pci_function *f);
/* Sentences on what could not be seen. */
json_object *machine_notes(const struct pci_tree *t);
/* "2 switches, 4 GPUs"; "" if there is nothing of the kind. */
void machine_count(const struct pci_tree *t, char *text, size_t size);

/*
 * Into c->doc, which is there already: "devices" and "notes"; as a table, or as
 * a tree below a line that begins with "this machine".
 */
int machine_table(struct ctl *c);
int machine_tree(struct ctl *c);

/* machinetree.c: from the records of machine_tree(). */
void machine_draw(FILE *f, json_object *doc, bool wide, bool color);

#endif
