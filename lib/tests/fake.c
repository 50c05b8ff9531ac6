// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The fake fabric: transport operations and bookkeeping. The device thread
 * that executes entries is in fakedev.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "fakedev.h"

struct fabric fab = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.port = {
		{ .name = "a.0", .up = true, .generation = 1 },
		{ .name = "b.0", .up = true, .generation = 1 },
		{ .name = "c.0", .up = true, .generation = 1 },
	},
	.budget = -1,
	.gate = PTHREAD_COND_INITIALIZER,
};

struct transport {
	struct file file;
};

static int gone(struct transport *t)
{
	if (fab.port[t->file.port].gone)
		return fxi_error(ENODEV, "fake port is gone");
	return 0;
}

static int fake_open(const char *name, struct transport **out)
{
	struct transport *t;
	unsigned int i;

	for (i = 0; name && i < FAKE_PORTS; i++)
		if (!strcmp(name, fab.port[i].name))
			break;
	if (!name)
		i = 0;
	if (i == FAKE_PORTS)
		return fxi_error(ENOENT, "no fake port is called %s", name);
	t = calloc(1, sizeof(*t));
	if (!t || pipe2(t->file.pipe, O_CLOEXEC | O_NONBLOCK))
		abort();
	t->file.port = i;
	pthread_mutex_lock(&fab.lock);
	t->file.next = fab.files;
	fab.files = &t->file;
	pthread_mutex_unlock(&fab.lock);
	fakedev_start();
	*out = t;
	return 0;
}

static void object_free(struct fake_object **link)
{
	struct fake_object *o = *link;

	*link = o->next;
	if (o->efd >= 0)
		close(o->efd);
	if (o->mapped)
		munmap(o->mapped, o->mapped_length);
	free(o);
	fab.nobjects--;
}

static void fake_close(struct transport *t)
{
	struct fake_object **o;
	struct file **f;

	pthread_mutex_lock(&fab.lock);
	for (o = &fab.objects; *o;) {
		if ((*o)->file == &t->file)
			object_free(o);
		else
			o = &(*o)->next;
	}
	for (f = &fab.files; *f != &t->file; f = &(*f)->next)
		;
	*f = t->file.next;
	pthread_mutex_unlock(&fab.lock);
	close(t->file.pipe[0]);
	if (t->file.pipe[1] >= 0)
		close(t->file.pipe[1]);
	free(t->file.counters);
	free(t);
}

static void fake_release(struct transport *t)
{
	close(t->file.pipe[0]);
	close(t->file.pipe[1]);
	free(t->file.counters);
	free(t);
}

static int fake_query(struct transport *t, struct fabrex_port_attr *attr)
{
	const struct fake_port *p = &fab.port[t->file.port];

	if (gone(t))
		return -ENODEV;
	attr->peer = t->file.port;
	attr->max_peers = 8;
	attr->generation = p->generation;
	attr->link_up = p->up;
	attr->emulated = 1;
	attr->max_queues = 1024;
	attr->max_mrs = 1024;
	attr->max_sq = 1024;
	attr->max_cq = 4096;
	attr->max_rq = 1024;
	attr->max_cell = 4096;
	attr->page_size = 4096;
	attr->window_slot_size = 1 << 20;
	attr->max_transfer = FAKE_MAX_TRANSFER;
	snprintf(attr->name, sizeof(attr->name), "%s", p->name);
	snprintf(attr->host, sizeof(attr->host), "%c", p->name[0]);
	snprintf(attr->fabric, sizeof(attr->fabric), "test");
	snprintf(attr->driver, sizeof(attr->driver), "fake");
	return 0;
}

static int find_peer(const char *name)
{
	unsigned int i;

	for (i = 0; i < FAKE_PORTS; i++)
		if (!strcmp(fab.port[i].name, name) ||
		    (name[0] == fab.port[i].name[0] && !name[1]))
			return (int)i;
	return -1;
}

static int fake_peer(struct transport *t, const char *name, uint32_t number,
		     bool next, struct fabrex_peer *peer)
{
	int i = name ? find_peer(name) : (int)number;

	(void)next;
	if (gone(t))
		return -ENODEV;
	if (i < 0 || i >= FAKE_PORTS)
		return fxi_error(ENOENT, "no such fake peer");
	peer->peer = (uint32_t)i;
	peer->up = fab.port[i].up;
	peer->generation = fab.port[i].generation;
	snprintf(peer->name, sizeof(peer->name), "%s", fab.port[i].name);
	snprintf(peer->host, sizeof(peer->host), "%c", fab.port[i].name[0]);
	return 0;
}

static struct fake_object *object_add(struct transport *t,
				      enum fake_type type)
{
	struct fake_object *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->type = type;
	o->file = &t->file;
	o->efd = -1;
	pthread_mutex_lock(&fab.lock);
	o->id = ++fab.last_id;
	fab.nobjects++;
	pthread_mutex_unlock(&fab.lock);
	return o;
}

/* Never shown to anybody. */
static void fake_destroy_new(struct fake_object *o)
{
	pthread_mutex_lock(&fab.lock);
	fab.nobjects--;
	pthread_mutex_unlock(&fab.lock);
	free(o);
}

/* Ready: the device may see it. */
static void object_show(struct fake_object *o)
{
	pthread_mutex_lock(&fab.lock);
	o->next = fab.objects;
	fab.objects = o;
	pthread_mutex_unlock(&fab.lock);
}

/* A file in memory, whose position is where the dma-buf begins. */
static int map_dmabuf(struct fake_object *o, const struct transport_mr *params)
{
	off_t start = lseek(params->fd, 0, SEEK_CUR);
	size_t skip = params->offset % 4096;
	struct stat st;
	char *p;

	if (start < 0 || fstat(params->fd, &st))
		return fxi_error(errno, "fake dma-buf is none");
	if (st.st_size < start + (off_t)(params->offset + params->length))
		return fxi_error(EINVAL, "fake dma-buf is shorter");
	o->mapped_length = params->length + skip;
	p = mmap(NULL, o->mapped_length, PROT_READ | PROT_WRITE, MAP_SHARED,
		 params->fd, start + (off_t)(params->offset - skip));
	if (p == MAP_FAILED)
		return fxi_error(errno, "fake dma-buf cannot be mapped");
	o->mapped = p;
	o->addr = p + skip;
	return 0;
}

/* Under the lock, which is given up meanwhile. */
static void wait_at_gate(void)
{
	fab.at_gate++;
	pthread_cond_broadcast(&fab.gate);
	while (fab.gate_shut)
		pthread_cond_wait(&fab.gate, &fab.lock);
	fab.at_gate--;
}

/* Errors and delays that a test wants. */
static int mr_trouble(void)
{
	unsigned int delay;
	int err = 0;

	pthread_mutex_lock(&fab.lock);
	fab.registrations++;
	wait_at_gate();
	delay = fab.mr_delay_us;
	if (fab.mr_failures) {
		fab.mr_failures--;
		err = fab.mr_error;
	}
	if (fab.quota && fab.nobjects >= fab.quota)
		err = ENOSPC;
	pthread_mutex_unlock(&fab.lock);
	if (delay)
		usleep(delay);
	return err ? fxi_error(err, "fake trouble") : 0;
}

static int mr_fill(struct fake_object *o, const struct transport_mr *params)
{
	o->addr = params->addr;
	o->pinned = params->pin;
	o->watched = params->watched;
	o->watch = params->watch;
	return params->dmabuf ? map_dmabuf(o, params) : 0;
}

static void announce_revoked(const struct fake_object *o)
{
	const struct transport_event e = {
		.type = FABREX_EV_MR_REVOKED, .id = o->id, .error = EFAULT,
	};

	fake_event(o->file->port, &e);
	usleep(50000);
}

static int fake_mr_register(struct transport *t,
			    const struct transport_mr *params, uint64_t *key,
			    uint64_t *id)
{
	struct fake_object *o;
	size_t i;
	int ret;

	if (gone(t))
		return -ENODEV;
	ret = mr_trouble();
	if (ret)
		return ret;
	if (fab.host_unwatched && params->watched && !params->dmabuf)
		return fxi_error(EOPNOTSUPP, "fake port cannot watch that");
	o = object_add(t, FAKE_MR);
	ret = mr_fill(o, params);
	if (ret) {
		fake_destroy_new(o);
		return ret;
	}
	o->length = params->length;
	o->access = params->access;
	o->peers = params->peers ? 0 : UINT64_MAX;
	for (i = 0; i < params->npeers; i++)
		o->peers |= 1ull << params->peers[i];
	o->key = (uint64_t)random() << 32 | o->id;
	*key = o->key;
	*id = o->id;
	object_show(o);
	if (fab.mr_revoked)
		announce_revoked(o);
	return 0;
}

static int fake_watch(struct transport *t, uint32_t entries,
		      const uint32_t **counters)
{
	if (fab.unwatched)
		return fxi_error(EOPNOTSUPP, "fake port counts nothing");
	if (t->file.counters)
		return fxi_error(EEXIST, "fake port counts already");
	t->file.counters = calloc(entries, sizeof(**counters));
	if (!t->file.counters)
		abort();
	*counters = t->file.counters;
	return 0;
}

static void *shared_pages(size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static bool service_taken(struct transport *t, uint64_t service)
{
	struct fake_object *o;
	bool taken = false;

	pthread_mutex_lock(&fab.lock);
	for (o = fab.objects; o; o = o->next)
		taken |= o->type == FAKE_QUEUE && service &&
			 o->service == service &&
			 o->file->port == t->file.port;
	pthread_mutex_unlock(&fab.lock);
	return taken;
}

static void layout(struct ring_memory *q, const struct fabrex_queue_attr *a)
{
	q->ctrl_offset = 0;
	q->sq_offset = 4096;
	q->cq_offset = q->sq_offset + a->sq_entries * 64;
	q->rq_offset = q->cq_offset + a->cq_entries * 32;
	q->ring_size = q->rq_offset + (size_t)a->rq_entries * a->cell_size;
	q->ring = shared_pages(q->ring_size);
	q->doorbell = shared_pages(FABREX_PAGE_SIZE);
	pthread_mutex_lock(&fab.lock);
	if (fab.bad_rings)
		q->cq_offset = q->ring_size - 64;
	fab.bad_rings = false;
	pthread_mutex_unlock(&fab.lock);
}

static void rings_unmap(const struct ring_memory *m)
{
	munmap(m->ring, m->ring_size);
	munmap(m->doorbell, FABREX_PAGE_SIZE);
}

static int fake_queue_create(struct transport *t,
			     const struct fabrex_queue_attr *a,
			     struct fabrex_queue *q, uint64_t *id)
{
	struct fake_object *o;
	int ret;

	if (gone(t))
		return -ENODEV;
	if (service_taken(t, a->service))
		return fxi_error(EADDRINUSE, "fake service is taken");
	o = object_add(t, FAKE_QUEUE);
	layout(&o->shared, a);
	o->attr = *a;
	o->service = a->service;
	o->key = (uint64_t)random() << 32 | o->id;
	o->armed = FAKE_NOT_ARMED;
	*id = o->id;
	q->number = 100 + o->id;
	q->key = o->key;
	ret = fxi_ring_init(q, a, &o->shared);
	if (ret) {
		rings_unmap(&o->shared);
		fake_destroy_new(o);
		return ret;
	}
	o->efd = q->efd < 0 ? -1 : dup(q->efd);
	o->ctrl = ring_queue_of(q)->ctrl;
	o->ctrl->db_needed = 1;
	*(uint32_t *)((char *)o->shared.doorbell + FABREX_DB_ARM) =
		FAKE_NOT_ARMED;
	object_show(o);
	return 0;
}

static void fake_queue_free(struct transport *t, struct fabrex_queue *q,
			    bool unmap)
{
	(void)t;
	if (unmap)
		rings_unmap(&ring_queue_of(q)->memory);
	fxi_ring_free(q);
}

static int fake_window_create(struct transport *t,
			      const struct fabrex_remote *remote,
			      uint64_t offset, uint64_t length,
			      uint32_t access, struct transport_window *w)
{
	struct fake_object *o, *mr;

	if (gone(t))
		return -ENODEV;
	pthread_mutex_lock(&fab.lock);
	mr = fakedev_mr(remote->peer, remote->rkey);
	pthread_mutex_unlock(&fab.lock);
	if (!mr || (mr->access & access) != access ||
	    offset + length > mr->length)
		return fxi_error(EACCES, "fake peer refuses the window");
	o = object_add(t, FAKE_WINDOW);
	w->id = o->id;
	w->length = length;
	w->addr = (char *)mr->addr + offset;
	object_show(o);
	return 0;
}

static void fake_window_unmap(struct transport *t, struct transport_window *w)
{
	(void)t;
	w->addr = NULL;
}

static int fake_destroy(struct transport *t, uint64_t id)
{
	struct fake_object **o;
	int ret;

	if (fab.end_delay_us)
		usleep(fab.end_delay_us);
	pthread_mutex_lock(&fab.lock);
	for (o = &fab.objects; *o && (*o)->id != id; o = &(*o)->next)
		;
	ret = *o ? 0 : -ENOENT;
	if (*o)
		object_free(o);
	pthread_mutex_unlock(&fab.lock);
	return gone(t) ? -ENODEV : ret;
}

static int fake_resolve(struct transport *t, uint32_t peer, uint64_t service,
			uint32_t *number, uint64_t *key)
{
	struct fake_object *o;
	int ret = -ENOENT;

	if (gone(t))
		return -ENODEV;
	if (peer >= FAKE_PORTS || !fab.port[peer].up)
		return fxi_error(EHOSTUNREACH, "fake peer is down");
	pthread_mutex_lock(&fab.lock);
	for (o = fab.objects; o; o = o->next) {
		if (o->type != FAKE_QUEUE || o->service != service ||
		    o->file->port != peer)
			continue;
		*number = 100 + o->id;
		*key = o->key;
		ret = 0;
	}
	pthread_mutex_unlock(&fab.lock);
	return ret ? fxi_error(ENOENT, "nobody offers the fake service") : 0;
}

static int fake_counters(struct transport *t, uint64_t id,
			 struct fabrex_stats *stats)
{
	(void)id;
	if (gone(t))
		return -ENODEV;
	pthread_mutex_lock(&fab.lock);
	stats->tx_ops = fab.executed;
	stats->doorbells = fab.doorbells;
	pthread_mutex_unlock(&fab.lock);
	return 0;
}

static int fake_event_fd(struct transport *t)
{
	return t->file.pipe[0];
}

static int fake_event_read(struct transport *t, struct transport_event *event)
{
	ssize_t n = read(t->file.pipe[0], event, sizeof(*event));

	if (n == sizeof(*event))
		return 0;
	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	return fxi_error(ENODEV, "fake port is gone");
}

const struct transport_ops fake_ops = {
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.release = fake_release,
	.query = fake_query,
	.peer = fake_peer,
	.mr_register = fake_mr_register,
	.watch = fake_watch,
	.queue_size = sizeof(struct ring_queue),
	.queue_create = fake_queue_create,
	.queue_free = fake_queue_free,
	.window_create = fake_window_create,
	.window_unmap = fake_window_unmap,
	.destroy = fake_destroy,
	.resolve = fake_resolve,
	.counters = fake_counters,
	.event_fd = fake_event_fd,
	.event_read = fake_event_read,
};

/* Takes the place of transport/list.c. */
const struct transport_ops *const fxi_transports[] = {
	&fake_ops, &fxi_transport_kernel, &fxi_transport_loopback, NULL,
};

/* ---- control ----------------------------------------------------------- */

void fake_event(unsigned int peer, const struct transport_event *event)
{
	struct file *f;

	pthread_mutex_lock(&fab.lock);
	for (f = fab.files; f; f = f->next)
		if (f->port == peer &&
		    write(f->pipe[1], event, sizeof(*event)) < 0)
			abort();
	pthread_mutex_unlock(&fab.lock);
}

uint32_t fake_queue_id(uint32_t queue)
{
	return queue - 100;
}

void fake_gone(unsigned int peer, bool is_gone)
{
	struct fake_object *o;
	struct file *f;

	pthread_mutex_lock(&fab.lock);
	fab.port[peer].gone = is_gone;
	for (o = fab.objects; is_gone && o; o = o->next)
		if (o->type == FAKE_QUEUE && o->file->port == peer)
			fakedev_end(o, FABREX_QUEUE_DEAD, FABREX_QERR_RESET);
	for (f = fab.files; is_gone && f; f = f->next) {
		if (f->port != peer || f->pipe[1] < 0)
			continue;
		close(f->pipe[1]);
		f->pipe[1] = -1;
	}
	pthread_mutex_unlock(&fab.lock);
}

void fake_end_queues(unsigned int peer)
{
	struct fake_object *o;

	pthread_mutex_lock(&fab.lock);
	for (o = fab.objects; o; o = o->next)
		if (o->type == FAKE_QUEUE && o->file->port == peer)
			fakedev_end(o, FABREX_QUEUE_ERROR, FABREX_QERR_RESET);
	pthread_mutex_unlock(&fab.lock);
}

void fake_bad_rings(void)
{
	fab.bad_rings = true;
}

void fake_unwatched(bool on)
{
	fab.unwatched = on;
}

void fake_host_unwatched(bool on)
{
	fab.host_unwatched = on;
}

void fake_changed(const void *addr, size_t length)
{
	const char *from = addr;
	struct fake_object *o;

	pthread_mutex_lock(&fab.lock);
	for (o = fab.objects; o; o = o->next)
		if (o->type == FAKE_MR && o->watched && !o->mapped &&
		    from < (char *)o->addr + o->length &&
		    (char *)o->addr < from + length)
			__atomic_add_fetch(&o->file->counters[o->watch], 1,
					   __ATOMIC_RELEASE);
	pthread_mutex_unlock(&fab.lock);
}

void fake_mr_errors(unsigned int n, int err)
{
	pthread_mutex_lock(&fab.lock);
	fab.mr_failures = n;
	fab.mr_error = err;
	pthread_mutex_unlock(&fab.lock);
}

void fake_mr_revoked(bool on)
{
	fab.mr_revoked = on;
}

void fake_mr_quota(unsigned int n, unsigned int us)
{
	pthread_mutex_lock(&fab.lock);
	fab.quota = n;
	fab.end_delay_us = us;
	pthread_mutex_unlock(&fab.lock);
}

void fake_mr_gate(bool shut)
{
	pthread_mutex_lock(&fab.lock);
	fab.gate_shut = shut;
	pthread_cond_broadcast(&fab.gate);
	pthread_mutex_unlock(&fab.lock);
}

void fake_mr_await(unsigned int n)
{
	pthread_mutex_lock(&fab.lock);
	while (fab.at_gate < n)
		pthread_cond_wait(&fab.gate, &fab.lock);
	pthread_mutex_unlock(&fab.lock);
}

void fake_mr_delay(unsigned int us)
{
	fab.mr_delay_us = us;
}

unsigned int fake_registrations(void)
{
	return fab.registrations;
}

bool fake_mr_pinned(uint64_t id)
{
	struct fake_object *o;
	bool pinned = false;

	pthread_mutex_lock(&fab.lock);
	for (o = fab.objects; o; o = o->next)
		if (o->id == id)
			pinned = o->pinned;
	pthread_mutex_unlock(&fab.lock);
	return pinned;
}

unsigned int fake_objects(void)
{
	return fab.nobjects;
}
