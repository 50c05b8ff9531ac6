// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf server: gives each client a registered region, echoes its
 * datagrams, computes checksums, and notices when it has gone. One thread for
 * each client.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf.h"

#define ACCEPT_MS	200
#define SLEEP_MS	1000
#define SPIN_NS		2000000u	/* after the last echo */
#define MAX_REGION	(4ull << 30)
#define BACK_NS		30000000000u	/* a port has to be back by then */

struct client {
	struct control control;
	struct memory memory;
	uint64_t region;
	uint32_t test;
	uint64_t last_echo;
	char name[32];
	bool quiet;
};

static atomic_uint active, served;

static void say_sum(struct client *c, const struct perf_msg *m, bool fill)
{
	struct perf_msg reply = *m;
	uint32_t crc = 0;
	char size[SIZE_STR];

	reply.value = 0;
	if (m->offset <= c->region && m->length <= c->region - m->offset) {
		if ((fill && memory_fill(&c->memory, m->offset, m->length,
					 m->value)) ||
		    memory_crc(&c->memory, m->offset, m->length, &crc))
			fail_memory("checksum");
		reply.value = crc;
		if (c->test == T_TRANSFER && !c->quiet)
			printf("received %s bytes from %s: crc32c %08x\n",
			       size_str(m->length, size), c->name, crc);
		fflush(stdout);
	}
	control_send(&c->control, MSG_SUM_IS, &reply);
}

static void echo(struct client *c, const struct fabrex_wc *wc)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_SEND, .flags = FABREX_SQE_QUIET,
		.peer = (uint16_t)c->control.peer, .imm = MSG_ECHO,
		.mr = c->control.mr, .length = wc->length,
		.dest_key = c->control.dest_key,
	};

	fabrex_post(c->control.queue, &op, 1);
	c->last_echo = now_ns();
}

/* False when the session is over. */
static bool take(struct client *c, const struct fabrex_wc *wc)
{
	struct perf_msg m = { 0 };

	if (wc->opcode != FABREX_OP_RECV)
		return wc->status == FABREX_WC_OK ||
		       wc->status == FABREX_WC_RNR;
	if (wc->length == sizeof(m))
		memcpy(&m, wc->data, sizeof(m));
	if (wc->imm == MSG_ECHO)
		echo(c, wc);
	fabrex_recv_done(c->control.queue, 1);
	if (wc->imm == MSG_SUM || wc->imm == MSG_FILL)
		say_sum(c, &m, wc->imm == MSG_FILL);
	return wc->imm != MSG_BYE;
}

/* Spins while echoes are measured, sleeps otherwise; pings who is silent. */
static bool rest(struct client *c)
{
	int ret;

	if (c->last_echo && now_ns() - c->last_echo < SPIN_NS)
		return true;
	ret = fabrex_wait(c->control.queue, SLEEP_MS);
	if (!ret)
		return !control_send(&c->control, MSG_PING, NULL);
	return ret > 0 || ret == -EINTR;
}

static void client_free(struct client *c)
{
	control_close(&c->control);
	memory_close(&c->memory);
	free(c);
}

static void *client_thread(void *arg)
{
	struct client *c = arg;
	struct fabrex_wc wc;
	bool on = true;
	int n;

	while (on && !interrupted) {
		n = fabrex_poll(c->control.queue, &wc, 1);
		if (n < 0)
			break;
		on = n ? take(c, &wc) : rest(c);
	}
	if (!c->quiet)
		printf("session with %s ended\n", c->name);
	fflush(stdout);
	client_free(c);
	served++;
	active--;
	return NULL;
}

static void answer_error(struct perf_answer *a, int error, const char *text)
{
	a->error = error;
	snprintf(a->text, sizeof(a->text), "%s", text);
}

static int client_prepare(struct fabrex_port *port, struct client *c,
			  const struct perf_hello *h, enum memory_kind kind,
			  struct perf_answer *a)
{
	int ret;

	ret = memory_open(&c->memory, port, kind, h->region);
	if (ret) {
		answer_error(a, ret, memory_why());
		return ret;
	}
	ret = control_open(&c->control, port);
	if (ret) {
		answer_error(a, ret, fabrex_strerror_last());
		memory_close(&c->memory);
		return ret;
	}
	c->region = h->region;
	c->test = h->test;
	c->control.dest_key = h->key;
	return 0;
}

static bool hello_ok(const struct perf_hello *h, size_t length,
		     struct perf_answer *a)
{
	if (length != sizeof(*h) || h->magic != PERF_MAGIC ||
	    h->version != PERF_VERSION)
		answer_error(a, -EPROTO, "another version of fabrex-perf; use the same on both sides");
	else if (!h->region || h->region > MAX_REGION)
		answer_error(a, -EINVAL, "region of 0 or more than 4 GiB; choose smaller sizes or fewer queues");
	return !a->error;
}

static void client_start(struct fabrex_port *port, struct fabrex_listener *l,
			 const struct fabrex_request *request,
			 const struct perf_hello *h, size_t length,
			 const struct options *o)
{
	struct perf_answer a = { .magic = PERF_MAGIC,
				 .version = PERF_VERSION };
	struct client *c = calloc(1, sizeof(*c));
	struct fabrex_peer peer = { .name = "?" };
	pthread_t thread;

	if (!c || !hello_ok(h, length, &a) ||
	    client_prepare(port, c, h, o->memory, &a)) {
		if (!a.error)
			answer_error(&a, -ENOMEM, "out of memory");
		fprintf(stderr, "fabrex-perf: client at peer %u refused: %s\n",
			request->peer, a.text);
		fabrex_request_answer(l, request, &a, sizeof(a), 1000);
		free(c);
		return;
	}
	fabrex_peer_next(port, request->peer, &peer);
	memcpy(c->name, peer.name, sizeof(c->name));
	c->quiet = o->quiet;
	c->control.peer = request->peer;
	a.key = fabrex_queue_key(c->control.queue);
	fabrex_mr_remote(c->memory.mr, &a.region);
	if (!o->quiet)
		printf("session with %s\n", c->name);
	fflush(stdout);
	active++;
	/* From here on the client is its thread's. */
	if (fabrex_request_answer(l, request, &a, sizeof(a), 1000) ||
	    pthread_create(&thread, NULL, client_thread, c)) {
		active--;
		client_free(c);
		return;
	}
	pthread_detach(thread);
}

/* 0 when asked to end, or a negative errno. */
static int serve_clients(struct fabrex_port *port, struct fabrex_listener *l,
			 const struct options *o)
{
	struct fabrex_request request;
	struct perf_hello hello;
	size_t length;
	int ret;

	while (!interrupted && !(o->once && served && !active)) {
		length = sizeof(hello);
		memset(&hello, 0, sizeof(hello));
		ret = fabrex_request_next(l, &request, &hello, &length,
					  ACCEPT_MS);
		if (ret == -ETIMEDOUT || ret == -EINTR || ret == -EMSGSIZE)
			continue;
		if (ret)
			return ret;
		client_start(port, l, &request, &hello, length, o);
	}
	return 0;
}

/* After a reset the port comes back by itself, without its queues. */
static int listen_again(struct fabrex_port *port, const struct options *o,
			struct fabrex_listener **l)
{
	uint64_t end = now_ns() + BACK_NS;
	int ret;

	do {
		ret = fabrex_listen(port, o->service, l);
		if (!ret || interrupted)
			return ret;
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	} while (now_ns() < end);
	return ret;
}

static int serve_port(struct fabrex_port *port, const struct options *o)
{
	struct fabrex_listener *l;
	int ret = fabrex_listen(port, o->service, &l);

	while (!ret) {
		ret = serve_clients(port, l, o);
		if (ret == -ENETDOWN && !o->quiet)
			fprintf(stderr, "fabrex-perf: %s; listening again\n",
				fabrex_strerror_last());
		fabrex_listener_close(l);
		if (ret != -ENETDOWN)
			break;
		ret = listen_again(port, o, &l);
	}
	return ret && !interrupted ? fail_setup("cannot offer the service") :
				     0;
}

int serve(const struct options *o)
{
	struct fabrex_port_attr attr;
	struct fabrex_port *port;
	int ret, wait;

	if (fabrex_open(o->device, &port))
		return fail_setup("cannot open the port");
	if (fabrex_query(port, &attr, sizeof(attr))) {
		ret = fail_setup("cannot query the port");
		fabrex_close(port);
		return ret;
	}
	if (!o->quiet)
		printf("serving on %s (peer %u), service %llu\n", attr.name,
		       attr.peer, (unsigned long long)o->service);
	fflush(stdout);
	ret = serve_port(port, o);
	interrupted = 1;
	for (wait = 0; active && wait < 3000; wait++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (!active)
		fabrex_close(port);
	return ret;
}
