/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The secret that ranks have in common, and proofs of knowing it: SipHash-2-4
 * of what is said, which nobody can make without the key, and which says
 * nothing about it. Called by bootstrap.c and tcp.c.
 */
#ifndef LIB_COLL_SECRET_H
#define LIB_COLL_SECRET_H

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
