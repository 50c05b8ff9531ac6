/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside of fabrex_p2p_query(3): where it looks, and the way between two
 * devices. For lib/p2p/ and its tests; slot.c is for fabrexctl too.
 */
#ifndef LIB_P2P_P2P_H
#define LIB_P2P_P2P_H

#include <fabrex/p2p.h>

#include "p2p/host.h"
#include "p2p/pci.h"

/* What the kernel says about a pair, by FABREX_IOCTL_P2P_QUERY. */
struct p2p_answer {
	bool asked;		/* it has answered */
	bool kernel;		/* it has CONFIG_PCI_P2PDMA */
	bool reachable;
	uint32_t distance;
	char port[16];		/* "fabrex0" */
};

struct p2p_env {
	const char *root;	/* in place of "/" for sys, proc, boot, dev */
	/* 0 and what port "fabrex<index>" says of the device at @addr. */
	int (*ask)(const char *root, unsigned int index,
		   const struct pci_addr *addr, struct p2p_answer *answer);
};

/* This machine, or what FABREX_ROOT names. */
void fxi_p2p_env(struct p2p_env *env);
int fxi_p2p_run(const struct p2p_env *env, const char *initiator,
		const char *target, struct fabrex_p2p *out);

/* query.c: a PCI address, or the name of a local port. -EINVAL: neither. */
int fxi_p2p_find(const struct p2p_env *env, const char *name,
		 struct pci_addr *addr);

/* local.c: fabrex_port_list() */
int fxi_p2p_list(const struct p2p_env *env, const char *near,
		 struct fabrex_local_port *ports, size_t n, size_t size);

/* devices.c: fabrex_device_list() */
int fxi_p2p_devices(const struct p2p_env *env, const char *near, uint32_t kinds,
		    struct fabrex_local_device *devices, size_t n, size_t size);

/* ports.c: local fabric ports. */
/* Numbers of the first @n, in ascending order; how many. */
uint32_t fxi_p2p_ports(const struct p2p_env *env, unsigned int *index,
		       uint32_t n);
/* PCI address of port "fabrex0" or "a.0"; false: no such port. */
bool fxi_p2p_port(const struct p2p_env *env, const char *name,
		  struct pci_addr *addr);
/* Whether a local port is on one of these buses. */
bool fxi_p2p_port_on(const struct p2p_env *env, uint32_t domain,
		     unsigned int first_bus, unsigned int last_bus);
/* Ask a local port at one of the addresses about the other. */
void fxi_p2p_ask(const struct p2p_env *env, const struct pci_addr *a,
		 const struct pci_addr *b, struct p2p_answer *answer);
/* Ask any local port whether the kernel has CONFIG_PCI_P2PDMA. */
enum kernel_option fxi_p2p_kernel(const struct p2p_env *env,
				  const struct pci_addr *addr);
int fxi_p2p_ioctl(const char *root, unsigned int index,
		  const struct pci_addr *addr, struct p2p_answer *answer);

/* way.c: from initiator a to target b. */
struct p2p_way {
	struct pci_chain a, b;
	bool common;		/* they have a bridge in common */
	unsigned int ia, ib;	/* which it is; without, the chains' lengths */
	unsigned int distance;	/* as calc_map_type_and_dist() counts */
	unsigned int redirects;	/* bridges with ACS redirect on the way */
	const struct pci_dev *redirect[8];
	bool hidden;		/* some bridge's ACS could not be seen */
	struct host_verdict host;
};

void fxi_way_find(const struct p2p_env *env, struct p2p_way *way);

/* check.c: reasons against, in the order in which they matter. */
struct p2p_query {
	const struct p2p_env *env;
	struct p2p_way way;
	struct p2p_answer answer;
	enum kernel_option kernel;
	char iommu[24];		/* type of the initiator's group */
	struct fabrex_p2p *out;
};

/* Topology alone: sets verdict, path, reason and the sentences. */
void fxi_check_way(struct p2p_query *q);
/* The kernel alone: @err keeps us from looking at @name at all. */
void fxi_check_blind(struct p2p_query *q, const char *name, int err);
/* State of devices and bridges: may turn a yes into a no. */
void fxi_check_state(struct p2p_query *q);
/* Both devices are there; false if not, and says so. */
bool fxi_check_there(struct p2p_query *q);

/* slot.c: what a slot beside a local port could take. */
struct p2p_slot {
	unsigned int number;	/* physical slot number */
	char bridge[16];	/* "0000:02:03.0" */
	unsigned int first_bus, last_bus;	/* below it */
	uint64_t window;	/* prefetchable, bytes */
	uint64_t room;		/* what Linux could make of it at most */
	uint64_t spare;		/* of the switch, in no slot's window */
	struct fabrex_p2p p2p;	/* from the port to a device in there */
};

#define P2P_MAX_SLOTS	64

/*
 * The slots of the switch that a local port is in, but for those of ports. By
 * number. How many, or a negative errno: -ENODEV no such port, -EPERM only root
 * can see which bridges are slots.
 */
int fxi_p2p_slots(const struct p2p_env *env, const char *port,
		  struct p2p_slot slots[P2P_MAX_SLOTS]);
/*
 * A switch whose management function is another one of the device that its
 * upstream port is, as a Switchtec's. Its downstream ports are logical ports,
 * counted from 1 by their device numbers (libswitchtec, linux_get_devices()).
 */
bool fxi_p2p_upstream(const char *function, char upstream[PCI_NAME_LEN]);
unsigned int fxi_p2p_logical(const struct pci_addr *downstream);
/* What could be taken by them; no way to there is looked for. */
int fxi_p2p_switch_slots(const struct p2p_env *env, const char *function,
			 struct p2p_slot slots[P2P_MAX_SLOTS]);

#endif
