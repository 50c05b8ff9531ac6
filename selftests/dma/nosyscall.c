// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posts and polls N writes through libfabrex to the own port, for strace: the
 * number of system calls must not depend on N.
 *   dma-nosyscall N
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fabrex/fabrex.h>

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, fabrex_strerror_last());
	return 1;
}

static unsigned long run(struct fabrex_queue *queue, struct fabrex_mr *mr,
			 unsigned long n)
{
	unsigned long posted = 0, done = 0;
	struct fabrex_remote self;
	struct fabrex_wc wc[16];

	fabrex_mr_remote(mr, &self);
	while (done < n) {
		while (posted < n && posted - done < 32 &&
		       fabrex_post_write(queue, mr, 0, &self, 4096, 64, 0,
					 posted) >= 0)
			posted++;
		int got = fabrex_poll(queue, wc, 16);

		if (got < 0)
			return done;
		for (int i = 0; i < got; i++)
			done += wc[i].status == FABREX_WC_OK;
	}
	return done;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;
	struct fabrex_queue_attr attr = { .sq_entries = 64 };
	struct fabrex_queue *queue;
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	if (fabrex_open(NULL, &port))
		return fail("open");
	if (fabrex_mr_alloc(port, 8192, FABREX_MR_ALL, &mr))
		return fail("region");
	if (fabrex_queue_create(port, &attr, sizeof(attr), &queue))
		return fail("queue");
	if (run(queue, mr, n) != n)
		return fail("not all operations succeeded");
	printf("%lu operations\n", n);
	fabrex_close(port);
	return 0;
}
