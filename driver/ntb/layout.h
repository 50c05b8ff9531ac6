/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inbox: memory of a host that its peer reaches through a memory window, and that
 * only the peer writes while the link is up. Its layout, and what the two say of
 * themselves. Pure functions: used by the driver and, in user space, by driver/tests.
 */
#ifndef FABREX_NTB_LAYOUT_H
#define FABREX_NTB_LAYOUT_H

#include <linux/types.h>

#define FNTB_MAGIC		0x62746e66
#define FNTB_VERSION		2
#define FNTB_NAME_LEN		32

/* Smallest and largest inbox. */
#define FNTB_INBOX_MIN		(64u << 10)
#define FNTB_INBOX_MAX		(16u << 20)
#define FNTB_PAGE		4096u
#define FNTB_CHUNK_MAX		(64u << 10)
/* Behind the payload in a place: the marker of a DMA engine. */
#define FNTB_MARKER_ROOM	64u

/**
 * struct fntb_hello - what a host says of itself
 * @magic:      %FNTB_MAGIC
 * @version:    %FNTB_VERSION
 * @epoch:      of what it sends; random, not 0
 * @echo:       the peer's epoch, if it has heard it and can go on with it
 * @generation: differs each time that the port has been enabled
 * @peer:       its number
 * @size:       of its inbox, bytes
 * @window:     bytes of the peer's inbox that it can reach
 * @direct:     bytes behind the peer's second window, for regions that are linked;
 *              0: none are
 * @name:       of its port, NUL-terminated
 * @host:       its name, likewise
 * @crc:        CRC32C of all before it: while it is being stored, it does not fit
 * @__pad:      0
 */
struct fntb_hello {
	__le32 magic;
	__le32 version;
	__le32 epoch;
	__le32 echo;
	__le32 generation;
	__le32 peer;
	__le32 size;
	__le32 window;
	__le64 direct;
	char name[FNTB_NAME_LEN];
	char host[FNTB_NAME_LEN];
	__le32 crc;
	__le32 __pad;
};

/* fntb_control.bell: on which occasions a peer that sleeps wants an interrupt. */
#define FNTB_BELL_REQUESTS	(1u << 0)
#define FNTB_BELL_ANSWERS	(1u << 1)

/**
 * struct fntb_control - beginning of an inbox
 * @hello:     of the peer
 * @heartbeat: changes as long as the peer is alive
 * @bell:      FNTB_BELL_*
 */
struct fntb_control {
	struct fntb_hello hello;
	u8 __pad0[256 - sizeof(struct fntb_hello)];
	__le32 heartbeat;
	u8 __pad1[60];
	__le32 bell;
	u8 __pad2[60];
};

/**
 * struct fntb_layout - where what is in an inbox of some size
 * @size:     bytes of the inbox
 * @slots:    requests that can be under way, and answers; a power of two
 * @requests: offset of the first slot of a request
 * @answers:  offset of the first slot of an answer
 * @chunk:    bytes of a place for payload; a power of two
 * @nputs:    places for payload of requests, which the peer chooses
 * @puts:     offset of the first
 * @ngets:    places for payload of answers, which the owner chooses
 * @gets:     offset of the first
 */
struct fntb_layout {
	u32 size;
	u32 slots;
	u32 requests;
	u32 answers;
	u32 chunk;
	u32 nputs;
	u32 puts;
	u32 ngets;
	u32 gets;
};

static inline u32 fntb_stride(const struct fntb_layout *layout)
{
	return layout->chunk + FNTB_MARKER_ROOM;
}

/* A number of the sender's epoch: what was stored earlier never has it. */
static inline u64 fntb_stamp(u32 epoch, u32 count)
{
	return (u64)epoch << 32 | count;
}

bool fntb_layout_init(struct fntb_layout *layout, u64 size);
bool fntb_name_ok(const char *name);

#endif
