// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Processes that are ranks, for comm_bootstrap.c and comm_failure.c.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"

static void fabric_name(char *name, size_t n, pid_t pid)
{
	snprintf(name, n, "crowd-%d", (int)pid);
}

static void member_run(struct crowd *c, uint32_t rank,
		       int (*work)(struct member *m))
{
	struct member m = {
		.crowd = c, .rank = rank, .size = c->size, .arg = c->arg,
		.attr = {
			.rank = rank, .size = c->size, .timeout_ms = HANG_MS,
			.bootstrap = c->bootstrap, .death_ms = 200,
		},
	};
	char fabric[48], name[64];
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(HANG_S);
	close(c->ready);
	fabric_name(fabric, sizeof(fabric), getppid());
	snprintf(name, sizeof(name), "loopback:%s", fabric);
	CHECK_EQ(fabrex_open(name, &m.port), 0);
	ret = work(&m);
	fabrex_close(m.port);
	fflush(stdout);
	_exit(ret);
}

void crowd_start(struct crowd *c, uint32_t size, int (*work)(struct member *m),
		 const void *arg)
{
	static unsigned int serial;
	int fds[2];
	uint32_t i;

	memset(c, 0, sizeof(*c));
	c->size = size;
	c->arg = arg;
	snprintf(c->bootstrap, sizeof(c->bootstrap), "fabric:%u",
		 10000 + serial++);
	CHECK(!pipe(fds));
	c->ready = fds[0];
	c->ready_write = fds[1];
	fflush(stdout);
	for (i = 0; i < size; i++) {
		c->pid[i] = fork();
		CHECK(c->pid[i] >= 0);
		if (!c->pid[i])
			member_run(c, i, work);
	}
	close(c->ready_write);
}

void crowd_ready(struct member *m)
{
	CHECK_EQ(write(m->crowd->ready_write, "x", 1), 1);
}

void crowd_await(struct crowd *c)
{
	uint32_t i;
	char byte;

	for (i = 0; i < c->size; i++)
		CHECK_EQ(read(c->ready, &byte, 1), 1);
}

void crowd_kill(struct crowd *c, uint32_t rank, int sig)
{
	CHECK(!kill(c->pid[rank], sig));
}

int crowd_end(struct crowd *c, uint32_t rank)
{
	int status;

	if (c->pid[rank]) {
		CHECK_EQ(waitpid(c->pid[rank], &status, 0), c->pid[rank]);
		c->pid[rank] = 0;
		c->status[rank] = WIFSIGNALED(status) ? -WTERMSIG(status) :
							WEXITSTATUS(status);
	}
	return c->status[rank];
}

void crowd_finish(struct crowd *c, uint32_t except)
{
	uint32_t i;

	for (i = 0; i < c->size; i++) {
		if (except >> i & 1)
			continue;
		if (crowd_end(c, i))
			printf("# rank %u of %u: status %d\n", i, c->size,
			       crowd_end(c, i));
		CHECK_EQ(crowd_end(c, i), 0);
	}
	for (i = 0; i < c->size; i++)
		crowd_end(c, i);
	close(c->ready);
}

void crowd_run(uint32_t size, int (*work)(struct member *m), const void *arg)
{
	struct crowd c;

	crowd_start(&c, size, work, arg);
	crowd_finish(&c, 0);
}

static void no_socket(const char *fabric)
{
	char line[512];
	FILE *f = fopen("/proc/net/unix", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		CHECK(!strstr(line, fabric));
	fclose(f);
}

static void no_file(const char *path, const char *fabric)
{
	struct dirent *e;
	DIR *d = opendir(path);

	if (!d)
		return;
	while ((e = readdir(d)))
		CHECK(!strstr(e->d_name, fabric));
	closedir(d);
}

void crowd_gone(void)
{
	char fabric[48];

	fabric_name(fabric, sizeof(fabric), getpid());
	no_socket(fabric);
	no_file("/dev/shm", fabric);
	no_file("/tmp", fabric);
}

struct fabrex_comm *crowd_create(struct member *m)
{
	struct fabrex_comm *comm;

	CHECK_EQ(fabrex_comm_create(m->port, &m->attr, sizeof(m->attr), &comm),
		 0);
	return comm;
}

int crowd_sum(struct fabrex_comm *comm)
{
	int32_t mine = (int32_t)fabrex_comm_rank(comm) + 1, sum = 0;
	int32_t n = (int32_t)fabrex_comm_size(comm);
	int ret;

	ret = fabrex_all_reduce(comm, &mine, &sum, 1, FABREX_INT32,
				FABREX_SUM);
	if (!ret)
		CHECK_EQ(sum, n * (n + 1) / 2);
	return ret;
}

static struct sockaddr_in tcp_address(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

uint16_t crowd_tcp_port(void)
{
	struct sockaddr_in a = tcp_address(0);
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&a, n) &&
	      !getsockname(fd, (struct sockaddr *)&a, &n));
	close(fd);
	return ntohs(a.sin_port);
}

int crowd_tcp_dial(uint16_t port)
{
	struct sockaddr_in a = tcp_address(port);
	int fd;

	for (;;) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(fd >= 0);
		if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
			return fd;
		close(fd);
		usleep(2000);
	}
}
