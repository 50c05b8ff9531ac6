// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs the program of a manual page, whose main() is example_main(), on the
 * fake fabric; for fabrex_connect(3) in two roles, and those that look for ports
 * and devices once more, on a machine made of files that has some.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"

int example_main(int argc, char **argv);

static void *first_role(void *unused)
{
	char name[] = "example", *argv[] = { name, NULL };

	(void)unused;
	return (void *)(intptr_t)example_main(1, argv);
}

/* Where pages are run that find a port and GPUs, and what they must print. */
static const struct look {
	const char *page, *says;
} looks[] = {
	{ "fabrex_port_list", "a.0 at 0000:03:00.0, 4 bridges away\n" },
	{ "fabrex_device_list", "a.0 to 0000:04:00.0: by switch, 4 bridges\n"
				"a.0 to 0001:01:00.0: by root, 6 bridges\n" },
};

/* The fake fabric's port a.0, and a GPU at its switch and one elsewhere. */
static void machine_open(struct machine *m)
{
	machine_new(m);
	machine_text(m, "sys/class/fabrex/fabrex0/name", "a.0\n");
	machine_text(m, "sys/class/fabrex/fabrex0/link", "up\n");
	machine_text(m, "sys/class/fabrex/fabrex0/alive", "1\n");
	machine_text(m, "dev/fabrex0", "");
	machine_text(m, machine_at(m, "0000:04:00.0", "class"), "0x120000\n");
	machine_text(m, machine_at(m, "0001:01:00.0", "class"), "0x030200\n");
	setenv("FABREX_ROOT", m->root, 1);
}

/* What it prints is exactly what is due. */
static int run_on_machine(const struct look *look)
{
	char gpu[] = "0000:04:00.0", name[] = "example", text[4096];
	char *argv[] = { name, gpu, NULL };
	FILE *out = tmpfile();
	struct machine m;
	int ret, old;
	size_t n;

	fflush(stdout);
	old = dup(1);
	if (!out || old < 0 || dup2(fileno(out), 1) < 0)
		return 1;
	machine_open(&m);
	ret = example_main(2, argv);
	fflush(stdout);
	dup2(old, 1);
	close(old);
	machine_free(&m);
	rewind(out);
	n = fread(text, 1, sizeof(text) - 1, out);
	text[n] = '\0';
	fclose(out);
	printf("%s", text);
	return ret || strcmp(text, look->says);
}

static int run_looks(const char *program)
{
	size_t i;

	for (i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		if (strstr(program, looks[i].page))
			return run_on_machine(&looks[i]);
	return 0;
}

int main(int argc, char **argv)
{
	char peer[] = "a", *second[] = { argv[0], peer, NULL };
	void *ret = NULL;
	pthread_t thread;
	int bad;

	(void)argc;
	alarm(600);
	if (!strstr(argv[0], "fabrex_connect"))
		return first_role(NULL) != NULL || run_looks(argv[0]);
	if (pthread_create(&thread, NULL, first_role, NULL))
		return 1;
	bad = example_main(2, second);
	pthread_join(thread, &ret);
	return bad || ret;
}
