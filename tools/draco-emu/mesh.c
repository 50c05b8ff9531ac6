// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links between the GPUs of an appliance. Called by gpu.c, by binding.c for the
 * places of GPUs, and by traffic.c.
 */
#include "mesh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <draco/gpu.h>

#include "fabric.h"

/* ---- Construction ---- */

static unsigned int count_gpus(const struct topology *t,
			       const struct topo_appliance *a)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < a->nendpoints; i++)
		n += t->endpoints[a->first + i].class == TOPO_GPU;
	return n;
}

static void init_seat(struct mesh *m, unsigned int i, struct fabric_ep *ep)
{
	struct seat *s = &m->seats[i];
	pthread_rwlockattr_t attr;

	s->mesh = m;
	s->ep = ep;
	s->number = i + 1;
	/* Who is to be taken away does not wait for others to have enough. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr,
			PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&s->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
}

static int init_mesh(struct fabric *f, unsigned int appliance)
{
	const struct topo_appliance *a = &f->topo->appliances[appliance];
	struct mesh *m = &f->meshes[appliance];
	unsigned int n = count_gpus(f->topo, a), k = 0;

	if (!*a->mesh_kind || n < 2)
		return 0;
	m->seats = calloc(n, sizeof(*m->seats));
	m->ways = calloc((size_t)n * n, sizeof(*m->ways));
	if (!m->seats || !m->ways)
		return -ENOMEM;
	m->fabric = f;
	m->id = fabric_appliance_id(f, appliance);
	m->n = n;
	for (unsigned int i = 0; i < a->nendpoints; i++) {
		if (f->topo->endpoints[a->first + i].class == TOPO_GPU)
			init_seat(m, k++, &f->eps[a->first + i]);
	}
	for (unsigned int i = 0; i < n * n; i++)
		m->ways[i].rate = a->mesh_gbps;
	return 0;
}

int mesh_init(struct fabric *f)
{
	int err = 0;

	f->meshes = calloc(f->topo->nappliances + 1, sizeof(*f->meshes));
	if (!f->meshes)
		return -ENOMEM;
	for (unsigned int i = 0; !err && i < f->topo->nappliances; i++)
		err = init_mesh(f, i);
	return err;
}

void mesh_free(struct fabric *f)
{
	for (unsigned int i = 0; f->meshes && i < f->topo->nappliances; i++) {
		struct mesh *m = &f->meshes[i];

		for (unsigned int k = 0; k < m->n; k++)
			pthread_rwlock_destroy(&m->seats[k].lock);
		free(m->seats);
		free(m->ways);
	}
	free(f->meshes);
	f->meshes = NULL;
}

struct seat *mesh_seat(struct fabric *f, unsigned int ep)
{
	struct mesh *m = &f->meshes[f->topo->endpoints[ep].appliance];

	for (unsigned int i = 0; i < m->n; i++) {
		if (m->seats[i].ep == &f->eps[ep])
			return &m->seats[i];
	}
	return NULL;
}

/* ---- Who is there ---- */

void mesh_join(struct seat *s, const struct mesh_gpu *g)
{
	pthread_rwlock_wrlock(&s->lock);
	s->gpu = *g;
	pthread_rwlock_unlock(&s->lock);
}

void mesh_leave(struct seat *s, uint32_t instance)
{
	pthread_rwlock_wrlock(&s->lock);
	if (s->gpu.instance == instance)
		memset(&s->gpu, 0, sizeof(s->gpu));
	pthread_rwlock_unlock(&s->lock);
}

/* ---- Accesses ---- */

static struct seat *peer_seat(const struct mesh_access *a)
{
	return &a->own->mesh->seats[a->peer - 1];
}

static bool has_link(const struct mesh_access *a)
{
	return a->own && a->peer && a->peer <= a->own->mesh->n &&
	       a->peer != a->own->number;
}

static uint32_t downs(const struct seat *s)
{
	return atomic_load_explicit(&s->ep->downs, memory_order_acquire);
}

static bool answers(const struct seat *s)
{
	return atomic_load_explicit(&s->ep->answers, memory_order_acquire);
}

/*
 * lock of @s held. In the order of docs/gpu.md section 6. Who was down for a
 * moment has had something else in the place of its memory.
 */
static unsigned int look(const struct mesh_access *a, const struct seat *s,
			 uint64_t n)
{
	const struct mesh_gpu *g = &s->gpu;

	if (!answers(a->own) || downs(a->own) != a->own_downs)
		return MESH_OWN_DOWN;
	if (!g->vram || g->instance != a->instance || g->host != a->host ||
	    !answers(s) || downs(s) != a->peer_downs)
		return DRACO_GPU_NO_PEER;
	if (a->there > g->size || n > g->size - a->there)
		return DRACO_GPU_BAD_RANGE;
	return DRACO_GPU_DONE;
}

unsigned int mesh_check(struct mesh_access *a, uint64_t n)
{
	unsigned int status;
	struct seat *s;

	if (!has_link(a))
		return DRACO_GPU_NO_LINK;
	s = peer_seat(a);
	a->own_downs = downs(a->own);
	a->peer_downs = downs(s);
	pthread_rwlock_rdlock(&s->lock);
	status = look(a, s, n);
	pthread_rwlock_unlock(&s->lock);
	return status;
}

struct oneway *mesh_way(const struct mesh_access *a)
{
	struct mesh *m = a->own->mesh;
	unsigned int own = a->own->number - 1, peer = a->peer - 1;

	return &m->ways[a->read ? peer * m->n + own : own * m->n + peer];
}

unsigned int mesh_move(const struct mesh_access *a, void *here, uint64_t n)
{
	struct seat *s = peer_seat(a);
	unsigned int status;
	char *there;

	pthread_rwlock_rdlock(&s->lock);
	status = look(a, s, n);
	if (status == DRACO_GPU_DONE) {
		there = (char *)s->gpu.vram + a->there;
		memcpy(a->read ? here : there, a->read ? there : here, n);
		status = look(a, s, n);
	}
	pthread_rwlock_unlock(&s->lock);
	if (status == DRACO_GPU_DONE)
		atomic_fetch_add_explicit(&mesh_way(a)->bytes, n,
					  memory_order_relaxed);
	return status;
}

void mesh_forget(struct fabric *f)
{
	for (unsigned int i = 0; i < f->topo->nappliances; i++) {
		struct mesh *m = &f->meshes[i];

		for (unsigned int k = 0; k < m->n * m->n; k++)
			m->ways[k].free_ns = 0;
	}
}

/* ---- Reading ---- */

static uint64_t carried(struct mesh *m, unsigned int from, unsigned int to)
{
	return atomic_load_explicit(&m->ways[from * m->n + to].bytes,
				    memory_order_relaxed);
}

/* Those of the first GPU to all others, of the second to all after it ... */
static void describe(struct mesh *m, uint32_t number, struct draco_link *out)
{
	unsigned int a = 0, b;

	for (; number >= m->n - 1 - a; a++)
		number -= m->n - 1 - a;
	b = a + 1 + number;
	out->a = m->seats[a].ep->id;
	out->b = m->seats[b].ep->id;
	out->a_to_b = carried(m, a, b);
	out->b_to_a = carried(m, b, a);
}

bool mesh_describe(struct fabric *f, uint32_t number, struct draco_link *out)
{
	for (unsigned int i = 0; i < f->topo->nappliances; i++) {
		struct mesh *m = &f->meshes[i];
		uint32_t links = m->n ? m->n * (m->n - 1) / 2 : 0;

		if (number < links) {
			describe(m, number, out);
			return true;
		}
		number -= links;
	}
	return false;
}
