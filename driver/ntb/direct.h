/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Direct mode: regions behind the second memory window, to which the peer stores
 * by itself. A host has two parts in it, which do not depend on each other: it links
 * regions of its own (direct.c), and knows those that the peer has linked (known.c).
 */
#ifndef FABREX_NTB_DIRECT_H
#define FABREX_NTB_DIRECT_H

#include "../compat/iova.h"
#include "engine.h"

/* The first page of the range: markers of DMA engines, by place. */
#define FNTB_MARKS		512u
/* Regions of the peer that are known at a time; a power of two. */
#define FNTB_KNOWN		1024u

/**
 * struct fntb_link - pages that the peer can reach, or has been able to
 * @list:   in &fntb_direct.gone or &fntb_direct.asked
 * @key:    of the region
 * @first:  page of the range
 * @npages: number of pages
 * @retry_at: when the peer is asked to forget it, in jiffies
 */
struct fntb_link {
	struct list_head list;
	u64 key;
	u64 first;
	u64 npages;
	unsigned long retry_at;
};

/**
 * struct fntb_direct - the range behind the peer's second window
 * @range:  of bus addresses; what is not linked in it cannot be reached
 * @bytes:  of the range
 * @marks:  its first page, which is always linked
 * @lock:   protects what follows
 * @used:   pages of the range that are linked, or that the peer may still know
 * @gone:   &struct fntb_link that the peer has to forget, in the order of @retry_at
 * @asked:  the one that it has been asked to
 * @ngone:  number of both
 */
struct fntb_direct {
	struct dma_iova_state range;
	u64 bytes;
	__le64 *marks;
	spinlock_t lock;
	unsigned long *used;
	struct list_head gone;
	struct list_head asked;
	u32 ngone;
};

/**
 * struct fntb_known - a region of the peer
 * @key:    of it; 0: none
 * @where:  its first byte in the peer's range
 * @length: bytes of it
 * @users:  calls that store to it
 * @gone:   no more calls may
 */
struct fntb_known {
	u64 key;
	u64 where;
	u32 length;
	u32 users;
	bool gone;
};

/**
 * struct fntb_peer_range - the peer's range, and what is known to be in it
 * @window: the second window
 * @size:   of the window
 * @base:   its address, for a DMA engine
 * @bytes:  of the range that can be reached; 0: none
 * @known:  by number; protected by &fntb_tx.lock
 */
struct fntb_peer_range {
	void __iomem *window;
	resource_size_t size;
	phys_addr_t base;
	u64 bytes;
	struct fntb_known known[FNTB_KNOWN];
};

struct fntb_port;

/* direct.c */
int fntb_direct_open(struct fntb_port *np);
void fntb_direct_aim(struct fntb_port *np);
void fntb_direct_up(struct fntb_port *np);
void fntb_direct_free(struct fntb_port *np);
void *fntb_direct_link(struct fabrex_wire *wire, u64 key, struct page **pages,
		       u64 n, u64 *where);
void fntb_direct_unlink(struct fabrex_wire *wire, void *link);
struct fntb_link *fntb_direct_gone(struct fntb_port *np);
void fntb_direct_forgotten(struct fntb_port *np, struct fntb_link *link,
			   bool forgotten);

/* known.c */
void fntb_known_up(struct fntb_port *np, u64 bytes);
void fntb_known_free(struct fntb_port *np);
void fntb_known_find(struct fntb_port *np, struct fabrex_call *call);
void fntb_known_put(struct fntb_port *np, const struct fabrex_call *call);
void fntb_known_learn(struct fntb_port *np, const struct fabrex_call *call,
		      const struct fabrex_answer *answer);
bool fntb_known_forget(struct fntb_port *np, u64 key);

#endif
