// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kernels for reductions, compiled by NVRTC or HIPRTC for the GPU at hand when
 * a type is first reduced on it, and kept. Called by device.c.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/device/kernel.h"
#include "coll/device/vendor.h"
#include "base/cancel.h"
#include "base/error.h"

#define MAX_OPTIONS	8
#define MAX_ARCHS	64

/* A compiler, loaded when it is first needed; under the lock. */
struct compiler {
	struct rtc_table table;
	struct rtc_more more;		/* all of it, or nothing */
	bool ready;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct compiler compilers[2];		/* CUDA, HIP */

/* ---- the compiler's library -------------------------------------------- */

static bool has_compiler(const struct library *lib,
			 const struct gpu_vendor *vendor)
{
	bool has = lib && library_ready(lib) &&
		   dlsym(lib->handle, vendor->rtc_symbols[0].name);

	dlerror();
	return has;
}

static void load_more(void *handle, const struct gpu_vendor *vendor,
		      struct compiler *c)
{
	if (vendor->rtc_more && fxi_gpu_resolve(handle, "", vendor->rtc_more,
						&c->more))
		memset(&c->more, 0, sizeof(c->more));
}

static int load_compiler(const struct gpu_vendor *vendor, struct compiler *c)
{
	const char *const *name;
	void *handle = NULL;
	int ret;

	if (c->ready)
		return 0;
	if (has_compiler(vendor->rtc_home, vendor))
		handle = vendor->rtc_home->handle;
	for (name = vendor->rtc_names; *name && !handle; name++)
		handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
	dlerror();
	if (!handle)
		return fxi_error(ENOTSUP, "reduction on a GPU of %s takes its run-time compiler: there is no %s; install it, or name its directory in LD_LIBRARY_PATH",
				 vendor->name, vendor->rtc_names[0]);
	ret = fxi_gpu_resolve(handle, "the run-time compiler",
			      vendor->rtc_symbols, &c->table);
	if (!ret)
		load_more(handle, vendor, c);
	c->ready = !ret;
	return ret;
}

static struct compiler *compiler_of(const struct gpu_vendor *vendor)
{
	return &compilers[vendor->kind == FABREX_MEMORY_HIP];
}

/* ---- compiling --------------------------------------------------------- */

/* The log of the compiler; the caller frees it. NULL: none. */
static char *read_log(struct compiler *c, void *program)
{
	size_t size = 0;
	char *log;

	if (c->table.log_size(program, &size) || !size)
		return NULL;
	log = calloc(1, size + 1);
	if (log)
		c->table.log(program, log);
	return log;
}

/* With the first line that says "error", or the first line. */
static int refused(const struct gpu_vendor *vendor, const char *arch,
		   struct compiler *c, void *program, int result)
{
	char *log = read_log(c, program);
	const char *line = log ? strstr(log, "error") : NULL;
	int ret;

	if (!line)
		line = log ? log : "";
	ret = fxi_error(EIO, "the run-time compiler of %s refused the kernel (%s%s%s): %.*s",
			vendor->name, c->table.text(result), *arch ? ", " : "",
			arch, (int)strcspn(line, "\n"), line);
	free(log);
	return ret;
}

#define REAL	"--gpu-architecture=sm_"
#define VIRTUAL	"--gpu-architecture=compute_"

static int newest_below(const int *numbers, int n, int number)
{
	int i, best = 0;

	for (i = 0; i < n; i++)
		if (numbers[i] <= number && numbers[i] > best)
			best = numbers[i];
	return best;
}

/*
 * A device that is newer than the compiler: the newest one that it knows, as
 * code that drivers translate.
 */
static const char *known_arch(struct compiler *c, const char *arch,
			      char *other, size_t size)
{
	int numbers[MAX_ARCHS], n = 0, number, best;

	if (!c->more.count || sscanf(arch, REAL "%d", &number) != 1 ||
	    c->more.count(&n) || n > MAX_ARCHS || c->more.archs(numbers))
		return arch;
	best = newest_below(numbers, n, number);
	if (!best || best == number)
		return arch;
	snprintf(other, size, VIRTUAL "%d", best);
	return other;
}

static int compile(const struct gpu_vendor *vendor, struct compiler *c,
		   void *program, const char *arch, uint32_t type)
{
	const char *options[MAX_OPTIONS], *const *more;
	char define[32];
	int n = 0, ret;

	snprintf(define, sizeof(define), "-DFABREX_TYPE=%u", type);
	options[n++] = define;
	if (*arch)
		options[n++] = arch;
	for (more = vendor->rtc_options; *more; more++)
		options[n++] = *more;
	ret = c->table.compile(program, n, options);
	return ret ? refused(vendor, arch, c, program, ret) : 0;
}

static int take_code(const struct gpu_vendor *vendor, struct compiler *c,
		     void *program, const char *arch, char **code,
		     size_t *size)
{
	bool text = !strncmp(arch, VIRTUAL, strlen(VIRTUAL));
	int ret = text ? c->more.code_size(program, size) :
			 c->table.code_size(program, size);

	*code = ret ? NULL : malloc(*size);
	if (!ret && !*code)
		return fxi_error(ENOMEM, "%zu bytes of code for the GPU",
				 *size);
	if (!ret)
		ret = text ? c->more.code(program, *code) :
			     c->table.code(program, *code);
	if (!ret)
		return 0;
	free(*code);
	return fxi_error(EIO, "the run-time compiler of %s produced no code: %s",
			 vendor->name, c->table.text(ret));
}

static int compile_locked(const struct gpu_vendor *vendor, const char *arch,
			  uint32_t type, char **code, size_t *size)
{
	struct compiler *c = compiler_of(vendor);
	void *program;
	char other[64];
	int ret = load_compiler(vendor, c);

	if (ret)
		return ret;
	arch = known_arch(c, arch, other, sizeof(other));
	ret = c->table.create(&program, kernel_text, "fabrex_reduce", 0, NULL,
			      NULL);
	if (ret)
		return fxi_error(EIO, "the run-time compiler of %s: %s",
				 vendor->name, c->table.text(ret));
	ret = compile(vendor, c, program, arch, type);
	if (!ret)
		ret = take_code(vendor, c, program, arch, code, size);
	c->table.destroy(&program);
	return ret;
}

void fxi_kernels_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

int fxi_kernel_compile(const struct gpu_vendor *vendor, const char *arch,
		       uint32_t type, char **code, size_t *size)
{
	NO_CANCEL();
	int ret;

	pthread_mutex_lock(&lock);
	ret = compile_locked(vendor, arch, type, code, size);
	pthread_mutex_unlock(&lock);
	return ret;
}

/* ---- kept --------------------------------------------------------------- */

/* Never unloaded: another thread may be launching it. */
struct program {
	struct program *next;
	const struct gpu_vendor *vendor;
	int number;
	uint32_t type;
	void *module;
	void *function;
};

static struct program *programs;

static int find_kernel(struct program *p, const char *code)
{
	const struct gpu_table *t = p->vendor->table;
	int ret = t->module_load(&p->module, code);

	if (ret)
		return ret;
	ret = t->module_function(&p->function, p->module, KERNEL_NAME);
	if (ret)
		t->module_unload(p->module);
	return ret;
}

static int load(struct program *p)
{
	char arch[64], *code;
	size_t size;
	int ret = p->vendor->arch(p->number, arch, sizeof(arch));

	if (ret)
		return fxi_gpu_error(p->vendor, p->number, "architecture", ret);
	ret = compile_locked(p->vendor, arch, p->type, &code, &size);
	if (ret)
		return ret;
	ret = find_kernel(p, code);
	free(code);
	return ret ? fxi_gpu_error(p->vendor, p->number,
				   "loading the kernel", ret) : 0;
}

static int get_locked(const struct gpu_vendor *vendor, int number,
		      uint32_t type, void **function)
{
	struct program *p;
	int ret;

	for (p = programs; p; p = p->next)
		if (p->vendor == vendor && p->number == number &&
		    p->type == type)
			break;
	if (p) {
		*function = p->function;
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return fxi_error_static(ENOMEM, "memory for a kernel");
	p->vendor = vendor;
	p->number = number;
	p->type = type;
	ret = load(p);
	if (ret) {
		free(p);
		return ret;
	}
	p->next = programs;
	programs = p;
	*function = p->function;
	return 0;
}

int fxi_kernel_get(const struct gpu_vendor *vendor, int number,
		   uint32_t type, void **function)
{
	NO_CANCEL();
	int ret;

	pthread_mutex_lock(&lock);
	ret = get_locked(vendor, number, type, function);
	pthread_mutex_unlock(&lock);
	return ret;
}
