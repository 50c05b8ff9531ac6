/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Switches that bind a port with all that is behind it: which steps are one
 * change. Called by steps.c.
 */
#ifndef CTL_TOGETHER_H
#define CTL_TOGETHER_H

#include "steps.h"

/*
 * Set step.with of all steps. Of switches of that kind refuse what would take
 * along an endpoint that nobody has named, and more than there are places for.
 */
int together(struct ctl *c, struct steps *s);

#endif
