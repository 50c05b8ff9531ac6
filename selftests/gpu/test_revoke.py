# SPDX-License-Identifier: GPL-2.0-only
"""GPU memory that is taken away, or moved, while it is written and read: how
operations end, and that nothing touches it afterwards."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import (KERNELS, SYSTEM, TOPOLOGY, VRAM, audit, fabric,
                    wait_devices)
from puppet import READ, WRITE
from revocation import (PART, SIZE, Tally, before, canary, no_leaks,
                        nothing_late, parties, quick_round, storm_at)
from scenario import scenario

QUICK = int(os.environ.get("FABREX_REVOKES", "92"))
SLOW = max(1, QUICK // 23)		# of each way to lose the whole GPU


def take(lab, victim, how):
    """The whole GPU goes."""
    a = lab.guest("a")
    if how == "remove":
        lab.emu_control({"cmd": "remove", "endpoint": victim.endpoint})
    else:
        fabric.release(a, victim.endpoint, "--force", check=True)
    wait_devices(victim.guest, 1)


def give_back(lab, victim, how):
    """It is there again, for a new binding."""
    a = lab.guest("a")
    name = victim.endpoint
    if how == "remove":
        lab.emu_control({"cmd": "insert", "endpoint": name})
    fabric.wait_state(a, name, "free")
    fabric.compose(a, name, victim.guest.name, check=True)
    wait_devices(victim.guest, 2)
    victim.open()


def slow_round(lab, tally, victim, other, how, n):
    """The device goes, by surprise or by force, with everything open."""
    local = bool(n & 1)
    p = victim.puppet
    key = victim.victim()
    storm = storm_at(victim, other, key, local, WRITE)
    tally.check(storm.wait(good=6), "no traffic before")
    take(lab, victim, how)
    event = p.wait_event("MR_REVOKED")
    tally.check(event and event[3] == victim.id, f"event {event}")
    # Between the pull and the driver's call there is no memory to be found.
    tally.storm(storm, "LKEY" if local else "RKEY", ("LFAULT", "RFAULT"))
    tally.check(p.errno("ginfo", 1) == "ENODEV", "the old file lives")
    p.words("mrdel", 5)
    p.words("gclose", 1)
    give_back(lab, victim, how)
    tally.rounds += 1


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def revoked_under_traffic(lab, t):
    """Buffers freed and revoked, GPUs pulled and released by force."""
    start = before(lab)
    a, b = parties(lab)
    audit(lab, "on")
    tally = Tally()
    begun = time.monotonic()
    for n in range(QUICK):
        quick_round(tally, *((b, a) if n & 16 else (a, b)), n)
    tally.report(t, "buffer freed or revoked under traffic")
    t.diag(f"{(time.monotonic() - begun) / QUICK:.2f} s each")
    for how in ("remove", "force"):
        tally = Tally()
        begun = time.monotonic()
        for n in range(SLOW):
            slow_round(lab, tally, *((b, a) if n & 2 else (a, b)), how, n)
        tally.report(t, "GPU pulled out under traffic" if how == "remove"
                     else "released by force under traffic")
        t.diag(f"{(time.monotonic() - begun) / SLOW:.2f} s each")
    nothing_late(t, lab, QUICK + 2 * SLOW)
    for party in (a, b):
        party.close()
    no_leaks(t, lab, start)


def move_round(tally, party, storm, place):
    """One move; traffic goes on at the new place, with the same key."""
    p = party.puppet
    p.words("gmove", 5, place)
    crc = canary(party, 6) if place == VRAM else None
    tally.check(storm.wait(good=4), "no traffic after the move")
    if crc is not None:
        tally.check(p.crc(6, SIZE) == crc, "the old place was written")
        p.words("gfree", 6)
    tally.rounds += 1


def moved(lab, t, victim, other, local, opcode):
    """Every operation stores or loads the same bytes, so what is there in the
    end is known, wherever the buffer was meanwhile."""
    tally = Tally()
    key = victim.victim()
    source, target = ((victim, other) if local == (opcode == WRITE)
                      else (other, victim))
    buf = {victim: 5, other: 0}
    source.puppet.pattern(buf[source], PART, 77)
    crc = source.puppet.crc(buf[source], PART)
    storm = storm_at(victim, other, key, local, opcode)
    tally.check(storm.wait(good=4), "no traffic before")
    for place in (VRAM, SYSTEM, VRAM, VRAM, SYSTEM, VRAM):
        move_round(tally, victim, storm, place)
    ended, _, lost = storm.calm()
    tally.ended.update(ended)
    want = "LKEY" if local else "RKEY"
    tally.check(set(ended) <= {"OK", "ABORTED", want} and not lost,
                f"ended with {ended}, {lost} lost")
    tally.check(target.puppet.crc(buf[target], PART) == crc,
                "other bytes than were sent")
    tally.check(victim.puppet.event(0) is None, "told of a revocation")
    victim.puppet.words("mrdel", 5)
    victim.puppet.words("gfree", 5)
    tally.report(t, f"moved, {'near' if local else 'far'} end of "
                    f"{'WRITE' if opcode == WRITE else 'READ'}")


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def moved_under_traffic(lab, t):
    """Buffers evicted to other VRAM and to system memory, and back."""
    start = before(lab)
    a, b = parties(lab)
    audit(lab, "on")
    for local in (False, True):
        for opcode in (WRITE, READ):
            moved(lab, t, b, a, local, opcode)
    nothing_late(t, lab, 24)
    for party in (a, b):
        party.close()
    no_leaks(t, lab, start)
