/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared libraries of others that we use when they are there: noticed once the
 * process has loaded them, or loaded on demand. Called by lib/memory/ only.
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
 * @prefix: that names of its files begin with, as "libcuda.so"
 * @sonames: to load, in turn; ends with NULL
 * @symbols: ends with a NULL name; what is missing stays NULL in the table
 * @table:  function pointers, valid and constant once library_ready()
 */
struct library {
	const char *prefix;
	const char *const *sonames;
	const struct library_symbol *symbols;
	void *table;
	void *handle;			/* kept: it is never unloaded again */
};

static inline bool library_ready(const struct library *lib)
{
	return __atomic_load_n(&lib->handle, __ATOMIC_ACQUIRE);
}

/* All there are; ends with NULL. */
extern struct library *const fxi_libraries[];

/*
 * Take up libraries that the process has loaded by itself since the last call.
 * Costs a comparison and no system call if nothing was loaded at all.
 */
void fxi_library_notice(void);
/* Load it if it is not yet; -ENOTSUP with a sentence that says what failed. */
int fxi_library_load(struct library *lib);

#endif
