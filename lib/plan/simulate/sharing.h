/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Flows that share links: who gets how much, and who is done next. The rates
 * are max-min fair: no flow can get more without taking from one that has no
 * more than it for its weight (Bertsekas, Gallager, "Data Networks", 1992, 6.5.2). For
 * simulate.c alone; times in s, amounts in bytes.
 *
 * Flows over the same links, of the same weight, have the same rate and are one
 * class, so the work
 * grows with the number of different paths in use, not with that of flows. A
 * change makes only those classes be shared out anew whose rates it can change.
 */
#ifndef LIB_PLAN_SHARING_H
#define LIB_PLAN_SHARING_H

#include <stdint.h>

#define SHARING_WEIGHT_MIN	1e-4

struct sharing;

/* @rate: bytes a second of each of @nlinks. NULL: out of memory. */
struct sharing *sharing_new(const double *rate, uint32_t nlinks);
void sharing_free(struct sharing *f);
/*
 * The class of what goes over these @n > 0 links, each named once, where it
 * gets @weight times as much as what has a weight of 1; SHARING_WEIGHT_MIN to
 * 1. All classes first, then sharing_ready(), then all else. The index or
 * -ENOMEM.
 */
int64_t sharing_class(struct sharing *f, const uint32_t *links, uint32_t n,
		      double weight);
int sharing_ready(struct sharing *f);
/* A flow of @bytes > 0; it moves from the next sharing_update() on. */
int sharing_start(struct sharing *f, uint32_t class, double bytes, uint32_t id);
/* Share out anew what was started and popped, as of @now. */
int sharing_update(struct sharing *f, double now);
/* When the first flow ends as things are; INFINITY: there is none. */
double sharing_next(const struct sharing *f);
/* Take that flow away. Return: its id */
uint32_t sharing_pop(struct sharing *f);
/* Steps done so far: what the time that this takes is in proportion to. */
uint64_t sharing_work(const struct sharing *f);

#endif
