// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which message a receive gets: tags, masks, senders, order; messages that are
 * looked at first; buffers for several; what is canceled or too long.
 */
#include <stdlib.h>

#include "ends.h"

static char out[1 << 20], in[1 << 20];

/* Nothing is under way any more that would arrive later. */
static void settle(void)
{
	int i;

	for (i = 0; i < 200; i++)
		ends_progress();
}

static void send_tag(struct end *end, uint64_t tag, unsigned int seed,
		     size_t len)
{
	fill(out, len, seed);
	CHECK_EQ(fi_tsend(end->ep, out, len, NULL, 0, tag, &out), 0);
	if (len <= 4000)
		end_ok(end, &out);
}

static void receive_tag(struct end *end, uint64_t tag, uint64_t ignore,
			uint64_t expect, unsigned int seed, size_t len)
{
	struct done done;

	memset(in, 0, len);
	CHECK_EQ(fi_trecv(end->ep, in, len, NULL, FI_ADDR_UNSPEC, tag, ignore,
			  &in), 0);
	done = end_ok(end, &in);
	CHECK_EQ(done.tag, expect);
	CHECK_EQ(done.len, len);
	CHECK(is_filled(in, len, seed));
}

TEST(tags_unexpected)
{
	struct end a, b;

	own_fabric();
	pair_open(&a, &b, NULL);
	send_tag(&a, 1, 1, 8);
	send_tag(&a, 2, 2, 8);
	send_tag(&a, 1, 3, 8);
	send_tag(&a, 0x100000002, 4, 100);
	send_tag(&a, 0xffffffffffffffff, 5, 1);
	settle();
	receive_tag(&b, 2, 0, 2, 2, 8);
	receive_tag(&b, 1, 0, 1, 1, 8);
	receive_tag(&b, 2, 0xffffffff00000000, 0x100000002, 4, 100);
	receive_tag(&b, 0, 0xffffffffffffffff, 1, 3, 8);
	receive_tag(&b, 0, 0xffffffffffffffff, 0xffffffffffffffff, 5, 1);
	/* A tag of 0 is a tag; a message without is something else. */
	CHECK_EQ(fi_send(a.ep, out, 8, NULL, 0, &out), 0);
	end_ok(&a, &out);
	send_tag(&a, 0, 6, 8);
	receive_tag(&b, 0, 0, 0, 6, 8);
	CHECK_EQ(fi_recv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, &in), 0);
	CHECK_EQ(end_ok(&b, &in).flags, FI_RECV | FI_MSG);
	pair_close(&a, &b);
}

/* Of those that match, the one that was posted first. */
TEST(tags_posted)
{
	struct end a, b;
	char at[6][8];

	own_fabric();
	pair_open(&a, &b, NULL);
	CHECK_EQ(fi_trecv(b.ep, at[0], 8, NULL, FI_ADDR_UNSPEC, 5, 0, at[0]),
		 0);
	CHECK_EQ(fi_trecv(b.ep, at[1], 8, NULL, FI_ADDR_UNSPEC, 0,
			  0xffffffffffffffff, at[1]), 0);
	CHECK_EQ(fi_trecv(b.ep, at[2], 8, NULL, FI_ADDR_UNSPEC, 5, 0, at[2]),
		 0);
	CHECK_EQ(fi_trecv(b.ep, at[3], 8, NULL, FI_ADDR_UNSPEC, 6, 0, at[3]),
		 0);
	CHECK_EQ(fi_trecv(b.ep, at[4], 8, NULL, FI_ADDR_UNSPEC, 4, 3, at[4]),
		 0);
	send_tag(&a, 5, 0, 8);
	end_ok(&b, at[0]);
	send_tag(&a, 5, 0, 8);
	CHECK_EQ(end_ok(&b, at[1]).tag, 5);
	send_tag(&a, 7, 0, 8);
	CHECK_EQ(end_ok(&b, at[4]).tag, 7);
	send_tag(&a, 6, 0, 8);
	end_ok(&b, at[3]);
	send_tag(&a, 5, 0, 8);
	end_ok(&b, at[2]);
	pair_close(&a, &b);
}

TEST(directed)
{
	struct end a, b, c;
	struct done done;
	char x[8], y[8], z[8];

	own_fabric();
	pair_open(&a, &c, NULL);
	end_open(&b, NULL);
	CHECK_EQ(end_know(&b, c.name), 0);
	CHECK_EQ(end_know(&c, b.name), 1);
	/* Posted for one of them, and unexpected. */
	CHECK_EQ(fi_trecv(c.ep, x, 8, NULL, 1, 5, 0, x), 0);
	CHECK_EQ(fi_trecv(c.ep, y, 8, NULL, 0, 0, ~0ull, y), 0);
	send_tag(&a, 5, 1, 8);
	CHECK_EQ(end_ok(&c, y).source, 0);
	send_tag(&a, 5, 2, 8);
	send_tag(&b, 6, 3, 8);
	settle();
	CHECK(!end_has(&c, x));
	CHECK_EQ(fi_trecv(c.ep, z, 8, NULL, 1, 0, ~0ull, z), 0);
	done = end_ok(&c, z);
	CHECK(done.tag == 6 && done.source == 1 && is_filled(z, 8, 3));
	send_tag(&b, 5, 4, 8);
	CHECK_EQ(end_ok(&c, x).source, 1);
	CHECK_EQ(fi_trecv(c.ep, z, 8, NULL, FI_ADDR_UNSPEC, 5, 0, z), 0);
	CHECK_EQ(end_ok(&c, z).source, 0);
	CHECK_EQ(fi_recv(c.ep, z, 8, NULL, 2, z), -FI_EINVAL);
	/* Known only after its message has come. */
	CHECK_EQ(fi_av_remove(c.av, &(fi_addr_t){ 1 }, 1, 0), 0);
	send_tag(&b, 9, 5, 8);
	settle();
	CHECK_EQ(end_know(&c, b.name), 1);
	CHECK_EQ(fi_trecv(c.ep, z, 8, NULL, 1, 9, 0, z), 0);
	CHECK_EQ(end_ok(&c, z).source, 1);
	end_close(&a);
	end_close(&b);
	end_close(&c);
}

/* ---- peek, claim, discard ---------------------------------------------- */

static ssize_t look(struct end *end, uint64_t tag, uint64_t ignore,
		    uint64_t flags, void *context)
{
	struct iovec iov = { in, sizeof(in) };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = flags & FI_PEEK ? 0 : 1,
		.addr = FI_ADDR_UNSPEC,
		.tag = tag,
		.ignore = ignore,
		.context = context,
	};

	return fi_trecvmsg(end->ep, &msg, flags);
}

static void none(struct end *end, uint64_t tag, uint64_t flags)
{
	struct done done;

	CHECK_EQ(look(end, tag, 0, FI_PEEK | flags, &done), 0);
	done = end_wait(end, &done);
	CHECK_EQ(done.err, FI_ENOMSG);
}

static void peeks(size_t len)
{
	struct end a, b;
	struct done done;
	int x, y;

	own_fabric();
	pair_open(&a, &b, NULL);
	none(&b, 1, 0);
	none(&b, 1, FI_CLAIM);
	fill(out, len, 3);
	CHECK_EQ(fi_tsenddata(a.ep, out, len, NULL, 55, 0, 1, &out), 0);
	do {
		CHECK_EQ(look(&b, 0, ~0ull, FI_PEEK, &x), 0);
		done = end_wait(&b, &x);
	} while (done.err);
	CHECK(done.tag == 1 && done.len == len && done.data == 55 &&
	      done.source == 0);
	CHECK_EQ(done.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	/* It is still there; then it is ours alone. */
	CHECK_EQ(look(&b, 1, 0, FI_PEEK | FI_CLAIM, &x), 0);
	CHECK_EQ(end_ok(&b, &x).len, len);
	none(&b, 1, 0);
	CHECK_EQ(look(&b, 1, 0, FI_CLAIM, &y), -FI_EINVAL);
	memset(in, 0, len);
	CHECK_EQ(look(&b, 1, 0, FI_CLAIM, &x), 0);
	done = end_ok(&b, &x);
	CHECK(done.len == len && done.data == 55 && is_filled(in, len, 3));
	end_ok(&a, &out);
	/* Thrown away, at once or once claimed; the sender does not notice. */
	CHECK_EQ(fi_tsend(a.ep, out, len, NULL, 0, 2, &out), 0);
	CHECK_EQ(fi_tsend(a.ep, out, len, NULL, 0, 3, &in), 0);
	do {
		CHECK_EQ(look(&b, 3, 0, FI_PEEK | FI_CLAIM, &x), 0);
		done = end_wait(&b, &x);
	} while (done.err);
	CHECK_EQ(look(&b, 2, 0, FI_PEEK | FI_DISCARD, &y), 0);
	CHECK_EQ(end_ok(&b, &y).len, len);
	end_ok(&a, &out);
	CHECK_EQ(look(&b, 3, 0, FI_CLAIM | FI_DISCARD, &x), 0);
	end_ok(&b, &x);
	end_ok(&a, &in);
	none(&b, 2, 0);
	none(&b, 3, 0);
	CHECK_EQ(look(&b, 3, 0, FI_DISCARD, &x), -FI_EINVAL);
	pair_close(&a, &b);
}

TEST(peek_short)
{
	peeks(8);
}

TEST(peek_long)
{
	peeks(100000);
}

/* ---- several in one buffer --------------------------------------------- */

static void post_several(struct end *end, size_t room)
{
	struct iovec iov = { in, room };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = in,
	};

	CHECK_EQ(fi_recvmsg(end->ep, &msg, FI_MULTI_RECV), 0);
}

static void least(struct end *end, size_t size)
{
	size_t is, len = sizeof(is);

	CHECK_EQ(fi_setopt(&end->ep->fid, FI_OPT_ENDPOINT,
			   FI_OPT_MIN_MULTI_RECV, &size, sizeof(size)), 0);
	CHECK_EQ(fi_getopt(&end->ep->fid, FI_OPT_ENDPOINT,
			   FI_OPT_MIN_MULTI_RECV, &is, &len), 0);
	CHECK_EQ(is, size);
}

/* Messages of this length, until the buffer is used up; some before it is
 * posted.
 */
static void several(size_t len, size_t room, size_t min, int early)
{
	struct end a, b;
	struct done done;
	size_t at = 0;
	int i, n = 0;
	bool last = false;

	own_fabric();
	pair_open(&a, &b, NULL);
	least(&b, min);
	fill(out, len, 2);
	memset(in, 0, sizeof(in));
	for (i = 0; i < early; i++)
		CHECK_EQ(fi_send(a.ep, out, len, NULL, 0, &a), 0);
	settle();
	post_several(&b, room);
	while (!last) {
		if (n >= early)
			CHECK_EQ(fi_send(a.ep, out, len, NULL, 0, &a), 0);
		done = end_ok(&b, in);
		CHECK(done.buf == in + at && done.len == len);
		CHECK(is_filled(in + at, len, 2));
		at += len;
		last = room - at < min || room == at;
		CHECK_EQ(done.flags, FI_RECV | FI_MSG |
				     (last ? FI_MULTI_RECV : 0));
		n++;
	}
	CHECK_EQ(in[at], 0);
	/* Whatever comes now waits for another receive. */
	CHECK_EQ(fi_send(a.ep, out, len, NULL, 0, &b), 0);
	settle();
	CHECK_EQ(b.ndone, 0);
	CHECK_EQ(fi_recv(b.ep, in, len, NULL, 0, &b), 0);
	end_ok(&b, &b);
	pair_close(&a, &b);
}

TEST(several_short)
{
	several(100, 5000, 128, 3);
}

TEST(several_exact)
{
	several(1000, 8000, 64, 0);
}

TEST(several_long)
{
	several(50000, 300000, 40000, 2);
}

TEST(several_too_long)
{
	struct end a, b;
	struct done done;

	own_fabric();
	pair_open(&a, &b, NULL);
	least(&b, 100);
	post_several(&b, 1000);
	CHECK_EQ(fi_send(a.ep, out, 800, NULL, 0, &a), 0);
	CHECK_EQ(end_ok(&b, in).flags, FI_RECV | FI_MSG);
	CHECK_EQ(fi_send(a.ep, out, 300, NULL, 0, &a), 0);
	done = end_wait(&b, in);
	CHECK(done.err == FI_ETRUNC && done.len == 200 && done.olen == 100);
	CHECK(done.flags & FI_MULTI_RECV);
	/* Canceled, the buffer is the program's. */
	post_several(&b, 1000);
	CHECK_EQ(fi_cancel(&b.ep->fid, in), 0);
	done = end_wait(&b, in);
	CHECK(done.err == FI_ECANCELED && done.flags & FI_MULTI_RECV);
	pair_close(&a, &b);
}

/* ---- canceled, truncated ----------------------------------------------- */

TEST(cancel_receive)
{
	struct end a, b;
	struct done done;
	int x, y;

	own_fabric();
	pair_open(&a, &b, NULL);
	CHECK_EQ(fi_cancel(&b.ep->fid, &x), -FI_ENOENT);
	CHECK_EQ(fi_trecv(b.ep, in, 8, NULL, 0, 1, 0, &x), 0);
	CHECK_EQ(fi_trecv(b.ep, in, 8, NULL, 0, 1, 0, &y), 0);
	CHECK_EQ(fi_cancel(&b.ep->fid, &x), 0);
	done = end_wait(&b, &x);
	CHECK(done.err == FI_ECANCELED &&
	      strstr(end_why(&b, &done), "canceled"));
	CHECK_EQ(fi_cancel(&b.ep->fid, &x), -FI_ENOENT);
	send_tag(&a, 1, 1, 8);
	end_ok(&b, &y);
	CHECK_EQ(fi_cancel(&b.ep->fid, &y), -FI_ENOENT);
	pair_close(&a, &b);
}

/* A long one that nobody has received yet; and one that somebody has. */
TEST(cancel_send)
{
	struct end a, b;

	own_fabric();
	pair_open(&a, &b, NULL);
	CHECK_EQ(fi_tsend(a.ep, out, sizeof(out), NULL, 0, 1, &a), 0);
	settle();
	CHECK_EQ(fi_cancel(&a.ep->fid, &a), 0);
	CHECK_EQ(end_wait(&a, &a).err, FI_ECANCELED);
	none(&b, 1, 0);
	CHECK_EQ(fi_tsend(a.ep, out, sizeof(out), NULL, 0, 1, &a), 0);
	settle();
	/* Both at the same time: one of them is right. */
	CHECK_EQ(fi_trecv(b.ep, in, sizeof(in), NULL, 0, 1, 0, &b), 0);
	CHECK_EQ(fi_cancel(&a.ep->fid, &a), 0);
	end_ok(&b, &b);
	end_ok(&a, &a);
	pair_close(&a, &b);
}

static void truncated(size_t len, size_t room, bool early)
{
	struct end a, b;
	struct done done;

	own_fabric();
	pair_open(&a, &b, NULL);
	fill(out, len, 8);
	memset(in, 0, sizeof(in));
	if (early)
		CHECK_EQ(fi_trecv(b.ep, in, room, NULL, 0, 1, 0, &b), 0);
	CHECK_EQ(fi_tsend(a.ep, out, len, NULL, 0, 1, &a), 0);
	settle();
	if (!early)
		CHECK_EQ(fi_trecv(b.ep, in, room, NULL, 0, 1, 0, &b), 0);
	done = end_wait(&b, &b);
	CHECK_EQ(done.err, FI_ETRUNC);
	CHECK(done.len == room && done.olen == len - room && done.tag == 1);
	CHECK(is_filled(in, room, 8) && !in[room]);
	end_ok(&a, &a);
	pair_close(&a, &b);
}

TEST(truncated_short)
{
	truncated(100, 60, true);
	truncated(100, 0, false);
}

TEST(truncated_long)
{
	truncated(500000, 100000, true);
	truncated(500000, 0, true);
	truncated(500000, 5, false);
}

TEST(truncated_stored)
{
	setenv("FI_FABREX_RENDEZVOUS", "write", 1);
	truncated(500000, 100000, true);
	truncated(500000, 0, false);
}

/* ---- more than is read ------------------------------------------------- */

/* A sender is held back, others are not, and everything arrives in the end. */
static void flood(size_t len, int messages)
{
	static char data[4000];
	static int done_at[2];
	struct end a, b, c;
	int sent = 0, i;
	ssize_t ret;

	setenv("FI_FABREX_UNEXPECTED", "65536", 1);
	own_fabric();
	pair_open(&a, &c, NULL);
	end_open(&b, NULL);
	CHECK_EQ(end_know(&b, c.name), 0);
	for (i = 0; i < 20000; i++) {
		memcpy(data, &sent, sizeof(sent));
		ret = fi_tinject(a.ep, data, len, 0, 1);
		CHECK(!ret || ret == -FI_EAGAIN);
		sent += !ret;
		ends_progress();
		if (sent == messages)
			break;
	}
	CHECK(sent < messages);
	/* Another one is served. */
	CHECK_EQ(fi_tsend(b.ep, data, len, NULL, 0, 2, &b), 0);
	CHECK_EQ(fi_trecv(c.ep, in, len, NULL, FI_ADDR_UNSPEC, 2, 0, &c), 0);
	end_ok(&c, &c);
	end_ok(&b, &b);
	for (i = 0; i < messages; i++) {
		while (sent < messages) {
			memcpy(data, &sent, sizeof(sent));
			if (fi_tinject(a.ep, data, len, 0, 1))
				break;
			sent++;
		}
		CHECK_EQ(fi_trecv(c.ep, done_at, sizeof(done_at[0]), NULL,
				  FI_ADDR_UNSPEC, 1, 0, done_at), 0);
		CHECK_EQ(end_wait(&c, done_at).err, FI_ETRUNC);
		CHECK_EQ(done_at[0], i);
	}
	end_close(&a);
	end_close(&b);
	end_close(&c);
}

TEST(flood_short)
{
	flood(8, 3000);
}

TEST(flood_long)
{
	flood(4000, 3000);
}
