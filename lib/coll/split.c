// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Splitting: ranks of the same color make a communicator of their own, over
 * messages of the one that is split. Public half: fabrex_comm_create(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/bootstrap/bootstrap.h"
#include "coll/failure/failure.h"
#include "coll/coll.h"

#define TAG	0x53504c54u	/* "SPLT" */

/* An all-gather among a list of ranks, in its order. */
struct gather {
	struct fabrex_comm *comm;
	const uint32_t *ranks;
	uint32_t n, me;			/* me: index in the list */
	uint64_t word;
	size_t bytes;
	const void *mine;
	uint8_t *all;
	uint32_t sent, waiting;
	bool *got;
};

struct choice {
	int32_t color, key;
};

struct subgroup {
	struct fabrex_comm *parent;
	uint32_t *ranks;		/* of the parent, in the new order */
	uint64_t word;
	bool exchanged;			/* or the attempt was made */
};

/* The others would wait for this rank, so they have to be told. */
static int out_of_memory(struct fabrex_comm *comm)
{
	int ret = fxi_error(ENOMEM, "port %s: communicator: split: out of memory",
			    comm->port->attr.name);

	fxi_comm_break(comm, ret);
	return ret;
}

/* Sends as many as there is room for. True: all have been sent. */
static bool send_all(struct gather *g)
{
	for (; g->sent < g->n; g->sent++) {
		uint32_t rank = g->ranks[g->sent];
		void *room;

		if (g->sent == g->me)
			continue;
		room = fxi_link_room(g->comm, rank, LINK_COLL);
		if (!room) {
			g->waiting = rank;
			return false;
		}
		memcpy(room, g->mine, g->bytes);
		if (fxi_link_send(g->comm, rank, LINK_COLL, TAG, g->word, NULL,
				  (uint32_t)g->bytes))
			return false;
	}
	return true;
}

static int disagree(struct fabrex_comm *comm, uint32_t rank)
{
	int ret = fxi_error(EPROTO, "ranks %u and %u do not call the same: here the communicator is split, there it is not, or not as often",
			    comm->rank, rank);

	fxi_comm_break(comm, ret);
	return ret;
}

/* 1: all have arrived; 0: not yet; or a negative errno. */
static int receive_all(struct gather *g)
{
	const struct link_message *m;
	int all = 1;
	uint32_t i;

	for (i = 0; i < g->n; i++) {
		if (g->got[i])
			continue;
		m = fxi_link_peek(g->comm, g->ranks[i], LINK_COLL);
		if (!m) {
			g->waiting = g->ranks[i];
			all = 0;
			continue;
		}
		if (m->tag != TAG || m->word != g->word ||
		    m->length != g->bytes)
			return disagree(g->comm, g->ranks[i]);
		memcpy(g->all + i * g->bytes,
		       fxi_link_payload(g->comm, g->ranks[i], LINK_COLL),
		       g->bytes);
		fxi_link_pop(g->comm, g->ranks[i], LINK_COLL);
		g->got[i] = true;
	}
	return all;
}

static int gather_run(struct gather *g)
{
	uint32_t patience = 0;
	uint64_t moved;
	bool sent;
	int ret;

	memcpy(g->all + g->me * g->bytes, g->mine, g->bytes);
	g->got[g->me] = true;
	for (;;) {
		moved = g->comm->moved;
		sent = send_all(g);
		ret = receive_all(g);
		if (ret < 0 || (ret && sent))
			return ret < 0 ? ret : 0;
		ret = fxi_link_progress(g->comm);
		if (g->comm->moved != moved)
			patience = 0;
		if (!ret)
			ret = fxi_comm_wait(g->comm, g->waiting, patience++);
		if (ret)
			return fxi_comm_error(g->comm);
		fxi_comm_advance_others(g->comm);
	}
}

static int gather(struct fabrex_comm *comm, const uint32_t *ranks, uint32_t n,
		  uint32_t me, uint64_t word, const void *mine, void *all,
		  size_t bytes)
{
	struct gather g = {
		.comm = comm, .ranks = ranks, .n = n, .me = me, .word = word,
		.mine = mine, .all = all, .bytes = bytes,
	};
	int ret;

	g.got = calloc(n, sizeof(*g.got));
	if (!g.got)
		return out_of_memory(comm);
	ret = gather_run(&g);
	free(g.got);
	return ret;
}

static int subgroup_exchange(struct rendezvous *rendezvous, const void *mine,
			     void *all, size_t bytes)
{
	struct subgroup *p = rendezvous->state;

	p->exchanged = true;
	return gather(p->parent, p->ranks, rendezvous->size, rendezvous->rank,
		      p->word, mine, all, bytes);
}

/* The ranks of this rank's color, ordered by key and then by rank. */
static void choose(const struct fabrex_comm *comm, const struct choice *choices,
		   struct rendezvous *rendezvous, uint32_t *ranks)
{
	const struct choice *mine = &choices[comm->rank];
	uint32_t rank, at;

	for (rank = 0; rank < comm->size; rank++) {
		if (choices[rank].color != mine->color)
			continue;
		at = rendezvous->size++;
		while (at && choices[ranks[at - 1]].key > choices[rank].key) {
			ranks[at] = ranks[at - 1];
			at--;
		}
		ranks[at] = rank;
	}
	for (at = 0; ranks[at] != comm->rank; at++)
		;
	rendezvous->rank = at;
}

static int make_part(struct fabrex_comm *comm, const struct choice *choices,
		     uint32_t *ranks, struct fabrex_comm **out)
{
	const struct fabrex_comm_attr attr = {
		.death_ms = comm->death_ms, .silence_ms = comm->silence_ms,
		.algorithms = comm->algorithms,
		.flags = comm->no_thread ? FABREX_COMM_NO_THREAD : 0,
	};
	struct subgroup subgroup = {
		.parent = comm, .ranks = ranks, .word = comm->splits,
	};
	struct rendezvous rendezvous = {
		.exchange = subgroup_exchange, .state = &subgroup,
	};
	uint64_t words[2] = {
		comm->splits, (uint32_t)choices[comm->rank].color,
	};
	int ret;

	choose(comm, choices, &rendezvous, ranks);
	rendezvous.id = fxi_hash(words, sizeof(words), comm->id) | 1;
	ret = fxi_comm_make(comm->ports, comm->nports, &rendezvous, &attr,
			    out);
	if (ret && !subgroup.exchanged)
		fxi_comm_break(comm, ret);
	return ret;
}

/* Collectives that were started before are finished first. */
static int finish_others(struct fabrex_comm *comm)
{
	uint32_t patience = 0;

	while (comm->first) {
		if (fxi_comm_progress(comm))
			patience = 0;
		else if (fxi_comm_wait(comm, comm->first->waiting, patience++))
			fxi_comm_give_up(comm);
		else
			fxi_comm_advance_others(comm);
	}
	return fxi_comm_over(comm) ? fxi_comm_error(comm) : 0;
}

static int split(struct fabrex_comm *comm, const struct choice *choice,
		 struct fabrex_comm **out)
{
	struct choice *choices = calloc(comm->size, sizeof(*choices));
	uint32_t *ranks = calloc(comm->size, sizeof(*ranks));
	uint32_t rank;
	int ret;

	if (!choices || !ranks) {
		ret = out_of_memory(comm);
		goto out;
	}
	for (rank = 0; rank < comm->size; rank++)
		ranks[rank] = rank;
	comm->splits++;
	ret = finish_others(comm);
	if (!ret)
		ret = gather(comm, ranks, comm->size, comm->rank,
			     comm->splits | 1ull << 32, choice, choices,
			     sizeof(*choice));
	if (!ret && choice->color >= 0)
		ret = make_part(comm, choices, ranks, out);
out:
	free(choices);
	free(ranks);
	return ret;
}

EXPORT int fabrex_comm_split(struct fabrex_comm *comm, int color, int key,
			     struct fabrex_comm **out)
{
	NO_CANCEL();
	const struct choice choice = {
		.color = color < 0 ? -1 : color, .key = key,
	};
	int ret;

	if (!out || comm->grouping)
		return fxi_error(EINVAL, "communicator: split: %s",
				 out ? "call fabrex_group_end() first" :
				       "no place for the new communicator");
	*out = NULL;
	fxi_comm_enter(comm);
	ret = split(comm, &choice, out);
	fxi_comm_leave(comm);
	return ret;
}
