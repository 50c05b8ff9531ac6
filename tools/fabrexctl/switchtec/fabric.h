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

/* A switch of the topology file. */
struct pfx {
	struct switchtec *device;	/* NULL: it cannot be asked from here */
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
	int ndevices;
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

/* Ask every switch that can be asked, or the one of @sw. */
int pfx_look(struct pfx_fabric *f, struct err *e);
int pfx_look_at(struct pfx_fabric *f, unsigned int sw, struct err *e);
/* Find out which switch of the file each device is; asks them. */
int pfx_locate(struct pfx_fabric *f, struct err *e);

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
/* This host is in the partition to which @end is bound. */
bool pfx_is_local(const struct pfx_fabric *f, const struct topo_end *end);
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
};

#define BELOW_MOST	64

/*
 * The bridge of a logical port of this host's partition: libswitchtec takes it
 * for device number @logical - 1 on the bus of the switch whose upstream port is
 * function 0 beside the management function. False: there is none.
 */
bool slot_bridge(const struct p2p_env *env, const char *management,
		 unsigned int logical, char bridge[PCI_NAME_LEN]);
/* What is below, in the order of addresses; how many. */
unsigned int slot_below(const struct p2p_env *env, const char *bridge,
			struct below v[BELOW_MOST]);
/* Its device is off: powered off, or there is none. */
bool slot_is_off(const struct p2p_env *env, const char *bridge);
/*
 * Take out in order what is in there, or have it taken in again. -EOPNOTSUPP:
 * Linux' pciehp does not drive this slot.
 */
int slot_power(const struct p2p_env *env, const char *bridge, bool on,
	       struct err *e);

/* ---- bind.c, event.c: parts of the table ---- */

int pfx_bind(struct backend *b, uint32_t ep, uint32_t port, bool dry,
	     uint32_t *slot, struct err *e);
int pfx_unbind(struct backend *b, uint32_t ep, bool force, bool dry,
	       uint32_t timeout_ms, struct err *e);
int pfx_subscribe(struct backend *b, const char *group, struct err *e);
int pfx_event_fd(struct backend *b);
int pfx_events(struct backend *b,
	       int (*fn)(const struct event *ev, void *arg), void *arg,
	       struct err *e);
void pfx_unwatch(struct pfx_fabric *f);

#endif
