// SPDX-License-Identifier: LGPL-2.1-or-later
#include "region.h"

const struct end_wish by_offset = { .caps = CAPS };
const struct end_wish by_address = { .caps = CAPS, .mr_mode = BASIC };

struct end a, b;
struct memory there, own;
char *from, *to;

static bool is_virtual(const struct end *end)
{
	return end->opened.info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR |
							 BASIC);
}

void reg(struct end *end, struct memory *memory, char *at, size_t len,
	 uint64_t access)
{
	memory->at = at;
	CHECK_EQ(fi_mr_reg(end->opened.domain, at, len, access, 0, 0, 0,
			   &memory->mr, NULL), 0);
	memory->key = fi_mr_key(memory->mr);
	memory->base = is_virtual(end) ? (uintptr_t)at : 0;
}

void unreg(struct memory *memory)
{
	CHECK_EQ(fi_close(&memory->mr->fid), 0);
}

void *desc_of(const struct memory *memory)
{
	return fi_mr_desc(memory->mr);
}

void setup(const struct end_wish *wish)
{
	own_fabric();
	from = malloc(BIG + 64);
	to = malloc(BIG + 64);
	CHECK(from && to);
	pair_open(&a, &b, wish);
	reg(&b, &there, calloc(1, BIG + 64), BIG + 64, ALL);
	reg(&a, &own, calloc(1, BIG + 64), BIG + 64, ALL);
}

void teardown(void)
{
	CHECK(!a.ndone && !b.ndone);
	unreg(&own);
	unreg(&there);
	pair_close(&a, &b);
}

void write_ok(const void *buf, size_t len, uint64_t at)
{
	struct done done;

	CHECK_EQ(UNTIL_ROOM(fi_write(a.ep, buf, len, NULL, 0, there.base + at,
				     there.key, &a)), 0);
	done = end_ok(&a, &a);
	CHECK_EQ(done.flags, FI_RMA | FI_WRITE);
}

void has_data(struct end *end, uint64_t data, size_t len)
{
	struct done done = end_next(end);

	CHECK_EQ(done.err, 0);
	CHECK_EQ(done.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	CHECK_EQ(done.data, data);
	CHECK_EQ(done.len, len);
	CHECK_EQ(done.source, 0);
}

void cut(struct iovec iov[4], char *base, size_t len, size_t gap)
{
	size_t lens[4] = { len / 7, len / 3, len / 5, 0 };
	int i;

	lens[3] = len - lens[0] - lens[1] - lens[2];
	for (i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ base, lens[i] };
		base += lens[i] + gap;
	}
}

void cut_there(struct fi_rma_iov rma[4], const struct memory *memory,
	       size_t len)
{
	size_t lens[4] = { len / 4, 0, len / 2, 0 };
	uint64_t at = memory->base;
	int i;

	lens[3] = len - lens[0] - lens[2];
	for (i = 0; i < 4; i++) {
		rma[i] = (struct fi_rma_iov){ at, lens[i], memory->key };
		at += lens[i] + 5;
	}
}
