// SPDX-License-Identifier: GPL-2.0-only
/*
 * Layout of an inbox, of whatever size: parts lie inside it, apart from each other;
 * and names of peers. Run by make check.
 */
#include <string.h>

#include <linux/kernel.h>

#include "../ntb/layout.h"
#include "../ntb/slot.h"
#include "tap.h"

static void check_layout(u64 size)
{
	struct fntb_layout l;

	CHECK(fntb_layout_init(&l, size));
	CHECK_EQ(l.size, size);
	CHECK(l.slots && !(l.slots & (l.slots - 1)));
	CHECK(l.chunk >= FNTB_PAGE && !(l.chunk & (l.chunk - 1)));
	CHECK(l.requests >= sizeof(struct fntb_control));
	CHECK(l.answers >= l.requests +
			   l.slots * sizeof(struct fntb_request_slot));
	CHECK(l.puts >= l.answers + l.slots * sizeof(struct fntb_answer_slot));
	CHECK_EQ(l.puts % FNTB_PAGE, 0);
	CHECK(l.nputs && l.ngets);
	CHECK(l.gets >= l.puts + (u64)l.nputs * fntb_stride(&l));
	CHECK(l.gets + (u64)l.ngets * fntb_stride(&l) <= size);
}

TEST(every_size)
{
	u64 size;

	for (size = FNTB_INBOX_MIN; size <= FNTB_INBOX_MAX; size += FNTB_PAGE)
		check_layout(size);
}

TEST(no_other_size)
{
	struct fntb_layout l;

	CHECK(!fntb_layout_init(&l, 0));
	CHECK(!fntb_layout_init(&l, FNTB_INBOX_MIN - FNTB_PAGE));
	CHECK(!fntb_layout_init(&l, FNTB_INBOX_MIN + 1));
	CHECK(!fntb_layout_init(&l, FNTB_INBOX_MAX + FNTB_PAGE));
	CHECK(!fntb_layout_init(&l, ~0ull));
}

TEST(stamps_name_epoch_and_number)
{
	CHECK(fntb_stamp(1, 2) != fntb_stamp(2, 1));
	CHECK(fntb_stamp(1, ~0u) != fntb_stamp(2, 0));
	CHECK_EQ(fntb_stamp(0xfeedface, 0x12345678), 0xfeedface12345678ull);
}

TEST(names)
{
	char name[FNTB_NAME_LEN] = "host-1.ntb0:a_b";
	int c;

	CHECK(fntb_name_ok(name));
	memset(name, 'a', sizeof(name));
	CHECK(!fntb_name_ok(name));
	name[sizeof(name) - 1] = 0;
	CHECK(fntb_name_ok(name));
	name[0] = 0;
	CHECK(!fntb_name_ok(name));
	for (c = 1; c < 256; c++) {
		name[0] = (char)c;
		CHECK_EQ(fntb_name_ok(name),
			 c < 128 && c && strchr("abcdefghijklmnopqrstuvwxyz"
						"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
						"0123456789._:-", c) != NULL);
	}
}
