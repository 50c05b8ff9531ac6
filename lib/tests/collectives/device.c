// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Allocations of GPUs and copies to and from them, as applications make them.
 */
#include <dlfcn.h>

#include "cuda.h"
#include "device.h"
#include "hip.h"
#include "world.h"

#define TO_DEVICE	1	/* hipMemcpyKind */
#define TO_HOST		2
#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
#define CALL(lib, name, ...) \
	(((__typeof__(&name))(uintptr_t)symbol(lib, STRING(name))) \
	 (__VA_ARGS__))

static void *symbol(void *lib, const char *name)
{
	void *found = dlsym(lib, name);

	if (!found)
		test_note("%s", name);
	CHECK(found);
	return found;
}

static void *load(const char *file)
{
	const char *dir = getenv("FABREX_TEST_RUNTIME");
	char path[512];
	void *lib;

	setenv("FABREX_TEST_GPUS", "2", 0);
	CHECK(dir);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	test_note("%s", path);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	CHECK(lib);
	return lib;
}

void gpu_cuda(struct gpu *g, uint64_t bytes)
{
	CUdeviceptr ptr = 0;
	CUcontext context;

	memset(g, 0, sizeof(*g));
	g->cuda = load("libcuda.so.1");
	CHECK_EQ(CALL(g->cuda, cuInit, 0), 0);
	CHECK_EQ(CALL(g->cuda, cuDevicePrimaryCtxRetain, &context, 0), 0);
	CHECK_EQ(CALL(g->cuda, cuCtxSetCurrent, context), 0);
	CHECK_EQ(CALL(g->cuda, cuMemAlloc, &ptr, bytes), 0);
	g->memory = (char *)(uintptr_t)ptr;
}

void gpu_hip(struct gpu *g, uint64_t bytes)
{
	void *ptr = NULL;

	memset(g, 0, sizeof(*g));
	g->hip = load("libamdhip64.so.5");
	CHECK_EQ(CALL(g->hip, hipSetDevice, 1), 0);
	CHECK_EQ(CALL(g->hip, hipMalloc, &ptr, bytes), 0);
	g->memory = ptr;
}

void gpu_none(struct gpu *g, uint64_t bytes)
{
	memset(g, 0, sizeof(*g));
	g->memory = malloc(bytes);
	CHECK(g->memory);
}

void gpu_put(const struct gpu *g, char *to, const void *from, uint64_t n)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuMemcpyHtoD, (CUdeviceptr)(uintptr_t)to,
			      from, n), 0);
	else if (g->hip)
		CHECK_EQ(CALL(g->hip, hipMemcpy, to, from, n, TO_DEVICE), 0);
	else
		memcpy(to, from, n);
}

void gpu_get(const struct gpu *g, void *to, const char *from, uint64_t n)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuMemcpyDtoH, to,
			      (CUdeviceptr)(uintptr_t)from, n), 0);
	else if (g->hip)
		CHECK_EQ(CALL(g->hip, hipMemcpy, to, from, n, TO_HOST), 0);
	else
		memcpy(to, from, n);
}
