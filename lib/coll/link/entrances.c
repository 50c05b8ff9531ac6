// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Entrances: the ports through which others get to this rank's mailbox. The
 * first are the rank's own ports, through which it also sends. With a single
 * one, a host may have further ports that it does not see, as where every switch
 * has one of each host and no link joins the switches: there the mailbox is
 * registered, too, and a rank uses the entrance that its own port sees. Called by
 * mailbox.c, device_slots.c and bell.c.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/debug.h"
#include "coll/link/mailbox.h"

#define BELLS	64u	/* unheard at a time: bell.c */
#define TAKEN	16
#define LOOK_MS	10	/* between looks at a link that may come up */
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

void fxi_entrance_put(const struct fabrex_mr *mr,
		      const struct fabrex_queue *bell,
		      struct link_entrance *to)
{
	to->rkey = fabrex_mr_key(mr);
	fxi_port_identify(mr->object.port, &to->port);
	if (bell)
		to->bell = fabrex_queue_key(bell);
}

void fxi_entrances_open(struct fabrex_comm *comm, struct link_card *card)
{
	struct mailbox *box = comm->links->mailbox;
	struct fabrex_port *ports[LINK_OTHERS];
	uint32_t i, n = fxi_unseen_open(comm->port, ports, LINK_OTHERS);

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
		fxi_entrance_put(e->mr, e->queue,
				 &card->entrances[++box->nothers]);
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

/* ---- between two ranks ------------------------------------------------- */

struct fabrex_port *fxi_entrance_port(const struct fabrex_comm *comm,
				      uint32_t i)
{
	return i < comm->nports ? comm->ports[i] :
	       comm->links->mailbox->others[i - comm->nports].port;
}

/* The best of both, by place: what leaves at @out arrives at @in. */
struct way {
	enum port_sight sight;
	uint32_t out, in;
};

static void consider(struct way *way, enum port_sight sight, uint32_t out,
		     uint32_t in)
{
	if (sight > way->sight)
		*way = (struct way){ .sight = sight, .out = out, .in = in };
}

/* From here to there. */
static struct way way_to(const struct fabrex_comm *comm, uint32_t rank)
{
	const struct link_card *card = mailbox_card(comm, rank);
	bool near = mailbox_is_near(comm, rank);
	struct way way = { .sight = SIGHT_NONE };
	uint32_t out, in;

	for (out = 0; out < comm->nports; out++)
		for (in = 0; in < LINK_ENTRANCES; in++)
			if (card->entrances[in].rkey)
				consider(&way, fxi_port_sight(
					comm->ports[out],
					&card->entrances[in].port, near),
					out, in);
	return way;
}

/*
 * From there to here, as that rank probably finds: what one port sees of another,
 * that sees of it.
 */
static struct way way_from(const struct fabrex_comm *comm, uint32_t rank)
{
	const struct link_card *card = mailbox_card(comm, rank);
	uint32_t n = comm->nports + comm->links->mailbox->nothers;
	bool near = mailbox_is_near(comm, rank);
	struct way way = { .sight = SIGHT_NONE };
	uint32_t out, in;

	for (out = 0; out < card->nports; out++)
		for (in = 0; in < n; in++)
			consider(&way, fxi_port_sight(
				fxi_entrance_port(comm, in),
				&card->entrances[out].port, near), out, in);
	return way;
}

static bool some_port_is_alone(const struct fabrex_comm *comm)
{
	uint32_t i;

	for (i = 0; i < comm->nports; i++)
		if (fxi_port_is_alone(comm->ports[i]))
			return true;
	return false;
}

/* Has some rank given up, or is done? What it is waited for may not come. */
static bool some_rank_is_over(struct fabrex_comm *comm, uint32_t rank)
{
	return __atomic_load_n(comm->links->alarm, __ATOMIC_RELAXED) ||
	       fxi_link_has_left(comm, rank);
}

static int apart(struct fabrex_comm *comm, uint32_t rank)
{
	const struct link_card *card = mailbox_card(comm, rank);
	bool hurried = some_rank_is_over(comm, rank) &&
		       some_port_is_alone(comm);
	const char *more = hurried ? "; links were not waited for, as a rank has given up: see its own error" :
			 "";

	return fxi_error(ENETUNREACH, "port %s: communicator: no port of this rank %u (it has %u) reaches rank %u (host %s), which has %u; give the ranks ports that see each other (ports of struct fabrex_comm_attr)%s",
			 comm->port->attr.name, comm->rank, comm->nports, rank,
			 card->name, card->nports, more);
}

static void say_way(const struct fabrex_comm *comm, uint32_t rank,
		    const struct way *way)
{
	const struct link_card *card = mailbox_card(comm, rank);

	if (comm->nports > 1)
		fxi_debug(FXI_DEBUG_PATH, comm->rank,
			  "rank %u (host %s) is reached through port %s, as peer %u",
			  rank, card->name,
			  comm->ports[way->out]->attr.name,
			  card->entrances[way->in].port.peer);
	else if (way->in)
		fxi_debug(FXI_DEBUG_PATH, comm->rank,
			  "rank %u is reached through another port of host %s, peer %u",
			  rank, card->name,
			  card->entrances[way->in].port.peer);
}

/* With one port each there is nothing to choose. */
static bool have_one_port(const struct fabrex_comm *comm,
			  const struct link_card *card)
{
	return comm->nports == 1 && card->nports == 1;
}

/*
 * Is a rank to look again, where one of the two has several ports? A link that is
 * not up yet may be the way. A port that was up may come back, or its rank has
 * died: that shows once it is used, and is waited for until @patience is over.
 */
static bool look_again(struct fabrex_comm *comm, uint32_t rank,
		       const struct way *way, uint64_t patience,
		       uint64_t deadline)
{
	if (comm->coherent || way->sight >= SIGHT_NAME ||
	    have_one_port(comm, mailbox_card(comm, rank)) ||
	    some_rank_is_over(comm, rank))
		return false;
	if (way->sight == SIGHT_DOWN)
		return fxi_remaining_ms(patience);
	return fxi_remaining_ms(deadline) && some_port_is_alone(comm);
}

/*
 * With one port each, a rank that sees nothing of another takes the first
 * entrance, for the same reason. One of several may be anybody's.
 */
int fxi_entrances_choose(struct fabrex_comm *comm, uint32_t rank,
			 uint64_t patience, uint64_t deadline)
{
	const struct link_card *card = mailbox_card(comm, rank);
	struct mailbox_peer *peer = &comm->links->mailbox->peers[rank];
	struct way way = { .sight = SIGHT_NONE };

	if (!comm->coherent)
		way = way_to(comm, rank);
	while (look_again(comm, rank, &way, patience, deadline)) {
		poll(NULL, 0, LOOK_MS);
		way = way_to(comm, rank);
	}
	if (way.sight == SIGHT_OTHER ||
	    (way.sight == SIGHT_NONE && !have_one_port(comm, card)))
		return apart(comm, rank);
	peer->port = (uint8_t)way.out;
	peer->entrance = (uint8_t)way.in;
	peer->to = card->entrances[way.in];
	if (way.sight && rank != comm->rank)
		say_way(comm, rank, &way);
	return 0;
}

/* As that rank has said; LINK_ENTRANCES: it has not, or nothing that can be. */
static uint32_t entrance_said(const struct fabrex_comm *comm, uint32_t rank)
{
	uint64_t word = __atomic_load_n(fxi_link_board(comm, rank,
						       BOARD_AT_ENTRANCE),
					__ATOMIC_RELAXED);

	if (word && word <= comm->nports + comm->links->mailbox->nothers)
		return (uint32_t)word - 1;
	return LINK_ENTRANCES;
}

uint32_t fxi_entrances_used(const struct fabrex_comm *comm, uint32_t rank)
{
	uint32_t said;

	if (comm->nports + comm->links->mailbox->nothers == 1)
		return 0;
	said = entrance_said(comm, rank);
	return said < LINK_ENTRANCES ? said : way_from(comm, rank).in;
}

/*
 * Only as that rank has said: it may have chosen when other links were up than
 * now, and would read at another port what this one means.
 */
struct fabrex_port *fxi_link_port_for(const struct fabrex_comm *comm,
				      uint32_t rank)
{
	uint32_t used = 0;

	if (comm->nports + comm->links->mailbox->nothers > 1)
		used = entrance_said(comm, rank);
	return used < comm->nports ? comm->ports[used] : NULL;
}
