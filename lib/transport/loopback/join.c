// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How ports join a fabric and leave it: the handshake, its checks, the peer's
 * segment, and the end of both. Called by port.c (before the service thread
 * runs) and service.c. The handshake has four messages: docs/loopback.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/debug.h"
#include "state.h"

#define GREET_MS	10000	/* for a new connection to send HELLO */

/* ---- half-open connections --------------------------------------------- */

/* Not shorter than fabrex_open() is told to wait for the answer. */
static uint64_t greet_deadline(const struct loop_state *s)
{
	uint32_t join = s->settings.join_ms;

	return fxi_deadline((int)(join > GREET_MS ? join : GREET_MS));
}

void fxi_loop_half_add(struct transport *t, int fd, bool outgoing,
		       uint32_t number)
{
	struct loop_state *s = t->state;
	struct loop_half *h;

	if (s->nhalves == LOOP_HALVES) {
		close(fd);
		return;
	}
	h = &s->halves[s->nhalves++];
	*h = (struct loop_half){
		.fd = fd, .outgoing = outgoing, .number = number,
		.deadline = greet_deadline(s),
	};
}

static void half_remove(struct transport *t, uint32_t index)
{
	struct loop_state *s = t->state;

	s->halves[index] = s->halves[--s->nhalves];
	pthread_cond_broadcast(&s->changed);
}

void fxi_loop_half_drop(struct transport *t, uint32_t index)
{
	close(t->state->halves[index].fd);
	half_remove(t, index);
}

/* Our connection to a peer that has connected to us as well. */
static void drop_outgoing(struct transport *t, uint32_t number)
{
	struct loop_state *s = t->state;
	uint32_t i;

	for (i = s->nhalves; i--;)
		if (s->halves[i].outgoing && !s->halves[i].mapped &&
		    s->halves[i].number == number)
			fxi_loop_half_drop(t, i);
}

static bool is_outgoing(const struct loop_state *s, uint32_t number)
{
	uint32_t i;

	for (i = 0; i < s->nhalves; i++)
		if (s->halves[i].outgoing && !s->halves[i].mapped &&
		    s->halves[i].number == number)
			return true;
	return false;
}

/* ---- the greeting ------------------------------------------------------ */

static void hello(struct transport *t, struct loop_message *m)
{
	memset(m, 0, sizeof(*m));
	m->type = LOOP_HELLO;
	m->number = t->number;
	m->generation = t->segment->generation;
	m->version = SEGMENT_VERSION;
	m->size = t->size;
	m->value[0] = (uintptr_t)&t->segment->generation;
	memcpy(m->name, t->name, sizeof(m->name));
	memcpy(m->host, t->state->host, sizeof(m->host));
}

static int say(struct loop_half *h, enum loop_message_type type, int err)
{
	struct loop_message m = { .type = type, .value = { (uint64_t)err } };

	return fxi_loop_socket_send(h->fd, &m, -1);
}

/* -ENOENT without a message: no port has that number. */
static int join_one(struct transport *t, uint32_t number,
		    const struct loop_message *m)
{
	int fd, ret;

	pthread_mutex_lock(&t->lock);
	ret = fxi_loop_connect(t, number, &fd);
	if (!ret && fxi_loop_socket_send(fd, m, t->fd))
		close(fd);
	else if (!ret)
		fxi_loop_half_add(t, fd, true, number);
	pthread_mutex_unlock(&t->lock);
	return ret;
}

/* Its backlog is accepted soon, unless its process is stopped. */
static int join_patiently(struct transport *t, uint32_t number,
			  const struct loop_message *m, uint64_t end)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	int ret;

	while ((ret = join_one(t, number, m)) == -EAGAIN &&
	       fxi_now_ns() < end)
		nanosleep(&nap, NULL);
	if (ret != -EAGAIN)
		return ret;
	return fxi_error(ETIMEDOUT, "loopback:%s: port %u accepts no connections, too many wait for it already: it is stopped, or flooded; continue or end its process, or use another fabric",
			 t->fabric, number);
}

int fxi_loop_join_start(struct transport *t)
{
	uint64_t end = fxi_now_ns() +
		       t->state->settings.join_ms * 1000000ull;
	struct loop_message m;
	uint32_t i;
	int ret = 0;

	hello(t, &m);
	for (i = 0; i < SEGMENT_PEERS && (!ret || ret == -ENOENT); i++)
		ret = i == t->number ? 0 : join_patiently(t, i, &m, end);
	return ret == -ENOENT ? 0 : ret;
}

static const char *remedy_of(int refused)
{
	switch (refused) {
	case EMFILE:
		return "raise its limit of open files (ulimit -n)";
	case ENOMEM:
		return "raise the limit of its address space (ulimit -v) or of its mappings (vm.max_map_count), or set FABREX_LOOPBACK_SIZE for all";
	case EPROTO:
		return "use the same version of libfabrex for all";
	}
	return "end its process, or use another fabric";
}

static int refused(struct transport *t)
{
	struct loop_state *s = t->state;

	return fxi_error(s->refused, "loopback:%s: port %u cannot take another peer: %s; %s",
			 t->fabric, s->refused_by, fxi_errno_str(s->refused),
			 remedy_of(s->refused));
}

/* A peer that does not answer in time (it is stopped) comes up when it does. */
int fxi_loop_join_wait(struct transport *t)
{
	struct loop_state *s = t->state;
	uint64_t end = fxi_now_ns() + s->settings.join_ms * 1000000ull;
	struct timespec ts = {
		.tv_sec = (time_t)(end / 1000000000u),
		.tv_nsec = (long)(end % 1000000000u),
	};
	int ret = 0, old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_mutex_lock(&t->lock);
	while (s->nhalves && !s->refused && !ret)
		ret = pthread_cond_timedwait(&s->changed, &t->lock, &ts);
	fxi_loop_events_clear(t);
	ret = s->refused ? refused(t) : 0;
	pthread_mutex_unlock(&t->lock);
	pthread_setcancelstate(old, NULL);
	return ret;
}

/* ---- what is believed of it -------------------------------------------- */

static bool well_formed(const struct transport *t, const struct loop_half *h,
			const struct loop_message *m)
{
	return m->type == LOOP_HELLO && m->version == SEGMENT_VERSION &&
	       m->number < SEGMENT_PEERS && m->number != t->number &&
	       (!h->outgoing || m->number == h->number) && m->generation &&
	       m->size >= sizeof(struct segment) && m->size <= SIZE_MAX / 4 &&
	       !(m->size % LOOP_HUGE) &&
	       memchr(m->name, 0, sizeof(m->name)) &&
	       memchr(m->host, 0, sizeof(m->host));
}

/* A memory file of that size that cannot shrink. */
static bool is_segment(int fd, uint64_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &st) &&
	       (uint64_t)st.st_size >= size;
}

/* Does reading its memory (CMA) return what the segment has? */
static bool probe_cma(struct transport *t, pid_t pid,
		      const struct loop_message *m)
{
	uint32_t value = 0;
	struct iovec local = { &value, sizeof(value) };
	struct iovec remote = {
		(void *)(uintptr_t)m->value[0], sizeof(value),
	};

	return t->state->settings.cma && pid > 0 &&
	       process_vm_readv(pid, &local, 1, &remote, 1, 0) ==
	       sizeof(value) && value == m->generation;
}

static void say_peer(const struct transport *t, const struct loop_peer *p)
{
	fxi_debug_line(FXI_DEBUG_PATH, FXI_DEBUG_NO_RANK,
		       "loopback peer \"%s\" (process %d): memory of fabrex_mr_alloc() is mapped; %s",
		       p->name, (int)p->pid,
		       p->cma ? "other host memory: copied by the kernel (cross-memory attach)" :
		       t->state->settings.cma ?
		       "other host memory: through bounce buffers, as the system does not allow process_vm_readv()" :
		       "other host memory: through bounce buffers, as FABREX_LOOPBACK_CMA is 0");
}

static int peer_map(struct transport *t, const struct loop_half *h,
		    const struct loop_message *m, int *passed)
{
	int fd = *passed;
	struct loop_peer *p = &t->peers[m->number];
	struct segment *segment;

	if (fd < 0)
		return -EMFILE;
	if (!is_segment(fd, m->size))
		return -EPROTO;
	segment = fxi_loop_map(fd, m->size);
	if (!segment)
		return -errno;
	if (segment->magic != SEGMENT_MAGIC ||
	    segment->version != SEGMENT_VERSION ||
	    segment->generation != m->generation) {
		munmap(segment, m->size);
		return -EPROTO;
	}
	p->segment = segment;
	p->size = m->size;
	p->generation = m->generation;
	p->pid = fxi_loop_pid_of(h->fd);
	p->cma = probe_cma(t, p->pid, m);
	p->fence = !t->state->barrier || !segment->nofence;
	p->sock = h->fd;
	p->fd = fd;
	*passed = -1;
	memcpy(p->name, m->name, sizeof(p->name));
	memcpy(p->host, m->host, sizeof(p->host));
	if (fxi_debugs(FXI_DEBUG_PATH))
		say_peer(t, p);
	t->state->slots[m->number].state = SLOT_KNOWN;
	t->state->slots[m->number].seen = true;
	return 0;
}

static void peer_up(struct transport *t, uint32_t number)
{
	__atomic_store_n(&t->peers[number].up, true, __ATOMIC_RELEASE);
	fxi_loop_event(t, FABREX_EV_PEER_UP, number, 0);
}

/* ---- steps ------------------------------------------------------------- */

/* The joiner has mapped our segment, we have its: up here; tell it. */
static int accept_hello(struct transport *t, struct loop_half *h,
			const struct loop_message *m)
{
	struct loop_message answer;

	hello(t, &answer);
	h->mapped = true;
	h->number = m->number;
	return fxi_loop_socket_send(h->fd, &answer, t->fd);
}

/* Our handshakes were answered. */
static int answered_hello(struct transport *t, struct loop_half *h)
{
	h->mapped = true;
	return say(h, LOOP_READY, 0) ? -EPIPE : (peer_up(t, h->number), 0);
}

static void half_fail(struct transport *t, uint32_t index, int err)
{
	struct loop_half *h = &t->state->halves[index];

	if (h->mapped) {
		fxi_loop_peer_down(t, h->number); /* with the half-open one */
		return;
	}
	if (err)
		say(h, LOOP_REFUSE, err);
	fxi_loop_half_drop(t, index);
}

static void input_hello(struct transport *t, uint32_t index,
			const struct loop_message *m, int *passed)
{
	struct loop_half *h = &t->state->halves[index];
	int ret, fd = h->fd;

	if (!well_formed(t, h, m)) {
		half_fail(t, index, EPROTO);
		return;
	}
	if (t->state->slots[m->number].state != SLOT_EMPTY) {
		half_fail(t, index, 0); /* the other connection has won */
		return;
	}
	if (!h->outgoing)
		drop_outgoing(t, m->number);
	/* The list may have moved. */
	for (index = 0; t->state->halves[index].fd != fd; index++)
		;
	h = &t->state->halves[index];
	ret = peer_map(t, h, m, passed);
	if (ret) {
		half_fail(t, index, -ret);
		return;
	}
	ret = h->outgoing ? answered_hello(t, h) : accept_hello(t, h, m);
	if (ret)
		half_fail(t, index, 0);
}

static void input_refuse(struct transport *t, uint32_t index,
			 const struct loop_message *m)
{
	struct loop_state *s = t->state;

	if (s->halves[index].outgoing && m->value[0] > 0 &&
	    m->value[0] < 4096) {
		s->refused = (int)m->value[0];
		s->refused_by = s->halves[index].number;
	}
	half_fail(t, index, 0);
}

static void input(struct transport *t, uint32_t index,
		  const struct loop_message *m, int *passed)
{
	if (m->type == LOOP_REFUSE)
		input_refuse(t, index, m);
	else
		input_hello(t, index, m, passed);
}

/* The last two messages come over a connection that may be in use already. */
bool fxi_loop_greeted(struct transport *t, uint32_t number, uint32_t type)
{
	struct loop_state *s = t->state;
	struct loop_half *h;
	uint32_t i;

	for (i = 0; i < s->nhalves; i++)
		if (s->halves[i].mapped && s->halves[i].number == number)
			break;
	if (i == s->nhalves)
		return false;
	h = &s->halves[i];
	if (type != (h->outgoing ? LOOP_UP : LOOP_READY))
		return false;
	if (!h->outgoing) {
		peer_up(t, number);
		if (say(h, LOOP_UP, 0))
			return false;
	}
	half_remove(t, i);
	return true;
}

static bool socket_ended(int sock)
{
	struct pollfd pfd = { .fd = sock, .events = POLLRDHUP };

	return poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLRDHUP | POLLHUP);
}

/*
 * A number has a new owner: the old one is gone, and its end will be noticed.
 * As long as threads of ours may access its memory, the new one waits. It also
 * waits if the old one lives: a claim to its number is not believed.
 */
static bool old_one_stays(struct transport *t, const struct loop_message *m)
{
	struct loop_slot *slot = &t->state->slots[m->number];
	const struct loop_peer *p = &t->peers[m->number];

	if (slot->state == SLOT_KNOWN && p->generation != m->generation) {
		if (!socket_ended(p->sock))
			return true;
		fxi_loop_peer_down(t, m->number);
	}
	return slot->state == SLOT_RETIRING;
}

/*
 * Both may have connected to each other: the connection that the higher number
 * made stays. If that is ours, we wait for what becomes of it: the port that we
 * have connected to may be gone, and this be another one with its number.
 */
static bool must_wait(struct transport *t, const struct loop_half *h)
{
	struct loop_message m;

	if (h->mapped ||
	    recv(h->fd, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT) != sizeof(m) ||
	    !well_formed(t, h, &m))
		return false;
	return old_one_stays(t, &m) ||
	       (!h->outgoing && m.number < t->number &&
		is_outgoing(t->state, m.number));
}

void fxi_loop_half_input(struct transport *t, uint32_t index)
{
	struct loop_half *h = &t->state->halves[index];
	struct loop_message m;
	int ret, passed, fd = h->fd;

	h->waiting = must_wait(t, h);
	/* Half-open ones of the old owner may have gone; the list moved. */
	for (index = 0; t->state->halves[index].fd != fd; index++)
		;
	h = &t->state->halves[index];
	if (h->waiting) {
		/* It has sent HELLO; the next message is ours. */
		h->deadline = greet_deadline(t->state);
		return;
	}
	ret = fxi_loop_socket_receive(h->fd, &m, &passed);
	if (ret == -EAGAIN)
		return;
	if (ret != 1)
		half_fail(t, index, ret ? EPROTO : 0);
	else
		input(t, index, &m, &passed);
	if (passed >= 0)
		close(passed);
}

/* ---- the end ----------------------------------------------------------- */

static void drop_mapped(struct transport *t, uint32_t number)
{
	struct loop_state *s = t->state;
	uint32_t i;

	for (i = s->nhalves; i--;)
		if (s->halves[i].mapped && s->halves[i].number == number)
			half_remove(t, i);
}

static void retire_end(struct transport *t, uint32_t number)
{
	struct loop_slot *slot = &t->state->slots[number];
	struct loop_peer *p = &t->peers[number];

	munmap(p->segment, p->size);
	close(p->sock);
	close(p->fd);
	p->segment = NULL;
	p->sock = p->fd = -1;
	slot->state = SLOT_EMPTY;
}

/*
 * The connection carries nothing any more, but its descriptor stays open: a
 * thread that posts may be about to use it.
 */
void fxi_loop_peer_down(struct transport *t, uint32_t number)
{
	struct loop_slot *slot = &t->state->slots[number];
	struct loop_peer *p = &t->peers[number];
	bool was_up = p->up;

	__atomic_store_n(&p->up, false, __ATOMIC_SEQ_CST);
	shutdown(p->sock, SHUT_RDWR);
	slot->state = SLOT_RETIRING;
	drop_mapped(t, number);
	fxi_loop_grace_begin(t, &slot->grace);
	fxi_loop_copier_forget(t, number);
	fxi_loop_files_drop(t, number, 0);
	fxi_loop_peer_died(t, number, p->generation);
	fxi_loop_windows_orphan(t, number);
	if (was_up)
		fxi_loop_event(t, FABREX_EV_PEER_DOWN, number, 0);
	pthread_cond_broadcast(&t->state->changed);
	fxi_loop_reap(t);
}

bool fxi_loop_reap(struct transport *t)
{
	bool left = false;
	uint32_t i;

	for (i = 0; i < SEGMENT_PEERS; i++) {
		if (t->state->slots[i].state != SLOT_RETIRING)
			continue;
		if (!fxi_loop_copier_serves(t, i) &&
		    fxi_loop_grace_over(t, &t->state->slots[i].grace))
			retire_end(t, i);
		else
			left = true;
	}
	return left;
}

/*
 * All that are left when the port ends; no thread of ours accesses them any
 * more. Lock held.
 */
void fxi_loop_peers_unmap(struct transport *t, bool unmap)
{
	struct loop_state *s = t->state;
	uint32_t i;

	while (s->nhalves) {
		s->nhalves--;
		if (!s->halves[s->nhalves].mapped)
			close(s->halves[s->nhalves].fd);
	}
	for (i = 0; i < SEGMENT_PEERS; i++) {
		if (s->slots[i].state == SLOT_EMPTY || i == t->number)
			continue;
		if (unmap)
			munmap(t->peers[i].segment, t->peers[i].size);
		/* Even if a child has it, created without atfork handlers. */
		shutdown(t->peers[i].sock, SHUT_RDWR);
		close(t->peers[i].sock);
		close(t->peers[i].fd);
		t->peers[i].sock = t->peers[i].fd = -1;
		free(s->slots[i].grace.actives);
		s->slots[i].grace.actives = NULL;
	}
}
