# SPDX-License-Identifier: GPL-2.0-only
"""Failing every allocation of a good sequence, one at a time, and those of one
function for a while."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
from puppet import Puppet
from scenario import scenario


@scenario(hosts=["a", "b", "c"], kernels=("7.2", "debug"))
def sweep(lab, t):
    """Needs the debug kernel; on others the program says what is missing."""
    a = lab.guest("a")
    a.run("mount -t debugfs none /sys/kernel/debug")
    a.allow_log("FAULT_INJECTION|fault_inject|failslab")
    t.program(a, "fail_nth-sweep", timeout=900)


FAILSLAB = "/sys/kernel/debug/failslab"


def text_of(guest, function):
    """Where a module's function begins, and where the next one does. Its size
    depends on what the compiler put into it, and on sanitizers."""
    symbols = {int(line.split()[0], 16): line.split()[2] for line in
               guest.sh("grep '\\[fabrex' /proc/kallsyms").splitlines()
               if line.split()[1] in "tT"}
    places = sorted(symbols)
    for place, after in zip(places, places[1:]):
        if symbols[place] == function:
            return place, after
    raise AssertionError(f"no function {function} in /proc/kallsyms")


@scenario(hosts=["a", "b", "c"], kernels=("7.2", "debug"))
def failed_scan_forgets_nothing(lab, t):
    """No memory for what the switch says of the fabric: what was known of it
    stays known, and is put right as soon as there is memory."""
    a = lab.guest("a")
    a.run("mount -t debugfs none /sys/kernel/debug")
    if a.run(f"test -e {FAILSLAB}/require-start").status:
        t.skip("the kernel cannot fail the allocations of one function")
        return
    a.allow_log("FAULT_INJECTION|fault_inject|failslab|cannot read the fabric")
    start, end = text_of(a, "fabrex_model_update")
    before = fabric.ctl_json(a, "list endpoints")
    puppet = Puppet(a)
    for name, value in (("require-start", hex(start)),
                        ("require-end", hex(end)),
                        ("stacktrace-depth", 32), ("verbose", 0),
                        ("ignore-gfp-wait", 0), ("cache-filter", 0),
                        ("task-filter", 0), ("interval", 1), ("space", 0),
                        ("times", -1), ("probability", 100)):
        a.sh(f"echo {value} > {FAILSLAB}/{name}")
    lab.emu_control({"cmd": "fault", "kind": "lost-event", "port": "a.0",
                     "event": "link"})
    lab.emu_control({"cmd": "link", "port": "c.0", "state": "down"})
    limit = time.monotonic() + 300
    while "cannot read the fabric" not in a.dmesg() and \
            time.monotonic() < limit:
        time.sleep(0.1)
    t.ok("cannot read the fabric" in a.dmesg(), "a scan has failed")
    t.equal(fabric.ctl_json(a, "list endpoints"), before, "nothing is forgotten")
    a.sh(f"echo 0 > {FAILSLAB}/probability; echo 0 > {FAILSLAB}/require-end")
    t.ok(puppet.wait_event("LOST", 300000), "then it succeeds")
    ports = str(fabric.ctl_json(a, "list ports"))
    t.ok("down" in ports, "and the change is seen", ports)
    lab.emu_control({"cmd": "link", "port": "c.0", "state": "up"})
    puppet.close()
