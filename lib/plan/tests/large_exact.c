// SPDX-License-Identifier: LGPL-2.1-or-later
/* Hundreds of random graphs of 2 to 12 GPUs, against every cut of each. */
#include "exact.h"
#include "tap.h"

int main(void)
{
	exact_run(1, 360, 12, 4);
	return tap_done();
}
