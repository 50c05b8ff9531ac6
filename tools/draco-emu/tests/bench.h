/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A function behind its socket with a model that counts, and a client of it:
 * what tests of functions start from.
 */
#ifndef EMU_BENCH_H
#define EMU_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "function.h"
#include "tap.h"

#define MEM_SIZE	(4u << 20)	/* of the client */
#define GUEST		0x40000000ull	/* where it has mapped that */

struct bench_model {
	uint8_t regs[256];
	size_t last_len;
	atomic_uint attach, detach, flr, device, lost, bars, master;
};

extern struct function *fn;
extern struct client cl;
extern int mem_fd;
extern uint8_t *mem;
extern char sock_path[128];
extern struct bench_model model;
extern const struct function_ops bench_ops;

/* The function; a client that has negotiated; that decodes and is a master. */
bool start(void);
bool negotiate(void);
bool enable(void);
void stop(void);

bool wait_until(atomic_uint *v, unsigned int n);
/* A memfd of MEM_SIZE. */
int memory(unsigned int seals);
/* What an eventfd has counted, after 200 ms at most. */
uint64_t counted(int fd);

int bench_main(const struct tap_test *tests, unsigned int n, int argc,
	       char **argv);

#endif
