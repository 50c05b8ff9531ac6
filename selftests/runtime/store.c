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

void store_close(struct gpu_memory *m)
{
	struct dgpu_handle f = { .size = sizeof(f), .handle = m->handle };

	munmap(m->view, m->size);
	if (m->fd >= 0)
		close(m->fd);
	else
		ioctl(devices[m->device], DGPU_IOCTL_FREE, &f);
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
