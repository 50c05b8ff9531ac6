/* SPDX-License-Identifier: GPL-2.0-only */
/* "topology predict". Called through the table of verbs in topology.c. */
#ifndef CTL_PREDICT_H
#define CTL_PREDICT_H

#include "ctl.h"

int topology_predict(struct ctl *c, int argc, char **argv);

#endif
