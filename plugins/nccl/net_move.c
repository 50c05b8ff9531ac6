// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sends and receives: wire.h says who writes what, and in which order. A send
 * waits until the receives that it is for have been posted; its data goes from
 * buffer to buffer. Used by the versions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static enum nccl_result misuse(const char *what)
{
	WARN("%s", what);
	return NCCL_INVALID_USAGE;
}

/*
 * All of it is posted; or the ring is full, and test() tries again. Nothing else is
 * posted before: a fence of its own would hide a failure from this one.
 */
static void announced(struct net_request *r, int ret)
{
	struct comm *comm = r->comm;
	bool late = r->late;

	r->late = ret == -EAGAIN;
	comm->waiting += (uint32_t)r->late - (uint32_t)late;
	if (ret && !r->late)
		net_comm_fail(comm, NCCL_SYSTEM_ERROR, fabrex_strerror_last());
}

/* ---- sending ----------------------------------------------------------- */

static int post_data(struct net_request *r)
{
	struct comm *comm = r->comm;
	uint64_t max = comm->port->attr.max_transfer;
	struct fabrex_op op = {
		.opcode = FABREX_OP_WRITE,
		.flags = FABREX_SQE_QUIET,
		.peer = (uint16_t)comm->peer.peer,
		.mr = r->mr,
		.rkey = r->target.rkey,
	};
	int ret;

	while (r->posted < r->size[0]) {
		op.offset = r->offset + r->posted;
		op.roffset = r->target.roffset + r->posted;
		op.length = r->size[0] - r->posted;
		if (op.length > max)
			op.length = max;
		ret = fabrex_post(comm->queue, &op, 1);
		if (ret < 0)
			return ret;
		r->posted += op.length;
	}
	return 0;
}

/* The data, and then its word, when there is room for them. */
static void go_on_sending(struct net_request *r)
{
	struct comm *comm = r->comm;
	unsigned int slot = (r->number - 1) % NET_SLOTS;
	uint64_t *word = &comm->out.send->word[slot][r->n];
	int ret = post_data(r);

	if (!ret) {
		*word = net_word(r->number, r->size[0]);
		ret = net_comm_put(comm, word,
				   offsetof(struct net_recv_inbox, word) +
				   (slot * NCCL_RECEIVES_MAX + r->n) *
				   sizeof(*word), sizeof(*word),
				   FABREX_SQE_FENCE, (uintptr_t)r);
	}
	announced(r, ret);
}

/* The receive with this tag in the oldest group that is not finished; -1: none. */
static int find_target(struct comm *comm, int tag, struct net_target *target)
{
	const struct net_slot *slot =
		&comm->in.send->slot[comm->head % NET_SLOTS];
	uint64_t n;
	uint32_t i;

	if (load(&slot->number) != comm->head + 1)
		return -1;
	/* What it says once counts. */
	if (!comm->group) {
		n = slot->n;
		if (!n || n > NCCL_RECEIVES_MAX) {
			net_comm_fail(comm, NCCL_REMOTE_ERROR,
				      "it posted a group of receives that cannot be");
			return -1;
		}
		comm->group = (uint32_t)n;
	}
	for (i = 0; i < comm->group; i++) {
		*target = slot->target[i];
		if (target->tag == tag && !(comm->taken >> i & 1))
			return (int)i;
	}
	return -1;
}

static void take_target(struct comm *comm, int i)
{
	comm->taken |= 1u << i;
	if (comm->taken != (1u << comm->group) - 1)
		return;
	comm->taken = comm->group = 0;
	comm->head++;
}

/* Nobody has posted a receive for it yet. */
static enum nccl_result none_yet(struct comm *comm)
{
	if (net_comm_closed(comm))
		return net_comm_fail(comm, NCCL_REMOTE_ERROR,
				     "it has closed its side");
	return net_comm_progress(comm, true);
}

enum nccl_result net_isend(void *comm, void *data, size_t size, int tag,
			   void *mhandle, void **request)
{
	const struct net_memory *memory = mhandle;
	struct comm *c = comm;
	struct net_request *r;
	struct net_target target;
	uint64_t offset;
	int i;

	if (!c || !c->sends || !request || size > NET_BYTES_MAX)
		return misuse("isend() of something that cannot be sent");
	*request = NULL;
	if (c->failed)
		return c->failed;
	/* Who has closed its side may have given its memory back. */
	i = c->waiting || net_comm_closed(c) ? -1 :
	    find_target(c, tag, &target);
	if (i < 0)
		return none_yet(c);
	if (size > target.size) {
		WARN("%zu bytes are sent to port %s, whose receive has room for %llu",
		     size, c->name, (unsigned long long)target.size);
		return NCCL_INVALID_USAGE;
	}
	if (!net_memory_at(memory, data, size, &offset))
		return NCCL_INVALID_ARGUMENT;
	r = net_request_take(c, false);
	if (!r)
		return net_comm_progress(c, true);
	r->kind = NET_SEND;
	r->n = (uint32_t)i;
	r->number = c->head + 1;
	r->size[0] = size;
	r->mr = memory ? memory->mr : NULL;
	r->offset = offset;
	r->target = target;
	take_target(c, i);
	go_on_sending(r);
	*request = r;
	return c->failed;
}

/* ---- receiving --------------------------------------------------------- */

static void go_on_receiving(struct net_request *r)
{
	struct comm *comm = r->comm;
	unsigned int i = (r->number - 1) % NET_SLOTS;
	struct net_slot *slot = &comm->out.recv->slot[i];
	uint64_t at = offsetof(struct net_send_inbox, slot) + i * sizeof(*slot);
	size_t used = offsetof(struct net_slot, target) +
		      r->n * sizeof(slot->target[0]);
	int ret = 0;

	if (!r->posted) {
		ret = net_comm_put(comm, slot, at, used, 0, 0);
		r->posted = !ret;
	}
	if (!ret)
		ret = net_comm_put(comm, &slot->number,
				   at + offsetof(struct net_slot, number),
				   sizeof(slot->number), FABREX_SQE_FENCE, 0);
	announced(r, ret);
}

static bool fill_slot(struct net_slot *slot, int n, void **data,
		      const size_t *sizes, const int *tags, void **mhandles)
{
	const struct net_memory *memory;
	struct net_target *target;
	int i;

	for (i = 0; i < n; i++) {
		memory = mhandles ? mhandles[i] : NULL;
		target = &slot->target[i];
		if (sizes[i] > NET_BYTES_MAX ||
		    !net_memory_at(memory, data[i], sizes[i],
				   &target->roffset))
			return false;
		target->rkey = sizes[i] ? fabrex_mr_key(memory->mr) : 0;
		target->size = sizes[i];
		target->tag = tags[i];
	}
	slot->n = (uint64_t)n;
	return true;
}

enum nccl_result net_irecv(void *comm, int n, void **data, const size_t *sizes,
			   const int *tags, void **mhandles, void **request)
{
	struct comm *c = comm;
	struct net_request *r;
	struct net_slot *slot;

	if (!c || c->sends || !request || n < 1 || n > NCCL_RECEIVES_MAX ||
	    !data || !sizes || !tags)
		return misuse("irecv() of something that cannot be received");
	*request = NULL;
	if (c->failed)
		return c->failed;
	slot = &c->out.recv->slot[c->head % NET_SLOTS];
	/* The receives before it in this slot may be tested later than others. */
	r = c->waiting || c->busy >> c->head % NET_SLOTS & 1 ? NULL :
	    net_request_take(c, false);
	if (!r)
		return net_comm_progress(c, true);
	if (!fill_slot(slot, n, data, sizes, tags, mhandles)) {
		r->comm = NULL;
		return NCCL_INVALID_ARGUMENT;
	}
	r->kind = NET_RECV;
	r->n = (uint32_t)n;
	c->busy |= 1u << c->head % NET_SLOTS;
	memset(c->in.recv->word[c->head % NET_SLOTS], 0,
	       (size_t)n * sizeof(uint64_t));
	r->number = slot->number = ++c->head;
	memcpy(r->size, sizes, (size_t)n * sizeof(*sizes));
	go_on_receiving(r);
	*request = r;
	return c->failed;
}

/* All of a group are there: sizes of what has come. */
static void look_at_words(struct net_request *r)
{
	struct comm *comm = r->comm;
	const uint64_t *words =
		comm->in.recv->word[(r->number - 1) % NET_SLOTS];
	size_t size[NCCL_RECEIVES_MAX];
	uint64_t word;
	uint32_t i;

	for (i = 0; i < r->n; i++) {
		word = load(&words[i]);
		if (!net_word_is(word, r->number))
			return;
		size[i] = (size_t)net_word_size(word);
		if (size[i] > r->size[i]) {
			net_comm_fail(comm, NCCL_REMOTE_ERROR,
				      "it says that it sent more than there is room for");
			return;
		}
	}
	memcpy(r->size, size, r->n * sizeof(*size));
	r->done = true;
}

static enum nccl_result test_receive(struct net_request *r)
{
	struct comm *comm = r->comm;
	bool closed;

	if (r->late && !net_comm_progress(comm, false))
		go_on_receiving(r);
	/* Whatever was sent before it was closed is there by then. */
	closed = net_comm_closed(comm);
	look_at_words(r);
	if (!r->done && closed)
		net_comm_fail(comm, NCCL_REMOTE_ERROR,
			      "it has closed its side, and something is missing");
	/* And before its memory was found to be gone. */
	if (!r->done && net_comm_progress(comm, true))
		look_at_words(r);
	return comm->failed;
}

/* ---- flushing ---------------------------------------------------------- */

static void go_on_flushing(struct net_request *r)
{
	struct comm *comm = r->comm;
	const struct fabrex_op op = {
		.opcode = FABREX_OP_READ,
		.peer = (uint16_t)comm->port->attr.peer,
		.user_data = (uintptr_t)r,
		.mr = comm->outbox,
		.offset = offsetof(struct net_recv_outbox, scratch),
		.length = 1,
		.rkey = fabrex_mr_key(r->mr),
		.roffset = r->offset,
	};
	int ret = fabrex_post(comm->queue, &op, 1);

	announced(r, ret < 0 ? ret : 0);
}

/*
 * What has been written to a GPU is there when the port has read from it: a read
 * does not overtake writes. Memory of the host needs none.
 */
enum nccl_result net_flush(void *comm, int n, void **data, int *sizes,
			   void **mhandles, void **request)
{
	const struct net_memory *memory = NULL;
	struct comm *c = comm;
	struct net_request *r;
	uint64_t offset = 0;
	int i;

	if (!c || c->sends || !request || n < 0 || n > NCCL_RECEIVES_MAX)
		return misuse("iflush() of something that was not received");
	*request = NULL;
	for (i = 0; i < n; i++) {
		const struct net_memory *m = mhandles[i];

		if (!sizes[i] || !m || !m->device)
			continue;
		if (!net_memory_at(m, data[i], 1, &offset))
			return NCCL_INVALID_ARGUMENT;
		memory = m;
	}
	if (!memory || c->failed)
		return c->failed;
	r = net_request_take(c, true);
	if (!r)
		return misuse("iflush() with all requests in flight");
	r->kind = NET_FLUSH;
	r->mr = memory->mr;
	r->offset = offset;
	go_on_flushing(r);
	*request = r;
	return c->failed;
}

/* ---- both -------------------------------------------------------------- */

enum nccl_result net_test(void *request, int *done, int *sizes)
{
	struct net_request *r = request;
	enum nccl_result result;

	if (!r || !r->comm || !done)
		return misuse("test() of a request that is over");
	*done = 0;
	if (r->kind == NET_RECV) {
		result = test_receive(r);
	} else {
		result = net_comm_progress(r->comm, true);
		if (r->late && !result && r->kind == NET_SEND)
			go_on_sending(r);
		else if (r->late && !result)
			go_on_flushing(r);
	}
	if (!r->done)
		return result;
	if (r->kind == NET_RECV)
		r->comm->busy &= ~(1u << (r->number - 1) % NET_SLOTS);
	*done = 1;
	if (sizes && r->kind == NET_RECV)
		for (uint32_t i = 0; i < r->n; i++)
			sizes[i] = (int)r->size[i];
	else if (sizes)
		sizes[0] = (int)r->size[0];
	r->comm = NULL;
	return NCCL_SUCCESS;
}

/* Requests in flight end with it. */
enum nccl_result net_close(void *comm)
{
	if (!comm)
		return NCCL_INVALID_ARGUMENT;
	net_comm_farewell(comm);
	net_comm_close(comm);
	return NCCL_SUCCESS;
}
