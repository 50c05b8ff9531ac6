/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of GPUs, by the run times of $FABREX_TEST_RUNTIME: those of the tests,
 * or real ones. Used by gpu.c and matrix.c.
 */
#ifndef LIB_TESTS_COLLECTIVES_DEVICE_H
#define LIB_TESTS_COLLECTIVES_DEVICE_H

#include <stdint.h>

/* Memory of a GPU, or of the host if there is no library. */
struct gpu {
	void *cuda, *hip;
	char *memory;
};

void gpu_cuda(struct gpu *g, uint64_t bytes);
void gpu_hip(struct gpu *g, uint64_t bytes);
void gpu_none(struct gpu *g, uint64_t bytes);
void gpu_put(const struct gpu *g, char *to, const void *from, uint64_t n);
void gpu_get(const struct gpu *g, void *to, const char *from, uint64_t n);

#endif
