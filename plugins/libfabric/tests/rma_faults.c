// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One-sided operations that something is wrong with: each ends once, with an
 * error that says what, and the next one is as it should be.
 */
#include "region.h"

/* ---- what is wrong ----------------------------------------------------- */

static void fails(int err, const char *why)
{
	struct done done = end_wait(&a, &a);

	if (done.err != err || !strstr(end_why(&a, &done), why))
		test_note("%s: %s", fi_strerror(done.err), end_why(&a, &done));
	CHECK_EQ(done.err, err);
	CHECK(strstr(end_why(&a, &done), why));
	CHECK_EQ(done.len, 0);
	/* It is told once, and the next one is as it should be. */
	fill(from, 1000, 5);
	write_ok(from, 1000, 0);
	CHECK(is_filled(there.at, 1000, 5));
	CHECK_EQ(a.ndone, 0);
}

static ssize_t read_at(size_t len, uint64_t addr, uint64_t key)
{
	return fi_read(a.ep, to, len, NULL, 0, addr, key, &a);
}

static ssize_t write_at(size_t len, uint64_t addr, uint64_t key)
{
	return fi_write(a.ep, from, len, NULL, 0, addr, key, &a);
}

static void wrong_keys(void)
{
	static const size_t lens[] = { 1, 8, 200, 5000, 1 << 20 };
	unsigned int i;

	for (i = 0; i < 5; i++) {
		CHECK_EQ(write_at(lens[i], there.base, there.key ^ 1 << 20),
			 0);
		fails(FI_EKEYREJECTED, "remote key");
		CHECK_EQ(read_at(lens[i], there.base, there.key + 1), 0);
		fails(FI_EKEYREJECTED, "remote key");
		CHECK_EQ(fi_writedata(a.ep, from, lens[i], NULL, 1, 0,
				      there.base, 0, &a), 0);
		fails(FI_EKEYREJECTED, "remote key");
	}
	CHECK_EQ(read_at(8, there.base, UINT64_MAX), 0);
	fails(FI_EKEYREJECTED, "remote key");
	/* More than there are credits: they all came back. */
	for (i = 0; i < 200; i++)
		CHECK_EQ(UNTIL_ROOM(fi_writedata(a.ep, from, 8, NULL, 1, 0,
						 there.base, 77, NULL)), 0);
	for (i = 0; i < 200; i++)
		CHECK_EQ(end_wait(&a, NULL).err, FI_EKEYREJECTED);
	CHECK_EQ(fi_writedata(a.ep, from, 8, NULL, 1, 0, there.base, there.key,
			      &a), 0);
	end_ok(&a, &a);
	has_data(&b, 1, 8);
}

static void wrong_places(void)
{
	const uint64_t end = there.base + BIG + 64;

	CHECK_EQ(write_at(8, end - 7, there.key), 0);
	fails(FI_EREMOTEIO, "exceeds");
	CHECK_EQ(read_at(5000, end - 4999, there.key), 0);
	fails(FI_EREMOTEIO, "exceeds");
	CHECK_EQ(write_at(8, there.base - 8, there.key), 0);
	fails(FI_EREMOTEIO, "exceeds");
	CHECK_EQ(read_at(8, UINT64_MAX, there.key), 0);
	fails(FI_EREMOTEIO, "exceeds");
	CHECK_EQ(write_at(1, end - 1, there.key), 0);
	end_ok(&a, &a);
}

static void wrong_rights(void)
{
	struct memory readable, writable;

	reg(&b, &readable, there.at, 4096, FI_REMOTE_READ);
	reg(&b, &writable, there.at, 4096, FI_REMOTE_WRITE);
	CHECK_EQ(write_at(8, readable.base, readable.key), 0);
	fails(FI_EACCES, "not registered for this");
	CHECK_EQ(read_at(8, writable.base, writable.key), 0);
	fails(FI_EACCES, "not registered for this");
	CHECK_EQ(read_at(8, readable.base, readable.key), 0);
	end_ok(&a, &a);
	CHECK_EQ(write_at(8, writable.base, writable.key), 0);
	end_ok(&a, &a);
	unreg(&readable);
	CHECK_EQ(read_at(8, readable.base, readable.key), 0);
	fails(FI_EKEYREJECTED, "remote key");
	unreg(&writable);
}

/* One of several places is wrong: one completion. */
static void wrong_part(void)
{
	struct iovec iov[4];
	struct fi_rma_iov rma[4];
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = 4, .rma_iov = rma,
		.rma_iov_count = 4, .context = &a,
	};
	int i;

	for (i = 0; i < 4; i++) {
		cut(iov, from, 10000, 0);
		cut_there(rma, &there, 10000);
		if (!rma[i].len)
			continue;
		rma[i].key++;
		CHECK_EQ(fi_writemsg(a.ep, &msg, FI_REMOTE_CQ_DATA), 0);
		fails(FI_EKEYREJECTED, "remote key");
		CHECK_EQ(fi_readmsg(a.ep, &msg, 0), 0);
		fails(FI_EKEYREJECTED, "remote key");
	}
}

static void wrong(const struct end_wish *wish)
{
	setup(wish);
	write_ok(from, 8, 0);
	wrong_keys();
	wrong_places();
	wrong_rights();
	wrong_part();
	CHECK_EQ(b.ndone, 0);
	teardown();
}

TEST(wrong_offset)
{
	wrong(&by_offset);
}

TEST(wrong_virtual)
{
	wrong(&by_address);
}

/* What can be known at once is refused at once. */
TEST(refused)
{
	struct iovec iov[5] = { { NULL, 8 } };
	struct fi_rma_iov rma[5] = { { 0, 8, 1 } };
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = 1, .rma_iov = rma,
		.rma_iov_count = 1,
	};
	const struct end_wish reads = { .caps = FI_MSG | FI_RMA | FI_READ };
	struct end c, d;

	setup(&by_offset);
	iov[0].iov_base = from;
	rma[0].key = there.key;
	CHECK_EQ(fi_writemsg(a.ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	CHECK_EQ(fi_readmsg(a.ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	rma[0].len = 9;
	CHECK_EQ(fi_writemsg(a.ep, &msg, 0), -FI_EINVAL);
	rma[0].len = 8;
	msg.rma_iov_count = 5;
	CHECK_EQ(fi_writemsg(a.ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 0;
	CHECK_EQ(fi_writemsg(a.ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 1;
	msg.iov_count = 5;
	CHECK_EQ(fi_readmsg(a.ep, &msg, 0), -FI_EINVAL);
	CHECK_EQ(fi_readv(a.ep, iov, NULL, 5, 0, 0, there.key, NULL),
		 -FI_EINVAL);
	msg.iov_count = 1;
	msg.addr = 55;
	CHECK_EQ(fi_writemsg(a.ep, &msg, 0), -FI_EINVAL);
	CHECK_EQ(fi_write(a.ep, from, (size_t)1 << 41, NULL, 0, 0, there.key,
			  NULL), -FI_EMSGSIZE);
	end_open(&c, NULL);
	end_open(&d, &reads);
	CHECK_EQ(fi_write(c.ep, from, 8, NULL, 0, 0, 1, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_read(c.ep, from, 8, NULL, 0, 0, 1, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_write(d.ep, from, 8, NULL, 0, 0, 1, NULL), -FI_EOPNOTSUPP);
	end_close(&d);
	end_close(&c);
	teardown();
}

/* ---- regions that are closed ------------------------------------------- */

/* While there is traffic: each write ends well, or says that the key is gone. */
static void closed_there(const struct end_wish *wish)
{
	static char memory[1 << 16];
	struct memory region;
	struct done done;
	int round, i, ended, failed = 0;

	setup(wish);
	for (round = 0; round < 20; round++) {
		reg(&b, &region, memory, sizeof(memory), ALL);
		for (i = ended = 0; i < 200; i++) {
			CHECK_EQ(UNTIL_ROOM(write_at(chance(sizeof(memory)),
						     region.base,
						     region.key)), 0);
			if (i == 100)
				unreg(&region);
			while (a.ndone && chance(2)) {
				done = end_next(&a);
				CHECK(!done.err ||
				      done.err == FI_EKEYREJECTED);
				failed += !!done.err;
				ended++;
			}
		}
		for (; ended < 200; ended++)
			failed += !!end_next(&a).err;
		write_ok(from, 8, 0);
	}
	CHECK(failed >= 20);
	teardown();
}

TEST(closed_there_offset)
{
	closed_there(&by_offset);
}

TEST(closed_there_virtual)
{
	closed_there(&by_address);
}

/* Our own, while an operation waits for the peer to answer. */
TEST(closed_here)
{
	struct memory region;
	struct iovec iov[2];

	setup(&by_offset);
	reg(&a, &region, from, 1 << 20, FI_WRITE | FI_READ);
	CHECK_EQ(fi_writedata(a.ep, from, 4096, desc_of(&region), 1, 0,
			      there.base, there.key, &a), 0);
	iov[0] = (struct iovec){ from, 5000 };
	iov[1] = (struct iovec){ from + 5000, 5000 };
	CHECK_EQ(fi_writev(a.ep, iov, (void *[]){ desc_of(&region),
						  desc_of(&region) }, 2, 0,
			   there.base, there.key, &b), 0);
	unreg(&region);
	CHECK_EQ(end_wait(&a, &a).err, FI_EFAULT);
	/* It may have been there already. */
	end_wait(&a, &b);
	write_ok(from, 8, 0);
	teardown();
}

/* Many regions that come and go: a key means what it means now. */
TEST(many_regions)
{
	enum { REGIONS = 300 };
	static struct memory regions[REGIONS];
	static uint64_t words[REGIONS];
	int round, i;

	setup(&by_address);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < REGIONS; i++)
			reg(&b, &regions[i], (char *)&words[i], 8, ALL);
		for (i = 0; i < REGIONS; i++) {
			uint64_t word = (uint64_t)(round * 1000 + i);

			CHECK_EQ(UNTIL_ROOM(fi_inject_write(
				a.ep, &word, 8, 0, regions[i].base,
				regions[i].key)), 0);
		}
		for (i = 0; i < REGIONS; i++)
			UNTIL(((volatile uint64_t *)words)[i] ==
			      (uint64_t)(round * 1000 + i));
		for (i = 0; i < REGIONS; i++)
			unreg(&regions[i]);
	}
	teardown();
}
