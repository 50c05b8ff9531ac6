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
    start = int(a.sh("grep ' t fabrex_model_update\\b\\| T "
                     "fabrex_model_update\\b' /proc/kallsyms").split()[0], 16)
    before = fabric.ctl_json(a, "list endpoints")
    puppet = Puppet(a)
    for name, value in (("require-start", hex(start)),
                        ("require-end", hex(start + 0x400)),
                        ("stacktrace-depth", 32), ("verbose", 0),
                        ("times", -1), ("probability", 100)):
        a.sh(f"echo {value} > {FAILSLAB}/{name}")
    lab.emu_control({"cmd": "fault", "kind": "lost-event", "port": "a.0",
                     "event": "link"})
    lab.emu_control({"cmd": "link", "port": "c.0", "state": "down"})
    end = time.monotonic() + 300
    while "cannot read the fabric" not in a.dmesg() and \
            time.monotonic() < end:
        time.sleep(0.1)
    t.ok("cannot read the fabric" in a.dmesg(), "a scan has failed")
    t.equal(fabric.ctl_json(a, "list endpoints"), before, "nothing is forgotten")
    a.sh(f"echo 0 > {FAILSLAB}/probability; echo 0 > {FAILSLAB}/require-end")
    t.ok(puppet.wait_event("LOST", 300000), "then it succeeds")
    ports = str(fabric.ctl_json(a, "list ports"))
    t.ok("down" in ports, "and the change is seen", ports)
    lab.emu_control({"cmd": "link", "port": "c.0", "state": "up"})
    puppet.close()
