// SPDX-License-Identifier: GPL-2.0-only
/*
 * See recorded.h. Lines are
 *
 *	[DIR]		what follows is in here
 *	NAME=TEXT	a file with this line
 *	NAME->TARGET	a symbolic link
 *	config:SIZE AT=HEX ...	registers at hexadecimal offsets, 0 elsewhere;
 *			*=HH instead: all bytes
 *
 * with \n and \xHH as in C, and comments after #. A directory of sys/devices that is named like a PCI
 * function gets its link in sys/bus/pci/devices, as sysfs has it.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../lib/tests/machine.h"
#include "p2p/pci.h"
#include "recorded.h"
#include "util.h"

static void die(const char *path, unsigned int line, const char *why)
{
	printf("# %s:%u: %s\n", path, line, why);
	fflush(stdout);
	_exit(1);
}

static void add_device_link(struct machine *m, const char *dir)
{
	const char *name = strrchr(dir, '/');
	struct pci_addr addr;
	char *link, *to;

	if (strncmp(dir, "sys/devices/", 12) || !fxi_pci_parse(name + 1, &addr))
		return;
	link = xasprintf("sys/bus/pci/devices/%s", name + 1);
	to = xasprintf("../../../%s", dir + 4);
	machine_link(m, link, to);
	free(link);
	free(to);
}

static void unescape(char *text)
{
	unsigned int byte;
	char *to = text;
	int n;

	while (*text) {
		n = 0;
		if (!strncmp(text, "\\n", 2)) {
			byte = '\n';
			n = 2;
		} else if (sscanf(text, "\\x%2x%n", &byte, &n) != 1) {
			n = 0;
		}
		*to++ = n ? (char)byte : *text;
		text += n ? n : 1;
	}
	*to = '\0';
}

static void set_bytes(unsigned char *config, size_t size, const char *word)
{
	unsigned int at, byte;
	int n = 0;

	if (sscanf(word, "*=%2x", &byte) == 1) {
		memset(config, (int)byte, size);
		return;
	}
	if (sscanf(word, "%x=%n", &at, &n) != 1)
		return;
	for (word += n; at < size && sscanf(word, "%2x", &byte) == 1; word += 2)
		config[at++] = (unsigned char)byte;
}

static void add_registers(struct machine *m, const char *path, char *text)
{
	size_t size = strtoul(text, &text, 10);
	unsigned char *config = xcalloc(size + 1, 1);
	char *word, *save;

	for (word = strtok_r(text, " ", &save); word;
	     word = strtok_r(NULL, " ", &save))
		set_bytes(config, size, word);
	machine_file(m, path, config, size);
	free(config);
}

/* Return: whether the line makes sense. */
static bool add_line(struct machine *m, const char *dir, char *line)
{
	char *file = strchr(line, '='), *link = strstr(line, "->"), *path, *text;

	if (!strncmp(line, "config:", 7)) {
		path = xasprintf("%s/config", dir);
		add_registers(m, path, line + 7);
		free(path);
		return true;
	}
	if (!link || (file && file < link))
		link = NULL;
	if (!link && !file)
		return false;
	text = link ? link + 2 : file + 1;
	*(link ? link : file) = '\0';
	unescape(line);
	unescape(text);
	path = xasprintf("%s/%s", dir, line);
	text = xasprintf("%s%s", text, link ? "" : "\n");
	if (link)
		machine_link(m, path, text);
	else
		machine_text(m, path, text);
	free(path);
	free(text);
	return true;
}

void recorded_load(struct machine *m, const char *path)
{
	char *line = NULL, dir[1024] = "";
	unsigned int number = 0;
	size_t room = 0;
	FILE *f = fopen(path, "r");

	snprintf(m->root, sizeof(m->root), "/tmp/fabrex-recorded-XXXXXX");
	if (!f || !mkdtemp(m->root))
		die(path, 0, "cannot be read");
	while (getline(&line, &room, f) >= 0) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (!*line || *line == '#')
			continue;
		if (*line == '[') {
			snprintf(dir, sizeof(dir), "%.*s",
				 (int)strcspn(line + 1, "]"), line + 1);
			unescape(dir);
			add_device_link(m, dir);
		} else if (!add_line(m, dir, line)) {
			die(path, number, "is no line of a recorded machine");
		}
	}
	free(line);
	fclose(f);
}

/* ---- what is there ------------------------------------------------------- */

static FILE *printed;
static char **files;
static size_t nfiles;

static int print_one(const char *path, const struct stat *st, int type,
		     struct FTW *ftw)
{
	unsigned char buf[4096];
	uint64_t hash = 0xcbf29ce484222325;
	ssize_t i, n = 0;
	FILE *f;

	(void)ftw;
	if (type == FTW_SL)
		n = readlink(path, (char *)buf, sizeof(buf));
	f = type == FTW_F ? fopen(path, "r") : NULL;
	if (f) {
		n = (ssize_t)fread(buf, 1, sizeof(buf), f);
		fclose(f);
	}
	for (i = 0; i < n; i++)
		hash = (hash ^ buf[i]) * 0x100000001b3;
	fprintf(printed, "%s %o %ld %ld.%09ld %llx\n", path, st->st_mode,
		type == FTW_D ? 0 : (long)st->st_size, (long)st->st_mtim.tv_sec,
		st->st_mtim.tv_nsec, (unsigned long long)hash);
	return 0;
}

static int keep_file(const char *path, const struct stat *st, int type,
		     struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type != FTW_F)
		return 0;
	files = xrealloc(files, (nfiles + 1) * sizeof(*files));
	files[nfiles++] = xstrdup(path);
	return 0;
}

char *recorded_print(const char *root)
{
	char *text = NULL;
	size_t len;

	printed = open_memstream(&text, &len);
	nftw(root, print_one, 16, FTW_PHYS);
	fclose(printed);
	return text;
}

char **recorded_files(const char *root, size_t *n)
{
	files = NULL;
	nfiles = 0;
	nftw(root, keep_file, 16, FTW_PHYS);
	*n = nfiles;
	return files;
}
