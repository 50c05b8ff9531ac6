// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * With the run times that this machine has, or has not: sentences about what
 * is missing, and host memory that stays host memory. Prints TAP.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <fabrex/fabrex.h>

static char memory[8192];
static int points, failures;

static void ok(int good, const char *what)
{
	printf("%sok %d %s\n", good ? "" : "not ", ++points, what);
	if (!good)
		printf("# last error: %s\n", fabrex_strerror_last());
	failures += !good;
}

static int export(enum fabrex_memory_kind kind)
{
	uint64_t offset;
	int fd;

	return fabrex_memory_export(memory, 4096, kind, &fd, &offset);
}

static int says(const char *text)
{
	return !!strstr(fabrex_strerror_last(), text);
}

/* Registered without a kind it is what it is: the fabric reaches it. */
static int is_host(void)
{
	struct fabrex_memory m;
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	int host;

	if (fabrex_memory_query(memory, &m, sizeof(m)) ||
	    m.kind != FABREX_MEMORY_HOST || fabrex_open("a.0", &port) ||
	    fabrex_mr_register(port, memory, 4096, FABREX_MR_ALL, &mr))
		return 0;
	host = fabrex_mr_kind(mr) == FABREX_MEMORY_HOST;
	fabrex_close(port);
	return host;
}

static void no_cuda(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (lib) {
		printf("# libcuda.so.1 is here: nothing is missing\n");
		dlclose(lib);
		return;
	}
	ok(export(FABREX_MEMORY_CUDA) == -ENOTSUP && says("libcuda.so.1") &&
	   says("LD_LIBRARY_PATH"), "CUDA: the missing library is named");
	printf("# %s\n", fabrex_strerror_last());
}

static int call(void *lib, const char *name, int *argument)
{
	int (*function)(int *) = (int (*)(int *))(uintptr_t)dlsym(lib, name);

	return function ? function(argument) : -1;
}

static void hip_here(void *hip)
{
	int n = 0, ret;

	ok(is_host(), "HIP is loaded: host memory is host memory");
	ret = call(hip, "hipGetDeviceCount", &n);
	printf("# hipGetDeviceCount: %d, %d devices\n", ret, n);
	if (n)
		return;
	ok(ret != 0, "the run time says that it has no device");
	ok(is_host(), "and host memory still is");
	ok(export(FABREX_MEMORY_HIP) == -ENOTSUP, "HIP memory it is not");
	printf("# %s\n", fabrex_strerror_last());
}

static void amd(void)
{
	void *hip = NULL, *hsa = dlopen("libhsa-runtime64.so.1",
					RTLD_NOW | RTLD_LOCAL);

	if (!hsa) {
		ok(export(FABREX_MEMORY_HIP) == -ENOTSUP &&
		   says("libhsa-runtime64.so.1"),
		   "HIP: the missing library is named");
		printf("# %s\n", fabrex_strerror_last());
		return;
	}
	ok(is_host(), "HSA is loaded: host memory is host memory");
	ok(export(FABREX_MEMORY_HIP) == -ENOTSUP && says("not initialised"),
	   "HSA has not been initialised, and the sentence says so");
	printf("# %s\n", fabrex_strerror_last());
	hip = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_LOCAL);
	if (hip)
		hip_here(hip);
	else
		printf("# no libamdhip64.so.5\n");
}

int main(void)
{
	ok(is_host(), "nothing is loaded: host memory is host memory");
	no_cuda();
	amd();
	printf("1..%d\n", points);
	return failures != 0;
}
