// SPDX-License-Identifier: GPL-2.0-only
/* Objects of the character device: ports, regions, queues, for tests. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"

/* The harness leaves a failed test with _exit(): do not lose what it said. */
__attribute__((constructor)) static void line_buffered(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* A port that came back has another number as long as old files are open. */
const char *raw_path(void)
{
	const char *path = getenv("FABREX_DEV");
	static char found[64];

	for (int n = 0; !path && n < 16; n++) {
		snprintf(found, sizeof(found), "/sys/class/fabrex/fabrex%d", n);
		if (access(found, F_OK))
			continue;
		snprintf(found, sizeof(found), "/dev/fabrex%d", n);
		return found;
	}
	return path ? path : "/dev/fabrex0";
}

int raw_open(void)
{
	return open(raw_path(), O_RDWR | O_CLOEXEC);
}

int raw_ioctl(int fd, unsigned int cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

int raw_query(int fd, struct fabrex_port_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	return raw_ioctl(fd, FABREX_IOCTL_PORT_QUERY, query);
}

int raw_peer(int fd, const char *name, struct fabrex_peer_query *peer)
{
	memset(peer, 0, sizeof(*peer));
	peer->size = sizeof(*peer);
	peer->flags = FABREX_PEER_BY_NAME;
	strncpy((char *)peer->name, name, sizeof(peer->name) - 1);
	return raw_ioctl(fd, FABREX_IOCTL_PEER_QUERY, peer);
}

int raw_destroy(int fd, uint32_t id)
{
	struct fabrex_destroy arg = { .size = sizeof(arg), .id = id };

	return raw_ioctl(fd, FABREX_IOCTL_DESTROY, &arg);
}

int raw_counters(int fd, uint32_t id, struct fabrex_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	counters->size = sizeof(*counters);
	counters->id = id;
	return raw_ioctl(fd, FABREX_IOCTL_COUNTERS, counters);
}

int raw_resolve(int fd, uint32_t peer, uint64_t service,
		struct fabrex_resolve *out)
{
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->peer = peer;
	out->service = service;
	return raw_ioctl(fd, FABREX_IOCTL_RESOLVE, out);
}

static size_t whole_pages(size_t length)
{
	return (length + RAW_PAGE - 1) / RAW_PAGE * RAW_PAGE;
}

void *raw_pages(size_t length)
{
	void *p = mmap(NULL, whole_pages(length), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int raw_mr_for(int fd, void *addr, size_t length, uint32_t access,
	       const uint64_t peers[4], struct raw_mr *mr)
{
	struct fabrex_mr_register arg = {
		.size = sizeof(arg),
		.addr = (uintptr_t)addr,
		.length = length,
		.access = access,
	};
	int err;

	if (peers) {
		arg.flags = FABREX_MR_PEERS;
		arg.peers = (uintptr_t)peers;
		arg.npeers = 4;
	}
	err = raw_ioctl(fd, FABREX_IOCTL_MR_REGISTER, &arg);
	if (err)
		return err;
	*mr = (struct raw_mr){ .fd = fd, .id = arg.out_id, .key = arg.out_key,
			       .addr = addr, .length = length };
	return 0;
}

int raw_mr_at(int fd, void *addr, size_t length, uint32_t access,
	      struct raw_mr *mr)
{
	return raw_mr_for(fd, addr, length, access, NULL, mr);
}

int raw_mr(int fd, size_t length, uint32_t access, struct raw_mr *mr)
{
	void *p = raw_pages(length);
	int err;

	if (!p)
		return -ENOMEM;
	err = raw_mr_at(fd, p, length, access, mr);
	if (err)
		munmap(p, whole_pages(length));
	return err;
}

int raw_mr_free(struct raw_mr *mr)
{
	int err = raw_destroy(mr->fd, mr->id);

	munmap(mr->addr, whole_pages(mr->length));
	return err;
}

int raw_queue_create(int fd, struct raw_queue *queue)
{
	struct fabrex_queue_create *info = &queue->info;
	int err;

	info->size = sizeof(*info);
	err = raw_ioctl(fd, FABREX_IOCTL_QUEUE_CREATE, info);
	if (err)
		return err;
	queue->fd = fd;
	queue->ring = mmap(NULL, info->out_ring_size, PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, info->out_ring_mmap);
	queue->db = mmap(NULL, RAW_PAGE, PROT_WRITE, MAP_SHARED, fd,
			 info->out_db_mmap);
	if (queue->ring == MAP_FAILED || queue->db == MAP_FAILED) {
		err = -errno;
		raw_destroy(fd, info->out_id);
		return err;
	}
	queue->ctrl = (void *)(queue->ring + info->out_ctrl_offset);
	queue->sq = (void *)(queue->ring + info->out_sq_offset);
	queue->cq = (void *)(queue->ring + info->out_cq_offset);
	queue->rq = info->rq_entries ? queue->ring + info->out_rq_offset : NULL;
	queue->sq_tail = 0;
	queue->cq_head = 0;
	queue->rq_head = 0;
	return 0;
}

int raw_queue(int fd, uint32_t sq, uint32_t cq, uint32_t rq,
	      struct raw_queue *queue)
{
	memset(queue, 0, sizeof(*queue));
	queue->info.sq_entries = sq;
	queue->info.cq_entries = cq;
	queue->info.rq_entries = rq;
	queue->info.cell_size = rq ? 256 : 0;
	queue->info.eventfd = -1;
	return raw_queue_create(fd, queue);
}

int raw_queue_free(struct raw_queue *queue)
{
	int err = raw_destroy(queue->fd, queue->info.out_id);

	munmap(queue->ring, queue->info.out_ring_size);
	munmap((void *)queue->db, RAW_PAGE);
	return err;
}
