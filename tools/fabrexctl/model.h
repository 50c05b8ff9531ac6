/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fabric as user space sees it: objects by id and by name, and how they
 * hang together. Filled by a backend, read by every command.
 */
#ifndef CTL_MODEL_H
#define CTL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/fabrex_netlink.h>

#include "err.h"

#define CTL_NAME_LEN	32
#define NO_HOPS		(~0u)

#define T_SWITCH	FABREX_OBJECT_TYPE_SWITCH
#define T_PORT		FABREX_OBJECT_TYPE_PORT
#define T_HOST		FABREX_OBJECT_TYPE_HOST
#define T_APPLIANCE	FABREX_OBJECT_TYPE_APPLIANCE
#define T_ENDPOINT	FABREX_OBJECT_TYPE_ENDPOINT
#define T_MAX		6
#define T_BIT(t)	(1u << (t))
#define T_ANY		(~0u)

/* What people call appliances by their uplinks; names.c has the words. */
#define APPLIANCE_CASCADE	1	/* two */
#define APPLIANCE_FLAT		2	/* four */

/* One element; fields as in struct draco_object of include/draco/regs.h. */
struct object {
	uint32_t type;
	uint32_t id;
	uint32_t kind;
	uint32_t state;
	uint32_t parent;
	uint32_t link;
	uint32_t bound;
	uint32_t slot;
	uint32_t peer;
	uint32_t number;
	uint32_t generation;
	uint32_t speed;
	uint32_t max_speed;
	uint32_t width;
	uint32_t max_width;
	uint32_t pci_vendor;
	uint32_t pci_device;
	uint64_t size;
	bool manager;
	char name[CTL_NAME_LEN];
	char pci_name[32];
	char pci_driver[32];
	struct object *next_id, *next_name;	/* hash chains, of model.c */
};

/* Other devices of an IOMMU group that the kernel names. */
#define GROUP_NAMES	16

/* A local fabric port. */
struct fport {
	uint32_t index;
	uint32_t object_id;
	uint32_t peer;
	uint32_t generation;
	bool manager, emulated, alive;
	uint32_t queues, mrs, windows, open_files, objects;
	uint64_t pinned_bytes;
	char name[CTL_NAME_LEN];
	char host[CTL_NAME_LEN];
	char fabric[CTL_NAME_LEN];
	char driver[CTL_NAME_LEN];
	char device[32];	/* its node below /dev */
	char parent[32];
	char bridge[CTL_NAME_LEN];	/* driver of the bridge it is on */
	char mode[CTL_NAME_LEN];
	char engine[CTL_NAME_LEN];
	uint32_t protection;
	char group[12];		/* IOMMU group, as text */
	uint32_t group_others;
	char group_names[GROUP_NAMES][CTL_NAME_LEN];
};

struct model {
	struct object **objects;	/* in the order of arrival */
	size_t n, cap;
	struct object **by_id, **by_name;
	size_t buckets;
	struct fport *fports;
	size_t nfports;
	struct hops *hops;		/* distances known so far */
	bool whole_ports;		/* as in struct backend */
};

/* What a dump is to contain; 0 means "do not care". */
struct filter {
	uint32_t type;
	uint32_t parent;
	uint32_t bound;
	uint32_t host_id;
};

struct model *model_new(void);
void model_free(struct model *m);
/* Forget objects, keep local ports. */
void model_clear(struct model *m);
/* Add @o, or replace what has its id. Return: the stored object. */
struct object *model_put(struct model *m, const struct object *o);
struct fport *model_put_fport(struct model *m, const struct fport *p);

struct object *model_get(const struct model *m, uint32_t id);
const char *model_name(const struct model *m, uint32_t id);
/* By name among types in @types (T_BIT() or T_ANY). */
struct object *model_find(const struct model *m, const char *name,
			  unsigned int types);
/**
 * model_want() - as model_find(), with an error that helps
 * @m:     the model
 * @name:  as typed
 * @types: what it may be
 * @e:     gets ENOENT and a suggestion, or says what else has that name
 */
struct object *model_want(const struct model *m, const char *name,
			  unsigned int types, struct err *e);

/* Host of a host port; NULL for another port or 0. */
struct object *model_port_host(const struct model *m, uint32_t port);
/* Host an endpoint is bound to, or NULL. */
struct object *model_owner(const struct model *m, const struct object *ep);
/* Local port with this object id, or NULL. */
const struct fport *model_local(const struct model *m, uint32_t port);
/* Endpoints bound to a port. */
unsigned int model_bound_count(const struct model *m, uint32_t port);
/**
 * model_hops() - switches on the way from a host port to an endpoint
 * Return: 1 if both are on one switch; NO_HOPS without a way of working links
 */
unsigned int model_hops(struct model *m, uint32_t port,
			const struct object *ep);

#endif
