// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups of processes: start, ask all, collect answers, end. A group that does
 * not answer is killed, and so is one whose parent dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"
#include "group.h"

#define START_MS	60000
#define ANSWER_MS	180000
#define ANSWER_RANK_MS	1000	/* and for each rank */
#define END_MS		3000
#define JOIN_MS		2000u	/* loopback's own default */
#define JOIN_RANK_MS	1000u	/* and for each rank */

__attribute__((format(printf, 3, 4)))
static int because(struct group *g, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(g->text, sizeof(g->text), fmt, ap);
	va_end(ap);
	return -err;
}

/* ---- a forked rank ----------------------------------------------------- */

static void work(const struct worker_kind *kind, void *state, int fd)
{
	struct peer_request request;
	struct peer_reply reply;

	while (recv(fd, &request, sizeof(request), 0) ==
	       (ssize_t)sizeof(request) && request.what[0]) {
		memset(&reply, 0, sizeof(reply));
		kind->measure(state, &request, &reply);
		if (send(fd, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
			break;
	}
}

__attribute__((noreturn))
static void be_rank(const struct worker_kind *kind, const void *arg,
		    uint32_t rank, uint32_t ranks, const struct cpus *cpus,
		    int fd)
{
	struct peer_hello hello = { .rank = rank };
	void *state;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	cpus_pin(cpus, rank);
	state = kind->open(arg, rank, ranks, &hello);
	if (!state && !hello.error)
		hello.error = EIO;
	send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
	if (state) {
		work(kind, state, fd);
		kind->close(state);
	}
	_exit(!state);
}

void group_patience(uint32_t ranks)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", JOIN_MS + JOIN_RANK_MS * ranks);
	setenv("FABREX_LOOPBACK_JOIN_MS", text, 0);
}

/* ---- start ------------------------------------------------------------- */

static void group_begin(struct group *g, const char *name, uint32_t ranks)
{
	uint32_t i;

	memset(g, 0, sizeof(*g));
	snprintf(g->name, sizeof(g->name), "%s", name);
	g->ranks = ranks;
	g->open = true;
	for (i = 0; i < GROUP_MAX; i++)
		g->fd[i] = -1;
}

static int take(struct group *g, int fd, void *buffer, size_t n, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t got;
	int ret;

	do
		ret = poll(&p, 1, ms);
	while (ret < 0 && errno == EINTR && !interrupted);
	if (ret < 0)
		return because(g, EINTR, "interrupted");
	if (ret <= 0)
		return because(g, ETIMEDOUT, "%s did not answer within %d s",
			       g->name, ms / 1000);
	got = recv(fd, buffer, n, 0);
	if (got != (ssize_t)n)
		return because(g, EPIPE, "%s exited unexpectedly", g->name);
	return 0;
}

/* The first error is what is told; everybody's hello is taken. */
static int take_hello(struct group *g, int fd, uint32_t *rank)
{
	struct peer_hello hello;
	int ret = take(g, fd, &hello, sizeof(hello), START_MS);

	if (ret)
		return ret;
	hello.text[sizeof(hello.text) - 1] = 0;
	*rank = hello.rank;
	if (hello.error)
		return because(g, hello.error, "%s", hello.text);
	if (!hello.rank)
		memcpy(g->text, hello.text, sizeof(g->text));
	return 0;
}

static int greet_all(struct group *g)
{
	uint32_t i, rank;
	int ret = 0;

	for (i = 0; !ret && i < g->ranks; i++)
		ret = take_hello(g, g->fd[i], &rank);
	return ret;
}

int group_fork(struct group *g, const struct worker_kind *kind,
	       const void *arg, uint32_t ranks, const struct cpus *cpus)
{
	uint32_t i, j;
	int pair[2], ret = 0;

	group_begin(g, kind->name, ranks);
	fflush(NULL);
	for (i = 0; i < ranks && !ret; i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
			ret = because(g, errno, "socket: %m");
			break;
		}
		g->pid[i] = fork();
		if (!g->pid[i]) {
			for (j = 0; j < i; j++)
				close(g->fd[j]);
			close(pair[0]);
			be_rank(kind, arg, i, ranks, cpus, pair[1]);
		}
		close(pair[1]);
		g->fd[i] = pair[0];
		if (g->pid[i] < 0)
			ret = because(g, errno, "cannot start a process: %m");
		else
			g->pids++;
	}
	if (!ret)
		ret = greet_all(g);
	if (ret)
		group_end(g);
	return ret;
}

/* ---- a launcher's ranks ------------------------------------------------ */

static int listen_at(struct group *g, char *name, size_t n)
{
	static unsigned int count;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(name, n, "fabrex-perf-%d-%u", getpid(), count++);
	memcpy(a.sun_path + 1, name, strlen(name));
	if (fd < 0 || bind(fd, (struct sockaddr *)&a,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				       1 + strlen(name))) ||
	    listen(fd, GROUP_MAX)) {
		because(g, errno, "socket: %m");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

__attribute__((noreturn))
static void be_launcher(const char *const argv[], const char *name,
			const struct cpus *cpus, const char *output)
{
	char text[4096] = "";
	int out = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int in = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0);
	if (cpus)
		cpus_text(cpus, text, sizeof(text));
	setenv(PEER_CONTROL, name, 1);
	setenv(PEER_CPUS, text, 1);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* Ranks in any order; a launcher that ends before them all has failed. */
static int accept_one(struct group *g, int listener, uint64_t patience_ms)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	uint32_t rank = 0;
	int fd, ret, status;
	uint64_t waited;

	for (waited = 0; poll(&p, 1, 100) <= 0; waited += 100) {
		if (waitpid(g->pid[0], &status, WNOHANG) == g->pid[0]) {
			g->pids = 0;
			return because(g, EPIPE, "%s ended before its ranks were there",
				       g->name);
		}
		if (waited > patience_ms)
			return because(g, ETIMEDOUT, "%s: no rank within %llu s",
				       g->name,
				       (unsigned long long)patience_ms / 1000);
	}
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return because(g, errno, "socket: %m");
	ret = take_hello(g, fd, &rank);
	if (!ret && (rank >= g->ranks || g->fd[rank] >= 0))
		ret = because(g, EPROTO, "%s: rank %u is not expected", g->name,
			      rank);
	if (ret)
		close(fd);
	else
		g->fd[rank] = fd;
	return ret;
}

int group_launch(struct group *g, const char *name, const char *const argv[],
		 uint32_t ranks, const struct cpus *cpus, const char *output)
{
	char address[64];
	int listener, ret = 0;
	uint32_t i;

	group_begin(g, name, ranks);
	listener = listen_at(g, address, sizeof(address));
	if (listener < 0)
		return -EIO;
	fflush(NULL);
	g->pid[0] = fork();
	if (!g->pid[0])
		be_launcher(argv, address, cpus, output);
	if (g->pid[0] < 0)
		ret = because(g, errno, "cannot start a process: %m");
	else
		g->pids = 1;
	for (i = 0; !ret && i < ranks; i++)
		ret = accept_one(g, listener, START_MS);
	close(listener);
	if (ret)
		group_end(g);
	return ret;
}

/* ---- use --------------------------------------------------------------- */

static int ask_all(struct group *g, const struct peer_request *request)
{
	uint32_t i;

	for (i = 0; i < g->ranks; i++)
		if (send(g->fd[i], request, sizeof(*request),
			 MSG_NOSIGNAL) != (ssize_t)sizeof(*request))
			return because(g, EPIPE, "%s has exited", g->name);
	return 0;
}

int group_measure(struct group *g, const struct peer_request *request,
		  double *seconds)
{
	uint64_t begin = UINT64_MAX, end = 0;
	struct peer_reply reply;
	int ret = ask_all(g, request), error = 0;
	uint32_t i;

	for (i = 0; !ret && i < g->ranks; i++) {
		ret = take(g, g->fd[i], &reply, sizeof(reply), ANSWER_MS +
			   ANSWER_RANK_MS * (int)g->ranks);
		if (!ret && reply.error && !error) {
			reply.text[sizeof(reply.text) - 1] = 0;
			error = because(g, reply.error, "%s", reply.text);
		}
		begin = reply.begin_ns < begin ? reply.begin_ns : begin;
		end = reply.end_ns > end ? reply.end_ns : end;
	}
	if (ret)
		group_end(g);
	else if (!error)
		*seconds = (double)(end - begin) / 1e9 /
			   (double)request->iterations;
	return ret ? ret : error;
}

static void wait_for(pid_t pid, int ms)
{
	int status;

	for (; ms > 0 && !waitpid(pid, &status, WNOHANG); ms--)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (ms > 0)
		return;
	kill(pid, SIGTERM);
	nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	if (!waitpid(pid, &status, WNOHANG)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
}

void group_end(struct group *g)
{
	const struct peer_request end = { .what = "" };
	uint32_t i;

	if (!g->open)
		return;
	for (i = 0; i < g->ranks; i++) {
		if (g->fd[i] < 0)
			continue;
		send(g->fd[i], &end, sizeof(end), MSG_NOSIGNAL);
		close(g->fd[i]);
		g->fd[i] = -1;
	}
	for (i = 0; i < g->pids; i++)
		wait_for(g->pid[i], END_MS);
	g->pids = 0;
	g->open = false;
}
