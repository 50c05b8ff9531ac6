/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Taking operations back: for endpoint.c. */
#ifndef FABREX_CANCEL_H
#define FABREX_CANCEL_H

#include "provider.h"

ssize_t cancel_one(fid_t fid, void *context);
/* Peers have got what they were promised; the endpoint may be closed. */
bool cancel_is_due(struct endpoint *ep);
/* They are told. */
void cancel_farewell(struct endpoint *ep);
/* Silently, and after the queue was destroyed. */
void cancel_all(struct endpoint *ep);

#endif
