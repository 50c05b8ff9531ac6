// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The caller's buffers as memory regions, from which a transport that is not
 * coherent, and every transport from a GPU, sends without a copy. What is being
 * sent must not be overwritten.
 * Called by execute.c and pass.c.
 */
#include <stdlib.h>

#include "base/debug.h"
#include "coll/algorithm/execute.h"
#include "coll/operation/peer_copy.h"

/* Bytes of a message from which it pays to wait until they have left. */
#define FROM	4096u

static void set(struct execution *e, struct sent_region *r, const void *addr,
		uint64_t bytes)
{
	if (bytes < FROM && !e->gpu)
		return;
	r->base = addr;
	r->bytes = bytes;
}

/*
 * When it is first sent from through that port: perhaps all goes by copies of a
 * GPU's runtime. Registered without rights, as only this rank's own queue reads
 * it.
 */
static bool registered(struct execution *e, struct sent_region *r,
		       uint32_t port)
{
	if (r->at[port].tried)
		return r->at[port].mr;
	r->at[port].tried = true;
	if (!fabrex_mr_cache_get(e->comm->ports[port],
				 (void *)(uintptr_t)r->base, r->bytes, 0,
				 &r->at[port].mr, &r->at[port].offset))
		return true;
	r->at[port].mr = NULL;
	if (e->gpu && fxi_debugs(FXI_DEBUG_MEMORY))
		fxi_coll_say(e->coll, FXI_DEBUG_MEMORY,
			     "sent through the host's memory",
			     ", as the fabric cannot read that of the GPU: %s",
			     fabrex_strerror_last());
	return false;
}

/* Without regions, or memory to remember them, everything is copied. */
void fxi_regions_get(struct execution *e)
{
	const struct fabrex_collective *what = &e->coll->what;
	uint64_t sends = fxi_send_bytes(e->comm, what);
	uint64_t recvs = fxi_recv_bytes(e->comm, what);

	if (e->comm->coherent && !e->gpu)
		return;
	e->flying = calloc(e->p->nacts + 1, sizeof(*e->flying));
	if (!e->flying)
		return;
	set(e, &e->regions[SENT_SEND], what->send, sends);
	if (what->recv != what->send || recvs > sends)
		set(e, &e->regions[SENT_RECV], what->recv, recvs);
}

void fxi_region_get_scratch(struct execution *e)
{
	if (e->flying)
		set(e, &e->regions[SENT_SCRATCH], e->scratch,
		    e->scratch_size);
}

void fxi_regions_put(struct execution *e)
{
	uint32_t i, port;

	for (i = 0; i < SENT_REGIONS; i++)
		for (port = 0; port < e->comm->nports; port++)
			if (e->regions[i].at[port].mr)
				fabrex_mr_cache_put(e->regions[i].at[port].mr);
	free(e->flying);
}

static struct sent_region *find(struct execution *e, uint32_t port,
				const uint8_t *from, uint64_t bytes)
{
	struct sent_region *r;
	uint32_t i;

	for (i = 0; i < SENT_REGIONS; i++) {
		r = &e->regions[i];
		if ((bytes >= FROM || e->gpu) && from >= r->base &&
		    from + bytes <= r->base + r->bytes && registered(e, r, port))
			return r;
	}
	return NULL;
}

bool fxi_region_has(struct execution *e, uint32_t peer, const uint8_t *from,
		    uint64_t bytes)
{
	uint32_t port = fxi_link_port(e->comm, peer);
	const struct sent_region *r = find(e, port, from, bytes);

	return r && fabrex_mr_kind(r->at[port].mr) != FABREX_MEMORY_HOST;
}

int fxi_region_send(struct execution *e, uint32_t lane, const uint8_t *from)
{
	const struct cursor *c = &e->cursors[lane];
	uint32_t bytes = c->count * e->size, peer = e->p->lanes[lane].peer;
	uint32_t port = fxi_link_port(e->comm, peer);
	struct sent_region *r = find(e, port, from, bytes);
	int ret;

	if (!r)
		return 0;
	ret = fxi_link_send_from(e->comm, peer, LINK_COLL, e->tag,
				 fxi_execution_word(e, c), r->at[port].mr,
				 r->at[port].offset +
				 (uint64_t)(from - r->base), bytes);
	if (!ret)
		e->flying[c->act] = true;
	return ret ? ret : 1;
}

/* True: what the acts have sent has left this rank's memory. */
bool fxi_region_left(struct execution *e, uint32_t first, uint32_t n)
{
	uint32_t i;

	for (i = first; i < first + n; i++) {
		if (!e->flying[i])
			continue;
		if (fxi_peer_copying(e->comm, e->p->acts[i].peer)) {
			e->coll->waiting = UINT32_MAX;
			return false;
		}
		e->coll->waiting = e->p->acts[i].peer;
		if (!fxi_link_sent(e->comm, e->p->acts[i].peer, LINK_COLL))
			return false;
		e->flying[i] = false;
	}
	return true;
}
