/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One PCI function offered over a vfio-user socket: config space, BARs, MSI-X,
 * resets, DMA. Device models (port.c, endpoint.c) are built on this.
 */
#ifndef EMU_FUNCTION_H
#define EMU_FUNCTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dma_map.h"

#define FUNCTION_BARS		6
#define FUNCTION_MSIX_MAX	64

/* function_bar.flags; every BAR is a memory BAR. */
#define FUNCTION_BAR_64		(1u << 0)	/* takes the next BAR too */
#define FUNCTION_BAR_PREFETCH	(1u << 1)
#define FUNCTION_BAR_MEMORY	(1u << 2)	/* backed by a memfd which the
						 * client may mmap; no ops */
#define FUNCTION_BAR_RESIZE	(1u << 3)	/* from 1 MiB to its size, by
						 * the capability; one BAR */

struct function_bar {
	uint64_t size;			/* power of two >= 4096, or 0: none */
	uint32_t flags;
};

/**
 * struct function_desc - what a function looks like
 * @name:       for log messages
 * @socket:     path of its listening socket; replaced if it exists
 * @class_code: 24 bits, class << 16 | subclass << 8 | interface
 * @msix_table: offset of the table in @msix_bar (pending bits: @msix_pba);
 *              the client emulates both, the model never sees accesses there
 * @link_speed, @link_width: what the PCIe capability says: 1..6 (16 GT/s is
 *              4), 1..16
 * @dma:        the function is a master: client memory is mapped
 * @isolated:   requests do not reach other functions of the device by a shorter
 *              way; not with FUNCTION_BAR_RESIZE
 * @link:       NULL, or whether the way to the function is up: while it is not,
 *              config and BAR accesses are answered as by a dead function, but
 *              for memory that the client has mapped: function_link()
 */
struct function_desc {
	const char *name;
	const char *socket;
	uint16_t vendor, device, subvendor, subdevice;
	uint32_t class_code;
	uint8_t revision;
	uint8_t link_speed, link_width;
	struct function_bar bar[FUNCTION_BARS];
	unsigned int msix_vectors;
	unsigned int msix_bar;
	uint32_t msix_table, msix_pba;
	bool dma;
	bool isolated;
	const atomic_bool *link;
};

enum function_reset {
	FUNCTION_RESET_FLR,		/* the guest's driver or kernel */
	FUNCTION_RESET_DEVICE,		/* QEMU: guest reboot, device reset */
	FUNCTION_RESET_LOST,		/* the client went away */
};

struct function;

/**
 * struct function_ops - the model behind a function
 * @bar_read:   fill all of @buf (any @count from 1, any alignment, within the
 *              BAR); only BARs without FUNCTION_BAR_MEMORY
 * @bar_write:  likewise. Posted: the guest does not wait for it to return
 * @attach:     a client has connected and is negotiated (a guest's QEMU)
 * @detach:     it is gone. @reset(LOST) has been called before, and all DMA
 *              mappings are taken away right after it returns
 * @reset:      back to the state after power-on. When it returns the model
 *              starts no DMA and raises no vector until it is set up anew.
 *              Config space is reset after it. Well within 5 s: then QEMU
 *              stops waiting for the reply
 * @bus_master: the bit changed. Off: DMA is refused already, none is under way
 * @bars:       addresses, sizes or memory enable changed
 *              (function_bar_addr())
 *
 * These run in the function's own thread, one at a time: accesses of one
 * guest never wait for those of another. They must not block on I/O or on
 * another function's thread. Any may be NULL.
 *
 * @memory:     from inside function_create(): memory of a FUNCTION_BAR_MEMORY
 *              BAR, valid until destroy. 0 or -errno
 * @dead:       from inside function_set_dead(), whatever thread that is, at the
 *              same time as others: the model must not touch that memory when
 *              it returns
 */
struct function_ops {
	void (*bar_read)(void *arg, unsigned int bar, uint64_t offset,
			 void *buf, size_t count);
	void (*bar_write)(void *arg, unsigned int bar, uint64_t offset,
			  const void *buf, size_t count);
	void (*attach)(void *arg);
	void (*detach)(void *arg);
	void (*reset)(void *arg, enum function_reset why);
	void (*bus_master)(void *arg, bool on);
	void (*bars)(void *arg);
	int (*memory)(void *arg, unsigned int bar, void *mem, int fd);
	void (*dead)(void *arg);
};

/*
 * Create: binds the socket, listens and starts the thread. -errno with a
 * logged reason, or 0 and *out. Destroy: closes the client, calls detach if
 * one was attached, waits for the thread and for every DMA hold, frees.
 * Not from the function's own thread (use loop_defer()).
 */
int function_create(const struct function_desc *desc,
		    const struct function_ops *ops, void *arg,
		    struct function **out);
void function_destroy(struct function *f);

/*
 * Raise an MSI-X vector. Any thread, cheap, never blocks. Lost if the guest
 * has not enabled MSI-X, as on a bus; kept pending while masked.
 */
void function_raise(struct function *f, unsigned int vector);

/*
 * Call it now and then, from one thread, not more often than every 100 ms: a
 * client that has made a writer of its interrupts block since the last call is
 * thrown out and the writer set free (true).
 */
bool function_unstick(struct function *f);

/*
 * Client memory; NULL if desc.dma is false. Refuses (-EFAULT) while bus master
 * is off, no client is attached, or the function is dead. With dma_get() and
 * its friends. For addresses that may be an endpoint's BAR: slots_get().
 */
struct dma_map *function_dma(struct function *f);

/*
 * Client memory that has no local pointer (dma_get() says -ENODATA), through
 * messages: VU_MAX_DMA bytes at most. 0 or -errno. Waits for the client, up to
 * 4 s, after which it is thrown out; so not with a dma_hold, nor in the thread
 * of any function.
 */
int function_message(struct function *f, bool write, uint64_t addr, void *buf,
		     size_t len);

/*
 * Address of a BAR as the host has programmed it, and its present size; false
 * if it decodes nothing (not programmed, memory enable off, dead). Any thread.
 */
bool function_bar_addr(struct function *f, unsigned int bar, uint64_t *addr,
		       uint64_t *size);

/*
 * Local pointer to a FUNCTION_BAR_MEMORY BAR, valid until destroy: all that it
 * has, whatever its present size.
 */
void *function_bar_memory(struct function *f, unsigned int bar);

/*
 * Like a card pulled out: config and BAR reads give all ones, writes are
 * dropped, DMA and interrupts refused; DMA under way has ended when this
 * returns. For good. Any thread but the function's own.
 */
void function_set_dead(struct function *f);

/*
 * The way to the function has gone down: what was in use of its memory reads as
 * ones, also for a client that has it mapped; and up: it is as before, what was
 * stored meanwhile is lost. From one thread; desc.link is down during both.
 */
void function_link(struct function *f, bool up);

bool function_attached(struct function *f);
const char *function_name(struct function *f);

/* Interrupts sent so far, for counters. Any thread. */
uint64_t function_interrupts(struct function *f);

#endif
