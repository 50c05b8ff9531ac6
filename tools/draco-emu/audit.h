/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The audit log: a record of its own, beside the gates, of when memory was
 * accessed by key and when it had become unreachable, for tests of revocation.
 * Off until the control socket turns it on, and then it costs one load.
 *
 * Locks: audit.lock is a leaf. audit_granted(), audit_revoked() and
 * audit_port_stopped() are called by the port's work, accesses by any thread.
 */
#ifndef EMU_AUDIT_H
#define EMU_AUDIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fabric;
struct port;
struct mr;
struct audit_port;
struct audit_closed;

/* Bounds of what is kept; beyond them dropped is counted. */
#define AUDIT_RANGES	(1u << 18)	/* unreachable ranges of a port */
#define AUDIT_CLOSED	(1u << 16)	/* ranges that became reachable again */
#define AUDIT_DETAILS	8u

/* An access under way; lives on the stack of whoever makes it. */
struct audit_access {
	bool on;			/* it is being recorded */
	bool write;
	struct port *port;
	uint64_t addr, len, start_ns;
	struct audit_access *next, **link;
};

/* An access that touched what had become unreachable before it ended. */
struct audit_late {
	const char *port;
	bool write;
	uint64_t addr, len, start_ns, end_ns;
	uint64_t revoked_ns, range_start, range_end;
};

struct audit_report {
	bool on;
	uint64_t accesses, bytes, revocations, ranges, late, dropped;
	unsigned int ndetails;
	struct audit_late details[AUDIT_DETAILS];
};

struct audit {
	atomic_bool on;
	pthread_mutex_t lock;		/* everything below */
	struct audit_access *active;
	struct audit_port *ports;	/* by peer number */
	unsigned int nports;
	struct audit_closed *closed;	/* ring, in order of time */
	uint64_t nclosed;		/* ever */
	struct audit_report report;
};

void audit_init(struct audit *a);
void audit_free(struct audit *a);

/* Begin anew, or stop; the report stays until the next begin. 0 or -ENOMEM. */
int audit_switch(struct fabric *f, bool on);
void audit_read(struct audit *a, struct audit_report *out);

static inline bool audit_is_on(struct audit *a)
{
	return atomic_load_explicit(&a->on, memory_order_relaxed);
}

/*
 * Around each access by key to @len bytes at bus address @addr of @p: begin
 * before the first byte, end after the last.
 */
void audit_begin(struct audit_access *x, struct port *p, uint64_t addr,
		 uint64_t len, bool write);
void audit_end(struct audit_access *x);

/* A region is complete and about to become valid. */
void audit_granted(struct port *p, const struct mr *mr);
/*
 * A region has been invalidated or destroyed: nothing is under way any more,
 * the command has not been completed, its pages are still listed.
 */
void audit_revoked(struct port *p, const struct mr *mr);
/* All regions of the port are: it was stopped or reset. */
void audit_port_stopped(struct port *p);

#endif
