// SPDX-License-Identifier: GPL-2.0-only
/*
 * Meshes: engines of GPUs that access each other's memory, what they are
 * refused, what ends under way, and the links that are counted and listed.
 */
#define _GNU_SOURCE
#include <draco/gpu.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"
#include "mesh.h"
#include "rig/rig.h"
#include "tap.h"

/* A box with a mesh of four GPUs, and one without. */
static const char text[] =
	"fabric = \"f\";\n"
	"switches = ( { name = \"s\"; ports = 12; } );\n"
	"hosts = ( { name = \"a\"; manager = true; ports = ( \"s:1\" ); },"
	"          { name = \"b\"; ports = ( \"s:2\" ); },"
	"          { name = \"c\"; ports = ( \"s:3\" ); },"
	"          { name = \"d\"; ports = ( \"s:4\" ); } );\n"
	"appliances = ( { name = \"box\"; kind = \"cascade\";"
	"    uplinks = ( \"s:5\", \"s:6\" ); mesh = { kind = \"xgmi\"; gbps = 50.0; };"
	"    endpoints = ( { class = \"nvme\"; }, { class = \"gpu\"; count = 4; } ); },"
	"  { name = \"plain\"; kind = \"cascade\"; uplinks = ( \"s:7\", \"s:8\" );"
	"    endpoints = ( { class = \"gpu\"; count = 2; } ); } );\n";

#define A		(&rig_guest[0])
#define MIB		(1u << 20)
#define SIZE		(4u * MIB)
#define RING		0x1000u
#define ENTRIES		16u
#define FIRST		1u		/* endpoint of the mesh's first GPU */
#define GPUS		5u		/* the last is in "plain" */
#define LINKS		64u
#define SECOND		1000000000ull
#define SLOW		1e-6		/* 50 bytes in a millisecond */

struct model {
	struct gpu *gpu;
	unsigned char *vram;
	uint32_t tail;
	struct gpu_desc desc;
	_Atomic uint32_t instance;	/* for other threads, too */
};

static struct model g[GPUS];
static struct draco_link before[LINKS];
static _Atomic uint64_t now;

static uint64_t test_clock(void)
{
	return atomic_load(&now);
}

static bool make(unsigned int n, unsigned int host)
{
	static uint32_t instance;
	struct model *m = &g[n];

	m->vram = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->vram == MAP_FAILED)
		return false;
	memset(m->vram, 0x10 * (int)(n + 1), SIZE);
	memset(m->vram + RING, 0, ENTRIES * sizeof(struct draco_gpu_cmd));
	m->tail = 0;
	m->desc = (struct gpu_desc){
		.name = "gpu", .vram = m->vram, .size = SIZE, .fd = -1,
		.seat = mesh_seat(&rig_fabric, FIRST + n), .host = host,
		.instance = ++instance,
	};
	atomic_store(&m->instance, instance);
	m->gpu = gpu_create(&m->desc);
	if (!m->gpu)
		return false;
	gpu_join(m->gpu);
	gpu_write(m->gpu, DRACO_GPU_RING_BASE, RING);
	gpu_write(m->gpu, DRACO_GPU_RING_SIZE, ENTRIES);
	gpu_write(m->gpu, DRACO_GPU_CTRL, DRACO_GPU_CTRL_ENABLE);
	return gpu_read(m->gpu, DRACO_GPU_STATUS) == DRACO_GPU_STATUS_READY;
}

static void unmake(unsigned int n)
{
	gpu_destroy(g[n].gpu);
	munmap(g[n].vram, SIZE);
	g[n].gpu = NULL;
}

static size_t read_links(struct draco_link *out)
{
	struct draco_acmd c = rig_cmd(DRACO_ADM_GET_LINKS, 0, sizeof(before));
	struct draco_acpl cpl;

	c.flags = DRACO_LINKSF_MESH;
	if (rig_admin(A, c, &cpl) || cpl.id || cpl.result > LINKS)
		return 0;
	memset(out, 0, sizeof(before));
	memcpy(out, rig_data(A), cpl.result * sizeof(*out));
	return cpl.result;
}

/* GPUs 0 to 2 are a's, 3 is b's, 4 is a's in the other box. */
static bool begin(void)
{
	rig_start(text, 2, NULL);
	if (!rig_enable(A))
		return false;
	atomic_store(&now, SECOND);
	rig_fabric.throttle.clock = test_clock;
	for (unsigned int i = 0; i < GPUS; i++) {
		if (!make(i, i == 3))
			return false;
	}
	return read_links(before);
}

static void end(void)
{
	for (unsigned int i = 0; i < GPUS; i++) {
		if (g[i].gpu)
			unmake(i);
	}
	rig_stop();
}

static struct draco_gpu_cmd *slot(struct model *m, uint32_t n)
{
	return (struct draco_gpu_cmd *)(m->vram + RING) + n % ENTRIES;
}

static void post(struct model *m, const struct draco_gpu_cmd *c)
{
	*slot(m, m->tail++) = *c;
	gpu_write(m->gpu, DRACO_GPU_TAIL, m->tail);
}

/* Status of the last command. */
static int wait_done(struct model *m)
{
	while (gpu_read(m->gpu, DRACO_GPU_HEAD) != m->tail) {
		if (gpu_read(m->gpu, DRACO_GPU_STATUS) &
		    DRACO_GPU_STATUS_FATAL)
			return -1;
		usleep(20);
	}
	return slot(m, m->tail - 1)->status;
}

static struct draco_gpu_cmd to_peer(unsigned int op, unsigned int peer,
				    uint64_t dst, uint64_t src, uint64_t length)
{
	return (struct draco_gpu_cmd){
		.op = op, .dst = dst, .src0 = src, .length = length,
		.peer = peer + 1, .instance = atomic_load(&g[peer].instance),
	};
}

static int run(unsigned int n, struct draco_gpu_cmd c)
{
	post(&g[n], &c);
	return wait_done(&g[n]);
}

static uint32_t ep_id(unsigned int n)
{
	return fabric_ep_id(&rig_fabric, FIRST + n);
}

/* Since the last call: so many bytes from one to the other, and no others. */
static bool went(unsigned int from, unsigned int to, uint64_t bytes)
{
	struct draco_link links[LINKS];
	size_t n = read_links(links);
	uint64_t got = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t out = links[i].a_to_b - before[i].a_to_b;
		uint64_t in = links[i].b_to_a - before[i].b_to_a;

		if (links[i].a == ep_id(from) && links[i].b == ep_id(to))
			got += out;
		if (links[i].b == ep_id(from) && links[i].a == ep_id(to))
			got += in;
		all += out + in;
	}
	memcpy(before, links, sizeof(before));
	return n && got == bytes && all == bytes;
}

/* ---- Copies ---- */

static void test_copies(void)
{
	CHECK(begin());
	CHECK_EQ(run(0, to_peer(DRACO_GPU_PEER_WRITE, 1, 2 * MIB, MIB + 5,
				MIB + 333)), DRACO_GPU_DONE);
	CHECK(g[1].vram[2 * MIB] == 0x10 && g[1].vram[2 * MIB - 1] == 0x20);
	CHECK(g[1].vram[3 * MIB + 332] == 0x10);
	CHECK_EQ(g[1].vram[3 * MIB + 333], 0x20);
	CHECK(went(0, 1, MIB + 333));
	CHECK_EQ(run(2, to_peer(DRACO_GPU_PEER_READ, 1, MIB, 2 * MIB - 1, 2)),
		 DRACO_GPU_DONE);
	CHECK(g[2].vram[MIB] == 0x20 && g[2].vram[MIB + 1] == 0x10);
	CHECK_EQ(g[2].vram[MIB + 2], 0x30);
	CHECK(went(1, 2, 2));
	/* Up to the end of the peer's memory, over its ring, nothing at all. */
	CHECK_EQ(run(0, to_peer(DRACO_GPU_PEER_READ, 2, MIB, SIZE - 7, 7)),
		 DRACO_GPU_DONE);
	CHECK_EQ(run(0, to_peer(DRACO_GPU_PEER_READ, 2, MIB, SIZE, 0)),
		 DRACO_GPU_DONE);
	CHECK(went(2, 0, 7));
	CHECK_EQ(gpu_read(g[2].gpu, DRACO_GPU_MESH_NUMBER), 3);
	CHECK_EQ(gpu_read(g[2].gpu, DRACO_GPU_MESH_SIZE), 4);
	CHECK(gpu_read(g[2].gpu, DRACO_GPU_MESH_ID) &&
	      gpu_read(g[2].gpu, DRACO_GPU_MESH_ID) ==
	      gpu_read(g[3].gpu, DRACO_GPU_MESH_ID));
	CHECK_EQ(gpu_read(g[4].gpu, DRACO_GPU_MESH_ID) |
		 gpu_read(g[4].gpu, DRACO_GPU_MESH_NUMBER) |
		 gpu_read(g[4].gpu, DRACO_GPU_MESH_SIZE), 0);
	end();
}

/* ---- Refusals ---- */

static bool refused(unsigned int n, struct draco_gpu_cmd c, int status)
{
	static unsigned char old[GPUS][SIZE];
	bool same = true;
	int got;

	for (unsigned int i = 0; i < GPUS; i++)
		memcpy(old[i], g[i].vram, SIZE);
	got = run(n, c);
	for (unsigned int i = 0; i < GPUS; i++)
		same &= !memcmp(old[i] + MIB, g[i].vram + MIB, SIZE - MIB);
	if (got != status)
		printf("# status %d\n", got);
	return got == status && same;
}

static struct draco_gpu_cmd good(unsigned int peer)
{
	return to_peer(DRACO_GPU_PEER_WRITE, peer, MIB, 2 * MIB, 4096);
}

static void test_refused(void)
{
	struct draco_gpu_cmd c;

	CHECK(begin());
	CHECK(refused(0, good(3), DRACO_GPU_NO_PEER));	/* another host's */
	CHECK(refused(3, good(0), DRACO_GPU_NO_PEER));
	c = good(1);
	c.instance--;
	CHECK(refused(0, c, DRACO_GPU_NO_PEER));
	CHECK(refused(0, good(0), DRACO_GPU_NO_LINK));	/* itself */
	CHECK(refused(4, good(0), DRACO_GPU_NO_LINK));	/* another box */
	c = good(1);
	c.peer = 0;
	CHECK(refused(0, c, DRACO_GPU_NO_LINK));
	c.peer = 5;
	CHECK(refused(0, c, DRACO_GPU_NO_LINK));
	c.peer = UINT32_MAX;
	CHECK(refused(0, c, DRACO_GPU_NO_LINK));
	CHECK(refused(0, to_peer(DRACO_GPU_PEER_WRITE, 1, SIZE - 4095, MIB,
				 4096), DRACO_GPU_BAD_RANGE));
	CHECK(refused(0, to_peer(DRACO_GPU_PEER_READ, 1, MIB, ~0ull, 4096),
		      DRACO_GPU_BAD_RANGE));
	CHECK(refused(0, to_peer(DRACO_GPU_PEER_READ, 1, RING + 1, MIB, 1),
		      DRACO_GPU_BAD_RANGE));
	c = good(1);
	c.__rsvd = 1;
	CHECK(refused(0, c, DRACO_GPU_BAD_COMMAND));
	c = good(1);
	c.op = DRACO_GPU_COPY;
	CHECK(refused(0, c, DRACO_GPU_BAD_COMMAND));
	c = good(1);
	c.function = 1;
	CHECK(refused(0, c, DRACO_GPU_BAD_COMMAND));
	CHECK(went(0, 1, 0));
	CHECK_EQ(run(0, good(1)), DRACO_GPU_DONE);
	end();
}

/* Released, given to another host, and back; its uplink lost. */
static void test_peer_changes(void)
{
	struct draco_gpu_cmd c;
	struct fabric_ep *ep;

	CHECK(begin());
	c = good(1);
	unmake(1);
	CHECK_EQ(run(0, c), DRACO_GPU_NO_PEER);
	CHECK(make(1, 1));
	CHECK_EQ(run(0, c), DRACO_GPU_NO_PEER);
	CHECK_EQ(run(0, good(1)), DRACO_GPU_NO_PEER);
	unmake(1);
	CHECK(make(1, 0));
	CHECK_EQ(run(0, c), DRACO_GPU_NO_PEER);
	CHECK_EQ(run(0, good(1)), DRACO_GPU_DONE);
	ep = &rig_fabric.eps[FIRST + 1];
	atomic_store(&ep->answers, false);
	CHECK_EQ(run(0, good(1)), DRACO_GPU_NO_PEER);
	atomic_store(&ep->answers, true);
	CHECK_EQ(run(0, good(1)), DRACO_GPU_DONE);
	/* Dead, as after FORCE: nobody touches its memory any more. */
	gpu_kill(g[1].gpu);
	CHECK(!mprotect(g[1].vram, SIZE, PROT_NONE));
	CHECK_EQ(run(0, good(1)), DRACO_GPU_NO_PEER);
	end();
}

/* What a binding tells its GPU. */
static void test_seats(void)
{
	struct draco_acmd c = rig_cmd(DRACO_ADM_BIND, 0, 0);
	struct draco_acpl cpl;

	rig_start(text, 2, NULL);
	CHECK(rig_enable(A));
	for (unsigned int i = 0; i < 2; i++) {
		const struct endpoint_desc *d;

		c.id = ep_id(3 * i + 1);
		c.arg[0] = rig_guest[i].port->link->id;
		rig_host_up(&rig_guest[i], true);
		CHECK_EQ(rig_admin(A, c, &cpl), 0);
		d = rig_slot_endpoint(&rig_guest[i], cpl.result);
		CHECK(d->host == i);
		CHECK(d->seat == mesh_seat(&rig_fabric, FIRST + 3 * i + 1));
		CHECK(!!d->seat == !i);
	}
	CHECK(!mesh_seat(&rig_fabric, 0));	/* the drive */
	rig_stop();
}

/* ---- Under way ---- */

static struct oneway *way(unsigned int from, unsigned int to)
{
	struct mesh *m = g[0].desc.seat->mesh;

	return &m->ways[from * m->n + to];
}

static double free_ns(unsigned int from, unsigned int to)
{
	double ns;

	pthread_mutex_lock(&rig_fabric.throttle.lock);
	ns = way(from, to)->free_ns;
	pthread_mutex_unlock(&rig_fabric.throttle.lock);
	return ns;
}

static void start_slow(void)
{
	struct draco_gpu_cmd c = good(1);

	throttle_set(&rig_fabric, SLOW);
	post(&g[0], &c);
	while (free_ns(0, 1) <= (double)now)
		usleep(100);
}

/* Never faster than the link; the way back and other links stay free. */
static void test_rate(void)
{
	struct draco_gpu_cmd c;
	uint64_t start, took;

	CHECK(begin());
	throttle_set(&rig_fabric, 1e-3);
	c = good(1);
	c.length = 2 * MIB;
	start = now;
	post(&g[0], &c);
	while (gpu_read(g[0].gpu, DRACO_GPU_HEAD) != g[0].tail) {
		now += SECOND / 1000;
		usleep(50);
	}
	took = now - start;
	CHECK_EQ(slot(&g[0], 0)->status, DRACO_GPU_DONE);
	CHECK((double)took > 2.0 * MIB / (50 * 1e-3) - THROTTLE_SLACK_NS);
	CHECK(free_ns(0, 1) > 0 && !(free_ns(1, 0) > 0) &&
	      !(free_ns(0, 2) > 0));
	CHECK(went(0, 1, 2 * MIB));
	end();
}

static int status_of(unsigned int n, uint32_t command)
{
	return *(volatile uint8_t *)&slot(&g[n], command)->status;
}

/*
 * Writes to different peers cross their links at the same time, and one that has
 * ended says so, though HEAD does not count it yet. Those to one peer keep their
 * order. What comes from a peer waits.
 */
static void test_overlap(void)
{
	const volatile unsigned char *second;

	CHECK(begin());
	second = g[2].vram;
	throttle_set(&rig_fabric, 1e-4);
	*slot(&g[0], g[0].tail++) = to_peer(DRACO_GPU_PEER_WRITE, 1, 2 * MIB,
					    MIB, MIB);
	*slot(&g[0], g[0].tail++) = to_peer(DRACO_GPU_PEER_WRITE, 2, 2 * MIB,
					    MIB, 100);
	*slot(&g[0], g[0].tail++) = to_peer(DRACO_GPU_PEER_WRITE, 1, 3 * MIB,
					    MIB, 100);
	*slot(&g[0], g[0].tail++) = to_peer(DRACO_GPU_PEER_READ, 2, 3 * MIB,
					    MIB, 100);
	post(&g[0], &(struct draco_gpu_cmd){ .op = DRACO_GPU_NOP });
	while (second[2 * MIB + 99] != 0x10) {
		now += SECOND / 10000;
		usleep(50);
	}
	while (status_of(0, 1) == DRACO_GPU_PENDING)
		usleep(50);
	CHECK_EQ(status_of(0, 1), DRACO_GPU_DONE);
	CHECK_EQ(gpu_read(g[0].gpu, DRACO_GPU_HEAD), 0);
	CHECK_EQ(status_of(0, 0), DRACO_GPU_PENDING);
	CHECK_EQ(status_of(0, 2), DRACO_GPU_PENDING);
	CHECK_EQ(g[1].vram[3 * MIB], 0x20);
	CHECK_EQ(g[0].vram[3 * MIB], 0x10);
	while (gpu_read(g[0].gpu, DRACO_GPU_HEAD) != g[0].tail) {
		now += SECOND / 100;
		usleep(50);
	}
	for (uint32_t i = 0; i < 5; i++)
		CHECK_EQ(status_of(0, i), DRACO_GPU_DONE);
	CHECK_EQ(g[1].vram[3 * MIB + 99], 0x10);
	CHECK_EQ(g[0].vram[3 * MIB + 99], 0x30);
	end();
}

/*
 * What this GPU does in its own memory goes on beside writes to peers, unless it
 * would overwrite what these read; and what is behind it then waits, too.
 */
static void test_overlap_at_home(void)
{
	struct draco_gpu_cmd fill = { .op = DRACO_GPU_FILL, .length = 4096 };

	CHECK(begin());
	throttle_set(&rig_fabric, 1e-4);
	*slot(&g[0], g[0].tail++) = to_peer(DRACO_GPU_PEER_WRITE, 1, 2 * MIB,
					    MIB, MIB);
	fill.src1 = 0x5050505050505050;
	fill.dst = 2 * MIB;		/* behind what is read */
	*slot(&g[0], g[0].tail++) = fill;
	fill.dst = MIB - 4096;		/* before it */
	*slot(&g[0], g[0].tail++) = fill;
	fill.dst = 2 * MIB - 8;		/* the last that is read, and more */
	*slot(&g[0], g[0].tail++) = fill;
	post(&g[0], &(struct draco_gpu_cmd){ .op = DRACO_GPU_NOP });
	while (status_of(0, 1) == DRACO_GPU_PENDING ||
	       status_of(0, 2) == DRACO_GPU_PENDING)
		usleep(50);
	CHECK_EQ(g[0].vram[2 * MIB], 0x50);
	CHECK_EQ(g[0].vram[MIB - 1], 0x50);
	CHECK_EQ(gpu_read(g[0].gpu, DRACO_GPU_HEAD), 0);
	CHECK_EQ(status_of(0, 0), DRACO_GPU_PENDING);
	usleep(20000);
	CHECK_EQ(status_of(0, 3), DRACO_GPU_PENDING);
	CHECK_EQ(status_of(0, 4), DRACO_GPU_PENDING);
	CHECK_EQ(g[0].vram[2 * MIB - 1], 0x10);
	while (gpu_read(g[0].gpu, DRACO_GPU_HEAD) != g[0].tail) {
		now += SECOND / 100;
		usleep(50);
	}
	CHECK_EQ(status_of(0, 3), DRACO_GPU_DONE);
	CHECK_EQ(g[0].vram[2 * MIB - 1], 0x50);
	CHECK_EQ(g[1].vram[3 * MIB - 1], 0x10);
	end();
}

/* What is computed between two copies is not made up for by the link. */
static void test_not_waiting(void)
{
	struct draco_gpu_cmd c, fill = {
		.op = DRACO_GPU_FILL, .length = 4096,
	};

	CHECK(begin());
	throttle_set(&rig_fabric, 1e-3);
	c = good(1);
	c.length = 8192;
	fill.dst = c.src0;	/* so that it is between them */
	*slot(&g[0], g[0].tail++) = c;
	*slot(&g[0], g[0].tail++) = fill;
	post(&g[0], &c);
	while (free_ns(0, 1) <= (double)now)
		usleep(100);
	now = (uint64_t)free_ns(0, 1) + THROTTLE_LATE_NS / 2;
	while (free_ns(0, 1) <= (double)now &&
	       gpu_read(g[0].gpu, DRACO_GPU_HEAD) != g[0].tail)
		usleep(100);
	CHECK(free_ns(0, 1) > (double)now);
	now += SECOND;
	CHECK_EQ(wait_done(&g[0]), DRACO_GPU_DONE);
	end();
}

static void test_killed_under_way(void)
{
	CHECK(begin());
	start_slow();
	CHECK_EQ(g[1].vram[MIB], 0x20);
	gpu_kill(g[1].gpu);
	CHECK(!mprotect(g[1].vram, SIZE, PROT_NONE));
	now += SECOND;
	CHECK_EQ(wait_done(&g[0]), DRACO_GPU_NO_PEER);
	CHECK(went(0, 1, 0));
	end();
}

/* Who waits for a link is stopped at once, and gives it back. */
static void test_stopped_under_way(void)
{
	CHECK(begin());
	start_slow();
	gpu_write(g[0].gpu, DRACO_GPU_CTRL, 0);
	CHECK_EQ(gpu_read(g[0].gpu, DRACO_GPU_STATUS), 0);
	CHECK(free_ns(0, 1) <= (double)now);
	CHECK_EQ(slot(&g[0], 0)->status, DRACO_GPU_PENDING);
	CHECK_EQ(g[1].vram[MIB], 0x20);
	end();
}

static struct fabric_ep *ep_of(unsigned int n)
{
	return &rig_fabric.eps[FIRST + n];
}

/* Down for a moment between two pieces, and long since up again. */
static void test_links_lost_under_way(void)
{
	CHECK(begin());
	start_slow();
	atomic_fetch_add(&ep_of(1)->downs, 1);
	now += SECOND;
	CHECK_EQ(wait_done(&g[0]), DRACO_GPU_NO_PEER);
	start_slow();
	atomic_fetch_add(&ep_of(0)->downs, 1);
	now += SECOND;
	CHECK_EQ(wait_done(&g[0]), -1);
	CHECK_EQ(slot(&g[0], 1)->status, DRACO_GPU_PENDING);
	CHECK(free_ns(0, 1) <= (double)now);
	CHECK(went(0, 1, 0));
	/* Before its first byte. */
	throttle_set(&rig_fabric, 0);
	atomic_store(&ep_of(2)->answers, false);
	CHECK_EQ(run(2, good(1)), -1);
	CHECK(went(2, 1, 0));
	end();
}

static void *copy_often(void *arg)
{
	for (int i = 0; i < 300; i++) {
		struct draco_gpu_cmd c = good(1);

		c.op = i & 1 ? DRACO_GPU_PEER_WRITE : DRACO_GPU_PEER_READ;
		c.length = MIB;
		post(arg, &c);
		wait_done(arg);
	}
	return arg;
}

/* Its memory goes while two others use it without a pause. */
static void test_killed_often(void)
{
	pthread_t t[2];

	CHECK(begin());
	pthread_create(&t[0], NULL, copy_often, &g[0]);
	pthread_create(&t[1], NULL, copy_often, &g[2]);
	for (int i = 0; i < 20; i++) {
		usleep(500);
		gpu_kill(g[1].gpu);
		CHECK(!mprotect(g[1].vram, SIZE, PROT_NONE));
		unmake(1);
		CHECK(make(1, 0));
	}
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	end();
}

/* ---- GET_LINKS ---- */

static void test_links(void)
{
	struct draco_link all[LINKS], *one;
	struct draco_acmd c;
	struct draco_acpl cpl;
	size_t n, i = 0, mesh = 0;

	CHECK(begin());
	n = read_links(all);
	one = rig_data(A);
	c = rig_cmd(DRACO_ADM_GET_LINKS, 0, sizeof(*one));
	c.flags = DRACO_LINKSF_MESH;
	do {
		CHECK_EQ(rig_admin(A, c, &cpl), 0);
		CHECK(cpl.result == 1 && i < n &&
		      !memcmp(one, &all[i], sizeof(*one)));
		if (one->id) {
			CHECK(one->id > rig_fabric.nobjects && one->a < one->b);
			mesh++;
		}
		i++;
		CHECK(!cpl.id || cpl.id > (one->id ? one->id : one->a));
		c.arg[0] = cpl.id;
	} while (cpl.id);
	CHECK_EQ(i, n);
	CHECK_EQ(mesh, 4 * 3 / 2);
	c.arg[0] = UINT64_MAX;
	CHECK_EQ(rig_admin(A, c, &cpl), 0);
	CHECK(!cpl.result && !cpl.id);
	/* Who does not know of meshes is not told of any. */
	c = rig_cmd(DRACO_ADM_GET_LINKS, 0, sizeof(before));
	CHECK_EQ(rig_admin(A, c, &cpl), 0);
	CHECK(cpl.result == n - mesh && !cpl.id);
	c.flags = DRACO_LINKSF_MESH << 1;
	CHECK_EQ(rig_admin(A, c, &cpl), DRACO_SC_BAD_FIELD);
	c = rig_cmd(DRACO_ADM_IDENTIFY, 0, sizeof(struct draco_identify));
	CHECK_EQ(rig_admin(A, c, NULL), 0);
	CHECK(((struct draco_identify *)rig_data(A))->flags & DRACO_IDF_MESH);
	end();
}

static const struct tap_test tests[] = {
	{ "reads and writes of a peer, counted on one link", test_copies },
	{ "what is refused", test_refused },
	{ "a peer is released, bound anew, lost", test_peer_changes },
	{ "what a binding tells its GPU", test_seats },
	{ "the rate of the link", test_rate },
	{ "writes to several peers at a time", test_overlap },
	{ "and what is done at home", test_overlap_at_home },
	{ "what is computed is no time on a link", test_not_waiting },
	{ "the peer is killed under way", test_killed_under_way },
	{ "stopped under way", test_stopped_under_way },
	{ "links lost under way", test_links_lost_under_way },
	{ "killed while others use it", test_killed_often },
	{ "GET_LINKS", test_links },
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
