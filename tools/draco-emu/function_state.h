/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What function.c and function_irq.c share; everything else uses function.h.
 */
#ifndef EMU_FUNCTION_STATE_H
#define EMU_FUNCTION_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "config.h"
#include "dma_map.h"
#include "function.h"
#include "vfio_user.h"

struct function {
	char *name, *path;
	struct function_desc desc;
	struct function_ops ops;
	void *arg;
	struct config config;		/* function's thread */
	int bar_fd[FUNCTION_BARS];
	int aside_fd[FUNCTION_BARS];	/* memory while the link is down */
	void *bar_mem[FUNCTION_BARS];
	_Atomic uint64_t bar_addr[FUNCTION_BARS];	/* 0: not decoded */
	_Atomic uint64_t bar_size[FUNCTION_BARS];	/* at present */
	struct dma_map *dma;
	struct vu_channel *channel;
	bool bus_master;		/* as told to the model */
	atomic_bool dead, attached, stop;

	pthread_mutex_t irq_lock;	/* irq_fd, pending, signals on them */
	int irq_fd[FUNCTION_MSIX_MAX];
	uint64_t pending;
	_Atomic uint64_t interrupts;
	atomic_int signalling;		/* fd being written to, -1: none */
	_Atomic uint64_t signals;	/* writes begun */
	uint64_t signals_seen;		/* function_unstick() only */

	pthread_t thread;
	int listen_fd, stop_fd;
	pthread_mutex_t client_lock;	/* client_fd; held for moments only */
	int client_fd;
	pthread_mutex_t gate_lock;	/* dma on or off; waits for holds */
};

/*
 * The eventfd that a vector signals, -1: none; it is the function's from now
 * on unless there is an error. -EBADF if it is no eventfd.
 */
int function_set_irq(void *function, unsigned int vector, int fd);
void function_drop_irqs(struct function *f);

#endif
