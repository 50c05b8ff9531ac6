// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Much of the same without growth, and what programs do meanwhile: regions that are
 * closed while a message uses them, forks. FABREX_FI_ROUNDS chooses how much; ten
 * million messages and a thousand ends are part of make check-libfabric.
 */
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define LONG	(1u << 20)
#define BATCH	64u
/* What the C library and libfabrex may keep for later. */
#define SLACK	(512u << 10)

static char out[LONG], in[LONG];

static unsigned long rounds(unsigned long usual)
{
	const char *text = getenv("FABREX_FI_ROUNDS");

	return text ? strtoul(text, NULL, 0) : usual;
}

static size_t bytes_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* ---- without growth ---------------------------------------------------- */

/* Short ones, some that are announced, some that nobody expects. */
static void batch(struct end *a, struct end *b, unsigned long turn)
{
	size_t len = turn % 16 ? 8 + turn % 200 : 20000;
	bool early = turn % 3;
	unsigned int i;

	for (i = 0; early && i < BATCH; i++)
		CHECK_EQ(fi_trecv(b->ep, in + i * 256, len, NULL, 0, i, 0,
				  in + i), 0);
	for (i = 0; i < BATCH; i++)
		CHECK_EQ(fi_tsend(a->ep, out, len, NULL, 0, i, out + i), 0);
	for (i = 0; !early && i < BATCH; i++)
		CHECK_EQ(fi_trecv(b->ep, in + i * 256, len, NULL, 0, i, 0,
				  in + i), 0);
	for (i = 0; i < BATCH; i++) {
		CHECK(end_next(a).context == out + i || len > 8192);
		CHECK_EQ(end_next(b).err, 0);
	}
	CHECK(is_filled(in + (BATCH - 1) * 256, len, 7));
}

TEST(messages_without_growth)
{
	unsigned long batches = rounds(200000) / BATCH + 1, i;
	struct end a, b;
	size_t before = 0;

	own_fabric();
	fill(out, sizeof(out), 7);
	pair_open(&a, &b, NULL);
	for (i = 0; i < batches; i++) {
		if (i == batches / 10)
			before = bytes_in_use();
		batch(&a, &b, i);
		if (i % 1000 == 0)
			memset(in, 0, sizeof(in));
	}
	test_note("%zu bytes before, %zu after", before, bytes_in_use());
	CHECK(bytes_in_use() < before + SLACK);
	pair_close(&a, &b);
}

TEST(ends_without_growth)
{
	unsigned long times = rounds(40), i;
	unsigned int descriptors = 0;
	struct end a, b;
	size_t before = 0;

	own_fabric();
	fill(out, sizeof(out), 7);
	for (i = 0; i < times; i++) {
		if (i == times / 10) {
			before = bytes_in_use();
			descriptors = open_descriptors();
		}
		pair_open(&a, &b, NULL);
		batch(&a, &b, i);
		/* What is left to do does not stay. */
		CHECK_EQ(fi_tsend(a.ep, out, LONG, NULL, 0, 1, &a), 0);
		CHECK_EQ(fi_trecv(b.ep, in, LONG, NULL, 0, 2, 0, &b), 0);
		if (i % 2)
			pair_close(&a, &b);
		else
			pair_close(&b, &a);
	}
	test_note("%zu bytes before, %zu after", before, bytes_in_use());
	CHECK(bytes_in_use() < before + SLACK);
	CHECK_EQ(open_descriptors(), descriptors);
}

/* ---- regions ----------------------------------------------------------- */

static struct fid_mr *register_for(struct end *end, void *buf, uint64_t access)
{
	struct fid_mr *mr;

	CHECK_EQ(fi_mr_reg(end->opened.domain, buf, LONG, access, 0, 0, 0, &mr,
			   NULL), 0);
	return mr;
}

static void still_works(struct end *a, struct end *b)
{
	memset(in, 0, sizeof(in));
	CHECK_EQ(fi_trecv(b->ep, in, LONG, NULL, 0, 9, 0, in), 0);
	CHECK_EQ(fi_tsend(a->ep, out, LONG, NULL, 0, 9, out), 0);
	end_ok(b, in);
	end_ok(a, out);
	CHECK(is_filled(in, LONG, 7));
}

/* Both are told the same; and if that is success, it is all there. */
static void ends_the_same(struct end *a, struct end *b)
{
	int err = end_wait(b, in).err;

	CHECK_EQ(end_wait(a, out).err, err);
	CHECK(err || is_filled(in, LONG, 7));
	still_works(a, b);
	pair_close(a, b);
}

/* Of what is announced. */
TEST(region_closed_by_the_sender)
{
	struct fid_mr *mr;
	struct end a, b;

	own_fabric();
	fill(out, sizeof(out), 7);
	pair_open(&a, &b, NULL);
	mr = register_for(&a, out, FI_SEND | FI_REMOTE_READ);
	CHECK_EQ(fi_tsend(a.ep, out, LONG, fi_mr_desc(mr), 0, 1, out), 0);
	ends_progress();
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_trecv(b.ep, in, LONG, NULL, 0, 1, 0, in), 0);
	ends_the_same(&a, &b);
}

/* Of what is posted. */
TEST(region_closed_by_the_receiver)
{
	struct fid_mr *mr;
	struct end a, b;

	own_fabric();
	fill(out, sizeof(out), 7);
	pair_open(&a, &b, NULL);
	mr = register_for(&b, in, FI_RECV);
	CHECK_EQ(fi_trecv(b.ep, in, LONG, fi_mr_desc(mr), 0, 1, 0, in), 0);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_tsend(a.ep, out, LONG, NULL, 0, 1, out), 0);
	ends_the_same(&a, &b);
}

/* ---- forks ------------------------------------------------------------- */

/* A child that writes to all its memory and ends, as programs' children do. */
static pid_t child_start(char *buffer)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	memset(buffer, 0xee, LONG);
	memset(in, 0xee, LONG);
	_exit(0);
}

static void child_end(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* What is announced, cached and posted stays this process's. */
TEST(forks_meanwhile)
{
	char *buffer = mmap(NULL, LONG, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct end a, b;
	pid_t pid;
	int i;

	CHECK(buffer != MAP_FAILED);
	own_fabric();
	pair_open(&a, &b, NULL);
	for (i = 0; i < 20; i++) {
		fill(buffer, LONG, (unsigned int)i);
		CHECK_EQ(fi_trecv(b.ep, in, LONG, NULL, 0, 1, 0, &b), 0);
		if (i % 2)
			CHECK_EQ(fi_tsend(a.ep, buffer, LONG, NULL, 0, 1, &a),
				 0);
		pid = child_start(buffer);
		if (!(i % 2))
			CHECK_EQ(fi_tsend(a.ep, buffer, LONG, NULL, 0, 1, &a),
				 0);
		if (i % 3)
			child_end(pid);
		end_ok(&b, &b);
		end_ok(&a, &a);
		CHECK(is_filled(in, LONG, (unsigned int)i));
		if (!(i % 3))
			child_end(pid);
	}
	pair_close(&a, &b);
	munmap(buffer, LONG);
}
