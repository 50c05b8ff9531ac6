/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The port on an NTB device: one peer, two inboxes. For all files of
 * fabrex_ntb.ko.
 *
 * A host writes requests, and payload, into the inbox of its peer, and answers to
 * the peer's requests. What is stored there is all that it can do: everything in
 * an inbox is checked by its owner.
 */
#ifndef FABREX_NTB_H
#define FABREX_NTB_H

#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/ntb.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "engine.h"
#include "inbox.h"
#include "slot.h"

/**
 * enum fntb_state - of a link
 * @NTB_DOWN:  the NTB's link is down, or the window is not aimed
 * @NTB_AIMED: the peer can reach the inbox
 * @NTB_HELLO: and this host the peer's
 * @NTB_UP:    both know each other's epoch
 */
enum fntb_state {
	NTB_DOWN,
	NTB_AIMED,
	NTB_HELLO,
	NTB_UP,
};

#define NTB_SLOTS_MAX	256u
#define NTB_PLACES_MAX	4096u

/**
 * struct fntb_tx - requests to the peer
 * @gate:      open while the link is up: entered by those who prepare one
 * @lock:      protects what follows
 * @count:     requests sent, in this epoch
 * @free:      slots
 * @calls:     who waits, by slot
 * @puts:      places in the peer's inbox that are used
 * @gets:      places in the own inbox that are used
 * @unrung:    the peer may have to be rung for requests
 */
struct fntb_tx {
	struct engine_gate gate;
	spinlock_t lock;
	u32 count;
	u32 free;
	struct fabrex_call calls[NTB_SLOTS_MAX];
	DECLARE_BITMAP(puts, NTB_PLACES_MAX);
	DECLARE_BITMAP(gets, NTB_PLACES_MAX);
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
 * @state:      of the link; the thread's
 * @dma_dev:    for the inbox
 * @inbox:      own
 * @inbox_dma:  its bus address, as the NTB sees it
 * @own:        its layout
 * @window:     the peer's inbox
 * @window_size: bytes that can be reached of it
 * @theirs:     its layout
 * @epoch:      of what this host sends
 * @peer_epoch: of what the peer sends; 0: not known
 * @generation: of this port
 * @peer_generation: of the peer's
 * @bell_bit:   doorbell bit, as a mask
 * @bell:       what the peer has been told, NTB_BELL_*
 * @beat:       own heartbeat
 * @beat_at:    when it was last stored, in jiffies
 * @peer_beat:  the peer's, as last seen
 * @peer_beat_at: when it last changed
 * @tx:         requests to the peer
 * @answers_lock: held by who takes answers; protects @answered
 * @answered:   answers taken, in this epoch
 * @answered_at: when the last came, or the first request was sent
 * @served:     requests served, in this epoch; the thread's
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
	enum fntb_state state;

	struct device *dma_dev;
	void *inbox;
	dma_addr_t inbox_dma;
	struct fntb_layout own;
	void __iomem *window;
	resource_size_t window_size;
	struct fntb_layout theirs;

	u32 epoch;
	u32 peer_epoch;
	u32 generation;
	u32 peer_generation;
	u64 bell_bit;
	u32 bell;
	u32 beat;
	unsigned long beat_at;
	u32 peer_beat;
	unsigned long peer_beat_at;

	struct fntb_tx tx;
	struct mutex answers_lock;
	u32 answered;
	unsigned long answered_at;
	u32 served;
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
bool fntb_wire_serve(struct fntb_port *np);
bool fntb_wire_take(struct fntb_port *np);
bool fntb_wire_waits(struct fntb_port *np);

/* wake.c */
void fntb_link_wake(struct fntb_port *np);

/* link.c */
int fntb_link_run(void *data);

/* model.c */
void fntb_model_fill(struct fntb_port *np, const struct fntb_hello *peer);

#endif
