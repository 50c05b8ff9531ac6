// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands of the control socket. Called by control.c with one line each; loop
 * thread only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "control.h"
#include "loop.h"
#include "pfx.h"
#include "port.h"
#include "queue.h"
#include "throttle.h"

struct request {
	struct fabric *f;
	struct json_object *in, *out;
	char error[160];
};

typedef int (*command_fn)(struct request *r);

/* ---- Arguments ---- */

static int refuse(struct request *r, const char *what, const char *value,
		  const char *remedy)
{
	snprintf(r->error, sizeof(r->error), "%s%s%s%s; %s", what,
		 value ? " \"" : "", value ? value : "", value ? "\"" : "",
		 remedy);
	return -EINVAL;
}

static const char *text(struct request *r, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(r->in, key, &v) ||
	    !json_object_is_type(v, json_type_string))
		return NULL;
	return json_object_get_string(v);
}

static bool number(struct request *r, const char *key, int64_t def,
		   int64_t *out)
{
	struct json_object *v;

	*out = def;
	if (!json_object_object_get_ex(r->in, key, &v))
		return true;
	if (!json_object_is_type(v, json_type_int))
		return false;
	*out = json_object_get_int64(v);
	return true;
}

static uint32_t named(struct request *r, const char *key)
{
	const char *name = text(r, key);

	return name ? fabric_find(r->f, name) : 0;
}

static struct link *arg_link(struct request *r)
{
	uint32_t id = named(r, "port");

	if (id && fabric_link_by_id(r->f, id))
		return fabric_link_by_id(r->f, id);
	refuse(r, "there is no port", text(r, "port"),
	       "give \"port\": \"a.0\" or \"draco1:3\"");
	return NULL;
}

static struct port *arg_host_port(struct request *r)
{
	uint32_t id = named(r, "port");

	if (id && fabric_port_by_id(r->f, id))
		return fabric_port_by_id(r->f, id);
	refuse(r, "there is no host port", text(r, "port"),
	       "give \"port\": \"<host>.<index>\"");
	return NULL;
}

static int arg_endpoint(struct request *r, unsigned int *ep)
{
	uint32_t id = named(r, "endpoint");

	*ep = id ? fabric_ep_by_id(r->f, id) : TOPO_NONE;
	if (*ep != TOPO_NONE)
		return 0;
	return refuse(r, "there is no endpoint", text(r, "endpoint"),
		      "give \"endpoint\": \"<appliance>.<class><index>\"");
}

/* ---- JSON pieces ---- */

static void put_text(struct json_object *o, const char *key, const char *s)
{
	json_object_object_add(o, key, json_object_new_string(s));
}

static void put_int(struct json_object *o, const char *key, uint64_t v)
{
	json_object_object_add(o, key, json_object_new_uint64(v));
}

static struct json_object *counters_json(struct counters *c)
{
	struct json_object *o = json_object_new_object();

	for (unsigned int i = 0; i < CNT_MAX; i++)
		put_int(o, counter_name(i), count_get(c, i));
	return o;
}

static const char *object_type(unsigned int type)
{
	static const char *const names[] = {
		"?", "switch", "port", "host", "appliance", "endpoint"
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : "?";
}

static const char *object_state(const struct draco_object *o)
{
	static const char *const link[] = { "down", "up", "disabled" };
	static const char *const ep[] = {
		"free", "binding", "bound", "releasing", "gone", "attaching"
	};

	if (o->type == DRACO_OBJ_ENDPOINT && o->state < 6)
		return ep[o->state];
	if (o->type == DRACO_OBJ_PORT && o->state < 3)
		return link[o->state];
	if (o->type == DRACO_OBJ_HOST && o->state < 2)
		return link[o->state];
	return "";
}

static struct json_object *object_json(struct fabric *f,
				       const struct draco_object *o)
{
	struct json_object *j = json_object_new_object();
	struct draco_object other;

	put_text(j, "type", object_type(o->type));
	put_int(j, "id", o->id);
	put_text(j, "name", o->name);
	if (*object_state(o))
		put_text(j, "state", object_state(o));
	if (o->bound) {
		fabric_object(f, o->bound, &other);
		put_text(j, "bound", other.name);
		put_int(j, "slot", o->slot);
	}
	if (o->link) {
		fabric_object(f, o->link, &other);
		put_text(j, "link", other.name);
	}
	if (o->peer != 0xffff)
		put_int(j, "peer", o->peer);
	if (o->type == DRACO_OBJ_PORT && o->kind == DRACO_PORT_HOST)
		put_int(j, "generation", o->generation);
	return j;
}

static struct json_object *event_json(const struct draco_event *ev)
{
	struct json_object *j = json_object_new_object();
	struct json_object *args = json_object_new_array();

	put_int(j, "seq", ev->seq);
	put_int(j, "time_ns", ev->time_ns);
	put_int(j, "type", ev->type);
	put_int(j, "flags", ev->flags);
	put_int(j, "object", ev->object);
	put_int(j, "port", ev->port);
	put_int(j, "state", ev->state);
	for (unsigned int i = 0; i < 4; i++)
		json_object_array_add(args,
				      json_object_new_uint64(ev->arg[i]));
	json_object_object_add(j, "arg", args);
	return j;
}

/* ---- Commands ---- */

static int cmd_status(struct request *r)
{
	struct json_object *ports = json_object_new_array();

	put_text(r->out, "fabric", r->f->topo->name);
	put_int(r->out, "threads", r->f->engine.nthreads);
	for (unsigned int i = 0; i < r->f->nports; i++) {
		struct port *p = r->f->ports[i];
		struct json_object *o = json_object_new_object();

		put_text(o, "name", p->name);
		json_object_object_add(o, "ready",
				       json_object_new_boolean(port_is_ready(p)));
		put_int(o, "error", atomic_load(&p->error));
		put_int(o, "generation", atomic_load(&p->generation));
		json_object_object_add(o, "link",
				       json_object_new_boolean(
						atomic_load(&p->link->up)));
		json_object_array_add(ports, o);
	}
	json_object_object_add(r->out, "ports", ports);
	return 0;
}

static int cmd_topology(struct request *r)
{
	struct json_object *list = json_object_new_array();

	for (uint32_t id = 1; id <= r->f->nobjects; id++) {
		struct draco_object o;

		fabric_object(r->f, id, &o);
		json_object_array_add(list, object_json(r->f, &o));
	}
	json_object_object_add(r->out, "objects", list);
	return 0;
}

static int cmd_counters(struct request *r)
{
	uint32_t id = named(r, "object");
	struct port *p = fabric_port_by_id(r->f, id);
	struct link *l = fabric_link_by_id(r->f, id);
	unsigned int ep = fabric_ep_by_id(r->f, id);
	struct counters *c = p ? &p->counters : l ? &l->counters :
			     ep != TOPO_NONE ? &r->f->eps[ep].counters : NULL;

	if (!c)
		return refuse(r, "there are no counters of", text(r, "object"),
			      "give \"object\": the name of a port or endpoint");
	json_object_object_add(r->out, "counters", counters_json(c));
	return 0;
}

static int cmd_link(struct request *r)
{
	const char *state = text(r, "state");
	struct link *l = arg_link(r);

	if (!l)
		return -EINVAL;
	if (!state || (strcmp(state, "down") && strcmp(state, "up")))
		return refuse(r, "unknown link state", state,
			      "give \"state\": \"down\" or \"up\"");
	fabric_link_break(r->f, l, !strcmp(state, "down"));
	return 0;
}

static int cmd_remove(struct request *r)
{
	unsigned int ep;

	if (arg_endpoint(r, &ep))
		return -EINVAL;
	if (binding_remove(r->f, ep))
		return refuse(r, "not in the appliance:", text(r, "endpoint"),
			      "insert it first");
	return 0;
}

static int cmd_insert(struct request *r)
{
	unsigned int ep;

	if (arg_endpoint(r, &ep))
		return -EINVAL;
	if (binding_insert(r->f, ep))
		return refuse(r, "already in the appliance:",
			      text(r, "endpoint"), "remove it first");
	return 0;
}

static void announce(struct request *r, struct port *p, unsigned int kind)
{
	struct draco_event ev = {
		.type = DRACO_EV_FAULT, .obj_type = DRACO_OBJ_PORT,
		.object = p->link->id, .port = p->link->id, .arg = { kind },
	};

	event_post_all(r->f, &ev);
}

/* Type of the event to be lost; -1: any. */
static int arg_event(struct request *r, int64_t *type)
{
	static const char *const names[] = {
		[DRACO_EV_LINK] = "link",
		[DRACO_EV_PEER_UP] = "peer-up",
		[DRACO_EV_PEER_DOWN] = "peer-down",
		[DRACO_EV_EP_STATE] = "endpoint",
		[DRACO_EV_RELEASE_REQUEST] = "release-request",
		[DRACO_EV_RESET] = "reset",
	};
	const char *name = text(r, "event");

	*type = -1;
	if (!name)
		return 0;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i] && !strcmp(names[i], name)) {
			*type = i;
			return 0;
		}
	}
	return refuse(r, "unknown event", name,
		      "choose link, peer-up, peer-down, endpoint, release-request or reset, or leave it out");
}

static int arm(struct request *r, unsigned int kind, int64_t queue)
{
	struct port *p = arg_host_port(r);
	int64_t n;

	if (!p)
		return -EINVAL;
	if (!number(r, "count", 1, &n) || n < 0 || n > UINT32_MAX)
		return refuse(r, "bad count", NULL,
			      "give \"count\": a number, 0 to disarm");
	/* Before, as the announcement is an event too. */
	if (n)
		announce(r, p, kind);
	fault_arm(&p->faults, kind, queue < 0 ? FAULT_ANY_QUEUE : queue, n);
	put_int(r->out, "taken", fault_taken(&p->faults, kind));
	return 0;
}

static int bad_number(struct request *r, const char *key, int64_t max)
{
	snprintf(r->error, sizeof(r->error),
		 "bad %s; give \"%s\": a number from 0 to %lld", key, key,
		 (long long)max);
	return -EINVAL;
}

/* A number from 0 to @max, or @def if it is not given. */
static int number_to(struct request *r, const char *key, uint32_t def,
		     uint32_t max, uint32_t *out)
{
	int64_t v;

	if (!number(r, key, def, &v) || v < 0 || (v > max && v != def))
		return bad_number(r, key, max);
	*out = (uint32_t)v;
	return 0;
}

/* A host port of a PFX: its firmware answers commands, and has no queues. */
static int fault_pfx(struct request *r, struct pfx_part *p, const char *kind)
{
	struct pfx_fault f = { .kind = kind ? pfx_fault_kind(kind) : 0 };
	bool is_short = f.kind == PFX_FAULT_SHORT;
	uint32_t taken;

	if (!f.kind)
		return refuse(r, "unknown fault of a Switchtec PFX",
			      kind, "choose corrupt-completion, short-answer, wrong-answer, wrong-return, lost-store, failed-copy, or command admin-hang");
	if (number_to(r, "opcode", PFX_FAULT_ANY, 0xffff, &f.opcode) ||
	    number_to(r, "sub", PFX_FAULT_ANY, 0xff, &f.sub) ||
	    number_to(r, is_short ? "length" : "offset", 0, MRPC_PAYLOAD - 1,
		      &f.at) ||
	    number_to(r, "value", 0, f.kind == PFX_FAULT_BYTE ? 0xff :
		      UINT32_MAX, &f.value) ||
	    number_to(r, "count", 1, UINT32_MAX, &f.left))
		return -EINVAL;
	if (pfx_fault_arm(p, &f, &taken))
		return refuse(r, "too many faults are armed at port",
			      text(r, "port"), "disarm some with \"count\": 0");
	put_int(r->out, "taken", taken);
	return 0;
}

/* The number may be another queue's by now, which nothing was armed for. */
static void keep_to(struct request *r, int64_t number, const char *key)
{
	struct port *p = arg_host_port(r);
	struct queue *q = queue_get_by_key(p, strtoull(key, NULL, 0));

	if (q)
		queue_put(q);
	else
		fault_forget_queue(&p->faults, (uint32_t)number);
}

static int cmd_fault(struct request *r)
{
	const char *name = text(r, "kind"), *key = text(r, "key");
	unsigned int kind = name ? fault_kind(name) : 0;
	struct port *p = arg_host_port(r);
	int64_t queue;
	int ret;

	if (!p)
		return -EINVAL;
	if (p->part)
		return fault_pfx(r, p->part, name);
	if (!kind)
		return refuse(r, "unknown kind of fault", name,
			      "choose stuck-completion, corrupt-completion, corrupt-payload, drop-doorbell, late-access, stuck-stop or lost-event");
	if (kind == DRACO_FAULT_LOST_EVENT)
		return arg_event(r, &queue) ? -EINVAL : arm(r, kind, queue);
	if (!number(r, "queue", -1, &queue) || queue < -1 || queue > 65535)
		return refuse(r, "bad queue", NULL,
			      "give \"queue\": its number, or leave it out");
	ret = arm(r, kind, queue);
	if (!ret && key)
		keep_to(r, queue, key);
	return ret;
}

static int cmd_admin_hang(struct request *r)
{
	struct port *p = arg_host_port(r);
	int64_t opcode;

	if (!p)
		return -EINVAL;
	if (p->part)
		return fault_pfx(r, p->part, "admin-hang");
	if (!number(r, "opcode", -1, &opcode) || opcode < -1 || opcode > 255)
		return refuse(r, "bad opcode", NULL,
			      "give \"opcode\": that of the commands that hang, or leave it out");
	return arm(r, DRACO_FAULT_ADMIN_HANG, opcode);
}

static int cmd_slow(struct request *r)
{
	struct link *l = arg_link(r);
	int64_t rate;

	if (!l)
		return -EINVAL;
	if (!number(r, "bytes_per_second", -1, &rate) || rate < 0)
		return refuse(r, "bad bytes_per_second", NULL,
			      "give a number, 0 for full speed");
	fabric_link_slow(r->f, l, rate);
	return 0;
}

static int cmd_throttle(struct request *r)
{
	struct json_object *v;
	double factor;

	if (json_object_object_get_ex(r->in, "factor", &v)) {
		factor = json_object_get_double(v);
		if (!json_object_is_type(v, json_type_double) &&
		    !json_object_is_type(v, json_type_int))
			factor = -1;
		if (factor != 0 &&
		    !(factor >= THROTTLE_LEAST && factor <= 1))
			return refuse(r, "bad factor", NULL,
				      "give a number from 1e-9 to 1, 0 for no limit");
		throttle_set(r->f, factor);
	}
	json_object_object_add(r->out, "factor", json_object_new_double(
						throttle_factor(r->f)));
	return 0;
}

static int cmd_switch_reset(struct request *r)
{
	uint32_t id = named(r, "switch");
	struct draco_event ev = {
		.type = DRACO_EV_RESET, .obj_type = DRACO_OBJ_SWITCH,
		.object = id,
	};

	if (!id || id > r->f->topo->nswitches)
		return refuse(r, "there is no switch", text(r, "switch"),
			      "give \"switch\": its name");
	event_post_all(r->f, &ev);
	for (unsigned int i = 0; i < r->f->nports; i++) {
		if (fabric_switch_id(r->f, r->f->ports[i]->link->sw) == id)
			port_fail(r->f->ports[i], DRACO_FATAL_RESET);
	}
	return 0;
}

static struct json_object *late_json(const struct audit_late *l)
{
	struct json_object *j = json_object_new_object();

	put_text(j, "port", l->port);
	put_text(j, "access", l->write ? "write" : "read");
	put_int(j, "address", l->addr);
	put_int(j, "length", l->len);
	put_int(j, "start_ns", l->start_ns);
	put_int(j, "end_ns", l->end_ns);
	put_int(j, "revoked_ns", l->revoked_ns);
	put_int(j, "range_start", l->range_start);
	put_int(j, "range_end", l->range_end);
	return j;
}

static void put_audit(struct request *r)
{
	struct json_object *list = json_object_new_array();
	struct audit_report rep;

	audit_read(&r->f->audit, &rep);
	json_object_object_add(r->out, "on", json_object_new_boolean(rep.on));
	put_int(r->out, "accesses", rep.accesses);
	put_int(r->out, "bytes", rep.bytes);
	put_int(r->out, "revocations", rep.revocations);
	put_int(r->out, "ranges", rep.ranges);
	put_int(r->out, "late", rep.late);
	put_int(r->out, "dropped", rep.dropped);
	for (unsigned int i = 0; i < rep.ndetails; i++)
		json_object_array_add(list, late_json(&rep.details[i]));
	json_object_object_add(r->out, "details", list);
}

static int cmd_audit(struct request *r)
{
	const char *action = text(r, "action");
	bool on = action && !strcmp(action, "on");
	int err = 0;

	if (on || (action && !strcmp(action, "off")))
		err = audit_switch(r->f, on);
	else if (!action || strcmp(action, "report"))
		return refuse(r, "unknown action", action,
			      "give \"action\": \"on\", \"off\" or \"report\"");
	if (err)
		return refuse(r, "no memory for the audit log", NULL,
			      "free some");
	put_audit(r);
	return 0;
}

static int cmd_log(struct request *r)
{
	static struct draco_event events[EVENT_LOG_LEN];
	struct json_object *list;
	int64_t want;
	size_t n;

	if (!number(r, "count", EVENT_LOG_LEN, &want) || want < 0)
		return refuse(r, "bad count", NULL, "give a number");
	n = event_log_read(&r->f->events, 0, events, EVENT_LOG_LEN);
	list = json_object_new_array();
	for (size_t i = n > (size_t)want ? n - want : 0; i < n; i++)
		json_object_array_add(list, event_json(&events[i]));
	json_object_object_add(r->out, "events", list);
	return 0;
}

static int cmd_quit(struct request *r)
{
	(void)r;
	loop_quit();
	return 0;
}

static const struct {
	const char *name;
	command_fn fn;
} commands[] = {
	{ "status", cmd_status },
	{ "topology", cmd_topology },
	{ "counters", cmd_counters },
	{ "link", cmd_link },
	{ "remove", cmd_remove },
	{ "insert", cmd_insert },
	{ "fault", cmd_fault },
	{ "admin-hang", cmd_admin_hang },
	{ "slow", cmd_slow },
	{ "throttle", cmd_throttle },
	{ "switch-reset", cmd_switch_reset },
	{ "audit", cmd_audit },
	{ "log", cmd_log },
	{ "quit", cmd_quit },
};

static int run(struct request *r)
{
	const char *name;

	if (!json_object_is_type(r->in, json_type_object))
		return refuse(r, "not a JSON object", NULL,
			      "send {\"cmd\": \"status\"} and a new line");
	name = text(r, "cmd");
	for (unsigned int i = 0; name &&
	     i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(commands[i].name, name))
			return commands[i].fn(r);
	}
	return refuse(r, "unknown command", name, "see draco-emu(8)");
}

struct json_object *control_execute(struct fabric *f, const char *line)
{
	struct request r = { .f = f, .in = json_tokener_parse(line),
			     .out = json_object_new_object() };
	int err = run(&r);

	json_object_object_add(r.out, "ok", json_object_new_boolean(!err));
	if (err)
		put_text(r.out, "error", r.error);
	json_object_put(r.in);
	return r.out;
}
