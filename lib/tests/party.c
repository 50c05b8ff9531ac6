// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Other processes for tests of the loopback transport. Called by loop_*.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "party.h"
#include "runtime.h"

static pid_t fabric;

void loop_name_set(void)
{
	fabric = getpid();
}

const char *loop_name(const char *port)
{
	static char name[2][80];
	static int turn;
	char *to = name[turn++ % 2];

	snprintf(to, sizeof(name[0]), "loopback:test-%d%s%s",
		 (int)(fabric ? fabric : getpid()), port ? "/" : "",
		 port ? port : "");
	return to;
}

void nap_ms(long ms)
{
	const struct timespec nap = {
		.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000,
	};

	nanosleep(&nap, NULL);
}

/* ---- processes --------------------------------------------------------- */

/* A child must not hold the test's ends to others: they would not see it go. */
static int our_ends[256];
static int nour_ends;

static void keep_end(int fd)
{
	CHECK(nour_ends < 256);
	our_ends[nour_ends++] = fd;
}

static void close_end(int fd)
{
	int i;

	for (i = 0; i < nour_ends && our_ends[i] != fd; i++)
		;
	if (i < nour_ends)
		our_ends[i] = our_ends[--nour_ends];
	close(fd);
}

void party_start(struct party *p, void (*run)(int fd, void *arg), void *arg)
{
	int ends[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	fflush(stdout);
	p->pid = fork();
	CHECK(p->pid >= 0);
	if (!p->pid) {
		/* Also if it is stopped. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		while (nour_ends)
			close(our_ends[--nour_ends]);
		alarm(HANG_S);
		run(ends[1], arg);
		fflush(stdout);
		_exit(0);
	}
	close(ends[1]);
	p->fd = ends[0];
	keep_end(p->fd);
}

void party_end(struct party *p)
{
	int status;

	close_end(p->fd);
	CHECK_EQ(waitpid(p->pid, &status, 0), p->pid);
	CHECK_EQ(status, 0);
}

void party_kill(struct party *p)
{
	kill(p->pid, SIGKILL);
	CHECK_EQ(waitpid(p->pid, NULL, 0), p->pid);
	close_end(p->fd);
}

void tell(int fd, const void *data, size_t length)
{
	CHECK_EQ(send(fd, data, length, MSG_NOSIGNAL), length);
}

bool hear_maybe(int fd, void *data, size_t length)
{
	ssize_t n;

	do {
		n = recv(fd, data, length, 0);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)length;
}

void hear(int fd, void *data, size_t length)
{
	CHECK(hear_maybe(fd, data, length));
}

/* ---- fabric ------------------------------------------------------------ */

void peer_await(struct fabrex_port *port, const char *name,
		struct fabrex_peer *peer)
{
	while (fabrex_peer_find(port, name, peer) || !peer->up)
		nap_ms(1);
}

void peer_await_down(struct fabrex_port *port, uint32_t number)
{
	struct fabrex_peer peer;
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	while (!fabrex_peer_find(port, text, &peer) && peer.up)
		nap_ms(1);
}

int operate(struct fabrex_queue *queue, const struct fabrex_op *op)
{
	struct fabrex_wc wc;

	CHECK_EQ(fabrex_post(queue, op, 1), 1);
	poll_n(queue, &wc, 1);
	CHECK_EQ(wc.user_data, op->user_data);
	return wc.status;
}

/* ---- memory of all kinds ----------------------------------------------- */

const char *const kind_names[KINDS] = {
	"heap", "process", "file", "sealed file", "CUDA", "HIP",
};

static void *anonymous(size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static int memory_file(size_t length, bool sealed)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	CHECK(!ftruncate(fd, (off_t)length));
	if (sealed)
		CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return fd;
}

static void make_memory(struct thing *t)
{
	t->fd = -1;
	switch (t->kind) {
	case KIND_PROCESS:
		t->addr = anonymous(t->length);
		break;
	case KIND_FILE:
	case KIND_SEALED:
		t->fd = memory_file(t->length + 8192, t->kind == KIND_SEALED);
		break;
	case KIND_CUDA:
		t->runtime = cuda_up("libcuda.so.1");
		t->addr = cuda_alloc(t->runtime, t->length);
		break;
	case KIND_HIP:
		t->runtime = runtime_load("libamdhip64.so.5");
		t->addr = hip_alloc(t->runtime, t->length);
		break;
	default:
		break;
	}
}

#define FILE_OFFSET	4099	/* where regions of files begin */

int thing_make(struct fabrex_port *port, struct thing *t,
	       enum memory_kind kind, size_t length, uint32_t access,
	       const uint32_t *peers, size_t npeers)
{
	struct fabrex_mr_attr attr = {
		.length = length, .access = access, .peers = peers,
		.npeers = npeers,
	};
	int ret;

	*t = (struct thing){ .kind = kind, .length = length, .fd = -1 };
	if (kind == KIND_HEAP && !peers) {
		ret = fabrex_mr_alloc(port, length, access, &t->mr);
		t->addr = ret ? NULL : fabrex_mr_addr(t->mr);
		return ret;
	}
	make_memory(t);
	attr.addr = t->addr;
	if (kind == KIND_HEAP) {
		struct fabrex_mr *all;

		ret = fabrex_mr_alloc(port, length, 0, &all);
		if (ret)
			return ret;
		attr.addr = t->addr = fabrex_mr_addr(all);
	}
	if (t->fd >= 0) {
		attr.kind = FABREX_MEMORY_DMABUF;
		attr.fd = t->fd;
		attr.offset = FILE_OFFSET;
	}
	return fabrex_mr_register_attr(port, &attr, sizeof(attr), &t->mr);
}

void thing_read(const struct thing *t, size_t offset, void *to, size_t length)
{
	char *at = (char *)t->addr + offset;

	switch (t->kind) {
	case KIND_FILE:
	case KIND_SEALED:
		CHECK_EQ(pread(t->fd, to, length,
			       (off_t)(offset + FILE_OFFSET)), length);
		break;
	case KIND_CUDA:
		CHECK_EQ(CALL(t->runtime, cuMemcpyDtoH, to,
			      (CUdeviceptr)(uintptr_t)at, length), 0);
		break;
	case KIND_HIP:
		CHECK_EQ(CALL(t->runtime, hipMemcpy, to, at, length, 2), 0);
		break;
	default:
		memcpy(to, at, length);
	}
}

void thing_write(const struct thing *t, size_t offset, const void *from,
		 size_t length)
{
	char *at = (char *)t->addr + offset;

	switch (t->kind) {
	case KIND_FILE:
	case KIND_SEALED:
		CHECK_EQ(pwrite(t->fd, from, length,
				(off_t)(offset + FILE_OFFSET)), length);
		break;
	case KIND_CUDA:
		CHECK_EQ(CALL(t->runtime, cuMemcpyHtoD,
			      (CUdeviceptr)(uintptr_t)at, from, length), 0);
		break;
	case KIND_HIP:
		CHECK_EQ(CALL(t->runtime, hipMemcpy, at, from, length, 1), 0);
		break;
	default:
		memcpy(at, from, length);
	}
}

/* ---- the puppet -------------------------------------------------------- */

#define THINGS	32
#define PART	(32u << 10)	/* of bytes that follow an answer */

struct stage {
	int fd;
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct thing things[THINGS];
	int nthings;
};

static void obey_make(struct stage *s, const struct puppet_order *o,
		      struct puppet_answer *a)
{
	uint32_t peer = (uint32_t)o->peer;
	struct thing *t = &s->things[s->nthings];

	CHECK(s->nthings < THINGS);
	a->ret = thing_make(s->port, t, (enum memory_kind)o->kind, o->length,
			    o->access, o->peer < 0 ? NULL : &peer,
			    o->peer < 0 ? 0 : 1);
	if (a->ret)
		return;
	fabrex_mr_remote(t->mr, &a->remote);
	a->thing = s->nthings++;
}

static void obey_read(struct stage *s, const struct puppet_order *o)
{
	static char bytes[PART];
	uint64_t done, n;

	for (done = 0; done < o->length; done += n) {
		n = o->length - done < PART ? o->length - done : PART;
		thing_read(&s->things[o->thing], o->offset + done, bytes, n);
		tell(s->fd, bytes, n);
	}
}

static void obey_write(struct stage *s, const struct puppet_order *o)
{
	char *bytes = malloc(o->length);

	CHECK(bytes);
	memset(bytes, o->value, o->length);
	thing_write(&s->things[o->thing], o->offset, bytes, o->length);
	free(bytes);
}

static void obey_queue(struct stage *s, const struct puppet_order *o,
		       struct puppet_answer *a)
{
	struct fabrex_queue_attr attr = {
		.rq_entries = (uint32_t)o->length, .cell_size = 256,
		.flags = FABREX_QUEUE_EVENTFD,
	};

	a->ret = fabrex_queue_create(s->port, &attr, sizeof(attr), &s->queue);
	if (a->ret)
		return;
	a->queue = fabrex_queue_number(s->queue);
	a->key = fabrex_queue_key(s->queue);
}

static void obey_receive(struct stage *s, struct puppet_answer *a)
{
	struct fabrex_wc wc;
	char data[256] = "";

	a->ret = fabrex_wait(s->queue, HANG_MS);
	if (a->ret == 1)
		a->ret = fabrex_poll(s->queue, &wc, 1);
	if (a->ret == 1) {
		memcpy(data, wc.data, wc.length);
		fabrex_recv_done(s->queue, 1);
	}
	tell(s->fd, a, sizeof(*a));
	tell(s->fd, data, sizeof(data));
}

/* ---- the puppet's devices ----------------------------------------------- */

static sem_t go;
static CUstream captured;

static void until_go(void *unused)
{
	(void)unused;
	while (sem_wait(&go))
		;
}

/* A kernel without an end, as far as streams can tell. */
static int stall(const struct thing *t)
{
	void *stream = NULL;

	sem_init(&go, 0, 0);
	if (t->kind == KIND_HIP) {
		CHECK_EQ(CALL(t->runtime, hipStreamCreateWithFlags, &stream,
			      0), 0);
		return CALL(t->runtime, hipLaunchHostFunc, stream, until_go,
			    NULL);
	}
	CHECK_EQ(CALL(t->runtime, cuStreamCreate, (CUstream *)&stream, 0), 0);
	return CALL(t->runtime, cuLaunchHostFunc, stream, until_go, NULL);
}

static int fork_and_wait(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static int capture(const struct thing *t, bool begin)
{
	CUgraph graph;

	if (!begin)
		return (int)CALL(t->runtime, cuStreamEndCapture, captured,
				 &graph);
	CHECK_EQ(CALL(t->runtime, cuStreamCreate, &captured, 0), 0);
	return (int)CALL(t->runtime, cuStreamBeginCapture, captured,
			 CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* Not of any real run time: what is below all test run times. */
static int hold(const char *name, bool on)
{
	void *lib = runtime_load("libtest-gpu.so");
	void (*function)(bool) = (void (*)(bool))(uintptr_t)
				 runtime_symbol(lib, name);

	function(on);
	return 0;
}

static int obey_device(const struct puppet_order *o, const struct thing *t)
{
	switch (o->verb) {
	case PUPPET_STALL:
		return stall(t);
	case PUPPET_GO:
		return sem_post(&go);
	case PUPPET_FORK:
		return fork_and_wait();
	case PUPPET_CAPTURE:
	case PUPPET_CAPTURED:
		return capture(t, o->verb == PUPPET_CAPTURE);
	case PUPPET_HELD:
		return hold("gpu_held", true);
	default:
		return hold("gpu_hold", o->value);
	}
}

static void obey(struct stage *s, const struct puppet_order *o)
{
	struct puppet_answer a = { 0 };
	struct thing *t = &s->things[o->thing];

	switch (o->verb) {
	case PUPPET_MAKE:
		obey_make(s, o, &a);
		break;
	case PUPPET_WRITE:
		obey_write(s, o);
		break;
	case PUPPET_UNMAP:
		a.ret = munmap(t->addr, t->length);
		break;
	case PUPPET_END:
		a.ret = fabrex_mr_deregister(t->mr);
		break;
	case PUPPET_QUEUE:
		obey_queue(s, o, &a);
		break;
	case PUPPET_RECEIVE:
		obey_receive(s, &a);
		return;
	case PUPPET_READ:
		break;
	default:
		a.ret = obey_device(o, t);
		break;
	}
	tell(s->fd, &a, sizeof(a));
	if (o->verb == PUPPET_READ)
		obey_read(s, o);
}

static void puppet_run(int fd, void *arg)
{
	struct stage *s = calloc(1, sizeof(*s));
	struct puppet_order o;

	(void)arg;
	CHECK(s);
	s->fd = fd;
	CHECK_EQ(fabrex_open(loop_name("puppet"), &s->port), 0);
	tell(fd, "", 1);
	while (hear_maybe(fd, &o, sizeof(o)))
		obey(s, &o);
	fabrex_close(s->port);
	free(s);
}

void puppet_start(struct party *p)
{
	char ready;

	party_start(p, puppet_run, NULL);
	hear(p->fd, &ready, 1);
}

struct puppet_answer puppet(struct party *p, const struct puppet_order *order)
{
	struct puppet_answer answer;

	tell(p->fd, order, sizeof(*order));
	hear(p->fd, &answer, sizeof(answer));
	return answer;
}

bool puppet_has(struct party *p, int thing, uint64_t offset, const void *bytes,
		size_t length)
{
	static char part[PART];
	const struct puppet_order order = {
		.verb = PUPPET_READ, .thing = thing, .offset = offset,
		.length = length,
	};
	bool same = true;
	size_t done, n;

	puppet(p, &order);
	for (done = 0; done < length; done += n) {
		n = length - done < PART ? length - done : PART;
		hear(p->fd, part, n);
		same &= !memcmp(part, (const char *)bytes + done, n);
	}
	return same;
}

void scene_open(struct scene *s, enum memory_kind local, size_t length)
{
	loop_name_set();
	puppet_start(&s->owner);
	CHECK_EQ(fabrex_open(loop_name("test"), &s->port), 0);
	peer_await(s->port, "puppet", &s->peer);
	CHECK_EQ(fabrex_queue_create(s->port, NULL, 0, &s->queue), 0);
	CHECK_EQ(thing_make(s->port, &s->local, local, length, FABREX_MR_ALL,
			    NULL, 0), 0);
}

void scene_close(struct scene *s)
{
	fabrex_close(s->port);
	party_end(&s->owner);
}
