# SPDX-License-Identifier: GPL-2.0-only
"""Without a report, make check-kcsan says something only if a race would have
been reported."""

import time

import kmod
from scenario import scenario

LIMIT = 600		# seconds, for a machine that is very busy


@scenario(hosts=["a", "b", "c"], kernels=("kcsan",))
def race_is_reported(lab, t):
    """Two threads of a module count in one variable."""
    a = lab.guest("a")
    a.allow_log("BUG: KCSAN: data-race in count .*")
    a.sh("insmod " + kmod.modules(a.kernel.release)["fabrex_race"])
    limit = time.monotonic() + LIMIT
    while "KCSAN: data-race in count" not in a.dmesg() and \
            time.monotonic() < limit:
        time.sleep(0.5)
    t.ok("KCSAN: data-race in count" in a.dmesg(), "KCSAN reports it")
    a.sh("rmmod fabrex_race")
