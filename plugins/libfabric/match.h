/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Receives that wait for messages, and messages that wait for receives. Both
 * are found in the order of their arrival; those with a tag by a table.
 */
#ifndef FABREX_MATCH_H
#define FABREX_MATCH_H

#include "peer.h"

#define MATCH_BUCKETS	256u

/* struct request.phase of messages. */
enum phase {
	PHASE_NONE,
	PHASE_CLOSED,		/* of a receive for several messages: it takes no
				 * more */
	/* Sending: in struct peer.waiting. */
	PHASE_DELIVERY,		/* FIN is awaited */
	PHASE_RTS,		/* CTS or FIN */
	PHASE_CANCELED,		/* the same, and CANCEL was sent */
	/* Receiving. */
	PHASE_CTS,		/* CTS is to be sent */
	PHASE_STORED,		/* the same, in struct peer.waiting: FIN */
	/* Moving. */
	PHASE_WRITE,
	PHASE_READ,
	PHASE_READ_OWN,		/* from a bounce buffer to a device */
};

/* What a receive may be matched by. */
struct wanted {
	bool tagged;
	uint64_t tag, ignore;
	fi_addr_t addr;		/* FI_ADDR_UNSPEC: any */
};

/* A message that nobody had asked for. */
struct unexpected {
	struct list node;	/* in order */
	struct list same;	/* those with a tag: of similar ones */
	struct unexpected *next;	/* unused ones */
	struct peer *peer;
	void *claim;		/* FI_CLAIM: the program's context */
	size_t charged;		/* to the peer, in bytes */
	bool small;
	struct arrival arrival;
	char data[];
};

struct receives {
	uint64_t sequence;
	size_t directed;	/* posted for one sender */
	struct list plain;	/* posted, without tag */
	struct list wild;	/* with bits of a tag that do not matter */
	struct list exact[MATCH_BUCKETS];
	struct list messages;	/* unexpected, without tag */
	struct list tagged;	/* with tag */
	struct list by_tag[MATCH_BUCKETS];	/* the same by struct same */
	struct list claimed;
	struct unexpected *unused;
	size_t nunused;
};

int receives_open(struct endpoint *ep);
void receives_close(struct endpoint *ep);

/* ---- match.c: receives ------------------------------------------------- */

/* The request has buffer, tag, ignore, addr and cq_flags. */
void receive_post(struct request *request);
/* It was posted, and is no more. */
void receive_withdraw(struct request *request);
/* The one that is to have a message. It is withdrawn, unless it is for several. */
struct request *receive_match(struct peer *peer, bool tagged, uint64_t tag);
/* The end of one that has got its message; with that of one for several. */
void receive_end(struct request *request, uint64_t length, fi_addr_t source);
/* A posted one ends without; a cause. */
void receive_abort(struct request *request, int cause);
/* Is one posted that nobody but this peer could match? */
bool receives_await(struct peer *peer);
/* For all that nobody but this peer, which will never come back, could match. */
void receives_of_peer(struct peer *peer, void (*found)(struct request *request));

/* ---- unexpected.c: messages -------------------------------------------- */

/* A copy is kept. False: no memory. */
bool unexpected_add(struct peer *peer, const struct arrival *arrival);
struct unexpected *unexpected_find(struct endpoint *ep,
				   const struct wanted *wanted);
/* Nobody else finds it from now on; unexpected_claimed() does. */
void unexpected_claim(struct endpoint *ep, struct unexpected *message,
		      void *context);
struct unexpected *unexpected_claimed(struct endpoint *ep, void *context);
/* The RTS with this token, unless it was claimed. */
struct unexpected *unexpected_rts(struct peer *peer, uint64_t token);
/* It has found its receive, or nobody wants it; then it is freed. */
void unexpected_free(struct unexpected *message);

#endif
