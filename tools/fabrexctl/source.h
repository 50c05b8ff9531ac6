/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fabric that a command line names, as the planner's graph: a file of any
 * of its formats, or "live". Also the words of the options that plans have in
 * common. Called by topology.c, collective.c, compare.c, predict.c, design.c.
 */
#ifndef CTL_SOURCE_H
#define CTL_SOURCE_H

#include <fabrex/plan.h>

#include "ctl.h"

struct topology;

/* What the planner says of its failure @err, about @object. Return: @err */
int source_error(struct ctl *c, const char *object, int err);
/*
 * The one name among the arguments, or "live" for --live. Error if there is
 * none, or more.
 */
int source_name(struct ctl *c, int argc, char **argv, const char **name);
/* Read it; --host and --devices choose. *g is to be freed. */
int source_graph(struct ctl *c, const char *name, struct fabrex_plan_graph **g);
/*
 * The same, and the text that it was made of, read once: a pipe has nothing
 * else. *text is to be freed; NULL of the live fabric, and after errors.
 */
int source_graph_text(struct ctl *c, const char *name, struct fabrex_plan_graph **g,
		      char **text, size_t *len);
/* Refuse what cannot be planned for; *g is freed and NULL then. */
int source_check(struct ctl *c, const char *name, struct fabrex_plan_graph **g);
/* source_graph(), and refuse what cannot be planned for. */
int source_plannable(struct ctl *c, const char *name, struct fabrex_plan_graph **g);
/* The bytes of a file, with a NUL behind them; @text is to be freed. */
int source_text(struct ctl *c, const char *path, char **text, size_t *len);
/* A topology file within the planner's limits; topology_free() frees *t. */
int source_topology(struct ctl *c, const char *path, struct topology **t);

/* --collective, default all-reduce. */
int source_collective(struct ctl *c, int *out);
/* --root: a rank, or else the name of a GPU. Refused where there is no root. */
int source_root(struct ctl *c, const struct fabrex_plan_graph *g,
		int collective, uint32_t *out);
/* --size: bytes, with K, M, G or T behind them. */
int source_size(struct ctl *c, uint64_t *out);
/* A number of at least @min and at most @max with an option. */
int source_real(struct ctl *c, enum opt o, double otherwise, double min,
		double max, double *out);

#endif
