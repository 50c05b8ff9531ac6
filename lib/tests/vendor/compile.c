// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernel of lib/coll/device with the run-time compilers that this machine
 * has, for GPUs of several generations; without one, that it is named. Prints
 * TAP.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fabrex/coll.h>

#include "coll/device/vendor.h"

static int points, failures;

static void ok(int good, const char *what, const char *arch)
{
	printf("%sok %d %s %s\n", good ? "" : "not ", ++points, what, arch);
	if (!good)
		printf("# last error: %s\n", fabrex_strerror_last());
	failures += !good;
}

/* Code for a GPU is an ELF file, several in a bundle, or text. */
static int is_code(const char *code, size_t size)
{
	static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";

	if (size > 100 && !code[size - 1] && strstr(code, ".visible .entry"))
		return 1;
	return (size > sizeof(Elf64_Ehdr) && !memcmp(code, ELFMAG, SELFMAG)) ||
	       (size > sizeof(bundle) && !memcmp(code, bundle, 24));
}

static int compiles(const struct gpu_vendor *vendor, const char *arch,
		    uint32_t type)
{
	size_t size;
	char *code;
	int good;

	if (fxi_kernel_compile(vendor, arch, type, &code, &size))
		return 0;
	good = is_code(code, size);
	free(code);
	return good;
}

static void try(const struct gpu_vendor *vendor, const char *const *archs)
{
	uint32_t type;
	size_t size;
	char *code;
	int ret;

	ret = fxi_kernel_compile(vendor, archs[0], FABREX_INT8, &code, &size);
	if (ret == -ENOTSUP) {
		ok(strstr(fabrex_strerror_last(), vendor->rtc_names[0]) != NULL,
		   vendor->name, "# SKIP: no compiler, which is named");
		printf("# %s\n", fabrex_strerror_last());
		return;
	}
	if (!ret)
		free(code);
	for (type = FABREX_INT8; type <= FABREX_FLOAT64; type++)
		ok(compiles(vendor, archs[0], type), vendor->name, archs[0]);
	for (archs++; *archs; archs++)
		ok(compiles(vendor, *archs, FABREX_FLOAT16) &&
		   compiles(vendor, *archs, FABREX_FLOAT64), vendor->name,
		   *archs);
	/* One that does not exist ends HIPRTC 5.7, and the process. */
	if (vendor->kind == FABREX_MEMORY_HIP)
		return;
	ok(fxi_kernel_compile(vendor, "--gpu-architecture=nothing",
			       FABREX_INT8, &code, &size) == -EIO,
	   vendor->name, "refuses what is no architecture");
	printf("# %s\n", fabrex_strerror_last());
}

int main(void)
{
	static const char *const cuda[] = {
		"--gpu-architecture=sm_90", "--gpu-architecture=sm_75",
		"--gpu-architecture=sm_80", "--gpu-architecture=sm_89",
		/* Newer than any. */
		"--gpu-architecture=sm_399", NULL,
	};
	static const char *const hip[] = {
		"--gpu-architecture=gfx90a", "--gpu-architecture=gfx906",
		"--gpu-architecture=gfx1030", "--gpu-architecture=gfx1100",
		NULL,
	};

	try(&fxi_gpu_cuda, cuda);
	if (fxi_gpu_hip.load())
		printf("# %s\n", fabrex_strerror_last());
	try(&fxi_gpu_hip, hip);
	printf("1..%d\n", points);
	return failures != 0;
}
