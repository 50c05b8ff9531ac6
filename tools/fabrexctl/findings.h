/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What "doctor" finds on this machine, in sentences. Nothing is changed by
 * looking. Called by doctor.c.
 */
#ifndef CTL_FINDINGS_H
#define CTL_FINDINGS_H

#include <json-c/json.h>

#include "ctl.h"
#include "kernel.h"
#include "pciname.h"
#include "pcitree.h"

enum level {
	LEVEL_OK,		/* as it should be */
	LEVEL_NOTE,		/* worth knowing */
	LEVEL_MISSING,		/* in the way of something */
	LEVEL_UNKNOWN		/* it cannot be seen */
};

struct diagnosis {
	struct ctl *c;
	bool fabric;		/* c->model has local ports */
	struct p2p_env env;
	struct pci_tree tree;
	struct kernel kernel;
	json_object *findings;	/* about, level, text, next */
	json_object *next;	/* commands, each once */
};

/* All of them. */
void findings_make(struct diagnosis *d);
/* One more command that is worth running; NULL is none. */
void findings_next(struct diagnosis *d, const char *command);
/* The first function of that kind; NULL: there is none. */
const struct pci_function *findings_first(const struct diagnosis *d,
					  enum function_kind kind);
/* GPUs, without Virtual Functions. */
size_t findings_gpus(const struct diagnosis *d, const struct pci_function **gpu,
		     size_t room);

#endif
