// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The way between two devices as Linux sees it: the lowest bridge in common,
 * the bridges with ACS redirect, and the distance. Follows
 * calc_map_type_and_dist() of drivers/pci/p2pdma.c, with b its provider and a
 * its client. Called by query.c and slot.c.
 */
#include <string.h>

#include "p2p/p2p.h"

static bool same_dev(const struct pci_dev *x, const struct pci_dev *y)
{
	return !x->absent && !y->absent && !strcmp(x->name, y->name);
}

static bool find_common(struct p2p_way *way)
{
	unsigned int i, j;

	for (j = 0; j < way->b.n; j++)
		for (i = 0; i < way->a.n; i++)
			if (same_dev(way->a.dev[i], way->b.dev[j])) {
				way->ia = i;
				way->ib = j;
				return true;
			}
	way->ia = way->a.n;
	way->ib = way->b.n;
	return false;
}

static void look_at(struct p2p_way *way, const struct pci_dev *dev)
{
	size_t room = sizeof(way->redirect) / sizeof(way->redirect[0]);

	if (!fxi_pci_ext_known(dev))
		way->hidden = true;
	if (!fxi_pci_acs_redirect(dev))
		return;
	if (way->redirects < room)
		way->redirect[way->redirects] = dev;
	way->redirects++;
}

/* The common bridge belongs to the target's side, as in Linux. */
static void find_redirects(struct p2p_way *way)
{
	unsigned int i;

	for (i = 0; i < way->ia; i++)
		look_at(way, way->a.dev[i]);
	for (i = 0; i <= way->ib; i++)
		look_at(way, way->b.dev[i]);
}

void fxi_way_find(const struct p2p_env *env, struct p2p_way *way)
{
	way->common = find_common(way);
	way->distance = way->ia + way->ib;
	way->redirects = 0;
	way->hidden = false;
	if (way->common)
		find_redirects(way);
	fxi_host_allows(env->root, &way->a, &way->b, &way->host);
}
