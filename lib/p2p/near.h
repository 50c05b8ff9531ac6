/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where PCI devices are, and which of two is the nearer one. Called by local.c
 * and devices.c; attributes and kinds of devices by fabrexctl, too.
 */
#ifndef LIB_P2P_NEAR_H
#define LIB_P2P_NEAR_H

#include "p2p/p2p.h"

/* A device with the bridges above it. */
struct place {
	struct pci_chain chain;
	bool known;		/* there is a chain */
	int numa_node;
};

/*
 * By a switch; by the root complex: below one host bridge, from another one of
 * the same node, or from another node.
 */
struct nearness {
	uint32_t path, distance;
	bool other_node, other_host;
};

/* @addr may be NULL: nowhere. @place can be left in any case. */
void fxi_place_find(const struct p2p_env *env, const struct pci_addr *addr,
		    struct place *place);
void fxi_place_leave(struct place *place);
/*
 * What the caller of a function named: an address, or a local port; NULL for
 * nothing. 0 or -EINVAL: there is no such device.
 */
int fxi_place_named(const struct p2p_env *env, const char *name,
		    struct place *place);
/* Mbit/s of the slowest PCIe link above; 0: none is known. */
uint32_t fxi_place_rate(const struct p2p_env *env, const struct place *place);

struct nearness fxi_near(const struct p2p_env *env, const struct place *a,
			 const struct place *b);
/* Below 0: @a is nearer. */
int fxi_near_compare(const struct nearness *a, const struct nearness *b);

/* Attributes of a device in sysfs. */
bool fxi_device_line(const struct p2p_env *env, const char *name,
		     const char *file, char *text, size_t n);
/* A hexadecimal one; 0 if it is none, or more than @most. */
uint32_t fxi_device_hex(const struct p2p_env *env, const char *name,
			const char *file, uint32_t most);
/* MT/s and lanes of its link, @which is "current" or "max"; 0: unknown. */
uint32_t fxi_device_speed(const struct p2p_env *env, const char *name,
			  const char *which);
uint32_t fxi_device_width(const struct p2p_env *env, const char *name,
			  const char *which);
/* -1: unknown. */
int fxi_device_numa(const struct p2p_env *env, const char *name);

/* devices.c: FABREX_DEVICE_* of its identity; 0: none of these. */
uint32_t fxi_device_kind(uint32_t class_code, uint32_t vendor,
			 uint32_t device);

/* devices.c: one of this machine's devices. */
struct local_device {
	struct place place;
	struct fabrex_local_device out;	/* path, distance: not yet */
};

/* Those of @kinds in the order of addresses; -ENOMEM. */
int fxi_devices_find(const struct p2p_env *env, uint32_t kinds,
		     struct local_device **devices, size_t *n);
void fxi_devices_free(struct local_device *devices, size_t n);

#endif
