/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The test run times (selftests/runtime) as tests use them: loaded when a test
 * wants it, each in its own process. Called by memory.c and device.c.
 */
#ifndef LIB_TESTS_RUNTIME_H
#define LIB_TESTS_RUNTIME_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include "cuda.h"
#include "hip.h"
#include "hsa.h"
#include "test.h"

#define RT_STRING_(x)	#x
#define RT_STRING(x)	RT_STRING_(x)

/* Call a function of a run time; the name may be a macro. */
#define CALL(lib, name, ...) \
	(((__typeof__(&name))(uintptr_t)runtime_symbol(lib, RT_STRING(name))) \
	 (__VA_ARGS__))

/* As applications do: by path below the test run times, or by soname. */
static inline void *runtime_load(const char *file)
{
	const char *dir = getenv("FABREX_TEST_RUNTIME");
	char path[512];
	void *lib;

	setenv("FABREX_TEST_GPUS", "2", 0);
	CHECK(dir);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		printf("# %s\n", dlerror());
	CHECK(lib);
	return lib;
}

static inline void *runtime_symbol(void *lib, const char *name)
{
	void *symbol = dlsym(lib, name);

	if (!symbol)
		printf("# no %s\n", name);
	CHECK(symbol);
	return symbol;
}

/* libcuda with the context of device 0 current. */
static inline void *cuda_up(const char *file)
{
	void *lib = runtime_load(file);
	CUcontext context;

	CHECK_EQ(CALL(lib, cuInit, 0), 0);
	CHECK_EQ(CALL(lib, cuDevicePrimaryCtxRetain, &context, 0), 0);
	CHECK_EQ(CALL(lib, cuCtxSetCurrent, context), 0);
	return lib;
}

static inline char *cuda_alloc(void *lib, size_t size)
{
	CUdeviceptr ptr = 0;

	CHECK_EQ(CALL(lib, cuMemAlloc, &ptr, size), 0);
	return (char *)(uintptr_t)ptr;
}

static inline char *hip_alloc(void *lib, size_t size)
{
	void *ptr = NULL;

	CHECK_EQ(CALL(lib, hipMalloc, &ptr, size), 0);
	return ptr;
}

#endif
