/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Partitions of a Switchtec PFX as their drivers use them: registers, commands.
 * For tests of the model.
 */
#ifndef EMU_PARTITION_H
#define EMU_PARTITION_H

#include "pfx.h"
#include "rig.h"

/* Behind ports 5 to 8 there is an endpoint each, behind 9 three, behind 10 two. */
#define PARTITIONS \
	"fabric = \"pfx\";\n" \
	"switches = ( { name = \"p\"; model = \"pfx\"; ports = 10; } );\n" \
	"hosts = ( { name = \"a\"; manager = true; ports = ( \"p:1\" ); slots = 3; },\n" \
	"          { name = \"b\"; ports = ( \"p:2\" ); slots = 2; },\n" \
	"          { name = \"c\"; ports = ( \"p:3\" ); slots = 2; } );\n" \
	"ntbs = ( { a = \"a.0\"; b = \"b.0\"; } );\n" \
	"appliances = ( { name = \"box\"; kind = \"flat\";\n" \
	"  uplinks = ( \"p:5\", \"p:6\", \"p:7\", \"p:8\" );\n" \
	"  endpoints = ( { class = \"gpu\"; count = 4; } ); },\n" \
	"  { name = \"many\"; kind = \"cascade\";\n" \
	"  uplinks = ( \"p:9\", \"p:10\" );\n" \
	"  endpoints = ( { class = \"gpu\"; count = 4; }, { class = \"nvme\"; } ); } );\n"

/* Its hosts, and their partitions. */
#define A		0
#define B		1
#define C		2
#define EVENT_AT(p)	(GAS_PART + (p) * GAS_PART_SIZE)

static inline struct pfx_part *part(unsigned int host)
{
	return rig_guest[host].port->part;
}

static inline uint64_t load(unsigned int host, unsigned int bar,
			    uint64_t offset, size_t n)
{
	uint64_t v = 0;

	pfx_function_ops.bar_read(part(host), bar, offset, &v, n);
	return v;
}

static inline void store(unsigned int host, unsigned int bar,
			 uint64_t offset, uint64_t v, size_t n)
{
	pfx_function_ops.bar_write(part(host), bar, offset, &v, n);
}

static inline uint32_t rd(unsigned int host, uint64_t offset)
{
	return (uint32_t)load(host, 0, offset, 4);
}

static inline void wr(unsigned int host, uint64_t offset, uint32_t v)
{
	store(host, 0, offset, v, 4);
}

static inline void begin_with(const char *topology)
{
	rig_start(topology, 1, NULL);
	for (unsigned int i = 0; i < 3; i++)
		pfx_function_ops.attach(part(i));
}

static inline void begin(void)
{
	begin_with(PARTITIONS);
}

static inline void end(void)
{
	for (unsigned int i = 0; i < 3; i++)
		pfx_function_ops.detach(part(i));
	rig_stop();
}

/* What the command returns; its answer is at MRPC_OUTPUT. */
static inline uint32_t run(unsigned int host, uint32_t cmd)
{
	wr(host, MRPC_CMD, cmd);
	return rd(host, MRPC_RETURN);
}

#endif
