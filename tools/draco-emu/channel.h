/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server's side of a channel (vfio_user.h); for vfio_user.c, in the thread
 * of vu_serve().
 */
#ifndef EMU_CHANNEL_H
#define EMU_CHANNEL_H

#include "vfio_user.h"
#include "vfio_user_proto.h"

/* A client has negotiated; it has left. Close waits for senders. */
void channel_open(struct vu_channel *c, int sock);
void channel_close(struct vu_channel *c);

/* Messages are sent whole. */
void channel_lock_sending(struct vu_channel *c);
void channel_unlock_sending(struct vu_channel *c);

/* A reply has come. False: nobody has asked. */
bool channel_reply(struct vu_channel *c, const struct vu_header *h,
		   const void *data, size_t len);

#endif
