/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a Switchtec answers to commands, as structs; nothing of it is trusted.
 * Called by state.c and bind.c.
 */
#ifndef CTL_SWITCHTEC_ANSWER_H
#define CTL_SWITCHTEC_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <switchtec/mrpc.h>

#include "err.h"

#define ANSWER_PORTS		64u	/* numbers of physical ports */
#define ANSWER_PARTITIONS	48u
#define ANSWER_LINKS_SIZE	(MRPC_LINKS_PORTS * MRPC_LINKS_SIZE)
#define ANSWER_BINDS_SIZE	(4u + 4u * MRPC_BIND_PORTS)

/* Of one physical port. */
struct port_link {
	bool there;		/* the answer has it */
	bool up, upstream;
	bool placed;		/* it belongs to a partition */
	uint8_t partition, logical;
	uint8_t width, max_width;
	uint32_t speed;		/* MT/s; 0: down */
};

struct port_bind {
	bool there;
	bool bound;
	uint8_t partition, logical;
	uint8_t result;		/* MRPC_BIND_OK, _FAILED, _IN_PROGRESS */
};

/**
 * answer_links() - answer to MRPC_LINKS for all ports
 * @buf: of ANSWER_LINKS_SIZE bytes
 * @v:   by number of the physical port
 * @e:   names the field that makes no sense
 *
 * Return: 0 or -EPROTO
 */
int answer_links(const uint8_t *buf, struct port_link v[ANSWER_PORTS],
		 struct err *e);
/**
 * answer_binds() - answer to MRPC_BIND_INFO
 * @buf:  of ANSWER_BINDS_SIZE bytes
 * @port: what was asked for: one port, or MRPC_BIND_ALL
 */
int answer_binds(const uint8_t *buf, uint8_t port,
		 struct port_bind v[ANSWER_PORTS], struct err *e);

#endif
