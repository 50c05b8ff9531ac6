// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpu-vfio_tool: vfio-pci's dma-bufs for shell and Python tests, which get the
 * descriptor with pidfd_getfd() or in a command run by `exec`. See usage().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vfio_export.h"

#define FDS_MAX	64

struct tool {
	const char *bdf;
	unsigned int bar;
	bool keep;
	struct vfio_export *v;
	int fd[FDS_MAX];
	unsigned int nfds;
};

static int usage(void)
{
	fputs("usage: gpu-vfio_tool [-b] [-k] BDF [BAR [OFFSET [LENGTH]]]\n"
	      "-b binds vfio-pci to the device first. Prints \"dmabuf <fd>\" and\n"
	      "reads commands until its input ends; answers \"ok\" or \"error\":\n"
	      "  export [OFFSET [LENGTH]]  another dma-buf\n"
	      "  drop                      close the newest dma-buf\n"
	      "  reset                     reset the device\n"
	      "  memory on|off             memory decoding\n"
	      "  sleep on|off              D3hot and back\n"
	      "  fill OFFSET LENGTH BYTE   store through the CPU\n"
	      "  sum OFFSET LENGTH         print the sum of the bytes there\n"
	      "  exec COMMAND              sh -c, the dma-bufs are inherited\n"
	      "  close                     close the device, keep the dma-bufs\n"
	      "When the kernel wants the device back, it is closed: \"request\".\n"
	      "-k keeps it all the same, as a user that does not listen.\n",
	      stderr);
	return 2;
}

static int export(struct tool *t, uint64_t offset, uint64_t length)
{
	int fd;

	if (t->nfds == FDS_MAX)
		return -EMFILE;
	fd = vfio_export_dmabuf(t->v, t->bar, offset, length);
	if (fd < 0)
		return fd;
	t->fd[t->nfds++] = fd;
	printf("dmabuf %d\n", fd);
	return 0;
}

static int drop(struct tool *t)
{
	if (!t->nfds)
		return -ENOENT;
	close(t->fd[--t->nfds]);
	return 0;
}

static int touch(struct tool *t, uint64_t offset, size_t length, int byte)
{
	uint64_t page = offset & 4095, sum = 0;
	volatile uint8_t *at;
	void *p;
	int err;

	err = vfio_export_map(t->v, t->bar, offset - page, length + page, &p);
	if (err)
		return err;
	at = (uint8_t *)p + page;
	for (size_t i = 0; i < length; i++) {
		if (byte < 0)
			sum += at[i];
		else
			at[i] = (uint8_t)byte;
	}
	munmap(p, length + page);
	if (byte < 0)
		printf("sum %llu\n", (unsigned long long)sum);
	return 0;
}

static int run(struct tool *t, const char *command)
{
	int status;

	for (unsigned int i = 0; i < t->nfds; i++)
		fcntl(t->fd[i], F_SETFD, 0);
	fflush(stdout);
	status = system(command);
	for (unsigned int i = 0; i < t->nfds; i++)
		fcntl(t->fd[i], F_SETFD, FD_CLOEXEC);
	if (status == -1)
		return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

static int on_device(struct tool *t, const char *word, const char *arg,
		     unsigned long long a, unsigned long long b, int byte)
{
	bool on = !strcmp(arg, "on");

	if (!strcmp(word, "export"))
		return export(t, a, b);
	if (!strcmp(word, "reset"))
		return vfio_export_reset(t->v);
	if (!strcmp(word, "memory"))
		return vfio_export_memory(t->v, on);
	if (!strcmp(word, "sleep"))
		return vfio_export_sleep(t->v, on);
	if (!strcmp(word, "fill"))
		return touch(t, a, b, byte & 0xff);
	if (!strcmp(word, "sum"))
		return touch(t, a, b, -1);
	return -EINVAL;
}

static int execute(struct tool *t, const char *line)
{
	char word[16] = "", arg[32] = "";
	unsigned long long a = 0, b = 0;
	int n = 0, byte = 0;

	if (sscanf(line, "%15s %n", word, &n) < 1)
		return 0;
	if (!strcmp(word, "exec"))
		return run(t, line + n);
	if (!strcmp(word, "drop"))
		return drop(t);
	if (!t->v)
		return -ENODEV;
	if (!strcmp(word, "close")) {
		vfio_export_close(t->v);
		t->v = NULL;
		return 0;
	}
	sscanf(line + n, "%31s", arg);
	sscanf(line + n, "%lli %lli %i", (long long *)&a, (long long *)&b, &byte);
	return on_device(t, word, arg, a, b, byte);
}

static void answer(struct tool *t, const char *line)
{
	int err = execute(t, line);

	if (err)
		printf("error %d %s: %s\n", -err, line, strerror(-err));
	else
		puts("ok");
}

/* Input as it comes; false at its end. */
static bool take_input(struct tool *t)
{
	static char line[4096];
	static size_t used;
	ssize_t n = read(0, line + used, sizeof(line) - used);
	char *end;

	if (n <= 0)
		return false;
	used += (size_t)n;
	while ((end = memchr(line, '\n', used))) {
		*end++ = 0;
		answer(t, line);
		used -= (size_t)(end - line);
		memmove(line, end, used);
	}
	return used < sizeof(line);
}

static void serve(struct tool *t)
{
	struct pollfd p[2] = { { .fd = 0, .events = POLLIN },
			       { .events = POLLIN } };

	for (;;) {
		p[1].fd = t->v && !t->keep ? vfio_export_request_fd(t->v) : -1;
		if (poll(p, 2, -1) < 0)
			return;
		if (p[1].revents) {
			vfio_export_close(t->v);
			t->v = NULL;
			puts("request");
		}
		if (p[0].revents && !take_input(t))
			return;
	}
}

static int fail(const struct tool *t, const char *what, int err)
{
	fprintf(stderr, "gpu-vfio_tool: %s: %s: %s\n", t->bdf, what,
		strerror(-err));
	return 1;
}

int main(int argc, char **argv)
{
	struct tool t = { .bar = 2 };
	bool bind = false;
	int c, err;

	while ((c = getopt(argc, argv, "bk")) != -1) {
		if (c == '?')
			return usage();
		bind |= c == 'b';
		t.keep |= c == 'k';
	}
	argc -= optind;
	argv += optind;
	if (argc < 1 || argc > 4)
		return usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	t.bdf = argv[0];
	if (argc > 1)
		t.bar = (unsigned int)strtoul(argv[1], NULL, 0);
	err = bind ? vfio_export_bind(t.bdf) : 0;
	if (err)
		return fail(&t, "binding vfio-pci", err);
	err = vfio_export_open(t.bdf, &t.v);
	if (err)
		return fail(&t, "opening its VFIO group", err);
	err = export(&t, argc > 2 ? strtoull(argv[2], NULL, 0) : 0,
		     argc > 3 ? strtoull(argv[3], NULL, 0) : 0);
	if (err)
		return fail(&t, "VFIO_DEVICE_FEATURE_DMA_BUF", err);
	serve(&t);
	if (t.v)
		vfio_export_close(t.v);
	return 0;
}
