/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A vendor of GPUs: what device.c and kernels.c ask of cuda.c and hip.c. The
 * two runtimes resemble each other; functions that differ by name only are in
 * one table. For lib/coll/device only.
 */
#ifndef LIB_COLL_DEVICE_VENDOR_H
#define LIB_COLL_DEVICE_VENDOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fabrex/fabrex.h>

#include "memory/library.h"

/* Results that mean the same in both runtimes. */
#define GPU_OK			0
#define GPU_OUT_OF_MEMORY	2
#define GPU_NOT_SUPPORTED	801

#define GPU_STREAM_NON_BLOCKING	1	/* not ordered with the default stream */

struct gpu_table {
	int (*alloc)(void **ptr, size_t size);
	int (*free)(void *ptr);
	int (*stream_create)(void **stream, unsigned int flags);
	int (*stream_destroy)(void *stream);
	int (*stream_wait)(void *stream);
	int (*module_load)(void **module, const void *image);
	int (*module_unload)(void *module);
	int (*module_function)(void **function, void *module,
			       const char *name);
	int (*launch)(void *function, unsigned int grid_x, unsigned int grid_y,
		      unsigned int grid_z, unsigned int block_x,
		      unsigned int block_y, unsigned int block_z,
		      unsigned int shared, void *stream, void **parameters,
		      void **extra);
};

/* NVRTC and HIPRTC, which have the same functions; results 0: success. */
struct rtc_table {
	int (*create)(void **program, const char *source, const char *name,
		      int nheaders, const char *const *headers,
		      const char *const *names);
	int (*destroy)(void **program);
	int (*compile)(void *program, int n, const char *const *options);
	int (*log_size)(void *program, size_t *size);
	int (*log)(void *program, char *log);
	int (*code_size)(void *program, size_t *size);
	int (*code)(void *program, char *code);
	const char *(*text)(int result);
};

/*
 * Of NVRTC only, and not of every version: what it knows, and code for newer
 * GPUs.
 */
struct rtc_more {
	int (*count)(int *n);
	int (*archs)(int *numbers);
	int (*code_size)(void *program, size_t *size);
	int (*code)(void *program, char *code);
};

/* The thread's own context or device while another is current. */
struct gpu_visit {
	void *context;
	int device;
	int pending;			/* error that is not ours */
	int mode;			/* of captures, if relaxed is set */
	bool relaxed;
};

/*
 * @load:  make the runtime ready; 0 or -errno and the error message
 * @up:    keep a device ready for use: *@context is for enter()
 * @enter: for the calls that follow in this thread, until leave()
 * @arch:  the compiler's option for the device; "": the current one is known
 *         to it
 * @text:  of an error
 * @rtc_names: of the compiler's library, to be tried in turn
 * @rtc_more: names of struct rtc_more, or NULL
 * @rtc_home: a library that may have its functions in its own version, or NULL
 */
struct gpu_vendor {
	enum fabrex_memory_kind kind;
	const char *name;
	const struct gpu_table *table;
	int (*load)(void);
	int (*up)(int number, void **context);
	int (*enter)(struct gpu_visit *visit, int number, void *context);
	void (*leave)(struct gpu_visit *visit);
	int (*copy)(void *dst, const void *src, size_t bytes, void *stream);
	int (*arch)(int number, char *option, size_t n);
	const char *(*text)(int error);
	const char *const *rtc_names;
	const struct library_symbol *rtc_symbols;
	const struct library_symbol *rtc_more;
	const struct library *rtc_home;
	const char *const *rtc_options;
};

extern const struct gpu_vendor fxi_gpu_cuda, fxi_gpu_hip;

/* ---- vendor.c ---------------------------------------------------------- */

/* "CUDA device 0: WHAT: text (result)"; -errno that fits. */
int fxi_gpu_error(const struct gpu_vendor *vendor, int number,
		  const char *what, int result);
/* Symbols of a library that is loaded; -ENOTSUP names what it lacks. */
int fxi_gpu_resolve(void *handle, const char *library,
		    const struct library_symbol *symbols, void *table);

/* ---- kernels.c --------------------------------------------------------- */

/*
 * Code for one type. @arch: the compiler's option, or "". A device that is
 * newer than the compiler gets what its driver can translate. The caller frees
 * *@code, which is a module for table->module_load().
 */
int fxi_kernel_compile(const struct gpu_vendor *vendor, const char *arch,
			uint32_t type, char **code, size_t *size);
/*
 * The kernel for one type on a device, compiled when it is first needed and
 * kept. The caller has entered the device.
 */
int fxi_kernel_get(const struct gpu_vendor *vendor, int number,
		    uint32_t type, void **function);
/* In the child of a fork. */
void fxi_kernels_forked(void);

#endif
