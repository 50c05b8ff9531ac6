/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Steps: binds and unbinds in order, all or none. What compose, release, move
 * and apply have in common.
 */
#ifndef CTL_STEPS_H
#define CTL_STEPS_H

#include "ctl.h"

enum step_op { STEP_UNBIND, STEP_BIND };

struct step {
	enum step_op op;
	uint32_t ep;
	uint32_t port;		/* where to; unbind: where from */
	size_t with;		/* the step that does this one, too; or itself */
	bool done;
	bool unsure;		/* failed, but may have worked all the same */
	uint32_t slot;
	double start, seconds;	/* bind: until the PCI device is there */
	char pci_name[32];
};

struct steps {
	struct step *v;
	size_t n, cap;
	struct ids unchanged;	/* endpoints that are as they should be */
	bool force;
	bool wait;		/* for PCI devices of this host */
	uint32_t timeout_ms;	/* of an unbind; 0: the switch's default */
	double device_timeout;	/* seconds */
	double seconds;		/* all of it */
	char **warnings;	/* of preflight() */
	size_t nwarnings;
};

/* Say it beside the outcome, once. */
void steps_warn(struct steps *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void steps_add(struct steps *s, enum step_op op, uint32_t ep, uint32_t port);
/* All releases from the one at @first on before all binds. */
void steps_sort(struct steps *s, size_t first);
void steps_free(struct steps *s);
/* --force, --timeout, --no-wait */
int steps_options(struct ctl *c, struct steps *s);
/*
 * Ask the switch whether each step could be done, and look at this host's
 * slots; c->err says what not.
 */
int steps_preflight(struct ctl *c, struct steps *s);
/**
 * steps_run() - do them in order
 *
 * If one fails, or the user interrupts, what was done is undone in reverse
 * order, and looked at afterwards: c->err then says whether all is as before.
 */
int steps_run(struct ctl *c, struct steps *s);
/* Put the outcome (or with @dry the intention) into c->doc and c->out. */
void steps_report(struct ctl *c, const struct steps *s, bool dry);
/* Preflight, and unless --dry-run run; then report. */
int steps_execute(struct ctl *c, struct steps *s);

#endif
