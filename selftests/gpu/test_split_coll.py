# SPDX-License-Identifier: GPL-2.0-only
"""Collectives on 16 GPUs, eight of each of two hosts, wired as 2s-2rp-split-flat:
each host has a port at either switch, and the switches have no link. So ranks
reach some of the others only through another port of those ranks' host. What
each link carries is what the planner planned, to the byte."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import machine
from gpulab import fabric, load, moved_bytes, wait_devices
from planned import (GPUS, Place, compare_rates, execute, perform, plan,
                     start)
from scenario import scenario

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "split_coll.topo")
BOXES = {"a": "columba1", "b": "columba2"}
# As in the topology file: of two GPUs each.
UPLINKS = {"columba1": ("draco1:2", "draco1:3", "draco2:2", "draco2:3"),
           "columba2": ("draco1:4", "draco1:5", "draco2:4", "draco2:5")}
# The kernel lets the root complexes of these processors forward between devices,
# as the planner assumes, too: a rank's other ports reach its GPU through them.
OPTIONS = {"hosts": list(BOXES), "topology": TOPOLOGY, "kernels": ("7.2",),
           "cpu": machine.AMD_CPU}


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


@scenario(**OPTIONS)
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
    """A rank at one switch is killed when all are at work; those at the other
    hear of it, too."""
    guests = [ranks[0].guest, ranks[2].guest]
    before, end = moved_bytes(guests)[1], time.monotonic() + 300
    commands = start(ranks, "all_reduce --size 64K --iterations 1000000 "
                     "--bootstrap fabric:7310")
    while moved_bytes(guests)[1] < before + (4 << 20) and \
            time.monotonic() < end:
        time.sleep(0.1)
    commands[1].guest.sh("pkill -9 -f -- '--rank 1 '")
    said = [command.wait(600) for command in commands]
    t.ok(said[1].status != 0 and all(
        "rank 1 " in result.stderr and result.status for n, result
        in enumerate(said) if n != 1), "all ranks name the one that died",
         [(result.status, result.stderr) for result in said])


# ---- planned schedules on all GPUs ------------------------------------------

@scenario(**OPTIONS)
def planned_schedules(lab, t):
    """What the planner has proved to be optimal for sixteen GPUs, and the best
    rings."""
    ranks = places(lab)
    for service, (kind, which) in enumerate((
            ("all_gather", "optimal"), ("all_reduce", "optimal"),
            ("all_reduce", "rings")), 7321):
        _, texts = plan(ranks, kind, TOPOLOGY)
        execute(t, ranks, kind, which, texts[which], service, UPLINKS)


@scenario(**OPTIONS, named=True)
def ratios(lab, t):
    """The optimal all-gather against the best rings, with links at their rates."""
    compare_rates(lab, t, places(lab), TOPOLOGY, 7331)
