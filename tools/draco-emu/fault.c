// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection. Armed by control.c, taken by queues, ports and admin.
 */
#include "fault.h"

#include <string.h>

void fault_arm(struct faults *f, unsigned int kind, uint32_t queue,
	       uint32_t count)
{
	struct fault_point *p = &f->point[kind];

	atomic_store(&p->queue, queue);
	atomic_store(&p->left, count);
	if (count)
		atomic_fetch_or(&f->armed, 1u << kind);
	else
		atomic_fetch_and(&f->armed, ~(1u << kind));
}

bool fault_take(struct faults *f, unsigned int kind, uint32_t queue)
{
	struct fault_point *p = &f->point[kind];
	uint32_t want = atomic_load(&p->queue);
	uint32_t left = atomic_load(&p->left);

	if (want != FAULT_ANY_QUEUE && want != queue)
		return false;
	do {
		if (!left)
			return false;
	} while (!atomic_compare_exchange_weak(&p->left, &left, left - 1));
	if (left == 1)
		atomic_fetch_and(&f->armed, ~(1u << kind));
	atomic_fetch_add(&p->taken, 1);
	return true;
}

void fault_forget_queue(struct faults *f, uint32_t queue)
{
	static const unsigned int kinds[] = {
		DRACO_FAULT_STUCK_COMPLETION, DRACO_FAULT_CORRUPT_COMPLETION,
		DRACO_FAULT_CORRUPT_PAYLOAD, DRACO_FAULT_DROP_DOORBELL,
		DRACO_FAULT_LATE_ACCESS,
	};

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (atomic_load(&f->point[kinds[i]].queue) == queue)
			fault_arm(f, kinds[i], FAULT_ANY_QUEUE, 0);
	}
}

uint32_t fault_taken(struct faults *f, unsigned int kind)
{
	return atomic_load(&f->point[kind].taken);
}

unsigned int fault_kind(const char *name)
{
	static const char *const names[FAULT_KINDS] = {
		[DRACO_FAULT_STUCK_COMPLETION] = "stuck-completion",
		[DRACO_FAULT_CORRUPT_COMPLETION] = "corrupt-completion",
		[DRACO_FAULT_CORRUPT_PAYLOAD] = "corrupt-payload",
		[DRACO_FAULT_DROP_DOORBELL] = "drop-doorbell",
		[DRACO_FAULT_LATE_ACCESS] = "late-access",
		[DRACO_FAULT_STUCK_STOP] = "stuck-stop",
		[DRACO_FAULT_LOST_EVENT] = "lost-event",
	};

	for (unsigned int k = 0; k < FAULT_KINDS; k++) {
		if (names[k] && !strcmp(names[k], name))
			return k;
	}
	return 0;
}

void pace_set(struct pace *p, uint64_t rate)
{
	atomic_store(&p->next_ns, 0);
	atomic_store(&p->rate, rate);
}

uint64_t pace_wait(struct pace *p, uint64_t now)
{
	uint64_t next = atomic_load_explicit(&p->next_ns, memory_order_relaxed);

	return pace_on(p) && next > now ? next - now : 0;
}

void pace_charge(struct pace *p, uint64_t now, uint64_t bytes)
{
	uint64_t rate = atomic_load_explicit(&p->rate, memory_order_relaxed);
	uint64_t next = atomic_load_explicit(&p->next_ns, memory_order_relaxed);
	uint64_t from;

	if (!rate)
		return;
	do {
		from = next > now ? next : now;
	} while (!atomic_compare_exchange_weak(&p->next_ns, &next,
					       from + bytes * 1000000000 /
					       rate));
}

uint64_t pace_chunk(struct pace *p, uint64_t bytes)
{
	uint64_t rate = atomic_load_explicit(&p->rate, memory_order_relaxed);
	uint64_t max = rate / 100;

	if (!rate)
		return bytes;
	if (max < 64)
		max = 64;
	return bytes < max ? bytes : max;
}
