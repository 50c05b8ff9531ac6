// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transport over /dev/fabrex<N>: ioctls, mmaps, and what their errors mean.
 * Called only through fxi_transport_kernel.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <linux/fabrex.h>

#include "base/cancel.h"
#include "base/error.h"
#include "transport/ring/ring.h"
#include "transport/transport.h"

#define MAX_PORTS	256

struct transport {
	int fd;
	char path[64];
	void *watch;			/* counters, or NULL */
	size_t watch_length;
	uint32_t page_size;		/* once queried */
};

static int kernel_ioctl(struct transport *t, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = ioctl(t->fd, request, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

/* Causes that every call has in common; @what names the object. */
static int common_error(struct transport *t, int err, const char *what)
{
	switch (err) {
	case ENODEV:
		return fxi_error(err, "%s: %s: the port is gone; close it and open it again when it is back",
				 t->path, what);
	case ENOTTY:
	case E2BIG:
		return fxi_error(err, "%s: %s: this kernel module is older than the library; update it",
				 t->path, what);
	case EOPNOTSUPP:
		return fxi_error(err, "%s: %s: this port cannot do that",
				 t->path, what);
	case EDQUOT:
		return fxi_error(err, "%s: %s: the quota of the user or of the cgroup is used up; destroy some objects or have the quota raised",
				 t->path, what);
	case ETIMEDOUT:
	case EIO:
		return fxi_error(err, "%s: %s: the switch did not answer as it should; see the kernel log",
				 t->path, what);
	}
	return fxi_error(err, "%s: %s: %s", t->path, what, fxi_errno_str(err));
}

/* ---- opening ----------------------------------------------------------- */

static int open_error(int err, const char *path)
{
	switch (err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return fxi_error(err, "%s: there is no such fabric port; is the module fabrex_draco loaded and the card present?",
				 path);
	case EACCES:
	case EPERM:
		return fxi_error(err, "%s: permission denied; join the device's group (usually fabrex) and log in again",
				 path);
	case EDQUOT:
		return fxi_error(err, "%s: the cgroup has as many open files as its rdma.max allows; close some or have it raised",
				 path);
	}
	return fxi_error(err, "%s: %s", path, fxi_errno_str(err));
}

static int kernel_open_path(const char *path, struct transport **out)
{
	struct transport *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return fxi_error(ENOMEM, "%s: out of memory", path);
	snprintf(t->path, sizeof(t->path), "%s", path);
	t->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (t->fd >= 0) {
		*out = t;
		return 0;
	}
	err = errno;
	free(t);
	return open_error(err, path);
}

/* In the child of a fork: it has not got the counters' mapping. */
static void kernel_release(struct transport *t)
{
	close(t->fd);
	free(t);
}

static void kernel_close(struct transport *t)
{
	if (t->watch)
		munmap(t->watch, t->watch_length);
	kernel_release(t);
}

static int port_query(struct transport *t, struct fabrex_port_query *q)
{
	int ret;

	memset(q, 0, sizeof(*q));
	q->size = sizeof(*q);
	ret = kernel_ioctl(t, FABREX_IOCTL_PORT_QUERY, q);
	return ret ? common_error(t, -ret, "query of the port") : 0;
}

static bool name_is(const __u8 *field, const char *name)
{
	return !strncmp((const char *)field, name, FABREX_NAME_LEN);
}

static int number_of(const struct dirent *entry)
{
	unsigned int n;
	char end;

	if (sscanf(entry->d_name, "fabrex%u%c", &n, &end) != 1 ||
	    n >= MAX_PORTS)
		return -1;
	return (int)n;
}

/* Marks the numbers N for which there is a /dev/fabrexN. */
static void find_ports(bool present[MAX_PORTS])
{
	DIR *dir = opendir("/dev");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (number_of(entry) >= 0)
			present[number_of(entry)] = true;
	if (dir)
		closedir(dir);
}

/* True if @t is the port wanted; NULL wants any. */
static bool matches(struct transport *t, const char *name)
{
	struct fabrex_port_query q;

	if (!name)
		return true;
	return !port_query(t, &q) &&
	       (name_is(q.out_name, name) || name_is(q.out_host, name));
}

/* First device that opens and whose port or host has the name. */
static int kernel_open_search(const char *name, struct transport **out)
{
	bool present[MAX_PORTS] = { false };
	int i, ret = -ENOENT;
	char path[32];

	find_ports(present);
	for (i = 0; i < MAX_PORTS; i++) {
		if (!present[i])
			continue;
		snprintf(path, sizeof(path), "/dev/fabrex%d", i);
		ret = kernel_open_path(path, out);
		if (ret)
			continue;
		if (matches(*out, name))
			return 0;
		kernel_close(*out);
		ret = -ENOENT;
	}
	if (ret != -ENOENT)
		return ret;
	if (!name)
		return open_error(ENOENT, "/dev/fabrex0");
	return fxi_error(ENOENT, "no fabric port of this machine is called \"%s\"; see fabrexctl list, or name a device such as /dev/fabrex0",
			 name);
}

static int kernel_open(const char *name, struct transport **out)
{
	char path[64];

	if (name && *name == '/')
		return kernel_open_path(name, out);
	if (name && !strncmp(name, "fabrex", 6) && name[6] >= '0' &&
	    name[6] <= '9') {
		snprintf(path, sizeof(path), "/dev/%s", name);
		return kernel_open_path(path, out);
	}
	return kernel_open_search(name, out);
}

static void copy_name(char *to, const __u8 *from)
{
	memcpy(to, from, FABREX_NAME_LEN);
	to[FABREX_NAME_LEN - 1] = 0;
}

static int kernel_query(struct transport *t, struct fabrex_port_attr *attr)
{
	struct fabrex_port_query q;
	int ret = port_query(t, &q);

	if (ret)
		return ret;
	attr->peer = q.out_peer;
	attr->max_peers = q.out_max_peers;
	attr->generation = q.out_generation;
	attr->link_up = !!(q.out_flags & FABREX_PORT_LINK_UP);
	attr->emulated = !!(q.out_flags & FABREX_PORT_EMULATED);
	attr->max_queues = q.out_max_queues;
	attr->max_mrs = q.out_max_mrs;
	attr->max_sq = q.out_max_sq;
	attr->max_cq = q.out_max_cq;
	attr->max_rq = q.out_max_rq;
	attr->max_cell = q.out_max_cell;
	attr->page_size = q.out_page_size;
	t->page_size = q.out_page_size;
	attr->window_slot_size = q.out_window_slot_size;
	attr->max_transfer = q.out_max_transfer;
	copy_name(attr->name, q.out_name);
	copy_name(attr->host, q.out_host);
	copy_name(attr->fabric, q.out_fabric);
	copy_name(attr->driver, q.out_driver);
	if (!attr->page_size || attr->page_size & (attr->page_size - 1))
		return fxi_error(EPROTO, "%s: page size %u is not a power of two; update the kernel module",
				 t->path, attr->page_size);
	return 0;
}

static int peer_error(struct transport *t, int err, const char *name,
		      uint32_t number)
{
	char what[64];

	if (name)
		snprintf(what, sizeof(what), "peer \"%s\"", name);
	else
		snprintf(what, sizeof(what), "peer %u", number);
	if (err == ENOENT)
		return fxi_error(err, "%s: %s: not known in this fabric; see fabrexctl list",
				 t->path, what);
	return common_error(t, err, what);
}

static int kernel_peer(struct transport *t, const char *name, uint32_t number,
		       bool next, struct fabrex_peer *peer)
{
	struct fabrex_peer_query q = { .size = sizeof(q), .peer = number };
	int ret;

	if (name) {
		q.flags = FABREX_PEER_BY_NAME;
		strncpy((char *)q.name, name, sizeof(q.name) - 1);
	} else if (next) {
		q.flags = FABREX_PEER_NEXT;
	}
	ret = kernel_ioctl(t, FABREX_IOCTL_PEER_QUERY, &q);
	if (ret)
		return peer_error(t, -ret, name, number);
	peer->peer = q.out_peer;
	peer->up = q.out_state == FABREX_PEER_UP;
	peer->generation = q.out_generation;
	copy_name(peer->name, q.out_name);
	copy_name(peer->host, q.out_host);
	return 0;
}

/* ---- regions ----------------------------------------------------------- */

static int mr_nomem(struct transport *t, const char *what)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return fxi_error(ENOMEM, "%s: %s: not enough memory to pin it",
				 t->path, what);
	return fxi_error(ENOMEM, "%s: %s: more than memory or RLIMIT_MEMLOCK (%llu bytes for all that the user has pinned) lets this process pin; raise it (ulimit -l)",
			 t->path, what, (unsigned long long)limit.rlim_cur);
}

/* What the kernel or the exporter has against a dma-buf. */
static int dmabuf_error(struct transport *t, int err,
			const struct transport_mr *mr)
{
	char what[96];

	snprintf(what, sizeof(what), "region of %llu bytes at %llu of a dma-buf",
		 (unsigned long long)mr->length,
		 (unsigned long long)mr->offset);
	switch (err) {
	case EBADF:
		return fxi_error(err, "%s: %s: file descriptor %d is not open; pass an open dma-buf",
				 t->path, what, mr->fd);
	case EACCES:
		return fxi_error(err, "%s: %s: the rights ask for writing, but the dma-buf was exported for reading only; export it for both",
				 t->path, what);
	case EINVAL:
		return fxi_error(err, "%s: %s: file descriptor %d is no dma-buf, the range is not inside it, or this kernel module takes none; check offset and length, update the module",
				 t->path, what, mr->fd);
	case EOPNOTSUPP:
		return fxi_error(err, "%s: %s: according to its exporter the port cannot reach it; see the kernel log and fabrexctl p2p",
				 t->path, what);
	case ENOMEM:
		return fxi_error(err, "%s: %s: no memory left, or pinning it would exceed the user's RLIMIT_MEMLOCK; raise it (ulimit -l), or let it move (FABREX_MR_MAY_MOVE)",
				 t->path, what);
	case ENOSPC:
		return fxi_error(err, "%s: %s: the port has no region left; deregister some",
				 t->path, what);
	case ENODEV:
		return fxi_error(err, "%s: %s: the port or the device whose memory it is has gone; see the kernel log, make both anew",
				 t->path, what);
	case ENOTTY:
	case E2BIG:
	case EDQUOT:
		return common_error(t, err, what);
	}
	return fxi_error(err, "%s: %s: its exporter refuses: %s; see the kernel log",
			 t->path, what, fxi_errno_str(err));
}

static int mr_error(struct transport *t, int err,
		    const struct transport_mr *mr)
{
	char what[80];

	if (mr->dmabuf)
		return dmabuf_error(t, err, mr);
	snprintf(what, sizeof(what), "region of %llu bytes at %p",
		 (unsigned long long)mr->length, mr->addr);
	switch (err) {
	case EFAULT:
		return fxi_error(err, "%s: %s: not mapped, or not writable although the rights ask for it",
				 t->path, what);
	case ENOMEM:
		return mr_nomem(t, what);
	case ENOSPC:
		return fxi_error(err, "%s: %s: the port has no region left; deregister some",
				 t->path, what);
	}
	return common_error(t, err, what);
}

static uint32_t mr_flags(const struct transport_mr *params)
{
	return (params->peers ? FABREX_MR_PEERS : 0) |
	       (params->dmabuf ? FABREX_MR_DMABUF : 0) |
	       (params->dmabuf && params->pin ? FABREX_MR_PIN : 0) |
	       (params->watched ? FABREX_MR_WATCH : 0);
}

/* Words in use. What no fabric can have is left out. */
static uint32_t peer_words(const struct transport_mr *params, uint64_t *words)
{
	uint32_t n = 0, word;
	size_t i;

	memset(words, 0, FABREX_PEER_WORDS_MAX * sizeof(*words));
	for (i = 0; i < params->npeers; i++) {
		word = params->peers[i] / 64;
		if (word >= FABREX_PEER_WORDS_MAX)
			continue;
		words[word] |= 1ull << params->peers[i] % 64;
		if (n <= word)
			n = word + 1;
	}
	return n;
}

static int kernel_mr_register(struct transport *t,
			      const struct transport_mr *params, uint64_t *key,
			      uint64_t *id)
{
	struct fabrex_mr_register r = {
		.size = sizeof(r),
		.flags = mr_flags(params),
		.addr = params->dmabuf ? params->offset :
					 (uintptr_t)params->addr,
		.length = params->length,
		.access = params->access,
		.fd = params->dmabuf ? params->fd : 0,
		.watch = params->watched ? params->watch : 0,
	};
	uint64_t peers[FABREX_PEER_WORDS_MAX];
	int ret;

	if (params->peers) {
		r.peers = (uintptr_t)peers;
		r.npeers = peer_words(params, peers);
	}
	ret = kernel_ioctl(t, FABREX_IOCTL_MR_REGISTER, &r);
	if (ret)
		return mr_error(t, -ret, params);
	*key = r.out_key;
	*id = r.out_id;
	return 0;
}

static int kernel_destroy(struct transport *t, uint64_t id)
{
	struct fabrex_destroy d = { .size = sizeof(d), .id = (uint32_t)id };
	int ret = kernel_ioctl(t, FABREX_IOCTL_DESTROY, &d);
	char what[32];

	if (!ret)
		return 0;
	snprintf(what, sizeof(what), "object %u", d.id);
	return common_error(t, -ret, what);
}

/* ---- queues ------------------------------------------------------------ */

static int queue_error(struct transport *t, int err, uint64_t service)
{
	switch (err) {
	case EADDRINUSE:
		return fxi_error(err, "%s: queue: service %llu is used by another queue of this port; use another number or destroy that queue",
				 t->path, (unsigned long long)service);
	case EACCES:
	case EPERM:
		return fxi_error(err, "%s: queue: service %llu needs CAP_NET_BIND_SERVICE; use 1024 or more",
				 t->path, (unsigned long long)service);
	case ENOSPC:
		return fxi_error(err, "%s: queue: the port has none left; destroy some",
				 t->path);
	}
	return common_error(t, err, "queue");
}

/* Shared with the device; not for children, who would post into it too. */
static void *map_shared(struct transport *t, uint64_t offset, uint64_t length,
			int prot)
{
	void *p;

	if (length > SIZE_MAX) {
		errno = EOVERFLOW;
		return NULL;
	}
	p = mmap(NULL, (size_t)length, prot, MAP_SHARED, t->fd, (off_t)offset);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, (size_t)length, MADV_DONTFORK);
	return p;
}

static int watch_error(struct transport *t, int err)
{
	/* Unknown to this module: nothing to complain about. */
	if (err == ENOTTY || err == EOPNOTSUPP)
		return fxi_error_static(EOPNOTSUPP, "this port does not count changes of regions; update the kernel module");
	return common_error(t, err, "watch page");
}

static int kernel_watch(struct transport *t, uint32_t entries,
			const uint32_t **counters)
{
	struct fabrex_watch w = { .size = sizeof(w), .entries = entries };
	int ret = kernel_ioctl(t, FABREX_IOCTL_WATCH, &w);

	if (ret)
		return watch_error(t, -ret);
	if (w.out_length < (uint64_t)entries * sizeof(**counters))
		return common_error(t, EPROTO, "watch page");
	t->watch = map_shared(t, w.out_mmap, w.out_length, PROT_READ);
	if (!t->watch)
		return common_error(t, errno, "mapping of the watch page");
	t->watch_length = (size_t)w.out_length;
	*counters = t->watch;
	return 0;
}

static int map_rings(struct transport *t, const struct fabrex_queue_create *c,
		     struct ring_memory *m)
{
	int err;

	m->ring_size = (size_t)c->out_ring_size;
	m->ring = map_shared(t, c->out_ring_mmap, c->out_ring_size,
			     PROT_READ | PROT_WRITE);
	if (!m->ring)
		return -errno;
	m->doorbell = map_shared(t, c->out_db_mmap, t->page_size,
				 PROT_READ | PROT_WRITE);
	if (m->doorbell)
		return 0;
	err = errno;
	munmap(m->ring, m->ring_size);
	return -err;
}

static void unmap_rings(struct transport *t, const struct ring_memory *m)
{
	munmap(m->ring, m->ring_size);
	munmap(m->doorbell, t->page_size);
}

static int kernel_queue_create(struct transport *t,
			       const struct fabrex_queue_attr *attr,
			       struct fabrex_queue *q, uint64_t *id)
{
	struct fabrex_queue_create c = {
		.size = sizeof(c),
		.sq_entries = attr->sq_entries,
		.cq_entries = attr->cq_entries,
		.rq_entries = attr->rq_entries,
		.cell_size = attr->cell_size,
		.eventfd = q->efd,
		.service = attr->service,
	};
	struct ring_memory memory;
	int ret;

	ret = kernel_ioctl(t, FABREX_IOCTL_QUEUE_CREATE, &c);
	if (ret)
		return queue_error(t, -ret, attr->service);
	memory.ctrl_offset = c.out_ctrl_offset;
	memory.sq_offset = c.out_sq_offset;
	memory.cq_offset = c.out_cq_offset;
	memory.rq_offset = attr->rq_entries ? c.out_rq_offset : 0;
	ret = map_rings(t, &c, &memory);
	if (ret) {
		kernel_destroy(t, c.out_id);
		return common_error(t, -ret, "mapping of a queue's rings");
	}
	*id = c.out_id;
	q->number = c.out_queue;
	q->key = c.out_key;
	ret = fxi_ring_init(q, attr, &memory);
	if (ret) {
		kernel_destroy(t, c.out_id);
		unmap_rings(t, &memory);
	}
	return ret;
}

static void kernel_queue_free(struct transport *t, struct fabrex_queue *q,
			      bool unmap)
{
	if (unmap)
		unmap_rings(t, &ring_queue_of(q)->memory);
	fxi_ring_free(q);
}

static int kernel_resolve(struct transport *t, uint32_t peer,
			  uint64_t service, uint32_t *number, uint64_t *key)
{
	struct fabrex_resolve r = {
		.size = sizeof(r), .peer = peer, .service = service,
	};
	int ret = kernel_ioctl(t, FABREX_IOCTL_RESOLVE, &r);
	char what[64];

	snprintf(what, sizeof(what), "service %llu at peer %u",
		 (unsigned long long)service, peer);
	switch (-ret) {
	case 0:
		*number = r.out_queue;
		*key = r.out_key;
		return 0;
	case ENOENT:
		return fxi_error(ENOENT, "%s: %s: nobody offers it there; start the server first",
				 t->path, what);
	case EHOSTUNREACH:
		return fxi_error(EHOSTUNREACH, "%s: %s: the peer is down; see fabrexctl list",
				 t->path, what);
	}
	return common_error(t, -ret, what);
}

/* ---- windows ----------------------------------------------------------- */

static int window_error(struct transport *t, int err,
			const struct fabrex_remote *remote)
{
	char what[48];

	snprintf(what, sizeof(what), "window to peer %u", remote->peer);
	switch (err) {
	case EACCES:
		return fxi_error(err, "%s: %s: the peer refuses key, rights or range; ask its owner for a current key",
				 t->path, what);
	case EHOSTUNREACH:
		return fxi_error(err, "%s: %s: the peer is down; see fabrexctl list",
				 t->path, what);
	case ENOSPC:
		return fxi_error(err, "%s: %s: no room in the aperture; unmap some windows or map less",
				 t->path, what);
	case EAGAIN:
		return fxi_error(err, "%s: %s: too many wrong keys were used through this port; try again in a moment",
				 t->path, what);
	}
	return common_error(t, err, what);
}

static int window_prot(uint32_t access)
{
	return (access & FABREX_MR_REMOTE_READ ? PROT_READ : 0) |
	       (access & FABREX_MR_REMOTE_WRITE ? PROT_WRITE : 0);
}

static int kernel_window_create(struct transport *t,
				const struct fabrex_remote *remote,
				uint64_t offset, uint64_t length,
				uint32_t access, struct transport_window *w)
{
	struct fabrex_window_create c = {
		.size = sizeof(c),
		.peer = remote->peer,
		.access = access,
		.rkey = remote->rkey,
		.offset = offset,
		.length = length,
	};
	int ret;

	ret = kernel_ioctl(t, FABREX_IOCTL_WINDOW_CREATE, &c);
	if (ret)
		return window_error(t, -ret, remote);
	w->id = c.out_id;
	w->length = (size_t)c.out_length;
	w->addr = map_shared(t, c.out_mmap, c.out_length, window_prot(access));
	if (w->addr)
		return 0;
	ret = errno;
	kernel_destroy(t, c.out_id);
	return common_error(t, ret, "mapping of a window");
}

static void kernel_window_unmap(struct transport *t,
				struct transport_window *w)
{
	(void)t;
	munmap(w->addr, w->length);
}

/* ---- counters and events ----------------------------------------------- */

static int kernel_counters(struct transport *t, uint64_t id,
			   struct fabrex_stats *stats)
{
	struct fabrex_counters c = { .size = sizeof(c), .id = (uint32_t)id };
	int ret = kernel_ioctl(t, FABREX_IOCTL_COUNTERS, &c);

	if (ret)
		return common_error(t, -ret, "counters");
	stats->tx_bytes = c.out_tx_bytes;
	stats->rx_bytes = c.out_rx_bytes;
	stats->tx_ops = c.out_tx_ops;
	stats->rx_ops = c.out_rx_ops;
	stats->errors = c.out_errors;
	stats->p2p_bytes = c.out_p2p_bytes;
	stats->host_bytes = c.out_host_bytes;
	stats->window_reads = c.out_window_reads;
	stats->window_writes = c.out_window_writes;
	stats->doorbells = c.out_doorbells;
	stats->link_downs = c.out_link_downs;
	stats->crc_errors = c.out_crc_errors;
	stats->interrupts = c.out_interrupts;
	return 0;
}

static int kernel_event_fd(struct transport *t)
{
	return t->fd;
}

static int kernel_event_read(struct transport *t,
			     struct transport_event *event)
{
	NO_CANCEL();
	struct fabrex_event e = { 0 };
	ssize_t n = read(t->fd, &e, sizeof(e));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return fxi_error_static(EAGAIN, "no event");
	if (n < 0)
		return common_error(t, errno, "reading events");
	if (n < (ssize_t)FABREX_EVENT_SIZE_MIN)
		return common_error(t, ENODEV, "reading events");
	event->type = e.type;
	event->peer = e.peer;
	event->generation = e.generation;
	event->error = e.error;
	event->id = e.id;
	event->time_ns = e.time_ns;
	return 0;
}

const struct transport_ops fxi_transport_kernel = {
	.name = "kernel",
	.open = kernel_open,
	.close = kernel_close,
	.release = kernel_release,
	.query = kernel_query,
	.peer = kernel_peer,
	.mr_register = kernel_mr_register,
	.watch = kernel_watch,
	.queue_size = sizeof(struct ring_queue),
	.queue_create = kernel_queue_create,
	.queue_free = kernel_queue_free,
	.window_create = kernel_window_create,
	.window_unmap = kernel_window_unmap,
	.destroy = kernel_destroy,
	.resolve = kernel_resolve,
	.counters = kernel_counters,
	.event_fd = kernel_event_fd,
	.event_read = kernel_event_read,
};

/* The library's numbers are the kernel's. */
_Static_assert(FABREX_MR_LOCAL_WRITE == FABREX_ACCESS_LOCAL_WRITE &&
	       FABREX_MR_REMOTE_READ == FABREX_ACCESS_REMOTE_READ &&
	       FABREX_MR_REMOTE_WRITE == FABREX_ACCESS_REMOTE_WRITE &&
	       FABREX_MR_REMOTE_ATOMIC == FABREX_ACCESS_REMOTE_ATOMIC,
	       "access rights");
_Static_assert((int)FABREX_EV_LINK_UP == FABREX_EVENT_LINK_UP &&
	       (int)FABREX_EV_LINK_DOWN == FABREX_EVENT_LINK_DOWN &&
	       (int)FABREX_EV_PEER_UP == FABREX_EVENT_PEER_UP &&
	       (int)FABREX_EV_PEER_DOWN == FABREX_EVENT_PEER_DOWN &&
	       (int)FABREX_EV_QUEUE_ERROR == FABREX_EVENT_QUEUE_ERROR &&
	       (int)FABREX_EV_WINDOW_FAULT == FABREX_EVENT_WINDOW_FAULT &&
	       (int)FABREX_EV_GONE == FABREX_EVENT_GONE &&
	       (int)FABREX_EV_LOST == FABREX_EVENT_LOST &&
	       (int)FABREX_EV_MR_REVOKED == FABREX_EVENT_MR_REVOKED,
	       "event types");
