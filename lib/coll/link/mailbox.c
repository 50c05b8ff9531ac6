// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The mailboxes of a communicator: allocated, mapped at the others, freed.
 * Called by comm.c; link.c and board.c use what is made here.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/debug.h"
#include "base/path.h"
#include "coll/link/mailbox.h"

#define CARD_MAGIC	0x3544524143584246ull	/* "FBXCARD5" */
#define PAYLOADS	(8u << 20)	/* bytes of all payloads, about */
#define PAYLOAD_MAX	(64u << 10)
#define PAYLOAD_MIN	(1u << 10)
#define DEVICE_SLOTS	(32u << 20)	/* bytes of those on a GPU, about */
#define DEVICE_MAX	(1u << 20)	/* of one */
#define RIGHTS		(FABREX_MR_LOCAL_WRITE | FABREX_MR_REMOTE_READ | \
			 FABREX_MR_REMOTE_WRITE)
#define WINDOW_RIGHTS	(FABREX_MR_REMOTE_READ | FABREX_MR_REMOTE_WRITE)
#define QUEUE_PLAIN	16u
#define QUEUE_MAX	4096u
#define BELLS		64u	/* unheard at a time: bell.c */
#define PAGE		4096u

/* ---- layout ------------------------------------------------------------ */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static void layout_make(struct mailbox_layout *l, uint32_t ranks)
{
	uint64_t links = (uint64_t)ranks * LINK_CHANNELS;

	l->size = PAYLOAD_MAX;
	while (l->size > PAYLOAD_MIN &&
	       links * LINK_SLOTS * l->size > PAYLOADS)
		l->size /= 2;
	l->board = MAILBOX_LINE;
	l->credit = round_up(l->board + (uint64_t)ranks * BOARD_BYTES,
			     MAILBOX_LINE);
	l->slot = l->credit + links * MAILBOX_LINE;
	l->payload = round_up(l->slot + links * LINK_SLOTS *
			      sizeof(struct link_slot), PAGE);
	l->total = l->payload + links * LINK_SLOTS * l->size;
}

static uint32_t device_size(const struct mailbox_layout *l, uint32_t ranks)
{
	uint32_t size = DEVICE_MAX;

	while (size > l->size &&
	       (uint64_t)ranks * LINK_SLOTS * size > DEVICE_SLOTS)
		size /= 2;
	return size;
}

/* ---- the card ---------------------------------------------------------- */

/* The same for all processes of one machine. */
static uint32_t machine_hash(void)
{
	char text[128] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(text, sizeof(text), f))
		gethostname(text, sizeof(text) - 1);
	if (f)
		fclose(f);
	return (uint32_t)fxi_hash(text, strlen(text), 0);
}

static void processors_of(struct link_card *card)
{
	unsigned long mask[1024];
	cpu_set_t *set = (cpu_set_t *)(void *)mask;

	memset(mask, 0, sizeof(mask));
	if (sched_getaffinity(0, sizeof(mask), set)) {
		card->processors = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
		return;
	}
	card->processors = (uint32_t)CPU_COUNT_S(sizeof(mask), set);
	card->processors_hash = (uint32_t)fxi_hash(mask, sizeof(mask), 0);
}

static void card_make(struct fabrex_comm *comm, struct link_card *card)
{
	const struct mailbox *box = comm->links->mailbox;
	uint32_t i;

	memset(card, 0, sizeof(*card));
	card->magic = CARD_MAGIC;
	card->id = comm->id;
	card->length = fabrex_mr_length(box->ports[0].mr);
	card->ranks = comm->size;
	card->host = machine_hash();
	card->pid = (uint32_t)getpid();
	card->nports = comm->nports;
	card->coherent = comm->coherent;
	for (i = 0; i < comm->nports; i++)
		fxi_entrance_put(box->ports[i].mr, box->ports[i].bell,
				 &card->entrances[i]);
	processors_of(card);
	if (gethostname(card->name, sizeof(card->name) - 1))
		memcpy(card->name, comm->port->attr.host, sizeof(card->name));
	card->name[sizeof(card->name) - 1] = 0;
}

/* Of another rank: nothing is trusted that could do harm. */
static int card_check(const struct fabrex_comm *comm, struct link_card *card,
		      uint32_t rank)
{
	const char *name = comm->port->attr.name;

	card->name[sizeof(card->name) - 1] = 0;
	if (card->magic != CARD_MAGIC)
		return fxi_error(EPROTO, "port %s: communicator: rank %u has another version of libfabrex, or another byte order; use the same everywhere",
				 name, rank);
	if (card->ranks != comm->size ||
	    card->length < comm->links->mailbox->layout.total ||
	    !card->entrances[0].rkey || !card->nports ||
	    card->nports > COMM_PORTS)
		return fxi_error(EPROTO, "port %s: communicator: rank %u (host %s) has %u ranks and a mailbox of %llu bytes at %u ports; expected %u and %llu: give all ranks the same size",
				 name, rank, card->name, card->ranks,
				 (unsigned long long)card->length,
				 card->nports, comm->size,
				 (unsigned long long)
				 comm->links->mailbox->layout.total);
	/* They would not choose the same algorithms. */
	if (card->coherent != comm->coherent)
		return fxi_error(EINVAL, "port %s: communicator: this rank %u has %u port%s, and rank %u (host %s) %u; over loopback give all ranks one, or all of them several",
				 name, comm->rank, comm->nports,
				 comm->nports == 1 ? "" : "s", rank,
				 card->name, card->nports);
	return 0;
}

const struct link_card *fxi_link_card(const struct fabrex_comm *comm,
				      uint32_t rank)
{
	return mailbox_card(comm, rank);
}

bool fxi_link_is_near(const struct fabrex_comm *comm, uint32_t rank)
{
	return mailbox_is_near(comm, rank);
}

/* ---- making ------------------------------------------------------------ */

static int out_of_memory(const struct fabrex_comm *comm)
{
	return fxi_error(ENOMEM, "port %s: communicator of %u ranks: out of memory",
			 comm->port->attr.name, comm->size);
}

static int links_alloc(struct fabrex_comm *comm)
{
	uint32_t n = comm->size * LINK_CHANNELS;
	struct mailbox *box = calloc(1, sizeof(*box));

	comm->links = calloc(1, sizeof(*comm->links));
	if (!comm->links || !box) {
		free(box);
		return out_of_memory(comm);
	}
	comm->links->mailbox = box;
	comm->links->bell_fd = -1;
	comm->links->link = aligned_alloc(64, n * sizeof(struct link));
	comm->links->offers = calloc(comm->size,
				     sizeof(*comm->links->offers));
	box->cards = calloc(comm->size, sizeof(*box->cards));
	box->peers = calloc(comm->size, sizeof(*box->peers));
	if (!comm->links->link || !comm->links->offers || !box->cards ||
	    !box->peers)
		return out_of_memory(comm);
	memset(comm->links->link, 0, n * sizeof(struct link));
	return 0;
}

static uint32_t queue_entries(const struct fabrex_comm *comm,
			      const struct fabrex_port *port, uint32_t queues)
{
	uint32_t most = port->attr.max_sq, n = QUEUE_PLAIN;

	if (comm->coherent)
		return n;
	while (n < QUEUE_MAX && n * 2 <= most &&
	       n < comm->size * LINK_CHANNELS * LINK_SLOTS * 2 / queues)
		n *= 2;
	return n;
}

static int add_queue(struct fabrex_comm *comm, uint32_t port,
		     const struct fabrex_queue_attr *attr)
{
	struct mailbox *box = comm->links->mailbox;
	int ret = fabrex_queue_create(comm->ports[port], attr, sizeof(*attr),
				      &box->queues[box->nqueues]);

	box->nqueues += !ret;
	box->ports[port].nqueues += !ret;
	return ret;
}

/* All ranks together take a small part of a port's, should they be at one. */
static uint32_t queues_wanted(const struct fabrex_comm *comm,
			      const struct fabrex_port *port)
{
	uint32_t n = port->attr.max_queues / (16 * comm->size);
	uint32_t others = (comm->size - 1 + comm->nports - 1) / comm->nports;

	if (comm->coherent || comm->size < 2 || !n)
		return 1;
	if (n > LINK_QUEUES)
		n = LINK_QUEUES;
	return n < others ? n : others;
}

/*
 * The first one can ring, where others reach this rank only by WRITEs. Without
 * descriptors, or cells, it does without: ranks that wait go on looking. There
 * are as many others as can be had.
 */
static int queues_make(struct fabrex_comm *comm, uint32_t number)
{
	const struct fabrex_port *port = comm->ports[number];
	uint32_t wanted = queues_wanted(comm, port);
	struct fabrex_queue_attr attr = {
		.sq_entries = queue_entries(comm, port, wanted),
	};
	struct mailbox *box = comm->links->mailbox;
	struct mailbox_port *at = &box->ports[number];
	int ret = -ENOSPC;

	at->first = box->nqueues;
	if (!comm->coherent && comm->size > 1 &&
	    attr.sq_entries * 2 <= port->attr.max_cq &&
	    BELLS <= attr.sq_entries && BELLS <= port->attr.max_rq) {
		attr.rq_entries = BELLS;
		attr.cell_size = FABREX_CELL_MIN;
		attr.flags = FABREX_QUEUE_EVENTFD;
		ret = add_queue(comm, number, &attr);
	}
	attr.rq_entries = attr.cell_size = 0;
	if (!ret)
		at->bell = box->queues[at->first];
	else
		attr.flags = 0;
	do {
		ret = at->nqueues < wanted ? add_queue(comm, number, &attr) : 0;
	} while (!ret && at->nqueues < wanted);
	return at->nqueues ? 0 : ret;
}

/* What is at the first port, and in its heap if it has one. */
static int memory_make(struct fabrex_comm *comm)
{
	struct mailbox *box = comm->links->mailbox;
	struct mailbox_port *at = &box->ports[0];
	int ret = fabrex_mr_alloc(comm->port, box->layout.total, RIGHTS,
				  &at->mr);

	if (ret)
		return ret;
	box->base = fabrex_mr_addr(at->mr);
	if (comm->coherent || comm->size < 2)
		return 0;
	ret = fabrex_mr_alloc(comm->port, box->layout.total, 0,
			      &at->mirror_mr);
	if (!ret)
		box->mirror = fabrex_mr_addr(at->mirror_mr);
	return ret;
}

/* The same memory, at the others. */
static int memory_register(struct fabrex_comm *comm, uint32_t number)
{
	struct mailbox *box = comm->links->mailbox;
	struct mailbox_port *at = &box->ports[number];
	int ret = fabrex_mr_register(comm->ports[number], box->base,
				     box->layout.total, RIGHTS, &at->mr);

	if (ret || !box->mirror)
		return ret;
	return fabrex_mr_register(comm->ports[number], box->mirror,
				  box->layout.total, 0, &at->mirror_mr);
}

static int ports_make(struct fabrex_comm *comm)
{
	const struct mailbox *box = comm->links->mailbox;
	uint32_t i;
	int ret = memory_make(comm);

	for (i = 0; i < comm->nports && !ret; i++) {
		if (i)
			ret = memory_register(comm, i);
		if (!ret)
			ret = queues_make(comm, i);
		/* A sleep that one of them does not end is none. */
		if (!ret && !box->ports[i].bell)
			comm->links->bell_fd = -1;
		else if (!ret && !i)
			comm->links->bell_fd =
				fabrex_queue_fd(box->ports[0].bell);
	}
	return ret;
}

/* Memory and queue; the card says where the memory is. */
int fxi_links_make(struct fabrex_comm *comm, const struct link_reports *reports,
		   struct link_card *mine)
{
	struct mailbox *box;
	int ret;

	ret = links_alloc(comm);
	if (ret)
		goto fail;
	comm->links->reports = reports;
	box = comm->links->mailbox;
	layout_make(&box->layout, comm->size);
	ret = ports_make(comm);
	if (ret)
		goto fail;
	comm->links->size = box->layout.size;
	comm->links->device_size = device_size(&box->layout, comm->size);
	comm->links->alarm = (const uint64_t *)(const void *)box->base;
	card_make(comm, mine);
	if (!comm->coherent && comm->size > 1 && comm->nports == 1)
		fxi_entrances_open(comm, mine);
	return 0;

fail:
	fxi_links_free(comm);
	return ret;
}

/* Faults in the pages that small messages touch, ahead of time. */
static void populate(uint8_t *start, uint64_t from, uint64_t to)
{
	from = from / PAGE * PAGE;
	madvise(start + from, round_up(to - from, PAGE), MADV_POPULATE_WRITE);
}

/*
 * What @rank writes to in another's mailbox, and nothing of the other senders':
 * n ranks do this for n - 1 mailboxes.
 */
static void populate_ours(const struct mailbox_layout *l, uint8_t *base,
			  uint32_t rank)
{
	uint32_t first = rank * LINK_CHANNELS, end = first + LINK_CHANNELS;

	populate(base, mailbox_board(l, rank), mailbox_board(l, rank + 1));
	populate(base, mailbox_credit(l, first), mailbox_credit(l, end));
	populate(base, mailbox_slot(l, first, 0), mailbox_slot(l, end, 0));
}

/* The rank is dead: what is sent to it goes nowhere. */
static int connect_nowhere(struct fabrex_comm *comm, struct mailbox_peer *peer)
{
	if (!comm->coherent)
		return 0;
	peer->nowhere = calloc(1, comm->links->mailbox->layout.total);
	peer->base = peer->nowhere;
	return peer->base ? 0 : out_of_memory(comm);
}

static int map(struct fabrex_comm *comm, uint32_t rank, uint64_t length,
	       uint32_t rights)
{
	struct mailbox *box = comm->links->mailbox;
	struct mailbox_peer *peer = &box->peers[rank];
	const struct fabrex_remote remote = {
		.rkey = peer->to.rkey, .length = box->cards[rank].length,
		.peer = peer->to.port.peer,
		.generation = peer->to.port.generation,
	};

	return fabrex_window_map(comm->ports[peer->port], &remote, 0, length,
				 rights, &peer->window);
}

static int map_peer(struct fabrex_comm *comm, uint32_t rank)
{
	struct mailbox *box = comm->links->mailbox;
	struct mailbox_peer *peer = &box->peers[rank];
	int ret = map(comm, rank, box->layout.total, WINDOW_RIGHTS);

	if (ret)
		return ret;
	peer->base = (uint8_t *)(uintptr_t)fabrex_window_addr(peer->window);
	populate_ours(&box->layout, peer->base, comm->rank);
	return 0;
}

/*
 * All but the payloads: small messages stored there save a queue entry and a
 * doorbell. Without a window there are still WRITEs.
 */
static void map_pio(struct fabrex_comm *comm, uint32_t rank)
{
	struct mailbox *box = comm->links->mailbox;
	struct mailbox_peer *peer = &box->peers[rank];

	if (fxi_path_message(sizeof(struct link_message)) != FXI_PATH_PIO)
		return;
	if (!map(comm, rank, box->layout.payload, FABREX_MR_REMOTE_WRITE))
		peer->pio = fabrex_window_addr(peer->window);
	else
		fxi_debug(FXI_DEBUG_PATH, comm->rank,
			  "no window to the mailbox of rank %u: %s", rank,
			  fabrex_strerror_last());
}

/* One of those of the port by which it is reached. */
static void choose_queue(struct fabrex_comm *comm, uint32_t rank)
{
	struct mailbox *box = comm->links->mailbox;
	struct mailbox_peer *peer = &box->peers[rank];
	const struct mailbox_port *port = &box->ports[peer->port];
	uint32_t i, near = 0, before = 0, n = port->nqueues;

	for (i = 0; n > 1 && i < comm->size; i++) {
		near += fxi_link_is_near(comm, i);
		before += i < rank && !fxi_link_is_near(comm, i);
	}
	/* This rank itself is near. */
	if (n < 2 || near == 1 || near == comm->size)
		i = rank % n;
	else
		i = fxi_link_is_near(comm, rank) ? 0 : 1 + before % (n - 1);
	peer->queue = port->first + i;
	peer->mirror_mr = port->mirror_mr;
}

static int map_or_write(struct fabrex_comm *comm, uint32_t rank)
{
	if (comm->coherent)
		return map_peer(comm, rank);
	comm->links->far = true;
	map_pio(comm, rank);
	return 0;
}

/* A rank of the rendezvous may have died since, or be done and have left. */
static int connect_peer(struct fabrex_comm *comm, uint32_t rank,
			uint64_t patience, uint64_t deadline)
{
	struct mailbox *box = comm->links->mailbox;
	int ret = 0;

	if (rank != comm->rank && fxi_failed(comm, rank))
		return connect_nowhere(comm, &box->peers[rank]);
	if (rank != comm->rank)
		ret = card_check(comm, &box->cards[rank], rank);
	if (!ret)
		ret = fxi_entrances_choose(comm, rank, patience, deadline);
	if (ret)
		return ret;
	choose_queue(comm, rank);
	if (rank == comm->rank) {
		box->peers[rank].base = box->base;
		return 0;
	}
	ret = map_or_write(comm, rank);
	if (ret != -EACCES && ret != -EHOSTUNREACH)
		return ret;
	if (!fxi_link_has_left(comm, rank))
		comm->failed[rank / 64] |= 1ull << rank % 64;
	return connect_nowhere(comm, &box->peers[rank]);
}

static void link_init(struct fabrex_comm *comm, uint32_t rank,
		      uint32_t channel)
{
	struct mailbox *box = comm->links->mailbox;
	const struct mailbox_layout *l = &box->layout;
	uint32_t theirs = rank * LINK_CHANNELS + channel;
	uint32_t ours = comm->rank * LINK_CHANNELS + channel;
	struct link *link = &comm->links->link[theirs];
	uint8_t *base = box->peers[rank].base;

	link->plain = base;
	if (!base) {
		base = box->mirror;
		ours = theirs;
	}
	link->number = theirs;
	link->port = box->peers[rank].port;
	link->size = l->size;
	link->in = (void *)(box->base + mailbox_slot(l, theirs, 0));
	link->in_payload = box->base + mailbox_payload(l, theirs, 0);
	link->in_credit = (void *)(box->base + mailbox_credit(l, theirs));
	link->out = (void *)(base + mailbox_slot(l, ours, 0));
	link->out_payload = base + mailbox_payload(l, ours, 0);
	link->out_credit = (void *)(base + mailbox_credit(l, ours));
}

static void say_paths(const struct fabrex_comm *comm)
{
	uint32_t rank, mapped = 0, pio = 0, queue = 0;
	struct mailbox *box = comm->links->mailbox;

	for (rank = 0; rank < comm->size; rank++) {
		const struct mailbox_peer *p = &box->peers[rank];

		if (rank == comm->rank)
			continue;
		mapped += p->base != NULL;
		pio += !p->base && p->pio;
		queue += !p->base && !p->pio;
	}
	if (comm->nports > 1 && comm->port->ops->coherent)
		fxi_debug_line(FXI_DEBUG_PATH, comm->rank,
			       "memory of other ranks is not mapped, and the algorithm direct not available, as this rank has %u ports",
			       comm->nports);
	fxi_debug_line(FXI_DEBUG_PATH, comm->rank,
		       "messages of %u other ranks: to %u by stores to mapped memory; to %u the small ones by stores through a window, others by DMA; to %u all by DMA",
		       comm->size - 1, mapped, pio, queue);
}

/*
 * Those that no port reaches do not keep it from the others. Ports that are down
 * are waited for together, not for death_ms each.
 */
static int connect_all(struct fabrex_comm *comm, uint64_t deadline)
{
	uint64_t patience = fxi_deadline((int)comm->death_ms);
	char *sentence = NULL;
	uint32_t rank;
	int ret = 0;

	for (rank = 0; rank < comm->size && !ret; rank++) {
		ret = connect_peer(comm, rank, patience, deadline);
		if (ret != -ENETUNREACH)
			continue;
		if (!sentence)
			sentence = strdup(fabrex_strerror_last());
		comm->failed[rank / 64] |= 1ull << rank % 64;
		ret = 0;
	}
	if (sentence && !ret)
		ret = fxi_error(ENETUNREACH, "%s", sentence);
	free(sentence);
	return ret;
}

int fxi_links_connect(struct fabrex_comm *comm, const struct link_card *all,
		      uint64_t deadline)
{
	struct mailbox *box = comm->links->mailbox;
	uint32_t rank, channel;
	int ret;

	memcpy(box->cards, all, comm->size * sizeof(*all));
	populate(box->base, 0, box->layout.payload);
	ret = connect_all(comm, deadline);
	for (rank = 0; rank < comm->size && (!ret || ret == -ENETUNREACH);
	     rank++)
		for (channel = 0; channel < LINK_CHANNELS; channel++)
			link_init(comm, rank, channel);
	if (!ret && fxi_debugs(FXI_DEBUG_PATH))
		say_paths(comm);
	return ret;
}

void fxi_links_free(struct fabrex_comm *comm)
{
	struct mailbox *box = comm->links ? comm->links->mailbox : NULL;
	uint32_t i;

	for (i = 0; box && comm->links->link &&
		    i < comm->size * LINK_CHANNELS; i++)
		free(comm->links->link[i].pull);
	if (box) {
		for (i = 0; i < box->nqueues; i++)
			fabrex_queue_destroy(box->queues[i]);
		for (i = 0; box->peers && i < comm->size; i++) {
			fabrex_window_unmap(box->peers[i].window);
			free(box->peers[i].nowhere);
		}
		fxi_entrances_close(comm);
		for (i = comm->nports; i--;) {
			fabrex_mr_deregister(box->ports[i].mirror_mr);
			fabrex_mr_deregister(box->ports[i].mr);
		}
		free(box->cards);
		free(box->peers);
		free(box);
	}
	if (comm->links) {
		free(comm->links->link);
		free(comm->links->offers);
	}
	free(comm->links);
	comm->links = NULL;
}
