// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reductions with whatever the compiler makes of vectors of 16 bytes: for
 * every architecture. Called through reduce.c.
 */
#define VECTOR		16
#define VECTOR_STREAM	store
#include "coll/reduce/kernels.h"

KERNELS_OF_ALL_TYPES

static bool always(void)
{
	return true;
}

const struct reduce_isa fxi_reduce_generic = {
	.name = "generic",
	.usable = always,
	.kernels = { KERNEL_ROWS_OF_ALL_TYPES },
	.copy = copy_loop,
};
