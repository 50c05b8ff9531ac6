// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * NVIDIA memory, through the CUDA driver API. Called through fxi_vendor_cuda,
 * by threads that may have no context.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/error.h"
#include "memory/cuda.h"
#include "memory/lane.h"
#include "memory/pci.h"
#include "memory/vendor.h"

struct cuda_table fxi_cuda;

static const char *const sonames[] = { "libcuda.so.1", NULL };

static const struct library_symbol symbols[] = {
	{ "cuPointerGetAttributes", offsetof(struct cuda_table, attributes) },
	{ "cuPointerSetAttribute",
	  offsetof(struct cuda_table, set_attribute) },
	{ "cuMemGetHandleForAddressRange",
	  offsetof(struct cuda_table, address_handle) },
	{ "cuMemcpyHtoDAsync_v2", offsetof(struct cuda_table, to_device) },
	{ "cuMemcpyDtoHAsync_v2", offsetof(struct cuda_table, from_device) },
	{ "cuStreamCreate", offsetof(struct cuda_table, stream_create) },
	{ "cuStreamDestroy_v2", offsetof(struct cuda_table, stream_destroy) },
	{ "cuStreamSynchronize", offsetof(struct cuda_table, stream_wait) },
	{ "cuDeviceGet", offsetof(struct cuda_table, device) },
	{ "cuCtxGetCurrent", offsetof(struct cuda_table, context) },
	{ "cuCtxPushCurrent_v2", offsetof(struct cuda_table, push) },
	{ "cuCtxPopCurrent_v2", offsetof(struct cuda_table, pop) },
	{ "cuStreamIsCapturing",
	  offsetof(struct cuda_table, stream_capturing) },
	{ "cuCtxGetId", offsetof(struct cuda_table, context_id) },
	{ "cuThreadExchangeStreamCaptureMode",
	  offsetof(struct cuda_table, capture_mode) },
	{ "cuDevicePrimaryCtxRetain",
	  offsetof(struct cuda_table, primary_retain) },
	{ "cuDevicePrimaryCtxRelease_v2",
	  offsetof(struct cuda_table, primary_release) },
	{ "cuDevicePrimaryCtxGetState",
	  offsetof(struct cuda_table, primary_state) },
	{ "cuDeviceGetAttribute",
	  offsetof(struct cuda_table, device_attribute) },
	{ "cuDeviceGetPCIBusId", offsetof(struct cuda_table, pci_id) },
	{ "cuGetErrorString", offsetof(struct cuda_table, error_text) },
	{ "cuMemHostAlloc", offsetof(struct cuda_table, host_alloc) },
	{ "cuCtxGetStreamPriorityRange",
	  offsetof(struct cuda_table, priorities) },
	{ "cuStreamCreateWithPriority",
	  offsetof(struct cuda_table, stream_urgent) },
	{ NULL, 0 },
};

struct library fxi_library_cuda = {
	.prefix = "libcuda.so",
	.sonames = sonames,
	.symbols = symbols,
	.table = &fxi_cuda,
};

_Static_assert(sizeof(symbols) / sizeof(*symbols) - 1 ==
	       sizeof(fxi_cuda) / sizeof(void *), "a name for each function");

static bool cuda_ready(void)
{
	return library_ready(&fxi_library_cuda) && fxi_cuda.attributes;
}

static int cuda_load(void)
{
	int ret;

	fxi_library_notice();
	ret = fxi_library_load(&fxi_library_cuda);
	if (!ret && !cuda_ready())
		ret = fxi_error(ENOTSUP, "libcuda.so.1 has no cuPointerGetAttributes; update the NVIDIA driver");
	return ret;
}

static const char *cuda_text(int error)
{
	const char *text = NULL;

	if (fxi_cuda.error_text)
		fxi_cuda.error_text(error, &text);
	return text ? text : "unknown error";
}

/* ---- what an address is ------------------------------------------------ */

struct facts {
	void *context;
	unsigned int type;
	unsigned int managed;
	unsigned long long id;
	int device;
	cuda_ptr base;
	size_t length;
};

static int ask(const void *addr, struct facts *f)
{
	int which[] = {
		CUDA_ATTRIBUTE_CONTEXT, CUDA_ATTRIBUTE_MEMORY_TYPE,
		CUDA_ATTRIBUTE_IS_MANAGED, CUDA_ATTRIBUTE_BUFFER_ID,
		CUDA_ATTRIBUTE_DEVICE, CUDA_ATTRIBUTE_RANGE_START,
		CUDA_ATTRIBUTE_RANGE_SIZE,
	};
	void *where[] = {
		&f->context, &f->type, &f->managed, &f->id, &f->device,
		&f->base, &f->length,
	};

	memset(f, 0, sizeof(*f));
	return fxi_cuda.attributes(sizeof(which) / sizeof(*which), which,
				   where, (cuda_ptr)addr);
}

/*
 * Only allocations have an id. Memory that was mapped by the virtual memory
 * functions, or that comes from a pool, belongs to no context: the address can
 * get other memory without an allocation.
 */
static uint64_t id_of(const struct facts *f)
{
	return f->context ? f->id : 0;
}

static void pci_of(int ordinal, struct fabrex_memory *memory)
{
	char text[32] = "";
	int device;

	if (fxi_cuda.device && fxi_cuda.pci_id &&
	    !fxi_cuda.device(&device, ordinal) &&
	    !fxi_cuda.pci_id(text, sizeof(text), device))
		pci_rewrite(memory->pci, sizeof(memory->pci), text);
}

static bool is_managed(struct reason *why)
{
	return fxi_because(why, ENOTSUP, "it is managed, and CUDA moves it even while it is pinned; use cudaMalloc() or cudaMallocHost(), or, if no GPU accesses it while it is registered, FABREX_MEMORY_HOST");
}

/* Pages that a GPU touches move there; the pinned ones are then unused. */
static bool cuda_migrates(const void *addr, struct reason *why)
{
	struct facts f;

	if (ask(addr, &f) || !f.managed)
		return false;
	is_managed(why);
	return true;
}

static bool cuda_find(const void *addr, struct fabrex_memory *memory,
		      struct reason *why)
{
	struct facts f;
	int ret = ask(addr, &f);

	if (ret == CUDA_NOT_INITIALIZED)
		return fxi_because(why, ENOTSUP, "the CUDA driver is loaded, but this process has not initialised it, or found no device; call cuInit() and allocate there first");
	if (ret)
		return fxi_because(why, ENOTSUP, "cuPointerGetAttributes: %s (%d)",
				   cuda_text(ret), ret);
	if (f.managed)
		return is_managed(why);
	if (f.type != CUDA_MEMORY_DEVICE)
		return false;
	memory->device = f.device;
	memory->id = id_of(&f);
	/* Otherwise it is the reserved range, whatever is mapped there. */
	if (memory->id) {
		memory->base = (void *)f.base;
		memory->length = f.length;
	}
	pci_of(f.device, memory);
	return true;
}

static uint64_t cuda_id(const void *addr)
{
	struct facts f;

	if (ask(addr, &f) || f.type != CUDA_MEMORY_DEVICE || f.managed)
		return 0;
	return id_of(&f);
}

/* ---- contexts ---------------------------------------------------------- */

/*
 * The memory's context is current, in a thread that had another or none, and
 * what we call is no part of a graph: while another thread captures one, this
 * thread may not wait, and an attempt would break the capture.
 */
struct visit {
	void *context;		/* NULL: none could be had */
	bool pushed, retained, relaxed;
	int ordinal, device;
	int mode;
};

static void relax(struct visit *v)
{
	v->mode = CUDA_CAPTURE_RELAXED;
	v->relaxed = fxi_cuda.capture_mode && !fxi_cuda.capture_mode(&v->mode);
}

static void enter(struct visit *v, const void *addr)
{
	void *current = NULL;
	struct facts f;

	memset(v, 0, sizeof(*v));
	if (!fxi_cuda.context || !fxi_cuda.push || !fxi_cuda.pop ||
	    fxi_cuda.context(&current) || ask(addr, &f))
		return;
	v->context = f.context;
	v->ordinal = f.device;
	if (!v->context && fxi_cuda.device && fxi_cuda.primary_retain &&
	    fxi_cuda.primary_release &&
	    !fxi_cuda.device(&v->device, f.device))
		v->retained = !fxi_cuda.primary_retain(&v->context, v->device);
	if (v->context && v->context != current)
		v->pushed = !fxi_cuda.push(v->context);
	relax(v);
}

static void leave(struct visit *v)
{
	void *context;

	if (v->relaxed)
		fxi_cuda.capture_mode(&v->mode);
	if (v->pushed)
		fxi_cuda.pop(&context);
	if (v->retained)
		fxi_cuda.primary_release(v->device);
}

/* ---- export ------------------------------------------------------------ */

static bool device_exports(int ordinal)
{
	int device, value = 1;

	if (fxi_cuda.device && fxi_cuda.device_attribute &&
	    !fxi_cuda.device(&device, ordinal))
		fxi_cuda.device_attribute(&value,
					  CUDA_DEVICE_DMABUF_SUPPORTED,
					  device);
	return value;
}

/* 0 if the memory was not allocated for access by other devices. */
static bool rdma_capable(const void *addr)
{
	int which[] = { CUDA_ATTRIBUTE_RDMA_CAPABLE };
	uint64_t value = 1;
	void *where[] = { &value };

	return fxi_cuda.attributes(1, which, where, (cuda_ptr)addr) || value;
}

static bool export_failed(int ret, const struct fabrex_memory *memory,
			  const void *addr, struct reason *why)
{
	if (!device_exports(memory->device))
		return fxi_because(why, ENOTSUP, "this NVIDIA driver exports none; install the open kernel modules (nvidia-open) on Linux 5.12 or newer with CONFIG_DMA_SHARED_BUFFER");
	if (!rdma_capable(addr))
		return fxi_because(why, ENOTSUP, "the memory was not allocated for access by other devices; set gpuDirectRDMACapable in CUmemAllocationProp");
	if (ret == CUDA_INVALID_VALUE)
		return fxi_because(why, EINVAL, "cuMemGetHandleForAddressRange: %s; is the range inside one allocation?",
				   cuda_text(ret));
	return fxi_because(why, ret == CUDA_OUT_OF_MEMORY ? ENOMEM : ENOTSUP,
			   "cuMemGetHandleForAddressRange: %s (%d)",
			   cuda_text(ret), ret);
}

/*
 * Without this a copy of up to 64 KiB from host memory is not on the device yet
 * when cuMemcpyHtoD() returns.
 */
static void make_synchronous(const void *addr)
{
	unsigned int on = 1;

	if (fxi_cuda.set_attribute)
		fxi_cuda.set_attribute(&on, CUDA_ATTRIBUTE_SYNC_MEMOPS,
				       (cuda_ptr)addr);
}

/* Whole pages around the range, as the function requires. */
static bool cuda_export(const struct fabrex_memory *memory, const void *addr,
			size_t length, int *fd, uint64_t *offset,
			struct reason *why)
{
	cuda_ptr start = page_down((cuda_ptr)addr);
	size_t size = page_up((cuda_ptr)addr + length) - start;
	struct visit v;
	int ret;

	if (!fxi_cuda.address_handle)
		return fxi_because(why, ENOTSUP, "libcuda.so.1 has no cuMemGetHandleForAddressRange; install the driver of CUDA 11.7 or newer");
	enter(&v, addr);
	ret = fxi_cuda.address_handle(fd, start, size, CUDA_RANGE_DMABUF,
				      CUDA_RANGE_PCIE);
	/* Drivers before 12.8 do not know the flag. */
	if (ret)
		ret = fxi_cuda.address_handle(fd, start, size,
					      CUDA_RANGE_DMABUF, 0);
	if (!ret)
		make_synchronous(addr);
	leave(&v);
	*offset = (cuda_ptr)addr - start;
	return ret ? export_failed(ret, memory, addr, why) : true;
}

/* ---- copies ------------------------------------------------------------ */

#define LANES_READY	4u
#define CONTEXTS	(LANES / LANES_READY)

static struct lanes lanes;
/* Contexts, by number; 0: none. One that is forgotten is prepared again. */
static uint64_t prepared[CONTEXTS];
static uint32_t newest;

static bool cuda_copies(void)
{
	return fxi_cuda.to_device && fxi_cuda.from_device &&
	       fxi_cuda.stream_create && fxi_cuda.stream_destroy &&
	       fxi_cuda.stream_wait;
}

/*
 * Contexts have numbers from CUDA 12.0 on. Before that it is unknown whether a
 * stream that was kept still exists.
 */
static bool serial_of(const struct visit *v, uint64_t *serial)
{
	unsigned long long id = 0;

	*serial = 0;
	if (!fxi_cuda.context_id || fxi_cuda.context_id(v->context, &id))
		return false;
	*serial = id;
	return true;
}

/* ---- rooms ------------------------------------------------------------- */

/*
 * CUDA lets one copy at a time go to memory of the host that is not pinned, and may
 * be in one that waits for us (tests/vendor/blocked.c); copies from such memory have
 * been seen to wait for those, too. Ours go through memory that is pinned. It belongs
 * to its context, is gone with it, and is never freed: that would wait for all work
 * of the device. Contexts have numbers that are not used again. rooms_lock is of
 * rooms, prepared and newest; nothing waits while it is held.
 */
#define ROOM	(64u << 10)

struct room {
	uint64_t serial;	/* of the context; 0: there is none */
	void *memory;
	bool busy;
};

static struct room rooms[LANES];
static pthread_mutex_t rooms_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room_given = PTHREAD_COND_INITIALIZER;

/* One that nobody has; *any: there are some of that context. */
static struct room *room_find(uint64_t serial, bool *any)
{
	struct room *room;

	*any = false;
	for (room = rooms; room < rooms + LANES; room++) {
		if (room->serial != serial)
			continue;
		*any = true;
		if (!room->busy)
			return room;
	}
	return NULL;
}

/* Waits for copies of ours only, which end soon. NULL: the context has none. */
static struct room *room_take(uint64_t serial)
{
	NO_CANCEL();
	struct room *room = NULL;
	bool any = serial != 0;

	pthread_mutex_lock(&rooms_lock);
	while (any && !(room = room_find(serial, &any)) && any)
		pthread_cond_wait(&room_given, &rooms_lock);
	if (room)
		room->busy = true;
	pthread_mutex_unlock(&rooms_lock);
	return room;
}

static void room_give(struct room *room)
{
	pthread_mutex_lock(&rooms_lock);
	room->busy = false;
	pthread_cond_broadcast(&room_given);
	pthread_mutex_unlock(&rooms_lock);
}

/* Locked. */
static bool is_prepared(uint64_t serial)
{
	uint32_t i;

	for (i = 0; i < CONTEXTS; i++)
		if (prepared[i] == serial)
			return true;
	return false;
}

/* Of no context, or else of one that is gone, as far as is known. Locked. */
static struct room *room_unused(void)
{
	struct room *room, *found = NULL;

	for (room = rooms; room < rooms + LANES; room++) {
		if (!room->serial)
			return room;
		if (!room->busy && !is_prepared(room->serial))
			found = room;
	}
	return found;
}

/* So many for the context that is current. */
static void rooms_prepare(uint64_t serial)
{
	struct room *room;
	uint32_t i, n = 0;
	void *memory;

	pthread_mutex_lock(&rooms_lock);
	for (room = rooms; room < rooms + LANES; room++)
		n += room->serial == serial;
	if (!room_unused())
		n = LANES_READY;
	pthread_mutex_unlock(&rooms_lock);
	for (i = n; i < LANES_READY; i++) {
		if (fxi_cuda.host_alloc(&memory, ROOM, 0))
			return;
		pthread_mutex_lock(&rooms_lock);
		room = room_unused();
		if (room) {
			room->memory = memory;
			room->serial = serial;
		}
		pthread_mutex_unlock(&rooms_lock);
	}
}

/* ---- streams ----------------------------------------------------------- */

int fxi_cuda_stream(void **stream)
{
	int least, greatest;

	if (fxi_cuda.priorities && fxi_cuda.stream_urgent &&
	    !fxi_cuda.priorities(&least, &greatest) &&
	    !fxi_cuda.stream_urgent(stream, LANE_NON_BLOCKING, greatest))
		return 0;
	return fxi_cuda.stream_create(stream, LANE_NON_BLOCKING);
}

static bool lane_open(struct lane *lane, const struct visit *v,
		      uint64_t serial)
{
	lane->place = (uintptr_t)v->context;
	lane->serial = serial;
	lane->device = v->ordinal;
	return !fxi_cuda_stream(&lane->stream);
}

/* In its context. */
static void lane_close(struct lane *lane)
{
	fxi_cuda.stream_destroy(lane->stream);
	lane->stream = NULL;
}

/* Part of a copy, by way of the room. */
static int copy_part(const struct lane *lane, const struct room *room,
		     cuda_ptr addr, char *buffer, size_t n, bool read)
{
	int ret, waited;

	if (!read)
		memcpy(room->memory, buffer, n);
	ret = read ? fxi_cuda.from_device(room->memory, addr, n,
					  lane->stream) :
		     fxi_cuda.to_device(addr, room->memory, n, lane->stream);
	waited = fxi_cuda.stream_wait(lane->stream);
	ret = ret ? ret : waited;
	if (read && !ret)
		memcpy(buffer, room->memory, n);
	return ret;
}

static int copy_through(const struct lane *lane, const struct room *room,
			cuda_ptr addr, char *buffer, size_t length, bool read)
{
	size_t at, n;
	int ret = 0;

	for (at = 0; at < length && !ret; at += n) {
		n = length - at < ROOM ? length - at : ROOM;
		ret = copy_part(lane, room, addr + at, buffer + at, n, read);
	}
	return ret;
}

static int copy_by(const struct lane *lane, void *addr, void *buffer,
		   size_t length, bool read)
{
	struct room *room = room_take(lane->serial);
	int ret, waited;

	if (room) {
		ret = copy_through(lane, room, (cuda_ptr)addr, buffer, length,
				   read);
		room_give(room);
		return ret;
	}
	ret = read ? fxi_cuda.from_device(buffer, (cuda_ptr)addr, length,
					  lane->stream) :
		     fxi_cuda.to_device((cuda_ptr)addr, buffer, length,
					lane->stream);
	waited = fxi_cuda.stream_wait(lane->stream);
	return ret ? ret : waited;
}

/* Now, and not before? */
static bool must_prepare(uint64_t serial)
{
	bool must;

	pthread_mutex_lock(&rooms_lock);
	must = !is_prepared(serial);
	if (must)
		prepared[newest++ % CONTEXTS] = serial;
	pthread_mutex_unlock(&rooms_lock);
	return must;
}

static void forget_prepared(void)
{
	pthread_mutex_lock(&rooms_lock);
	memset(prepared, 0, sizeof(prepared));
	pthread_mutex_unlock(&rooms_lock);
}

/*
 * Streams for as many copies at once as there are as a rule: of a peer, of the
 * progress thread, and of a call. They cannot be made while a thread of the
 * application waits in a copy to memory that is not pinned (tests/vendor/blocked.c),
 * perhaps for one of these.
 */
static void lanes_prepare(const struct visit *v)
{
	struct lane *taken[LANES_READY];
	uint64_t serial;
	uint32_t i, n;

	if (!serial_of(v, &serial) || !serial || !must_prepare(serial))
		return;
	for (n = 0; n < LANES_READY; n++) {
		taken[n] = fxi_lane_take(&lanes, (uintptr_t)v->context, serial);
		if (!taken[n])
			break;
		if (!taken[n]->stream && !lane_open(taken[n], v, serial))
			taken[n]->stream = NULL;
	}
	for (i = 0; i < n; i++)
		fxi_lane_give(taken[i]);
	if (fxi_cuda.host_alloc)
		rooms_prepare(serial);
}

/* In the memory's context. */
static bool copy_there(const struct visit *v, void *addr, void *buffer,
		       size_t length, bool read)
{
	struct lane *kept = NULL, once = { .stream = NULL }, *lane;
	uint64_t serial;
	bool good;

	if (serial_of(v, &serial))
		kept = fxi_lane_take(&lanes, (uintptr_t)v->context, serial);
	lane = kept ? kept : &once;
	if (!lane->stream && !lane_open(lane, v, serial))
		lane->stream = NULL;
	good = lane->stream && !copy_by(lane, addr, buffer, length, read);
	if (lane->stream && (!kept || !good))
		lane_close(lane);
	if (kept)
		fxi_lane_give(kept);
	return good;
}

/*
 * Only in a primary context that is active: retaining an inactive one would
 * create it, and whether another context still exists cannot be queried. Their
 * streams are kept for the next port, or go with their context.
 */
static void lane_end(struct lane *lane)
{
	struct visit v = { .context = NULL };
	unsigned int flags;
	uint64_t serial;
	int active = 0;

	if (fxi_cuda.device(&v.device, lane->device) ||
	    fxi_cuda.primary_state(v.device, &flags, &active) || !active ||
	    fxi_cuda.primary_retain(&v.context, v.device))
		return;
	v.retained = true;
	if ((uintptr_t)v.context == lane->place && serial_of(&v, &serial)) {
		relax(&v);
		if (serial != lane->serial)
			lane->stream = NULL;
		else
			v.pushed = !fxi_cuda.push(v.context);
		if (v.pushed)
			lane_close(lane);
	}
	leave(&v);
}

static void cuda_rest(void)
{
	if (fxi_cuda.device && fxi_cuda.primary_retain &&
	    fxi_cuda.primary_release && fxi_cuda.primary_state &&
	    fxi_cuda.push && fxi_cuda.pop) {
		fxi_lanes_end(&lanes, lane_end);
		forget_prepared();
	}
}

static void cuda_forked(void)
{
	memset(prepared, 0, sizeof(prepared));
	memset(rooms, 0, sizeof(rooms));
	pthread_mutex_init(&rooms_lock, NULL);
	pthread_cond_init(&room_given, NULL);
	fxi_lanes_forget(&lanes);
}

/*
 * On a stream of ours, which waits for no kernel of the application. So it does
 * not see what a running kernel is about to write either.
 */
static bool cuda_copy(void *addr, void *buffer, size_t length, bool read)
{
	struct visit v;
	bool good;

	enter(&v, addr);
	good = v.context && copy_there(&v, addr, buffer, length, read);
	leave(&v);
	return good;
}

/*
 * From now on the functions that are called synchronous are; copies that they
 * have returned from are complete when the attribute has been set.
 */
static void cuda_registered(const void *addr)
{
	struct visit v;

	enter(&v, addr);
	make_synchronous(addr);
	if (v.context && cuda_copies())
		lanes_prepare(&v);
	leave(&v);
}

/*
 * Memory of pools and of the virtual memory functions belongs to no context and
 * has no such attribute, or ignores it: small copies are in the legacy stream,
 * which our streams do not wait for. We do not wait for it either while
 * something is being captured that it would have to wait for.
 */
static bool cuda_settle(const void *addr, bool may_wait)
{
	struct visit v;
	bool settled = true;
	int status = 0;

	if (!fxi_cuda.stream_wait || !fxi_cuda.stream_capturing)
		return true;
	enter(&v, addr);
	if (!v.retained)
		make_synchronous(addr);
	else if (!may_wait)
		settled = false;
	else if (!fxi_cuda.stream_capturing(CUDA_STREAM_LEGACY, &status) &&
		 !status)
		fxi_cuda.stream_wait(CUDA_STREAM_LEGACY);
	leave(&v);
	return settled;
}

const struct vendor fxi_vendor_cuda = {
	.kind = FABREX_MEMORY_CUDA,
	.name = "CUDA",
	.load = cuda_load,
	.ready = cuda_ready,
	.find = cuda_find,
	.id = cuda_id,
	.migrates = cuda_migrates,
	.copies = cuda_copies,
	.copy = cuda_copy,
	.rest = cuda_rest,
	.forked = cuda_forked,
	.registered = cuda_registered,
	.settle = cuda_settle,
	.export = cuda_export,
};
