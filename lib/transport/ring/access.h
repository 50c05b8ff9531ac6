/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Accessors for rings and registers shared with a device: the only place where
 * their memory ordering is written down. For this directory and tests.
 */
#ifndef LIB_RING_ACCESS_H
#define LIB_RING_ACCESS_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <linux/fabrex_ring.h>

#include "base/barrier.h"

/* All that the other side wrote before it stored *p is visible afterwards. */
static inline uint32_t ring_acquire(const __le32 *p)
{
	return le32toh(__atomic_load_n(p, __ATOMIC_ACQUIRE));
}

static inline uint32_t ring_read(const __le32 *p)
{
	return le32toh(__atomic_load_n(p, __ATOMIC_RELAXED));
}

/* All that was written before is visible to whoever acquires *p. */
static inline void ring_release(__le32 *p, uint32_t value)
{
	__atomic_store_n(p, htole32(value), __ATOMIC_RELEASE);
}

/* One 32-bit store to a doorbell register. */
static inline void ring_doorbell(void *page, unsigned int reg, uint32_t value)
{
	volatile uint32_t *p = (volatile uint32_t *)((char *)page + reg);

	barrier_io();
	__atomic_store_n(p, htole32(value), __ATOMIC_RELAXED);
}

/*
 * Publish sq_tail and ring if the device does not watch it: the pair of the
 * device's "store db_needed = 1, full barrier, read sq_tail once more".
 */
static inline void ring_publish_sq(struct fabrex_qctrl *ctrl, void *page,
				   uint32_t tail)
{
	ring_release(&ctrl->sq_tail, tail);
	barrier_device();
	if (ring_read(&ctrl->db_needed))
		ring_doorbell(page, FABREX_DB_SQ, tail);
}

/* The device or the kernel has ended the queue. */
static inline bool ring_is_dead(const struct fabrex_qctrl *ctrl)
{
	return ring_acquire(&ctrl->state) != FABREX_QUEUE_OK;
}

/* Entry number @head of a completion ring of @entries is the device's last. */
static inline bool ring_cqe_ready(const struct fabrex_cqe *cqe, uint32_t head,
				  uint32_t entries)
{
	uint16_t flags = le16toh(__atomic_load_n(&cqe->flags,
						 __ATOMIC_ACQUIRE));

	return !!(flags & FABREX_CQE_PHASE) == !(head & entries);
}

/*
 * What libfabrex needs of an entry that is ready, each word read once: later
 * uses cannot read shared memory again. user_data is known from elsewhere.
 */
struct ring_cqe {
	uint32_t length, imm, crc, src_queue;
	uint16_t peer, index;
	uint8_t opcode, status;
};

static inline uint64_t ring_cqe_word(const struct fabrex_cqe *cqe, int word,
				     int order)
{
	return le64toh(__atomic_load_n(&((const __le64 *)(const void *)cqe)[word],
				       order));
}

static inline void ring_cqe_unpack(struct ring_cqe *to,
				   const struct fabrex_cqe *from, uint64_t last)
{
	uint64_t w1 = ring_cqe_word(from, 1, __ATOMIC_RELAXED);
	uint64_t w2 = ring_cqe_word(from, 2, __ATOMIC_RELAXED);

	to->length = (uint32_t)w1;
	to->imm = (uint32_t)(w1 >> 32);
	to->crc = (uint32_t)w2;
	to->src_queue = (uint32_t)(w2 >> 32);
	to->peer = (uint16_t)last;
	to->index = (uint16_t)(last >> 16);
	to->opcode = (uint8_t)(last >> 32);
	to->status = (uint8_t)(last >> 40);
}

static inline struct ring_cqe ring_cqe_read(const struct fabrex_cqe *from)
{
	struct ring_cqe cqe;

	ring_cqe_unpack(&cqe, from, ring_cqe_word(from, 3, __ATOMIC_RELAXED));
	return cqe;
}

/*
 * Last word of the completion of entry @index in place @head, but for opcode,
 * peer and status; and what to add for the one that follows, as long as the
 * ring's end is not passed. (An index that wraps spoils it: then none match.)
 */
#define RING_CQE_NEXT	(1ull << 16)
#define RING_CQE_MATCH	0x000100ffffff0000ull

static inline uint64_t ring_cqe_last(uint32_t index, uint32_t head,
				     uint32_t entries)
{
	uint64_t phase = !(head & entries);

	return (uint64_t)(index & 0xffff) << 16 | phase << 48;
}

/*
 * Read it if it is ready and the expected one. The word is read at once, so
 * what was written before flags is what its other fields are.
 */
static inline bool ring_cqe_match(const struct fabrex_cqe *from,
				  uint64_t expected, struct ring_cqe *cqe)
{
	uint64_t last = ring_cqe_word(from, 3, __ATOMIC_ACQUIRE);

	if ((last ^ expected) & RING_CQE_MATCH)
		return false;
	ring_cqe_unpack(cqe, from, last);
	return true;
}

#endif
