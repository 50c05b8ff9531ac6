/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside of the backend for Switchtec switches: the fabric as the topology file
 * has it, with what switches and sysfs say of it now. switchtec.h is for others.
 */
#ifndef CTL_SWITCHTEC_FABRIC_H
#define CTL_SWITCHTEC_FABRIC_H

#include "answer.h"
#include "backend.h"
#include "device.h"
#include "switchtec/switchtec.h"
#include "topology/topology.h"

#define CHANGE_SECONDS	30.0	/* until a change must be over */

/* A switch of the topology file. */
struct pfx {
	struct switchtec *device;	/* the first that leads there, or NULL */
	struct port_link link[ANSWER_PORTS];
	struct port_bind bind[ANSWER_PORTS];
};

struct pfx_fabric {
	struct backend b;
	char *file;
	struct p2p_env env;
	mrpc_fn *command;
	struct topology *t;
	struct switchtec devices[DEVICE_MOST];
	int ndevices;			/* open, and with a place in the file */
	struct pfx *switches;		/* as those of the file */
	uint32_t *first_port;		/* ids of their ports */
	uint32_t first_host, first_appliance, first_endpoint, ids;
	struct watch *watch;		/* event.c */
};

static inline struct pfx_fabric *to_pfx(struct backend *b)
{
	return (struct pfx_fabric *)b;
}

/* ---- state.c ---- */

/*
 * Send a command; again while the switch says that it is busy. *@ret is the switch's
 * return value; "denied" and "unknown command" become errors.
 */
int pfx_send(struct pfx_fabric *f, struct switchtec *d, uint32_t command,
	     const void *in, size_t in_len, void *out, size_t out_len,
	     uint32_t *ret, struct err *e);
/* That host may not do that; @why. Return: -EPERM */
int pfx_denied(const struct pfx_fabric *f, const struct switchtec *d,
	       const char *why, struct err *e);
/* Ask every switch that can be asked, or the one of @sw. */
int pfx_look(struct pfx_fabric *f, struct err *e);
int pfx_look_at(struct pfx_fabric *f, unsigned int sw, struct err *e);
/*
 * Take those of the @n open devices that are in the file as f->devices, having
 * asked them where they are; close the others. Error if there is none.
 */
int pfx_locate(struct pfx_fabric *f, struct switchtec *found, int n,
	       struct err *e);

/* ---- objects.c ---- */

void pfx_number(struct pfx_fabric *f);
/* The element with that id, from what was seen last. False: there is none. */
bool pfx_object(struct pfx_fabric *f, uint32_t id, struct object *o);
uint32_t pfx_port_id(const struct pfx_fabric *f, const struct topo_end *end);
const struct topo_end *pfx_uplink(const struct pfx_fabric *f, unsigned int ep);
/* Index of an endpoint; TOPO_NONE: @id is none. */
unsigned int pfx_endpoint(const struct pfx_fabric *f, uint32_t id);
/* The switch port with that id. False: it is none. */
bool pfx_port(const struct pfx_fabric *f, uint32_t id, struct topo_end *end);
/* That to which a switch has bound @end; NULL: nobody, or nothing is known. */
const struct topo_end *pfx_bound_to(const struct pfx_fabric *f,
				    const struct topo_end *end);
/* The device of this host whose partition @end is bound to; NULL: none. */
const struct switchtec *pfx_local(const struct pfx_fabric *f,
				  const struct topo_end *end);
/*
 * True if the devices below the slot are fewer than the file has, or with @surplus
 * also if they are more: then @text says so.
 */
bool pfx_compare(struct pfx_fabric *f, uint32_t ep, bool surplus, char *text,
		 size_t len);
/* See struct backend_ops. */
bool pfx_differs(struct backend *b, uint32_t ep, char *text, size_t len);
/* "pfx1:5" */
void pfx_port_name(const struct pfx_fabric *f, const struct topo_end *end,
		   char name[CTL_NAME_LEN * 2]);

/* ---- slot.c ---- */

/* A PCI function that is no bridge, below a bridge of this host. */
struct below {
	char name[PCI_NAME_LEN];
	char driver[32];
	uint32_t kind;		/* FABREX_ENDPOINT_KIND_*; 0: another one */
	bool virtual;		/* of SR-IOV */
};

#define BELOW_MOST	512

/* The bridge of a logical port of this host's partition. False: there is none. */
bool slot_bridge(const struct p2p_env *env, const char *management,
		 unsigned int logical, char bridge[PCI_NAME_LEN]);
/* What is below, in the order of addresses; how many. */
unsigned int slot_below(const struct p2p_env *env, const char *bridge,
			struct below v[BELOW_MOST]);
/* It is powered off. */
bool slot_is_off(const struct p2p_env *env, const char *bridge);
/*
 * Take out in order what is in there, or have it taken in again. -EOPNOTSUPP:
 * Linux's pciehp does not drive this slot.
 */
int slot_power(const struct p2p_env *env, const char *bridge, bool on,
	       struct err *e);

/* ---- bind.c, event.c: parts of the table ---- */

int pfx_bind(struct backend *b, uint32_t ep, uint32_t port, bool dry,
	     uint32_t *slot, struct err *e);
int pfx_unbind(struct backend *b, uint32_t ep, bool force, bool dry,
	       uint32_t timeout_ms, struct err *e);
unsigned int pfx_places(struct backend *b, uint32_t port);
int pfx_subscribe(struct backend *b, const char *group, struct err *e);
int pfx_event_fd(struct backend *b);
int pfx_events(struct backend *b,
	       int (*fn)(const struct event *ev, void *arg), void *arg,
	       struct err *e);
void pfx_unwatch(struct pfx_fabric *f);

#endif
