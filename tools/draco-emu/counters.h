/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of ports, queues and endpoints (struct draco_counters): relaxed
 * atomics that anybody may add to and read at any time.
 */
#ifndef EMU_COUNTERS_H
#define EMU_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include <draco/regs.h>

/* In the order of struct draco_counters. */
enum counter {
	CNT_TX_BYTES,
	CNT_RX_BYTES,
	CNT_TX_OPS,
	CNT_RX_OPS,
	CNT_ERRORS,
	CNT_P2P_BYTES,
	CNT_HOST_BYTES,
	CNT_WINDOW_READS,
	CNT_WINDOW_WRITES,
	CNT_DOORBELLS,
	CNT_LINK_DOWNS,
	CNT_CRC_ERRORS,
	CNT_INTERRUPTS,
	CNT_MAX
};

struct counters {
	_Atomic uint64_t v[CNT_MAX];
};

static inline void count_add(struct counters *c, enum counter which,
			     uint64_t n)
{
	atomic_fetch_add_explicit(&c->v[which], n, memory_order_relaxed);
}

static inline void count(struct counters *c, enum counter which)
{
	count_add(c, which, 1);
}

static inline uint64_t count_get(struct counters *c, enum counter which)
{
	return atomic_load_explicit(&c->v[which], memory_order_relaxed);
}

void counters_read(struct counters *c, struct draco_counters *out);

/* "tx_bytes", ...; for the control socket. */
const char *counter_name(enum counter which);

#endif
