// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Topology files: appliances, their uplinks and their endpoints. Called by
 * topology.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/elements.h"

#define NCLASSES	(TOPO_FPGA + 1)

static const char *const appliance_known[] = {
	"name", "kind", "uplinks", "endpoints", "mesh", NULL
};
static const char *const endpoint_known[] = { "class", "count", "vram", NULL };
static const char *const mesh_known[] = { "kind", "gbps", NULL };

static int read_kind(struct topo_parse *p, const struct topo_at *at,
		     struct topo_appliance *a)
{
	const char *s = NULL;

	if (topo_string(p, at, "kind", true, &s))
		return -1;
	if (!strcmp(s, "cascade"))
		a->kind = TOPO_CASCADE;
	else if (!strcmp(s, "flat"))
		a->kind = TOPO_FLAT;
	else
		return topo_fail(p, at,
				 "kind \"%s\" is not known; choose \"cascade\" or \"flat\"",
				 s);
	return 0;
}

static int read_uplinks(struct topo_parse *p, const struct topo_at *at,
			unsigned int i)
{
	struct topo_appliance *a = &p->t->appliances[i];
	unsigned int want = a->kind == TOPO_CASCADE ? 2 : 4;
	config_setting_t *list;
	unsigned int n;

	if (topo_list(p, at, "uplinks", true, &list, &n))
		return -1;
	if (n != want)
		return topo_fail(p, at,
				 "%u uplinks; kind \"%s\" has %u, list as many ports",
				 n, want == 2 ? "cascade" : "flat", want);
	for (unsigned int k = 0; k < n; k++) {
		if (topo_take_port(p, at, config_setting_get_elem(list, k),
				   TOPO_PORT_UPLINK, i, k, &a->uplinks[k]))
			return -1;
	}
	a->nuplinks = n;
	return 0;
}

static int read_mesh(struct topo_parse *p, const struct topo_at *at,
		     struct topo_appliance *a)
{
	config_setting_t *m = config_setting_get_member(at->set, "mesh");
	struct topo_at mesh = { m, at->what, at->name };
	const char *s = NULL;

	if (!m)
		return 0;
	if (!config_setting_is_group(m))
		return topo_fail(p, &mesh,
				 "\"mesh\" is not a group; write mesh = { kind = \"xgmi\"; gbps = 48.0; };");
	if (topo_known(p, &mesh, mesh_known) ||
	    topo_string(p, &mesh, "kind", true, &s) ||
	    topo_gbps(p, &mesh, "gbps", &a->mesh_gbps))
		return -1;
	if (strcmp(s, "xgmi") && strcmp(s, "nvlink") && strcmp(s, "pcie"))
		return topo_fail(p, &mesh,
				 "mesh kind \"%s\" is not known; choose \"xgmi\", \"nvlink\" or \"pcie\"",
				 s);
	if (a->mesh_gbps == 0.0)
		return topo_fail(p, &mesh,
				 "\"gbps\" of the mesh is missing; add gbps = 48.0;");
	snprintf(a->mesh_kind, sizeof(a->mesh_kind), "%s", s);
	return 0;
}

static int read_class(struct topo_parse *p, const struct topo_at *at,
		      enum topo_class *class)
{
	const char *s = NULL;

	if (topo_string(p, at, "class", true, &s))
		return -1;
	for (*class = TOPO_GPU; *class <= TOPO_FPGA; (*class)++) {
		if (!strcmp(topology_class_name(*class), s))
			return 0;
	}
	return topo_fail(p, at,
			 "endpoint class \"%s\" is not known; choose \"gpu\", \"nvme\", \"nic\" or \"fpga\"",
			 s);
}

static int add_endpoint(struct topo_parse *p, const struct topo_at *at,
			unsigned int i, enum topo_class class,
			unsigned int index, uint64_t size)
{
	struct topo_appliance *a = &p->t->appliances[i];
	struct topo_endpoint *ep = &p->t->endpoints[p->t->nendpoints];
	struct topo_at place = { at->set, "endpoint", ep->name };
	char name[TOPO_NAME_LEN + 24];

	if (snprintf(name, sizeof(name), "%s.%s%u", a->name,
		     topology_class_name(class), index) >= TOPO_NAME_LEN)
		return topo_fail(p, at,
				 "its endpoint would be called \"%s\", more than %u characters; shorten the name",
				 name, TOPO_NAME_LEN - 1);
	memcpy(ep->name, name, strlen(name) + 1);
	ep->class = class;
	ep->appliance = i;
	ep->number = a->nendpoints++;
	ep->size = size;
	p->t->nendpoints++;
	return topo_claim(p, &place, ep->name);
}

static int grow_endpoints(struct topo_parse *p, const struct topo_at *at,
			  unsigned int more)
{
	struct topology *t = p->t;
	void *bigger = realloc(t->endpoints,
			       (t->nendpoints + more) * sizeof(*t->endpoints));

	if (!bigger)
		return topo_fail(p, at, "out of memory; free some");
	t->endpoints = bigger;
	memset(&t->endpoints[t->nendpoints], 0, more * sizeof(*t->endpoints));
	return 0;
}

static int read_endpoints(struct topo_parse *p, const struct topo_at *at,
			  unsigned int i, struct topo_at *entry,
			  unsigned int *index)
{
	struct topo_appliance *a = &p->t->appliances[i];
	unsigned int count = 1;
	enum topo_class class;
	uint64_t size = 64u << 20;

	entry->what = at->what;
	entry->name = at->name;
	if (topo_known(p, entry, endpoint_known) ||
	    read_class(p, entry, &class) ||
	    topo_int(p, entry, "count", 1, TOPO_MAX_ENDPOINTS, &count) ||
	    topo_size(p, entry, "vram", 4096, 1ull << 36, &size))
		return -1;
	if (a->nendpoints + count > TOPO_MAX_ENDPOINTS)
		return topo_fail(p, entry,
				 "more than %u endpoints in one appliance; move some to another",
				 TOPO_MAX_ENDPOINTS);
	if (grow_endpoints(p, entry, count))
		return -1;
	for (unsigned int k = 0; k < count; k++) {
		if (add_endpoint(p, entry, i, class, index[class]++, size))
			return -1;
	}
	return 0;
}

/* Endpoints of a class are shared out over the uplinks in order. */
static void share_uplinks(struct topology *t, unsigned int i,
			  const unsigned int *total)
{
	const struct topo_appliance *a = &t->appliances[i];
	unsigned int seen[NCLASSES] = { 0 };

	for (unsigned int k = 0; k < a->nendpoints; k++) {
		struct topo_endpoint *ep = &t->endpoints[a->first + k];

		ep->uplink = seen[ep->class]++ * a->nuplinks /
			     total[ep->class];
	}
}

static int read_appliance(struct topo_parse *p, struct topo_at *at,
			  unsigned int i)
{
	struct topo_appliance *a = &p->t->appliances[i];
	unsigned int index[NCLASSES] = { 0 };
	config_setting_t *list;
	unsigned int n;

	if (topo_known(p, at, appliance_known) || topo_name(p, at, a->name) ||
	    read_kind(p, at, a) || read_uplinks(p, at, i) ||
	    read_mesh(p, at, a) ||
	    topo_list(p, at, "endpoints", true, &list, &n))
		return -1;
	a->first = p->t->nendpoints;
	for (unsigned int k = 0; k < n; k++) {
		struct topo_at entry;

		if (topo_group(p, list, k, "endpoints", &entry) ||
		    read_endpoints(p, at, i, &entry, index))
			return -1;
	}
	share_uplinks(p->t, i, index);
	return 0;
}

int topo_read_appliances(struct topo_parse *p, const struct topo_at *root)
{
	struct topology *t = p->t;
	config_setting_t *list;

	if (topo_list(p, root, "appliances", false, &list, &t->nappliances))
		return -1;
	t->appliances = topo_array(p, root, &t->nappliances,
				   sizeof(*t->appliances));
	return t->appliances ? topo_each(p, list, t->nappliances, "appliance",
					 read_appliance) : -1;
}
