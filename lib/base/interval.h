/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Set of address ranges that may overlap, to find one that covers another: a
 * treap with the largest end in each subtree. Not locked. For core/cache.c.
 */
#ifndef LIB_INTERVAL_H
#define LIB_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

struct interval {
	struct interval *left, *right;
	uintptr_t start, end;		/* end is exclusive */
	uintptr_t max_end;		/* of this subtree */
	uint32_t priority;
	uint32_t access;		/* what it may be used for */
};

/* The caller sets start, end and access. */
void fxi_interval_add(struct interval **root, struct interval *node);
void fxi_interval_remove(struct interval **root, struct interval *node);
/* One that covers start .. end with all rights of @access, or NULL. */
struct interval *fxi_interval_cover(struct interval *root, uintptr_t start,
				    uintptr_t end, uint32_t access);
/* One of just start .. end, with the rights @access and maybe some of @more. */
struct interval *fxi_interval_exact(struct interval *root, uintptr_t start,
				    uintptr_t end, uint32_t access,
				    uint32_t more);

#endif
