// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An operation as an object: made, ended with a result and its error message,
 * freed. Called by all that start or end operations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/operation/blocks.h"

struct fabrex_coll *fxi_coll_new(struct fabrex_comm *comm,
				 const struct fabrex_collective *what)
{
	struct fabrex_coll *coll = malloc(sizeof(*coll) +
					  fxi_arrays_bytes(comm, what));

	if (!coll) {
		fxi_error(ENOMEM, "%s: out of memory",
			  fxi_kind_name(what->kind));
		return NULL;
	}
	fxi_coll_init(coll, comm);
	coll->what = *what;
	fxi_arrays_copy(comm, &coll->what, coll + 1);
	return coll;
}

void fxi_group_add(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;

	if (comm->group_last)
		comm->group_last->group_next = coll;
	else
		comm->group = coll;
	comm->group_last = coll;
}

/* Its caller has a handle, and may never use it: kept until it does. */
static void keep(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;

	coll->next = comm->ended;
	coll->ended = &comm->ended;
	if (coll->next)
		coll->next->ended = &coll->next;
	comm->ended = coll;
}

void fxi_coll_free(struct fabrex_coll *coll)
{
	if (coll->ended)
		*coll->ended = coll->next;
	if (coll->ended && coll->next)
		coll->next->ended = coll->ended;
	free(coll->error_text);
	free(coll);
}

int fxi_coll_result(struct fabrex_coll *coll)
{
	int result = coll->result;

	if (result && coll->error_text)
		fxi_error(-result, "%s", coll->error_text);
	else if (result && (result == coll->comm->error ||
			    coll->comm->why == WHY_ABORTED))
		fxi_comm_error(coll->comm);
	return result;
}

void fxi_coll_ended(struct fabrex_coll *coll, int result)
{
	struct gate *gate = coll->gate;

	if (result && !coll->comm->error)
		coll->error_text = strdup(fabrex_strerror_last());
	coll->result = result;
	if (gate)
		fxi_gate_leave(gate, fxi_coll_result(coll));
	coll->gate = NULL;
	if (coll->kept)
		keep(coll);
	else if (coll->stream)
		fxi_coll_free(coll);
}

void fxi_coll_abandon(struct fabrex_coll *coll)
{
	if (coll->gate)
		fxi_gate_leave(coll->gate, fxi_error(ECANCELED, "%s: its communicator was destroyed before it had ended",
						     fxi_kind_name(coll->what.kind)));
	free(coll);
}
