// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory by the test run times, on a real port: found, registered,
 * written and read by the fabric, cached, and taken away.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"
#include "hip.h"
#include "memory.h"

#define SIZE	(1u << 20)

/* What both vendors have; addresses are those of the device. */
struct device {
	uint32_t kind;
	char *(*alloc)(size_t size);
	void (*free)(char *p);
	void (*get)(void *to, const char *from, size_t size);
};

static void *library;

#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
#define CALL(name, ...) \
	(((__typeof__(&name))(uintptr_t)symbol(STRING(name)))(__VA_ARGS__))

static void *symbol(const char *name)
{
	void *p = dlsym(library, name);

	need(p != NULL, name);
	return p;
}

static void load(const char *soname)
{
	library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	need(library != NULL, soname);
}

static char *cuda_alloc(size_t size)
{
	CUdeviceptr p = 0;

	need(!CALL(cuMemAlloc, &p, size), "cuMemAlloc");
	return (char *)(uintptr_t)p;
}

static void cuda_free(char *p)
{
	need(!CALL(cuMemFree, (CUdeviceptr)(uintptr_t)p), "cuMemFree");
}

static void cuda_get(void *to, const char *from, size_t size)
{
	need(!CALL(cuMemcpyDtoH, to, (CUdeviceptr)(uintptr_t)from, size),
	     "cuMemcpyDtoH");
}

static char *hip_alloc(size_t size)
{
	void *p = NULL;

	need(!CALL(hipMalloc, &p, size), "hipMalloc");
	return p;
}

static void hip_free(char *p)
{
	need(!CALL(hipFree, p), "hipFree");
}

static void hip_get(void *to, const char *from, size_t size)
{
	need(!CALL(hipMemcpy, to, from, size, 2), "hipMemcpy");
}

static void fill(struct rig *rig, unsigned int seed)
{
	size_t i;

	for (i = 0; i < RIG_SIZE; i++)
		rig->memory[i] = (uint8_t)(i * seed + i / 4096);
}

static uint64_t p2p_bytes(struct rig *rig)
{
	struct fabrex_stats s = { 0 };

	need(!fabrex_stats(rig->port, NULL, &s, sizeof(s)), "counters");
	return s.p2p_bytes;
}

/* Into the device's memory and back, in the middle of an allocation. */
static void moves(struct rig *rig, const struct device *d)
{
	static uint8_t copy[RIG_SIZE];
	char *p = d->alloc(3 * SIZE), path[64];
	struct fabrex_memory memory;
	struct fabrex_mr *mr;

	need(!fabrex_memory_query(p + 5000, &memory, sizeof(memory)),
	     "query");
	ok(memory.kind == d->kind && memory.base == p &&
	   memory.length == 3 * SIZE && memory.id, "the address is known");
	printf("# device %d, %s\n", memory.device, memory.pci);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/class",
		 memory.pci);
	ok(!access(path, R_OK), "and which PCI device it is on");
	need(!fabrex_mr_register(rig->port, p + 5000, 2 * SIZE, FABREX_MR_ALL,
				 &mr), "registration");
	ok(fabrex_mr_kind(mr) == (int)d->kind, "registered as device memory");
	fill(rig, 31);
	ok(rig_move(rig, FABREX_OP_WRITE, mr, 777, SIZE - 999) ==
	   FABREX_WC_OK, "the fabric writes it");
	d->get(copy, p + 5777, SIZE - 999);
	ok(!memcmp(copy, rig->memory, SIZE - 999), "and it has the bytes");
	memset(rig->memory, 0, RIG_SIZE);
	ok(rig_move(rig, FABREX_OP_READ, mr, 777, SIZE - 999) ==
	   FABREX_WC_OK && !memcmp(copy, rig->memory, SIZE - 999),
	   "the fabric reads it");
	ok(!fabrex_mr_deregister(mr), "deregistered");
	d->free(p);
}

/* Device to device: no byte of it passes host memory. */
static void device_to_device(struct rig *rig, const struct device *d)
{
	char *from = d->alloc(SIZE), *to = d->alloc(SIZE);
	static uint8_t copy[SIZE];
	struct fabrex_mr *a, *b, *host = rig->mr;
	uint64_t before;

	need(!fabrex_mr_register(rig->port, from, SIZE, FABREX_MR_ALL, &a) &&
	     !fabrex_mr_register(rig->port, to, SIZE, FABREX_MR_ALL, &b),
	     "registration");
	fill(rig, 57);
	need(rig_move(rig, FABREX_OP_WRITE, a, 0, SIZE) == FABREX_WC_OK,
	     "filled");
	before = p2p_bytes(rig);
	rig->mr = a;
	ok(rig_move(rig, FABREX_OP_WRITE, b, 0, SIZE) == FABREX_WC_OK,
	   "from device memory into device memory");
	rig->mr = host;
	d->get(copy, to, SIZE);
	ok(!memcmp(copy, rig->memory, SIZE), "and the bytes are there");
	ok(p2p_bytes(rig) - before >= SIZE,
	   "counted as endpoint to endpoint");
	fabrex_mr_deregister(a);
	fabrex_mr_deregister(b);
	d->free(from);
	d->free(to);
}

/* Freed and allocated again, the address is registered again. */
static void cached(struct rig *rig, const struct device *d)
{
	static uint8_t copy[16];
	char *p = d->alloc(SIZE), *again;
	struct fabrex_mr *mr, *part = NULL;
	uint64_t stale, offset = 0;

	mr = rig_get(rig, p, SIZE);
	need(mr != NULL, "registration");
	fabrex_mr_cache_put(mr);
	ok(rig_get(rig, p, SIZE) == mr, "it is a hit");
	fabrex_mr_cache_put(mr);
	need(!fabrex_mr_cache_get(rig->port, p + 100, 100,
				  FABREX_MR_LOCAL_WRITE, &part, &offset),
	     "part of it, for this process alone");
	ok(part == mr && offset == 100, "is a hit");
	fabrex_mr_cache_put(part);
	stale = rig_stats(rig).stale;
	d->free(p);
	again = d->alloc(SIZE);
	need(again == p, "the same address again");
	mr = rig_get(rig, p, SIZE);
	need(mr != NULL, "registration of the new allocation");
	ok(rig_stats(rig).stale == stale + 1, "new memory is no hit");
	fill(rig, 3);
	ok(rig_move(rig, FABREX_OP_WRITE, mr, 0, 16) == FABREX_WC_OK,
	   "and written");
	d->get(copy, p, 16);
	ok(!memcmp(copy, rig->memory, 16), "it has the bytes");
	fabrex_mr_cache_put(mr);
	d->free(p);
}

static bool read_event(struct rig *rig, const struct fabrex_mr *mr)
{
	struct fabrex_port_event ev;

	while (!fabrex_event_read(rig->port, &ev, 5000))
		if (ev.type == FABREX_EV_MR_REVOKED && ev.mr == mr)
			return true;
	return false;
}

/* Freed below a region: said so, and every later operation fails. */
static void taken_away(struct rig *rig, const struct device *d)
{
	char *p = d->alloc(SIZE);
	struct fabrex_mr *mr;

	need(!fabrex_mr_register(rig->port, p, SIZE, FABREX_MR_ALL, &mr),
	     "registration");
	d->free(p);
	ok(read_event(rig, mr), "an event names the region");
	ok(rig_move(rig, FABREX_OP_WRITE, mr, 0, 4096) == FABREX_WC_RKEY,
	   "its key is refused");
	ok(!fabrex_mr_deregister(mr), "it can be deregistered");
}

static void all(struct rig *rig, const struct device *d)
{
	moves(rig, d);
	device_to_device(rig, d);
	cached(rig, d);
	taken_away(rig, d);
}

void part_cuda(struct rig *rig)
{
	const struct device cuda = {
		FABREX_MEMORY_CUDA, cuda_alloc, cuda_free, cuda_get,
	};
	CUcontext context;

	load("libcuda.so.1");
	need(!CALL(cuInit, 0) &&
	     !CALL(cuDevicePrimaryCtxRetain, &context, 0) &&
	     !CALL(cuCtxSetCurrent, context), "CUDA starts");
	all(rig, &cuda);
}

void part_hip(struct rig *rig)
{
	const struct device hip = {
		FABREX_MEMORY_HIP, hip_alloc, hip_free, hip_get,
	};

	load("libamdhip64.so.5");
	need(!CALL(hipInit, 0), "HIP starts");
	all(rig, &hip);
}

/* From the first GPU to the second one, not on page boundaries. */
void part_peers(struct rig *rig)
{
	static uint8_t copy[SIZE];
	char *from, *to;
	void *stream;
	int can = 0;

	load("libamdhip64.so.5");
	need(!CALL(hipInit, 0), "HIP starts");
	from = hip_alloc(SIZE);
	need(!CALL(hipSetDevice, 1), "the second GPU");
	to = hip_alloc(SIZE);
	need(!CALL(hipStreamCreateWithFlags, &stream, HIP_NON_BLOCKING),
	     "stream");
	fill(rig, 91);
	need(!CALL(hipMemcpy, from, rig->memory, SIZE, 1), "filled");
	ok(!CALL(hipDeviceCanAccessPeer, &can, 1, 0) && can,
	   "a mesh joins them");
	ok(!CALL(hipDeviceEnablePeerAccess, 0, 0), "access is allowed");
	ok(!CALL(hipMemcpyPeerAsync, to + 77, 1, from + 5, 0, SIZE - 100,
		 stream) && !CALL(hipStreamSynchronize, stream),
	   "a copy by the second GPU");
	hip_get(copy, to + 77, SIZE - 100);
	ok(!memcmp(copy, rig->memory + 5, SIZE - 100), "it has the bytes");
	hip_free(from);
	hip_free(to);
}
