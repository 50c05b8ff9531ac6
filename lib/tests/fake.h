/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fabric inside the test process: transport_ops over a thread that acts as
 * the device on the same ring formats. Only tests call it; it does as told.
 */
#ifndef LIB_TESTS_FAKE_H
#define LIB_TESTS_FAKE_H

#include <stdint.h>
#include "transport/transport.h"

#define FAKE_PORTS	3	/* a.0, b.0, c.0; peer numbers 0, 1, 2 */
#define FAKE_MAX_TRANSFER (64u << 20)

enum fake_fault {
	FAKE_NONE,
	FAKE_LOSE_COMPLETION,	/* executed, but no completion is written */
	FAKE_BAD_INDEX,		/* completion names an entry never posted */
	FAKE_BAD_OPCODE,	/* completion for another operation */
	FAKE_BAD_USER_DATA,	/* user_data is not what was posted */
	FAKE_BAD_CELL,		/* RECV names a cell it does not own */
	FAKE_BAD_LENGTH,	/* RECV longer than its cell */
};

extern const struct transport_ops fake_ops;

/* Stop the device; then let it execute n entries more. */
void fake_hold(void);
void fake_step(unsigned int n);
void fake_run(void);
/* The next completion written is faulty. */
void fake_fault(enum fake_fault fault);
/* End a queue as the device or the kernel does. */
void fake_kill(uint32_t queue, uint32_t state, uint32_t error);
/* The same for all queues of a port: a reset. */
void fake_end_queues(unsigned int peer);
/* A port of the fabric stops or starts answering others. */
void fake_link(unsigned int peer, bool up);
/* Hand an event to everybody who has the port open. */
void fake_event(unsigned int peer, const struct transport_event *event);
/* Id in events of the queue with a number. */
uint32_t fake_queue_id(uint32_t queue);
/* Everything of the port ends; later calls return -ENODEV. */
void fake_gone(unsigned int peer, bool gone);
/* Next queue_create describes rings outside its memory. */
void fake_bad_rings(void);
/* Ports have no watch page from now on, or have. */
void fake_unwatched(bool on);
/* They have one, but refuse to watch memory of the host. */
void fake_host_unwatched(bool on);
/* Count up what was registered within the addresses, as munmap() does. */
void fake_changed(const void *addr, size_t length);
/* So many registrations fail with the errno; all take that long. */
void fake_mr_errors(unsigned int n, int err);
void fake_mr_delay(unsigned int us);
/* Registrations wait, before anything else, while it is shut; until n do. */
void fake_mr_gate(bool shut);
void fake_mr_await(unsigned int n);
/* No more regions than that; their ends take that long. */
void fake_mr_quota(unsigned int n, unsigned int us);
/* Revoked as soon as they exist, some time before the caller knows of them. */
void fake_mr_revoked(bool on);
/* Registrations so far; and of the region: was it to be pinned? */
unsigned int fake_registrations(void);
bool fake_mr_pinned(uint64_t id);
/* Objects that exist now. */
unsigned int fake_objects(void);

#endif
