/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What endpoints send each other: datagrams (SEND) into receive cells, whose
 * immediate says what they are. All numbers are little-endian. Nothing that
 * comes from a peer is believed: wire.c checks lengths and ranges, and whoever
 * uses a token whether it is one that this peer has been given.
 *
 * Immediate: kind (4 bits), number (8), data credits (8) and control credits (6)
 * that are returned; the rest is 0. Who has sent it is known from the completion:
 * number of the port and number of the queue, which nobody can forge.
 *
 *   EAGER + flags	[token][tag][data] message
 *   RTS		a long message: where it is. Answered by CTS or FIN
 *   CTS		where to write it to. Answered by FIN
 *   FIN		the end of what has the token
 *   CANCEL		an RTS is withdrawn, if it has not found a receive yet:
 *			then answered by FIN
 *   CREDIT		nothing but its credits
 *   HELLO		who I am; either way before anything else. No number, no
 *			credit
 *   BYE		the endpoint is closed, or has given up; no credit is
 *			needed for it, as none will be. Then with the session
 *			that it is about, whose number does not matter
 *
 * EAGER and RTS need a data credit, which is withheld from who has sent more than
 * is wanted; the others but HELLO a control credit, which comes back as soon as
 * they have been read. So does a WRITE_IMM, whose immediate is the program's.
 */
#ifndef FABREX_WIRE_H
#define FABREX_WIRE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fabrex/fabrex.h>

enum wire_kind {
	/* EAGER: any of these three. */
	WIRE_TAGGED = 1,
	WIRE_DATA = 2,		/* FI_REMOTE_CQ_DATA */
	WIRE_DELIVERY = 4,	/* the sender waits for a FIN with its token */
	WIRE_EAGER_LAST = 7,
	WIRE_RTS,
	WIRE_CTS,
	WIRE_FIN,
	WIRE_CANCEL,
	WIRE_CREDIT,
	WIRE_HELLO,
	WIRE_BYE,
};

#define WIRE_DATA_CREDITS	255u	/* at most in one immediate */
#define WIRE_CONTROL_CREDITS	63u
#define WIRE_SEGMENTS		4u

/* A number in a datagram, wherever it is. */
static inline uint64_t wire_get64(const char *data)
{
	uint64_t value;

	__builtin_memcpy(&value, data, sizeof(value));
	return le64toh(value);
}

static inline uint32_t wire_get32(const char *data)
{
	uint32_t value;

	__builtin_memcpy(&value, data, sizeof(value));
	return le32toh(value);
}

static inline char *wire_put64(char *data, uint64_t value)
{
	value = htole64(value);
	__builtin_memcpy(data, &value, sizeof(value));
	return data + sizeof(value);
}

static inline char *wire_put32(char *data, uint32_t value)
{
	value = htole32(value);
	__builtin_memcpy(data, &value, sizeof(value));
	return data + sizeof(value);
}

static inline uint32_t wire_imm(unsigned int kind, uint8_t number,
				unsigned int data, unsigned int control)
{
	return kind | (uint32_t)number << 4 | data << 12 | control << 20;
}

static inline unsigned int wire_kind(uint32_t imm)
{
	return imm & 15;
}

static inline uint8_t wire_number(uint32_t imm)
{
	return (uint8_t)(imm >> 4);
}

static inline unsigned int wire_data_credits(uint32_t imm)
{
	return imm >> 12 & WIRE_DATA_CREDITS;
}

static inline unsigned int wire_control_credits(uint32_t imm)
{
	return imm >> 20 & WIRE_CONTROL_CREDITS;
}

/* Memory of a long message. */
struct segment {
	uint64_t rkey, offset, length;
};

struct segments {
	uint32_t count;
	struct segment segment[WIRE_SEGMENTS];
};

/* A message that has arrived, or what there is of it. */
struct arrival {
	bool tagged, has_data, delivery, rts;
	uint32_t data;
	uint64_t tag;
	uint64_t token;		/* delivery, rts */
	uint64_t length;	/* of the message */
	const char *payload;	/* unless rts */
	struct segments segments;	/* rts */
};

/* Token, tag and data in front of an eager message. */
static inline size_t wire_eager_head(unsigned int kind)
{
	return (kind & WIRE_DELIVERY ? 8 : 0) + (kind & WIRE_TAGGED ? 8 : 0) +
	       (kind & WIRE_DATA ? 4 : 0);
}

static inline bool wire_read_eager(const char *data, size_t length,
				   unsigned int kind, struct arrival *arrival)
{
	size_t head = wire_eager_head(kind);

	if (__builtin_expect(length < head, 0))
		return false;
	arrival->rts = false;
	arrival->tagged = kind & WIRE_TAGGED;
	arrival->has_data = kind & WIRE_DATA;
	arrival->delivery = kind & WIRE_DELIVERY;
	arrival->token = arrival->tag = 0;
	arrival->data = 0;
	if (arrival->delivery) {
		arrival->token = wire_get64(data);
		data += 8;
	}
	if (arrival->tagged) {
		arrival->tag = wire_get64(data);
		data += 8;
	}
	if (arrival->has_data) {
		arrival->data = wire_get32(data);
		data += 4;
	}
	arrival->payload = data;
	arrival->length = length - head;
	return true;
}

/* False, of all that follow: it is nonsense. */
bool wire_read_rts(const char *data, size_t length, struct arrival *arrival);
size_t wire_write_rts(char *data, const struct arrival *arrival);

struct cts {
	uint64_t token;		/* of the RTS */
	uint64_t answer;	/* token of the receive, for FIN */
	struct segments segments;
};
bool wire_read_cts(const char *data, size_t length, struct cts *cts);
size_t wire_write_cts(char *data, const struct cts *cts);

enum fin_status {
	FIN_OK,
	FIN_CANCELED,		/* as it was asked for */
	FIN_FAILED,		/* whoever should have moved it could not */
};

/* Also CANCEL. */
struct fin {
	uint64_t token;
	uint32_t status;	/* enum fin_status */
};
bool wire_read_fin(const char *data, size_t length, struct fin *fin);
size_t wire_write_fin(char *data, const struct fin *fin);

#define HELLO_MAGIC		0x69667846u	/* Fxfi */
#define HELLO_VERSION		2
#define HELLO_ACK		1u	/* answers one */
#define HELLO_REFUSED		2u	/* the same: there is nothing to say */

struct hello {
	uint16_t version, flags;
	uint64_t key;		/* of the sender's queue */
	uint32_t nonce;		/* of the sender's endpoint */
	uint32_t session;	/* the sender's name for what is between them */
	uint32_t answers;	/* and the receiver's, if that is known */
	uint16_t data, control;	/* credits */
	uint32_t cell_size;
	uint64_t service;
	char port[32];
	struct fabrex_remote board;
};
#define HELLO_SIZE	128	/* at most BOUNCE_SMALL */
/* Of one of another version, or that refuses, hardly anything is looked at. */
bool wire_read_hello(const char *data, size_t length, struct hello *hello);
size_t wire_write_hello(char *data, const struct hello *hello);

#endif
