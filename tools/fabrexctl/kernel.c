// SPDX-License-Identifier: GPL-2.0-only
/*
 * See kernel.h. The configuration is that of /proc/config.gz, which is the
 * running kernel's own, else of the file of its release. gzip unpacks it: one
 * run of a program that every Linux has, instead of a library to link with.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"
#include "p2p/sysfs.h"
#include "topology/visible.h"
#include "util.h"

#define TEXT_LIMIT (16u << 20)	/* files of this kind have 1 MiB at most */

/* ---- texts --------------------------------------------------------------- */

/* All of it; NULL if it cannot be read, or is too long to be what it should. */
static char *drain(int fd)
{
	size_t room = 65536, n = 0;
	char *text = xrealloc(NULL, room);
	ssize_t got = 1;

	while (got && n < TEXT_LIMIT) {
		if (room - n < 2)
			text = xrealloc(text, room *= 2);
		got = read(fd, text + n, room - n - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		n += (size_t)got;
	}
	text[n] = '\0';
	if (!got && n && strlen(text) == n)
		return text;
	free(text);
	return NULL;
}

static void run_gzip(int in, int out)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	execlp("gzip", "gzip", "-dc", NULL);
	_exit(127);
}

static char *unpack(int in)
{
	int out[2], status = 0;
	char *text;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		return NULL;
	pid = fork();
	if (!pid)
		run_gzip(in, out[1]);
	close(out[1]);
	text = pid < 0 ? NULL : drain(out[0]);
	close(out[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (text && WIFEXITED(status) && !WEXITSTATUS(status))
		return text;
	free(text);
	return NULL;
}

/* A file's text, by drain() or unpack(). NULL: there is none, or no text. */
static char *read_by(char *(*get)(int fd), const char *root, const char *name)
{
	char path[SYSFS_PATH], *text;
	size_t size;
	int fd;

	if (fxi_sysfs_path(path, root, "%s", name))
		return NULL;
	fd = fxi_sysfs_open(path, &size);
	if (fd < 0)
		return NULL;
	text = get(fd);
	close(fd);
	return text;
}

static char *read_text(const char *root, const char *name)
{
	return read_by(drain, root, name);
}

static char *read_packed(const char *root, const char *name)
{
	return read_by(unpack, root, name);
}

/* ---- the kernel ---------------------------------------------------------- */

static void read_release(struct kernel *k)
{
	char *text = read_text(k->root, "/proc/sys/kernel/osrelease");

	if (text)
		text[strcspn(text, "\n")] = '\0';
	/* It becomes a part of paths. */
	if (text && !strchr(text, '/') && strlen(text) < sizeof(k->release))
		snprintf(k->release, sizeof(k->release), "%s", text);
	visible(k->release);
	free(text);
}

static void read_config(struct kernel *k)
{
	static const char *const places[] = {
		"/boot/config-%s", "/lib/modules/%s/config",
		"/usr/lib/modules/%s/config",
	};
	size_t i;

	snprintf(k->config_from, sizeof(k->config_from), "/proc/config.gz");
	k->config = read_packed(k->root, k->config_from);
	for (i = 0; !k->config && *k->release && i < ARRAY_SIZE(places); i++) {
		snprintf(k->config_from, sizeof(k->config_from), places[i],
			 k->release);
		k->config = read_text(k->root, k->config_from);
	}
	/* A file that is no configuration must not turn all options off. */
	if (k->config && !strstr(k->config, "CONFIG_PCI")) {
		free(k->config);
		k->config = NULL;
	}
	if (!k->config)
		*k->config_from = '\0';
}

static char *read_list(const struct kernel *k, const char *name)
{
	char path[160];
	char *text = NULL;

	snprintf(path, sizeof(path), "/lib/modules/%s/%s", k->release, name);
	if (*k->release)
		text = read_text(k->root, path);
	return text;
}

/* "none [integrity] confidentiality": the one that holds is in brackets. */
static bool is_signed_only(const char *root)
{
	char *lock = read_text(root, "/sys/kernel/security/lockdown");
	char *sig = read_text(root, "/sys/module/module/parameters/sig_enforce");
	bool only = (lock && (strstr(lock, "[integrity]") ||
			      strstr(lock, "[confidentiality]"))) ||
		    (sig && *sig == 'Y');

	free(lock);
	free(sig);
	return only;
}

void kernel_read(struct kernel *k, const char *root)
{
	char *text;

	memset(k, 0, sizeof(*k));
	k->root = root;
	read_release(k);
	read_config(k);
	k->installed = read_list(k, "modules.dep");
	k->builtin = read_list(k, "modules.builtin");
	k->cmdline = read_text(root, "/proc/cmdline");
	text = read_text(root, "/proc/sys/kernel/modules_disabled");
	k->no_modules = text && *text == '1';
	free(text);
	k->signed_only = is_signed_only(root);
}

void kernel_free(struct kernel *k)
{
	free(k->config);
	free(k->installed);
	free(k->builtin);
	free(k->cmdline);
	memset(k, 0, sizeof(*k));
}

/* An option that a configuration does not name is not there to be set. */
enum config_state kernel_config(const struct kernel *k, const char *option)
{
	const size_t n = strlen(option);
	const char *line = k->config;

	if (!line)
		return CONFIG_UNSEEN;
	while (line) {
		if (!strncmp(line, option, n) && line[n] == '=')
			return line[n + 1] == 'y' ? CONFIG_ON :
			       line[n + 1] == 'm' ? CONFIG_MODULE : CONFIG_OFF;
		line = strchr(line, '\n');
		line += !!line;
	}
	return CONFIG_OFF;
}

/* "kernel/drivers/ntb/ntb.ko.xz:" has "/ntb.ko" and then no letter. */
static bool is_listed(const char *list, const char *name)
{
	char word[64];
	int n = snprintf(word, sizeof(word), "/%s.ko", name);
	const char *at = list;

	while (at && (at = strstr(at, word))) {
		at += n;
		if (strchr(":. \n", *at))
			return true;
	}
	return false;
}

enum module_state kernel_module(const struct kernel *k, const char *name)
{
	char path[SYSFS_PATH];

	if (is_listed(k->builtin, name))
		return MODULE_BUILTIN;
	if (!fxi_sysfs_path(path, k->root, "/sys/module/%s", name) &&
	    !access(path, F_OK))
		return MODULE_LOADED;
	if (!k->installed)
		return MODULE_UNSEEN;
	return is_listed(k->installed, name) ? MODULE_INSTALLED :
					       MODULE_MISSING;
}

void kernel_words(const struct kernel *k, const char *const *begin, char *text,
		  size_t size)
{
	char *copy = k->cmdline ? xstrdup(k->cmdline) : NULL, *word, *save;
	size_t n = 0;
	int i;

	*text = '\0';
	for (word = copy ? strtok_r(copy, " \n", &save) : NULL; word;
	     word = strtok_r(NULL, " \n", &save))
		for (i = 0; begin[i]; i++)
			if (!strncmp(word, begin[i], strlen(begin[i])) &&
			    n < size)
				n += snprintf(text + n, size - n, "%s%s",
					      n ? " " : "", word);
	visible(text);
	free(copy);
}
