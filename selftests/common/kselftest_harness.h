/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's harness with longer limits. A test's limit is for what hangs; it
 * says nothing about speed, and an emulated guest with every checker in its
 * kernel, on a machine that does other things, may be 50 times slower than what
 * the limits were chosen on.
 */
#include_next "kselftest_harness.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 900

#undef TEST_F_TIMEOUT
#define TEST_F_TIMEOUT(fixture_name, test_name, timeout) \
	__TEST_F_IMPL(fixture_name, test_name, -1, 10 * (timeout))
