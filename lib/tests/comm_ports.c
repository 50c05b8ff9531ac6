// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of how ranks recognize each other's ports: by fabric and name, as another
 * port may have the same number. Over the fake fabric.
 */
#include "coll/comm.h"
#include "fake.h"
#include "test.h"

TEST(comm_ports_are_recognized)
{
	struct fabrex_port *a, *b;
	struct port_id of_a, of_b, other;

	CHECK_EQ(fabrex_open("a.0", &a), 0);
	CHECK_EQ(fabrex_open("b.0", &b), 0);
	fxi_port_identify(a, &of_a);
	fxi_port_identify(b, &of_b);
	CHECK(of_a.name != of_b.name);
	CHECK_EQ(fxi_port_sight(a, &of_b, false), SIGHT_SAME);
	CHECK_EQ(fxi_port_sight(b, &of_a, false), SIGHT_SAME);
	/* One's own, if it is of this host; another host's may be called so. */
	CHECK_EQ(fxi_port_sight(a, &of_a, true), SIGHT_SAME);
	CHECK_EQ(fxi_port_sight(a, &of_a, false), SIGHT_OTHER);
	/* The same number on another bridge. */
	other = of_b;
	other.name++;
	CHECK_EQ(fxi_port_sight(a, &other, false), SIGHT_OTHER);
	other = of_a;
	other.name++;
	CHECK_EQ(fxi_port_sight(a, &other, true), SIGHT_OTHER);
	/* Since then it was reset. */
	other = of_b;
	other.generation++;
	CHECK_EQ(fxi_port_sight(a, &other, false), SIGHT_NAME);
	/* There is none, or it is down. */
	other.peer = a->attr.max_peers;
	CHECK_EQ(fxi_port_sight(a, &other, false), SIGHT_NONE);
	fake_link(of_b.peer, false);
	CHECK_EQ(fxi_port_sight(a, &of_b, false), SIGHT_DOWN);
	other = of_b;
	other.name++;
	CHECK_EQ(fxi_port_sight(a, &other, false), SIGHT_NONE);
	fake_link(of_b.peer, true);
	CHECK_EQ(fabrex_close(a), 0);
	CHECK_EQ(fabrex_close(b), 0);
}

TEST(comm_ports_that_are_alone)
{
	struct fabrex_port *a;
	uint32_t peer;

	CHECK_EQ(fabrex_open("a.0", &a), 0);
	CHECK(!fxi_port_is_alone(a));
	for (peer = 1; peer < FAKE_PORTS; peer++)
		fake_link(peer, false);
	CHECK(fxi_port_is_alone(a));
	fake_link(2, true);
	CHECK(!fxi_port_is_alone(a));
	fake_link(1, true);
	CHECK_EQ(fabrex_close(a), 0);
}
