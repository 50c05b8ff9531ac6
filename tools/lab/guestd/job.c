// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands the lab asked for: their processes, pipes or terminal, and exit.
 * Called by main.c's loop, one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "guestd.h"

#define MAX_ARGS 64

struct job {
	struct job *next;
	uint32_t id;
	pid_t pid;
	int in, out, err;	/* -1 when closed; a terminal has in == out */
	int tty;
	int exited, status;
	char *pending;		/* bytes for standard input not yet taken */
	size_t pending_len;
	int stdin_ends;		/* close `in` once pending is written */
};

static struct job *jobs;

struct job *job_find(uint32_t id)
{
	struct job *job = jobs;

	while (job && job->id != id)
		job = job->next;
	return job;
}

static void split(char *text, uint32_t len, char **argv)
{
	int n = 0;
	uint32_t at = 0;

	while (at < len && n < MAX_ARGS - 1) {
		argv[n++] = text + at;
		at += strnlen(text + at, len - at) + 1;
	}
	argv[n] = NULL;
}

static void child(char **argv, int in, int out, int err)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	if (!argv[0])
		_exit(127);
	execvp(argv[0], argv);
	dprintf(2, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int start_pipes(struct job *job, char **argv)
{
	int in[2], out[2], err[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ||
	    pipe2(err, O_CLOEXEC))
		return -1;
	job->pid = fork();
	if (!job->pid) {
		setsid();
		child(argv, in[0], out[1], err[1]);
	}
	close(in[0]);
	close(out[1]);
	close(err[1]);
	job->in = in[1];
	job->out = out[0];
	job->err = err[0];
	return job->pid < 0 ? -1 : 0;
}

static int start_tty(struct job *job, char **argv)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int slave;

	if (master < 0 || grantpt(master) || unlockpt(master))
		return -1;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -1;
	job->pid = fork();
	if (!job->pid) {
		setsid();
		ioctl(slave, TIOCSCTTY, 0);
		child(argv, slave, slave, slave);
	}
	close(slave);
	job->in = master;
	job->out = master;
	return job->pid < 0 ? -1 : 0;
}

/* Start a command; NULL when it cannot be, which the caller reports. */
struct job *job_start(uint32_t id, char *text, uint32_t len, int tty)
{
	struct job *job = calloc(1, sizeof(*job));
	char *argv[MAX_ARGS];

	if (!job)
		return NULL;
	job->id = id;
	job->tty = tty;
	job->in = -1;
	job->out = -1;
	job->err = -1;
	text[len] = '\0';
	split(text, len, argv);
	if (tty ? start_tty(job, argv) : start_pipes(job, argv)) {
		free(job);
		return NULL;
	}
	fcntl(job->in, F_SETFL, O_NONBLOCK);
	job->next = jobs;
	jobs = job;
	return job;
}

void job_signal(struct job *job, int sig)
{
	if (job->exited)
		return;
	/* One that has just been forked has no process group yet. */
	if (kill(-job->pid, sig) && errno == ESRCH)
		kill(job->pid, sig);
}

void job_winsize(struct job *job, uint16_t rows, uint16_t cols)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };

	if (job->tty && job->in >= 0)
		ioctl(job->in, TIOCSWINSZ, &size);
}

static void close_in(struct job *job)
{
	if (job->in >= 0 && !job->tty)
		close(job->in);
	if (!job->tty)
		job->in = -1;
	job->pending_len = 0;
}

static void write_pending(struct job *job)
{
	ssize_t n = write(job->in, job->pending, job->pending_len);

	if (n > 0) {
		memmove(job->pending, job->pending + n, job->pending_len - n);
		job->pending_len -= n;
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		close_in(job);
	}
	if (!job->pending_len && job->stdin_ends)
		close_in(job);
}

/* Queue bytes for a command's standard input; none at all ends it. */
void job_stdin(struct job *job, const char *data, uint32_t len)
{
	char *grown;

	if (job->in < 0)
		return;
	if (!len) {
		job->stdin_ends = 1;
	} else {
		grown = realloc(job->pending, job->pending_len + len);
		if (!grown) {
			job_signal(job, SIGKILL);
			return;
		}
		job->pending = grown;
		memcpy(grown + job->pending_len, data, len);
		job->pending_len += len;
	}
	write_pending(job);
}

static int want(struct pollfd *fds, int n, int max, int fd, short events)
{
	if (fd < 0 || n >= max)
		return n;
	fds[n].fd = fd;
	fds[n].events = events;
	fds[n].revents = 0;
	return n + 1;
}

int job_poll_add(void *pollfds, int max)
{
	struct job *job;
	int n = 0;

	for (job = jobs; job; job = job->next) {
		n = want(pollfds, n, max, job->out, POLLIN);
		n = want(pollfds, n, max, job->err, POLLIN);
		if (job->pending_len)
			n = want(pollfds, n, max, job->in, POLLOUT);
	}
	return n;
}

static void forward(int port, struct job *job, int *fd, enum frame_type type)
{
	static char buf[FRAME_MAX];
	ssize_t n = read(*fd, buf, sizeof(buf));

	if (n > 0) {
		port_send(port, type, job->id, buf, n);
		return;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (job->tty)
		job->in = -1;
	close(*fd);
	*fd = -1;
}

static void ready(int port, struct job *job, const struct pollfd *pfd)
{
	if (pfd->fd == job->out && (pfd->revents & ~POLLOUT))
		forward(port, job, &job->out, FRAME_STDOUT);
	else if (pfd->fd == job->err)
		forward(port, job, &job->err, FRAME_STDERR);
	else if (pfd->fd == job->in)
		write_pending(job);
}

void job_poll_run(int port, const void *pollfds, int n)
{
	const struct pollfd *fds = pollfds;
	struct job *job;
	int i;

	for (i = 0; i < n; i++) {
		if (!fds[i].revents)
			continue;
		for (job = jobs; job; job = job->next)
			if (fds[i].fd == job->out || fds[i].fd == job->err ||
			    fds[i].fd == job->in)
				break;
		if (job)
			ready(port, job, &fds[i]);
	}
}

void job_reaped(pid_t pid, int status)
{
	struct job *job;

	for (job = jobs; job; job = job->next) {
		if (job->pid == pid) {
			job->exited = 1;
			job->status = status;
		}
	}
}

static void drain(int port, struct job *job, int *fd, enum frame_type type)
{
	struct pollfd pfd = { .fd = *fd, .events = POLLIN };

	while (*fd >= 0 && poll(&pfd, 1, 0) > 0)
		forward(port, job, fd, type);
}

static void release(struct job *job)
{
	close_in(job);
	if (job->out >= 0)
		close(job->out);
	if (job->err >= 0)
		close(job->err);
	free(job->pending);
	free(job);
}

/* Report commands that ended. What a background child of theirs writes later
 * is lost: it has inherited the pipe, and nobody should wait for it. */
void job_finish(int port)
{
	struct job **at = &jobs;

	while (*at) {
		struct job *job = *at;
		uint32_t status = job->status;

		if (!job->exited) {
			at = &job->next;
			continue;
		}
		drain(port, job, &job->out, FRAME_STDOUT);
		drain(port, job, &job->err, FRAME_STDERR);
		port_send(port, FRAME_EXIT, job->id, &status, sizeof(status));
		*at = job->next;
		release(job);
	}
}
