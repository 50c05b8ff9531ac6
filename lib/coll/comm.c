// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators: created once their ranks have found each other, destroyed.
 * Public half: fabrex_comm_create(3); finding each other is in bootstrap/.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/debug.h"
#include "coll/bootstrap/bootstrap.h"
#include "coll/device/device.h"
#include "coll/failure/failure.h"
#include "coll/operation/gpu.h"
#include "coll/stream/stream.h"
#include "coll/coll.h"
#include "schedule/program.h"

#define DEATH_MS	1000
#define TIMEOUT_MS	30000
#define CARD_GIVEN_UP	0x50554e4556494746ull	/* magic: no mailbox */

/* ---- forks ------------------------------------------------------------- */

/* In a child no lock may be held, and nothing of the parent's is in use. */
static void fork_child(void)
{
	fxi_background_forked();
	fxi_streams_forked();
	fxi_busy_forked();
	fxi_programs_forked();
	fxi_devices_forked();
}

static void fork_install(void)
{
	pthread_atfork(NULL, NULL, fork_child);
}

void fxi_forks_handle(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fork_install);
}

/* ---- making ------------------------------------------------------------ */

static struct fabrex_comm *comm_alloc(struct fabrex_port *const *ports,
				      uint32_t nports,
				      const struct rendezvous *rendezvous,
				      const struct fabrex_comm_attr *attr)
{
	struct fabrex_comm *comm = aligned_alloc(64, (sizeof(*comm) + 63) &
							     ~(size_t)63);
	uint32_t i;

	if (!comm)
		return NULL;
	fxi_forks_handle();
	memset(comm, 0, sizeof(*comm));
	comm->port = ports[0];
	comm->nports = nports;
	memcpy(comm->ports, ports, nports * sizeof(*ports));
	comm->rank = rendezvous->rank;
	comm->size = rendezvous->size;
	comm->id = rendezvous->id;
	comm->death_ms = attr->death_ms ? attr->death_ms : DEATH_MS;
	comm->silence_ms = attr->silence_ms;
	comm->no_thread = attr->flags & FABREX_COMM_NO_THREAD;
	/* A mailbox is in a heap of one port. */
	comm->coherent = nports == 1 && comm->port->ops->coherent;
	if (attr->algorithms) {
		comm->algorithms = strdup(attr->algorithms);
		if (!comm->algorithms) {
			free(comm);
			return NULL;
		}
	}
	comm->pid = getpid();
	for (i = 0; i < nports; i++)
		fxi_port_hold(ports[i], USER_COMM);
	return comm;
}

static void comm_free(struct fabrex_comm *comm)
{
	uint32_t i;

	fxi_links_free(comm);
	fxi_failure_free(comm);
	fxi_user_schedules_free(comm);
	free(comm->algorithms);
	for (i = 0; i < comm->nports; i++)
		fxi_port_drop(comm->ports[i], USER_COMM);
	free(comm);
}

/* All must have come for the same one; those that have died are marked. */
static int check_cards(struct fabrex_comm *comm, const struct link_card *cards)
{
	uint32_t rank;

	for (rank = 0; rank < comm->size; rank++) {
		if (!cards[rank].magic) {
			comm->failed[rank / 64] |= 1ull << rank % 64;
			continue;
		}
		if (cards[rank].magic == CARD_GIVEN_UP)
			return fxi_error(ECONNRESET, "port %s: communicator: rank %u (process %u) failed to create its part and has given up; see its own error",
					 comm->port->attr.name, rank,
					 cards[rank].pid);
		if (!comm->id)
			comm->id = cards[0].id;
		if (rank && cards[rank].id && cards[rank].id != comm->id)
			return fxi_error(EPROTO, "port %s: communicator: rank %u takes part in another one; all ranks have to split or shrink the same communicators, in the same order",
					 comm->port->attr.name, rank);
	}
	return 0;
}

/* Do more ranks than processors share these processors? */
static bool is_crowded(const struct fabrex_comm *comm)
{
	const struct link_card *mine = fxi_link_card(comm, comm->rank);
	uint32_t rank, same = 0, here = 0;

	for (rank = 0; rank < comm->size; rank++) {
		const struct link_card *card = fxi_link_card(comm, rank);

		if (card->host != mine->host)
			continue;
		here++;
		same += card->processors_hash == mine->processors_hash;
	}
	return same > mine->processors ||
	       here > (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

/*
 * Ranks that died during the rendezvous are failures of the new communicator.
 */
static void tell_failed(struct fabrex_comm *comm)
{
	uint32_t rank;

	for (rank = 0; rank < comm->size; rank++) {
		if (!fxi_failed(comm, rank))
			continue;
		comm->failed[rank / 64] &= ~(1ull << rank % 64);
		fxi_comm_blame(comm, rank, WHY_DEAD, -ECONNRESET);
	}
}

/*
 * This rank cannot take part. So that the others do not wait for it, it takes
 * part in the exchange, reports that, and returns its own error.
 */
static int report_failure(struct fabrex_comm *comm,
			  struct rendezvous *rendezvous,
			  struct link_card *all, int error)
{
	const struct link_card mine = {
		.magic = CARD_GIVEN_UP, .id = comm->id, .ranks = comm->size,
		.pid = (uint32_t)getpid(),
	};
	char *sentence = strdup(fabrex_strerror_last());

	rendezvous->exchange(rendezvous, &mine, all, sizeof(mine));
	fxi_error(-error, "%s", sentence ? sentence : "out of memory");
	free(sentence);
	return error;
}

/* No port here reaches some rank: those that others reach hear of it. */
static void tell_apart(struct fabrex_comm *comm, int error)
{
	char *sentence = strdup(fabrex_strerror_last());

	fxi_comm_blame(comm, comm->rank, WHY_APART, error);
	fxi_farewell(comm);
	fxi_error(-error, "%s", sentence ? sentence : "out of memory");
	free(sentence);
}

static int comm_connect(struct fabrex_comm *comm, struct rendezvous *rendezvous)
{
	struct link_card mine, *all;
	int ret;

	all = calloc(comm->size, sizeof(*all));
	if (!all)
		return fxi_error(ENOMEM, "port %s: communicator of %u ranks: out of memory",
				 comm->port->attr.name, comm->size);
	ret = fxi_links_make(comm, &fxi_failure_reports, &mine);
	if (ret)
		ret = report_failure(comm, rendezvous, all, ret);
	else
		ret = rendezvous->exchange(rendezvous, &mine, all,
					   sizeof(mine));
	if (!ret)
		fxi_debug(FXI_DEBUG_BOOTSTRAP, comm->rank,
			  "all %u ranks have come; connecting to them",
			  comm->size);
	if (!ret)
		ret = check_cards(comm, all);
	if (!ret)
		ret = fxi_links_connect(comm, all, rendezvous->deadline);
	if (ret == -ENETUNREACH)
		tell_apart(comm, ret);
	free(all);
	return ret;
}

int fxi_comm_make(struct fabrex_port *const *ports, uint32_t nports,
		  struct rendezvous *rendezvous,
		  const struct fabrex_comm_attr *attr,
		  struct fabrex_comm **out)
{
	struct fabrex_comm *comm = comm_alloc(ports, nports, rendezvous, attr);
	int ret;

	if (!comm)
		return fxi_error(ENOMEM, "port %s: communicator of %u ranks: out of memory",
				 ports[0]->attr.name, rendezvous->size);
	if (!comm->id && !comm->rank &&
	    getrandom(&comm->id, sizeof(comm->id), 0) != sizeof(comm->id))
		comm->id = fxi_now_ns();
	ret = fxi_failure_make(comm);
	if (!ret)
		ret = comm_connect(comm, rendezvous);
	if (!ret)
		ret = fxi_operations_make(comm, comm->algorithms);
	if (ret) {
		comm_free(comm);
		return ret;
	}
	comm->crowded = is_crowded(comm);
	fxi_debug(FXI_DEBUG_BOOTSTRAP, comm->rank,
		  "communicator of %u ranks is connected%s", comm->size,
		  comm->crowded ? "; there are fewer processors than ranks, so waiting ranks yield" :
				  "");
	tell_failed(comm);
	fxi_link_tell_entrances(comm);
	*out = comm;
	return 0;
}

/* ---- public ------------------------------------------------------------ */

static int check_attr(struct fabrex_port *port,
		      const struct fabrex_comm_attr *a)
{
	const char *name = port->attr.name;
	size_t i;

	if (a->flags & ~FABREX_COMM_NO_THREAD)
		return fxi_error(EINVAL, "port %s: communicator: unknown flags 0x%x; use 0 or FABREX_COMM_NO_THREAD",
				 name, a->flags);
	if (a->reserved_ports)
		return fxi_error(EINVAL, "port %s: communicator: reserved_ports is not 0; clear the structure first",
				 name);
	for (i = 0; i < sizeof(a->reserved) / sizeof(*a->reserved); i++)
		if (a->reserved[i])
			return fxi_error(EINVAL, "port %s: communicator: reserved[%zu] is not 0; clear the structure first",
					 name, i);
	if (a->size > COMM_RANKS)
		return fxi_error(EINVAL, "port %s: communicator of %u ranks; it may have %u at most",
				 name, a->size, COMM_RANKS);
	if (a->rank != FABREX_RANK_AUTO && a->rank >= a->size)
		return fxi_error(EINVAL, "port %s: communicator: rank %u of %u; ranks are 0 to size - 1, or FABREX_RANK_AUTO",
				 name, a->rank, a->size);
	return 0;
}

/* The first, and those of the attributes. Their number, or a negative errno. */
static int take_ports(struct fabrex_port *port,
		      const struct fabrex_comm_attr *a,
		      struct fabrex_port *ports[COMM_PORTS])
{
	uint32_t i, k;

	if (a->nports >= COMM_PORTS)
		return fxi_error(EINVAL, "port %s: communicator of %u more ports; a rank may have %u in all",
				 port->attr.name, a->nports, COMM_PORTS);
	if (a->nports && !a->ports)
		return fxi_error(EINVAL, "port %s: communicator: nports is %u and ports NULL; give both or neither",
				 port->attr.name, a->nports);
	ports[0] = port;
	for (i = 0; i < a->nports; i++) {
		if (!a->ports[i])
			return fxi_error(EINVAL, "port %s: communicator: ports[%u] is NULL; give ports that are open",
					 port->attr.name, i);
		for (k = 0; k <= i; k++)
			if (ports[k] == a->ports[i])
				return fxi_error(EINVAL, "port %s: communicator: ports[%u] is port %s once more; give each port once",
						 port->attr.name, i,
						 ports[k]->attr.name);
		ports[i + 1] = a->ports[i];
	}
	return (int)i + 1;
}

EXPORT int fabrex_comm_create(struct fabrex_port *port,
			      const struct fabrex_comm_attr *attr, size_t size,
			      struct fabrex_comm **comm)
{
	NO_CANCEL();
	struct fabrex_comm_attr a = { .rank = FABREX_RANK_AUTO };
	struct fabrex_port *ports[COMM_PORTS];
	struct bootstrap bootstrap;
	int ret = 0, n;

	if (!port || !comm)
		return fxi_error(EINVAL, "fabrex_comm_create: port or comm is NULL; give both");
	if (attr)
		ret = fxi_copy_in(port, "communicator", &a, sizeof(a), attr,
				  size);
	if (!ret)
		ret = check_attr(port, &a);
	if (ret)
		return ret;
	n = take_ports(port, &a, ports);
	if (n < 0)
		return n;
	if (!a.algorithms)
		a.algorithms = getenv("FABREX_ALGORITHMS");
	if (!a.timeout_ms)
		a.timeout_ms = TIMEOUT_MS;
	ret = fxi_bootstrap_begin(ports, (uint32_t)n, &a, &bootstrap);
	if (ret)
		return ret;
	ret = fxi_comm_make(ports, (uint32_t)n, &bootstrap.rendezvous, &a, comm);
	fxi_bootstrap_end(&bootstrap);
	return ret;
}

EXPORT void fabrex_comm_destroy(struct fabrex_comm *comm)
{
	NO_CANCEL();

	/*
	 * In a child there is nothing to free: mailboxes and windows are not
	 * mapped.
	 */
	if (!comm || comm->pid != getpid())
		return;
	fxi_operations_free(comm);
	/* What this thread was told by another one is done over there, too. */
	while (__atomic_load_n(&comm->aborting, __ATOMIC_ACQUIRE))
		sched_yield();
	if (fxi_comm_over(comm) && !comm->shrunk)
		fxi_comm_settle(comm);
	fxi_farewell(comm);
	/* Other ranks know by now that nothing more may be sent here. */
	fxi_gpus_free(comm);
	comm_free(comm);
}

EXPORT uint32_t fabrex_comm_rank(const struct fabrex_comm *comm)
{
	return comm->rank;
}

EXPORT uint32_t fabrex_comm_size(const struct fabrex_comm *comm)
{
	return comm->size;
}
