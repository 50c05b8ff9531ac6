# SPDX-License-Identifier: GPL-2.0-only
"""Collectives on GPU memory between hosts: by a schedule, data goes from GPU to
GPU, and none of it through host memory."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import reduction
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


def start(places, kind, service, more, memory="hip"):
    """A rank on each GPU. @places: (guest, number of its GPU) of each."""
    args = (f"{kind} --memory {memory} --warmup 0 --algorithms all:ring "
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
    row = report["rows"][0]
    t.equal((report["wrong"], report["emulated"], row["algorithm"]),
            (0, True, "ring"), f"{kind}: contents on GPUs")
    for place in ("out_of_place", "in_place"):
        said = row[place]
        t.equal((said["iterations"], said["p2p_bytes"]),
                (ROUNDS, ROUNDS * sent), f"{kind}: fabrex-perf counts {place}")
        t.ok(said["host_bytes"], f"{kind}: and headers", said)
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
def counted_by_ports(lab, t):
    """What fabrex-perf says about ranks that share a port: in a stream on GPUs,
    and in the memory of the hosts, which is all that they use then."""
    guests = [gpu_host(lab, name, 2) for name in HOSTS]
    places = [(guest, gpu) for guest in guests for gpu in (0, 1)]
    sent = 6 * MIB		# of all ranks, in one operation
    for service, memory, more, p2p in (
            (7107, "hip", "--stream", ROUNDS * sent), (7108, "host", "", 0)):
        commands = start(places, "all_reduce", service,
                         f"--iterations {ROUNDS} --size 1M {more}", memory)
        results = [command.wait(300) for command in commands]
        t.need(not any(r.status for r in results), f"{memory}: ranks end well",
               [r.stderr for r in results])
        said = json.loads(results[0].stdout)["rows"][0]["out_of_place"]
        t.equal((said["wrong"], said["p2p_bytes"]), (0, p2p),
                f"{memory} {more}: bytes between GPUs")
        least = ROUNDS * sent - p2p
        t.ok(least < said["host_bytes"] < least + sent,
             f"{memory} {more}: bytes through host memory", said)


def checked_by_engines(t, gpus, size, service, text, **how):
    """All-reduce, whose result the GPUs' engines check; what was counted."""
    run = reduction.Reduction(gpus, size, service, **how)
    run.ready()
    counted = reduction.Counted(gpus[0].guest, ["a.0", "b.0"],
                                [gpu.name for gpu in gpus])
    _, checksums = run.go()
    counted.stop()
    run.end()
    t.equal(checksums, len(gpus) * [reduction.expected(len(gpus), size)],
            f"{text}: right on each GPU")
    return counted


@scenario(hosts=HOSTS, topology=TOPOLOGY, kernels=("7.2",))
def planned_traffic(lab, t):
    """The planner's schedule: each GPU sends and receives what is in it, and
    exchanges nothing with the memory of a host. Then by way of that."""
    guests = [gpu_host(lab, name, 2) for name in HOSTS]
    gpus = [gpu for guest in guests for gpu in reduction.gpus_of(guest)]
    names = ",".join(gpu.name for gpu in gpus)
    guests[0].sh("fabrexctl plan-collective live --no-prediction "
                 f"--devices {names} --schedule /tmp/planned.sched")
    schedule = guests[0].get("/tmp/planned.sched").decode()
    size = 4 * MIB + 4		# no multiple of what is cut from it
    planned = reduction.planned(schedule, gpus, size)
    counted = checked_by_engines(t, gpus, size, 7109, "by the plan",
                                 schedule=schedule)
    t.equal({g.name: (counted.sent(g.name), counted.received(g.name))
             for g in gpus}, planned, "each GPU sends and receives as planned")
    t.equal([counted.of_gpu(g.name, "host_bytes") for g in gpus],
            [0] * len(gpus), "and nothing from or to host memory")
    t.equal(counted.of_ports("p2p_bytes") + counted.over("mesh"),
            sum(sent for sent, _ in planned.values()), "ports count as much")
    counted = checked_by_engines(t, gpus, size, 7110, "staged",
                                 schedule=schedule, kernels=False)
    t.equal(counted.of_ports("p2p_bytes"), 0, "staged: none between GPUs")
    t.ok(counted.of_ports("host_bytes") >
         sum(sent for sent, _ in planned.values()), "staged: all through hosts",
         counted.more)


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
