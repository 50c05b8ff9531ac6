// SPDX-License-Identifier: GPL-2.0-only
/*
 * Direct mode, the side of those who write: which regions of the peer can be stored
 * to through the second window. Called by wire.c and link.c.
 *
 * The peer says where a region is when a first WRITE to it has passed all checks. So
 * whoever has that key, and stays within the region, would pass them again, as long
 * as it exists; and if it does not, the store ends in the peer's IOMMU, and the
 * request that follows is refused.
 */
#include <linux/random.h>

#include "check.h"
#include "ntb.h"

/* Where the processor tries the window; no place has this marker. */
#define TRIAL	((FNTB_MARKS - 1) * sizeof(__le64))

static int fntb_known_map(struct fntb_port *np)
{
	struct fntb_peer_range *range = &np->peer_range;
	int ret;

	if (range->window)
		return 0;
	if (ntb_peer_mw_count(np->ntb) < 2)
		return -ENXIO;
	ret = ntb_peer_mw_get_addr(np->ntb, 1, &range->base, &range->size);
	if (ret)
		return ret;
	range->window = ioremap_wc(range->base, range->size);
	return range->window ? 0 : -ENOMEM;
}

static bool fntb_known_try(struct fntb_port *np)
{
	u32 nonce = get_random_u32() & 0x7fffffff;

	iowrite32(nonce, np->peer_range.window + TRIAL);
	wmb();
	return ioread32(np->peer_range.window + TRIAL) == nonce;
}

/**
 * fntb_known_up() - begin with a new epoch
 * @np:    port, whose wire is down
 * @bytes: of its range, the peer has said
 *
 * Context: The thread; sleeps.
 */
void fntb_known_up(struct fntb_port *np, u64 bytes)
{
	struct fntb_peer_range *range = &np->peer_range;

	range->bytes = 0;
	memset(range->known, 0, sizeof(range->known));
	if (bytes < PAGE_SIZE || fntb_known_map(np))
		return;
	if (range->size < PAGE_SIZE || !fntb_known_try(np)) {
		dev_warn_ratelimited(&np->ntb->dev,
				     "what is stored in the second memory window does not arrive, payload is bounced\n");
		return;
	}
	range->bytes = min_t(u64, bytes, range->size);
}

/**
 * fntb_known_free() - let go of the window
 * @np: port, which is not used any more
 *
 * Context: Process; sleeps.
 */
void fntb_known_free(struct fntb_port *np)
{
	if (np->peer_range.window)
		iounmap(np->peer_range.window);
	np->peer_range.window = NULL;
}

static struct fntb_known *fntb_known(struct fntb_port *np, u64 key)
{
	return &np->peer_range.known[key & (FNTB_KNOWN - 1)];
}

/**
 * fntb_known_find() - can payload be stored to its region at once?
 * @np:   port
 * @call: that is prepared, with a place; its @direct and @ask are set
 *
 * Context: &fntb_tx.lock is held.
 */
void fntb_known_find(struct fntb_port *np, struct fabrex_call *call)
{
	struct fntb_known *known = fntb_known(np, call->key);

	if (!np->peer_range.bytes || !call->key || !call->placed ||
	    call->place >= FNTB_MARKS - 1)
		return;
	if (known->key != call->key || known->gone) {
		call->ask = !known->users;
		return;
	}
	if (!engine_covers(known->length, call->offset, call->length))
		return;
	known->users++;
	call->direct = true;
	call->where = known->where + call->offset + call->at;
}

/**
 * fntb_known_put() - a call does not store any more
 * @np:   port
 * @call: for which fntb_known_find() has found something
 *
 * Context: &fntb_tx.lock is held.
 */
void fntb_known_put(struct fntb_port *np, const struct fabrex_call *call)
{
	fntb_known(np, call->key)->users--;
}

/**
 * fntb_known_learn() - the peer has said where a region is
 * @np:     port
 * @call:   to which that was the answer
 * @answer: a copy
 *
 * Context: Process.
 */
void fntb_known_learn(struct fntb_port *np, const struct fabrex_call *call,
		      const struct fabrex_answer *answer)
{
	u64 where = le64_to_cpu(answer->value);
	u32 length = le32_to_cpu(answer->number);
	struct fntb_known *known = fntb_known(np, call->key);

	if (!engine_covers(np->peer_range.bytes, where, length))
		return;
	spin_lock(&np->tx.lock);
	/* The next one with the same place in the table takes it. */
	if (!known->users)
		*known = (struct fntb_known) {
			.key = call->key,
			.where = where,
			.length = length,
		};
	spin_unlock(&np->tx.lock);
}

/**
 * fntb_known_forget() - the peer has taken a region out of its range
 * @np:  port
 * @key: of the region
 *
 * What the peer has said of it before has been learnt.
 *
 * Context: Process.
 * Return: whether nobody stores to it any more, or ever will
 */
bool fntb_known_forget(struct fntb_port *np, u64 key)
{
	struct fntb_known *known = fntb_known(np, key);
	bool forgotten = true;

	spin_lock(&np->tx.lock);
	if (known->key == key) {
		known->gone = true;
		forgotten = !known->users;
	}
	spin_unlock(&np->tx.lock);
	return forgotten;
}
