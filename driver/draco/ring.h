/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Index arithmetic of the admin rings and command identifiers. Pure: used by
 * admin.c and, in user space, by driver/tests.
 */
#ifndef DRACO_RING_H
#define DRACO_RING_H

#include <linux/types.h>
#include <draco/regs.h>

/* Most commands in flight: indices fit the low bits of a cid. */
#define DRACO_CID_BITS		6
#define DRACO_ADMIN_ENTRIES	(1u << DRACO_CID_BITS)

/**
 * draco_ring_entries() - size of the admin rings for what a device can do
 * @admin_max: DRACO_CAP_ADMIN_MAX()
 *
 * Return: a power of two, at most %DRACO_ADMIN_ENTRIES; 0 if the device
 * claims less than the minimum
 */
static inline u32 draco_ring_entries(u32 admin_max)
{
	u32 n = DRACO_ADMIN_ENTRIES;

	while (n > admin_max)
		n /= 2;
	return n < DRACO_ADMIN_MIN ? 0 : n;
}

/* A ring is full with one entry free; so this many may be in flight. */
static inline u32 draco_ring_slots(u32 entries)
{
	return entries - 1;
}

/* Who asks for a slot; each finds room that those before it leave. */
enum draco_prio {
	DRACO_PRIO_QUERY,	/* reading, by users: a small share */
	DRACO_PRIO_USER,	/* commands that users cause, as many as they like */
	DRACO_PRIO_CHANGE,	/* of the fabric: may wait for other hosts */
	DRACO_PRIO_DRIVER,	/* events, releases, destruction: others wait for it */
	DRACO_PRIO_RESERVE,	/* GET_EVENTS, ABORT, whoever starts the controller */
	DRACO_PRIOS
};

/* How many commands of any kind may be in flight with one of this priority. */
static inline u32 draco_ring_limit(u32 entries, enum draco_prio prio)
{
	static const u32 large[DRACO_PRIOS] = { 8, 8, 6, 4, 0 };
	static const u32 small[DRACO_PRIOS] = { 3, 3, 2, 1, 0 };
	static const u32 tiny[DRACO_PRIOS] = { 2, 2, 2, 1, 0 };

	return draco_ring_slots(entries) - (entries >= 32 ? large[prio] :
					    entries >= 8 ? small[prio] :
							   tiny[prio]);
}

/* How many of them may be of this priority: who reads all day leaves room for
 * those who work, and changes that wait for somebody's answer likewise.
 */
static inline u32 draco_ring_share(u32 entries, enum draco_prio prio)
{
	u32 share = draco_ring_slots(entries);

	if (prio == DRACO_PRIO_QUERY)
		share /= 8;
	else if (prio == DRACO_PRIO_CHANGE)
		share = draco_ring_limit(entries, DRACO_PRIO_USER) / 2;
	return share ? share : 1;
}

/**
 * draco_ring_room() - commands that can be submitted now
 * @entries:  of the ring
 * @prio:     of the commands
 * @inflight: commands in flight
 * @same:     of them with this priority
 *
 * Return: their number
 */
static inline u32 draco_ring_room(u32 entries, enum draco_prio prio,
				  u32 inflight, u32 same)
{
	u32 limit = draco_ring_limit(entries, prio);
	u32 share = draco_ring_share(entries, prio);

	if (inflight >= limit || same >= share)
		return 0;
	return limit - inflight < share - same ? limit - inflight :
						 share - same;
}

static inline u32 draco_ring_next(u32 index, u32 entries)
{
	return (index + 1) & (entries - 1);
}

/* The upper bits tell apart the users of one index, so that a completion that
 * is late or repeated is not taken for that of the next command.
 */
static inline u16 draco_cid(u32 index, u32 round)
{
	return (u16)(round << DRACO_CID_BITS | index);
}

static inline u32 draco_cid_index(u16 cid)
{
	return cid & (DRACO_ADMIN_ENTRIES - 1);
}

/**
 * struct draco_cq_pos - where the next admin completion is expected
 * @head:  index
 * @phase: value of the phase bit of an entry that is new
 */
struct draco_cq_pos {
	u32 head;
	u16 phase;
};

static inline void draco_cq_start(struct draco_cq_pos *pos)
{
	pos->head = 0;
	pos->phase = 1;
}

static inline bool draco_cq_is_new(const struct draco_cq_pos *pos, u16 flags)
{
	return (flags & 1) == pos->phase;
}

static inline void draco_cq_advance(struct draco_cq_pos *pos, u32 entries)
{
	pos->head = draco_ring_next(pos->head, entries);
	if (!pos->head)
		pos->phase ^= 1;
}

#endif
