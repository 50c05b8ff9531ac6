/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What $FABREX_DEBUG asks for: lines about what was chosen and why, on stderr
 * or in the file of $FABREX_DEBUG_FILE. For all of lib/; users read
 * fabrex_debug(7).
 */
#ifndef LIB_DEBUG_H
#define LIB_DEBUG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* The words of the variable, as bits. */
#define FXI_DEBUG_PORT		(1u << 0)	/* transports */
#define FXI_DEBUG_PATH		(1u << 1)	/* how bytes get to peers */
#define FXI_DEBUG_MEMORY	(1u << 2)	/* GPUs and their buffers */
#define FXI_DEBUG_BOOTSTRAP	(1u << 3)	/* how ranks find each other */
#define FXI_DEBUG_COLL		(1u << 4)	/* algorithms */
#define FXI_DEBUG_FAILURE	(1u << 5)	/* failed ranks */

#define FXI_DEBUG_NO_RANK	UINT32_MAX

/* Of the process: the words asked for. 0, mostly. */
extern uint32_t fxi_debugged;

/*
 * Read both variables, when a port is opened. -EINVAL: unknown word; or why
 * the file cannot be opened.
 */
int fxi_debug_open(void);
/* A line, whatever was asked for. Does not touch errno and the last error. */
void fxi_debug_line(uint32_t word, uint32_t rank, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));

static inline bool fxi_debugs(uint32_t word)
{
	return unlikely(__atomic_load_n(&fxi_debugged, __ATOMIC_RELAXED) &
			word);
}

/* Not where operations are posted, polled or copied: not even this branch. */
#define fxi_debug(word, rank, ...) \
	do { \
		if (fxi_debugs(word)) \
			fxi_debug_line(word, rank, __VA_ARGS__); \
	} while (0)

#endif
