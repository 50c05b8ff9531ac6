// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * first_write: the smallest complete program. One process registers two
 * buffers and writes from one into the other through the fabric.
 */
#include <stdio.h>
#include <string.h>
#include <fabrex/fabrex.h>

static int failed(const char *what)
{
	fprintf(stderr, "first_write: %s: %s\n", what,
		fabrex_strerror_last());
	return 1;
}

int main(void)
{
	struct fabrex_remote remote;
	struct fabrex_queue *queue;
	struct fabrex_mr *from, *to;
	struct fabrex_port *port;
	struct fabrex_wc wc;

	if (fabrex_open(NULL, &port) ||
	    fabrex_queue_create(port, NULL, 0, &queue) ||
	    fabrex_mr_alloc(port, 4096, 0, &from) ||
	    fabrex_mr_alloc(port, 4096, FABREX_MR_REMOTE_WRITE, &to))
		return failed("setting up");
	fabrex_mr_remote(to, &remote);	/* what a peer sends you: its key */
	strcpy(fabrex_mr_addr(from), "Hello, fabric");
	if (fabrex_post_write(queue, from, 0, &remote, 0, 14, 0, 0))
		return failed("posting the write");
	while (!fabrex_poll(queue, &wc, 1))
		;	/* posting and polling make no system call */
	printf("%s: %s\n", fabrex_wc_str(wc.status),
	       (char *)fabrex_mr_addr(to));
	fabrex_close(port);
	return wc.status != FABREX_WC_OK;
}
