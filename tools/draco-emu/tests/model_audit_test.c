// SPDX-License-Identifier: GPL-2.0-only
/*
 * The audit log: that it sees a late access, also one that nobody would expect
 * of the engine, and that the engine as it is makes none.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "audit.h"
#include "control.h"
#include "late.h"
#include "rig/pair.h"
#include "tap.h"

static struct audit_report rep;

static void look(void)
{
	audit_read(&rig_fabric.audit, &rep);
}

static bool audit(bool on)
{
	return !audit_switch(&rig_fabric, on);
}

static unsigned int invalidate(struct rig_guest *g, uint32_t mr)
{
	return rig_admin(g, rig_cmd(DRACO_ADM_MR_INVALIDATE, mr, 0), NULL);
}

static unsigned int destroy(struct rig_guest *g, uint32_t mr)
{
	return rig_admin(g, rig_cmd(DRACO_ADM_MR_DESTROY, mr, 0), NULL);
}

/* @n pages, @step bytes apart, for a region that has none. */
static unsigned int grant(struct rig_guest *g, uint32_t mr, uint64_t addr,
			  uint64_t step, uint32_t n)
{
	uint64_t *pages = rig_data(g);

	for (uint32_t i = 0; i < n; i++)
		pages[i] = addr + i * step;
	return rig_admin(g, rig_cmd(DRACO_ADM_MR_PAGES, mr, n * 8), NULL);
}

static int write_some(uint64_t len)
{
	struct fabrex_sqe s = entry(FABREX_OP_WRITE);

	s.length = len;
	return rig_do(&qa, &s, NULL);
}

/* ---- What is recorded ---- */

static void test_accesses(void)
{
	struct draco_window_create w = {
		.slot = 0, .nslots = 1, .peer = 1, .rkey = 0, .length = 4096,
		.access = DRACO_ACCESS_REMOTE_READ,
	};
	struct fabrex_sqe s;
	uint32_t v;

	BEGIN();
	CHECK_EQ(write_some(4096), 0);
	look();
	CHECK(!rep.on && !rep.accesses);
	CHECK(audit(true));
	CHECK_EQ(write_some(LEN), 0);
	look();
	CHECK(rep.on);
	CHECK_EQ(rep.accesses, 2);		/* one at each end */
	CHECK_EQ(rep.bytes, 2 * LEN);
	s = entry(FABREX_OP_FETCH_ADD);
	s.length = 1;
	CHECK_EQ(rig_do(&qa, &s, NULL), 0);
	s = entry(FABREX_OP_SEND);
	CHECK_EQ(rig_do(&qa, &s, NULL), 0);
	look();
	CHECK_EQ(rep.accesses, 5);
	CHECK_EQ(rep.bytes, 2 * LEN + 8 + 8 + 100);
	w.rkey = rkey;
	memcpy(rig_data(A), &w, sizeof(w));
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_WINDOW_CREATE, 0, sizeof(w)),
			   NULL), 0);
	port_function_ops.bar_read(A->port, DRACO_BAR_WINDOW, 4, &v, 4);
	look();
	CHECK_EQ(rep.accesses, 6);
	CHECK(audit(false));
	CHECK_EQ(write_some(LEN), 0);
	look();
	CHECK(!rep.on && rep.accesses == 6);
	CHECK_EQ(rep.late + rep.dropped + rep.revocations, 0);
	END();
}

/* Only what no other region of the port names becomes unreachable. */
static void test_ranges(void)
{
	uint32_t all, half;

	BEGIN();
	rig_mr(B, DST, LEN, RIG_ALL, PD, &all);
	rig_mr(B, DST + 100, LEN / 2, RIG_ALL, PD, &half);
	CHECK(audit(true));
	CHECK_EQ(invalidate(B, all), 0);	/* rmr still names it */
	look();
	CHECK_EQ(rep.revocations, 1);
	CHECK_EQ(rep.ranges, 0);
	CHECK_EQ(destroy(B, rmr), 0);		/* a hole for the half */
	look();
	CHECK_EQ(rep.revocations, 2);
	CHECK_EQ(rep.ranges, 2);
	CHECK_EQ(destroy(B, half), 0);
	look();
	CHECK_EQ(rep.ranges, 3);
	CHECK_EQ(destroy(B, all), 0);		/* had no pages any more */
	look();
	CHECK_EQ(rep.revocations, 3);
	CHECK_EQ(rep.dropped, 0);
	END();
}

/* ---- Late accesses ---- */

static void test_access_across_revocation(void)
{
	struct audit_access x;

	BEGIN();
	CHECK(audit(true));
	audit_begin(&x, B->port, DST + 4000, 1, true);
	audit_end(&x);
	audit_begin(&x, B->port, DST + 4000, 8, true);
	CHECK_EQ(invalidate(B, rmr), 0);
	audit_end(&x);
	look();
	CHECK_EQ(rep.late, 1);
	CHECK(!strcmp(rep.details[0].port, "b.0"));
	CHECK_EQ(rep.details[0].addr, DST + 4000);
	CHECK(rep.details[0].end_ns > rep.details[0].revoked_ns &&
	      rep.details[0].start_ns < rep.details[0].revoked_ns);
	/* Its neighbours, and the same address of another port. */
	audit_begin(&x, B->port, DST - 64, 64, false);
	audit_end(&x);
	audit_begin(&x, B->port, DST + LEN, 64, false);
	audit_end(&x);
	audit_begin(&x, A->port, DST, 64, true);
	audit_end(&x);
	look();
	CHECK_EQ(rep.late, 1);
	audit_begin(&x, B->port, DST - 63, 64, false);
	audit_end(&x);
	look();
	CHECK_EQ(rep.late, 2);
	CHECK_EQ(rep.ndetails, 2);
	END();
}

/* Revoked and granted again while an access is under way: late all the same. */
static void test_granted_again(void)
{
	struct audit_access x, y;

	BEGIN();
	CHECK(audit(true));
	audit_begin(&x, B->port, DST + LEN - 8, 8, true);
	CHECK_EQ(invalidate(B, rmr), 0);
	audit_begin(&y, B->port, DST, 8, true);
	CHECK_EQ(grant(B, rmr, DST, 4096, LEN / 4096), 0);
	audit_end(&x);
	look();
	CHECK_EQ(rep.late, 1);
	audit_end(&y);
	look();
	CHECK_EQ(rep.late, 2);
	audit_begin(&x, B->port, DST, LEN, true);
	audit_end(&x);
	CHECK_EQ(write_some(LEN), 0);
	look();
	CHECK_EQ(rep.late, 2);
	CHECK_EQ(rep.dropped, 0);
	END();
}

static bool control_ok(const char *line, int64_t *late)
{
	struct json_object *r = control_execute(&rig_fabric, line), *v;
	bool good = json_object_object_get_ex(r, "ok", &v) &&
		    json_object_get_boolean(v);

	if (late && json_object_object_get_ex(r, "late", &v))
		*late = json_object_get_int64(v);
	json_object_put(r);
	return good;
}

#define ARM	"{\"cmd\":\"fault\",\"kind\":\"late-access\",\"port\":\"a.0\"}"
#define REPORT	"{\"cmd\":\"audit\",\"action\":\"report\"}"

/* The armed access writes once more what has been overwritten meanwhile. */
static bool came(void)
{
	for (int i = 0; i < RIG_HUNG && B->mem[DST] == 0x77; i++)
		usleep(1000);
	usleep(LATE_MS * 1000);			/* and ends */
	return B->mem[DST] != 0x77;
}

/* Hardware that does it for real, found by the verbs that a lab has. */
static void test_injected(void)
{
	int64_t late = -1;

	BEGIN();
	CHECK(control_ok("{\"cmd\":\"audit\",\"action\":\"on\"}", &late));
	CHECK_EQ(late, 0);
	CHECK(control_ok(ARM, NULL));
	CHECK_EQ(write_some(4096), 0);
	memset(B->mem + DST, 0x77, 4096);
	CHECK(came());
	CHECK(control_ok(REPORT, &late));
	CHECK_EQ(late, 0);			/* the region was there */
	CHECK(control_ok(ARM, NULL));
	CHECK_EQ(write_some(4096), 0);
	CHECK_EQ(invalidate(B, rmr), 0);
	memset(B->mem + DST, 0x77, 4096);
	CHECK(came());
	CHECK(control_ok(REPORT, &late));
	CHECK_EQ(late, 1);
	look();
	CHECK(rep.details[0].write);
	CHECK_EQ(rep.details[0].addr, DST);
	CHECK(control_ok("{\"cmd\":\"audit\",\"action\":\"off\"}", &late));
	CHECK_EQ(late, 1);
	CHECK(!control_ok("{\"cmd\":\"audit\"}", NULL));
	CHECK(!control_ok("{\"cmd\":\"audit\",\"action\":\"maybe\"}", NULL));
	END();
}

static void test_port_stopped(void)
{
	struct audit_access x;

	BEGIN();
	CHECK(audit(true));
	CHECK(rig_disable(B));
	look();
	CHECK_EQ(rep.revocations, 1);
	CHECK_EQ(rep.ranges, 1);
	audit_begin(&x, B->port, DST + 5, 1, false);
	audit_end(&x);
	look();
	CHECK_EQ(rep.late, 1);
	END();
}

/* ---- The engine as it is ---- */

static void *invalidate_often(void *arg)
{
	for (int i = 0; i < 300; i++) {
		usleep(i % 3 * 100);
		if (invalidate(B, rmr) ||
		    grant(B, rmr, DST, 4096, LEN / 4096))
			return NULL;
	}
	return arg;
}

static void test_storm(void)
{
	struct fabrex_sqe s;
	unsigned int good = 0;
	pthread_t t;
	void *ok;

	BEGIN();
	CHECK(audit(true));
	pthread_create(&t, NULL, invalidate_often, &ok);
	for (int i = 0; i < 3000; i++) {
		s = entry(i % 4 == 3 ? FABREX_OP_FETCH_ADD : i % 4 == 2 ?
			  FABREX_OP_READ : FABREX_OP_WRITE);
		s.length = s.opcode == FABREX_OP_FETCH_ADD ? 1 : LEN;
		good += rig_do(&qa, &s, NULL) == FABREX_WC_OK;
	}
	pthread_join(t, &ok);
	CHECK(ok);
	look();
	CHECK(good > 100);
	CHECK(rep.accesses >= 2 * good);
	CHECK_EQ(rep.revocations, 300);
	CHECK_EQ(rep.late, 0);
	CHECK_EQ(rep.dropped, 0);
	END();
}

/* ---- Bounds ---- */

#define PAGES	8192u

static uint32_t scattered(uint64_t addr, uint32_t npages)
{
	struct draco_mr_create *c = rig_data(B);
	struct draco_acpl cpl;

	memset(c, 0, sizeof(*c));
	c->length = npages * 4096ull;
	c->page_shift = 12;
	c->npages = npages;
	if (rig_admin(B, rig_cmd(DRACO_ADM_MR_CREATE, 0, sizeof(*c)), &cpl) ||
	    grant(B, cpl.id, addr, 8192, npages))
		return ~0u;
	return cpl.id;
}

/* What had to be forgotten counts; what nobody could ask for does not. */
static void test_bounds(void)
{
	struct audit_access x;
	uint32_t mr, rounds = AUDIT_CLOSED / PAGES + 1;

	BEGIN();
	CHECK(audit(true));
	mr = scattered(1ull << 40, PAGES);
	CHECK(mr != ~0u);
	for (uint32_t i = 0; i < rounds; i++) {
		CHECK_EQ(invalidate(B, mr), 0);
		CHECK_EQ(grant(B, mr, 1ull << 40, 8192, PAGES), 0);
	}
	look();
	CHECK_EQ(rep.ranges, rounds * PAGES);
	CHECK_EQ(rep.dropped, 0);
	audit_begin(&x, B->port, 0, 1, false);
	for (uint32_t i = 0; i < rounds; i++) {
		CHECK_EQ(invalidate(B, mr), 0);
		CHECK_EQ(grant(B, mr, 1ull << 40, 8192, PAGES), 0);
	}
	audit_end(&x);
	look();
	CHECK(rep.dropped > 0);
	CHECK(audit(true));			/* forgets */
	CHECK_EQ(destroy(B, mr), 0);
	for (uint32_t i = 1; i <= AUDIT_RANGES / PAGES; i++) {
		mr = scattered((i + 1ull) << 40, PAGES);
		CHECK(mr != ~0u);
		CHECK_EQ(destroy(B, mr), 0);
	}
	look();
	CHECK_EQ(rep.dropped, 1);		/* the last did not fit */
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(accesses), T(ranges), T(access_across_revocation), T(granted_again),
	T(injected), T(port_stopped), T(storm), T(bounds),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
