/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two endpoints of which the first reads and writes memory of the second: what
 * tests of one-sided operations begin with.
 */
#ifndef FABREX_FI_REGION_H
#define FABREX_FI_REGION_H

#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "ends.h"

#define BIG	(8u << 20)
#define CAPS	(FI_MSG | FI_RMA | FI_SOURCE)
#define BASIC	1		/* FI_MR_BASIC: virtual addresses */
#define ALL	(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* A region, and what others need to use it. */
struct memory {
	char *at;
	struct fid_mr *mr;
	uint64_t key, base;
};

extern const struct end_wish by_offset, by_address;

void reg(struct end *end, struct memory *memory, char *at, size_t len,
	 uint64_t access);
void unreg(struct memory *memory);
void *desc_of(const struct memory *memory);

/* a reads and writes what b has in there; own is a's. All of BIG + 64 bytes. */
extern struct end a, b;
extern struct memory there, own;
extern char *from, *to;		/* registered by nobody */

void setup(const struct end_wish *wish);
/* Nothing is left. */
void teardown(void);
void write_ok(const void *buf, size_t len, uint64_t at);
/* The completion that an end has by a write with data. */
void has_data(struct end *end, uint64_t data, size_t len);

/* len bytes in four parts, with a gap after each; or in four places there. */
void cut(struct iovec iov[4], char *base, size_t len, size_t gap);
void cut_there(struct fi_rma_iov rma[4], const struct memory *memory,
	       size_t len);

#endif
