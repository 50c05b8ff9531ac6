/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks what libfabrex.so offers; everything else is hidden. The names are
 * listed once more, with their version, in libfabrex.map.
 */
#ifndef LIB_EXPORT_H
#define LIB_EXPORT_H

#define EXPORT	__attribute__((visibility("default")))

#endif
