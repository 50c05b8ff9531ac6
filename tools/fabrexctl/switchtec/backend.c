// SPDX-License-Identifier: GPL-2.0-only
/* The table of a fabric of Switchtec switches; see switchtec.h and fabric.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric.h"
#include "p2p/sysfs.h"
#include "util.h"

static int read_topology(struct pfx_fabric *f, struct err *e)
{
	char why[400];
	unsigned int sw;

	f->t = topology_load(f->file, why, sizeof(why));
	if (!f->t)
		return err_set(e, access(f->file, R_OK) ? errno : EINVAL,
			       f->file, "%s", why);
	for (sw = 0; sw < f->t->nswitches; sw++)
		if (f->t->switches[sw].model == TOPO_PFX)
			return 0;
	return err_set(e, EINVAL, f->file, "%s has no switch whose model is "
		       "\"pfx\"; it is not the file of a fabric of Switchtecs",
		       f->file);
}

static int open_devices(struct pfx_fabric *f, struct err *e)
{
	struct switchtec found[DEVICE_MOST];
	int i, r = 0, n = device_list(&f->env, found, e);

	if (n < 0)
		return n;
	if (!n)
		return err_set(e, ENODEV, "switchtec", "this machine has no "
			       "/dev/switchtecN of a PFX, so none can be asked; "
			       "\"modprobe switchtec\" loads the driver, "
			       "\"fabrexctl doctor\" says whether there is "
			       "one");
	for (i = 0; i < n && !r; i++)
		r = device_open(&found[i], e);
	if (!r)
		return pfx_locate(f, found, n, e);
	for (i = 0; i < n; i++)
		device_close(&found[i]);
	return r;
}

static void close_all(struct backend *b)
{
	struct pfx_fabric *f = to_pfx(b);
	int i;

	pfx_unwatch(f);
	for (i = 0; i < f->ndevices; i++)
		device_close(&f->devices[i]);
	f->ndevices = 0;
	topology_free(f->t);
	free(f->switches);
	free(f->first_port);
	f->t = NULL;
	f->switches = NULL;
	f->first_port = NULL;
}

static int open_all(struct backend *b, struct err *e)
{
	struct pfx_fabric *f = to_pfx(b);
	int r = read_topology(f, e);

	if (!r) {
		pfx_number(f);
		r = open_devices(f, e);
	}
	if (r)
		close_all(b);
	return r;
}

static int list_fports(struct backend *b, struct model *m, struct err *e)
{
	struct pfx_fabric *f = to_pfx(b);
	int i;

	(void)e;
	for (i = 0; i < f->ndevices; i++) {
		const struct switchtec *d = &f->devices[i];
		const struct topo_host *h = &f->t->hosts[d->host];
		struct fport p = {
			.index = d->index, .manager = h->manager,
			.object_id = pfx_port_id(f, &h->ports[d->port]),
			.peer = topology_peer(f->t, d->host, d->port),
			.emulated = d->emulated, .alive = true,
			.objects = f->ids - 1,
		};

		snprintf(p.name, sizeof(p.name), "%s.%u", h->name, d->port);
		snprintf(p.host, sizeof(p.host), "%s", h->name);
		snprintf(p.fabric, sizeof(p.fabric), "%s", f->t->name);
		snprintf(p.driver, sizeof(p.driver), "switchtec");
		snprintf(p.device, sizeof(p.device), "%s", d->node);
		snprintf(p.parent, sizeof(p.parent), "%s", d->pci);
		model_put_fport(m, &p);
	}
	return 0;
}

static bool passes(const struct pfx_fabric *f, const struct filter *flt,
		   const struct object *o)
{
	struct topo_end port;
	uint32_t host = 0;

	if (o->bound && pfx_port(f, o->bound, &port))
		host = f->first_host +
		       f->t->switches[port.sw].ports[port.port - 1].owner;
	return (!flt->type || o->type == flt->type) &&
	       (!flt->parent || o->parent == flt->parent) &&
	       (!flt->bound || o->bound == flt->bound) &&
	       (!flt->host_id || host == flt->host_id);
}

static int list_objects(struct backend *b, const struct filter *flt,
			struct model *m, struct err *e)
{
	struct pfx_fabric *f = to_pfx(b);
	struct object o;
	uint32_t id;
	int r = pfx_look(f, e);

	for (id = 1; id < f->ids && !r; id++)
		if (pfx_object(f, id, &o) && passes(f, flt, &o))
			model_put(m, &o);
	return r;
}

static int one_object(struct backend *b, uint32_t type, uint32_t id,
		      const char *name, struct object *o, struct err *e)
{
	struct pfx_fabric *f = to_pfx(b);
	uint32_t first = name ? 1 : id, last = name ? f->ids - 1 : id;
	int r = pfx_look(f, e);

	if (r)
		return r;
	for (id = first; id <= last; id++)
		if (pfx_object(f, id, o) && (!type || o->type == type) &&
		    (!name || !strcmp(o->name, name)))
			return 0;
	if (name)
		return err_set(e, ENOENT, name, "the fabric has no element "
			       "\"%s\"", name);
	return err_set(e, ENOENT, NULL, "the fabric has no element with the id "
		       "%u", first);
}

/* ---- what a PFX does not offer ------------------------------------------- */

static int no_port_set(struct backend *b, uint32_t id, uint32_t action,
		       struct err *e)
{
	(void)b;
	(void)id;
	(void)action;
	return err_set(e, EOPNOTSUPP, NULL, "a Switchtec's ports cannot be "
		       "switched on, off or reset from here");
}

static int no_counters(struct backend *b, uint32_t id, struct counters *c,
		       struct err *e)
{
	(void)b;
	(void)id;
	(void)c;
	return err_set(e, EOPNOTSUPP, NULL, "the counters of Switchtecs have a "
		       "layout that is not public, so they cannot be read from "
		       "here");
}

static int no_links(struct backend *b, struct link_list *l, struct err *e)
{
	(void)l;
	return no_counters(b, 0, NULL, e);
}

static int no_reply(struct backend *b, const struct event *ev,
		    const struct holder *h, struct err *e)
{
	(void)b;
	(void)ev;
	(void)h;
	return err_set(e, EOPNOTSUPP, NULL, "nobody has asked");
}

static const struct backend_ops ops = {
	.open = open_all,
	.close = close_all,
	.fports = list_fports,
	.objects = list_objects,
	.object = one_object,
	.bind = pfx_bind,
	.unbind = pfx_unbind,
	.port_set = no_port_set,
	.counters = no_counters,
	.links = no_links,
	.subscribe = pfx_subscribe,
	.event_fd = pfx_event_fd,
	.events = pfx_events,
	.release_reply = no_reply,
	.places = pfx_places,
	.differs = pfx_differs,
};

/* ---- which file ---------------------------------------------------------- */

static bool default_file(char path[SYSFS_PATH])
{
	struct p2p_env env;

	fxi_p2p_env(&env);
	return !fxi_sysfs_path(path, env.root, "%s", SWITCHTEC_FILE);
}

bool switchtec_is_set_up(void)
{
	char path[SYSFS_PATH];

	return default_file(path) && !access(path, F_OK);
}

bool switchtec_is_here(void)
{
	struct switchtec v[DEVICE_MOST];
	struct err quiet = { 0 };
	struct p2p_env env;

	fxi_p2p_env(&env);
	return device_list(&env, v, &quiet) != 0;
}

struct backend *switchtec_backend(const char *file, mrpc_fn *command)
{
	struct pfx_fabric *f = xcalloc(1, sizeof(*f));
	char path[SYSFS_PATH] = SWITCHTEC_FILE;

	fxi_p2p_env(&f->env);
	if (!file)
		default_file(path);
	f->file = xstrdup(file ? file : path);
	f->command = command ? command : device_command;
	f->b.ops = &ops;
	f->b.whole_ports = f->b.cannot_ask = f->b.managing = true;
	f->b.change_seconds = CHANGE_SECONDS;
	f->b.wiring = f->file;
	return &f->b;
}

void switchtec_free(struct backend *b)
{
	struct pfx_fabric *f = b ? to_pfx(b) : NULL;

	if (!f)
		return;
	free(f->file);
	free(f);
}
