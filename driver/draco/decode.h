/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decoding and validation of what a Draco device returns. Pure functions: used
 * by the driver and, in user space, by driver/tests.
 */
#ifndef DRACO_DECODE_H
#define DRACO_DECODE_H

#include <linux/types.h>
#include <draco/regs.h>
#include "backend.h"

/* More objects than any fabric has: a device that reports more is broken. */
#define DRACO_MAX_OBJECTS	65536u
/* The Physical Slot Number of the Slot Capabilities register has 13 bits. */
#define DRACO_MAX_SLOT		0x1fffu

/**
 * struct draco_ident - IDENTIFY, decoded and validated
 * @info:         for the core; addresses, device and driver are filled in later
 * @host_id:      object id of the host
 * @objects:      number of objects in the fabric
 * @topology_seq: changes with every event that alters an object
 * @firmware:     firmware version
 * @links:        the device counts what links carry
 * @mesh:         those inside meshes, too
 */
struct draco_ident {
	struct fabrex_port_info info;
	u32 host_id;
	u32 objects;
	u64 topology_seq;
	char firmware[DRACO_NAME_LEN];
	bool links;
	bool mesh;
};

/* State of a host port by GET_PEERS, in CPU byte order. */
struct draco_peer_state {
	u32 port;
	u32 generation;
	u32 peer;
	bool up;
};

/* An event in CPU byte order. */
struct draco_ev {
	u64 seq;
	u16 type;
	u8 obj_type;
	u8 flags;
	u32 object;
	u32 port;
	u32 state;
	u64 arg[4];
};

int draco_status_errno(u16 status);
const char *draco_status_text(u16 status);
bool draco_name_ok(const char *name);
int draco_decode_identify(const struct draco_identify *raw, u32 db_pages,
			  u64 window_bytes, struct draco_ident *ident,
			  const char **bad);
int draco_decode_object(const struct draco_object *raw, u32 max_peers,
			struct fabrex_object *object);
int draco_decode_peer(const struct draco_peer *raw, u32 max_peers,
		      struct draco_peer_state *peer);
int draco_decode_event(const struct draco_event *raw, u32 max_peers,
		       struct draco_ev *ev);
void draco_decode_holder(const struct draco_holder *raw,
			 struct fabrex_holder *holder);
void draco_encode_holder(const struct fabrex_holder *holder,
			 struct draco_holder *raw);
void draco_decode_counters(const struct draco_counters *raw,
			   struct fabrex_counters *counters);
int draco_decode_link(const struct draco_link *raw, struct fabrex_link *link);

#endif
