/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/switchtecN of Linux's driver, and what sysfs says of it: commands with an
 * answer, and events. Called by the other files of the backend.
 */
#ifndef CTL_SWITCHTEC_DEVICE_H
#define CTL_SWITCHTEC_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "p2p/p2p.h"

#define DEVICE_MOST	16	/* Switchtecs that a host is connected to */

/* The management function of a switch, in this host's partition. */
struct switchtec {
	unsigned int index;	/* of /dev/switchtec<index> */
	char node[32];
	char path[256];		/* of the node, below the root of the tests */
	char pci[PCI_NAME_LEN];	/* its function */
	uint32_t partition;	/* that of this host */
	bool emulated;
	int fd;			/* -1: not open */
	bool spent;		/* no answer came: it takes no command any more */
	/* Where it is in the topology file; state.c finds out. */
	unsigned int sw, host, port;
};

/**
 * mrpc_fn - send a command and take the answer
 * @d:       open
 * @command: MRPC_*
 * @out:     gets all of the answer, @out_len bytes, if there is one
 * @ret:     what the command returned, 0 or MRPC_*_RET_*
 *
 * Return: 0, or a negative errno with @e filled in: -ETIMEDOUT if there was no
 * answer within DEVICE_SECONDS. The next command is then queued behind this one, so
 * its answer shows the state after it.
 */
typedef int mrpc_fn(struct switchtec *d, uint32_t command, const void *in,
		    size_t in_len, void *out, size_t out_len, uint32_t *ret,
		    struct err *e);

#define DEVICE_SECONDS	5.0

/* PFX of the machine that @env names. How many; negative: @e says why. */
int device_list(const struct p2p_env *env, struct switchtec v[DEVICE_MOST],
		struct err *e);
int device_open(struct switchtec *d, struct err *e);
void device_close(struct switchtec *d);
mrpc_fn device_command;
/*
 * Arm POLLPRI for the end of a binding change in this host's partition; arm again
 * after each event. Other events are left alone: other programs may wait for them.
 */
int device_watch(struct switchtec *d, struct err *e);

#endif
