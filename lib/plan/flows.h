/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Flows that share links: who gets how much, and who is done next. The rates
 * are max-min fair: no flow can get more without taking from one that has no
 * more than it (Bertsekas, Gallager, "Data Networks", 1992, 6.5.2). For
 * simulate.c alone; times in s, amounts in bytes.
 *
 * Flows over the same links have the same rate and are one class, so the work
 * grows with the number of different ways in use, not with that of flows. A
 * change makes only those classes be shared out anew that it can reach over
 * common links.
 */
#ifndef LIB_PLAN_FLOWS_H
#define LIB_PLAN_FLOWS_H

#include <stdint.h>

struct flows;

/* @rate: bytes a second of each of @nlinks. NULL: out of memory. */
struct flows *flows_new(const double *rate, uint32_t nlinks);
void flows_free(struct flows *f);
/*
 * The class of what goes over these @n > 0 links, each named once. All classes
 * first, then flows_ready(), then all else. The index or -ENOMEM.
 */
int64_t flows_class(struct flows *f, const uint32_t *links, uint32_t n);
int flows_ready(struct flows *f);
/* A flow of @bytes > 0; it moves from the next flows_share() on. */
int flows_start(struct flows *f, uint32_t class, double bytes, uint32_t id);
/* Share out anew what was started and popped, as of @now. */
int flows_share(struct flows *f, double now);
/* When the first flow ends as things are; INFINITY: there is none. */
double flows_next(const struct flows *f);
/* Take that flow away. Return: its id */
uint32_t flows_pop(struct flows *f);
/* Steps done so far: what the time that this takes is in proportion to. */
uint64_t flows_work(const struct flows *f);

#endif
