// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Event queues: what asynchronous registrations and insertions report, and what
 * programs write themselves. Used by fabric.c, av.c, mr.c and domain.c.
 */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define EVENT_MAX	(1 << 20)	/* bytes */

struct event {
	struct list node;
	uint32_t type;
	size_t len;
	char data[];
};

struct failure {
	struct list node;
	struct fi_eq_err_entry entry;
};

struct eq {
	struct fid_eq fid;
	struct fabric *fabric;
	uint64_t flags;
	pthread_mutex_t lock;	/* of the rest */
	struct wait wait;
	struct list events, failures;
	int users;
};

static struct eq *eq_of(struct fid_eq *fid)
{
	return container(fid, struct eq, fid);
}

static bool is_open(const struct fid_eq *fid)
{
	return object_is(&fid->fid, FI_CLASS_EQ);
}

struct eq *eq_hold(struct fid *fid)
{
	struct eq *eq;

	if (!object_mine(fid, FI_CLASS_EQ)) {
		INFO(FI_LOG_EQ, "what is to be bound is no event queue\n");
		return NULL;
	}
	eq = container(fid, struct eq, fid.fid);
	pthread_mutex_lock(&eq->lock);
	eq->users++;
	pthread_mutex_unlock(&eq->lock);
	return eq;
}

void eq_drop(struct eq *eq)
{
	if (!eq)
		return;
	pthread_mutex_lock(&eq->lock);
	eq->users--;
	pthread_mutex_unlock(&eq->lock);
}

int eq_event(struct eq *eq, uint32_t type, const void *data, size_t len)
{
	struct event *event = malloc(sizeof(*event) + len);

	if (!event)
		return -FI_ENOMEM;
	event->type = type;
	event->len = len;
	if (len)
		memcpy(event->data, data, len);
	pthread_mutex_lock(&eq->lock);
	list_add(&eq->events, &event->node);
	wait_signal(&eq->wait);
	pthread_mutex_unlock(&eq->lock);
	return 0;
}

int eq_error(struct eq *eq, struct fid *fid, void *context, uint64_t data,
	     int err, int cause)
{
	struct failure *failure = calloc(1, sizeof(*failure));

	if (!failure)
		return -FI_ENOMEM;
	failure->entry.fid = fid;
	failure->entry.context = context;
	failure->entry.data = data;
	failure->entry.err = err;
	failure->entry.prov_errno = cause;
	pthread_mutex_lock(&eq->lock);
	list_add(&eq->failures, &failure->node);
	wait_signal(&eq->wait);
	pthread_mutex_unlock(&eq->lock);
	return 0;
}

/* With the lock. */
static ssize_t take_event(struct eq *eq, uint32_t *type, void *buf, size_t len,
			  uint64_t flags)
{
	struct event *event;
	ssize_t size;

	if (!list_empty(&eq->failures))
		return -FI_EAVAIL;
	if (list_empty(&eq->events))
		return -FI_EAGAIN;
	event = container(eq->events.next, struct event, node);
	if (event->len > len)
		return -FI_ETOOSMALL;
	size = (ssize_t)event->len;
	*type = event->type;
	if (size)
		memcpy(buf, event->data, event->len);
	if (flags & FI_PEEK)
		return size;
	list_remove(&event->node);
	free(event);
	return size;
}

static int check_read(const struct fid_eq *fid, const uint32_t *type,
		      const void *buf, size_t len)
{
	if (!is_open(fid))
		return -FI_EBADF;
	return type && (buf || !len) ? 0 : -FI_EINVAL;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *type, void *buf,
		       size_t len, uint64_t flags)
{
	ssize_t ret = check_read(fid, type, buf, len);
	struct eq *eq = eq_of(fid);

	if (ret)
		return ret;
	pthread_mutex_lock(&eq->lock);
	ret = take_event(eq, type, buf, len, flags);
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *type, void *buf,
			size_t len, int timeout, uint64_t flags)
{
	ssize_t ret = check_read(fid, type, buf, len);
	uint64_t deadline = wait_deadline(timeout);
	struct eq *eq = eq_of(fid);
	int left;

	if (ret)
		return ret;
	if (eq->wait.object == FI_WAIT_NONE)
		return -FI_ENOSYS;
	for (;;) {
		pthread_mutex_lock(&eq->lock);
		ret = take_event(eq, type, buf, len, flags);
		if (ret == -FI_EAGAIN) {
			wait_clear(&eq->wait);
			eq->wait.watched = true;
		}
		pthread_mutex_unlock(&eq->lock);
		left = wait_left(deadline);
		if (ret != -FI_EAGAIN || !left)
			return ret;
		if (wait_sleep(&eq->wait, left))
			return -FI_EAGAIN;
	}
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *entry,
			  uint64_t flags)
{
	struct eq *eq = eq_of(fid);
	struct failure *failure;

	if (!is_open(fid))
		return -FI_EBADF;
	if (!entry)
		return -FI_EINVAL;
	pthread_mutex_lock(&eq->lock);
	if (list_empty(&eq->failures)) {
		pthread_mutex_unlock(&eq->lock);
		return -FI_EAGAIN;
	}
	failure = container(eq->failures.next, struct failure, node);
	/* There is nothing to say in addition: a buffer stays as it is. */
	failure->entry.err_data = entry->err_data_size &&
		eq->fabric->version >= FI_VERSION(1, 5) ?
		entry->err_data : NULL;
	*entry = failure->entry;
	if (!(flags & FI_PEEK)) {
		list_remove(&failure->node);
		free(failure);
	}
	pthread_mutex_unlock(&eq->lock);
	return sizeof(*entry);
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t type, const void *buf,
			size_t len, uint64_t flags)
{
	struct eq *eq = eq_of(fid);
	int ret;

	(void)flags;
	if (!is_open(fid))
		return -FI_EBADF;
	if (!(eq->flags & FI_WRITE)) {
		INFO(FI_LOG_EQ,
		     "fi_eq_write(): the queue was opened without FI_WRITE\n");
		return -FI_EINVAL;
	}
	if ((!buf && len) || len > EVENT_MAX)
		return -FI_EINVAL;
	ret = eq_event(eq, type, buf, len);
	return ret ? ret : (ssize_t)len;
}

static const char *eq_strerror(struct fid_eq *fid, int cause, const void *data,
			       char *buf, size_t len)
{
	(void)fid;
	(void)data;
	return cause_copy(cause, buf, len);
}

int eq_trywait(struct fid_eq *fid)
{
	struct eq *eq = eq_of(fid);
	int ret = 0;

	pthread_mutex_lock(&eq->lock);
	if (!list_empty(&eq->events) || !list_empty(&eq->failures)) {
		ret = -FI_EAGAIN;
	} else {
		wait_clear(&eq->wait);
		eq->wait.watched = true;
	}
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

static void free_all(struct eq *eq)
{
	struct list *node, *after;

	list_each(node, after, &eq->events)
		free(container(node, struct event, node));
	list_each(node, after, &eq->failures)
		free(container(node, struct failure, node));
}

static int eq_close(struct fid *fid)
{
	struct eq *eq = container(fid, struct eq, fid.fid);

	if (!object_is(fid, FI_CLASS_EQ))
		return -FI_EBADF;
	pthread_mutex_lock(&eq->lock);
	if (eq->users) {
		INFO(FI_LOG_EQ,
		     "an event queue is still bound to %d objects: close them first\n",
		     eq->users);
		pthread_mutex_unlock(&eq->lock);
		return -FI_EBUSY;
	}
	pthread_mutex_unlock(&eq->lock);
	free_all(eq);
	wait_close(&eq->wait);
	pthread_mutex_destroy(&eq->lock);
	fabric_drop(eq->fabric);
	object_free(eq);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct eq *eq = container(fid, struct eq, fid.fid);

	if (!object_is(fid, FI_CLASS_EQ))
		return -FI_EBADF;
	return wait_control(&eq->wait, command, arg);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = no_bind,
	.control = eq_control,
	.ops_open = no_ops_open,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr,
	    struct fid_eq **out, void *context)
{
	struct eq *eq;
	int ret;

	if (!object_is(&fid->fid, FI_CLASS_FABRIC))
		return -FI_EBADF;
	if (!out || (attr && attr->flags & ~(FI_WRITE | FI_AFFINITY)))
		return -FI_EINVAL;
	eq = object_new(sizeof(*eq), FI_CLASS_EQ, context, &fid_ops);
	if (!eq)
		return -FI_ENOMEM;
	eq->fid.ops = &eq_ops;
	ret = wait_open(&eq->wait, attr ? attr->wait_obj : FI_WAIT_NONE);
	if (ret) {
		object_free(eq);
		return ret;
	}
	eq->flags = attr ? attr->flags : 0;
	eq->fabric = container(fid, struct fabric, fid);
	pthread_mutex_init(&eq->lock, NULL);
	list_init(&eq->events);
	list_init(&eq->failures);
	fabric_hold(eq->fabric);
	*out = &eq->fid;
	return 0;
}
