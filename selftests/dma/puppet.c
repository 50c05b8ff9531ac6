// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process on a guest that does what a scenario tells it: one command line on
 * standard input, one answer line ("ok ..." or "err ...") on standard output.
 * Driven by selftests/common/puppet.py, which documents the commands.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "puppet.h"

#define MOST	PUPPET_MOST
#define WORDS	24

struct named_window {
	struct fabrex_window_create info;
	volatile uint8_t *at;
};

int port = -1;
struct raw_mr mrs[MOST];
struct raw_queue queues[MOST];
static struct named_window windows[MOST];

void ok(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("ok ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

void answer(int err)
{
	if (err < 0)
		printf("err %s\n", strerrorname_np(-err));
	else
		ok("%d", err);
}

uint64_t num(const char *word)
{
	return strtoull(word, NULL, 0);
}

/* Index of an object: words name them by small numbers. */
unsigned int at(const char *word)
{
	return num(word) % MOST;
}

static void do_open(char **w)
{
	struct fabrex_port_query q;
	int err = 0;

	if (port < 0)
		port = raw_open();
	if (port < 0)
		err = -errno;
	err = err ?: raw_query(port, &q);
	if (err)
		answer(err);
	else
		ok("%u %u %u", q.out_peer, q.out_generation, q.out_flags);
}

static void do_close(char **w)
{
	close(port);
	port = -1;
	answer(0);
}

static void do_mr(char **w)
{
	struct raw_mr *mr = &mrs[at(w[1])];
	int err = raw_mr(port, num(w[2]), num(w[3]), mr);

	if (err)
		answer(err);
	else
		ok("%" PRIu64 " %u", mr->key, mr->id);
}

/* Registered for the one peer w[4] only. */
static void do_mr_for(char **w)
{
	struct raw_mr *mr = &mrs[at(w[1])];
	uint64_t peers[4] = { 0 };
	size_t length = num(w[2]);
	int err;

	peers[num(w[4]) / 64 % 4] = 1ull << num(w[4]) % 64;
	err = raw_mr_for(port, raw_pages(length), length, num(w[3]), peers, mr);
	if (err)
		answer(err);
	else
		ok("%" PRIu64 " %u", mr->key, mr->id);
}

static void do_mrdel(char **w)
{
	answer(raw_destroy(port, mrs[at(w[1])].id));
}

static void do_queue(char **w)
{
	struct raw_queue *q = &queues[at(w[1])];
	int err;

	memset(q, 0, sizeof(*q));
	q->info.sq_entries = num(w[2]);
	q->info.cq_entries = num(w[3]);
	q->info.rq_entries = num(w[4]);
	q->info.cell_size = num(w[4]) ? 256 : 0;
	q->info.service = num(w[5]);
	q->info.eventfd = -1;
	err = raw_queue_create(port, q);
	if (err)
		answer(err);
	else
		ok("%u %" PRIu64 " %u", q->info.out_queue,
		   (uint64_t)q->info.out_key, q->info.out_id);
}

static void do_qdel(char **w)
{
	answer(raw_queue_free(&queues[at(w[1])]));
}

static bool inside(const struct raw_mr *mr, uint64_t offset, uint64_t length)
{
	if (mr->addr && offset <= mr->length && length <= mr->length - offset)
		return true;
	answer(-ERANGE);
	return false;
}

static void do_fill(char **w)
{
	struct raw_mr *mr = &mrs[at(w[1])];

	if (inside(mr, num(w[2]), num(w[3]))) {
		raw_fill(mr->addr + num(w[2]), num(w[3]), num(w[4]));
		answer(0);
	}
}

static void do_set(char **w)
{
	struct raw_mr *mr = &mrs[at(w[1])];

	if (inside(mr, num(w[2]), num(w[3]))) {
		memset(mr->addr + num(w[2]), num(w[4]), num(w[3]));
		answer(0);
	}
}

static void do_differs(char **w)
{
	struct raw_mr *mr = &mrs[at(w[1])];

	if (inside(mr, num(w[2]), num(w[3])))
		ok("%ld", raw_differs(mr->addr + num(w[2]), num(w[3]),
				      num(w[4])));
}

static void do_all(char **w)
{
	struct raw_mr *mr = &mrs[at(w[1])];

	if (inside(mr, num(w[2]), num(w[3])))
		ok("%d", raw_all(mr->addr + num(w[2]), num(w[3]), num(w[4])));
}

static void do_peek(char **w)
{
	struct raw_mr *mr = &mrs[at(w[1])];
	uint64_t v;

	if (inside(mr, num(w[2]), 8)) {
		memcpy(&v, mr->addr + num(w[2]), 8);
		ok("%" PRIu64, v);
	}
}

static void print_cqe(const struct fabrex_cqe *c)
{
	ok("%u %u %u %u %u %u %u %" PRIu64, c->opcode, c->status, c->length,
	   c->imm, c->crc, c->peer, c->index, (uint64_t)c->user_data);
}

/* queue opcode flags peer mr loffset rkey roffset length imm dest */
struct fabrex_sqe sqe_of(char **w)
{
	struct raw_mr none = { 0 };
	struct raw_mr *mr = strcmp(w[5], "-") ? &mrs[at(w[5])] : &none;
	struct fabrex_sqe sqe = raw_rw(num(w[2]), num(w[4]), mr, num(w[6]),
				       num(w[7]), num(w[8]), num(w[9]));

	sqe.flags = num(w[3]);
	sqe.imm = num(w[10]);
	sqe.dest_key = num(w[11]);
	return sqe;
}

static void do_op(char **w)
{
	struct fabrex_sqe sqe = sqe_of(w);
	struct fabrex_cqe cqe;
	int got = raw_do(&queues[at(w[1])], &sqe, &cqe);

	if (got < 0)
		answer(got);
	else
		print_cqe(&cqe);
}

static void do_post(char **w)
{
	struct fabrex_sqe sqe = sqe_of(w);

	raw_post(&queues[at(w[1])], &sqe);
	answer(0);
}

static void do_poll(char **w)
{
	struct fabrex_cqe cqe;

	if (raw_poll(&queues[at(w[1])], &cqe, num(w[2])))
		print_cqe(&cqe);
	else
		answer(-ETIMEDOUT);
}

static void do_state(char **w)
{
	volatile struct fabrex_qctrl *c = queues[at(w[1])].ctrl;

	ok("%u %u %u", c->state, c->error, c->sq_head);
}

static void do_window(char **w)
{
	struct named_window *win = &windows[at(w[1])];
	uint32_t access = num(w[6]);
	int prot = (access & FABREX_ACCESS_REMOTE_READ ? PROT_READ : 0) |
		   (access & FABREX_ACCESS_REMOTE_WRITE ? PROT_WRITE : 0);
	int err;

	win->info = (struct fabrex_window_create){
		.size = sizeof(win->info), .peer = num(w[2]),
		.access = access, .rkey = num(w[3]), .offset = num(w[4]),
		.length = num(w[5]),
	};
	err = raw_ioctl(port, FABREX_IOCTL_WINDOW_CREATE, &win->info);
	if (err) {
		answer(err);
		return;
	}
	win->at = mmap64(NULL, win->info.out_length, prot, MAP_SHARED, port,
			 win->info.out_mmap);
	answer(win->at == MAP_FAILED ? -errno : 0);
}

static void do_windel(char **w)
{
	answer(raw_destroy(port, windows[at(w[1])].info.out_id));
}

static void do_load(char **w)
{
	ok("%u", *(volatile uint32_t *)(windows[at(w[1])].at + num(w[2])));
}

static void do_store(char **w)
{
	*(volatile uint32_t *)(windows[at(w[1])].at + num(w[2])) = num(w[3]);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	answer(0);
}

static void do_event(char **w)
{
	struct pollfd p = { .fd = port, .events = POLLIN };
	struct fabrex_event ev;

	if (poll(&p, 1, num(w[1])) != 1)
		answer(-ETIMEDOUT);
	else if (read(port, &ev, sizeof(ev)) != sizeof(ev))
		answer(-errno);
	else
		ok("%u %u %u %u %u", ev.type, ev.peer, ev.generation, ev.id,
		   ev.error);
}

static void do_peer(char **w)
{
	struct fabrex_peer_query p;
	int err = raw_peer(port, w[1], &p);

	if (err)
		answer(err);
	else
		ok("%u %u %u", p.out_peer, p.out_state, p.out_generation);
}

static void do_resolve(char **w)
{
	struct fabrex_resolve r;
	int err = raw_resolve(port, num(w[1]), num(w[2]), &r);

	if (err)
		answer(err);
	else
		ok("%u %" PRIu64, r.out_queue, (uint64_t)r.out_key);
}

static void do_counters(char **w)
{
	uint32_t id = strcmp(w[1], "-") ? queues[at(w[1])].info.out_id : 0;
	struct fabrex_counters c;
	int err = raw_counters(port, id, &c);

	if (err)
		answer(err);
	else
		ok("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		   " %" PRIu64, (uint64_t)c.out_tx_bytes,
		   (uint64_t)c.out_rx_bytes, (uint64_t)c.out_errors,
		   (uint64_t)c.out_crc_errors, (uint64_t)c.out_p2p_bytes,
		   (uint64_t)c.out_host_bytes);
}

static const struct puppet_command commands[] = {
	{ "open", 1, do_open }, { "close", 1, do_close },
	{ "mr", 4, do_mr }, { "mr-for", 5, do_mr_for },
	{ "mrdel", 2, do_mrdel },
	{ "queue", 6, do_queue }, { "qdel", 2, do_qdel },
	{ "fill", 5, do_fill }, { "set", 5, do_set },
	{ "differs", 5, do_differs }, { "all", 5, do_all },
	{ "peek", 3, do_peek },
	{ "op", 12, do_op }, { "post", 12, do_post },
	{ "poll", 3, do_poll }, { "state", 2, do_state },
	{ "window", 7, do_window }, { "windel", 2, do_windel },
	{ "load", 3, do_load }, { "store", 4, do_store },
	{ "event", 2, do_event }, { "peer", 2, do_peer },
	{ "resolve", 3, do_resolve }, { "counters", 2, do_counters },
	{ NULL }
};

/* Of a program that has more of them. */
__attribute__((weak)) const struct puppet_command puppet_more[] = { { NULL } };

static const struct puppet_command *find(const char *name)
{
	const struct puppet_command *c;

	for (c = commands; c->name; c++)
		if (!strcmp(name, c->name))
			return c;
	for (c = puppet_more; c->name; c++)
		if (!strcmp(name, c->name))
			return c;
	return NULL;
}

static void obey(char *line)
{
	const struct puppet_command *command;
	char *w[WORDS] = { NULL };
	int n = 0;

	for (char *p = strtok(line, " \n"); p && n < WORDS;
	     p = strtok(NULL, " \n"))
		w[n++] = p;
	command = n ? find(w[0]) : NULL;
	if (!command)
		printf("err unknown command\n");
	else if (n != command->words)
		printf("err words\n");
	else
		command->run(w);
}

int main(void)
{
	char line[512];

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
