// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: firmware that answers a partition's commands wrongly, or not at
 * all, and copies of its DMA engine that fail or get lost. Armed by commands.c, taken
 * by pfx_mrpc.c and pfx_dma.c; a function's reset forgets them.
 */
#include <errno.h>
#include <string.h>

#include "pfx.h"

unsigned int pfx_fault_kind(const char *name)
{
	static const char *const names[PFX_FAULT_KINDS] = {
		[PFX_FAULT_HANG] = "admin-hang",
		[PFX_FAULT_ONES] = "corrupt-completion",
		[PFX_FAULT_SHORT] = "short-answer",
		[PFX_FAULT_BYTE] = "wrong-answer",
		[PFX_FAULT_RETURN] = "wrong-return",
		[PFX_FAULT_LOST] = "lost-store",
		[PFX_FAULT_ERROR] = "failed-copy",
	};

	for (unsigned int k = 1; k < PFX_FAULT_KINDS; k++) {
		if (!strcmp(names[k], name))
			return k;
	}
	return 0;
}

static struct pfx_fault *free_place(struct pfx_mrpc *m)
{
	for (unsigned int i = 0; i < PFX_FAULTS; i++) {
		if (!m->fault[i].left)
			return &m->fault[i];
	}
	return NULL;
}

static void disarm(struct pfx_mrpc *m, unsigned int kind)
{
	for (unsigned int i = 0; i < PFX_FAULTS; i++) {
		if (m->fault[i].kind == kind)
			m->fault[i].left = 0;
	}
}

int pfx_fault_arm(struct pfx_part *p, const struct pfx_fault *f,
		  uint32_t *taken)
{
	struct pfx_fault *place;
	int err = 0;

	pthread_mutex_lock(&p->pfx->lock);
	place = free_place(&p->mrpc);
	if (!f->left)
		disarm(&p->mrpc, f->kind);
	else if (place)
		*place = *f;
	else
		err = -ENOSPC;
	*taken = p->faults_taken[f->kind];
	pthread_mutex_unlock(&p->pfx->lock);
	return err;
}

static bool of_dma(const struct pfx_fault *f)
{
	return f->kind == PFX_FAULT_LOST || f->kind == PFX_FAULT_ERROR;
}

/* Is this command to meet that fault? Counts it if so. */
static bool take(struct pfx_part *p, struct pfx_fault *f, uint32_t cmd)
{
	if (!f->left || (f->opcode != PFX_FAULT_ANY && f->opcode != cmd) ||
	    (f->sub != PFX_FAULT_ANY && f->sub != p->mrpc.input[0]))
		return false;
	f->left--;
	p->faults_taken[f->kind]++;
	return true;
}

const struct pfx_fault *pfx_fault_before(struct pfx_part *p, uint32_t cmd)
{
	for (unsigned int i = 0; i < PFX_FAULTS; i++) {
		struct pfx_fault *f = &p->mrpc.fault[i];

		if ((f->kind == PFX_FAULT_HANG || f->kind == PFX_FAULT_RETURN) &&
		    take(p, f, cmd))
			return f;
	}
	return NULL;
}

void pfx_fault_answer(struct pfx_part *p, uint32_t cmd)
{
	struct pfx_mrpc *m = &p->mrpc;

	for (unsigned int i = 0; i < PFX_FAULTS; i++) {
		struct pfx_fault *f = &m->fault[i];

		if (f->kind == PFX_FAULT_HANG || f->kind == PFX_FAULT_RETURN ||
		    of_dma(f) || !take(p, f, cmd))
			continue;
		if (f->kind == PFX_FAULT_ONES)
			memset(m->output, 0xff, sizeof(m->output));
		else if (f->kind == PFX_FAULT_SHORT)
			memset(m->output + f->at, 0, sizeof(m->output) - f->at);
		else
			m->output[f->at] = (uint8_t)f->value;
	}
}

bool pfx_fault_dma(struct pfx_part *p, enum pfx_fault_kind kind)
{
	bool taken = false;

	pthread_mutex_lock(&p->pfx->lock);
	for (unsigned int i = 0; i < PFX_FAULTS && !taken; i++) {
		struct pfx_fault *f = &p->mrpc.fault[i];

		if (f->kind != kind || !f->left)
			continue;
		f->left--;
		p->faults_taken[kind]++;
		taken = true;
	}
	pthread_mutex_unlock(&p->pfx->lock);
	return taken;
}
