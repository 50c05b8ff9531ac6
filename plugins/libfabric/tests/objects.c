// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Objects of the provider through the library that is installed: how they are
 * opened and closed, and that a misused one says so.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

#define MR_BASIC	1

static void eq_new(struct opened *o, enum fi_wait_obj object, struct fid_eq **eq)
{
	struct fi_eq_attr attr = { .flags = FI_WRITE, .wait_obj = object };

	CHECK_EQ(fi_eq_open(o->fabric, &attr, eq, NULL), 0);
}

static void cq_new(struct opened *o, enum fi_wait_obj object, struct fid_cq **cq)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = object,
	};

	CHECK_EQ(fi_cq_open(o->domain, &attr, cq, NULL), 0);
}

static void cntr_new(struct opened *o, enum fi_wait_obj object,
		     struct fid_cntr **cntr)
{
	struct fi_cntr_attr attr = { .wait_obj = object };

	CHECK_EQ(fi_cntr_open(o->domain, &attr, cntr, NULL), 0);
}

static void av_new(struct opened *o, enum fi_av_type type, uint64_t flags,
		   struct fid_av **av)
{
	struct fi_av_attr attr = { .type = type, .flags = flags };

	CHECK_EQ(fi_av_open(o->domain, &attr, av, NULL), 0);
}

/* ---- the order of closing ---------------------------------------------- */

TEST(close_in_order_only)
{
	struct fid_cntr *cntr;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_mr *mr;
	static char buf[100];
	struct opened o;

	own_fabric();
	open_domain(&o, 0, 0);
	CHECK_EQ(fi_close(&o.fabric->fid), -FI_EBUSY);
	eq_new(&o, FI_WAIT_NONE, &eq);
	cq_new(&o, FI_WAIT_UNSPEC, &cq);
	cntr_new(&o, FI_WAIT_UNSPEC, &cntr);
	av_new(&o, FI_AV_TABLE, FI_EVENT, &av);
	CHECK_EQ(fi_mr_reg(o.domain, buf, sizeof(buf), FI_REMOTE_WRITE, 0, 0, 0,
			   &mr, NULL), 0);
	CHECK_EQ(fi_close(&o.domain->fid), -FI_EBUSY);
	CHECK_EQ(av->fid.ops->bind(&av->fid, &eq->fid, 0), 0);
	CHECK_EQ(fi_close(&eq->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&cq->fid), 0);
	CHECK_EQ(fi_close(&cntr->fid), 0);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_close(&o.domain->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&av->fid), 0);
	CHECK_EQ(fi_close(&o.domain->fid), 0);
	CHECK_EQ(fi_close(&o.fabric->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&eq->fid), 0);
	CHECK_EQ(fi_close(&o.fabric->fid), 0);
	fi_freeinfo(o.info);
}

static unsigned int open_all_and_close(void)
{
	static char buf[5000];
	struct fid_cntr *cntr;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_mr *mr;
	struct opened o;

	open_domain(&o, 0, 0);
	eq_new(&o, FI_WAIT_FD, &eq);
	cq_new(&o, FI_WAIT_FD, &cq);
	cntr_new(&o, FI_WAIT_UNSPEC, &cntr);
	av_new(&o, FI_AV_MAP, 0, &av);
	CHECK_EQ(fi_mr_reg(o.domain, buf, sizeof(buf), FI_SEND | FI_RECV, 0, 0,
			   0, &mr, NULL), 0);
	fi_close(&mr->fid);
	fi_close(&av->fid);
	fi_close(&cntr->fid);
	fi_close(&cq->fid);
	fi_close(&eq->fid);
	close_domain(&o);
	return open_descriptors();
}

TEST(open_and_close_without_growth)
{
	unsigned int before, i;

	own_fabric();
	open_all_and_close();
	before = open_all_and_close();
	for (i = 0; i < 30; i++)
		CHECK_EQ(open_all_and_close(), before);
}

TEST(domains_refuse_what_they_cannot)
{
	struct fid_domain *domain;
	struct fid_fabric *fabric;
	struct fi_info *other;
	struct opened o;

	own_fabric();
	open_domain(&o, 0, 0);
	other = fi_dupinfo(o.info);
	other->caps |= FI_MULTICAST;
	CHECK_EQ(fi_domain(o.fabric, other, &domain, NULL), -FI_ENODATA);
	other->caps = o.info->caps;
	free(other->domain_attr->name);
	other->domain_attr->name = NULL;
	CHECK_EQ(fi_domain(o.fabric, other, &domain, NULL), -FI_EINVAL);
	other->domain_attr->name = strdup("loopback:another");
	CHECK_EQ(fi_domain(o.fabric, other, &domain, NULL), -FI_ENODATA);
	free(other->fabric_attr->name);
	other->fabric_attr->name = strdup("another");
	CHECK_EQ(fi_domain(o.fabric, other, &domain, NULL), -FI_EINVAL);
	CHECK_EQ(fi_domain(o.fabric, NULL, &domain, NULL), -FI_EINVAL);
	CHECK_EQ(fi_domain2(o.fabric, o.info, &domain, FI_PEER, NULL),
		 -FI_ENOSYS);
	free(other->fabric_attr->name);
	other->fabric_attr->name = NULL;
	CHECK(fi_fabric(other->fabric_attr, &fabric, NULL));
	CHECK_EQ(o.domain->ops->scalable_ep(o.domain, o.info, NULL, NULL),
		 -FI_ENOSYS);
	CHECK_EQ(o.domain->ops->stx_ctx(o.domain, NULL, NULL, NULL), -FI_ENOSYS);
	CHECK_EQ(o.domain->ops->srx_ctx(o.domain, NULL, NULL, NULL), -FI_ENOSYS);
	CHECK_EQ(o.fabric->ops->passive_ep(o.fabric, o.info, NULL, NULL),
		 -FI_ENOSYS);
	CHECK_EQ(fi_open_ops(&o.domain->fid, "x", 0, NULL, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_control(&o.domain->fid, FI_ALIAS, NULL), -FI_ENOSYS);
	fi_freeinfo(other);
	close_domain(&o);
}

/* Two domains of a port, in hints and by themselves. */
TEST(domains_in_hints)
{
	struct opened a, b;
	struct fi_info *hints = hints_new(), *info;

	own_fabric();
	open_domain(&a, 0, 0);
	open_domain(&b, 0, 0);
	hints->domain_attr->domain = b.domain;
	hints->fabric_attr->fabric = a.fabric;
	info = info_new(hints);
	CHECK(!strcmp(info->domain_attr->name, b.info->domain_attr->name));
	CHECK(info->domain_attr->domain == b.domain);
	fi_freeinfo(info);
	close_domain(&b);
	/* Closed, or never one of ours. */
	CHECK_EQ(fi_getinfo(VERSION, NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->domain_attr->domain = a.domain;
	fi_freeinfo(hints);
	close_domain(&a);
}

/* ---- event queues ------------------------------------------------------ */

static struct fid_eq *shared_eq;

static void *write_event(void *unused)
{
	struct fi_eq_entry entry = { .data = 77 };

	(void)unused;
	CHECK_EQ(fi_eq_write(shared_eq, FI_NOTIFY, &entry, sizeof(entry), 0),
		 sizeof(entry));
	return NULL;
}

static void check_wait(enum fi_wait_obj object, struct opened *o)
{
	struct fi_eq_entry entry = { .data = 0 };
	pthread_t thread;
	uint32_t event;

	eq_new(o, object, &shared_eq);
	CHECK_EQ(fi_eq_sread(shared_eq, &event, &entry, sizeof(entry), 1, 0),
		 -FI_EAGAIN);
	CHECK_EQ(pthread_create(&thread, NULL, write_event, NULL), 0);
	CHECK_EQ(fi_eq_sread(shared_eq, &event, &entry, sizeof(entry), -1, 0),
		 sizeof(entry));
	CHECK(event == FI_NOTIFY && entry.data == 77);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(fi_close(&shared_eq->fid), 0);
}

TEST(event_queues)
{
	struct fi_eq_entry in = { .data = 5 }, out;
	struct fi_eq_err_entry error = { .data = 0 };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct pollfd pfd = { .events = POLLIN };
	struct fid *fids[1];
	struct fid_eq *eq;
	struct opened o;
	uint32_t event;

	own_fabric();
	open_domain(&o, 0, 0);
	check_wait(FI_WAIT_UNSPEC, &o);
	check_wait(FI_WAIT_FD, &o);
	check_wait(FI_WAIT_YIELD, &o);
	CHECK_EQ(fi_eq_open(o.fabric, &attr, &eq, NULL), -FI_ENOSYS);
	attr.wait_obj = FI_WAIT_NONE;
	CHECK_EQ(fi_eq_open(o.fabric, &attr, &eq, NULL), 0);
	CHECK_EQ(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), -FI_EINVAL);
	CHECK_EQ(fi_eq_sread(eq, &event, &out, sizeof(out), 0, 0), -FI_ENOSYS);
	CHECK_EQ(fi_close(&eq->fid), 0);
	eq_new(&o, FI_WAIT_FD, &eq);
	CHECK_EQ(fi_control(&eq->fid, FI_GETWAIT, &pfd.fd), 0);
	fids[0] = &eq->fid;
	CHECK_EQ(fi_trywait(o.fabric, fids, 1), 0);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	CHECK_EQ(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	CHECK_EQ(poll(&pfd, 1, 0), 1);
	CHECK_EQ(fi_trywait(o.fabric, fids, 1), -FI_EAGAIN);
	CHECK_EQ(fi_eq_read(eq, &event, &out, 1, 0), -FI_ETOOSMALL);
	CHECK_EQ(fi_eq_read(eq, &event, &out, sizeof(out), FI_PEEK), sizeof(out));
	CHECK_EQ(fi_eq_read(eq, &event, &out, sizeof(out), 0), sizeof(out));
	CHECK_EQ(out.data, 5);
	CHECK_EQ(fi_eq_read(eq, &event, &out, sizeof(out), 0), -FI_EAGAIN);
	CHECK_EQ(fi_trywait(o.fabric, fids, 1), 0);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	CHECK_EQ(fi_eq_readerr(eq, &error, 0), -FI_EAGAIN);
	CHECK(strlen(fi_eq_strerror(eq, -ENOENT, NULL, NULL, 0)));
	CHECK_EQ(fi_close(&eq->fid), 0);
	close_domain(&o);
}

/* ---- address vectors --------------------------------------------------- */

#define SLOT	56

static void check_table(struct fid_av *av)
{
	char packed[] = "fi_fabrex://a.0:1\0fi_fabrex://b.0:2:0000000f";
	char slots[3 * SLOT] = "";
	const char *pointers[] = { "fi_fabrex://d.0:9", "junk",
				   "fi_fabrex://e.0:9" };
	fi_addr_t addr[3];
	int errors[3];
	char text[SLOT];
	size_t len = sizeof(text);

	CHECK_EQ(fi_av_insert(av, packed, 2, addr, 0, NULL), 2);
	CHECK(addr[0] == 0 && addr[1] == 1);
	strcpy(slots, "fi_fabrex://c.0:3");
	strcpy(slots + SLOT, "fi_fabrex://c.0:4");
	CHECK_EQ(fi_av_insert(av, slots, 2, NULL, FI_MORE, NULL), 2);
	CHECK_EQ(fi_av_lookup(av, 3, text, &len), 0);
	CHECK(len == 32 && !strcmp(text, "fi_fabrex://c.0:4"));
	CHECK_EQ(fi_av_insert(av, pointers, 3, addr, FI_SYNC_ERR, errors), 2);
	CHECK(addr[0] == 4 && addr[1] == FI_ADDR_NOTAVAIL && addr[2] == 5);
	CHECK(!errors[0] && errors[1] == FI_EINVAL && !errors[2]);
	/* The lowest free place is taken again. */
	addr[0] = 1;
	addr[1] = 4;
	CHECK_EQ(fi_av_remove(av, addr, 2, 0), 0);
	CHECK_EQ(fi_av_remove(av, addr, 1, 0), -FI_EINVAL);
	CHECK_EQ(fi_av_lookup(av, 1, text, &len), -FI_EINVAL);
	strcpy(slots, "fi_fabrex://c.0:5");
	CHECK_EQ(fi_av_insert(av, slots, 1, addr, 0, NULL), 1);
	CHECK_EQ(addr[0], 1);
	CHECK_EQ(fi_av_insertsvc(av, "host", "80", addr, 0, NULL), 1);
	CHECK_EQ(addr[0], 4);
	len = 5;
	CHECK_EQ(fi_av_lookup(av, 4, text, &len), 0);
	CHECK(len == 32 && !memcmp(text, "fi_fa", 5));
	len = sizeof(text);
	CHECK(fi_av_straddr(av, slots, text, &len) == text);
	CHECK(!strcmp(text, slots) && len == strlen(slots) + 1);
	len = 4;
	CHECK(fi_av_straddr(av, slots, text, &len) == text);
	CHECK(!strcmp(text, "fi_"));
}

/* The same number each time, until it was removed as often as it was inserted. */
static void check_twice(struct fid_av *av)
{
	static char with_nonce[] = "fi_fabrex://t.0:7:0000000f";
	static char other_nonce[] = "fi_fabrex://t.0:7:00000010";
	static char without[] = "fi_fabrex://t.0:7";
	char text[SLOT];
	fi_addr_t addr[4];
	size_t len = sizeof(text);

	CHECK_EQ(fi_av_insert(av, with_nonce, 1, &addr[0], 0, NULL), 1);
	CHECK_EQ(fi_av_insert(av, with_nonce, 1, &addr[1], 0, NULL), 1);
	CHECK_EQ(addr[0], addr[1]);
	/* Which may be another endpoint. */
	CHECK_EQ(fi_av_insert(av, other_nonce, 1, &addr[2], 0, NULL), 1);
	CHECK_EQ(fi_av_insert(av, without, 1, &addr[3], 0, NULL), 1);
	CHECK(addr[2] != addr[0] && addr[3] != addr[0] && addr[3] != addr[2]);
	CHECK_EQ(fi_av_remove(av, addr, 1, 0), 0);
	CHECK_EQ(fi_av_lookup(av, addr[0], text, &len), 0);
	CHECK_EQ(fi_av_remove(av, addr, 1, 0), 0);
	CHECK_EQ(fi_av_lookup(av, addr[0], text, &len), -FI_EINVAL);
}

static void check_symmetric(struct fid_av *av)
{
	fi_addr_t addr[4];
	char text[SLOT];
	size_t len = sizeof(text);

	CHECK_EQ(fi_av_insertsym(av, "node09", 2, "100", 2, addr, 0, NULL), 4);
	CHECK_EQ(fi_av_lookup(av, addr[3], text, &len), 0);
	CHECK(!strcmp(text, "fi_fabrex://node10:101"));
	CHECK_EQ(fi_av_insertsym(av, "node", 2, "1", 1, addr, 0, NULL),
		 -FI_EINVAL);
	CHECK_EQ(fi_av_insertsym(av, "node", 1, "1", 2, addr, 0, NULL), 2);
}

TEST(address_vectors)
{
	static char junk[] = "fi_fabrex://a.0:1:2:3  ";
	static char endless[3 * SLOT];
	struct fi_av_attr attr = { .type = FI_AV_UNSPEC, .count = 100000 };
	uint64_t wild[2] = { 16, 16 };
	fi_addr_t addr[2];
	struct fid_av *av;
	struct opened o;

	own_fabric();
	open_domain(&o, 0, 0);
	CHECK_EQ(fi_av_open(o.domain, &attr, &av, NULL), 0);
	CHECK_EQ(attr.type, FI_AV_TABLE);
	check_table(av);
	check_symmetric(av);
	check_twice(av);
	CHECK_EQ(fi_av_insert(av, junk, 1, addr, 0, NULL), 0);
	CHECK_EQ(addr[0], FI_ADDR_NOTAVAIL);
	memset(endless, 'x', sizeof(endless));
	memcpy(endless, "fi_fabrex://", 12);
	CHECK_EQ(fi_av_insert(av, endless, 2, addr, 0, NULL), 0);
	CHECK_EQ(fi_av_insert(av, wild, 2, addr, 0, NULL), 0);
	CHECK_EQ(fi_av_insert(av, junk, 1, addr, FI_AV_USER_ID, NULL),
		 -FI_EBADFLAGS);
	CHECK_EQ(fi_av_insert(av, NULL, 1, addr, 0, NULL), -FI_EINVAL);
	CHECK_EQ(fi_av_insert(av, NULL, 0, NULL, 0, NULL), 0);
	CHECK_EQ(fi_close(&av->fid), 0);
	av_new(&o, FI_AV_MAP, 0, &av);
	CHECK_EQ(fi_av_insert(av, junk, 1, NULL, 0, NULL), -FI_EINVAL);
	CHECK_EQ(fi_close(&av->fid), 0);
	attr.name = "shared";
	CHECK_EQ(fi_av_open(o.domain, &attr, &av, NULL), -FI_ENOSYS);
	attr.name = NULL;
	attr.rx_ctx_bits = 2;
	CHECK_EQ(fi_av_open(o.domain, &attr, &av, NULL), -FI_EINVAL);
	close_domain(&o);
}

TEST(insertions_as_events)
{
	char two[2 * SLOT] = "fi_fabrex://a.0:1";
	struct fi_eq_err_entry error = { .data = 0 };
	struct fi_eq_entry entry;
	fi_addr_t addr[2];
	struct fid_av *av;
	struct fid_eq *eq;
	struct opened o;
	uint32_t event;

	own_fabric();
	open_domain(&o, 0, 0);
	eq_new(&o, FI_WAIT_UNSPEC, &eq);
	av_new(&o, FI_AV_TABLE, FI_EVENT, &av);
	CHECK_EQ(fi_av_insert(av, two, 1, addr, 0, NULL), -FI_ENOEQ);
	CHECK_EQ(av->fid.ops->bind(&av->fid, &o.domain->fid, 0), -FI_EINVAL);
	CHECK_EQ(av->fid.ops->bind(&av->fid, &eq->fid, 0), 0);
	strcpy(two + SLOT, "fi_fabrex:/b");
	CHECK_EQ(fi_av_insert(av, two, 2, addr, 0, two), 0);
	CHECK_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	CHECK_EQ(fi_eq_readerr(eq, &error, 0), sizeof(error));
	CHECK(error.fid == &av->fid && error.data == 1 &&
	      error.err == FI_EINVAL && error.context == two);
	CHECK_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0),
		 sizeof(entry));
	CHECK(event == FI_AV_COMPLETE && entry.fid == &av->fid &&
	      entry.data == 1 && entry.context == two);
	CHECK(addr[0] == 0 && addr[1] == FI_ADDR_NOTAVAIL);
	CHECK_EQ(fi_close(&av->fid), 0);
	CHECK_EQ(fi_close(&eq->fid), 0);
	close_domain(&o);
}

/* ---- completion queues and counters, without endpoints ------------------ */

TEST(empty_completion_queues)
{
	struct fi_cq_err_entry error = { .err_data_size = 0 };
	struct fi_cq_attr attr = { .size = SIZE_MAX };
	struct fi_cq_tagged_entry entry;
	struct fid_cq *cq;
	struct opened o;
	fi_addr_t source;

	own_fabric();
	open_domain(&o, 0, 0);
	CHECK_EQ(fi_cq_open(o.domain, &attr, &cq, NULL), -FI_EINVAL);
	attr = (struct fi_cq_attr){ .wait_obj = FI_WAIT_SET };
	CHECK_EQ(fi_cq_open(o.domain, &attr, &cq, NULL), -FI_ENOSYS);
	attr = (struct fi_cq_attr){ .format = (enum fi_cq_format)9 };
	CHECK_EQ(fi_cq_open(o.domain, &attr, &cq, NULL), -FI_EINVAL);
	cq_new(&o, FI_WAIT_NONE, &cq);
	CHECK_EQ(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
	CHECK_EQ(fi_cq_read(cq, NULL, 0), -FI_EAGAIN);
	CHECK_EQ(fi_cq_read(cq, NULL, 1), -FI_EINVAL);
	CHECK_EQ(fi_cq_readfrom(cq, &entry, 1, &source), -FI_EAGAIN);
	CHECK_EQ(fi_cq_readerr(cq, &error, 0), -FI_EAGAIN);
	CHECK_EQ(fi_cq_sread(cq, &entry, 1, NULL, 0), -FI_ENOSYS);
	CHECK_EQ(fi_cq_signal(cq), -FI_ENOSYS);
	CHECK_EQ(fi_close(&cq->fid), 0);
	cq_new(&o, FI_WAIT_UNSPEC, &cq);
	CHECK_EQ(fi_cq_sread(cq, &entry, 1, NULL, 1), -FI_EAGAIN);
	CHECK_EQ(fi_cq_signal(cq), 0);
	CHECK_EQ(fi_cq_sread(cq, &entry, 1, NULL, -1), -FI_EAGAIN);
	CHECK(strstr(fi_cq_strerror(cq, 10, NULL, NULL, 0), "link is down"));
	CHECK_EQ(fi_close(&cq->fid), 0);
	close_domain(&o);
}

static struct fid_cntr *shared_cntr;

static void *add_to_counter(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < 5; i++)
		CHECK_EQ(fi_cntr_add(shared_cntr, 1), 0);
	return NULL;
}

static void *add_error(void *unused)
{
	(void)unused;
	CHECK_EQ(fi_cntr_adderr(shared_cntr, 1), 0);
	return NULL;
}

static void check_cntr_wait(struct opened *o, enum fi_wait_obj object)
{
	struct fid_cntr *cntr;
	pthread_t thread;

	cntr_new(o, object, &cntr);
	shared_cntr = cntr;
	CHECK_EQ(fi_cntr_wait(cntr, 1, 1), -FI_ETIMEDOUT);
	CHECK_EQ(pthread_create(&thread, NULL, add_to_counter, NULL), 0);
	CHECK_EQ(fi_cntr_wait(cntr, 5, -1), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, add_error, NULL), 0);
	while (!fi_cntr_readerr(cntr))
		;
	CHECK_EQ(pthread_join(thread, NULL), 0);
	/* Only a change counts. */
	CHECK_EQ(fi_cntr_wait(cntr, 6, 1), -FI_ETIMEDOUT);
	CHECK_EQ(fi_close(&cntr->fid), 0);
}

TEST(counters)
{
	struct fi_cntr_attr attr = { .flags = 1 };
	struct fid_cntr *cntr;
	uint64_t flags = 0;
	struct opened o;

	own_fabric();
	open_domain(&o, 0, 0);
	CHECK_EQ(fi_cntr_open(o.domain, &attr, &cntr, NULL), -FI_EBADFLAGS);
	CHECK_EQ(fi_cntr_open(o.domain, NULL, &cntr, NULL), 0);
	CHECK_EQ(fi_cntr_set(cntr, 7), 0);
	CHECK_EQ(fi_cntr_seterr(cntr, 3), 0);
	CHECK_EQ(fi_cntr_add(cntr, 2), 0);
	CHECK_EQ(fi_cntr_adderr(cntr, 2), 0);
	CHECK_EQ(fi_cntr_read(cntr), 9);
	CHECK_EQ(fi_cntr_readerr(cntr), 5);
	CHECK_EQ(fi_cntr_wait(cntr, 9, 0), -FI_ENOSYS);
	CHECK_EQ(fi_control(&cntr->fid, FI_GETOPSFLAG, &flags), 0);
	CHECK_EQ(fi_close(&cntr->fid), 0);
	check_cntr_wait(&o, FI_WAIT_UNSPEC);
	check_cntr_wait(&o, FI_WAIT_FD);
	check_cntr_wait(&o, FI_WAIT_YIELD);
	close_domain(&o);
}

/* ---- memory regions ---------------------------------------------------- */

TEST(memory_regions)
{
	static char buf[10000];
	struct iovec iov[2] = { { buf, 100 }, { buf + 200, 100 } };
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 1, .access = FI_REMOTE_READ,
	};
	struct fid_mr *mr, *other;
	uint64_t base = 1, key, mapped;
	size_t size = 4;
	struct opened o;

	own_fabric();
	open_domain(&o, FI_MSG | FI_RMA | FI_HMEM, 0);
	CHECK_EQ(fi_mr_reg(o.domain, buf, sizeof(buf),
			   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 42, 0, &mr,
			   NULL), 0);
	CHECK_EQ(fi_mr_reg(o.domain, buf, sizeof(buf), 0, 0, 42, 0, &other,
			   NULL), 0);
	CHECK(fi_mr_key(mr) != fi_mr_key(other) && fi_mr_desc(mr) &&
	      fi_mr_desc(mr) != fi_mr_desc(other));
	CHECK_EQ(fi_mr_raw_attr(mr, &base, (uint8_t *)&key, &size, 0),
		 -FI_ETOOSMALL);
	CHECK_EQ(size, 8);
	CHECK_EQ(fi_mr_raw_attr(mr, &base, (uint8_t *)&key, &size, 0), 0);
	CHECK(!base && key == fi_mr_key(mr));
	CHECK_EQ(fi_mr_map_raw(o.domain, base, (uint8_t *)&key, 8, &mapped, 0),
		 0);
	CHECK_EQ(mapped, key);
	CHECK_EQ(fi_mr_unmap_key(o.domain, mapped), 0);
	CHECK_EQ(fi_mr_enable(mr), 0);
	CHECK_EQ(fi_mr_bind(mr, &o.domain->fid, 0), -FI_ENOSYS);
	CHECK_EQ(fi_mr_refresh(mr, iov, 1, 0), -FI_ENOSYS);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_close(&mr->fid), -FI_EBADF);
	CHECK_EQ(fi_close(&other->fid), 0);
	CHECK_EQ(fi_mr_regattr(o.domain, &attr, 0, &mr), 0);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_mr_regv(o.domain, iov, 1, FI_SEND, 0, 0, 0, &mr, NULL), 0);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_mr_regv(o.domain, iov, 2, FI_SEND, 0, 0, 0, &mr, NULL),
		 -FI_EINVAL);
	CHECK_EQ(fi_mr_reg(o.domain, buf, 0, 0, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	CHECK_EQ(fi_mr_reg(o.domain, buf, 9, 0, 8, 0, 0, &mr, NULL), -FI_EINVAL);
	CHECK_EQ(fi_mr_reg(o.domain, buf, 9, FI_MULTICAST, 0, 0, 0, &mr, NULL),
		 -FI_EINVAL);
	CHECK_EQ(fi_mr_reg(o.domain, buf, 9, 0, 0, 0, FI_RMA_EVENT, &mr, NULL),
		 -FI_EBADFLAGS);
	CHECK_EQ(fi_mr_reg(o.domain, (void *)8, 4096, FI_RECV, 0, 0, 0, &mr,
			   NULL), -FI_EFAULT);
	attr.iface = FI_HMEM_ZE;
	CHECK_EQ(fi_mr_regattr(o.domain, &attr, 0, &mr), -FI_EOPNOTSUPP);
	close_domain(&o);
}

/* Memory of a descriptor, as device memory comes without a runtime. */
TEST(regions_of_descriptors)
{
#ifdef FI_MR_DMABUF
	struct fi_mr_dmabuf dmabuf = { .len = 4096, .offset = 4096 };
	struct fi_mr_attr attr = {
		.dmabuf = &dmabuf, .iov_count = 1, .access = FI_REMOTE_READ,
	};
	struct fid_mr *mr;
	struct opened o;

	own_fabric();
	open_domain(&o, FI_MSG | FI_RMA | FI_HMEM, 0);
	dmabuf.fd = memfd_create("memory", MFD_CLOEXEC);
	CHECK(dmabuf.fd >= 0 && !ftruncate(dmabuf.fd, 16384));
	CHECK_EQ(fi_mr_regattr(o.domain, &attr, FI_MR_DMABUF, &mr), 0);
	CHECK_EQ(fi_close(&mr->fid), 0);
	attr.iov_count = 2;
	CHECK_EQ(fi_mr_regattr(o.domain, &attr, FI_MR_DMABUF, &mr), -FI_EINVAL);
	attr.iov_count = 1;
	close(dmabuf.fd);
	CHECK(fi_mr_regattr(o.domain, &attr, FI_MR_DMABUF, &mr) < 0);
	close_domain(&o);
#endif
}

TEST(registrations_as_events)
{
	static char buf[100];
	struct fi_eq_entry entry;
	struct fid_mr *mr;
	struct fid_eq *eq;
	struct opened o;
	uint32_t event;

	own_fabric();
	open_domain(&o, 0, 0);
	eq_new(&o, FI_WAIT_UNSPEC, &eq);
	CHECK_EQ(fi_domain_bind(o.domain, &eq->fid, UINT64_C(1) << 59), 0);
	CHECK_EQ(fi_domain_bind(o.domain, &eq->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_mr_reg(o.domain, buf, sizeof(buf), FI_SEND, 0, 0, 0, &mr,
			   &buf), 0);
	CHECK_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0),
		 sizeof(entry));
	CHECK(event == FI_MR_COMPLETE && entry.fid == &mr->fid &&
	      entry.context == &buf);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_close(&eq->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&o.domain->fid), 0);
	CHECK_EQ(fi_close(&eq->fid), 0);
	CHECK_EQ(fi_close(&o.fabric->fid), 0);
	fi_freeinfo(o.info);
}

/* Base addresses of regions have a place, again and again. */
TEST(regions_with_virtual_addresses)
{
	static char buf[1 << 16];
	struct fid_mr *mr[256];
	struct opened o;
	uint64_t base, key;
	size_t size = 8;
	int i, round;

	own_fabric();
	open_domain(&o, 0, FI_MR_VIRT_ADDR);
	for (round = 0; round < 40; round++) {
		for (i = 0; i < 256; i++)
			CHECK_EQ(fi_mr_reg(o.domain, buf + i, 4096,
					   FI_REMOTE_READ, 0, 0, 0, &mr[i],
					   NULL), 0);
		CHECK_EQ(fi_mr_raw_attr(mr[9], &base, (uint8_t *)&key, &size, 0),
			 0);
		CHECK_EQ(base, (uintptr_t)(buf + 9));
		for (i = 0; i < 256; i++)
			CHECK_EQ(fi_close(&mr[i]->fid), 0);
	}
	close_domain(&o);
}

/* ---- misuse ------------------------------------------------------------ */

TEST(closed_objects_say_so)
{
	static char buf[4096];
	struct fi_cq_err_entry error = { .err_data_size = 0 };
	struct fi_cq_tagged_entry entry;
	struct fi_eq_entry event_entry;
	struct fid_cntr *cntr;
	struct fid *fids[1];
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_mr *mr;
	struct opened o;
	fi_addr_t addr;
	uint32_t event;
	size_t len = 0;

	own_fabric();
	open_domain(&o, 0, 0);
	eq_new(&o, FI_WAIT_UNSPEC, &eq);
	cq_new(&o, FI_WAIT_UNSPEC, &cq);
	cntr_new(&o, FI_WAIT_UNSPEC, &cntr);
	av_new(&o, FI_AV_TABLE, 0, &av);
	CHECK_EQ(fi_close(&eq->fid), 0);
	CHECK_EQ(fi_close(&cq->fid), 0);
	CHECK_EQ(fi_close(&cntr->fid), 0);
	CHECK_EQ(fi_close(&av->fid), 0);
	CHECK_EQ(fi_close(&eq->fid), -FI_EBADF);
	CHECK_EQ(fi_close(&cq->fid), -FI_EBADF);
	CHECK_EQ(fi_close(&cntr->fid), -FI_EBADF);
	CHECK_EQ(fi_close(&av->fid), -FI_EBADF);
	CHECK_EQ(fi_eq_read(eq, &event, &event_entry, 8, 0), -FI_EBADF);
	CHECK_EQ(fi_eq_sread(eq, &event, &event_entry, 8, -1, 0), -FI_EBADF);
	CHECK_EQ(fi_eq_write(eq, 0, buf, 1, 0), -FI_EBADF);
	CHECK_EQ(fi_cq_read(cq, &entry, 1), -FI_EBADF);
	CHECK_EQ(fi_cq_sread(cq, &entry, 1, NULL, -1), -FI_EBADF);
	CHECK_EQ(fi_cq_readerr(cq, &error, 0), -FI_EBADF);
	CHECK_EQ(fi_cq_signal(cq), -FI_EBADF);
	CHECK_EQ(fi_control(&cq->fid, FI_GETWAIT, buf), -FI_EBADF);
	CHECK_EQ(fi_cntr_read(cntr), 0);
	CHECK_EQ(fi_cntr_add(cntr, 1), -FI_EBADF);
	CHECK_EQ(fi_cntr_wait(cntr, 1, -1), -FI_EBADF);
	CHECK_EQ(fi_av_insert(av, buf, 1, &addr, 0, NULL), -FI_EBADF);
	CHECK_EQ(fi_av_remove(av, &addr, 1, 0), -FI_EBADF);
	CHECK_EQ(fi_av_lookup(av, 0, buf, &len), -FI_EBADF);
	CHECK_EQ(av->fid.ops->bind(&av->fid, &eq->fid, 0), -FI_EBADF);
	fids[0] = &cq->fid;
	CHECK_EQ(fi_trywait(o.fabric, fids, 1), -FI_EINVAL);
	close_domain(&o);
	CHECK_EQ(fi_close(&o.domain->fid), -FI_EBADF);
	CHECK_EQ(fi_close(&o.fabric->fid), -FI_EBADF);
	CHECK_EQ(fi_mr_reg(o.domain, buf, 1, 0, 0, 0, 0, &mr, NULL), -FI_EBADF);
	CHECK_EQ(o.domain->ops->cntr_open(o.domain, NULL, &cntr, NULL),
		 -FI_EBADF);
	CHECK_EQ(fi_eq_open(o.fabric, NULL, &eq, NULL), -FI_EBADF);
	CHECK_EQ(fi_trywait(o.fabric, fids, 1), -FI_EBADF);
}

/* The kinds are mixed up. */
TEST(wrong_kinds_are_refused)
{
	struct fid_cq *cq;
	struct fid_av *av;
	struct opened o;
	uint8_t raw[8] = "";
	uint64_t key;

	own_fabric();
	open_domain(&o, 0, 0);
	cq_new(&o, FI_WAIT_NONE, &cq);
	av_new(&o, FI_AV_TABLE, 0, &av);
	CHECK_EQ(av->fid.ops->bind(&av->fid, &cq->fid, 0), -FI_EINVAL);
	CHECK_EQ(av->fid.ops->bind(&av->fid, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_domain_bind(o.domain, &cq->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_domain_bind(o.domain, NULL, 1), -FI_EBADFLAGS);
	CHECK_EQ(fi_control(&cq->fid, FI_GETWAIT, NULL), -FI_EINVAL);
	CHECK_EQ(fi_control(&cq->fid, FI_GETWAIT, raw), -FI_ENODATA);
	CHECK_EQ(fi_control(&o.domain->fid, FI_MAP_RAW_MR, NULL), -FI_EINVAL);
	CHECK_EQ(fi_mr_map_raw(o.domain, 0, raw, 7, &key, 0), -FI_EINVAL);
	CHECK_EQ(fi_trywait(o.fabric, NULL, 1), -FI_EINVAL);
	CHECK_EQ(fi_close(&cq->fid), 0);
	CHECK_EQ(fi_close(&av->fid), 0);
	close_domain(&o);
}
