/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands of Switchtec switches (MRPC), their answers and errors, as far as
 * they are used here. All values are little-endian.
 */
#ifndef SWITCHTEC_MRPC_H
#define SWITCHTEC_MRPC_H

/* ---- Commands ---- */

#define MRPC_ECHO		0x41	/* answers the complement */
#define MRPC_PING		0x100	/* which firmware, which generation */

/* ---- Return values of all commands ---- */

#define MRPC_RET_DENIED		0x64010u
#define MRPC_RET_BAD_SUB	0x64004u
#define MRPC_RET_BAD_COMMAND	0x64005u
#define MRPC_RET_BAD_PARAM	0x64006u

/* ---- PING: phase, revision, generation; complement of the value ---- */

#define MRPC_PING_MAIN		3u	/* phase: the main firmware runs */
#define MRPC_PING_GEN4		0u

#endif
