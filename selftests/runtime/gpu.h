/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the test run times are made of: GPUs that are modelled ones
 * (/dev/dgpu<N>) or, where there is none, files in memory. Called by hsa.c,
 * hip.c and cuda.c, which play libhsa-runtime64, libamdhip64 and libcuda.
 *
 * FABREX_TEST_GPUS=N      N GPUs in memory instead of those of /dev/dgpu*
 * FABREX_TEST_FAIL=F=E,.. function F returns the run time's error E (a number)
 * FABREX_TEST_NO_HSA=1    the HIP run time does without the HSA run time
 */
#ifndef RUNTIME_GPU_H
#define RUNTIME_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_MAX		8
#define API		__attribute__((visibility("default")))

enum gpu_vendor { GPU_AMD, GPU_NVIDIA };
enum gpu_kind {
	GPU_DEVICE,		/* the processor faults on its addresses */
	GPU_PINNED,		/* of the host */
	GPU_MANAGED,		/* wherever it is needed */
	GPU_VIRTUAL,		/* device memory that is mapped by hand */
};

/* One allocation. */
struct gpu_memory {
	struct gpu_memory *next;
	enum gpu_vendor vendor;
	enum gpu_kind kind;
	int device;
	uint64_t id;		/* never used again */
	char *base;		/* device address; NULL: not mapped */
	size_t length;		/* as it was asked for */
	size_t skip;		/* base is so far behind its first page */
	size_t size;		/* of its pages */
	char *view;		/* where the processor reaches them */
	unsigned int refs;
	int fd;			/* file in memory, or -1 */
	uint32_t handle;	/* of /dev/dgpu<N>, or 0 */
};

/* Error that FABREX_TEST_FAIL has for a function, or 0. */
int gpu_fail(const char *function);

int gpu_count(void);
struct gpu_address {
	unsigned int domain, bus, device, function;
};
bool gpu_address(int gpu, struct gpu_address *address);

/* NULL: no memory, errno is set. GPU_VIRTUAL has no address yet. */
struct gpu_memory *gpu_alloc(enum gpu_vendor vendor, enum gpu_kind kind,
			     int gpu, size_t length, size_t skip);
/* Drop a reference; the last one frees. */
void gpu_put(struct gpu_memory *m);
/* The allocation that holds an address of a vendor's, with no reference. */
struct gpu_memory *gpu_find(enum gpu_vendor vendor, const void *addr);
/* Addresses that fault; the same again for the same length. */
char *gpu_reserve(size_t size);
void gpu_unreserve(char *base, size_t size);
void gpu_map(struct gpu_memory *m, char *base);
/*
 * dma-buf of part of the pages; of a file in memory a new descriptor of it,
 * whose position is where the part begins. Negative errno.
 */
int gpu_export(const struct gpu_memory *m, size_t offset, size_t length);
/* memmove() that knows device addresses of the vendor's. False: not all of it. */
bool gpu_copy(enum gpu_vendor vendor, void *to, const void *from,
	      size_t length);
bool gpu_set(enum gpu_vendor vendor, void *to, int byte, size_t length);

#endif
