# SPDX-License-Identifier: GPL-2.0-only
"""PCIe errors: QEMU reports one at the slot of the fabric port, and Linux'
recovery stops the driver, resets what is below and starts it again."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from recovery import HANG, SIZE, fabric, works_again
from puppet import WRITE, Puppet, counts, wait_counts
from scenario import scenario

LOG = r"pcieport .*(AER|PCIe Bus Error|error status)|device .*error"


def inject(t, guest, error, slot="slot1"):
    """Have the slot of the fabric port report an error."""
    said = guest.qmp.command("human-monitor-command", {
        "command-line": f"pcie_aer_inject_error {slot} {error}"})
    t.need(said.startswith("OK"), f"QEMU reports {error}", said)


def wait_log(guest, pattern):
    return guest.run("for i in $(seq 6000); do dmesg | grep -qE '" + pattern +
                     "' && exit 0; sleep 0.02; done; exit 1",
                     timeout=HANG).status == 0


def recovered(lab, t, what, error, reset):
    """Queues run, the error comes, the port is there again."""
    guest = lab.guest("b")
    guest.allow_log(LOG)
    fabric.release_all(lab, lab.guest("a"))
    a, b = Puppet(lab.guest("a")), Puppet(guest)
    for p in (a, b):
        p.mr(0, SIZE)
        p.queue(0)
    rkey = b.mr(1, SIZE)
    b.mr(2, SIZE)
    own = b.mr(3, 4096)
    b.ask("window", 0, b.peer, own, 0, 4096, 6)
    generation = fabric.wait_peer(a, "b", True)
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            f"{what}: traffic before")
    guest.sh("dmesg -C")
    inject(t, guest, error)
    t.need(wait_log(guest, "device recovery (successful|failed)"),
           f"{what}: the kernel has recovered", guest.dmesg()[-2500:])
    t.ok("device recovery successful" in guest.dmesg(), f"{what}: with success",
         guest.dmesg()[-2500:])
    t.equal("broken device" in guest.dmesg() or "reset by" in guest.dmesg()
            or "has been reset" in guest.dmesg(), reset,
            f"{what}: the link was {'' if reset else 'not '}reset")
    t.ok(b.wait_event("QUEUE_ERROR", HANG * 1000),
         f"{what}: the process is told")
    t.ok(b.state(0)[0] != 0, f"{what}: its queue has stopped", b.state(0))
    t.need(fabric.wait_port(guest, HANG), f"{what}: the port works",
           guest.dmesg()[-2500:])
    now = fabric.wait_peer(a, "b", True)
    t.ok(now and now > generation, f"{what}: as a new generation",
         f"{generation} -> {now}")
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "RKEY",
            f"{what}: the key of before is refused")
    b.close()
    a.close()
    works_again(lab, t, what)


@scenario(hosts=["a", "b", "c"])
def aer_not_fatal(lab, t):
    """A request that was not answered: the link is good."""
    recovered(lab, t, "not fatal", "COMP_TIME", False)


@scenario(hosts=["a", "b", "c"])
def aer_fatal(lab, t):
    """The link cannot be trusted: everything below the slot is reset."""
    recovered(lab, t, "fatal", "DLP", True)


@scenario(hosts=["a", "b", "c"])
def aer_correctable(lab, t):
    """Nothing for a driver to do: the queues go on."""
    guest = lab.guest("b")
    guest.allow_log(LOG)
    a, b = Puppet(lab.guest("a")), Puppet(guest)
    a.mr(0, SIZE)
    a.queue(0)
    b.queue(0)
    rkey = b.mr(0, SIZE)
    guest.sh("dmesg -C")
    inject(t, guest, "RCVR")
    t.need(wait_log(guest, "severity=Correct"), "the kernel has heard",
           guest.dmesg()[-1500:])
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            "traffic goes on, with the same key")
    t.equal(b.state(0)[0], 0, "and the same queue")
    a.close()
    b.close()
    zero = dict.fromkeys(counts(guest), 0)
    t.equal(wait_counts(guest, zero), zero, "nothing is left over")
