// SPDX-License-Identifier: GPL-2.0-only
/*
 * Modelled GPUs by /dev/dgpu<N>, opened once for each process, and files in
 * memory that stand in for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../gpu/dgpu.h"
#include "store.h"

static int devices[GPU_MAX];		/* descriptors of /dev/dgpu* */
static int ndevices;			/* 0: none */
static int nfiles;			/* GPUs that are not there */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void add(long number)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/dgpu%ld", number);
	devices[ndevices] = open(path, O_RDWR | O_CLOEXEC);
	if (devices[ndevices] >= 0)
		ndevices++;
}

/* As the real ones: only these, in that order. NULL: all. */
static const char *visible(void)
{
	const char *list = getenv("HIP_VISIBLE_DEVICES");

	return list ? list : getenv("CUDA_VISIBLE_DEVICES");
}

static void look(void)
{
	const char *n = getenv("FABREX_TEST_GPUS"), *list = visible();
	char *end;
	int i;

	if (n) {
		nfiles = atoi(n) > GPU_MAX ? GPU_MAX : atoi(n);
		return;
	}
	for (i = 0; !list && i < GPU_MAX; i++)
		add(i);
	for (; list && *list && ndevices < GPU_MAX; list = end + (*end == ',')) {
		add(strtol(list, &end, 10));
		if (end == list)
			break;
	}
}

int gpu_count(void)
{
	pthread_once(&once, look);
	return ndevices ? ndevices : nfiles;
}

bool gpu_address(int gpu, struct gpu_address *address)
{
	struct dgpu_info info = { .size = sizeof(info) };

	if (gpu < 0 || gpu >= gpu_count())
		return false;
	if (!ndevices) {
		*address = (struct gpu_address){ .bus = 0xa0u + (unsigned)gpu };
		return true;
	}
	if (ioctl(devices[gpu], DGPU_IOCTL_INFO, &info))
		return false;
	address->domain = info.out_domain;
	address->bus = info.out_devfn >> 8;
	address->device = info.out_devfn >> 3 & 0x1f;
	address->function = info.out_devfn & 7;
	return true;
}

static bool is_host(const struct gpu_memory *m)
{
	return m->kind == GPU_PINNED || m->kind == GPU_MANAGED;
}

static bool map_view(struct gpu_memory *m, int fd, off_t offset)
{
	m->view = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       offset);
	return m->view != MAP_FAILED;
}

static bool open_file(struct gpu_memory *m)
{
	m->fd = memfd_create("test-gpu", MFD_CLOEXEC);
	if (m->fd >= 0 && !ftruncate(m->fd, (off_t)m->size) &&
	    map_view(m, m->fd, 0))
		return true;
	if (m->fd >= 0)
		close(m->fd);
	return false;
}

static bool open_vram(struct gpu_memory *m)
{
	struct dgpu_alloc a = { .size = sizeof(a), .length = m->size };
	struct dgpu_handle f = { .size = sizeof(f) };

	if (ioctl(devices[m->device], DGPU_IOCTL_ALLOC, &a))
		return false;
	m->handle = a.out_handle;
	if (map_view(m, devices[m->device], (off_t)a.out_mmap))
		return true;
	f.handle = a.out_handle;
	ioctl(devices[m->device], DGPU_IOCTL_FREE, &f);
	return false;
}

bool store_open(struct gpu_memory *m)
{
	if (m->device < 0 || m->device >= gpu_count()) {
		errno = ENODEV;
		return false;
	}
	return ndevices && !is_host(m) ? open_vram(m) : open_file(m);
}

/* The open file whose handles those of the memory are. */
static int node_of(const struct gpu_memory *m)
{
	return m->node >= 0 ? m->node : devices[m->device];
}

void store_close(struct gpu_memory *m)
{
	struct dgpu_handle f = { .size = sizeof(f), .handle = m->handle };

	munmap(m->view, m->size);
	if (m->fd >= 0)
		close(m->fd);
	else
		ioctl(node_of(m), DGPU_IOCTL_FREE, &f);
	if (m->node >= 0)
		close(m->node);
}

bool store_move(const struct gpu_memory *m, bool to_host)
{
	const struct dgpu_move move = {
		.size = sizeof(move), .handle = m->handle,
		.place = to_host ? DGPU_PLACE_SYSTEM : DGPU_PLACE_VRAM,
	};

	return !ioctl(node_of(m), DGPU_IOCTL_MOVE, &move);
}

/* ---- other processes --------------------------------------------------- */

uint32_t store_mesh(int gpu)
{
	struct dgpu_info info = { .size = sizeof(info) };

	if (!ndevices)
		return !getenv("FABREX_TEST_NO_MESH");
	return ioctl(devices[gpu], DGPU_IOCTL_INFO, &info) ? 0 : info.out_mesh;
}

static bool share_vram(const struct gpu_memory *m, struct store_name *name)
{
	struct dgpu_share s = { .size = sizeof(s), .handle = m->handle };
	struct dgpu_info info = { .size = sizeof(info) };

	if (ioctl(node_of(m), DGPU_IOCTL_SHARE, &s) ||
	    ioctl(node_of(m), DGPU_IOCTL_INFO, &info))
		return false;
	name->key = s.out_name;
	name->index = info.out_index;
	return true;
}

bool store_share(const struct gpu_memory *m, struct store_name *name)
{
	memset(name, 0, sizeof(*name));
	name->pid = getpid();
	name->fd = m->fd;
	name->mesh = store_mesh(m->device);
	if (m->fd < 0)
		return share_vram(m, name);
	name->key = (uint64_t)getpid() << 32 | (m->id & UINT32_MAX);
	return true;
}

/* The lock says that it is open here, and goes when the process does. */
static bool attach_file(struct gpu_memory *m, const struct store_name *name)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", name->pid, name->fd);
	m->fd = open(path, O_RDWR | O_CLOEXEC);
	if (m->fd < 0)
		return false;
	if (!fcntl(m->fd, F_OFD_SETLK, &lock) && map_view(m, m->fd, 0))
		return true;
	close(m->fd);
	return false;
}

static bool attach_vram(struct gpu_memory *m, const struct store_name *name)
{
	struct dgpu_open o = { .size = sizeof(o), .name = name->key };
	char path[32];

	snprintf(path, sizeof(path), "/dev/dgpu%u", name->index);
	m->node = open(path, O_RDWR | O_CLOEXEC);
	if (m->node < 0)
		return false;
	if (!ioctl(m->node, DGPU_IOCTL_OPEN, &o)) {
		m->handle = o.out_handle;
		if (map_view(m, m->node, (off_t)o.out_mmap))
			return true;
	}
	/* The handle goes with its file. */
	close(m->node);
	return false;
}

bool store_attach(struct gpu_memory *m, const struct store_name *name)
{
	m->fd = m->node = -1;
	m->key = name->key;
	return name->fd >= 0 ? attach_file(m, name) : attach_vram(m, name);
}

bool store_is_attached(const struct gpu_memory *m)
{
	struct dgpu_share s = { .size = sizeof(s), .handle = m->handle };
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (m->fd >= 0)
		return !fcntl(m->fd, F_OFD_GETLK, &lock) &&
		       lock.l_type != F_UNLCK;
	return m->handle && !ioctl(node_of(m), DGPU_IOCTL_SHARE, &s) &&
	       s.out_users > 1;
}

/* A description of its own: the position is not shared. */
static int export_file(const struct gpu_memory *m, size_t offset)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->fd);
	fd = open(path, O_RDWR);
	if (fd < 0)
		return -errno;
	lseek(fd, (off_t)offset, SEEK_SET);
	return fd;
}

/* As run times do, without close-on-exec: that is up to the caller. */
static int export_vram(const struct gpu_memory *m, size_t offset,
		       size_t length)
{
	struct dgpu_export e = {
		.size = sizeof(e), .handle = m->handle, .offset = offset,
		.length = length,
	};

	if (ioctl(devices[m->device], DGPU_IOCTL_EXPORT, &e))
		return -errno;
	fcntl(e.out_fd, F_SETFD, 0);
	return e.out_fd;
}

int gpu_export(const struct gpu_memory *m, size_t offset, size_t length)
{
	if (offset > m->size || length > m->size - offset)
		return -EINVAL;
	return m->fd >= 0 ? export_file(m, offset) :
			    export_vram(m, offset, length);
}

bool store_checksum(const struct gpu_memory *m, size_t offset, size_t length,
		    uint32_t *crc)
{
	struct dgpu_cmd cmd = {
		.op = DRACO_GPU_CRC32C, .src0 = m->handle,
		.src0_offset = offset, .length = length,
	};
	struct dgpu_submit job = {
		.size = sizeof(job), .cmds = (uintptr_t)&cmd, .count = 1,
	};

	if (ioctl(devices[m->device], DGPU_IOCTL_SUBMIT, &job))
		return false;
	*crc = (uint32_t)cmd.result;
	return true;
}

bool store_answers(const struct gpu_memory *m)
{
	uint32_t crc;

	/* Before its driver knows, the engine does not end its jobs. */
	return store_checksum(m, 0, 64, &crc) ||
	       (errno != ENODEV && errno != ETIMEDOUT && errno != EIO);
}

/* ---- peers ------------------------------------------------------------- */

bool store_joined(int gpu, int peer)
{
	uint32_t mesh = store_mesh(gpu);

	return gpu != peer && mesh && mesh == store_mesh(peer);
}

bool store_copy_peer(const struct gpu_memory *to, size_t to_offset,
		     const struct gpu_memory *from, size_t from_offset,
		     size_t length, bool write)
{
	const struct gpu_memory *own = write ? from : to;
	const struct gpu_memory *peer = write ? to : from;
	struct dgpu_peer arg = {
		.size = sizeof(arg),
		.flags = DGPU_PEER_UNORDERED | (write ? DGPU_PEER_WRITE : 0),
		.fd = node_of(peer), .handle = peer->handle,
		.own = own->handle, .length = length,
		.peer_offset = write ? to_offset : from_offset,
		.own_offset = write ? from_offset : to_offset,
	};

	return !ioctl(node_of(own), DGPU_IOCTL_PEER, &arg);
}
