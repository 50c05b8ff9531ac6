// SPDX-License-Identifier: GPL-2.0-only
/* A fabric in memory that fails when it is told to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake.h"
#include "util.h"

static struct fake *to_fake(struct backend *b)
{
	return (struct fake *)b;
}

static int fake_open(struct backend *b, struct err *e)
{
	if (to_fake(b)->no_module)
		return err_set(e, ENODEV, "fabrex", "the fabrex kernel module "
			       "is not loaded");
	return 0;
}

static void fake_close(struct backend *b)
{
	(void)b;
}

static int fake_fports(struct backend *b, struct model *m, struct err *e)
{
	size_t i;

	(void)e;
	for (i = 0; i < to_fake(b)->m->nfports; i++)
		model_put_fport(m, &to_fake(b)->m->fports[i]);
	return 0;
}

static bool passes(const struct fake *f, const struct filter *flt,
		   const struct object *o)
{
	const struct object *host = model_owner(f->m, o);

	return (!flt->type || o->type == flt->type) &&
	       (!flt->parent || o->parent == flt->parent) &&
	       (!flt->bound || o->bound == flt->bound) &&
	       (!flt->host_id || (host && host->id == flt->host_id));
}

static int fake_objects(struct backend *b, const struct filter *flt,
			struct model *m, struct err *e)
{
	struct fake *f = to_fake(b);
	size_t i;

	(void)e;
	f->dumps++;
	if (!flt->type && !flt->parent && !flt->bound && !flt->host_id)
		f->whole_dumps++;
	for (i = 0; i < f->m->n; i++)
		if (passes(f, flt, f->m->objects[i]))
			model_put(m, f->m->objects[i]);
	return 0;
}

static int fake_object(struct backend *b, uint32_t type, uint32_t id,
		       const char *name, struct object *out, struct err *e)
{
	struct fake *f = to_fake(b);
	const struct fport *fp;
	struct object *o;

	f->gets++;
	o = name ? model_find(f->m, name, type ? T_BIT(type) : T_ANY)
		 : model_get(f->m, id);
	if (!o)
		return err_set(e, ENOENT, name, "no such object");
	*out = *o;
	fp = model_local(f->m, o->bound);
	/* As in the kernel a port knows only the devices behind itself. */
	if (o->type == T_ENDPOINT && fp && fp->index == b->fport &&
	    !f->no_device)
		snprintf(out->pci_name, sizeof(out->pci_name),
			 "%04x:%02x:00.0", f->pci_domain, f->pci_bus + o->slot);
	return 0;
}

static unsigned int next_slot(const struct fake *f, uint32_t port)
{
	unsigned int slot;
	size_t i;

	for (slot = 2; slot < f->slots + 2; slot++) {
		for (i = 0; i < f->m->n; i++)
			if (f->m->objects[i]->bound == port &&
			    f->m->objects[i]->slot == slot)
				break;
		if (i == f->m->n)
			return slot;
	}
	return 0;
}

/* Return: whether this change is one that fails. */
static bool injected(struct fake *f)
{
	unsigned int n = ++f->changes;

	return f->fail_at && n >= f->fail_at &&
	       n <= f->fail_at + (f->fail_count ? f->fail_count - 1 : 0);
}

static int bind_check(struct fake *f, const struct object *ep, uint32_t port,
		      struct err *e)
{
	const struct object *p = model_get(f->m, port);

	if (!ep || ep->type != T_ENDPOINT || !p)
		return err_set(e, ENOENT, NULL, "no such object");
	if (ep->bound)
		return err_set(e, EADDRINUSE, ep->name, "%s is bound to %s",
			       ep->name, model_name(f->m, ep->bound));
	if (!next_slot(f, port))
		return err_set(e, ENOSPC, p->name, "%s has no free slot",
			       p->name);
	return 0;
}

static int fake_do_bind(struct backend *b, uint32_t id, uint32_t port, bool dry,
			uint32_t *slot, struct err *e)
{
	struct fake *f = to_fake(b);
	struct object *ep = model_get(f->m, id);
	int r = bind_check(f, ep, port, e);
	bool fails;

	if (!r && dry)
		*slot = f->names_slot ? next_slot(f, port) : 0;
	if (r || dry)
		return r;
	fails = injected(f);
	if (fails && !f->fail_late)
		return err_set(e, f->fail_code, NULL, "injected failure");
	*slot = ep->slot = next_slot(f, port);
	ep->bound = port;
	ep->state = FABREX_ENDPOINT_STATE_BOUND;
	return fails ? err_set(e, f->fail_code, NULL, "late failure") : 0;
}

static int fake_do_unbind(struct backend *b, uint32_t id, bool force, bool dry,
			  uint32_t timeout_ms, struct err *e)
{
	struct fake *f = to_fake(b);
	struct object *ep = model_get(f->m, id);
	bool fails;

	(void)timeout_ms;
	if (!ep || !ep->bound)
		return err_set(e, ENOTCONN, NULL, "not bound");
	if (dry)
		return 0;
	fails = injected(f);
	if (fails && !f->fail_late)
		return err_set(e, f->fail_code, NULL, "injected failure");
	if (id == f->held && !force)
		return err_set(e, EBUSY, ep->name, "%s is held by pid 42 "
			       "(python3): has /dev/vfio/5 open", ep->name);
	ep->bound = ep->slot = 0;
	ep->state = FABREX_ENDPOINT_STATE_FREE;
	return fails ? err_set(e, f->fail_code, NULL, "late failure") : 0;
}

/* In order, as far as it goes; the real one has them run at once. */
static int fake_unbind_all(struct backend *b, struct release *v, size_t n,
			   bool force, uint32_t timeout_ms, struct err *e)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (fake_do_unbind(b, v[i].ep, force, false, timeout_ms,
				   &v[i].err)) {
			*e = v[i].err;
			return -e->code;
		}
		v[i].done = true;
	}
	return 0;
}

static int fake_port_set(struct backend *b, uint32_t id, uint32_t action,
			 struct err *e)
{
	struct fake *f = to_fake(b);
	struct object *p = model_get(f->m, id);

	if (injected(f))
		return err_set(e, f->fail_code, NULL, "injected failure");
	f->last_action = action;
	p->state = action == FABREX_PORT_ACTION_DISABLE ?
		   FABREX_LINK_STATE_DISABLED : FABREX_LINK_STATE_UP;
	return 0;
}

static int fake_counters(struct backend *b, uint32_t id, struct counters *c,
			 struct err *e)
{
	struct fake *f = to_fake(b);
	int i;

	(void)e;
	f->ticks++;
	c->id = id;
	for (i = 0; i < NCOUNTERS; i++)
		c->v[i] = 1000ull * f->ticks * (i + 1);
	return 0;
}

/* Last, as draco-emu has them. */
static void add_mesh_link(struct fake *f, struct link_list *l)
{
	struct link_bytes *link;
	uint32_t ends[2] = { 0, 0 };
	size_t i;

	for (i = 0; i < f->m->n; i++) {
		const struct object *o = f->m->objects[i];

		if (!strcmp(o->name, "columba1.gpu6"))
			ends[0] = o->id;
		if (!strcmp(o->name, "columba1.gpu7"))
			ends[1] = o->id;
	}
	if (!ends[0] || !ends[1])
		return;
	link = link_list_add(l);
	*link = (struct link_bytes){ ends[0], ends[1], 1000ull * f->ticks, 3 };
}

/*
 * As draco-emu has them: a port that leads somewhere, the lower one of two; an
 * endpoint. Each call finds 1,000 bytes more for each id.
 */
static int fake_links(struct backend *b, struct link_list *l, struct err *e)
{
	struct fake *f = to_fake(b);
	size_t i;

	(void)e;
	f->ticks++;
	for (i = 0; i < f->m->n; i++) {
		const struct object *o = f->m->objects[i];
		struct link_bytes *link;

		if (o->type != T_ENDPOINT &&
		    (o->type != T_PORT || !o->link ||
		     (o->kind == FABREX_PORT_KIND_ISL && o->link < o->id)))
			continue;
		link = link_list_add(l);
		link->a = o->id;
		link->b = o->type == T_PORT ? o->link : o->parent;
		link->a_to_b = 1000ull * f->ticks * o->id;
		link->b_to_a = 1;
	}
	add_mesh_link(f, l);
	return 0;
}

static int fake_subscribe(struct backend *b, const char *group, struct err *e)
{
	(void)b;
	(void)group;
	(void)e;
	return 0;
}

static int fake_event_fd(struct backend *b)
{
	return to_fake(b)->fd;
}

static int fake_events(struct backend *b,
		       int (*fn)(const struct event *ev, void *arg), void *arg,
		       struct err *e)
{
	struct fake *f = to_fake(b);
	int r = 0;

	(void)e;
	if (f->lost) {
		f->lost = false;
		return -ENOBUFS;
	}
	while (f->head != f->tail && !r)
		r = fn(&f->queue[f->head++ % FAKE_EVENTS], arg);
	return r;
}

static int fake_reply(struct backend *b, const struct event *ev,
		      const struct holder *h, struct err *e)
{
	struct fake *f = to_fake(b);

	(void)ev;
	(void)e;
	f->replied = true;
	f->last_granted = !h;
	return 0;
}

static const struct backend_ops fake_ops = {
	.open = fake_open,
	.close = fake_close,
	.fports = fake_fports,
	.objects = fake_objects,
	.object = fake_object,
	.bind = fake_do_bind,
	.unbind = fake_do_unbind,
	.unbind_all = fake_unbind_all,
	.port_set = fake_port_set,
	.counters = fake_counters,
	.links = fake_links,
	.subscribe = fake_subscribe,
	.event_fd = fake_event_fd,
	.events = fake_events,
	.release_reply = fake_reply,
};

struct fake *fake_new(void)
{
	struct fake *f = xcalloc(1, sizeof(*f));

	f->b.ops = &fake_ops;
	f->m = model_new();
	f->slots = 16;
	f->fail_code = EIO;
	f->pci_domain = 0xffff;
	/* Not this machine's devices. */
	setenv("FABREX_ROOT", "/nonexistent", 0);
	/* Always readable: events() says whether there are any. */
	f->fd = eventfd(1, EFD_CLOEXEC);
	return f;
}

void fake_free(struct fake *f)
{
	close(f->fd);
	model_free(f->m);
	free(f);
}

uint32_t fake_add(struct fake *f, const struct object *o)
{
	struct object n = *o;

	n.id = f->m->n + 1;
	return model_put(f->m, &n)->id;
}

void fake_local(struct fake *f, const char *port)
{
	struct object *o = model_find(f->m, port, T_BIT(T_PORT));
	struct fport p = { .index = f->m->nfports, .manager = true,
			   .alive = true, .emulated = true };

	p.object_id = o->id;
	p.objects = f->m->n;
	snprintf(p.name, sizeof(p.name), "%s", o->name);
	snprintf(p.host, sizeof(p.host), "%s", model_name(f->m, o->link));
	snprintf(p.fabric, sizeof(p.fabric), "test");
	snprintf(p.driver, sizeof(p.driver), "fabrex_draco");
	snprintf(p.engine, sizeof(p.engine), "switch");
	snprintf(p.parent, sizeof(p.parent), "0000:03:00.0");
	model_put_fport(f->m, &p);
}

void fake_push(struct fake *f, const struct event *ev)
{
	f->queue[f->tail++ % FAKE_EVENTS] = *ev;
}

void fake_lose(struct fake *f)
{
	f->lost = true;
}

char *fake_bindings(const struct fake *f)
{
	size_t i, len;
	char *text;
	FILE *s = open_memstream(&text, &len);

	for (i = 0; i < f->m->n; i++) {
		const struct object *o = f->m->objects[i];

		if (o->bound)
			fprintf(s, "%s=%s ", o->name,
				model_name(f->m, o->bound));
	}
	fclose(s);
	return text;
}

void fake_bind(struct fake *f, const char *ep, const char *port)
{
	struct object *o = model_find(f->m, ep, T_BIT(T_ENDPOINT));
	struct object *p = model_find(f->m, port, T_BIT(T_PORT));

	o->slot = next_slot(f, p->id);
	o->bound = p->id;
	o->state = FABREX_ENDPOINT_STATE_BOUND;
}
