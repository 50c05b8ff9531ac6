// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A port of a loopback fabric: open, close, limits, peers, and the child of a
 * fork. Called through the table of operations at the end. Design:
 * docs/loopback.md.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "state.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" \
		   "0123456789._-"

/* ---- names ------------------------------------------------------------- */

static int bad_name(const char *what, const char *name)
{
	return fxi_error(EINVAL, "loopback: \"%s\" cannot be the name of a %s: 1 to 31 letters, digits, '.', '_' and '-'",
			 name, what);
}

static int take_name(const char *what, const char *from, size_t length,
		     char to[32])
{
	if (!length || length > 31 || strspn(from, NAME_CHARS) < length)
		return bad_name(what, from);
	memcpy(to, from, length);
	to[length] = 0;
	return 0;
}

/* Numbers are names that all ports have: "7" is port 7. */
static int take_port_name(struct transport *t, const char *name)
{
	if (name[strspn(name, "0123456789")])
		return take_name("port", name, strlen(name), t->name);
	return fxi_error(EINVAL, "loopback:%s/%s: the name of a port must not be a number; add a letter, or omit the name",
			 t->fabric, name);
}

/* "FABRIC", "FABRIC/PORT"; NULL: from the environment. */
static int parse(struct transport *t, const char *text)
{
	const char *slash;
	int ret;

	if (!text)
		text = getenv("FABREX_FABRIC");
	if (!text || !*text)
		text = "default";
	slash = strchr(text, '/');
	ret = take_name("fabric", text,
			slash ? (size_t)(slash - text) : strlen(text),
			t->fabric);
	if (ret || !slash)
		return ret;
	t->state->named = true;
	return take_port_name(t, slash + 1);
}

static void host_name(struct loop_state *s)
{
	if (gethostname(s->host, sizeof(s->host)))
		snprintf(s->host, sizeof(s->host), "localhost");
	s->host[sizeof(s->host) - 1] = 0;
}

/* ---- forks ------------------------------------------------------------- */

/*
 * A child must not keep the sockets open whose end tells others that this
 * process has died. It does not inherit the segments: MADV_DONTFORK.
 */
static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct transport *ports;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* No connection is about to enter a table, and no list is being changed. */
static void fork_prepare(void)
{
	struct transport *t;

	pthread_mutex_lock(&ports_lock);
	for (t = ports; t; t = t->state->next)
		pthread_mutex_lock(&t->lock);
}

static void fork_parent(void)
{
	struct transport *t;

	for (t = ports; t; t = t->state->next)
		pthread_mutex_unlock(&t->lock);
	pthread_mutex_unlock(&ports_lock);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_sockets(struct transport *t)
{
	struct loop_state *s = t->state;
	uint32_t i;

	close_fd(&s->listener);
	close_fd(&s->name_holder);
	close_fd(&s->kick);
	close_fd(&t->fd);
	for (i = 0; i < s->nhalves; i++)
		if (!s->halves[i].mapped)
			close_fd(&s->halves[i].fd);
	for (i = 0; i < SEGMENT_PEERS; i++) {
		close_fd(&t->peers[i].sock);
		close_fd(&t->peers[i].fd);
	}
}

static void fork_child(void)
{
	struct transport *t;

	for (t = ports; t; t = t->state->next) {
		close_sockets(t);
		pthread_mutex_init(&t->lock, NULL);
	}
	ports = NULL;
	pthread_mutex_init(&ports_lock, NULL);
}

static void fork_install(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void list_add(struct transport *t)
{
	pthread_once(&fork_once, fork_install);
	pthread_mutex_lock(&ports_lock);
	t->state->next = ports;
	ports = t;
	pthread_mutex_unlock(&ports_lock);
}

static void list_remove(struct transport *t)
{
	struct transport **link = &ports;

	pthread_mutex_lock(&ports_lock);
	while (*link && *link != t)
		link = &(*link)->state->next;
	if (*link)
		*link = t->state->next;
	pthread_mutex_unlock(&ports_lock);
}

/* ---- opening ----------------------------------------------------------- */

static struct transport *transport_alloc(void)
{
	struct transport *t = calloc(1, sizeof(*t));
	pthread_condattr_t attr;
	uint32_t i;

	if (!t)
		return NULL;
	t->state = calloc(1, sizeof(*t->state));
	if (!t->state) {
		free(t);
		return NULL;
	}
	t->fd = -1;
	t->state->listener = t->state->name_holder = t->state->kick = -1;
	t->state->events.fd = -1;
	t->state->uid = geteuid();
	for (i = 0; i < SEGMENT_PEERS; i++)
		t->peers[i].sock = t->peers[i].fd = -1;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->state->changed, &attr);
	pthread_condattr_destroy(&attr);
	return t;
}

static void transport_free(struct transport *t)
{
	free(t->state->watch);
	free(t->state);
	free(t);
}

/* Another user can occupy our addresses, but not join. */
static int all_taken(struct transport *t)
{
	uint32_t i, uid, other = 0, foreign = 0;

	for (i = 0; i < SEGMENT_PEERS; i++)
		if (fxi_loop_is_foreign(t, i, &uid)) {
			foreign++;
			other = uid;
		}
	if (!foreign)
		return fxi_error(EUSERS, "loopback:%s: all %u ports of the fabric are in use; close some, or use another fabric",
				 t->fabric, SEGMENT_PEERS);
	return fxi_error(EUSERS, "loopback:%s: all %u ports of the fabric are in use, %u of them by another user, %u; use another fabric, or have that user end the processes that listen at \"@fabrex/%u/%s/\"",
			 t->fabric, SEGMENT_PEERS, foreign, other,
			 t->state->uid, t->fabric);
}

/* The lowest free number. */
static int take_number(struct transport *t)
{
	int ret;

	for (t->number = 0; t->number < SEGMENT_PEERS; t->number++) {
		ret = fxi_loop_listen(t, t->number, &t->state->listener);
		if (ret != -EADDRINUSE)
			return ret;
	}
	return all_taken(t);
}

/*
 * Complete before a peer can see it. The address is bound first, so that the
 * number is ours; connections wait in the backlog meanwhile.
 */
static int segment_fill(struct transport *t)
{
	struct segment *s = t->segment;

	do {
		if (getrandom(&s->generation, sizeof(s->generation), 0) !=
		    sizeof(s->generation))
			return fxi_error(EIO, "loopback:%s: no random numbers from the kernel; is getrandom() allowed here?",
					 t->fabric);
	} while (!s->generation);
	t->state->barrier = fxi_loop_membarrier_register();
	s->nofence = t->state->barrier;
	__atomic_store_n(&s->magic, SEGMENT_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static void know_self(struct transport *t)
{
	struct loop_peer *p = &t->peers[t->number];

	p->segment = t->segment;
	p->size = t->size;
	p->generation = t->segment->generation;
	p->fence = !t->state->barrier;
	p->cma = t->state->settings.cma;
	p->pid = getpid();
	memcpy(p->name, t->name, sizeof(p->name));
	memcpy(p->host, t->state->host, sizeof(p->host));
	p->up = true;
	t->state->slots[t->number].state = SLOT_KNOWN;
	t->state->slots[t->number].seen = true;
}

/* Not during a fork, whose child would keep the sockets. */
static int take_addresses(struct transport *t)
{
	int ret;

	pthread_mutex_lock(&t->lock);
	ret = take_number(t);
	if (!ret && t->state->named)
		ret = fxi_loop_hold_name(t, &t->state->name_holder);
	else
		snprintf(t->name, sizeof(t->name), "%u", t->number);
	pthread_mutex_unlock(&t->lock);
	return ret;
}

static int start(struct transport *t)
{
	int ret = take_addresses(t);

	if (!ret)
		ret = fxi_loop_heap_create(t);
	if (!ret)
		ret = segment_fill(t);
	if (!ret)
		ret = fxi_loop_events_create(t);
	if (ret)
		return ret;
	know_self(t);
	ret = fxi_loop_join_start(t);
	if (!ret)
		ret = fxi_loop_service_start(t);
	return ret ? ret : fxi_loop_join_wait(t);
}

static void shut_down(struct transport *t, bool unmap)
{
	fxi_loop_service_stop(t);
	fxi_loop_copier_stop(t);
	pthread_mutex_lock(&t->lock);
	fxi_loop_peers_unmap(t, unmap);
	close_sockets(t);
	pthread_mutex_unlock(&t->lock);
	list_remove(t);
	fxi_loop_files_free(t, unmap);
	fxi_loop_quarantine_end(t);
	fxi_loop_bounce_end(t);
	fxi_loop_heap_destroy(t, unmap);
	fxi_loop_events_destroy(t);
	pthread_cond_destroy(&t->state->changed);
	pthread_mutex_destroy(&t->lock);
	transport_free(t);
}

static int open_shielded(const char *name, struct transport **out)
{
	struct transport *t = transport_alloc();
	int ret;

	if (!t)
		return fxi_error(ENOMEM, "loopback: out of memory");
	ret = fxi_loop_settings(&t->state->settings);
	if (!ret)
		ret = parse(t, name);
	if (!ret)
		ret = fxi_loop_check_user(t);
	if (ret) {
		transport_free(t);
		return ret;
	}
	host_name(t->state);
	list_add(t);
	ret = start(t);
	if (ret) {
		shut_down(t, true);
		return ret;
	}
	*out = t;
	return 0;
}

static int loop_open(const char *name, struct transport **out)
{
	int old = cancel_off(), ret = open_shielded(name, out);

	cancel_restore(old);
	return ret;
}

static void loop_close(struct transport *t)
{
	int old = cancel_off();

	shut_down(t, true);
	cancel_restore(old);
}

/*
 * The child has one thread and nothing that was mapped, and closed its
 * connections when it began.
 */
static void loop_release(struct transport *t)
{
	fxi_loop_copier_free(t);
	fxi_loop_quarantine_end(t);
	fxi_loop_bounce_end(t);
	fxi_loop_files_free(t, false);
	fxi_loop_heap_destroy(t, false);
	fxi_loop_events_destroy(t);
	transport_free(t);
}

/* ---- limits and peers -------------------------------------------------- */

static int loop_query(struct transport *t, struct fabrex_port_attr *a)
{
	a->peer = t->number;
	a->max_peers = SEGMENT_PEERS;
	a->generation = t->peers[t->number].generation;
	a->link_up = 1;
	a->max_queues = SEGMENT_QUEUES;
	a->max_mrs = SEGMENT_MRS;
	a->max_sq = FABREX_SQ_MAX;
	a->max_cq = FABREX_CQ_MAX;
	a->max_rq = FABREX_RQ_MAX;
	a->max_cell = FABREX_CELL_MAX;
	a->page_size = LOOP_PAGE;
	a->window_slot_size = LOOP_PAGE;
	a->max_transfer = LOOP_MAX_TRANSFER;
	memcpy(a->name, t->name, sizeof(a->name));
	memcpy(a->host, t->state->host, sizeof(a->host));
	memcpy(a->fabric, t->fabric, sizeof(a->fabric));
	snprintf(a->driver, sizeof(a->driver), "loopback");
	return 0;
}

/* Lock held. */
static void describe(struct transport *t, uint32_t number,
		     struct fabrex_peer *peer)
{
	const struct loop_peer *p = &t->peers[number];

	peer->peer = number;
	peer->up = p->up;
	peer->generation = p->generation;
	memcpy(peer->name, p->name, sizeof(peer->name));
	memcpy(peer->host, p->host, sizeof(peer->host));
}

/* Peers that are up before those that were. */
static bool find_name(struct transport *t, const char *name,
		      uint32_t *number)
{
	uint32_t i, up;

	for (up = 2; up--;)
		for (i = 0; i < SEGMENT_PEERS; i++) {
			if (!t->state->slots[i].seen || t->peers[i].up != up ||
			    (strcmp(t->peers[i].name, name) &&
			     strcmp(t->peers[i].host, name)))
				continue;
			*number = i;
			return true;
		}
	return false;
}

static bool find_number(struct transport *t, bool next, uint32_t *number)
{
	while (next && *number < SEGMENT_PEERS &&
	       !t->state->slots[*number].seen)
		++*number;
	return *number < SEGMENT_PEERS && t->state->slots[*number].seen;
}

static int loop_peer(struct transport *t, const char *name, uint32_t number,
		     bool next, struct fabrex_peer *peer)
{
	bool found;

	pthread_mutex_lock(&t->lock);
	found = name ? find_name(t, name, &number) :
		       find_number(t, next, &number);
	if (found)
		describe(t, number, peer);
	pthread_mutex_unlock(&t->lock);
	if (found)
		return 0;
	if (name)
		return fxi_error(ENOENT, "loopback:%s: peer \"%s\": not known in this fabric; has it opened \"loopback:%s\" as the same user?",
				 t->fabric, name, t->fabric);
	return fxi_error(ENOENT, "loopback:%s: peer %u: not known in this fabric; fabrex_peer_next() lists those that are",
			 t->fabric, number);
}

/* ---- objects ----------------------------------------------------------- */

static int loop_mr_register(struct transport *t,
			    const struct transport_mr *params, uint64_t *key,
			    uint64_t *id)
{
	int old = cancel_off(), ret = fxi_loop_mr_register(t, params, key, id);

	cancel_restore(old);
	return ret;
}

static int loop_mr_alloc(struct transport *t, struct transport_mr *params,
			 uint64_t *key, uint64_t *id)
{
	int old = cancel_off(), ret = fxi_loop_mr_alloc(t, params, key, id);

	cancel_restore(old);
	return ret;
}

static int loop_queue_create(struct transport *t,
			     const struct fabrex_queue_attr *attr,
			     struct fabrex_queue *queue, uint64_t *id)
{
	int old = cancel_off(), ret = fxi_loop_queue_create(t, attr, queue, id);

	cancel_restore(old);
	return ret;
}

static int loop_window_create(struct transport *t,
			      const struct fabrex_remote *remote,
			      uint64_t offset, uint64_t length,
			      uint32_t access, struct transport_window *window)
{
	int old = cancel_off(), ret = fxi_loop_window_create(
			t, remote, offset, length, access, window);

	cancel_restore(old);
	return ret;
}

static int destroy_any(struct transport *t, uint64_t id)
{
	switch (loop_id_type(id)) {
	case LOOP_MR:
		return fxi_loop_mr_destroy(t, id);
	case LOOP_QUEUE:
		return fxi_loop_queue_destroy(t, id);
	case LOOP_WINDOW:
		return fxi_loop_window_destroy(t, id);
	}
	return fxi_error(ENOENT, "loopback:%s: object %llu does not exist; it has been destroyed",
			 t->fabric, (unsigned long long)id);
}

static int loop_destroy(struct transport *t, uint64_t id)
{
	int old = cancel_off(), ret = destroy_any(t, id);

	cancel_restore(old);
	return ret;
}

const struct transport_ops fxi_transport_loopback = {
	.name = "loopback",
	.by_name = true,
	.devices = true,
	.coherent = true,
	.unpinned = true,
	.open = loop_open,
	.close = loop_close,
	.release = loop_release,
	.query = loop_query,
	.peer = loop_peer,
	.mr_register = loop_mr_register,
	.watch = fxi_loop_watch,
	.mr_alloc = loop_mr_alloc,
	.mr_find = fxi_loop_mr_find,
	.queue_size = sizeof(struct loop_queue),
	.queue_create = loop_queue_create,
	.queue_free = fxi_loop_queue_free,
	.window_create = loop_window_create,
	.window_unmap = fxi_loop_window_unmap,
	.destroy = loop_destroy,
	.resolve = fxi_loop_resolve,
	.counters = fxi_loop_counters,
	.event_fd = fxi_loop_event_fd,
	.event_read = fxi_loop_event_read,
};
