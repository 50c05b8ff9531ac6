// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Beginning and end of a loopback port's queues: entries of the segment's
 * table, receive cells; services, counters, signals. Called through the
 * transport's operations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "state.h"

/* ---- making ------------------------------------------------------------ */

static int queue_nomem(struct transport *t)
{
	return fxi_error(ENOMEM, "loopback:%s: queue: out of memory",
			 t->fabric);
}

static const struct queue_ops queue_ops = {
	.prep = fxi_loop_prep,
	.submit = fxi_loop_submit,
	.post = fxi_loop_post,
	.post_write = fxi_loop_post_write,
	.post_read = fxi_loop_post_read,
	.post_send = fxi_loop_post_send,
	.poll = fxi_loop_poll,
	.recv_done = fxi_loop_recv_done,
	.pending = fxi_loop_pending,
	.arm = fxi_loop_arm,
};

static void entries_free(struct loop_queue *q)
{
	free(q->sq);
	free(q->records);
}

static int queue_init(struct transport *t, struct loop_queue *q,
		      const struct fabrex_queue_attr *attr)
{
	size_t size = attr->sq_entries * sizeof(*q->sq);

	q->queue.ops = &queue_ops;
	q->transport = t;
	q->efd = q->queue.efd;
	q->rq_entries = attr->rq_entries;
	q->rq_mask = attr->rq_entries ? attr->rq_entries - 1 : 0;
	q->cell_size = attr->cell_size;
	q->sq_mask = attr->sq_entries - 1;
	q->limit = attr->cq_entries - attr->rq_entries;
	if (q->limit > attr->sq_entries)
		q->limit = attr->sq_entries;
	q->sq = aligned_alloc(64, size);
	q->records = calloc(attr->sq_entries, sizeof(*q->records));
	if (!q->sq || !q->records) {
		entries_free(q);
		return queue_nomem(t);
	}
	memset(q->sq, 0, size);
	return 0;
}

static uint64_t cells_size(uint32_t entries)
{
	return ((uint64_t)entries * sizeof(struct segment_cell) + LOOP_PAGE -
		1) & ~(uint64_t)(LOOP_PAGE - 1);
}

/* Headers and payloads in one range. */
static uint64_t ring_size(uint32_t entries, uint32_t cell_size)
{
	return cells_size(entries) + (uint64_t)entries * cell_size;
}

/* Another queue of this port that offers the service; lock held. */
static bool service_taken(struct transport *t, uint64_t service)
{
	uint32_t i;

	for (i = 0; service && i < t->state->nqueues; i++)
		if (t->state->queues[i] &&
		    t->segment->queues[i].service == service)
			return true;
	return false;
}

/* Lock held. */
static int find_slot(struct transport *t, const struct fabrex_queue_attr *attr,
		     uint32_t *index)
{
	if (service_taken(t, attr->service))
		return fxi_error(EADDRINUSE, "loopback:%s: queue: service %llu is used by another queue of this port; use another number or destroy that queue",
				 t->fabric, (unsigned long long)attr->service);
	for (*index = 0; *index < SEGMENT_QUEUES; ++*index)
		if (!t->state->queues[*index] &&
		    !t->state->queue_kept[*index])
			return fxi_loop_heap_back(
				t, &t->segment->queues[*index],
				sizeof(struct segment_queue));
	return fxi_error(ENOSPC, "loopback:%s: queue: the port has none left of %u; destroy some",
			 t->fabric, SEGMENT_QUEUES);
}

static int random_part(struct transport *t, uint32_t *random)
{
	do {
		if (getrandom(random, sizeof(*random), 0) != sizeof(*random))
			return fxi_error(EIO, "loopback:%s: no random numbers from the kernel",
					 t->fabric);
	} while (!*random);
	return 0;
}

/* Peers see the queue from the moment its number is stored. */
static void publish(struct transport *t, struct loop_queue *q, uint32_t index,
		    const struct fabrex_queue_attr *attr, uint32_t random,
		    uint64_t ring)
{
	struct segment_queue *s = &t->segment->queues[index];

	q->shared = s;
	q->queue.number = index + 1;
	q->queue.key = loop_target(index + 1, random);
	/* Somebody may be reading what was there before: offers(). */
	__atomic_store_n(&s->random, random, __ATOMIC_RELAXED);
	__atomic_store_n(&s->service, attr->service, __ATOMIC_RELAXED);
	s->rq_entries = attr->rq_entries;
	s->cell_size = attr->cell_size;
	s->cells = ring;
	s->payload = ring + cells_size(attr->rq_entries);
	s->lock = 0;
	s->rq_tail = 0;
	s->rq_seen = 0;
	s->rq_head = 0;
	s->armed = 0;
	if (attr->rq_entries) {
		q->cells = (struct segment_cell *)((char *)t->segment + ring);
		q->payload = (uint8_t *)t->segment + s->payload;
	}
	t->state->queues[index] = q;
	t->state->queue_born[index] = ++t->state->born;
	if (t->state->nqueues <= index) {
		t->state->nqueues = index + 1;
		__atomic_store_n(&t->segment->queues_used, index + 1,
				 __ATOMIC_RELEASE);
	}
	__atomic_store_n(&s->number, index + 1, __ATOMIC_RELEASE);
}

static int enter(struct transport *t, struct loop_queue *q,
		 const struct fabrex_queue_attr *attr, uint64_t ring,
		 uint64_t *id)
{
	struct loop_state *s = t->state;
	uint32_t index = 0, random;
	int ret;

	ret = random_part(t, &random);
	if (ret)
		return ret;
	pthread_mutex_lock(&t->lock);
	ret = find_slot(t, attr, &index);
	if (!ret) {
		publish(t, q, index, attr, random, ring);
		*id = loop_id(LOOP_QUEUE, ++s->serial, index);
		s->queue_ids[index] = *id;
	}
	pthread_mutex_unlock(&t->lock);
	return ret;
}

int fxi_loop_queue_create(struct transport *t,
			  const struct fabrex_queue_attr *attr,
			  struct fabrex_queue *queue, uint64_t *id)
{
	struct loop_queue *q = loop_queue_of(queue);
	uint64_t ring = 0, size = ring_size(attr->rq_entries, attr->cell_size);
	int ret;

	ret = queue_init(t, q, attr);
	if (ret)
		return ret;
	if (attr->rq_entries)
		ret = fxi_loop_heap_alloc(t, size, &ring);
	if (!ret)
		ret = enter(t, q, attr, ring, id);
	if (!ret)
		return 0;
	if (ring)
		fxi_loop_heap_free(t, ring, size);
	entries_free(q);
	return ret;
}

/* ---- end --------------------------------------------------------------- */

static void add_stats(struct fabrex_stats *sum, const struct fabrex_stats *s)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)s;
	size_t i;

	for (i = 0; i < sizeof(*s) / sizeof(*from); i++)
		to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/* Lock held. NULL: no such queue. */
static struct loop_queue *find(struct transport *t, uint64_t id)
{
	uint32_t index = loop_id_index(id);

	if (loop_id_type(id) != LOOP_QUEUE || index >= SEGMENT_QUEUES ||
	    t->state->queue_ids[index] != id)
		return NULL;
	return t->state->queues[index];
}

static int no_object(struct transport *t, uint64_t id)
{
	return fxi_error(ENOENT, "loopback:%s: object %llu does not exist",
			 t->fabric, (unsigned long long)id);
}

/* No peer finds it from now on; the caller waits for those that just have. */
static struct loop_queue *withdraw(struct transport *t, uint64_t id)
{
	struct loop_queue *q;

	pthread_mutex_lock(&t->lock);
	q = find(t, id);
	if (q) {
		__atomic_store_n(&q->shared->number, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&q->shared->service, 0, __ATOMIC_RELAXED);
		q->efd = -1;
		t->state->queue_ids[q->queue.number - 1] = 0;
		add_stats(&t->state->ended, &q->stats);
	}
	pthread_mutex_unlock(&t->lock);
	return q;
}

/* A sender that does not continue keeps the cells, and the queue's number. */
static void keep(struct transport *t, struct loop_queue *q,
		 const struct loop_lookers *lookers, uint64_t offset,
		 uint64_t length)
{
	const struct loop_quarantine all = {
		.lookers = *lookers, .queue = q->queue.number, .offset = offset,
		.length = length,
	};

	t->state->queue_kept[q->queue.number - 1] = true;
	fxi_loop_quarantine(t, &all);
}

int fxi_loop_queue_destroy(struct transport *t, uint64_t id)
{
	struct loop_queue *q = withdraw(t, id);
	struct loop_lookers lookers;
	uint64_t cells, length;
	uint32_t who;
	int busy;

	if (!q)
		return no_object(t, id);
	cells = (uint64_t)((char *)q->cells - (char *)t->segment);
	length = q->rq_entries ? ring_size(q->rq_entries, q->cell_size) : 0;
	busy = fxi_loop_quiesce(t, NULL,
				t->state->queue_born[q->queue.number - 1],
				&lookers, &who);
	pthread_mutex_lock(&t->lock);
	if (busy)
		keep(t, q, &lookers, cells, length);
	t->state->queues[q->queue.number - 1] = NULL;
	pthread_mutex_unlock(&t->lock);
	if (!busy && length)
		fxi_loop_heap_free(t, cells, length);
	return 0;
}

void fxi_loop_queue_free(struct transport *t, struct fabrex_queue *queue,
			 bool unmap)
{
	struct loop_queue *q = loop_queue_of(queue);

	(void)t;
	if (unmap)
		fxi_loop_bounce_free(q);
	entries_free(q);
}

/* ---- services, counters, signals --------------------------------------- */

static int unknown_service(struct transport *t, uint32_t peer,
			   uint64_t service)
{
	return fxi_error(ENOENT, "loopback:%s: service %llu at peer %u: nobody offers it there; start the server first",
			 t->fabric, (unsigned long long)service, peer);
}

/* The peer's table, read once. */
static bool offers(const struct segment_queue *q, uint64_t service,
		   uint32_t *number, uint64_t *key)
{
	*number = __atomic_load_n(&q->number, __ATOMIC_ACQUIRE);
	if (!*number ||
	    __atomic_load_n(&q->service, __ATOMIC_RELAXED) != service)
		return false;
	*key = loop_target(*number,
			   __atomic_load_n(&q->random, __ATOMIC_RELAXED));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&q->number, __ATOMIC_RELAXED) == *number;
}

int fxi_loop_resolve(struct transport *t, uint32_t peer, uint64_t service,
		     uint32_t *number, uint64_t *key)
{
	const struct segment *s;
	int ret = -ENOENT;
	uint32_t i, n;

	pthread_mutex_lock(&t->lock);
	if (peer >= SEGMENT_PEERS || !t->peers[peer].up) {
		pthread_mutex_unlock(&t->lock);
		return fxi_error(EHOSTUNREACH, "loopback:%s: service %llu at peer %u: the peer is down or does not exist",
				 t->fabric, (unsigned long long)service, peer);
	}
	s = t->peers[peer].segment;
	n = __atomic_load_n(&s->queues_used, __ATOMIC_ACQUIRE);
	for (i = 0; ret && service && i < n && i < SEGMENT_QUEUES; i++)
		if (offers(&s->queues[i], service, number, key))
			ret = 0;
	pthread_mutex_unlock(&t->lock);
	return ret ? unknown_service(t, peer, service) : 0;
}

int fxi_loop_counters(struct transport *t, uint64_t id,
		      struct fabrex_stats *stats)
{
	struct loop_queue *q;
	uint64_t received;
	uint32_t i;

	memset(stats, 0, sizeof(*stats));
	pthread_mutex_lock(&t->lock);
	q = id ? find(t, id) : NULL;
	if (q)
		add_stats(stats, &q->stats);
	if (!id)
		add_stats(stats, &t->state->ended);
	for (i = 0; !id && i < t->state->nqueues; i++)
		if (t->state->queue_ids[i])
			add_stats(stats, &t->state->queues[i]->stats);
	/*
	 * host_bytes is not counted with each operation, as all bytes pass
	 * through host memory. Until here it has the bytes of messages that
	 * arrived, apart from those that READs fetched.
	 */
	received = stats->host_bytes;
	stats->host_bytes = stats->tx_bytes + stats->rx_bytes;
	stats->rx_bytes += received;
	pthread_mutex_unlock(&t->lock);
	return id && !q ? no_object(t, id) : 0;
}

void fxi_loop_queue_signal(const struct loop_queue *q)
{
	uint64_t one = 1;
	int old;

	if (q->efd < 0)
		return;
	old = cancel_off();
	if (write(q->efd, &one, sizeof(one)) < 0)
		q = NULL;	/* it is readable already */
	cancel_restore(old);
}

/* Lock held. */
void fxi_loop_signal(struct transport *t, uint32_t number)
{
	const struct loop_queue *q;
	uint32_t i;

	for (i = 0; i < t->state->nqueues; i++) {
		q = t->state->queues[i];
		if (q && (!number || q->queue.number == number))
			fxi_loop_queue_signal(q);
	}
}
