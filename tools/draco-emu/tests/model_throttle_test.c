// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transfers at the rates of links, by a clock that tests move: how flows share
 * links, and what queues do while they wait.
 */
#include <math.h>
#include <string.h>

#include "rig/pair.h"
#include "tap.h"

/*
 * Hosts a to d, the first of which has two ports, at s1 and e at s2, whose
 * links are a quarter as fast as the others. Eight GPUs below s1: two uplinks,
 * each with two GPUs on the first and two on the second switch of the cascade.
 */
static const char fabric_text[] =
	"fabric = \"f\";\n"
	"link_gbps = 20.0; root_complex_gbps = 5.0;\n"
	"switches = ( { name = \"s1\"; ports = 12; },"
	"  { name = \"s2\"; ports = 4; speed = 8; width = 8; } );\n"
	"isls = ( { a = \"s1:12\"; b = \"s2:4\"; } );\n"
	"hosts = ( { name = \"a\"; manager = true;"
	"            ports = ( \"s1:1\", \"s1:2\" ); },\n"
	"  { name = \"b\"; ports = ( \"s1:3\" ); },"
	"  { name = \"c\"; ports = ( \"s1:4\" ); },"
	"  { name = \"d\"; ports = ( \"s1:5\" ); },"
	"  { name = \"e\"; ports = ( \"s2:1\" ); } );\n"
	"appliances = ( { name = \"box\"; kind = \"cascade\";"
	"  uplinks = ( \"s1:10\", \"s1:11\" );"
	"  endpoints = ( { class = \"gpu\"; count = 8; } ); } );\n";

enum { A0, A1, HB, HC, HD, HE };	/* ports */

#define FACTOR		0.01
#define FULL		0.2		/* bytes per ns of a fast link, then */
#define SECOND		1000000000ull

static struct fabric *f = &rig_fabric;
static struct topology *topo;
static _Atomic uint64_t now;

static uint64_t test_clock(void)
{
	return atomic_load(&now);
}

static bool begin(void)
{
	char err[512];

	topo = topology_parse(fabric_text, "f.topo", err, sizeof(err));
	if (!topo || fabric_init(f, topo))
		return false;
	atomic_store(&now, 5 * SECOND);
	f->throttle.clock = test_clock;
	throttle_set(f, FACTOR);
	return true;
}

static void end(void)
{
	fabric_free(f);
	topology_free(topo);
}

/* ---- Flows without queues ---- */

struct transfer {
	struct flow flow;
	struct place from, to;
	uint64_t size;			/* of an operation; 0: 1 MiB */
	uint64_t left, moved;
};

static struct place host(unsigned int port)
{
	return (struct place){ .port = f->ports[port] };
}

static struct place gpu(unsigned int ep, unsigned int port, unsigned int at)
{
	return (struct place){ .port = f->ports[port], .at = f->ports[at],
			       .ep = &f->eps[ep] };
}

static struct transfer between(struct place from, struct place to)
{
	return (struct transfer){ .from = from, .to = to };
}

static uint64_t ask(struct transfer *t)
{
	if (!t->left)
		t->left = t->size ? t->size : 1 << 20;
	if (!t->flow.bytes)
		throttle_reserve(f, &t->flow, &t->from, &t->to, t->left);
	return throttle_wait(f, &t->flow);
}

static void move(struct transfer *t)
{
	uint64_t n = t->left;

	throttle_take(&t->flow, &n);
	t->moved += n;
	t->left -= n;
}

/* For @ns, each as soon as it may; copying takes no time. */
static void run(struct transfer *t, unsigned int n, uint64_t ns)
{
	uint64_t stop = now + ns;

	for (unsigned int i = 0; i < n; i++)
		t[i].moved = 0;
	for (;;) {
		uint64_t least = UINT64_MAX;
		unsigned int who = 0;

		for (unsigned int i = 0; i < n; i++) {
			uint64_t wait = ask(&t[i]);

			if (wait < least) {
				least = wait;
				who = i;
			}
		}
		if (now + least > stop)
			break;
		now += least;
		move(&t[who]);
	}
	atomic_store(&now, stop);
}

/* Got this share of a fast link in that time, within a percent? */
static bool got(const struct transfer *t, double share, uint64_t ns)
{
	double want = share * FULL * (double)ns;
	bool ok = fabs((double)t->moved - want) < want / 100;

	if (!ok)
		printf("# %llu bytes, not %.0f\n",
		       (unsigned long long)t->moved, want);
	return ok;
}

static void test_narrowest(void)
{
	struct transfer t;

	CHECK(begin());
	t = between(host(A0), host(HB));
	run(&t, 1, SECOND);
	CHECK(got(&t, 1, SECOND));
	t = between(host(HE), host(A0));
	run(&t, 1, SECOND);
	CHECK(got(&t, 0.25, SECOND));
	/* Over the root complex of a. */
	t = between(gpu(0, A0, A0), gpu(4, A0, A1));
	run(&t, 1, SECOND);
	CHECK(got(&t, 0.25, SECOND));
	/* The same by a's key at its other port: no host is on the way. */
	t = between(gpu(0, A0, A0), gpu(4, A1, A1));
	run(&t, 1, SECOND);
	CHECK(got(&t, 1, SECOND));
	end();
}

static void test_shared(void)
{
	struct transfer t[4];

	CHECK(begin());
	/* Two to e over the link between the switches; the others are alone. */
	t[0] = between(host(HB), host(HE));
	t[1] = between(host(HC), host(HE));
	t[2] = between(host(HD), host(A0));
	t[3] = between(host(HE), host(HD));
	run(t, 4, SECOND);
	CHECK(got(&t[0], 0.125, SECOND) && got(&t[1], 0.125, SECOND));
	CHECK(got(&t[2], 1, SECOND) && got(&t[3], 0.25, SECOND));
	end();
}

static void test_directions(void)
{
	struct transfer t[2];

	CHECK(begin());
	t[0] = between(host(HB), host(HC));
	t[1] = between(host(HC), host(HB));
	run(t, 2, SECOND);
	CHECK(got(&t[0], 1, SECOND) && got(&t[1], 1, SECOND));
	end();
}

/* What a flow cannot use at its bottleneck is left to others elsewhere. */
static void test_max_min(void)
{
	struct transfer t[5];

	CHECK(begin());
	t[0] = between(host(HB), host(HC));
	t[1] = between(host(HB), host(HD));
	for (unsigned int i = 2; i < 5; i++)
		t[i] = between(host(A0 + i % 2), host(HC));
	run(t, 5, SECOND);
	CHECK(got(&t[0], 0.25, SECOND) && got(&t[1], 0.75, SECOND));
	end();
}

static void test_cascade(void)
{
	struct transfer t[2];

	CHECK(begin());
	/* Behind one uplink, 0 and 1 are on the first switch, 2 and 3 not. */
	t[0] = between(gpu(0, A0, A0), gpu(2, A0, A0));
	t[1] = between(gpu(1, A0, A0), gpu(3, A0, A0));
	run(t, 2, SECOND);
	CHECK(got(&t[0], 0.5, SECOND) && got(&t[1], 0.5, SECOND));
	t[0] = between(gpu(0, A0, A0), gpu(1, A0, A0));
	t[1] = between(gpu(2, A0, A0), gpu(3, A0, A0));
	run(t, 2, SECOND);
	CHECK(got(&t[0], 1, SECOND) && got(&t[1], 1, SECOND));
	end();
}

static void test_small_operations(void)
{
	struct transfer t[2];

	CHECK(begin());
	t[0] = between(host(HB), host(HC));
	t[0].size = 64;
	run(t, 1, SECOND);
	CHECK(got(&t[0], 1, SECOND));
	end();
}

/* A moment that the emulator is late costs nothing; a pause is none. */
static void test_late(void)
{
	struct transfer t = { 0 };
	uint64_t wait;

	CHECK(begin());
	t = between(host(HB), host(HC));
	for (int i = 0; i < 1000; i++) {
		wait = ask(&t);
		if (wait)
			now += wait + SECOND / 1000;
		move(&t);
	}
	while (!(wait = ask(&t)))
		move(&t);
	CHECK(fabs((double)t.moved - FULL * (double)(now - 5 * SECOND)) <
	      FULL * SECOND / 100);
	move(&t);
	now += SECOND;
	/* Later than that: it is not made up for. */
	t.moved = 0;
	while (!ask(&t))
		move(&t);
	CHECK(t.moved < FULL * SECOND / 20);
	now += wait + SECOND;
	move(&t);
	throttle_idle(&t.flow);
	now += SECOND / 100;
	t.left = 0;
	CHECK(ask(&t) > THROTTLE_PIECE_NS - 1000);
	end();
}

static void test_released(void)
{
	struct transfer t[3];
	uint64_t alone;

	CHECK(begin());
	for (unsigned int i = 0; i < 3; i++)
		t[i] = between(host(HB), host(HC));
	alone = ask(&t[0]);
	CHECK(ask(&t[1]) >= 2 * alone - 2);
	throttle_release(f, &t[0].flow);
	CHECK(!t[0].flow.bytes);
	/* Third in the line, and now second. */
	CHECK(ask(&t[2]) <= 2 * alone + 2);
	throttle_release(f, &t[1].flow);
	throttle_release(f, &t[2].flow);
	CHECK(ask(&t[0]) <= alone + 2);
	/* Nothing comes back of what has crossed. */
	now += SECOND;
	throttle_release(f, &t[0].flow);
	CHECK(ask(&t[0]) >= alone - 2);
	/* Another factor: who waits goes on, and has nothing to give back. */
	throttle_set(f, 2 * FACTOR);
	CHECK(!throttle_wait(f, &t[0].flow));
	CHECK(ask(&t[1]) > THROTTLE_SLACK_NS);
	throttle_release(f, &t[0].flow);
	CHECK(ask(&t[2]) > ask(&t[1]));
	throttle_set(f, 0);
	CHECK(!throttle_wait(f, &t[1].flow));
	end();
}

/* Centuries: who waits looks again before, and does not overflow. */
static void test_next_to_nothing(void)
{
	struct transfer t;
	uint64_t wait;

	CHECK(begin());
	throttle_set(f, 1e-300);
	t = between(host(HB), host(HC));
	wait = ask(&t);
	CHECK(wait > SECOND && wait <= 1000 * SECOND);
	end();
}

/* ---- Queues. 4 KiB take 151 ms of this clock ---- */

#define SLOW	1e-6

static struct fabrex_cqe cqe;

static bool pair(void)
{
	if (!pair_start())
		return false;
	atomic_store(&now, SECOND);
	rig_fabric.throttle.clock = test_clock;
	throttle_set(&rig_fabric, SLOW);
	return true;
}

static void post(const struct fabrex_sqe *s)
{
	rig_push(&qa, s);
	rig_ring(&qa);
}

/* Something waits for the link of @p, in its direction to the host. */
static void wait_reserved(const struct port *p)
{
	double free_ns;

	do {
		pthread_mutex_lock(&rig_fabric.throttle.lock);
		free_ns = p->link->traffic.out.free_ns;
		pthread_mutex_unlock(&rig_fabric.throttle.lock);
		usleep(100);
	} while (free_ns <= (double)now);
}

static void test_queue_waits(void)
{
	static const unsigned int ops[] = {
		FABREX_OP_WRITE, FABREX_OP_WRITE_IMM, FABREX_OP_SEND,
	};
	struct fabrex_sqe s;

	CHECK(pair());
	for (unsigned int i = 0; i < 3; i++) {
		s = entry(ops[i]);
		remember();
		post(&s);
		wait_reserved(B->port);
		s = entry(FABREX_OP_WRITE);
		s.length = 0;
		post(&s);
		CHECK(!rig_poll(&qa, &cqe, 20));
		CHECK(unchanged());
		now += SECOND;
		/* In order, although the second one has nothing to wait for. */
		CHECK(rig_poll(&qa, &cqe, RIG_HUNG));
		CHECK(cqe.opcode == ops[i] && !cqe.status && cqe.length);
		CHECK(rig_poll(&qa, &cqe, RIG_HUNG));
		CHECK(!cqe.status && !cqe.length);
	}
	/* The result of an atomic comes from the peer. */
	s = entry(FABREX_OP_FETCH_ADD);
	s.length = 0;
	throttle_set(&rig_fabric, SLOW / 1000);
	post(&s);
	wait_reserved(A->port);
	CHECK(!rig_poll(&qa, &cqe, 20));
	now += SECOND;
	CHECK(rig_poll(&qa, &cqe, RIG_HUNG));
	CHECK_EQ(cqe.status, FABREX_WC_OK);
	END();
}

/* In pieces of 4 KiB, none of which is there before its time. */
static void test_queue_rate(void)
{
	struct fabrex_sqe s;
	uint64_t start, took;

	CHECK(pair());
	s = entry(FABREX_OP_WRITE);
	s.length = LEN;
	start = now;
	post(&s);
	wait_reserved(B->port);
	while (!rig_poll(&qa, &cqe, 1))
		now += SECOND / 1000;
	took = now - start;
	CHECK_EQ(cqe.status, FABREX_WC_OK);
	CHECK(!memcmp(A->mem + SRC, B->mem + DST, LEN));
	CHECK((double)took > LEN / (27 * SLOW) - THROTTLE_SLACK_NS - 1e6);
	END();
}

static void test_revoked_while_waiting(void)
{
	struct fabrex_sqe s;

	CHECK(pair());
	s = entry(FABREX_OP_WRITE);
	s.length = LEN;
	post(&s);
	wait_reserved(B->port);
	now += SECOND;
	while (memcmp(A->mem + SRC, B->mem + DST, 4096))
		usleep(100);
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_INVALIDATE, rmr, 0),
			   NULL), 0);
	remember();
	now += SECOND;
	CHECK(rig_poll(&qa, &cqe, RIG_HUNG));
	CHECK_EQ(cqe.status, FABREX_WC_ABORTED);
	now += SECOND;
	CHECK(unchanged());
	END();
}

static bool link_is_free(struct port *p)
{
	double free_ns;

	pthread_mutex_lock(&rig_fabric.throttle.lock);
	free_ns = p->link->traffic.out.free_ns;
	pthread_mutex_unlock(&rig_fabric.throttle.lock);
	return free_ns <= (double)now;
}

static void test_destroyed_while_waiting(void)
{
	struct fabrex_sqe s;

	CHECK(pair());
	s = entry(FABREX_OP_WRITE);
	remember();
	post(&s);
	wait_reserved(B->port);
	CHECK_EQ(rig_queue_destroy(&qa), 0);
	CHECK(link_is_free(B->port));
	now += SECOND;
	CHECK_EQ(rig_queue_create(&qa), 0);
	s.length = 64;
	post(&s);
	wait_reserved(B->port);
	CHECK(rig_disable(A));
	CHECK(link_is_free(B->port));
	now += SECOND;
	CHECK(unchanged());
	END();
}

static void test_target_gone_while_waiting(void)
{
	struct fabrex_sqe s;

	CHECK(pair());
	s = entry(FABREX_OP_WRITE);
	remember();
	post(&s);
	wait_reserved(B->port);
	CHECK(rig_disable(B));
	now += SECOND;
	CHECK(rig_poll(&qa, &cqe, RIG_HUNG));
	CHECK(cqe.status != FABREX_WC_OK);
	CHECK(unchanged());
	END();
}

/* In the order of docs/draco.md, and before anything waits for a link. */
static void test_sends_checked_first(void)
{
	struct fabrex_sqe s;
	uint64_t nowhere;

	CHECK(pair());
	nowhere = rig_mr(A, RIG_MEM + 0x1000, 8192, RIG_ALL, PD, NULL);
	REFUSE(FABREX_OP_SEND, s.lkey = nowhere; s.dest_key ^= 1ull << 50,
	       FABREX_WC_BAD_QUEUE);
	REFUSE(FABREX_OP_SEND, s.lkey = nowhere; s.length = 257,
	       FABREX_WC_TOO_LONG);
	REFUSE(FABREX_OP_SEND, s.lkey = nowhere, FABREX_WC_LFAULT);
	REFUSE(FABREX_OP_SEND, s.length = 257, FABREX_WC_TOO_LONG);
	CHECK(link_is_free(B->port));
	/* What was refused has kept no cell. */
	throttle_set(&rig_fabric, 0);
	s = entry(FABREX_OP_SEND);
	for (unsigned int i = 0; i < 16; i++)
		CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	throttle_set(&rig_fabric, SLOW);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RNR);
	CHECK(link_is_free(B->port));
	END();
}

static const struct tap_test tests[] = {
	{ "a flow has the rate of its slowest link", test_narrowest },
	{ "flows over one link share it, others do not", test_shared },
	{ "directions are independent", test_directions },
	{ "what a flow cannot use is left to others", test_max_min },
	{ "inside a cascade", test_cascade },
	{ "small operations", test_small_operations },
	{ "an emulator that is late", test_late },
	{ "what is released is free again", test_released },
	{ "a factor that is next to nothing", test_next_to_nothing },
	{ "queues wait and keep their order", test_queue_waits },
	{ "a long operation", test_queue_rate },
	{ "revoked while it waits", test_revoked_while_waiting },
	{ "destroyed and disabled while it waits",
	  test_destroyed_while_waiting },
	{ "the target goes while it waits", test_target_gone_while_waiting },
	{ "messages are checked before they wait", test_sends_checked_first },
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
