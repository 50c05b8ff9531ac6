// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes: a physical port of the switch to a partition, with all that is behind
 * it, and back. What does not fit is refused before anything moves.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "fabric.h"
#include "holders.h"
#include "util.h"

#define LOOK_MS		50	/* how often, whatever events say */
#define TRIES		8	/* other managers take the logical port first */

/* A change of one port. */
struct change {
	struct pfx_fabric *f;
	uint32_t ep;
	struct topo_end uplink;
	struct switchtec *d;
	char name[CTL_NAME_LEN * 2];	/* of the uplink */
	uint8_t partition, logical;
	const struct switchtec *local;	/* unbind: of whose slot; or NULL */
	char bridge[PCI_NAME_LEN];	/* above it; "" if it is not found */
};

static const char *host_of(const struct pfx_fabric *f,
			   const struct topo_end *port)
{
	const struct topo_port *p;

	if (!port)
		return "a host that the topology file does not have";
	p = &f->t->switches[port->sw].ports[port->port - 1];
	return f->t->hosts[p->owner].name;
}

static struct port_bind *bind_of(struct change *ch)
{
	return &ch->f->switches[ch->uplink.sw].bind[ch->uplink.port];
}

static bool in_progress(struct change *ch)
{
	return bind_of(ch)->result == MRPC_BIND_IN_PROGRESS;
}

/* Which port, which switch, and whether it may be touched from here. */
static int begin(struct pfx_fabric *f, uint32_t id, struct change *ch,
		 struct err *e)
{
	unsigned int ep = pfx_endpoint(f, id);
	int r;

	memset(ch, 0, sizeof(*ch));
	ch->f = f;
	ch->ep = id;
	if (ep == TOPO_NONE)
		return err_set(e, ENOENT, NULL, "no endpoint has the id %u",
			       id);
	ch->uplink = *pfx_uplink(f, ep);
	pfx_port_name(f, &ch->uplink, ch->name);
	r = pfx_look_at(f, ch->uplink.sw, e);
	if (r)
		return r;
	ch->d = f->switches[ch->uplink.sw].device;
	if (!f->t->hosts[ch->d->host].manager)
		return pfx_denied(f, ch->d, "it is no manager in the topology "
				  "file", e);
	if (in_progress(ch))
		return err_set(e, EALREADY, ch->name, "%s is being bound or "
			       "unbound; wait until that has ended", ch->name);
	return 0;
}

/* ---- commands and what they return --------------------------------------- */

static const char *const words[] = {
	[MRPC_BIND_RET_PORT_BOUND] = "the port has just been bound by another manager",
	[MRPC_BIND_RET_LOGICAL_BOUND] = "another port is bound to that logical port",
	[MRPC_BIND_RET_NO_PARTITION] = "the switch has no such partition",
	[MRPC_BIND_RET_NO_PORT] = "the switch has no such port, or it cannot be bound",
	[MRPC_BIND_RET_DISABLED] = "the port is disabled",
	[MRPC_BIND_RET_NO_LOGICAL] = "the partition has no such logical port: the switch is configured with fewer than \"slots\" says",
	[MRPC_BIND_RET_IN_PROGRESS] = "another change is in progress",
	[MRPC_BIND_RET_UPSTREAM] = "for the switch it is an upstream port",
	[MRPC_BIND_RET_SUB] = "it does not know the sub-command",
	[MRPC_BIND_RET_LINK_ACTIVE] = "the link is still active; power the slot off in the host that has it",
	[MRPC_BIND_RET_NOT_BOUND] = "the port has just been unbound by another manager",
	[MRPC_BIND_RET_OPTION] = "it does not know the option",
	[MRPC_BIND_RET_CHECK] = "its own check has failed",
};

static int code_of(uint32_t ret)
{
	switch (ret) {
	case MRPC_BIND_RET_PORT_BOUND:
	case MRPC_BIND_RET_LOGICAL_BOUND:
		return EADDRINUSE;
	case MRPC_BIND_RET_IN_PROGRESS:
	case MRPC_BIND_RET_NOT_BOUND:
		return EALREADY;
	case MRPC_BIND_RET_LINK_ACTIVE:
		return EBUSY;
	case MRPC_BIND_RET_DISABLED:
		return ENETDOWN;
	case MRPC_BIND_RET_NO_LOGICAL:
		return ENOSPC;
	default:
		return EPROTO;
	}
}

static int refused(struct change *ch, const char *what, uint32_t ret,
		   struct err *e)
{
	if (ret < ARRAY_SIZE(words) && words[ret])
		return err_set(e, code_of(ret), ch->name, "the switch does not "
			       "%s %s: %s", what, ch->name, words[ret]);
	return err_set(e, EPROTO, ch->name, "the switch does not %s %s: it "
		       "returns %#x, which is not known here", what, ch->name,
		       ret);
}

/* A change that is begun; without an answer it may be under way all the same. */
static int send(struct change *ch, const uint8_t in[4], uint32_t *ret,
		struct err *e)
{
	uint8_t out[4];
	int r = pfx_send(ch->f, ch->d, MRPC_BIND, in, 4, out, sizeof(out), ret,
			 e);

	if (r == -EPERM)
		return pfx_denied(ch->f, ch->d, "the switch's configuration "
				  "denies it", e);
	e->unsure = r && r != -EBUSY && r != -EOPNOTSUPP;
	return r;
}

/* How it is with the port. */
static int ask(struct change *ch, struct port_bind *b, struct err *e)
{
	const uint8_t in[4] = { MRPC_BIND_INFO, (uint8_t)ch->uplink.port };
	struct port_bind v[ANSWER_PORTS];
	uint8_t out[ANSWER_BINDS_SIZE];
	uint32_t ret;
	int r = pfx_send(ch->f, ch->d, MRPC_BIND, in, sizeof(in), out,
			 sizeof(out), &ret, e);

	if (!r && ret)
		r = refused(ch, "say how it is with", ret, e);
	if (!r)
		r = answer_binds(out, (uint8_t)ch->uplink.port, v, e);
	if (r) {
		err_about(e, ch->name);
		return r;
	}
	*b = *bind_of(ch) = v[ch->uplink.port];
	return 0;
}

/* Until an event, or for a moment. */
static void pause_for_event(struct change *ch)
{
	struct pollfd p = { .fd = ch->d->fd, .events = POLLPRI };
	struct err quiet = { 0 };

	if (poll(&p, 1, LOOK_MS) > 0)
		device_watch(ch->d, &quiet);
}

static int wait_until_over(struct change *ch, struct port_bind *b,
			   struct err *e)
{
	const volatile sig_atomic_t *stop = ch->f->b.stop;
	double end = now() + CHANGE_SECONDS;
	int r;

	while (!(r = ask(ch, b, e)) && b->result == MRPC_BIND_IN_PROGRESS) {
		if (stop && *stop)
			return err_set(e, EINTR, ch->name, "interrupted; the "
				       "switch is still changing %s", ch->name);
		if (now() > end)
			return err_set(e, ETIMEDOUT, ch->name, "the switch "
				       "has not finished changing %s after "
				       "%.0f s and may still do so; see "
				       "\"fabrexctl list\"", ch->name,
				       CHANGE_SECONDS);
		pause_for_event(ch);
	}
	return r;
}

/* ---- bind ---------------------------------------------------------------- */

static int find_partition(struct change *ch, const struct topo_end *to,
			  struct err *e)
{
	const struct port_link *l = &ch->f->switches[to->sw].link[to->port];
	const char *host = host_of(ch->f, to);

	if (to->sw != ch->uplink.sw)
		return err_set(e, EHOSTUNREACH, ch->name, "%s is a port of another "
			       "switch than the one host %s is connected to; a "
			       "PFX binds its own ports only", ch->name, host);
	if (!l->there || !l->placed)
		return err_set(e, EHOSTUNREACH, host, "the switch does not say "
			       "which partition port %u, that of host %s, "
			       "belongs to", to->port, host);
	ch->partition = l->partition;
	return 0;
}

static bool place_taken(const struct change *ch, unsigned int logical)
{
	const struct pfx *x = &ch->f->switches[ch->uplink.sw];
	unsigned int i;

	for (i = 0; i < ANSWER_PORTS; i++)
		if ((x->bind[i].bound &&
		     x->bind[i].partition == ch->partition &&
		     x->bind[i].logical == logical) ||
		    (x->link[i].placed && !x->link[i].upstream &&
		     x->link[i].partition == ch->partition &&
		     x->link[i].logical == logical))
			return true;
	return false;
}

unsigned int pfx_places(struct backend *b, uint32_t port)
{
	struct pfx_fabric *f = to_pfx(b);
	const struct topo_port *p;
	struct topo_end end;

	if (!pfx_port(f, port, &end))
		return 0;
	p = &f->t->switches[end.sw].ports[end.port - 1];
	return p->kind == TOPO_PORT_HOST ? f->t->hosts[p->owner].slots : 0;
}

/* The lowest one that nothing is bound to, above @after. */
static int find_place(struct change *ch, const struct topo_end *to,
		      unsigned int after, struct err *e)
{
	const char *host = host_of(ch->f, to);
	unsigned int n, most = pfx_places(&ch->f->b, pfx_port_id(ch->f, to));

	for (n = after + 1; n <= most && place_taken(ch, n); n++)
		;
	if (n > most)
		return err_set(e, ENOSPC, host, "all %u logical ports of host "
			       "%s are in use; release something there, or "
			       "give it more \"slots\" in %s if the switch is "
			       "configured with more", most, host, ch->f->file);
	ch->logical = (uint8_t)n;
	return 0;
}

static int check_bind(struct change *ch, const struct topo_end *to,
		      struct err *e)
{
	const struct port_bind *b = bind_of(ch);
	int r = find_partition(ch, to, e);

	if (!r && b->bound)
		r = err_set(e, EADDRINUSE, ch->name, "%s is bound to %s",
			    ch->name,
			    host_of(ch->f, pfx_bound_to(ch->f, &ch->uplink)));
	return r ? r : find_place(ch, to, 0, e);
}

/* Another manager may take the same place in the same moment. */
static int send_bind(struct change *ch, const struct topo_end *to,
		     struct err *e)
{
	uint32_t ret = 0;
	unsigned int i;
	int r;

	for (i = 0; i < TRIES; i++) {
		const uint8_t in[4] = { MRPC_BIND_BIND, ch->partition,
					ch->logical, (uint8_t)ch->uplink.port };

		r = send(ch, in, &ret, e);
		if (r || ret != MRPC_BIND_RET_LOGICAL_BOUND)
			break;
		r = pfx_look_at(ch->f, ch->uplink.sw, e);
		if (!r)
			r = find_place(ch, to, ch->logical, e);
		if (r)
			return r;
	}
	return r || !ret ? r : refused(ch, "bind", ret, e);
}

static int check_bound(struct change *ch, const struct port_bind *b,
		       struct err *e)
{
	if (b->result == MRPC_BIND_OK && b->bound &&
	    b->partition == ch->partition && b->logical == ch->logical)
		return 0;
	if (b->result == MRPC_BIND_OK)
		return err_set(e, EBUSY, ch->name, "%s was bound, but another "
			       "manager changed it at once", ch->name);
	return err_set(e, EIO, ch->name, "the switch has tried to bind %s and "
		       "failed; its log may say why", ch->name);
}

/* A slot that was left off, as after a release, may not notice by itself. */
static void wake_slot(struct change *ch)
{
	const struct switchtec *d = pfx_local(ch->f, &ch->uplink);
	struct err quiet = { 0 };
	char bridge[PCI_NAME_LEN];

	if (d && slot_bridge(&ch->f->env, d->pci, ch->logical, bridge) &&
	    slot_is_off(&ch->f->env, bridge))
		slot_power(&ch->f->env, bridge, true, &quiet);
}

static int finish_bind(struct change *ch, struct err *e)
{
	struct port_bind b;
	int r = wait_until_over(ch, &b, e);

	if (!r)
		r = check_bound(ch, &b, e);
	e->unsure = r;
	if (!r)
		wake_slot(ch);
	return r;
}

int pfx_bind(struct backend *b, uint32_t ep, uint32_t port, bool dry,
	     uint32_t *slot, struct err *e)
{
	struct pfx_fabric *f = to_pfx(b);
	struct topo_end to;
	struct change ch;
	int r;

	*slot = 0;
	if (!pfx_port(f, port, &to) ||
	    f->t->switches[to.sw].ports[to.port - 1].kind != TOPO_PORT_HOST)
		return err_set(e, EINVAL, NULL, "the target is no port of a "
			       "host");
	r = begin(f, ep, &ch, e);
	if (!r)
		r = check_bind(&ch, &to, e);
	if (!r && !dry)
		r = send_bind(&ch, &to, e);
	if (!r && !dry)
		r = finish_bind(&ch, e);
	if (!r)
		*slot = ch.logical;
	return r;
}

/* ---- unbind: may it go? -------------------------------------------------- */

/* "pid 17 (python3) "; "" if it is no process. */
static const char *who(const struct holder *h, char *text, size_t len)
{
	text[0] = '\0';
	if (h->pid)
		snprintf(text, len, "pid %u (%s) ", h->pid, h->comm);
	return text;
}

/* Who uses one of the devices behind the port, of this host. */
static int check_holders(struct change *ch, struct err *e)
{
	char proc[300], sys[300], text[64];
	const struct holder_roots roots = { proc, sys };
	struct below v[BELOW_MOST];
	unsigned int i, n = slot_below(&ch->f->env, ch->bridge, v);
	struct err gone = { 0 };
	struct holders h = { 0 };
	int r = 0;

	snprintf(proc, sizeof(proc), "%s/proc", ch->f->env.root);
	snprintf(sys, sizeof(sys), "%s/sys", ch->f->env.root);
	for (i = 0; i < n && !r; i++) {
		r = holders_find(&roots, v[i].name, &h, &gone);
		if (r == -ENODEV)
			r = 0;
		else if (r)
			*e = gone;
		if (!r && h.n)
			r = err_set(e, EBUSY, ch->name, "%s, which came with "
				    "%s, is in use: %s%s; stop that, or take "
				    "it away with --force", v[i].name,
				    ch->name, who(&h.v[0], text, sizeof(text)),
				    h.v[0].reason);
		holders_free(&h);
		memset(&h, 0, sizeof(h));
	}
	return r;
}

/*
 * What is taken out has to be what the file says: if the switch counts its ports in
 * another way than we do, it would be somebody else's.
 */
static int check_slot(struct change *ch, struct err *e)
{
	const struct pfx *x = &ch->f->switches[ch->uplink.sw];
	struct below v[BELOW_MOST];
	char text[256];

	if (!*ch->bridge)
		return err_set(e, EOPNOTSUPP, ch->name, "%s is bound to "
			       "logical port %u of this host, but no bridge of "
			       "that number is found below %s, so it cannot be "
			       "taken out in order; --force unbinds it "
			       "regardless", ch->name, ch->logical,
			       ch->local->pci);
	if (slot_is_off(&ch->f->env, ch->bridge))
		return 0;
	if (slot_below(&ch->f->env, ch->bridge, v))
		return !pfx_compare(ch->f, ch->ep, false, text, sizeof(text)) ?
		       0 : err_set(e, ENXIO, ch->name, "%s; the slot or the "
				   "topology file may be the wrong one: "
				   "--force unbinds it regardless", text);
	if (!x->link[ch->uplink.port].up)
		return 0;
	return err_set(e, ENXIO, ch->name, "the link of %s is up, but nothing "
		       "is below bridge %s; if the host is still looking, try "
		       "again, else the slot may be the wrong one: --force "
		       "unbinds it regardless", ch->name, ch->bridge);
}

static int check_own(struct change *ch, struct err *e)
{
	int r = check_slot(ch, e);

	return r ? r : check_holders(ch, e);
}

/*
 * Nobody here can take it out of another host. That it is out is seen at the
 * link: the owner has powered the slot off, or is off itself.
 */
static int check_far(struct change *ch, struct err *e)
{
	const struct pfx *x = &ch->f->switches[ch->uplink.sw];
	const struct topo_end *to = pfx_bound_to(ch->f, &ch->uplink);
	const char *host = host_of(ch->f, to);

	if (!x->link[ch->uplink.port].up || (to && !x->link[to->port].up))
		return 0;
	if (!to)
		return err_set(e, EBUSY, ch->name, "%s is bound to partition "
			       "%u, which %s does not have; only the host there "
			       "can take it out in order, --force does not wait "
			       "for that", ch->name, ch->partition,
			       ch->f->file);
	return err_set(e, EBUSY, ch->name, "%s is bound to %s, logical port %u. "
		       "Only that host can take it out in order: run this "
		       "command there, or, if it is no manager, power off the "
		       "device's slot there (that with its PCI address in "
		       "/sys/bus/pci/slots/*/address) and run this command "
		       "again here; --force does not wait for that", ch->name,
		       host, ch->logical);
}

static int check_unbind(struct change *ch, bool force, struct err *e)
{
	const struct port_bind *b = bind_of(ch);

	if (!b->bound)
		return err_set(e, EALREADY, ch->name, "%s is bound to nobody",
			       ch->name);
	ch->partition = b->partition;
	ch->logical = b->logical;
	ch->local = pfx_local(ch->f, &ch->uplink);
	if (ch->local && !slot_bridge(&ch->f->env, ch->local->pci, b->logical,
				      ch->bridge))
		*ch->bridge = '\0';
	if (force)
		return 0;
	return ch->local ? check_own(ch, e) : check_far(ch, e);
}

/* ---- unbind: it goes ----------------------------------------------------- */

/*
 * The command names a logical port. Seconds may have gone by since we looked, and
 * another manager may have bound another port to it. What it does between this
 * question and the command cannot be helped.
 */
static int still_there(struct change *ch, struct err *e)
{
	struct port_bind b;
	int r = ask(ch, &b, e);

	if (r)
		return r;
	if (b.bound && b.result != MRPC_BIND_IN_PROGRESS &&
	    b.partition == ch->partition && b.logical == ch->logical)
		return 0;
	return err_set(e, EALREADY, ch->name, "another manager has unbound %s, "
		       "or is about to; see \"fabrexctl list\"", ch->name);
}

static int send_unbind(struct change *ch, struct err *e)
{
	const uint8_t in[4] = { MRPC_BIND_UNBIND, ch->partition, ch->logical,
				MRPC_BIND_OPTION };
	struct port_bind b;
	uint32_t ret = 0;
	int r = still_there(ch, e);

	if (!r)
		r = send(ch, in, &ret, e);
	if (r)
		return r;
	if (ret)
		return refused(ch, "unbind", ret, e);
	r = wait_until_over(ch, &b, e);
	if (!r && b.bound && b.partition == ch->partition)
		r = err_set(e, EIO, ch->name, "the switch has tried to "
			    "unbind %s and failed; its log may say why",
			    ch->name);
	e->unsure = r;
	return r;
}

/* Into the kernel again, but only if it is certain that it stays bound. */
static void power_again(struct change *ch, struct err *e)
{
	const struct err why = *e;
	struct err quiet = { 0 };
	struct port_bind b;
	bool stays = !ask(ch, &b, &quiet) && b.bound &&
		     b.result != MRPC_BIND_IN_PROGRESS &&
		     b.partition == ch->partition && b.logical == ch->logical;

	*e = why;
	if (!stays || slot_power(&ch->f->env, ch->bridge, true, &quiet))
		err_append(e, "; its slot below bridge %s stays off",
			   ch->bridge);
}

/*
 * Out of this host first. What somebody uses would only keep its driver, and with
 * it us, waiting: that is taken away by force.
 */
static int unbind_own(struct change *ch, bool force, struct err *e)
{
	bool off = slot_is_off(&ch->f->env, ch->bridge);
	struct err why = { 0 };
	int r = 0;

	if (force && (check_slot(ch, &why) || check_holders(ch, &why)))
		return send_unbind(ch, e);
	if (!off)
		r = still_there(ch, e);
	if (!r && !off)
		r = slot_power(&ch->f->env, ch->bridge, false, e);
	if (r && !force)
		return r;
	err_clear(e);
	r = send_unbind(ch, e);
	if (r && !off)
		power_again(ch, e);
	return r;
}

int pfx_unbind(struct backend *b, uint32_t ep, bool force, bool dry,
	       uint32_t timeout_ms, struct err *e)
{
	struct change ch;
	int r;

	(void)timeout_ms;	/* of owners that are asked; here is none */
	r = begin(to_pfx(b), ep, &ch, e);
	if (!r)
		r = check_unbind(&ch, force, e);
	if (r || dry)
		return r;
	return *ch.bridge ? unbind_own(&ch, force, e) : send_unbind(&ch, e);
}
