// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: events. Each has a header in the address space; what a
 * partition enables and clears there is its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pfx.h"

int pfx_events_init(struct pfx_part *p)
{
	struct pfx_events *e = &p->events;

	e->part = calloc(p->pfx->nparts, sizeof(*e->part));
	e->link = calloc(p->pfx->npffs, sizeof(*e->link));
	e->hotplug = calloc(p->pfx->npffs, sizeof(*e->hotplug));
	return e->part && e->link && e->hotplug ? 0 : -ENOMEM;
}

void pfx_events_free(struct pfx_part *p)
{
	free(p->events.part);
	free(p->events.link);
	free(p->events.hotplug);
}

/* Counts go on, so that they differ from what a driver has seen. */
static void reset_some(struct pfx_event *e, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		e[i].enables = 0;
		e[i].occurred = false;
	}
}

void pfx_events_reset(struct pfx_part *p)
{
	reset_some(p->events.part[0], p->pfx->nparts * PFX_EV_PART_MAX);
	reset_some(p->events.link, p->pfx->npffs);
	reset_some(p->events.hotplug, p->pfx->npffs);
}

/* ---- Registers ---- */

static struct pfx_event *part_event(struct pfx_part *p, uint32_t offset)
{
	static const uint32_t headers[PFX_EV_PART_MAX] = {
		[PFX_EV_RESET] = PART_EVENT_RESET,
		[PFX_EV_MRPC] = PART_EVENT_MRPC,
		[PFX_EV_ASYNC] = PART_EVENT_ASYNC,
		[PFX_EV_BINDING] = PART_EVENT_BINDING,
		[PFX_EV_INTERCOMM] = PART_EVENT_INTERCOMM,
	};
	unsigned int id = offset / GAS_PART_SIZE;

	for (unsigned int i = 0; i < PFX_EV_PART_MAX; i++) {
		if (id < p->pfx->nparts &&
		    offset % GAS_PART_SIZE == headers[i])
			return &p->events.part[id][i];
	}
	return NULL;
}

static struct pfx_event *pff_event(struct pfx_part *p, uint32_t offset,
				   bool *header)
{
	unsigned int pff = offset / GAS_PFF_SIZE;
	uint32_t at = offset % GAS_PFF_SIZE;

	*header = pff < p->pfx->npffs && at >= PFF_EVENT_FIRST &&
		  at < PFF_EVENT_END && !((at - PFF_EVENT_FIRST) % EVENT_STRIDE);
	if (*header && at == PFF_EVENT_LINK)
		return &p->events.link[pff];
	if (*header && at == PFF_EVENT_HOTPLUG)
		return &p->events.hotplug[pff];
	return NULL;
}

/* The event whose header it is; NULL for one that there is not, or no header. */
static struct pfx_event *find(struct pfx_part *p, uint32_t offset,
			      bool *header)
{
	struct pfx_event *e = NULL;

	*header = false;
	if (offset >= GAS_SW_EVENT && offset < GAS_SW_EVENT_END) {
		offset -= GAS_SW_EVENT;
		*header = offset >= SW_EVENT_FIRST &&
			  !((offset - SW_EVENT_FIRST) % EVENT_STRIDE);
	} else if (offset >= GAS_PART && offset < GAS_NTB_INFO) {
		e = part_event(p, offset - GAS_PART);
		*header = e != NULL;
	} else if (offset >= GAS_PFF) {
		e = pff_event(p, offset - GAS_PFF, header);
	}
	return e;
}

bool pfx_event_read(struct pfx_part *p, uint32_t offset, uint32_t *v)
{
	bool header;
	const struct pfx_event *e = find(p, offset, &header);

	if (!header)
		return false;
	*v = e ? (uint32_t)e->count << EVENT_COUNT_SHIFT | e->enables |
		 (e->occurred ? EVENT_OCCURRED : 0) : EVENT_NOT_SUPPORTED;
	return true;
}

bool pfx_event_write(struct pfx_part *p, uint32_t offset, uint32_t v,
		     uint32_t mask)
{
	bool header;
	struct pfx_event *e = find(p, offset, &header);

	if (!e)
		return header;
	if (v & mask & EVENT_OCCURRED)
		e->occurred = false;
	e->enables = pfx_merge(e->enables, v, mask) & EVENT_ENABLES;
	/* What has occurred while nobody wanted to hear of it. */
	if (e->occurred && e->enables & EVENT_INTERRUPT)
		pfx_raise(p, PFX_EVENT_VECTOR);
	return true;
}

/* ---- Occurrence ---- */

static void occur(struct pfx_part *p, struct pfx_event *e)
{
	e->occurred = true;
	e->count++;
	if (e->enables & EVENT_INTERRUPT)
		pfx_raise(p, PFX_EVENT_VECTOR);
}

void pfx_event_part(struct pfx_part *p, unsigned int of,
		    enum pfx_part_event what)
{
	occur(p, &p->events.part[of][what]);
}

void pfx_event_link(struct pfx_part *p)
{
	for (unsigned int i = 0; i < p->pfx->nparts; i++)
		occur(p->pfx->parts[i],
		      &p->pfx->parts[i]->events.link[p->first_pff]);
}
