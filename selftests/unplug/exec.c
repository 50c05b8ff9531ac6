// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that has memory registered and becomes another program, with the
 * descriptor closed by that. Says when it is ready and waits for a line.
 */

#include <stdio.h>
#include <unistd.h>

#include "raw.h"

int main(void)
{
	struct raw_mr mr;
	int fd = raw_open();

	if (fd < 0 || raw_mr(fd, 4096, RAW_ALL, &mr)) {
		puts("no memory registered");
		return 1;
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	execl("/bin/sleep", "sleep", "3600", NULL);
	perror("sleep");
	return 1;
}
