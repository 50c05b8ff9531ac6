// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of bootstrap: over the fabric, over TCP, with what launchers set; with
 * ranks that do not come, come twice, or are none at all; and of splits.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/bootstrap/methods.h"
#include "coll/link/link.h"
#include "core/core.h"
#include "crowd.h"

/* ---- all well ---------------------------------------------------------- */

static int meet_work(struct member *m)
{
	struct fabrex_comm *comm;
	int i;

	if (m->arg)
		m->attr.bootstrap = m->arg;
	for (i = 0; i < 3; i++) {
		comm = crowd_create(m);
		CHECK_EQ(fabrex_comm_rank(comm), m->rank);
		CHECK_EQ(fabrex_comm_size(comm), m->size);
		CHECK_EQ(fabrex_comm_failed(comm, NULL, 0), 0);
		CHECK_EQ(crowd_sum(comm), 0);
		fabrex_comm_destroy(comm);
	}
	return 0;
}

TEST(comm_meets_over_the_fabric)
{
	uint32_t n;

	for (n = 1; n <= CROWD; n += n < 3 ? 1 : 5)
		crowd_run(n, meet_work, NULL);
	crowd_gone();
}

TEST(comm_meets_over_tcp)
{
	char address[64];
	uint32_t n;

	for (n = 2; n <= 6; n += 2) {
		snprintf(address, sizeof(address), "tcp:127.0.0.1:%u",
			 crowd_tcp_port());
		crowd_run(n, meet_work, address);
	}
	snprintf(address, sizeof(address), "tcp:[::1]:%u", crowd_tcp_port());
	crowd_run(2, meet_work, address);
}

/* ---- rank 0 lives ------------------------------------------------------ */

static const struct transport_ops *transport;
static const struct queue_ops *queues;
static struct fabrex_port *own;
static uint64_t service;
static unsigned int tables;

/* While tables are written the others see that rank 0 is there. */
static int post_write(struct fabrex_queue *queue, const struct fabrex_mr *mr,
		      uint64_t offset, const struct fabrex_remote *remote,
		      uint64_t roffset, uint64_t length, uint8_t flags,
		      uint64_t user_data)
{
	uint32_t number;
	uint64_t key;

	if (length > sizeof(uint64_t)) {
		tables++;
		CHECK_EQ(fabrex_resolve(own, own->attr.peer, service,
					&number, &key), 0);
	}
	return queues->post_write(queue, mr, offset, remote, roffset, length,
				  flags, user_data);
}

static int queue_create(struct transport *t,
			const struct fabrex_queue_attr *attr,
			struct fabrex_queue *queue, uint64_t *id)
{
	static struct queue_ops watched;
	int ret = transport->queue_create(t, attr, queue, id);

	if (ret)
		return ret;
	queues = queue->ops;
	watched = *queues;
	watched.post_write = post_write;
	queue->ops = &watched;
	return 0;
}

static int offer_work(struct member *m)
{
	static struct transport_ops watching;
	struct fabrex_comm *comm;

	own = m->port;
	service = strtoull(m->attr.bootstrap + strlen("fabric:"), NULL, 0);
	transport = own->ops;
	watching = *transport;
	watching.queue_create = queue_create;
	if (!m->rank)
		own->ops = &watching;
	comm = crowd_create(m);
	own->ops = transport;
	CHECK_EQ(tables, m->rank ? 0 : m->size - 1);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_service_until_tables_are_written)
{
	crowd_run(4, offer_work, NULL);
}

/* ---- what is refused --------------------------------------------------- */

static int refusals_work(struct member *m)
{
	struct fabrex_comm_attr good = m->attr, a = good;
	struct fabrex_comm *comm;

#define REFUSED(change, error, text) \
	do { \
		a = good; \
		change; \
		CHECK_EQ(fabrex_comm_create(m->port, &a, sizeof(a), &comm), \
			 -(error)); \
		CHECK_SAYS(text); \
	} while (0)
	good.size = 2;
	REFUSED(a.flags = 2, EINVAL, "flags");
	REFUSED(a.reserved[2] = 1, EINVAL, "reserved[2]");
	REFUSED(a.rank = 2, EINVAL, "rank 2 of 2");
	REFUSED(a.size = 0, EINVAL, "rank 0 of 0");
	REFUSED(a.size = 5000, EINVAL, "5000");
	REFUSED(a.bootstrap = "carrier:pigeon", EINVAL, "carrier:pigeon");
	REFUSED(a.bootstrap = "fabric:", EINVAL, "service");
	REFUSED(a.bootstrap = "fabric:0", EINVAL, "service");
	REFUSED(a.bootstrap = "fabric:12x", EINVAL, "service");
	REFUSED(a.bootstrap = "tcp:localhost", EINVAL, "HOST:PORT");
	REFUSED(a.bootstrap = "tcp::7", EINVAL, "HOST:PORT");
	REFUSED(a.bootstrap = "tcp:localhost:99999", EINVAL, "HOST:PORT");
	REFUSED(a.bootstrap = "tcp:no.such.host.invalid:7", EINVAL,
		"no.such.host");
	REFUSED(a.bootstrap = "launcher", EINVAL, "FABREX_RANK");
	REFUSED((a.timeout_ms = 50, a.size = 3), ETIMEDOUT, "1, 2");
	REFUSED((a.timeout_ms = 50, a.rank = 1), ETIMEDOUT, "rank 0");
	REFUSED((a.timeout_ms = 50, a.bootstrap = "tcp:127.0.0.1:1",
		 a.rank = 1), ETIMEDOUT, "does not listen");
	CHECK_EQ(fabrex_comm_create(m->port, &good, sizeof(good), NULL),
		 -EINVAL);
	return 0;
}

TEST(comm_refuses_nonsense)
{
	unsetenv("FABREX_BOOTSTRAP");
	unsetenv("FABREX_RANK");
	crowd_run(1, refusals_work, NULL);
}

/*
 * Three of the right ones. 1 and 3 both claim to be 1, and one of them is
 * refused; 4 expects another size. 2 comes when both have been.
 */
struct strangers {
	const char *address;
	int refused[2];		/* pipe: a byte for each */
};

static void is_refused(struct member *m, int ret)
{
	const struct strangers *s = m->arg;

	CHECK_EQ(ret, m->rank == 4 ? -EINVAL : -EPROTO);
	if (m->rank == 4)
		CHECK_SAYS("3 ranks, not for 7");
	else
		CHECK_SAYS("rank 1 is there already");
	CHECK_EQ(write(s->refused[1], "x", 1), 1);
}

static int strangers_work(struct member *m)
{
	const struct strangers *s = m->arg;
	struct fabrex_comm *comm;
	char bytes[2];
	int i, ret;

	if (s->address)
		m->attr.bootstrap = s->address;
	m->attr.size = m->rank == 4 ? 7 : 3;
	m->attr.timeout_ms = -1;
	if (m->rank > 2)
		m->attr.rank = 1;
	for (i = 0; m->rank == 2 && i < 2; i++)
		CHECK_EQ(read(s->refused[0], bytes, 1), 1);
	ret = fabrex_comm_create(m->port, &m->attr, sizeof(m->attr), &comm);
	if (ret) {
		is_refused(m, ret);
		return 0;
	}
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	return 0;
}

static void strangers_come(const char *address)
{
	struct strangers s = { .address = address };

	CHECK(!pipe(s.refused));
	crowd_run(5, strangers_work, &s);
}

TEST(comm_refuses_strangers)
{
	char address[64];

	strangers_come(NULL);
	snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", crowd_tcp_port());
	strangers_come(address);
}

/* ---- garbage on the TCP port ------------------------------------------- */

/* A greeting of rank 1 of 2, each spoiled in one place. */
static void greeting(uint64_t *words, int how)
{
	words[0] = 0x3350435458424246ull;
	words[1] = 2 | 1ull << 32;
	words[2] = sizeof(struct link_card);
	switch (how) {
	case 0:
		words[0] ^= 1;
		break;
	case 1:
		words[1] = 2 | 0ull << 32;
		break;
	case 2:
		words[1] = 2 | 2ull << 32;
		break;
	case 3:
		words[1] = 2 | ~0ull << 32;
		break;
	case 4:
		words[2] = 0;
		break;
	case 5:
		words[2] = 1u << 30;
		break;
	case 6:
		words[1] = UINT32_MAX | 1ull << 32;
		break;
	}
}

#define SPOILED	7
#define SLOW	40	/* connections that say nothing, or one byte */

static void *pest(void *arg)
{
	uint16_t port = *(uint16_t *)arg;
	uint64_t words[64];
	int fds[SLOW], i, fd;
	ssize_t n;

	for (i = 0; i < SLOW; i++) {
		fds[i] = crowd_tcp_dial(port);
		n = i % 2 ? send(fds[i], "F", 1, MSG_NOSIGNAL) : 0;
		CHECK(n >= 0);
	}
	for (i = 0; i < SPOILED; i++) {
		fd = crowd_tcp_dial(port);
		memset(words, 0xff, sizeof(words));
		greeting(words, i);
		n = send(fd, words, sizeof(words), MSG_NOSIGNAL);
		CHECK(n > 0);
		close(fd);
	}
	for (i = 0; i < SLOW; i++)
		close(fds[i]);
	/* Still connected and silent while the ranks meet. */
	for (i = 0; i < SLOW; i++)
		fds[i] = crowd_tcp_dial(port);
	return NULL;
}

static int pestered_work(struct member *m)
{
	struct fabrex_comm *comm;
	uint16_t port = *(const uint16_t *)m->arg;
	pthread_t thread;
	char address[64];

	snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", port);
	m->attr.bootstrap = address;
	if (m->rank) {
		CHECK(!pthread_create(&thread, NULL, pest, &port));
		CHECK(!pthread_join(thread, NULL));
	}
	comm = crowd_create(m);
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_tcp_garbage)
{
	uint16_t port = crowd_tcp_port();

	crowd_run(2, pestered_work, &port);
}

/* ---- launchers --------------------------------------------------------- */

struct environment {
	const char *set[6];
	uint32_t rank, size;	/* size 0: refused */
	char job;		/* those of the same meet */
};

static const struct environment environments[] = {
	{ { "FABREX_RANK=1", "FABREX_SIZE=3", "FABREX_BOOTSTRAP=fabric:9" },
	  1, 3, 'a' },
	{ { "FABREX_RANK=1", "FABREX_SIZE=3" }, 0, 0, 0 },
	{ { "FABREX_RANK=3", "FABREX_SIZE=3", "FABREX_BOOTSTRAP=fabric:9" },
	  0, 0, 0 },
	{ { "FABREX_RANK=-1", "FABREX_SIZE=3" }, 0, 0, 0 },
	{ { "FABREX_RANK=x", "FABREX_SIZE=3" }, 0, 0, 0 },
	{ { "FABREX_RANK=1" }, 0, 0, 0 },
	{ { "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
	    "PMIX_NAMESPACE=77", "PMIX_RANK=2" }, 2, 4, 'b' },
	{ { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4",
	    "PMIX_NAMESPACE=77", "SLURM_PROCID=9", "SLURM_NTASKS=12" },
	  0, 4, 'b' },
	{ { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4",
	    "PMIX_NAMESPACE=78" }, 0, 4, 'c' },
	{ { "SLURM_PROCID=3", "SLURM_NTASKS=8", "SLURM_JOB_ID=5",
	    "SLURM_STEP_ID=0" }, 3, 8, 'd' },
	{ { "SLURM_PROCID=4", "SLURM_NTASKS=8", "SLURM_JOB_ID=5",
	    "SLURM_STEP_ID=0" }, 4, 8, 'd' },
	{ { "SLURM_PROCID=3", "SLURM_NTASKS=8", "SLURM_JOB_ID=5",
	    "SLURM_STEP_ID=1" }, 3, 8, 'e' },
	{ { "SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=4", "SLURM_NTASKS=8",
	    "SLURM_JOB_ID=6", "SLURM_STEP_ID=1" }, 3, 4, 'f' },
	{ { "PMIX_RANK=1", "PMIX_NAMESPACE=slurm.5.0", "SLURM_NTASKS=2" },
	  1, 2, 'g' },
	{ { "PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALNRANKS=2" }, 1, 2, 'h' },
	{ { "PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALNRANKS=2" }, 0, 2, 'h' },
	{ { "PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALNRANKS=1" }, 0, 0, 0 },
	{ { "PMI_RANK=0", "PMI_SIZE=2", "PALS_APID=9" }, 0, 2, 'i' },
	{ { "PMI_RANK=0", "PMI_SIZE=2", "SLURM_JOB_ID=5", "SLURM_STEP_ID=0",
	    "MPI_LOCALNRANKS=2" }, 0, 2, 'h' },
	{ { "PMI_RANK=0", "PMI_SIZE=2", "SLURM_JOB_ID=5", "SLURM_STEP_ID=0",
	    "MPI_LOCALNRANKS=1" }, 0, 0, 0 },
	{ { "PMI_RANK=0", "PMI_SIZE=1" }, 0, 1, 0 },
	{ { NULL }, 0, 0, 0 },
};
#define ENVIRONMENTS	(sizeof(environments) / sizeof(*environments))

/* In a process of its own, whose parent has none of it. */
static void launch(const struct environment *e, int fd)
{
	struct fabrex_port port = { .attr.name = "test" };
	struct launch l;
	char buffer[6][64];
	int i, ret;

	clearenv();
	for (i = 0; i < 6 && e->set[i]; i++) {
		snprintf(buffer[i], sizeof(buffer[i]), "%s", e->set[i]);
		putenv(buffer[i]);
	}
	ret = fxi_launch(&port, &l, true);
	CHECK_EQ(ret, e->size ? 0 : -EINVAL);
	if (ret)
		return;
	CHECK_EQ(l.rank, e->rank);
	CHECK_EQ(l.size, e->size);
	CHECK_EQ(write(fd, l.address, sizeof(l.address)), sizeof(l.address));
}

TEST(comm_launchers)
{
	char address[ENVIRONMENTS][256] = { { 0 } };
	int fds[2], status;
	size_t i, j;

	for (i = 0; i < ENVIRONMENTS; i++) {
		CHECK(!pipe(fds));
		if (!fork()) {
			launch(&environments[i], fds[1]);
			_exit(0);
		}
		close(fds[1]);
		CHECK(wait(&status) > 0 && !status);
		if (environments[i].size)
			CHECK_EQ(read(fds[0], address[i], 256), 256);
		close(fds[0]);
	}
	for (i = 0; i < ENVIRONMENTS; i++)
		for (j = 0; j < i; j++)
			if (environments[i].job && environments[j].job)
				CHECK_EQ(!strcmp(address[i], address[j]),
					 environments[i].job ==
					 environments[j].job);
}

/* ---- split ------------------------------------------------------------- */

static void check_part(struct fabrex_comm *comm, uint32_t rank, uint32_t size)
{
	CHECK_EQ(fabrex_comm_rank(comm), rank);
	CHECK_EQ(fabrex_comm_size(comm), size);
	CHECK_EQ(crowd_sum(comm), 0);
}

static int split_work(struct member *m)
{
	struct fabrex_comm *all = crowd_create(m), *part, *other;
	uint32_t r = m->rank, n = m->size;

	/* Even and odd ones; the second half in the other order. */
	CHECK_EQ(fabrex_comm_split(all, (int)(r % 2), 0, &part), 0);
	check_part(part, r / 2, (n + 1 - r % 2) / 2);
	CHECK_EQ(fabrex_comm_split(all, 5, -(int)r, &other), 0);
	check_part(other, n - 1 - r, n);
	check_part(part, r / 2, (n + 1 - r % 2) / 2);
	fabrex_comm_destroy(other);
	/* A part of a part. */
	CHECK_EQ(fabrex_comm_split(part, (int)r, 0, &other), 0);
	check_part(other, 0, 1);
	fabrex_comm_destroy(other);
	fabrex_comm_destroy(part);
	/* Not all of them; then nobody. */
	CHECK_EQ(fabrex_comm_split(all, r ? 0 : -1, 0, &part), 0);
	CHECK_EQ(!part, !r);
	if (part)
		check_part(part, r - 1, n - 1);
	fabrex_comm_destroy(part);
	CHECK_EQ(fabrex_comm_split(all, -7, 0, &part), 0);
	CHECK(!part);
	CHECK_EQ(fabrex_comm_split(all, 0, 0, NULL), -EINVAL);
	CHECK_EQ(crowd_sum(all), 0);
	fabrex_comm_destroy(all);
	return 0;
}

TEST(comm_splits)
{
	uint32_t n;

	for (n = 2; n <= 6; n += 2)
		crowd_run(n, split_work, NULL);
}

/* With collectives under way, which are performed first. */
static int busy_split_work(struct member *m)
{
	struct fabrex_comm *all = crowd_create(m), *part;
	struct fabrex_collective what = {
		.kind = FABREX_ALL_REDUCE, .type = FABREX_INT32,
		.op = FABREX_SUM, .count = 1,
	};
	struct fabrex_coll *coll[4];
	int32_t in[4], out[4], i;

	for (i = 0; i < 4; i++) {
		in[i] = i;
		what.send = &in[i];
		what.recv = &out[i];
		CHECK_EQ(fabrex_coll_start(all, &what, sizeof(what), &coll[i]),
			 0);
	}
	CHECK_EQ(fabrex_comm_split(all, 0, 0, &part), 0);
	CHECK_EQ(crowd_sum(part), 0);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(fabrex_coll_wait(coll[i], HANG_MS), 0);
		CHECK_EQ(out[i], i * (int32_t)m->size);
	}
	fabrex_comm_destroy(part);
	fabrex_comm_destroy(all);
	return 0;
}

TEST(comm_splits_while_busy)
{
	crowd_run(3, busy_split_work, NULL);
}
