/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Meshes: links between the GPUs of an appliance, by which the engine of one
 * reads and writes the memory of another one of the same host (docs/gpu.md).
 * Each pair of GPUs has a link of its own. Nothing of it passes a switch.
 *
 * Locks: seat.lock is a leaf, held for reading while a piece is moved, and for
 * writing to put a GPU there or take it away: when mesh_leave() returns, nobody
 * touches its memory any more.
 */
#ifndef EMU_MESH_H
#define EMU_MESH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <draco/regs.h>

#include "throttle.h"

struct fabric;
struct fabric_ep;
struct mesh;

/* An instance of a GPU, as others may see it. */
struct mesh_gpu {
	void *vram;			/* NULL: none is there */
	uint64_t size;
	uint32_t instance;
	unsigned int host;		/* index in the topology */
};

/* A GPU's place in its mesh, whether or not it is bound. */
struct seat {
	struct mesh *mesh;
	struct fabric_ep *ep;
	unsigned int number;		/* in the mesh, from 1 */
	pthread_rwlock_t lock;
	struct mesh_gpu gpu;		/* lock */
};

struct mesh {
	struct fabric *fabric;
	uint32_t id;			/* object id of the appliance */
	unsigned int n;			/* GPUs */
	struct seat *seats;
	struct oneway *ways;		/* [from * n + to], counted from 0 */
};

/* What a command of a GPU wants of a peer. */
struct mesh_access {
	struct seat *own;
	unsigned int host;		/* of the GPU whose command it is */
	uint32_t peer, instance;
	bool read;			/* from the peer, else to it */
	uint64_t there;			/* offset in the peer's memory */
	/* mesh_check(): how often their uplinks had gone down till then */
	uint32_t own_downs, peer_downs;
};

/* Not a status: the own uplink is down, or was since mesh_check(). */
#define MESH_OWN_DOWN	0xffu

/* 0 or -ENOMEM. @f has its objects. */
int mesh_init(struct fabric *f);
void mesh_free(struct fabric *f);

/* NULL: @ep, an index in the topology, is in no mesh. */
struct seat *mesh_seat(struct fabric *f, unsigned int ep);

void mesh_join(struct seat *s, const struct mesh_gpu *g);
/* Unless another instance is there by now. */
void mesh_leave(struct seat *s, uint32_t instance);

/* May @n bytes be moved? DRACO_GPU_*: DONE, or why not; or MESH_OWN_DOWN. */
unsigned int mesh_check(struct mesh_access *a, uint64_t n);
/* @n bytes to or from @here, if all still is as at the check. */
unsigned int mesh_move(const struct mesh_access *a, void *here, uint64_t n);
/* The direction of the link that @a uses; it has been checked. */
struct oneway *mesh_way(const struct mesh_access *a);

/* throttle.lock held: all links are free. */
void mesh_forget(struct fabric *f);

/* All links of all meshes, by number: false if there are not that many. */
bool mesh_describe(struct fabric *f, uint32_t number, struct draco_link *out);

#endif
