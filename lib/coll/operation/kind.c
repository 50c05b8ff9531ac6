// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of kinds, for the messages of all of lib/coll. */
#include "coll/operation/operation.h"
#include "schedule/schedule.h"

const char *fxi_kind_name(uint32_t kind)
{
	const char *name = fxi_schedule_kind_name(kind);

	switch (kind) {
	case FABREX_BARRIER:
		return "barrier";
	case FABREX_SEND:
		return "send";
	case FABREX_RECV:
		return "recv";
	case FABREX_ALL_GATHERV:
		return "all-gatherv";
	case FABREX_REDUCE_SCATTERV:
		return "reduce-scatterv";
	case FABREX_ALL_TO_ALLV:
		return "all-to-allv";
	default:
		return name ? name : "operation of unknown kind";
	}
}
