// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages between two endpoints of one process, by every call and with every
 * flag, in sizes around every limit.
 */
#include <stdlib.h>
#include <sys/uio.h>

#include "ends.h"

#define BIG	(4u << 20)

static char *from, *to;

static void buffers(void)
{
	from = malloc(BIG + 64);
	to = malloc(BIG + 64);
	CHECK(from && to);
}

/* Around what is inline, in a small bounce buffer, in a cell, and long. */
static const size_t sizes[] = {
	0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 64, 100, 107, 108,
	109, 119, 120, 121, 127, 128, 129, 1000, 2048, 4000, 4059, 4060, 4061,
	4063, 4064, 4065, 4071, 4075, 4076, 4077, 4080, 4083, 4084, 4085, 4087,
	4088, 4089, 4091, 4092, 4093, 4095, 4096, 4097, 8192, 16383, 16384,
	16385, 65535, 65536,
	65537, 1 << 20, (1 << 20) + 1, BIG,
};
#define SIZES	(sizeof(sizes) / sizeof(*sizes))

enum way { PLAIN, DATA, TAGGED, TAGGED_DATA, WAYS };

static ssize_t post_send(struct end *end, enum way way, size_t len,
			 uint64_t tag, void *context)
{
	switch (way) {
	case PLAIN:
		return fi_send(end->ep, from, len, NULL, 0, context);
	case DATA:
		return fi_senddata(end->ep, from, len, NULL, 0x12345678, 0,
				   context);
	case TAGGED:
		return fi_tsend(end->ep, from, len, NULL, 0, tag, context);
	default:
		return fi_tsenddata(end->ep, from, len, NULL, 0x12345678, 0,
				    tag, context);
	}
}

static ssize_t post_receive(struct end *end, enum way way, size_t len,
			    uint64_t tag, void *context)
{
	if (way < TAGGED)
		return fi_recv(end->ep, to, len, NULL, FI_ADDR_UNSPEC,
			       context);
	return fi_trecv(end->ep, to, len, NULL, FI_ADDR_UNSPEC, tag, 0,
			context);
}

static void check_receive(const struct done *done, enum way way, size_t len,
			  uint64_t tag)
{
	uint64_t flags = FI_RECV | (way < TAGGED ? FI_MSG : FI_TAGGED);

	if (way == DATA || way == TAGGED_DATA) {
		flags |= FI_REMOTE_CQ_DATA;
		CHECK_EQ(done->data, 0x12345678);
	}
	CHECK_EQ(done->flags, flags);
	CHECK_EQ(done->len, len);
	CHECK_EQ(done->source, 0);
	if (way >= TAGGED)
		CHECK_EQ(done->tag, tag);
}

/* One message; early: the receive is posted before it is sent. */
static void one(struct end *a, struct end *b, enum way way, size_t len,
		bool early, unsigned int seed)
{
	uint64_t tag = 0x8000000000000000ull | seed;
	struct done done;
	int i;

	test_note("way %d, %zu bytes, %s", way, len, early ? "early" : "late");
	fill(from, len, seed);
	memset(to, 0x5a, len + 16);
	if (early)
		CHECK_EQ(post_receive(b, way, len, tag, b), 0);
	CHECK_EQ(post_send(a, way, len, tag, a), 0);
	for (i = 0; !early && i < 10; i++)
		ends_progress();
	if (!early)
		CHECK_EQ(post_receive(b, way, len, tag, b), 0);
	done = end_ok(b, b);
	check_receive(&done, way, len, tag);
	CHECK(is_filled(to, len, seed));
	CHECK_EQ(to[len], 0x5a);
	done = end_ok(a, a);
	CHECK_EQ(done.flags, FI_SEND | (way < TAGGED ? FI_MSG : FI_TAGGED));
}

static void all_sizes(const struct end_wish *wish)
{
	struct end a, b;
	unsigned int i;
	int way;

	own_fabric();
	buffers();
	pair_open(&a, &b, wish);
	for (way = 0; way < WAYS; way++) {
		for (i = 0; i < SIZES; i++) {
			one(&a, &b, (enum way)way, sizes[i], true, i);
			one(&b, &a, (enum way)way, sizes[i], false, i + 100);
		}
	}
	CHECK(!a.ndone && !b.ndone);
	pair_close(&a, &b);
}

TEST(sizes_read)
{
	all_sizes(NULL);
}

TEST(sizes_write)
{
	setenv("FI_FABREX_RENDEZVOUS", "write", 1);
	all_sizes(NULL);
}

TEST(sizes_small_cells)
{
	setenv("FI_FABREX_CELL_SIZE", "256", 1);
	all_sizes(NULL);
}

TEST(sizes_delivery)
{
	const struct end_wish wish = { .tx_flags = FI_DELIVERY_COMPLETE };

	all_sizes(&wish);
}

TEST(sizes_serial)
{
	const struct end_wish wish = { .threading = FI_THREAD_DOMAIN };

	all_sizes(&wish);
}

/* No cross-memory attach: data goes through bounce buffers of libfabrex. */
TEST(sizes_without_cma)
{
	setenv("FABREX_LOOPBACK_CMA", "0", 1);
	all_sizes(NULL);
}

/* Over loopback: messages that are copied by way of memory that the peer has mapped. */
TEST(sizes_all_copied)
{
	setenv("FI_FABREX_COPY", "128K", 1);
	all_sizes(NULL);
}

TEST(sizes_never_copied)
{
	setenv("FI_FABREX_COPY", "0", 1);
	all_sizes(NULL);
}

/* There is room for eight of these; the others are fetched from where they are. */
TEST(copies_run_out)
{
	enum { MESSAGES = 20, LENGTH = 10000 };
	struct end a, b;
	int i, turn;

	own_fabric();
	buffers();
	pair_open(&a, &b, NULL);
	for (turn = 0; turn < 50; turn++) {
		for (i = 0; i < MESSAGES; i++) {
			fill(from + i * LENGTH, LENGTH, (unsigned int)(turn + i));
			CHECK_EQ(fi_tsend(a.ep, from + i * LENGTH, LENGTH, NULL,
					  0, (uint64_t)i, from + i), 0);
		}
		for (i = 0; i < 10; i++)
			ends_progress();
		/* What has been sent late finds no room that is free early. */
		for (i = MESSAGES - 1; i >= 0; i--) {
			CHECK_EQ(fi_trecv(b.ep, to, LENGTH, NULL, FI_ADDR_UNSPEC,
					  (uint64_t)i, 0, to + i), 0);
			end_ok(&b, to + i);
			CHECK(is_filled(to, LENGTH, (unsigned int)(turn + i)));
			end_ok(&a, from + i);
		}
	}
	pair_close(&a, &b);
}

/* ---- several buffers --------------------------------------------------- */

static void cut(struct iovec *iov, char *base, size_t len)
{
	size_t a = len / 7, b = len / 3, c = len / 5;

	iov[0] = (struct iovec){ base, a };
	iov[1] = (struct iovec){ base + a, b };
	iov[2] = (struct iovec){ base + a + b, c };
	iov[3] = (struct iovec){ base + a + b + c, len - a - b - c };
}

static void vectors(void)
{
	struct iovec out[4], in[4];
	struct end a, b;
	struct done done;
	unsigned int i;

	own_fabric();
	buffers();
	pair_open(&a, &b, NULL);
	for (i = 0; i < SIZES; i++) {
		test_note("%zu bytes", sizes[i]);
		fill(from, sizes[i], i);
		memset(to, 0, sizes[i] + 1);
		cut(out, from, sizes[i]);
		cut(in, to, sizes[i]);
		in[0].iov_len++;	/* the others follow each other */
		in[1].iov_base = (char *)in[1].iov_base + 1;
		in[2].iov_base = (char *)in[2].iov_base + 1;
		in[3].iov_base = (char *)in[3].iov_base + 1;
		CHECK_EQ(fi_trecvv(b.ep, in, NULL, 4, 0, i, 0, &b), 0);
		CHECK_EQ(fi_tsendv(a.ep, out, NULL, 4, 0, i, &a), 0);
		done = end_ok(&b, &b);
		CHECK_EQ(done.len, sizes[i]);
		CHECK(is_filled(to, sizes[i], i));
		end_ok(&a, &a);
		CHECK_EQ(fi_recvv(b.ep, in, NULL, 2, 0, &b), 0);
		CHECK_EQ(fi_sendv(a.ep, out, NULL, 2, 0, &a), 0);
		end_ok(&b, &b);
		end_ok(&a, &a);
	}
	pair_close(&a, &b);
}

TEST(vectors_read)
{
	vectors();
}

TEST(vectors_write)
{
	setenv("FI_FABREX_RENDEZVOUS", "write", 1);
	vectors();
}

/* ---- injected ---------------------------------------------------------- */

/* The buffer is the program's as soon as the call returns, connected or not. */
TEST(inject)
{
	struct end a, b;
	struct done done;
	size_t most;
	int i;

	own_fabric();
	buffers();
	pair_open(&a, &b, NULL);
	most = a.opened.info->tx_attr->inject_size;
	for (i = 0; i < 100; i++) {
		fill(from, most, (unsigned int)i);
		CHECK_EQ(UNTIL_ROOM(fi_inject(a.ep, from, most, 0)), 0);
		memset(from, 0xff, most);
		fill(from, 8, (unsigned int)i);
		CHECK_EQ(UNTIL_ROOM(fi_tinjectdata(a.ep, from, 8, 77, 0, 5)),
			 0);
	}
	CHECK_EQ(fi_inject(a.ep, from, most + 1, 0), -FI_EINVAL);
	for (i = 0; i < 100; i++) {
		CHECK_EQ(fi_recv(b.ep, to, most, NULL, 0, &b), 0);
		CHECK_EQ(end_ok(&b, &b).len, most);
		CHECK(is_filled(to, most, (unsigned int)i));
		CHECK_EQ(fi_trecv(b.ep, to, 8, NULL, 0, 5, 0, &b), 0);
		done = end_ok(&b, &b);
		CHECK_EQ(done.data, 77);
		CHECK(is_filled(to, 8, (unsigned int)i));
	}
	CHECK_EQ(a.ndone, 0);
	pair_close(&a, &b);
}

/* What was injected arrives, even if the endpoint is closed at once. */
TEST(inject_and_close)
{
	struct end a, b;

	own_fabric();
	buffers();
	pair_open(&a, &b, NULL);
	CHECK_EQ(fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, &b), 0);
	fill(from, 8, 3);
	/* Connected first: one process cannot answer while it closes. */
	CHECK_EQ(fi_inject(a.ep, from, 8, 0), 0);
	end_ok(&b, &b);
	CHECK_EQ(fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, &b), 0);
	CHECK_EQ(fi_inject(a.ep, from, 8, 0), 0);
	end_close(&a);
	CHECK_EQ(end_ok(&b, &b).len, 8);
	CHECK(is_filled(to, 8, 3));
	end_close(&b);
}

/* ---- completions ------------------------------------------------------- */

static ssize_t send_flags(struct end *end, uint64_t flags, void *context)
{
	struct iovec iov = { from, 8 };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .context = context,
	};

	return fi_sendmsg(end->ep, &msg, flags);
}

/* Only what asks for a completion gets one. */
TEST(selective)
{
	const struct end_wish wish = { .bind = FI_SELECTIVE_COMPLETION };
	struct iovec iov;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct end a, b;
	int i;

	own_fabric();
	buffers();
	iov = (struct iovec){ to, 8 };
	pair_open(&a, &b, &wish);
	for (i = 0; i < 50; i++) {
		CHECK_EQ(fi_send(a.ep, from, 8, NULL, 0, NULL), 0);
		CHECK_EQ(fi_recv(b.ep, to, 8, NULL, 0, NULL), 0);
		CHECK_EQ(send_flags(&a, 0, NULL), 0);
		CHECK_EQ(fi_recvmsg(b.ep, &msg, 0), 0);
	}
	CHECK_EQ(send_flags(&a, FI_COMPLETION, &a), 0);
	msg.context = &b;
	CHECK_EQ(fi_recvmsg(b.ep, &msg, FI_COMPLETION), 0);
	end_ok(&a, &a);
	end_ok(&b, &b);
	CHECK(!a.ndone && !b.ndone);
	pair_close(&a, &b);
}

/* A send completes when its receive has been posted, and not before. */
TEST(delivery)
{
	struct end a, b;
	int i;

	own_fabric();
	buffers();
	pair_open(&a, &b, NULL);
	CHECK_EQ(send_flags(&a, FI_DELIVERY_COMPLETE, &a), 0);
	CHECK_EQ(send_flags(&a, FI_TRANSMIT_COMPLETE, &to), 0);
	end_ok(&a, &to);
	for (i = 0; i < 1000; i++)
		ends_progress();
	CHECK(!end_has(&a, &a));
	CHECK_EQ(fi_recv(b.ep, to, 8, NULL, 0, &b), 0);
	end_ok(&b, &b);
	end_ok(&a, &a);
	CHECK_EQ(fi_recv(b.ep, to, 8, NULL, 0, &b), 0);
	end_ok(&b, &b);
	pair_close(&a, &b);
}

/* What is fenced begins when all before has ended. */
TEST(fence)
{
	struct end a, b;
	int i;

	own_fabric();
	buffers();
	pair_open(&a, &b, NULL);
	CHECK_EQ(fi_send(a.ep, from, 1 << 20, NULL, 0, &from), 0);
	CHECK_EQ(send_flags(&a, FI_FENCE, &a), 0);
	CHECK_EQ(send_flags(&a, 0, &to), 0);
	for (i = 0; i < 1000; i++)
		ends_progress();
	CHECK(!end_has(&a, &a) && !end_has(&a, &to));
	CHECK_EQ(fi_recv(b.ep, to, 1 << 20, NULL, 0, &b), 0);
	end_ok(&b, &b);
	end_ok(&a, &from);
	end_ok(&a, &a);
	end_ok(&a, &to);
	pair_close(&a, &b);
}

/* ---- order ------------------------------------------------------------- */

#define MANY	3000

/* Of all sizes, in the order of sending, whenever receives are posted. */
static void in_order(bool early)
{
	static size_t lens[MANY];
	struct end a, b;
	struct done done;
	int sent = 0, posted = 0, got = 0;
	char *in = calloc(MANY, 64);

	own_fabric();
	buffers();
	CHECK(in);
	fill(from, BIG, 9);
	pair_open(&a, &b, NULL);
	while (got < MANY) {
		if (sent < MANY && (!early || sent < posted)) {
			lens[sent] = chance(20) ? chance(60) :
				     8000 + chance(20000);
			if (!fi_tsend(a.ep, from + sent, lens[sent], NULL, 0,
				      7, &lens[sent]))
				sent++;
		}
		if (posted < MANY && (early || posted < sent - 200 ||
				      sent == MANY)) {
			if (!fi_trecv(b.ep, in + 64 * posted, 64, NULL, 0, 7,
				      0, in + 64 * posted))
				posted++;
		}
		ends_progress();
		a.ndone = 0;	/* they are not looked at */
		while (b.ndone && end_has(&b, in + 64 * got)) {
			done = end_wait(&b, in + 64 * got);
			CHECK_EQ(done.err, lens[got] > 64 ? FI_ETRUNC : 0);
			CHECK_EQ(done.len + done.olen, lens[got]);
			CHECK(!memcmp(in + 64 * got, from + got,
				      lens[got] < 64 ? lens[got] : 64));
			got++;
		}
	}
	pair_close(&a, &b);
	free(in);
}

TEST(order_expected)
{
	in_order(true);
}

TEST(order_unexpected)
{
	in_order(false);
}

/* ---- to oneself, and on one port --------------------------------------- */

static void echo(struct end *a, fi_addr_t addr, struct end *b, size_t len)
{
	fill(from, len, 4);
	memset(to, 0, len);
	CHECK_EQ(fi_trecv(b->ep, to, len, NULL, FI_ADDR_UNSPEC, 1, 0, to), 0);
	CHECK_EQ(fi_tsend(a->ep, from, len, NULL, addr, 1, from), 0);
	CHECK_EQ(end_ok(b, to).len, len);
	end_ok(a, from);
	CHECK(is_filled(to, len, 4));
}

TEST(self)
{
	struct end a;
	fi_addr_t addr;
	unsigned int i;

	own_fabric();
	buffers();
	end_open(&a, NULL);
	addr = end_know(&a, a.name);
	for (i = 0; i < SIZES; i++)
		echo(&a, addr, &a, sizes[i]);
	for (i = 0; i < 1000; i++)
		echo(&a, addr, &a, 8);
	end_close(&a);
}

TEST(one_port)
{
	struct end a, b;
	struct end_wish wish = { .of = &a };
	unsigned int i;

	own_fabric();
	buffers();
	end_open(&a, NULL);
	end_open(&b, &wish);
	CHECK_EQ(end_know(&a, b.name), 0);
	CHECK_EQ(end_know(&b, a.name), 0);
	for (i = 0; i < SIZES; i++) {
		echo(&a, 0, &b, sizes[i]);
		echo(&b, 0, &a, sizes[i]);
	}
	end_close(&b);
	end_close(&a);
}

/* Node and service instead of an address; the server knows nobody. */
TEST(by_service)
{
	const struct end_wish wish = { .service = 4711 };
	struct end a, b;
	fi_addr_t addr;

	own_fabric();
	buffers();
	end_open(&a, NULL);
	end_open(&b, &wish);
	CHECK(strstr(b.name, ":4711:"));
	CHECK_EQ(fi_av_insertsvc(a.av, "localhost", "4711", &addr, 0, NULL),
		 1);
	echo(&a, addr, &b, 100);
	CHECK_EQ(fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, &b), 0);
	CHECK_EQ(fi_send(a.ep, from, 8, NULL, addr, &a), 0);
	CHECK_EQ(end_ok(&b, &b).source, FI_ADDR_NOTAVAIL);
	/* Now it knows, and answers. */
	CHECK_EQ(end_know(&b, a.name), 0);
	CHECK_EQ(fi_recv(b.ep, to, 8, NULL, 0, &b), 0);
	CHECK_EQ(fi_send(a.ep, from, 8, NULL, addr, &to), 0);
	CHECK_EQ(end_ok(&b, &b).source, 0);
	CHECK_EQ(fi_recv(a.ep, to, 8, NULL, addr, &to + 1), 0);
	CHECK_EQ(fi_send(b.ep, from, 8, NULL, 0, &to), 0);
	CHECK_EQ(end_ok(&a, &to + 1).source, addr);
	pair_close(&a, &b);
}

/* ---- many -------------------------------------------------------------- */

#define PEERS	40

/* With few cells, which more is promised of than there are. */
TEST(many_peers)
{
	static struct end ends[PEERS];
	static uint64_t got[PEERS], out[PEERS];
	int i, k, n;

	setenv("FI_FABREX_CELLS", "64", 1);
	setenv("FI_FABREX_CELL_SIZE", "256", 1);
	setenv("FABREX_LOOPBACK_SIZE", "64M", 1);
	own_fabric();
	for (i = 0; i < PEERS; i++) {
		end_open(&ends[i], NULL);
		if (i) {
			end_know(&ends[i], ends[0].name);
			end_know(&ends[0], ends[i].name);
		}
	}
	/* All at once, and nobody reads meanwhile. */
	for (n = 0; n < 30; n++)
		for (i = 1; i < PEERS; i++) {
			out[i] = (uint64_t)n << 32 | (uint64_t)i;
			CHECK_EQ(fi_inject(ends[i].ep, &out[i], 8, 0), 0);
		}
	for (k = 0; k < 30 * (PEERS - 1); k++) {
		uint64_t word = 0;
		struct done done;

		CHECK_EQ(fi_recv(ends[0].ep, &word, 8, NULL, FI_ADDR_UNSPEC,
				 &word), 0);
		done = end_ok(&ends[0], &word);
		i = (int)(word & 0xffffffff);
		CHECK(i > 0 && i < PEERS);
		CHECK_EQ(done.source, i - 1);
		CHECK_EQ(word >> 32, got[i]);
		got[i]++;
	}
	for (i = 1; i < PEERS; i++)
		end_close(&ends[i]);
	end_close(&ends[0]);
}
