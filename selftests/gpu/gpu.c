// SPDX-License-Identifier: GPL-2.0-only
/* Calls of /dev/dgpu<N> and of udmabuf, for tests. See gpu.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/udmabuf.h>

#include "gpu.h"

#define MOST_GPUS	64

int gpu_open(struct gpu *gpu, unsigned int from)
{
	char path[32];

	for (; from < MOST_GPUS; from++) {
		snprintf(path, sizeof(path), "/dev/dgpu%u", from);
		gpu->fd = open(path, O_RDWR | O_CLOEXEC);
		if (gpu->fd >= 0)
			return gpu_info(gpu, &gpu->info);
		if (errno != ENOENT && errno != ENXIO && errno != ENODEV)
			return -errno;
	}
	return -ENOENT;
}

int gpu_info(struct gpu *gpu, struct dgpu_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return raw_ioctl(gpu->fd, DGPU_IOCTL_INFO, info);
}

int gpu_alloc(struct gpu *gpu, uint64_t length, uint32_t flags,
	      struct gpu_buf *buf)
{
	struct dgpu_alloc arg = { .size = sizeof(arg), .length = length,
				  .flags = flags };
	int err = raw_ioctl(gpu->fd, DGPU_IOCTL_ALLOC, &arg);

	if (!err)
		*buf = (struct gpu_buf){ .gpu = gpu, .handle = arg.out_handle,
					 .length = length,
					 .mmap = arg.out_mmap };
	return err;
}

static int with_handle(struct gpu_buf *buf, unsigned int cmd)
{
	struct dgpu_handle arg = { .size = sizeof(arg), .handle = buf->handle };

	return raw_ioctl(buf->gpu->fd, cmd, &arg);
}

int gpu_free(struct gpu_buf *buf)
{
	return with_handle(buf, DGPU_IOCTL_FREE);
}

int gpu_revoke(struct gpu_buf *buf)
{
	return with_handle(buf, DGPU_IOCTL_REVOKE);
}

int gpu_move(struct gpu_buf *buf, uint32_t place)
{
	struct dgpu_move arg = { .size = sizeof(arg), .handle = buf->handle,
				 .place = place };

	return raw_ioctl(buf->gpu->fd, DGPU_IOCTL_MOVE, &arg);
}

int gpu_state(struct gpu_buf *buf, struct dgpu_buffer *state)
{
	memset(state, 0, sizeof(*state));
	state->size = sizeof(*state);
	state->handle = buf->handle;
	return raw_ioctl(buf->gpu->fd, DGPU_IOCTL_BUFFER, state);
}

bool gpu_stuck(struct gpu_buf *buf)
{
	struct dgpu_buffer state;

	return !gpu_state(buf, &state) && state.out_pins;
}

int gpu_export(struct gpu_buf *buf, uint64_t offset, uint64_t length,
	       uint32_t flags)
{
	struct dgpu_export arg = { .size = sizeof(arg), .handle = buf->handle,
				   .offset = offset, .length = length,
				   .flags = flags };
	int err = raw_ioctl(buf->gpu->fd, DGPU_IOCTL_EXPORT, &arg);

	return err ?: arg.out_fd;
}

int gpu_share(struct gpu_buf *buf, uint64_t *name, uint32_t *users)
{
	struct dgpu_share arg = { .size = sizeof(arg), .handle = buf->handle };
	int err = raw_ioctl(buf->gpu->fd, DGPU_IOCTL_SHARE, &arg);

	*name = arg.out_name;
	*users = arg.out_users;
	return err;
}

int gpu_share_open(struct gpu *gpu, uint64_t name, struct gpu_buf *buf)
{
	struct dgpu_open arg = { .size = sizeof(arg), .name = name };
	int err = raw_ioctl(gpu->fd, DGPU_IOCTL_OPEN, &arg);

	if (!err)
		*buf = (struct gpu_buf){ .gpu = gpu, .handle = arg.out_handle,
					 .length = arg.out_length,
					 .mmap = arg.out_mmap };
	return err;
}

void *gpu_mmap(struct gpu_buf *buf)
{
	return mmap64(NULL, buf->length, PROT_READ | PROT_WRITE, MAP_SHARED,
		      buf->gpu->fd, buf->mmap);
}

int gpu_submit(struct gpu *gpu, struct dgpu_cmd *cmd, unsigned int count,
	       uint32_t flags, uint32_t delay_ms, uint64_t *seq)
{
	struct dgpu_submit arg = { .size = sizeof(arg), .flags = flags,
				   .cmds = (uintptr_t)cmd, .count = count,
				   .delay_ms = delay_ms };
	int err = raw_ioctl(gpu->fd, DGPU_IOCTL_SUBMIT, &arg);

	if (seq)
		*seq = arg.out_seq;
	return err;
}

int gpu_wait(struct gpu *gpu, uint64_t seq, unsigned int timeout_ms)
{
	struct dgpu_wait arg = { .size = sizeof(arg), .seq = seq,
				 .timeout_ms = timeout_ms };

	return raw_ioctl(gpu->fd, DGPU_IOCTL_WAIT, &arg);
}

int gpu_fill(struct gpu_buf *buf, uint64_t offset, uint64_t length,
	     uint64_t pattern)
{
	struct dgpu_cmd cmd = { .op = DRACO_GPU_FILL, .dst = buf->handle,
				.dst_offset = offset, .src1_offset = pattern,
				.length = length };

	return gpu_submit(buf->gpu, &cmd, 1, 0, 0, NULL);
}

int gpu_copy(struct gpu_buf *dst, uint64_t to, struct gpu_buf *src,
	     uint64_t from, uint64_t length)
{
	struct dgpu_cmd cmd = { .op = DRACO_GPU_COPY, .dst = dst->handle,
				.src0 = src->handle, .dst_offset = to,
				.src0_offset = from, .length = length };

	return gpu_submit(dst->gpu, &cmd, 1, 0, 0, NULL);
}

int gpu_peer(struct gpu_buf *own, struct gpu_buf *peer, uint64_t length,
	     uint32_t flags)
{
	struct dgpu_peer arg = { .size = sizeof(arg), .flags = flags,
				 .fd = peer->gpu->fd, .handle = peer->handle,
				 .own = own->handle, .length = length };

	return raw_ioctl(own->gpu->fd, DGPU_IOCTL_PEER, &arg);
}

int gpu_crc(struct gpu_buf *buf, uint64_t offset, uint64_t length,
	    uint32_t *crc)
{
	struct dgpu_cmd cmd = { .op = DRACO_GPU_CRC32C, .src0 = buf->handle,
				.src0_offset = offset, .length = length };
	int err = gpu_submit(buf->gpu, &cmd, 1, 0, 0, NULL);

	*crc = cmd.result;
	return err;
}

static int first_page(struct gpu_buf *buf, uint32_t seed)
{
	void *p = mmap64(NULL, RAW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			 buf->gpu->fd, buf->mmap);

	if (p == MAP_FAILED)
		return -errno;
	raw_fill(p, RAW_PAGE, seed);
	munmap(p, RAW_PAGE);
	return 0;
}

/* Each half is the other plus a number of its own, word by word. */
int gpu_pattern(struct gpu_buf *buf, uint64_t length, uint32_t seed)
{
	uint64_t done = RAW_PAGE;
	int err = first_page(buf, seed);

	for (; !err && done < length; done *= 2) {
		uint64_t n = done < length - done ? done : length - done;
		uint64_t word = (seed + done) * 0x9e3779b97f4a7c15ull | 1;
		struct dgpu_cmd cmd[2] = {
			{ .op = DRACO_GPU_FILL, .dst = buf->handle,
			  .dst_offset = done, .src1_offset = word,
			  .length = n },
			{ .op = DRACO_GPU_REDUCE, .type = DRACO_GPU_INT32,
			  .function = DRACO_GPU_SUM, .dst = buf->handle,
			  .src0 = buf->handle, .src1 = buf->handle,
			  .dst_offset = done, .src1_offset = done,
			  .length = n },
		};

		err = gpu_submit(buf->gpu, cmd, 2, 0, 0, NULL);
	}
	return err;
}

int udma_create(uint64_t length, void **addr)
{
	struct udmabuf_create arg = { .size = length };
	int memfd = memfd_create("udma", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	int dev, fd = -1;

	if (memfd < 0)
		return -errno;
	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (dev >= 0 && !ftruncate(memfd, length) &&
	    !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		arg.memfd = memfd;
		arg.flags = UDMABUF_FLAGS_CLOEXEC;
		fd = ioctl(dev, UDMABUF_CREATE, &arg);
	}
	if (fd < 0)
		fd = -errno;
	else if (addr)
		*addr = mmap64(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED,
			       memfd, 0);
	close(memfd);
	if (dev >= 0)
		close(dev);
	return fd;
}

int gpu_mr(int port, int dmabuf, uint64_t offset, uint64_t length,
	   uint32_t access, uint32_t flags, uint32_t watch, struct raw_mr *mr)
{
	struct fabrex_mr_register arg = {
		.size = sizeof(arg),
		.flags = FABREX_MR_DMABUF | flags,
		.addr = offset,
		.length = length,
		.access = access,
		.fd = dmabuf,
		.watch = watch,
	};
	int err = raw_ioctl(port, FABREX_IOCTL_MR_REGISTER, &arg);

	if (!err)
		*mr = (struct raw_mr){ .fd = port, .id = arg.out_id,
				       .key = arg.out_key, .length = length };
	return err;
}
