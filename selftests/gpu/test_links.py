# SPDX-License-Identifier: GPL-2.0-only
"""What links carry: transfers of known size between GPUs, and the links that
"fabrexctl stats --links" shows them on, to the byte."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import KERNELS, MIB, fabric
from process import wait_until
from puppet import READ, WRITE
from scenario import scenario
from transfer import links, process, traffic

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "links.topo")
SIZE = 8 * MIB
X16 = 27000000000		# Gen4, in bytes per second


def moved(t, p, opcode, local, peer, key, length, ways):
    """One operation adds @length on each of these links and nothing else."""
    before = traffic(p.guest)
    done = p.op(0, opcode, peer, local, 0, key, 0, length)
    after = traffic(p.guest)
    t.equal(done.status, "OK", f"{length} bytes are moved")
    t.equal({way: n - before[way] for way, n in after.items()
             if n != before[way]}, {way: length for way in ways},
            "and counted on " + ", ".join(f"{f} > {to}" for f, to in ways)
            + " only")


def across(t, a, b):
    """Endpoints below different switches, there and back."""
    (pa, mine), (pb, theirs) = a, b
    there = [("near.gpu0", "near"), ("near", "draco1:4"),
             ("draco1:6", "draco2:6"), ("draco2:4", "far"),
             ("far", "far.gpu0")]
    back = [(to, f) for f, to in reversed(there)]
    local, _ = mine["near.gpu0"]
    _, key = theirs["far.gpu0"]
    moved(t, pa, WRITE, local, pb.peer, key, 5 * MIB + 123, there)
    moved(t, pa, READ, local, pb.peer, key, 70001, back)
    t.equal(traffic(pb.guest), traffic(pa.guest), "the other host sees the "
            "same")


def below_one_switch(t, a):
    """Links of hosts and between switches, and of one box its uplinks, stay
    0."""
    p, regions = a
    local, _ = regions["near.gpu0"]
    moved(t, p, WRITE, local, p.peer, regions["near.gpu1"][1], 3 * MIB + 7,
          [("near.gpu0", "near"), ("near", "near.gpu1")])
    moved(t, p, WRITE, local, p.peer, regions["near.gpu2"][1], 4097,
          [("near.gpu0", "near"), ("near", "draco1:4"), ("draco1:5", "near"),
           ("near", "near.gpu2")])


def shown(t, guest):
    """Capacities, selection, and who may not see it."""
    rows = links(guest)
    # 2 host ports, 4 uplinks, 1 between switches, 6 endpoints.
    t.equal(len(rows), 2 * 13, "both directions of all links are listed")
    t.equal({row["capacity"] for row in rows.values()}, {X16},
            "with their capacities")
    some = links(guest, "far.gpu0")
    t.equal(sorted(some), [("far", "far.gpu0"), ("far.gpu0", "far")],
            "or those of one element")
    fabric.ctl(guest, "port draco2:5 disable --force", check=True)
    wait_until(lambda: not links(guest)[("draco2:5", "far")]["capacity"],
               30 * guest.patience, 0.2)
    t.equal(links(guest)[("far", "draco2:5")]["capacity"], 0,
            "a link that is down can carry nothing")
    fabric.ctl(guest, "port draco2:5 enable", check=True)
    refused = guest.run("fabrexctl stats --links", user="outsider")
    t.ok(refused.status == 5 and "CAP_PERFMON" in refused.stderr,
         "and users without CAP_PERFMON are refused", refused)


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def bytes_on_links(lab, t):
    """Transfers between GPUs, compared with the counters of every link."""
    a = process(lab, "a", ["near.gpu0", "near.gpu1", "near.gpu2"], SIZE)
    b = process(lab, "b", ["far.gpu0"], SIZE)
    across(t, a, b)
    below_one_switch(t, a)
    shown(t, lab.guest("a"))
    for p, _ in (a, b):
        p.close()
