// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Assigns GPUs to host ports and finds the paths of partitions that span several
 * switches. Called by wiring.c.
 */
#include <errno.h>
#include <string.h>

#include "plan/input/wiring.h"

static bool wanted(const struct wiring *w, unsigned int host)
{
	return !w->only || !strcmp(w->t->hosts[host].name, w->only);
}

/* Paths from all switches to each port: the shortest, lowest switches first. */
static void find_paths(struct wiring *w, unsigned int p)
{
	unsigned int queue[TOPO_MAX_SWITCHES], n = 0, i, s;
	unsigned int *next = w->next + p * w->nsw;
	unsigned int *hops = w->hops + p * w->nsw;

	for (s = 0; s < w->nsw; s++)
		hops[s] = TOPO_NONE;
	queue[n++] = w->ports[p].sw;
	next[w->ports[p].sw] = w->ports[p].sw;
	hops[w->ports[p].sw] = 0;
	for (i = 0; i < n; i++)
		for (s = 0; s < w->nsw; s++)
			if (hops[s] == TOPO_NONE && *trunk(w, queue[i], s)) {
				hops[s] = hops[queue[i]] + 1;
				next[s] = queue[i];
				queue[n++] = s;
			}
}

static unsigned int nearest_port(const struct wiring *w, unsigned int sw)
{
	unsigned int p, best = TOPO_NONE, least = TOPO_NONE;

	for (p = 0; p < w->nports; p++)
		if (wanted(w, w->ports[p].host) &&
		    w->hops[p * w->nsw + sw] < least) {
			best = p;
			least = w->hops[p * w->nsw + sw];
		}
	return best;
}

static void bind_nearest(struct wiring *w)
{
	unsigned int i;

	for (i = 0; i < w->t->nendpoints; i++)
		if (is_gpu(w, i))
			w->bound[i] = nearest_port(w, uplink_switch(w, i));
	plan_graph_warn(w->g, "%s has no bindings; it is planned as if each GPU were bound to the host port that is nearest to it, the first one of several",
			w->t->name);
}

static void bind_as_told(struct wiring *w)
{
	unsigned int i, p;

	for (i = 0; i < w->t->nbindings; i++) {
		const struct topo_binding *b = &w->t->bindings[i];

		for (p = 0; w->ports[p].host != b->host; p++)
			;
		if (is_gpu(w, b->endpoint))
			w->bound[b->endpoint] = p + b->port;
	}
}

static bool has_gpu_binding(const struct wiring *w)
{
	unsigned int i;

	for (i = 0; i < w->t->nbindings; i++)
		if (is_gpu(w, w->t->bindings[i].endpoint))
			return true;
	return false;
}

static int bind(struct wiring *w)
{
	unsigned int i, n = 0, left = 0;

	if (has_gpu_binding(w))
		bind_as_told(w);
	else
		bind_nearest(w);
	for (i = 0; i < w->t->nendpoints; i++) {
		if (w->bound[i] != TOPO_NONE) {
			struct port *p = &w->ports[w->bound[i]];

			p->gpus++;
			n += wanted(w, p->host);
			w->hosts[p->host] = wanted(w, p->host);
		} else if (is_gpu(w, i)) {
			left++;
		}
	}
	if (!n)
		return plan_fail(w->e, EINVAL, "%s \"%s\": no GPU is bound to it; bind some, or plan for another host",
				 w->only ? "host" : "fabric",
				 w->only ? w->only : w->t->name);
	if (left)
		plan_graph_warn(w->g, "%u of the fabric's GPUs %s bound to no host port; left out",
				left, left == 1 ? "is" : "are");
	return 0;
}

static int check_host(const struct wiring *w)
{
	char known[300] = "";
	size_t n = 0;
	unsigned int h;

	if (!w->only || topology_find_host(w->t, w->only) != TOPO_NONE)
		return 0;
	for (h = 0; h < w->t->nhosts && n < sizeof(known); h++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s",
				      h ? ", " : "", w->t->hosts[h].name);
	return plan_fail(w->e, EINVAL, "there is no host \"%.40s\" in %s; choose from %s",
			 w->only, w->t->name, known);
}

int wiring_bind(struct wiring *w)
{
	unsigned int p;
	int err = check_host(w);

	for (p = 0; !err && p < w->nports; p++)
		find_paths(w, p);
	return err ? err : bind(w);
}
