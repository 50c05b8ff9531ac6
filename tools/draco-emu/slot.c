// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hot-plug slots of a partition. A slot goes EMPTY -> PLUGGING (device_add) ->
 * FULL -> EMPTY (DEVICE_DELETED, or QEMU gone). QEMU itself takes a device out
 * when the guest powers its slot off; device_del only asks the guest for it.
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

struct slot {
	struct slots *owner;
	unsigned int number;
	enum slot_state state;
	bool dead;
	struct endpoint *ep;
	void *cookie;
	char id[64];
	uint64_t emptied_ms;
	uint64_t used;			/* order of use */
	struct loop_timer tidy;
	struct range range[FUNCTION_BARS];	/* under peer_lock */
	bool mapped_dead;		/* likewise: wants no ranges */
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

static bool wanted(struct slot *sl, unsigned int bar, struct range *r)
{
	return sl->ep && !sl->mapped_dead &&
	       function_bar_addr(endpoint_function(sl->ep), bar, &r->addr,
				 &r->size);
}

static void unmap_stale(struct slots *s, struct slot *sl)
{
	struct range want;
	unsigned int i;

	for (i = 0; i < FUNCTION_BARS; i++) {
		struct range *r = &sl->range[i];

		if (!r->size || (wanted(sl, i, &want) &&
				 want.addr == r->addr && want.size == r->size))
			continue;
		/* Nobody may reach it from here on, at any price. */
		if (dma_map_del(s->peers, r->addr, r->size))
			abort();
		r->size = 0;
	}
}

static void map_missing(struct slots *s, struct slot *sl)
{
	struct range want;
	unsigned int i;

	for (i = 0; i < FUNCTION_BARS; i++) {
		struct range *r = &sl->range[i];

		if (r->size || !wanted(sl, i, &want))
			continue;
		/* No pointer for register BARs: DMA there fails. */
		if (!dma_map_add_ptr(s->peers, want.addr, want.size,
				     DMA_PROT_READ | DMA_PROT_WRITE,
				     function_bar_memory(
						endpoint_function(sl->ep), i),
				     sl->cookie))
			*r = want;
	}
}

/*
 * Any thread. BARs may overlap for a moment while the host moves them, so what
 * could not be mapped is tried again whenever another one has moved.
 */
static void update_peers(struct slots *s)
{
	unsigned int i;

	pthread_mutex_lock(&s->peer_lock);
	for (i = 0; i < s->count; i++)
		unmap_stale(s, &s->slot[i]);
	for (i = 0; i < s->count; i++)
		map_missing(s, &s->slot[i]);
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

static struct slot *by_id(struct slots *s, const char *id)
{
	unsigned int i;

	for (i = 0; i < s->count; i++)
		if (s->slot[i].state != EMPTY && !strcmp(s->slot[i].id, id))
			return &s->slot[i];
	return NULL;
}

/* The instance is gone from QEMU: forget it. */
static void take_out(struct slot *sl)
{
	struct slots *s = sl->owner;
	struct endpoint *ep = sl->ep;

	loop_timer_stop(&sl->tidy);
	pthread_mutex_lock(&s->peer_lock);
	sl->mapped_dead = true;
	unmap_stale(s, sl);
	sl->ep = NULL;
	pthread_mutex_unlock(&s->peer_lock);
	endpoint_destroy(ep);
	sl->state = EMPTY;
	sl->emptied_ms = loop_now_ms();
}

static void now_empty(struct slot *sl)
{
	struct slots *s = sl->owner;
	bool was_full = sl->state == FULL;
	void *cookie = sl->cookie;

	take_out(sl);
	log_info("host %s: slot %u is empty (%s)", s->host, sl->number,
		 sl->id);
	if (was_full)
		s->ops.emptied(s->arg, sl->number, cookie);
	else
		s->ops.plugged(s->arg, sl->number, cookie, -EIO);
}

static void on_added(void *arg, struct json_object *ret, const char *error)
{
	struct slot *sl = arg;
	struct slots *s = sl->owner;

	(void)ret;
	if (sl->state != PLUGGING)
		return;
	if (error) {
		log_error("host %s: QEMU did not take %s into slot %u: %s",
			  s->host, sl->id, sl->number, error);
		now_empty(sl);
		return;
	}
	sl->state = FULL;
	log_info("host %s: %s is in slot %u", s->host, sl->id, sl->number);
	s->ops.plugged(s->arg, sl->number, sl->cookie, 0);
}

static void bus_name(const struct slot *sl, char *buf, size_t len)
{
	if (sl->owner->index)
		snprintf(buf, len, "p%u.slot%u", sl->owner->index, sl->number);
	else
		snprintf(buf, len, "slot%u", sl->number);
}

static int device_add(struct slot *sl, const char *path)
{
	struct json_object *o = json_object_new_object();
	struct json_object *sock = json_object_new_object();
	char bus[32];

	bus_name(sl, bus, sizeof(bus));
	json_object_object_add(sock, "type", json_object_new_string("unix"));
	json_object_object_add(sock, "path", json_object_new_string(path));
	json_object_object_add(o, "driver",
			       json_object_new_string("vfio-user-pci"));
	json_object_object_add(o, "id", json_object_new_string(sl->id));
	json_object_object_add(o, "bus", json_object_new_string(bus));
	json_object_object_add(o, "socket", sock);
	return qmp_execute(sl->owner->qmp, "device_add", o, on_added, sl);
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

static int insert(struct slot *sl, const struct endpoint_desc *desc,
		  void *cookie)
{
	static unsigned int instance;
	struct slots *s = sl->owner;
	struct endpoint *ep;
	char path[512];
	int ret;

	snprintf(sl->id, sizeof(sl->id), "ep-%s-%u", desc->name, ++instance);
	snprintf(path, sizeof(path), "%s/%s.sock", s->run_dir, sl->id);
	sl->cookie = cookie;
	sl->dead = false;
	ret = endpoint_create(desc, path, instance, bars_changed, s, &ep);
	if (ret)
		return ret;
	pthread_mutex_lock(&s->peer_lock);
	sl->mapped_dead = false;
	sl->ep = ep;
	pthread_mutex_unlock(&s->peer_lock);
	sl->state = PLUGGING;
	sl->used = ++s->uses;
	ret = device_add(sl, path);
	if (ret)
		take_out(sl);
	return ret;
}

int slots_plug(struct slots *s, unsigned int slot,
	       const struct endpoint_desc *ep, void *cookie)
{
	struct slot *sl = by_number(s, slot);

	if (!s->up)
		return -EHOSTDOWN;
	if (!sl || sl->state != EMPTY)
		return -EBUSY;
	return insert(sl, ep, cookie);
}

static void on_del(void *arg, struct json_object *ret, const char *error)
{
	struct slot *sl = arg;

	(void)ret;
	if (error)
		log_debug("host %s: device_del %s: %s", sl->owner->host,
			  sl->id, error);
}

static int device_del(struct slot *sl)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "id", json_object_new_string(sl->id));
	return qmp_execute(sl->owner->qmp, "device_del", o, on_del, sl);
}

static void tidy(void *arg)
{
	struct slot *sl = arg;

	device_del(sl);
	loop_timer_start(&sl->tidy, TIDY_AGAIN_MS, tidy, sl);
}

void slots_kill(struct slots *s, unsigned int number)
{
	struct slot *sl = by_number(s, number);

	if (!sl || sl->state == EMPTY || sl->dead)
		return;
	sl->dead = true;
	pthread_mutex_lock(&s->peer_lock);
	sl->mapped_dead = true;
	unmap_stale(s, sl);
	pthread_mutex_unlock(&s->peer_lock);
	function_set_dead(endpoint_function(sl->ep));
	loop_timer_start(&sl->tidy, TIDY_MS, tidy, sl);
}

void slots_link(struct slots *s, unsigned int number, bool up)
{
	struct slot *sl = by_number(s, number);

	if (sl && sl->state != EMPTY && !sl->dead)
		function_link(endpoint_function(sl->ep), up);
}

int slots_eject(struct slots *s, unsigned int number)
{
	struct slot *sl = by_number(s, number);

	if (!sl || sl->state != FULL)
		return -ENOENT;
	return device_del(sl);
}

struct endpoint *slots_endpoint(struct slots *s, unsigned int number)
{
	struct slot *sl = by_number(s, number);

	return sl ? sl->ep : NULL;
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

static void on_event(void *arg, const char *name, struct json_object *data)
{
	struct slots *s = arg;
	struct json_object *v;
	struct slot *sl;

	if (strcmp(name, "DEVICE_DELETED") ||
	    !json_object_is_type(data, json_type_object) ||
	    !json_object_object_get_ex(data, "device", &v) ||
	    !json_object_is_type(v, json_type_string))
		return;
	sl = by_id(s, json_object_get_string(v));
	if (sl)
		now_empty(sl);
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
	for (i = 0; i < s->count; i++) {
		s->slot[i].owner = s;
		s->slot[i].number = desc->first + i;
	}
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
		qmp_cancel(s->qmp, &s->slot[i]);
		if (s->slot[i].state != EMPTY)
			take_out(&s->slot[i]);
	}
	free_slots(s);
}
