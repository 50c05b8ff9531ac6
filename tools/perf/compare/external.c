// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs of others: where they are, what they print, and pairs of a server
 * and a client that meet at a TCP port.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compare.h"

#define LISTEN_MS	15000
#define CLIENT_MS	60000
#define END_MS		2000

static bool executable(char *path, size_t n, const char *dir, size_t length,
		       const char *name)
{
	snprintf(path, n, "%.*s/%s", (int)length, dir, name);
	return !access(path, X_OK);
}

static bool beside(const char *name, char *path, size_t n)
{
	char self[512];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *dir;

	if (length <= 0)
		return false;
	self[length] = 0;
	dir = dirname(self);
	return executable(path, n, dir, strlen(dir), name);
}

bool external_find(const char *name, char *path, size_t n)
{
	const char *dir = getenv("PATH");
	size_t length;

	if (beside(name, path, n))
		return true;
	while (dir && *dir) {
		length = strcspn(dir, ":");
		if (length && executable(path, n, dir, length, name))
			return true;
		dir += length;
		dir += *dir == ':';
	}
	return false;
}

/* ---- one program ------------------------------------------------------- */

__attribute__((noreturn))
static void be(const char *const argv[], const char *const env[], const struct cpus *cpus,
	       uint32_t rank, int out)
{
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	cpus_pin(cpus, rank);
	dup2(null, STDIN_FILENO);
	dup2(out >= 0 ? out : null, STDOUT_FILENO);
	dup2(out >= 0 ? out : null, STDERR_FILENO);
	for (; env && *env; env++)
		putenv((char *)(uintptr_t)*env);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static pid_t start(const char *const argv[], const char *const env[],
		   const struct cpus *cpus, uint32_t rank, int out)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		be(argv, env, cpus, rank, out);
	return pid;
}

/* Until the other side ends or time is up; false: it is up. */
static bool read_all(int fd, char *out, size_t n, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = now_ns() + (uint64_t)ms * 1000000u;
	size_t at = 0;
	char rest[512];
	ssize_t got = 1;

	while (got > 0 && now_ns() < end && !interrupted) {
		if (poll(&p, 1, 100) <= 0)
			continue;
		got = at + 1 < n ? read(fd, out + at, n - 1 - at) :
				   read(fd, rest, sizeof(rest));
		if (got > 0 && at + 1 < n)
			at += (size_t)got;
	}
	out[at] = 0;
	return got <= 0;
}

static int stop(pid_t pid, int ms)
{
	int status;

	for (; ms > 0; ms--) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return status;
}

/* 0 or a negative errno; what it printed in @out. */
static int run_one(const char *const argv[], const char *const env[],
		   const struct cpus *cpus, uint32_t rank, char *out, size_t n,
		   int ms)
{
	int pair[2], status;
	bool ended;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC))
		return -errno;
	pid = start(argv, env, cpus, rank, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	ended = read_all(pair[0], out, n, ms);
	close(pair[0]);
	status = stop(pid, ended ? END_MS : 0);
	return !ended ? -ETIMEDOUT : status ? -EIO : 0;
}

bool external_says(const char *const argv[], const char *word, char *text,
		      size_t n)
{
	char out[16384], *line, *rest;
	int ret;

	ret = run_one(argv, NULL, NULL, 0, out, sizeof(out), 20000);
	if (ret && ret != -EIO)
		return false;
	for (line = strtok_r(out, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (!strstr(line, word))
			continue;
		while (*line == '#' || *line == ' ')
			line++;
		snprintf(text, n, "%s", line);
		return true;
	}
	return false;
}

/* ---- pairs ------------------------------------------------------------- */

uint16_t external_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return 0;
	if (bind(fd, (struct sockaddr *)&a, n) ||
	    getsockname(fd, (struct sockaddr *)&a, &n))
		a.sin_port = 0;
	close(fd);
	return ntohs(a.sin_port);
}

/* Looked up, not tried: a connection would be taken for the client's. */
static bool listening(const char *table, uint16_t port)
{
	FILE *f = fopen(table, "r");
	unsigned int local, state;
	char line[300];
	bool yes = false;

	while (f && !yes && fgets(line, sizeof(line), f))
		yes = sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x",
			     &local, &state) == 2 &&
		      local == port && state == 10;
	if (f)
		fclose(f);
	return yes;
}

static bool wait_listening(pid_t server, uint16_t port)
{
	siginfo_t info = { 0 };
	int ms;

	for (ms = 0; ms < LISTEN_MS && !interrupted; ms += 5) {
		if (listening("/proc/net/tcp", port) ||
		    listening("/proc/net/tcp6", port))
			return true;
		if (!waitid(P_PID, (id_t)server, &info,
			    WEXITED | WNOHANG | WNOWAIT) && info.si_pid)
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	return false;
}

int external_pair(const struct cpus *cpus, const char *const server[],
		  const char *const client[], const char *const env[], uint16_t port,
		  char *out, size_t outn, char *why, size_t n)
{
	pid_t pid = start(server, env, cpus, 0, -1);
	int ret;

	if (pid < 0) {
		snprintf(why, n, "cannot start %s: %m", server[0]);
		return -EAGAIN;
	}
	if (!wait_listening(pid, port)) {
		snprintf(why, n, "%s: its server does not listen", server[0]);
		stop(pid, 0);
		return -ETIMEDOUT;
	}
	ret = run_one(client, env, cpus, 1, out, outn, CLIENT_MS);
	stop(pid, ret ? 0 : END_MS);
	if (ret)
		snprintf(why, n, "%s: %s: %.150s", client[0], strerror(-ret),
			 out);
	return ret;
}
