# SPDX-License-Identifier: GPL-2.0-only
"""Collectives on GPU memory between hosts: by a schedule, data goes from GPU to
GPU, and none of it through host memory."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import RUNTIME, TOPOLOGY, bound, fabric, gpu_host, moved_bytes
from process import wait_until
from scenario import scenario

HOSTS = ["a", "b"]
MIB = 1 << 20
ROUNDS = 2		# out of place, in place; one more is checked
# Of a rank's messages and credits, about 46 KiB, and of its probes, which are
# the more the longer it takes. That all of the payload went elsewhere is shown
# by the count of bytes between GPUs.
HEADERS = 256 << 10


def start(places, kind, service, more):
    """A rank on each GPU. @places: (guest, number of its GPU) of each."""
    args = (f"{kind} --memory hip --warmup 0 --algorithms all:ring "
            f"--timeout 120 --world {len(places)} "
            f"--bootstrap fabric:{service} --json {more}")
    return [guest.start_command(
        f"fabrex-perf {args} --rank {rank}",
        env={**RUNTIME, "HIP_VISIBLE_DEVICES": str(gpu)})
        for rank, (guest, gpu) in enumerate(places)]


def check(t, places, kind, service, size, sent):
    """@size: of each buffer; @sent: by all ranks in one operation."""
    guests = sorted({guest for guest, _ in places}, key=lambda g: g.name)
    before = moved_bytes(guests)
    commands = start(places, kind, service,
                     f"--iterations {ROUNDS} --size {size}")
    results = [command.wait(300) for command in commands]
    for rank, result in enumerate(results):
        t.need(result.status == 0, f"{kind}: rank {rank}",
               result.stdout + result.stderr)
    p2p, host = (now - then for now, then in zip(moved_bytes(guests), before))
    report = json.loads(results[0].stdout)
    t.equal((report["wrong"], report["rows"][0]["algorithm"]), (0, "ring"),
            f"{kind}: contents on GPUs")
    t.diag(f"{kind}, {len(places)} ranks: {p2p} bytes from GPU to GPU, {host} "
           "with the host's memory (emulated)")
    t.equal(p2p, 2 * (ROUNDS + 1) * sent,
            f"{kind}: all of the data went from GPU to GPU")
    t.ok(host <= HEADERS * len(places),
         f"{kind}: only headers through host memory", host)


@scenario(hosts=HOSTS, topology=TOPOLOGY, kernels=("7.2",))
def collectives(lab, t):
    """All-gather and broadcast copy; all-reduce adds up on the GPUs."""
    places = [(gpu_host(lab, name, 1), 0) for name in HOSTS]
    check(t, places, "all_gather", 7101, 4 * MIB, 4 * MIB)
    check(t, places, "broadcast", 7102, 4 * MIB, 4 * MIB)
    check(t, places, "all_reduce", 7103, 4 * MIB, 8 * MIB)


@scenario(hosts=HOSTS, topology=TOPOLOGY, kernels=("7.2",))
def two_on_each_host(lab, t):
    """Four ranks, each with a GPU of its own, on two hosts."""
    guests = [gpu_host(lab, name, 2) for name in HOSTS]
    places = [(guest, gpu) for guest in guests for gpu in (0, 1)]
    check(t, places, "all_reduce", 7104, 4 * MIB, 24 * MIB)
    check(t, places, "reduce_scatter", 7105, 4 * MIB, 12 * MIB)


@scenario(hosts=HOSTS, topology=TOPOLOGY, kernels=("7.2",))
def gpu_taken_away(lab, t):
    """By force, from the rank on b, whose test runtime then touches memory that is
    gone: SIGBUS. The rank on a ends with an error that names b."""
    guests = [gpu_host(lab, name, 1) for name in HOSTS]
    a, b = guests
    endpoint = next(iter(bound(b, "b")))
    before = moved_bytes(guests)[0]
    commands = start([(guest, 0) for guest in guests], "all_gather", 7106,
                     "--iterations 1000000 --size 4M")
    wait_until(lambda: moved_bytes(guests)[0] > before + 16 * MIB,
               60 * a.patience)
    fabric.release(a, endpoint, "--force", check=True)
    for name, command in zip(HOSTS, commands):
        result = command.wait(60)
        t.ok(result.status not in (0, None), f"the rank on {name} ends",
             result.stdout + result.stderr)
        if name == "a":
            t.ok("rank 1 (host b" in result.stderr, "a names rank 1",
                 result.stderr)
