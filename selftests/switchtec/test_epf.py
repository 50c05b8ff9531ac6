# SPDX-License-Identifier: GPL-2.0-only
"""Linux's own ntb_hw_epf on the emulated bridge of two endpoint functions: the
same as with Switchtec, as far as this hardware has it. What happens when a host goes
away is in test_going.py, for both."""

from ntb import EPF, carry, linked, ntb_scenario, ring, sides, spads

SPADS = 64


@ntb_scenario()
def link(lab, t):
    a, b = sides(lab, "ntb_tool", bridge=EPF)
    a.link(True)
    t.equal([e.read("peer0/link") for e in (a, b)], ["N", "N"],
            "one half is no link")
    b.link(True)
    t.ok(a.wait_link(True) and b.wait_link(True), "up at both")
    b.link(False)
    t.ok(a.wait_link(False), "a hears that b has taken it down")
    b.link(True)
    t.ok(a.wait_link(True), "and up again")


@ntb_scenario()
def doorbells(lab, t):
    a, b = linked(lab, bridge=EPF)
    ring(t, a, b)
    ring(t, b, a)


@ntb_scenario()
def scratchpads(lab, t):
    a, b = linked(lab, bridge=EPF)
    spads(t, a, b, SPADS)


@ntb_scenario()
def window(lab, t):
    a, b = linked(lab, bridge=EPF)
    carry(t, a, b, 0, 1)
    carry(t, b, a, 0, 2)
