# SPDX-License-Identifier: GPL-2.0-only
"""The modules of Linux that the tests of this directory use: they fit the
kernel that runs, and ours are not there."""

import upstream
from scenario import scenario

# It refuses to be loaded where there is no NTB.
REFUSES = "ntb_netdev"


@scenario(hosts=["a"], topology=None, kernels=("7.2",), upstream=True)
def modules_load(lab, t):
    a = lab.guest("a")
    names = [n for n in upstream.MODULES if n != REFUSES]
    upstream.load(a, *names)
    loaded = set(a.sh("cut -d' ' -f1 /proc/modules").split())
    t.equal(set(names) - loaded, set(), "all of them are loaded")
    t.ok(not [n for n in loaded if n.startswith("fabrex")],
         "none of ours is", loaded)
    result = a.run(f"modprobe -d {upstream.WHERE} {REFUSES}")
    t.ok("No such device" in result.stderr, f"{REFUSES} fits the kernel too",
         result.stderr)
    upstream.unload(a, *reversed(names))
    left = set(names) & set(a.sh("cut -d' ' -f1 /proc/modules").split())
    t.equal(left, set(), "they can be unloaded")
