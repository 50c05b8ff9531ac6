/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FABREX_OPS_H
#define FABREX_OPS_H

#include "fabrex.h"

/* ops.c */
const char *fabrex_ops_missing(const struct fabrex_port_ops *ops, bool windows);

#endif
