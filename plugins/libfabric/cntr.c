// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Counters of completed operations, and of failed ones. Used by domain.c, and by
 * whoever ends an operation.
 */
#include "provider.h"

static struct cntr *cntr_of(struct fid_cntr *fid)
{
	return container(fid, struct cntr, fid);
}

static bool is_open(const struct fid_cntr *fid)
{
	return object_is(&fid->fid, FI_CLASS_CNTR);
}

void cntr_add(struct cntr *cntr, bool ok)
{
	if (ok)
		cntr->value++;
	else
		cntr->errors++;
	wait_signal(&cntr->wait);
}

static uint64_t read_one(struct fid_cntr *fid, bool errors)
{
	struct cntr *cntr = cntr_of(fid);
	uint64_t value;

	if (!is_open(fid))
		return 0;
	domain_lock(cntr->domain);
	members_progress(&cntr->members);
	value = errors ? cntr->errors : cntr->value;
	domain_unlock(cntr->domain);
	return value;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	return read_one(fid, false);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	return read_one(fid, true);
}

/* Sets or adds; seen follows, as fi_poll(3) has it. */
static int change(struct fid_cntr *fid, bool errors, uint64_t value, bool add)
{
	struct cntr *cntr = cntr_of(fid);
	uint64_t *place;

	if (!is_open(fid))
		return -FI_EBADF;
	domain_lock(cntr->domain);
	place = errors ? &cntr->errors : &cntr->value;
	*place = value + (add ? *place : 0);
	cntr->seen = cntr->value + cntr->errors;
	wait_signal(&cntr->wait);
	domain_unlock(cntr->domain);
	return 0;
}

static int cntr_add_value(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, false, value, true);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, false, value, false);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, true, value, true);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, true, value, false);
}

/* -FI_EAGAIN: not yet. With the lock. */
static int reached(const struct cntr *cntr, uint64_t threshold, uint64_t errors)
{
	if (cntr->value >= threshold)
		return 0;
	return cntr->errors != errors ? -FI_EAVAIL : -FI_EAGAIN;
}

static int prepare(struct cntr *cntr, uint64_t threshold, uint64_t errors)
{
	int ret;

	members_progress(&cntr->members);
	ret = reached(cntr, threshold, errors);
	if (ret != -FI_EAGAIN)
		return ret;
	members_arm(&cntr->members);
	members_progress(&cntr->members);
	return reached(cntr, threshold, errors);
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	uint64_t deadline = wait_deadline(timeout), errors;
	struct cntr *cntr = cntr_of(fid);
	int ret, left;

	if (!is_open(fid))
		return -FI_EBADF;
	if (cntr->wait.object == FI_WAIT_NONE) {
		INFO(FI_LOG_CNTR,
		     "fi_cntr_wait(): the counter was opened with FI_WAIT_NONE\n");
		return -FI_ENOSYS;
	}
	domain_lock(cntr->domain);
	errors = cntr->errors;
	domain_unlock(cntr->domain);
	for (;;) {
		domain_lock(cntr->domain);
		ret = prepare(cntr, threshold, errors);
		domain_unlock(cntr->domain);
		if (ret != -FI_EAGAIN)
			return ret;
		left = wait_left(deadline);
		if (!left)
			return -FI_ETIMEDOUT;
		ret = wait_sleep(&cntr->wait, left);
		if (ret && ret != -EINTR)
			return ret;
	}
}

/* An application that sleeps by itself looks at the value first. */
int cntr_trywait(struct cntr *cntr)
{
	uint64_t value, errors;
	int ret;

	domain_lock(cntr->domain);
	value = cntr->value;
	errors = cntr->errors;
	members_progress(&cntr->members);
	members_arm(&cntr->members);
	members_progress(&cntr->members);
	ret = cntr->value != value || cntr->errors != errors ? -FI_EAGAIN : 0;
	domain_unlock(cntr->domain);
	return ret;
}

bool cntr_ready(struct cntr *cntr)
{
	bool ready;

	members_progress(&cntr->members);
	ready = cntr->seen != cntr->value + cntr->errors;
	cntr->seen = cntr->value + cntr->errors;
	return ready;
}

static int cntr_close(struct fid *fid)
{
	struct cntr *cntr = container(fid, struct cntr, fid.fid);
	struct domain *domain;

	if (!object_is(fid, FI_CLASS_CNTR))
		return -FI_EBADF;
	domain = cntr->domain;
	domain_lock(domain);
	if (cntr->users) {
		INFO(FI_LOG_CNTR,
		     "%d objects still use a counter: close them first\n",
		     cntr->users);
		domain_unlock(domain);
		return -FI_EBUSY;
	}
	domain->users--;
	domain_unlock(domain);
	wait_close(&cntr->wait);
	object_free(cntr);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct cntr *cntr = container(fid, struct cntr, fid.fid);

	if (!object_is(fid, FI_CLASS_CNTR))
		return -FI_EBADF;
	if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG)
		return wait_control(&cntr->wait, command, arg);
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETOPSFLAG)
		*(uint64_t *)arg = 0;
	else if (*(uint64_t *)arg)
		return -FI_EBADFLAGS;
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = no_bind,
	.control = cntr_control,
	.ops_open = no_ops_open,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add_value,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr,
	      struct fid_cntr **out, void *context)
{
	struct cntr *cntr;
	int ret;

	if (!object_is(&fid->fid, FI_CLASS_DOMAIN))
		return -FI_EBADF;
	if (!out)
		return -FI_EINVAL;
	if (attr && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags)) {
		INFO(FI_LOG_CNTR,
		     "fi_cntr_attr: events %d or flags 0x%llx are not offered\n",
		     (int)attr->events, (unsigned long long)attr->flags);
		return attr->flags ? -FI_EBADFLAGS : -FI_ENOSYS;
	}
	cntr = object_new(sizeof(*cntr), FI_CLASS_CNTR, context, &fid_ops);
	if (!cntr)
		return -FI_ENOMEM;
	cntr->fid.ops = &cntr_ops;
	ret = wait_open(&cntr->wait, attr ? attr->wait_obj : FI_WAIT_NONE);
	if (ret) {
		object_free(cntr);
		return ret;
	}
	cntr->domain = container(fid, struct domain, fid);
	cntr->members.wait = &cntr->wait;
	list_init(&cntr->members.list);
	domain_hold(cntr->domain);
	*out = &cntr->fid;
	return 0;
}
