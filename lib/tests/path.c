// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of lib/base/path.c: which way bytes go, that they arrive whole at any size
 * and place, and what FABREX_PATH may say. Run by main.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/path.h"
#include "test.h"

static uint8_t *make(size_t n)
{
	uint8_t *p = malloc(n);
	size_t i;

	CHECK(p);
	for (i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 2654435761u >> 13);
	return p;
}

/* n bytes between two places, with what is around them. */
static void moved(const uint8_t *from, uint8_t *to, size_t skew, size_t n,
		  void (*copy)(void *, const void *, uint64_t))
{
	memset(to, 0xee, skew + n + 64);
	copy(to + skew, from + skew / 2, n);
	CHECK(!skew || to[skew - 1] == 0xee);
	CHECK(!memcmp(to + skew, from + skew / 2, n));
	CHECK_EQ(to[skew + n], 0xee);
}

static uint8_t turn;

static void by_size(void *to, const void *from, uint64_t n)
{
	fxi_path_copy(to, from, n, &turn);
}

TEST(path_copies_whole)
{
	static const size_t sizes[] = {
		1 << 20, (1 << 20) + 1, (1 << 20) + 65535, 3 << 20, 64 << 20,
		(64 << 20) + 12345,
	};
	uint8_t *from = make(65 << 20), *to = malloc(65 << 20);
	size_t i, n;

	CHECK(to);
	for (n = 0; n < 300; n++)
		moved(from, to, n % 7, n, by_size);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		moved(from, to, i, sizes[i], by_size);
		moved(from, to, i, sizes[i], by_size);
	}
	for (n = 0; n < 5; n++)
		for (i = 0; i < 130; i += 13)
			moved(from, to, i, n * 16384 + i * 7,
			      fxi_path_stream);
	free(from);
	free(to);
}

/* A region written onto itself, or a part of it, survives. */
TEST(path_overlap)
{
	uint8_t *p = make(66 << 20), *q = make(66 << 20);

	fxi_path_copy(p + 5, p, 2 << 20, &turn);
	CHECK(!memcmp(p + 5, q, 2 << 20));
	fxi_path_copy(p + 5, p, 2 << 20, &turn);
	CHECK(!memcmp(p + 10, q, 1 << 20));
	memcpy(p, q, 66 << 20);
	fxi_path_copy(p, p + 77, 65 << 20, &turn);
	CHECK(!memcmp(p, q + 77, 65 << 20));
	free(p);
	free(q);
}

TEST(path_by_size)
{
	CHECK_EQ(fxi_path_mapped(0), FXI_PATH_INLINE);
	CHECK_EQ(fxi_path_mapped(64), FXI_PATH_INLINE);
	CHECK_EQ(fxi_path_mapped(65), FXI_PATH_COPY);
	CHECK_EQ(fxi_path_mapped((64 << 20) - 1), FXI_PATH_COPY);
	CHECK_EQ(fxi_path_mapped(64 << 20), FXI_PATH_STREAM);
	CHECK_EQ(fxi_path_message(256), FXI_PATH_PIO);
	CHECK_EQ(fxi_path_message(257), FXI_PATH_ENGINE);
	CHECK_EQ(fxi_path_foreign(0, true, false), FXI_PATH_CMA);
	CHECK_EQ(fxi_path_foreign(1 << 20, false, false), FXI_PATH_BOUNCE);
	CHECK_EQ(fxi_path_foreign(8, true, true), FXI_PATH_DEVICE);
}

static void setting(const char *text)
{
	setenv("FABREX_PATH", text, 1);
}

TEST(path_environment)
{
	static const char *const bad[] = {
		"inline=65", "stream", "stream=", "stream=8X", "stream=-1",
		"stream=8M,", ",", "fast=1", "stream=8M pio=1", "pio=0x10",
		"stream=99999999999999999999", "turn=9999999999g", "stream=8MM",
	};
	struct fabrex_port *port;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setting(bad[i]);
		CHECK_EQ(fabrex_open("a.0", &port), -EINVAL);
		CHECK_SAYS("FABREX_PATH");
	}
	CHECK_EQ(fxi_path_mapped((64 << 20) - 1), FXI_PATH_COPY);
	setting("inline=8,stream=2m,pio=1K,cma=64k,turn=0");
	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fxi_path_mapped(9), FXI_PATH_COPY);
	CHECK_EQ(fxi_path_mapped(2 << 20), FXI_PATH_STREAM);
	CHECK_EQ(fxi_path_message(1024), FXI_PATH_PIO);
	CHECK_EQ(fxi_path_foreign(65535, true, false), FXI_PATH_BOUNCE);
	fabrex_close(port);
}
