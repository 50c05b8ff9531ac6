/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the drivers of other people's collectives share: a table of operations
 * per library, and peer.c, which talks with fabrex-perf compare.
 */
#ifndef PEERS_PEER_H
#define PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peer_rank {
	uint32_t rank, ranks;
	bool crowded;		/* more ranks than processors */
	int fd;			/* to fabrex-perf compare */
	float *send, *recv;	/* of whole pages */
	uint64_t room;		/* bytes of each */
	uint64_t bytes;		/* of the request */
	size_t count;		/* the same in elements */
	void *library;		/* the driver's own */
};

/* FLOAT32 and SUM. All functions: 0, or a positive errno. */
struct peer_operation {
	const char *what;
	bool divided;		/* count is for each rank */
	int (*run)(struct peer_rank *r);
	/* May be NULL. Before the warm-up of each request, not timed. */
	int (*prepare)(struct peer_rank *r);
};

struct peer_library {
	const char *program;
	const struct peer_operation *operations;
	size_t count;
	int (*barrier)(struct peer_rank *r);
	/* For drivers that peer_main() starts. */
	int (*open)(struct peer_rank *r, void *shared);
	void (*close)(struct peer_rank *r);
	const char *(*version)(void);
	/* Bytes at @shared, which all ranks have mapped, zeroed. */
	size_t (*shared)(uint32_t ranks);
};

/*
 * For those that a launcher has started: the processor of the rank, the socket
 * (false: it was not fabrex-perf compare who started it, which is said), the
 * hello, and requests until there are no more.
 */
void peer_pin(struct peer_rank *r);
bool peer_connect(struct peer_rank *r, const struct peer_library *library);
void peer_hello(struct peer_rank *r, const char *version, int error);
void peer_serve(struct peer_rank *r, const struct peer_library *library);

/*
 * For libraries without a launcher: "PROGRAM RANKS" forks the ranks, each of
 * which does all of the above. An exit code.
 */
int peer_main(int argc, char **argv, const struct peer_library *library);

#ifdef __cplusplus
}
#endif

#endif
