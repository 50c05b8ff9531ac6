// SPDX-License-Identifier: GPL-2.0-only
/*
 * What switches say now, and whether that fits the topology file: where this host
 * is plugged in, and that every port of the file is there.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fabric.h"
#include "util.h"

#define BUSY_MS	20		/* until a busy switch is asked again */

/* ---- questions ----------------------------------------------------------- */

static bool is_busy(uint32_t ret)
{
	return ret >= MRPC_RET_BUSY_FIRST && ret <= MRPC_RET_BUSY_LAST;
}

int pfx_denied(const struct pfx_fabric *f, const struct switchtec *d,
	       const char *why, struct err *e)
{
	unsigned int i, n = 0;

	err_set(e, EPERM, d->node, "host %s (partition %u) may not bind ports: "
		"%s", f->t->hosts[d->host].name, d->partition, why);
	for (i = 0; i < f->t->nhosts; i++)
		if (f->t->hosts[i].manager && i != d->host)
			err_append(e, "%s%s", n++ ? ", " :
				   "; do it on a manager: ",
				   f->t->hosts[i].name);
	if (!n)
		err_append(e, "; %s has no other manager", f->file);
	return -EPERM;
}

/* What any command may return. */
static int refused(const struct switchtec *d, uint32_t command, uint32_t ret,
		   struct err *e)
{
	switch (ret) {
	case MRPC_RET_DENIED:
		return err_set(e, EPERM, d->node, "%s: the switch's "
			       "configuration denies command %#x to this "
			       "host's partition %u; do it on a host that may, "
			       "or change the configuration", d->node, command,
			       d->partition);
	case MRPC_RET_UNSUPPORTED:
	case MRPC_RET_BAD_SUB:
	case MRPC_RET_BAD_COMMAND:
	case MRPC_RET_BAD_PARAM:
		return err_set(e, EOPNOTSUPP, d->node, "%s: the switch does "
			       "not know command %#x in the form that is used "
			       "here (%#x); is its firmware too old, or is it "
			       "no PFX?", d->node, command, ret);
	}
	return 0;
}

int pfx_send(struct pfx_fabric *f, struct switchtec *d, uint32_t command,
	     const void *in, size_t in_len, void *out, size_t out_len,
	     uint32_t *ret, struct err *e)
{
	double end = now() + DEVICE_SECONDS;
	int r;

	do {
		*ret = 0;
		r = f->command(d, command, in, in_len, out, out_len, ret, e);
	} while (!r && is_busy(*ret) && now() < end && nap(BUSY_MS));
	if (!r && is_busy(*ret))
		return err_set(e, EBUSY, d->node, "%s: the switch has been "
			       "busy (%#x) for %.0f s and takes no command %#x; "
			       "try again", d->node, *ret, DEVICE_SECONDS,
			       command);
	return r ? r : refused(d, command, *ret, e);
}

/* Here nothing but success makes sense. */
static int ask(struct pfx_fabric *f, struct switchtec *d, uint32_t command,
	       const void *in, size_t in_len, void *out, size_t out_len,
	       struct err *e)
{
	uint32_t ret;
	int r = pfx_send(f, d, command, in, in_len, out, out_len, &ret, e);

	if (r || !ret)
		return r;
	return err_set(e, EPROTO, d->node, "%s: the switch answers command "
		       "%#x, which only looks, with error %#x; is it a PFX?",
		       d->node, command, ret);
}

static int look_at_links(struct pfx_fabric *f, struct switchtec *d,
			 struct port_link v[ANSWER_PORTS], struct err *e)
{
	const uint8_t all[8] = { 0 };
	uint8_t out[ANSWER_LINKS_SIZE];
	int r = ask(f, d, MRPC_LINKS, all, sizeof(all), out, sizeof(out), e);

	if (!r)
		r = answer_links(out, v, e);
	if (r)
		err_about(e, d->node);
	return r;
}

static int look_at_binds(struct pfx_fabric *f, struct switchtec *d,
			 struct port_bind v[ANSWER_PORTS], struct err *e)
{
	const uint8_t all[4] = { MRPC_BIND_INFO, MRPC_BIND_ALL, 0, 0 };
	uint8_t out[ANSWER_BINDS_SIZE];
	int r = ask(f, d, MRPC_BIND, all, sizeof(all), out, sizeof(out), e);

	if (!r)
		r = answer_binds(out, MRPC_BIND_ALL, v, e);
	if (r)
		err_about(e, d->node);
	return r;
}

/* ---- does it fit? -------------------------------------------------------- */

static int missing(struct pfx_fabric *f, const struct topo_end *end,
		   const char *answer, struct err *e)
{
	const char *name = f->t->switches[end->sw].name;

	return err_set(e, EPROTO, name, "%s does not report port %u (%s), which "
		       "%s has; does the file describe another fabric?", name,
		       end->port, answer, f->file);
}

/* All ports of the file are there, and host ports lead up. */
static int check_switch(struct pfx_fabric *f, unsigned int sw, struct err *e)
{
	const struct topo_switch *s = &f->t->switches[sw];
	struct topo_end end = { .sw = sw };
	const struct pfx *x = &f->switches[sw];

	for (end.port = 1; end.port <= s->nports; end.port++) {
		const struct topo_port *p = &s->ports[end.port - 1];

		if (p->kind != TOPO_PORT_HOST && p->kind != TOPO_PORT_UPLINK)
			continue;
		if (end.port >= ANSWER_PORTS || !x->link[end.port].there)
			return missing(f, &end, "its link", e);
		if (p->kind == TOPO_PORT_UPLINK && !x->bind[end.port].there)
			return missing(f, &end, "its binding", e);
		if ((p->kind == TOPO_PORT_HOST) == x->link[end.port].upstream)
			continue;
		return err_set(e, EPROTO, s->name, "port %u of %s is a host "
			       "port in %s but not for the switch (or the "
			       "reverse); does the file describe another "
			       "fabric?", end.port, s->name, f->file);
	}
	return 0;
}

int pfx_look_at(struct pfx_fabric *f, unsigned int sw, struct err *e)
{
	struct port_link link[ANSWER_PORTS];
	struct port_bind bind[ANSWER_PORTS];
	struct pfx *x = &f->switches[sw];
	int r;

	if (!x->device)
		return err_set(e, ENODEV, f->t->switches[sw].name, "%s cannot "
			       "be asked from here: no /dev/switchtecN of this "
			       "machine leads to it; use a host that it is "
			       "connected to", f->t->switches[sw].name);
	r = look_at_links(f, x->device, link, e);
	if (!r)
		r = look_at_binds(f, x->device, bind, e);
	if (r)
		return r;
	memcpy(x->link, link, sizeof(link));
	memcpy(x->bind, bind, sizeof(bind));
	return check_switch(f, sw, e);
}

int pfx_look(struct pfx_fabric *f, struct err *e)
{
	unsigned int sw;
	int r = 0;

	for (sw = 0; sw < f->t->nswitches && !r; sw++)
		if (f->switches[sw].device)
			r = pfx_look_at(f, sw, e);
	return r;
}

/* ---- which switch is it? ------------------------------------------------- */

/* The physical port that leads to this host; ANSWER_PORTS: none does. */
static unsigned int own_port(const struct switchtec *d,
			     const struct port_link v[ANSWER_PORTS])
{
	unsigned int port;

	for (port = 0; port < ANSWER_PORTS; port++)
		if (v[port].there && v[port].upstream && v[port].placed &&
		    v[port].partition == d->partition)
			break;
	return port;
}

static bool fits(const struct pfx_fabric *f, unsigned int sw,
		 unsigned int port, const char *host)
{
	const struct topo_switch *s = &f->t->switches[sw];
	const struct topo_port *p;

	if (s->model != TOPO_PFX || !port || port > s->nports)
		return false;
	p = &s->ports[port - 1];
	return p->kind == TOPO_PORT_HOST &&
	       (!host || !strcmp(f->t->hosts[p->owner].name, host));
}

static unsigned int count_fits(const struct pfx_fabric *f, unsigned int port,
			       const char *host, unsigned int *sw)
{
	unsigned int i, n = 0;

	for (i = 0; i < f->t->nswitches; i++)
		if (fits(f, i, port, host)) {
			*sw = i;
			n++;
		}
	return n;
}

static int no_fit(const struct pfx_fabric *f, const struct switchtec *d,
		  unsigned int port, unsigned int n, const char *host,
		  struct err *e)
{
	if (n > 1)
		return err_set(e, ENXIO, d->node, "%s leads to port %u of a "
			       "PFX, and %s has %u of them with a host \"%s\" "
			       "there; give the ports different numbers, or "
			       "name a file of one of them", d->node, port,
			       f->file, n, host);
	return err_set(e, ENXIO, d->node, "%s leads to port %u of a PFX, where "
		       "%s has no host%s%s; is it the file of another fabric?",
		       d->node, port, f->file, *host ? " that is called " : "",
		       host);
}

/* By the number of the port; if that is not enough by this host's name, too. */
static int locate(struct pfx_fabric *f, struct switchtec *d, struct err *e)
{
	struct port_link v[ANSWER_PORTS];
	const struct topo_port *p;
	unsigned int port, n;
	char host[64] = "";
	int r = look_at_links(f, d, v, e);

	if (r)
		return r;
	port = own_port(d, v);
	if (port == ANSWER_PORTS)
		return err_set(e, EPROTO, d->node, "%s: no port of the switch "
			       "leads to this host's partition %u", d->node,
			       d->partition);
	n = count_fits(f, port, NULL, &d->sw);
	if (n > 1) {
		gethostname(host, sizeof(host) - 1);
		n = count_fits(f, port, host, &d->sw);
	}
	if (n != 1)
		return no_fit(f, d, port, n, host, e);
	p = &f->t->switches[d->sw].ports[port - 1];
	d->host = p->owner;
	d->port = p->index;
	return 0;
}

/* Two switches whose ports have one number; the file has one of them. */
static bool is_twice(const struct pfx_fabric *f, const struct switchtec *d,
		     struct err *e)
{
	int i;

	for (i = 0; i < f->ndevices; i++) {
		const struct switchtec *o = &f->devices[i];

		if (o->sw != d->sw || o->host != d->host || o->port != d->port)
			continue;
		err_set(e, ENXIO, d->node, "%s and %s lead to port %u of a "
			"PFX each, and %s has one there, so which it is cannot "
			"be told; put the other switch into the file, too, "
			"with the number that its port really has", o->node,
			d->node, f->t->hosts[d->host].ports[d->port].port,
			f->file);
		return true;
	}
	return false;
}

/*
 * A machine may have Switchtecs that are of no fabric, or of another one, so it is
 * an error only if none fits: then that of the first.
 */
int pfx_locate(struct pfx_fabric *f, struct switchtec *found, int n,
	       struct err *e)
{
	struct err why = { 0 };
	int i;

	for (i = 0; i < n; i++) {
		struct switchtec *d = &f->devices[f->ndevices];
		struct err one = { 0 };

		*d = found[i];
		if (!locate(f, d, &one) && is_twice(f, d, &one)) {
			*e = one;
			return -one.code;
		}
		if (one.code) {
			device_close(d);
			if (!why.code)
				why = one;
			continue;
		}
		if (!f->switches[d->sw].device)
			f->switches[d->sw].device = d;
		f->ndevices++;
	}
	if (f->ndevices)
		return 0;
	*e = why;
	return -why.code;
}
