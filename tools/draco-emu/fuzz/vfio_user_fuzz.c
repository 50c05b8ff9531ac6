// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer entry: the input is a script of what a client does to one function:
 * messages with a made-up header, raw bytes, descriptors of several kinds,
 * memory that shrinks. The model does DMA to addresses it is told.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../tests/client.h"
#include "function.h"
#include "vfio_user.h"
#include "vfio_user_proto.h"

#define KINDS		6
#define MEM_SIZE	(64u << 10)

static char sock_path[128];
static struct function *fn;
static int fds[KINDS];

static void m_read(void *arg, unsigned int bar, uint64_t offset, void *buf,
		   size_t count)
{
	(void)arg;
	memset(buf, (int)(bar + offset), count);
	function_raise(fn, (unsigned int)(offset & 31));
}

static void m_write(void *arg, unsigned int bar, uint64_t offset,
		    const void *buf, size_t count)
{
	uint64_t word = 0;
	struct dma_hold h;
	char local[64];

	(void)arg;
	(void)bar;
	memcpy(&word, buf, count < 8 ? count : 8);
	if (dma_get(function_dma(fn), word, sizeof(local),
		    offset & 1 ? DMA_PROT_READ : DMA_PROT_WRITE, &h))
		return;
	if (offset & 1)
		memcpy(local, h.ptr, h.len);
	else
		memset(h.ptr, 1, h.len);
	dma_put(&h);
}

static void start(void)
{
	static const struct function_ops ops = {
		.bar_read = m_read, .bar_write = m_write,
	};
	static char dir[] = "/tmp/emu-fuzz-XXXXXX";
	struct function_desc d = {
		.name = "fuzz", .socket = sock_path, .vendor = 0x1234,
		.link_speed = 4, .link_width = 16,
		.bar[0] = { .size = 0x10000, .flags = FUNCTION_BAR_64 },
		.bar[2] = { .size = 4u << 20, .flags = FUNCTION_BAR_64 |
			    FUNCTION_BAR_MEMORY | FUNCTION_BAR_RESIZE },
		.msix_vectors = 32, .msix_bar = 0, .msix_table = 0x4000,
		.msix_pba = 0x8000, .dma = true,
	};

	if (!mkdtemp(dir))
		abort();
	snprintf(sock_path, sizeof(sock_path), "%s/f", dir);
	if (function_create(&d, &ops, NULL, &fn))
		abort();
	fds[0] = memfd_create("sealed", MFD_ALLOW_SEALING);
	fds[1] = memfd_create("shrinks", 0);
	fds[2] = eventfd(0, 0);
	fds[3] = open("/dev/null", O_RDWR);
	fds[4] = socket(AF_UNIX, SOCK_STREAM, 0);
	fds[5] = open("/", O_RDONLY | O_DIRECTORY);
	if (ftruncate(fds[0], MEM_SIZE))
		abort();
	fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK);
}

static bool drain(struct client *c, int flags)
{
	char buf[16384];
	ssize_t n;

	do {
		n = recv(c->fd, buf, sizeof(buf), flags);
	} while (n > 0);
	return n == 0;
}

/* Neither side may wait for the other to read. */
static void push(struct client *c, const uint8_t *buf, size_t len,
		 const int *with, unsigned int n)
{
	int room = 1 << 20;

	setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	while (client_raw(c, buf, len, with, n) == -EAGAIN) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN | POLLOUT };

		poll(&p, 1, 100);
		if (drain(c, MSG_DONTWAIT))
			return;
	}
	drain(c, MSG_DONTWAIT);
}

struct script {
	const uint8_t *p;
	size_t left;
};

static uint8_t byte(struct script *s)
{
	if (!s->left)
		return 0;
	s->left--;
	return *s->p++;
}

static size_t take(struct script *s, size_t len, uint8_t *to)
{
	if (len > s->left)
		len = s->left;
	memcpy(to, s->p, len);
	s->p += len;
	s->left -= len;
	return len;
}

static void send_message(struct client *c, struct script *s)
{
	uint8_t msg[sizeof(struct vu_header) + 255];
	struct vu_header h = { .id = 1 };
	unsigned int i, n = byte(s) & 15;
	int with[16];
	size_t len;

	for (i = 0; i < n; i++)
		with[i] = fds[byte(s) % KINDS];
	h.command = byte(s) % 24;
	h.flags = byte(s) & 0x13;
	len = take(s, byte(s), msg + sizeof(h));
	h.size = (uint32_t)(sizeof(h) + len);
	memcpy(msg, &h, sizeof(h));
	push(c, msg, h.size, with, n);
}

static void step(struct client *c, struct script *s)
{
	uint8_t raw[255];
	size_t len;

	switch (byte(s) % 8) {
	case 0:
		len = take(s, byte(s), raw);
		if (len)
			push(c, raw, len, NULL, 0);
		break;
	case 1:
		if (ftruncate(fds[1], (off_t)byte(s) << 10))
			return;
		break;
	default:
		send_message(c, s);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = { data, size };
	struct client c;
	uint8_t set_up;

	if (!fn)
		start();
	if (client_connect(&c, sock_path))
		abort();
	if (ftruncate(fds[1], MEM_SIZE))
		abort();
	set_up = byte(&s);
	if (set_up & 1) {
		client_version(&c);
		client_set_config(&c, 4, 6, 2);
	}
	if (set_up & 2)
		client_map(&c, 0, MEM_SIZE, fds[set_up >> 2 & 1], 0);
	fcntl(c.fd, F_SETFL, O_NONBLOCK);
	while (s.left)
		step(&c, &s);
	shutdown(c.fd, SHUT_WR);
	fcntl(c.fd, F_SETFL, 0);
	drain(&c, 0);
	client_close(&c);
	return 0;
}
