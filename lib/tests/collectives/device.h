/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory, streams and kernels of GPUs, by the run times of $FABREX_TEST_RUNTIME:
 * those of the tests, or real ones. kernels.c has the kernels.
 */
#ifndef LIB_TESTS_COLLECTIVES_DEVICE_H
#define LIB_TESTS_COLLECTIVES_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* Memory of a GPU, or of the host if there is no library. */
struct gpu {
	void *cuda, *hip;
	int device;
	void *context;		/* of CUDA */
	char *memory;
	void *mix, *spin;	/* functions of kernels.c */
};

/* Of a device; gpu_cuda() and gpu_hip() take 0 and 1. Current afterwards. */
void gpu_cuda_on(struct gpu *g, int device, uint64_t bytes);
void gpu_hip_on(struct gpu *g, int device, uint64_t bytes);
void gpu_cuda(struct gpu *g, uint64_t bytes);
void gpu_hip(struct gpu *g, uint64_t bytes);
/* What it has copied to memory of other processes; false: it is a real one. */
bool gpu_to_others(const struct gpu *g, uint64_t *bytes);
/* Of the test run times: copies that begin from now on wait. */
void gpu_stop(const struct gpu *g, bool on);
void gpu_none(struct gpu *g, uint64_t bytes);
/* In another thread, or after another GPU was. */
void gpu_make_current(const struct gpu *g);
void gpu_put(const struct gpu *g, char *to, const void *from, uint64_t n);
void gpu_get(const struct gpu *g, void *to, const char *from, uint64_t n);

/* ---- streams ----------------------------------------------------------- */

/* For the library, of FABREX_MEMORY_*. */
struct fabrex_stream *stream_of(uint32_t kind, void *native);
/* The same of the GPU's own kind. */
struct fabrex_stream *gpu_stream_known(const struct gpu *g, void *native);
/* Non-blocking, and one that the default stream (NULL) waits for. */
void *gpu_stream(const struct gpu *g);
void *gpu_stream_blocking(const struct gpu *g);
void gpu_stream_end(const struct gpu *g, void *stream);
void gpu_stream_sync(const struct gpu *g, void *stream);
/* Both in the memory of the GPU. */
void gpu_stream_copy(const struct gpu *g, void *stream, char *to,
		     const char *from, uint64_t n);
/* From the host, and to it; done when the stream has been waited for. */
void gpu_stream_put(const struct gpu *g, void *stream, char *to,
		    const void *from, uint64_t n);
void gpu_stream_get(const struct gpu *g, void *stream, void *to,
		    const char *from, uint64_t n);
void gpu_stream_call(const struct gpu *g, void *stream,
		     void (*function)(void *arg), void *arg);
/* What follows in @later waits for what is in @earlier now, by an event. */
void gpu_stream_join(const struct gpu *g, void *earlier, void *later);

/* A word of the host that streams wait for, until it is not less, or write. */
uint64_t *gpu_word(const struct gpu *g);
void gpu_stream_hold(const struct gpu *g, void *stream, uint64_t *word,
		     uint64_t value);
void gpu_stream_write(const struct gpu *g, void *stream, uint64_t *word,
		      uint64_t value);

/* ---- kernels.c --------------------------------------------------------- */

/* Compiles them, which takes a while; before the two below. */
void gpu_kernels(struct gpu *g);
/* to[i] = 3 * to[i] + factor * from[i], @count times. */
void gpu_stream_mix(const struct gpu *g, void *stream, void *to,
		    const void *from, uint32_t count, uint32_t factor);
/* What it does, by the processor. */
void mix(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t factor);

/* Two words: a kernel sets the first, and runs until the second is set. */
struct spin {
	volatile uint64_t *begun, *end;
};

void gpu_stream_spin(const struct gpu *g, void *stream, struct spin *spin);
/* Until it runs; until it may end. */
void spin_await(const struct spin *spin);
void spin_end(const struct spin *spin);

#endif
