# SPDX-License-Identifier: GPL-2.0-only
"""Linux' own Switchtec and NTB drivers on the emulated switch, between two
guests: what upstream's ntb_test.sh does, with all contents compared, and what
happens when either guest goes away."""

import hashlib
import random

import upstream
from ntb import DEBUG, DEVICE, Side, exchange, linked, ntb_scenario, sides

SPADS = 128
DOORBELLS = 28
WINDOW = 64 << 10		# bytes; all of a page of the table


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
    values = random.Random(7).sample(range(1 << 32), 2 * SPADS)
    for own, peer, want in ((a, b, values[:SPADS]), (b, a, values[SPADS:])):
        name = f"from {own.guest.name} to {peer.guest.name}"
        own.guest.sh("\n".join(f"echo {v} >{own.tool}/peer0/spad{i}"
                               for i, v in enumerate(want)))
        for side, path in ((peer, ""), (own, "peer0/")):
            got = side.guest.sh("\n".join(
                f"cat {side.tool}/{path}spad{i}" for i in range(SPADS)))
            t.equal([int(v, 0) for v in got.split()], want,
                    f"{name}, read at {side.guest.name}")


def carry(t, own, peer, number, seed, larger=True):
    """Window `number` of `own` into memory of `peer`: both ways, to the byte.
    larger: it could show more than the memory that it is aimed at."""
    name = f"window {number} from {own.guest.name}"
    data = random.Random(seed).randbytes(WINDOW)
    peer.write(f"peer0/mw_trans{number}", WINDOW)
    own.write(f"peer0/peer_mw_trans{number}", f"0:{WINDOW << larger}")
    inside, outside = (f"{peer.tool}/peer0/mw{number}",
                       f"{own.tool}/peer0/peer_mw{number}")
    own.guest.put(data, "/run/data")
    own.guest.sh(f"dd if=/run/data of={outside} bs=4K status=none")
    t.equal(sha(peer, inside), hashlib.sha256(data).hexdigest(),
            f"{name}: what was stored has arrived")
    data = bytes(reversed(data))
    peer.guest.put(data, "/run/data")
    peer.guest.sh(f"dd if=/run/data of={inside} bs=4K status=none")
    t.equal(sha(own, outside), hashlib.sha256(data).hexdigest(),
            f"{name}: what is there can be loaded")
    beyond = f"peer0/peer_mw{number}"
    if larger:
        t.equal(own.words(beyond, WINDOW, 4), "ff" * 16,
                f"{name}: there is nothing behind it")
    peer.write(f"peer0/mw_trans{number}", 0)
    t.equal(own.words(beyond, 0, 4), "ff" * 16, f"{name}: nothing when cleared")
    own.write(f"peer0/peer_mw_trans{number}", "0:0")


def sha(side, path):
    return side.guest.sh(f"dd if={path} bs=4K count={WINDOW // 4096} "
                         "status=none | sha256sum").split()[0]


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


def works(t, a, b, what):
    """The link is up at both, and scratchpads carry both ways: through windows
    that the drivers have set up anew."""
    for side in (a, b):
        side.link(True)
    up = [side.wait_link(True) for side in (a, b)]
    t.need(all(up), f"{what}: the link is up again",
           a.guest.dmesg()[-2000:] + b.guest.dmesg()[-2000:])
    for own, peer in ((a, b), (b, a)):
        value = random.randrange(1 << 32)
        own.write("peer0/spad5", value)
        t.equal(int(peer.read("spad5"), 0), value,
                f"{what}: {own.guest.name} reaches {peer.guest.name}")


@ntb_scenario(fresh=True)
def come_and_go(lab, t):
    a, b = linked(lab)
    for own, peer in ((a, b), (b, a)):
        name = own.guest.name
        own.unload()
        t.ok(peer.wait_link(False), f"{name} unloads its modules: link down")
        own.load("ntb_tool")
        works(t, a, b, f"{name} has loaded them again")
        own.guest.reboot(hard=True)
        t.ok(peer.wait_link(False), f"{name} is reset: link down")
        again(own)
        works(t, a, b, f"{name} has booted again")
        own.guest.kill()
        t.ok(peer.wait_link(False), f"{name} is killed: link down")
        own.guest.restart()
        again(own)
        works(t, a, b, f"{name} has been started again")
    ring(t, a, b, "b")
    carry(t, b, a, 1, 3)


def again(side):
    """What a guest has to be given after each boot."""
    upstream.install([side.guest])
    side.load("ntb_tool")
