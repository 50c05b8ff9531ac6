// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Completion queues: a ring of completions, in all formats; those in error wait
 * in a list of their own, in their order among the others. Reading makes
 * progress if there is nothing to read. Used by domain.c, and by whoever ends an
 * operation.
 */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define SIZE_DEFAULT	256
#define SIZE_LIMIT	((size_t)1 << 24)	/* entries */
/* Rounds of progress, a few microseconds, before somebody sleeps: an answer that
 * is on its way costs less than waking up.
 */
#define SPINS		100

struct cq_failure {
	struct list node;
	size_t after;		/* cq.tail when it happened */
	struct fi_cq_err_entry entry;
	char data[];
};

static struct cq *cq_of(struct fid_cq *fid)
{
	return container(fid, struct cq, fid);
}

static bool is_open(const struct fid_cq *fid)
{
	return object_is(&fid->fid, FI_CLASS_CQ);
}

#define SINCE(major, minor) \
	(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) >= \
	 FI_VERSION(major, minor))

/* ---- writing ----------------------------------------------------------- */

static int grow(struct cq *cq)
{
	size_t size = cq->size * 2, i;
	struct cq_entry *entries;

	entries = size <= SIZE_LIMIT ? malloc(size * sizeof(*entries)) : NULL;
	if (!entries)
		return -FI_ENOMEM;
	for (i = cq->head; i != cq->tail; i++)
		entries[i & (size - 1)] = cq->entries[i & (cq->size - 1)];
	free(cq->entries);
	cq->entries = entries;
	cq->size = size;
	return 0;
}

void cq_write(struct cq *cq, const struct fi_cq_tagged_entry *entry,
	      fi_addr_t source)
{
	struct cq_entry *to;

	if (cq->tail - cq->head == cq->size && grow(cq)) {
		WARN(FI_LOG_CQ,
		     "a completion queue with %zu unread completions cannot grow: one is lost\n",
		     cq->size);
		cq->overrun = true;
	} else {
		to = &cq->entries[cq->tail++ & (cq->size - 1)];
		to->entry = *entry;
		to->source = source;
	}
	wait_signal(&cq->wait);
}

void cq_error(struct cq *cq, const struct fi_cq_err_entry *entry)
{
	size_t len = entry->err_data ? entry->err_data_size : 0;
	struct cq_failure *failure = malloc(sizeof(*failure) + len);

	if (!failure) {
		WARN(FI_LOG_CQ, "out of memory: an error completion is lost\n");
		cq->overrun = true;
	} else {
		failure->after = cq->tail;
		failure->entry = *entry;
		failure->entry.err_data = len ? failure->data : NULL;
		failure->entry.err_data_size = len;
#if SINCE(1, 20)
		failure->entry.src_addr = FI_ADDR_NOTAVAIL;
#endif
		if (len)
			memcpy(failure->data, entry->err_data, len);
		list_add(&cq->failures, &failure->node);
	}
	wait_signal(&cq->wait);
}

/* ---- reading ----------------------------------------------------------- */

static struct cq_failure *first_failure(const struct cq *cq)
{
	return list_empty(&cq->failures) ? NULL :
	       container(cq->failures.next, struct cq_failure, node);
}

/* How many can be read before the first that failed. */
static size_t available(const struct cq *cq)
{
	const struct cq_failure *failure = first_failure(cq);

	return (failure ? failure->after : cq->tail) - cq->head;
}

static size_t copy_out(struct cq *cq, char *buf, size_t n, fi_addr_t *source)
{
	static const size_t sizes[] = {
		[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
		[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
		[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
		[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
	};
	const size_t size = sizes[cq->format];
	const struct cq_entry *from;
	size_t i;

	/* Each format is the beginning of the next one. */
	for (i = 0; i < n; i++) {
		from = &cq->entries[cq->head++ & (cq->size - 1)];
		memcpy(buf + i * size, &from->entry, size);
		if (source)
			source[i] = from->source;
	}
	return n;
}

/* With the lock. */
static ssize_t take(struct cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	size_t n = available(cq);

	if (n)
		return (ssize_t)copy_out(cq, buf, n < count ? n : count,
					 source);
	if (!list_empty(&cq->failures))
		return -FI_EAVAIL;
	return cq->overrun ? -FI_EOVERRUN : -FI_EAGAIN;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
			   fi_addr_t *source)
{
	struct cq *cq = cq_of(fid);
	ssize_t ret;

	if (!is_open(fid))
		return -FI_EBADF;
	if (!buf && count)
		return -FI_EINVAL;
	domain_lock(cq->domain);
	if (cq->head == cq->tail || !count)
		members_progress(&cq->members);
	ret = take(cq, buf, count, source);
	domain_unlock(cq->domain);
	return ret;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

bool cq_ready(struct cq *cq)
{
	if (cq->head == cq->tail)
		members_progress(&cq->members);
	return cq->head != cq->tail || !list_empty(&cq->failures);
}

/* What has to be there for sread to return; with the lock. */
static bool satisfied(const struct cq *cq, size_t threshold)
{
	return available(cq) >= threshold || !list_empty(&cq->failures) ||
	       cq->overrun || cq->signaled;
}

/*
 * True: there is enough. Else whoever sleeps now is woken by the next
 * completion of the device, by another thread's, or by an endpoint's timer.
 */
static bool prepare(struct cq *cq, size_t threshold)
{
	members_progress(&cq->members);
	if (satisfied(cq, threshold))
		return true;
	members_arm(&cq->members);
	members_progress(&cq->members);
	return satisfied(cq, threshold);
}

static void spin(struct cq *cq, size_t threshold)
{
	bool enough = false;
	int i;

	for (i = 0; i < SPINS && !enough; i++) {
		domain_lock(cq->domain);
		members_progress(&cq->members);
		enough = satisfied(cq, threshold);
		domain_unlock(cq->domain);
	}
}

static ssize_t finish(struct cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	ssize_t ret = take(cq, buf, count, source);

	if (ret == -FI_EAGAIN)
		cq->signaled = false;
	return ret;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
			    fi_addr_t *source, const void *cond, int timeout)
{
	uint64_t deadline = wait_deadline(timeout);
	struct cq *cq = cq_of(fid);
	size_t threshold = 1;
	ssize_t ret;
	int left;

	if (!is_open(fid))
		return -FI_EBADF;
	if (!buf && count)
		return -FI_EINVAL;
	if (cq->wait.object == FI_WAIT_NONE) {
		INFO(FI_LOG_CQ,
		     "fi_cq_sread(): the queue was opened with FI_WAIT_NONE\n");
		return -FI_ENOSYS;
	}
	if (cq->condition == FI_CQ_COND_THRESHOLD && (uintptr_t)cond > 1)
		threshold = (uintptr_t)cond < count ? (uintptr_t)cond : count;
	if (timeout)
		spin(cq, threshold);
	for (;;) {
		domain_lock(cq->domain);
		left = prepare(cq, threshold) ? 0 : wait_left(deadline);
		ret = left ? 0 : finish(cq, buf, count, source);
		domain_unlock(cq->domain);
		if (!left)
			return ret;
		if (wait_sleep(&cq->wait, left))
			deadline = 0;
	}
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count,
			const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

int cq_trywait(struct cq *cq)
{
	int ret;

	domain_lock(cq->domain);
	ret = prepare(cq, 1) ? -FI_EAGAIN : 0;
	domain_unlock(cq->domain);
	return ret;
}

static int cq_signal(struct fid_cq *fid)
{
	struct cq *cq = cq_of(fid);

	if (!is_open(fid))
		return -FI_EBADF;
	if (cq->wait.object == FI_WAIT_NONE)
		return -FI_ENOSYS;
	domain_lock(cq->domain);
	cq->signaled = true;
	wait_wake(&cq->wait);
	domain_unlock(cq->domain);
	return 0;
}

/* ---- errors ------------------------------------------------------------ */

/* Programs of older interfaces have a shorter structure. */
static size_t entry_size(uint32_t version)
{
	if (version < FI_VERSION(1, 5))
		return offsetof(struct fi_cq_err_entry, err_data_size);
#if SINCE(1, 20)
	if (version < FI_VERSION(1, 20))
		return offsetof(struct fi_cq_err_entry, src_addr);
#endif
	return sizeof(struct fi_cq_err_entry);
}

/*
 * The data goes to the program's buffer, if it has one; else it stays here until
 * the next failure is read.
 */
static void give(struct cq *cq, struct cq_failure *failure,
		 struct fi_cq_err_entry *to)
{
	uint32_t version = cq->domain->fabric->version;
	size_t len = failure->entry.err_data_size;

	if (version >= FI_VERSION(1, 5) && to->err_data && to->err_data_size) {
		if (len > to->err_data_size)
			len = to->err_data_size;
		if (len)
			memcpy(to->err_data, failure->data, len);
		failure->entry.err_data = to->err_data;
		failure->entry.err_data_size = len;
	}
	memcpy(to, &failure->entry, entry_size(version));
	free(cq->last);
	cq->last = failure;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *entry,
			  uint64_t flags)
{
	struct cq *cq = cq_of(fid);
	struct cq_failure *failure;

	(void)flags;
	if (!is_open(fid))
		return -FI_EBADF;
	if (!entry)
		return -FI_EINVAL;
	domain_lock(cq->domain);
	failure = first_failure(cq);
	if (failure) {
		list_remove(&failure->node);
		give(cq, failure, entry);
	}
	domain_unlock(cq->domain);
	return failure ? 1 : -FI_EAGAIN;
}

static const char *cq_strerror(struct fid_cq *fid, int cause, const void *data,
			       char *buf, size_t len)
{
	(void)fid;
	(void)data;
	return cause_copy(cause, buf, len);
}

/* ---- opening and closing ----------------------------------------------- */

static void free_all(struct cq *cq)
{
	struct list *node, *after;

	list_each(node, after, &cq->failures)
		free(container(node, struct cq_failure, node));
	free(cq->last);
	free(cq->entries);
	wait_close(&cq->wait);
	object_free(cq);
}

static int cq_close(struct fid *fid)
{
	struct cq *cq = container(fid, struct cq, fid.fid);
	struct domain *domain;

	if (!object_is(fid, FI_CLASS_CQ))
		return -FI_EBADF;
	domain = cq->domain;
	domain_lock(domain);
	if (cq->users) {
		INFO(FI_LOG_CQ,
		     "%d objects still use a completion queue: close them first\n",
		     cq->users);
		domain_unlock(domain);
		return -FI_EBUSY;
	}
	domain->users--;
	domain_unlock(domain);
	free_all(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct cq *cq = container(fid, struct cq, fid.fid);

	if (!object_is(fid, FI_CLASS_CQ))
		return -FI_EBADF;
	return wait_control(&cq->wait, command, arg);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = no_bind,
	.control = cq_control,
	.ops_open = no_ops_open,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static int check_attr(const struct fi_cq_attr *attr)
{
	if (attr->flags & ~FI_AFFINITY) {
		INFO(FI_LOG_CQ, "fi_cq_attr: flags 0x%llx are not offered\n",
		     (unsigned long long)attr->flags);
		return -FI_EINVAL;
	}
	if (attr->format > FI_CQ_FORMAT_TAGGED || attr->size > SIZE_LIMIT ||
	    attr->wait_cond > FI_CQ_COND_THRESHOLD) {
		INFO(FI_LOG_CQ,
		     "fi_cq_attr: format %d, size %zu or wait_cond %d does not exist\n",
		     (int)attr->format, attr->size, (int)attr->wait_cond);
		return -FI_EINVAL;
	}
	return 0;
}

int cq_open(struct fid_domain *fid, struct fi_cq_attr *attr,
	    struct fid_cq **out, void *context)
{
	size_t size = SIZE_DEFAULT;
	struct cq *cq;
	int ret;

	if (!object_is(&fid->fid, FI_CLASS_DOMAIN))
		return -FI_EBADF;
	ret = attr && out ? check_attr(attr) : -FI_EINVAL;
	if (ret)
		return ret;
	cq = object_new(sizeof(*cq), FI_CLASS_CQ, context, &fid_ops);
	if (!cq)
		return -FI_ENOMEM;
	cq->fid.ops = &cq_ops;
	ret = wait_open(&cq->wait, attr->wait_obj);
	if (ret) {
		object_free(cq);
		return ret;
	}
	cq->domain = container(fid, struct domain, fid);
	cq->format = attr->format ? attr->format : FI_CQ_FORMAT_CONTEXT;
	cq->condition = attr->wait_cond;
	cq->members.wait = &cq->wait;
	list_init(&cq->members.list);
	list_init(&cq->failures);
	while (size < attr->size)
		size *= 2;
	cq->size = size;
	cq->entries = malloc(size * sizeof(*cq->entries));
	if (!cq->entries) {
		free_all(cq);
		return -FI_ENOMEM;
	}
	domain_hold(cq->domain);
	*out = &cq->fid;
	return 0;
}
