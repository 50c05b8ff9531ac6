// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Parses a secret, and computes SipHash-2-4 (Aumasson and Bernstein, 2012), a
 * keyed hash for short messages. The key has 128 bits; a proof has 64, and each
 * guess of one takes a connection to rank 0.
 */
#include <endian.h>
#include <string.h>

#include "coll/bootstrap/secret.h"

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool fxi_secret_parse(const char *text, struct secret *secret)
{
	uint8_t bytes[SECRET_DIGITS / 2];
	size_t i;

	if (strlen(text) != SECRET_DIGITS)
		return false;
	for (i = 0; i < SECRET_DIGITS; i += 2) {
		int high = digit(text[i]), low = digit(text[i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i / 2] = (uint8_t)(high << 4 | low);
	}
	memcpy(secret->key, bytes, sizeof(bytes));
	secret->key[0] = le64toh(secret->key[0]);
	secret->key[1] = le64toh(secret->key[1]);
	secret->set = true;
	return true;
}

static uint64_t turn(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t *v, int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = turn(v[1], 13) ^ v[0];
		v[3] = turn(v[3], 16) ^ v[2];
		v[0] = turn(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = turn(v[1], 17) ^ v[2];
		v[3] = turn(v[3], 21) ^ v[0];
		v[2] = turn(v[2], 32);
	}
}

static void word(struct proof *p, uint64_t value)
{
	p->v[3] ^= value;
	rounds(p->v, 2);
	p->v[0] ^= value;
}

void fxi_proof_begin(struct proof *p, const struct secret *secret)
{
	p->v[0] = secret->key[0] ^ 0x736f6d6570736575ull;
	p->v[1] = secret->key[1] ^ 0x646f72616e646f6dull;
	p->v[2] = secret->key[0] ^ 0x6c7967656e657261ull;
	p->v[3] = secret->key[1] ^ 0x7465646279746573ull;
	p->length = 0;
}

static uint64_t rest(const struct proof *p)
{
	uint64_t value;

	memcpy(&value, p->rest, sizeof(value));
	return le64toh(value);
}

void fxi_proof_add(struct proof *p, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;

	while (n) {
		size_t at = p->length % 8, take = 8 - at < n ? 8 - at : n;

		memcpy(p->rest + at, from, take);
		from += take;
		n -= take;
		p->length += take;
		if (at + take == 8)
			word(p, rest(p));
	}
}

uint64_t fxi_proof_end(struct proof *p)
{
	uint64_t length = (uint64_t)p->length << 56;

	memset(p->rest + p->length % 8, 0, 8 - p->length % 8);
	word(p, rest(p) | length);
	p->v[2] ^= 0xff;
	rounds(p->v, 4);
	return p->v[0] ^ p->v[1] ^ p->v[2] ^ p->v[3];
}
