// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An operation as an object: made, ended with a result and its error message,
 * freed. Called by all that start or end operations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/operation/operation.h"

struct fabrex_coll *fxi_coll_new(struct fabrex_comm *comm,
				 const struct fabrex_collective *what)
{
	struct fabrex_coll *coll = malloc(sizeof(*coll));

	if (!coll) {
		fxi_error(ENOMEM, "%s: out of memory",
			  fxi_kind_name(what->kind));
		return NULL;
	}
	fxi_coll_init(coll, comm);
	coll->what = *what;
	return coll;
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

void fxi_coll_ended(struct fabrex_coll *coll, int result)
{
	if (result && !coll->comm->error)
		coll->error_text = strdup(fabrex_strerror_last());
	coll->result = result;
	if (coll->kept)
		keep(coll);
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
