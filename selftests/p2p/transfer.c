// SPDX-License-Identifier: GPL-2.0-only
/*
 * One process with a fabric port and a GPU, which does what test_p2p.py tells
 * it: register the GPU's memory for the port, write into it from host memory by
 * the port's DMA engine, and let the GPU say what it holds. Each line on
 * standard input has one answer: a word of what happened.
 *
 *   register       "ok", or the errno
 *   write SEED     status of the operation, or "TIMEOUT"
 *   holds SEED     "yes", "no", or the errno of the GPU's engine, which looks
 *   shows SEED     likewise, but the CPU looks: an engine that was reset cannot
 *   drop           deregister
 *
 * usage: p2p-transfer PORT-NAME GPU-PCI-ADDRESS
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../gpu/gpu.h"

#define LENGTH	(1u << 20)
#define PORTS	16

static int port = -1;
static struct fabrex_port_query info;
static struct raw_queue queue;
static struct raw_mr host, vram;
static struct gpu gpu;
static struct gpu_buf buf;

static const char *status_word(int status)
{
	static const char *const words[] = {
		"OK", "BAD_OPCODE", "BAD_DESC", "LKEY", "LBOUNDS", "LACCESS",
		"RKEY", "RBOUNDS", "RACCESS", "RPEER", "UNREACHABLE", "RNR",
		"BAD_QUEUE", "TOO_LONG", "DATA", "LFAULT", "RFAULT", "FENCED",
		"FLUSHED", "ABORTED"
	};

	if (status == -ETIMEDOUT)
		return "TIMEOUT";
	if (status < 0 || status >= (int)(sizeof(words) / sizeof(*words)))
		return "UNKNOWN";
	return words[status];
}

static const char *errno_word(int err)
{
	return err < 0 ? strerrorname_np(-err) : "ok";
}

static int open_port(const char *name)
{
	char path[32];
	int i;

	for (i = 0; i < PORTS; i++) {
		snprintf(path, sizeof(path), "/dev/fabrex%d", i);
		port = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
		if (port < 0)
			continue;
		if (!raw_query(port, &info) &&
		    !strcmp((const char *)info.out_name, name))
			return 0;
		close(port);
	}
	return -ENODEV;
}

static int open_gpu(const char *address)
{
	unsigned int domain, bus, device, function, from = 0;
	int err;

	if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device,
		   &function) != 4)
		return -EINVAL;
	while (!(err = gpu_open(&gpu, from))) {
		if (gpu.info.out_domain == domain && gpu.info.out_devfn ==
		    (bus << 8 | device << 3 | function))
			return 0;
		from = gpu.info.out_index + 1;
		close(gpu.fd);
	}
	return err;
}

static const char *register_memory(void)
{
	int fd = gpu_export(&buf, 0, 0, 0), err;

	if (fd < 0)
		return errno_word(fd);
	err = gpu_mr(port, fd, 0, LENGTH, RAW_ALL, 0, 0, &vram);
	close(fd);
	return errno_word(err);
}

static const char *write_memory(uint32_t seed)
{
	struct fabrex_sqe sqe = raw_rw(FABREX_OP_WRITE, info.out_peer, &host,
				       0, vram.key, 0, LENGTH);

	raw_fill(host.addr, LENGTH, seed);
	return status_word(raw_do(&queue, &sqe, NULL));
}

/* The host's copy is not looked at: the GPU sums up what it has. */
static const char *memory_holds(uint32_t seed)
{
	static uint8_t want[LENGTH];
	uint32_t crc = 0;
	int err = gpu_crc(&buf, 0, LENGTH, &crc);

	if (err)
		return errno_word(err);
	raw_fill(want, LENGTH, seed);
	return crc == raw_crc32c(want, LENGTH) ? "yes" : "no";
}

static const char *memory_shows(uint32_t seed)
{
	uint8_t *at = gpu_mmap(&buf);
	long differs;

	if (at == MAP_FAILED)
		return errno_word(-errno);
	differs = raw_differs(at, LENGTH, seed);
	munmap(at, LENGTH);
	return differs < 0 ? "yes" : "no";
}

static const char *answer(const char *line)
{
	uint32_t seed;

	if (!strcmp(line, "register\n"))
		return register_memory();
	if (!strcmp(line, "drop\n"))
		return errno_word(raw_destroy(port, vram.id));
	if (sscanf(line, "write %u", &seed) == 1)
		return write_memory(seed);
	if (sscanf(line, "holds %u", &seed) == 1)
		return memory_holds(seed);
	if (sscanf(line, "shows %u", &seed) == 1)
		return memory_shows(seed);
	return "what?";
}

static int set_up(const char *port_name, const char *address)
{
	int err = open_port(port_name);

	if (!err)
		err = open_gpu(address);
	if (!err)
		err = gpu_alloc(&gpu, LENGTH, 0, &buf);
	if (!err)
		err = raw_mr(port, LENGTH, RAW_ALL, &host);
	if (!err)
		err = raw_queue(port, 16, 16, 0, &queue);
	return err;
}

int main(int argc, char **argv)
{
	char line[64];
	int err;

	if (argc != 3)
		return 2;
	err = set_up(argv[1], argv[2]);
	if (err) {
		fprintf(stderr, "p2p-transfer %s %s: %s\n", argv[1], argv[2],
			errno_word(err));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		puts(answer(line));
		fflush(stdout);
	}
	return 0;
}
