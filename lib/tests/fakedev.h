/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * State of the fake fabric, shared by fake.c (what the library calls) and
 * fakedev.c (the device thread). All under fab.lock.
 */
#ifndef LIB_TESTS_FAKEDEV_H
#define LIB_TESTS_FAKEDEV_H

#include <pthread.h>
#include <stdbool.h>
#include "fake.h"
#include "transport/ring/ring.h"

#define FAKE_NOT_ARMED	0xffffffffu

enum fake_type { FAKE_MR, FAKE_QUEUE, FAKE_WINDOW };

struct file {
	struct file *next;
	unsigned int port;
	int pipe[2];
	uint32_t *counters;	/* the watch page, or NULL */
};

struct fake_object {
	struct fake_object *next;
	enum fake_type type;
	struct file *file;
	uint32_t id;
	uint64_t key;
	/* region */
	void *addr;
	uint64_t length;
	uint32_t access;
	uint64_t peers;
	void *mapped;		/* dma-buf, or NULL */
	size_t mapped_length;
	bool watched, pinned;
	uint32_t watch;
	/* queue */
	struct fabrex_queue_attr attr;
	struct ring_memory shared;
	struct fabrex_qctrl *ctrl;
	uint64_t service;
	int efd;
	uint32_t sq_head, cq_tail, rq_tail;
	uint32_t last_doorbell;
	uint32_t armed;		/* cq_head, or FAKE_NOT_ARMED */
	bool failed;		/* an operation since the last fence */
	unsigned int idle;
};

struct fake_port {
	const char *name;
	bool up, gone;
	uint32_t generation;
};

struct fabric {
	pthread_mutex_t lock;
	struct fake_port port[FAKE_PORTS];
	struct fake_object *objects;
	struct file *files;
	uint32_t last_id;
	unsigned int nobjects;
	bool bad_rings;
	bool started;
	int budget;		/* entries still to execute; -1: no limit */
	enum fake_fault fault;
	unsigned int executed, doorbells;
	bool unwatched;		/* ports have no watch page */
	bool host_unwatched;	/* they have, but not for host memory */
	unsigned int registrations;
	unsigned int mr_failures; /* so many more registrations fail */
	int mr_error;
	unsigned int mr_delay_us;
	bool gate_shut;		/* registrations wait until it is opened */
	unsigned int at_gate;
	pthread_cond_t gate;	/* either has changed */
	unsigned int quota, end_delay_us; /* 0: no limit, no delay */
	bool mr_revoked;	/* regions are, as soon as they are made */
};

extern struct fabric fab;

void fakedev_start(void);
/* Region with the key at a peer, or NULL. */
struct fake_object *fakedev_mr(uint32_t peer, uint64_t key);
/* Set a queue's state and wake who sleeps on it. */
void fakedev_end(struct fake_object *q, uint32_t state, uint32_t error);

#endif
