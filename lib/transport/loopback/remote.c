// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory that is not in a mapped segment: by the kernel's cross-memory attach
 * where it allows that. Called by engine.c after all checks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "state.h"

#define CMA_CHUNK	(1ull << 30)	/* the kernel moves 2 GiB at most */

static uint8_t fault(int err)
{
	/* EFAULT is mostly the peer's: our side is checked by the region. */
	return err == ESRCH ? FABREX_WC_UNREACHABLE : FABREX_WC_RFAULT;
}

/* Own memory answers? Tells whose fault a fault is. */
static bool local_ok(const struct loop_move *m, uint64_t done)
{
	char *at = (char *)m->local + done;
	struct iovec a = { at, 1 }, b = { at, 1 };

	return process_vm_readv(getpid(), &a, 1, &b, 1, 0) == 1;
}

static uint8_t move_cma(const struct loop_move *m)
{
	uint64_t done = 0;
	ssize_t n;

	while (done < m->length) {
		uint64_t rest = m->length - done;
		size_t chunk = rest < CMA_CHUNK ? rest : CMA_CHUNK;
		struct iovec local = { (char *)m->local + done, chunk };
		struct iovec remote = {
			(void *)(uintptr_t)(m->mr->place + m->offset + done),
			chunk,
		};

		n = m->read ?
		    process_vm_readv(m->peer->pid, &local, 1, &remote, 1, 0) :
		    process_vm_writev(m->peer->pid, &local, 1, &remote, 1, 0);
		if (n > 0) {
			done += (uint64_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		return n < 0 && errno == EFAULT && !local_ok(m, done) ?
		       FABREX_WC_LFAULT : fault(n < 0 ? errno : EFAULT);
	}
	return FABREX_WC_OK;
}

uint8_t fxi_loop_move(struct loop_queue *q, const struct loop_move *m)
{
	(void)q;
	if (m->opcode == FABREX_OP_FETCH_ADD || m->opcode == FABREX_OP_CMP_SWAP)
		return FABREX_WC_BAD_OPCODE;
	if (m->mr->kind == SEGMENT_MR_PROCESS && m->local && m->peer->cma)
		return move_cma(m);
	return FABREX_WC_RFAULT;
}

void fxi_loop_bounce_free(struct loop_queue *q)
{
	free(q->bounce);
	q->bounce = NULL;
}
