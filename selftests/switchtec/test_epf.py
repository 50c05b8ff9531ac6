# SPDX-License-Identifier: GPL-2.0-only
"""Linux' own ntb_hw_epf on the emulated bridge of two endpoint functions: the
same as with Switchtec, as far as this hardware has it."""

import os

from ntb import HERE, carry, each_goes, linked, ntb_scenario, sides, spads

EPF = {"topology": os.path.join(HERE, "epf.topo")}
DRIVERS = ["ntb_hw_epf"]
SPADS = 64
DOORBELLS = 30


@ntb_scenario(**EPF)
def link(lab, t):
    a, b = sides(lab, "ntb_tool", drivers=DRIVERS)
    a.link(True)
    t.equal([e.read("peer0/link") for e in (a, b)], ["N", "N"],
            "one half is no link")
    b.link(True)
    t.ok(a.wait_link(True) and b.wait_link(True), "up at both")
    b.link(False)
    t.ok(a.wait_link(False), "a hears that b has taken it down")
    b.link(True)
    t.ok(a.wait_link(True), "and up again")


@ntb_scenario(**EPF)
def doorbells(lab, t):
    a, b = linked(lab, drivers=DRIVERS)
    for own, peer in ((a, b), (b, a)):
        wrong = []
        for bit in range(DOORBELLS):
            own.write("peer_db", f"s {1 << bit}")
            got = int(peer.read("db"), 0)
            peer.write("db", f"c {1 << bit}")
            if got != 1 << bit:
                wrong.append((bit, got))
        t.equal(wrong, [], f"each doorbell of {peer.guest.name}")


@ntb_scenario(**EPF)
def scratchpads(lab, t):
    a, b = linked(lab, drivers=DRIVERS)
    spads(t, a, b, SPADS)


@ntb_scenario(**EPF)
def window(lab, t):
    a, b = linked(lab, drivers=DRIVERS)
    carry(t, a, b, 0, 1)
    carry(t, b, a, 0, 2)


@ntb_scenario(fresh=True, **EPF)
def come_and_go(lab, t):
    a, b = linked(lab, drivers=DRIVERS)
    each_goes(t, a, b)
    carry(t, a, b, 0, 3)
