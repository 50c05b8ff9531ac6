# SPDX-License-Identifier: GPL-2.0-only
"""Rounds of revocation under traffic, for scenarios: two parties, one of them
loses memory that the other one, or itself, is writing or reading."""

import collections

from gpulab import MIB, MR_PIN, GpuPuppet, Storm, audit, bound, gpu_host
from puppet import READ, WRITE, counts, wait_counts

SIZE = 2 * MIB
PART = SIZE


class Party:
    """A host's process: GPU 0 with region 0 that stays, GPU 1 whose memory
    (region 5) is taken away, and queue 0."""

    def __init__(self, lab, name):
        self.guest = gpu_host(lab, name, 2)
        self.puppet = GpuPuppet(self.guest)
        self.puppet.gpu(0)
        self.key = self.puppet.memory(0, SIZE)
        self.puppet.queue(0)
        self.peer = self.puppet.peer
        self.open()

    def open(self):
        """GPU 1, perhaps anew."""
        self.index, domain, devfn = self.puppet.gpu(1, 1)[:3]
        address = f"{domain:04x}:{devfn >> 8:02x}:{devfn >> 3 & 31:02x}.0"
        self.endpoint = next(
            e for e, at in bound(self.guest, self.guest.name).items()
            if at == address)

    def victim(self, pin=False):
        """Memory to be taken away; its key."""
        self.puppet.alloc(5, 1, SIZE)
        key, self.id = self.register(pin)
        return key

    def register(self, pin):
        p = self.puppet
        p.export(63, 5)
        answer = p.ask("bmr", 5, 63, 0, SIZE, 15, MR_PIN if pin else 0)
        p.words("bclose", 63)
        return answer

    def close(self):
        self.puppet.close()


class Tally:
    """What went wrong, and how operations ended, over many rounds."""

    def __init__(self):
        self.wrong = []
        self.ended = collections.Counter()
        self.rounds = 0

    def check(self, condition, text):
        if not condition:
            self.wrong.append(f"round {self.rounds}: {text}")

    def storm(self, storm, want, allowed=()):
        """Operations have ended as documented, the last ones with `want`."""
        self.check(storm.wait(bad=3), "no operation fails")
        ended, relapses, lost = storm.calm()
        self.ended.update(ended)
        self.check(set(ended) <= {"OK", "ABORTED", want, *allowed},
                   f"ended with {ended}")
        self.check(ended.get(want), f"none with {want}: {ended}")
        self.check(not relapses, f"{relapses} succeeded after a failure")
        self.check(not lost, f"{lost} never completed")

    def report(self, t, what):
        t.ok(not self.wrong, f"{self.rounds} times: {what}",
             "\n".join(self.wrong[:20]))
        t.diag(f"{what}: " + ", ".join(f"{n} {s}" for s, n in
                                       sorted(self.ended.items())))


def storm_at(victim, other, key, local, opcode):
    """Traffic with the victim's memory at the far or at the near end."""
    if local:
        return Storm(victim.puppet, 0, opcode, other.peer, 5, 0, other.key, 0,
                     PART)
    return Storm(other.puppet, 0, opcode, victim.peer, 0, 0, key, 0, PART)


def canary(party, buf):
    """Another buffer where the old one was; its checksum."""
    party.puppet.alloc(buf, 1, SIZE)
    party.puppet.pattern(buf, SIZE, 1234)
    return party.puppet.crc(buf, SIZE)


def quick_round(tally, victim, other, n):
    """The exporter takes a buffer away: REVOKE or FREE, of memory that is
    pinned or not, at the far or the near end, written or read."""
    free, local, read, pin = (bool(n & 1 << bit) for bit in range(4))
    p = victim.puppet
    key = victim.victim(pin)
    storm = storm_at(victim, other, key, local, READ if read else WRITE)
    tally.check(storm.wait(good=6), "no traffic before")
    p.words("gfree" if free else "grevoke", 5)
    tally.check(p.ask("ginfo", 1)[3] == 0, "still mapped when it returns")
    crc = canary(victim, 6)
    tally.storm(storm, "LKEY" if local else "RKEY")
    tally.check(p.crc(6, SIZE) == crc, "memory of the next owner changed")
    event = p.wait_event("MR_REVOKED")
    tally.check(event and event[3] == victim.id, f"event {event}")
    p.words("mrdel", 5)
    p.words("gfree", 6)
    if not free:
        p.words("gfree", 5)
    tally.rounds += 1


def nothing_late(t, lab, least):
    """The emulator's own log, compared independently of what enforces it."""
    log = audit(lab, "off")
    t.diag(f"audit: {log['accesses']} accesses, {log['revocations']} "
           f"revocations, {log['late']} late, {log['dropped']} dropped")
    t.equal((log["late"], log["dropped"]), (0, 0),
            "no access to memory after it was given back", )
    t.ok(log["revocations"] >= least and log["accesses"] > least,
         "and the log has seen it all", log)


def parties(lab):
    return Party(lab, "a"), Party(lab, "b")


def no_leaks(t, lab, before):
    """What the kernels count is what it was."""
    for name, was in before.items():
        guest = lab.guest(name)
        t.equal(wait_counts(guest, was), was, f"counts on {name} as before")
        t.equal(guest.sh("for i in $(seq 3000); do "
                         "n=$(cat /sys/module/draco_gpu/refcnt); "
                         "[ $n = 0 ] && break; sleep 0.05; done; echo $n"),
                "0", f"no file and no dma-buf is left on {name}")
        leak = guest.kmemleak()
        t.ok(not leak, f"no leak on {name}", leak)


def before(lab):
    """Counted objects, with the test driver there."""
    return {name: counts(gpu_host(lab, name, 2)) for name in "ab"}
