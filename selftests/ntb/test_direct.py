# SPDX-License-Identifier: GPL-2.0-only
"""Direct mode: a peer stores to registered memory by itself, and to nothing else."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_dma
from ports import ENGINES, SWITCHTEC, joined, ntb_scenario
from puppet import CHECK, READ, WRITE, WRITE_IMM, Puppet

OPTIONS = "direct=1 dead_ms=20000"
SIZE = 1 << 18		# twice as much has room behind the window
PART = 1 << 16
REVOCATIONS = int(os.environ.get("FABREX_REVOCATIONS", "10"))
TRACING = "/sys/kernel/tracing"


class Calls:
    """How often functions of the kernel have been called."""

    def __init__(self, guest, *functions):
        self.guest = guest
        self.functions = functions
        guest.sh(f"mountpoint -q {TRACING} || mount -t tracefs none {TRACING}")
        for name in functions:
            guest.sh(f"cd {TRACING} && echo p:fabrex/{name} {name} "
                     f">>kprobe_events && echo 1 >events/fabrex/{name}/enable")

    def counted(self):
        lines = self.guest.sh(f"cat {TRACING}/kprobe_profile").splitlines()
        seen = {name: int(hits) for name, hits, _ in map(str.split, lines)}
        return [seen[name] for name in self.functions]

    def close(self):
        for name in self.functions:
            self.guest.sh(f"cd {TRACING} && echo 0 >events/fabrex/{name}/enable "
                          f"&& echo -:fabrex/{name} >>kprobe_events")


def written(t, own, peer, rkey, length, seed, what):
    """One WRITE, compared at the other end."""
    own.fill(0, 0, length, seed)
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, length,
                   flags=CHECK).status, "OK", what)
    t.ok(peer.same(0, 0, length, seed), f"{what}: every byte is there")


def ordered(t, own, peer, times):
    """What is stored directly does not overtake what was posted before it."""
    rkey = peer.mr(1, PART)
    own.mr(1, 3 * PART)
    own.set(1, 0, PART, 1)
    own.set(1, PART, PART, 2)

    def all_posted(*ops):
        for opcode, offset, length, flags in ops:
            own.post(0, opcode, peer.peer, 1, offset, rkey, 0, length,
                     flags=flags)
        return [own.poll(0).status for _ in ops] == ["OK"] * len(ops)

    ones, twos = (WRITE, 0, PART, 0), (WRITE, PART, PART, 0)
    right = []
    for _ in range(times):
        right += [
            all_posted(ones, twos, ones, twos), peer.all(1, 0, PART, 2),
            all_posted((WRITE, 0, 48, 0), twos), peer.all(1, 0, PART, 2),
            all_posted((READ, 2 * PART, PART, 0), ones),
            own.all(1, 2 * PART, PART, 2), peer.all(1, 0, PART, 1),
            all_posted((WRITE, PART, PART, CHECK), ones),
            peer.all(1, 0, PART, 1)]
    t.ok(all(right), "operations take effect in order", right)
    for p in (own, peer):
        p.ask("mrdel", 1)


@ntb_scenario(iommu="remap")
def stores(lab, t):
    """By processor and by DMA engine: the target's processor copies only what comes
    before the first answer."""
    for engines in ((), ENGINES):
        a, b = joined(lab, t, SWITCHTEC, OPTIONS, engines)
        t.ok("bounced" not in a.dmesg() + b.dmesg(), "direct mode is used",
             a.dmesg()[-2000:] + b.dmesg()[-2000:])
        test_dma.between_hosts(lab, t)
        own, peer = Puppet(a), Puppet(b)
        own.mr(0, SIZE)
        own.queue(0)
        rkey = peer.mr(0, SIZE)
        _, dest = peer.queue(0)
        calls = Calls(b, "fntb_direct_link", "engine_region_write")
        before = calls.counted()
        written(t, own, peer, rkey, SIZE, 1, "the first")
        linked = calls.counted()
        t.equal(linked[0], before[0] + 1, "the region is linked once")
        for seed, length in enumerate((SIZE, 4097, 65536, 100001), 2):
            written(t, own, peer, rkey, length, seed, f"{length} bytes")
        t.equal(calls.counted(), linked, "and nothing more is copied")
        own.fill(0, 0, SIZE, 9)
        t.equal(own.op(0, WRITE_IMM, peer.peer, 0, 0, rkey, 0, SIZE, imm=5,
                       dest=dest).status, "OK", "with immediate")
        t.equal(peer.poll(0).imm, 5, "which arrives")
        t.ok(peer.same(0, 0, SIZE, 9), "after every byte")
        # The second may be sent while the answer to the first is being counted.
        copied = calls.counted()[1] - linked[1]
        t.ok(1 <= copied <= 2, "for which one part waits for a cell", copied)
        calls.close()
        ordered(t, own, peer, 2)
        for p in (own, peer):
            p.close()


@ntb_scenario(iommu="remap")
def revoked(lab, t):
    """When a region is deregistered while it is written to, no byte comes later, and
    what is registered next is linked anew."""
    a, b = joined(lab, t, SWITCHTEC, OPTIONS)
    own, peer = Puppet(a), Puppet(b)
    own.mr(0, SIZE)
    own.queue(0)
    calls = Calls(b, "engine_region_write")
    late, seen = 0, set()
    for turn in range(REVOCATIONS):
        rkey = peer.mr(0, SIZE)
        written(t, own, peer, rkey, SIZE, 2 * turn + 1, "to begin with")
        own.fill(0, 0, SIZE, 2 * turn + 2)
        for _ in range(8):
            own.post(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE)
        own.poll(0)
        peer.ask("mrdel", 0)
        peer.set(0, 0, SIZE, 0xa5)
        seen |= {own.poll(0).status for _ in range(7)}
        late += not peer.all(0, 0, SIZE, 0xa5)
    t.equal(late, 0, f"{REVOCATIONS} times no byte is late")
    t.ok("RKEY" in seen or "ABORTED" in seen, "operations were cut short", seen)
    t.ok(seen <= {"OK", "RKEY", "ABORTED"}, "and end in that way", seen)
    # There is room only if what was deregistered is used again.
    for number in range(1, 9):
        rkey = peer.mr(0, SIZE)
        direct = False
        while not direct:
            before = calls.counted()
            direct = own.op(0, WRITE, peer.peer, 0, 0, rkey, 0,
                            PART).status == "OK" and calls.counted() == before
        written(t, own, peer, rkey, SIZE, number, "a new region, directly")
        peer.ask("mrdel", 0)
    calls.close()
    for p in (own, peer):
        p.close()
