// SPDX-License-Identifier: LGPL-2.1-or-later
/* Small random graphs, with sanitizers; large_exact.c has the many. */
#include "exact.h"
#include "tests/tap.h"

int main(void)
{
	exact_run(1000, 60, 6, 3);
	return tap_done();
}
