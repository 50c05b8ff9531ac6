// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of regions of the loopback transport between processes: every kind of
 * memory on both sides, rights, faults, windows, and what an end means.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/core.h"
#include "party.h"
#include "transport/loopback/loopback.h"

#define LENGTH	(3u << 20)

/* The owner's process does not use cross-memory attach if cma is "0". */
static void open_cma(struct scene *s, enum memory_kind local, const char *cma)
{
	setenv("FABREX_LOOPBACK_CMA", cma, 1);
	scene_open(s, local, LENGTH);
}

static struct puppet_answer make(struct scene *s, enum memory_kind kind,
				 uint64_t length, uint32_t access, int peer)
{
	const struct puppet_order order = {
		.verb = PUPPET_MAKE, .kind = (int)kind, .length = length,
		.access = access, .peer = peer,
	};

	return puppet(&s->owner, &order);
}

static int end(struct scene *s, int thing)
{
	const struct puppet_order order = {
		.verb = PUPPET_END, .thing = thing,
	};

	return puppet(&s->owner, &order).ret;
}

static struct fabrex_op op_to(struct scene *s, const struct puppet_answer *to,
			      uint8_t opcode, uint64_t roffset,
			      uint64_t length)
{
	return (struct fabrex_op){
		.opcode = opcode, .peer = (uint16_t)s->peer.peer,
		.user_data = 99, .mr = s->local.mr, .offset = roffset % 4096,
		.length = length, .rkey = to->remote.rkey, .roffset = roffset,
	};
}

static void fill(char *bytes, size_t length, unsigned int seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		bytes[i] = (char)(seed + i + (i >> 8) * 7 + (i >> 16) * 13);
}

/* ---- every kind to every kind ------------------------------------------ */

static void check_write(struct scene *s, const struct puppet_answer *to,
			uint64_t roffset, uint64_t length)
{
	struct fabrex_op op = op_to(s, to, FABREX_OP_WRITE, roffset, length);
	char *bytes = malloc(length);

	CHECK(bytes);
	fill(bytes, length, (unsigned int)(roffset + length));
	thing_write(&s->local, op.offset, bytes, length);
	CHECK_EQ(operate(s->queue, &op), FABREX_WC_OK);
	CHECK(puppet_has(&s->owner, to->thing, roffset, bytes, length));
	free(bytes);
}

static void check_read(struct scene *s, const struct puppet_answer *to,
		       uint64_t roffset, uint64_t length, uint8_t value)
{
	struct fabrex_op op = op_to(s, to, FABREX_OP_READ, roffset, length);
	const struct puppet_order order = {
		.verb = PUPPET_WRITE, .thing = to->thing, .offset = roffset,
		.length = length, .value = value,
	};
	char *bytes = calloc(1, length);
	uint64_t i;

	CHECK(bytes);
	puppet(&s->owner, &order);
	thing_write(&s->local, op.offset, bytes, length);
	CHECK_EQ(operate(s->queue, &op), FABREX_WC_OK);
	thing_read(&s->local, op.offset, bytes, length);
	for (i = 0; i < length; i++)
		CHECK_EQ((uint8_t)bytes[i], value);
	free(bytes);
}

static void check_sum(struct scene *s, const struct puppet_answer *to)
{
	struct fabrex_op op = op_to(s, to, FABREX_OP_WRITE, 5, 70000);
	struct fabrex_wc wc;

	op.flags = FABREX_SQE_CHECK;
	CHECK_EQ(fabrex_post(s->queue, &op, 1), 1);
	poll_n(s->queue, &wc, 1);
	CHECK_EQ(wc.status, FABREX_WC_OK);
	CHECK(wc.crc);
}

/* 0 where the place is not 8 aligned: regions of files begin anywhere. */
static void check_atomics(struct scene *s, const struct puppet_answer *to,
			  enum memory_kind kind)
{
	struct fabrex_op op = op_to(s, to, FABREX_OP_FETCH_ADD, 4096, 0);
	uint64_t word = 5, old;
	int expected = FABREX_WC_OK;

	if (kind == KIND_FILE || kind == KIND_SEALED)
		expected = FABREX_WC_BAD_DESC;
	if (kind == KIND_CUDA || kind == KIND_HIP)
		expected = FABREX_WC_BAD_OPCODE;
	op.operand = 7;
	op.offset = 64;
	thing_write(&s->local, 0, &word, 8);
	{
		struct fabrex_op init = op_to(s, to, FABREX_OP_WRITE, 4096, 8);

		CHECK_EQ(operate(s->queue, &init), FABREX_WC_OK);
	}
	CHECK_EQ(operate(s->queue, &op), expected);
	if (expected)
		return;
	thing_read(&s->local, 64, &old, 8);
	CHECK_EQ(old, 5);
	op.opcode = FABREX_OP_CMP_SWAP;
	op.compare = 12;
	op.operand = 1000;
	CHECK_EQ(operate(s->queue, &op), FABREX_WC_OK);
	thing_read(&s->local, 64, &old, 8);
	CHECK_EQ(old, 12);
	word = 1000;
	CHECK(puppet_has(&s->owner, to->thing, 4096, &word, 8));
}

static void check_kind(struct scene *s, enum memory_kind kind)
{
	static const uint64_t lengths[] = {
		1, 8, 63, 4096, 100001, (1u << 20) + 17, LENGTH - 4096,
	};
	struct puppet_answer to = make(s, kind, LENGTH, FABREX_MR_ALL, -1);
	size_t i;

	CHECK_EQ(to.ret, 0);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		check_write(s, &to, 0, lengths[i]);
		check_write(s, &to, 4095, lengths[i]);
		check_read(s, &to, 0, lengths[i], (uint8_t)(i + 1));
		check_read(s, &to, 3, lengths[i], (uint8_t)(i + 101));
	}
	check_sum(s, &to);
	check_atomics(s, &to, kind);
	CHECK_EQ(end(s, to.thing), 0);
	{
		struct fabrex_op op = op_to(s, &to, FABREX_OP_WRITE, 0, 8);

		CHECK_EQ(operate(s->queue, &op), FABREX_WC_RKEY);
	}
}

static void check_all_kinds(enum memory_kind local, const char *cma)
{
	struct scene s;
	int kind;

	open_cma(&s, local, cma);
	for (kind = 0; kind < KINDS; kind++) {
		printf("# %s to %s, cma %s\n", kind_names[local],
		       kind_names[kind], cma);
		check_kind(&s, (enum memory_kind)kind);
	}
	scene_close(&s);
}

TEST(loop_kinds_from_heap)
{
	check_all_kinds(KIND_HEAP, "1");
}

TEST(loop_kinds_from_heap_bounce)
{
	check_all_kinds(KIND_HEAP, "0");
}

TEST(loop_kinds_from_process)
{
	check_all_kinds(KIND_PROCESS, "1");
}

TEST(loop_kinds_from_process_bounce)
{
	check_all_kinds(KIND_PROCESS, "0");
}

TEST(loop_kinds_from_files)
{
	check_all_kinds(KIND_FILE, "1");
	check_all_kinds(KIND_SEALED, "0");
}

/* One process each: CUDA does not go on in the child of a fork. */
TEST(loop_kinds_from_cuda)
{
	check_all_kinds(KIND_CUDA, "1");
}

TEST(loop_kinds_from_hip)
{
	check_all_kinds(KIND_HIP, "0");
}

/* ---- rights ------------------------------------------------------------ */

static int status_of(struct scene *s, const struct puppet_answer *to,
		     uint8_t opcode, uint64_t roffset, uint64_t length)
{
	struct fabrex_op op = op_to(s, to, opcode, roffset, length);

	op.offset = 0;
	if (opcode == FABREX_OP_FETCH_ADD)
		op.length = 0;
	return operate(s->queue, &op);
}

static void check_rights(struct scene *s, enum memory_kind kind)
{
	struct puppet_answer r = make(s, kind, 8192, FABREX_MR_REMOTE_READ, -1);
	struct puppet_answer w = make(s, kind, 8192,
				      FABREX_MR_REMOTE_WRITE |
				      FABREX_MR_LOCAL_WRITE, -1);
	uint32_t self = s->port->attr.peer;
	struct puppet_answer mine, theirs;

	CHECK_EQ(r.ret, 0);
	CHECK_EQ(w.ret, 0);
	CHECK_EQ(status_of(s, &r, FABREX_OP_WRITE, 0, 8), FABREX_WC_RACCESS);
	CHECK_EQ(status_of(s, &r, FABREX_OP_READ, 0, 8), FABREX_WC_OK);
	CHECK_EQ(status_of(s, &w, FABREX_OP_READ, 0, 8), FABREX_WC_RACCESS);
	CHECK_EQ(status_of(s, &w, FABREX_OP_WRITE, 0, 8), FABREX_WC_OK);
	CHECK_EQ(status_of(s, &w, FABREX_OP_FETCH_ADD, 0, 8),
		 FABREX_WC_RACCESS);
	CHECK_EQ(status_of(s, &w, FABREX_OP_WRITE, 8185, 8),
		 FABREX_WC_RBOUNDS);
	CHECK_EQ(status_of(s, &w, FABREX_OP_WRITE, UINT64_MAX - 3, 8),
		 FABREX_WC_RBOUNDS);
	mine = make(s, kind, 8192, FABREX_MR_ALL, (int)self);
	theirs = make(s, kind, 8192, FABREX_MR_ALL, (int)self + 1);
	CHECK_EQ(mine.ret, 0);
	CHECK_EQ(theirs.ret, 0);
	CHECK_EQ(status_of(s, &mine, FABREX_OP_WRITE, 0, 8), FABREX_WC_OK);
	CHECK_EQ(status_of(s, &theirs, FABREX_OP_WRITE, 0, 8),
		 FABREX_WC_RPEER);
	CHECK_EQ(status_of(s, &theirs, FABREX_OP_READ, 0, 8), FABREX_WC_RPEER);
}

TEST(loop_rights)
{
	struct scene s;
	int kind;

	open_cma(&s, KIND_HEAP, "1");
	for (kind = 0; kind <= KIND_CUDA; kind++)
		check_rights(&s, (enum memory_kind)kind);
	scene_close(&s);
}

/* ---- memory that goes -------------------------------------------------- */

static void check_unmapped(const char *cma)
{
	const struct puppet_order unmap = { .verb = PUPPET_UNMAP };
	struct puppet_answer to;
	struct scene s;

	open_cma(&s, KIND_HEAP, cma);
	to = make(&s, KIND_PROCESS, LENGTH, FABREX_MR_ALL, -1);
	CHECK_EQ(to.thing, 0);
	CHECK_EQ(puppet(&s.owner, &unmap).ret, 0);
	CHECK_EQ(status_of(&s, &to, FABREX_OP_WRITE, 0, 8), FABREX_WC_RFAULT);
	CHECK_EQ(status_of(&s, &to, FABREX_OP_READ, 0, LENGTH),
		 FABREX_WC_RFAULT);
	CHECK_EQ(status_of(&s, &to, FABREX_OP_FETCH_ADD, 0, 8),
		 FABREX_WC_RFAULT);
	CHECK_EQ(end(&s, 0), 0);
	to = make(&s, KIND_PROCESS, 4096, FABREX_MR_ALL, -1);
	CHECK_EQ(status_of(&s, &to, FABREX_OP_WRITE, 0, 8), FABREX_WC_OK);
	scene_close(&s);
}

TEST(loop_unmapped)
{
	check_unmapped("1");
	check_unmapped("0");
}

/* ---- cross-memory attach that is refused ------------------------------- */

struct refusal {
	bool late;		/* after the peers have met */
	int line;		/* from the intruder to the owner */
};

/* Nobody but root may look into a process that is not dumpable. */
static void become_another(void)
{
	if (geteuid())
		return;
	CHECK(!setgid(1));
	CHECK(!setuid(1));
	CHECK(!prctl(PR_SET_DUMPABLE, 1));
}

static void refuse(int fd, void *arg)
{
	struct refusal *r = arg;
	struct fabrex_port *port;
	struct fabrex_remote remote;
	struct fabrex_mr *mr;
	char *memory = malloc(LENGTH), order;

	become_another();
	CHECK(memory);
	memset(memory, 'o', LENGTH);
	if (!r->late)
		CHECK(!prctl(PR_SET_DUMPABLE, 0));
	CHECK_EQ(fabrex_open(loop_name("shy"), &port), 0);
	CHECK_EQ(fabrex_mr_register(port, memory, LENGTH, FABREX_MR_ALL, &mr),
		 0);
	fabrex_mr_remote(mr, &remote);
	tell(fd, &remote, sizeof(remote));
	hear(fd, &order, 1);
	CHECK(!prctl(PR_SET_DUMPABLE, 0));
	tell(fd, &order, 1);
	hear(fd, &order, 1);
	CHECK(memory[LENGTH - 1] == 'i' && memory[0] == 'i');
	fabrex_close(port);
	free(memory);
}

static void intrude(int fd, void *arg)
{
	struct refusal *r = arg;
	struct fabrex_remote remote;
	struct fabrex_port *port;
	struct fabrex_queue *q;
	struct fabrex_mr *mr;
	struct fabrex_op op;
	char go = 0;

	hear(r->line, &remote, sizeof(remote));
	become_another();
	CHECK_EQ(fabrex_open(loop_name("nosy"), &port), 0);
	CHECK_EQ(port->transport->peers[remote.peer].cma, r->late);
	CHECK_EQ(fabrex_mr_alloc(port, LENGTH, FABREX_MR_ALL, &mr), 0);
	CHECK_EQ(fabrex_queue_create(port, NULL, 0, &q), 0);
	tell(r->line, &go, 1);
	hear(r->line, &go, 1);
	op = (struct fabrex_op){
		.opcode = FABREX_OP_READ, .peer = (uint16_t)remote.peer,
		.mr = mr, .length = LENGTH, .rkey = remote.rkey,
	};
	CHECK_EQ(operate(q, &op), FABREX_WC_OK);
	CHECK_EQ(((char *)fabrex_mr_addr(mr))[LENGTH - 1], 'o');
	memset(fabrex_mr_addr(mr), 'i', LENGTH);
	op.opcode = FABREX_OP_WRITE;
	CHECK_EQ(operate(q, &op), FABREX_WC_OK);
	tell(r->line, &go, 1);
	fabrex_close(port);
	(void)fd;
}

static void check_refusal(bool late)
{
	struct refusal r = { .late = late };
	struct party owner, intruder;

	loop_name_set();
	setenv("FABREX_LOOPBACK_CMA", "1", 1);
	party_start(&owner, refuse, &r);
	r.line = dup(owner.fd);
	party_start(&intruder, intrude, &r);
	party_end(&intruder);
	party_end(&owner);
	close(r.line);
}

TEST(loop_attach_refused)
{
	check_refusal(false);
	check_refusal(true);
}

/* ---- files that change -------------------------------------------------- */

/* A file that shrinks is an error, not a signal. */
TEST(loop_file_shrinks)
{
	struct fabrex_remote remote;
	struct thing file, heap;
	struct fabrex_queue *q;
	struct fabrex_port *a, *b;
	struct fabrex_op op;

	CHECK_EQ(fabrex_open(loop_name("a"), &a), 0);
	CHECK_EQ(fabrex_open(loop_name("b"), &b), 0);
	CHECK_EQ(thing_make(a, &file, KIND_FILE, 65536, FABREX_MR_ALL, NULL,
			    0), 0);
	CHECK_EQ(thing_make(b, &heap, KIND_HEAP, 65536, FABREX_MR_ALL, NULL,
			    0), 0);
	CHECK_EQ(fabrex_queue_create(b, NULL, 0, &q), 0);
	fabrex_mr_remote(file.mr, &remote);
	op = (struct fabrex_op){
		.opcode = FABREX_OP_READ, .peer = (uint16_t)remote.peer,
		.mr = heap.mr, .length = 65536, .rkey = remote.rkey,
	};
	CHECK_EQ(operate(q, &op), FABREX_WC_OK);
	CHECK(!ftruncate(file.fd, 8192));
	CHECK_EQ(operate(q, &op), FABREX_WC_RFAULT);
	fabrex_close(a);
	fabrex_close(b);
}

TEST(loop_register_failures)
{
	struct fabrex_mr_attr attr = {
		.kind = FABREX_MEMORY_DMABUF, .length = 4096, .access = 15,
	};
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	char *gone;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	gone = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(gone, 8192);
	CHECK_EQ(fabrex_mr_register(port, gone, 8192, 0, &mr), -EFAULT);
	CHECK_SAYS("not mapped");
	attr.fd = -1;
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EBADF);
	attr.fd = memfd_create("short", 0);
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EINVAL);
	CHECK_SAYS("shorter");
	fabrex_close(port);
}

/* ---- the heap ---------------------------------------------------------- */

static bool all_zero(const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

TEST(loop_heap)
{
	static const size_t lengths[] = {
		1, 4096, 5000, 1 << 20, 2 << 20, (2 << 20) + 1, 9 << 20,
	};
	struct fabrex_mr *mr[64] = { NULL };
	struct fabrex_port *port;
	unsigned int i, k, round;
	char *p;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	for (round = 0; round < 400; round++) {
		i = (round * 37u) % 64;
		k = round % 7;
		if (mr[i])
			CHECK_EQ(fabrex_mr_deregister(mr[i]), 0);
		CHECK_EQ(fabrex_mr_alloc(port, lengths[k], FABREX_MR_ALL,
					 &mr[i]), 0);
		p = fabrex_mr_addr(mr[i]);
		CHECK(!((uintptr_t)p % 4096));
		if (lengths[k] >= 2 << 20)
			CHECK(!((uintptr_t)p % (2 << 20)));
		CHECK(all_zero(p, lengths[k]));
		memset(p, 0xa5, lengths[k]);
	}
	fabrex_close(port);
}

TEST(loop_heap_is_full)
{
	struct fabrex_port *port;
	struct fabrex_mr *mr[100];
	int n = 0, ret;

	setenv("FABREX_LOOPBACK_SIZE", "64M", 1);
	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	while (n < 100 && !(ret = fabrex_mr_alloc(port, 4 << 20, 0, &mr[n])))
		n++;
	CHECK_EQ(ret, -ENOMEM);
	CHECK_SAYS("FABREX_LOOPBACK_SIZE");
	CHECK(n >= 14 && n < 16);
	CHECK_EQ(fabrex_mr_deregister(mr[3]), 0);
	CHECK_EQ(fabrex_mr_alloc(port, 4 << 20, 0, &mr[3]), 0);
	CHECK_EQ(fabrex_mr_alloc(port, 1ull << 45, 0, &mr[0]), -ENOMEM);
	fabrex_close(port);
}

/* Regions inside an allocation end with it; its addresses are another's. */
TEST(loop_heap_region_inside)
{
	struct fabrex_port_event event;
	struct fabrex_mr *all, *part;
	struct fabrex_port *port;
	struct fabrex_remote r;
	struct fabrex_queue *q;
	struct fabrex_op op;
	char *p;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_queue_create(port, NULL, 0, &q), 0);
	CHECK_EQ(fabrex_mr_alloc(port, 65536, FABREX_MR_ALL, &all), 0);
	p = fabrex_mr_addr(all);
	CHECK_EQ(fabrex_mr_register(port, p + 100, 65436, FABREX_MR_ALL,
				    &part), 0);
	CHECK_EQ(fabrex_mr_register(port, p + 100, 65437 + 4096, 0, &all),
		 -EFAULT);
	fabrex_mr_remote(part, &r);
	op = (struct fabrex_op){
		.opcode = FABREX_OP_WRITE, .peer = (uint16_t)r.peer,
		.mr = part, .length = 8, .rkey = r.rkey, .roffset = 16,
	};
	memset(p, 'x', 200);
	CHECK_EQ(operate(q, &op), FABREX_WC_OK);
	CHECK_EQ(fabrex_mr_deregister(all), 0);
	op.flags = FABREX_SQE_CHECK;
	CHECK_EQ(operate(q, &op), FABREX_WC_LKEY);
	CHECK_EQ(fabrex_event_read(port, &event, HANG_MS), 0);
	CHECK_EQ(event.type, FABREX_EV_MR_REVOKED);
	CHECK(event.mr == part);
	CHECK_EQ(fabrex_mr_deregister(part), 0);
	fabrex_close(port);
}

/* ---- windows ----------------------------------------------------------- */

#define RW	(FABREX_MR_REMOTE_READ | FABREX_MR_REMOTE_WRITE)

static void check_window(struct scene *s, enum memory_kind kind)
{
	struct puppet_answer to = make(s, kind, 65536, FABREX_MR_ALL, -1);
	struct fabrex_port_event event;
	struct fabrex_window *w, *part;
	volatile char *at;

	CHECK_EQ(to.ret, 0);
	CHECK_EQ(fabrex_window_map(s->port, &to.remote, 5000, 20000, RW, &w),
		 0);
	CHECK_EQ(fabrex_window_map(s->port, &to.remote, 0, 4096,
				   FABREX_MR_REMOTE_READ, &part), 0);
	at = fabrex_window_addr(w);
	at[0] = 'a';
	at[19999] = 'z';
	fabrex_window_flush(w);
	CHECK(puppet_has(&s->owner, to.thing, 5000, "a", 1));
	CHECK(puppet_has(&s->owner, to.thing, 24999, "z", 1));
	CHECK_EQ(fabrex_window_unmap(part), 0);
	CHECK_EQ(end(s, to.thing), 0);
	CHECK_EQ(at[0], 0);
	at[0] = 'b';
	CHECK_EQ(fabrex_event_read(s->port, &event, HANG_MS), 0);
	CHECK_EQ(event.type, FABREX_EV_WINDOW_FAULT);
	CHECK(event.window == w);
	CHECK_EQ(fabrex_window_unmap(w), 0);
	CHECK_EQ(fabrex_window_map(s->port, &to.remote, 0, 4096, RW, &w),
		 -EACCES);
}

TEST(loop_windows)
{
	struct puppet_answer to;
	struct fabrex_window *w;
	struct scene s;

	open_cma(&s, KIND_HEAP, "1");
	check_window(&s, KIND_HEAP);
	check_window(&s, KIND_SEALED);
	to = make(&s, KIND_HEAP, 8192, FABREX_MR_REMOTE_READ, -1);
	CHECK_EQ(fabrex_window_map(s.port, &to.remote, 0, 8192, RW, &w),
		 -EACCES);
	to = make(&s, KIND_HEAP, 8192, FABREX_MR_ALL,
		  (int)s.port->attr.peer + 1);
	CHECK_EQ(fabrex_window_map(s.port, &to.remote, 0, 8192, RW, &w),
		 -EACCES);
	to = make(&s, KIND_FILE, 8192, FABREX_MR_ALL, -1);
	CHECK_EQ(fabrex_window_map(s.port, &to.remote, 0, 8192, RW, &w),
		 -EOPNOTSUPP);
	CHECK_SAYS("F_SEAL_SHRINK");
	to = make(&s, KIND_PROCESS, 8192, FABREX_MR_ALL, -1);
	CHECK_EQ(fabrex_window_map(s.port, &to.remote, 0, 8192, RW, &w),
		 -EOPNOTSUPP);
	CHECK_SAYS("fabrex_mr_alloc");
	scene_close(&s);
}

/* ---- messages ---------------------------------------------------------- */

/* The other side sleeps until the message is there. */
TEST(loop_message_wakes)
{
	struct puppet_order order = { .verb = PUPPET_QUEUE, .length = 8 };
	struct puppet_answer queue, got;
	struct fabrex_op op;
	struct scene s;
	char data[256];
	int i;

	open_cma(&s, KIND_HEAP, "1");
	queue = puppet(&s.owner, &order);
	CHECK_EQ(queue.ret, 0);
	order.verb = PUPPET_RECEIVE;
	for (i = 0; i < 50; i++) {
		tell(s.owner.fd, &order, sizeof(order));
		nap_ms(i % 3);
		snprintf(data, sizeof(data), "number %d", i);
		thing_write(&s.local, 0, data, sizeof(data));
		op = (struct fabrex_op){
			.opcode = FABREX_OP_SEND,
			.peer = (uint16_t)s.peer.peer, .mr = s.local.mr,
			.length = 200, .dest_key = queue.key,
		};
		CHECK_EQ(operate(s.queue, &op), FABREX_WC_OK);
		hear(s.owner.fd, &got, sizeof(got));
		CHECK_EQ(got.ret, 1);
		hear(s.owner.fd, data, sizeof(data));
		CHECK_EQ(atoi(data + 7), i);
	}
	scene_close(&s);
}

/* ---- the cache --------------------------------------------------------- */

TEST(loop_cache)
{
	struct fabrex_mr_cache_stats stats;
	struct fabrex_mr *mr, *again, *all;
	struct fabrex_port *port;
	static char plain[8192];
	uint64_t offset;
	char *p;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_mr_cache_get(port, plain, 4096, FABREX_MR_ALL, &mr,
				     &offset), 0);
	fabrex_mr_cache_put(mr);
	CHECK_EQ(fabrex_mr_cache_get(port, plain, 4096, FABREX_MR_ALL, &again,
				     &offset), 0);
	CHECK(again == mr);
	fabrex_mr_cache_put(again);
	CHECK_EQ(fabrex_mr_alloc(port, 65536, 0, &all), 0);
	p = fabrex_mr_addr(all);
	CHECK_EQ(fabrex_mr_cache_get(port, p, 4096, FABREX_MR_ALL, &mr,
				     &offset), 0);
	fabrex_mr_cache_put(mr);
	CHECK_EQ(fabrex_mr_deregister(all), 0);
	CHECK_EQ(fabrex_mr_alloc(port, 65536, 0, &all), 0);
	CHECK(fabrex_mr_addr(all) == p);
	CHECK_EQ(fabrex_mr_cache_get(port, p, 4096, FABREX_MR_ALL, &mr,
				     &offset), 0);
	fabrex_mr_cache_put(mr);
	CHECK_EQ(fabrex_mr_cache_stats(port, &stats, sizeof(stats)), 0);
	CHECK_EQ(stats.hits, 1);
	CHECK_EQ(stats.stale, 1);
	fabrex_close(port);
}
