// SPDX-License-Identifier: GPL-2.0-only
/*
 * Layout of an inbox, and names that a peer has said. Called by link.c; without
 * kernel services, so that driver/tests can run it in user space.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "layout.h"
#include "slot.h"

/* So many places make the most of a window; larger ones, of a DMA engine. */
#define PLACES		12u

static u32 fntb_slots(u64 size)
{
	if (size >= 1u << 20)
		return 256;
	return size >= 256u << 10 ? 128 : 32;
}

/**
 * fntb_layout_init() - divide an inbox
 * @layout: result
 * @size:   in bytes
 *
 * Both hosts do this for both inboxes, so it is part of %FNTB_VERSION.
 *
 * Context: Any.
 * Return: false if there is no inbox of this size
 */
bool fntb_layout_init(struct fntb_layout *layout, u64 size)
{
	u32 rest, places;

	if (size < FNTB_INBOX_MIN || size > FNTB_INBOX_MAX || size % FNTB_PAGE)
		return false;
	layout->size = size;
	layout->slots = fntb_slots(size);
	layout->requests = FNTB_PAGE;
	layout->answers = layout->requests +
			  layout->slots * (u32)sizeof(struct fntb_request_slot);
	layout->puts = layout->answers +
		       layout->slots * (u32)sizeof(struct fntb_answer_slot);
	layout->puts = (layout->puts + FNTB_PAGE - 1) / FNTB_PAGE * FNTB_PAGE;
	rest = size - layout->puts;
	layout->chunk = FNTB_CHUNK_MAX;
	while (layout->chunk > FNTB_PAGE && rest / fntb_stride(layout) < PLACES)
		layout->chunk /= 2;
	places = rest / fntb_stride(layout);
	layout->ngets = places / 3;
	layout->nputs = places - layout->ngets;
	layout->gets = layout->puts + layout->nputs * fntb_stride(layout);
	return true;
}

static bool fntb_char_ok(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("._:-", c));
}

/**
 * fntb_name_ok() - is this a name that can be shown?
 * @name: of %FNTB_NAME_LEN bytes
 *
 * Context: Any.
 * Return: whether it is
 */
bool fntb_name_ok(const char *name)
{
	size_t i;

	for (i = 0; i < FNTB_NAME_LEN && fntb_char_ok(name[i]); i++)
		;
	return i && i < FNTB_NAME_LEN && !name[i];
}
