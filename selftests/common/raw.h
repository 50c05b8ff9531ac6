/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Thin layer over the character device for tests: no libfabrex, so that the
 * kernel's ABI itself is what is tested. Used by every C selftest.
 */
#ifndef SELFTEST_RAW_H
#define SELFTEST_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/fabrex.h>

#define RAW_PAGE	4096u
#define RAW_ALL		(FABREX_ACCESS_LOCAL_WRITE | \
			 FABREX_ACCESS_REMOTE_READ | \
			 FABREX_ACCESS_REMOTE_WRITE | \
			 FABREX_ACCESS_REMOTE_ATOMIC)
/* Longer than this is hung, on the slowest machine and with every checker. */
#define RAW_WAIT_MS	120000

struct raw_mr {
	int fd;
	uint32_t id;
	uint64_t key;
	uint8_t *addr;
	size_t length;
};

struct raw_queue {
	int fd;
	struct fabrex_queue_create info;
	uint8_t *ring;
	volatile struct fabrex_qctrl *ctrl;
	struct fabrex_sqe *sq;
	volatile struct fabrex_cqe *cq;
	uint8_t *rq;
	volatile uint32_t *db;
	uint32_t sq_tail;
	uint32_t cq_head;
	uint32_t rq_head;
};

/* Device path: $FABREX_DEV or /dev/fabrex0. */
const char *raw_path(void);
int raw_open(void);
/* 0 or a negative errno. */
int raw_ioctl(int fd, unsigned int cmd, void *arg);
int raw_query(int fd, struct fabrex_port_query *query);
int raw_peer(int fd, const char *name, struct fabrex_peer_query *peer);
int raw_destroy(int fd, uint32_t id);
int raw_counters(int fd, uint32_t id, struct fabrex_counters *counters);
int raw_resolve(int fd, uint32_t peer, uint64_t service,
		struct fabrex_resolve *out);

/* Anonymous zeroed pages; a length that is no multiple is rounded up. */
void *raw_pages(size_t length);
int raw_mr_at(int fd, void *addr, size_t length, uint32_t access,
	      struct raw_mr *mr);
/* Only peers in the 256-bit mask. */
int raw_mr_for(int fd, void *addr, size_t length, uint32_t access,
	       const uint64_t peers[4], struct raw_mr *mr);
/* Pages of its own. */
int raw_mr(int fd, size_t length, uint32_t access, struct raw_mr *mr);
int raw_mr_free(struct raw_mr *mr);

/* A queue with cells of 256 bytes if rq is not 0. */
int raw_queue(int fd, uint32_t sq, uint32_t cq, uint32_t rq,
	      struct raw_queue *queue);
/* As queue->info says on entry. */
int raw_queue_create(int fd, struct raw_queue *queue);
int raw_queue_free(struct raw_queue *queue);

/* Put one entry into the ring without telling the device. */
void raw_put(struct raw_queue *queue, const struct fabrex_sqe *sqe);
/* Make all entries known, ring the doorbell if the device wants it. */
void raw_submit(struct raw_queue *queue);
void raw_post(struct raw_queue *queue, const struct fabrex_sqe *sqe);
/* Takes the next completion; false when none came in time. */
bool raw_poll(struct raw_queue *queue, struct fabrex_cqe *cqe,
	      unsigned int timeout_ms);
/* Gives cells back. */
void raw_recv_done(struct raw_queue *queue, uint32_t n);
void *raw_cell(struct raw_queue *queue, uint32_t index);
/*
 * Post and wait: FABREX_WC_*, -ECANCELED if the queue has failed, or -ETIMEDOUT;
 * cqe may be NULL.
 */
int raw_do(struct raw_queue *queue, const struct fabrex_sqe *sqe,
	   struct fabrex_cqe *cqe);
/* Wait until sq_head has passed all that was submitted. */
bool raw_drain(struct raw_queue *queue, unsigned int timeout_ms);
void raw_arm(struct raw_queue *queue);

/* Descriptors. */
struct fabrex_sqe raw_rw(uint8_t opcode, uint16_t peer,
			 const struct raw_mr *local, uint64_t loffset,
			 uint64_t rkey, uint64_t roffset, uint64_t length);
struct fabrex_sqe raw_send(uint16_t peer, const struct raw_queue *to,
			   const struct raw_mr *local, uint64_t loffset,
			   uint64_t length);

/* Deterministic bytes, and the number of the first that differs or -1. */
void raw_fill(void *buf, size_t length, uint32_t seed);
long raw_differs(const void *buf, size_t length, uint32_t seed);
bool raw_all(const void *buf, size_t length, uint8_t value);
uint32_t raw_crc32c(const void *buf, size_t length);

uint64_t raw_now_ns(void);
/* Repeatable pseudo-random numbers. */
uint32_t raw_random(uint32_t *state);

#endif
