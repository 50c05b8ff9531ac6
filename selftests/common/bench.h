/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The set-up most data-path tests begin with: one queue and two regions of
 * this process, talking to the own port through the switch. Used by dma/ and
 * uapi/ tests.
 */
#ifndef SELFTEST_BENCH_H
#define SELFTEST_BENCH_H

#include "raw.h"

#define BENCH_SIZE	(64u * 1024)
#define BENCH_BLANK	0xa5

struct bench {
	int fd;
	uint16_t self;		/* peer number of the own port */
	struct fabrex_port_query port;
	struct raw_queue q;	/* sends and receives */
	struct raw_mr src;	/* filled with pattern 1, all rights */
	struct raw_mr dst;	/* filled with BENCH_BLANK, all rights */
};

/* 0 or a negative errno; the message on stderr says what failed. */
int bench_open(struct bench *b);
void bench_close(struct bench *b);
/* Are all bytes of dst as bench_open() left them? */
bool bench_untouched(const struct bench *b);
struct fabrex_sqe bench_write(const struct bench *b, uint64_t loffset,
			      uint64_t roffset, uint64_t length);
struct fabrex_sqe bench_read(const struct bench *b, uint64_t loffset,
			     uint64_t roffset, uint64_t length);

/* Objects of the port that the kernel counts, from netlink-free sysfs. */
struct bench_count {
	long queues;
	long mrs;
	long windows;
	long pinned;
};

/* Reads /sys/class/fabrex/<device>/usage/{queues,mrs,windows,pinned_bytes}. */
int bench_count(struct bench_count *count);

#endif
