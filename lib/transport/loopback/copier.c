// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The copier: the thread that copies device memory, by the runtime, and files
 * for peers. That may take long, so it is done without the lock and not by the
 * service thread. Started by region.c with the first such region, stopped by
 * port.c.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state.h"

#define MOST	4096u		/* requests that wait; peers have a few each */

void fxi_loop_piece_done(struct segment_piece *piece, uint8_t status)
{
	piece->status = status;
	__atomic_store_n(&piece->state, SEGMENT_PIECE_DONE, __ATOMIC_RELEASE);
	syscall(SYS_futex, &piece->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- what waits; lock held --------------------------------------------- */

bool fxi_loop_copier_add(struct transport *t, const struct loop_copy *what)
{
	struct loop_copier *c = &t->state->copier;
	struct loop_copy *copy;

	if (!c->running || c->count >= MOST)
		return false;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return false;
	*copy = *what;
	copy->next = NULL;
	*c->last = copy;
	c->last = &copy->next;
	c->count++;
	pthread_cond_signal(&c->wake);
	return true;
}

static struct loop_copy *unlink_copy(struct loop_copier *c,
				     struct loop_copy **link)
{
	struct loop_copy *copy = *link;

	*link = copy->next;
	if (!copy->next)
		c->last = link;
	c->count--;
	return copy;
}

/* The peer's segment stays mapped as long as a request waits. */
static void refuse(struct loop_copy *copy, uint8_t status)
{
	if (segment_piece_take(copy->piece, copy->serial, SEGMENT_PIECE_BUSY))
		fxi_loop_piece_done(copy->piece, status);
	free(copy);
}

void fxi_loop_copier_cancel(struct transport *t, uint32_t index)
{
	struct loop_copier *c = &t->state->copier;
	struct loop_copy **link = &c->first;

	while (*link)
		if ((*link)->index == index)
			refuse(unlink_copy(c, link), FABREX_WC_RKEY);
		else
			link = &(*link)->next;
}

void fxi_loop_copier_forget(struct transport *t, uint32_t number)
{
	struct loop_copier *c = &t->state->copier;
	struct loop_copy **link = &c->first;

	while (*link)
		if ((*link)->number == number)
			free(unlink_copy(c, link));
		else
			link = &(*link)->next;
}

bool fxi_loop_copier_serves(const struct transport *t, uint32_t number)
{
	const struct loop_copy *now = t->state->copier.now;

	return now && now->number == number;
}

bool fxi_loop_copier_await(struct transport *t, uint32_t index,
			   const struct timespec *until)
{
	const struct loop_copier *c = &t->state->copier;
	int ret = 0;

	while (c->now && c->now->index == index && !ret)
		ret = pthread_cond_timedwait(&t->state->changed, &t->lock,
					     until);
	return !(c->now && c->now->index == index);
}

/* ---- the thread -------------------------------------------------------- */

/* Meanwhile the region and the peer's segment stay: others check now. */
static void perform(struct transport *t, struct loop_copy *copy)
{
	struct loop_copier *c = &t->state->copier;
	uint8_t status;

	if (!segment_piece_take(copy->piece, copy->serial, SEGMENT_PIECE_BUSY))
		return;			/* taken back */
	c->now = copy;
	pthread_mutex_unlock(&t->lock);
	status = fxi_loop_device_copy(t, copy->index, copy->offset,
				      copy->piece + 1, copy->length,
				      copy->read);
	fxi_loop_piece_done(copy->piece, status);
	pthread_mutex_lock(&t->lock);
	c->now = NULL;
	pthread_cond_broadcast(&t->state->changed);
	if (t->state->slots[copy->number].state == SLOT_RETIRING)
		fxi_loop_service_kick(t);
}

static void *run(void *arg)
{
	struct transport *t = arg;
	struct loop_copier *c = &t->state->copier;
	struct loop_copy *copy;

	pthread_mutex_lock(&t->lock);
	while (!c->stopping) {
		if (!c->first) {
			pthread_cond_wait(&c->wake, &t->lock);
			continue;
		}
		copy = unlink_copy(c, &c->first);
		perform(t, copy);
		free(copy);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

int fxi_loop_copier_start(struct transport *t)
{
	struct loop_copier *c = &t->state->copier;
	int ret = 0;

	pthread_mutex_lock(&t->lock);
	if (!c->running) {
		c->last = &c->first;
		pthread_cond_init(&c->wake, NULL);
		ret = fxi_loop_thread(&c->thread, run, t, "fabrex-copy");
		c->running = !ret;
	}
	pthread_mutex_unlock(&t->lock);
	if (ret)
		return fxi_error(ret, "loopback:%s: cannot create the thread that copies device memory and files: %s; see ulimit -u",
				 t->fabric, fxi_errno_str(ret));
	return 0;
}

/* When no request can be added any more. Waits for the current copy. */
void fxi_loop_copier_stop(struct transport *t)
{
	struct loop_copier *c = &t->state->copier;

	if (!c->running)
		return;
	pthread_mutex_lock(&t->lock);
	c->stopping = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(c->thread, NULL);
	c->running = false;
	pthread_cond_destroy(&c->wake);
	fxi_loop_copier_free(t);
}

void fxi_loop_copier_free(struct transport *t)
{
	struct loop_copier *c = &t->state->copier;

	while (c->first)
		free(unlink_copy(c, &c->first));
}
