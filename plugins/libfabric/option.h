/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options of endpoints, and what can be asked of them: for endpoint.c. */
#ifndef FABREX_OPTION_H
#define FABREX_OPTION_H

#include "provider.h"

int option_get(fid_t fid, int level, int option, void *value, size_t *len);
int option_set(fid_t fid, int level, int option, const void *value, size_t len);

#endif
