/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this host's PCI tree says about steps, before anything moves. Called by
 * steps.c.
 */
#ifndef CTL_PREFLIGHT_H
#define CTL_PREFLIGHT_H

#include "steps.h"

/**
 * preflight() - look at the slots that endpoints will come into
 *
 * Refuses what cannot work, with c->err; adds warnings to @s. Says nothing
 * about other hosts: nothing is known of them here. The slot of each step is
 * what the switch said, or 0.
 */
int preflight(struct ctl *c, struct steps *s);

#endif
