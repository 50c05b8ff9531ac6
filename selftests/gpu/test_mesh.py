# SPDX-License-Identifier: GPL-2.0-only
"""GPUs that a mesh joins: copies by their engines, counted on the link between
the two and nowhere else, held to its rate, and refused after a release."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import KERNELS, MIB, RUNTIME, fabric
from puppet import WRITE, PuppetError
from scenario import scenario
from transfer import links, process, traffic

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "mesh.topo")
SIZE = 8 * MIB			# of a region
FACTOR = 0.002
RATE = 10e9 * FACTOR		# of a link of the mesh, bytes per second
X16 = 27e9 * FACTOR


def copied(t, p, own, peer, length, write, way):
    """One copy adds @length to this direction of a link and nothing else."""
    before = traffic(p.guest)
    p.peer_copy(own, peer, length, write)
    after = traffic(p.guest)
    t.equal({w: n - before[w] for w, n in after.items() if n != before[w]},
            {way: length}, f"{length} bytes are counted on {way[0]} > {way[1]}"
            " only")
    t.equal(p.crc(peer, length), p.crc(own, length), "and are there")


def refused(t, p, own, peer, errors, text):
    try:
        p.peer_copy(own, peer, 4096, True)
    except PuppetError as e:
        t.ok(e.errno in errors, text, e.errno)
    else:
        t.ok(False, text, "it was copied")


def by_runtime(t, guest):
    """hipMemcpyPeerAsync(), between both GPUs of the host."""
    before = traffic(guest)
    t.program(guest, "runtime-memory peers", env=RUNTIME)
    changed = {way: n - before[way] for way, n in traffic(guest).items()
               if n != before[way]}
    t.ok(list(changed.values()) == [MIB - 100] and
         all(f.startswith("box.gpu") and to.startswith("box.gpu")
             for f, to in changed), "its bytes are on the mesh, too", changed)


def at_rates(lab, t, p, own, peer, key):
    """Never faster than the links; how much slower is the machine's."""
    lab.emu_control({"cmd": "throttle", "factor": FACTOR})
    took = p.peer_copy(own, peer, SIZE, True)
    t.diag(f"mesh: {SIZE / took / 1e6:.1f} MB/s of {RATE / 1e6:.1f}")
    t.ok(took > 0.99 * SIZE / RATE, "a copy takes as long as on its link",
         took)
    took, status = p.timed(0, WRITE, p.peer, own, key, SIZE)
    t.diag(f"switch: {SIZE / took / 1e6:.1f} MB/s of {X16 / 1e6:.1f}")
    t.ok(status == "OK" and took > 0.99 * SIZE / X16,
         "and a write as long as on those of the appliance", (status, took))
    lab.emu_control({"cmd": "throttle", "factor": 0})


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def peer_copies(lab, t):
    """Two GPUs of a, and one of b in the same box, which is nobody's peer."""
    p, regions = process(lab, "a", ["box.gpu0", "box.gpu1"], SIZE)
    other, _ = process(lab, "b", ["box.gpu3"], SIZE)
    (own, _), (peer, key) = regions["box.gpu0"], regions["box.gpu1"]
    p.pattern(own, SIZE, 7)
    copied(t, p, own, peer, 5 * MIB + 123, True, ("box.gpu0", "box.gpu1"))
    p.pattern(peer, SIZE, 8)
    copied(t, p, own, peer, 70001, False, ("box.gpu1", "box.gpu0"))
    rows = links(p.guest, "box.gpu0")
    t.equal(sorted(to for (f, to), row in rows.items()
                   if f == "box.gpu0" and row["link"] == "mesh"),
            ["box.gpu1", "box.gpu2", "box.gpu3"], "a link to each other GPU")
    refused(t, p, own, own, ["EXDEV"], "a GPU has no link to itself")
    by_runtime(t, p.guest)
    at_rates(lab, t, p, own, peer, key)
    fabric.release(p.guest, "box.gpu1", "--force", check=True)
    refused(t, p, own, peer, ["ENODEV", "EIO"], "what is taken away is no peer")
    other.close()
    p.close()
