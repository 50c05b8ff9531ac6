# SPDX-License-Identifier: GPL-2.0-only
"""A kernel that ends with queues running: what it leaves behind, and whether
the next one can begin with it."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "gpu"))
import fabric
import install
from gpulab import GpuPuppet, Storm, audit
from puppet import WRITE
from scenario import scenario

SIZE = 1 << 20
HANG = 240


def both_ways(lab):
    """Operations without end from a to b and from b to a."""
    a, b = GpuPuppet(lab.guest("a")), GpuPuppet(lab.guest("b"))
    keys = [p.mr(0, SIZE) for p in (a, b)]
    for p in (a, b):
        p.queue(0)
    storms = [Storm(b, 0, WRITE, a.peer, 0, 0, keys[0], 0, SIZE),
              Storm(a, 0, WRITE, b.peer, 0, 0, keys[1], 0, SIZE)]
    return a, b, keys, storms


def ends(lab, t, what, how):
    """Kernel a ends by how(guest), the next one takes over."""
    ga = lab.guest("a")
    fabric.release_all(lab, ga)
    t.need(fabric.compose(ga, "columba1.gpu3", "a").status == 0, "compose")
    t.equal(len(fabric.wait_gpus(ga, 1)), 1, f"{what}: a has a GPU")
    a, b, keys, storms = both_ways(lab)
    generation = fabric.wait_peer(b, "a", True)
    t.need(all(s.wait(good=10) for s in storms), f"{what}: traffic both ways")
    audit(lab, "on")
    how(ga)
    log = audit(lab, "report")
    t.ok((log["late"], log["dropped"]) == (0, 0),
         f"{what}: no access to a's memory after its port had stopped", log)
    t.ok(log["revocations"] > 0, f"{what}: the log has seen it stop", log)
    _, _, lost = storms[0].calm()
    t.equal(lost, 0, f"{what}: b's operations have all completed")
    install.install([ga])
    t.need(fabric.wait_port(ga, HANG), f"{what}: a's port works again",
           ga.dmesg()[-2500:])
    now = fabric.wait_peer(b, "a", True)
    t.ok(now and now > generation, f"{what}: a new generation",
         f"{generation} -> {now}")
    t.equal(b.op(0, WRITE, b.peer, 0, 0, b.mr(2, SIZE), 0, 64).status, "OK",
            f"{what}: b's queue has not noticed")
    t.equal(b.op(0, WRITE, a.peer, 0, 0, keys[0], 0, 64).status, "RKEY",
            f"{what}: the key of the former kernel is refused")
    t.equal(fabric.wait_state(lab.guest("b"), "columba1.gpu3", "bound", HANG),
            "bound", f"{what}: the binding has survived")
    t.equal(len(fabric.wait_gpus(ga, 1, HANG)), 1, f"{what}: the GPU is there")
    again = GpuPuppet(ga)
    key = again.mr(0, SIZE)
    b.fill(2, 0, SIZE, 7)
    t.equal(b.op(0, WRITE, again.peer, 2, 0, key, 0, SIZE).status, "OK",
            f"{what}: traffic after")
    t.ok(again.same(0, 0, SIZE, 7), f"{what}: with all bytes")
    again.close()
    b.close()
    audit(lab, "off")
    fabric.release_all(lab, ga)


@scenario(hosts=["a", "b", "c"], kernels=("7.2", "debug"))
def kexec_under_traffic(lab, t):
    """Nothing resets the device between the two kernels."""
    ends(lab, t, "kexec", lambda guest: guest.kexec(HANG))


@scenario(hosts=["a", "b", "c"])
def reboot_under_traffic(lab, t):
    """As `reboot -f`: no process is ended before."""
    ends(lab, t, "reboot", lambda guest: guest.reboot(HANG))
