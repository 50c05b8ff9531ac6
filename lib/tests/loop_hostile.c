// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the loopback transport when a process writes nonsense into the
 * memory that it shares, or sends garbage over its links: the others go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/core.h"
#include "site.h"
#include "transport/loopback/state.h"

/* ---- nonsense ---------------------------------------------------------- */

/* Everything but the futexes of the kernel's own: it is our own segment. */
static void scribble(struct segment *segment, uint64_t size)
{
	static uint64_t noise[8192];
	uint64_t offset, length;

	CHECK_EQ(getrandom(noise, 256, 0), 256);
	memcpy((char *)noise + 256, noise, 256);
	length = 8 * (1 + site_random(8000));
	if (site_random(2))
		getrandom(noise, length < sizeof(noise) ? length :
			  sizeof(noise), 0);
	offset = site_random(4) ?
		 site_random((uint32_t)sizeof(*segment)) / 8 * 8 :
		 site_random(8) * 8;
	if (offset + length > size)
		length = size - offset;
	memcpy((char *)segment + offset, noise, length);
}

/* Its own threads may fall over what it writes; that is its own affair. */
static void lunatic(int fd, void *arg)
{
	struct card mine, theirs;
	struct transport *t;
	struct fabrex_op op;
	struct site s;
	int i;

	(void)arg;
	hear(fd, &theirs, sizeof(theirs));
	site_open(&s, "lunatic", &mine);
	t = s.port->transport;
	tell(fd, &mine, sizeof(mine));
	for (i = 0; i < 50; i++) {
		op = site_any_op(&s, &theirs);
		if (op.opcode == FABREX_OP_WRITE)
			site_do(&s, &op);
	}
	for (;;) {
		scribble(t->segment, sizeof(struct segment));
		if (!site_random(64))
			t->segment->queues_used = site_random(2000);
	}
}

static void provoke(struct site *s, const struct card *theirs)
{
	struct fabrex_window *window;
	struct fabrex_remote remote = theirs->heap;
	uint32_t number;
	uint64_t key;
	struct fabrex_op op;

	op = site_any_op(s, theirs);
	CHECK(site_do(s, &op) <= FABREX_WC_ABORTED);
	/* Keys as they are now, whatever they are. */
	op.rkey = __atomic_load_n(
		&((struct transport *)s->port->transport)->peers[
			theirs->heap.peer].segment->mrs[op.rkey & 3].key,
		__ATOMIC_RELAXED);
	if (op.opcode != FABREX_OP_SEND)
		CHECK(site_do(s, &op) <= FABREX_WC_ABORTED);
	fabrex_resolve(s->port, theirs->heap.peer, site_random(3), &number,
		       &key);
	remote.length = 1ull << 40;
	remote.rkey = op.rkey;
	if (!fabrex_window_map(s->port, &remote, 0, 4096,
			       FABREX_MR_REMOTE_READ, &window))
		fabrex_window_unmap(window);
}

TEST(loop_nonsense)
{
	struct card mine, other, theirs;
	struct fabrex_mr *region;
	struct site a, b;
	struct party p;
	int i, round;

	loop_name_set();
	setenv("FABREX_LOOPBACK_SIZE", "64M", 1);
	setenv("FABREX_LOOPBACK_QUIESCE_MS", "200", 1);
	site_open(&a, "a", &mine);
	site_open(&b, "b", &other);
	for (round = 0; round < 10; round++) {
		party_start(&p, lunatic, NULL);
		tell(p.fd, &mine, sizeof(mine));
		hear(p.fd, &theirs, sizeof(theirs));
		for (i = 0; i < 300; i++)
			provoke(&a, &theirs);
		CHECK_EQ(fabrex_mr_alloc(a.port, 4096, FABREX_MR_ALL, &region),
			 0);
		CHECK_EQ(fabrex_mr_deregister(region), 0);
		site_check_alive(&a, &b, &mine);
		party_kill(&p);
		peer_await_down(a.port, theirs.heap.peer);
		site_check_alive(&a, &b, &mine);
	}
	CHECK_EQ(fabrex_mr_deregister(a.heap), 0);
	fabrex_close(a.port);
	fabrex_close(b.port);
}

/* ---- garbage over links ------------------------------------------------ */

static int raw_connection(uint32_t number)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), n;

	CHECK(fd >= 0);
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "fabrex/%u/%s/%u",
		     (unsigned int)geteuid(),
		     strchr(loop_name(NULL), ':') + 1, number);
	if (connect(fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				(size_t)n))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Right in parts, so that it gets past some of what is checked. */
static void any_message(struct loop_message *m)
{
	CHECK_EQ(getrandom(m, sizeof(*m), 0), sizeof(*m));
	m->type = site_random(12);
	m->number = site_random(8) ? 100 + site_random(100) :
				      site_random(300);
	if (site_random(4))
		m->version = SEGMENT_VERSION;
	if (site_random(4))
		m->size = site_random(64) * LOOP_HUGE;
	if (site_random(2))
		m->value[REQUEST_LENGTH] = site_random(1 << 20);
	if (site_random(2))
		m->value[REQUEST_PIECE] = site_random(1 << 20) * 64ull;
	m->name[31] = m->host[31] = 0;
}

static int any_file(void)
{
	int fd;

	if (site_random(2))
		return -1;
	if (site_random(2))
		return eventfd(0, EFD_CLOEXEC);
	fd = memfd_create("garbage", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK(!ftruncate(fd, site_random(64) * LOOP_HUGE));
	if (site_random(2))
		CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return fd;
}

/* A greeting that is believed, to get at what comes after it. */
static int greet(uint32_t to, uint32_t number)
{
	struct loop_message m = {
		.type = LOOP_HELLO, .number = number, .generation = 4711,
		.version = SEGMENT_VERSION, .size = 4 * LOOP_HUGE,
		.name = "garbage",
	};
	int fd = raw_connection(to), file, passed;
	struct segment *s;

	if (fd < 0)
		return -1;
	file = memfd_create("garbage", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK(!ftruncate(file, 4 * LOOP_HUGE));
	CHECK(!fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK));
	s = mmap(NULL, 4 * LOOP_HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		 0);
	CHECK(s != MAP_FAILED);
	s->magic = SEGMENT_MAGIC;
	s->version = SEGMENT_VERSION;
	s->generation = 4711;
	fxi_loop_socket_send(fd, &m, file);
	nap_ms(2);
	if (fxi_loop_socket_receive(fd, &m, &passed) == 1 && passed >= 0)
		close(passed);
	m.type = LOOP_READY;
	fxi_loop_socket_send(fd, &m, -1);
	munmap(s, 4 * LOOP_HUGE);
	close(file);
	return fd;
}

static void babble(int fd, void *arg)
{
	struct loop_message m;
	struct card to;
	int sock, file, i, n;

	(void)arg;
	hear(fd, &to, sizeof(to));
	for (i = 0; i < 400; i++) {
		sock = site_random(2) ? raw_connection(to.heap.peer) :
		       greet(to.heap.peer, 100 + site_random(100));
		if (sock < 0)
			continue;
		for (n = (int)site_random(20); n; n--) {
			any_message(&m);
			if (site_random(3))
				m.value[REQUEST_KEY] = site_random(2) ?
					to.heap.rkey : to.plain.rkey;
			file = any_file();
			fxi_loop_socket_send(sock, &m, file);
			if (file >= 0)
				close(file);
		}
		if (!site_random(8))
			CHECK(send(sock, &m, site_random(sizeof(m)),
				   MSG_NOSIGNAL) >= -1);
		close(sock);
	}
}

TEST(loop_garbage)
{
	struct card mine, other;
	struct site a, b;
	struct party p;
	int files, i;

	loop_name_set();
	setenv("FABREX_LOOPBACK_SIZE", "64M", 1);
	site_open(&a, "a", &mine);
	site_open(&b, "b", &other);
	party_start(&p, babble, NULL);
	files = open_files();
	tell(p.fd, &mine, sizeof(mine));
	for (i = 0; i < 20; i++) {
		nap_ms(20);
		site_check_alive(&a, &b, &mine);
	}
	party_end(&p);
	site_check_alive(&a, &b, &mine);
	for (i = 0; i < 3000 && open_files() > files; i++)
		nap_ms(1);
	CHECK(open_files() <= files);
	fabrex_close(a.port);
	fabrex_close(b.port);
}
