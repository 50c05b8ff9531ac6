# SPDX-License-Identifier: GPL-2.0-only
"""A controller that does not do what it is told, and everybody who may want to
stop it meanwhile: sysfs, the PCI core, the end of the driver or of the kernel."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import install
from recovery import HANG, fabric, pair, works_again
from puppet import WRITE
from scenario import scenario

FUNCTION = "/sys/class/fabrex/fabrex*/device"
STUCK = r"fabrex_draco.*(does not stop|resetting the|resets? )"


def get_stuck(lab, t):
    """b's controller is to be stopped and ignores it: its driver is at it when
    this returns."""
    b = lab.guest("b")
    answer = lab.emu_control({"cmd": "fault", "kind": "stuck-stop",
                              "port": "b.0", "count": 1000})
    t.need(answer.get("ok"), "b's controller will not stop", answer)
    b.sh("dmesg -C")
    t.equal(fabric.ctl(lab.guest("a"), "port b.0 reset --force").status, 0,
            "b's port is reset in the fabric")
    t.need(b.run("for i in $(seq 2000); do dmesg | grep -q 'resetting the "
                 "controller' && exit 0; sleep 0.02; done; exit 1").status == 0,
           "its driver wants to stop it", b.dmesg()[-1500:])


def stuck(lab, t, what, command):
    """The controller gets stuck with queues in use, then the command."""
    guest = lab.guest("b")
    guest.allow_log(STUCK)
    a, b, rkey = pair(lab)
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "OK",
            f"{what}: traffic before")
    get_stuck(lab, t)
    result = guest.run(command, timeout=HANG)
    t.need(result.status == 0, f"{what}: comes back", result.stderr)
    b.kill()
    a.close()
    return result


@scenario(hosts=["a", "b", "c"])
def sysfs_reset_while_stuck(lab, t):
    """The PCI core holds the function's lock and its configuration space while
    it waits for the driver, whose own reset wants the latter."""
    stuck(lab, t, "reset", f"cd {FUNCTION} && echo 1 >reset")
    works_again(lab, t, "reset")


@scenario(hosts=["a", "b", "c"])
def recovers_by_itself_when_stuck(lab, t):
    """Nobody helps: the driver resets the function."""
    stuck(lab, t, "alone", "true")
    works_again(lab, t, "alone")
    t.ok("resetting the function" in lab.guest("b").dmesg(),
         "by a reset of the function")


@scenario(hosts=["a", "b", "c"])
def unbound_while_stuck(lab, t):
    """The driver is unbound, and bound again."""
    stuck(lab, t, "unbind", f"cd {FUNCTION} && f=$(basename $(readlink -f .)) "
          "&& cd driver && echo $f >unbind && echo $f >bind")
    works_again(lab, t, "unbind")


@scenario(hosts=["a", "b", "c"])
def removed_while_stuck(lab, t):
    """The function goes, and is found again."""
    stuck(lab, t, "remove", f"echo 1 >$(readlink -f {FUNCTION})/remove && "
          "echo 1 >/sys/bus/pci/rescan")
    works_again(lab, t, "remove")


@scenario(hosts=["a", "b", "c"])
def rebooted_while_stuck(lab, t):
    """The kernel ends, in good order, and the next one finds a port."""
    guest = lab.guest("b")
    guest.allow_log(STUCK)
    a, _, _ = pair(lab)
    get_stuck(lab, t)
    guest.reboot(timeout=HANG)
    install.install([guest])
    works_again(lab, t, "reboot")
    a.close()
