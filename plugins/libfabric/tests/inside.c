// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Parts of the provider by themselves, with an endpoint that is only a queue of
 * libfabrex: what completions wait for, whom an address means, what regions and
 * boards are used for by others.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../provider.h"
#include "../wire.h"
#include "support.h"

static void open_inside(struct opened *o, uint64_t caps, int mr_mode)
{
	struct fi_info *hints = hints_new();

	own_fabric();
	hints->caps = caps;
	hints->domain_attr->mr_mode |= mr_mode;
	CHECK_EQ(info_get(VERSION, NULL, NULL, 0, hints, &o->info), 0);
	fi_freeinfo(hints);
	o->info->domain_attr->mr_mode |= mr_mode;
	o->info->fabric_attr->api_version = VERSION;
	CHECK_EQ(fabric_open(o->info->fabric_attr, &o->fabric, NULL), 0);
	CHECK_EQ(fi_domain(o->fabric, o->info, &o->domain, NULL), 0);
}

static struct domain *domain_of(struct opened *o)
{
	return container(o->domain, struct domain, fid);
}

static struct cq *cq_new(struct opened *o, enum fi_cq_format format,
			 enum fi_wait_obj object)
{
	struct fi_cq_attr attr = {
		.format = format, .wait_obj = object,
		.wait_cond = FI_CQ_COND_THRESHOLD,
	};
	struct fid_cq *fid;

	CHECK_EQ(fi_cq_open(o->domain, &attr, &fid, NULL), 0);
	return container(fid, struct cq, fid);
}

static void put(struct cq *cq, uint64_t n)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = (void *)(uintptr_t)n, .flags = FI_RECV,
		.len = n + 1, .data = n + 2, .tag = n + 3,
	};

	domain_lock(cq->domain);
	cq_write(cq, &entry, n + 4);
	domain_unlock(cq->domain);
}

static void put_error(struct cq *cq, uint64_t n, const void *data, size_t len)
{
	struct fi_cq_err_entry entry = {
		.op_context = (void *)(uintptr_t)n, .err = FI_ETRUNC,
		.prov_errno = CAUSE_TRUNCATED, .err_data_size = len,
	};

	entry.err_data = (void *)(uintptr_t)data;
	domain_lock(cq->domain);
	cq_error(cq, &entry);
	domain_unlock(cq->domain);
}

/* ---- completions ------------------------------------------------------- */

TEST(all_formats)
{
	static const size_t sizes[] = { 0, 8, 24, 40, 48 };
	struct fi_cq_tagged_entry entry[2];
	fi_addr_t source[2];
	struct opened o;
	struct cq *cq;
	int format;

	open_inside(&o, FI_MSG, 0);
	for (format = FI_CQ_FORMAT_CONTEXT; format <= FI_CQ_FORMAT_TAGGED;
	     format++) {
		cq = cq_new(&o, (enum fi_cq_format)format, FI_WAIT_NONE);
		put(cq, 10);
		put(cq, 20);
		put(cq, 30);
		memset(entry, 0, sizeof(entry));
		CHECK_EQ(fi_cq_readfrom(&cq->fid, entry, 2, source), 2);
		CHECK(source[0] == 14 && source[1] == 24);
		CHECK_EQ((uintptr_t)entry[0].op_context, 10);
		CHECK_EQ(*(uint64_t *)((char *)entry + sizes[format]), 20);
		CHECK_EQ(fi_cq_read(&cq->fid, NULL, 0), 0);
		CHECK_EQ(fi_cq_read(&cq->fid, entry, 2), 1);
		CHECK_EQ(fi_cq_read(&cq->fid, entry, 2), -FI_EAGAIN);
		CHECK_EQ(fi_close(&cq->fid.fid), 0);
	}
	close_domain(&o);
}

TEST(queues_grow)
{
	struct fi_cq_tagged_entry entry;
	struct opened o;
	uint64_t i, n = 0;
	struct cq *cq;

	open_inside(&o, FI_MSG, 0);
	cq = cq_new(&o, FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	for (i = 0; i < 10000; i++) {
		put(cq, i);
		if (i % 3)
			continue;
		CHECK_EQ(fi_cq_read(&cq->fid, &entry, 1), 1);
		CHECK_EQ((uintptr_t)entry.op_context, n++);
	}
	while (fi_cq_read(&cq->fid, &entry, 1) == 1)
		CHECK_EQ(entry.tag, n++ + 3);
	CHECK_EQ(n, 10000);
	CHECK_EQ(fi_close(&cq->fid.fid), 0);
	close_domain(&o);
}

/* What failed has its place among what did not. */
TEST(errors_in_their_place)
{
	struct fi_cq_err_entry error = { .err_data_size = 0 };
	struct fi_cq_tagged_entry entry[4];
	char data[8] = "", small[2];
	struct opened o;
	struct cq *cq;

	open_inside(&o, FI_MSG, 0);
	cq = cq_new(&o, FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	put(cq, 1);
	put_error(cq, 2, "seven7", 7);
	put_error(cq, 3, NULL, 0);
	put(cq, 4);
	CHECK_EQ(fi_cq_read(&cq->fid, entry, 4), 1);
	CHECK_EQ(fi_cq_read(&cq->fid, entry, 4), -FI_EAVAIL);
	error.err_data = data;
	error.err_data_size = sizeof(data);
	CHECK_EQ(fi_cq_readerr(&cq->fid, &error, 0), 1);
	CHECK(error.err == FI_ETRUNC && error.err_data == data &&
	      error.err_data_size == 7 && !strcmp(data, "seven7"));
	CHECK_EQ((uintptr_t)error.op_context, 2);
	CHECK(strstr(fi_cq_strerror(&cq->fid, error.prov_errno, NULL, NULL, 0),
		     "longer"));
	CHECK_EQ(fi_cq_read(&cq->fid, entry, 4), -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(&cq->fid, &error, 0), 1);
	CHECK_EQ(error.err_data_size, 0);
	CHECK_EQ(fi_cq_readerr(&cq->fid, &error, 0), -FI_EAGAIN);
	CHECK_EQ(fi_cq_read(&cq->fid, entry, 4), 1);
	/* Into a buffer that is too small; into none. */
	put_error(cq, 5, "seven7", 7);
	error.err_data = small;
	error.err_data_size = sizeof(small);
	CHECK_EQ(fi_cq_readerr(&cq->fid, &error, 0), 1);
	CHECK(error.err_data_size == 2 && !memcmp(small, "se", 2));
	put_error(cq, 6, "seven7", 7);
	error.err_data_size = 0;
	CHECK_EQ(fi_cq_readerr(&cq->fid, &error, 0), 1);
	CHECK(error.err_data_size == 7 && !strcmp(error.err_data, "seven7"));
	put_error(cq, 7, "left", 5);
	CHECK_EQ(fi_close(&cq->fid.fid), 0);
	close_domain(&o);
}

/* Programs of older interfaces have less room for an error. */
TEST(errors_of_old_programs)
{
	const size_t short_size = offsetof(struct fi_cq_err_entry, err_data_size);
	union {
		struct fi_cq_err_entry entry;
		char bytes[sizeof(struct fi_cq_err_entry)];
	} error;
	struct opened o;
	struct cq *cq;
	size_t i;

	open_inside(&o, FI_MSG, 0);
	domain_of(&o)->fabric->version = FI_VERSION(1, 4);
	cq = cq_new(&o, FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	put_error(cq, 2, "seven7", 7);
	memset(&error, 0x5a, sizeof(error));
	CHECK_EQ(cq->fid.ops->readerr(&cq->fid, &error.entry, 0), 1);
	CHECK(!strcmp(error.entry.err_data, "seven7"));
	for (i = short_size; i < sizeof(error); i++)
		CHECK_EQ(error.bytes[i], 0x5a);
	CHECK_EQ(fi_close(&cq->fid.fid), 0);
	close_domain(&o);
}

/* ---- waiting ----------------------------------------------------------- */

static struct cq *shared_cq;

static void *put_three(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < 3; i++)
		put(shared_cq, (uint64_t)i);
	return NULL;
}

static void *signal_it(void *unused)
{
	(void)unused;
	CHECK_EQ(fi_cq_signal(&shared_cq->fid), 0);
	return NULL;
}

static void check_sread(struct opened *o, enum fi_wait_obj object)
{
	struct fi_cq_tagged_entry entry[4];
	pthread_t thread;

	shared_cq = cq_new(o, FI_CQ_FORMAT_TAGGED, object);
	CHECK_EQ(pthread_create(&thread, NULL, put_three, NULL), 0);
	CHECK_EQ(fi_cq_sread(&shared_cq->fid, entry, 4, (void *)3, -1), 3);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, signal_it, NULL), 0);
	CHECK_EQ(fi_cq_sread(&shared_cq->fid, entry, 4, NULL, -1), -FI_EAGAIN);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	/* Fewer than wanted, at the end of the time. */
	put(shared_cq, 1);
	CHECK_EQ(fi_cq_sread(&shared_cq->fid, entry, 4, (void *)2, 1), 1);
	put_error(shared_cq, 1, NULL, 0);
	CHECK_EQ(fi_cq_sread(&shared_cq->fid, entry, 4, (void *)2, -1),
		 -FI_EAVAIL);
	CHECK_EQ(fi_close(&shared_cq->fid.fid), 0);
}

TEST(blocking_reads)
{
	struct opened o;

	open_inside(&o, FI_MSG, 0);
	check_sread(&o, FI_WAIT_UNSPEC);
	check_sread(&o, FI_WAIT_FD);
	check_sread(&o, FI_WAIT_POLLFD);
	check_sread(&o, FI_WAIT_YIELD);
	close_domain(&o);
}

/* Each completion wakes one of those who sleep, however many there are. */
static void *read_one(void *unused)
{
	struct fi_cq_tagged_entry entry;

	(void)unused;
	CHECK_EQ(fi_cq_sread(&shared_cq->fid, &entry, 1, NULL, -1), 1);
	return NULL;
}

TEST(many_sleepers)
{
	pthread_t thread[8];
	struct opened o;
	int i, round;

	open_inside(&o, FI_MSG, 0);
	shared_cq = cq_new(&o, FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 8; i++)
			CHECK_EQ(pthread_create(&thread[i], NULL, read_one,
						NULL), 0);
		for (i = 0; i < 8; i++)
			put(shared_cq, (uint64_t)i);
		for (i = 0; i < 8; i++)
			CHECK_EQ(pthread_join(thread[i], NULL), 0);
	}
	CHECK_EQ(fi_close(&shared_cq->fid.fid), 0);
	close_domain(&o);
}

/* An endpoint that reports each datagram as a completion. */
struct plain {
	struct endpoint ep;
	unsigned int rounds;
};

static void plain_progress(struct endpoint *ep)
{
	struct plain *plain = container(ep, struct plain, ep);
	const struct fi_cq_tagged_entry entry = { .flags = FI_RECV };
	struct fabrex_wc wc;

	plain->rounds++;
	if (ep->due_ns && now_ns() >= ep->due_ns) {
		ep->due_ns = 0;
		cq_write(ep->rx_cq, &entry, 0);
	}
	while (fabrex_poll(ep->queue, &wc, 1) == 1) {
		if (wc.opcode != FABREX_OP_RECV)
			continue;
		fabrex_recv_done(ep->queue, 1);
		cq_write(ep->rx_cq, &entry, wc.src_queue);
	}
}

static void plain_open(struct opened *o, struct plain *plain, struct cq *cq)
{
	const struct fabrex_queue_attr attr = {
		.rq_entries = 8, .flags = FABREX_QUEUE_EVENTFD, .service = 5000,
	};

	memset(plain, 0, sizeof(*plain));
	plain->ep.domain = domain_of(o);
	plain->ep.rx_cq = cq;
	CHECK_EQ(fabrex_queue_create(domain_of(o)->port, &attr, sizeof(attr),
				     &plain->ep.queue), 0);
	CHECK_EQ(members_add(&cq->members, &plain->ep, plain_progress), 0);
	CHECK_EQ(members_add(&cq->members, &plain->ep, plain_progress), 0);
}

static void plain_close(struct plain *plain)
{
	members_remove(&plain->ep.rx_cq->members, &plain->ep);
	members_remove(&plain->ep.rx_cq->members, &plain->ep);
	CHECK_EQ(fabrex_queue_destroy(plain->ep.queue), 0);
}

static void *send_datagram(void *arg)
{
	struct plain *plain = arg;
	struct fabrex_op op = {
		.opcode = FABREX_OP_SEND, .flags = FABREX_SQE_QUIET,
		.inline_data = "hello", .length = 6,
		.peer = (uint16_t)plain->ep.domain->attr.peer,
		.dest_key = fabrex_queue_key(plain->ep.queue),
	};
	struct fabrex_queue *queue;

	CHECK_EQ(fabrex_queue_create(plain->ep.domain->port, NULL, 0, &queue),
		 0);
	CHECK_EQ(fabrex_post(queue, &op, 1), 1);
	CHECK_EQ(fabrex_queue_destroy(queue), 0);
	return NULL;
}

TEST(sleep_until_something_arrives)
{
	struct fi_cq_tagged_entry entry;
	struct plain plain;
	pthread_t thread;
	struct opened o;
	struct cq *cq;
	int i;

	open_inside(&o, FI_MSG, 0);
	cq = cq_new(&o, FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
	plain_open(&o, &plain, cq);
	for (i = 0; i < 50; i++) {
		CHECK_EQ(pthread_create(&thread, NULL, send_datagram, &plain),
			 0);
		CHECK_EQ(fi_cq_sread(&cq->fid, &entry, 1, NULL, -1), 1);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
	/* Or until the endpoint wants to look. */
	plain.ep.due_ns = now_ns() + 1000000;
	CHECK_EQ(fi_cq_sread(&cq->fid, &entry, 1, NULL, -1), 1);
	CHECK_EQ(fi_cq_sread(&cq->fid, &entry, 1, NULL, 1), -FI_EAGAIN);
	plain_close(&plain);
	CHECK_EQ(fi_close(&cq->fid.fid), 0);
	close_domain(&o);
}

TEST(sleep_on_a_descriptor)
{
	struct pollfd pfd = { .events = POLLIN };
	struct fi_cq_tagged_entry entry;
	struct plain plain;
	struct fid *fids[1];
	struct opened o;
	struct cq *cq;
	int i;

	open_inside(&o, FI_MSG, 0);
	cq = cq_new(&o, FI_CQ_FORMAT_TAGGED, FI_WAIT_FD);
	plain_open(&o, &plain, cq);
	CHECK_EQ(fi_control(&cq->fid.fid, FI_GETWAIT, &pfd.fd), 0);
	fids[0] = &cq->fid.fid;
	for (i = 0; i < 20; i++) {
		CHECK_EQ(fi_trywait(o.fabric, fids, 1), 0);
		CHECK_EQ(poll(&pfd, 1, 0), 0);
		if (i % 2)
			send_datagram(&plain);
		else
			put(cq, 1);
		CHECK_EQ(poll(&pfd, 1, -1), 1);
		if (i % 3)
			CHECK_EQ(fi_trywait(o.fabric, fids, 1), -FI_EAGAIN);
		CHECK_EQ(fi_cq_read(&cq->fid, &entry, 1), 1);
	}
	CHECK_EQ(fi_trywait(o.fabric, fids, 1), 0);
	plain.ep.due_ns = now_ns() + 1000000;
	CHECK_EQ(fi_trywait(o.fabric, fids, 1), 0);
	CHECK_EQ(poll(&pfd, 1, -1), 1);
	CHECK_EQ(fi_cq_read(&cq->fid, &entry, 1), 1);
	CHECK_EQ(fi_trywait(o.fabric, fids, 1), 0);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	plain_close(&plain);
	CHECK_EQ(fi_close(&cq->fid.fid), 0);
	close_domain(&o);
}

/* Whoever reads the queue makes the progress of what is bound to it. */
TEST(reading_makes_progress)
{
	struct fi_cq_tagged_entry entry;
	struct plain plain;
	struct opened o;
	struct cq *cq;

	open_inside(&o, FI_MSG, 0);
	cq = cq_new(&o, FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	plain_open(&o, &plain, cq);
	CHECK_EQ(fi_cq_read(&cq->fid, &entry, 1), -FI_EAGAIN);
	CHECK_EQ(plain.rounds, 1);
	send_datagram(&plain);
	CHECK_EQ(fi_cq_read(&cq->fid, &entry, 1), 1);
	CHECK_EQ(plain.rounds, 2);
	put(cq, 1);
	CHECK_EQ(fi_cq_read(&cq->fid, &entry, 1), 1);
	CHECK_EQ(plain.rounds, 2);
	plain_close(&plain);
	CHECK_EQ(fi_close(&cq->fid.fid), 0);
	close_domain(&o);
}

TEST(poll_sets)
{
	struct fi_poll_attr attr = { .flags = 0 };
	struct fi_cq_tagged_entry entry;
	struct fid_cntr *cntr;
	struct fid_poll *set;
	void *context[2];
	struct opened o;
	struct cq *cq;

	open_inside(&o, FI_MSG, 0);
	cq = cq_new(&o, FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	cq->fid.fid.context = &cq;
	CHECK_EQ(fi_cntr_open(o.domain, NULL, &cntr, &cntr), 0);
	CHECK_EQ(o.domain->ops->poll_open(o.domain, &attr, &set), 0);
	CHECK_EQ(set->ops->poll_add(set, &cq->fid.fid, 0), 0);
	CHECK_EQ(set->ops->poll_add(set, &cntr->fid, 0), 0);
	CHECK_EQ(set->ops->poll_add(set, &o.domain->fid, 0), -FI_EINVAL);
	CHECK_EQ(set->ops->poll(set, context, 2), 0);
	put(cq, 1);
	cntr_add(container(cntr, struct cntr, fid), true);
	CHECK_EQ(set->ops->poll(set, context, 2), 2);
	CHECK(context[0] == &cq && context[1] == &cntr);
	CHECK_EQ(set->ops->poll(set, context, 2), 1);
	CHECK_EQ(fi_cq_read(&cq->fid, &entry, 1), 1);
	CHECK_EQ(set->ops->poll(set, context, 2), 0);
	CHECK_EQ(fi_close(&cq->fid.fid), -FI_EBUSY);
	CHECK_EQ(set->ops->poll_del(set, &cq->fid.fid, 0), 0);
	CHECK_EQ(set->ops->poll_del(set, &cq->fid.fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_close(&cq->fid.fid), 0);
	CHECK_EQ(fi_close(&set->fid), 0);
	CHECK_EQ(set->ops->poll(set, context, 2), -FI_EBADF);
	CHECK_EQ(fi_close(&cntr->fid), 0);
	close_domain(&o);
}

/* ---- addresses --------------------------------------------------------- */

TEST(addresses_as_text)
{
	static const char *const bad[] = {
		"", "a.0", "fi_fabrex:/a.0:1", "fi_fabrex://a b:1",
		"fi_fabrex://a.0:", "fi_fabrex://a.0:1:", "fi_fabrex://a.0:-1",
		"fi_fabrex://a.0:1:123456789", "fi_fabrex://a.0:1:2:3",
		"fi_fabrex://a.0:18446744073709551616", "fi_fabrex://a.0:0x",
		"fi_fabrex://a.0:1:xyz", "fi_fabrex://a.0:1 ",
		"fi_fabrex://a-name-of-a-port-that-is-too-long:1",
		"fi_fabrex://a-name-of-31-characters-1234567:0xffffffffff:1",
		"fi_fabrex://a.0/", "fi_fabrex://a.0/123456789",
		"fi_fabrex://a.0/0123456789a", "fi_fabrex://a.0/012345678g",
		"fi_fabrex://a.0/0123456789:1", "fi_fabrex://a.0/0x12345678",
		"fi_fabrex://a.0:5/0123456789",
	};
	static const uint64_t chances[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 32,
					    UINT64_C(0x123456789a) };
	struct fabrex_port_attr attr = { .peer = 77 };
	struct address address, again;
	char text[ADDRESS_MAX];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		test_note("%s", bad[i]);
		CHECK_EQ(address_parse(bad[i], &address), -FI_EINVAL);
	}
	CHECK_EQ(address_parse(NULL, &address), -FI_EINVAL);
	strcpy(attr.name, "8-charac");
	address_of_port(&attr, &address);
	CHECK(!strcmp(address.port, attr.name));
	address.service = UINT64_MAX;
	address.nonce = UINT32_MAX;
	CHECK_EQ(address_format(&address, text), ADDRESS_MAX);
	CHECK_EQ(address_parse(text, &again), 0);
	CHECK(address_same(&address, &again) && again.nonce == UINT32_MAX);
	again.nonce = 0;
	CHECK(address_same(&address, &again));
	again.nonce = 5;
	CHECK(!address_same(&address, &again));
	/* With an ID it is shorter. */
	for (i = 0; i < sizeof(chances) / sizeof(chances[0]); i++) {
		address_of_chance(chances[i], &address);
		CHECK(address.nonce && address.service >> 62 == 1);
		CHECK_EQ(address_format(&address, text), ADDRESS_USUAL);
		CHECK(!memchr(text + strlen(text), ':', 1) && strchr(text, '/'));
		CHECK_EQ(address_parse(text, &again), 0);
		CHECK_EQ(again.service, address.service);
		CHECK_EQ(again.nonce, address.nonce);
	}
	address.nonce++;
	address_format(&address, text);
	CHECK(!strchr(text + 12, '/'));
	CHECK_EQ(address_parse(text, &again), 0);
	CHECK_EQ(again.nonce, address.nonce);
	strcpy(attr.name, "9-charact");
	address_of_port(&attr, &address);
	CHECK(!strcmp(address.port, "77"));
}

/* Who is meant by names of ports and hosts, and by numbers. */
TEST(addresses_are_located)
{
	static const char *const names[] = { "", "localhost", "127.0.0.1",
					     "HOST", "NUMBER", "NAME" };
	char number[16];
	uint32_t peer, queue;
	struct address address = { .service = 5000 };
	struct opened here, there;
	struct plain plain;
	uint64_t key;
	struct cq *cq;
	size_t i;

	open_inside(&there, FI_MSG, 0);
	cq = cq_new(&there, FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
	plain_open(&there, &plain, cq);
	open_inside(&here, FI_MSG, 0);
	snprintf(number, sizeof(number), "%u", domain_of(&there)->attr.peer);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		strcpy(address.port, names[i]);
		if (!strcmp(names[i], "HOST"))
			strcpy(address.port, domain_of(&here)->attr.host);
		if (!strcmp(names[i], "NUMBER"))
			strcpy(address.port, number);
		if (!strcmp(names[i], "NAME"))
			strcpy(address.port, domain_of(&there)->attr.name);
		test_note("%s", address.port);
		if (!*names[i]) {
			CHECK_EQ(address_locate(domain_of(&here)->port, &address,
						&peer, &queue, &key), -ENOENT);
			CHECK_EQ(address_locate(domain_of(&there)->port,
						&address, &peer, &queue, &key),
				 0);
		} else {
			CHECK_EQ(address_locate(domain_of(&here)->port, &address,
						&peer, &queue, &key), 0);
		}
		CHECK_EQ(peer, domain_of(&there)->attr.peer);
		CHECK_EQ(queue, fabrex_queue_number(plain.ep.queue));
		CHECK_EQ(key, fabrex_queue_key(plain.ep.queue));
	}
	strcpy(address.port, "nobody");
	CHECK_EQ(address_locate(domain_of(&here)->port, &address, &peer, &queue,
				&key), -ENOENT);
	strcpy(address.port, "localhost");
	address.service = 5001;
	CHECK_EQ(address_locate(domain_of(&here)->port, &address, &peer, &queue,
				&key), -ENOENT);
	CHECK_EQ(address_resolve(domain_of(&here)->port, "nobody", "5000",
				 &address), -FI_ENODATA);
	CHECK_EQ(address_resolve(domain_of(&here)->port, number, "5000",
				 &address), 0);
	plain_close(&plain);
	CHECK_EQ(fi_close(&cq->fid.fid), 0);
	close_domain(&here);
	close_domain(&there);
}

/* ---- memory ------------------------------------------------------------ */

TEST(descriptors_of_regions)
{
	static char buf[8192];
	struct local local, other;
	struct domain *domain;
	struct fid_mr *mr;
	struct opened o;
	void *desc;

	open_inside(&o, FI_MSG | FI_RMA | FI_HMEM, 0);
	domain = domain_of(&o);
	CHECK_EQ(fi_mr_reg(o.domain, buf + 100, 1000, FI_RECV, 0, 0, 0, &mr,
			   NULL), 0);
	desc = fi_mr_desc(mr);
	CHECK_EQ(local_get(domain, buf + 200, 900, desc, FABREX_MR_LOCAL_WRITE,
			   &local), 0);
	CHECK(local.region && !local.cached && local.offset == 100);
	CHECK(local_mr(&local) && !memory_is_device(domain, buf + 200, desc));
	/* Beyond it, for peers, or without a descriptor: the cache. */
	CHECK_EQ(local_get(domain, buf + 200, 901, desc, 0, &other), 0);
	CHECK(other.cached && local_mr(&other));
	local_put(&other);
	CHECK_EQ(local_get(domain, buf + 99, 10, desc, 0, &other), 0);
	CHECK(other.cached);
	local_put(&other);
	CHECK_EQ(local_get(domain, buf + 200, 10, desc, FABREX_MR_REMOTE_READ,
			   &other), 0);
	CHECK(other.cached);
	local_put(&other);
	CHECK_EQ(local_get(domain, buf, 10, (void *)0x1234567, 0, &other), 0);
	CHECK(other.cached);
	local_put(&other);
	CHECK_EQ(local_get(domain, NULL, 0, desc, 0, &other), 0);
	CHECK(!local_mr(&other));
	local_put(&other);
	/* Closed under an operation, and its descriptor is of no other. */
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK(!local_mr(&local));
	CHECK_EQ(fi_mr_reg(o.domain, buf, 8192, FI_SEND, 0, 0, 0, &mr, NULL), 0);
	CHECK(fi_mr_desc(mr) != desc);
	CHECK_EQ(local_get(domain, buf + 200, 10, desc, 0, &other), 0);
	CHECK(other.cached);
	local_put(&other);
	/* Registered to be sent from, not to be written. */
	CHECK_EQ(local_get(domain, buf, 10, fi_mr_desc(mr),
			   FABREX_MR_LOCAL_WRITE, &other), 0);
	CHECK(other.cached);
	local_put(&other);
	local_put(&local);
	CHECK_EQ(fi_close(&mr->fid), 0);
	close_domain(&o);
}

/* As an initiator reads it: line after line, until a place is free. */
static uint64_t look_up(const struct board_line *table, uint64_t lines,
			uint64_t key)
{
	uint64_t line = BOARD_LINE(key, lines), n;
	int i;

	for (n = 0; n < lines; n++, line = (line + 1) & (lines - 1)) {
		for (i = 0; i < 4 && table[line].place[i].key; i++)
			if (table[line].place[i].key == key)
				return table[line].place[i].base;
		if (i < 4)
			return 0;
	}
	return 0;
}

static void read_board(struct domain *reader, const struct fabrex_remote *from,
		       struct fabrex_mr *to)
{
	struct fabrex_queue *queue;
	struct fabrex_wc wc;
	int n;

	CHECK_EQ(fabrex_queue_create(reader->port, NULL, 0, &queue), 0);
	CHECK_EQ(fabrex_post_read(queue, to, 0, from, 0, from->length, 0, 0), 0);
	while (!(n = fabrex_poll(queue, &wc, 1)))
		;
	CHECK(n == 1 && wc.status == FABREX_WC_OK);
	CHECK_EQ(fabrex_queue_destroy(queue), 0);
}

TEST(boards_are_read_by_peers)
{
	struct fabrex_remote remote;
	const struct board_line *table;
	struct opened here, there;
	struct domain *domain;
	uint64_t lines, key;
	struct fabrex_mr *mr;
	char *copy;

	open_inside(&there, FI_MSG, 0);
	board_remote(domain_of(&there), &remote);
	CHECK_EQ(remote.length, sizeof(struct board_line));
	CHECK_EQ(board_insert(domain_of(&there), 5, 6), 0);
	board_delete(domain_of(&there), 5);
	close_domain(&there);
	open_inside(&there, FI_MSG | FI_RMA, FI_MR_VIRT_ADDR);
	open_inside(&here, FI_MSG, 0);
	domain = domain_of(&there);
	board_remote(domain, &remote);
	lines = remote.length / sizeof(struct board_line) - 1;
	CHECK(lines >= 64 && !(lines & (lines - 1)));
	CHECK_EQ(fabrex_mr_alloc(domain_of(&here)->port, remote.length,
				 FABREX_MR_LOCAL_WRITE, &mr), 0);
	copy = fabrex_mr_addr(mr);
	table = (const struct board_line *)(void *)copy + 1;
	for (key = 1; key <= 2000; key++)
		CHECK_EQ(board_insert(domain, key * 3, key * 7), 0);
	for (key = 1; key <= 2000; key += 2)
		board_delete(domain, key * 3);
	board_delete(domain, 4);
	read_board(domain_of(&here), &remote, mr);
	for (key = 1; key <= 2000; key++)
		CHECK_EQ(look_up(table, lines, key * 3),
			 key % 2 ? 0 : key * 7);
	/* As long as there is room; what is deleted makes room again. */
	for (key = 10000; !board_insert(domain, key, 1); key++)
		;
	CHECK(key - 10000 >= lines);
	board_delete(domain, 10000);
	CHECK_EQ(board_insert(domain, key, 9), 0);
	read_board(domain_of(&here), &remote, mr);
	CHECK_EQ(look_up(table, lines, key), 9);
	CHECK_EQ(look_up(table, lines, 10000), 0);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	close_domain(&here);
	close_domain(&there);
}

/* ---- causes ------------------------------------------------------------ */

/* ---- datagrams --------------------------------------------------------- */

static void there_and_back(const struct arrival *rts, size_t length)
{
	const struct segment *s = rts->segments.segment;
	struct arrival got = { 0 };
	char data[256];

	CHECK_EQ(wire_write_rts(data, rts), length);
	CHECK(wire_read_rts(data, length, &got));
	CHECK(got.tagged == rts->tagged && got.has_data == rts->has_data);
	CHECK_EQ(got.data, rts->data);
	CHECK_EQ(got.tag, rts->tag);
	CHECK_EQ(got.token, rts->token);
	CHECK_EQ(got.length, rts->length);
	CHECK_EQ(got.segments.count, rts->segments.count);
	CHECK(!memcmp(got.segments.segment, s,
		      rts->segments.count * sizeof(*s)));
}

/* Short if there is one buffer, near the beginning of its region, and no data. */
TEST(rts_short_and_long)
{
	struct arrival rts = {
		.tag = UINT64_C(0x123456789abcdef0), .token = UINT64_MAX,
		.length = 0x7fffffff,
		.segments = {
			.count = 1,
			.segment[0] = { UINT64_MAX - 1, UINT32_MAX, 0x7fffffff },
		},
	};
	struct segment *first = &rts.segments.segment[0];

	there_and_back(&rts, 32);
	rts.tagged = true;
	there_and_back(&rts, 32);
	first->offset++;
	there_and_back(&rts, 56);
	first->offset = 0;
	rts.length = ++first->length;
	there_and_back(&rts, 56);
	rts.length = first->length = 1;
	there_and_back(&rts, 32);
	rts.has_data = true;
	rts.data = 7;
	there_and_back(&rts, 56);
	rts.has_data = false;
	rts.data = 0;
	rts.segments.count = 2;
	rts.segments.segment[1] = (struct segment){ 1, 2, 3 };
	rts.length += 3;
	there_and_back(&rts, 80);
}

TEST(every_cause_has_a_text)
{
	int cause;

	for (cause = FABREX_WC_BAD_OPCODE; cause <= FABREX_WC_ABORTED; cause++) {
		CHECK(fi_of_cause(cause) > 0 && fi_of_status(cause) > 0);
		CHECK(strcmp(cause_text(cause), "unknown reason"));
	}
	for (cause = CAUSE_GENERATION; cause < CAUSE_END; cause++)
		CHECK(fi_of_cause(cause) > 0 && *cause_text(cause));
	CHECK_EQ(fi_of_cause(-ENOENT), FI_ENOENT);
	CHECK_EQ(fi_of_cause(-EDQUOT), FI_ENOSPC);
	CHECK(!strcmp(cause_text(CAUSE_END), "unknown reason"));
	CHECK_EQ(fi_of_cause(1000), FI_EIO);
}
