// SPDX-License-Identifier: GPL-2.0-only
/*
 * A transfer between two hosts, verified end to end, that notices everything
 * that is lost, corrupted or late.
 *   dma-stream receive SERVICE            prints "key KEY", runs until stdin ends
 *   dma-stream send PEER KEY SERVICE      runs until stdin ends
 * Each message is WRITE_IMM with CHECK of a patterned block; the receiver
 * verifies every byte and returns a credit by SEND. Both print one JSON line.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define BLOCK	16384u
#define SLOTS	8u
#define CREDIT(s) ((s) + 1)	/* service of the sender's queue */

struct stream {
	struct bench b;
	struct raw_queue q;
	struct raw_mr mr;
	unsigned long messages, lost, corrupted, failed;
	uint64_t posted[64];	/* ns, by message */
	uint64_t worst, total;	/* ns from post to completion */
};

static bool stdin_ended(void)
{
	struct pollfd p = { .fd = 0, .events = POLLIN };
	char c;

	return poll(&p, 1, 0) == 1 && read(0, &c, 1) <= 0;
}

static int setup(struct stream *s, uint64_t service)
{
	int err = bench_open(&s->b);

	if (err)
		return err;
	s->q.info.sq_entries = 64;
	s->q.info.cq_entries = 256;
	s->q.info.rq_entries = 64;
	s->q.info.cell_size = 64;
	s->q.info.eventfd = -1;
	s->q.info.service = service;
	err = raw_queue_create(s->b.fd, &s->q);
	return err ?: raw_mr(s->b.fd, BLOCK * SLOTS, RAW_ALL, &s->mr);
}

/* A block's words: different for every message and position. */
static uint64_t word(uint32_t seq, uint32_t i)
{
	return (seq * 0x9e3779b97f4a7c15ull + i) * 0xbf58476d1ce4e5b9ull;
}

static void make(uint64_t *block, uint32_t seq)
{
	for (uint32_t i = 0; i < BLOCK / 8; i++)
		block[i] = word(seq, i);
}

static bool intact(const uint64_t *block, uint32_t seq)
{
	for (uint32_t i = 0; i < BLOCK / 8; i++)
		if (block[i] != word(seq, i))
			return false;
	return true;
}

static void report(const struct stream *s)
{
	printf("{\"messages\": %lu, \"bytes\": %llu, \"lost\": %lu, "
	       "\"corrupted\": %lu, \"failed\": %lu, \"worst_us\": %llu, "
	       "\"mean_us\": %llu}\n", s->messages,
	       (unsigned long long)s->messages * BLOCK, s->lost, s->corrupted,
	       s->failed, (unsigned long long)s->worst / 1000,
	       (unsigned long long)(s->messages ? s->total / s->messages : 0) /
	       1000);
}

static void credit(struct stream *s, uint16_t peer,
		   const struct fabrex_resolve *to, uint32_t seq)
{
	struct fabrex_sqe sqe = { .opcode = FABREX_OP_SEND, .peer = peer,
		.flags = FABREX_SQE_INLINE | FABREX_SQE_QUIET, .imm = seq };

	sqe.dest_key = to->out_key;
	raw_post(&s->q, &sqe);
}

static void receive_one(struct stream *s, const struct fabrex_cqe *cqe,
			struct fabrex_resolve *to, uint64_t service)
{
	uint32_t seq = s->messages + s->lost;

	if (cqe->opcode != FABREX_OP_RECV_IMM) {
		s->failed++;	/* a credit could not be sent */
		return;
	}
	raw_recv_done(&s->q, 1);
	if (!to->size && raw_resolve(s->b.fd, cqe->peer, CREDIT(service), to))
		s->failed++;
	s->lost += cqe->imm - seq;
	s->messages++;
	if (!intact((uint64_t *)(s->mr.addr + BLOCK * (cqe->imm % SLOTS)),
		    cqe->imm))
		s->corrupted++;
	credit(s, cqe->peer, to, cqe->imm);
}

static int receive(struct stream *s, uint64_t service)
{
	struct fabrex_resolve to = { 0 };
	struct fabrex_cqe cqe;
	int err = setup(s, service);

	if (err)
		return 1;
	printf("key %llu\n", (unsigned long long)s->mr.key);
	fflush(stdout);
	while (!stdin_ended())
		while (raw_poll(&s->q, &cqe, 20))
			receive_one(s, &cqe, &to, service);
	report(s);
	return 0;
}

static void send_one(struct stream *s, uint16_t peer, uint64_t key,
		     const struct fabrex_resolve *to, uint32_t seq)
{
	uint32_t at = BLOCK * (seq % SLOTS);
	struct fabrex_sqe sqe;

	make((uint64_t *)(s->mr.addr + at), seq);
	sqe = raw_rw(FABREX_OP_WRITE_IMM, peer, &s->mr, at, key, at, BLOCK);
	sqe.flags = FABREX_SQE_CHECK;
	sqe.imm = seq;
	sqe.user_data = seq;
	sqe.dest_key = to->out_key;
	s->posted[seq % 64] = raw_now_ns();
	raw_post(&s->q, &sqe);
}

/* Own completions are timed; credits allow the next message. */
static void account(struct stream *s, const struct fabrex_cqe *cqe,
		    uint32_t *credits)
{
	uint64_t took;

	if (cqe->opcode == FABREX_OP_RECV) {
		raw_recv_done(&s->q, 1);
		++*credits;
		return;
	}
	took = raw_now_ns() - s->posted[cqe->user_data % 64];
	s->messages++;
	s->total += took;
	if (took > s->worst)
		s->worst = took;
	if (cqe->status == FABREX_WC_DATA)
		s->corrupted++;
	else if (cqe->status != FABREX_WC_OK)
		s->failed++;
}

static int transmit(struct stream *s, uint16_t peer, uint64_t key,
		    uint64_t service)
{
	uint64_t idle = raw_now_ns();
	struct fabrex_resolve to;
	struct fabrex_cqe cqe;
	uint32_t seq = 0, credits = 0;
	bool stop = false;
	int err = setup(s, CREDIT(service));

	if (err || raw_resolve(s->b.fd, peer, service, &to))
		return 1;
	printf("running\n");
	fflush(stdout);
	while (!stop || credits < seq) {
		while (!stop && seq - credits < SLOTS)
			send_one(s, peer, key, &to, seq++);
		while (raw_poll(&s->q, &cqe, 1)) {
			account(s, &cqe, &credits);
			idle = raw_now_ns();
		}
		stop = stop || stdin_ended();
		if (raw_now_ns() - idle > RAW_WAIT_MS * 1000000ull)
			break;	/* the rest is lost */
	}
	while (s->messages < seq && raw_poll(&s->q, &cqe, RAW_WAIT_MS))
		account(s, &cqe, &credits);
	s->lost = seq - credits;
	report(s);
	return 0;
}

int main(int argc, char **argv)
{
	static struct stream s;

	if (argc == 3 && !strcmp(argv[1], "receive"))
		return receive(&s, strtoull(argv[2], NULL, 0));
	if (argc == 5 && !strcmp(argv[1], "send"))
		return transmit(&s, atoi(argv[2]), strtoull(argv[3], NULL, 0),
				strtoull(argv[4], NULL, 0));
	fprintf(stderr, "usage: see the source\n");
	return 2;
}
