// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks that fabrex-perf compare measures: requests, buffers, processors. They
 * measure back to back iterations after a barrier, as osu-micro-benchmarks and
 * ours do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"
#include "protocol.h"

#define PAGE		4096u
#define MAX_RANKS	1024u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- requests ---------------------------------------------------------- */

static const struct peer_operation *find(const struct peer_library *library,
					 const char *what)
{
	size_t i;

	for (i = 0; i < library->count; i++)
		if (!strcmp(library->operations[i].what, what))
			return &library->operations[i];
	return NULL;
}

static int make_room(struct peer_rank *r, uint64_t bytes)
{
	if (bytes <= r->room)
		return 0;
	free(r->send);
	free(r->recv);
	r->send = r->recv = NULL;
	r->room = 0;
	if (posix_memalign((void **)&r->send, PAGE, bytes) ||
	    posix_memalign((void **)&r->recv, PAGE, bytes))
		return ENOMEM;
	memset(r->send, 0, bytes);
	memset(r->recv, 0, bytes);
	r->room = bytes;
	return 0;
}

static int repeat(struct peer_rank *r, const struct peer_operation *op,
		  uint64_t n)
{
	int ret = 0;

	while (n-- && !ret)
		ret = op->run(r);
	return ret;
}

static int measure(struct peer_rank *r, const struct peer_library *library,
		   const struct peer_request *q, struct peer_reply *reply)
{
	const struct peer_operation *op = find(library, q->what);
	int ret;

	if (!op || q->bytes > 1ull << 30)
		return EOPNOTSUPP;
	if (make_room(r, q->bytes))
		return ENOMEM;
	r->bytes = q->bytes;
	r->count = q->bytes / sizeof(float) / (op->divided ? r->ranks : 1);
	ret = op->prepare ? op->prepare(r) : 0;
	if (!ret)
		ret = repeat(r, op, q->warmup);
	if (!ret)
		ret = library->barrier(r);
	reply->begin_ns = now_ns();
	if (!ret)
		ret = repeat(r, op, q->iterations);
	reply->end_ns = now_ns();
	return ret;
}

void peer_serve(struct peer_rank *r, const struct peer_library *library)
{
	struct peer_request q;
	struct peer_reply reply;

	while (recv(r->fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q) &&
	       q.what[0]) {
		memset(&reply, 0, sizeof(reply));
		q.what[sizeof(q.what) - 1] = 0;
		reply.error = measure(r, library, &q, &reply);
		if (reply.error)
			snprintf(reply.text, sizeof(reply.text), "%s: %s",
				 q.what, strerror(reply.error));
		if (send(r->fd, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
			break;
	}
	free(r->send);
	free(r->recv);
}

/* ---- start ------------------------------------------------------------- */

bool peer_connect(struct peer_rank *r, const struct peer_library *library)
{
	const char *name = getenv(PEER_CONTROL);
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	r->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (name && strlen(name) + 1 < sizeof(a.sun_path) && r->fd >= 0) {
		memcpy(a.sun_path + 1, name, strlen(name));
		if (!connect(r->fd, (struct sockaddr *)&a, (socklen_t)
			     (offsetof(struct sockaddr_un, sun_path) + 1 +
			      strlen(name))))
			return true;
	}
	fprintf(stderr, "%s: is started by fabrex-perf compare\n",
		library->program);
	return false;
}

/* The rank's processor out of "0,1,5". */
void peer_pin(struct peer_rank *r)
{
	const char *text = getenv(PEER_CPUS);
	int cpu[256], n = 0;
	cpu_set_t set;
	char *end;

	while (text && *text && n < 256) {
		cpu[n++] = (int)strtol(text, &end, 10);
		text = *end == ',' ? end + 1 : NULL;
	}
	r->crowded = r->ranks > (n ? (uint32_t)n :
				 (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	if (!n)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu[r->rank % (uint32_t)n], &set);
	sched_setaffinity(0, sizeof(set), &set);
}

void peer_hello(struct peer_rank *r, const char *version, int error)
{
	struct peer_hello h = { .rank = r->rank, .error = error };

	snprintf(h.text, sizeof(h.text), "%.200s", version);
	send(r->fd, &h, sizeof(h), MSG_NOSIGNAL);
}

/* ---- without a launcher ------------------------------------------------ */

static int be_rank(uint32_t rank, uint32_t ranks,
		   const struct peer_library *library, void *shared)
{
	struct peer_rank r = { .rank = rank, .ranks = ranks };
	char text[200];
	int ret;

	peer_pin(&r);
	if (!peer_connect(&r, library))
		return 1;
	ret = library->open(&r, shared);
	snprintf(text, sizeof(text), "%s", library->version());
	if (ret)
		snprintf(text, sizeof(text), "%s: ranks cannot meet: %s",
			 library->version(), strerror(ret));
	peer_hello(&r, text, ret);
	if (ret)
		return 1;
	peer_serve(&r, library);
	library->close(&r);
	return 0;
}

static int wait_all(void)
{
	int status, code = 0;
	pid_t pid;

	while ((pid = wait(&status)) > 0 || errno == EINTR)
		if (pid > 0 && status)
			code = 1;
	return code;
}

int peer_main(int argc, char **argv, const struct peer_library *library)
{
	unsigned long ranks = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	void *shared = MAP_FAILED;
	uint32_t i;
	pid_t pid;

	if (ranks && ranks <= MAX_RANKS)
		shared = mmap(NULL, library->shared((uint32_t)ranks),
			      PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		fprintf(stderr, "usage: %s RANKS; is started by fabrex-perf compare\n",
			library->program);
		return 1;
	}
	for (i = 0; i < ranks; i++) {
		pid = fork();
		if (pid < 0)
			return 1;
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exit(be_rank(i, (uint32_t)ranks, library, shared));
	}
	return wait_all();
}
