// SPDX-License-Identifier: GPL-2.0-only
/*
 * Never still: buffers of a GPU move and are revoked while others register
 * them, for a scenario that meanwhile resets and removes the port.
 *   gpu-churn FILE    until FILE exists; prints what was done, and what must
 *                     not have been
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

#define MIB	(1u << 20)
#define BUFS	3
#define MAKERS	4

static struct gpu gpu;
static struct gpu_buf buf[BUFS];
static atomic_int dmabuf[BUFS];
static const char *stop_file;

static atomic_long registered, refused, moved, revoked, reopened, strange;

static bool stop(void)
{
	return !access(stop_file, F_OK);
}

/* What the port says while it is reset, or after it has gone; or that memory
 * could not be registered in time, for the machine slept or the device hung.
 */
static bool gone(int err)
{
	return err == -ENODEV || err == -EIO || err == -ENOENT ||
	       err == -ENXIO || err == -EACCES || err == -ETIMEDOUT;
}

static int port_open(void)
{
	int fd = -1;

	while (!stop() && (fd = raw_open()) < 0)
		usleep(10000);
	atomic_fetch_add(&reopened, 1);
	return fd;
}

static int try_one(int fd, int fd_of, unsigned int n)
{
	uint64_t offset = (n * 4097) % (MIB / 2);
	struct raw_mr mr;
	int err = gpu_mr(fd, fd_of, offset, MIB / 2 - n % 5000, RAW_ALL,
			 n % 7 == 0 ? FABREX_MR_PIN : 0, 0, &mr);

	if (err)
		return err;
	atomic_fetch_add(&registered, 1);
	if (n % 3)	/* some are left to close() or to the port's end */
		return raw_destroy(fd, mr.id);
	return 0;
}

static void *maker(void *arg)
{
	unsigned int n = (uintptr_t)arg;
	int fd = port_open();

	while (!stop() && fd >= 0) {
		int err = try_one(fd, atomic_load(&dmabuf[n % BUFS]), n);

		if (err)
			atomic_fetch_add(&refused, 1);
		/* EBADF, EINVAL: exported anew in this moment. */
		if (err && !gone(err) && err != -EBADF && err != -EINVAL &&
		    err != -EBUSY) {
			fprintf(stderr, "# registration: %s\n", strerror(-err));
			atomic_fetch_add(&strange, 1);
		}
		if (gone(err) || ++n % 64 == 0) {
			close(fd);
			fd = port_open();
		}
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int renew(int i)
{
	int err = gpu_alloc(&gpu, MIB, 0, &buf[i]);

	if (!err)
		atomic_store(&dmabuf[i], gpu_export(&buf[i], 0, 0, 0));
	return err ?: atomic_load(&dmabuf[i]) < 0;
}

static void mover(void)
{
	for (unsigned int n = 0; !stop(); n++) {
		int i = n % BUFS, err;

		if (n % 23 == 22) {
			gpu_revoke(&buf[i]);
			close(atomic_exchange(&dmabuf[i], -1));
			gpu_free(&buf[i]);
			if (renew(i))
				atomic_fetch_add(&strange, 1);
			atomic_fetch_add(&revoked, 1);
			continue;
		}
		err = gpu_move(&buf[i], n & 8 ? DGPU_PLACE_SYSTEM :
						DGPU_PLACE_VRAM);
		/* EBUSY: pinned just now. */
		if (!err)
			atomic_fetch_add(&moved, 1);
		else if (err != -EBUSY)
			atomic_fetch_add(&strange, 1);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread[MAKERS];

	if (argc != 2)
		return 2;
	stop_file = argv[1];
	if (gpu_open(&gpu, 0))
		return 1;
	for (int i = 0; i < BUFS; i++)
		if (renew(i))
			return 1;
	for (uintptr_t i = 0; i < MAKERS; i++)
		if (pthread_create(&thread[i], NULL, maker, (void *)i))
			return 1;
	mover();
	for (int i = 0; i < MAKERS; i++)
		pthread_join(thread[i], NULL);
	printf("registered %ld refused %ld moved %ld revoked %ld reopened %ld strange %ld\n",
	       registered, refused, moved, revoked, reopened, strange);
	return strange ? 1 : 0;
}
