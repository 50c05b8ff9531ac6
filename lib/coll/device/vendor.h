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
#include <fabrex/coll.h>

#include "coll/device/device.h"
#include "memory/library.h"

/* Results that mean the same in both runtimes. */
#define GPU_OK			0
#define GPU_OUT_OF_MEMORY	2
#define GPU_INVALID_VALUE	1
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

#define GPU_NOT_READY		600
#define GPU_EVENT_NO_TIMES	2
#define GPU_OPEN_PEER_ACCESS	1	/* before HIP 6: 0 */

/* By value, as the runtimes take it. */
struct gpu_ipc {
	char bytes[DEVICE_HANDLE];
};

/*
 * Memory of other processes, and events that say when copies to it have ended.
 * Devices as the runtime counts them: vendor->ordinal.
 */
struct gpu_share_table {
	int (*handle)(struct gpu_ipc *handle, void *ptr);
	int (*open)(void **ptr, struct gpu_ipc handle, unsigned int flags);
	int (*close)(void *ptr);
	int (*can_access)(int *can, int device, int peer);
	int (*by_address)(int *device, const char *pci);
	int (*event_create)(void **event, unsigned int flags);
	int (*event_destroy)(void *event);
	int (*event_record)(void *event, void *stream);
	int (*event_query)(void *event);
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
 * @ordinal: the number of a device in the functions of struct gpu_share_table
 * @current: the device and context that are current in this thread, and what
 *         identifies that context for ever; 0: nothing does
 * @word:  64 bits that the GPU and the processor reach at one address, 0; never
 *         freed
 * @stream: one that waits for no other; NULL: table->stream_create
 * @pin:   memory of the host that copies go to directly; NULL: there is no use
 * @unpin: frees it
 * @write: in the stream: the word becomes the value, after what is before it
 * @hold:  in the stream: what follows waits until the word is not less, and
 *         then sees what other devices have written until then
 * @call:  in the stream: the runtime calls the function
 * @capturing: not 0: the stream is being captured into a graph
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
	const struct gpu_share_table *share;	/* NULL each where they lack */
	int (*load)(void);
	int (*up)(int number, void **context);
	int (*enter)(struct gpu_visit *visit, int number, void *context);
	void (*leave)(struct gpu_visit *visit);
	int (*copy)(void *dst, const void *src, size_t bytes, void *stream);
	int (*ordinal)(int number, int *device);
	int (*current)(int *number, void **context, uint64_t *id);
	int (*word)(uint64_t **word);
	int (*stream)(void **stream);
	int (*pin)(void **memory, size_t bytes);
	int (*unpin)(void *memory);
	int (*write)(void *stream, uint64_t *word, uint64_t value);
	int (*hold)(void *stream, uint64_t *word, uint64_t value);
	int (*call)(void *stream, void (*function)(void *arg), void *arg);
	int (*capturing)(void *stream, int *status);
	int (*arch)(int number, char *option, size_t n);
	const char *(*text)(int error);
	const char *const *rtc_names;
	const struct library_symbol *rtc_symbols;
	const struct library_symbol *rtc_more;
	const struct library *rtc_home;
	const char *const *rtc_options;
};

/* What comes to the room, until it is known to be there. */
struct late {
	void *to;
	uint32_t at, bytes;
};

#define DEVICE_ROOM	(256u << 10)
#define DEVICE_LATE	16u

/* A stream on a GPU: device.c, and stream.c for streams of the application. */
struct device {
	const struct gpu_vendor *vendor;
	int number;
	void *context;
	void *stream;
	/* share.c: streams, or NULL, and events that no push has now */
	void *pushes[DEVICE_PUSHES];
	void *events[DEVICE_EVENTS];
	uint32_t nevents;
	bool can_push;			/* they were made */
	uint8_t *room;			/* DEVICE_ROOM bytes, or NULL */
	uint32_t filled, nlate;
	struct late late[DEVICE_LATE];
	bool adopted;			/* the stream is the application's, */
	uint64_t id;			/* in this context */
	void *functions[FABREX_FLOAT64 + 1];
};

extern const struct gpu_vendor fxi_gpu_cuda, fxi_gpu_hip;

/* ---- device.c ---------------------------------------------------------- */

/* The vendor of a kind of memory, whose runtime is ready. */
int fxi_gpu_vendor(uint32_t kind, const struct gpu_vendor **vendor);
/* Around calls of the runtime for the device; 0 or a negative errno. */
int fxi_device_enter(struct device *device, struct gpu_visit *visit);
/* A stream of ours, in a device that was entered; the runtime's result. */
int fxi_device_stream(const struct device *device, void **stream);
/* What a call in between returned, as 0 or an error. */
int fxi_device_leave(struct device *device, struct gpu_visit *visit,
		     const char *what, int result);

/* ---- vendor.c ---------------------------------------------------------- */

/* "CUDA device 0: WHAT: text (result)"; -errno that fits. */
int fxi_gpu_error(const struct gpu_vendor *vendor, int number,
		  const char *what, int result);
/* Symbols of a library that is loaded; -ENOTSUP names what it lacks. */
int fxi_gpu_resolve(void *handle, const char *library,
		    const struct library_symbol *symbols, void *table);
/* The same for functions that can be done without: NULL where they lack. */
void fxi_gpu_resolve_some(void *handle, const struct library_symbol *symbols,
			  void *table);

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
