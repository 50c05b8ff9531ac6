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
# Of messages and credits; a payload of one operation is 64 times as long.
HEADERS = 64 << 10


def ranks(guests, kind, service, more):
    """One on each host, with buffers of 4 MiB; the report of rank 0."""
    args = (f"{kind} --memory hip --size 4M --iterations {ROUNDS} --warmup 0 "
            f"--algorithms all:ring --timeout 120 --world {len(guests)} "
            f"--bootstrap fabric:{service} --json {more}")
    commands = [g.start_command(f"fabrex-perf {args} --rank {rank}",
                                env=RUNTIME)
                for rank, g in enumerate(guests)]
    return [c.wait(300) for c in commands]


def check(t, guests, kind, service, sent, more=""):
    """@sent: bytes that all ranks send in one operation."""
    before = moved_bytes(guests)
    results = ranks(guests, kind, service, more)
    for host, result in zip(HOSTS, results):
        t.need(result.status == 0, f"{kind}: the rank on {host}",
               result.stdout + result.stderr)
    p2p, host = (now - then for now, then in zip(moved_bytes(guests), before))
    report = json.loads(results[0].stdout)
    t.equal((report["wrong"], report["rows"][0]["algorithm"]), (0, "ring"),
            f"{kind}: contents on GPUs")
    t.diag(f"{kind}: {p2p} bytes from GPU to GPU, {host} with the host's "
           "memory (emulated)")
    t.equal(p2p, 2 * (ROUNDS + 1) * sent,
            f"{kind}: all of the data went from GPU to GPU")
    t.ok(host <= HEADERS, f"{kind}: only headers through host memory", host)


@scenario(hosts=HOSTS, topology=TOPOLOGY, kernels=("7.2",))
def collectives(lab, t):
    """All-gather and broadcast copy; all-reduce adds up on the GPUs."""
    guests = [gpu_host(lab, name, 1) for name in HOSTS]
    check(t, guests, "all_gather", 7101, 4 * MIB)
    check(t, guests, "broadcast", 7102, 4 * MIB)
    check(t, guests, "all_reduce", 7103, 8 * MIB)
