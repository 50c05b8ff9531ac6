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
	bool synchronous;	/* cuda.c: SYNC_MEMOPS */
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
/* Copies that begin from now on wait until they may go on. */
void gpu_hold(bool on);
/* Until one does, or none. */
void gpu_held(bool one);
bool gpu_set(enum gpu_vendor vendor, void *to, int byte, size_t length);
/*
 * Where the processor finds what a GPU has at an address: device memory, or
 * the host's if it is pinned. NULL: the GPU would fault.
 */
void *gpu_view(enum gpu_vendor vendor, const void *addr);

/* ---- stream.c ---------------------------------------------------------- */

/*
 * Work that is done late: when somebody waits for it, or asks for it twice. So
 * what does not wait is found out.
 */
struct gpu_stream;
struct gpu_kernel;

/*
 * Streams of one owner (a context, or a device): the legacy stream waits for
 * the blocking ones and they for it, and nobody for the others.
 */
enum gpu_stream_kind { GPU_LEGACY, GPU_BLOCKING, GPU_NON_BLOCKING };

struct gpu_stream *gpu_stream_new(enum gpu_vendor vendor, const void *owner,
				  enum gpu_stream_kind kind);
void gpu_stream_free(struct gpu_stream *s);
/* The owner's, made when it is first asked for. */
struct gpu_stream *gpu_legacy(enum gpu_vendor vendor, const void *owner);
/*
 * Until the owner's streams of kinds up to @most have nothing to do any more.
 * False: some of it faulted.
 */
bool gpu_legacy_wait(enum gpu_vendor vendor, const void *owner,
		     enum gpu_stream_kind most);
/* Those of a kind that there are, of all owners. */
unsigned int gpu_streams(enum gpu_vendor vendor, enum gpu_stream_kind kind);
bool gpu_stream_copy(struct gpu_stream *s, void *to, const void *from,
		     size_t length);
/* What is at @from now. */
bool gpu_stream_copy_staged(struct gpu_stream *s, void *to, const void *from,
			    size_t length);
bool gpu_stream_launch(struct gpu_stream *s, const struct gpu_kernel *kernel,
		       const unsigned int grid[3],
		       const unsigned int block[3], void **parameters);
bool gpu_stream_call(struct gpu_stream *s, void (*function)(void *arg),
		     void *arg);
/* All of it. False: some of it faulted. */
bool gpu_stream_wait(struct gpu_stream *s);

/* ---- module.c ---------------------------------------------------------- */

/* What rtc.c makes: this, and a shared library for the processor. */
struct gpu_code {
	char magic[8];
	char option[48];	/* for which architecture */
	uint64_t size;
};
#define GPU_CODE_MAGIC	"fabrexC"

struct gpu_module;

/* NULL: it is no code, is not for one of these, or does not load. */
struct gpu_module *gpu_module_load(const void *image,
				   const char *const *options);
/* Kernels of it must not be used any more. */
void gpu_module_unload(struct gpu_module *module);
/* NULL: none of that name. */
struct gpu_kernel *gpu_module_kernel(struct gpu_module *module,
				     const char *name);
/* A copy of its parameters, and what to do with that. */
void *gpu_kernel_pack(const struct gpu_kernel *kernel, void **parameters);
/* Frees them. False: it was given an address that faults. */
bool gpu_kernel_run(const struct gpu_kernel *kernel, enum gpu_vendor vendor,
		    const unsigned int grid[3], const unsigned int block[3],
		    void *packed);

#endif
