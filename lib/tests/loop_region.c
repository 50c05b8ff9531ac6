// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the end of regions and queues of the loopback transport: who is
 * waited for, what is called back, and what is not used again.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks.h"
#include "core/core.h"
#include "party.h"
#include "transport/loopback/state.h"

/* ---- windows that are called back --------------------------------------- */

#define PARTS	600
#define RW	(FABREX_MR_REMOTE_READ | FABREX_MR_REMOTE_WRITE)

/* Maps all, and is told of the end of all. */
static void map_parts(int fd, void *arg)
{
	static struct fabrex_remote parts[PARTS];
	struct fabrex_port_event event;
	struct fabrex_window *w;
	struct fabrex_port *port;
	int i;

	(void)arg;
	hear(fd, parts, sizeof(parts));
	CHECK_EQ(fabrex_open(loop_name("mapper"), &port), 0);
	for (i = 0; i < PARTS; i++)
		CHECK_EQ(fabrex_window_map(port, &parts[i], 0, 4096, RW, &w),
			 0);
	tell(fd, "", 1);
	for (i = 0; i < PARTS; i += event.type == FABREX_EV_WINDOW_FAULT)
		CHECK_EQ(fabrex_event_read(port, &event, HANG_MS), 0);
	tell(fd, "", 1);
	fabrex_close(port);
}

/* More messages than a connection holds. */
TEST(loop_many_windows_end)
{
	static struct fabrex_remote parts[PARTS];
	struct fabrex_mr *all, *part;
	struct fabrex_port *port;
	struct party p;
	char done;
	int i;

	loop_name_set();
	setenv("FABREX_LOOPBACK_QUIESCE_MS", "300000", 1);
	party_start(&p, map_parts, NULL);
	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_mr_alloc(port, PARTS * 4096, FABREX_MR_ALL, &all), 0);
	for (i = 0; i < PARTS; i++) {
		CHECK_EQ(fabrex_mr_register(port, (char *)fabrex_mr_addr(all) +
					    i * 4096, 4096, FABREX_MR_ALL,
					    &part), 0);
		fabrex_mr_remote(part, &parts[i]);
	}
	tell(p.fd, parts, sizeof(parts));
	hear(p.fd, &done, 1);
	CHECK_EQ(fabrex_mr_deregister(all), 0);
	/* Nobody was waited for in vain. */
	CHECK(!port->transport->state->quarantine);
	hear(p.fd, &done, 1);
	party_end(&p);
	fabrex_close(port);
}

/* ---- a peer that does not move ------------------------------------------ */

/* Two ports of this process; b has a queue that seems to execute something. */
struct still {
	struct fabrex_port *a, *b;
	struct fabrex_queue *queue, *other;
	uint32_t *active, *active_other; /* of b's queues */
};

static uint32_t *active_of(struct fabrex_port *port, struct fabrex_queue *q)
{
	struct transport *t = port->transport;

	return &t->segment->queues[fabrex_queue_number(q) - 1].active;
}

static void still_open(struct still *s)
{
	setenv("FABREX_LOOPBACK_QUIESCE_MS", "300", 1);
	CHECK_EQ(fabrex_open(loop_name("a"), &s->a), 0);
	CHECK_EQ(fabrex_open(loop_name("b"), &s->b), 0);
	CHECK_EQ(fabrex_queue_create(s->b, NULL, 0, &s->queue), 0);
	CHECK_EQ(fabrex_queue_create(s->b, NULL, 0, &s->other), 0);
	s->active = active_of(s->b, s->queue);
	s->active_other = active_of(s->b, s->other);
}

static void still_close(struct still *s)
{
	fabrex_close(s->a);
	fabrex_close(s->b);
}

static void step(uint32_t *active)
{
	__atomic_add_fetch(active, 1, __ATOMIC_SEQ_CST);
}

static void await_clean(struct fabrex_port *port)
{
	while (__atomic_load_n(&port->transport->state->quarantine,
			       __ATOMIC_RELAXED))
		nap_ms(1);
}

/* Who is waited for in vain from now on is so until the test hangs. */
static void be_patient(struct fabrex_port *port)
{
	port->transport->state->settings.quiesce_ms = 2 * HANG_S * 1000;
}

/* Its number is not another queue's as long as a sender may be in it. */
TEST(loop_queue_number_kept)
{
	const struct fabrex_queue_attr attr = {
		.rq_entries = 64, .cell_size = 2048,
	};
	struct fabrex_queue *q;
	uint32_t number;
	struct still s;

	still_open(&s);
	CHECK_EQ(fabrex_queue_create(s.a, &attr, sizeof(attr), &q), 0);
	number = fabrex_queue_number(q);
	step(s.active);
	CHECK_EQ(fabrex_queue_destroy(q), 0);
	CHECK_EQ(fabrex_queue_create(s.a, &attr, sizeof(attr), &q), 0);
	CHECK(fabrex_queue_number(q) != number);
	step(s.active);
	await_clean(s.a);
	CHECK_EQ(fabrex_queue_create(s.a, &attr, sizeof(attr), &q), 0);
	CHECK_EQ(fabrex_queue_number(q), number);
	still_close(&s);
}

/* Nor is the place of a region, also of one that is nobody else's. */
TEST(loop_region_index_kept)
{
	static char memory[8192];
	struct fabrex_remote r, again;
	struct fabrex_mr *mr;
	struct still s;

	still_open(&s);
	CHECK_EQ(fabrex_mr_register(s.a, memory, 4096, FABREX_MR_LOCAL_WRITE,
				    &mr), 0);
	fabrex_mr_remote(mr, &r);
	step(s.active);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	CHECK_EQ(fabrex_mr_register(s.a, memory, 4096, FABREX_MR_ALL, &mr), 0);
	fabrex_mr_remote(mr, &again);
	CHECK((again.rkey & 0xffff) != (r.rkey & 0xffff));
	step(s.active);
	await_clean(s.a);
	CHECK_EQ(fabrex_mr_register(s.a, memory, 4096, FABREX_MR_ALL, &mr), 0);
	fabrex_mr_remote(mr, &again);
	CHECK_EQ(again.rkey & 0xffff, r.rkey & 0xffff);
	still_close(&s);
}

/* The allocation that it is a part of is still the application's. */
TEST(loop_part_is_busy)
{
	struct fabrex_mr *all, *part, *late;
	struct still s;

	still_open(&s);
	CHECK_EQ(fabrex_mr_alloc(s.a, 65536, FABREX_MR_ALL, &all), 0);
	CHECK_EQ(fabrex_mr_register(s.a, fabrex_mr_addr(all), 4096,
				    FABREX_MR_ALL, &part), 0);
	CHECK_EQ(fabrex_mr_register(s.a, fabrex_mr_addr(all), 8192,
				    FABREX_MR_ALL, &late), 0);
	step(s.active);
	CHECK_EQ(fabrex_mr_deregister(part), -ETIMEDOUT);
	step(s.active);
	CHECK_EQ(fabrex_mr_deregister(part), 0);
	step(s.active);
	CHECK_EQ(fabrex_mr_deregister(all), 0);
	CHECK(s.a->transport->state->quarantine);
	CHECK_EQ(fabrex_mr_deregister(late), 0);
	step(s.active);
	await_clean(s.a);
	still_close(&s);
}

/* Only who may touch it is waited for, and once. */
TEST(loop_stuck_once)
{
	static char memory[8 * 4096];
	struct fabrex_mr *own, *first, *second, *late;
	struct still s;

	still_open(&s);
	CHECK_EQ(fabrex_mr_register(s.a, memory, 4096, FABREX_MR_LOCAL_WRITE,
				    &own), 0);
	CHECK_EQ(fabrex_mr_register(s.a, memory, 4096, FABREX_MR_ALL, &first),
		 0);
	CHECK_EQ(fabrex_mr_register(s.a, memory, 4096, FABREX_MR_ALL,
				    &second), 0);
	step(s.active);
	be_patient(s.a);
	CHECK_EQ(fabrex_mr_deregister(own), 0);
	s.a->transport->state->settings.quiesce_ms = 300;
	CHECK_EQ(fabrex_mr_deregister(first), -ETIMEDOUT);
	CHECK_SAYS("300 ms");
	be_patient(s.a);
	CHECK_EQ(fabrex_mr_deregister(second), -ETIMEDOUT);
	CHECK_EQ(fabrex_mr_register(s.a, memory, 4096, FABREX_MR_ALL, &late),
		 0);
	CHECK_EQ(fabrex_mr_deregister(late), 0);
	step(s.active);
	CHECK_EQ(fabrex_mr_deregister(first), 0);
	CHECK_EQ(fabrex_mr_deregister(second), 0);
	still_close(&s);
}

static void with_a_queue(int fd, void *name)
{
	struct fabrex_port *port;
	struct fabrex_queue *q;
	uint32_t at[2];
	char order;

	prctl(PR_SET_NAME, name);
	CHECK_EQ(fabrex_open(loop_name("stopped"), &port), 0);
	CHECK_EQ(fabrex_queue_create(port, NULL, 0, &q), 0);
	at[0] = port->attr.peer;
	at[1] = fabrex_queue_number(q);
	tell(fd, at, sizeof(at));
	hear_maybe(fd, &order, 1);
}

/*
 * Who is stopped is not waited for, which here takes until the test's time is
 * up. The system puts a process's name into a line with its state.
 */
static void check_stopped(const char *name)
{
	static char memory[4096];
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	uint32_t at[2], *active;
	struct party p;
	int status;

	party_start(&p, with_a_queue, (void *)(uintptr_t)name);
	hear(p.fd, at, sizeof(at));
	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_mr_register(port, memory, 4096, FABREX_MR_ALL, &mr),
		 0);
	kill(p.pid, SIGSTOP);
	CHECK_EQ(waitpid(p.pid, &status, WUNTRACED), p.pid);
	active = &port->transport->peers[at[0]].segment->queues[
		at[1] - 1].active;
	step(active);
	CHECK_EQ(fabrex_mr_deregister(mr), -ETIMEDOUT);
	step(active);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	kill(p.pid, SIGCONT);
	party_kill(&p);
	CHECK_EQ(fabrex_close(port), 0);
}

TEST(loop_stopped_whatever_its_name)
{
	loop_name_set();
	setenv("FABREX_LOOPBACK_QUIESCE_MS", "600000", 1);
	check_stopped("plain");
	check_stopped("a) S (b");
	check_stopped(")");
	check_stopped("x\n) R ");
}

/* There never is a moment when both queues are even. */
TEST(loop_quarantine_ends_busy)
{
	struct fabrex_mr *mr;
	struct still s;

	still_open(&s);
	CHECK_EQ(fabrex_mr_alloc(s.a, 65536, FABREX_MR_ALL, &mr), 0);
	step(s.active);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	CHECK(s.a->transport->state->quarantine);
	step(s.active_other);
	step(s.active);
	await_clean(s.a);
	step(s.active_other);
	still_close(&s);
}

/* ---- an allocation and what is in it, ended by two threads --------------- */

/* b has a window on part, which is inside of all, and does not give it back. */
struct twofold {
	struct fabrex_port *a, *b;
	struct fabrex_mr *all, *part;
	struct fabrex_window *window;
	uint32_t index;		/* of part in a's table */
};

static void twofold_open(struct twofold *f)
{
	struct fabrex_remote remote;

	setenv("FABREX_LOOPBACK_QUIESCE_MS", "1000", 1);
	CHECK_EQ(fabrex_open(loop_name("a"), &f->a), 0);
	CHECK_EQ(fabrex_open(loop_name("b"), &f->b), 0);
	CHECK_EQ(fabrex_mr_alloc(f->a, 65536, FABREX_MR_ALL, &f->all), 0);
	CHECK_EQ(fabrex_mr_register(f->a, (char *)fabrex_mr_addr(f->all) +
				    4096, 4096, FABREX_MR_ALL, &f->part), 0);
	fabrex_mr_remote(f->part, &remote);
	f->index = remote.rkey & 0xffff;
	CHECK_EQ(fabrex_window_map(f->b, &remote, 0, 4096, RW, &f->window), 0);
	/* Its service thread does nothing. */
	pthread_mutex_lock(&f->b->transport->lock);
}

/* What is allocated now is nobody else's. */
static void twofold_close(struct twofold *f)
{
	volatile char *stale = fabrex_window_addr(f->window);
	struct fabrex_mr *next;
	const char *bytes;
	int i;

	CHECK_EQ(fabrex_mr_alloc(f->a, 65536, FABREX_MR_ALL, &next), 0);
	bytes = fabrex_mr_addr(next);
	for (i = 0; i < 4096; i++)
		stale[i] = 0x55;
	for (i = 0; i < 65536; i++)
		CHECK_EQ(bytes[i], 0);
	pthread_mutex_unlock(&f->b->transport->lock);
	await_clean(f->a);
	CHECK_EQ(fabrex_window_unmap(f->window), 0);
	fabrex_close(f->b);
	fabrex_close(f->a);
}

static void *deregister(void *mr)
{
	return (void *)(intptr_t)fabrex_mr_deregister(mr);
}

static void await_revoking(struct twofold *f)
{
	struct transport *t = f->a->transport;
	bool waits = false;

	while (!waits) {
		pthread_mutex_lock(&t->lock);
		waits = !loop_set_empty(&t->state->regions[f->index].revoking);
		pthread_mutex_unlock(&t->lock);
		sched_yield();
	}
}

TEST(loop_part_ends_with_its_allocation)
{
	pthread_t first, second;
	struct twofold f;
	void *ret;

	twofold_open(&f);
	CHECK_EQ(pthread_create(&first, NULL, deregister, f.all), 0);
	await_revoking(&f);
	CHECK_EQ(pthread_create(&second, NULL, deregister, f.part), 0);
	CHECK_EQ(pthread_join(second, &ret), 0);
	CHECK(!ret);
	CHECK_EQ(pthread_join(first, &ret), 0);
	CHECK(!ret);
	twofold_close(&f);
}

/* The part's end has begun, and its time is up before the allocation's. */
TEST(loop_allocation_ends_with_its_part)
{
	pthread_t first, second;
	struct twofold f;
	void *ret;

	twofold_open(&f);
	CHECK_EQ(pthread_create(&first, NULL, deregister, f.part), 0);
	await_revoking(&f);
	CHECK_EQ(pthread_create(&second, NULL, deregister, f.all), 0);
	CHECK_EQ(pthread_join(first, &ret), 0);
	CHECK(!ret || (intptr_t)ret == -ETIMEDOUT);
	CHECK_EQ(pthread_join(second, &ret), 0);
	CHECK(!ret);
	twofold_close(&f);
}

static void end_all(void *mr)
{
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
}

/* It ends before its part's registration locks for the n-th time, or after. */
static void end_amid(struct fabrex_port *port, unsigned int n)
{
	struct transport *t = port->transport;
	struct fabrex_mr *all, *part = NULL;
	struct fabrex_remote remote;

	CHECK_EQ(fabrex_mr_alloc(port, 4096, FABREX_MR_ALL, &all), 0);
	hook_lock(&t->lock, n, end_all, all);
	if (fabrex_mr_register(port, fabrex_mr_addr(all), 4096, FABREX_MR_ALL,
			       &part))
		part = NULL;
	if (!hook_lock_end())
		end_all(all);
	if (!part)
		return;
	fabrex_mr_remote(part, &remote);
	CHECK(t->segment->mrs[remote.rkey & 0xffff].key != remote.rkey);
	CHECK_EQ(fabrex_mr_deregister(part), 0);
}

/* A part is not registered any more, or ends with what it is a part of. */
TEST(loop_part_of_what_ends)
{
	struct fabrex_port *port;
	unsigned int n;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	for (n = 1; n < 8; n++)
		end_amid(port, n);
	fabrex_close(port);
}

/* An event of what has ended is not the next one's, whatever place it has. */
TEST(loop_event_of_the_one_before)
{
	struct fabrex_port_event event;
	struct fabrex_mr *all, *part;
	struct fabrex_port *port;
	struct loop_state *s;
	uint64_t serial;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	s = port->transport->state;
	CHECK_EQ(fabrex_mr_alloc(port, 4096, FABREX_MR_ALL, &all), 0);
	CHECK_EQ(fabrex_mr_register(port, fabrex_mr_addr(all), 4096,
				    FABREX_MR_ALL, &part), 0);
	serial = s->serial;
	CHECK_EQ(fabrex_mr_deregister(all), 0);
	CHECK_EQ(fabrex_mr_deregister(part), 0);
	/* Some have come and gone. */
	s->serial = (typeof(s->serial))(serial + (1ull << 32) + 65535);
	CHECK_EQ(fabrex_mr_alloc(port, 4096, FABREX_MR_ALL, &part), 0);
	CHECK_EQ(fabrex_event_read(port, &event, 0), -EAGAIN);
	fabrex_close(port);
}

/* ---- what is registered -------------------------------------------------- */

/* The application's place in its file stays where it is. */
TEST(loop_file_position)
{
	struct fabrex_mr_attr attr = {
		.kind = FABREX_MEMORY_DMABUF, .length = 8192,
		.access = FABREX_MR_ALL,
	};
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	attr.fd = memfd_create("position", MFD_CLOEXEC);
	CHECK(!ftruncate(attr.fd, 8192));
	CHECK_EQ(lseek(attr.fd, 5, SEEK_SET), 5);
	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr), 0);
	CHECK_EQ(lseek(attr.fd, 0, SEEK_CUR), 5);
	fabrex_close(port);
	close(attr.fd);
}

/* ---- tables that peers have scribbled into ------------------------------- */

TEST(loop_scribbled_region)
{
	static char memory[8192];
	struct fabrex_queue *q;
	struct fabrex_remote r;
	struct segment_mr *mine;
	struct fabrex_mr *mr;
	struct fabrex_op op;
	struct still s;

	still_open(&s);
	CHECK_EQ(fabrex_queue_create(s.a, NULL, 0, &q), 0);
	CHECK_EQ(fabrex_mr_register(s.a, memory, 4096,
				    FABREX_MR_REMOTE_WRITE |
				    FABREX_MR_LOCAL_WRITE, &mr), 0);
	fabrex_mr_remote(mr, &r);
	mine = &s.b->transport->peers[r.peer].segment->mrs[r.rkey & 0xffff];
	mine->length = 1ull << 40;
	mine->access = FABREX_MR_ALL;
	op = (struct fabrex_op){
		.opcode = FABREX_OP_WRITE, .peer = (uint16_t)r.peer, .mr = mr,
		.rkey = r.rkey, .offset = 1, .roffset = 4000, .length = 200,
		.flags = FABREX_SQE_CHECK,
	};
	CHECK_EQ(operate(q, &op), FABREX_WC_RBOUNDS);
	op.opcode = FABREX_OP_READ;
	op.roffset = 0;
	CHECK_EQ(operate(q, &op), FABREX_WC_RACCESS);
	still_close(&s);
}

TEST(loop_scribbled_queue)
{
	const struct fabrex_queue_attr attr = {
		.rq_entries = 64, .cell_size = 2048,
	};
	struct segment_queue *mine;
	struct fabrex_queue *q;
	struct fabrex_mr *mr;
	struct still s;

	still_open(&s);
	CHECK_EQ(fabrex_queue_create(s.a, &attr, sizeof(attr), &q), 0);
	mine = &s.b->transport->peers[s.a->attr.peer].segment->queues[
		fabrex_queue_number(q) - 1];
	mine->cells = 0;
	mine->rq_entries = 1u << 31;
	CHECK_EQ(fabrex_queue_destroy(q), 0);
	CHECK_EQ(s.a->transport->segment->size, s.a->transport->size);
	CHECK_EQ(fabrex_mr_alloc(s.a, 4096, FABREX_MR_ALL, &mr), 0);
	CHECK((char *)fabrex_mr_addr(mr) >=
	      (char *)s.a->transport->segment + sizeof(struct segment));
	still_close(&s);
}

/* ---- rights that the process has not itself ------------------------------ */

#define BIG	(80u << 20)

static void check_protection(struct fabrex_port *port, size_t length)
{
	char *p = mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
		       MAP_NORESERVE, -1, 0);
	struct fabrex_mr *mr;

	CHECK(p != MAP_FAILED);
	CHECK_EQ(fabrex_mr_register(port, p, length, FABREX_MR_LOCAL_WRITE,
				    &mr), -EFAULT);
	CHECK_SAYS("written");
	CHECK_EQ(fabrex_mr_register(port, p, length, FABREX_MR_REMOTE_READ,
				    &mr), 0);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	CHECK(!mprotect(p, length - 4096, PROT_READ | PROT_WRITE));
	CHECK_EQ(fabrex_mr_register(port, p, length, FABREX_MR_ALL, &mr),
		 -EFAULT);
	CHECK_EQ(fabrex_mr_register(port, p + 1, length - 4097, FABREX_MR_ALL,
				    &mr), 0);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	CHECK(!munmap(p + length / 2, 4096));
	CHECK_EQ(fabrex_mr_register(port, p, length, 0, &mr), -EFAULT);
	munmap(p, length);
}

TEST(loop_protected_memory)
{
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	check_protection(port, 16384);
	check_protection(port, BIG);
	fabrex_close(port);
}

/* ---- without membarrier() ------------------------------------------------ */

static bool forbid_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = sizeof(code) / sizeof(*code), .filter = code,
	};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(loop_membarrier_forbidden)
{
	static char memory[4096];
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_mr_register(port, memory, 4096, FABREX_MR_ALL, &mr),
		 0);
	if (!port->transport->state->barrier || !forbid_membarrier()) {
		printf("# no membarrier(), or no filters here\n");
	} else {
		CHECK_EQ(fabrex_mr_deregister(mr), -ETIMEDOUT);
		CHECK_SAYS("membarrier");
	}
	fabrex_close(port);
}

/* ---- the limit of a control group ---------------------------------------- */

static void put(const char *dir, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", dir, name);
	file = fopen(path, "we");
	CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

static void drop_dir(const char *dir)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK_EQ(system(command), 0);
}

TEST(loop_group_limit)
{
	char dir[] = "/tmp/fabrex-test-XXXXXX", inner[64];

	CHECK(mkdtemp(dir));
	snprintf(inner, sizeof(inner), "%s/a", dir);
	CHECK(!mkdir(inner, 0700));
	CHECK_EQ(fxi_loop_group_room(dir, "/a/none"), -1);
	put(inner, "/memory.max", "max\n");
	put(inner, "/memory.current", "5000\n");
	CHECK_EQ(fxi_loop_group_room(dir, "/a"), -1);
	put(dir, "/memory.max", "10000\n");
	put(dir, "/memory.current", "7000\n");
	CHECK_EQ(fxi_loop_group_room(dir, "/a"), 3000);
	put(inner, "/memory.max", "6000\n");
	CHECK_EQ(fxi_loop_group_room(dir, "/a"), 1000);
	put(inner, "/memory.stat", "anon 9\ninactive_file 500\nactive_file 70\n");
	CHECK_EQ(fxi_loop_group_room(dir, "/a"), 1570);
	put(inner, "/memory.swap.max", "max\n");
	CHECK(fxi_loop_group_room(dir, "/a") < UINT64_MAX / 2);
	drop_dir(dir);
}
