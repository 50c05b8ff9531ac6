/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Columns of the tables of each noun. Shown with --wide they cover every key
 * of the records (tests/render.c holds them to that).
 */
#ifndef CTL_COLUMNS_H
#define CTL_COLUMNS_H

#include "table.h"

extern const struct column fport_columns[];
extern const struct column switch_columns[];
extern const struct column port_columns[];
extern const struct column host_columns[];
extern const struct column appliance_columns[];
extern const struct column endpoint_columns[];
extern const struct column p2p_columns[];
extern const struct column function_columns[];

#endif
