# SPDX-License-Identifier: GPL-2.0-only
"""Root of the other host aims that host's memory window wherever it likes, which no
NTB prevents. With an IOMMU it reaches what fabrex_ntb and Linux's driver of the NTB
have given to it, and nothing else; without one it reaches everything: the table of
promises in docs/ntb.md."""

import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_dma
from ports import (ENGINES, EPF, PATIENT, SWITCHTEC, joined, load,
                   ntb_scenario, sees, unload)
from puppet import WRITE, Puppet

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE, STEP = 4096, 64 << 10
SIZE = 1 << 16
STORE = 0x6576696c6576696c
# Stores to these addresses would be interrupts.
MSI = range(0xfee00000, 0xfef00000)
REFUSED = "refused: no IOMMU translates DMA from this NTB"


class Victim(Puppet):
    """A process that does not know of the NTB; see the program."""

    program = "/run/victim"

    def __init__(self, guest):
        guest.put(os.path.join(HERE, "victim"), self.program)
        super().__init__(guest)


def attack(guest, **plan):
    """What comes of it when root of that host, which unloads its drivers, aims its
    window according to the plan."""
    unload(guest)
    guest.put(os.path.join(HERE, "aim"), "/run/aim")
    run = guest.run(["/run/aim", SWITCHTEC.device], 300, check=True,
                    stdin=json.dumps(plan).encode())
    return json.loads(run.stdout)


def refused_by(lab):
    """How many accesses through the bridge have reached nothing on host a."""
    return lab.emu_control({"cmd": "counters",
                            "object": "a.0"})["counters"]["errors"]


def serves(t, a, b):
    """An honest peer is served."""
    load(b, SWITCHTEC, PATIENT + " trusted_peer=1")
    t.need(sees(a, "b", 120), "an honest peer", a.dmesg()[-3000:])
    own, peer = Puppet(a), Puppet(b)
    own.mr(0, SIZE)
    own.queue(0)
    rkey = peer.mr(0, SIZE)
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            "can be written to")
    for p in (own, peer):
        p.close()


def refuses(t, guest):
    """Without being told that the peer is trusted, the driver wants none."""
    before = guest.dmesg().count(REFUSED)
    load(guest, SWITCHTEC, PATIENT)
    t.ok(guest.run("test -e /dev/fabrex0").status, "there is no port")
    t.equal(guest.dmesg().count(REFUSED), before + 1, "and the reason is said")


@ntb_scenario()
def everything_is_open(lab, t):
    """Without an IOMMU the driver is refused, unless the peer is trusted. Then the
    peer's root reads and writes the memory of any process."""
    refuses(t, lab.guest("a"))
    a, b = joined(lab, t, SWITCHTEC)
    victim = Victim(a)
    pattern, pages = victim.ask("pattern")[0], victim.ask("where")
    words = victim.ask("count", pattern)[0]
    seen = attack(b, addresses=pages, pattern=pattern, store=STORE)
    t.need(victim.ask("where") == pages, "the memory is where it was")
    t.equal(seen["found"], pages, "it reads every page of a process")
    t.equal(victim.ask("count", STORE), [len(pages)], "writes every page")
    t.equal(victim.ask("count", pattern), [words - len(pages)],
            "and does no more than that")
    victim.close()
    serves(t, a, b)


@ntb_scenario(iommu="remap")
def translated(lab, t):
    """An IOMMU translates: nobody has to be trusted, and data goes both ways, over
    both bridges. In passthrough mode it does not count as one."""
    for bridge, engines in ((EPF, ()), (SWITCHTEC, ENGINES)):
        a, _ = joined(lab, t, bridge, PATIENT, engines)
        test_dma.between_hosts(lab, t)
    # Behind the IOMMU its stores go by way of QEMU: on a busy machine some take
    # longer than the driver waits when it tries the engine.
    t.ok("moved by DMA channel" in a.dmesg() or "is no longer used" in a.dmesg(),
         "the engine has been tried", a.dmesg()[-2000:])
    unload(a)
    group = f"/sys/bus/pci/devices/{SWITCHTEC.device}/iommu_group/type"
    before = a.sh(f"cat {group}")
    a.sh(f"echo identity >{group}")
    refuses(t, a)
    unload(a)
    a.sh(f"echo {before} >{group}")


def around(address, size):
    """Pages of that place and of its neighbourhood."""
    begin = max(0, address - size) & -PAGE
    return range(begin, address + 2 * size, PAGE)


def places(a, pages, granted):
    """Where to try: the process's own pages, and what else may be interesting."""
    ram = int(a.sh("awk '/MemTotal/ { print $2 }' /proc/meminfo")) << 10
    found = set(pages)
    found.update(around(pages[0], 1 << 20), range(0, 1 << 20, PAGE),
                 range(0, ram, 4 * STEP))
    for address, size in granted:
        found.update(around(address, size))
    # From where addresses are given to devices, downwards.
    for top in (1 << 32, 1 << 39, 1 << 48):
        found.update(range(top - (16 << 20), top, STEP))
    found.update(random.Random(1).randrange(1 << 48) & -PAGE
                 for _ in range(200))
    return sorted(p for p in found if p not in MSI)


def outside(addresses, granted):
    return [hex(p) for p in addresses
            if not any(a <= p < a + n for a, n in granted)]


@ntb_scenario(iommu="remap")
def closed_by_the_iommu(lab, t):
    """With an IOMMU the peer's root gets at the inbox, and at the page by which
    Linux's drivers of the NTB talk; of the rest of the memory it reads nothing, and
    changes nothing. Afterwards an honest peer is served."""
    a, b = joined(lab, t, SWITCHTEC, PATIENT)
    granted = attack(b)["granted"]
    t.need(len(granted) == 2, "the host has aimed two windows", granted)
    victim = Victim(a)
    pattern, pages = victim.ask("pattern")[0], victim.ask("where")
    words = victim.ask("count", pattern)[0]
    before = refused_by(lab)
    plan = places(a, pages, granted)
    seen = attack(b, addresses=plan, pattern=pattern, store=STORE)
    tried, refused = len(outside(plan, granted)), refused_by(lab) - before
    t.diag(f"{len(plan)} places tried, {len(seen['answered'])} answered, "
           f"{refused} accesses refused")
    t.equal(seen["granted"], granted, "the window was as the host has aimed it")
    t.ok(seen["answered"], "that part of it answers")
    t.equal(outside(seen["answered"], granted), [], "and no other place does")
    t.equal(seen["found"], [], "it has not seen the process's memory")
    t.ok(refused >= 2 * tried, "the loads and stores were refused",
         (refused, tried))
    t.equal((victim.ask("count", pattern), victim.ask("where")),
            ([words], pages), "which is as it was, every byte")
    victim.close()
    serves(t, a, b)


@ntb_scenario(iommu="remap")
def linked_pages_are_open(lab, t):
    """In direct mode the peer's root gets at the pages of regions that were written to
    with their key, too: not at those of other regions, nor of one that is
    deregistered."""
    a, b = joined(lab, t, SWITCHTEC, PATIENT + " direct=1")
    own, peer = Puppet(b), Puppet(a)
    own.mr(0, SIZE)
    own.set(0, 0, SIZE, 0xa5)
    own.queue(0)
    linked, other, gone = range(3)
    for region in (linked, other, gone):
        rkey = peer.mr(region, SIZE)
        peer.set(region, 0, SIZE, 0xa5)
        if region != other:
            t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE).status,
                    "OK", "written to with its key")
    peer.ask("mrdel", gone)
    own.close()
    granted = attack(b)["granted"]
    t.equal(len(granted), 3, "a second window is aimed, too")
    begin, size = granted[1]
    seen = attack(b, addresses=list(range(begin, begin + size, PAGE)),
                  pattern=0xa5a5a5a5a5a5a5a5, store=STORE, everywhere=True)
    # One page has been there from the beginning.
    t.equal(len(seen["answered"]), 1 + SIZE // PAGE,
            "as much answers as is linked")
    t.equal(len(seen["found"]), SIZE // PAGE, "of which it reads every page")
    words = [peer.ask("peek", linked, at)[0] for at in range(0, SIZE, PAGE)]
    t.equal(set(words), {STORE}, "and has written to it")
    for region in (other, gone):
        t.ok(peer.all(region, 0, SIZE, 0xa5), "others are as they were")
    peer.close()
    serves(t, a, b)
