/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the bytes of the test run times are: VRAM of a modelled GPU or a file
 * in memory. Called by gpu.c.
 */
#ifndef RUNTIME_STORE_H
#define RUNTIME_STORE_H

#include "gpu.h"

/* Pages for an allocation whose size is known, and a view. False: errno. */
bool store_open(struct gpu_memory *m);
void store_close(struct gpu_memory *m);

#endif
