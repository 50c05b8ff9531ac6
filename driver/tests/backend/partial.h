/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of fabrex_partial.ko share. Not for others; what its test in
 * selftests/backend has to know is repeated there.
 */
#ifndef FABREX_PARTIAL_H
#define FABREX_PARTIAL_H

#include "backend.h"

/* Objects of the fabric that the port "partial.fabric" has. */
#define PARTIAL_SWITCH		1
#define PARTIAL_PORT		2
#define PARTIAL_HOST		3
#define PARTIAL_ENDPOINT	4

/* What the port "partial.data" has. */
#define PARTIAL_QUEUES		4
#define PARTIAL_MRS		16

/* fabric.c */
extern const struct fabrex_fabric_ops partial_fabric_ops;

int partial_fabric_fill(struct fabrex_port *port);

/* data.c */
extern const struct fabrex_data_ops partial_data_ops;

#endif
