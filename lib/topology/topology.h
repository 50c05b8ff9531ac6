/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Topology files (docs/topology.md): what a fabric is made of, read and
 * checked. Used by the planner, by fabrexctl and by the emulator of the switch.
 */
#ifndef LIB_TOPOLOGY_TOPOLOGY_H
#define LIB_TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TOPO_NAME_LEN		32	/* with the NUL */
#define TOPO_MAX_SWITCHES	256
#define TOPO_MAX_SWITCH_PORTS	64
#define TOPO_MAX_HOST_PORTS	256	/* of the fabric: peer numbers */
#define TOPO_MAX_SLOTS		30	/* devices on the partition's bus */
#define TOPO_FIRST_SLOT		2
#define TOPO_MAX_UPLINKS	4
#define TOPO_MAX_ENDPOINTS	256	/* of one appliance */
#define TOPO_NONE		(~0u)

/* Numbers are those of DRACO_PORT_* and DRACO_EP_*. */
enum topo_port_kind {
	TOPO_PORT_UNUSED = 0,
	TOPO_PORT_HOST,
	TOPO_PORT_UPLINK,
	TOPO_PORT_ISL,
};

/* What a switch is: its host ports look accordingly. */
enum topo_model {
	TOPO_DRACO = 0,
	TOPO_PFX,		/* Switchtec PFX */
	TOPO_EPF,		/* an endpoint controller between two hosts */
};

enum topo_appliance_kind {
	TOPO_CASCADE = 1,
	TOPO_FLAT,
};

enum topo_class {
	TOPO_GPU = 1,
	TOPO_NVME,
	TOPO_NIC,
	TOPO_FPGA,
};

/* One switch port: what the file makes of it. */
struct topo_port {
	enum topo_port_kind kind;
	unsigned int owner;	/* index of the host, appliance or ISL */
	unsigned int index;	/* host: its nth port; uplink: nth; ISL: 0 or 1 */
	/*
	 * Of a fabric that runs: the link as it has been trained. 0: as the
	 * switch's; files say nothing else.
	 */
	unsigned int speed;	/* MT/s */
	unsigned int width;
};

/* An end of something: "switch:port", port counted from 1. */
struct topo_end {
	unsigned int sw;
	unsigned int port;
};

struct topo_switch {
	char name[TOPO_NAME_LEN];
	enum topo_model model;
	unsigned int nports;
	unsigned int speed;	/* GT/s */
	unsigned int width;
	struct topo_port *ports; /* [0] is port 1 */
};

struct topo_isl {
	struct topo_end a, b;
};

/* A host's nth port. */
struct topo_host_port {
	unsigned int host;
	unsigned int port;
};

/* Two host ports that a non-transparent bridge joins. */
struct topo_ntb {
	struct topo_host_port a, b;
	uint64_t window;	/* bytes of each BAR with windows */
};

struct topo_host {
	char name[TOPO_NAME_LEN];
	bool manager;
	bool p2p_root;		/* its root complex forwards between ports */
	unsigned int slots;	/* numbered from TOPO_FIRST_SLOT */
	unsigned int nports;
	struct topo_end *ports;
};

struct topo_appliance {
	char name[TOPO_NAME_LEN];
	enum topo_appliance_kind kind;
	unsigned int nuplinks;
	struct topo_end uplinks[TOPO_MAX_UPLINKS];
	unsigned int first;	/* its endpoints in topology.endpoints */
	unsigned int nendpoints;
	char mesh_kind[8];	/* "" if there is none */
	double mesh_gbps;
};

struct topo_endpoint {
	char name[TOPO_NAME_LEN];	/* <appliance>.<class><index> */
	enum topo_class class;
	unsigned int appliance;
	unsigned int number;	/* in its appliance, over all classes */
	unsigned int uplink;	/* index into its appliance's uplinks */
	uint64_t size;		/* bytes of its largest BAR */
};

struct topo_binding {
	unsigned int endpoint;
	unsigned int host;
	unsigned int port;	/* nth port of the host */
};

struct topo_limits {
	unsigned int queues;
	unsigned int mrs;
	unsigned int window_slots;
	uint64_t window_slot_size;
	uint64_t doorbell_stride;
};

struct topology {
	char name[TOPO_NAME_LEN];
	double link_gbps;
	double root_complex_gbps;
	struct topo_limits limits;
	unsigned int nswitches;
	struct topo_switch *switches;
	unsigned int nisls;
	struct topo_isl *isls;
	unsigned int nhosts;
	struct topo_host *hosts;
	unsigned int nntbs;
	struct topo_ntb *ntbs;
	unsigned int nappliances;
	struct topo_appliance *appliances;
	unsigned int nendpoints;
	struct topo_endpoint *endpoints;
	unsigned int nbindings;
	struct topo_binding *bindings;
};

/**
 * topology_load() - read and check a file
 * @path:    of the file
 * @err:     receives one line "file:line: element: cause; remedy"
 * @err_len: size of @err
 *
 * Return: the topology, to be freed with topology_free(), or NULL with @err
 * filled in. Nothing is printed.
 */
struct topology *topology_load(const char *path, char *err, size_t err_len);

/**
 * topology_managed() - is there a host that may compose?
 * @t:       topology
 * @name:    of the file, for the message
 * @err:     says what to write if there is none
 * @err_len: of @err
 *
 * Files without one can be planned for, but nobody could compose.
 */
bool topology_managed(const struct topology *t, const char *name, char *err,
		      size_t err_len);

/* As topology_load(), from a string that messages call @name. */
struct topology *topology_parse(const char *text, const char *name, char *err,
				size_t err_len);
/**
 * topology_new() - one without any element, to be filled in
 * @name: of the fabric
 *
 * Return: with the defaults of docs/topology.md, NULL without memory. Arrays
 * are to come from malloc() and the like: topology_free() frees them.
 */
struct topology *topology_new(const char *name);
void topology_free(struct topology *t);

/**
 * topology_write() - the file that reads back as @t
 * @t:   what is to be written
 * @f:   where
 * @err: receives one line "element: cause; remedy"
 *
 * Return: 0, or a negative errno with @err filled in: -ENOTSUP for what the
 * format cannot say (another number of uplinks than the kind has, endpoints
 * that are shared out over uplinks in another way, other names), -EIO.
 */
int topology_write(const struct topology *t, FILE *f, char *err,
		   size_t err_len);

/* Index of the element called @name, or TOPO_NONE. */
unsigned int topology_find_endpoint(const struct topology *t, const char *name);
unsigned int topology_find_host(const struct topology *t, const char *name);
/* The bridge that a host's nth port has, and the other port; NULL: none. */
const struct topo_ntb *topology_find_ntb(const struct topology *t,
					 unsigned int host, unsigned int port,
					 struct topo_host_port *other);

/*
 * Rate of a link of switch @sw in each direction, in GB/s: link_gbps is what
 * one of Gen4 x16 has.
 */
double topology_link_gbps(const struct topology *t, unsigned int sw);

/* "draco", "pfx", "epf" */
const char *topology_model_name(enum topo_model model);
/* "gpu", "nvme", ... */
const char *topology_class_name(enum topo_class class);
unsigned int topology_host_ports(const struct topology *t);
/* Number of a host's nth port among those of all hosts, from 0 on. */
unsigned int topology_peer(const struct topology *t, unsigned int host,
			   unsigned int index);

#endif
