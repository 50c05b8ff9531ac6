/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks the public functions; every other symbol is hidden. libfabrex.map lists
 * them with their versions.
 */
#ifndef LIB_EXPORT_H
#define LIB_EXPORT_H

#define EXPORT	__attribute__((visibility("default")))

#endif
