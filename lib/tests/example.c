// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs the program of a manual page, whose main() is example_main(), on the
 * fake fabric; with a second argument the two roles of fabrex_connect(3).
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int example_main(int argc, char **argv);

static void *first_role(void *unused)
{
	char name[] = "example", *argv[] = { name, NULL };

	(void)unused;
	return (void *)(intptr_t)example_main(1, argv);
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
		return first_role(NULL) != NULL;
	if (pthread_create(&thread, NULL, first_role, NULL))
		return 1;
	bad = example_main(2, second);
	pthread_join(thread, &ret);
	return bad || ret;
}
