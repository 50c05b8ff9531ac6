/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The physical hot-plug slots of one partition (one host port). Everything but
 * slots_peer() runs in the loop's thread; callbacks too.
 */
#ifndef EMU_SLOT_H
#define EMU_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "dma_map.h"
#include "endpoint.h"

#define SLOT_FUNCTIONS	8u		/* of one device, as PCI has them */

struct qmp;
struct slots;

/* One function of the device that is plugged into a slot. */
struct slots_function {
	struct endpoint_desc ep;
	void *cookie;			/* not NULL, and no other's */
};

/**
 * struct slots_ops - what the fabric model wants to hear
 * @plugged: QEMU has the device in the slot (presence), err == 0; or it
 *           refused (-errno, reason logged) and the slot is empty
 * @emptied: the device is out of the slot and its functions are gone, for
 *           whatever reason: power-off by the guest, surprise, QEMU gone.
 *           Comes exactly once for every successful plugged
 * @host:    QEMU's monitor came (true) or went (false). Gone: every slot is
 *           emptied, the callbacks for them come first
 * The first two come for each function, with its cookie, when all of them are
 * in, or out.
 */
struct slots_ops {
	void (*plugged)(void *arg, unsigned int slot, void *cookie, int err);
	void (*emptied)(void *arg, unsigned int slot, void *cookie);
	void (*host)(void *arg, bool up);
};

struct slots_desc {
	const char *host;		/* name of the host */
	unsigned int index;		/* of the port in its host */
	const char *run_dir;
	unsigned int first, count;	/* slot numbers: first..first+count-1 */
	struct qmp *qmp;		/* of the host, shared by its ports;
					 * has to outlive the slots */
	struct function *port;		/* the partition's host port function */
};

int slots_create(const struct slots_desc *desc, const struct slots_ops *ops,
		 void *arg, struct slots **out);
void slots_destroy(struct slots *s);

/* Is QEMU there to plug into? */
bool slots_host_up(struct slots *s);

/*
 * The slot to use next (least recently used; not within 2 s of its power-off
 * while another one is free), leaving out those whose bit is set in @taken.
 * Also while the host is down. -ENOSPC: none is free.
 */
int slots_pick(struct slots *s, uint64_t taken);

/*
 * Create instances of the functions of one device, @n of them from number 0 on,
 * and hot-plug it into @slot. 0, or -EHOSTDOWN no QEMU, -EBUSY not empty, other
 * -errno. plugged() comes later, never from inside this call.
 */
int slots_plug(struct slots *s, unsigned int slot,
	       const struct slots_function *list, unsigned int n);

/*
 * Surprise: the instance of @cookie is dead when this returns (all ones, DMA
 * refused and none under way). When all in the slot are, it is tidied up;
 * emptied() comes when QEMU has let go.
 */
void slots_kill(struct slots *s, unsigned int slot, void *cookie);

/*
 * The way to the instance of @cookie is down, or up again: function_link().
 * Nothing if it is dead.
 */
void slots_link(struct slots *s, unsigned int slot, void *cookie, bool up);

/*
 * Hand the slot's device to the guest's orderly removal (attention button);
 * only needed if the guest does not power the slot off by itself.
 */
int slots_eject(struct slots *s, unsigned int slot);

/* The instance of a function in a slot, or NULL. */
struct endpoint *slots_endpoint(struct slots *s, unsigned int slot,
				unsigned int function);

/*
 * Memory BAR of one of the partition's endpoints at a bus address, as its
 * switch routes it: as dma_get(), -ENXIO: none of them decodes it. h->cookie is
 * that of slots_plug(). Any thread.
 */
int slots_peer(struct slots *s, uint64_t addr, size_t len, unsigned int prot,
	      struct dma_hold *h);

#endif
