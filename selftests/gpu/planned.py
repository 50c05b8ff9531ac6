# SPDX-License-Identifier: GPL-2.0-only
"""Schedules of the planner, executed by ranks on GPUs: what each link of a mesh
and each uplink carries, and how fast they are with links at their rates."""

import collections
import json

from gpulab import RUNTIME, fabric
from schedules import divisor, hops_of
from transfer import traffic

GPUS = 8		# of a box
ITERATIONS = 1
# An iteration and one that is checked, out of place and in place.
OPERATIONS = 2 * (ITERATIONS + 1)
SIZE = 1 << 20		# of an operation, about
LARGE = 64 << 20	# with the throttle on,
SECONDS = 40.0		# and how long it takes then
Place = collections.namedtuple("Place", "guest gpu endpoint port")


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
    if "--check 0" not in options:
        t.equal(doc["wrong"], 0, f"{what}: contents")
    return doc, [result.stderr for result in results]


def plan(ranks, kind, topology):
    """What the planner of the first rank's host says, and the texts of the optimal
    schedule and of that of the best rings, which all hosts get."""
    rows = ", ".join(f'{{ endpoint = "{rank.endpoint}"; '
                     f'port = "{rank.port}"; }}' for rank in ranks)
    with open(topology) as f:
        text = f"{f.read().split('bindings =')[0]}bindings = ( {rows} );"
    guests = {rank.guest.name: rank.guest for rank in ranks}.values()
    first = ranks[0].guest
    first.sh(f"cat > /tmp/bound.topo << 'END'\n{text}\nEND")
    doc = fabric.ctl_json(
        first, f"plan-collective /tmp/bound.topo --collective {kind} "
        f"--schedule /tmp/{kind}.optimal --ring-schedule /tmp/{kind}.rings",
        timeout=300)
    texts = {which: first.sh(f"cat /tmp/{kind}.{which}")
             for which in ("optimal", "rings")}
    for guest in guests:
        for which, schedule in texts.items():
            if guest is not first:
                guest.sh(f"cat > /tmp/{kind}.{which} << 'END'\n{schedule}\nEND")
    assert doc["ranks"] == [rank.endpoint for rank in ranks]
    return doc, texts


def planned(ranks, hops, uplinks):
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


def of_gpus(way, uplinks):
    """Is it a link of a mesh, or an uplink?"""
    ends = [".gpu" in end for end in way]
    return all(ends) or not any(ends) and bool(set(way) & set(uplinks))


def execute(t, ranks, kind, which, text, service, uplinks):
    """Every link carries what is planned, and contents are right."""
    unit = divisor(text, len(ranks))
    size = unit * max(1, SIZE // unit)
    before = traffic(ranks[0].guest)
    doc, _ = perform(t, ranks, f"{kind}, {which}",
                     f"{kind} --memory hip --schedule /tmp/{kind}.{which} "
                     f"--size {size} --iterations {ITERATIONS} "
                     f"--bootstrap fabric:{service}")
    after = traffic(ranks[0].guest)
    moved = {way: n - before[way] for way, n in after.items()
             if n != before[way] and of_gpus(way, uplinks)}
    hops = hops_of(text, len(ranks), size)
    wanted = planned(ranks, {way: OPERATIONS * n for way, n in hops.items()},
                     uplinks)
    t.equal(moved, wanted, f"{kind}, {which}: {len(wanted)} links carry what is"
            " planned, to the byte")
    row = doc["rows"][0]["out_of_place"]
    t.diag(f"{kind}, {which}: {size} bytes in {row['time_us'] / 1e6:.1f} s "
           "(emulated)")


def rate_of(t, ranks, kind, which, text, service):
    """Bytes a second of an operation, which is not checked."""
    unit = divisor(text, len(ranks))
    size = unit * (LARGE // unit)
    doc, _ = perform(t, ranks, f"{kind}, {which}",
                     f"{kind} --memory hip --schedule /tmp/{kind}.{which} "
                     f"--size {size} --iterations {ITERATIONS} --check 0 "
                     f"--bootstrap fabric:{service}")
    row = doc["rows"][0]
    seconds = [row[place]["time_us"] / 1e6
               for place in ("out_of_place", "in_place")]
    t.diag(f"{which}: {size} bytes in {seconds[0]:.1f} and {seconds[1]:.1f} s "
           "(emulated)")
    return size / min(seconds)


def compare_rates(lab, t, ranks, topology, service):
    """With the throttle on, so slow that processors hardly count, the optimal
    all-gather is as much faster than the best rings as the planner says. Returns
    its rate in GB/s at the links' full rates, and what is planned."""
    doc, texts = plan(ranks, "all_gather", topology)
    rates = {which: doc[key]["algbw_gbps"] for which, key
             in (("optimal", "optimal"), ("rings", "ring"))}
    factor = LARGE / (SECONDS * rates["optimal"] * 1e9)
    lab.emu_control({"cmd": "throttle", "factor": factor})
    seen = {which: rate_of(t, ranks, "all_gather", which, texts[which], service)
            / factor / 1e9 for service, which in enumerate(rates, service)}
    lab.emu_control({"cmd": "throttle", "factor": 0})
    for which, rate in seen.items():
        t.diag(f"{which}: {rate:.1f} of {rates[which]:.1f} GB/s "
               f"(emulated, links at {factor:.3g} of their rates)")
        t.ok(rate < 1.01 * rates[which],
             f"{which}: not faster than is possible")
    predicted = rates["optimal"] / rates["rings"]
    ratio = seen["optimal"] / seen["rings"]
    t.diag(f"ratio {ratio:.3f}, predicted {predicted:.3f}")
    t.ok(abs(ratio / predicted - 1) < 0.1, "the ratio is within 10 %", ratio)
    return seen["optimal"], rates["optimal"]
