# SPDX-License-Identifier: GPL-2.0-only
"""Collectives on 16 GPUs, eight of each of two hosts, wired as 2s-2rp-split-flat:
each host has a port at either switch, and the switches have no link. So ranks
reach some of the others only through another port of those ranks' host. What
each link carries is what the planner planned, to the byte."""

import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import RUNTIME, fabric, load, wait_devices
from scenario import scenario

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "split_coll.topo")
BOXES = {"a": "columba1", "b": "columba2"}
GPUS = 8		# of each host, four at each of its ports
# As in the topology file: of two GPUs each.
UPLINKS = {"columba1": ("draco1:2", "draco1:3", "draco2:2", "draco2:3"),
           "columba2": ("draco1:4", "draco1:5", "draco2:4", "draco2:5")}
ITERATIONS = 1
# An iteration and one that is checked, out of place and in place.
OPERATIONS = 2 * (ITERATIONS + 1)
Place = collections.namedtuple("Place", "guest gpu endpoint port")


def places(lab):
    """GPUs of both hosts, composed in the order of their numbers."""
    found = []
    for host, box in BOXES.items():
        guest = lab.guest(host)
        load(guest)
        for n in range(GPUS):
            place = Place(guest, n, f"{box}.gpu{n}", f"{host}.{n // 4}")
            fabric.compose(guest, place.endpoint, place.port, check=True)
            wait_devices(guest, n + 1)
            found.append(place)
    return found


def start(ranks, options, env=None):
    """fabrex-perf at each of them."""
    return [rank.guest.start_command(
        f"fabrex-perf {options} --warmup 0 --timeout 120 --json "
        f"--world {len(ranks)} --rank {number} --device {rank.port}",
        env={**RUNTIME, "HIP_VISIBLE_DEVICES": str(rank.gpu), **(env or {})})
        for number, rank in enumerate(ranks)]


def perform(t, ranks, what, options, env=None):
    """The rows that rank 0 prints, having found the contents to be right."""
    results = [command.wait(600) for command in start(ranks, options, env)]
    t.need(not any(result.status for result in results), f"{what}: all ranks",
           "".join(f"rank {number}: status {result.status}: {result.stderr}\n"
                   for number, result in enumerate(results)))
    doc = json.loads(results[0].stdout)
    t.equal(doc["wrong"], 0, f"{what}: contents")
    return doc, [result.stderr for result in results]


@scenario(hosts=list(BOXES), topology=TOPOLOGY, kernels=("7.2",))
def ports_apart(lab, t):
    """Ranks with buffers in host memory at all four ports."""
    ranks = [Place(lab.guest(host), 0, None, f"{host}.{n}")
             for host in BOXES for n in (0, 1)]
    for service, kind in enumerate(("all_reduce", "all_to_all", "barrier"),
                                   7301):
        _, said = perform(t, ranks, kind, f"{kind} --sizes 8:256K:32 "
                          f"--iterations 10 --bootstrap fabric:{service}",
                          {"FABREX_DEBUG": "path"})
        for rank, text in enumerate(said):
            other = [n for n in range(4)
                     if f"rank {n} is reached through another port" in text]
            t.equal(other, [n for n in range(4) if n % 2 != rank % 2],
                    f"{kind}: rank {rank} uses other ports of these ranks")
    dies(t, ranks)


def dies(t, ranks):
    """A rank at one switch is killed; those at the other hear of it, too."""
    commands = start(ranks, "all_reduce --size 64K --iterations 1000000 "
                     "--bootstrap fabric:7310")
    commands[1].guest.sh("sleep 2; pkill -9 -f -- '--rank 1 '")
    said = [command.wait(120) for command in commands]
    t.ok(said[1].status != 0 and all(
        "rank 1 " in result.stderr and result.status for n, result
        in enumerate(said) if n != 1), "all ranks name the one that died",
         [(result.status, result.stderr) for result in said])
