// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Datagrams as bytes: writing them, and reading them with every check that needs
 * no more than the datagram. What they mean: wire.h. Used by whoever sends or
 * receives one.
 */
#include <string.h>

#include "wire.h"

/* ---- memory ------------------------------------------------------------ */

#define SEGMENT_SIZE	24

static char *put_segments(char *to, const struct segments *segments)
{
	uint32_t i;

	for (i = 0; i < segments->count; i++) {
		to = wire_put64(to, segments->segment[i].rkey);
		to = wire_put64(to, segments->segment[i].offset);
		to = wire_put64(to, segments->segment[i].length);
	}
	return to;
}

/* All of data[0..length), as many as count says; their lengths are in *total. */
static bool get_segments(const char *data, size_t length, uint32_t count,
			 struct segments *segments, uint64_t *total)
{
	struct segment *s;
	uint32_t i;

	*total = 0;
	if (!count || count > WIRE_SEGMENTS || length != count * SEGMENT_SIZE)
		return false;
	segments->count = count;
	for (i = 0; i < count; i++) {
		s = &segments->segment[i];
		s->rkey = wire_get64(data);
		s->offset = wire_get64(data + 8);
		s->length = wire_get64(data + 16);
		data += SEGMENT_SIZE;
		if (s->offset + s->length < s->offset ||
		    *total + s->length < *total)
			return false;
		*total += s->length;
	}
	return true;
}

/* ---- RTS, CTS ---------------------------------------------------------- */

#define RTS_TAGGED	1u
#define RTS_DATA	2u
#define RTS_HEAD	32
#define CTS_HEAD	24

/*
 * Nearly all: what a cell of loopback has in its first cache line. The second one
 * takes as long to get there as the first.
 */
#define RTS_SHORT	32
#define SHORT_TAGGED	0x80000000u	/* beside the length */

static bool is_short(const struct arrival *a)
{
	const struct segment *s = &a->segments.segment[0];

	return a->segments.count == 1 && !a->has_data &&
	       s->offset <= UINT32_MAX && s->length < SHORT_TAGGED;
}

static size_t write_short(char *data, const struct arrival *a)
{
	const struct segment *s = &a->segments.segment[0];
	char *to = data;

	to = wire_put64(to, a->token);
	to = wire_put64(to, a->tag);
	to = wire_put64(to, s->rkey);
	to = wire_put32(to, (uint32_t)s->offset);
	wire_put32(to, (uint32_t)s->length | (a->tagged ? SHORT_TAGGED : 0));
	return RTS_SHORT;
}

static void read_short(const char *data, struct arrival *a)
{
	uint32_t length = wire_get32(data + 28);

	a->tagged = length & SHORT_TAGGED;
	a->has_data = false;
	a->data = 0;
	a->token = wire_get64(data);
	a->tag = wire_get64(data + 8);
	a->length = length & ~SHORT_TAGGED;
	a->segments.count = 1;
	a->segments.segment[0] = (struct segment){
		.rkey = wire_get64(data + 16),
		.offset = wire_get32(data + 24),
		.length = a->length,
	};
}

size_t wire_write_rts(char *data, const struct arrival *a)
{
	char *to = data;

	if (is_short(a))
		return write_short(data, a);
	to = wire_put64(to, a->token);
	to = wire_put64(to, a->tag);
	to = wire_put64(to, a->length);
	to = wire_put32(to, a->data);
	to = wire_put32(to, (a->tagged ? RTS_TAGGED : 0) |
			    (a->has_data ? RTS_DATA : 0) |
			    a->segments.count << 8);
	return (size_t)(put_segments(to, &a->segments) - data);
}

bool wire_read_rts(const char *data, size_t length, struct arrival *a)
{
	uint32_t flags;
	uint64_t total;

	if (length < RTS_HEAD)
		return false;
	a->rts = true;
	a->delivery = false;
	a->payload = NULL;
	if (length == RTS_SHORT) {
		read_short(data, a);
		return true;
	}
	flags = wire_get32(data + 28);
	a->tagged = flags & RTS_TAGGED;
	a->has_data = flags & RTS_DATA;
	a->token = wire_get64(data);
	a->tag = wire_get64(data + 8);
	a->length = wire_get64(data + 16);
	a->data = wire_get32(data + 24);
	return !(flags & ~(RTS_TAGGED | RTS_DATA) & 0xff) &&
	       get_segments(data + RTS_HEAD, length - RTS_HEAD, flags >> 8,
			    &a->segments, &total) &&
	       total == a->length;
}

size_t wire_write_cts(char *data, const struct cts *cts)
{
	char *to = data;

	to = wire_put64(to, cts->token);
	to = wire_put64(to, cts->answer);
	to = wire_put64(to, cts->segments.count);
	return (size_t)(put_segments(to, &cts->segments) - data);
}

bool wire_read_cts(const char *data, size_t length, struct cts *cts)
{
	uint64_t count, total;

	if (length < CTS_HEAD)
		return false;
	cts->token = wire_get64(data);
	cts->answer = wire_get64(data + 8);
	count = wire_get64(data + 16);
	return count <= WIRE_SEGMENTS &&
	       get_segments(data + CTS_HEAD, length - CTS_HEAD,
			    (uint32_t)count, &cts->segments, &total);
}

/* ---- FIN, CANCEL ------------------------------------------------------- */

#define FIN_SIZE	16

size_t wire_write_fin(char *data, const struct fin *fin)
{
	wire_put64(wire_put64(data, fin->token), fin->status);
	return FIN_SIZE;
}

bool wire_read_fin(const char *data, size_t length, struct fin *fin)
{
	uint64_t status;

	if (length != FIN_SIZE)
		return false;
	fin->token = wire_get64(data);
	status = wire_get64(data + 8);
	fin->status = status > FIN_FAILED ? FIN_FAILED : (uint32_t)status;
	return status <= FIN_FAILED;
}

/* ---- HELLO ------------------------------------------------------------- */

size_t wire_write_hello(char *data, const struct hello *hello)
{
	char *to = data;

	memset(data, 0, HELLO_SIZE);
	to = wire_put32(to, HELLO_MAGIC);
	to = wire_put32(to, hello->version | (uint32_t)hello->flags << 16);
	to = wire_put64(to, hello->key);
	to = wire_put32(to, hello->nonce);
	to = wire_put32(to, hello->session);
	to = wire_put32(to, hello->answers);
	to = wire_put32(to, hello->data | (uint32_t)hello->control << 16);
	to = wire_put32(to, hello->cell_size);
	to = wire_put64(to, hello->service);
	memcpy(to, hello->port, sizeof(hello->port));
	to += sizeof(hello->port);
	to = wire_put64(to, hello->board.rkey);
	to = wire_put64(to, hello->board.length);
	to = wire_put32(to, hello->board.peer);
	to = wire_put32(to, hello->board.generation);
	wire_put32(to, hello->board.flags);
	return HELLO_SIZE;
}

static void read_all(const char *data, struct hello *hello)
{
	uint32_t credits = wire_get32(data + 28);

	hello->key = wire_get64(data + 8);
	hello->nonce = wire_get32(data + 16);
	hello->session = wire_get32(data + 20);
	hello->answers = wire_get32(data + 24);
	hello->data = (uint16_t)credits;
	hello->control = (uint16_t)(credits >> 16);
	hello->cell_size = wire_get32(data + 32);
	hello->service = wire_get64(data + 36);
	memcpy(hello->port, data + 44, sizeof(hello->port));
	hello->board.rkey = wire_get64(data + 76);
	hello->board.length = wire_get64(data + 84);
	hello->board.peer = wire_get32(data + 92);
	hello->board.generation = wire_get32(data + 96);
	hello->board.flags = wire_get32(data + 100);
}

/* The least that there is room for: headers and a message of a few bytes. */
#define CELL_LEAST	128

bool wire_read_hello(const char *data, size_t length, struct hello *hello)
{
	uint32_t version;

	if (length != HELLO_SIZE || wire_get32(data) != HELLO_MAGIC)
		return false;
	memset(hello, 0, sizeof(*hello));
	version = wire_get32(data + 4);
	hello->version = (uint16_t)version;
	hello->flags = (uint16_t)(version >> 16);
	read_all(data, hello);
	if (hello->version != HELLO_VERSION || hello->flags & HELLO_REFUSED)
		return true;
	return hello->nonce && hello->session && hello->data &&
	       hello->control > 1 && hello->cell_size >= CELL_LEAST &&
	       !hello->port[sizeof(hello->port) - 1] && hello->port[0] &&
	       !(hello->flags & ~(HELLO_ACK | HELLO_REFUSED));
}
