# SPDX-License-Identifier: GPL-2.0-only
"""The modules of Linux that the tests of this directory use: they fit the
kernel that runs, and ours are not there."""

import upstream
from switch import pfx_scenario

# It refuses to be loaded where there is no NTB.
REFUSES = "ntb_netdev"


@pfx_scenario()
def modules_load(lab, t):
    """On a host without an NTB, which it needs all to itself."""
    c = lab.guest("c")
    names = [n for n in upstream.MODULES if n != REFUSES]
    upstream.load(c, *names)
    loaded = set(c.sh("cut -d' ' -f1 /proc/modules").split())
    t.equal(set(names) - loaded, set(), "all of them are loaded")
    t.ok(not [n for n in loaded if n.startswith("fabrex")],
         "none of ours is", loaded)
    result = c.run(f"modprobe -d {upstream.WHERE} {REFUSES}")
    t.ok("No such device" in result.stderr, f"{REFUSES} fits the kernel too",
         result.stderr)
    upstream.unload(c, *reversed(names))
    left = set(names) & set(c.sh("cut -d' ' -f1 /proc/modules").split())
    t.equal(left, set(), "they can be unloaded")
