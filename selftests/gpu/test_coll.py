# SPDX-License-Identifier: GPL-2.0-only
"""Collectives on GPU memory between hosts: by a schedule, data goes from GPU to
GPU, and none of it through host memory."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import RUNTIME, TOPOLOGY, gpu_host, moved_bytes
from scenario import scenario

HOSTS = ["a", "b"]
MIB = 1 << 20
ROUNDS = 2		# out of place, in place; one more is checked
# Of a rank's messages and credits; its payload is 200 times as long.
HEADERS = 64 << 10


def ranks(places, kind, service, more):
    """One on each GPU, with buffers of so many bytes; all results.

    @places: (guest, number of its GPU) of each rank."""
    args = (f"{kind} --memory hip --iterations {ROUNDS} --warmup 0 "
            f"--algorithms all:ring --timeout 120 --world {len(places)} "
            f"--bootstrap fabric:{service} --json {more}")
    commands = [guest.start_command(
        f"fabrex-perf {args} --rank {rank}",
        env={**RUNTIME, "HIP_VISIBLE_DEVICES": str(gpu)})
        for rank, (guest, gpu) in enumerate(places)]
    return [c.wait(300) for c in commands]


def check(t, places, kind, service, size, sent):
    """@size: of each buffer; @sent: by all ranks in one operation."""
    guests = sorted({guest for guest, _ in places}, key=lambda g: g.name)
    before = moved_bytes(guests)
    results = ranks(places, kind, service, f"--size {size}")
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
