// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to the client: DMA_READ and DMA_WRITE. Whoever asks sends by itself
 * and sleeps; the thread of vu_serve() receives the reply and wakes it. Nobody
 * waits longer than told, whether the client does not answer or does not read.
 *
 * The right to send is a flag below the lock, so that one can wait for it with
 * a limit. The thread of vu_serve() has it while it sends a reply.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "channel.h"

struct waiter {
	uint16_t id, command;
	void *buf;			/* of a read */
	size_t len;
	bool done;
	int result;
	struct waiter *next;
};

struct vu_channel {
	pthread_mutex_t lock;		/* everything */
	pthread_cond_t wake;		/* of anyone, for any reason */
	bool sending;			/* somebody is */
	int sock;			/* -1: no client; stays while sending */
	bool paused;
	uint16_t last_id;
	unsigned int stale;		/* replies to come that nobody wants */
	struct waiter *waiters;
};

struct vu_channel *vu_channel_create(void)
{
	struct vu_channel *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (!c)
		return NULL;
	c->sock = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &attr);
	pthread_condattr_destroy(&attr);
	return c;
}

void vu_channel_destroy(struct vu_channel *c)
{
	if (!c)
		return;
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- The right to send; lock held. @end NULL: without limit ---- */

static bool take_sending(struct vu_channel *c, const struct timespec *end)
{
	int err = 0;

	while (c->sending && !err) {
		if (end)
			err = pthread_cond_timedwait(&c->wake, &c->lock, end);
		else
			pthread_cond_wait(&c->wake, &c->lock);
	}
	if (c->sending)
		return false;
	c->sending = true;
	return true;
}

static void drop_sending(struct vu_channel *c)
{
	c->sending = false;
	pthread_cond_broadcast(&c->wake);
}

/* ---- Those who wait; lock held ---- */

static void unlink_waiter(struct vu_channel *c, struct waiter *w)
{
	struct waiter **p = &c->waiters;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
}

static void finish(struct vu_channel *c, struct waiter *w, int result)
{
	unlink_waiter(c, w);
	w->done = true;
	w->result = result;
	pthread_cond_broadcast(&c->wake);
}

/* Their replies may still come. */
static void give_up_all(struct vu_channel *c)
{
	while (c->waiters) {
		c->stale++;
		finish(c, c->waiters, -ENOTCONN);
	}
}

/* ---- The server's thread ---- */

void channel_open(struct vu_channel *c, int sock)
{
	pthread_mutex_lock(&c->lock);
	c->sock = sock;
	c->paused = false;
	c->stale = 0;
	pthread_mutex_unlock(&c->lock);
}

void channel_close(struct vu_channel *c)
{
	pthread_mutex_lock(&c->lock);
	if (c->sock >= 0)
		shutdown(c->sock, SHUT_RDWR);	/* ends a sender's wait */
	give_up_all(c);
	c->paused = true;
	take_sending(c, NULL);
	c->sock = -1;
	drop_sending(c);
	pthread_mutex_unlock(&c->lock);
}

void channel_lock_sending(struct vu_channel *c)
{
	pthread_mutex_lock(&c->lock);
	take_sending(c, NULL);
	pthread_mutex_unlock(&c->lock);
}

void channel_unlock_sending(struct vu_channel *c)
{
	pthread_mutex_lock(&c->lock);
	drop_sending(c);
	pthread_mutex_unlock(&c->lock);
}

void vu_channel_pause(struct vu_channel *c, bool on)
{
	pthread_mutex_lock(&c->lock);
	c->paused = on;
	if (on)
		give_up_all(c);
	pthread_mutex_unlock(&c->lock);
}

static int accept_reply(struct waiter *w, const struct vu_header *h,
			const void *data, size_t len)
{
	if (h->flags & VU_FLAG_ERROR)
		return -EFAULT;
	if (w->command == VU_DMA_WRITE)
		return 0;
	if (len != sizeof(struct vu_dma_access) + w->len)
		return -EFAULT;
	memcpy(w->buf, (const char *)data + sizeof(struct vu_dma_access),
	       w->len);
	return 0;
}

bool channel_reply(struct vu_channel *c, const struct vu_header *h,
		   const void *data, size_t len)
{
	struct waiter *w;
	bool known;

	pthread_mutex_lock(&c->lock);
	for (w = c->waiters; w && w->id != h->id; w = w->next)
		;
	known = w ? w->command == h->command : c->stale > 0;
	if (w && known)
		finish(c, w, accept_reply(w, h, data, len));
	else if (known)
		c->stale--;
	pthread_mutex_unlock(&c->lock);
	return known;
}

/* ---- Those who ask ---- */

static struct timespec after(unsigned int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000l;
	if (t.tv_nsec >= 1000000000l) {
		t.tv_nsec -= 1000000000l;
		t.tv_sec++;
	}
	return t;
}

static int left_ms(const struct timespec *end)
{
	struct timespec now;
	int64_t ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (end->tv_sec - now.tv_sec) * 1000 +
	     (end->tv_nsec - now.tv_nsec) / 1000000;
	return ms > 0 ? (int)ms : 0;
}

static int send_within(int sock, const void *buf, size_t len,
		       const struct timespec *end)
{
	const char *p = buf;

	while (len) {
		struct pollfd ready = { .fd = sock, .events = POLLOUT };
		ssize_t n = send(sock, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			return -ENOTCONN;
		} else if (poll(&ready, 1, left_ms(end)) <= 0 &&
			   !left_ms(end)) {
			return -ETIMEDOUT;
		}
	}
	return 0;
}

static size_t compose(uint8_t *msg, struct waiter *w, uint64_t addr)
{
	bool write = w->command == VU_DMA_WRITE;
	struct vu_header h = {
		.id = w->id, .command = w->command,
		.size = sizeof(h) + sizeof(struct vu_dma_access) +
			(write ? (uint32_t)w->len : 0),
	};
	struct vu_dma_access a = { .addr = addr, .count = w->len };

	memcpy(msg, &h, sizeof(h));
	memcpy(msg + sizeof(h), &a, sizeof(a));
	if (write)
		memcpy(msg + sizeof(h) + sizeof(a), w->buf, w->len);
	return h.size;
}

/* lock held: a socket to send to and the right to do it, or -errno. */
static int enlist(struct vu_channel *c, struct waiter *w,
		  const struct timespec *end)
{
	if (!take_sending(c, end))
		return -ETIMEDOUT;
	if (c->sock < 0 || c->paused) {
		drop_sending(c);
		return -ENOTCONN;
	}
	if (!++c->last_id)
		c->last_id = 1;		/* 0: was not sent */
	w->id = c->last_id;
	w->next = c->waiters;
	c->waiters = w;
	return c->sock;
}

static int send_request(struct vu_channel *c, struct waiter *w, uint64_t addr,
			const struct timespec *end)
{
	uint8_t *msg = malloc(sizeof(struct vu_header) +
			      sizeof(struct vu_dma_access) + w->len);
	int sock, ret;

	if (!msg)
		return -ENOMEM;
	pthread_mutex_lock(&c->lock);
	sock = enlist(c, w, end);
	pthread_mutex_unlock(&c->lock);
	ret = sock;
	if (sock >= 0) {
		ret = send_within(sock, msg, compose(msg, w, addr), end);
		channel_unlock_sending(c);
	}
	free(msg);
	return ret;
}

/* Too late, or not sent as a whole: the connection is of no use any more. */
static void throw_out(struct vu_channel *c, struct waiter *w)
{
	pthread_mutex_lock(&c->lock);
	if (w->id && !w->done)
		unlink_waiter(c, w);
	if (c->sock >= 0)
		shutdown(c->sock, SHUT_RDWR);
	pthread_mutex_unlock(&c->lock);
}

static int wait_reply(struct vu_channel *c, struct waiter *w,
		      const struct timespec *end)
{
	int err = 0;

	pthread_mutex_lock(&c->lock);
	while (!w->done && !err)
		err = pthread_cond_timedwait(&c->wake, &c->lock, end);
	if (w->done)
		err = w->result;
	else
		err = -ETIMEDOUT;
	pthread_mutex_unlock(&c->lock);
	return err;
}

int vu_channel_dma(struct vu_channel *c, bool write, uint64_t addr, void *buf,
		   size_t len, unsigned int ms)
{
	struct waiter w = {
		.command = write ? VU_DMA_WRITE : VU_DMA_READ,
		.buf = buf, .len = len,
	};
	struct timespec end = after(ms);
	int ret = len <= VU_MAX_DMA ? send_request(c, &w, addr, &end) : -EINVAL;
	bool sent = !ret;

	if (sent)
		ret = wait_reply(c, &w, &end);
	if (ret == -ETIMEDOUT || (!sent && w.id))
		throw_out(c, &w);
	return ret;
}
