/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of link.h that every message goes through, for windows that are
 * ordinary memory: one line stored by the sender and read by the receiver; no
 * call, no lock. Included by link.h, at its end.
 */
#ifndef LIB_COLL_LINK_INLINE_H
#define LIB_COLL_LINK_INLINE_H

#include <errno.h>
#include <string.h>

#include "base/path.h"

static inline struct link *fxi_link(const struct fabrex_comm *comm,
				    uint32_t rank, enum link_channel channel)
{
	return &comm->links->link[rank * LINK_CHANNELS + channel];
}

static inline uint32_t fxi_link_size(const struct fabrex_comm *comm)
{
	return comm->links->size;
}

static inline uint32_t fxi_link_device_size(const struct fabrex_comm *comm)
{
	return comm->links->device_size;
}

static inline uint32_t fxi_link_port(const struct fabrex_comm *comm,
				     uint32_t rank)
{
	return fxi_link(comm, rank, LINK_COLL)->port;
}

/* Their count of messages taken: believed if it is possible. */
static inline void fxi_link_taken(struct link *link, uint32_t count)
{
	if (likely(count - link->acked <= link->sent - link->acked))
		link->acked = count;
}

/*
 * Is the header that is sent again still to be read from the message's slot? What
 * is put there now would be sent in its place, before its payload.
 */
static inline bool fxi_link_resending(const struct link *link, uint32_t number)
{
	return unlikely(link->resending & 1u << number % LINK_SLOTS);
}

static inline uint32_t fxi_link_flying(const struct fabrex_comm *comm,
				       uint32_t rank, enum link_channel channel)
{
	return fxi_link(comm, rank, channel)->flying;
}

static inline bool fxi_link_full(struct fabrex_comm *comm, struct link *link)
{
	if (fxi_link_resending(link, link->sent))
		return true;
	return link->sent - link->acked >= LINK_SLOTS &&
	       !fxi_link_refresh(comm, link);
}

static inline uint8_t *fxi_link_out(const struct link *link)
{
	return link->out_payload +
	       (size_t)(link->sent % LINK_SLOTS) * link->size;
}

static inline void *fxi_link_room(struct fabrex_comm *comm, uint32_t rank,
				  enum link_channel channel)
{
	struct link *link = fxi_link(comm, rank, channel);

	return unlikely(fxi_link_full(comm, link)) ? NULL : fxi_link_out(link);
}

/* Up to LINK_SMALL bytes, by moves that may overlap. */
static inline void fxi_link_copy(uint8_t *to, const uint8_t *from, uint32_t n)
{
	if (n == 8) {
		memcpy(to, from, 8);
	} else if (n > 16) {
		memcpy(to, from, 16);
		if (n > 32)
			memcpy(to + 16, from + 16, 16);
		memcpy(to + n - 16, from + n - 16, 16);
	} else if (n >= 8) {
		memcpy(to, from, 8);
		memcpy(to + n - 8, from + n - 8, 8);
	} else if (n >= 4) {
		memcpy(to, from, 4);
		memcpy(to + n - 4, from + n - 4, 4);
	} else {
		while (n--)
			*to++ = *from++;
	}
}

static inline int fxi_link_send(struct fabrex_comm *comm, uint32_t rank,
				enum link_channel channel, uint32_t tag,
				uint64_t word, const void *small,
				uint32_t length)
{
	struct link *link = fxi_link(comm, rank, channel);
	struct link_message *m = &link->out[link->sent % LINK_SLOTS].message;

	if (unlikely(fxi_link_full(comm, link)))
		return -EAGAIN;
	m->length = length;
	m->tag = tag;
	m->word = word;
	if (length <= LINK_SMALL)
		fxi_link_copy(m->small, small ? small : fxi_link_out(link),
			      length);
	else
		m->small[0] = 0;
	comm->moved++;
	link->sent++;
	link->told = link->popped;
	if (unlikely(!link->plain))
		return fxi_link_send_far(comm, rank, channel);
	__atomic_store_n(&m->sequence,
			 link->sent | (uint64_t)link->popped << 32,
			 __ATOMIC_RELEASE);
	return 0;
}

static inline const struct link_message *
fxi_link_peek(struct fabrex_comm *comm, uint32_t rank,
	      enum link_channel channel)
{
	struct link *link = fxi_link(comm, rank, channel);
	const struct link_message *m;
	uint64_t sequence;

	m = &link->in[link->popped % LINK_SLOTS].message;
	sequence = __atomic_load_n(&m->sequence, __ATOMIC_ACQUIRE);
	if ((uint32_t)sequence != link->popped + 1)
		return NULL;
	/* A message is mostly answered: fetch the line of the answer. */
	fxi_path_fetch(&link->out[link->sent % LINK_SLOTS]);
	if (unlikely(!link->plain || m->length > link->size))
		return fxi_link_take(comm, rank, channel);
	fxi_link_taken(link, (uint32_t)(sequence >> 32));
	return m;
}

static inline const void *fxi_link_payload(struct fabrex_comm *comm,
					   uint32_t rank,
					   enum link_channel channel)
{
	struct link *link = fxi_link(comm, rank, channel);
	uint32_t slot = link->popped % LINK_SLOTS;
	const struct link_message *m = link->plain ? &link->in[slot].message :
						     &link->copy;

	if (m->length <= LINK_SMALL)
		return m->small;
	return link->in_payload + (size_t)slot * link->size;
}

static inline void fxi_link_pop(struct fabrex_comm *comm, uint32_t rank,
				enum link_channel channel)
{
	struct link *link = fxi_link(comm, rank, channel);

	comm->moved++;
	link->popped++;
	if (unlikely(link->popped - link->told >= LINK_SLOTS / 2))
		fxi_link_credit(comm, rank, channel);
}

static inline int fxi_link_progress(struct fabrex_comm *comm)
{
	if (likely(!comm->links->far && !comm->links->asked))
		return 0;
	return fxi_link_poll(comm);
}

#endif
