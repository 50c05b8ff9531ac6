# SPDX-License-Identifier: GPL-2.0-only
"""Linux' own Switchtec and NTB drivers on the emulated switch, between two
guests: what upstream's ntb_test.sh does, with all contents compared, and what
happens when either guest goes away."""

import upstream
from ntb import (DEBUG, DEVICE, Side, carry, each_goes, exchange, linked,
                 ntb_scenario, sides, spads)

SPADS = 128
DOORBELLS = 28


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
    a, b = (Side(lab.guest(n)) for n in "ab")
    for number, side in enumerate((a, b)):
        side.load()
        top = "/sys/class/switchtec/switchtec0"
        t.equal(side.guest.sh(f"cd {top}; cat partition partition_count "
                              "vendor_id product_revision").split(),
                [str(number), "3", "MICROCHP", "B0"],
                f"partition of {side.guest.name}")


def ring(t, own, peer, name):
    """Each doorbell of `peer`, rung by `own`: that bit and no other."""
    wrong = []
    peer.write("db_mask", f"s {(1 << DOORBELLS) - 1}")
    peer.write("db", f"c {(1 << DOORBELLS) - 1}")
    for bit in range(DOORBELLS):
        own.write("peer_db", f"s {1 << bit}")
        got = int(peer.read("db"), 0)
        other = int(own.read("db"), 0)
        peer.write("db", f"c {1 << bit}")
        if (got, other, int(peer.read("db"), 0)) != (1 << bit, 0, 0):
            wrong.append((bit, got, other))
    t.equal(wrong, [], f"each doorbell of {name}")


@ntb_scenario()
def doorbells(lab, t):
    a, b = linked(lab)
    ring(t, a, b, "b")
    ring(t, b, a, "a")
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
    ends = [Side(lab.guest(n), ["switchtec", "ntb_hw_switchtec use_lut_mws=1"])
            for n in "ab"]
    for end in ends:
        Side(end.guest).unload()
        end.load("ntb_tool")
    for end in ends:
        end.link(True)
    t.ok(all(end.wait_link(True) for end in ends), "link is up")
    a, b = ends
    count = len(a.guest.sh(f"ls -d {a.tool}/peer0/mw_trans*").split())
    t.equal(count, 33, "windows: two direct ones, pages but the first")
    for number in (2, 17, 32):
        carry(t, a, b, number, number, larger=False)
        carry(t, b, a, number, 40 + number, larger=False)
    for end in ends:
        Side(end.guest).unload()


@ntb_scenario()
def ping_pong(lab, t):
    a, b = sides(lab, "ntb_pingpong delay_ms=5")
    path = f"{DEBUG}/ntb_pingpong/{DEVICE}/count"
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


@ntb_scenario(fresh=True)
def come_and_go(lab, t):
    a, b = linked(lab)
    each_goes(t, a, b)
    ring(t, a, b, "b")
    carry(t, b, a, 1, 3)
