// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the service thread copies for peers: a piece of one of our regions, to
 * or from their segment. Called by service.c with the lock held, so that no
 * region ends meanwhile. What might take long is left to copier.c.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "operation.h"
#include "state.h"

struct job {
	struct transport *t;
	uint32_t number;	/* who asks */
	uint32_t index;		/* of our region */
	uint8_t opcode;
	uint64_t offset, length;
	uint64_t operand, compare;
	struct segment_piece *piece;
	uint64_t place;		/* of its bytes in the peer's file */
};

static uint8_t check(const struct job *j, uint64_t key)
{
	uint32_t right = loop_right_needed(j->opcode);
	struct segment_mr mr;

	if (j->t->segment->mrs[j->index].key != key ||
	    !fxi_loop_region_entry(j->t, key, &mr))
		return FABREX_WC_RKEY;
	if (!right)
		return FABREX_WC_BAD_OPCODE;
	if (j->offset > mr.length || j->length > mr.length - j->offset)
		return FABREX_WC_RBOUNDS;
	if (!(mr.access & right))
		return FABREX_WC_RACCESS;
	if (!(mr.peers[j->number / 64] >> j->number % 64 & 1))
		return FABREX_WC_RPEER;
	return FABREX_WC_OK;
}

/*
 * Through the peer's file: if our memory is no longer mapped, the system call
 * fails, where a copy would end this process with a signal.
 */
static uint8_t copy_process(const struct job *j, char *at)
{
	int fd = j->t->peers[j->number].fd;
	uint64_t done = 0;
	ssize_t n;

	while (done < j->length) {
		n = j->opcode == FABREX_OP_READ ?
		    pwrite(fd, at + done, j->length - done,
			   (off_t)(j->place + done)) :
		    pread(fd, at + done, j->length - done,
			  (off_t)(j->place + done));
		if (n > 0)
			done += (uint64_t)n;
		else if (!n || errno != EINTR)
			return FABREX_WC_RFAULT;
	}
	return FABREX_WC_OK;
}

/* Is the page mapped, and writable? Kernels before 5.14 cannot tell. */
static bool writable(const char *at)
{
	uintptr_t page = (uintptr_t)at & ~((uintptr_t)sysconf(_SC_PAGESIZE) -
					   1);

	return !madvise((void *)page, 8, MADV_POPULATE_WRITE) ||
	       errno == EINVAL;
}

static uint8_t run_atomic(const struct job *j, char *at)
{
	if ((uintptr_t)at & 7 || j->length != 8)
		return FABREX_WC_BAD_DESC;
	if (!writable(at))
		return FABREX_WC_RFAULT;
	j->piece->result = loop_atomic(j->opcode, (uint64_t *)(void *)at,
				       j->operand, j->compare);
	return FABREX_WC_OK;
}

/* A region without an address is left to the copier, and has no atomics. */
static uint8_t perform(const struct job *j)
{
	char *base = j->t->locals[j->index];

	if (loop_is_atomic(j->opcode))
		return base ? run_atomic(j, base + j->offset) :
			      FABREX_WC_BAD_OPCODE;
	return base ? copy_process(j, base + j->offset) : FABREX_WC_RFAULT;
}

/* False: the service thread does it, or there is no room for it. */
static bool hand_over(const struct job *j, uint32_t serial)
{
	const struct loop_copy copy = {
		.number = j->number, .index = j->index, .serial = serial,
		.offset = j->offset, .length = j->length, .piece = j->piece,
		.read = j->opcode == FABREX_OP_READ,
	};

	return !j->t->locals[j->index] && !loop_is_atomic(j->opcode) &&
	       fxi_loop_copier_add(j->t, &copy);
}

static bool piece_inside(const struct loop_peer *p, uint64_t place,
			 uint64_t length)
{
	return !(place % 64) && place <= p->size &&
	       length <= LOOP_PIECE &&
	       sizeof(struct segment_piece) + length <= p->size - place;
}

bool fxi_loop_assist(struct transport *t, uint32_t number,
		     const struct loop_message *m)
{
	const struct loop_peer *p = &t->peers[number];
	uint32_t serial = (uint32_t)m->value[REQUEST_SERIAL];
	uint64_t place = m->value[REQUEST_PIECE];
	uint8_t status;
	struct job j = {
		.t = t, .number = number,
		.index = m->value[REQUEST_KEY] & (SEGMENT_MRS - 1),
		.opcode = (uint8_t)m->value[REQUEST_OPCODE],
		.offset = m->value[REQUEST_OFFSET],
		.length = m->value[REQUEST_LENGTH],
		.operand = m->value[REQUEST_OPERAND],
		.compare = m->value[REQUEST_COMPARE],
	};

	if (!piece_inside(p, place, j.length))
		return false;
	j.piece = (struct segment_piece *)((char *)p->segment + place);
	j.place = place + sizeof(struct segment_piece);
	status = check(&j, m->value[REQUEST_KEY]);
	if (!status && hand_over(&j, serial))
		return true;
	if (segment_piece_take(j.piece, serial, SEGMENT_PIECE_BUSY))
		fxi_loop_piece_done(j.piece, status ? status : perform(&j));
	return true;
}
