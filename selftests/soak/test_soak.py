# SPDX-License-Identifier: GPL-2.0-only
"""Everything at once, for as long as one likes: make soak HOURS=n SEED=n. In
make check it is the briefest round."""

import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "common"),
                os.path.join(HERE, "..", "gpu")]
import actors
import fabric
import gpulab
import measure
from process import wait_until
from scenario import scenario

SECONDS = float(os.environ.get("FABREX_SOAK_SECONDS", "40"))
SEED = os.environ.get("FABREX_SOAK_SEED", "1")
ROUND = 120		# seconds of disturbance between two looks at everything

# What the drivers and the kernel say of what is done to them on purpose.
SAID = (r"fabrex_draco.*(timed? ?out|abort|reset|answer|disable|gone|dead)",
        r"dma-buf of .*: cannot", r"exceeded 7 overlapping mappings",
        r"pciehp.*(Timeout|link|card|slot)")


def quiet(lab, t, number):
    """Undo what was disturbed and wait until all works and is idle; False when
    it does not become so."""
    a = lab.guest("a")
    for host in actors.HOSTS:
        lab.emu_control({"cmd": "link", "port": f"{host}.0", "state": "up"})
        lab.emu_control({"cmd": "slow", "port": f"{host}.0",
                         "bytes_per_second": 0})
    for name in actors.ENDPOINTS:
        lab.emu_control({"cmd": "insert", "endpoint": name})
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
    return good


def wait_free(guest):
    """Release what the composer left; what cannot be, with its state."""
    def bound():
        rows = fabric.endpoints(guest)
        return {n: rows[n]["state"] for n in actors.ENDPOINTS
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
            for n, h in enumerate(actors.HOSTS)], actors.HOSTS):
        result = command.wait(120)
        t.ok(not result.status and "verified" in result.stdout,
             f"collectives on {host} afterwards", result.stdout)


@scenario(hosts=["a", "b", "c"], kernels=("7.2", "debug", "kcsan"))
def soak(lab, t):
    """Composition, resets, kills, link faults, revocations, collectives."""
    for guest in lab.guests.values():
        for text in SAID:
            guest.allow_log(text)
    t.diag(f"seed {SEED}, {SECONDS:.0f} s")
    a = lab.guest("a")
    fabric.compose(a, actors.CHURNED, "a", check=True)
    gpulab.load(a)
    gpulab.wait_devices(a, 1)
    ledger = actors.Ledger()
    end = time.monotonic() + SECONDS
    first = last = None
    number = 0
    while time.monotonic() < end:
        number += 1
        actors.play(lab, ledger, f"{SEED}.{number}",
                    min(ROUND, max(SECONDS / 3, 5)))
        if not quiet(lab, t, number):
            break
        last = measure.all_of(lab)
        first = first or last
    t.ok(not ledger.wrong, f"{number} rounds: every operation ended as it may",
         "\n".join(ledger.wrong[:30]))
    for what, n in sorted(ledger.done.items()):
        t.diag(f"{what}: {n}")
    if last:
        t.diag("first: " + str(first))
        t.diag("last:  " + str(last))
        over = measure.grown(first, last, 1 if a.kernel.name == "7.2"
                             else measure.DEBUG_FACTOR)
        t.ok(not over, "memory, descriptors and threads did not grow", over)
    works(lab, t)
    t.equal(gpulab.unload(a).status, 0, "the GPU's driver can go")
    fabric.release_all(lab, a)
    for guest in lab.guests.values():
        leak = guest.kmemleak()
        t.ok(not leak, f"no leak on {guest.name}", leak)
