// SPDX-License-Identifier: GPL-2.0-only
/*
 * Process 1 of a lab guest: boots it, says hello, then serves the lab.
 * Everything is one poll loop; SIGCHLD arrives through a signalfd.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guestd.h"

#define MAX_FDS 256

static void start(int port, struct frame *head, char *payload)
{
	uint32_t failed = 127 << 8;

	if (job_start(head->id, payload, head->len, head->type == FRAME_TTY))
		return;
	port_send(port, FRAME_EXIT, head->id, &failed, sizeof(failed));
}

static void control(struct frame *head, const char *payload)
{
	struct job *job = job_find(head->id);
	uint16_t size[2];
	uint32_t sig;

	if (!job)
		return;
	if (head->type == FRAME_STDIN) {
		job_stdin(job, payload, head->len);
	} else if (head->type == FRAME_SIGNAL && head->len == sizeof(sig)) {
		memcpy(&sig, payload, sizeof(sig));
		job_signal(job, sig);
	} else if (head->type == FRAME_WINSIZE && head->len == sizeof(size)) {
		memcpy(size, payload, sizeof(size));
		job_winsize(job, size[0], size[1]);
	}
}

static int serve_frame(int port)
{
	static char payload[FRAME_MAX + 1];
	struct frame head;

	if (port_read_frame(port, &head, payload))
		return -1;
	if (head.type == FRAME_EXEC || head.type == FRAME_TTY)
		start(port, &head, payload);
	else
		control(&head, payload);
	return 0;
}

static void reap(int sigfd)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (sigfd >= 0 && read(sigfd, &info, sizeof(info)) < 0)
		return;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		job_reaped(pid, status);
}

static void hello(int port)
{
	struct utsname name;

	uname(&name);
	port_send(port, FRAME_HELLO, 0, name.release, strlen(name.release));
}

static void serve(int port, int sigfd)
{
	struct pollfd fds[MAX_FDS];
	int n;

	for (;;) {
		fds[0] = (struct pollfd){ .fd = port, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = sigfd, .events = POLLIN };
		n = job_poll_add(fds + 2, MAX_FDS - 2);
		if (poll(fds, n + 2, -1) < 0)
			continue;
		if (fds[0].revents & POLLIN && serve_frame(port))
			return;
		if (fds[0].revents & ~POLLIN)
			usleep(100000);	/* nobody at the other end now */
		job_poll_run(port, fds + 2, n);
		if (fds[1].revents)
			reap(sigfd);
		job_finish(port);
	}
}

int main(void)
{
	sigset_t mask;
	int port, sigfd;

	signal(SIGPIPE, SIG_IGN);
	boot_mount_root();
	boot_start_services();
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	sigfd = signalfd(-1, &mask, SFD_CLOEXEC);
	port = port_open();
	if (port < 0 || sigfd < 0) {
		warn("open", port < 0 ? "port " PORT_NAME : "signalfd");
	} else {
		hello(port);
		serve(port, sigfd);
		dprintf(2, "guestd: the lab sent what is no frame\n");
	}
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
