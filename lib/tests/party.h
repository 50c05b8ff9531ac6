/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Other processes for tests of the loopback transport: children with a socket
 * to the test, and one that owns regions and does as it is told. Only tests
 * call it. Fork before the test opens a port.
 */
#ifndef LIB_TESTS_PARTY_H
#define LIB_TESTS_PARTY_H

#include <sys/types.h>
#include "test.h"

struct party {
	pid_t pid;
	int fd;			/* SOCK_SEQPACKET to the other side */
};

/* run(fd, arg) in a child, which then exits with 0. */
void party_start(struct party *party, void (*run)(int fd, void *arg),
		 void *arg);
/* The child ends by itself, with 0. */
void party_end(struct party *party);
void party_kill(struct party *party);

void tell(int fd, const void *data, size_t length);
void hear(int fd, void *data, size_t length);
/* False: the other side is gone. */
bool hear_maybe(int fd, void *data, size_t length);

/* Fabric of this test: "loopback:test-<pid>", with "/name" if not NULL. */
const char *loop_name(const char *port);
/* From the process that runs the test: children have the same fabric. */
void loop_name_set(void);

/* As long as it takes. */
void peer_await(struct fabrex_port *port, const char *name,
		struct fabrex_peer *peer);
void peer_await_down(struct fabrex_port *port, uint32_t number);
/* Posts and polls: status. */
int operate(struct fabrex_queue *queue, const struct fabrex_op *op);
void nap_ms(long ms);

/* ---- the puppet -------------------------------------------------------- */

enum memory_kind {
	KIND_HEAP, KIND_PROCESS, KIND_FILE, KIND_SEALED, KIND_CUDA, KIND_HIP,
	KINDS
};

extern const char *const kind_names[KINDS];

/* A region of any kind, with what it takes to look at its bytes. */
struct thing {
	enum memory_kind kind;
	size_t length;
	struct fabrex_mr *mr;
	void *addr;		/* of the process, or of the device */
	void *runtime;
	int fd;
};

/* peers: NULL: all. -errno of the registration. */
int thing_make(struct fabrex_port *port, struct thing *thing,
	       enum memory_kind kind, size_t length, uint32_t access,
	       const uint32_t *peers, size_t npeers);
void thing_read(const struct thing *thing, size_t offset, void *to,
		size_t length);
void thing_write(const struct thing *thing, size_t offset, const void *from,
		 size_t length);

enum puppet_verb {
	PUPPET_MAKE,		/* kind, length, access, peer (or -1) */
	PUPPET_READ,		/* thing, offset, length: bytes follow */
	PUPPET_WRITE,		/* thing, offset, length: value everywhere */
	PUPPET_UNMAP,		/* thing: its memory, not the region */
	PUPPET_END,		/* thing: the region */
	PUPPET_QUEUE,		/* length cells; its number and key */
	PUPPET_RECEIVE,		/* a message of the queue: its bytes follow */
	PUPPET_STALL,		/* thing: its device has work in a blocking
				 * stream that does not end before PUPPET_GO
				 */
	PUPPET_GO,
	PUPPET_FORK,		/* a child, and wait for its end */
	PUPPET_CAPTURE,		/* thing, of CUDA: a stream, into a graph */
	PUPPET_CAPTURED,	/* CUresult of its end */
	PUPPET_HOLD,		/* copies of the test run times; value 0: no more */
	PUPPET_HELD,		/* until one is held */
};

struct puppet_order {
	enum puppet_verb verb;
	int32_t thing, kind, peer;
	uint32_t access;
	uint64_t offset, length;
	uint8_t value;
};

struct puppet_answer {
	int32_t ret, thing;
	struct fabrex_remote remote;
	uint32_t queue;
	uint64_t key;
};

/* Opens port "puppet", then obeys until its socket ends. */
void puppet_start(struct party *party);
struct puppet_answer puppet(struct party *party,
			    const struct puppet_order *order);
/* Compares with bytes here. */
bool puppet_has(struct party *party, int thing, uint64_t offset,
		const void *bytes, size_t length);

/* A puppet, and a port "test" with a region of @length bytes that can reach it. */
struct scene {
	struct party owner;
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_peer peer;
	struct thing local;
};

void scene_open(struct scene *s, enum memory_kind local, size_t length);
void scene_close(struct scene *s);

#endif
