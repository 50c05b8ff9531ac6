// SPDX-License-Identifier: GPL-2.0-only
/*
 * vfio-user client for tests, synchronous, one request at a time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"
#include "vfio_user.h"
#include "vfio_user_proto.h"

int client_connect(struct client *c, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	memset(c, 0, sizeof(*c));
	c->reply_fd = -1;
	strncpy(a.sun_path, path, sizeof(a.sun_path) - 1);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	if (connect(c->fd, (struct sockaddr *)&a, sizeof(a)))
		return -errno;
	return 0;
}

void client_close(struct client *c)
{
	if (c->reply_fd >= 0)
		close(c->reply_fd);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = c->reply_fd = -1;
}

int client_raw(struct client *c, const void *buf, size_t len, const int *fds,
	       unsigned int nfds)
{
	char control[CMSG_SPACE(64 * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *h;
	ssize_t n;

	if (nfds) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(h), fds, nfds * sizeof(int));
	}
	n = sendmsg(c->fd, &m, MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int client_send(struct client *c, uint16_t command, uint32_t flags,
		const void *payload, size_t len, const int *fds,
		unsigned int nfds)
{
	struct vu_header h = {
		.id = ++c->id, .command = command, .flags = flags,
		.size = (uint32_t)(sizeof(h) + len),
	};
	uint8_t *msg = malloc(h.size);
	int ret;

	memcpy(msg, &h, sizeof(h));
	if (len)
		memcpy(msg + sizeof(h), payload, len);
	ret = client_raw(c, msg, h.size, fds, nfds);
	free(msg);
	return ret;
}

static int receive(struct client *c, void *buf, size_t len)
{
	while (len) {
		union {
			char buf[CMSG_SPACE(sizeof(int))];
			struct cmsghdr align;
		} control;
		struct iovec iov = { .iov_base = buf, .iov_len = len };
		struct msghdr m = {
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = control.buf,
			.msg_controllen = sizeof(control.buf),
		};
		ssize_t n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);

		if (n <= 0)
			return -EPIPE;
		if (h && h->cmsg_type == SCM_RIGHTS)
			memcpy(&c->reply_fd, CMSG_DATA(h), sizeof(int));
		buf = (char *)buf + n;
		len -= (size_t)n;
	}
	return 0;
}

int client_reply(struct client *c, void *reply, size_t size)
{
	struct vu_header h;
	uint8_t *data;
	size_t len;

	if (c->reply_fd >= 0)
		close(c->reply_fd);
	c->reply_fd = -1;
	if (receive(c, &h, sizeof(h)))
		return -EPIPE;
	if (h.id != c->id || (h.flags & VU_FLAG_TYPE) != VU_FLAG_REPLY ||
	    h.size < sizeof(h))
		return -EBADMSG;
	len = h.size - sizeof(h);
	data = malloc(len + 1);
	if (receive(c, data, len)) {
		free(data);
		return -EPIPE;
	}
	if (reply)
		memcpy(reply, data, len < size ? len : size);
	free(data);
	if (h.flags & VU_FLAG_ERROR)
		return h.error ? -(int)h.error : -EIO;
	return (int)len;
}

int client_call(struct client *c, uint16_t command, const void *payload,
		size_t len, const int *fds, unsigned int nfds, void *reply,
		size_t size)
{
	int ret = client_send(c, command, 0, payload, len, fds, nfds);

	return ret ? -EPIPE : client_reply(c, reply, size);
}

bool client_closed(struct client *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	char buf[256];

	while (poll(&p, 1, 120000) == 1)
		if (recv(c->fd, buf, sizeof(buf), 0) <= 0)
			return true;
	return false;
}

int client_version(struct client *c)
{
	static const char caps[] = "{\"capabilities\":{\"max_msg_fds\":16,"
		"\"max_data_xfer_size\":1048576,\"write_multiple\":true}}";
	char msg[4 + sizeof(caps)] = { 0 }, reply[256];

	memcpy(msg + 4, caps, sizeof(caps));
	return client_call(c, VU_VERSION, msg, sizeof(msg), NULL, 0, reply,
			   sizeof(reply));
}

int client_map(struct client *c, uint64_t addr, uint64_t len, int fd,
	       uint64_t offset)
{
	struct vu_dma_map m = {
		.argsz = sizeof(m), .flags = 3, .offset = offset,
		.addr = addr, .size = len,
	};

	return client_call(c, VU_DMA_MAP, &m, sizeof(m), &fd, fd >= 0, NULL, 0);
}

int client_unmap(struct client *c, uint64_t addr, uint64_t len)
{
	struct vu_dma_unmap m = {
		.argsz = sizeof(m), .addr = addr, .size = len,
	};

	return client_call(c, VU_DMA_UNMAP, &m, sizeof(m), NULL, 0, NULL, 0);
}

int client_read(struct client *c, uint32_t region, uint64_t offset, void *buf,
		uint32_t count)
{
	struct vu_access a = {
		.offset = offset, .region = region, .count = count,
	};
	uint8_t *reply = malloc(sizeof(a) + count);
	int ret = client_call(c, VU_REGION_READ, &a, sizeof(a), NULL, 0, reply,
			      sizeof(a) + count);

	if (ret == (int)(sizeof(a) + count))
		memcpy(buf, reply + sizeof(a), count);
	free(reply);
	return ret < 0 ? ret : 0;
}

static int send_write(struct client *c, uint32_t flags, uint32_t region,
		      uint64_t offset, const void *buf, uint32_t count)
{
	struct vu_access a = {
		.offset = offset, .region = region, .count = count,
	};
	uint8_t *msg = malloc(sizeof(a) + count);
	int ret;

	memcpy(msg, &a, sizeof(a));
	memcpy(msg + sizeof(a), buf, count);
	ret = client_send(c, VU_REGION_WRITE, flags, msg, sizeof(a) + count,
			  NULL, 0);
	free(msg);
	return ret;
}

int client_write(struct client *c, uint32_t region, uint64_t offset,
		 const void *buf, uint32_t count)
{
	int ret = send_write(c, 0, region, offset, buf, count);

	ret = ret ? -EPIPE : client_reply(c, NULL, 0);
	return ret < 0 ? ret : 0;
}

int client_post(struct client *c, uint32_t region, uint64_t offset,
		const void *buf, uint32_t count)
{
	return send_write(c, VU_FLAG_NO_REPLY, region, offset, buf, count);
}

int client_set_irqs(struct client *c, uint32_t start, uint32_t count,
		    const int *fds)
{
	struct vu_irq_set q = {
		.argsz = sizeof(q), .flags = VU_IRQ_DATA_EVENTFD |
		VU_IRQ_TRIGGER, .index = VU_IRQ_MSIX, .start = start,
		.count = count,
	};

	return client_call(c, VU_DEVICE_SET_IRQS, &q, sizeof(q), fds,
			   fds ? count : 0, NULL, 0);
}

uint32_t client_config(struct client *c, uint64_t offset, uint32_t count)
{
	uint32_t v = 0;

	return client_read(c, VU_REGION_CONFIG, offset, &v, count) ? 0xdeadu : v;
}

int client_set_config(struct client *c, uint64_t offset, uint32_t value,
		      uint32_t count)
{
	return client_write(c, VU_REGION_CONFIG, offset, &value, count);
}
