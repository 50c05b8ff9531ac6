/* SPDX-License-Identifier: GPL-2.0-only */
/* Identity and limits of the port (identify.c). For probe and recovery. */
#ifndef DRACO_IDENTIFY_H
#define DRACO_IDENTIFY_H

#include <linux/types.h>

struct draco_dev;
struct draco_ident;

int draco_identify(struct draco_dev *dd, struct draco_ident *ident);
bool draco_same_port(const struct draco_ident *a, const struct draco_ident *b);

#endif
