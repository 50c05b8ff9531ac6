/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moving bytes between regions of two ports. For op.c: the caller is inside
 * both ports' gates and holds both regions.
 */
#ifndef EMU_COPY_H
#define EMU_COPY_H

#include "mr.h"
#include "port.h"

/* One end: byte @offset of a region of a port. */
struct side {
	struct port *port;
	struct mr *mr;
	uint64_t offset;
	unsigned int fault;	/* FABREX_WC_* if its memory does not answer */
	struct fabric_ep *ep;	/* whose memory side_read() or side_write()
				 * met, NULL: a host's */
	struct port *at;	/* that it is bound to */
};

/*
 * A side's memory held over several pieces, so that scattered pages of one
 * memory cost one look-up. Begins empty; side_drop() at the end, FABREX_WC_*.
 */
struct reach {
	struct mem mem;
	uint64_t addr, end;
	uint64_t at;		/* bus address of what was mapped last */
	bool held;
	bool beyond;		/* only the client can reach it (remote.h) */
};

unsigned int side_map(struct side *s, struct reach *r, uint64_t done,
		      uint64_t *len, unsigned int prot, void **ptr);
unsigned int side_drop(struct side *s, struct reach *r);

/* Where the side's memory is: the last that was met; or what @m is. */
struct place side_place(const struct side *s);
struct place mem_place(const struct side *s, const struct mem *m);

/* Bytes read from (@source) or stored into an endpoint's memory; NULL: none. */
void count_ep(struct fabric_ep *ep, bool source, uint64_t n);
/* An operation or window access touches it. */
void count_ep_op(struct fabric_ep *ep);
/* Bytes moved by a queue between memory of the two. True: peer to peer. */
bool count_ep_path(struct fabric_ep *a, struct fabric_ep *b, uint64_t n);

/* Small amounts, at once: between a region and a buffer. FABREX_WC_*. */
unsigned int side_read(struct side *s, void *buf, uint64_t len);
unsigned int side_write(struct side *s, const void *buf, uint64_t len);

/*
 * May @n bytes go from @from to @to for an operation of @q? OP_WAIT: not before
 * op.wait_until. FABREX_WC_OK: as many as throttle_take() says. Otherwise
 * memory does not answer. A side without a region is memory of the port's host.
 */
unsigned int copy_admit(struct queue *q, struct side *from, struct side *to,
			uint64_t n);

/*
 * Move bytes op->done .. of @length from @from to @to for an operation of @q,
 * about @budget of them. FABREX_WC_* or OP_*.
 */
unsigned int copy_move(struct queue *q, struct op *op, struct side *from,
		       struct side *to, uint64_t length, uint64_t budget);

#endif
