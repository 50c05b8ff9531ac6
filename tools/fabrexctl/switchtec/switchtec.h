/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fabric of Microchip Switchtec PFX switches as a backend: the wiring is what
 * a topology file says, bindings and links are what the switches answer through
 * /dev/switchtecN of Linux's own driver. No module of fabrex is needed.
 */
#ifndef CTL_SWITCHTEC_H
#define CTL_SWITCHTEC_H

#include "backend.h"
#include "switchtec/device.h"

/* The file that is used if none is named; below FABREX_ROOT. */
#define SWITCHTEC_FILE	"/etc/fabrex/fabric.topo"

/**
 * switchtec_backend() - not yet opened
 * @file:    topology file; NULL: SWITCHTEC_FILE
 * @command: how commands are sent; NULL: device_command()
 *
 * Return: to be freed with switchtec_free(), closed or not
 */
struct backend *switchtec_backend(const char *file, mrpc_fn *command);
void switchtec_free(struct backend *b);
/* There is SWITCHTEC_FILE. */
bool switchtec_is_set_up(void);
/* This machine has a /dev/switchtecN. */
bool switchtec_is_here(void);

#endif
