// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of ports of loopback fabrics: names, numbers, meeting and parting of
 * many, users, forks, and descriptors that run out.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"
#include "party.h"

static struct fabrex_port *open_port(const char *name)
{
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open(loop_name(name), &port), 0);
	return port;
}

TEST(loop_names)
{
	static const char *const bad[] = {
		"loopback:a b", "loopback:a/", "loopback:/x", "loopback:a/b/c",
		"loopback:a/12", "loopback:a/b c",
		"loopback:12345678901234567890123456789012",
		"loopback:a/12345678901234567890123456789o12",
	};
	struct fabrex_port *a, *b, *c;
	struct fabrex_peer peer;
	char host[64];
	size_t i;
	int files = open_files();

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(fabrex_open(bad[i], &a), -EINVAL);
	a = open_port("left");
	b = open_port(NULL);
	CHECK_EQ(fabrex_open(loop_name("left"), &c), -EADDRINUSE);
	CHECK_SAYS("left");
	CHECK(!strcmp(a->attr.name, "left"));
	CHECK(!strcmp(b->attr.name, "1"));
	CHECK(!strcmp(b->attr.driver, "loopback"));
	CHECK(a->attr.peer == 0 && b->attr.peer == 1);
	CHECK(a->attr.generation && a->attr.generation != b->attr.generation);
	CHECK_EQ(fabrex_peer_find(b, "left", &peer), 0);
	CHECK(peer.up && peer.peer == 0);
	CHECK_EQ(peer.generation, a->attr.generation);
	CHECK_EQ(fabrex_peer_find(a, "1", &peer), 0);
	CHECK_EQ(fabrex_peer_find(a, "nobody", &peer), -ENOENT);
	CHECK_SAYS("nobody");
	CHECK(!gethostname(host, sizeof(host)));
	host[31] = 0;
	CHECK_EQ(fabrex_peer_find(a, host, &peer), 0);
	CHECK_EQ(fabrex_peer_next(a, 1, &peer), 0);
	CHECK_EQ(peer.peer, 1);
	CHECK_EQ(fabrex_peer_next(a, 2, &peer), -ENOENT);
	fabrex_close(b);
	fabrex_close(a);
	CHECK_EQ(open_files(), files);
	a = open_port("left");
	CHECK_EQ(a->attr.peer, 0);
	fabrex_close(a);
}

TEST(loop_fabric_of_the_environment)
{
	struct fabrex_port *a;

	setenv("FABREX_FABRIC", strchr(loop_name("me"), ':') + 1, 1);
	CHECK_EQ(fabrex_open("loopback:", &a), 0);
	CHECK(!strcmp(a->attr.name, "me"));
	fabrex_close(a);
	setenv("FABREX_PORT", loop_name("other"), 1);
	CHECK_EQ(fabrex_open(NULL, &a), 0);
	CHECK(!strcmp(a->attr.name, "other"));
	fabrex_close(a);
}

TEST(loop_settings_are_checked)
{
	static const char *const bad[][2] = {
		{ "FABREX_LOOPBACK_SIZE", "1" },
		{ "FABREX_LOOPBACK_SIZE", "64X" },
		{ "FABREX_LOOPBACK_SIZE", "-1" },
		{ "FABREX_LOOPBACK_SIZE", "99999999999999999999" },
		{ "FABREX_LOOPBACK_CMA", "2" },
		{ "FABREX_LOOPBACK_JOIN_MS", "soon" },
		{ "FABREX_LOOPBACK_QUIESCE_MS", "1000000000" },
	};
	struct fabrex_port *a;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv(bad[i][0], bad[i][1], 1);
		CHECK_EQ(fabrex_open(loop_name(NULL), &a), -EINVAL);
		CHECK_SAYS(bad[i][0]);
		unsetenv(bad[i][0]);
	}
}

TEST(loop_fabrics_are_apart)
{
	struct fabrex_port *a = open_port("x"), *b;
	struct fabrex_peer peer;

	CHECK_EQ(fabrex_open("loopback:test-other-fabric", &b), 0);
	CHECK_EQ(fabrex_peer_find(b, "x", &peer), -ENOENT);
	CHECK_EQ(fabrex_peer_next(a, 1, &peer), -ENOENT);
	fabrex_close(a);
	fabrex_close(b);
}

/* ---- threads that are cancelled ---------------------------------------- */

static void *read_event(void *port)
{
	struct fabrex_port_event event;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	fabrex_event_read(port, &event, 0);
	return NULL;
}

static void *open_another(void *port)
{
	struct fabrex_port *other;
	struct fabrex_mr *mr;

	(void)port;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	other = open_port(NULL);
	CHECK_EQ(fabrex_mr_alloc(other, 1 << 20, FABREX_MR_ALL, &mr), 0);
	fabrex_close(other);
	return other;
}

/* What they were in the middle of goes on, or at least nothing is left. */
TEST(loop_cancelled)
{
	struct fabrex_port *a = open_port("a");
	int files = open_files();
	struct fabrex_mr *mr;
	pthread_t thread;
	void *end;
	int i;

	fabrex_close(open_port("b"));	/* two events */
	peer_await_down(a, 1);
	CHECK(!pthread_create(&thread, NULL, open_another, a));
	CHECK(!pthread_join(thread, &end));
	CHECK(end != PTHREAD_CANCELED);
	/* a's own thread closes its end of the connection after that. */
	for (i = 0; i < 3000 && open_files() > files; i++)
		usleep(1000);
	CHECK_EQ(open_files(), files);
	CHECK(!pthread_create(&thread, NULL, read_event, a));
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQ(fabrex_mr_alloc(a, 4096, FABREX_MR_ALL, &mr), 0);
	fabrex_close(a);
}

/* ---- the service thread ------------------------------------------------ */

static pid_t service_thread(void)
{
	DIR *dir = opendir("/proc/self/task");
	char path[300], name[16] = "";
	struct dirent *entry;
	pid_t tid = 0;
	FILE *file;

	CHECK(dir);
	while (!tid && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && !strcmp(name, "fabrex\n"))
			tid = atoi(entry->d_name);
		fclose(file);
	}
	closedir(dir);
	return tid;
}

static void *open_in_the_background(void *arg)
{
	const struct sched_param param = { .sched_priority = 0 };
	cpu_set_t one;

	(void)arg;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	CHECK(!sched_setscheduler(0, SCHED_BATCH, &param));
	return open_port(NULL);
}

/* It is not bound to what the thread that opens the port is bound to. */
TEST(loop_service_scheduling)
{
	cpu_set_t whole, set;
	pthread_t thread;
	void *port;

	CHECK(!sched_getaffinity(0, sizeof(whole), &whole));
	CHECK(!pthread_create(&thread, NULL, open_in_the_background, NULL));
	CHECK(!pthread_join(thread, &port));
	CHECK(service_thread());
	CHECK_EQ(sched_getscheduler(service_thread()), SCHED_OTHER);
	CHECK(!sched_getaffinity(service_thread(), sizeof(set), &set));
	CHECK(CPU_EQUAL(&whole, &set));
	fabrex_close(port);
}

/* ---- coming and going -------------------------------------------------- */

static void stay(int fd, void *arg)
{
	struct fabrex_port *port = open_port("guest");
	char order;

	(void)arg;
	tell(fd, &port->attr, sizeof(port->attr));
	if (hear_maybe(fd, &order, 1))
		fabrex_close(port);
}

static void expect(struct fabrex_port *port, uint32_t type, uint32_t peer,
		   uint32_t generation)
{
	struct fabrex_port_event event;

	CHECK_EQ(fabrex_event_read(port, &event, HANG_MS), 0);
	CHECK_EQ(event.type, type);
	CHECK_EQ(event.peer, peer);
	CHECK_EQ(event.generation, generation);
	CHECK(event.time_ns);
}

TEST(loop_events)
{
	struct fabrex_port_attr first, second;
	struct fabrex_port_event event;
	struct party p;
	struct fabrex_port *port;
	struct fabrex_peer peer;
	int i;

	loop_name_set();
	party_start(&p, stay, NULL);
	hear(p.fd, &first, sizeof(first));
	port = open_port("host");
	CHECK_EQ(fabrex_event_read(port, &event, 0), -EAGAIN);
	CHECK_EQ(fabrex_peer_find(port, "guest", &peer), 0);
	for (i = 0; i < 20; i++) {
		if (i % 2) {
			party_kill(&p);
		} else {
			tell(p.fd, "", 1);
			party_end(&p);
		}
		expect(port, FABREX_EV_PEER_DOWN, first.peer,
		       first.generation);
		CHECK_EQ(fabrex_peer_find(port, "guest", &peer), 0);
		CHECK(!peer.up);
		party_start(&p, stay, NULL);
		hear(p.fd, &second, sizeof(second));
		CHECK_EQ(second.peer, first.peer);
		CHECK(second.generation != first.generation);
		first = second;
		expect(port, FABREX_EV_PEER_UP, first.peer, first.generation);
	}
	party_kill(&p);
	fabrex_close(port);
}

#define MANY	64

static void mingle(int fd, void *arg)
{
	struct fabrex_port *port;
	struct fabrex_peer peer;
	uint32_t at, up;
	char go;
	int i;

	(void)arg;
	hear(fd, &go, 1);
	port = open_port(NULL);
	for (i = 0; i < HANG_MS; i++) {
		up = 0;
		for (at = 0; !fabrex_peer_next(port, at, &peer);
		     at = peer.peer + 1)
			up += peer.up;
		if (up == MANY)
			break;
		nap_ms(1);
	}
	CHECK_EQ(up, MANY);
	tell(fd, &go, 1);
	hear(fd, &go, 1);
	if (go)
		fabrex_close(port);
}

/* All at the same moment: each meets each, once; then all are gone. */
TEST(loop_many)
{
	static struct party p[MANY];
	struct fabrex_port *port;
	struct fabrex_peer peer;
	char go = 1;
	int round, i;

	loop_name_set();
	setenv("FABREX_LOOPBACK_JOIN_MS", "20000", 1);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < MANY; i++)
			party_start(&p[i], mingle, NULL);
		for (i = 0; i < MANY; i++)
			tell(p[i].fd, &go, 1);
		for (i = 0; i < MANY; i++)
			hear(p[i].fd, &go, 1);
		go = (char)round;
		for (i = 0; i < MANY; i++)
			tell(p[i].fd, &go, 1);
		for (i = 0; i < MANY; i++)
			party_end(&p[i]);
	}
	port = open_port(NULL);
	CHECK_EQ(port->attr.peer, 0);
	CHECK_EQ(fabrex_peer_next(port, 1, &peer), -ENOENT);
	fabrex_close(port);
}

/* ---- churn -------------------------------------------------------------- */

#define SLOTS	8

static void census(int fd, void *arg)
{
	struct fabrex_port *port = open_port(NULL);
	struct fabrex_peer peer;
	uint32_t expected, at, up = 0;
	int i;

	(void)arg;
	tell(fd, &port->attr.peer, sizeof(port->attr.peer));
	if (!hear_maybe(fd, &expected, sizeof(expected)))
		return;
	for (i = 0; i < HANG_MS && up != expected; i++) {
		up = 0;
		for (at = 0; !fabrex_peer_next(port, at, &peer);
		     at = peer.peer + 1)
			up += peer.up;
		nap_ms(1);
	}
	CHECK_EQ(up, expected);
	up += 1000;
	tell(fd, &up, sizeof(up));
	hear_maybe(fd, &expected, sizeof(expected));
	fabrex_close(port);
}

/* Killed while they join, and while others do: the rest agree on who is there. */
TEST(loop_churn)
{
	struct party p[SLOTS] = { { 0 } };
	uint32_t number, expected = SLOTS;
	int i, round;

	loop_name_set();
	for (round = 0; round < 300; round++) {
		i = rand() % SLOTS;
		if (p[i].pid)
			party_kill(&p[i]);
		party_start(&p[i], census, NULL);
		if (rand() % 2)
			hear(p[i].fd, &number, sizeof(number));
		else
			usleep((useconds_t)(rand() % 2000));
	}
	for (i = 0; i < SLOTS; i++) {
		if (!p[i].pid)
			party_start(&p[i], census, NULL);
		tell(p[i].fd, &expected, sizeof(expected));
	}
	for (i = 0; i < SLOTS; i++)
		while (hear(p[i].fd, &number, sizeof(number)),
		       number != expected + 1000)
			;
	for (i = 0; i < SLOTS; i++)
		party_end(&p[i]);
}

/* ---- limits ------------------------------------------------------------ */

static void limit_files(int n)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = (rlim_t)n;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
}

/* So that the number of open files is one more than the last. */
static int fill_holes(void)
{
	int files = open_files() - 3, fd;

	while ((fd = dup(0)) < files)
		files++;
	close(fd);
	return fd;
}

/*
 * The other port takes a connection that has already been given up and closes
 * it again, in its own time: what is asked is that this number comes back, not
 * that it stays.
 */
static void await_files(int files)
{
	int i;

	for (i = 0; open_files() != files; i++) {
		CHECK(i < 60000);
		nap_ms(1);
	}
}

/* Whatever fails for lack of descriptors says so and leaves none open. */
TEST(loop_descriptors)
{
	struct fabrex_port *other, *port;
	struct fabrex_mr *mr;
	int first, files, extra, ret;

	setenv("FABREX_LOOPBACK_JOIN_MS", "300", 1);
	other = open_port("other");
	CHECK_EQ(fabrex_mr_alloc(other, 4096, 0, &mr), 0);
	first = fill_holes();
	files = open_files();
	for (extra = 0;; extra++) {
		limit_files(first + extra);
		ret = fabrex_open(loop_name("late"), &port);
		if (!ret)
			break;
		CHECK_EQ(ret, -EMFILE);
		CHECK_SAYS("ulimit -n");
		limit_files(first + 64);
		await_files(files);
	}
	CHECK(extra > 5);
	limit_files(first + 64);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	fabrex_close(port);
	fabrex_close(other);
}

/* Sanitizers need address space of their own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(loop_address_space)
{
	struct fabrex_port *port;
	struct rlimit limit = { 1ull << 32, 1ull << 32 };

	setenv("FABREX_LOOPBACK_SIZE", "16G", 1);
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	CHECK_EQ(fabrex_open(loop_name(NULL), &port), -ENOMEM);
	CHECK_SAYS("FABREX_LOOPBACK_SIZE");
	setenv("FABREX_LOOPBACK_SIZE", "64M", 1);
	CHECK_EQ(fabrex_open(loop_name(NULL), &port), 0);
	fabrex_close(port);
}
#endif

/* ---- users and forks --------------------------------------------------- */

static void as_another(int fd, void *arg)
{
	struct fabrex_port *port;
	struct fabrex_peer peer;
	uint32_t n = 0, at;

	(void)arg;
	CHECK(!setgid(1));
	CHECK(!setuid(1));
	port = open_port("secret");
	for (at = 0; !fabrex_peer_next(port, at, &peer); at = peer.peer + 1)
		n++;
	tell(fd, &n, sizeof(n));
	hear_maybe(fd, &n, sizeof(n));
	fabrex_close(port);
}

/* The same name, another user: another fabric. */
TEST(loop_users)
{
	struct fabrex_port *port;
	struct fabrex_peer peer;
	struct party p;
	uint32_t n;

	if (geteuid()) {
		printf("# not root: one user only\n");
		return;
	}
	loop_name_set();
	port = open_port("mine");
	party_start(&p, as_another, NULL);
	hear(p.fd, &n, sizeof(n));
	CHECK_EQ(n, 1);
	CHECK_EQ(fabrex_peer_find(port, "secret", &peer), -ENOENT);
	CHECK_EQ(fabrex_peer_next(port, 1, &peer), -ENOENT);
	party_end(&p);
	fabrex_close(port);
}

static void forks(int fd, void *arg)
{
	struct fabrex_port *port = open_port("parent");
	pid_t child;

	(void)arg;
	child = fork();
	if (!child) {
		close(fd);
		alarm(HANG_S);
		pause();
	}
	tell(fd, &child, sizeof(child));
	pause();
	fabrex_close(port);
}

/* Listens where a port of user 0 would be. */
static int occupy(uint32_t number, int backlog)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), n;

	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "fabrex/0/%s/%u",
		     strchr(loop_name(NULL), ':') + 1, number);
	CHECK(!bind(fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				(size_t)n)));
	CHECK(!listen(fd, backlog));
	return fd;
}

static void squat(int fd, void *arg)
{
	uint32_t i;
	char order;

	(void)arg;
	CHECK(!setgid(1));
	CHECK(!setuid(1234));
	for (i = 0; i < 256; i++)
		occupy(i, 5);
	tell(fd, "", 1);
	hear_maybe(fd, &order, 1);
}

/* Who has taken all numbers is named. */
TEST(loop_squatter)
{
	struct fabrex_port *port;
	struct party p;
	char ready;

	if (geteuid()) {
		printf("# not root: one user only\n");
		return;
	}
	loop_name_set();
	party_start(&p, squat, NULL);
	hear(p.fd, &ready, 1);
	CHECK_EQ(fabrex_open(loop_name(NULL), &port), -EUSERS);
	CHECK_SAYS("1234");
	party_end(&p);
	fabrex_close(open_port(NULL));
}

/* A port with which no connection can be made is not taken for none. */
TEST(loop_full_backlog)
{
	struct fabrex_port *port;
	int fd;

	if (geteuid()) {
		printf("# not root: addresses are another user's\n");
		return;
	}
	setenv("FABREX_LOOPBACK_JOIN_MS", "200", 1);
	fd = occupy(0, 0);
	/* This one gets to wait there, and takes all the room. */
	fabrex_close(open_port(NULL));
	CHECK_EQ(fabrex_open(loop_name(NULL), &port), -ETIMEDOUT);
	CHECK_SAYS("port 0");
	close(fd);
}

/* In a user namespace without a map everybody has the same id. */
TEST(loop_users_without_an_id)
{
	struct fabrex_port *port;

	if (unshare(CLONE_NEWUSER)) {
		printf("# no user namespaces here\n");
		return;
	}
	CHECK_EQ(fabrex_open(loop_name(NULL), &port), -EPERM);
	CHECK_SAYS("user namespace");
}

/* A child of a fork does not keep its parent's port alive. */
TEST(loop_fork_and_death)
{
	struct fabrex_port *port;
	struct fabrex_peer peer;
	struct party p;
	pid_t child;

	loop_name_set();
	port = open_port("watcher");
	party_start(&p, forks, NULL);
	hear(p.fd, &child, sizeof(child));
	peer_await(port, "parent", &peer);
	party_kill(&p);
	expect(port, FABREX_EV_PEER_UP, peer.peer, peer.generation);
	expect(port, FABREX_EV_PEER_DOWN, peer.peer, peer.generation);
	CHECK(!kill(child, 0));
	kill(child, SIGKILL);
	fabrex_close(port);
}

/* The child ends what it inherited, and opens a port of its own. */
TEST(loop_fork_goes_on)
{
	struct fabrex_port *port, *mine;
	struct fabrex_queue *queue;
	struct fabrex_peer peer;
	struct fabrex_mr *mr;
	int status, files;
	pid_t child;

	loop_name_set();
	port = open_port("old");
	files = open_files();
	CHECK_EQ(fabrex_mr_alloc(port, 1 << 20, FABREX_MR_ALL, &mr), 0);
	CHECK_EQ(fabrex_queue_create(port, NULL, 0, &queue), 0);
	child = fork();
	if (!child) {
		fabrex_close(port);
		CHECK(open_files() < files);
		mine = open_port("new");
		CHECK_EQ(fabrex_peer_find(mine, "old", &peer), 0);
		CHECK(peer.up);
		fabrex_close(mine);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	memset(fabrex_mr_addr(mr), 1, 1 << 20);
	fabrex_close(port);
}
