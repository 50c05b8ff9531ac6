// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Buffers in the memory of a GPU: its runtime copies to and from the slots of
 * links, and the GPU reduces. If it cannot, the whole operation is performed on
 * copies in the host's memory. Called by progress.c and sendrecv.c; algorithms
 * call the inline functions of gpu.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "coll/device/device.h"
#include "coll/operation/blocks.h"
#include "coll/operation/gpu.h"
#include "coll/operation/gpu_state.h"
#include "memory/library.h"
#include "memory/memory.h"

#define BOUNCE	4096u

/* ---- finding out ------------------------------------------------------- */

/* Without a runtime in the process no memory is a GPU's. */
static bool any_runtime(void)
{
	struct library *const *lib;

	fxi_library_notice();
	for (lib = fxi_libraries; *lib; lib++)
		if (library_ready(*lib))
			return true;
	return false;
}

static bool find(const void *addr, uint64_t bytes,
		 struct fabrex_memory *memory)
{
	return bytes && !fxi_memory_find(addr, FABREX_MEMORY_AUTO, memory) &&
	       fxi_memory_is_device(memory->kind);
}

/* Can it reduce? That takes the compiler of its runtime. */
static bool try_reduction(struct gpu *gpu)
{
	return !fxi_device_reduce(gpu->device, gpu->sum, gpu->sum,
				  gpu->operand, 1, FABREX_INT32, FABREX_SUM,
				  0) &&
	       !fxi_device_wait(gpu->device);
}

static void gpu_close(struct gpu *gpu)
{
	if (gpu->device) {
		fxi_gpu_free_outgrown(gpu);
		fxi_gpu_free_slots(gpu);
		fxi_device_free(gpu->device, gpu->scratch);
		fxi_device_free(gpu->device, gpu->sum);
		fxi_device_free(gpu->device, gpu->operand);
		fxi_device_free(gpu->device, gpu->wide);
	}
	fxi_device_close(gpu->device);
	gpu->device = NULL;
}

static void say_gpu(const struct fabrex_comm *comm, const struct gpu *gpu,
		    bool reduces)
{
	fxi_debug(FXI_DEBUG_MEMORY, comm->rank, "%s device %d %s%s",
		  fxi_gpu_kind(gpu->kind), gpu->number,
		  reduces ? "reduces by itself" :
			    "cannot reduce, so that reductions are performed on copies in the host's memory: ",
		  reduces ? "" : fabrex_strerror_last());
}

static void gpu_open(struct fabrex_comm *comm, struct gpu *gpu,
		     const struct fabrex_memory *memory)
{
	uint64_t size = fxi_link_device_size(comm);

	if (fxi_device_open(memory, &gpu->device)) {
		gpu->device = NULL;
		say_gpu(comm, gpu, false);
		return;
	}
	if (fxi_device_alloc(gpu->device, size, &gpu->sum) ||
	    fxi_device_alloc(gpu->device, size, &gpu->operand) ||
	    fxi_device_alloc(gpu->device, 2 * size, &gpu->wide)) {
		say_gpu(comm, gpu, false);
		gpu_close(gpu);
		return;
	}
	gpu->reduces = try_reduction(gpu);
	say_gpu(comm, gpu, gpu->reduces);
	/* Without them, others do not copy: that is reported when it matters. */
	fxi_device_prepare_pushes(gpu->device, comm->size - 1);
	/* And what copies of the fabric need, as for other memory of the GPU. */
	fxi_memory_registered(memory->kind, gpu->sum);
}

static struct gpu *known_gpu(const struct fabrex_comm *comm,
			     const struct fabrex_memory *memory)
{
	struct gpu *gpu = comm->gpus;

	while (gpu && (gpu->kind != memory->kind ||
		       gpu->number != memory->device))
		gpu = gpu->next;
	return gpu;
}

static struct gpu *gpu_new(const struct fabrex_coll *coll,
			   const struct fabrex_memory *memory)
{
	struct gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return NULL;
	gpu->kind = memory->kind;
	gpu->number = memory->device;
	memcpy(gpu->pci, memory->pci, sizeof(gpu->pci));
	gpu_outside(coll);
	gpu_open(coll->comm, gpu, memory);
	gpu_inside(coll);
	return gpu;
}

static struct gpu *gpu_of(const struct fabrex_coll *coll,
			  const struct fabrex_memory *memory)
{
	struct gpu *gpu = known_gpu(coll->comm, memory), *meanwhile;

	if (gpu)
		return gpu;
	gpu = gpu_new(coll, memory);
	if (!gpu)
		return NULL;
	meanwhile = known_gpu(coll->comm, memory);
	if (meanwhile) {
		gpu_outside(coll);
		gpu_close(gpu);
		gpu_inside(coll);
		free(gpu);
		return meanwhile;
	}
	gpu->next = coll->comm->gpus;
	coll->comm->gpus = gpu;
	return gpu;
}

static bool was_seen(const struct gpu *gpu, uint64_t id)
{
	uint32_t i;

	for (i = 0; id && i < SEEN; i++)
		if (gpu->seen[i] == id)
			return true;
	return false;
}

/*
 * Copies that the application began with a function that is synchronous by its
 * name, and that has returned, end before ours begin. Once for each allocation,
 * by its id if it has one. What has to be waited for may be behind an operation
 * in the default stream, which does not end while its communicator is ours: then
 * it is not waited for this time, as the application has not done so either.
 */
static void settle(struct gpu *gpu, const struct fabrex_memory *memory,
		   const void *addr)
{
	bool may_wait, settled;

	if (was_seen(gpu, memory->id))
		return;
	may_wait = fxi_streams_freeze();
	settled = fxi_memory_settle(memory->kind, addr, may_wait);
	if (may_wait)
		fxi_streams_release();
	if (settled && memory->id)
		gpu->seen[gpu->turn++ % SEEN] = memory->id;
}

/* Of a buffer of @bytes, which was found there if @kind is not 0. */
static bool is_on(const struct gpu *gpu, uint64_t bytes, uint8_t kind,
		  const struct fabrex_memory *memory)
{
	return !bytes || (kind && memory->kind == gpu->kind &&
			  memory->device == gpu->number);
}

int fxi_coll_find_gpu(struct fabrex_coll *coll)
{
	const struct fabrex_collective *what = &coll->what;
	struct fabrex_comm *comm = coll->comm;
	struct fabrex_memory send, recv;
	uint64_t sends, recvs;

	coll->gpu = NULL;
	coll->one_gpu = false;
	coll->send_kind = coll->recv_kind = 0;
	if (likely(!any_runtime()))
		return 0;
	sends = fxi_send_bytes(comm, what);
	recvs = fxi_recv_bytes(comm, what);
	if (find(what->send, sends, &send))
		coll->send_kind = (uint8_t)send.kind;
	if (find(what->recv, recvs, &recv))
		coll->recv_kind = (uint8_t)recv.kind;
	if (!coll->send_kind && !coll->recv_kind)
		return 0;
	coll->gpu = gpu_of(coll, coll->recv_kind ? &recv : &send);
	if (!coll->gpu)
		return fxi_error(ENOMEM, "%s: out of memory",
				 fxi_kind_name(what->kind));
	coll->one_gpu = is_on(coll->gpu, sends, coll->send_kind, &send) &&
			is_on(coll->gpu, recvs, coll->recv_kind, &recv);
	/* What came before in the stream: by itself, or when it is its turn. */
	if (coll->stream && (coll->stream->gpu || !coll->gate))
		return 0;
	if (coll->send_kind)
		settle(coll->gpu, &send, what->send);
	if (coll->recv_kind)
		settle(coll->gpu, &recv, what->recv);
	return 0;
}

/* Why all of it is performed on copies in the host's memory; NULL: it is not. */
static const char *host_reason(const struct fabrex_coll *coll,
			       const struct algorithm *algorithm)
{
	const struct gpu *slots = coll->comm->slots_gpu;

	if (!coll->gpu)
		return NULL;
	if (!coll->gpu->device)
		return "as the GPU cannot reduce or copy by itself";
	if (fxi_kind_reduces(coll->what.kind) && !coll->gpu->reduces)
		return "as the GPU cannot reduce";
	if (algorithm->host_only)
		return "as the algorithm needs it";
	if (algorithm->one_memory && !coll->one_gpu)
		return "as the buffers are not on one GPU";
	if (algorithm->one_memory && slots && slots != coll->gpu)
		return "as an earlier operation was on another GPU";
	return NULL;
}

bool fxi_coll_needs_host(const struct fabrex_coll *coll)
{
	return host_reason(coll, coll->algorithm);
}

bool fxi_coll_suits_gpu(const struct fabrex_coll *coll,
			const struct algorithm *algorithm)
{
	return coll->gpu && coll->one_gpu && !host_reason(coll, algorithm);
}

void fxi_coll_say_memory(const struct fabrex_coll *coll)
{
	const char *reason = host_reason(coll, coll->algorithm);
	char kinds[48];

	snprintf(kinds, sizeof(kinds), "%s to %s memory",
		 fxi_gpu_kind(coll->send_kind), fxi_gpu_kind(coll->recv_kind));
	if (reason)
		fxi_coll_say(coll, FXI_DEBUG_MEMORY, kinds,
			     ", performed on copies in the host's memory, %s",
			     reason);
	else
		fxi_coll_say(coll, FXI_DEBUG_MEMORY, kinds,
			     coll->algorithm->one_memory ?
			     ", performed on the GPU" :
			     ", copied and reduced by the GPU");
}

/* What another process has open must not be freed. */
static void keep_opened(struct fabrex_comm *comm, struct gpu *gpu)
{
	uint32_t rank = 0;

	if (gpu != comm->slots_gpu || !gpu->shared ||
	    fxi_link_may_free(comm, &rank))
		return;
	fxi_debug(FXI_DEBUG_MEMORY, comm->rank, "%s device %d: the slots for other ranks are not freed before this process ends, as rank %u still has them open",
		  fxi_gpu_kind(gpu->kind), gpu->number, rank);
	gpu->slots = NULL;
}

void fxi_gpus_free(struct fabrex_comm *comm)
{
	struct gpu *gpu;

	while ((gpu = comm->gpus)) {
		comm->gpus = gpu->next;
		keep_opened(comm, gpu);
		gpu_close(gpu);
		free(gpu);
	}
}

/* ---- copies ------------------------------------------------------------ */

static int cannot(const struct fabrex_coll *coll)
{
	return fxi_error(EIO, "%s: the GPU's runtime cannot copy the buffer; is it as long as the count requires?",
			 fxi_kind_name(coll->what.kind));
}

/*
 * Both are in the GPU's memory, and its runtime only copies to and from the
 * host.
 */
static int bounce(const struct fabrex_coll *coll, char *dst, char *src,
		  uint64_t n)
{
	char buffer[BOUNCE];
	uint64_t part;

	for (; n; n -= part, dst += part, src += part) {
		part = n < BOUNCE ? n : BOUNCE;
		if (!fxi_memory_copy(coll->send_kind, src, buffer, part,
				     true) ||
		    !fxi_memory_copy(coll->recv_kind, dst, buffer, part,
				     false))
			return cannot(coll);
	}
	return 0;
}

/* The casts: the runtime's copy is one function for both directions. */
int fxi_coll_copy_gpu(const struct fabrex_coll *coll, void *dst,
		      uint32_t dst_kind, const void *src, uint32_t src_kind,
		      uint64_t n)
{
	void *from = (void *)(uintptr_t)src;
	int ret;

	if (coll->gpu->device) {
		ret = !dst_kind ?
		      fxi_device_fetch(coll->gpu->device, dst, src, n) :
		      !src_kind ?
		      fxi_device_give(coll->gpu->device, dst, src, n) :
		      fxi_device_copy(coll->gpu->device, dst, src, n);
		return ret ? ret : fxi_device_wait(coll->gpu->device);
	}
	if (dst_kind && src_kind)
		return bounce(coll, dst, from, n);
	if (src_kind ? fxi_memory_copy(src_kind, from, dst, n, true) :
		       fxi_memory_copy(dst_kind, dst, from, n, false))
		return 0;
	return cannot(coll);
}

/* ---- reductions -------------------------------------------------------- */

/* Is it on the GPU, and aligned so that it can be read there? */
static bool ready(const struct fabrex_coll *coll, const struct reduce *r,
		  uint32_t i)
{
	return i == coll->comm->rank && coll->send_kind &&
	       !((uintptr_t)r->src[i] % fxi_type_size(r->type));
}

/* Brings source @i to where the GPU can read it. */
static int fetch(const struct fabrex_coll *coll, const struct reduce *r,
		 uint32_t i, void *room, const void **at)
{
	uint64_t bytes = r->count * fxi_type_size(r->type);

	*at = room;
	if (ready(coll, r, i)) {
		*at = r->src[i];
		return 0;
	}
	if (i == coll->comm->rank && coll->send_kind)
		return fxi_device_copy(coll->gpu->device, room, r->src[i],
				       bytes);
	return fxi_device_give(coll->gpu->device, room, r->src[i], bytes);
}

static bool is_converted(uint32_t type)
{
	return type == FABREX_FLOAT16 || type == FABREX_BFLOAT16;
}

/* Reduces source @i, which is at @operand, with those before it. */
static int add_up(const struct fabrex_coll *coll, const struct reduce *r,
		  uint32_t i, const void *sum, const void *operand)
{
	bool first = i == 1, last = i + 1 == r->nsrc;
	bool wide = is_converted(r->type) && !(first && last);
	struct gpu *gpu = coll->gpu;

	return fxi_device_reduce_wide(
		gpu->device, wide && !last ? gpu->wide : gpu->sum,
		wide && !first ? gpu->wide : sum, operand, r->count, r->type,
		r->op, last ? r->divisor : 0,
		(wide && !first ? DEVICE_WIDE_SRC : 0) |
		(wide && !last ? DEVICE_WIDE_DST : 0));
}

static int sum_up(const struct fabrex_coll *coll, const struct reduce *r)
{
	struct gpu *gpu = coll->gpu;
	const void *sum, *operand;
	uint32_t i;
	int ret;

	ret = fetch(coll, r, 0, gpu->sum, &sum);
	for (i = 1; i < r->nsrc && !ret; i++) {
		ret = fetch(coll, r, i, gpu->operand, &operand);
		if (!ret)
			ret = add_up(coll, r, i, sum, operand);
		sum = gpu->sum;
	}
	return ret;
}

/* In the caller's buffer, and that is on the GPU? Slots are in the host. */
static bool is_received(const struct fabrex_coll *coll, const void *to)
{
	uintptr_t start = (uintptr_t)coll->what.recv;
	uint64_t bytes = fxi_recv_bytes(coll->comm, &coll->what);

	return coll->recv_kind && (uintptr_t)to - start < bytes;
}

int fxi_coll_reduce_gpu(const struct fabrex_coll *coll,
			const struct reduce *r)
{
	uint64_t bytes = r->count * fxi_type_size(r->type);
	struct gpu *gpu = coll->gpu;
	uint32_t i;
	int ret;

	ret = sum_up(coll, r);
	for (i = 0; i < r->ndst && !ret; i++)
		ret = is_received(coll, r->dst[i]) ?
		      fxi_device_copy(gpu->device, r->dst[i], gpu->sum, bytes) :
		      fxi_device_fetch(gpu->device, r->dst[i], gpu->sum, bytes);
	return ret ? ret : fxi_device_wait(gpu->device);
}

/* ---- all of it on the GPU ---------------------------------------------- */

struct device *fxi_coll_device(const struct fabrex_coll *coll)
{
	return coll->gpu->device;
}

int fxi_coll_prepare_gpu(struct fabrex_coll *coll)
{
	struct gpu *gpu = coll->gpu;
	uint64_t scratch;
	void *memory;
	int ret = 0;

	if (fxi_coll_needs_host(coll))
		return 0;
	if (fxi_kind_reduces(coll->what.kind)) {
		gpu_outside(coll);
		ret = fxi_device_prepare(gpu->device, coll->what.type);
		gpu_inside(coll);
	}
	if (ret || !(coll->algorithm->one_memory ||
		     (coll->schedule && coll->one_gpu)))
		return ret;
	fxi_gpu_make_slots(coll);
	scratch = coll->algorithm->scratch ? coll->algorithm->scratch(coll) : 0;
	if (scratch)
		ret = fxi_coll_scratch_gpu(coll, scratch, &memory);
	/* Then this rank tells the others that it cannot follow a schedule. */
	if (ret && !coll->algorithm->one_memory) {
		coll->schedule = NULL;
		ret = 0;
	}
	return ret;
}

int fxi_coll_begin_move_gpu(const struct fabrex_coll *coll, void *dst,
			    const void *src, uint64_t n)
{
	return fxi_device_copy(coll->gpu->device, dst, src, n);
}

int fxi_coll_fetch_gpu(const struct fabrex_coll *coll, void *dst,
		       const void *src, uint64_t n)
{
	int ret = fxi_device_fetch(coll->gpu->device, dst, src, n);

	return ret ? ret : fxi_device_wait(coll->gpu->device);
}

int fxi_coll_wait_gpu(const struct fabrex_coll *coll)
{
	return fxi_device_wait(coll->gpu->device);
}

int fxi_coll_move_gpu(const struct fabrex_coll *coll, void *dst,
		      const void *src, uint64_t n)
{
	int ret = fxi_coll_begin_move_gpu(coll, dst, src, n);

	return ret ? ret : fxi_coll_wait_gpu(coll);
}

static bool is_aligned(const void *at, uint32_t type)
{
	return !((uintptr_t)at % fxi_type_size(type));
}

/* The operand, or a copy of it in @room that the GPU can read. */
static int align(const struct fabrex_coll *coll, const void **operand,
		 void *room, uint64_t bytes)
{
	int ret;

	if (is_aligned(*operand, coll->what.type))
		return 0;
	ret = fxi_device_copy(coll->gpu->device, room, *operand, bytes);
	*operand = room;
	return ret;
}

int fxi_coll_begin_add_gpu(const struct fabrex_coll *coll, void *dst,
			   const void *left, const void *right, uint64_t count,
			   uint32_t divisor)
{
	uint64_t bytes = count * fxi_type_size(coll->what.type);
	struct gpu *gpu = coll->gpu;
	void *to = is_aligned(dst, coll->what.type) ? dst : gpu->sum;
	int ret;

	ret = align(coll, &left, gpu->sum, bytes);
	if (!ret)
		ret = align(coll, &right, gpu->operand, bytes);
	if (!ret)
		ret = fxi_device_reduce(gpu->device, to, left, right, count,
					coll->what.type, coll->what.op,
					divisor);
	if (!ret && to != dst)
		ret = fxi_device_copy(gpu->device, dst, to, bytes);
	return ret;
}

/* ---- payloads ---------------------------------------------------------- */

/* To the GPU. Without slots of its own, a message at a time. */
static int push_payload(const struct fabrex_coll *coll, uint32_t rank,
			const struct link_message *m, const void **payload)
{
	void *room = coll->comm->slots_gpu ?
		     fxi_link_device_slot(coll->comm, rank) : coll->gpu->wide;
	int ret;

	*payload = room;
	ret = fxi_device_give(coll->gpu->device, room,
			      fxi_link_payload(coll->comm, rank, LINK_COLL),
			      m->length);
	return ret ? ret : fxi_device_wait(coll->gpu->device);
}

static int out_of_memory(const struct fabrex_coll *coll)
{
	return fxi_error(ENOMEM, "%s: out of memory",
			 fxi_kind_name(coll->what.kind));
}

/* Memory of the host for the payload of the oldest message; NULL: none. */
static void *pull_room(const struct fabrex_coll *coll, uint32_t rank,
		       struct link *link, uint32_t length)
{
	if (length <= fxi_link_size(coll->comm))
		return fxi_link_host_slot(coll->comm, rank);
	if (!link->pull)
		link->pull = malloc(fxi_link_device_size(coll->comm));
	return link->pull;
}

/* Of a rank with a GPU, while the buffers of this one are in the host. */
static int pull_payload(const struct fabrex_coll *coll, uint32_t rank,
			const struct link_message *m, const void **payload)
{
	struct link *link = fxi_link(coll->comm, rank, LINK_COLL);
	struct device *device = coll->comm->slots_gpu->device;
	void *room = pull_room(coll, rank, link, m->length);
	int ret;

	*payload = room;
	if (!room)
		return out_of_memory(coll);
	if (link->pulled == link->popped + 1)
		return 0;
	ret = fxi_device_fetch(device, room,
			       fxi_link_device_slot(coll->comm, rank),
			       m->length);
	if (!ret)
		ret = fxi_device_wait(device);
	if (!ret)
		link->pulled = link->popped + 1;
	return ret;
}

int fxi_coll_payload_gpu(const struct fabrex_coll *coll, uint32_t rank,
			 const struct link_message *m, const void **payload)
{
	bool here = fxi_link_on_device(m);

	if (here && !coll->comm->slots_gpu)
		return fxi_error(EPROTO, "%s: rank %u has sent to a GPU that was not offered; do all ranks run the same library?",
				 fxi_kind_name(coll->what.kind), rank);
	if (here && !fxi_coll_on_gpu(coll))
		return pull_payload(coll, rank, m, payload);
	if (!here && fxi_coll_on_gpu(coll))
		return push_payload(coll, rank, m, payload);
	*payload = here ? fxi_link_device_slot(coll->comm, rank) :
			  fxi_link_payload(coll->comm, rank, LINK_COLL);
	return 0;
}
