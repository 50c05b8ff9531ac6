// SPDX-License-Identifier: GPL-2.0-only
/*
 * draco-emu: command line, signals, start and stop. The fabric model does the
 * rest (emu.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu.h"
#include "log.h"
#include "loop.h"
#include "throttle.h"

#define MAX_QMP		256

static const char usage[] =
"usage: draco-emu --topology FILE --run-dir DIR [option...]\n"
"       draco-emu --topology FILE --check\n"
"\n"
"Emulates the Draco switches, host ports and appliances of a topology. Each\n"
"host port is a vfio-user socket DIR/<host>.sock for QEMU's vfio-user-pci.\n"
"Prints READY when all sockets listen.\n"
"\n"
"  -t, --topology FILE     fabric to emulate (libconfig syntax)\n"
"  -d, --run-dir DIR       where sockets are made\n"
"  -q, --qmp HOST=PATH     QEMU monitor of a host (default DIR/<host>.qmp)\n"
"  -s, --state FILE        keep bindings here over restarts\n"
"  -j, --threads N         DMA engine threads (default: one for each CPU)\n"
"  -r, --throttle FACTOR   keep transfers to FACTOR times the links' rates\n"
"  -c, --check             check the topology, print a summary and exit\n"
"  -v, --verbose           log more\n"
"  -h, --help              this text\n";

static struct emu_qmp qmps[MAX_QMP];

static int bad_usage(const char *what, const char *value)
{
	fprintf(stderr, "draco-emu: %s%s%s\nTry 'draco-emu --help'.\n", what,
		value ? ": " : "", value ? value : "");
	return 2;
}

static int add_qmp(struct emu_options *o, char *text)
{
	char *eq = strchr(text, '=');

	if (!eq || eq == text || !eq[1])
		return bad_usage("--qmp takes HOST=PATH, not", text);
	if (o->nqmp == MAX_QMP)
		return bad_usage("too many --qmp", NULL);
	*eq = '\0';
	qmps[o->nqmp].host = text;
	qmps[o->nqmp].path = eq + 1;
	o->nqmp++;
	return 0;
}

static int parse_threads(struct emu_options *o, const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || !*text || !n || n > 256)
		return bad_usage("--threads takes a number from 1 to 256, not",
				 text);
	o->threads = (unsigned int)n;
	return 0;
}

static int parse_throttle(struct emu_options *o, const char *text)
{
	char *end;

	o->throttle = strtod(text, &end);
	if (*end || !*text || !(o->throttle >= THROTTLE_LEAST && o->throttle <= 1))
		return bad_usage("--throttle takes a number from 1e-9 to 1, not",
				 text);
	return 0;
}

/* 0, an exit code, or -1 for --help. */
static int parse(int argc, char **argv, struct emu_options *o, bool *check)
{
	static const struct option opts[] = {
		{ "topology", required_argument, NULL, 't' },
		{ "run-dir", required_argument, NULL, 'd' },
		{ "qmp", required_argument, NULL, 'q' },
		{ "state", required_argument, NULL, 's' },
		{ "threads", required_argument, NULL, 'j' },
		{ "throttle", required_argument, NULL, 'r' },
		{ "check", no_argument, NULL, 'c' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	int c, ret = 0;

	while (!ret &&
	       (c = getopt_long(argc, argv, "t:d:q:s:j:r:cvh", opts, NULL)) > 0) {
		switch (c) {
		case 't':
			o->topology = optarg;
			break;
		case 'd':
			o->run_dir = optarg;
			break;
		case 'q':
			ret = add_qmp(o, optarg);
			break;
		case 's':
			o->state = optarg;
			break;
		case 'j':
			ret = parse_threads(o, optarg);
			break;
		case 'r':
			ret = parse_throttle(o, optarg);
			break;
		case 'c':
			*check = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'h':
			return -1;
		default:
			return 2;
		}
	}
	if (ret)
		return ret;
	if (optind < argc)
		return bad_usage("unexpected argument", argv[optind]);
	if (!o->topology)
		return bad_usage("--topology is missing", NULL);
	if (!o->run_dir && !*check)
		return bad_usage("--run-dir is missing", NULL);
	return 0;
}

void emu_qmp_path(const struct emu_options *o, const char *host, char *buf,
		  unsigned int len)
{
	unsigned int i;

	for (i = 0; i < o->nqmp; i++) {
		if (strcmp(o->qmp[i].host, host))
			continue;
		snprintf(buf, len, "%s", o->qmp[i].path);
		return;
	}
	snprintf(buf, len, "%s/%s.qmp", o->run_dir, host);
}

static void on_signal(void *arg, uint32_t events)
{
	struct signalfd_siginfo si;
	int fd = *(int *)arg;

	(void)events;
	if (read(fd, &si, sizeof(si)) != sizeof(si))
		return;
	log_info("%s: stopping", strsignal((int)si.ssi_signo));
	loop_quit();
}

/* Before any thread exists, so that all of them inherit the mask. */
static int catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL))
		return -errno;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void raise_file_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

/* One draco-emu for each directory; the lock goes with the process. */
static int take_run_dir(const char *dir)
{
	char path[4096];
	int fd;

	if (mkdir(dir, 0700) && errno != EEXIST) {
		log_error("run directory %s: %s", dir, strerror(errno));
		return -errno;
	}
	snprintf(path, sizeof(path), "%s/draco-emu.lock", dir);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
		int err = errno;

		log_error("run directory %s: %s", dir, err == EWOULDBLOCK ?
			  "another draco-emu is using it; stop it or take another directory" :
			  strerror(err));
		return -err;
	}
	return 0;
}

static int run(const struct emu_options *o)
{
	int ret, sigfd = catch_signals();
	struct loop_fd *sig;

	ret = sigfd < 0 ? sigfd : loop_init();
	if (ret) {
		log_error("cannot start: %s", strerror(-ret));
		return 1;
	}
	sig = loop_fd_add(sigfd, EPOLLIN, on_signal, &sigfd);
	raise_file_limit();
	if (take_run_dir(o->run_dir))
		return 1;
	ret = emu_start(o);
	if (!ret) {
		printf("READY\n");
		fflush(stdout);
		loop_run();
	}
	emu_stop();
	loop_fd_del(sig);
	loop_free();
	close(sigfd);
	return ret ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct emu_options o = { .qmp = qmps };
	bool check = false;
	int ret = parse(argc, argv, &o, &check);

	if (ret < 0) {
		fputs(usage, stdout);
		return 0;
	}
	if (ret)
		return ret;
	log_set_verbose(o.verbose);
	umask(077);
	if (check)
		return emu_check(&o) ? 1 : 0;
	return run(&o);
}
