// SPDX-License-Identifier: GPL-2.0-only
/*
 * vfio-user server. Everything that comes in is hostile: each message is whole
 * and its lengths are checked before a handler sees it. What QEMU would never
 * send ends the connection; what it may ask for in vain gets an error reply.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dma_map.h"
#include "log.h"
#include "channel.h"
#include "vfio_user.h"
#include "vfio_user_proto.h"

#define VU_MAX_MSG	(sizeof(struct vu_header) + sizeof(struct vu_access) + \
			 VU_MAX_DATA)

struct server {
	int sock;
	const char *name;
	const struct vu_backend *b;
	void *arg;
	struct vu_channel *channel;
	bool negotiated;
	bool multi;			/* client knows WRITE_MULTI */
	uint8_t *in;			/* VU_MAX_MSG */
	size_t have, done;		/* bytes in it, bytes consumed */
	int fds[VU_MAX_FDS];		/* of the message at the end of in */
	unsigned int nfds;
	uint8_t *out;			/* VU_MAX_MSG, reply payload at 16 */
};

/* A complete message. */
struct request {
	struct vu_header h;
	const uint8_t *data;
	size_t len;
	int fds[VU_MAX_FDS];
	unsigned int nfds;
	int reply_fd;			/* sent with the reply, -1: none */
	size_t reply_len;		/* payload bytes put into s->out */
};

static void *payload(struct server *s)
{
	return s->out + sizeof(struct vu_header);
}

/* The connection has to end. */
static int __attribute__((format(printf, 2, 3)))
broken(struct server *s, const char *fmt, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	log_error("%s: client broke the protocol: %s; closing it", s->name, why);
	return -EPROTO;
}

/* ---- Handlers: 0 reply, > 0 errno to reply, < 0 end of connection ---- */

static bool capability(struct json_object *caps, const char *name,
		       struct json_object **v)
{
	return json_object_is_type(caps, json_type_object) &&
	       json_object_object_get_ex(caps, name, v);
}

static int parse_capabilities(struct server *s, const char *text, size_t len)
{
	struct json_tokener *t = json_tokener_new_ex(8);
	struct json_object *root, *caps = NULL, *v;
	int ret = 0;

	if (!t)
		return ENOMEM;
	root = json_tokener_parse_ex(t, text, (int)len);
	if (!json_object_is_type(root, json_type_object))
		ret = broken(s, "capabilities are no JSON object");
	else if (capability(root, "capabilities", &caps))
		s->multi = capability(caps, "write_multiple", &v) &&
			   json_object_get_boolean(v);
	json_object_put(root);
	json_tokener_free(t);
	return ret;
}

static int version_reply(struct server *s, struct request *r, uint16_t minor)
{
	struct vu_version v = { .major = 0, .minor = minor };
	char *text = (char *)payload(s) + sizeof(v);
	int n;

	n = snprintf(text, 256, "{\"capabilities\":{\"max_msg_fds\":%d,"
		     "\"max_data_xfer_size\":%u,\"max_dma_maps\":%u%s}}",
		     VU_MAX_FDS, VU_MAX_DATA, VU_MAX_DMA_MAPS,
		     s->multi ? ",\"write_multiple\":true" : "");
	memcpy(payload(s), &v, sizeof(v));
	r->reply_len = sizeof(v) + (size_t)n + 1;
	return 0;
}

static int do_version(struct server *s, struct request *r)
{
	struct vu_version v;
	const char *text = (const char *)r->data + sizeof(v);
	size_t len = r->len - sizeof(v);
	int ret;

	if (s->negotiated)
		return broken(s, "second VERSION message");
	memcpy(&v, r->data, sizeof(v));
	if (v.major != 0)
		return broken(s, "version %u.%u, this server has 0.1",
			      v.major, v.minor);
	if (len) {
		if (text[len - 1])
			return broken(s, "capabilities lack the final NUL");
		ret = parse_capabilities(s, text, strlen(text));
		if (ret)
			return ret;
	}
	s->negotiated = true;
	channel_open(s->channel, s->sock);
	s->b->attach(s->arg);
	return version_reply(s, r, v.minor > 1 ? 1 : v.minor);
}

static int do_dma_map(struct server *s, struct request *r)
{
	struct vu_dma_map m;
	int ret;

	memcpy(&m, r->data, sizeof(m));
	if (m.argsz < sizeof(m) || !(m.flags & 3) || (m.flags & ~3u))
		return broken(s, "DMA_MAP argsz %u flags 0x%x", m.argsz,
			      m.flags);
	ret = s->b->map(s->arg, m.addr, m.size, m.flags,
			r->nfds ? r->fds[0] : -1, m.offset);
	if (ret)
		log_error("%s: DMA_MAP of 0x%llx bytes at 0x%llx refused: %s%s",
			  s->name, (unsigned long long)m.size,
			  (unsigned long long)m.addr, strerror(-ret),
			  ret == -EBADF ? "; guest memory has to be a shared "
			  "memory-backend-memfd" : "");
	return -ret;
}

static int do_dma_unmap(struct server *s, struct request *r)
{
	struct vu_dma_unmap m;
	int ret = 0;

	memcpy(&m, r->data, sizeof(m));
	if (m.argsz < sizeof(m) || (m.flags & ~2u))
		return broken(s, "DMA_UNMAP argsz %u flags 0x%x", m.argsz,
			      m.flags);
	if (!(m.flags & 2))
		ret = s->b->unmap(s->arg, m.addr, m.size);
	else if (m.addr || m.size)
		return broken(s, "DMA_UNMAP of everything with a range");
	else
		s->b->unmap_all(s->arg);
	if (ret)
		return -ret;
	memcpy(payload(s), &m, sizeof(m));
	r->reply_len = sizeof(m);
	return 0;
}

static int do_get_info(struct server *s, struct request *r)
{
	struct vu_device_info i;

	memcpy(&i, r->data, sizeof(i));
	if (i.argsz < sizeof(i))
		return broken(s, "GET_INFO argsz %u", i.argsz);
	i.argsz = sizeof(i);
	i.flags = 1 | 2;
	i.num_regions = VU_REGIONS;
	i.num_irqs = VU_IRQS;
	memcpy(payload(s), &i, sizeof(i));
	r->reply_len = sizeof(i);
	return 0;
}

static int do_region_info(struct server *s, struct request *r)
{
	struct vu_sparse_cap cap = { .id = 1, .version = 1, .nr_areas = 1 };
	struct vu_region reg = { .fd = -1 };
	struct vu_region_info i;
	uint32_t room;

	memcpy(&i, r->data, sizeof(i));
	if (i.argsz < sizeof(i))
		return broken(s, "GET_REGION_INFO argsz %u", i.argsz);
	if (i.index >= VU_REGIONS)
		return EINVAL;
	room = i.argsz;
	s->b->region(s->arg, i.index, &reg);
	i.argsz = sizeof(i);
	i.flags = reg.size ? 3 : 0;
	i.cap_offset = 0;
	i.size = reg.size;
	i.offset = 0;
	r->reply_len = sizeof(i);
	if (reg.fd >= 0) {
		i.argsz += sizeof(cap);
		i.flags |= 4 | 8;
		i.cap_offset = sizeof(i);	/* QEMU checks it even if the
						 * capability did not fit */
		if (room >= i.argsz) {
			cap.offset = reg.mmap_offset;
			cap.size = reg.mmap_size;
			memcpy((char *)payload(s) + sizeof(i), &cap,
			       sizeof(cap));
			r->reply_len += sizeof(cap);
			r->reply_fd = reg.fd;
		}
	}
	memcpy(payload(s), &i, sizeof(i));
	return 0;
}

static int do_irq_info(struct server *s, struct request *r)
{
	struct vu_irq_info i;

	memcpy(&i, r->data, sizeof(i));
	if (i.argsz < sizeof(i))
		return broken(s, "GET_IRQ_INFO argsz %u", i.argsz);
	if (i.index >= VU_IRQS)
		return EINVAL;
	i.argsz = sizeof(i);
	i.count = s->b->irqs(s->arg, i.index);
	i.flags = i.count ? 1 : 0;
	memcpy(payload(s), &i, sizeof(i));
	r->reply_len = sizeof(i);
	return 0;
}

static int set_eventfds(struct server *s, struct request *r,
			const struct vu_irq_set *q)
{
	unsigned int i;
	int ret;

	if (r->nfds && r->nfds != q->count)
		return broken(s, "SET_IRQS of %u with %u descriptors",
			      q->count, r->nfds);
	for (i = 0; i < q->count; i++) {
		ret = s->b->set_irq(s->arg, q->start + i,
				    r->nfds ? r->fds[i] : -1);
		if (ret) {
			log_error("%s: SET_IRQS vector %u: %s", s->name,
				  q->start + i, strerror(-ret));
			return -ret;
		}
		if (r->nfds)
			r->fds[i] = -1;
	}
	return 0;
}

static int set_irqs_now(struct server *s, struct request *r,
			const struct vu_irq_set *q)
{
	const uint8_t *on = r->data + sizeof(*q);
	bool bools = q->flags & VU_IRQ_DATA_BOOL;
	unsigned int i;

	if (bools && r->len - sizeof(*q) < q->count)
		return broken(s, "SET_IRQS of %u with %zu flags", q->count,
			      r->len - sizeof(*q));
	if (q->flags & (VU_IRQ_MASK | VU_IRQ_UNMASK))
		return 0;		/* QEMU masks on its own side */
	if (!bools && !q->count) {	/* off */
		for (i = 0; i < s->b->irqs(s->arg, q->index); i++)
			s->b->set_irq(s->arg, i, -1);
		return 0;
	}
	for (i = 0; i < q->count; i++)
		if (!bools || on[i])
			s->b->trigger(s->arg, q->start + i);
	return 0;
}

static int do_set_irqs(struct server *s, struct request *r)
{
	struct vu_irq_set q;
	uint32_t have, data, action;

	memcpy(&q, r->data, sizeof(q));
	data = q.flags & VU_IRQ_DATA_MASK;
	action = q.flags & VU_IRQ_ACTION_MASK;
	if (q.argsz < sizeof(q) || (q.flags & ~0x3fu) || !data || !action ||
	    (data & (data - 1)) || (action & (action - 1)))
		return broken(s, "SET_IRQS argsz %u flags 0x%x", q.argsz,
			      q.flags);
	if (q.index >= VU_IRQS)
		return EINVAL;
	have = s->b->irqs(s->arg, q.index);
	if (q.start > have || q.count > have - q.start)
		return EINVAL;
	if (data != VU_IRQ_DATA_EVENTFD)
		return set_irqs_now(s, r, &q);
	if (action != VU_IRQ_TRIGGER)
		return EOPNOTSUPP;
	return set_eventfds(s, r, &q);
}

static int check_access(struct server *s, const struct vu_access *a,
			uint32_t max)
{
	struct vu_region reg = { .fd = -1 };

	if (a->region >= VU_REGIONS)
		return broken(s, "access to region %u", a->region);
	s->b->region(s->arg, a->region, &reg);
	if (!a->count || a->count > max || a->offset > reg.size ||
	    a->count > reg.size - a->offset)
		return broken(s, "access to %u bytes at 0x%llx of region %u "
			      "(0x%llx bytes)", a->count,
			      (unsigned long long)a->offset, a->region,
			      (unsigned long long)reg.size);
	return 0;
}

static int do_read(struct server *s, struct request *r)
{
	struct vu_access a;
	int ret;

	memcpy(&a, r->data, sizeof(a));
	ret = check_access(s, &a, VU_MAX_DATA);
	if (ret)
		return ret;
	memcpy(payload(s), &a, sizeof(a));
	s->b->read(s->arg, a.region, a.offset, (char *)payload(s) + sizeof(a),
		   a.count);
	r->reply_len = sizeof(a) + a.count;
	return 0;
}

static int do_write(struct server *s, struct request *r)
{
	struct vu_access a;
	int ret;

	memcpy(&a, r->data, sizeof(a));
	ret = check_access(s, &a, VU_MAX_DATA);
	if (ret)
		return ret;
	if (r->len != sizeof(a) + a.count)
		return broken(s, "REGION_WRITE of %u bytes brings %zu", a.count,
			      r->len - sizeof(a));
	s->b->write(s->arg, a.region, a.offset, r->data + sizeof(a), a.count);
	memcpy(payload(s), &a, sizeof(a));
	r->reply_len = sizeof(a);
	return 0;
}

static int do_write_multi(struct server *s, struct request *r)
{
	struct vu_multi m;
	struct vu_multi_write w;
	struct vu_access a;
	uint64_t i;
	int ret;

	memcpy(&m, r->data, sizeof(m));
	if (!s->multi)
		return broken(s, "REGION_WRITE_MULTI was not negotiated");
	if (m.count != (r->len - sizeof(m)) / sizeof(w) ||
	    (r->len - sizeof(m)) % sizeof(w))
		return broken(s, "REGION_WRITE_MULTI of %llu in %zu bytes",
			      (unsigned long long)m.count, r->len);
	for (i = 0; i < m.count; i++) {
		memcpy(&w, r->data + sizeof(m) + i * sizeof(w), sizeof(w));
		a.offset = w.offset;
		a.region = w.region;
		a.count = w.count;
		ret = check_access(s, &a, sizeof(w.data));
		if (ret)
			return ret;
		s->b->write(s->arg, a.region, a.offset, w.data, a.count);
	}
	memcpy(payload(s), &m, sizeof(m));
	r->reply_len = sizeof(m);
	return 0;
}

static int do_reset(struct server *s, struct request *r)
{
	(void)r;
	s->b->reset(s->arg);
	return 0;
}

/* Payload limits and the number of descriptors each command may bring. */
static const struct command {
	int (*fn)(struct server *s, struct request *r);
	const char *name;
	size_t min, max;
	unsigned int fds;
} commands[VU_COMMANDS] = {
	[VU_VERSION] = { do_version, "VERSION", sizeof(struct vu_version),
			 4096, 0 },
	[VU_DMA_MAP] = { do_dma_map, "DMA_MAP", sizeof(struct vu_dma_map),
			 sizeof(struct vu_dma_map), 1 },
	[VU_DMA_UNMAP] = { do_dma_unmap, "DMA_UNMAP",
			   sizeof(struct vu_dma_unmap),
			   sizeof(struct vu_dma_unmap), 0 },
	[VU_DEVICE_GET_INFO] = { do_get_info, "GET_INFO",
				 sizeof(struct vu_device_info),
				 sizeof(struct vu_device_info), 0 },
	[VU_DEVICE_GET_REGION_INFO] = { do_region_info, "GET_REGION_INFO",
					sizeof(struct vu_region_info),
					4096, 0 },
	[VU_DEVICE_GET_IRQ_INFO] = { do_irq_info, "GET_IRQ_INFO",
				     sizeof(struct vu_irq_info),
				     sizeof(struct vu_irq_info), 0 },
	[VU_DEVICE_SET_IRQS] = { do_set_irqs, "SET_IRQS",
				 sizeof(struct vu_irq_set), 4096,
				 VU_MAX_FDS },
	[VU_REGION_READ] = { do_read, "REGION_READ", sizeof(struct vu_access),
			     sizeof(struct vu_access), 0 },
	[VU_REGION_WRITE] = { do_write, "REGION_WRITE",
			      sizeof(struct vu_access),
			      sizeof(struct vu_access) + VU_MAX_DATA, 0 },
	[VU_DEVICE_RESET] = { do_reset, "RESET", 0, 0, 0 },
	[VU_REGION_WRITE_MULTI] = { do_write_multi, "REGION_WRITE_MULTI",
				    sizeof(struct vu_multi),
				    sizeof(struct vu_multi) + VU_MAX_DATA, 0 },
};

/* ---- Transport ---- */

static int send_bytes(struct server *s, const void *buf, size_t len, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	const char *p = buf;

	while (len) {
		struct iovec iov = { .iov_base = (void *)p, .iov_len = len };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
		struct cmsghdr *c;
		ssize_t n;

		if (fd >= 0) {
			m.msg_control = control;
			m.msg_controllen = sizeof(control);
			c = CMSG_FIRSTHDR(&m);
			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		}
		n = sendmsg(s->sock, &m, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		fd = -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Whole messages only: others send requests. */
static int send_all(struct server *s, const void *buf, size_t len, int fd)
{
	int ret;

	channel_lock_sending(s->channel);
	ret = send_bytes(s, buf, len, fd);
	channel_unlock_sending(s->channel);
	return ret;
}

static int reply(struct server *s, struct request *r, int error)
{
	struct vu_header h = {
		.id = r->h.id,
		.command = r->h.command,
		.flags = VU_FLAG_REPLY,
	};

	if (r->h.flags & VU_FLAG_NO_REPLY)
		return 0;
	if (error) {
		h.flags |= VU_FLAG_ERROR;
		h.error = (uint32_t)error;
		r->reply_len = 0;
		r->reply_fd = -1;
	}
	h.size = (uint32_t)(sizeof(h) + r->reply_len);
	memcpy(s->out, &h, sizeof(h));
	return send_all(s, s->out, h.size, r->reply_fd);
}

static int take_reply(struct server *s, struct request *r)
{
	if (r->nfds || !channel_reply(s->channel, &r->h, r->data, r->len))
		return broken(s, "reply %u to nothing", r->h.id);
	return 0;
}

static int dispatch(struct server *s, struct request *r)
{
	const struct command *c;
	int ret;

	if (r->h.flags & VU_FLAG_REPLY)
		return take_reply(s, r);
	if (r->h.command >= VU_COMMANDS || !commands[r->h.command].fn) {
		if (!s->negotiated)
			return broken(s, "command %u before VERSION",
				      r->h.command);
		log_debug("%s: command %u is not supported", s->name,
			  r->h.command);
		return reply(s, r, EOPNOTSUPP);
	}
	c = &commands[r->h.command];
	if (!s->negotiated && r->h.command != VU_VERSION)
		return broken(s, "%s before VERSION", c->name);
	if (r->len < c->min || r->len > c->max)
		return broken(s, "%s with %zu bytes", c->name, r->len);
	if (r->nfds > c->fds)
		return broken(s, "%s with %u descriptors", c->name, r->nfds);
	ret = c->fn(s, r);
	return ret < 0 ? ret : reply(s, r, ret);
}

static void close_fds(int *fds, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * Descriptors come with the last bytes of a receive (the kernel ends a receive
 * after the piece of the stream that carries some), so they belong to the
 * message that holds the last byte received so far.
 */
static int take_fds(struct server *s, struct msghdr *m)
{
	struct cmsghdr *c;
	size_t i, n;
	int fd, ret = 0;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (s->nfds < VU_MAX_FDS) {
				s->fds[s->nfds++] = fd;
			} else {
				close(fd);
				ret = -EPROTO;
			}
		}
	}
	if (ret || (m->msg_flags & MSG_CTRUNC))
		return broken(s, "more than %d descriptors", VU_MAX_FDS);
	return 0;
}

static ssize_t receive(struct server *s)
{
	/* Aligned for struct cmsghdr. */
	union {
		char buf[CMSG_SPACE(VU_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {
		.iov_base = s->in + s->have,
		.iov_len = VU_MAX_MSG - s->have,
	};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;
	int ret;

	do {
		n = recvmsg(s->sock, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	ret = take_fds(s, &m);
	if (ret)
		return ret;
	s->have += (size_t)n;
	return n;
}

/* > 0: r is the next message. 0: needs more bytes. */
static int next_message(struct server *s, struct request *r)
{
	size_t left = s->have - s->done;

	if (left < sizeof(r->h))
		return 0;
	memcpy(&r->h, s->in + s->done, sizeof(r->h));
	if (r->h.size < sizeof(r->h) || r->h.size > VU_MAX_MSG)
		return broken(s, "message of %u bytes", r->h.size);
	if ((r->h.flags & VU_FLAG_TYPE) > VU_FLAG_REPLY ||
	    (r->h.flags & ~0x3fu))
		return broken(s, "message flags 0x%x", r->h.flags);
	if (left < r->h.size)
		return 0;
	r->data = s->in + s->done + sizeof(r->h);
	r->len = r->h.size - sizeof(r->h);
	r->reply_fd = -1;
	r->reply_len = 0;
	r->nfds = 0;
	s->done += r->h.size;
	if (s->done == s->have) {
		r->nfds = s->nfds;
		memcpy(r->fds, s->fds, sizeof(r->fds));
		s->nfds = 0;
	}
	return 1;
}

static int handle_messages(struct server *s)
{
	struct request r;
	int ret;

	while ((ret = next_message(s, &r)) > 0) {
		ret = dispatch(s, &r);
		close_fds(r.fds, r.nfds);
		if (ret)
			return ret;
	}
	if (ret < 0)
		return ret;
	memmove(s->in, s->in + s->done, s->have - s->done);
	s->have -= s->done;
	s->done = 0;
	return 0;
}

static int serve(struct server *s)
{
	ssize_t n;
	int ret;

	for (;;) {
		n = receive(s);
		if (n < 0)
			return (int)n;
		if (!n)
			return s->have ? broken(s, "it left within a message") :
			       0;
		ret = handle_messages(s);
		if (ret)
			return ret;
	}
}

int vu_serve(int sock, const char *name, const struct vu_backend *backend,
	     void *arg, struct vu_channel *channel)
{
	struct server s = {
		.sock = sock, .name = name, .b = backend, .arg = arg,
		.channel = channel,
		.in = malloc(VU_MAX_MSG), .out = calloc(1, VU_MAX_MSG),
	};
	int ret = -ENOMEM;

	if (s.in && s.out)
		ret = serve(&s);
	channel_close(channel);
	close_fds(s.fds, s.nfds);
	free(s.in);
	free(s.out);
	return ret;
}
