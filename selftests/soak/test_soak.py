# SPDX-License-Identifier: GPL-2.0-only
"""Everything at once, for as long as one likes: make soak HOURS=n SEED=n. In
make check it is the briefest round."""

import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "common"),
                os.path.join(HERE, "..", "gpu")]
import actors
import disturb
import fabric
import gpulab
import inject
import measure
from actor import CHURNED, ENDPOINTS, HOSTS, Ledger
from process import wait_until
from scenario import scenario

SECONDS = float(os.environ.get("FABREX_SOAK_SECONDS", "40"))
SEED = os.environ.get("FABREX_SOAK_SEED", "1")
ROUND = 120		# seconds of disturbance between two looks at everything
BEAT = 30		# between two lines that say that it lives

# What the drivers and the kernel say of what is done to them on purpose.
SAID = (r"fabrex_draco.*(timed? ?out|abort|reset|answer|disable|gone|dead)",
        r"dma-buf of .*: cannot", r"exceeded 7 overlapping mappings",
        r"pciehp.*(Timeout|link|card|slot)")

ACTORS = (actors.Composer, actors.Traffic, actors.Collectives, actors.Churn,
          actors.Hoarder, disturb.Disturber, inject.Injector)
FAULTS = ("corrupt-payload", "corrupt-completion", "stuck-completion")


def say_waiting(t, ledger, cast, what):
    """Until they have ended, that this lives, and who does."""
    for actor in cast:
        while actor.is_alive():
            actor.join(BEAT)
            if actor.is_alive():
                t.diag(f"{what}, {ledger.operations()} operations, waiting "
                       "for " + ", ".join(other.name for other in cast
                                          if other.is_alive()))


def play(lab, t, ledger, number, seconds):
    """All of them at once for so long; returns when each has ended."""
    stop = threading.Event()
    cast = [kind(lab, ledger, f"{SEED}.{number}", stop) for kind in ACTORS]
    gpulab.audit(lab, "on")
    for actor in cast:
        actor.start()
    begun = time.monotonic()
    while (left := seconds - (time.monotonic() - begun)) > 0:
        time.sleep(min(left, BEAT))
        if left > BEAT:
            t.diag(f"round {number}: {ledger.operations()} operations so far")
    stop.set()
    say_waiting(t, ledger, cast, f"round {number} ends")


def quiet(lab, t, number):
    """Undo what was disturbed and wait until all works and is idle; False when
    it does not become so."""
    a = lab.guest("a")
    disturb.undo(lab)
    good = t.ok(all([fabric.wait_port(g) for g in lab.guests.values()]),
                f"round {number}: all ports work again")
    left = wait_free(a)
    good &= t.ok(not left, f"round {number}: every GPU can be released", left)
    for guest in lab.guests.values():
        wait_until(lambda: not any(measure.objects(guest).values()),
                   60 * guest.patience, 0.5)
        found = {k: v for k, v in measure.objects(guest).items() if v}
        good &= t.ok(not found, f"round {number}: {guest.name} has no queue, "
                     "region, window, pinned page or process left", found)
    report = gpulab.audit(lab, "report")
    return good & t.ok(not report["late"], f"round {number}: of "
                       f"{report['accesses']} accesses none was to memory that "
                       f"had been revoked ({report['dropped']} not looked at)",
                       report)


def wait_free(guest):
    """Release what the composer left; what cannot be, with its state."""
    def bound():
        rows = fabric.endpoints(guest)
        return {n: rows[n]["state"] for n in ENDPOINTS
                if rows[n]["state"] != "free"}

    def all_free():
        for name in bound():
            fabric.release(guest, name, "--force")
        return not bound()

    wait_until(all_free, 120 * guest.patience, 0.5)
    return bound()


def works(lab, t):
    """After all that, three hosts exchange what they should."""
    for command, host in zip([lab.guest(h).start_command(
            f"coll-rank verify {n} 3 fabric:8999")
            for n, h in enumerate(HOSTS)], HOSTS):
        result = command.wait(120)
        t.ok(not result.status and "verified" in result.stdout,
             f"collectives on {host} afterwards", result.stdout)


def found_all(t, ledger):
    """What was broken on purpose was found, one by one."""
    for kind in FAULTS:
        n, found, otherwise = (ledger.done[f"{kind}: {what}"] for what in
                               ("injected", "found", "failed otherwise"))
        t.equal(found + otherwise, n,
                f"{kind}: injected {n}, found {found + otherwise}, of which "
                f"{otherwise} in operations that failed otherwise")


def round_of(lab, t, ledger, number, begun):
    """One round, and a line about it, so that one sees that it lives."""
    wrong = len(ledger.wrong)
    play(lab, t, ledger, number, min(ROUND, max(SECONDS / 3, 5)))
    played = time.monotonic() - begun
    good = quiet(lab, t, number)
    for text in ledger.wrong[wrong:]:
        t.diag("wrong: " + text)
    t.diag(f"round {number}: {time.monotonic() - begun:.0f} s of "
           f"{SECONDS:.0f} s (quiet since {played:.0f} s), "
           f"{ledger.operations()} operations, {len(ledger.wrong)} wrong")
    return good


def figures(t, ledger, number, first, last):
    """What fits into a note."""
    t.diag(f"{number} rounds, seed {SEED}, {ledger.operations()} operations")
    for line in ledger.table():
        t.diag(line)
    for who in last or ():
        t.diag(f"{who}: " + ", ".join(
            f"{what} {first[who][what]} -> {last[who][what]}"
            for what in last[who]))


@scenario(hosts=["a", "b", "c"], kernels=("7.2", "debug", "kcsan"))
def soak(lab, t):
    """Composition, resets, kills, link faults, revocations, collectives, sleep,
    operations that go wrong, users who take all they can."""
    for guest in lab.guests.values():
        for text in SAID:
            guest.allow_log(text)
    t.diag(f"seed {SEED}, {SECONDS:.0f} s")
    a = lab.guest("a")
    fabric.compose(a, CHURNED, "a", check=True)
    gpulab.load(a)
    gpulab.wait_devices(a, 1)
    ledger = Ledger()
    begun = time.monotonic()
    first = last = None
    number = 0
    while time.monotonic() - begun < SECONDS:
        number += 1
        if not round_of(lab, t, ledger, number, begun):
            break
        last = measure.all_of(lab)
        first = first or last
    t.ok(not ledger.wrong, f"{number} rounds: every operation ended as it may",
         "\n".join(ledger.wrong[:30]))
    found_all(t, ledger)
    figures(t, ledger, number, first, last)
    if last:
        over = measure.grown(first, last, 1 if a.kernel.name == "7.2"
                             else measure.DEBUG_FACTOR)
        t.ok(not over, "memory, descriptors and threads did not grow", over)
    works(lab, t)
    t.equal(gpulab.unload(a).status, 0, "the GPU's driver can go")
    fabric.release_all(lab, a)
    for guest in lab.guests.values():
        leak = guest.kmemleak()
        t.ok(not leak, f"no leak on {guest.name}", leak)
