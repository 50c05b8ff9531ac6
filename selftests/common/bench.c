// SPDX-License-Identifier: GPL-2.0-only
/* Set-up shared by data-path tests, and the kernel's own object counts. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static int failed(const char *what, int err)
{
	fprintf(stderr, "# %s: %s: %s\n", raw_path(), what, strerror(-err));
	return err;
}

int bench_open(struct bench *b)
{
	int err;

	memset(b, 0, sizeof(*b));
	b->fd = raw_open();
	if (b->fd < 0)
		return failed("open", -errno);
	err = raw_query(b->fd, &b->port);
	if (err)
		return failed("port query", err);
	b->self = b->port.out_peer;
	err = raw_queue(b->fd, 64, 256, 64, &b->q);
	if (err)
		return failed("queue", err);
	err = raw_mr(b->fd, BENCH_SIZE, RAW_ALL, &b->src);
	if (err)
		return failed("source region", err);
	err = raw_mr(b->fd, BENCH_SIZE, RAW_ALL, &b->dst);
	if (err)
		return failed("target region", err);
	raw_fill(b->src.addr, BENCH_SIZE, 1);
	memset(b->dst.addr, BENCH_BLANK, BENCH_SIZE);
	return 0;
}

void bench_close(struct bench *b)
{
	raw_mr_free(&b->src);
	raw_mr_free(&b->dst);
	raw_queue_free(&b->q);
	close(b->fd);
}

bool bench_untouched(const struct bench *b)
{
	return raw_all(b->dst.addr, BENCH_SIZE, BENCH_BLANK);
}

struct fabrex_sqe bench_write(const struct bench *b, uint64_t loffset,
			      uint64_t roffset, uint64_t length)
{
	return raw_rw(FABREX_OP_WRITE, b->self, &b->src, loffset, b->dst.key,
		      roffset, length);
}

struct fabrex_sqe bench_read(const struct bench *b, uint64_t loffset,
			     uint64_t roffset, uint64_t length)
{
	return raw_rw(FABREX_OP_READ, b->self, &b->dst, loffset, b->src.key,
		      roffset, length);
}

static int attribute(const char *name, long *value)
{
	const char *device = strrchr(raw_path(), '/') + 1;
	char path[128];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/sys/class/fabrex/%s/usage/%s", device, name);
	f = fopen(path, "r");
	if (!f)
		return failed(path, -errno);
	n = fscanf(f, "%ld", value);
	fclose(f);
	return n == 1 ? 0 : failed(path, -EINVAL);
}

int bench_count(struct bench_count *count)
{
	return attribute("queues", &count->queues) ?:
	       attribute("mrs", &count->mrs) ?:
	       attribute("windows", &count->windows) ?:
	       attribute("pinned_bytes", &count->pinned);
}
