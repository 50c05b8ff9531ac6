// SPDX-License-Identifier: GPL-2.0-only
/* fabrexctl on the small test fabric, for tests of the completion script. */
#include "ctl.h"
#include "fake.h"

int main(int argc, char **argv)
{
	struct fake *f = fabric_small();
	int r = ctl_run(&f->b, argc, argv, stdout, stderr);

	fake_free(f);
	return r;
}
