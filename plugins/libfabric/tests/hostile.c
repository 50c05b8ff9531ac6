// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Datagrams that no endpoint would send, from a queue of libfabrex: by a stranger,
 * and by somebody who has said HELLO as it must be. The endpoint that gets them
 * neither ends nor believes them, and serves others.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../wire.h"
#include "ends.h"

#define SERVICE		77
#define CELL		4096

/* A queue that knows the protocol, and keeps to it only if it is told to. */
struct raw {
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;
	char *memory;
	uint64_t key;		/* of the endpoint's queue */
	uint32_t peer;
	uint8_t seq;
	struct hello theirs;
	bool greeted;
	unsigned int byes, others;
	uint32_t port_number;
	char port_name[32];
};

static char out[1 << 20], in[1 << 20];

static struct fabrex_port *raw_port(void)
{
	const char *fabric = getenv("FABREX_PORT");
	struct fabrex_port *port;
	char name[64];

	if (strncmp(fabric, "loopback:", 9))
		snprintf(name, sizeof(name), "%s", fabric);
	else
		snprintf(name, sizeof(name), "%s/raw-%d", fabric,
			 (int)chance(1000000));
	CHECK_EQ(fabrex_open(name, &port), 0);
	return port;
}

static void raw_open(struct raw *raw, struct end *end)
{
	const struct fabrex_queue_attr attr = {
		.sq_entries = 512, .rq_entries = 256, .cell_size = CELL,
		.service = SERVICE,
	};
	struct fabrex_port_attr is;
	char port[32];
	uint32_t number;
	struct fabrex_peer peer;
	unsigned long long service;
	char *at = end->name + strlen("fi_fabrex://");

	memset(raw, 0, sizeof(*raw));
	raw->port = raw_port();
	CHECK_EQ(fabrex_query(raw->port, &is, sizeof(is)), 0);
	raw->port_number = is.peer;
	memcpy(raw->port_name, is.name, sizeof(is.name));
	CHECK_EQ(fabrex_queue_create(raw->port, &attr, sizeof(attr),
				     &raw->queue), 0);
	CHECK_EQ(fabrex_mr_alloc(raw->port, 1 << 20, FABREX_MR_ALL, &raw->mr),
		 0);
	raw->memory = fabrex_mr_addr(raw->mr);
	/* PORT/ID, the service of which is said in address.c. */
	snprintf(port, sizeof(port), "%.*s", (int)strcspn(at, "/"), at);
	service = 1ull << 62 | strtoull(strchr(at, '/') + 1, NULL, 16);
	CHECK_EQ(fabrex_peer_find(raw->port, port, &peer), 0);
	raw->peer = peer.peer;
	CHECK_EQ(fabrex_resolve(raw->port, peer.peer, service, &number,
				&raw->key), 0);
}

static void raw_close(struct raw *raw)
{
	CHECK_EQ(fabrex_close(raw->port), 0);
}

/* What has come; says whether a HELLO of theirs is among it. */
static void raw_read(struct raw *raw)
{
	struct fabrex_wc wc;

	while (fabrex_poll(raw->queue, &wc, 1) == 1) {
		if (wc.opcode != FABREX_OP_RECV)
			continue;
		switch (wire_kind(wc.imm)) {
		case WIRE_HELLO:
			CHECK(wire_read_hello(wc.data, wc.length,
					      &raw->theirs));
			raw->greeted = true;
			break;
		case WIRE_BYE:
			raw->byes++;
			break;
		default:
			raw->others++;
		}
		fabrex_recv_done(raw->queue, 1);
	}
}

/* As often as it takes: whoever is flooded has no room. */
static int raw_send(struct raw *raw, uint32_t imm, size_t len)
{
	static struct fabrex_op nothing;
	struct fabrex_op op = {
		.opcode = FABREX_OP_SEND,
		.peer = (uint16_t)raw->peer,
		.imm = imm,
		.user_data = 1,
		.mr = raw->mr,
		.length = len,
		.dest_key = raw->key,
	};
	struct fabrex_wc wc;
	int n, posted = 0;

	if (!len)
		op.inline_data = &nothing;
	for (;;) {
		if (!posted)
			posted = fabrex_post(raw->queue, &op, 1);
		if (posted == -EAGAIN)
			posted = 0;
		CHECK(posted >= 0);
		n = fabrex_poll(raw->queue, &wc, 1);
		CHECK(n >= 0);
		if (!n)
			continue;
		if (wc.opcode == FABREX_OP_SEND && posted)
			return wc.status;
		if (wc.opcode == FABREX_OP_RECV) {
			raw->byes += wire_kind(wc.imm) == WIRE_BYE;
			fabrex_recv_done(raw->queue, 1);
		}
	}
}

static void raw_must(struct raw *raw, uint32_t imm, size_t len)
{
	int status;

	while ((status = raw_send(raw, imm, len)) == FABREX_WC_RNR)
		ends_progress();
	CHECK_EQ(status, FABREX_WC_OK);
}

static void raw_numbered(struct raw *raw, unsigned int kind, size_t len)
{
	raw_must(raw, wire_imm(kind, raw->seq++, 0, 0), len);
}

static struct hello usual(const struct raw *raw)
{
	struct hello hello = {
		.version = HELLO_VERSION,
		.key = fabrex_queue_key(raw->queue),
		.nonce = 5,
		.session = 1 + (uint32_t)chance(UINT32_MAX),
		.data = 64,
		.control = 16,
		.cell_size = CELL,
		.service = SERVICE,
	};

	memcpy(hello.port, raw->port_name, sizeof(hello.port));
	return hello;
}

static void raw_hello(struct raw *raw, const struct hello *hello)
{
	size_t len = wire_write_hello(raw->memory, hello);

	raw_must(raw, wire_imm(WIRE_HELLO, 0, 0, 0), len);
}

static void raw_greet(struct raw *raw)
{
	const struct hello hello = usual(raw);

	raw->greeted = false;
	raw->seq = 0;
	raw_hello(raw, &hello);
	while (!raw->greeted) {
		ends_progress();
		raw_read(raw);
	}
	CHECK_EQ(raw->theirs.answers, hello.session);
	CHECK(raw->theirs.flags & HELLO_ACK);
}

/* ---- the scene --------------------------------------------------------- */

struct scene {
	struct end victim, other;
	struct raw raw;
};

static void scene_open(struct scene *s)
{
	own_fabric();
	pair_open(&s->victim, &s->other, NULL);
	raw_open(&s->raw, &s->victim);
}

static void is_served(struct scene *s, size_t len)
{
	fill(out, len, 1);
	CHECK_EQ(fi_trecv(s->victim.ep, in, len, NULL, 0, 1, 0, in), 0);
	CHECK_EQ(fi_tsend(s->other.ep, out, len, NULL, 0, 1, out), 0);
	CHECK_EQ(end_ok(&s->victim, in).len, len);
	CHECK(is_filled(in, len, 1));
	end_ok(&s->other, out);
	CHECK_EQ(fi_tsend(s->victim.ep, out, len, NULL, 0, 1, out), 0);
	CHECK_EQ(fi_trecv(s->other.ep, in, len, NULL, 0, 1, 0, in), 0);
	end_ok(&s->other, in);
	end_ok(&s->victim, out);
}

static void scene_close(struct scene *s)
{
	is_served(s, 8);
	is_served(s, 100000);
	if (s->victim.ndone)
		test_note("left: %llx %d", (long long)s->victim.done->flags,
			  s->victim.done->err);
	CHECK(!s->victim.ndone && !s->other.ndone);
	end_close(&s->victim);
	end_close(&s->other);
	raw_close(&s->raw);
}

static void noise(void *to, size_t len)
{
	unsigned char *byte = to;

	while (len--)
		*byte++ = (unsigned char)chance(256);
}

/* ---- a stranger -------------------------------------------------------- */

TEST(stranger)
{
	struct scene s;
	int i;

	scene_open(&s);
	is_served(&s, 8);
	for (i = 0; i < 3000; i++) {
		noise(s.raw.memory, 256);
		raw_must(&s.raw, (uint32_t)chance(1ull << 32),
			 chance(4) ? chance(200) : chance(CELL + 1));
		if (i % 100 == 0)
			is_served(&s, chance(10000));
	}
	CHECK_EQ(s.victim.ndone, 0);
	scene_close(&s);
}

/* Until what is on its way is there, which over a device takes its time. */
static void wait_a_while(struct scene *s)
{
	int i, rounds = getenv("FABREX_TEST_PORT") ? 20000 : 100;

	for (i = 0; i < rounds; i++) {
		ends_progress();
		raw_read(&s->raw);
	}
}

static void refused(struct scene *s, const struct hello *hello)
{
	wait_a_while(s);
	s->raw.greeted = false;
	raw_hello(&s->raw, hello);
	wait_a_while(s);
	CHECK(!s->raw.greeted || s->raw.theirs.flags & HELLO_REFUSED);
	is_served(s, 8);
}

TEST(false_hellos)
{
	struct hello hello;
	struct scene s;
	int i;

	scene_open(&s);
	/* Somebody else's key, service, or name. */
	hello = usual(&s.raw);
	hello.key = s.raw.key;
	refused(&s, &hello);
	hello = usual(&s.raw);
	hello.key++;
	refused(&s, &hello);
	hello = usual(&s.raw);
	hello.service++;
	refused(&s, &hello);
	hello = usual(&s.raw);
	snprintf(hello.port, sizeof(hello.port), "%u",
		 s.raw.port_number ? 0 : s.raw.port_number + 1);
	refused(&s, &hello);
	hello = usual(&s.raw);
	memset(hello.port, 'x', sizeof(hello.port));
	refused(&s, &hello);
	/* Nothing to talk with. */
	hello = usual(&s.raw);
	hello.nonce = 0;
	refused(&s, &hello);
	hello = usual(&s.raw);
	hello.session = 0;
	refused(&s, &hello);
	hello = usual(&s.raw);
	hello.data = 0;
	refused(&s, &hello);
	hello = usual(&s.raw);
	hello.control = 1;
	refused(&s, &hello);
	hello = usual(&s.raw);
	hello.cell_size = 16;
	refused(&s, &hello);
	hello = usual(&s.raw);
	hello.flags = 0x8000;
	refused(&s, &hello);
	/* Answers that nobody has asked for; another version is told. */
	hello = usual(&s.raw);
	hello.flags = HELLO_ACK;
	refused(&s, &hello);
	hello = usual(&s.raw);
	hello.version++;
	refused(&s, &hello);
	CHECK(s.raw.greeted);
	for (i = 0; i < 2000; i++) {
		hello = usual(&s.raw);
		wire_write_hello(s.raw.memory, &hello);
		noise(s.raw.memory + chance(HELLO_SIZE), 1);
		noise(s.raw.memory + chance(HELLO_SIZE), 1);
		raw_must(&s.raw, WIRE_HELLO, HELLO_SIZE - chance(2));
		ends_progress();
	}
	/* And one as it should be. */
	raw_greet(&s.raw);
	scene_close(&s);
}

/* ---- one that has been greeted ----------------------------------------- */

static void is_given_up(struct scene *s)
{
	unsigned int before = s->raw.byes;

	while (s->raw.byes == before) {
		ends_progress();
		raw_read(&s->raw);
	}
	is_served(s, 8);
	raw_greet(&s->raw);
}

TEST(nonsense)
{
	unsigned int kind;
	struct scene s;
	int i;

	scene_open(&s);
	raw_greet(&s.raw);
	/* Too short for their headers. */
	for (kind = WIRE_TAGGED; kind <= WIRE_CANCEL; kind++) {
		noise(s.raw.memory, 64);
		raw_numbered(&s.raw, kind, chance(4));
		is_given_up(&s);
	}
	raw_numbered(&s.raw, 15, 16);
	is_given_up(&s);
	/* A long message that is nowhere, or longer than its parts. */
	for (i = 0; i < 500; i++) {
		struct arrival rts = {
			.tagged = true, .tag = 9, .token = 4, .length = 64,
			.has_data = true, .segments = {
				.count = 1, .segment[0].length = 64,
			},
		};
		size_t len = wire_write_rts(s.raw.memory, &rts);

		s.raw.memory[16 + chance(8)] ^= (char)(1 + chance(255));
		raw_numbered(&s.raw, WIRE_RTS, len);
		is_given_up(&s);
		memset(s.raw.memory, 0xff, 128);
		raw_numbered(&s.raw, WIRE_RTS, 33 + chance(96));
		is_given_up(&s);
	}
	scene_close(&s);
}

/* Tokens of others, and of what has ended. */
TEST(forged_tokens)
{
	const struct end_wish wish = { .tx_flags = FI_DELIVERY_COMPLETE };
	struct scene s;
	struct fin fin = { .status = FIN_OK };
	struct cts cts = {
		.segments = { .count = 1, .segment[0].length = 1 << 20 },
	};
	int i;

	own_fabric();
	pair_open(&s.victim, &s.other, &wish);
	raw_open(&s.raw, &s.victim);
	is_served(&s, 8);
	/* Two operations of the victim wait for the other one. */
	CHECK_EQ(fi_send(s.victim.ep, out, sizeof(out), NULL, 0, &fin), 0);
	CHECK_EQ(fi_send(s.victim.ep, out, 8, NULL, 0, &cts), 0);
	for (i = 0; i < 2000; i++) {
		raw_greet(&s.raw);
		fin.token = cts.token = (chance(4) << 32) + chance(70) +
					(chance(8) ? 0 : 0x80000000u);
		cts.answer = chance(UINT64_MAX);
		if (chance(2))
			raw_numbered(&s.raw, WIRE_FIN,
				     wire_write_fin(s.raw.memory, &fin));
		else
			raw_numbered(&s.raw, WIRE_CTS,
				     wire_write_cts(s.raw.memory, &cts));
		is_given_up(&s);
		CHECK(!end_has(&s.victim, &fin) && !end_has(&s.victim, &cts));
	}
	CHECK_EQ(fi_recv(s.other.ep, in, sizeof(in), NULL, 0, in), 0);
	end_ok(&s.other, in);
	end_ok(&s.victim, &fin);
	CHECK_EQ(fi_recv(s.other.ep, in, sizeof(in), NULL, 0, in), 0);
	end_ok(&s.other, in);
	end_ok(&s.victim, &cts);
	scene_close(&s);
}

/* A message whose memory cannot be read. */
TEST(false_keys)
{
	struct arrival rts = {
		.tagged = true, .tag = 9, .token = 4,
		.segments = { .count = 2 },
	};
	struct scene s;
	struct done done;
	int i;

	scene_open(&s);
	raw_greet(&s.raw);
	for (i = 0; i < 40; i++) {
		noise(&rts.segments.segment, sizeof(rts.segments.segment));
		if (chance(2))
			rts.segments.segment[0].offset &= UINT32_MAX;
		rts.segments.segment[0].length = chance(1 << 20);
		rts.segments.segment[1].length = 1 + chance(1 << 20);
		rts.segments.segment[0].offset >>= 8;
		rts.segments.segment[1].offset >>= 8;
		if (chance(2))
			rts.segments.segment[0].rkey =
				fabrex_mr_key(s.raw.mr);
		rts.length = rts.segments.segment[0].length +
			     rts.segments.segment[1].length;
		raw_numbered(&s.raw, WIRE_RTS,
			     wire_write_rts(s.raw.memory, &rts));
		CHECK_EQ(fi_trecv(s.victim.ep, in, sizeof(in), NULL,
				  FI_ADDR_UNSPEC, 9, 0, in), 0);
		done = end_wait(&s.victim, in);
		CHECK(done.err);
		raw_read(&s.raw);
		/* Its answers need credits. */
		if (i % 8 == 7)
			raw_must(&s.raw, wire_imm(WIRE_CREDIT, s.raw.seq++, 0,
						  8), 8);
	}
	CHECK_EQ(s.raw.byes, 0);
	scene_close(&s);
}

/* More than it was promised: the victim keeps no more than that. */
TEST(too_many)
{
	struct scene s;
	unsigned int i, n;

	scene_open(&s);
	raw_greet(&s.raw);
	n = s.raw.theirs.data;
	for (i = 0; i < n; i++) {
		memset(s.raw.memory, 0, 8);
		raw_must(&s.raw, wire_imm(WIRE_TAGGED, s.raw.seq++, 0, 0),
			 4000);
	}
	is_served(&s, 8);
	CHECK_EQ(s.raw.byes, 0);
	/* Those that come back may be used; then it is too much. */
	for (i = 0; i < 100000 && !s.raw.byes; i++)
		raw_must(&s.raw, wire_imm(WIRE_TAGGED, s.raw.seq++, 0, 0),
			 4000);
	CHECK(s.raw.byes);
	for (i = 0; i < 1000; i++)
		raw_numbered(&s.raw, 0, 4000);
	is_served(&s, 4000);
	scene_close(&s);
}

/* It takes all, and never gives a credit; or promises more than there is. */
TEST(no_credits)
{
	static struct fi_cq_err_entry unused;
	struct scene s;
	char name[NAME_SIZE];
	int i, sent = 0;
	fi_addr_t addr;

	scene_open(&s);
	raw_greet(&s.raw);
	snprintf(name, sizeof(name), "fi_fabrex://%s:%d", s.raw.port_name,
		 SERVICE);
	addr = end_know(&s.victim, name);
	for (i = 0; i < 400; i++) {
		sent += !fi_tsend(s.victim.ep, out, 8, NULL, addr, 1, &unused);
		ends_progress();
		raw_read(&s.raw);
	}
	while (s.raw.others < 64 || s.victim.ndone < 64)
		wait_a_while(&s);
	wait_a_while(&s);
	CHECK_EQ(s.raw.others, 64);
	CHECK_EQ(s.victim.ndone, 64);
	CHECK_EQ(sent, 400);
	s.victim.ndone = 0;
	is_served(&s, 8);
	raw_must(&s.raw, wire_imm(WIRE_CREDIT, s.raw.seq++, 255, 63), 8);
	while (s.raw.others < 128)
		wait_a_while(&s);
	wait_a_while(&s);
	CHECK_EQ(s.raw.others, 128);
	s.victim.ndone = 0;
	/* What waits for it ends with it. */
	fabrex_queue_destroy(s.raw.queue);
	for (i = 0; i < 400 - 128; i++)
		CHECK(end_next(&s.victim).err);
	scene_close(&s);
}

/* As fast as it can, with numbers that are wrong: others find their way. */
TEST(flood)
{
	struct scene s;
	int i, k;

	setenv("FI_FABREX_CELLS", "64", 1);
	scene_open(&s);
	raw_greet(&s.raw);
	for (i = 0; i < 500; i++) {
		for (k = 0; k < 200; k++)
			if (raw_send(&s.raw, wire_imm(0, 200, 0, 0), 64))
				break;
		CHECK_EQ(fi_tsend(s.other.ep, out, 8, NULL, 0, 3, out), 0);
		CHECK_EQ(fi_trecv(s.victim.ep, in, 8, NULL, 0, 3, 0, in), 0);
		end_ok(&s.other, out);
		end_ok(&s.victim, in);
	}
	scene_close(&s);
}

/* Data for a completion queue that nobody was told of. */
TEST(immediates)
{
	struct scene s;
	struct fabrex_op op = { .opcode = FABREX_OP_WRITE_IMM, .imm = 7 };
	struct fabrex_mr *own;
	struct fabrex_wc wc;
	int i;

	scene_open(&s);
	/* To its own memory, with an immediate for the victim's queue? */
	CHECK_EQ(fabrex_mr_alloc(s.raw.port, 4096, FABREX_MR_ALL, &own), 0);
	op.mr = own;
	op.rkey = fabrex_mr_key(own);
	op.dest_key = s.raw.key;
	for (i = 0; i < 100; i++) {
		op.peer = (uint16_t)(i % 2 ? s.raw.peer : s.raw.port_number);
		CHECK_EQ(fabrex_post(s.raw.queue, &op, 1), 1);
		while (fabrex_poll(s.raw.queue, &wc, 1) != 1)
			;
		ends_progress();
	}
	CHECK_EQ(s.victim.ndone, 0);
	scene_close(&s);
}

/* Everything in any order, by somebody who keeps the numbers right. */
TEST(anything)
{
	struct scene s;
	int i;

	scene_open(&s);
	raw_greet(&s.raw);
	for (i = 0; i < 20000; i++) {
		noise(s.raw.memory, 160);
		if (chance(3)) {	/* small numbers mean more */
			memset(s.raw.memory, 0, 160);
			s.raw.memory[chance(160)] = (char)chance(256);
			s.raw.memory[29 + chance(2)] = (char)chance(5);
		}
		raw_numbered(&s.raw, (unsigned int)chance(16), chance(160));
		if (chance(10) == 0)
			fi_trecv(s.victim.ep, in, chance(200), NULL,
				 FI_ADDR_UNSPEC, 0, ~0ull, &s);
		if (chance(10) == 0)
			fi_recv(s.victim.ep, in, chance(200), NULL,
				FI_ADDR_UNSPEC, &s);
		if (i % 50 == 0) {
			ends_progress();
			raw_read(&s.raw);
			raw_greet(&s.raw);
			s.victim.ndone = 0;
		}
	}
	/* Receives of anything may still be posted. */
	while (!fi_cancel(&s.victim.ep->fid, &s))
		;
	do {
		s.victim.ndone = 0;
		ends_progress();
	} while (s.victim.ndone);
	scene_close(&s);
}
