// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One-sided operations between two endpoints: by every call, in sizes around
 * every limit, with offsets and virtual addresses, few and many.
 */
#include "region.h"

#define DATA	0x12345678u

/* ---- sizes ------------------------------------------------------------- */

static const size_t sizes[] = {
	0, 1, 7, 8, 9, 23, 24, 25, 64, 127, 128, 129, 1000, 4063, 4064, 4065,
	4095, 4096, 4097, 65535, 65536, 65537, 1 << 20, (1 << 20) + 1, BIG,
};
#define SIZES	(sizeof(sizes) / sizeof(*sizes))

static void write_and_read(size_t len, unsigned int seed, bool data)
{
	uint64_t at = there.base + seed % 8;
	struct done done;

	test_note("%zu bytes%s", len, data ? " with data" : "");
	fill(from, len, seed);
	memset(there.at, 0x5a, len + 16);
	if (data)
		CHECK_EQ(fi_writedata(a.ep, from, len, NULL, DATA, 0, at,
				      there.key, &a), 0);
	else
		CHECK_EQ(fi_write(a.ep, from, len, NULL, 0, at, there.key,
				  &a), 0);
	done = end_ok(&a, &a);
	CHECK_EQ(done.flags, FI_RMA | FI_WRITE);
	if (data)
		has_data(&b, DATA, len);
	CHECK(is_filled(there.at + seed % 8, len, seed));
	CHECK_EQ(there.at[seed % 8 + len], 0x5a);
	memset(to, 0x5a, len + 1);
	CHECK_EQ(fi_read(a.ep, to, len, NULL, 0, at, there.key, &to), 0);
	done = end_ok(&a, &to);
	CHECK_EQ(done.flags, FI_RMA | FI_READ);
	CHECK(is_filled(to, len, seed));
	CHECK_EQ(to[len], 0x5a);
}

/* The same between registered buffers. */
static void with_descriptors(size_t len, unsigned int seed)
{
	fill(own.at + 3, len, seed);
	memset(there.at, 0x5a, len + 16);
	CHECK_EQ(fi_write(a.ep, own.at + 3, len, desc_of(&own), 0, there.base,
			  there.key, &a), 0);
	end_ok(&a, &a);
	CHECK(is_filled(there.at, len, seed));
	memset(own.at, 0x5a, len + 4);
	CHECK_EQ(fi_read(a.ep, own.at + 1, len, desc_of(&own), 0, there.base,
			 there.key, &a), 0);
	end_ok(&a, &a);
	CHECK(is_filled(own.at + 1, len, seed));
	CHECK_EQ(own.at[len + 1], 0x5a);
}

static void all_sizes(const struct end_wish *wish)
{
	unsigned int i;

	setup(wish);
	for (i = 0; i < SIZES; i++) {
		write_and_read(sizes[i], i, false);
		write_and_read(sizes[i], i + 100, true);
		with_descriptors(sizes[i], i + 200);
	}
	teardown();
}

TEST(sizes_offset)
{
	all_sizes(&by_offset);
}

TEST(sizes_virtual)
{
	all_sizes(&by_address);
}

TEST(sizes_serial)
{
	const struct end_wish wish = { .caps = CAPS,
				       .threading = FI_THREAD_DOMAIN };

	all_sizes(&wish);
}

TEST(sizes_without_cma)
{
	setenv("FABREX_LOOPBACK_CMA", "0", 1);
	all_sizes(&by_offset);
}

/* ---- several buffers, several places ------------------------------------ */

/* What is there in these places, one after the other. */
static bool is_there(const struct fi_rma_iov *rma, size_t n, unsigned int seed)
{
	static char *all;
	size_t i, len = 0;

	if (!all)
		all = malloc(BIG);
	CHECK(all);
	for (i = 0; i < n; i++) {
		memcpy(all + len, there.at + (rma[i].addr - there.base),
		       rma[i].len);
		len += rma[i].len;
	}
	return is_filled(all, len, seed);
}

static void one_vector(size_t len, unsigned int seed)
{
	struct iovec iov[4];
	struct fi_rma_iov rma[4];
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = 4, .rma_iov = rma,
		.rma_iov_count = 4, .context = &a, .data = seed,
	};

	test_note("%zu bytes", len);
	fill(from, len, seed);
	cut(iov, from, len, 0);
	cut_there(rma, &there, len);
	CHECK_EQ(fi_writemsg(a.ep, &msg, FI_REMOTE_CQ_DATA), 0);
	end_ok(&a, &a);
	CHECK_EQ(end_next(&b).data, seed);
	CHECK(is_there(rma, 4, seed));
	memset(to, 0, len + 64);
	cut(iov, to, len, 1);
	CHECK_EQ(fi_readmsg(a.ep, &msg, 0), 0);
	end_ok(&a, &a);
	cut(iov, from, len, 0);
	memset(from, 0, len);
	fill(from, len, seed);
	CHECK(!memcmp(to, from, iov[0].iov_len));
	CHECK(!memcmp(to + iov[0].iov_len + 1, iov[1].iov_base,
		      iov[1].iov_len));
	CHECK(!memcmp(to + len + 3 - iov[3].iov_len, iov[3].iov_base,
		      iov[3].iov_len));
	/* All to one place. */
	CHECK_EQ(fi_writev(a.ep, iov, NULL, 4, 0, there.base + 9, there.key,
			   &a), 0);
	end_ok(&a, &a);
	CHECK(is_filled(there.at + 9, len, seed));
	cut(iov, to, len, 0);
	CHECK_EQ(fi_readv(a.ep, iov, NULL, 4, 0, there.base + 9, there.key,
			  &a), 0);
	end_ok(&a, &a);
	CHECK(is_filled(to, len, seed));
}

static void vectors(const struct end_wish *wish)
{
	unsigned int i;

	setup(wish);
	for (i = 0; i < SIZES - 1; i++)
		one_vector(sizes[i], i + 1);
	teardown();
}

TEST(vectors_offset)
{
	vectors(&by_offset);
}

TEST(vectors_virtual)
{
	vectors(&by_address);
}

/* ---- injected ---------------------------------------------------------- */

/* Connected or not, the buffer is the program's when the call returns. */
static void inject(const struct end_wish *wish)
{
	struct iovec iov[2];
	struct fi_rma_iov rma[2];
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = 2, .rma_iov = rma,
		.rma_iov_count = 2, .context = &a,
	};
	size_t most;
	unsigned int i;

	setup(wish);
	most = a.opened.info->tx_attr->inject_size;
	for (i = 0; i < 64; i++) {
		fill(from, most, i);
		CHECK_EQ(UNTIL_ROOM(fi_inject_write(a.ep, from, most, 0,
						    there.base + i * most,
						    there.key)), 0);
		fill(from, 8, i);
		CHECK_EQ(UNTIL_ROOM(fi_inject_writedata(a.ep, from, 8, i, 0,
							there.base + i * most,
							there.key)), 0);
		memset(from, 0xff, most);
	}
	for (i = 0; i < 64; i++)
		has_data(&b, i, 8);
	for (i = 0; i < 64; i++)
		UNTIL(is_filled(there.at + i * most, most, i));
	CHECK_EQ(fi_inject_write(a.ep, from, most + 1, 0, there.base,
				 there.key), -FI_EINVAL);
	fill(from, 300, 7);
	iov[0] = (struct iovec){ from, 100 };
	iov[1] = (struct iovec){ from + 100, 200 };
	rma[0] = (struct fi_rma_iov){ there.base, 250, there.key };
	rma[1] = (struct fi_rma_iov){ there.base + 1000, 50, there.key };
	CHECK_EQ(fi_writemsg(a.ep, &msg, FI_INJECT), 0);
	memset(from, 0, 300);
	end_ok(&a, &a);
	CHECK(is_there(rma, 2, 7));
	teardown();
}

TEST(inject_offset)
{
	inject(&by_offset);
}

TEST(inject_virtual)
{
	inject(&by_address);
}

/* ---- flags, counters --------------------------------------------------- */

static ssize_t write_flags(uint64_t flags, size_t len, void *context)
{
	struct iovec iov = { from, len };
	struct fi_rma_iov rma = { there.base, len, there.key };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = &rma,
		.rma_iov_count = 1, .context = context,
	};

	return fi_writemsg(a.ep, &msg, flags);
}

TEST(selective)
{
	const struct end_wish wish = { .caps = CAPS,
				       .bind = FI_SELECTIVE_COMPLETION,
				       .counts = FI_READ | FI_WRITE |
						 FI_REMOTE_WRITE };
	int i;

	setup(&wish);
	for (i = 0; i < 50; i++) {
		CHECK_EQ(fi_write(a.ep, from, 8, NULL, 0, there.base,
				  there.key, NULL), 0);
		CHECK_EQ(write_flags(0, 100000, NULL), 0);
		CHECK_EQ(fi_read(a.ep, to, 8, NULL, 0, there.base, there.key,
				 NULL), 0);
	}
	CHECK_EQ(write_flags(FI_COMPLETION, 8, &a), 0);
	end_ok(&a, &a);
	UNTIL(fi_cntr_read(a.cntr) == 151);
	CHECK_EQ(write_flags(FI_REMOTE_CQ_DATA, 8, &a), 0);
	has_data(&b, 0, 8);
	UNTIL(fi_cntr_read(b.cntr) == 1);
	CHECK_EQ(fi_read(a.ep, to, 8, NULL, 0, there.base, there.key + 1,
			 &to), 0);
	CHECK_EQ(end_wait(&a, &to).err, FI_EKEYREJECTED);
	CHECK_EQ(fi_cntr_readerr(a.cntr), 1);
	teardown();
}

/* What is fenced begins when all before has ended. */
static void fence(const struct end_wish *wish)
{
	int i;

	setup(wish);
	CHECK_EQ(fi_send(a.ep, from, 1 << 20, NULL, 0, &from), 0);
	CHECK_EQ(write_flags(FI_FENCE | FI_DELIVERY_COMPLETE, 8, &a), 0);
	CHECK_EQ(write_flags(FI_TRANSMIT_COMPLETE, 8, &to), 0);
	for (i = 0; i < 1000; i++)
		ends_progress();
	CHECK(!end_has(&a, &a) && !end_has(&a, &to));
	CHECK_EQ(fi_recv(b.ep, to, 1 << 20, NULL, 0, &b), 0);
	end_ok(&b, &b);
	end_ok(&a, &from);
	end_ok(&a, &a);
	end_ok(&a, &to);
	/* Only with itself. */
	for (i = 0; i < 100; i++)
		CHECK_EQ(UNTIL_ROOM(write_flags(FI_FENCE, 5000, &i)), 0);
	for (i = 0; i < 100; i++)
		end_ok(&a, &i);
	teardown();
}

TEST(fence_offset)
{
	fence(&by_offset);
}

TEST(fence_virtual)
{
	fence(&by_address);
}

/* ---- many -------------------------------------------------------------- */

#define PLACES	64
#define STEP	65536u

static char busy[PLACES];

/* Of any kind and size, at place i of the regions. */
static ssize_t any(int i, int kind)
{
	size_t len = chance(2) ? chance(64) : chance(STEP);
	char *at = own.at + (size_t)i * STEP;
	uint64_t raddr = there.base + (uint64_t)i * STEP;
	void *desc = chance(2) ? desc_of(&own) : NULL;

	switch (kind) {
	case 0:
		fill(at, len, (unsigned int)i);
		return fi_write(a.ep, at, len, desc, 0, raddr, there.key,
				&busy[i]);
	case 1:
		return fi_writedata(a.ep, at, len, desc, 3, 0, raddr,
				    there.key, &busy[i]);
	default:
		return fi_read(a.ep, at, len, desc, 0, raddr, there.key,
			       &busy[i]);
	}
}

static int take_ended(void)
{
	struct done done;
	int n = 0;

	while (a.ndone) {
		done = end_next(&a);
		CHECK_EQ(done.err, 0);
		*(char *)done.context = 0;
		n++;
	}
	return n;
}

/* As many as there is room for. */
static void mixture(const struct end_wish *wish)
{
	int sent = 0, ended = 0, data = 0, heard = 0, i, kind;
	ssize_t ret;

	setup(wish);
	while (ended < 4000 || heard < data) {
		i = (int)chance(PLACES);
		if (sent < 4000 && !busy[i]) {
			kind = (int)chance(3);
			ret = any(i, kind);
			CHECK(!ret || ret == -FI_EAGAIN);
			busy[i] = !ret;
			sent += !ret;
			data += !ret && kind == 1;
		}
		if (chance(3))
			continue;
		ends_progress();
		ended += take_ended();
		heard += (int)b.ndone;
		b.ndone = 0;
	}
	CHECK_EQ(heard, data);
	teardown();
}

TEST(mixture_offset)
{
	mixture(&by_offset);
}

TEST(mixture_virtual)
{
	mixture(&by_address);
}

/* Nobody reads b's completions: what needs a credit waits, the rest does not. */
TEST(nobody_reads)
{
	struct fi_cq_tagged_entry entry;
	int i, posted = 0;

	setup(&by_offset);
	CHECK_EQ(fi_writedata(a.ep, from, 8, NULL, 1, 0, there.base, there.key,
			      &a), 0);
	end_ok(&a, &a);
	has_data(&b, 1, 8);
	while (!fi_writedata(a.ep, from, 8, NULL, 2, 0, there.base, there.key,
			     &to))
		posted++;
	CHECK(posted > 100);
	for (i = 0; i < 100; i++)
		if (fi_cq_read(a.cq, &entry, 1) == 1)
			posted--;
	CHECK_EQ(write_flags(0, 8, &a), 0);
	for (;;) {
		if (fi_cq_read(a.cq, &entry, 1) != 1)
			continue;
		if (entry.op_context == &a)
			break;
		posted--;
	}
	for (i = 0; i < posted; i++)
		UNTIL(a.ndone && end_next(&a).context == &to);
	b.ndone = 0;
	teardown();
}

/* More is promised than there are cells. */
TEST(few_cells)
{
	enum { PEERS = 30, EACH = 40 };
	static struct end ends[PEERS];
	static struct memory memory;
	static char words[PEERS * 8];
	int i, n, got = 0;

	setenv("FI_FABREX_CELLS", "64", 1);
	setenv("FI_FABREX_CELL_SIZE", "256", 1);
	setenv("FABREX_LOOPBACK_SIZE", "64M", 1);
	own_fabric();
	for (i = 0; i < PEERS; i++) {
		end_open(&ends[i], &by_offset);
		if (i) {
			end_know(&ends[i], ends[0].name);
			end_know(&ends[0], ends[i].name);
		}
	}
	reg(&ends[0], &memory, words, sizeof(words), ALL);
	for (n = 0; n < EACH; n++)
		for (i = 1; i < PEERS; i++)
			CHECK_EQ(fi_inject_writedata(ends[i].ep, &n, 4,
						     (uint64_t)i, 0, 8 * i,
						     memory.key), 0);
	while (got < EACH * (PEERS - 1)) {
		struct done done = end_next(&ends[0]);

		CHECK_EQ(done.err, 0);
		CHECK_EQ(done.source, done.data - 1);
		got++;
	}
	unreg(&memory);
	for (i = PEERS - 1; i >= 0; i--)
		end_close(&ends[i]);
}

/* To oneself, and to another endpoint of the same port. */
static void own_port(const struct end_wish *plain)
{
	struct end_wish wish = *plain;
	struct memory memory;
	struct end c;
	fi_addr_t self, other;

	setup(plain);
	wish.of = &a;
	end_open(&c, &wish);
	self = end_know(&a, a.name);
	other = end_know(&a, c.name);
	end_know(&c, a.name);
	reg(&a, &memory, to, 100000, ALL);
	fill(from, 50000, 3);
	CHECK_EQ(fi_writedata(a.ep, from, 50000, NULL, 9, self, memory.base,
			      memory.key, &a), 0);
	end_ok(&a, &a);
	CHECK_EQ(end_next(&a).data, 9);
	CHECK(is_filled(to, 50000, 3));
	memset(to, 0, 50000);
	CHECK_EQ(fi_writedata(a.ep, from, 50000, NULL, 7, other, memory.base,
			      memory.key, &a), 0);
	end_ok(&a, &a);
	has_data(&c, 7, 50000);
	CHECK(is_filled(to, 50000, 3));
	unreg(&memory);
	end_close(&c);
	teardown();
}

TEST(own_port_offset)
{
	own_port(&by_offset);
}

TEST(own_port_virtual)
{
	own_port(&by_address);
}
