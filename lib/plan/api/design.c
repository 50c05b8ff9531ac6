// SPDX-License-Identifier: LGPL-2.1-or-later
/* Designs of the public API: the best wirings of given parts. */
#include <errno.h>
#include <stdlib.h>

#include "plan/api/api.h"
#include "plan/design.h"

struct fabrex_plan_designs {
	struct plan_wiring *wirings;
	uint32_t n;
	uint64_t considered;
};

EXPORT int fabrex_plan_design(const struct fabrex_plan_inventory *inventory,
			      size_t size, int collective,
			      struct fabrex_plan_designs **designs)
{
	struct fabrex_plan_inventory v;
	struct fabrex_plan_designs *d;
	struct plan_error e = { 0 };
	int err = api_copy_in("inventory", &v, sizeof(v), inventory, size);

	if (err)
		return err;
	if (collective <= 0 || collective >= PLAN_COLLECTIVES || !v.designs)
		return api_fail(EINVAL, "%u designs for collective %d; ask for one or more, for one of enum fabrex_plan_collective",
				v.designs, collective);
	d = calloc(1, sizeof(*d));
	if (!d)
		return api_fail(ENOMEM, "out of memory");
	err = plan_design(&(struct plan_parts){
				.switches = v.switches,
				.switch_ports = v.switch_ports,
				.boxes = v.appliances, .uplinks = v.uplinks,
				.gpus = v.gpus, .host_ports = v.host_ports,
				.isls = v.isls, .link_gbps = v.link / 1000.0,
				.mesh_gbps = v.mesh / 1000.0,
				.root_complex_gbps = v.root_complex / 1000.0,
			  }, collective, v.designs, &d->wirings, &d->n,
			  &d->considered, &e);
	if (err) {
		free(d);
		return api_error(err, &e);
	}
	*designs = d;
	return 0;
}

EXPORT void fabrex_plan_designs_free(struct fabrex_plan_designs *designs)
{
	if (designs)
		plan_wirings_free(designs->wirings, designs->n);
	free(designs);
}

EXPORT uint32_t
fabrex_plan_designs_count(const struct fabrex_plan_designs *designs,
			  uint64_t *considered)
{
	if (considered)
		*considered = designs->considered;
	return designs->n;
}

EXPORT int fabrex_plan_design_query(const struct fabrex_plan_designs *designs,
				    uint32_t index,
				    struct fabrex_plan_design *design,
				    size_t size)
{
	const struct plan_wiring *w;
	struct fabrex_plan_design v;

	if (index >= designs->n)
		return api_fail(ENOENT, "there is no design %u; there are %u, counted from 0",
				index, designs->n);
	w = &designs->wirings[index];
	v = (struct fabrex_plan_design){
		.topology = w->topology, .reason = w->why,
		.bound = w->bound, .optimal = w->optimal, .rings = w->ring,
	};
	api_copy_out(design, size, &v, sizeof(v));
	return 0;
}
