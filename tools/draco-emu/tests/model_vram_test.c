// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions in endpoint memory: operations of every kind, windows, counters, and
 * hosts with several partitions.
 */
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "rig/pair.h"
#include "tap.h"

#define BAR	0x80000000ull
#define SIZE	(1u << 20)

static unsigned char vram[2][SIZE] __attribute__((aligned(4096)));
static uint64_t gkey[2];		/* of vram[0] at a, vram[1] at b */
static uint32_t gmr[2];

static unsigned int bind_to(struct rig_guest *by, unsigned int ep,
			    struct rig_guest *to, uint32_t *slot)
{
	struct draco_acmd c = rig_cmd(DRACO_ADM_BIND,
				      fabric_ep_id(&rig_fabric, ep), 0);
	struct draco_acpl cpl;
	unsigned int sc;

	c.arg[0] = to->port->link->id;
	sc = rig_admin(by, c, &cpl);
	*slot = (uint32_t)cpl.result;
	return sc;
}

static bool give(struct rig_guest *g, unsigned int ep, unsigned int n)
{
	uint32_t slot;

	rig_host_up(g, true);
	for (unsigned int i = 0; i < SIZE; i++)
		vram[n][i] = (unsigned char)(n * 99 + i * 3 + (i >> 9));
	return !bind_to(A, ep, g, &slot) &&
	       rig_slot_link(g, slot) == &rig_fabric.eps[ep].answers &&
	       rig_map_bar(g, slot, BAR, vram[n], SIZE);
}

static bool setup(void)
{
	if (!give(A, 0, 0) || !give(B, 5, 1))
		return false;
	gkey[0] = rig_mr(A, BAR, SIZE, RIG_ALL, PD, &gmr[0]);
	gkey[1] = rig_mr(B, BAR, SIZE, RIG_ALL, PD, &gmr[1]);
	return true;
}

static struct counters *of_ep(unsigned int ep)
{
	return &rig_fabric.eps[ep].counters;
}

static uint64_t got(struct counters *c, enum counter which)
{
	return count_get(c, which);
}

static struct fabrex_sqe op(unsigned int opcode, uint64_t from, uint64_t to,
			    uint64_t len)
{
	struct fabrex_sqe s = entry(opcode);

	s.lkey = from;
	s.rkey = to;
	s.length = len;
	return s;
}

/* ---- Bytes ---- */

static void test_across_hosts(void)
{
	struct counters *own, *e0, *e5;
	struct fabrex_sqe s;

	BEGIN();
	CHECK(setup());
	own = &A->port->counters;
	e0 = of_ep(0);
	e5 = of_ep(5);
	s = op(FABREX_OP_WRITE, gkey[0], gkey[1], SIZE);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(vram[0], vram[1], SIZE));
	memset(vram[0], 0x33, 5000);
	s = op(FABREX_OP_READ, gkey[0], gkey[1], 5000);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(vram[0], vram[1], SIZE));
	/* Every byte between endpoints, none through a host's memory. */
	CHECK_EQ(got(own, CNT_P2P_BYTES), SIZE + 5000);
	CHECK_EQ(got(own, CNT_HOST_BYTES), 0);
	for (int i = 0; i < 2; i++) {
		struct counters *c = i ? e5 : e0;

		CHECK_EQ(got(c, CNT_P2P_BYTES), SIZE + 5000);
		CHECK_EQ(got(c, CNT_HOST_BYTES), 0);
		CHECK_EQ(got(c, CNT_RX_OPS), 2);
		CHECK_EQ(got(c, CNT_TX_BYTES), i ? 5000 : SIZE);
		CHECK_EQ(got(c, CNT_RX_BYTES), i ? SIZE : 5000);
	}
	CHECK_EQ(got(&rig_fabric.eps[5].uplink->counters, CNT_P2P_BYTES),
		 SIZE + 5000);
	END();
}

static void test_with_host_memory(void)
{
	struct fabrex_sqe s;

	BEGIN();
	CHECK(setup());
	s = op(FABREX_OP_WRITE, lkey, gkey[1], 10000);	/* host to VRAM */
	s.loffset = 3;
	s.roffset = 4095;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(vram[1] + 4095, A->mem + SRC + 3, 10000));
	s = op(FABREX_OP_READ, lkey, gkey[1], 6000);	/* VRAM to host */
	s.loffset = 20000;
	s.roffset = 700;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(vram[1] + 700, A->mem + SRC + 20000, 6000));
	s = op(FABREX_OP_WRITE, gkey[0], rkey, 64);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(vram[0], B->mem + DST, 64));
	CHECK_EQ(got(of_ep(5), CNT_HOST_BYTES), 16000);
	CHECK_EQ(got(of_ep(0), CNT_HOST_BYTES), 64);
	CHECK_EQ(got(of_ep(0), CNT_P2P_BYTES) + got(of_ep(5), CNT_P2P_BYTES),
		 0);
	CHECK_EQ(got(&A->port->counters, CNT_HOST_BYTES), 16064);
	END();
}

static void test_check(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	CHECK(setup());
	s = op(FABREX_OP_WRITE, gkey[0], gkey[1], SIZE);
	s.flags = FABREX_SQE_CHECK;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.crc, fxi_crc32c(0, vram[0], SIZE));
	fault_arm(&A->port->faults, DRACO_FAULT_CORRUPT_PAYLOAD,
		  FAULT_ANY_QUEUE, 1);
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_DATA);
	s.opcode = FABREX_OP_READ;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.crc, fxi_crc32c(0, vram[1], SIZE));
	END();
}

static uint64_t vword(unsigned int n, uint64_t offset)
{
	uint64_t v;

	memcpy(&v, vram[n] + offset, 8);
	return v;
}

static void test_atomics(void)
{
	uint64_t before, was;
	struct fabrex_sqe s;

	BEGIN();
	CHECK(setup());
	before = vword(1, 64);
	s = op(FABREX_OP_FETCH_ADD, lkey, gkey[1], 0);
	s.roffset = 64;
	s.operand = 1000;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(vword(1, 64), before + 1000);
	CHECK_EQ(word(A, SRC), before);
	CHECK_EQ(got(of_ep(5), CNT_HOST_BYTES), 8);
	/* Old value into VRAM, too. */
	s = op(FABREX_OP_CMP_SWAP, gkey[0], gkey[1], 0);
	s.roffset = 64;
	s.compare = before + 1000;
	s.operand = 42;
	s.loffset = 4001;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(vword(1, 64), 42);
	memcpy(&was, vram[0] + 4001, 8);
	CHECK_EQ(was, before + 1000);
	CHECK_EQ(got(of_ep(5), CNT_P2P_BYTES), 8);
	CHECK_EQ(got(of_ep(0), CNT_P2P_BYTES), 8);
	CHECK_EQ(got(of_ep(0), CNT_RX_BYTES), 8);
	CHECK_EQ(got(&A->port->counters, CNT_P2P_BYTES), 8);
	CHECK_EQ(got(&A->port->counters, CNT_HOST_BYTES), 8);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);	/* differs now */
	CHECK_EQ(vword(1, 64), 42);
	END();
}

static void test_messages(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	CHECK(setup());
	s = op(FABREX_OP_SEND, gkey[0], 0, 200);
	s.loffset = 12345;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(rig_poll(&qb, &c, RIG_HUNG));
	CHECK(!memcmp(B->mem + qb.rq, vram[0] + 12345, 200));
	CHECK_EQ(got(of_ep(0), CNT_TX_BYTES), 200);
	s = op(FABREX_OP_WRITE_IMM, gkey[0], gkey[1], 4096);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(rig_poll(&qb, &c, RIG_HUNG));
	CHECK_EQ(c.opcode, FABREX_OP_RECV_IMM);
	CHECK(!memcmp(vram[0], vram[1], 4096));
	END();
}

/* ---- Windows ---- */

#define WIN	(2u * 65536)

static uint64_t load(uint64_t offset, size_t n)
{
	uint64_t v = 0;

	port_function_ops.bar_read(A->port, DRACO_BAR_WINDOW, WIN + offset, &v,
				   n);
	return v;
}

static void store(uint64_t offset, const void *buf, size_t n)
{
	port_function_ops.bar_write(A->port, DRACO_BAR_WINDOW, WIN + offset,
				    buf, n);
}

static void test_window(void)
{
	struct draco_window_create w = {
		.slot = 2, .nslots = 1, .peer = 1, .rkey = 0,
		.access = DRACO_ACCESS_REMOTE_READ | DRACO_ACCESS_REMOTE_WRITE,
		.offset = 8192, .length = 65536,
	};
	unsigned char buf[333];

	BEGIN();
	CHECK(setup());
	w.rkey = gkey[1];
	memcpy(rig_data(A), &w, sizeof(w));
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_WINDOW_CREATE, 0, sizeof(w)),
			   NULL), 0);
	CHECK_EQ(load(8, 8), vword(1, 8192 + 8));
	CHECK_EQ(load(65535, 1), vram[1][8192 + 65535]);
	for (unsigned int i = 0; i < sizeof(buf); i++)
		buf[i] = (unsigned char)(200 - i);
	store(4001, buf, sizeof(buf));
	CHECK(!memcmp(vram[1] + 8192 + 4001, buf, sizeof(buf)));
	store(16, "\1\2\3\4\5\6\7\10", 8);
	CHECK_EQ(vword(1, 8192 + 16), 0x0807060504030201);
	CHECK_EQ(got(of_ep(5), CNT_TX_BYTES), 9);
	CHECK_EQ(got(of_ep(5), CNT_RX_BYTES), sizeof(buf) + 8);
	CHECK_EQ(got(of_ep(5), CNT_RX_OPS), 4);
	CHECK_EQ(got(of_ep(5), CNT_P2P_BYTES) + got(of_ep(5), CNT_HOST_BYTES),
		 0);
	/* Behind an uplink that is down nothing answers. */
	fabric_link_break(&rig_fabric, rig_fabric.eps[5].uplink, true);
	CHECK_EQ(load(8, 4), 0xffffffff);
	store(16, "xxxxxxxx", 8);
	CHECK_EQ(vword(1, 8192 + 16), 0x0807060504030201);
	CHECK(got(of_ep(5), CNT_ERRORS) >= 2);
	CHECK(!rig_slot_linked(B, 2));
	fabric_link_break(&rig_fabric, rig_fabric.eps[5].uplink, false);
	CHECK(rig_slot_linked(B, 2));
	CHECK_EQ(load(8, 8), vword(1, 8192 + 8));
	END();
}

/* ---- A host with two ports ---- */

#define TWO_PORTS(root)							\
	"fabric = \"two\"; switches = ( { name = \"s1\"; ports = 8; } );"	\
	"hosts = ( { name = \"a\"; manager = true; ports = ( \"s1:1\", \"s1:2\" ); " root " },"	\
	"          { name = \"c\"; ports = ( \"s1:3\" ); } );"		\
	"appliances = ( { name = \"box\"; kind = \"cascade\";"		\
	"  uplinks = ( \"s1:5\", \"s1:6\" );"				\
	"  endpoints = ( { class = \"gpu\"; count = 6; } ); } );"

static bool start_two(const char *text)
{
	rig_start(text, 2, NULL);
	if (!rig_enable(A) || !rig_enable(B) || !rig_enable(C))
		return false;
	rig_queue_init(&qa, A, PD);
	rig_queue_init(&qb, C, PD);
	if (rig_queue_create(&qa) || rig_queue_create(&qb))
		return false;
	lkey = rig_mr(A, SRC, LEN, RIG_ALL, PD, &lmr);
	fill(A, SRC, LEN, 1);
	return true;
}

/*
 * GPU 0 is behind port a.0 at BAR, GPU 5 behind a.1 at BAR + SIZE; the queue is
 * of a.0, so the second is on the other side of the root complex.
 */
static bool setup_two(void)
{
	uint32_t slot;

	rig_host_up(A, true);
	rig_host_up(B, true);
	for (unsigned int i = 0; i < SIZE; i++)
		vram[0][i] = (unsigned char)(i * 7 + (i >> 10));
	memset(vram[1], 0, SIZE);
	if (bind_to(A, 0, A, &slot) ||
	    !rig_map_bar(A, slot, BAR, vram[0], SIZE) ||
	    bind_to(A, 5, B, &slot) ||
	    !rig_map_bar(B, slot, BAR + SIZE, vram[1], SIZE))
		return false;
	gkey[0] = rig_mr(A, BAR, SIZE, RIG_ALL, PD, &gmr[0]);
	gkey[1] = rig_mr(A, BAR + SIZE, SIZE, RIG_ALL, PD, &gmr[1]);
	return true;
}

static void test_root_complex(void)
{
	struct fabrex_sqe s;

	CHECK(start_two(TWO_PORTS("")));
	CHECK(setup_two());
	/* From one partition to the other. */
	s = op(FABREX_OP_WRITE, gkey[0], gkey[1], SIZE);
	s.peer = 0;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(vram[0], vram[1], SIZE));
	CHECK_EQ(got(of_ep(0), CNT_P2P_BYTES), SIZE);
	CHECK_EQ(got(of_ep(5), CNT_P2P_BYTES), SIZE);
	CHECK_EQ(got(of_ep(5), CNT_HOST_BYTES), 0);
	CHECK_EQ(got(&A->port->counters, CNT_HOST_BYTES), 0);
	/* And another host reaches it through port a.0. */
	lkey = rig_mr(C, SRC, LEN, RIG_ALL, PD, NULL);
	s = op(FABREX_OP_READ, lkey, gkey[1], 9000);
	s.peer = 0;
	CHECK_EQ(rig_do(&qb, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(C->mem + SRC, vram[1], 9000));
	/* The other port's link is on the way. */
	fabric_link_break(&rig_fabric, B->port->link, true);
	s = op(FABREX_OP_WRITE, gkey[0], gkey[1], 64);
	s.peer = 0;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RFAULT);
	fabric_link_break(&rig_fabric, B->port->link, false);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	fabric_link_break(&rig_fabric, rig_fabric.eps[5].uplink, true);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RFAULT);
	rig_stop();
}

static void test_root_does_not_forward(void)
{
	struct fabrex_sqe s;

	CHECK(start_two(TWO_PORTS("p2p_root = false;")));
	CHECK(setup_two());
	s = op(FABREX_OP_WRITE, gkey[0], gkey[1], 64);
	s.peer = 0;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RFAULT);
	CHECK_EQ(vram[1][5], 0);
	s = op(FABREX_OP_WRITE, gkey[1], gkey[0], 64);
	s.peer = 0;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_LFAULT);
	/* Its own partition as before. */
	s = op(FABREX_OP_WRITE, lkey, gkey[0], 64);
	s.peer = 0;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	rig_stop();
}

/* ---- Memory that only the client reaches ---- */

static bool map_beyond(struct rig_guest *g)
{
	for (unsigned int i = 0; i < RIG_BEYOND_SIZE; i++)
		rig_beyond[i] = (unsigned char)(i * 11 + (i >> 7));
	/* In pieces, as an IOMMU has them. */
	return !dma_map_add_fd(function_dma(g->port->fn), RIG_BEYOND, 0x7000,
			       DMA_PROT_READ | DMA_PROT_WRITE, -1, 0) &&
	       !dma_map_add_fd(function_dma(g->port->fn), RIG_BEYOND + 0x7000,
			       RIG_BEYOND_SIZE - 0x7000,
			       DMA_PROT_READ | DMA_PROT_WRITE, -1, 0);
}

static void test_beyond(void)
{
	struct draco_window_create w = {
		.slot = 2, .nslots = 1, .peer = 1, .length = 4096,
		.access = DRACO_ACCESS_REMOTE_READ,
	};
	uint64_t far, near;
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	CHECK(setup() && map_beyond(B));
	far = rig_mr(B, RIG_BEYOND + 100, 200000, RIG_ALL, PD, NULL);
	near = rig_mr(B, RIG_BEYOND, RIG_BEYOND_SIZE, RIG_ALL, PD, NULL);
	s = op(FABREX_OP_WRITE, gkey[0], far, 150000);
	s.loffset = 77;
	s.roffset = 5;
	s.flags = FABREX_SQE_CHECK;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.crc, fxi_crc32c(0, vram[0] + 77, 150000));
	CHECK(!memcmp(rig_beyond + 105, vram[0] + 77, 150000));
	CHECK_EQ(rig_beyond[104], (unsigned char)(104 * 11));
	CHECK_EQ(got(of_ep(0), CNT_HOST_BYTES), 150000);
	CHECK_EQ(got(of_ep(0), CNT_TX_BYTES), 150000);
	CHECK_EQ(got(of_ep(0), CNT_P2P_BYTES), 0);
	CHECK_EQ(got(&A->port->counters, CNT_HOST_BYTES), 150000);
	s = op(FABREX_OP_READ, lkey, far, 60000);
	s.roffset = 30000;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(A->mem + SRC, rig_beyond + 30100, 60000));
	fault_arm(&A->port->faults, DRACO_FAULT_CORRUPT_PAYLOAD,
		  FAULT_ANY_QUEUE, 1);
	s = op(FABREX_OP_WRITE, gkey[0], far, 100);
	s.flags = FABREX_SQE_CHECK;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_DATA);
	/* Words and windows want memory to point at. */
	s = op(FABREX_OP_FETCH_ADD, lkey, near, 1);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RFAULT);
	w.rkey = near;
	memcpy(rig_data(A), &w, sizeof(w));
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_WINDOW_CREATE, 0, sizeof(w)),
			   NULL), 0);
	CHECK_EQ(load(0, 8), ~0ull);
	END();
}

static void test_beyond_local(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;
	uint64_t far, bad;

	BEGIN();
	CHECK(map_beyond(A));
	CHECK(!dma_map_add_fd(function_dma(A->port->fn), RIG_BEYOND +
			      RIG_BEYOND_SIZE, 0x100000,
			      DMA_PROT_READ | DMA_PROT_WRITE, -1, 0));
	far = rig_mr(A, RIG_BEYOND, RIG_BEYOND_SIZE, RIG_ALL, PD, NULL);
	bad = rig_mr(A, RIG_BEYOND + RIG_BEYOND_SIZE, 65536, RIG_ALL, PD,
		     NULL);
	s = op(FABREX_OP_WRITE, far, rkey, LEN);
	s.loffset = 4;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(B->mem + DST, rig_beyond + 4, LEN));
	s = op(FABREX_OP_SEND, far, 0, 200);
	s.loffset = 0x6ff0;			/* across two mappings */
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(rig_poll(&qb, &c, RIG_HUNG));
	CHECK(!memcmp(B->mem + qb.rq, rig_beyond + 0x6ff0, 200));
	s = op(FABREX_OP_FETCH_ADD, far, rkey, 1);
	s.loffset = 4096;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	s = op(FABREX_OP_WRITE, bad, rkey, 64);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_LFAULT);
	s = op(FABREX_OP_READ, bad, rkey, 64);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_LFAULT);
	END();
}

/* Another host's endpoint is never met by address. */
static void test_other_host(void)
{
	struct fabrex_sqe s;

	BEGIN();
	CHECK(give(B, 5, 1));
	gkey[1] = rig_mr(A, BAR, SIZE, RIG_ALL, PD, NULL);
	s = op(FABREX_OP_WRITE, lkey, gkey[1], 64);
	s.peer = 0;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RFAULT);
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(across_hosts), T(with_host_memory), T(check), T(atomics),
	T(messages), T(window), T(root_complex), T(root_does_not_forward),
	T(other_host), T(beyond), T(beyond_local),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
