// SPDX-License-Identifier: GPL-2.0-only
/* Posting, polling, and the bytes that tests move. */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "raw.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "these tests store descriptor fields as they are: little-endian only"
#endif

uint64_t raw_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void raw_put(struct raw_queue *queue, const struct fabrex_sqe *sqe)
{
	uint32_t at = queue->sq_tail++ & (queue->info.sq_entries - 1);

	queue->sq[at] = *sqe;
}

void raw_submit(struct raw_queue *queue)
{
	__atomic_store_n(&queue->ctrl->sq_tail, queue->sq_tail,
			 __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (queue->ctrl->db_needed)
		queue->db[FABREX_DB_SQ / 4] = queue->sq_tail;
}

void raw_post(struct raw_queue *queue, const struct fabrex_sqe *sqe)
{
	raw_put(queue, sqe);
	raw_submit(queue);
}

static bool take(struct raw_queue *queue, struct fabrex_cqe *cqe)
{
	uint32_t n = queue->info.cq_entries;
	volatile struct fabrex_cqe *slot = &queue->cq[queue->cq_head & (n - 1)];
	uint16_t phase = queue->cq_head & n ? 0 : FABREX_CQE_PHASE;
	uint16_t flags = __atomic_load_n(&slot->flags, __ATOMIC_ACQUIRE);

	if ((flags & FABREX_CQE_PHASE) != phase)
		return false;
	memcpy(cqe, (const void *)slot, sizeof(*cqe));
	queue->cq_head++;
	__atomic_store_n(&queue->ctrl->cq_head, queue->cq_head,
			 __ATOMIC_RELEASE);
	return true;
}

bool raw_poll(struct raw_queue *queue, struct fabrex_cqe *cqe,
	      unsigned int timeout_ms)
{
	uint64_t end = raw_now_ns() + timeout_ms * 1000000ull;
	unsigned int spins = 0;

	while (!take(queue, cqe)) {
		if (++spins & 0xff)
			continue;
		if (raw_now_ns() > end)
			return take(queue, cqe);
		usleep(50);
	}
	return true;
}

void raw_recv_done(struct raw_queue *queue, uint32_t n)
{
	queue->rq_head += n;
	__atomic_store_n(&queue->ctrl->rq_head, queue->rq_head,
			 __ATOMIC_RELEASE);
}

void *raw_cell(struct raw_queue *queue, uint32_t index)
{
	return queue->rq + (size_t)(index & (queue->info.rq_entries - 1)) *
	       queue->info.cell_size;
}

int raw_do(struct raw_queue *queue, const struct fabrex_sqe *sqe,
	   struct fabrex_cqe *cqe)
{
	uint64_t end = raw_now_ns() + RAW_WAIT_MS * 1000000ull;
	struct fabrex_cqe local;

	raw_post(queue, sqe);
	if (!cqe)
		cqe = &local;
	while (!raw_poll(queue, cqe, 200)) {
		/* A queue in error ends what it has, but posts no more. */
		if (queue->ctrl->state != FABREX_QUEUE_OK)
			return raw_poll(queue, cqe, 1000) ? cqe->status :
							    -ECANCELED;
		if (raw_now_ns() > end)
			return -ETIMEDOUT;
	}
	return cqe->status;
}

bool raw_drain(struct raw_queue *queue, unsigned int timeout_ms)
{
	uint64_t end = raw_now_ns() + timeout_ms * 1000000ull;

	while (__atomic_load_n(&queue->ctrl->sq_head, __ATOMIC_ACQUIRE) !=
	       queue->sq_tail) {
		if (raw_now_ns() > end)
			return false;
		usleep(50);
	}
	return true;
}

void raw_arm(struct raw_queue *queue)
{
	queue->db[FABREX_DB_ARM / 4] = queue->cq_head;
}

struct fabrex_sqe raw_rw(uint8_t opcode, uint16_t peer,
			 const struct raw_mr *local, uint64_t loffset,
			 uint64_t rkey, uint64_t roffset, uint64_t length)
{
	struct fabrex_sqe sqe = {
		.opcode = opcode,
		.peer = peer,
		.user_data = 0x1234567890abcdefull ^ roffset,
	};

	sqe.lkey = local->key;
	sqe.loffset = loffset;
	sqe.rkey = rkey;
	sqe.roffset = roffset;
	sqe.length = length;
	return sqe;
}

struct fabrex_sqe raw_send(uint16_t peer, const struct raw_queue *to,
			   const struct raw_mr *local, uint64_t loffset,
			   uint64_t length)
{
	struct fabrex_sqe sqe = { .opcode = FABREX_OP_SEND, .peer = peer };

	sqe.lkey = local->key;
	sqe.loffset = loffset;
	sqe.length = length;
	sqe.dest_key = to->info.out_key;
	return sqe;
}

uint32_t raw_random(uint32_t *state)
{
	uint32_t x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return *state = x;
}

/* Byte i of the pattern: every position and seed differs from its neighbours. */
static uint8_t pattern(size_t i, uint32_t seed)
{
	uint32_t x = (uint32_t)i * 2654435761u + seed * 40503u;

	return x >> 24 ^ x >> 11;
}

void raw_fill(void *buf, size_t length, uint32_t seed)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < length; i++)
		p[i] = pattern(i, seed);
}

long raw_differs(const void *buf, size_t length, uint32_t seed)
{
	const uint8_t *p = buf;

	for (size_t i = 0; i < length; i++)
		if (p[i] != pattern(i, seed))
			return i;
	return -1;
}

bool raw_all(const void *buf, size_t length, uint8_t value)
{
	const uint8_t *p = buf;

	for (size_t i = 0; i < length; i++)
		if (p[i] != value)
			return false;
	return true;
}

uint32_t raw_crc32c(const void *buf, size_t length)
{
	const uint8_t *p = buf;
	uint32_t crc = ~0u;

	while (length--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}
