# SPDX-License-Identifier: GPL-2.0-only
"""Failing every allocation of a good sequence, one at a time."""

from scenario import scenario


@scenario(hosts=["a", "b", "c"], kernels=("7.2", "debug"))
def sweep(lab, t):
    """Needs the debug kernel; on others the program says what is missing."""
    a = lab.guest("a")
    a.run("mount -t debugfs none /sys/kernel/debug")
    a.allow_log("FAULT_INJECTION|fault_inject|failslab")
    t.program(a, "fail_nth-sweep", timeout=900)
