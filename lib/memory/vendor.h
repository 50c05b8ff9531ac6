/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One GPU vendor: what memory.c calls in amd.c and cuda.c. Except for load,
 * ready and forked, only once one of its libraries is ready.
 */
#ifndef LIB_MEMORY_VENDOR_H
#define LIB_MEMORY_VENDOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fabrex/fabrex.h>

#include "memory/memory.h"

/* Why a query or an export failed, for the error message. */
struct reason {
	int err;			/* errno, 0: none yet */
	char text[200];			/* cause and remedy */
};

/*
 * @kind:   of its memory
 * @name:   in messages
 * @load:   make a library ready; as fxi_library_load()
 * @ready:  true if one is
 * @find:   true if @addr is device memory of this vendor; all of @memory that
 *          is known is then set. Otherwise @why, if not NULL, may be set
 * @id:     as fxi_memory_id()
 * @migrates: true, with @why, if the runtime moves pages at @addr although they
 *          are pinned; NULL: it never does
 * @copies: true if it has what copy needs
 * @copy:   as fxi_memory_copy()
 * @rest:   as fxi_memory_rest(); NULL: what is kept is for the next port
 * @forked: as fxi_memory_forked(); ready or not
 * @registered: others are going to access it; NULL: nothing to do
 * @settle: as fxi_memory_settle(); NULL: nothing to do
 * @export: dma-buf of memory that was found; *@fd is close-on-exec. False:
 *          @why has the reason
 */
struct vendor {
	enum fabrex_memory_kind kind;
	const char *name;
	int (*load)(void);
	bool (*ready)(void);
	bool (*find)(const void *addr, struct fabrex_memory *memory,
		     struct reason *why);
	uint64_t (*id)(const void *addr);
	bool (*migrates)(const void *addr, struct reason *why);
	bool (*copies)(void);
	bool (*copy)(void *addr, void *buffer, size_t length, bool read);
	void (*rest)(void);
	void (*forked)(void);
	void (*registered)(const void *addr);
	bool (*settle)(const void *addr, bool may_wait);
	bool (*export)(const struct fabrex_memory *memory, const void *addr,
		       size_t length, int *fd, uint64_t *offset,
		       struct reason *why);
};

extern const struct vendor fxi_vendor_amd;
extern const struct vendor fxi_vendor_cuda;

/* Set *why unless it is set: later reasons are about workarounds. False. */
bool fxi_because(struct reason *why, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
