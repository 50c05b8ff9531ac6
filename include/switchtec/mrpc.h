/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands of Switchtec switches (MRPC), their answers and errors, as far as
 * they are used here. All values are little-endian.
 */
#ifndef SWITCHTEC_MRPC_H
#define SWITCHTEC_MRPC_H

/* ---- Commands ---- */

#define MRPC_COUNTERS		0x07	/* bytes of ports */
#define MRPC_BIND		0x0c	/* port to partition */
#define MRPC_LINKS		0x1c	/* link status of ports */
#define MRPC_PERMISSION		0x37	/* who may send a command */
#define MRPC_ECHO		0x41	/* answers the complement */
#define MRPC_PING		0x100	/* which firmware, which generation */

/* ---- Return values of all commands ---- */

#define MRPC_RET_UNSUPPORTED	0x4au
#define MRPC_RET_BUSY_FIRST	0x64001u
#define MRPC_RET_BUSY_LAST	0x64003u
#define MRPC_RET_DENIED		0x64010u
#define MRPC_RET_BAD_SUB	0x64004u
#define MRPC_RET_BAD_COMMAND	0x64005u
#define MRPC_RET_BAD_PARAM	0x64006u

/* ---- BIND: sub-commands, return values, states ---- */

#define MRPC_BIND_BIND		0u	/* partition, logical port, port */
#define MRPC_BIND_UNBIND	1u	/* partition, logical port, option */
#define MRPC_BIND_INFO		2u	/* port, or MRPC_BIND_ALL */
#define MRPC_BIND_ALL		0xffu
#define MRPC_BIND_NONE		0xffu	/* partition, logical port: not bound */
#define MRPC_BIND_OPTION	2u	/* of UNBIND; others are not public */
#define MRPC_BIND_PORTS		48u	/* of INFO's answer */

#define MRPC_BIND_RET_PORT_BOUND	1u
#define MRPC_BIND_RET_LOGICAL_BOUND	2u
#define MRPC_BIND_RET_NO_PARTITION	3u
#define MRPC_BIND_RET_NO_PORT		4u
#define MRPC_BIND_RET_DISABLED		5u
#define MRPC_BIND_RET_NO_LOGICAL	6u
#define MRPC_BIND_RET_IN_PROGRESS	7u
#define MRPC_BIND_RET_UPSTREAM		8u
#define MRPC_BIND_RET_SUB		9u
#define MRPC_BIND_RET_LINK_ACTIVE	0xau
#define MRPC_BIND_RET_NOT_BOUND		0xbu
#define MRPC_BIND_RET_OPTION		0xcu
#define MRPC_BIND_RET_CHECK		0xdu

/* Low half of INFO's state; the high half is not 0 if the port is bound. */
#define MRPC_BIND_OK		0u
#define MRPC_BIND_FAILED	1u
#define MRPC_BIND_IN_PROGRESS	2u
#define MRPC_BIND_BOUND		0x10u

/* ---- LINKS: 12 bytes for each port ---- */

#define MRPC_LINKS_PORTS	60u
#define MRPC_LINKS_SIZE		12u
#define MRPC_LINKS_NOBODY	0xf0u	/* stack: this entry is none */
#define MRPC_LINKS_UP		0x80u	/* beside the rate */

/* ---- PING: phase, revision, generation; complement of the value ---- */

#define MRPC_PING_MAIN		3u	/* phase: the main firmware runs */
#define MRPC_PING_GEN4		0u

#endif
