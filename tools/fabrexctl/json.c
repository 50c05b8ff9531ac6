// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of all elements. The keys are an interface: fabrexctl-list(8) and
 * the other manual pages document them. Called by the commands.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "json.h"
#include "names.h"
#include "util.h"
#include "topology/visible.h"

void rec_put(json_object *o, const char *key, json_object *v)
{
	json_object_object_add_ex(o, key, v, JSON_C_OBJECT_ADD_KEY_IS_NEW |
				  JSON_C_OBJECT_KEY_IS_CONSTANT);
}

void rec_str(json_object *o, const char *key, const char *s)
{
	rec_put(o, key, s && *s ? json_text(s) : NULL);
}

json_object *json_text(const char *s)
{
	char *copy = xstrdup(s);
	json_object *v;

	visible_utf8(copy, strlen(copy));
	v = json_object_new_string(copy);
	free(copy);
	return v;
}

void rec_int(json_object *o, const char *key, int64_t v)
{
	rec_put(o, key, json_object_new_int64(v));
}

void rec_bool(json_object *o, const char *key, bool v)
{
	rec_put(o, key, json_object_new_boolean(v));
}

void rec_double(json_object *o, const char *key, double v, int digits)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*f", digits, v);
	rec_put(o, key, json_object_new_double_s(v, text));
}

const char *rec_get_str(json_object *o, const char *key)
{
	json_object *v;

	return json_object_object_get_ex(o, key, &v) && v ?
	       json_object_get_string(v) : NULL;
}

int64_t rec_get_num(json_object *o, const char *key)
{
	json_object *v;

	return json_object_object_get_ex(o, key, &v) && v ?
	       json_object_get_int64(v) : 0;
}

bool rec_get_flag(json_object *o, const char *key)
{
	json_object *v;

	return json_object_object_get_ex(o, key, &v) && v &&
	       json_object_get_boolean(v);
}

json_object *json_error(const struct err *e)
{
	json_object *doc = json_object_new_object();
	json_object *o = json_object_new_object();

	rec_str(o, "errno", err_name(e->code));
	rec_str(o, "object", e->object);
	rec_str(o, "message", e->message);
	rec_int(o, "exit_code", err_exit_code(e));
	rec_put(doc, "error", o);
	return doc;
}

static json_object *json_group_names(const struct fport *p)
{
	json_object *names = json_object_new_array();
	int i;

	for (i = 0; i < GROUP_NAMES && *p->group_names[i]; i++)
		json_object_array_add(names, json_text(p->group_names[i]));
	return names;
}

/* How it moves payload. */
static void json_fport_path(json_object *o, const struct fport *p)
{
	rec_str(o, "bridge_driver", p->bridge);
	rec_str(o, "mode", p->mode);
	rec_str(o, "engine", p->engine);
	rec_str(o, "protection",
		p->protection ? protection_name(p->protection) : NULL);
	rec_str(o, "iommu_group", p->group);
	rec_put(o, "group_others",
		*p->group ? json_object_new_int64(p->group_others) : NULL);
	rec_put(o, "group_devices", *p->group ? json_group_names(p) : NULL);
}

json_object *json_fport(const struct fport *p)
{
	json_object *o = json_object_new_object();

	rec_str(o, "name", p->name);
	rec_int(o, "index", p->index);
	rec_str(o, "device", p->device);
	rec_str(o, "host", p->host);
	rec_str(o, "fabric", p->fabric);
	rec_str(o, "driver", p->driver);
	rec_str(o, "pci_name", p->parent);
	rec_int(o, "id", p->object_id);
	rec_int(o, "peer", p->peer);
	rec_int(o, "generation", p->generation);
	rec_bool(o, "manager", p->manager);
	rec_bool(o, "emulated", p->emulated);
	rec_bool(o, "alive", p->alive);
	rec_int(o, "queues", p->queues);
	rec_int(o, "mrs", p->mrs);
	rec_int(o, "windows", p->windows);
	rec_int(o, "pinned_bytes", p->pinned_bytes);
	rec_int(o, "open_files", p->open_files);
	rec_int(o, "objects", p->objects);
	json_fport_path(o, p);
	return o;
}

json_object *json_switch(const struct model *m, const struct object *sw)
{
	json_object *o = json_object_new_object();
	unsigned int ports = 0, up = 0;
	size_t i;

	for (i = 0; i < m->n; i++) {
		const struct object *p = m->objects[i];

		if (p->type != T_PORT || p->parent != sw->id)
			continue;
		ports++;
		up += p->state == FABREX_LINK_STATE_UP;
	}
	rec_str(o, "name", sw->name);
	rec_int(o, "id", sw->id);
	rec_int(o, "ports", ports);
	rec_int(o, "ports_up", up);
	return o;
}

static void json_link(json_object *o, const char *key, const struct object *p,
		      bool max)
{
	json_object *l = json_object_new_object();

	rec_double(l, "gigatransfers", (max ? p->max_speed : p->speed) / 1e3,
		    1);
	rec_int(l, "width", max ? p->max_width : p->width);
	rec_put(o, key, l);
}

json_object *json_port(const struct model *m, const struct object *p)
{
	bool host = p->kind == FABREX_PORT_KIND_HOST;
	json_object *o = json_object_new_object();

	rec_str(o, "name", p->name);
	rec_int(o, "id", p->id);
	rec_str(o, "switch", model_name(m, p->parent));
	rec_int(o, "number", p->number);
	rec_str(o, "kind", kind_name(T_PORT, p->kind));
	rec_str(o, "state", state_name(T_PORT, p->state));
	rec_str(o, "leads_to", model_name(m, p->link));
	json_link(o, "link", p, false);
	json_link(o, "capability", p, true);
	rec_put(o, "peer", host ? json_object_new_int64(p->peer) : NULL);
	rec_put(o, "generation",
		 host ? json_object_new_int64(p->generation) : NULL);
	rec_put(o, "manager",
		 host ? json_object_new_boolean(p->manager) : NULL);
	rec_bool(o, "local", model_local(m, p->id));
	return o;
}

json_object *json_host(const struct model *m, const struct object *h)
{
	json_object *o = json_object_new_object();
	json_object *ports = json_object_new_array();
	size_t i;

	for (i = 0; i < m->n; i++) {
		const struct object *p = m->objects[i];

		if (p->type == T_PORT && p->kind == FABREX_PORT_KIND_HOST &&
		    p->link == h->id)
			json_object_array_add(ports,
					      json_object_new_string(p->name));
	}
	rec_str(o, "name", h->name);
	rec_int(o, "id", h->id);
	rec_str(o, "state", state_name(T_HOST, h->state));
	rec_put(o, "ports", ports);
	rec_bool(o, "local", m->nfports &&
		  !__builtin_strcmp(m->fports[0].host, h->name));
	return o;
}

json_object *json_appliance(const struct model *m, const struct object *a)
{
	json_object *o = json_object_new_object();
	json_object *uplinks = json_object_new_array();
	size_t i;

	for (i = 0; i < m->n; i++) {
		const struct object *p = m->objects[i];

		if (p->type == T_PORT && p->kind == FABREX_PORT_KIND_UPLINK &&
		    p->link == a->id)
			json_object_array_add(uplinks,
					      json_object_new_string(p->name));
	}
	rec_str(o, "name", a->name);
	rec_int(o, "id", a->id);
	rec_str(o, "kind", kind_name(T_APPLIANCE, a->kind));
	rec_put(o, "uplinks", uplinks);
	return o;
}

/* What the kernel of this host knows about an endpoint composed to it. */
static void json_endpoint_device(json_object *o, const struct object *ep)
{
	struct device_text d;

	device_describe(ep->pci_name, &d);
	rec_str(o, "pci_name", ep->pci_name);
	rec_str(o, "driver", *d.driver ? d.driver : ep->pci_driver);
	rec_str(o, "pci_class", d.class);
	rec_str(o, "sysfs", d.sysfs);
}

json_object *json_endpoint(const struct model *m, const struct object *ep)
{
	json_object *o = json_object_new_object();
	const struct object *uplink = model_get(m, ep->link);
	const struct object *host = model_owner(m, ep);
	char id[16];

	snprintf(id, sizeof(id), "%04x:%04x", ep->pci_vendor, ep->pci_device);
	rec_str(o, "name", ep->name);
	rec_int(o, "id", ep->id);
	rec_str(o, "kind", kind_name(T_ENDPOINT, ep->kind));
	rec_str(o, "state", state_name(T_ENDPOINT, ep->state));
	rec_str(o, "appliance", model_name(m, ep->parent));
	rec_int(o, "number", ep->number);
	rec_str(o, "uplink", uplink ? uplink->name : NULL);
	rec_str(o, "switch", uplink ? model_name(m, uplink->parent) : NULL);
	rec_str(o, "host", host ? host->name : NULL);
	rec_str(o, "port", model_name(m, ep->bound));
	rec_put(o, "slot", ep->bound ? json_object_new_int64(ep->slot) : NULL);
	rec_str(o, "pci_id", id);
	rec_int(o, "size", ep->size);
	rec_int(o, "width", ep->width);
	json_endpoint_device(o, ep);
	return o;
}

json_object *json_event(const struct event *ev)
{
	json_object *o = json_object_new_object();
	bool state = ev->has_state && ev->object_type &&
		     *state_words(ev->object_type);

	rec_str(o, "type", event_name(ev->type));
	rec_int(o, "seq", ev->seq);
	rec_double(o, "time", ev->time_ns / 1e9, 6);
	rec_int(o, "fport", ev->fport);
	rec_str(o, "object_type",
		 ev->object_type ? type_name(ev->object_type) : NULL);
	rec_int(o, "id", ev->object);
	rec_str(o, "name", ev->name);
	rec_str(o, "state",
		 state ? state_name(ev->object_type, ev->state) : NULL);
	rec_str(o, "port", ev->port_name);
	rec_put(o, "slot", ev->slot ? json_object_new_int64(ev->slot) : NULL);
	rec_put(o, "generation", ev->generation ?
		 json_object_new_int64(ev->generation) : NULL);
	rec_str(o, "pci_name", ev->pci_name);
	rec_bool(o, "surprise", ev->surprise);
	return o;
}
