/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the two validators have in common: violations, what the libraries'
 * own XML parser cannot read, types of attributes. Inside lib/plan only:
 * nccl/validate.c, nccl/graph_validate.c.
 */
#ifndef LIB_PLAN_NCCL_CHECK_H
#define LIB_PLAN_NCCL_CHECK_H

#include "plan/nccl/rules.h"
#include "plan/nccl/xml.h"

struct nccl_check {
	const char *name;	/* of the file */
	struct plan_error *e;
	enum plan_dialect dialect;
	uint32_t violations;	/* the first is in @e */
	bool refused;		/* one that the library gives up on; that one is in @e */
	bool memory;		/* ran out of it */
};

enum nccl_type {
	NCCL_TEXT,
	NCCL_INT,
	NCCL_COUNT,		/* an int from 1 */
	NCCL_INDEX,		/* an int from 0 */
	NCCL_FLAG,		/* 0, 1 */
	NCCL_REAL,		/* not negative */
	NCCL_ID,		/* 0x and hex digits */
	NCCL_HASH,		/* hex digits, 0x or not */
	NCCL_CPUS,		/* masks of 32 CPUs, hex, "," between them */
	NCCL_ARCH,
	NCCL_VENDOR,
	NCCL_BUSID,
	NCCL_CLASS,		/* 0x03, 0x030200 */
	NCCL_SPEED,
	NCCL_WIDTH,
	NCCL_PATH,
	NCCL_DEV,		/* hex, and looks like it */
};

#define NCCL_NEED_NCCL	1u
#define NCCL_NEED_RCCL	2u
#define NCCL_NEED	3u

struct nccl_attribute {
	const char *element, *name;
	enum nccl_type type;
	unsigned int needed;	/* NCCL_NEED... */
};

/* "file:line: <element busid>: what"; @fmt has cause and remedy. */
void nccl_violation(struct nccl_check *c, const struct xml_element *x,
		    const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same, of what makes the library give up: it goes before all others. */
void nccl_refusal(struct nccl_check *c, const struct xml_element *x,
		  const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The bytes as such: what well-formed XML may have and the libraries trip on. */
void nccl_check_bytes(struct nccl_check *c, const char *text, size_t length);
/* One element's attributes, against a table that ends with a NULL. */
void nccl_check_attributes(struct nccl_check *c, const struct xml_element *x,
			   const struct nccl_attribute *table);
/* 0, or -EINVAL, -E2BIG (refused), -ENOMEM and @c->e is complete. */
int nccl_check_done(struct nccl_check *c);

#endif
