# SPDX-License-Identifier: GPL-2.0-only
"""Modules of driver/tests: a backend that has only a part of the operations, and
KUnit tests of the core."""

import kmod
from scenario import scenario

PORTS = "grep -l ^fabrex_partial /sys/class/fabrex/*/driver_name | wc -l"


@scenario(hosts=["a", "b", "c"])
def partial(lab, t):
    """A fabric without data and data without a fabric: every ioctl and netlink
    command succeeds or is refused with a reason; the ports go while files are
    open and objects exist."""
    a = lab.guest("a")
    a.sh("insmod " + kmod.modules(a.kernel.release)["fabrex_partial"])
    t.equal(a.sh(PORTS), "2", "two ports beside Draco's")
    t.program(a, "backend-partial")
    a.sh("cat /sys/class/fabrex/*/limits/* /sys/class/fabrex/*/usage/* "
         "/sys/class/fabrex/*/quota/* >/dev/null")
    gone = a.run("set -- $(grep -l ^fabrex_partial "
                 "/sys/class/fabrex/*/driver_name | cut -d/ -f5); "
                 "exec 3<>/dev/$1 4<>/dev/$2; rmmod fabrex_partial && "
                 "! lsmod | grep -q ^fabrex_partial")
    t.equal(gone.status, 0, "the module goes while its ports are open")
    t.equal(a.sh(PORTS), "0", "so do its ports")
    t.equal(a.run("fabrexctl list fports").status, 0, "Draco's works as before")


@scenario(hosts=["a", "b", "c"], kernels=("debug",))
def kunit(lab, t):
    """What in the core needs no device, in the kernel with every checker."""
    a = lab.guest("a")
    a.sh("mountpoint -q /sys/kernel/debug || "
         "mount -t debugfs none /sys/kernel/debug")
    a.sh("insmod " + kmod.modules(a.kernel.release)["fabrex_kunit"],
         timeout=300)
    for suite in ("event", "model", "pages", "user"):
        out = a.sh(f"cat /sys/kernel/debug/kunit/fabrex_{suite}/results")
        t.ok("not ok" not in out and "ok 1 " in out, f"suite {suite}", out)
    t.equal(a.run("rmmod fabrex_kunit").status, 0, "they can be unloaded")
