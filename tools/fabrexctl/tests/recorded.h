/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Machines that are data: what sysfs and proc show, as record-machine writes it,
 * made into files below a directory that FABREX_ROOT names.
 */
#ifndef TESTS_RECORDED_H
#define TESTS_RECORDED_H

#include <stddef.h>

struct machine;

/* Ends the test if there is no such file, or a line makes no sense. */
void recorded_load(struct machine *m, const char *path);
/*
 * One text for all that is below a directory: names, kinds, times, contents. Two
 * are the same if nothing was changed. To be freed.
 */
char *recorded_print(const char *root);
/* The paths of its files, to be freed; *n of them. */
char **recorded_files(const char *root, size_t *n);

#endif
