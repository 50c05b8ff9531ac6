/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of runtime-memory share: a port with a queue to itself, and
 * points of TAP. Called by memory.c and memory_device.c.
 */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <fabrex/fabrex.h>

#define RIG_SIZE	(1u << 20)

struct rig {
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;	/* host memory, RIG_SIZE bytes */
	uint8_t *memory;
	uint32_t peer;		/* this port itself */
};

void ok(bool good, const char *what);
/* Ends the program if it is not so. */
void need(bool good, const char *what);
double seconds(void);

void rig_open(struct rig *rig);
/* FABREX_OP_WRITE from the rig's memory into a region, or READ; the status. */
int rig_move(struct rig *rig, uint8_t opcode, const struct fabrex_mr *mr,
	     uint64_t offset, uint64_t length);
/* From the cache, with all rights; NULL. */
struct fabrex_mr *rig_get(struct rig *rig, void *addr, size_t length);
struct fabrex_mr_cache_stats rig_stats(struct rig *rig);

void part_cuda(struct rig *rig);
void part_hip(struct rig *rig);
void part_peers(struct rig *rig);

#endif
