/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the test run times are made of: GPUs that are modelled ones
 * (/dev/dgpu<N>) or, where there is none, files in memory. Called by hsa.c,
 * hip.c and cuda.c, which play libhsa-runtime64, libamdhip64 and libcuda.
 *
 * FABREX_TEST_GPUS=N      N GPUs in memory instead of those of /dev/dgpu*
 * FABREX_TEST_FAIL=F=E,.. function F returns the run time's error E (a number)
 * FABREX_TEST_NO_HSA=1    the HIP run time does without the HSA run time
 * FABREX_TEST_NO_MESH=1   no mesh joins GPUs in memory
 */
#ifndef RUNTIME_GPU_H
#define RUNTIME_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_MAX		16
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
	int node;		/* /dev/dgpu<N> of its own, or -1 */
	uint32_t place;		/* PCI address of its GPU: gpu_place() */
	bool foreign;		/* another process has allocated it */
	uint64_t key;		/* foreign: in the handle that opened it */
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
/* Can @gpu be allowed to access memory of @peer? Has it been, just now? */
bool gpu_joined(int gpu, int peer);
bool gpu_allow(int gpu, int peer);
/*
 * gpu_copy(), but between memory of two GPUs by the mesh, if one of them is
 * allowed to access the other one's. What a process has opened it may access.
 */
bool gpu_copy_any(enum gpu_vendor vendor, void *to, const void *from,
		  size_t length);
/* CRC32C by the engine of the modelled GPU that has it; false: none has. */
bool gpu_checksum(enum gpu_vendor vendor, const void *addr, size_t length,
		  uint32_t *crc);
/*
 * Move an allocation as the modelled GPU's driver does when it evicts: to the host's
 * memory, or to another place in the GPU's. False: it cannot be moved now, or is in
 * no modelled GPU.
 */
bool gpu_move(enum gpu_vendor vendor, const void *addr, bool to_host);
/*
 * Where the processor finds what a GPU has at an address: device memory, or
 * the host's if it is pinned. NULL: the GPU would fault.
 */
void *gpu_view(enum gpu_vendor vendor, const void *addr);

/* ---- share.c ----------------------------------------------------------- */

/*
 * Memory that other processes open, as CUDA and HIP document it:
 *
 * - a handle is that of a whole allocation, whatever address in it was given;
 * - it cannot be opened in the process that made it;
 * - what was opened has an address of its own, and is device memory of the GPU
 *   that it was allocated on. Opened once more it has the same address, and has
 *   to be closed as often;
 * - whoever opens it needs a GPU that reaches that GPU: the same, or one that a
 *   mesh joins to it. The process need not see that GPU otherwise;
 * - freeing memory that a living process still has open is undefined according
 *   to both manuals. Here it ends the process that frees it, with a message;
 * - when the process that has allocated it ends, the memory remains until the
 *   last one that had it open has closed it or has ended: drivers keep what is
 *   mapped. Nobody can open it any more.
 */
struct gpu_handle {
	char bytes[64];
};

enum gpu_opened {
	GPU_OPENED,
	GPU_OPENED_NOT,		/* no such memory, or not any more */
	GPU_OPENED_OWN,		/* by the process that has allocated it */
	GPU_OPENED_FAR,		/* the GPU does not reach the memory's */
};

/* The GPU's PCI address as one number; 0: there is no such GPU. */
uint32_t gpu_place(int gpu);
/* -1: this process sees no GPU at that address. */
int gpu_by_address(const char *text);
bool gpu_share(const struct gpu_memory *m, struct gpu_handle *handle);
enum gpu_opened gpu_open(enum gpu_vendor vendor, int gpu,
			 const struct gpu_handle *handle,
			 struct gpu_memory **m);
/* Before it is freed by the process that has allocated it. */
void gpu_check_closed(const struct gpu_memory *m);
/* A new entry for foreign memory, whose store was opened; NULL. */
struct gpu_memory *gpu_enter(const struct gpu_memory *opened);
/* The entry with that key, one reference more. */
struct gpu_memory *gpu_find_foreign(enum gpu_vendor vendor, uint64_t key);
/*
 * Bytes that this process has copied into memory of others, for tests: they look
 * it up by name.
 */
uint64_t gpu_bytes_to_others(void);

/* ---- stream.c ---------------------------------------------------------- */

/*
 * Work that is done late: when somebody waits for it, or asks for it twice. So
 * what does not wait is found out.
 */
struct gpu_stream;
struct gpu_kernel;

/*
 * Streams of one owner (a context, or a device): work in the legacy stream waits
 * for what was begun before it in the blocking ones, and work in those for what
 * was begun before it in the legacy stream. Nobody waits for the others.
 */
enum gpu_stream_kind { GPU_LEGACY, GPU_BLOCKING, GPU_NON_BLOCKING };

struct gpu_stream *gpu_stream_new(enum gpu_vendor vendor, const void *owner,
				  enum gpu_stream_kind kind);
void gpu_stream_free(struct gpu_stream *s);
/* The owner's, made when it is first asked for. */
struct gpu_stream *gpu_legacy(enum gpu_vendor vendor, const void *owner);
/*
 * Until what was begun before in the owner's streams of kinds up to @most is
 * done. False: some of it faulted.
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
/*
 * The same by a function that is synchronous by its name, once what was before
 * it is done; and until all of those are.
 */
bool gpu_stream_copy_returned(struct gpu_stream *s, void *to, const void *from,
			      size_t length);
void gpu_stream_settle(struct gpu_stream *s);
bool gpu_stream_launch(struct gpu_stream *s, const struct gpu_kernel *kernel,
		       const unsigned int grid[3],
		       const unsigned int block[3], void **parameters);
/*
 * Functions of the host are called one after the other, whatever stream they
 * are in. So whoever waits in one for another one waits for ever.
 */
bool gpu_stream_call(struct gpu_stream *s, void (*function)(void *arg),
		     void *arg);
/*
 * Write a 64-bit word that the processor reaches, or wait until it is not less.
 * From the first of these, or of the calls above, on, a thread does the work of
 * the stream as it comes.
 */
bool gpu_stream_write(struct gpu_stream *s, uint64_t *word, uint64_t value);
bool gpu_stream_hold(struct gpu_stream *s, uint64_t *word, uint64_t value);
/* All of it. False: some of it faulted. */
bool gpu_stream_wait(struct gpu_stream *s);

/* ---- event.c ----------------------------------------------------------- */

struct gpu_event;
struct gpu_mark;

struct gpu_event *gpu_event_new(void);
/* Streams that wait for it go on waiting. */
void gpu_event_free(struct gpu_event *event);
/* Not for two threads at once. */
bool gpu_event_record(struct gpu_event *event, struct gpu_stream *s);
/* What comes behind in the stream waits for what was recorded last. */
bool gpu_event_hold(struct gpu_event *event, struct gpu_stream *s);

/*
 * Has what was recorded last been reached? Asked for the first time after that,
 * it has not: so whoever does not ask again is found out.
 */
enum gpu_reached { GPU_REACHED, GPU_NOT_YET, GPU_FAULTED };
enum gpu_reached gpu_event_query(struct gpu_event *event);

/* stream.c: write the mark's word, or wait for it; takes the caller's use. */
#define MARK_REACHED	1u
#define MARK_FAULTED	2u	/* something before it did */
bool gpu_stream_mark(struct gpu_stream *s, struct gpu_mark *mark, bool until);
uint64_t *gpu_mark_word(struct gpu_mark *mark);
void gpu_mark_put(struct gpu_mark *mark);

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
