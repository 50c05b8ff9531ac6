// SPDX-License-Identifier: GPL-2.0-only
/*
 * A puppet with GPUs: what dma/puppet.c obeys, and commands for /dev/dgpu<N>,
 * for dma-bufs as regions and for operations without end. Driven by gpulab.py,
 * which documents the commands.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "puppet.h"
#include "gpu.h"
#include "storm.h"

static struct gpu gpus[PUPPET_MOST];
static struct gpu_buf bufs[PUPPET_MOST];
static int dmabufs[PUPPET_MOST];

static void do_gpu(char **w)
{
	struct gpu *g = &gpus[at(w[1])];
	struct dgpu_info *i = &g->info;
	int err = gpu_open(g, num(w[2]));

	if (err)
		answer(err);
	else
		ok("%u %u %u %" PRIu64 " %u", i->out_index, i->out_domain,
		   i->out_devfn, (uint64_t)i->out_vram, i->out_flags);
}

static void do_gclose(char **w)
{
	answer(close(gpus[at(w[1])].fd) ? -errno : 0);
}

static void do_ginfo(char **w)
{
	struct dgpu_info i;
	int err = gpu_info(&gpus[at(w[1])], &i);

	if (err)
		answer(err);
	else
		ok("%" PRIu64 " %u %u %u", (uint64_t)i.out_free, i.out_buffers,
		   i.out_exports, i.out_mappings);
}

static void do_galloc(char **w)
{
	answer(gpu_alloc(&gpus[at(w[2])], num(w[3]), num(w[4]),
			 &bufs[at(w[1])]));
}

static void do_gfree(char **w)
{
	answer(gpu_free(&bufs[at(w[1])]));
}

static void do_grevoke(char **w)
{
	answer(gpu_revoke(&bufs[at(w[1])]));
}

static void do_gmove(char **w)
{
	answer(gpu_move(&bufs[at(w[1])], num(w[2])));
}

static void do_gstate(char **w)
{
	struct dgpu_buffer s;
	int err = gpu_state(&bufs[at(w[1])], &s);

	if (err)
		answer(err);
	else
		ok("%u %u %u %u %" PRIu64 " %" PRIu64, s.out_place, s.out_pins,
		   s.out_exports, s.out_mappings, (uint64_t)s.out_maps,
		   (uint64_t)s.out_moves);
}

static void do_gpattern(char **w)
{
	answer(gpu_pattern(&bufs[at(w[1])], num(w[2]), num(w[3])));
}

static void do_gfill(char **w)
{
	answer(gpu_fill(&bufs[at(w[1])], num(w[2]), num(w[3]), num(w[4])));
}

static void do_gcrc(char **w)
{
	uint32_t crc;
	int err = gpu_crc(&bufs[at(w[1])], num(w[2]), num(w[3]), &crc);

	if (err)
		answer(err);
	else
		ok("%u", crc);
}

/* Nanoseconds that a copy over the mesh takes. */
static void do_gpeer(char **w)
{
	uint64_t begun = raw_now_ns();
	int err = gpu_peer(&bufs[at(w[1])], &bufs[at(w[2])], num(w[3]),
			   num(w[4]));

	if (err)
		answer(err);
	else
		ok("%" PRIu64, raw_now_ns() - begun);
}

static void do_gjob(char **w)
{
	struct gpu_buf *b = &bufs[at(w[1])];
	struct dgpu_cmd cmd = { .op = DRACO_GPU_FILL, .dst = b->handle,
				.length = num(w[2]),
				.src1_offset = num(w[3]) };

	answer(gpu_submit(b->gpu, &cmd, 1, DGPU_SUBMIT_ASYNC, num(w[4]), NULL));
}

static void do_gexport(char **w)
{
	int fd = gpu_export(&bufs[at(w[2])], num(w[3]), num(w[4]), num(w[5]));

	if (fd >= 0)
		dmabufs[at(w[1])] = fd;
	answer(fd < 0 ? fd : 0);
}

static void do_udma(char **w)
{
	int fd = udma_create(num(w[2]), NULL);

	if (fd >= 0)
		dmabufs[at(w[1])] = fd;
	answer(fd < 0 ? fd : 0);
}

static void do_bclose(char **w)
{
	answer(close(dmabufs[at(w[1])]) ? -errno : 0);
}

static void do_bmr(char **w)
{
	struct raw_mr *mr = &mrs[at(w[1])];
	int err = gpu_mr(port, dmabufs[at(w[2])], num(w[3]), num(w[4]),
			 num(w[5]), num(w[6]), 0, mr);

	if (err)
		answer(err);
	else
		ok("%" PRIu64 " %u", mr->key, mr->id);
}

/* The CPU's copy between a buffer and a region of the process; nanoseconds. */
static void do_gcpu(char **w)
{
	struct gpu_buf *b = &bufs[at(w[1])];
	struct raw_mr *mr = &mrs[at(w[2])];
	uint64_t begun = raw_now_ns();
	void *p = gpu_mmap(b);

	if (p == MAP_FAILED) {
		answer(-errno);
		return;
	}
	if (num(w[4]))
		memcpy(p, mr->addr, num(w[3]));
	else
		memcpy(mr->addr, p, num(w[3]));
	munmap(p, b->length);
	ok("%" PRIu64, raw_now_ns() - begun);
}

/* As "op"; nanoseconds from posting to the completion, and its status. */
static void do_timed(char **w)
{
	struct fabrex_sqe sqe = sqe_of(w);
	uint64_t begun = raw_now_ns();
	int got = raw_do(&queues[at(w[1])], &sqe, NULL);

	if (got < 0)
		answer(got);
	else
		ok("%" PRIu64 " %d", raw_now_ns() - begun, got);
}

static void do_hostcrc(char **w)
{
	struct raw_mr *mr = &mrs[at(w[1])];

	ok("%u", raw_crc32c(mr->addr + num(w[2]), num(w[3])));
}

static void do_storm(char **w)
{
	struct fabrex_sqe sqe = sqe_of(w);

	answer(storm_start(at(w[1]), &queues[at(w[1])], &sqe, num(w[13])));
}

static void do_look(char **w)
{
	uint64_t good, bad;

	storm_look(at(w[1]), &good, &bad);
	ok("%" PRIu64 " %" PRIu64, good, bad);
}

static void do_calm(char **w)
{
	struct storm_count c;
	int err = storm_stop(at(w[1]), &c);

	if (err) {
		answer(err);
		return;
	}
	printf("ok %" PRIu64 " %" PRIu64, c.relapses, c.lost);
	for (int i = 0; i < STORM_STATUS; i++)
		printf(" %" PRIu64, c.status[i]);
	printf("\n");
}

const struct puppet_command puppet_more[] = {
	{ "gpu", 3, do_gpu }, { "gclose", 2, do_gclose },
	{ "ginfo", 2, do_ginfo },
	{ "galloc", 5, do_galloc }, { "gfree", 2, do_gfree },
	{ "grevoke", 2, do_grevoke }, { "gmove", 3, do_gmove },
	{ "gstate", 2, do_gstate },
	{ "gpattern", 4, do_gpattern }, { "gfill", 5, do_gfill },
	{ "gcrc", 4, do_gcrc }, { "gpeer", 5, do_gpeer },
	{ "gjob", 5, do_gjob },
	{ "gexport", 6, do_gexport }, { "udma", 3, do_udma },
	{ "bclose", 2, do_bclose }, { "bmr", 7, do_bmr },
	{ "gcpu", 5, do_gcpu }, { "timed", 13, do_timed },
	{ "hostcrc", 4, do_hostcrc },
	{ "storm", 14, do_storm }, { "look", 2, do_look },
	{ "calm", 2, do_calm },
	{ NULL }
};
