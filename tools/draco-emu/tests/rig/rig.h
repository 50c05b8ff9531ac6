/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device model without transport: ports whose guests are buffers of this
 * process, and a driver in miniature. For model tests and fuzzers.
 */
#ifndef EMU_RIG_H
#define EMU_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"
#include "fabric.h"
#include "port.h"

#define RIG_MEM		(32u << 20)	/* of a guest, from bus address 0 */
#define RIG_ADMIN_SIZE	64u
#define RIG_ADMIN_SQ	0x1000u
#define RIG_ADMIN_CQ	0x3000u
#define RIG_DATA	0x10000u	/* 128 KiB for command data */
#define RIG_QUEUES	0x100000u	/* rings, 1 MiB for each queue */
#define RIG_FREE	0x800000u	/* the tests' own */
#define RIG_HOSTS	4u

/* Bus addresses that only messages reach, once a test has mapped them. */
#define RIG_BEYOND	0x4000000000ull
#define RIG_BEYOND_SIZE	(1u << 20)
extern unsigned char rig_beyond[RIG_BEYOND_SIZE];

struct rig_guest {
	struct port *port;
	unsigned char *mem;
	uint32_t sq_tail, cq_head;
	bool phase;
	uint16_t next_cid;
	struct draco_acpl early[64];	/* completions nobody asked for yet */
	unsigned int nearly;
	unsigned int nqueues;
};

struct rig_queue {
	struct rig_guest *g;
	uint32_t number, pd;
	uint64_t key;
	uint32_t sq_entries, cq_entries, rq_entries, cell;
	uint64_t base;			/* control page; then sq, cq, rq */
	uint64_t sq, cq, rq;
	uint32_t sq_tail, cq_head, rq_head;
	uint64_t service, serial;
	uint16_t vector;
};

extern struct fabric rig_fabric;
extern struct rig_guest rig_guest[RIG_HOSTS];
extern const char rig_topology[];

/* @text NULL: four hosts a to d, and a switch with a box of endpoints. */
void rig_start(const char *text, unsigned int threads, const char *state);
void rig_stop(void);
uint64_t rig_raised(struct rig_guest *g, unsigned int vector);

/* Fake slots: QEMU of a host comes or goes; the guest empties a slot. */
void rig_host_up(struct rig_guest *g, bool up);
bool rig_power_off(struct rig_guest *g, unsigned int slot);
/* Slots say nothing of their own while held. */
void rig_hold_presence(bool on);
bool rig_slot_full(struct rig_guest *g, unsigned int slot);
/* The link that the endpoint in @slot was told to look at. */
const atomic_bool *rig_slot_link(struct rig_guest *g, unsigned int slot);
/* What was plugged there last. */
const struct endpoint_desc *rig_slot_endpoint(struct rig_guest *g,
					      unsigned int slot);
/* The way to it is up, as far as slots_link() was told. */
bool rig_slot_linked(struct rig_guest *g, unsigned int slot);
/* All in @slot, in the order of their functions: "box.gpu0 box.gpu1 dead cut". */
void rig_slot_names(struct rig_guest *g, unsigned int slot, char *buf,
		    size_t len);
/* QEMU does not take the next device. */
void rig_refuse_plug(void);
/* The endpoint in @slot has @mem in a BAR at @addr. */
bool rig_map_bar(struct rig_guest *g, unsigned int slot, uint64_t addr,
		 void *mem, uint64_t size);
/* Wait for deferred work of the loop's thread. */
void rig_settle(void);

/* Registers and life of a port. */
uint32_t rig_read(struct rig_guest *g, uint64_t offset);
void rig_write(struct rig_guest *g, uint64_t offset, uint32_t v);
bool rig_wait_status(struct rig_guest *g, uint32_t mask, uint32_t value);
bool rig_enable(struct rig_guest *g);
bool rig_disable(struct rig_guest *g);

/*
 * Admin commands: post and wait by cid, or both. rig_wait returns false after
 * @ms without a completion.
 */
uint16_t rig_post(struct rig_guest *g, struct draco_acmd *cmd);
/* Post a command that stays pending; it has begun on return. */
uint16_t rig_begin(struct rig_guest *g, struct draco_acmd *cmd);
bool rig_wait(struct rig_guest *g, uint16_t cid, struct draco_acpl *out,
	      unsigned int ms);
unsigned int rig_admin(struct rig_guest *g, struct draco_acmd cmd,
		       struct draco_acpl *out);
void *rig_data(struct rig_guest *g);
/* With rig_data(): an admin command that reads or writes @len bytes. */
struct draco_acmd rig_cmd(unsigned int opcode, uint32_t id, uint32_t len);

/* Everything a test needs in one call; abort() if refused. */
uint64_t rig_mr(struct rig_guest *g, uint64_t addr, uint64_t len,
		uint32_t access, uint32_t pd, uint32_t *index);
void rig_queue_init(struct rig_queue *q, struct rig_guest *g, uint32_t pd);
unsigned int rig_queue_create(struct rig_queue *q);
unsigned int rig_queue_destroy(struct rig_queue *q);

_Atomic uint32_t *rig_ctrl(struct rig_queue *q, size_t offset);
void rig_push(struct rig_queue *q, const struct fabrex_sqe *sqe);
void rig_ring(struct rig_queue *q);
/*
 * Limits in milliseconds: RIG_HUNG for what has to come, less only for what must
 * not come.
 */
#define RIG_HUNG	120000

/* Next completion within @ms. */
bool rig_poll(struct rig_queue *q, struct fabrex_cqe *cqe, unsigned int ms);
/* Post one and wait: its status, or -1. */
int rig_do(struct rig_queue *q, const struct fabrex_sqe *sqe,
	   struct fabrex_cqe *cqe);

#define RIG_ALL	(DRACO_ACCESS_LOCAL_WRITE | DRACO_ACCESS_REMOTE_READ | \
		 DRACO_ACCESS_REMOTE_WRITE | DRACO_ACCESS_REMOTE_ATOMIC)

#endif
