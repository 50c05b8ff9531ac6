/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages, from the call of the program to the completion: how they are sent,
 * moved if they are long, and delivered.
 */
#ifndef FABREX_MESSAGE_H
#define FABREX_MESSAGE_H

#include <string.h>

#include "match.h"

static inline fi_addr_t message_source(struct peer *peer)
{
	return peer->ep->source ? peer_source(peer) : FI_ADDR_NOTAVAIL;
}

/* Its memory is a device's, and not to be touched by the processor. */
bool message_is_device(const struct request *request);
/* To or from its buffers, beginning with the first byte. */
void message_scatter(const struct request *request, const char *from,
		     uint64_t n);
void message_gather(const struct request *request, char *to);

/* ---- move.c ------------------------------------------------------------ */

/* bytes of its buffers are registered. False: request_fail() was called. */
bool move_register(struct request *request, uint32_t access, uint64_t bytes);
/* For peers, of what is registered. */
void move_describe(const struct request *request, struct segments *segments);
/* What it is moved with. False: request_fail() was called. */
bool move_with(struct request *request, const struct segments *segments);
/*
 * All bytes between its buffers and that, with the peer, or with ourselves, by
 * its phase. finished() is called when all is done, or has failed.
 */
void move_begin(struct request *request,
		void (*finished)(struct request *request));

/* ---- copy.c ------------------------------------------------------------ */

/*
 * The message is where the peer reads as fast as in its own memory, and that is what
 * is described. False: it has to be registered.
 */
bool copy_message(struct request *request);

/* ---- rendezvous.c ------------------------------------------------------ */

/* Sends RTS. -FI_EAGAIN: not yet; other errors end the request. */
int rendezvous_send(struct request *request);
/* A receive has found the message. */
void rendezvous_receive(struct request *request, struct peer *peer,
			const struct arrival *arrival);
/* Those arrive. False: nonsense. */
bool rendezvous_cts(struct peer *peer, const struct cts *cts);
bool rendezvous_fin(struct peer *peer, const struct fin *fin);
void rendezvous_canceled(struct peer *peer, uint64_t token);
/* Whoever sends it wants it back; 0: that is possible, and may happen. */
int rendezvous_cancel(struct request *request);

/* ---- send.c ------------------------------------------------------------ */

/* A struct request.resume. */
int send_start(struct request *request);
/* A struct request.completed. */
void send_completed(struct request *request, const struct fabrex_wc *wc);
/* How long the datagram of a short message is, and what it is made of. */
size_t send_size(const struct request *request);

static inline void send_compose(const struct request *request, char *data)
{
	unsigned int kind = request->message.kind;

	if (kind & WIRE_DELIVERY)
		data = wire_put64(data, request_token(request));
	if (kind & WIRE_TAGGED)
		data = wire_put64(data, request->tag);
	if (kind & WIRE_DATA)
		data = wire_put32(data, (uint32_t)request->data);
	if (__builtin_expect(request->vector != NULL, 0))
		message_gather(request, data);
	else if (__builtin_expect(request->length == 8, 1))
		memcpy(data, request->buf, 8);
	else if (request->length)
		memcpy(data, request->buf, (size_t)request->length);
}

/* ---- deliver.c --------------------------------------------------------- */

/* The message has found this receive. -FI_ENOMEM: it is not delivered. */
int deliver(struct request *request, struct peer *peer,
	    const struct arrival *arrival);
/* One for several has no room for more after this one. */
bool deliver_is_last(const struct request *parent, uint64_t length);
/* Nobody wants it: its sender is not kept waiting. */
void deliver_nowhere(struct peer *peer, const struct arrival *arrival);

/* ---- receive.c --------------------------------------------------------- */

void receive_datagram(struct endpoint *ep, const struct fabrex_wc *wc);
void receive_immediate(struct endpoint *ep, const struct fabrex_wc *wc);

/* ---- watch.c ----------------------------------------------------------- */

/* What is due for peers, and when something is next. */
void watch_timed(struct endpoint *ep);
/* Nothing has happened for some time: events of the port, memory. */
void watch_idle(struct endpoint *ep);

/* ---- message.c, recv.c: what endpoint.c installs ------------------------ */

ssize_t message_send(struct fid_ep *fid, const void *buf, size_t len,
		     void *desc, fi_addr_t addr, void *context);
ssize_t message_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
		      size_t count, fi_addr_t addr, void *context);
ssize_t message_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			uint64_t flags);
ssize_t message_inject(struct fid_ep *fid, const void *buf, size_t len,
		       fi_addr_t addr);
ssize_t message_senddata(struct fid_ep *fid, const void *buf, size_t len,
			 void *desc, uint64_t data, fi_addr_t addr,
			 void *context);
ssize_t message_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			   uint64_t data, fi_addr_t addr);
ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
		    fi_addr_t addr, uint64_t tag, void *context);
ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
		     size_t count, fi_addr_t addr, uint64_t tag, void *context);
ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		       uint64_t flags);
ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len,
		      fi_addr_t addr, uint64_t tag);
ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len,
			void *desc, uint64_t data, fi_addr_t addr,
			uint64_t tag, void *context);
ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			  uint64_t data, fi_addr_t addr, uint64_t tag);

ssize_t message_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
		     fi_addr_t addr, void *context);
ssize_t message_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
		      size_t count, fi_addr_t addr, void *context);
ssize_t message_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
			uint64_t flags);
ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
		    fi_addr_t addr, uint64_t tag, uint64_t ignore,
		    void *context);
ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
		     size_t count, fi_addr_t addr, uint64_t tag,
		     uint64_t ignore, void *context);
ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		       uint64_t flags);

#endif
