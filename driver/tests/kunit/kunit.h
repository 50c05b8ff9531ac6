/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included ahead of the tested file by each test of fabrex_kunit.ko.
 */
#ifndef FABREX_KUNIT_H
#define FABREX_KUNIT_H

#include <kunit/test.h>

/* fabrex.ko exports them. */
#undef FABREX_EXPORT
#define FABREX_EXPORT(sym)

#endif
