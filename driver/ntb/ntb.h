/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The port on an NTB device: one peer, two inboxes. For all files of
 * fabrex_ntb.ko.
 *
 * A host writes requests, and payload, into the inbox of its peer, and answers to
 * the peer's requests. What is stored there, and in direct mode in regions that are
 * linked, is all that it can do: everything in an inbox is checked by its owner.
 */
#ifndef FABREX_NTB_H
#define FABREX_NTB_H

#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "../compat/ntb.h"
#include "direct.h"
#include "engine.h"
#include "layout.h"
#include "slot.h"

/**
 * enum fntb_state - of a link
 * @FNTB_DOWN:  the NTB's link is down, or the window is not aimed
 * @FNTB_AIMED: the peer can reach the inbox
 * @FNTB_HELLO: and this host the peer's
 * @FNTB_UP:    both know each other's epoch
 */
enum fntb_state {
	FNTB_DOWN,
	FNTB_AIMED,
	FNTB_HELLO,
	FNTB_UP,
};

/* Object ids. */
enum {
	FNTB_OBJECT_BRIDGE = 1,
	FNTB_OBJECT_OWN_HOST,
	FNTB_OBJECT_OWN_PORT,
	FNTB_OBJECT_PEER_HOST,
	FNTB_OBJECT_PEER_PORT,
};

#define FNTB_SLOTS_MAX	256u
#define FNTB_PLACES_MAX	4096u
#define FNTB_TICK		(HZ / 10)
/* Slots that are kept for requests which end something. */
#define FNTB_SPARE		4u

/**
 * struct fntb_tx - requests to the peer
 * @gate:      open while the link is up: entered by those who prepare one
 * @lock:      protects what follows
 * @count:     requests sent, in this epoch; stored after what it is about
 * @free:      slots
 * @calls:     who waits, by slot
 * @sent:      when the request was sent, in jiffies, by slot
 * @puts:      places in the peer's inbox that are used
 * @gets:      places in the own inbox that are used
 * @unrung:    the peer may have to be rung for requests
 */
struct fntb_tx {
	struct engine_gate gate;
	spinlock_t lock;
	u32 count;
	u32 free;
	struct fabrex_call calls[FNTB_SLOTS_MAX];
	unsigned long sent[FNTB_SLOTS_MAX];
	DECLARE_BITMAP(puts, FNTB_PLACES_MAX);
	DECLARE_BITMAP(gets, FNTB_PLACES_MAX);
	atomic_t unrung;
};

/**
 * struct fntb_port - a port
 * @ntb:        device
 * @number:     of the port's name
 * @engine:     data path
 * @wire:       to the peer
 * @port:       in the core
 * @info:       of the port
 * @thread:     brings the link up, and serves the peer
 * @wait:       where it sleeps
 * @woken:      it should not
 * @moved:      the NTB's link has changed
 * @looked_at:  when it was asked for its state, in jiffies
 * @state:      of the link; the thread's
 * @dma_dev:    for the inbox
 * @memory:     that holds the inbox; never replaced, as the peer can write it
 * @memory_dma: its bus address, as the NTB sees it
 * @memory_size: its size
 * @inbox:      own; aligned in @memory
 * @inbox_dma:  likewise
 * @inbox_size: its size
 * @retry_at:   when to try again to allocate it, in jiffies
 * @own:        its layout, as far as the peer reaches
 * @window:     the peer's inbox
 * @window_size: bytes that can be reached of it
 * @theirs:     its layout
 * @epoch:      of what this host sends
 * @peer_epoch: of what the peer sends; 0: not known
 * @generation: of this port
 * @peer_generation: of the peer's
 * @hello_at:   when hello is said next, in jiffies
 * @falls:      how often the link has gone down soon after it was up
 * @up_at:      when it came up, in jiffies
 * @bell_bit:   doorbell bit, as a mask
 * @bell:       what the peer has been told, FNTB_BELL_*
 * @took:       the thread has taken answers since it last slept; its own
 * @masked:     the doorbell is, since it was rung
 * @beat:       own heartbeat
 * @beat_at:    when it was last stored, in jiffies
 * @peer_beat:  the peer's, as last seen
 * @peer_beat_at: when it last changed
 * @tx:         requests to the peer
 * @answers_lock: held by who takes answers; protects @answered
 * @answered:   answers taken, in this epoch
 * @untaken:    somebody wanted to look for answers while another one did
 * @served:     requests served, in this epoch; the thread's
 * @reply_bytes: payload of the answer that is made; the thread's
 * @reply_marker: its marker, if a DMA engine has moved it; likewise
 * @dma:        the DMA engine, or NULL. Does not change while the wire is up,
 *              nor once dma-bufs have been mapped for it
 * @dma_lock:   held while it changes, and while dma-bufs are about to be mapped
 *              for it; protects the following
 * @refused:    why they were not, as last said
 * @direct:     own regions that the peer stores to by itself, or NULL
 * @offered:    bytes of the range where they are; 0: the peer does not reach it
 * @peer_range: those of the peer
 * @missed:     payload of a request has not arrived, in this epoch; the thread's
 * @overdue:    when that of the next answer has to be there, in jiffies; 0: it is
 *              not waited for
 * @lost:       it has not come
 * @broken:     what the peer has done wrong; the link is made anew
 */
struct fntb_port {
	struct ntb_dev *ntb;
	int number;
	struct fabrex_engine engine;
	struct fabrex_wire wire;
	struct fabrex_port *port;
	struct fabrex_port_info info;
	struct task_struct *thread;
	wait_queue_head_t wait;
	bool woken;
	int moved;
	unsigned long looked_at;
	enum fntb_state state;

	struct device *dma_dev;
	void *memory;
	dma_addr_t memory_dma;
	size_t memory_size;
	void *inbox;
	dma_addr_t inbox_dma;
	u32 inbox_size;
	unsigned long retry_at;
	struct fntb_layout own;
	void __iomem *window;
	resource_size_t window_size;
	struct fntb_layout theirs;

	u32 epoch;
	u32 peer_epoch;
	u32 generation;
	u32 peer_generation;
	unsigned long hello_at;
	unsigned int falls;
	unsigned long up_at;
	u64 bell_bit;
	u32 bell;
	bool took;
	bool masked;
	u32 beat;
	unsigned long beat_at;
	u32 peer_beat;
	unsigned long peer_beat_at;

	struct fntb_tx tx;
	struct mutex answers_lock;
	u32 answered;
	atomic_t untaken;
	u32 served;
	u32 reply_bytes;
	u32 reply_marker;
	struct fntb_dma *dma;
	struct mutex dma_lock;
	const char *refused;
	struct fntb_direct *direct;
	u64 offered;
	struct fntb_peer_range peer_range;
	bool missed;
	unsigned long overdue;
	bool lost;
	const char *broken;
};

static inline struct fntb_port *fntb_port_of(struct fabrex_wire *wire)
{
	return container_of(wire, struct fntb_port, wire);
}

static inline struct fntb_control *fntb_inbox_control(struct fntb_port *np)
{
	return np->inbox;
}

/* wire.c */
extern const struct fabrex_wire_ops fntb_wire_ops;

void fntb_wire_up(struct fntb_port *np);
void fntb_wire_down(struct fntb_port *np);
void fntb_wire_forget(struct fntb_port *np);
bool fntb_wire_serve(struct fntb_port *np);
bool fntb_wire_take(struct fntb_port *np, u32 most);
bool fntb_wire_waits(struct fntb_port *np);
bool fntb_wire_late(struct fntb_port *np, unsigned long patience);

/* dma.c */
void fntb_dma_up(struct fntb_port *np);
void fntb_dma_renew(struct fntb_port *np);
void fntb_dma_exit(struct fntb_port *np);
bool fntb_dma_stuck(const struct fntb_port *np);
void fntb_dma_failed(struct fntb_port *np);
bool fntb_dma_begin(struct fntb_port *np, const void *user, u32 window,
		    u32 bytes);
bool fntb_dma_has(struct fntb_port *np, const void *user);
bool fntb_dma_put(struct fntb_port *np, u64 to, const void *from, u32 bytes);
bool fntb_dma_begin_far(struct fntb_port *np, const void *user, u32 window,
			dma_addr_t from, u32 bytes);
void fntb_dma_put_far(struct fntb_port *np, u64 to, dma_addr_t from, u32 bytes);
u32 fntb_dma_end(struct fntb_port *np, u64 to);
bool fntb_dma_name(struct fntb_port *np, char *name, size_t size);

/* gpu.c */
extern const struct fabrex_channel_ops fntb_channel_ops;

/* inbox.c */
int fntb_inbox_aim(struct fntb_port *np);
void fntb_inbox_free(struct fntb_port *np);
int fntb_window_map(struct fntb_port *np);

/* wake.c */
void fntb_link_wake(struct fntb_port *np);

/* link.c */
void fntb_link_begin(struct fntb_port *np);
int fntb_link_run(void *data);

/* model.c */
void fntb_model_fill(struct fntb_port *np, const struct fntb_hello *peer);
int fntb_data_path(struct fabrex_port *port, struct fabrex_data_path *path);

#endif
