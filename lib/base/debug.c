// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The log that $FABREX_DEBUG turns on: its words, its file, its lines. A line
 * is one write() to a file opened for appending, so that lines of several
 * threads and processes do not mix.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/debug.h"
#include "base/error.h"

#define LINE	768u		/* longest, with its end */
#define HOST	64u

uint32_t fxi_debugged;

static const struct {
	const char *name;
	uint32_t bits;
} words[] = {
	{ "port", FXI_DEBUG_PORT },
	{ "path", FXI_DEBUG_PATH },
	{ "memory", FXI_DEBUG_MEMORY },
	{ "bootstrap", FXI_DEBUG_BOOTSTRAP },
	{ "coll", FXI_DEBUG_COLL },
	{ "failure", FXI_DEBUG_FAILURE },
	{ "all", FXI_DEBUG_PORT | FXI_DEBUG_PATH | FXI_DEBUG_MEMORY |
		 FXI_DEBUG_BOOTSTRAP | FXI_DEBUG_COLL | FXI_DEBUG_FAILURE },
};

#define WORDS	(sizeof(words) / sizeof(*words))

/* -1: lines go to stderr. Whose it is: a child of a fork opens its own. */
static int file = -1;
static pid_t file_pid;

/* ---- the variables ----------------------------------------------------- */

static int parse(const char *text, uint32_t *bits)
{
	const char *end;
	size_t i;

	for (;; text = end + 1) {
		end = strchrnul(text, ',');
		for (i = 0; i < WORDS; i++)
			if (strlen(words[i].name) == (size_t)(end - text) &&
			    !strncmp(words[i].name, text,
				     (size_t)(end - text)))
				break;
		if (i == WORDS)
			return fxi_error(EINVAL, "FABREX_DEBUG: \"%.*s\": give port, path, memory, bootstrap, coll or failure, separated by commas, or all",
					 (int)(end - text), text);
		*bits |= words[i].bits;
		if (!*end)
			return 0;
	}
}

static void host_name(char *name)
{
	if (gethostname(name, HOST))
		strcpy(name, "?");
	name[HOST - 1] = 0;
}

/* %h and %p are replaced; %% is one of them. */
static int file_name(const char *text, char *path, size_t size)
{
	char host[HOST], pid[16], one[2] = "";
	const char *part;
	size_t n = 0;

	host_name(host);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	for (; *text; text++) {
		one[0] = *text;
		part = one;
		if (*text == '%') {
			text++;
			part = *text == 'h' ? host : *text == 'p' ? pid :
			       *text == '%' ? "%" : NULL;
		}
		if (!part)
			return fxi_error(EINVAL, "FABREX_DEBUG_FILE: behind %% there has to be h for the host, p for the process, or another %%");
		if (n + strlen(part) >= size)
			return fxi_error(ENAMETOOLONG, "FABREX_DEBUG_FILE: the name is longer than %zu bytes; choose a shorter one",
					 size - 1);
		memcpy(path + n, part, strlen(part) + 1);
		n += strlen(part);
	}
	return 0;
}

/*
 * Once in a process; two threads may do so at once. A child leaves its parent's
 * open: if the program has closed that, the number is of something else.
 */
static int file_open(const char *text)
{
	int fd, ret, old = __atomic_load_n(&file, __ATOMIC_ACQUIRE);
	char path[512];

	if (!text || !*text ||
	    (old >= 0 &&
	     __atomic_load_n(&file_pid, __ATOMIC_RELAXED) == getpid()))
		return 0;
	ret = file_name(text, path, sizeof(path));
	if (ret)
		return ret;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY,
		  0666);
	if (fd < 0)
		return fxi_error(errno, "FABREX_DEBUG_FILE: %s cannot be opened: %s; choose another file, or unset FABREX_DEBUG",
				 path, fxi_errno_str(errno));
	if (__atomic_compare_exchange_n(&file, &old, fd, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		__atomic_store_n(&file_pid, getpid(), __ATOMIC_RELAXED);
	else
		close(fd);
	return 0;
}

int fxi_debug_open(void)
{
	const char *text = secure_getenv("FABREX_DEBUG");
	uint32_t bits = 0;
	int ret = 0;

	if (text && *text)
		ret = parse(text, &bits);
	if (!ret && bits)
		ret = file_open(secure_getenv("FABREX_DEBUG_FILE"));
	if (!ret)
		__atomic_store_n(&fxi_debugged, bits, __ATOMIC_RELAXED);
	return ret;
}

/* ---- lines ------------------------------------------------------------- */

static const char *word_name(uint32_t bit)
{
	size_t i;

	for (i = 0; i < WORDS - 1 && words[i].bits != bit; i++)
		;
	return words[i].name;
}

/* "fabrex HOST PROCESS/THREAD WORD [rank N]: " */
static size_t begin(char *line, uint32_t word, uint32_t rank)
{
	char host[HOST], who[24] = "";

	host_name(host);
	if (rank != FXI_DEBUG_NO_RANK)
		snprintf(who, sizeof(who), " rank %u", rank);
	return (size_t)snprintf(line, LINE, "fabrex %s %d/%ld %s%s: ", host,
				(int)getpid(), syscall(SYS_gettid),
				word_name(word), who);
}

void fxi_debug_line(uint32_t word, uint32_t rank, const char *fmt, ...)
{
	int saved = errno, fd = __atomic_load_n(&file, __ATOMIC_ACQUIRE), n;
	char line[LINE];
	size_t at = begin(line, word, rank), i;
	va_list ap;

	va_start(ap, fmt);
	n = vsnprintf(line + at, sizeof(line) - at, fmt, ap);
	va_end(ap);
	if (n > 0)
		n += (int)at;
	if (n >= (int)sizeof(line)) {
		n = (int)sizeof(line) - 1;
		memcpy(line + n - 3, "...", 3);
	}
	/* One line, whatever names there are in it. */
	for (i = 0; n > 0 && i < (size_t)n; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	if (n > 0) {
		line[n] = '\n';
		if (write(fd < 0 ? STDERR_FILENO : fd, line,
			  (size_t)n + 1) < 0)
			errno = saved;	/* nobody to tell */
	}
	errno = saved;
}
