// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that the fabric reaches: of the host, or of the first device of HIP or
 * CUDA, whose run time is loaded when it is asked for. Used by both sides.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "perf.h"

static const char *const names[] = { "host", "hip", "cuda", "malloc" };
static __thread char why[200];

const char *memory_name(enum memory_kind kind)
{
	return names[kind];
}

bool memory_parse(const char *name, enum memory_kind *kind)
{
	unsigned int i;

	if (!strcmp(name, "alloc"))
		name = "host";
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]))
			continue;
		*kind = (enum memory_kind)i;
		return true;
	}
	return false;
}

const char *memory_why(void)
{
	return why;
}

__attribute__((format(printf, 2, 3)))
static int because(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return -err;
}

/* ---- run times --------------------------------------------------------- */

static const char *const hip_files[] = {
	"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL,
};
static const char *const cuda_files[] = { "libcuda.so.1", NULL };

static int load(struct memory *m)
{
	const char *const *file = m->kind == MEMORY_HIP ? hip_files :
							  cuda_files;

	while (*file && !m->library)
		m->library = dlopen(*file++, RTLD_NOW | RTLD_LOCAL);
	return m->library ? 0 : because(ENOTSUP, "%s", dlerror());
}

/* All that we call takes up to four words; more are not looked at. */
static int call(const struct memory *m, const char *name, uintptr_t a,
		uintptr_t b, uintptr_t c, uintptr_t d)
{
	int (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t);
	int ret;

	*(void **)&function = dlsym(m->library, name);
	if (!function)
		return because(ENOTSUP, "the runtime has no %s", name);
	ret = function(a, b, c, d);
	return ret ? because(EIO, "%s: error %d", name, ret) : 0;
}

/* The calling thread's context; the first call makes the device's. */
static int cuda_enter(struct memory *m)
{
	int device, ret = 0;

	if (!m->context)
		ret = call(m, "cuInit", 0, 0, 0, 0);
	if (!ret && !m->context)
		ret = call(m, "cuDeviceGet", (uintptr_t)&device, 0, 0, 0);
	if (!ret && !m->context)
		ret = call(m, "cuDevicePrimaryCtxRetain",
			   (uintptr_t)&m->context, (uintptr_t)device, 0, 0);
	return ret ? ret : call(m, "cuCtxSetCurrent", (uintptr_t)m->context, 0,
				0, 0);
}

/* Zeroed, as memory of the host is. */
static int device_alloc(struct memory *m)
{
	bool hip = m->kind == MEMORY_HIP;
	int ret = load(m);

	if (!ret && !hip)
		ret = cuda_enter(m);
	if (!ret)
		ret = call(m, hip ? "hipMalloc" : "cuMemAlloc_v2",
			   (uintptr_t)&m->addr, m->length, 0, 0);
	return ret ? ret : call(m, hip ? "hipMemset" : "cuMemsetD8_v2",
				(uintptr_t)m->addr, 0, m->length, 0);
}

static void device_free(struct memory *m)
{
	if (m->addr && m->kind == MEMORY_HIP)
		call(m, "hipFree", (uintptr_t)m->addr, 0, 0, 0);
	else if (m->addr && !cuda_enter(m))
		call(m, "cuMemFree_v2", (uintptr_t)m->addr, 0, 0, 0);
}

#define HIP_TO_DEVICE	1u
#define HIP_TO_HOST	2u

static int device_write(struct memory *m, uint64_t offset, const void *from,
			uint64_t n)
{
	uintptr_t to = (uintptr_t)m->addr + offset;
	int ret;

	if (m->kind == MEMORY_HIP)
		return call(m, "hipMemcpy", to, (uintptr_t)from, n,
			    HIP_TO_DEVICE);
	ret = cuda_enter(m);
	return ret ? ret : call(m, "cuMemcpyHtoD_v2", to, (uintptr_t)from, n,
				0);
}

static int device_read(struct memory *m, uint64_t offset, void *to, uint64_t n)
{
	uintptr_t from = (uintptr_t)m->addr + offset;
	int ret;

	if (m->kind == MEMORY_HIP)
		return call(m, "hipMemcpy", (uintptr_t)to, from, n,
			    HIP_TO_HOST);
	ret = cuda_enter(m);
	return ret ? ret : call(m, "cuMemcpyDtoH_v2", (uintptr_t)to, from, n,
				0);
}

/* ---- streams ----------------------------------------------------------- */

/* One that waits for copies of the default stream, which fill the memory. */
int memory_stream_open(struct memory *m, void **stream)
{
	int ret = 0;

	if (m->kind == MEMORY_CUDA)
		ret = cuda_enter(m);
	return ret ? ret : call(m, m->kind == MEMORY_HIP ?
				"hipStreamCreateWithFlags" : "cuStreamCreate",
				(uintptr_t)stream, 0, 0, 0);
}

int memory_stream_wait(struct memory *m, void *stream)
{
	return call(m, m->kind == MEMORY_HIP ? "hipStreamSynchronize" :
					       "cuStreamSynchronize",
		    (uintptr_t)stream, 0, 0, 0);
}

void memory_stream_close(struct memory *m, void *stream)
{
	call(m, m->kind == MEMORY_HIP ? "hipStreamDestroy" :
					"cuStreamDestroy_v2",
	     (uintptr_t)stream, 0, 0, 0);
}

/* ---- memory ------------------------------------------------------------ */

static bool on_device(const struct memory *m)
{
	return m->kind == MEMORY_HIP || m->kind == MEMORY_CUDA;
}

static int open_alloc(struct memory *m, struct fabrex_port *port)
{
	int ret = fabrex_mr_alloc(port, m->length, FABREX_MR_ALL, &m->mr);

	if (ret)
		return because(-ret, "%s", fabrex_strerror_last());
	m->addr = fabrex_mr_addr(m->mr);
	return 0;
}

static int open_malloc(struct memory *m)
{
	if (posix_memalign((void **)&m->addr, 4096, m->length))
		return because(ENOMEM, "out of memory");
	memset(m->addr, 0, m->length);
	return 0;
}

int memory_open(struct memory *m, struct fabrex_port *port,
		enum memory_kind kind, uint64_t length)
{
	int ret;

	memset(m, 0, sizeof(*m));
	m->kind = kind;
	m->length = length;
	if (kind == MEMORY_HOST)
		return open_alloc(m, port);
	ret = kind == MEMORY_MALLOC ? open_malloc(m) : device_alloc(m);
	if (ret || !port)
		return ret;
	ret = fabrex_mr_register(port, m->addr, length, FABREX_MR_ALL, &m->mr);
	if (!ret)
		return 0;
	because(-ret, "%s", fabrex_strerror_last());
	memory_free(m);
	return ret;
}

void memory_free(struct memory *m)
{
	if (on_device(m))
		device_free(m);
	else if (m->kind == MEMORY_MALLOC)
		free(m->addr);
	m->addr = NULL;
}

void memory_close(struct memory *m)
{
	if (m->mr)
		fabrex_mr_deregister(m->mr);
	memory_free(m);
}

int memory_write(struct memory *m, uint64_t offset, const void *from,
		 uint64_t n)
{
	if (on_device(m))
		return device_write(m, offset, from, n);
	memcpy(m->addr + offset, from, n);
	return 0;
}

int memory_read(struct memory *m, uint64_t offset, void *to, uint64_t n)
{
	if (on_device(m))
		return device_read(m, offset, to, n);
	memcpy(to, m->addr + offset, n);
	return 0;
}

int memory_fill(struct memory *m, uint64_t offset, uint64_t n, uint64_t seed)
{
	uint8_t *copy = m->addr + offset;
	int ret;

	if (!on_device(m)) {
		fill_pattern(copy, n, seed);
		return 0;
	}
	copy = malloc(n);
	if (!copy)
		return because(ENOMEM, "out of memory");
	fill_pattern(copy, n, seed);
	ret = device_write(m, offset, copy, n);
	free(copy);
	return ret;
}

int memory_crc(struct memory *m, uint64_t offset, uint64_t n, uint32_t *crc)
{
	uint8_t *copy;
	int ret;

	if (!on_device(m)) {
		*crc = fxi_crc32c(0, m->addr + offset, n);
		return 0;
	}
	copy = malloc(n);
	if (!copy)
		return because(ENOMEM, "out of memory");
	ret = device_read(m, offset, copy, n);
	if (!ret)
		*crc = fxi_crc32c(0, copy, n);
	free(copy);
	return ret;
}

int fail_memory(const char *what)
{
	fprintf(stderr, "fabrex-perf: %s: %s\n", what, why);
	return EXIT_SETUP;
}
