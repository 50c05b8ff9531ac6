# SPDX-License-Identifier: GPL-2.0-only
"""Without a report, make check-debug and check-kcsan say something only if a
bug of a module would have been reported."""

import time

import kmod
from scenario import scenario

LIMIT = 600		# seconds, for a machine that is very busy

# Bug of fabrex_bug.ko, what the kernel says of it. In this order: KASAN's
# report taints the kernel, which ends lockdep.
REPORTS = (
    ("shift", r"UBSAN: shift-out-of-bounds in .*fabrex_bug\.c"),
    ("deadlock", r"WARNING: possible circular locking dependency detected"),
    ("use-after-free", r"BUG: KASAN: [^ ]*use-after-free in .*\[fabrex_bug\]"),
)


def load(guest, module, settings=""):
    guest.sh(f"insmod {kmod.modules(guest.kernel.release)[module]} {settings}")


def reported(guest, text, limit=LIMIT):
    """Wait until the kernel log has a line with `text`, a regex."""
    return guest.run(f"for i in $(seq {limit}); do dmesg | grep -qE '{text}' "
                     "&& exit 0; sleep 1; done; exit 1",
                     timeout=2 * limit).status == 0


@scenario(hosts=["a", "b", "c"], kernels=("kcsan",))
def race_is_reported(lab, t):
    """Two threads of a module count in one variable."""
    a = lab.guest("a")
    # Named with the other thread, or by offset where that was not caught.
    a.allow_log(r"BUG: KCSAN: data-race in count( |\+0x)")
    load(a, "fabrex_race")
    t.ok(reported(a, "KCSAN: data-race in count"), "KCSAN reports it")
    a.sh("rmmod fabrex_race")


# Of one host, as KASAN and lockdep report once and are silent afterwards.
@scenario(hosts=["a"], kernels=("debug",), fresh=True)
def bugs_are_reported(lab, t):
    """A module uses memory that is free, loses some, takes locks in both
    orders, shifts too far."""
    a = lab.guest("a")
    a.allow_log("fabrex_bug|possible circular locking|unreferenced object|"
                "kmemleak: [0-9]+ new|Call Trace:")
    for bug, report in REPORTS:
        load(a, "fabrex_bug", f"bug={bug}")
        t.ok(reported(a, report), bug)
        a.sh("rmmod fabrex_bug")
    leak(a, t)


def leak(guest, t):
    load(guest, "fabrex_bug", "bug=leak")
    limit = time.monotonic() + LIMIT
    found = ""
    # kmemleak reports what has been lost for five seconds.
    while "fabrex_bug" not in found and time.monotonic() < limit:
        found = guest.kmemleak()
    t.ok("fabrex_bug" in found, "leak", found)
    guest.sh("rmmod fabrex_bug")
