// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory that is not in a mapped segment, on either side: which path its bytes
 * take. Called by engine.c after all checks. Thresholds: docs/loopback.md.
 */
#include <errno.h>
#include <string.h>
#include <linux/futex.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/path.h"
#include "operation.h"
#include "state.h"

#define CMA_CHUNK	(1ull << 30)	/* the kernel copies 2 GiB at most */
#define STAGE		(32u << 10)	/* on the stack */

/* ---- cross-memory attach ----------------------------------------------- */

/* Is the local memory accessible? Then the fault was the peer's. */
static bool local_ok(const struct loop_move *m, uint64_t done)
{
	char *at = (char *)m->local + done, byte;
	struct iovec to = { &byte, 1 }, from = { at, 1 };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

static uint8_t cma_status(const struct loop_move *m, uint64_t done, int err)
{
	if (err == ESRCH)
		return FABREX_WC_UNREACHABLE;
	if (err == EFAULT && !local_ok(m, done))
		return FABREX_WC_LFAULT;
	return FABREX_WC_RFAULT;
}

/*
 * The number of a process may be another one's after its end, and stays the
 * same after exec(), when its memory is something else. Either ends the
 * connection, which our service thread may not have read yet, and is to be seen
 * in its segment before, without a system call. If that was true after a read, the
 * memory was the peer's; before a write, what remains is the moment between this
 * check and the system's use of the number.
 */
static bool is_connected(const struct loop_peer *peer)
{
	struct pollfd pfd = { .fd = peer->sock, .events = POLLRDHUP };
	uint32_t living = __atomic_load_n(&peer->segment->living,
					  __ATOMIC_ACQUIRE);

	if (likely(living))
		return !(living & FUTEX_OWNER_DIED);
	/* Ourselves: -1. */
	return poll(&pfd, 1, 0) <= 0;
}

static ssize_t cma_call(const struct loop_move *m, void *at, uint64_t from,
			size_t n)
{
	struct iovec local = { at, n };
	struct iovec remote = { (void *)(uintptr_t)from, n };

	return m->read ?
	       process_vm_readv(m->peer->pid, &local, 1, &remote, 1, 0) :
	       process_vm_writev(m->peer->pid, &local, 1, &remote, 1, 0);
}

/* How many bytes; or -1 with errno, ESRCH if the process is the peer no more. */
static ssize_t cma_step(const struct loop_move *m, uint64_t done)
{
	uint64_t rest = m->length - done;
	size_t chunk = rest < CMA_CHUNK ? rest : CMA_CHUNK;
	char *at = (char *)m->local + done;
	ssize_t n = 0;
	int err;

	if (m->read || is_connected(m->peer))
		n = cma_call(m, at, m->mr->place + m->offset + done, chunk);
	err = errno;
	if (likely(is_connected(m->peer))) {
		errno = err;
		return n;
	}
	/* What has been read may be of another process. */
	if (m->read && n > 0)
		memset(at, 0, (size_t)n);
	errno = ESRCH;
	return -1;
}

/* False: the system does not allow it, and nothing was moved. */
static bool move_cma(const struct loop_move *m, uint8_t *status)
{
	uint64_t done = 0;
	ssize_t n;

	*status = FABREX_WC_OK;
	while (done < m->length) {
		n = cma_step(m, done);
		if (n > 0) {
			done += (uint64_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && !done && (errno == EPERM || errno == ENOSYS))
			return false;
		*status = cma_status(m, done, n < 0 ? errno : EFAULT);
		break;
	}
	return true;
}

/* ---- files ------------------------------------------------------------- */

static uint8_t atomic_at(const struct loop_move *m, char *at)
{
	uint64_t old;

	if ((uintptr_t)at & 7)
		return FABREX_WC_BAD_DESC;
	old = loop_atomic(m->opcode, (uint64_t *)(void *)at, m->operand,
			  m->compare);
	memcpy(m->local, &old, sizeof(old));
	return FABREX_WC_OK;
}

/* Only the owner can do atomics on a file that is not mapped. */
static uint8_t atomic_file(struct loop_queue *q, const struct loop_move *m,
			   const struct loop_file *f)
{
	uint8_t status;

	if (!f->base || m->offset > f->length || f->length - m->offset < 8)
		return fxi_loop_bounce(q, m);
	fxi_loop_file_sync(f, true, false);
	status = atomic_at(m, f->base + m->offset);
	fxi_loop_file_sync(f, false, false);
	return status;
}

static uint8_t move_file(struct loop_queue *q, const struct loop_move *m)
{
	struct loop_file *f;
	int ret = fxi_loop_file_get(q->transport, m->number, m->mr->key, &f);

	if (ret == -ETIMEDOUT)
		return FABREX_WC_RFAULT;
	/* The owner copies what this process cannot open. */
	if (ret)
		return fxi_loop_bounce(q, m);
	if (loop_is_atomic(m->opcode))
		return atomic_file(q, m, f);
	return fxi_loop_file_copy(f, m->offset, m->local, m->length, m->read);
}

/* ---- by kind ----------------------------------------------------------- */

static uint8_t move_plain(const struct loop_move *m)
{
	char *at = (char *)m->peer->segment + m->mr->place + m->offset;

	if (loop_is_atomic(m->opcode))
		return atomic_at(m, at);
	if (m->read)
		memcpy(m->local, at, m->length);
	else
		memcpy(at, m->local, m->length);
	return FABREX_WC_OK;
}

/* This port is the peer. */
static uint8_t move_self(struct loop_queue *q, const struct loop_move *m)
{
	uint32_t index = m->mr->key & (SEGMENT_MRS - 1);
	char *base = q->transport->locals[index];

	if (!base && loop_is_atomic(m->opcode))
		return FABREX_WC_BAD_OPCODE;
	if (!base)
		return fxi_loop_device_copy(q->transport, index, m->offset,
					    m->local, m->length, m->read);
	if (loop_is_atomic(m->opcode))
		return atomic_at(m, base + m->offset);
	if (m->read)
		memcpy(m->local, base + m->offset, m->length);
	else
		memcpy(base + m->offset, m->local, m->length);
	return FABREX_WC_OK;
}

static uint8_t move_process(struct loop_queue *q, const struct loop_move *m)
{
	enum fxi_path path = fxi_path_foreign(m->length, m->peer->cma, false);
	uint8_t status;

	if (path == FXI_PATH_CMA && !loop_is_atomic(m->opcode) &&
	    move_cma(m, &status))
		return status;
	return fxi_loop_bounce(q, m);
}

static uint8_t move_local(struct loop_queue *q, const struct loop_move *m)
{
	if (m->number == q->transport->number)
		return move_self(q, m);
	switch (m->mr->kind) {
	case SEGMENT_MR_HEAP:
		return move_plain(m);
	case SEGMENT_MR_PROCESS:
		return move_process(q, m);
	case SEGMENT_MR_FD:
		return move_file(q, m);
	case SEGMENT_MR_DEVICE:
		return loop_is_atomic(m->opcode) ? FABREX_WC_BAD_OPCODE :
				      fxi_loop_bounce(q, m);
	}
	return FABREX_WC_RFAULT;
}

/* ---- local memory without an address ----------------------------------- */

static uint8_t local_fault(uint8_t status)
{
	return status ? FABREX_WC_LFAULT : FABREX_WC_OK;
}

static uint8_t stage_atomic(struct loop_queue *q, struct loop_move m)
{
	uint64_t old = 0;
	uint8_t status;

	m.local = &old;
	status = move_local(q, &m);
	if (status)
		return status;
	return local_fault(fxi_loop_device_copy(q->transport, m.lindex,
						m.loffset, &old, sizeof(old),
						false));
}

static uint8_t stage_piece(struct loop_queue *q, const struct loop_move *m,
			   uint64_t done, void *buffer)
{
	struct loop_move piece = *m;
	uint8_t status;

	piece.local = buffer;
	piece.offset += done;
	piece.length = m->length - done < STAGE ? m->length - done : STAGE;
	if (m->read) {
		status = move_local(q, &piece);
		if (status)
			return status;
	}
	status = fxi_loop_device_copy(q->transport, m->lindex,
				      m->loffset + done, buffer, piece.length,
				      !m->read);
	if (status)
		return FABREX_WC_LFAULT;
	return m->read ? FABREX_WC_OK : move_local(q, &piece);
}

static uint8_t stage(struct loop_queue *q, const struct loop_move *m)
{
	char buffer[STAGE] __attribute__((aligned(64)));
	uint8_t status = FABREX_WC_OK;
	uint64_t done;

	for (done = 0; !status && done < m->length; done += STAGE)
		status = stage_piece(q, m, done, buffer);
	return status;
}

uint8_t fxi_loop_move(struct loop_queue *q, const struct loop_move *m)
{
	int old = cancel_off();
	uint8_t status;

	if (m->local)
		status = move_local(q, m);
	else
		status = loop_is_atomic(m->opcode) ? stage_atomic(q, *m) :
						     stage(q, m);
	cancel_restore(old);
	return status;
}
