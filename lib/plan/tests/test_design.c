// SPDX-License-Identifier: LGPL-2.1-or-later
/* Wirings of given parts: all of them, the best, and why. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "plan/design/cabling.h"
#include "plan/read.h"
#include "tests/tap.h"

static struct plan_parts parts(uint32_t switches, uint32_t boxes,
			       uint32_t uplinks, uint32_t host_ports)
{
	return (struct plan_parts){
		.switches = switches, .switch_ports = 6, .boxes = boxes,
		.uplinks = uplinks, .gpus = 8, .host_ports = host_ports,
		.link_gbps = 27, .mesh_gbps = 48, .root_complex_gbps = 27,
	};
}

static bool is(double x, double y)
{
	return fabs(x - y) < 1e-6;
}

/* The text, read again, has the bound that is told. */
static bool text_good(const struct plan_wiring *w, enum plan_collective c)
{
	struct plan_graph *g = plan_graph_parse(w->topology,
						strlen(w->topology), "design",
						NULL, NULL);
	struct plan_bound b;
	bool good = g && !plan_bound(g, c, 0, &b, NULL);

	if (good) {
		good = is(plan_ratio_value(b.busbw) / 1000, w->bound) &&
		       w->optimal <= w->bound + 1e-6 &&
		       w->ring <= w->bound + 1e-6;
		plan_bound_free(&b);
	}
	plan_graph_free(g);
	return good;
}

static void flat(void)
{
	struct plan_parts p = parts(2, 2, 4, 2);
	struct plan_error e = { 0 };
	struct plan_wiring *w;
	uint64_t considered;
	uint32_t n;

	ok(!plan_design(&p, PLAN_ALL_GATHER, 3, &w, &n, &considered, &e) &&
	   n == 3 && considered == 5, "flat boxes: 5 wirings %s", e.text);
	ok(is(w[0].bound, 202.5) && is(w[0].optimal, 202.5) &&
	   is(w[0].ring, 108), "the best is as good as 2s-2rp-split-flat");
	ok(text_good(&w[0], PLAN_ALL_GATHER) &&
	   text_good(&w[1], PLAN_ALL_GATHER) &&
	   text_good(&w[2], PLAN_ALL_GATHER), "their texts are read again");
	has(w[0].why, "server.0 at draco1 with uplinks 2 of columba1, 2 of columba2; server.1 at draco2 with uplinks 2 of columba1, 2 of columba2.");
	has(w[0].why, "columba2 (8 of the 16 GPUs) and the others is 4 uplinks of 27 GB/s, together 108 GB/s");
	has(w[0].why, "no rings more than 108; trees reach it: 202.5 GB/s; 4 rings have 108 GB/s");
	has(w[0].why, "root complex is not needed");
	has(w[0].why, "bound to 50.625 GB/s, rings to 27: the way between columba2 (8 of the 16 GPUs) and the others is 1 host port");
	has(w[0].why, "draco1:6, draco2:6 stay free.");
	has(w[1].why, "bound to 151.875 GB/s");
	plan_wirings_free(w, n);
}

static void cascade(void)
{
	struct plan_parts p = parts(1, 2, 2, 2);
	struct plan_wiring *w;
	uint64_t considered;
	uint32_t n;

	ok(!plan_design(&p, PLAN_ALL_REDUCE, 100, &w, &n, &considered, NULL) &&
	   n == 4 && considered == 4, "cascade boxes: 4 wirings, all told");
	ok(is(w[0].ring, 54) && is(w[1].ring, 54) && is(w[2].ring, 54) &&
	   is(w[3].ring, 27), "std is the worst of them");
	has(w[0].why, "server.0 at draco1 with uplinks 1 of columba1, 1 of columba2; server.1 at draco1 with uplinks 1 of columba1, 1 of columba2.");
	has(w[1].why, "server.0 at draco1 with uplinks 2 of columba1, 2 of columba2.");
	ok(text_good(&w[0], PLAN_ALL_REDUCE) && text_good(&w[3],
							  PLAN_ALL_REDUCE),
	   "their texts are read again");
	has(w[0].why, "No port stays free.");
	plan_wirings_free(w, n);
}

static void isls(void)
{
	struct plan_parts p = parts(2, 2, 2, 1);
	struct plan_error e = { 0 };
	struct plan_wiring *w;
	uint64_t considered;
	uint32_t n;

	p.switch_ports = 4;
	ok(plan_design(&p, PLAN_BROADCAST, 1, &w, &n, &considered, &e) ==
	   -EINVAL, "a switch without a host port needs a cable to one");
	has(e.text, "allow more cables between switches");
	p.isls = 1;
	ok(!plan_design(&p, PLAN_BROADCAST, 1, &w, &n, &considered, &e) &&
	   text_good(&w[0], PLAN_BROADCAST), "with which there is a wiring");
	has(w[0].topology, "{ a = \"draco1:4\"; b = \"draco2:4\"; }");
	has(w[0].why, "over another switch");
	plan_wirings_free(w, n);
}

/*
 * Renaming switches, host ports, boxes makes no new wiring: the number of
 * different ones for parts that can be counted by hand. One switch, one
 * cascade box, 2 host ports: both uplinks at one port, or one at each.
 */
static void counted(void)
{
	struct plan_parts p = parts(1, 1, 2, 2);
	enum cabling_level level;
	struct cabling *c;
	uint32_t n;

	ok(!cabling_list(&p, &c, &n, &level, NULL) && n == 2 &&
	   level == CABLING_ALL, "one box: 2 wirings");
	free(c);
	p = parts(3, 1, 2, 3);
	/* 1 port; 2 ports on one switch, or on two; 3 ports need 3 uplinks */
	ok(!cabling_list(&p, &c, &n, &level, NULL) && n == 3,
	   "three switches: 3");
	free(c);
	p = parts(2, 2, 2, 2);
	/*
	 * One port: all at it. Two on a switch: 4 with one box, each box 20 02
	 * 11: {20,02} {20,11} {11,11}; as many with them on two switches
	 */
	ok(!cabling_list(&p, &c, &n, &level, NULL) && n == 7,
	   "two boxes on two switches: 7");
	free(c);
	p = parts(3, 4, 4, 3);
	p.switch_ports = 8;
	p.isls = 3;
	c = NULL;
	ok(!cabling_list(&p, &c, &n, &level, NULL) && level > CABLING_ALL &&
	   n > 0, "of too many, those that are regular");
	free(c);
}
/* Six GPUs at four uplinks: 2, 1, 2, 1. */
static void slots(void)
{
	struct plan_parts p = parts(1, 5, 4, 1);
	struct plan_error e = { 0 };
	enum cabling_level level;
	struct plan_wiring *w;
	struct cabling *c = NULL;
	uint32_t n = 0;

	p.switch_ports = 64;
	p.gpus = 6;
	ok(!plan_design(&p, PLAN_ALL_GATHER, 1, &w, &n, NULL, &e) && n == 1 &&
	   text_good(&w[0], PLAN_ALL_GATHER), "30 GPUs take 30 slots %s",
	   e.text);
	if (n)
		plan_wirings_free(w, n);
	p.boxes = 10;
	p.host_ports = 2;
	/* 60 GPUs: 3 or 6 or none of each box at a port, as many 6 as none */
	ok(!cabling_list(&p, &c, &n, &level, &e) && n > 0,
	   "60 GPUs take 60 slots: %u wirings %s", n, e.text);
	free(c);
}

/* Parts whose wirings are far too many are refused soon. */
static void endless(void)
{
	struct plan_parts p = parts(6, 16, 4, 4);
	clock_t begin = clock();
	struct plan_error e = { 0 };
	struct plan_wiring *w = NULL;
	uint32_t n = 0;

	p.switch_ports = 13;
	p.isls = 8;
	p.gpus = 4;
	ok(plan_design(&p, PLAN_ALL_GATHER, 1, &w, &n, NULL, &e) == -E2BIG &&
	   !w, "too many wirings");
	has(e.text, "more than 3000 wirings are possible, or they take too long to be listed; give fewer switches");
	ok(clock() - begin < 60 * CLOCKS_PER_SEC, "in %.1f s",
	   (double)(clock() - begin) / CLOCKS_PER_SEC);
}

static void refused(struct plan_parts p, const char *what)
{
	struct plan_error e = { 0 };
	struct plan_wiring *w = NULL;
	uint32_t n = 0;

	ok(plan_design(&p, PLAN_ALL_GATHER, 1, &w, &n, NULL, &e) == -EINVAL &&
	   !w && !n, "refused");
	has(e.text, what);
}

static void refusals(void)
{
	struct plan_parts p = parts(1, 2, 4, 2);

	refused(p, "switches are 3 ports short: 8 uplinks (2 boxes with 4 each) and a host port take 9");
	refused(parts(2, 1, 3, 1), "boxes with 3 uplinks");
	refused(parts(9, 1, 2, 1), "9 switches: 1 to 6");
	refused(parts(2, 0, 2, 1), "0 boxes");
	p = parts(2, 2, 2, 1);
	p.gpus = 16;
	refused(p, "host ports are 1 short: each partition has 30 slots, 32 GPUs take 2");
	p = parts(1, 1, 2, 1);
	p.link_gbps = NAN;
	refused(p, "a capacity is out of range");
	p = parts(1, 2, 2, 2);
	p.root_complex_gbps = 0;
	p.gpus = 0;
	refused(p, "0 GPUs of a box");
}

int main(void)
{
	flat();
	cascade();
	isls();
	counted();
	slots();
	endless();
	refusals();
	return tap_done();
}
