// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The service thread: sleeps until a message arrives, and does what peers need
 * of this process. Started and stopped by port.c.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state.h"

#define BURST		64	/* messages of one connection in a row */
#define REAP_MS		1	/* at first */
#define REAP_MAX_MS	64
#define FULL_MS		100	/* until descriptors or ranges may be free */

/* What is polled: the first two, then peers, then halves. */
struct watch_list {
	struct pollfd fds[2 + SEGMENT_PEERS + LOOP_HALVES];
	uint32_t peers[SEGMENT_PEERS];
	uint32_t npeers, nhalves;
	bool full;		/* no descriptor was left to accept with */
	int timeout;
	int reap_ms;		/* longer as long as nothing happens */
};

/* ---- messages of peers ------------------------------------------------- */

static void give_windows(struct transport *t, uint32_t number, uint64_t key)
{
	fxi_loop_windows_revoke(t, number, key);
	fxi_loop_files_drop(t, number, key);
	fxi_loop_tell(t, number, LOOP_REVOKED, key);
}

static bool handle(struct transport *t, uint32_t number,
		   const struct loop_message *m, int *passed)
{
	switch (m->type) {
	case LOOP_READY:
	case LOOP_UP:
		return fxi_loop_greeted(t, number, m->type);
	case LOOP_WAKE:
		fxi_loop_signal(t, (uint32_t)m->value[0]);
		return true;
	case LOOP_REVOKE:
		give_windows(t, number, m->value[0]);
		return true;
	case LOOP_REVOKED:
		fxi_loop_mr_given(t, number, m->value[0]);
		return true;
	case LOOP_MOVE:
		return fxi_loop_assist(t, number, m);
	case LOOP_FILE:
		fxi_loop_tell(t, number, LOOP_FILE_IS, m->value[0]);
		return true;
	case LOOP_FILE_IS:
		fxi_loop_file_answer(t, number, m, passed);
		return true;
	}
	return false;
}

/* A limited number: other connections and our threads get their turn. */
static void input(struct transport *t, uint32_t number)
{
	struct loop_message m;
	int i, ret, passed;

	for (i = 0; i < BURST; i++) {
		ret = fxi_loop_socket_receive(t->peers[number].sock, &m,
					      &passed);
		/* Without memory nothing was read, and the peer still lives. */
		if (ret == -EAGAIN || ret == -ENOMEM || ret == -ENOBUFS)
			return;
		if (ret == 1 && !handle(t, number, &m, &passed))
			ret = -EPROTO;
		if (passed >= 0)
			close(passed);
		if (ret != 1) {
			fxi_loop_peer_down(t, number);
			return;
		}
	}
}

/* ---- new connections --------------------------------------------------- */

/* A limited number: if we are flooded, other threads still get the lock. */
static void accept_some(struct transport *t, struct watch_list *w)
{
	int fd, ret, i;

	for (i = 0; i < BURST; i++) {
		ret = fxi_loop_accept(t->state->listener, &fd);
		if (!ret) {
			fxi_loop_half_add(t, fd, false, 0);
			continue;
		}
		w->full = ret == -EMFILE || ret == -ENFILE || ret == -ENOMEM ||
			  ret == -ENOBUFS;
		if (w->full || ret == -EAGAIN)
			return;
	}
}

/* Connections that do not complete the handshake. */
static void expire(struct transport *t)
{
	struct loop_state *s = t->state;
	uint64_t now = fxi_now_ns();
	uint32_t i;

	for (i = s->nhalves; i--;)
		if (!s->halves[i].outgoing && !s->halves[i].mapped &&
		    !s->halves[i].waiting && s->halves[i].deadline < now)
			fxi_loop_half_drop(t, i);
}

/* ---- the loop ---------------------------------------------------------- */

static void add(struct watch_list *w, uint32_t *n, int fd, bool wanted)
{
	w->fds[*n].fd = fd;
	w->fds[*n].events = wanted ? POLLIN : 0;
	w->fds[(*n)++].revents = 0;
}

/* When the next of them times out. */
static int silent_until(const struct loop_state *s)
{
	uint64_t first = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < s->nhalves; i++)
		if (!s->halves[i].outgoing && !s->halves[i].mapped &&
		    s->halves[i].deadline < first)
			first = s->halves[i].deadline;
	return fxi_remaining_ms(first);
}

/*
 * Timeouts only for what no descriptor reports: descriptors or memory that
 * become free, threads that finish an access, peers that stay silent.
 */
static void prepare(struct transport *t, struct watch_list *w, uint32_t *n)
{
	struct loop_state *s = t->state;
	bool waiting = false;
	uint32_t i;

	*n = 0;
	w->npeers = 0;
	w->timeout = w->full ? FULL_MS : -1;
	add(w, n, s->kick, true);
	add(w, n, w->full ? -1 : s->listener, true);
	for (i = 0; i < SEGMENT_PEERS; i++) {
		if (s->slots[i].state != SLOT_KNOWN || i == t->number)
			continue;
		w->peers[w->npeers++] = i;
		add(w, n, t->peers[i].sock, true);
		if (loop_outbox_empty(&s->outboxes[i]))
			continue;
		if (s->outboxes[i].full)
			w->fds[*n - 1].events |= POLLOUT;
		else
			w->timeout = FULL_MS;
	}
	for (i = 0; i < s->nhalves; i++) {
		waiting |= s->halves[i].waiting;
		/* A mapped one is among the peers. */
		add(w, n, s->halves[i].waiting || s->halves[i].mapped ?
			  -1 : s->halves[i].fd, true);
	}
	w->nhalves = s->nhalves;
	if (w->timeout < 0)
		w->timeout = silent_until(s);
	if (s->quarantine)
		w->timeout = FULL_MS;
	if (fxi_loop_reap(t) | fxi_loop_files_reap(t) | waiting)
		w->timeout = w->reap_ms;
}

static void halves_input(struct transport *t, const struct watch_list *w)
{
	const struct pollfd *p = &w->fds[2 + w->npeers];
	struct loop_state *s = t->state;
	uint32_t i, k;

	/* The list changes meanwhile: find each by its descriptor. */
	for (i = 0; i < w->nhalves; i++) {
		if (p[i].fd < 0 || !p[i].revents)
			continue;
		for (k = 0; k < s->nhalves && s->halves[k].fd != p[i].fd; k++)
			;
		if (k < s->nhalves && !s->halves[k].mapped)
			fxi_loop_half_input(t, k);
	}
}

static void waiting_again(struct loop_state *s)
{
	uint32_t i;

	for (i = 0; i < s->nhalves; i++)
		s->halves[i].waiting = false;
}

/* Messages that found no room before. */
static void send_kept(struct transport *t, const struct watch_list *w)
{
	const struct loop_outbox *box;
	uint32_t i;

	for (i = 0; i < w->npeers; i++) {
		box = &t->state->outboxes[w->peers[i]];
		if (!loop_outbox_empty(box) &&
		    (!box->full || w->fds[2 + i].revents & POLLOUT))
			fxi_loop_outbox_flush(t, w->peers[i]);
	}
}

static void serve(struct transport *t, struct watch_list *w)
{
	struct loop_state *s = t->state;
	uint64_t count;
	uint32_t i;

	if (w->fds[0].revents && read(s->kick, &count, sizeof(count)) < 0)
		return;		/* somebody else's signal */
	waiting_again(s);
	if (w->full || w->fds[1].revents)
		accept_some(t, w);
	for (i = 0; i < w->npeers; i++)
		if (w->fds[2 + i].revents &&
		    s->slots[w->peers[i]].state == SLOT_KNOWN &&
		    t->peers[w->peers[i]].sock == w->fds[2 + i].fd)
			input(t, w->peers[i]);
	send_kept(t, w);
	halves_input(t, w);
	expire(t);
}

/*
 * Peers that read this process's memory see in the segment whether it still is this
 * process (get_robust_list(2)). No lock is ever taken: the kernel only needs this
 * thread's number in the word. The C library has a list for its own robust
 * mutexes, of which this thread never takes one.
 */
static void hold_living(struct transport *t)
{
	struct loop_state *s = t->state;
	uint32_t *word = &t->segment->living;

	s->robust.list.next = &s->robust_entry;
	s->robust_entry.next = &s->robust.list;
	s->robust.futex_offset = (char *)word - (char *)&s->robust_entry;
	if (syscall(SYS_set_robust_list, &s->robust, sizeof(s->robust)))
		return;
	__atomic_store_n(word, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

static void *service(void *arg)
{
	struct transport *t = arg;
	struct watch_list w = { .timeout = -1, .reap_ms = REAP_MS };
	bool told;
	uint32_t n;

	hold_living(t);
	pthread_mutex_lock(&t->lock);
	while (!t->state->stopping) {
		prepare(t, &w, &n);
		pthread_mutex_unlock(&t->lock);
		told = poll(w.fds, n, w.timeout);
		w.reap_ms = told ? REAP_MS :
			    w.reap_ms < REAP_MAX_MS ? 2 * w.reap_ms :
						      REAP_MAX_MS;
		pthread_mutex_lock(&t->lock);
		t->state->untold += !told;
		serve(t, &w);
		pthread_mutex_unlock(&t->lock);
		fxi_loop_quarantine_sweep(t);
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

void fxi_loop_service_kick(struct transport *t)
{
	uint64_t one = 1;

	if (write(t->state->kick, &one, sizeof(one)) < 0)
		return;		/* it polls readable already */
}

/*
 * Not with the priority or on the processor of the thread that opens the port,
 * which may poll there all the time, while peers wait for this thread.
 */
static int thread_create(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	const struct sched_param param = { .sched_priority = 0 };
	pthread_attr_t attr;
	cpu_set_t set;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &param);
	if (!sched_getaffinity(getpid(), sizeof(set), &set))
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	ret = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	/* If that is not permitted, it inherits those of its creator. */
	return ret && ret != EAGAIN ? pthread_create(thread, NULL, run, arg) :
				      ret;
}

int fxi_loop_thread(pthread_t *thread, void *(*run)(void *arg),
		    struct transport *t, const char *name)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = thread_create(thread, run, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		pthread_setname_np(*thread, name);
	return ret;
}

int fxi_loop_service_start(struct transport *t)
{
	struct loop_state *s = t->state;
	int ret;

	s->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->kick < 0)
		return fxi_error(errno, "loopback:%s: cannot create an eventfd: %s; see ulimit -n",
				 t->fabric, fxi_errno_str(errno));
	ret = fxi_loop_thread(&s->thread, service, t, "fabrex");
	if (ret)
		return fxi_error(ret, "loopback:%s: cannot create the service thread: %s; see ulimit -u",
				 t->fabric, fxi_errno_str(ret));
	s->running = true;
	return 0;
}

void fxi_loop_service_stop(struct transport *t)
{
	struct loop_state *s = t->state;

	if (!s->running)
		return;
	pthread_mutex_lock(&t->lock);
	s->stopping = true;
	pthread_mutex_unlock(&t->lock);
	fxi_loop_service_kick(t);
	pthread_join(s->thread, NULL);
	s->running = false;
}
