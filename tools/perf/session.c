// SPDX-License-Identifier: GPL-2.0-only
/*
 * The client's side of a session: port, peer, memory on both sides, and the
 * control queue over which it asks the server for checksums and echoes.
 */
#include <errno.h>
#include <string.h>

#include "perf.h"

#define CONTROL_CELLS	64u

int fail_setup(const char *what)
{
	fprintf(stderr, "fabrex-perf: %s: %s\n", what, fabrex_strerror_last());
	return EXIT_SETUP;
}

int fail_wc(const struct fabrex_wc *wc, const char *what)
{
	fprintf(stderr, "fabrex-perf: %s: operation %u to peer %u: %s\n", what,
		wc->opcode, wc->peer, fabrex_wc_str(wc->status));
	return EXIT_FAILED;
}

int control_open(struct control *c, struct fabrex_port *port)
{
	const struct fabrex_queue_attr attr = {
		.sq_entries = CONTROL_CELLS, .rq_entries = CONTROL_CELLS,
		.cell_size = PERF_CELL, .flags = FABREX_QUEUE_EVENTFD,
	};
	int ret;

	memset(c, 0, sizeof(*c));
	c->port = port;
	ret = fabrex_mr_alloc(port, PERF_CELL, FABREX_MR_LOCAL_WRITE, &c->mr);
	if (ret)
		return ret;
	ret = fabrex_queue_create(port, &attr, sizeof(attr), &c->queue);
	if (ret)
		fabrex_mr_deregister(c->mr);
	return ret;
}

void control_close(struct control *c)
{
	fabrex_queue_destroy(c->queue);
	fabrex_mr_deregister(c->mr);
}

int control_send(struct control *c, uint32_t kind, const struct perf_msg *m)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_SEND, .flags = FABREX_SQE_QUIET,
		.peer = (uint16_t)c->peer, .imm = kind, .user_data = kind,
		.inline_data = m, .length = m ? sizeof(*m) : 0,
		.dest_key = c->dest_key,
	};
	int ret = fabrex_post(c->queue, &op, 1);

	return ret < 0 ? ret : 0;
}

static int answer_ok(const struct perf_answer *a, size_t length)
{
	if (length != sizeof(*a) || a->magic != PERF_MAGIC ||
	    a->version != PERF_VERSION) {
		fprintf(stderr, "fabrex-perf: the server has another version; use the same program on both sides\n");
		return EXIT_SETUP;
	}
	if (!a->error)
		return 0;
	fprintf(stderr, "fabrex-perf: the server refuses: %.*s\n",
		(int)sizeof(a->text), a->text);
	return EXIT_SETUP;
}

static int greet(struct session *s, const struct options *o,
		 const struct test *test)
{
	struct perf_hello hello = {
		.magic = PERF_MAGIC, .version = PERF_VERSION,
		.test = test->id, .region = s->region,
		.key = fabrex_queue_key(s->control.queue),
	};
	struct perf_answer answer;
	size_t length = sizeof(answer);
	int ret;

	if (fabrex_connect(s->port, s->peer.peer, o->service, &hello,
			   sizeof(hello), &answer, &length, o->timeout_ms))
		return fail_setup("no session (is \"fabrex-perf server\" running there?)");
	ret = answer_ok(&answer, length);
	if (ret)
		return ret;
	s->remote = answer.region;
	s->control.peer = s->peer.peer;
	s->control.dest_key = answer.key;
	return 0;
}

static int open_local(struct session *s, const struct options *o)
{
	if (fabrex_open(o->device, &s->port))
		return fail_setup("cannot open the port");
	if (fabrex_query(s->port, &s->attr, sizeof(s->attr)))
		return fail_setup("cannot query the port");
	if (fabrex_peer_find(s->port, o->peer, &s->peer))
		return fail_setup("cannot find the peer");
	if (memory_open(&s->memory, s->port, o->memory, s->region))
		return fail_memory("cannot register memory");
	if (control_open(&s->control, s->port))
		return fail_setup("cannot create a queue");
	return 0;
}

int session_open(struct session *s, const struct options *o,
		 const struct test *test, uint64_t region)
{
	int ret;

	memset(s, 0, sizeof(*s));
	s->region = region;
	ret = open_local(s, o);
	if (!ret)
		ret = greet(s, o, test);
	if (!ret)
		fabrex_stats(s->port, NULL, &s->before, sizeof(s->before));
	if (ret) {
		fabrex_close(s->port);
		memory_free(&s->memory);
		s->port = NULL;
	}
	return ret;
}

bool session_moved(struct session *s, uint64_t *p2p, uint64_t *host)
{
	struct fabrex_stats now;

	if (fabrex_stats(s->port, NULL, &now, sizeof(now)))
		return false;
	*p2p = now.p2p_bytes - s->before.p2p_bytes;
	*host = now.host_bytes - s->before.host_bytes;
	return true;
}

/* The BYE is on its way before the queue that sends it is destroyed. */
void session_close(struct session *s)
{
	struct fabrex_op last = { .opcode = FABREX_OP_NOP };
	struct fabrex_wc wc;
	uint64_t end = now_ns() + 500000000u;

	if (!s->port)
		return;
	if (!control_send(&s->control, MSG_BYE, NULL) &&
	    fabrex_post(s->control.queue, &last, 1) == 1)
		while (now_ns() < end &&
		       (fabrex_poll(s->control.queue, &wc, 1) <= 0 ||
			wc.opcode != FABREX_OP_NOP))
			;
	fabrex_close(s->port);
	memory_free(&s->memory);
	s->port = NULL;
}

/* Pings are dropped; 1 when the answer is in *value. */
static int take_answer(struct session *s, const struct fabrex_wc *wc,
		       uint64_t *value)
{
	struct perf_msg m;

	if (wc->opcode != FABREX_OP_RECV)
		return wc->status ? -EIO : 0;
	if (wc->length == sizeof(m))
		memcpy(&m, wc->data, sizeof(m));
	fabrex_recv_done(s->control.queue, 1);
	if (wc->imm != MSG_SUM_IS || wc->length != sizeof(m))
		return 0;
	*value = m.value;
	return 1;
}

int session_ask(struct session *s, uint32_t kind, uint64_t offset,
		uint64_t length, uint64_t *value)
{
	const struct perf_msg m = {
		.offset = offset, .length = length, .value = *value,
	};
	struct fabrex_wc wc;
	int ret;

	if (control_send(&s->control, kind, &m))
		return fail_setup("cannot send a request to the server");
	for (;;) {
		ret = fabrex_poll(s->control.queue, &wc, 1);
		if (ret > 0)
			ret = take_answer(s, &wc, value);
		if (ret > 0)
			return 0;
		if (ret == -EIO)
			return fail_wc(&wc, "waiting for the server");
		if (ret < 0)
			return fail_setup("asking the server");
		if (interrupted)
			return EXIT_INTERRUPTED;
		fabrex_wait(s->control.queue, 100);
	}
}
