/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many messages a lane has under way. Those that are read where they are, or
 * copied by a GPU's runtime, are posted and then take their time. Over a link
 * that is slow, or crowded, what arrives to be forwarded is not to wait behind
 * many that could be posted earlier, as that adds up on a path of several ranks:
 * there are four then, which keep the link busy while the rank waits for a
 * processor. Over others there are as many as slots, as it may take a while until
 * their end is noticed.
 *
 * A lane begins with four, and is allowed more when those have been quick.
 */
#ifndef FXI_COLL_PACE_H
#define FXI_COLL_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "coll/link/link.h"

#define PACE_LEAST	4u
/* Slow: longer than ranks that share a processor nap (coll/failure/rest.c). */
#define PACE_SLOW_NS	5000000u

struct pace {
	uint64_t since[LINK_SLOTS];	/* that they are under way, by number */
	uint32_t posted, ended;
	uint32_t most;			/* 0: PACE_LEAST */
};

/* One more is under way. */
static inline void fxi_pace_post(struct pace *p)
{
	p->since[p->posted++ % LINK_SLOTS] = fxi_now_ns();
}

static inline bool fxi_pace_full(const struct pace *p, uint32_t flying)
{
	return flying >= (p->most ? p->most : PACE_LEAST);
}

/* So many are, as it turns out. */
static inline void fxi_pace_look(struct pace *p, uint32_t flying)
{
	uint64_t now;

	if (p->posted - p->ended <= flying)
		return;
	now = fxi_now_ns();
	if (!p->most)
		p->most = PACE_LEAST;
	for (; p->posted - p->ended > flying; p->ended++) {
		if (now - p->since[p->ended % LINK_SLOTS] > PACE_SLOW_NS)
			p->most = PACE_LEAST;
		else if (p->most < LINK_SLOTS)
			p->most *= 2;
	}
}

#endif
