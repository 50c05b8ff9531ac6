# SPDX-License-Identifier: GPL-2.0-only
"""Collectives on GPUs of two hosts: inside a host over the mesh, by copies of
the runtime, between hosts over the fabric. What each link carries is what the
schedule plans, to the byte."""

import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import RUNTIME, bound, fabric, load, wait_devices
from scenario import scenario
from schedules import hops_of
from transfer import traffic

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "mesh_coll.topo")
BOXES = {"near": "draco1", "far": "draco2"}	# and the switches next to them
HOSTS = {"a": "near", "b": "far"}
GPUS = 3			# of each host
# Shards and chunks of six ranks, with weights of 9 in all, have whole elements.
SIZE = 6 * 9 * 4 << 15
# Two iterations and one that is checked, out of place and in place.
OPERATIONS = 2 * 3
# Messages between hosts, on the link between the switches: headers and credits
# of 72 and 8 bytes, and probes, the more the longer it takes.
CONTROL = 1 << 20
Place = collections.namedtuple("Place", "guest gpu endpoint")


def places(lab):
    """GPUS of each host, in the order of their numbers."""
    found = []
    for host, box in HOSTS.items():
        guest = lab.guest(host)
        load(guest)
        have = len(bound(guest, host))	# what another scenario has composed
        for n in range(GPUS):
            if n >= have:
                fabric.compose(guest, f"{box}.gpu{n}", host, check=True)
            wait_devices(guest, max(n + 1, have))
            found.append(Place(guest, n, f"{box}.gpu{n}"))
    return found


def perform(t, ranks, kind, service, how, env=None):
    """The collective on all of them; what each rank has said on stderr."""
    args = (f"{kind} --memory hip --warmup 0 {how} --timeout 120 --world "
            f"{len(ranks)} --bootstrap fabric:{service} --json "
            f"--iterations 2 --size {SIZE}")
    commands = [rank.guest.start_command(
        f"fabrex-perf {args} --rank {number}",
        env={**RUNTIME, "HIP_VISIBLE_DEVICES": str(rank.gpu),
             "FABREX_DEBUG": "path,memory", **(env or {})})
        for number, rank in enumerate(ranks)]
    results = [command.wait(600) for command in commands]
    t.need(not any(result.status for result in results), f"{kind}: all ranks",
           "".join(f"rank {number}: status {result.status}: {result.stderr}\n"
                   for number, result in enumerate(results)))
    t.equal(json.loads(results[0].stdout)["wrong"], 0,
            f"{kind}: contents on GPUs")
    return [result.stderr for result in results]


def counted(t, ranks, *args):
    """{(from, to): bytes} on links that have carried something; stderr."""
    before = traffic(ranks[0].guest)
    said = perform(t, ranks, *args)
    after = traffic(ranks[0].guest)
    return {way: n - before[way] for way, n in after.items()
            if n != before[way]}, said


def is_mesh(way):
    return all(".gpu" in end for end in way)


def box_of(endpoint):
    return endpoint.split(".")[0]


def planned(ranks, hops):
    """What GPUs put on links: on those of meshes, and in each direction on the
    uplinks of a box together. @hops: {(rank, rank): bytes}"""
    mesh, uplinks = collections.Counter(), collections.Counter()
    for (one, other), n in hops.items():
        way = (ranks[one].endpoint, ranks[other].endpoint)
        boxes = tuple(box_of(end) for end in way)
        if boxes[0] == boxes[1]:
            mesh[way] += n
        else:
            uplinks[boxes[0], "out"] += n
            uplinks[boxes[1], "in"] += n
    return dict(mesh), dict(uplinks)


def seen_on_uplinks(moved):
    seen = collections.Counter()
    for (one, other), n in moved.items():
        for box, switch in BOXES.items():
            if one == box and other.startswith(switch):
                seen[box, "out"] += n
            if other == box and one.startswith(switch):
                seen[box, "in"] += n
    return dict(seen)


def check(t, ranks, kind, service, how, hops):
    hops = {way: OPERATIONS * n for way, n in hops.items()}
    moved, said = counted(t, ranks, kind, service, how)
    mesh, uplinks = planned(ranks, hops)
    t.equal({way: n for way, n in moved.items() if is_mesh(way)}, mesh,
            f"{kind}: links of meshes carry what is planned, to the byte")
    t.equal(seen_on_uplinks(moved), uplinks,
            f"{kind}: and so do uplinks")
    check_switches(t, kind, moved, uplinks)
    return said


def check_switches(t, kind, moved, uplinks):
    """Besides what GPUs send, the link between the switches carries messages
    between hosts. How many bytes more of these one host sends than the other
    does is known from the links of either, where no GPU's bytes pass."""
    control = []
    for one, other in ("near", "far"), ("far", "near"):
        way = (f"{BOXES[one]}:6", f"{BOXES[other]}:6")
        control.append(moved[way] - uplinks[one, "out"])
        t.diag(f"{kind}: {way[0]} > {way[1]}: {uplinks[one, 'out']} between "
               f"GPUs and {control[-1]} of messages between hosts (emulated)")
        t.ok(0 <= control[-1] <= CONTROL, "between switches, headers besides",
             control)
    hosts = [moved[host, f"{host}.0"] - moved[f"{host}.0", host]
             for host in HOSTS]
    more = control[0] - control[1]
    t.equal(hosts, [more, -more], f"{kind}: the rest is the messages of hosts,"
            " to the byte")


def ring(count, share):
    """Every rank sends @share of SIZE to the next one."""
    return {(rank, (rank + 1) % count): SIZE * share[0] // share[1]
            for rank in range(count)}


@scenario(hosts=list(HOSTS), topology=TOPOLOGY, kernels=("7.2",))
def rings(lab, t):
    """Two GPUs of each host in a ring, and all three."""
    found = places(lab)
    four = [place for place in found if place.gpu < 2]
    how = "--algorithms all:ring"
    said = check(t, four, "all_reduce", 7201, how, ring(4, (6, 4)))
    t.equal(["the runtime copies it" in text for text in said],
            [True, False] * 2, "ranks say that they copy inside a host")
    t.equal(["the fabric writes it" in text for text in said],
            [False, True] * 2, "and that the fabric writes to the other one")
    check(t, four, "reduce_scatter", 7202, how, ring(4, (3, 4)))
    moved, said = counted(t, four, "all_reduce", 7203, how,
                          {"FABREX_TEST_FAIL": "hipIpcOpenMemHandle=1"})
    t.ok(not any(is_mesh(way) for way in moved),
         "without handles nothing goes over the mesh", moved)
    t.ok(all("the fabric writes it" in text for text in said),
         "and ranks say why")
    check(t, found, "all_gather", 7204, how, ring(6, (5, 6)))


# ---- planned schedules ------------------------------------------------------

def bindings():
    rows = ", ".join(f'{{ endpoint = "{box}.gpu{n}"; port = "{host}.0"; }}'
                     for host, box in HOSTS.items() for n in range(GPUS))
    return f"bindings = ( {rows} );"


def write(guest, path, text):
    guest.sh(f"cat > {path} << 'END'\n{text}\nEND")


def plan(lab, kind):
    """(endpoints by rank, text of the optimal schedule), planned by one host and
    written at both."""
    a, topo, path = lab.guest("a"), "/tmp/planned.topo", f"/tmp/{kind}.sched"
    with open(TOPOLOGY) as f:
        write(a, topo, f.read() + bindings())
    doc = fabric.ctl_json(a, f"plan-collective {topo} --collective {kind} "
                          f"--no-prediction --schedule {path}")
    text = a.sh(f"cat {path}")
    write(lab.guest("b"), path, text)
    return doc["ranks"], text, path


@scenario(hosts=list(HOSTS), topology=TOPOLOGY, kernels=("7.2",))
def planned_schedules(lab, t):
    """What the planner has proved to be optimal for six GPUs in two boxes."""
    by_name = {place.endpoint: place for place in places(lab)}
    for service, kind in enumerate(("all_gather", "all_reduce"), 7211):
        names, text, path = plan(lab, kind)
        ranks = [by_name[name] for name in names]
        hops = hops_of(text, len(ranks), SIZE)
        t.diag(f"{kind}: {len(hops)} pairs of ranks")
        check(t, ranks, kind, service, f"--schedule {path}", hops)
