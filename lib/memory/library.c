// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finding and loading the runtimes of GPU vendors. No lock is held while the
 * dynamic linker is called: it runs constructors, which may call us.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "memory/library.h"
#include "memory/memory.h"

#define MAX_TABLE	32	/* function pointers of a library */

static pthread_mutex_t publish_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t resolve(const struct library *lib, void *handle, void **table)
{
	size_t i;

	for (i = 0; lib->symbols[i].name; i++)
		table[lib->symbols[i].offset / sizeof(void *)] =
			dlsym(handle, lib->symbols[i].name);
	/* A missing symbol is not the application's error. */
	dlerror();
	return i * sizeof(void *);
}

/* The thread that holds it does not exist in the child of a fork. */
static void fork_prepare(void)
{
	pthread_mutex_lock(&publish_lock);
}

static void fork_done(void)
{
	pthread_mutex_unlock(&publish_lock);
}

static void fork_child(void)
{
	fork_done();
	fxi_memory_forked();
}

static void fork_install(void)
{
	pthread_atfork(fork_prepare, fork_done, fork_child);
}

/* The first caller fills the table; the others drop their @handle. */
static void publish(struct library *lib, void *handle)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	void *table[MAX_TABLE] = { NULL };
	size_t size = resolve(lib, handle, table);
	bool late;

	pthread_once(&once, fork_install);
	pthread_mutex_lock(&publish_lock);
	late = lib->handle;
	if (!late) {
		memcpy(lib->table, table, size);
		__atomic_store_n(&lib->handle, handle, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&publish_lock);
	if (late)
		dlclose(handle);
}

/* ---- noticing ---------------------------------------------------------- */

static int read_additions(struct dl_phdr_info *info, size_t size, void *arg)
{
	if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
		*(uint64_t *)arg = info->dlpi_adds;
	return 1;
}

struct sighting {
	const struct library *lib;
	char path[512];
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct sighting *seen = arg;
	const char *file = strrchr(info->dlpi_name, '/');

	(void)size;
	file = file ? file + 1 : info->dlpi_name;
	if (strncmp(file, seen->lib->prefix, strlen(seen->lib->prefix)) ||
	    strlen(info->dlpi_name) >= sizeof(seen->path))
		return 0;
	strcpy(seen->path, info->dlpi_name);
	return 1;
}

/*
 * A library that the process has loaded already; waits for a dlopen() of it
 * that has not returned. Lazily: our flags must not change how it was bound.
 */
static void take_up(struct library *lib)
{
	struct sighting seen = { .lib = lib };
	void *handle;

	if (!dl_iterate_phdr(look_at, &seen))
		return;
	handle = dlopen(seen.path, RTLD_NOLOAD | RTLD_LAZY);
	if (handle)
		publish(lib, handle);
	else
		dlerror();	/* as in resolve() */
}

/*
 * The dynamic linker counts what it loads. A thread that sees the count of
 * another one's last look also sees the libraries that it has taken up.
 */
void fxi_library_notice(void)
{
	static uint64_t looked;
	struct library *const *lib;
	uint64_t now = 0;

	dl_iterate_phdr(read_additions, &now);
	if (now && now == __atomic_load_n(&looked, __ATOMIC_ACQUIRE))
		return;
	for (lib = fxi_libraries; *lib; lib++)
		if (!library_ready(*lib))
			take_up(*lib);
	__atomic_store_n(&looked, now, __ATOMIC_RELEASE);
}

/* ---- loading ----------------------------------------------------------- */

int fxi_library_load(struct library *lib)
{
	char first[160] = "";
	const char *const *name, *why;
	void *handle;

	if (library_ready(lib))
		return 0;
	for (name = lib->sonames; *name; name++) {
		handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
		if (handle) {
			publish(lib, handle);
			return 0;
		}
		why = dlerror();
		if (!*first)
			snprintf(first, sizeof(first), "%s",
				 why ? why : *name);
	}
	return fxi_error(ENOTSUP, "%s; install it, or name its directory in LD_LIBRARY_PATH",
			 first);
}
