/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wirings of given parts: cabling.c lists them, reasons.c tells of them in
 * sentences. For design.c only.
 */
#ifndef LIB_PLAN_CABLING_H
#define LIB_PLAN_CABLING_H

#include "plan/design.h"
#include "plan/optimum.h"

#define CABLING_SWITCHES	6u
#define CABLING_PORTS		4u	/* of the host */
#define CABLING_BOXES		16u
#define CABLING_ISLS		8u
#define CABLING_PLACES		(CABLING_SWITCHES * CABLING_PORTS)
#define CABLING_MOST		3000u	/* wirings that are compared */

/*
 * Where the cables go. Host ports are numbered switch by switch. A place is a
 * switch and the host port whose partition a switch port belongs to.
 */
struct cabling {
	uint8_t nports;		/* host ports in use */
	uint8_t nisls;
	uint8_t home[CABLING_PORTS];	/* switch of each host port */
	uint8_t isls[CABLING_SWITCHES][CABLING_SWITCHES];	/* [low][high] */
	uint8_t uplinks[CABLING_BOXES][CABLING_PLACES];
};

static inline uint32_t cabling_place(uint32_t sw, uint32_t port)
{
	return sw * CABLING_PORTS + port;
}

/* Check @p: what is out of range, or too few to be cabled at all. */
int cabling_check(const struct plan_parts *p, struct plan_error *e);
/* Which wirings are listed; each level has those rules before it, too. */
enum cabling_level {
	CABLING_ALL,
	/* A switch with host ports has no places of others. */
	CABLING_NEAR,
	/*
	 * Host ports are spread over the switches, uplinks of a box over all
	 * places it is at: as many, or one more. A switch without a host port
	 * belongs to one alone, the first.
	 */
	CABLING_EVEN,
	/* Boxes are cabled in two ways at most, switches joined alike. */
	CABLING_TWO,
	CABLING_LEVELS
};

/*
 * Wirings of the parts that are different, each once, of the first level of
 * which there are not too many. *out is to be freed. -E2BIG: too many of all;
 * -EINVAL: none.
 */
int cabling_list(const struct plan_parts *p, struct cabling **out,
		 uint32_t *n, enum cabling_level *level, struct plan_error *e);
/* As the text of a topology file, with @gpus in each box. NULL: no memory. */
char *cabling_text(const struct plan_parts *p, const struct cabling *c,
		   uint32_t gpus, double mesh_gbps);
/* Squares of uplinks, of each box at each place and of each host port. */
uint32_t cabling_uneven(const struct plan_parts *p, const struct cabling *c);
/* Of switch @sw: ports taken. */
uint32_t cabling_taken(const struct plan_parts *p, const struct cabling *c,
		       uint32_t sw);

/* ---- reasons.c --------------------------------------------------------- */

/* A wiring and how good it is. */
struct candidate {
	const struct cabling *cabling;
	struct plan_ratio bound;	/* busbw of the collective */
	struct plan_ratio cut;		/* of rings */
	struct plan_ratio apart;	/* cut, without the root complex */
	uint32_t uneven;		/* of uplinks, see cabling_uneven() */
	struct plan_ratio optimal, ring;	/* 0: not looked for */
	bool optimal_proved, ring_proved;
	uint32_t nrings;
	char *limit;			/* what the bound is, in words; or NULL */
};

/* "4 uplinks of 27 GB/s, together 108, lead out of ..."; NULL: no memory. */
char *reasons_limit(const struct plan_graph *g, const struct plan_bound *b);
/*
 * What limits @best, against @next and @worst (both may be NULL): sentences.
 * NULL: no memory.
 */
char *reasons(const struct plan_parts *p, enum plan_collective c,
	      enum cabling_level level, const struct candidate *best, const struct candidate *next,
	      const struct candidate *worst);

#endif
