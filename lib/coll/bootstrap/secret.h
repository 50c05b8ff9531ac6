/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The secret that ranks share, and proofs of knowing it: SipHash-2-4 of a
 * message, which nobody can compute without the key and which does not reveal
 * it. Called by bootstrap.c and tcp.c.
 */
#ifndef LIB_COLL_BOOTSTRAP_SECRET_H
#define LIB_COLL_BOOTSTRAP_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_DIGITS	32u

struct secret {
	bool set;
	uint64_t key[2];
};

/* 32 hexadecimal digits. False: something else. */
bool fxi_secret_parse(const char *text, struct secret *secret);

struct proof {
	uint64_t v[4];
	uint8_t rest[8];
	size_t length;
};

void fxi_proof_begin(struct proof *p, const struct secret *secret);
void fxi_proof_add(struct proof *p, const void *bytes, size_t n);
uint64_t fxi_proof_end(struct proof *p);

#endif
