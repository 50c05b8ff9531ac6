/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Are two graphs the same? For tests of readers and writers, and fuzzers. */
#ifndef PLAN_TESTS_SAME_H
#define PLAN_TESTS_SAME_H

#include "plan/plan.h"

/*
 * Nodes (name, kind, rank, box, up, attributes in any order), edges (ends,
 * capacity, latency, kind, twin), ranks; not the graph's name, lines, warnings.
 * NULL, or what differs, in a buffer that the next call overwrites.
 */
const char *same_graph(const struct plan_graph *a, const struct plan_graph *b);

#endif
