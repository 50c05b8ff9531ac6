/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages between the ranks of a communicator, in order and without loss, for
 * everything above in lib/coll. Below are windows where those are ordinary
 * memory (loopback), and a fabrex queue where not. Nothing here waits.
 *
 *   mailbox.c        memory that others write to, and how it is found
 *   inline.h link.c  messages
 *   board.c          words beside the messages, and probes
 *   bell.c           sleeping until something arrives
 *   device_slots.c   payloads in device memory
 *   entrances.c      the ports by which ranks reach each other
 *
 * Every rank has a mailbox, allocated from the fabric, with slots for each
 * other rank and channel. A message is a line of 64 bytes, and a payload if it
 * has more than LINK_SMALL bytes. A slot is free again when the receiver has
 * acknowledged it in the sender's mailbox: a credit.
 */
#ifndef LIB_COLL_LINK_H
#define LIB_COLL_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <fabrex/coll.h>

#include "coll/comm.h"

enum link_channel {
	LINK_COLL,		/* collectives, one after the other */
	LINK_SENDRECV,		/* SEND and RECV */
	LINK_CHANNELS,
};

#define LINK_SLOTS	8u	/* messages under way for each pair, channel */
#define LINK_SMALL	40u	/* bytes that need no payload */

struct link_message {
	uint64_t sequence;	/* link.c's, stored last */
	uint32_t length;	/* bytes of payload */
	uint32_t tag;		/* the algorithm's */
	uint64_t word;		/* the algorithm's */
	uint8_t small[LINK_SMALL];
};
_Static_assert(sizeof(struct link_message) == 64, "one line");

/*
 * Two lines, as processors fetch them in pairs. The second is for transports
 * whose WRITEs land in any order: a message is valid only if @check fits it.
 */
struct link_slot {
	struct link_message message;
	uint64_t check;
	uint64_t reserved[7];
};
_Static_assert(sizeof(struct link_slot) == 128, "two lines");

/*
 * One channel to and from one rank. Message numbers are free-running and begin
 * with 1. The upper half of a message's sequence is how many messages its
 * sender has popped: credits cost nothing where messages go both ways.
 */
struct link {
	const struct link_slot *in;	/* in our mailbox */
	struct link_slot *out;		/* in theirs; not plain: a mirror of it */
	const uint8_t *in_payload;
	uint8_t *out_payload;
	uint32_t popped, told;		/* in: taken; and told them so */
	uint32_t sent, acked;		/* out: and taken by them */
	uint32_t size;			/* of a payload */
	bool plain;			/* out is their memory */
	const uint64_t *in_credit;	/* their count of popped ones, where */
	uint64_t *out_credit;		/* no message carried it */
	struct link_message copy;	/* not plain: of the oldest message */
	uint32_t copied;		/* its number */
	uint32_t flying;		/* WRITEs that read callers' regions */
	bool declined;			/* we offer that rank no slots */
	bool broken;			/* a payload has not arrived */
	const struct fabrex_mr *from;	/* not plain: of the last payload, and */
	uint64_t rkey;			/* where it went; 0: the mailbox */
	uint8_t stored;			/* by slot: through a window, where it */
	uint8_t resending;		/* may get lost; its WRITE is under way */
	bool credit_stored;		/* as stored, the credit */
	uint8_t port;			/* through which it is sent */
	uint32_t again_acked, again_popped; /* at the last look at those */
	uint32_t pulled;		/* number of the message whose payload
					 * was brought to the host's slot,
					 */
	void *pull;			/* or here, if it is larger */
	uint32_t number;		/* rank * LINK_CHANNELS + channel */
} __attribute__((aligned(64)));

#define LINK_HANDLE	64u	/* bytes by which a process opens memory */

/*
 * Slots in device memory that a rank offers: see device_slots.c. What arrives
 * neither by @rkey nor by a handle goes to its mailbox.
 */
struct device_offer {
	uint64_t rkey;		/* of the region; 0: there is none */
	uint64_t entrance;	/* of the card: at its port */
	uint64_t kind;		/* FABREX_MEMORY_*, or 0: no handle */
	char pci[16];		/* address of its GPU */
	uint8_t handle[LINK_HANDLE];
	uint64_t check;		/* of the others; 0: no offer is known */
};
_Static_assert(sizeof(struct device_offer) == 112, "words without holes");

struct links {
	struct link *link;		/* rank * LINK_CHANNELS + channel */
	uint32_t size;			/* of a payload, */
	uint32_t device_size;		/* of one to a GPU */
	const uint64_t *alarm;		/* in our mailbox: not 0 when some
					 * rank's board has news of a failure
					 */
	uint32_t repeated;		/* headers sent again */
	uint32_t asked;			/* completions that are expected */
	bool far;			/* some ranks are reached only by WRITE
					 */
	int bell_fd;			/* of the own port's queue, to sleep
					 * on, or -1: bell.c
					 */
	bool asleep;			/* the others were told to ring */
	bool armed;			/* the queues will signal */
	uint8_t *device_base;		/* of the slots on offer, or NULL */
	struct device_offer *offers;	/* of the others, by rank */
	struct mailbox *mailbox;	/* the rest: mailbox.c */
	const struct link_reports *reports;
};

/*
 * The first of these are inline: inline.h.
 *
 * Payload bytes that one message may have.
 */
static inline uint32_t fxi_link_size(const struct fabrex_comm *comm);
/*
 * Or, if it goes to a slot on a GPU: a multiple of the former. Larger, as each
 * costs the GPUs a copy to begin; the same at all ranks, with GPUs or not.
 */
static inline uint32_t fxi_link_device_size(const struct fabrex_comm *comm);
/*
 * Where the payload of the next message to @rank is to be written, if that is
 * more than LINK_SMALL bytes: fxi_link_size() bytes, aligned to 64; valid until
 * it is sent. NULL: no room now. With loopback it is the receiver's memory.
 */
static inline void *fxi_link_room(struct fabrex_comm *comm, uint32_t rank,
				  enum link_channel channel);
/*
 * Send it. @small: payload of up to LINK_SMALL bytes, or NULL: @length bytes
 * are in the room. 0; -EAGAIN: no room (with @small only); or a failure.
 */
static inline int fxi_link_send(struct fabrex_comm *comm, uint32_t rank,
				enum link_channel channel, uint32_t tag,
				uint64_t word, const void *small,
				uint32_t length);
/* Oldest message from @rank, NULL if there is none; and its payload. */
static inline const struct link_message *
fxi_link_peek(struct fabrex_comm *comm, uint32_t rank,
	      enum link_channel channel);
static inline const void *fxi_link_payload(struct fabrex_comm *comm,
					   uint32_t rank,
					   enum link_channel channel);
/* The message is done with. */
static inline void fxi_link_pop(struct fabrex_comm *comm, uint32_t rank,
				enum link_channel channel);
/*
 * As fxi_link_send(), but the payload is in a region of this process, and not
 * copied where the transport can do without. From a device's memory, it is more
 * than LINK_SMALL bytes. It may change once fxi_link_sent() is true. -EAGAIN: no
 * room.
 */
int fxi_link_send_from(struct fabrex_comm *comm, uint32_t rank,
		       enum link_channel channel, uint32_t tag, uint64_t word,
		       const struct fabrex_mr *mr, uint64_t offset,
		       uint32_t length);
/* How many of those messages have not left the region, as far as is known. */
static inline uint32_t fxi_link_flying(const struct fabrex_comm *comm,
				       uint32_t rank, enum link_channel channel);
/* True: everything sent to @rank so far has left this process's memory. */
bool fxi_link_sent(struct fabrex_comm *comm, uint32_t rank,
		   enum link_channel channel);
/* For inline.h: the rare cases. */
bool fxi_link_refresh(struct fabrex_comm *comm, struct link *link);
int fxi_link_send_far(struct fabrex_comm *comm, uint32_t rank,
		      enum link_channel channel);
const struct link_message *fxi_link_take(struct fabrex_comm *comm,
					 uint32_t rank,
					 enum link_channel channel);
void fxi_link_credit(struct fabrex_comm *comm, uint32_t rank,
		     enum link_channel channel);
int fxi_link_poll(struct fabrex_comm *comm);
/*
 * To be called now and then in a wait, if links->far: stores through a window
 * get lost unnoticed when the fabric link drops for a moment. What was not taken
 * since the last call is sent again; @all: what was not taken at all.
 */
void fxi_link_again(struct fabrex_comm *comm, bool all);
/* Completions of the queues, if there are some. 0 or a negative errno. */
static inline int fxi_link_progress(struct fabrex_comm *comm);

/* ---- making and ending them: mailbox.c, for comm.c ---------------------- */

/* How others get to a mailbox through one port of its rank's host. */
struct link_entrance {
	uint64_t rkey;		/* of the mailbox; 0: there is no entrance */
	uint64_t bell;		/* of the queue that bells go to; 0: none */
	struct port_id port;
};

#define LINK_OTHERS	3u	/* that are at none of the rank's ports */
#define LINK_ENTRANCES	COMM_PORTS /* at most; the first: the rank's ports */

/* What a rank tells the others in the rendezvous. */
struct link_card {
	uint64_t magic;		/* of this layout; in the native order */
	uint64_t id;		/* rank 0: of the communicator */
	struct link_entrance entrances[LINK_ENTRANCES];
	uint64_t length;	/* of the mailbox */
	uint32_t ranks;
	uint32_t host;		/* hash of the machine's name */
	uint32_t processors;	/* it may run on; their hash beside it */
	uint32_t processors_hash;
	uint32_t pid;
	uint32_t nports;	/* of the rank, which sends through these */
	uint32_t coherent;	/* 0 or 1: as the communicator, at all ranks */
	uint32_t reserved;
	char name[32];		/* of the host, for error messages */
};

/*
 * What links ask of failure/, the stratum above. All return 0 to go on, or what
 * the operation has to return.
 *
 * @wait:        as any wait: the queue is full, and @rank is the next in it
 * @unreachable: a rank, perhaps this one, cannot be reached or breaks the rules
 * @stuck:       the queue was full for death_ms: this rank's port is gone
 */
struct link_reports {
	int (*wait)(struct fabrex_comm *comm, uint32_t rank,
		    uint32_t patience);
	int (*unreachable)(struct fabrex_comm *comm, uint32_t rank);
	int (*stuck)(struct fabrex_comm *comm);
};

int fxi_links_make(struct fabrex_comm *comm, const struct link_reports *reports,
		   struct link_card *mine);
/*
 * By when ports that are not up yet have to be. -ENETUNREACH: no port reaches
 * some rank; then those that one does reach are connected all the same.
 */
int fxi_links_connect(struct fabrex_comm *comm, const struct link_card *all,
		      uint64_t deadline);
void fxi_links_free(struct fabrex_comm *comm);
const struct link_card *fxi_link_card(const struct fabrex_comm *comm,
				      uint32_t rank);
/* Tell each rank that has several entrances which of them this one uses. */
void fxi_link_tell_entrances(struct fabrex_comm *comm);
/*
 * The port at which a region has to be registered that @rank is to read. NULL:
 * it has not said yet which one it reaches, or that is none of the ports of this
 * rank, but another entrance.
 */
struct fabrex_port *fxi_link_port_for(const struct fabrex_comm *comm,
				      uint32_t rank);
/* Which of its ports, by number, this rank sends to @rank through. */
static inline uint32_t fxi_link_port(const struct fabrex_comm *comm,
				     uint32_t rank);

/* ---- beside the messages: board.c -------------------------------------- */

/*
 * In every mailbox there is a board for each other rank, which that rank writes
 * to, each word atomically. The layout:
 */
#define BOARD_BYTES	896u
#define BOARD_AT_STATUS	0u	/* struct rank_status of failure/ */
#define BOARD_AT_BEAT	160u	/* count << 32 | rank it waits for */
#define BOARD_AT_LEFT	168u	/* 1: nothing more comes from this rank */
#define BOARD_AT_ABORT	176u	/* 1: fabrex_comm_abort() was called there */
#define BOARD_AT_DEVICE	192u	/* struct device_offer */
#define BOARD_AT_READ	448u	/* of sendrecv.c: count of buffers read */
#define BOARD_AT_OPENED	456u	/* has this rank our slots open? LINK_OPEN */
#define BOARD_AT_ENTRANCE 464u	/* 1 + which one this rank uses; 0: wait */
#define BOARD_AT_BELL	480u	/* 1: this rank sleeps: bell.c */
#define BOARD_AT_CARD	512u	/* of shrink.c, for the new communicator */

/* A word of the board that @rank writes to. */
const uint64_t *fxi_link_board(const struct fabrex_comm *comm, uint32_t rank,
			       uint32_t offset);
/* A copy of @length bytes of it, words each. */
void fxi_link_board_copy(const struct fabrex_comm *comm, uint32_t rank,
			 uint32_t offset, void *to, uint32_t length);
/* Store @length bytes at @offset of the board that @rank has for us. */
int fxi_link_post(struct fabrex_comm *comm, uint32_t rank, uint32_t offset,
		  const void *bytes, uint32_t length);
/* Raise its alarm: it looks at the boards. */
void fxi_link_raise(struct fabrex_comm *comm, uint32_t rank);
/*
 * Tell all that this rank has aborted, and raise all alarms, its own too. From
 * any thread and from handlers of signals: only stores. A rank that is reached
 * only by WRITEs has to be told with fxi_link_post().
 */
void fxi_link_abort(struct fabrex_comm *comm);
/*
 * Is @rank still there? 0; -ECONNRESET: gone. Asks the fabric, so not to be
 * called often. May take a moment: -EINPROGRESS, ask again.
 */
int fxi_link_probe(struct fabrex_comm *comm, uint32_t rank);
/* The same of this rank itself, at the port through which it reaches @rank. */
int fxi_link_probe_self(struct fabrex_comm *comm, uint32_t rank);
/* Waits until all that was sent has been executed, or the deadline has passed. */
void fxi_link_drain(struct fabrex_comm *comm, uint64_t deadline);

static inline bool fxi_link_has_left(struct fabrex_comm *comm, uint32_t rank)
{
	return __atomic_load_n(fxi_link_board(comm, rank, BOARD_AT_LEFT),
			       __ATOMIC_ACQUIRE);
}

/* ---- sleeping: bell.c -------------------------------------------------- */

/* Is there something to sleep on? Only then may the next three be called. */
static inline bool fxi_link_can_sleep(const struct fabrex_comm *comm)
{
	return comm->links->bell_fd >= 0;
}

/*
 * Whatever arrives from now on ends the sleep that follows. What has arrived
 * before need not: the caller looks once more between the two.
 */
void fxi_link_arm(struct fabrex_comm *comm);
void fxi_link_sleep(struct fabrex_comm *comm, uint64_t ns);
/* This rank polls in its waits: the others need not ring. */
void fxi_link_stay_awake(struct fabrex_comm *comm);
/* End a sleep of another thread; from handlers of signals, too. */
void fxi_link_wake(const struct fabrex_comm *comm);

/* ---- payloads in device memory: device_slots.c -------------------------- */

/* Bytes of memory that an offer takes; aligned to 64. */
uint64_t fxi_link_device_bytes(const struct fabrex_comm *comm);
/*
 * Register device memory at the rank's port and at its other entrances. @mrs:
 * NULL where that failed. 0: it is registered at one at least; else the error of
 * the rank's port.
 */
int fxi_link_device_register(struct fabrex_comm *comm, void *base,
			     uint64_t bytes,
			     struct fabrex_mr *mrs[LINK_ENTRANCES]);
/*
 * Tell all ranks that payloads which leave a device shall go into this memory,
 * which is at @base here, each with the key for the entrance that it uses. Not
 * taken back: regions and memory live until the links end, and the memory until
 * fxi_link_may_free() says so.
 */
int fxi_link_offer(struct fabrex_comm *comm, const struct device_offer *offer,
		   struct fabrex_mr *const mrs[LINK_ENTRANCES], void *base);
/* What @rank offers; NULL: nothing, or not known. */
const struct device_offer *fxi_link_offered(const struct fabrex_comm *comm,
					    uint32_t rank);
/* The same host, as far as is known. */
bool fxi_link_is_near(const struct fabrex_comm *comm, uint32_t rank);
/* Tell @rank that this one offers nothing, if it waits for that. */
int fxi_link_decline(struct fabrex_comm *comm, uint32_t rank);
/*
 * Has @rank told us? To be asked before something is sent from a device, by a
 * rank that has made an offer.
 */
bool fxi_link_device_known(const struct fabrex_comm *comm, uint32_t rank);
/*
 * Of the oldest message from @rank on LINK_COLL: our slots for its payload. It
 * is in the device's if fxi_link_on_device(), or else where fxi_link_payload()
 * says.
 */
void *fxi_link_device_slot(const struct fabrex_comm *comm, uint32_t rank);
void *fxi_link_host_slot(const struct fabrex_comm *comm, uint32_t rank);

/*
 * Payloads that the sender itself puts into the receiver's slots, through a
 * handle, before it sends the message. Room for the message behind @ahead others
 * whose payloads are on their way? Then *@at is where in the offered memory its
 * payload belongs.
 */
bool fxi_link_place(struct fabrex_comm *comm, uint32_t rank, uint32_t ahead,
		    uint64_t *at);
/* The next message, whose payload is in place. There is room for it. */
int fxi_link_send_placed(struct fabrex_comm *comm, uint32_t rank, uint32_t tag,
			 uint64_t word, uint32_t length);
/*
 * Before a sender opens the memory that @rank offers, and once it has closed it:
 * the owner must not free it in between.
 */
#define LINK_OPEN	1u
#define LINK_CLOSED	2u
int fxi_link_tell_opened(struct fabrex_comm *comm, uint32_t rank,
			 uint64_t state);
/*
 * Waits, for death_ms at most, until no other rank has the memory on offer here
 * open any more: all have closed it or are gone. False: @rank still has it, and
 * it must not be freed.
 */
bool fxi_link_may_free(struct fabrex_comm *comm, uint32_t *rank);

/* Offset of a slot from the start of the offered memory. */
static inline uint64_t fxi_link_device_at(const struct fabrex_comm *comm,
					  uint32_t rank, uint32_t slot)
{
	return ((uint64_t)rank * LINK_SLOTS + slot) * comm->links->device_size;
}

/* small[0] of a message whose payload is longer. */
#define LINK_ON_DEVICE	1u

static inline bool fxi_link_on_device(const struct link_message *message)
{
	return message->length > LINK_SMALL &&
	       message->small[0] == LINK_ON_DEVICE;
}

static inline bool fxi_link_has_aborted(const struct fabrex_comm *comm,
					uint32_t rank)
{
	return __atomic_load_n(fxi_link_board(comm, rank, BOARD_AT_ABORT),
			       __ATOMIC_ACQUIRE);
}

#include "coll/link/inline.h"

#endif
