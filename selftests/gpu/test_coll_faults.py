# SPDX-License-Identifier: GPL-2.0-only
"""Collectives on GPU memory while something goes wrong: a GPU's driver moves the
buffers, a GPU is taken away by force, a host loses its power, a rank hangs and a
watchdog aborts. Whoever is left goes on."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(__file__))
import install
from gpulab import RUNTIME, audit, bound, fabric, gpu_host, unload
from revocation import nothing_late
from scenario import scenario

HOSTS = ["a", "b", "c"]
SOON = 60		# emulated hosts take their time; the ranks say how much
# Guests of their own: what others leave composed to theirs is in the way here.
OPTIONS = {"hosts": HOSTS, "kernels": ("7.2",), "memory": 1024}


def start(lab, mode, service):
    """A rank on each host, with buffers on its GPU."""
    fabric.release_all(lab, lab.guest("a"))
    for host in HOSTS:
        gpu_host(lab, host, 1)
    ranks = [lab.guest(host).start_command(
        f"coll-rank-gpu {mode} {rank} {len(HOSTS)} fabric:{service}",
        env=RUNTIME) for rank, host in enumerate(HOSTS)]
    if mode != "move":
        for command in ranks:
            command.wait_for("ready", SOON)
    return ranks


def leave(lab):
    """No trace for the scenarios that come after it."""
    for host in HOSTS:
        guest = lab.guest(host)
        if guest.run("test -d /sys/module/draco_gpu").status == 0:
            unload(guest).check()
    fabric.release_all(lab, lab.guest("a"))


def failed(command):
    """The rank's report of a failure: (errno, seconds, sentence)."""
    command.wait_for("end of failure\n", SOON)
    found = re.search(r"failed (-?\d+) after ([\d.]+) s: (.*)\n",
                      command.output())
    return int(found[1]), float(found[2]), found[3]


def two_go_on(t, ranks, lost):
    """The others name the one that is lost, shrink, and all is right again."""
    name = f"rank {lost} (host {HOSTS[lost]}"
    for rank, host in enumerate(HOSTS):
        if rank == lost:
            continue
        error, seconds, sentence = failed(ranks[rank])
        t.equal(error, -104, f"{host}: ECONNRESET")
        t.ok(name in sentence, f"{host} names rank {lost}", sentence)
        t.diag(f"{host} knew after {seconds} s (emulated)")
    for rank, host in enumerate(HOSTS):
        if rank == lost:
            continue
        ranks[rank].wait_for("shrunk to 2", SOON)
        ranks[rank].wait_for("verified", 2 * SOON)
        t.equal(ranks[rank].wait(SOON).status, 0, f"{host} goes on, all right")


@scenario(**OPTIONS)
def moved(lab, t):
    """The driver moves all buffers to and fro, to the host's memory and back, while
    every collective goes on in them."""
    for host, command in zip(HOSTS, start(lab, "move", 7201)):
        result = command.wait(300)
        t.ok(result.status == 0 and "verified" in result.stdout,
             f"{host}: all contents are right", result.stdout + result.stderr)
        t.diag(f"{host}: " + result.stdout.splitlines()[0])
    leave(lab)


@scenario(**OPTIONS)
def taken_away(lab, t):
    """b's GPU, by force."""
    audit(lab, "on")
    ranks = start(lab, "stay", 7202)
    fabric.release(lab.guest("a"), next(iter(bound(lab.guest("b"), "b"))),
                   "--force", check=True)
    two_go_on(t, ranks, 1)
    # With an error of its GPU, or as one that the others go on without.
    result = ranks[1].wait(SOON)
    t.ok((result.status or "alone" in result.stdout)
         and "verified" not in result.stdout, "the rank on b has ended",
         result.stdout + result.stderr)
    nothing_late(t, lab, 1)
    leave(lab)


@scenario(**OPTIONS)
def host_dies(lab, t):
    """c loses its power in the middle of it."""
    ranks = start(lab, "stay", 7203)
    lab.guest("c").kill()
    two_go_on(t, ranks, 2)
    lab.guest("c").restart()
    install.install([lab.guest("c")])
    leave(lab)


@scenario(**OPTIONS)
def watchdog(lab, t):
    """b stops. Watchdogs on a and c abort; b goes on and finds itself aborted. What
    they receive into stays as it is from then on."""
    ranks = start(lab, "watch", 7204)
    b = lab.guest("b")
    b.sh("kill -STOP $(busybox pidof coll-rank-gpu)")
    for rank, host in ((0, "a"), (2, "c")):
        error, seconds, sentence = failed(ranks[rank])
        t.ok(error < 0, f"{host}: {sentence}")
        t.diag(f"{host} returned {seconds} s after it last went on (emulated)")
    b.sh("kill -CONT $(busybox pidof coll-rank-gpu)")
    t.ok(failed(ranks[1])[0] < 0, "b returns, too")
    for rank, host in enumerate(HOSTS):
        result = ranks[rank].wait(SOON)
        t.ok(result.status == 0 and "nothing late" in result.stdout,
             f"{host}: nothing is written afterwards",
             result.stdout + result.stderr)
    leave(lab)
