/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared libraries that are used if they are there: noticed once the process
 * has loaded them, or loaded on demand. For lib/memory/ and for the compilers
 * of lib/coll/device/.
 */
#ifndef LIB_MEMORY_LIBRARY_H
#define LIB_MEMORY_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function pointer at @offset in the library's table. */
struct library_symbol {
	const char *name;
	size_t offset;
};

/*
 * @prefix: what names of its files begin with, such as "libcuda.so"
 * @sonames: to try in turn when it is loaded; ends with NULL
 * @symbols: ends with a NULL name; a missing one stays NULL in the table
 * @table:  function pointers, valid and constant once library_ready()
 */
struct library {
	const char *prefix;
	const char *const *sonames;
	const struct library_symbol *symbols;
	void *table;
	void *handle;			/* never unloaded */
};

static inline bool library_ready(const struct library *lib)
{
	return __atomic_load_n(&lib->handle, __ATOMIC_ACQUIRE);
}

/* All there are; ends with NULL. */
extern struct library *const fxi_libraries[];

/*
 * Take up libraries that the process itself has loaded since the last call.
 * Costs a comparison and no system call if nothing was loaded.
 */
void fxi_library_notice(void);
/* Load it if it is not loaded yet. -ENOTSUP: the message has the reason. */
int fxi_library_load(struct library *lib);

#endif
