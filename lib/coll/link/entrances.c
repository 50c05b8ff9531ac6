// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Entrances: the ports through which others get to this rank's mailbox. The
 * first is the rank's own port. A host may have ports that do not see each
 * other, as where every switch has one of each host and no link joins the
 * switches: there the mailbox is registered at those other ports, too, and a
 * rank uses the entrance that its own port sees. What a rank sends, it posts at
 * its own port in any case. Called by mailbox.c and bell.c.
 */
#include <string.h>

#include "base/debug.h"
#include "coll/link/mailbox.h"

#define BELLS	64u	/* unheard at a time: bell.c */
#define TAKEN	16
#define RIGHTS	(FABREX_MR_LOCAL_WRITE | FABREX_MR_REMOTE_READ | \
		 FABREX_MR_REMOTE_WRITE)

/* ---- of this rank ------------------------------------------------------ */

static void entrance_close(struct mailbox_entrance *e)
{
	fabrex_queue_destroy(e->queue);
	fabrex_mr_deregister(e->mr);
	fabrex_close(e->port);
	memset(e, 0, sizeof(*e));
}

/* For bells: what comes without ends no sleep, but those have a limit. */
static void queue_make(struct fabrex_comm *comm, struct mailbox_entrance *e)
{
	const struct fabrex_queue_attr attr = {
		.sq_entries = FABREX_SQ_MIN, .rq_entries = BELLS,
		.cell_size = FABREX_CELL_MIN, .flags = FABREX_QUEUE_EVENTFD,
	};

	if (!fxi_link_can_sleep(comm) ||
	    fabrex_queue_create(e->port, &attr, sizeof(attr), &e->queue))
		e->queue = NULL;
}

static int entrance_make(struct fabrex_comm *comm, struct mailbox_entrance *e)
{
	struct mailbox *box = comm->links->mailbox;
	int ret = fabrex_mr_register(e->port, box->base, box->layout.total,
				     RIGHTS, &e->mr);

	if (ret)
		e->mr = NULL;
	else
		queue_make(comm, e);
	return ret;
}

static void entrance_put(const struct mailbox_entrance *e,
			 struct link_entrance *to)
{
	struct fabrex_remote remote;

	fabrex_mr_remote(e->mr, &remote);
	to->rkey = remote.rkey;
	to->peer = remote.peer;
	to->generation = remote.generation;
	if (e->queue)
		to->bell = fabrex_queue_key(e->queue);
}

void fxi_entrances_open(struct fabrex_comm *comm, struct link_card *card)
{
	struct mailbox *box = comm->links->mailbox;
	struct fabrex_port *ports[LINK_ENTRANCES - 1];
	uint32_t i, n = fxi_unseen_open(comm->port, ports, LINK_ENTRANCES - 1);

	for (i = 0; i < n; i++) {
		struct mailbox_entrance *e = &box->others[box->nothers];
		const char *name = ports[i]->attr.name;

		e->port = ports[i];
		if (entrance_make(comm, e)) {
			fxi_debug(FXI_DEBUG_PATH, comm->rank,
				  "port %s is not an entrance for other ranks: %s",
				  name, fabrex_strerror_last());
			entrance_close(e);
			continue;
		}
		entrance_put(e, &card->entrances[++box->nothers]);
		fxi_debug(FXI_DEBUG_PATH, comm->rank,
			  "port %s is an entrance for ranks whose ports do not see port %s",
			  name, comm->port->attr.name);
	}
}

void fxi_entrances_close(struct fabrex_comm *comm)
{
	struct mailbox *box = comm->links->mailbox;

	while (box->nothers)
		entrance_close(&box->others[--box->nothers]);
}

static void hear(struct fabrex_queue *queue)
{
	struct fabrex_wc wc[TAKEN];
	int n;

	while ((n = fabrex_poll(queue, wc, TAKEN)) > 0)
		fabrex_recv_done(queue, (uint32_t)n);
}

/*
 * Armed before the last look: what comes in between signals. After a first one,
 * as a queue that has something when it is armed signals at once.
 */
void fxi_entrances_arm(struct fabrex_comm *comm)
{
	struct mailbox *box = comm->links->mailbox;
	uint32_t i;

	for (i = 0; i < box->nothers; i++) {
		struct fabrex_queue *queue = box->others[i].queue;

		if (!queue)
			continue;
		hear(queue);
		fabrex_arm(queue);
		hear(queue);
	}
}

/* ---- of other ranks ---------------------------------------------------- */

/* If none is seen, it is the first: a port that is down may come back. */
void fxi_entrances_choose(struct fabrex_comm *comm, uint32_t rank)
{
	const struct link_card *card = &comm->links->mailbox->cards[rank];
	struct mailbox_peer *peer = &comm->links->mailbox->peers[rank];
	uint32_t i;

	peer->to = card->entrances[0];
	if (!card->entrances[1].rkey || fxi_sees_peer(comm->port, peer->to.peer))
		return;
	for (i = 1; i < LINK_ENTRANCES; i++) {
		const struct link_entrance *e = &card->entrances[i];

		if (!e->rkey || e->peer >= comm->port->attr.max_peers ||
		    !fxi_sees_peer(comm->port, e->peer))
			continue;
		peer->to = *e;
		peer->detour = true;
		fxi_debug(FXI_DEBUG_PATH, comm->rank,
			  "rank %u is reached through another port of host %s, peer %u",
			  rank, card->name, e->peer);
		return;
	}
}

/* As that rank will find: what one port sees of another, that sees of it. */
uint32_t fxi_entrances_used(const struct fabrex_comm *comm, uint32_t rank)
{
	const struct mailbox *box = comm->links->mailbox;
	uint32_t i, from = box->cards[rank].entrances[0].peer;

	if (!box->nothers || fxi_sees_peer(comm->port, from))
		return 0;
	for (i = 0; i < box->nothers; i++)
		if (fxi_sees_peer(box->others[i].port, from))
			return 1 + i;
	return 0;
}

bool fxi_link_detours(const struct fabrex_comm *comm, uint32_t rank)
{
	return comm->links->mailbox->peers[rank].detour;
}
