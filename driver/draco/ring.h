/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Index arithmetic of the admin rings, and command identifiers. Pure functions:
 * used by admin.c and, in user space, by driver/tests.
 */
#ifndef DRACO_RING_H
#define DRACO_RING_H

#include <linux/types.h>
#include <draco/regs.h>

/* Maximum of commands in flight: the index has to fit the low bits of a cid. */
#define DRACO_CID_BITS		6
#define DRACO_ADMIN_ENTRIES	(1u << DRACO_CID_BITS)

/**
 * draco_ring_entries() - choose the size of the admin rings
 * @admin_max: maximum of the device, DRACO_CAP_ADMIN_MAX()
 *
 * Context: Any.
 * Return: a power of two, at most %DRACO_ADMIN_ENTRIES; 0 if the device
 * supports less than the minimum
 */
static inline u32 draco_ring_entries(u32 admin_max)
{
	u32 n = DRACO_ADMIN_ENTRIES;

	while (n > admin_max)
		n /= 2;
	return n < DRACO_ADMIN_MIN ? 0 : n;
}

/* One entry of a full ring stays free. */
static inline u32 draco_ring_slots(u32 entries)
{
	return entries - 1;
}

/* Priorities: each may use slots that the ones before it must leave free. */
enum draco_prio {
	DRACO_PRIO_QUERY,	/* reads by users: a small share */
	DRACO_PRIO_USER,	/* what users cause, in any number */
	DRACO_PRIO_CHANGE,	/* changes of the fabric: may take long */
	DRACO_PRIO_DRIVER,	/* others wait for it: events, destruction */
	DRACO_PRIO_RESERVE,	/* GET_EVENTS, ABORT, controller's owner */
	DRACO_PRIOS
};

/* How many commands may be in flight when one of this priority is submitted. */
static inline u32 draco_ring_limit(u32 entries, enum draco_prio prio)
{
	static const u32 large[DRACO_PRIOS] = { 8, 8, 6, 4, 0 };
	static const u32 small[DRACO_PRIOS] = { 3, 3, 2, 1, 0 };
	static const u32 tiny[DRACO_PRIOS] = { 2, 2, 2, 1, 0 };

	return draco_ring_slots(entries) - (entries >= 32 ? large[prio] :
					    entries >= 8 ? small[prio] :
							   tiny[prio]);
}

/* How many of them may have this priority. Queries leave room for real work,
 * and so do changes, which may have to wait for somebody's answer.
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
 * draco_ring_room() - number of commands that can be submitted now
 * @entries:  size of the ring
 * @prio:     priority of the commands
 * @inflight: number of commands in flight
 * @same:     number of these with the same priority
 *
 * Context: Any.
 * Return: that number
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

/* The upper bits distinguish successive users of an index, so that a late or
 * repeated completion is not taken for that of the next command.
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
 * struct draco_cq_pos - position in the admin completion ring
 * @head:  index of the next entry
 * @phase: phase bit of a new entry
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
