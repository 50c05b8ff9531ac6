# SPDX-License-Identifier: GPL-2.0-only
"""Memory of GPUs over the bridge of a Switchtec: its DMA engine copies what
processors do not reach; memory that is taken away, or moved, under traffic; refusal
where there is no engine."""

import contextlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "gpu"))
import gpulab
import upstream
from fabric import ctl
from gpulab import SYSTEM, VRAM, GpuPuppet, Storm
from ports import ENGINES, OPTIONS, SWITCHTEC, joined, ntb_scenario, unload
from puppet import CHECK, FETCH_ADD, READ, WRITE, counts, wait_counts
from switch import TOPOLOGY

SIZE = 1 << 20
PART = 128 << 10
# Two for each of a and b, of which a is a manager.
GPUS = {"a": ("columba1.gpu0", "columba1.gpu1"),
        "b": ("columba1.gpu2", "columba1.gpu3")}
ENGINE = SWITCHTEC.device.replace(".1", ".2")


def gpu_scenario():
    return ntb_scenario(hosts=("a", "b", "c"), topology=TOPOLOGY)


@contextlib.contextmanager
def composed(lab, t):
    """a and b with their GPUs and the test driver of these, and in the end
    without."""
    a, b = (lab.guest(name) for name in "ab")
    upstream.load(a, "switchtec")
    with open(TOPOLOGY, "rb") as f:
        text = f.read()
    a.sh("mkdir -p /etc/fabrex")
    a.put(text, "/etc/fabrex/fabric.topo")
    for guest in (a, b):
        done = ctl(a, f"compose {' '.join(GPUS[guest.name])} --to {guest.name}",
                   timeout=120)
        t.need(done.status == 0, f"{guest.name} gets GPUs",
               done.stdout + done.stderr)
        gpulab.load(guest)
        gpulab.wait_devices(guest, 2)
    yield a, b
    for guest in (a, b):
        gpulab.unload(guest).check()
        unload(guest)
        guest.sh("for s in /sys/bus/pci/slots/*; do "
                 "[ -z \"$(lspci -d 1234:da10 -s $(cat $s/address))\" ] || "
                 "echo 0 >$s/power; done")
    upstream.load(a, "switchtec")
    for names in GPUS.values():
        ctl(a, f"release {' '.join(names)}", timeout=120)


class Party:
    """A process with two GPUs: region 0 in the first, region 1 in host memory."""

    def __init__(self, guest, size=SIZE):
        self.guest = guest
        self.puppet = GpuPuppet(guest)
        self.peer = self.puppet.peer
        self.puppet.gpu(0)
        self.puppet.gpu(1, 1)
        self.key = self.puppet.memory(0, size)
        self.host = self.puppet.mr(1, size)
        self.puppet.queue(0)

    def op(self, opcode, other, mr, loffset, rkey, roffset, length, flags=0):
        return self.puppet.op(0, opcode, other.peer, mr, loffset, rkey, roffset,
                              length, flags=flags).status

    def crc(self, length=SIZE, offset=0, buf=0):
        return self.puppet.crc(buf, length, offset)

    def pattern(self, seed, length=SIZE, buf=0):
        self.puppet.pattern(buf, length, seed)
        return self.crc(length, buf=buf)


def between(t, a, b, flags, what):
    """Both ways, and between VRAM and host memory."""
    crc = a.pattern(flags + 1)
    b.pattern(flags + 50)
    t.equal((a.op(WRITE, b, 0, 0, b.key, 0, SIZE, flags), b.crc()), ("OK", crc),
            f"{what}: from VRAM to VRAM of the other host")
    a.pattern(flags + 51)
    t.equal((a.op(READ, b, 0, 0, b.key, 0, SIZE, flags), a.crc()), ("OK", crc),
            f"{what}: read back")
    a.puppet.fill(1, 0, SIZE, flags + 3)
    t.equal((a.op(WRITE, b, 1, 0, b.key, 0, SIZE, flags),
             b.op(WRITE, a, 0, 0, a.key, 0, SIZE, flags)), ("OK", "OK"),
            f"{what}: from host memory to VRAM, and back to VRAM")
    a.puppet.set(1, 0, SIZE, 0)
    t.equal((a.op(WRITE, a, 0, 0, a.host, 0, SIZE, flags),
             a.puppet.same(1, 0, SIZE, flags + 3)), ("OK", True),
            f"{what}: and within the port to host memory")


def within(t, a):
    """Between memory of one host."""
    p = a.puppet
    other = p.memory(2, SIZE, gpu=1)
    crc = a.pattern(7)
    t.equal((a.op(WRITE, a, 0, 0, other, 0, SIZE), a.crc(buf=2)), ("OK", crc),
            "from one GPU of a host to the other")
    crc = a.pattern(8, buf=2)
    t.equal((a.op(READ, a, 0, 0, other, 0, SIZE, CHECK), a.crc()), ("OK", crc),
            "and read, with CHECK")
    p.words("mrdel", 2)
    p.words("gfree", 2)


def unaligned(t, a, b):
    """What the engine, which has words of 8 bytes, can store and cannot."""
    crc = a.pattern(9)
    t.equal(a.op(WRITE, b, 0, 0, b.key, 0, SIZE), "OK", "to begin with")
    t.equal((b.op(READ, a, 1, 0, a.key, 3, 70001),
             a.op(READ, a, 1, 0, a.key, 3, 70001)), ("OK", "OK"),
            "any bytes can be read from VRAM, by a peer and here")
    t.equal(b.puppet.ask("hostcrc", 1, 0, 70001),
            a.puppet.ask("hostcrc", 1, 0, 70001), "the same ones")
    for offset, length in ((4, 64), (0, 65540), (1, 8)):
        t.equal((a.op(WRITE, b, 1, 0, b.key, offset, length),
                 b.op(READ, a, 0, offset, a.host, 0, length)),
                ("BAD_DESC", "BAD_DESC"),
                f"{length} bytes at {offset} cannot be stored in VRAM")
    t.equal(a.op(FETCH_ADD, b, 1, 0, b.key, 0, 1), "RFAULT",
            "nor is there an atomic operation on it")
    t.equal(b.crc(), crc, "VRAM is as it was")


@gpu_scenario()
def memory_of_gpus(lab, t):
    """Written, read and compared by the GPUs' own checksums; nothing is left."""
    with composed(lab, t) as guests:
        joined(lab, t, SWITCHTEC, engines=ENGINES)
        before = {g.name: counts(g) for g in guests}
        a, b = (Party(g) for g in guests)
        between(t, a, b, 0, "as it is")
        between(t, a, b, CHECK, "with CHECK")
        within(t, a)
        unaligned(t, a, b)
        _, domain, devfn = a.puppet.gpu(2)[:3]
        found = ctl(guests[0], f"p2p {SWITCHTEC.device} {domain:04x}:"
                    f"{devfn >> 8:02x}:{devfn >> 3 & 31:02x}.{devfn & 7}")
        t.ok(found.status == 0, "fabrexctl p2p says that the engine reaches it",
             found.stdout + found.stderr)
        for party in (a, b):
            party.puppet.close()
            name = party.guest.name
            t.equal(wait_counts(party.guest, before[name]), before[name],
                    f"counts on {name} as before")
            t.equal(party.guest.sh("cat /sys/module/draco_gpu/refcnt"), "0",
                    f"no dma-buf is left on {name}")


def taken_away(t, victim, other, local, opcode):
    """The exporter revokes memory while it is written, or read."""
    p = victim.puppet
    p.alloc(5, 1, PART)
    key = p.vram_mr(5, 5, PART)
    storm = Storm(p, 0, opcode, other.peer, 5, 0, other.key, 0, PART) if local \
        else Storm(other.puppet, 0, opcode, victim.peer, 0, 0, key, 0, PART)
    what = (f"{'near' if local else 'far'} end of a "
            f"{'READ' if opcode == READ else 'WRITE'}")
    t.ok(storm.wait(good=4), f"{what}: there is traffic")
    p.words("grevoke", 5)
    t.equal(p.ask("ginfo", 1)[3], 0, f"{what}: not mapped when that returns")
    p.alloc(6, 1, PART)
    crc = victim.pattern(1234, PART, 6)
    want = "LKEY" if local else "RKEY"
    t.ok(storm.wait(bad=3), f"{what}: operations fail")
    ended, relapses, lost = storm.calm()
    t.ok(set(ended) <= {"OK", "ABORTED", want} and ended.get(want) and
         not relapses and not lost, f"{what}: as documented, to the last",
         (ended, relapses, lost))
    t.equal(victim.crc(PART, buf=6), crc, f"{what}: the next owner's memory")
    t.ok(p.wait_event("MR_REVOKED"), f"{what}: its owner is told")
    p.words("mrdel", 5)
    for buf in (5, 6):
        p.words("gfree", buf)


def moved(t, victim, other):
    """What is moved can be written at its new place, by the same key."""
    p = victim.puppet
    p.alloc(5, 1, PART)
    key = p.vram_mr(5, 5, PART)
    crc = other.pattern(77, PART)
    storm = Storm(other.puppet, 0, WRITE, victim.peer, 0, 0, key, 0, PART)
    t.ok(storm.wait(good=4), "there is traffic")
    for place in (VRAM, SYSTEM, VRAM):
        p.words("gmove", 5, place)
        t.ok(storm.wait(good=4), "it goes on after a move")
    ended, _, lost = storm.calm()
    t.ok(set(ended) <= {"OK", "ABORTED", "RKEY"} and not lost,
         "operations end as documented", (ended, lost))
    t.equal(victim.crc(PART, buf=5), crc, "and the right bytes are there")
    p.words("mrdel", 5)
    p.words("gfree", 5)


@gpu_scenario()
def taken_and_moved(lab, t):
    """Memory of GPUs that is revoked or moved under traffic; and the engine's driver
    goes."""
    with composed(lab, t) as guests:
        joined(lab, t, SWITCHTEC, engines=ENGINES)
        a, b = (Party(g, PART) for g in guests)
        for local in (False, True):
            for opcode in (WRITE, READ):
                taken_away(t, a, b, local, opcode)
        moved(t, b, a)
        storm = Storm(a.puppet, 0, WRITE, b.peer, 0, 0, b.key, 0, PART)
        t.ok(storm.wait(good=2), "there is traffic")
        b.guest.sh(f"echo {ENGINE} >/sys/bus/pci/drivers/switchtec_dma/unbind")
        t.equal(b.puppet.ask("ginfo", 0)[3], 0,
                "the engine's driver goes: nothing is mapped for it any more")
        t.ok(storm.wait(bad=3), "and operations fail")
        storm.calm()
        for party in (a, b):
            party.puppet.close()


@gpu_scenario()
def refused(lab, t):
    """Without an engine memory of GPUs is refused, and it is said why."""
    with composed(lab, t) as guests:
        for options, engines, says in (
                (OPTIONS + " use_dma=0", ENGINES, "use_dma=0 was given"),
                (OPTIONS, (), "no DMA channel reaches the memory window")):
            joined(lab, t, SWITCHTEC, options, engines)
            p = GpuPuppet(guests[0])
            p.gpu(0)
            p.alloc(0, 0, PART)
            p.export(63, 0)
            t.equal(p.errno("bmr", 0, 63, 0, PART, 15, 0), "EOPNOTSUPP",
                    f"{says}: refused")
            t.ok(f"dma-bufs are refused: {says}" in guests[0].dmesg(),
                 f"{says}: the log", guests[0].dmesg()[-2000:])
            p.close()
