// SPDX-License-Identifier: GPL-2.0-only
/*
 * Modules of the test run times: kernels that rtc.c compiled for the processor,
 * which loops over their threads. Called by cuda_stream.c, hip_stream.c and
 * stream.c.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"

/* What rtc.c puts behind the source for each kernel. */
typedef void *pack_function(void **parameters);
typedef void run_function(void *packed, void *(*view)(void *),
			  const unsigned int *grid,
			  const unsigned int *block);

struct gpu_kernel {
	struct gpu_kernel *next;
	pack_function *pack;
	run_function *run;
};

struct gpu_module {
	void *library;
	int fd;
	struct gpu_kernel *kernels;
};

/* Of the kernel that this thread runs. */
static __thread enum gpu_vendor running;
static __thread bool faulted;

/*
 * The file stays open: libraries are known by their paths, and the next one
 * would have this one's.
 */
static bool open_library(struct gpu_module *module, const void *bytes,
			 size_t size)
{
	char path[64];

	module->fd = memfd_create("kernel", MFD_CLOEXEC);
	if (module->fd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", module->fd);
	if (write(module->fd, bytes, size) == (ssize_t)size)
		module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module->library)
		close(module->fd);
	return module->library;
}

struct gpu_module *gpu_module_load(const void *image,
				   const char *const *options)
{
	struct gpu_module *module;
	struct gpu_code code;

	memcpy(&code, image, sizeof(code));
	while (*options && strcmp(code.option, *options))
		options++;
	if (memcmp(code.magic, GPU_CODE_MAGIC, sizeof(code.magic)) ||
	    !*options)
		return NULL;
	module = calloc(1, sizeof(*module));
	if (!module)
		return NULL;
	if (open_library(module, (const char *)image + sizeof(code),
			 code.size))
		return module;
	free(module);
	return NULL;
}

void gpu_module_unload(struct gpu_module *module)
{
	struct gpu_kernel *kernel;

	while ((kernel = module->kernels)) {
		module->kernels = kernel->next;
		free(kernel);
	}
	dlclose(module->library);
	close(module->fd);
	free(module);
}

static void *symbol(struct gpu_module *module, const char *prefix,
		    const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "%s%s", prefix, name);
	return dlsym(module->library, text);
}

struct gpu_kernel *gpu_module_kernel(struct gpu_module *module,
				     const char *name)
{
	struct gpu_kernel *kernel = calloc(1, sizeof(*kernel));

	if (!kernel)
		return NULL;
	*(void **)&kernel->pack = symbol(module, "fabrex_pack_", name);
	*(void **)&kernel->run = symbol(module, "fabrex_run_", name);
	if (!kernel->pack || !kernel->run) {
		free(kernel);
		return NULL;
	}
	kernel->next = module->kernels;
	module->kernels = kernel;
	return kernel;
}

void *gpu_kernel_pack(const struct gpu_kernel *kernel, void **parameters)
{
	return kernel->pack(parameters);
}

static void *view(void *addr)
{
	void *p = addr ? gpu_view(running, addr) : NULL;

	faulted |= addr && !p;
	return p;
}

/* Every pointer is looked at before the first thread runs. */
bool gpu_kernel_run(const struct gpu_kernel *kernel, enum gpu_vendor vendor,
		    const unsigned int grid[3], const unsigned int block[3],
		    void *packed)
{
	const unsigned int none[3] = { 0, 0, 0 };

	running = vendor;
	faulted = false;
	kernel->run(packed, view, none, none);
	if (!faulted)
		kernel->run(packed, view, grid, block);
	free(packed);
	return !faulted;
}
