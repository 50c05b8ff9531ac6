/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The public functions of fabrex/plan.h: handles, errors, structures that grow.
 * Files of api/ alone include it; nothing else in lib/plan knows fabrex/plan.h.
 */
#ifndef LIB_PLAN_API_H
#define LIB_PLAN_API_H

#include <fabrex/plan.h>

#include "base/export.h"
#include "plan/optimum.h"

struct fabrex_plan_graph {
	struct plan_graph *graph;
};

struct fabrex_plan {
	enum fabrex_plan_kind kind;
	enum plan_collective collective;
	uint32_t root;
	struct plan_graph *graph;	/* a copy: its own */
	struct plan_optimum optimum;	/* NO_SCHEDULE: only the bound; TREES */
	struct plan_rings rings;	/* RINGS */
	uint32_t **nodes;		/* of each part: nodes inside */
};

/* ---- error.c -------------------------------------------------------------- */

/* The calling thread's last failure. Return: -code */
int api_fail(int code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));
/* What an internal function returned as @err and explained in @e. Return: @err */
int api_error(int err, const struct plan_error *e);
/*
 * A structure of the caller's, which has @size bytes, as ours of @known bytes.
 * -E2BIG: it is longer, and not 0 where we know nothing.
 */
int api_copy_in(const char *what, void *to, size_t known, const void *from,
		size_t size);
void api_copy_out(void *to, size_t size, const void *from, size_t known);

/* ---- graph.c -------------------------------------------------------------- */

/*
 * A new handle of @g, or the failure of making it if @g is NULL; @g is freed on
 * failure.
 */
int api_graph(struct plan_graph *g, const struct plan_error *e,
	      struct fabrex_plan_graph **out);
/* @select: may be NULL. */
int api_select(const struct fabrex_plan_select *select, size_t size,
	       struct fabrex_plan_select *out);

/* ---- plan.c --------------------------------------------------------------- */

/* NULL: the plan has none. */
const struct plan_schedule *api_schedule(const struct fabrex_plan *plan);
const struct plan_cut *api_cut(const struct fabrex_plan *plan, uint32_t part);

#endif
