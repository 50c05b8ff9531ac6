/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands of fabrex-perf with options of their own; main.c calls them with
 * the command as argv[0]. They return exit codes.
 */
#ifndef PERF_COMMANDS_H
#define PERF_COMMANDS_H

#include <stdbool.h>

int compare_main(int argc, char **argv);
int footprint_main(int argc, char **argv);
bool is_collective(const char *name);
int coll_main(int argc, char **argv);
int ports_main(int argc, char **argv);

#endif
