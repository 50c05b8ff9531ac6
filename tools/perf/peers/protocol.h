/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What fabrex-perf compare says to the processes it measures, over a
 * SOCK_SEQPACKET socket to each rank: a hello from the rank, then requests
 * and replies in turn. A rank sleeps in recv() while others are measured.
 */
#ifndef PEERS_PROTOCOL_H
#define PEERS_PROTOCOL_H

#include <stdint.h>

/* Abstract address to connect to, without its leading 0, for those that were
 * not forked with a socket.
 */
#define PEER_CONTROL	"FABREX_PERF_CONTROL"
/* "0,1": processors of the ranks, round robin; "": where the launcher says. */
#define PEER_CPUS	"FABREX_PERF_CPUS"

struct peer_hello {
	uint32_t rank;
	int32_t error;		/* positive errno, or 0 */
	char text[232];		/* version, or what is wrong */
};

/*
 * @what: all_reduce, all_gather, reduce_scatter, broadcast, reduce,
 * all_to_all, barrier, send_lat, write_lat, write_bw, ...; "" ends.
 * @bytes: as nccl-tests counts them, see fabrex-perf(1).
 */
struct peer_request {
	char what[24];
	uint64_t bytes;
	uint64_t warmup;
	uint64_t iterations;
};

/* Times are of CLOCK_MONOTONIC, around the iterations alone. */
struct peer_reply {
	uint64_t begin_ns, end_ns;
	int32_t error;		/* positive errno, or 0 */
	uint32_t reserved;
	char text[232];
};

#endif
