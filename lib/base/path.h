/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one place that decides, by size and kind of memory, how bytes are copied.
 * Called by transports and collectives. $FABREX_PATH changes the thresholds;
 * docs/loopback.md has their reasons.
 */
#ifndef LIB_PATH_H
#define LIB_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fxi_path {
	FXI_PATH_INLINE,	/* a few moves in registers */
	FXI_PATH_COPY,		/* memcpy */
	FXI_PATH_STREAM,	/* stores that bypass the caches */
	FXI_PATH_CMA,		/* the kernel copies between processes */
	FXI_PATH_BOUNCE,	/* the owner's service thread copies */
	FXI_PATH_DEVICE,	/* the same, with a device's runtime */
	FXI_PATH_PIO,		/* stores through a window */
	FXI_PATH_ENGINE,	/* the device's queues */
};

/* Of the process. $FABREX_PATH has the names of the members. */
struct fxi_path_limits {
	uint64_t inline_;	/* INLINE up to that size */
	uint64_t turn;		/* COPY in alternating directions from it */
	uint64_t stream;	/* STREAM from that size */
	uint64_t cma;		/* CMA from that size, BOUNCE below */
	uint64_t pio;		/* PIO up to that size, ENGINE above */
};
extern struct fxi_path_limits fxi_path_limits;

/* Read $FABREX_PATH, when a port is opened. -EINVAL: it makes no sense. */
int fxi_path_open(void);

static inline uint64_t path_limit(const uint64_t *limit)
{
	return __atomic_load_n(limit, __ATOMIC_RELAXED);
}

/* Between two places that this process has mapped. */
static inline enum fxi_path fxi_path_mapped(uint64_t length)
{
	if (length <= path_limit(&fxi_path_limits.inline_))
		return FXI_PATH_INLINE;
	if (length < path_limit(&fxi_path_limits.stream))
		return FXI_PATH_COPY;
	return FXI_PATH_STREAM;
}

/*
 * Memory of another process that is not mapped here; @cma: the system allows
 * it; @device: it has no address there.
 */
static inline enum fxi_path fxi_path_foreign(uint64_t length, bool cma,
					     bool device)
{
	if (device)
		return FXI_PATH_DEVICE;
	if (cma && length >= path_limit(&fxi_path_limits.cma))
		return FXI_PATH_CMA;
	return FXI_PATH_BOUNCE;
}

/*
 * To a peer over the kernel transport, where a window to its memory exists: up
 * to that size stores through it are faster than an entry and its doorbell.
 */
static inline enum fxi_path fxi_path_message(uint64_t length)
{
	return length <= path_limit(&fxi_path_limits.pio) ? FXI_PATH_PIO :
							    FXI_PATH_ENGINE;
}

/*
 * Copy along fxi_path_mapped(). *turn belongs to the caller, 0 at first: a
 * large copy begins at the end where the one before stopped, because what that
 * one touched last is still in the cache if it is the same memory again.
 */
void fxi_path_copy(void *to, const void *from, uint64_t n, uint8_t *turn);
/* Bypass the caches. All is visible before what the caller stores later. */
void fxi_path_stream(void *to, const void *from, uint64_t n);

/*
 * Fetch a cache line that will be written to, so that it is not fetched twice:
 * getting a line that another processor polls is most of a short message's
 * time. Any address is allowed; a useless one takes the line from its user.
 * (The builtin prefetches for reading on x86 without -mprfchw. Processors
 * without the instruction ignore it.)
 */
static inline void fxi_path_fetch(const void *at)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" :: "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

/* Up to 64 bytes: all are loaded before the first is stored. */
static inline void fxi_path_copy_few(void *to, const void *from, uint64_t n)
{
	typedef uint64_t __attribute__((vector_size(16))) sixteen;
	sixteen a, b, c, d;
	uint64_t first, last;
	uint32_t head, tail;
	uint8_t one, two, three;
	char *t = to;
	const char *f = from;

	if (n > 32) {
		__builtin_memcpy(&a, f, 16);
		__builtin_memcpy(&b, f + 16, 16);
		__builtin_memcpy(&c, f + n - 32, 16);
		__builtin_memcpy(&d, f + n - 16, 16);
		__builtin_memcpy(t, &a, 16);
		__builtin_memcpy(t + 16, &b, 16);
		__builtin_memcpy(t + n - 32, &c, 16);
		__builtin_memcpy(t + n - 16, &d, 16);
	} else if (n >= 16) {
		__builtin_memcpy(&a, f, 16);
		__builtin_memcpy(&b, f + n - 16, 16);
		__builtin_memcpy(t, &a, 16);
		__builtin_memcpy(t + n - 16, &b, 16);
	} else if (n >= 8) {
		__builtin_memcpy(&first, f, 8);
		__builtin_memcpy(&last, f + n - 8, 8);
		__builtin_memcpy(t, &first, 8);
		__builtin_memcpy(t + n - 8, &last, 8);
	} else if (n >= 4) {
		__builtin_memcpy(&head, f, 4);
		__builtin_memcpy(&tail, f + n - 4, 4);
		__builtin_memcpy(t, &head, 4);
		__builtin_memcpy(t + n - 4, &tail, 4);
	} else if (n) {
		one = (uint8_t)f[0];
		two = (uint8_t)f[n / 2];
		three = (uint8_t)f[n - 1];
		t[0] = (char)one;
		t[n / 2] = (char)two;
		t[n - 1] = (char)three;
	}
}

#endif
