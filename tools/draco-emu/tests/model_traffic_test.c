// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes on links: each kind of route counts exactly its bytes on exactly its
 * links, whatever moves them; and GET_LINKS, which reads them.
 */
#include <string.h>

#include "rig/pair.h"
#include "tap.h"

/*
 * Three switches in a row. Guests A and B are the two ports of host a, C is
 * host b, D host c. box1 is below s1; of box2, two GPUs are below s2 and two
 * below s3.
 */
static const char three[] =
	"fabric = \"three\";\n"
	"switches = ( { name = \"s1\"; ports = 8; }, { name = \"s2\"; ports = 8; },"
	"             { name = \"s3\"; ports = 8; } );\n"
	"isls = ( { a = \"s1:7\"; b = \"s2:7\"; },"
	"         { a = \"s2:8\"; b = \"s3:8\"; } );\n"
	"hosts = ( { name = \"a\"; manager = true;"
	"            ports = ( \"s1:1\", \"s1:2\" ); },\n"
	"          { name = \"b\"; ports = ( \"s2:1\" ); },"
	"          { name = \"c\"; ports = ( \"s3:1\" ); } );\n"
	"appliances = ("
	"  { name = \"box1\"; kind = \"cascade\"; uplinks = ( \"s1:5\", \"s1:6\" );"
	"    endpoints = ( { class = \"gpu\"; count = 4; } ); },"
	"  { name = \"box2\"; kind = \"cascade\"; uplinks = ( \"s2:5\", \"s3:5\" );"
	"    endpoints = ( { class = \"gpu\"; count = 4; } ); } );\n";

#define D	(&rig_guest[3])
#define BAR	0x80000000ull
#define SIZE	(1u << 20)
#define GPUS	8
#define MAX	64

/* Index of an endpoint in the topology. */
#define BOX1(n)	(n)
#define BOX2(n)	(4 + (n))

static unsigned char vram[GPUS][SIZE] __attribute__((aligned(4096)));

/* One direction of a link, by the names of its ends. */
struct hop {
	const char *from, *to;
	uint64_t bytes;
};

static struct draco_link before[MAX];
static size_t nbefore;

static size_t read_links(struct draco_link *out)
{
	struct draco_acpl cpl;

	if (rig_admin(A, rig_cmd(DRACO_ADM_GET_LINKS, 0, sizeof(before)),
		      &cpl) || cpl.id || cpl.result > MAX)
		return 0;
	memcpy(out, rig_data(A), cpl.result * sizeof(*out));
	return cpl.result;
}

static const char *name(uint32_t id)
{
	return rig_fabric.objects[id - 1].name;
}

static uint64_t expected(const struct hop *want, uint32_t from, uint32_t to)
{
	uint64_t n = 0;

	for (; want->from; want++)
		if (!strcmp(want->from, name(from)) &&
		    !strcmp(want->to, name(to)))
			n += want->bytes;
	return n;
}

/* Since the last call, this went over these links and nothing elsewhere. */
static bool went(const struct hop *want)
{
	struct draco_link now[MAX];
	size_t n = read_links(now);
	uint64_t due = 0, got = 0;
	bool ok = n && n == nbefore;

	for (const struct hop *h = want; h->from; h++)
		due += h->bytes;
	for (size_t i = 0; ok && i < n; i++) {
		uint64_t out = now[i].a_to_b - before[i].a_to_b;
		uint64_t in = now[i].b_to_a - before[i].b_to_a;

		if (out != expected(want, now[i].a, now[i].b) ||
		    in != expected(want, now[i].b, now[i].a)) {
			printf("# %s - %s: %llu, back %llu\n", name(now[i].a),
			       name(now[i].b), (unsigned long long)out,
			       (unsigned long long)in);
			ok = false;
		}
		got += out + in;
	}
	memcpy(before, now, sizeof(before));
	return ok && got == due;
}

#define WENT(...) CHECK(went((const struct hop[]){ __VA_ARGS__, { 0 } }))

/* @ep is bound to @g and has its memory at BAR + @n * SIZE. */
static bool give(struct rig_guest *g, unsigned int ep, unsigned int n)
{
	struct draco_acmd c = rig_cmd(DRACO_ADM_BIND,
				      fabric_ep_id(&rig_fabric, ep), 0);
	struct draco_acpl cpl;

	rig_host_up(g, true);
	c.arg[0] = g->port->link->id;
	return !rig_admin(A, c, &cpl) &&
	       rig_map_bar(g, cpl.result, BAR + n * SIZE, vram[ep], SIZE);
}

static uint64_t host_key[4];

static bool start(void)
{
	rig_start(three, 2, NULL);
	for (unsigned int i = 0; i < 4; i++) {
		if (!rig_enable(&rig_guest[i]))
			return false;
		host_key[i] = rig_mr(&rig_guest[i], RIG_FREE, LEN, RIG_ALL, PD,
				     NULL);
	}
	rig_queue_init(&qa, A, PD);
	rig_queue_init(&qb, C, PD);
	if (rig_queue_create(&qa) || rig_queue_create(&qb))
		return false;
	nbefore = read_links(before);
	/* 4 host ports, 4 uplinks, 2 between switches, 8 endpoints. */
	return nbefore == 18;
}

static uint64_t region(struct rig_guest *g, unsigned int n)
{
	return rig_mr(g, BAR + n * SIZE, SIZE, RIG_ALL, PD, NULL);
}

/* By a's first port, to or from a region of @peer. */
static int move(unsigned int opcode, uint64_t local, unsigned int peer,
		uint64_t remote, uint64_t len)
{
	struct fabrex_sqe s = {
		.opcode = opcode, .peer = peer, .lkey = local, .rkey = remote,
		.length = len,
	};

	return rig_do(&qa, &s, NULL);
}

static int copy(uint64_t local, unsigned int peer, uint64_t remote,
		uint64_t len)
{
	return move(FABREX_OP_WRITE, local, peer, remote, len);
}

/* ---- Routes ---- */

static void test_hosts(void)
{
	CHECK(start());
	CHECK_EQ(copy(host_key[0], 1, host_key[1], 4097), 0);
	WENT({ "a", "a.0", 4097 }, { "a.1", "a", 4097 });
	CHECK_EQ(copy(host_key[0], 0, host_key[0], 100), 0);
	WENT({ "a", "a.0", 100 }, { "a.0", "a", 100 });
	CHECK_EQ(copy(host_key[0], 3, host_key[3], 60000), 0);
	WENT({ "a", "a.0", 60000 }, { "s1:7", "s2:7", 60000 },
	     { "s2:8", "s3:8", 60000 }, { "c.0", "c", 60000 });
	CHECK_EQ(move(FABREX_OP_READ, host_key[0], 2, host_key[2], 7), 0);
	WENT({ "b", "b.0", 7 }, { "s2:7", "s1:7", 7 }, { "a.0", "a", 7 });
	END();
}

static void test_one_partition(void)
{
	uint64_t g[4];

	CHECK(start());
	for (unsigned int i = 0; i < 3; i++) {
		CHECK(give(A, BOX1(i), i));
		g[i] = region(A, i);
	}
	/* Behind one uplink, behind two, and within one GPU. */
	CHECK_EQ(copy(g[0], 0, g[1], SIZE), 0);
	WENT({ "box1.gpu0", "box1", SIZE }, { "box1", "box1.gpu1", SIZE });
	CHECK_EQ(copy(g[0], 0, g[2], 3000), 0);
	WENT({ "box1.gpu0", "box1", 3000 }, { "box1", "s1:5", 3000 },
	     { "s1:6", "box1", 3000 }, { "box1", "box1.gpu2", 3000 });
	CHECK_EQ(copy(g[1], 0, g[1], 64), 0);
	WENT({ "box1.gpu1", "box1", 64 }, { "box1", "box1.gpu1", 64 });
	/* The host's own memory. */
	CHECK_EQ(copy(host_key[0], 0, g[0], 5000), 0);
	WENT({ "a", "a.0", 5000 }, { "s1:5", "box1", 5000 },
	     { "box1", "box1.gpu0", 5000 });
	CHECK_EQ(move(FABREX_OP_READ, host_key[0], 0, g[2], 6000), 0);
	WENT({ "box1.gpu2", "box1", 6000 }, { "box1", "s1:6", 6000 },
	     { "a.0", "a", 6000 });
	END();
}

/* A partition that reaches over several switches. */
static void test_long_partition(void)
{
	uint64_t near, far, last;

	CHECK(start());
	CHECK(give(A, BOX1(0), 0) && give(A, BOX2(0), 1) &&
	      give(A, BOX2(2), 2));
	near = region(A, 0);
	far = region(A, 1);
	last = region(A, 2);
	/* The ways of the two to s1 meet in s2. */
	CHECK_EQ(copy(last, 0, far, 10000), 0);
	WENT({ "box2.gpu2", "box2", 10000 }, { "box2", "s3:5", 10000 },
	     { "s3:8", "s2:8", 10000 }, { "s2:5", "box2", 10000 },
	     { "box2", "box2.gpu0", 10000 });
	CHECK_EQ(copy(near, 0, last, 500), 0);
	WENT({ "box1.gpu0", "box1", 500 }, { "box1", "s1:5", 500 },
	     { "s1:7", "s2:7", 500 }, { "s2:8", "s3:8", 500 },
	     { "s3:5", "box2", 500 }, { "box2", "box2.gpu2", 500 });
	/* Another host is reached from the port that it is bound to. */
	CHECK_EQ(copy(last, 3, host_key[3], 11), 0);
	WENT({ "box2.gpu2", "box2", 11 }, { "box2", "s3:5", 11 },
	     { "s3:8", "s2:8", 11 }, { "s2:7", "s1:7", 11 },
	     { "s1:7", "s2:7", 11 }, { "s2:8", "s3:8", 11 },
	     { "c.0", "c", 11 });
	END();
}

static void test_two_partitions(void)
{
	uint64_t own, other, near;

	CHECK(start());
	CHECK(give(A, BOX1(0), 0) && give(B, BOX1(1), 0) &&
	      give(C, BOX2(0), 0));
	own = region(A, 0);
	near = region(B, 0);
	other = region(C, 0);
	CHECK_EQ(copy(own, 2, other, SIZE), 0);
	WENT({ "box1.gpu0", "box1", SIZE }, { "box1", "s1:5", SIZE },
	     { "s1:7", "s2:7", SIZE }, { "s2:5", "box2", SIZE },
	     { "box2", "box2.gpu0", SIZE });
	CHECK_EQ(move(FABREX_OP_READ, own, 2, other, 77), 0);
	WENT({ "box2.gpu0", "box2", 77 }, { "box2", "s2:5", 77 },
	     { "s2:7", "s1:7", 77 }, { "s1:5", "box1", 77 },
	     { "box1", "box1.gpu0", 77 });
	/* By key, so by the switch, although both are behind one uplink. */
	CHECK_EQ(copy(own, 1, near, 900), 0);
	WENT({ "box1.gpu0", "box1", 900 }, { "box1", "s1:5", 900 },
	     { "s1:5", "box1", 900 }, { "box1", "box1.gpu1", 900 });
	END();
}

/* An endpoint in the partition of the host's other port: over its root. */
static void test_root_complex(void)
{
	uint64_t own, other;

	CHECK(start());
	CHECK(give(A, BOX1(0), 0) && give(B, BOX1(2), 1));
	own = region(A, 0);
	other = region(A, 1);
	CHECK_EQ(copy(own, 0, other, 2048), 0);
	WENT({ "box1.gpu0", "box1", 2048 }, { "box1", "s1:5", 2048 },
	     { "a.0", "a", 2048 }, { "a", "a.1", 2048 },
	     { "s1:6", "box1", 2048 }, { "box1", "box1.gpu2", 2048 });
	CHECK_EQ(move(FABREX_OP_READ, own, 0, other, 30), 0);
	WENT({ "box1.gpu2", "box1", 30 }, { "box1", "s1:6", 30 },
	     { "a.1", "a", 30 }, { "a", "a.0", 30 },
	     { "s1:5", "box1", 30 }, { "box1", "box1.gpu0", 30 });
	END();
}

/* ---- Operations ---- */

/* A region over two endpoints: each byte on the links of the one it is of. */
static void test_mixed_region(void)
{
	uint64_t both;

	CHECK(start());
	CHECK(give(A, BOX1(0), 0) && give(A, BOX1(2), 1));
	both = rig_mr(A, BAR + SIZE - 20000, 30000, RIG_ALL, PD, NULL);
	CHECK_EQ(copy(both, 2, host_key[2], 30000), 0);
	WENT({ "box1.gpu0", "box1", 20000 }, { "box1", "s1:5", 20000 },
	     { "box1.gpu2", "box1", 10000 }, { "box1", "s1:6", 10000 },
	     { "s1:7", "s2:7", 30000 }, { "b.0", "b", 30000 });
	END();
}

static void test_messages(void)
{
	struct fabrex_sqe s = {
		.opcode = FABREX_OP_SEND, .peer = 2, .length = 24,
		.flags = FABREX_SQE_INLINE,
	};

	CHECK(start());
	CHECK(give(A, BOX1(0), 0) && give(C, BOX2(0), 0));
	s.dest_key = qb.key;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	WENT({ "a", "a.0", 24 }, { "s1:7", "s2:7", 24 }, { "b.0", "b", 24 });
	s = (struct fabrex_sqe){ .opcode = FABREX_OP_SEND, .peer = 2,
				 .length = 200, .dest_key = qb.key,
				 .lkey = region(A, 0) };
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	WENT({ "box1.gpu0", "box1", 200 }, { "box1", "s1:5", 200 },
	     { "s1:7", "s2:7", 200 }, { "b.0", "b", 200 });
	s.opcode = FABREX_OP_WRITE_IMM;
	s.rkey = region(C, 0);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	WENT({ "box1.gpu0", "box1", 200 }, { "box1", "s1:5", 200 },
	     { "s1:7", "s2:7", 200 }, { "s2:5", "box2", 200 },
	     { "box2", "box2.gpu0", 200 });
	END();
}

static void test_atomics(void)
{
	struct fabrex_sqe s = {
		.opcode = FABREX_OP_FETCH_ADD, .peer = 2, .operand = 1,
	};

	CHECK(start());
	CHECK(give(C, BOX2(0), 0));
	s.lkey = host_key[0];
	s.rkey = region(C, 0);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	WENT({ "a", "a.0", 8 }, { "s1:7", "s2:7", 8 }, { "s2:5", "box2", 8 },
	     { "box2", "box2.gpu0", 8 }, { "box2.gpu0", "box2", 8 },
	     { "box2", "s2:5", 8 }, { "s2:7", "s1:7", 8 }, { "a.0", "a", 8 });
	END();
}

static void test_window(void)
{
	struct draco_window_create w = {
		.slot = 0, .nslots = 1, .peer = 2, .length = 65536,
		.access = DRACO_ACCESS_REMOTE_READ | DRACO_ACCESS_REMOTE_WRITE,
	};
	unsigned char buf[100] = { 0 };

	CHECK(start());
	CHECK(give(C, BOX2(0), 0));
	w.rkey = region(C, 0);
	memcpy(rig_data(A), &w, sizeof(w));
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_WINDOW_CREATE, 0, sizeof(w)),
			   NULL), 0);
	port_function_ops.bar_write(A->port, DRACO_BAR_WINDOW, 12, buf, 100);
	WENT({ "a", "a.0", 100 }, { "s1:7", "s2:7", 100 },
	     { "s2:5", "box2", 100 }, { "box2", "box2.gpu0", 100 });
	port_function_ops.bar_read(A->port, DRACO_BAR_WINDOW, 40, buf, 4);
	WENT({ "box2.gpu0", "box2", 4 }, { "box2", "s2:5", 4 },
	     { "s2:7", "s1:7", 4 }, { "a.0", "a", 4 });
	/* A fault moves nothing. */
	port_function_ops.bar_read(A->port, DRACO_BAR_WINDOW, 65536, buf, 4);
	WENT({ "a", "a.0", 0 });
	END();
}

static void test_refused_and_rerouted(void)
{
	CHECK(start());
	CHECK_EQ(copy(host_key[0], 2, 1, 64), FABREX_WC_RKEY);
	CHECK_EQ(copy(host_key[0], 2, host_key[2], 0), FABREX_WC_OK);
	WENT({ "a", "a.0", 0 });
	/* Counters outlive resets of ports and of links. */
	CHECK_EQ(copy(host_key[0], 2, host_key[2], 64), FABREX_WC_OK);
	fabric_link_break(&rig_fabric,
			  &rig_fabric.links[rig_fabric.first_link[0] + 6],
			  true);
	CHECK_EQ(copy(host_key[0], 2, host_key[2], 64),
		 FABREX_WC_UNREACHABLE);
	CHECK(rig_disable(C) && rig_enable(C));
	WENT({ "a", "a.0", 64 }, { "s1:7", "s2:7", 64 }, { "b.0", "b", 64 });
	END();
}

/* ---- GET_LINKS ---- */

static void test_pages(void)
{
	struct draco_link all[MAX], *one;
	struct draco_acmd c;
	struct draco_acpl cpl;
	size_t n, i = 0;

	CHECK(start());
	CHECK_EQ(copy(host_key[0], 3, host_key[3], 333), 0);
	n = read_links(all);
	one = rig_data(A);
	c = rig_cmd(DRACO_ADM_GET_LINKS, 0, sizeof(*one) + 63);
	do {
		CHECK_EQ(rig_admin(A, c, &cpl), 0);
		CHECK(cpl.result == 1 && i < n &&
		      !memcmp(one, &all[i], sizeof(*one)));
		CHECK(!i || all[i].a > all[i - 1].a);
		CHECK(!one->id && !one->__rsvd0 && !one->__rsvd[0] &&
		      !one->__rsvd[3]);
		i++;
		c.arg[0] = cpl.id;
	} while (cpl.id);
	CHECK_EQ(i, n);
	c.arg[0] = UINT64_MAX;
	CHECK_EQ(rig_admin(A, c, &cpl), 0);
	CHECK(!cpl.result && !cpl.id);
	/* Every port may, managers or not. */
	CHECK_EQ(rig_admin(C, rig_cmd(DRACO_ADM_GET_LINKS, 0, 4096), &cpl), 0);
	CHECK_EQ(cpl.result, n);
	c = rig_cmd(DRACO_ADM_GET_LINKS, 0, sizeof(*one) - 1);
	CHECK_EQ(rig_admin(A, c, &cpl), DRACO_SC_BAD_FIELD);
	c = rig_cmd(DRACO_ADM_GET_LINKS, 0, 4096);
	c.flags = 2;
	CHECK_EQ(rig_admin(A, c, &cpl), DRACO_SC_BAD_FIELD);
	c = rig_cmd(DRACO_ADM_IDENTIFY, 0, sizeof(struct draco_identify));
	CHECK_EQ(rig_admin(A, c, NULL), 0);
	CHECK(((struct draco_identify *)rig_data(A))->flags & DRACO_IDF_LINKS);
	END();
}

static const struct tap_test tests[] = {
	{ "host memory: links of the ports and between switches", test_hosts },
	{ "one partition: in the box, over two uplinks, to the host",
	  test_one_partition },
	{ "one partition over three switches", test_long_partition },
	{ "partitions of different ports", test_two_partitions },
	{ "over the root complex", test_root_complex },
	{ "a region over two endpoints", test_mixed_region },
	{ "messages", test_messages },
	{ "atomics", test_atomics },
	{ "windows", test_window },
	{ "what is refused counts nothing; a reset clears nothing",
	  test_refused_and_rerouted },
	{ "GET_LINKS", test_pages },
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
