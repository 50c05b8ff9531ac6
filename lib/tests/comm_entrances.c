// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of which ports two ranks use, where they have different numbers of them.
 * Over the fake fabric, with the other rank's card and board made by hand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/link/mailbox.h"
#include "fake.h"
#include "test.h"

#define OTHER	1u	/* the rank that this one, 0, connects to */

struct meeting {
	struct fabrex_comm comm;
	struct links links;
	struct mailbox box;
	struct link_card cards[2];
	struct mailbox_peer peers[2];
	uint64_t failed;
};

/* Rank 0, with one port, and the cards of both; the other has @nports. */
static struct meeting *meeting_make(uint32_t nports)
{
	struct meeting *m = calloc(1, sizeof(*m));
	struct fabrex_port *b;

	CHECK(m);
	m->comm.size = 2;
	m->comm.nports = 1;
	m->comm.failed = &m->failed;
	m->comm.links = &m->links;
	m->links.mailbox = &m->box;
	m->box.cards = m->cards;
	m->box.peers = m->peers;
	m->box.layout.board = MAILBOX_LINE;
	m->box.base = calloc(1, MAILBOX_LINE + 2 * BOARD_BYTES);
	CHECK(m->box.base);
	m->links.alarm = (const uint64_t *)(const void *)m->box.base;
	CHECK_EQ(fabrex_open("a.0", &m->comm.port), 0);
	m->comm.ports[0] = m->comm.port;
	m->cards[0].nports = 1;
	m->cards[0].host = 1;
	m->cards[0].entrances[0].rkey = 1;
	fxi_port_identify(m->comm.port, &m->cards[0].entrances[0].port);
	CHECK_EQ(fabrex_open("b.0", &b), 0);
	m->cards[OTHER].nports = nports;
	m->cards[OTHER].entrances[nports - 1].rkey = 3;
	fxi_port_identify(b, &m->cards[OTHER].entrances[nports - 1].port);
	CHECK_EQ(fabrex_close(b), 0);
	return m;
}

static void meeting_free(struct meeting *m)
{
	CHECK_EQ(fabrex_close(m->comm.port), 0);
	free(m->box.base);
	free(m);
}

static void say(struct meeting *m, uint64_t word)
{
	memcpy(m->box.base + mailbox_board(&m->box.layout, OTHER) +
	       BOARD_AT_ENTRANCE, &word, sizeof(word));
}

/* What a rank reads is registered where that rank has said it comes in. */
TEST(entrances_that_are_read)
{
	struct meeting *m = meeting_make(1);
	struct fabrex_comm *comm = &m->comm;

	CHECK(fxi_link_port_for(comm, OTHER) == comm->port);
	/* A port of the host that the rank only receives through. */
	m->box.nothers = 1;
	m->box.others[0].port = comm->port;
	CHECK(!fxi_link_port_for(comm, OTHER));
	say(m, 1);
	CHECK(fxi_link_port_for(comm, OTHER) == comm->port);
	CHECK_EQ(fxi_entrances_used(comm, OTHER), 0);
	say(m, 2);
	CHECK(!fxi_link_port_for(comm, OTHER));
	CHECK_EQ(fxi_entrances_used(comm, OTHER), 1);
	/* Nothing that can be. */
	say(m, 3);
	CHECK(!fxi_link_port_for(comm, OTHER));
	CHECK_EQ(fxi_entrances_used(comm, OTHER), 0);
	meeting_free(m);
}

static int choose(struct meeting *m)
{
	return fxi_entrances_choose(&m->comm, OTHER, 0, 0);
}

/* The first entrance of a rank that has several may be for another host. */
TEST(entrances_that_are_not_seen)
{
	struct meeting *m = meeting_make(2);

	/* Its first port is on another bridge. */
	m->cards[OTHER].entrances[0] = (struct link_entrance){
		.rkey = 2, .port = { .peer = 2, .name = 2 },
	};
	CHECK_EQ(choose(m), 0);
	CHECK_EQ(m->peers[OTHER].entrance, 1);
	CHECK_EQ(m->peers[OTHER].to.rkey, 3);
	fake_link(1, false);
	fake_link(2, false);
	CHECK_EQ(choose(m), 0);
	CHECK_EQ(m->peers[OTHER].entrance, 1);
	m->cards[OTHER].entrances[1].port.name++;
	CHECK_EQ(choose(m), -ENETUNREACH);
	CHECK(strstr(fabrex_strerror_last(), "reaches rank 1 "));
	fake_link(1, true);
	fake_link(2, true);
	meeting_free(m);
}

/* With one port each there is no other: whether it is there will show. */
TEST(entrances_without_a_choice)
{
	struct meeting *m = meeting_make(1);

	fake_link(1, false);
	m->cards[OTHER].entrances[0].port.name++;
	CHECK_EQ(choose(m), 0);
	CHECK_EQ(m->peers[OTHER].to.rkey, 3);
	fake_link(1, true);
	meeting_free(m);
}

/* A link that is not up is not waited for once some rank has given up. */
TEST(entrances_after_an_alarm)
{
	struct meeting *m = meeting_make(2);
	uint32_t peer;

	m->cards[OTHER].entrances[0] = m->cards[OTHER].entrances[1];
	m->cards[OTHER].entrances[0].port.name++;
	m->cards[OTHER].entrances[1].port.name++;
	for (peer = 1; peer < FAKE_PORTS; peer++)
		fake_link(peer, false);
	m->box.base[0] = 1;
	CHECK_EQ(fxi_entrances_choose(&m->comm, OTHER, UINT64_MAX, UINT64_MAX),
		 -ENETUNREACH);
	CHECK(strstr(fabrex_strerror_last(), "a rank has given up"));
	for (peer = 1; peer < FAKE_PORTS; peer++)
		fake_link(peer, true);
	meeting_free(m);
}
