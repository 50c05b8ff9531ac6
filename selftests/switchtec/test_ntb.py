# SPDX-License-Identifier: GPL-2.0-only
"""Linux's own Switchtec and NTB drivers on the emulated switch, between two
guests: what upstream's ntb_test.sh does, with all contents compared. What happens
when either guest goes away is in test_going.py."""

import dataclasses

import upstream
from ntb import (DEBUG, SWITCHTEC, carry, exchange, linked, ntb_scenario,
                 ring, sides, spads)

SPADS = 128


@ntb_scenario()
def link(lab, t):
    a, b = sides(lab, "ntb_tool")
    t.equal([e.read("peer0/link") for e in (a, b)], ["N", "N"],
            "down to begin with")
    a.link(True)
    t.equal([e.read("peer0/link") for e in (a, b)], ["N", "N"],
            "one half is no link")
    b.link(True)
    t.ok(a.wait_link(True), "up at a")
    t.ok(b.wait_link(True), "up at b")
    b.link(False)
    t.ok(a.wait_link(False), "a hears that b has taken it down")
    b.link(True)
    t.ok(a.wait_link(True), "and up again")
    lab.emu_control({"cmd": "link", "port": "b.0", "state": "down"})
    t.ok(a.wait_link(False), "a hears that b's cable is out")
    lab.emu_control({"cmd": "link", "port": "b.0", "state": "up"})
    t.ok(a.wait_link(True), "and in again")


@ntb_scenario()
def sysfs(lab, t):
    for number, side in enumerate(sides(lab)):
        top = "/sys/class/switchtec/switchtec0"
        t.equal(side.guest.sh(f"cd {top}; cat partition partition_count "
                              "vendor_id product_revision").split(),
                [str(number), "3", "MICROCHP", "B0"],
                f"partition of {side.guest.name}")


@ntb_scenario()
def doorbells(lab, t):
    a, b = linked(lab)
    ring(t, a, b)
    ring(t, b, a)
    before = b.interrupts("ntb_doorbell")
    a.write("peer_db", "s 4")
    t.equal(int(b.read("db"), 0), 4, "one that is masked is pending")
    t.equal(b.interrupts("ntb_doorbell"), before, "and does not interrupt")
    b.write("db_mask", "c 4")
    t.equal(b.interrupts("ntb_doorbell"), before + 1,
            "it does when its mask is lifted")
    b.write("db", "c 4")
    a.write("peer_db", "s 4")
    a.guest.sh("true")
    t.equal(b.interrupts("ntb_doorbell"), before + 2, "and at once from then on")


@ntb_scenario()
def scratchpads(lab, t):
    a, b = linked(lab)
    spads(t, a, b, SPADS)


@ntb_scenario()
def windows(lab, t):
    a, b = linked(lab)
    for number in range(2):
        carry(t, a, b, number, number)
        carry(t, b, a, number, 10 + number)


@ntb_scenario()
def table_windows(lab, t):
    """Windows of single pages, which the driver offers when asked to."""
    a, b = linked(lab, dataclasses.replace(
        SWITCHTEC, drivers=("switchtec", "ntb_hw_switchtec use_lut_mws=1")))
    count = len(a.guest.sh(f"ls -d {a.tool}/peer0/mw_trans*").split())
    t.equal(count, 33, "windows: two direct ones, pages but the first")
    for number in (2, 17, 32):
        carry(t, a, b, number, number, larger=False)
        carry(t, b, a, number, 40 + number, larger=False)


@ntb_scenario()
def ping_pong(lab, t):
    a, b = sides(lab, "ntb_pingpong delay_ms=5")
    path = f"{DEBUG}/ntb_pingpong/{SWITCHTEC.device}/count"
    for side in (a, b):
        got = side.guest.run(
            f"for i in $(seq {1000 * side.guest.patience}); do "
            f"[ $(cat {path}) -ge 100 ] && exit; sleep 0.02; done; exit 1", 60)
        t.ok(got.status == 0, f"a hundred rounds at {side.guest.name}",
             side.guest.sh(f"cat {path}"))


@ntb_scenario()
def network(lab, t):
    """The recipe of docs/switchtec.md: IP between the hosts."""
    a, b = sides(lab, "ntb_transport", "ntb_netdev")
    exchange(t, a, b)
    for side in (a, b):
        upstream.unload(side.guest, "ntb_netdev", "ntb_transport")
    t.ok(True, "the transport can be unloaded at both ends")
