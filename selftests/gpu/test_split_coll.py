# SPDX-License-Identifier: GPL-2.0-only
"""Collectives on 16 GPUs, eight of each of two hosts, wired as 2s-2rp-split-flat:
each host has a port at either switch, and the switches have no link. So ranks
reach some of the others only through another port of those ranks' host. What
each link carries is what the planner planned, to the byte."""

import collections
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import machine
from gpulab import RUNTIME, fabric, load, moved_bytes, wait_devices
from scenario import scenario
from schedules import divisor, hops_of
from transfer import traffic

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
# The kernel lets the root complexes of these processors forward between devices,
# as the planner assumes, too: a rank's other ports reach its GPU through them.
OPTIONS = {"hosts": list(BOXES), "topology": TOPOLOGY, "kernels": ("7.2",),
           "cpu": machine.AMD_CPU}
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

SIZE = 1 << 20		# of an operation, about
LARGE = 64 << 20	# with the throttle on,
SECONDS = 40.0		# and how long it takes then


def plan(ranks, kind, topology=TOPOLOGY):
    """Texts of the optimal schedule and of that of the best rings; both are
    written at each host, by its own planner; and what that says."""
    rows = ", ".join(f'{{ endpoint = "{rank.endpoint}"; '
                     f'port = "{rank.port}"; }}' for rank in ranks)
    with open(topology) as f:
        text = f"{f.read().split('bindings =')[0]}bindings = ( {rows} );"
    for guest in {rank.guest.name: rank.guest for rank in ranks}.values():
        guest.sh(f"cat > /tmp/bound.topo << 'END'\n{text}\nEND")
        doc = fabric.ctl_json(
            guest, f"plan-collective /tmp/bound.topo --collective {kind} "
            f"--schedule /tmp/{kind}.optimal --ring-schedule /tmp/{kind}.rings",
            timeout=300)
        texts = [guest.sh(f"cat /tmp/{kind}.{which}")
                 for which in ("optimal", "rings")]
    assert doc["ranks"] == [rank.endpoint for rank in ranks]
    return doc, dict(zip(("optimal", "rings"), texts))


def planned(ranks, hops, uplinks=UPLINKS):
    """{(from, to): bytes} on links of meshes and on uplinks."""
    links = collections.Counter()
    for (one, other), n in hops.items():
        ends = (ranks[one].endpoint, ranks[other].endpoint)
        boxes = [end.split(".")[0] for end in ends]
        if boxes[0] == boxes[1]:
            links[ends] += n
            continue
        ports = [uplinks[box][int(end.split("gpu")[1]) * len(uplinks[box])
                              // GPUS] for box, end in zip(boxes, ends)]
        links[boxes[0], ports[0]] += n
        links[ports[1], boxes[1]] += n
    return dict(links)


def of_gpus(way):
    """Is it a link of a mesh, or an uplink?"""
    ends = [".gpu" in end for end in way]
    return all(ends) or not any(ends) and bool(set(way) & set(UPLINKS))


def execute(t, ranks, kind, which, text, service, size=SIZE, uplinks=UPLINKS):
    unit = divisor(text, len(ranks))
    size = unit * max(1, size // unit)
    before = traffic(ranks[0].guest)
    doc, _ = perform(t, ranks, f"{kind}, {which}",
                     f"{kind} --memory hip --schedule /tmp/{kind}.{which} "
                     f"--size {size} --iterations {ITERATIONS} "
                     f"--bootstrap fabric:{service}")
    after = traffic(ranks[0].guest)
    moved = {way: n - before[way] for way, n in after.items()
             if n != before[way] and of_gpus(way)}
    hops = hops_of(text, len(ranks), size)
    wanted = planned(ranks, {way: OPERATIONS * n for way, n in hops.items()},
                     uplinks)
    t.equal(moved, wanted, f"{kind}, {which}: {len(wanted)} links carry what is"
            " planned, to the byte")
    seconds = [row["time_us"] / 1e6 for row in
               (doc["rows"][0]["out_of_place"], doc["rows"][0]["in_place"])]
    t.diag(f"{kind}, {which}: {size} bytes in {seconds[0]:.1f} and "
           f"{seconds[1]:.1f} s (emulated)")
    return size / min(seconds)


@scenario(**OPTIONS)
def planned_schedules(lab, t):
    """What the planner has proved to be optimal for sixteen GPUs, and the best
    rings."""
    ranks = places(lab)
    for service, (kind, which) in enumerate((
            ("all_gather", "optimal"), ("all_reduce", "optimal"),
            ("all_reduce", "rings")), 7321):
        _, texts = plan(ranks, kind)
        execute(t, ranks, kind, which, texts[which], service)


@scenario(**OPTIONS, named=True)
def ratios(lab, t):
    """With the throttle on, so slow that processors hardly count, the optimal
    all-gather is as much faster than the best rings as the planner says."""
    ranks = places(lab)
    doc, texts = plan(ranks, "all_gather")
    rates = {which: doc[key]["algbw_gbps"] for which, key
             in (("optimal", "optimal"), ("rings", "ring"))}
    factor = LARGE / (SECONDS * rates["optimal"] * 1e9)
    lab.emu_control({"cmd": "throttle", "factor": factor})
    seen = {which: execute(t, ranks, "all_gather", which, texts[which], service,
                           LARGE)
            for service, which in enumerate(rates, 7331)}
    lab.emu_control({"cmd": "throttle", "factor": 0})
    for which, rate in seen.items():
        t.diag(f"{which}: {rate / factor / 1e9:.1f} of {rates[which]:.1f} GB/s "
               f"(emulated, links at {factor:.3g} of their rates)")
        t.ok(rate < 1.01 * rates[which] * 1e9 * factor,
             f"{which}: not faster than is possible")
    predicted = rates["optimal"] / rates["rings"]
    ratio = seen["optimal"] / seen["rings"]
    t.diag(f"ratio {ratio:.3f}, predicted {predicted:.3f}")
    t.ok(abs(ratio / predicted - 1) < 0.1, "the ratio is within 10 %", ratio)
