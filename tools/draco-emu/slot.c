// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hot-plug slots of a partition. A slot goes EMPTY -> PLUGGING (device_add) ->
 * FULL -> EMPTY (DEVICE_DELETED, or QEMU gone). QEMU itself takes a device out
 * when the guest powers its slot off; device_del only asks the guest for it.
 *
 * Of a device with several functions, number 0 is added last: it is the one
 * that shows the guest that something is there. Until then a function that is
 * to go goes at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "loop.h"
#include "qmp.h"
#include "slot.h"

#define REST_MS		2000		/* of a slot after its power-off */
#define ATTACH_MS	50		/* polls for the port after QMP */
#define ATTACH_TRIES	100		/* until we say that it looks wrong */
#define TIDY_MS		2000		/* for the driver to power a dead
					 * device's slot off by itself */
#define TIDY_AGAIN_MS	12000		/* a second press within 5 s would
					 * cancel the first */
#define PEER_REGIONS	1024

enum slot_state { EMPTY, PLUGGING, FULL };

struct range {
	uint64_t addr, size;		/* size 0: not in the peer map */
};

/* One function of the device in a slot. */
struct instance {
	struct slot *slot;
	struct endpoint *ep;		/* NULL: not there, or gone again */
	void *cookie;
	char id[64];
	bool added;			/* QEMU has it */
	bool dead;
	struct range range[FUNCTION_BARS];	/* under peer_lock */
	bool mapped_dead;		/* likewise: wants no ranges */
};

struct slot {
	struct slots *owner;
	unsigned int number;
	enum slot_state state;
	struct instance fn[SLOT_FUNCTIONS];
	unsigned int n;			/* of them, while not EMPTY */
	unsigned int next;		/* the one that QEMU is given, */
	bool adding;			/* and whether it has not answered yet */
	bool failed;			/* PLUGGING: all are to go again */
	uint64_t emptied_ms;
	uint64_t used;			/* order of use */
	struct loop_timer tidy;
};

struct slots {
	char *host, *run_dir;
	unsigned int index, count;
	struct qmp *qmp;
	struct qmp_listener listener;
	struct loop_timer attach;
	struct function *port;
	struct slots_ops ops;
	void *arg;
	bool up;
	unsigned int tries;		/* polls so far */
	uint64_t uses;
	pthread_mutex_t peer_lock;
	struct dma_map *peers;		/* memory BARs of the endpoints */
	struct slot slot[];
};

/* ---- Peer-to-peer routing ---- */

static bool wanted(struct instance *in, unsigned int bar, struct range *r)
{
	return in->ep && !in->mapped_dead &&
	       function_bar_addr(endpoint_function(in->ep), bar, &r->addr,
				 &r->size);
}

static void unmap_stale(struct slots *s, struct instance *in)
{
	struct range want;
	unsigned int i;

	for (i = 0; i < FUNCTION_BARS; i++) {
		struct range *r = &in->range[i];

		if (!r->size || (wanted(in, i, &want) &&
				 want.addr == r->addr && want.size == r->size))
			continue;
		/* Nobody may reach it from here on, at any price. */
		if (dma_map_del(s->peers, r->addr, r->size))
			abort();
		r->size = 0;
	}
}

static void map_missing(struct slots *s, struct instance *in)
{
	struct range want;
	unsigned int i;

	for (i = 0; i < FUNCTION_BARS; i++) {
		struct range *r = &in->range[i];

		if (r->size || !wanted(in, i, &want))
			continue;
		/* No pointer for register BARs: DMA there fails. */
		if (!dma_map_add_ptr(s->peers, want.addr, want.size,
				     DMA_PROT_READ | DMA_PROT_WRITE,
				     function_bar_memory(
						endpoint_function(in->ep), i),
				     in->cookie))
			*r = want;
	}
}

static void each_instance(struct slots *s,
			  void (*fn)(struct slots *s, struct instance *in))
{
	for (unsigned int i = 0; i < s->count; i++) {
		for (unsigned int k = 0; k < SLOT_FUNCTIONS; k++)
			fn(s, &s->slot[i].fn[k]);
	}
}

/*
 * Any thread. BARs may overlap for a moment while the host moves them, so what
 * could not be mapped is tried again whenever another one has moved.
 */
static void update_peers(struct slots *s)
{
	pthread_mutex_lock(&s->peer_lock);
	each_instance(s, unmap_stale);
	each_instance(s, map_missing);
	pthread_mutex_unlock(&s->peer_lock);
}

static void bars_changed(void *arg)
{
	update_peers(arg);
}

int slots_peer(struct slots *s, uint64_t addr, size_t len, unsigned int prot,
	       struct dma_hold *h)
{
	return dma_get(s->peers, addr, len, prot, h);
}

/* ---- A slot's life ---- */

static struct slot *by_number(struct slots *s, unsigned int number)
{
	unsigned int i;

	for (i = 0; i < s->count; i++)
		if (s->slot[i].number == number)
			return &s->slot[i];
	return NULL;
}

static struct instance *by_id(struct slots *s, const char *id)
{
	for (unsigned int i = 0; i < s->count; i++) {
		for (unsigned int k = 0; k < s->slot[i].n; k++) {
			struct instance *in = &s->slot[i].fn[k];

			if (in->ep && !strcmp(in->id, id))
				return in;
		}
	}
	return NULL;
}

static struct instance *by_cookie(struct slots *s, unsigned int number,
				  void *cookie)
{
	struct slot *sl = by_number(s, number);

	for (unsigned int k = 0; sl && k < sl->n; k++) {
		if (sl->fn[k].ep && sl->fn[k].cookie == cookie)
			return &sl->fn[k];
	}
	return NULL;
}

/* Nobody reaches it by DMA any more. */
static void unmap(struct slots *s, struct instance *in)
{
	pthread_mutex_lock(&s->peer_lock);
	in->mapped_dead = true;
	unmap_stale(s, in);
	pthread_mutex_unlock(&s->peer_lock);
}

/* The instance is gone from QEMU: forget it. */
static void take_out(struct instance *in)
{
	struct slots *s = in->slot->owner;
	struct endpoint *ep = in->ep;

	unmap(s, in);
	pthread_mutex_lock(&s->peer_lock);
	in->ep = NULL;
	pthread_mutex_unlock(&s->peer_lock);
	in->added = false;
	endpoint_destroy(ep);
}

static void take_all_out(struct slot *sl)
{
	loop_timer_stop(&sl->tidy);
	for (unsigned int k = 0; k < sl->n; k++)
		take_out(&sl->fn[k]);
	sl->n = 0;
	sl->adding = false;
	sl->state = EMPTY;
	sl->emptied_ms = loop_now_ms();
}

static void now_empty(struct slot *sl)
{
	struct slots *s = sl->owner;
	bool was_full = sl->state == FULL;
	void *cookie[SLOT_FUNCTIONS];
	unsigned int n = sl->n;

	for (unsigned int k = 0; k < n; k++)
		cookie[k] = sl->fn[k].cookie;
	take_all_out(sl);
	log_info("host %s: slot %u is empty (%s)", s->host, sl->number,
		 sl->fn[0].id);
	for (unsigned int k = 0; k < n; k++) {
		if (was_full)
			s->ops.emptied(s->arg, sl->number, cookie[k]);
		else
			s->ops.plugged(s->arg, sl->number, cookie[k], -EIO);
	}
}

static bool any_added(const struct slot *sl)
{
	for (unsigned int k = 0; k < sl->n; k++) {
		if (sl->fn[k].added)
			return true;
	}
	return false;
}

/* ---- Taking out ---- */

static void on_del(void *arg, struct json_object *ret, const char *error)
{
	struct instance *in = arg;

	(void)ret;
	if (error)
		log_debug("host %s: device_del %s: %s", in->slot->owner->host,
			  in->id, error);
}

static int device_del(struct instance *in)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "id", json_object_new_string(in->id));
	return qmp_execute(in->slot->owner->qmp, "device_del", o, on_del, in);
}

/* The guest takes out all functions when it is asked for one. */
static int ask_for(struct slot *sl)
{
	unsigned int k = 0;

	while (k < sl->n - 1 && !sl->fn[k].added)
		k++;
	return device_del(&sl->fn[k]);
}

static void tidy(void *arg)
{
	struct slot *sl = arg;

	ask_for(sl);
	loop_timer_start(&sl->tidy, TIDY_AGAIN_MS, tidy, sl);
}

/* What QEMU has taken so far of a device that it does not take as a whole. */
static void roll_back(struct slot *sl)
{
	for (unsigned int k = 0; k < sl->n; k++) {
		if (sl->fn[k].added)
			device_del(&sl->fn[k]);
	}
	if (!any_added(sl))
		now_empty(sl);
}

/* ---- Plugging ---- */

static void add_next(struct slot *sl);

static void now_full(struct slot *sl)
{
	struct slots *s = sl->owner;

	sl->state = FULL;
	log_info("host %s: %s is in slot %u, functions: %u", s->host,
		 sl->fn[0].id, sl->number, sl->n);
	for (unsigned int k = 0; k < sl->n; k++)
		s->ops.plugged(s->arg, sl->number, sl->fn[k].cookie, 0);
}

static void on_added(void *arg, struct json_object *ret, const char *error)
{
	struct instance *in = arg;
	struct slot *sl = in->slot;

	(void)ret;
	if (!sl->adding || in != &sl->fn[sl->next])
		return;
	sl->adding = false;
	in->added = !error && in->ep;
	if (error) {
		log_error("host %s: QEMU did not take %s into slot %u: %s",
			  sl->owner->host, in->id, sl->number, error);
		sl->failed = true;
	}
	if (sl->failed)
		roll_back(sl);
	else if (sl->next)
		add_next(sl);
	else
		now_full(sl);
}

static void bus_name(const struct slot *sl, char *buf, size_t len)
{
	if (sl->owner->index)
		snprintf(buf, len, "p%u.slot%u", sl->owner->index, sl->number);
	else
		snprintf(buf, len, "slot%u", sl->number);
}

static void socket_path(const struct instance *in, char *buf, size_t len)
{
	snprintf(buf, len, "%s/%s.sock", in->slot->owner->run_dir, in->id);
}

static int device_add(struct slot *sl)
{
	const unsigned int k = sl->next;
	struct json_object *o = json_object_new_object();
	struct json_object *sock = json_object_new_object();
	char bus[32], path[512], addr[8];

	bus_name(sl, bus, sizeof(bus));
	socket_path(&sl->fn[k], path, sizeof(path));
	json_object_object_add(sock, "type", json_object_new_string("unix"));
	json_object_object_add(sock, "path", json_object_new_string(path));
	json_object_object_add(o, "driver",
			       json_object_new_string("vfio-user-pci"));
	json_object_object_add(o, "id", json_object_new_string(sl->fn[k].id));
	json_object_object_add(o, "bus", json_object_new_string(bus));
	if (sl->n > 1) {
		snprintf(addr, sizeof(addr), "0.%u", k);
		json_object_object_add(o, "addr", json_object_new_string(addr));
		json_object_object_add(o, "multifunction",
				       json_object_new_boolean(true));
	}
	json_object_object_add(o, "socket", sock);
	sl->adding = true;
	return qmp_execute(sl->owner->qmp, "device_add", o, on_added,
			   &sl->fn[k]);
}

/* One after the other: none is to follow one that failed. */
static void add_next(struct slot *sl)
{
	int err;

	sl->next--;
	err = device_add(sl);
	if (!err)
		return;
	log_error("host %s: QEMU was not asked to take %s into slot %u: %s",
		  sl->owner->host, sl->fn[sl->next].id, sl->number,
		  strerror(-err));
	sl->adding = false;
	sl->failed = true;
	roll_back(sl);
}

int slots_pick(struct slots *s, uint64_t taken)
{
	struct slot *rested = NULL, *any = NULL;
	uint64_t now = loop_now_ms();
	unsigned int i;

	for (i = 0; i < s->count; i++) {
		struct slot *sl = &s->slot[i];

		if (sl->state != EMPTY || taken >> sl->number & 1)
			continue;
		if (!any || sl->emptied_ms < any->emptied_ms)
			any = sl;
		if (sl->emptied_ms && now - sl->emptied_ms < REST_MS)
			continue;
		if (!rested || sl->used < rested->used)
			rested = sl;
	}
	if (!any)
		return -ENOSPC;
	return rested ? rested->number : any->number;
}

static int make_instance(struct slot *sl, const struct slots_function *want)
{
	static unsigned int instance;
	struct instance *in = &sl->fn[sl->n];
	struct slots *s = sl->owner;
	struct endpoint *ep;
	char path[512];
	int ret;

	snprintf(in->id, sizeof(in->id), "ep-%s-%u", want->ep.name, ++instance);
	in->cookie = want->cookie;
	in->added = in->dead = false;
	socket_path(in, path, sizeof(path));
	ret = endpoint_create(&want->ep, path, instance, bars_changed, s, &ep);
	if (ret)
		return ret;
	pthread_mutex_lock(&s->peer_lock);
	in->mapped_dead = false;
	in->ep = ep;
	pthread_mutex_unlock(&s->peer_lock);
	sl->n++;
	return 0;
}

static int insert(struct slot *sl, const struct slots_function *list,
		  unsigned int n)
{
	int err = 0;

	for (unsigned int k = 0; k < n && !err; k++)
		err = make_instance(sl, &list[k]);
	sl->state = PLUGGING;
	sl->failed = false;
	sl->used = ++sl->owner->uses;
	sl->next = n - 1;
	if (!err)
		err = device_add(sl);
	if (err)
		take_all_out(sl);
	return err;
}

int slots_plug(struct slots *s, unsigned int slot,
	       const struct slots_function *list, unsigned int n)
{
	struct slot *sl = by_number(s, slot);

	if (!s->up)
		return -EHOSTDOWN;
	if (!sl || sl->state != EMPTY)
		return -EBUSY;
	return n && n <= SLOT_FUNCTIONS ? insert(sl, list, n) : -EINVAL;
}

static bool all_dead(const struct slot *sl)
{
	for (unsigned int k = 0; k < sl->n; k++) {
		if (sl->fn[k].ep && !sl->fn[k].dead)
			return false;
	}
	return true;
}

void slots_kill(struct slots *s, unsigned int number, void *cookie)
{
	struct instance *in = by_cookie(s, number, cookie);

	if (!in || in->dead)
		return;
	in->dead = true;
	unmap(s, in);
	function_set_dead(endpoint_function(in->ep));
	/* The guest takes out a slot, so not while one in it is alive. */
	if (all_dead(in->slot))
		loop_timer_start(&in->slot->tidy, TIDY_MS, tidy, in->slot);
}

void slots_link(struct slots *s, unsigned int number, void *cookie, bool up)
{
	struct instance *in = by_cookie(s, number, cookie);

	if (in && !in->dead)
		function_link(endpoint_function(in->ep), up);
}

int slots_eject(struct slots *s, unsigned int number)
{
	struct slot *sl = by_number(s, number);

	if (!sl || sl->state != FULL)
		return -ENOENT;
	return ask_for(sl);
}

struct endpoint *slots_endpoint(struct slots *s, unsigned int number,
				unsigned int function)
{
	struct slot *sl = by_number(s, number);

	return sl && function < sl->n ? sl->fn[function].ep : NULL;
}

/* ---- QEMU coming and going ---- */

static void host_down(struct slots *s)
{
	unsigned int i;

	loop_timer_stop(&s->attach);
	for (i = 0; i < s->count; i++)
		if (s->slot[i].state != EMPTY)
			now_empty(&s->slot[i]);
	for (i = 0; i < s->count; i++)
		s->slot[i].emptied_ms = 0;	/* a new machine next time */
	if (!s->up)
		return;
	s->up = false;
	if (s->ops.host)
		s->ops.host(s->arg, false);
}

/*
 * A QEMU without our port is no host: one without the device, or one that was
 * attached to an earlier draco-emu (its vfio-user client does not reconnect).
 */
static void check_attached(void *arg)
{
	struct slots *s = arg;

	if (!function_attached(s->port)) {
		if (++s->tries == ATTACH_TRIES)
			log_error("host %s: QEMU is there but not attached to %s; if it is older than this draco-emu, restart it",
				  s->host, function_name(s->port));
		loop_timer_start(&s->attach, ATTACH_MS, check_attached, s);
		return;
	}
	s->up = true;
	if (s->ops.host)
		s->ops.host(s->arg, true);
}

static void on_state(void *arg, bool up)
{
	struct slots *s = arg;

	s->tries = 0;
	if (up)
		check_attached(s);
	else
		host_down(s);
}

/* With the last one, the slot is empty. */
static void on_deleted(struct instance *in)
{
	struct slot *sl = in->slot;

	take_out(in);
	sl->failed = true;
	if (!sl->adding && !any_added(sl))
		now_empty(sl);
}

static void on_event(void *arg, const char *name, struct json_object *data)
{
	struct slots *s = arg;
	struct instance *in;
	struct json_object *v;

	if (strcmp(name, "DEVICE_DELETED") ||
	    !json_object_is_type(data, json_type_object) ||
	    !json_object_object_get_ex(data, "device", &v) ||
	    !json_object_is_type(v, json_type_string))
		return;
	in = by_id(s, json_object_get_string(v));
	if (in)
		on_deleted(in);
}

bool slots_host_up(struct slots *s)
{
	return s->up;
}

/* ---- Creation ---- */

static void free_slots(struct slots *s)
{
	dma_map_destroy(s->peers);
	pthread_mutex_destroy(&s->peer_lock);
	free(s->host);
	free(s->run_dir);
	free(s);
}

static void init_slot(struct slots *s, struct slot *sl, unsigned int number)
{
	sl->owner = s;
	sl->number = number;
	for (unsigned int k = 0; k < SLOT_FUNCTIONS; k++)
		sl->fn[k].slot = sl;
}

int slots_create(const struct slots_desc *desc, const struct slots_ops *ops,
		 void *arg, struct slots **out)
{
	struct slots *s = calloc(1, sizeof(*s) +
				 desc->count * sizeof(s->slot[0]));
	unsigned int i;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->peer_lock, NULL);
	s->host = strdup(desc->host);
	s->run_dir = strdup(desc->run_dir);
	s->peers = dma_map_create(PEER_REGIONS, true, NULL, NULL);
	if (!s->host || !s->run_dir || !s->peers) {
		free_slots(s);
		return -ENOMEM;
	}
	s->index = desc->index;
	s->count = desc->count;
	s->qmp = desc->qmp;
	s->port = desc->port;
	s->ops = *ops;
	s->arg = arg;
	for (i = 0; i < s->count; i++)
		init_slot(s, &s->slot[i], desc->first + i);
	s->listener.state = on_state;
	s->listener.event = on_event;
	s->listener.arg = s;
	qmp_listen(s->qmp, &s->listener);
	*out = s;
	if (qmp_up(s->qmp))
		check_attached(s);
	return 0;
}

void slots_destroy(struct slots *s)
{
	unsigned int i;

	if (!s)
		return;
	qmp_unlisten(s->qmp, &s->listener);
	loop_timer_stop(&s->attach);
	for (i = 0; i < s->count; i++) {
		for (unsigned int k = 0; k < SLOT_FUNCTIONS; k++)
			qmp_cancel(s->qmp, &s->slot[i].fn[k]);
		if (s->slot[i].state != EMPTY)
			take_all_out(&s->slot[i]);
	}
	free_slots(s);
}
