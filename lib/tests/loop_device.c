// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of devices' memory in loopback while the device is busy: what the
 * application's streams do, and how long a copy takes, delays nobody else.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "core/core.h"
#include "party.h"
#include "runtime.h"
#include "transport/loopback/loopback.h"

#define LENGTH	(1u << 20)

static struct puppet_answer make(struct scene *s, enum memory_kind kind)
{
	const struct puppet_order order = {
		.verb = PUPPET_MAKE, .kind = (int)kind, .length = LENGTH,
		.access = FABREX_MR_ALL, .peer = -1,
	};
	struct puppet_answer answer = puppet(&s->owner, &order);

	CHECK_EQ(answer.ret, 0);
	return answer;
}

static int obey(struct scene *s, enum puppet_verb verb, int thing,
		uint8_t value)
{
	const struct puppet_order order = {
		.verb = verb, .thing = thing, .value = value,
	};

	return puppet(&s->owner, &order).ret;
}

static int move(struct scene *s, struct fabrex_queue *queue,
		const struct puppet_answer *to, uint8_t opcode,
		uint64_t length)
{
	const struct fabrex_op op = {
		.opcode = opcode, .peer = (uint16_t)s->peer.peer,
		.user_data = 7, .mr = s->local.mr, .length = length,
		.rkey = to->remote.rkey,
	};

	return operate(queue, &op);
}

/* More than the allocation is not registered: it would be another's. */
TEST(loop_device_bounds)
{
	char *d = cuda_alloc(cuda_up("libcuda.so.1"), 4 << 20);
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_mr_register(port, d, 4 << 20, FABREX_MR_ALL, &mr), 0);
	CHECK_EQ(fabrex_mr_register(port, d + 4096, 4 << 20, FABREX_MR_ALL,
				    &mr), -EINVAL);
	CHECK_SAYS("inside one allocation");
	fabrex_close(port);
}

/*
 * The cache has memory of the host that is gone; a GPU's is at its addresses.
 * How a write of it would end: the processor faults there.
 */
static char *cuda_alloc_in(void *cuda, const char *start, size_t length)
{
	char *d;
	int i;

	for (i = 0; i < 20; i++) {
		d = cuda_alloc(cuda, LENGTH);
		if (d >= start && d + LENGTH <= start + length)
			return d;
	}
	return NULL;
}

TEST(loop_device_where_the_host_was)
{
	void *cuda = cuda_up("libcuda.so.1");
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	size_t length = 32 * (size_t)LENGTH;
	uint64_t offset;
	char *host, *d;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	host = mmap(NULL, length, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(host != MAP_FAILED);
	CHECK_EQ(fabrex_mr_cache_get(port, host, length, 0, &mr, &offset), 0);
	fabrex_mr_cache_put(mr);
	CHECK(!munmap(host, length));
	d = cuda_alloc_in(cuda, host, length);
	CHECK(d);
	CHECK_EQ(fabrex_mr_cache_get(port, d, LENGTH, 0, &mr, &offset), 0);
	CHECK_EQ(mr->kind, FABREX_MEMORY_CUDA);
	fabrex_mr_cache_put(mr);
	fabrex_close(port);
}

/* ---- work of the application's ------------------------------------------ */

/* There and back, so that nobody asks the run time's own functions. */
static void check_moves(struct scene *s, const struct puppet_answer *to)
{
	static char out[LENGTH], in[LENGTH];
	size_t i;

	for (i = 0; i < LENGTH; i++)
		out[i] = (char)(i * 7 + i / 4096);
	memcpy(s->local.addr, out, LENGTH);
	CHECK_EQ(move(s, s->queue, to, FABREX_OP_WRITE, LENGTH),
		 FABREX_WC_OK);
	memset(s->local.addr, 0, LENGTH);
	CHECK_EQ(move(s, s->queue, to, FABREX_OP_READ, LENGTH), FABREX_WC_OK);
	memcpy(in, s->local.addr, LENGTH);
	CHECK(!memcmp(in, out, LENGTH));
}

/*
 * A kernel that does not end, in a stream that the default stream waits for:
 * peers move, the owner registers, forks and deregisters meanwhile.
 */
static void check_busy(enum memory_kind kind)
{
	struct puppet_answer to, heap;
	struct scene s;

	scene_open(&s, KIND_HEAP, LENGTH);
	to = make(&s, kind);
	CHECK_EQ(obey(&s, PUPPET_STALL, to.thing, 0), 0);
	check_moves(&s, &to);
	heap = make(&s, KIND_HEAP);
	check_moves(&s, &heap);
	CHECK_EQ(obey(&s, PUPPET_FORK, 0, 0), 0);
	CHECK_EQ(obey(&s, PUPPET_END, to.thing, 0), 0);
	CHECK_EQ(move(&s, s.queue, &to, FABREX_OP_WRITE, 8), FABREX_WC_RKEY);
	CHECK_EQ(obey(&s, PUPPET_GO, 0, 0), 0);
	scene_close(&s);
}

TEST(loop_busy_device_cuda)
{
	check_busy(KIND_CUDA);
}

TEST(loop_busy_device_hip)
{
	check_busy(KIND_HIP);
}

static sem_t never_mind;

static void until_posted(void *sem)
{
	while (sem_wait(sem))
		;
}

/* The same kernel where the operations are posted, from memory of its device. */
TEST(loop_busy_initiator)
{
	struct puppet_answer to;
	CUstream stream;
	struct scene s;

	scene_open(&s, KIND_CUDA, LENGTH);
	to = make(&s, KIND_HEAP);
	sem_init(&never_mind, 0, 0);
	CHECK_EQ(CALL(s.local.runtime, cuStreamCreate, &stream, 0), 0);
	CHECK_EQ(CALL(s.local.runtime, cuLaunchHostFunc, stream, until_posted,
		      &never_mind), 0);
	CHECK_EQ(move(&s, s.queue, &to, FABREX_OP_WRITE, LENGTH),
		 FABREX_WC_OK);
	CHECK_EQ(move(&s, s.queue, &to, FABREX_OP_READ, LENGTH),
		 FABREX_WC_OK);
	sem_post(&never_mind);
	scene_close(&s);
}

/* A graph that the owner captures is not broken by peers' operations. */
TEST(loop_while_captured)
{
	struct puppet_answer to;
	struct scene s;

	scene_open(&s, KIND_HEAP, LENGTH);
	to = make(&s, KIND_CUDA);
	CHECK_EQ(obey(&s, PUPPET_CAPTURE, to.thing, 0), 0);
	check_moves(&s, &to);
	CHECK_EQ(obey(&s, PUPPET_CAPTURED, to.thing, 0), 0);
	scene_close(&s);
}

/* ---- copies that take long ----------------------------------------------- */

struct mover {
	struct scene *s;
	struct fabrex_queue *queue;
	struct puppet_answer to;
	pthread_t thread;
	int status;
};

static void *moves(void *arg)
{
	struct mover *m = arg;

	m->status = move(m->s, m->queue, &m->to, FABREX_OP_WRITE, 8);
	return NULL;
}

static void mover_start(struct mover *m, struct scene *s,
			const struct puppet_answer *to)
{
	*m = (struct mover){ .s = s, .to = *to };
	CHECK_EQ(fabrex_queue_create(s->port, NULL, 0, &m->queue), 0);
	CHECK_EQ(pthread_create(&m->thread, NULL, moves, m), 0);
}

static int mover_end(struct mover *m)
{
	CHECK_EQ(pthread_join(m->thread, NULL), 0);
	return m->status;
}

/*
 * The device does not answer. The peer gets an error in the end; all else goes
 * on, and memory that is being copied is not the application's yet.
 */
static void check_slow(enum memory_kind kind)
{
	struct puppet_answer to, heap;
	struct mover m;
	struct scene s;

	setenv("FABREX_LOOPBACK_QUIESCE_MS", "2000", 1);
	scene_open(&s, KIND_HEAP, LENGTH);
	to = make(&s, kind);
	heap = make(&s, KIND_HEAP);
	CHECK_EQ(obey(&s, PUPPET_HOLD, 0, 1), 0);
	mover_start(&m, &s, &to);
	check_moves(&s, &heap);
	CHECK_EQ(obey(&s, PUPPET_FORK, 0, 0), 0);
	make(&s, KIND_PROCESS);
	CHECK_EQ(mover_end(&m), FABREX_WC_RFAULT);
	CHECK_EQ(obey(&s, PUPPET_END, to.thing, 0), -ETIMEDOUT);
	CHECK_EQ(move(&s, s.queue, &to, FABREX_OP_WRITE, 8), FABREX_WC_RKEY);
	CHECK_EQ(obey(&s, PUPPET_HOLD, 0, 0), 0);
	CHECK_EQ(obey(&s, PUPPET_END, to.thing, 0), 0);
	scene_close(&s);
}

TEST(loop_slow_device_cuda)
{
	check_slow(KIND_CUDA);
}

TEST(loop_slow_device_hip)
{
	check_slow(KIND_HIP);
}

/* Behind one that takes long: what waits is refused when its region ends. */
TEST(loop_slow_device_others)
{
	struct puppet_answer first, second;
	struct mover copied, waits;
	struct scene s;

	setenv("FABREX_LOOPBACK_QUIESCE_MS", "2000", 1);
	scene_open(&s, KIND_HEAP, LENGTH);
	first = make(&s, KIND_CUDA);
	second = make(&s, KIND_CUDA);
	CHECK_EQ(obey(&s, PUPPET_HOLD, 0, 1), 0);
	mover_start(&copied, &s, &first);
	CHECK_EQ(obey(&s, PUPPET_HELD, 0, 0), 0);
	mover_start(&waits, &s, &second);
	CHECK_EQ(obey(&s, PUPPET_END, second.thing, 0), 0);
	CHECK_EQ(mover_end(&waits), FABREX_WC_RKEY);
	CHECK_EQ(mover_end(&copied), FABREX_WC_RFAULT);
	CHECK_EQ(obey(&s, PUPPET_HOLD, 0, 0), 0);
	scene_close(&s);
}

/*
 * The owner begins with a piece, and then the connection to it ends. If it
 * lives, it may still write to the pieces, which stay unused; if not, the queue
 * goes on with them.
 */
static void check_unlinked(bool dies)
{
	struct puppet_answer to;
	struct mover m;
	struct scene s;
	void *pieces;

	setenv("FABREX_LOOPBACK_QUIESCE_MS", "20000", 1);
	scene_open(&s, KIND_HEAP, LENGTH);
	to = make(&s, KIND_CUDA);
	CHECK_EQ(obey(&s, PUPPET_HOLD, 0, 1), 0);
	mover_start(&m, &s, &to);
	CHECK_EQ(obey(&s, PUPPET_HELD, 0, 0), 0);
	pieces = loop_queue_of(m.queue)->bounce;
	CHECK(pieces);
	if (dies)
		party_kill(&s.owner);
	else
		shutdown(s.port->transport->peers[s.peer.peer].sock,
			 SHUT_RDWR);
	CHECK_EQ(mover_end(&m), FABREX_WC_UNREACHABLE);
	CHECK(loop_queue_of(m.queue)->bounce == (dies ? pieces : NULL));
	fabrex_close(s.port);
	if (!dies)
		party_kill(&s.owner);
}

TEST(loop_slow_device_unlinked)
{
	check_unlinked(false);
}

TEST(loop_slow_device_owner_dies)
{
	check_unlinked(true);
}

struct victim {
	struct fabrex_remote to;
	bool dies;
};

static void write_once(int fd, void *arg)
{
	const struct victim *v = arg;
	struct fabrex_port *port;
	struct fabrex_queue *q;
	struct fabrex_peer peer;
	struct fabrex_mr *mr;
	struct fabrex_op op;

	CHECK_EQ(fabrex_open(loop_name("victim"), &port), 0);
	peer_await(port, "puppet", &peer);
	CHECK_EQ(fabrex_queue_create(port, NULL, 0, &q), 0);
	CHECK_EQ(fabrex_mr_alloc(port, LENGTH, FABREX_MR_ALL, &mr), 0);
	op = (struct fabrex_op){
		.opcode = FABREX_OP_WRITE, .peer = (uint16_t)peer.peer,
		.mr = mr, .length = LENGTH, .rkey = v->to.rkey,
	};
	tell(fd, "", 1);
	CHECK_EQ(operate(q, &op), FABREX_WC_OK);
	CHECK(!v->dies);
	fabrex_close(port);
}

/* Whoever asked is killed while its piece is copied; the next can come. */
TEST(loop_slow_device_peer_dies)
{
	struct puppet_answer to, heap;
	struct party party;
	struct victim v;
	struct scene s;
	char ready;

	setenv("FABREX_LOOPBACK_QUIESCE_MS", "20000", 1);
	scene_open(&s, KIND_HEAP, LENGTH);
	to = make(&s, KIND_CUDA);
	heap = make(&s, KIND_HEAP);
	v = (struct victim){ .to = to.remote, .dies = true };
	CHECK_EQ(obey(&s, PUPPET_HOLD, 0, 1), 0);
	party_start(&party, write_once, &v);
	hear(party.fd, &ready, 1);
	CHECK_EQ(obey(&s, PUPPET_HELD, 0, 0), 0);
	party_kill(&party);
	check_moves(&s, &heap);
	CHECK_EQ(obey(&s, PUPPET_HOLD, 0, 0), 0);
	v.dies = false;
	party_start(&party, write_once, &v);
	hear(party.fd, &ready, 1);
	party_end(&party);
	check_moves(&s, &to);
	scene_close(&s);
}
