// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * hello-write: two processes on two hosts meet over the fabric, and one
 * writes into the other's memory. On b: hello-write; on a: hello-write b
 */
#include <stdio.h>
#include <string.h>
#include <fabrex/fabrex.h>

#define SERVICE		4000
#define REGION		4096
#define PATIENCE_MS	30000

/* What the two tell each other when they meet. */
struct card {
	struct fabrex_remote region;
	uint64_t key;		/* of the queue */
};

static int failed(const char *what)
{
	fprintf(stderr, "hello-write: %s: %s\n", what,
		fabrex_strerror_last());
	return 1;
}

/* Offers a region, and waits for the immediate that follows the write. */
static int receive(struct fabrex_port *port)
{
	const struct fabrex_queue_attr attr = {
		.rq_entries = 8, .flags = FABREX_QUEUE_EVENTFD,
	};
	struct fabrex_listener *listener;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;
	struct card mine = { 0 };
	struct fabrex_wc wc;
	uint32_t peer;

	if (fabrex_mr_alloc(port, REGION, FABREX_MR_REMOTE_WRITE, &mr) ||
	    fabrex_queue_create(port, &attr, sizeof(attr), &queue) ||
	    fabrex_listen(port, SERVICE, &listener))
		return failed("setting up");
	fabrex_mr_remote(mr, &mine.region);
	mine.key = fabrex_queue_key(queue);
	if (fabrex_accept(listener, &mine, sizeof(mine), NULL, NULL, &peer,
			  PATIENCE_MS))
		return failed("waiting for the other side");
	if (fabrex_wait(queue, PATIENCE_MS) <= 0 ||
	    fabrex_poll(queue, &wc, 1) != 1)
		return failed("waiting for the message");
	printf("peer %u wrote %u bytes: \"%.*s\"\n", peer, wc.imm,
	       (int)wc.imm, (const char *)fabrex_mr_addr(mr));
	fabrex_listener_close(listener);
	return 0;
}

/* Writes a sentence there; the immediate tells that it has arrived. */
static int send_to(struct fabrex_port *port, const char *name)
{
	struct fabrex_op op = { .opcode = FABREX_OP_WRITE_IMM };
	struct fabrex_queue *queue;
	struct fabrex_peer peer;
	struct card theirs;
	size_t length = sizeof(theirs);
	struct fabrex_mr *mr;
	struct fabrex_wc wc;
	int n;

	if (fabrex_peer_find(port, name, &peer) ||
	    fabrex_mr_alloc(port, REGION, 0, &mr) ||
	    fabrex_queue_create(port, NULL, 0, &queue))
		return failed("setting up");
	if (fabrex_connect(port, peer.peer, SERVICE, NULL, 0, &theirs,
			   &length, PATIENCE_MS))
		return failed("meeting the other side");
	op.length = (uint64_t)snprintf(fabrex_mr_addr(mr), REGION,
				       "Hello %s, from afar.", peer.host);
	op.imm = (uint32_t)op.length;
	op.peer = (uint16_t)peer.peer;
	op.mr = mr;
	op.rkey = theirs.region.rkey;
	op.dest_key = theirs.key;
	if (fabrex_post(queue, &op, 1) != 1)
		return failed("posting");
	while (!(n = fabrex_poll(queue, &wc, 1)))
		;
	if (n < 0)
		return failed("polling");
	printf("%llu bytes to %s: %s\n", (unsigned long long)op.length,
	       peer.name, fabrex_wc_str(wc.status));
	return wc.status != FABREX_WC_OK;
}

int main(int argc, char **argv)
{
	struct fabrex_port *port;
	int ret;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		fprintf(stderr, "usage: hello-write [PEER]\n");
		return 1;
	}
	if (fabrex_open(NULL, &port))
		return failed("opening the port");
	ret = argc == 2 ? send_to(port, argv[1]) : receive(port);
	fabrex_close(port);
	return ret;
}
