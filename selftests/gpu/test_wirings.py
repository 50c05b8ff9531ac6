# SPDX-License-Identifier: GPL-2.0-only
"""The five wirings of docs/planner.md, each with one server that has all sixteen
GPUs of two boxes: what is planned is executed, every link carries what is planned,
to the byte, and is as fast, and the five in the same order of speed, as planned.
Too long for make check: each runs where it is named."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import machine
import space
import topology
from gpulab import fabric, load, wait_devices
from planned import GPUS, Place, compare_rates, execute, plan
from scenario import scenario

TOPOLOGIES = os.path.join(space.TREE, "topologies")
BOXES = ("columba1", "columba2")
NAMES = ("1s-1rp-std-cascade", "1s-2rp-split-cascade", "1s-2rp-std-cascade",
         "2s-2rp-split-flat", "2s-2rp-std-flat")
measured = {}		# (rate that was seen, rate that is planned), by name


def declare(name, prefix, run):
    """The scenario of one wiring; all of one share a guest."""
    path = os.path.join(TOPOLOGIES, f"{name}.topo")

    def function(lab, t):
        run(lab, t, name, path)

    function.__name__ = prefix + name.replace("-", "_")
    function.__doc__ = f"topologies/{name}.topo"
    globals()[function.__name__] = scenario(
        hosts=["server"], topology=path, kernels=("7.2",), cpu=machine.AMD_CPU,
        memory=3072, named=True, timed=prefix == "rated_")(function)


def wired(lab, t, name, path):
    """What is planned is executed, to the byte."""
    ranks = places(lab)
    uplinks = read_uplinks(path)
    for service, (kind, which) in enumerate((
            ("all_gather", "optimal"), ("all_reduce", "optimal"),
            ("all_reduce", "rings")), 7401):
        doc, texts = plan(ranks, kind, path)
        t.diag(f"{name}, {kind}: optimal {doc['optimal']['algbw_gbps']}, "
               f"rings {doc['ring']['algbw_gbps']} GB/s (planned)")
        execute(t, ranks, kind, which, texts[which], service, uplinks)


def rated(lab, t, name, path):
    """How fast, beside the best rings and beside the wirings before it."""
    seen, wanted = compare_rates(lab, t, places(lab), path, 7411)
    for other, (rate, planned) in measured.items():
        if abs(wanted / planned - 1) < 0.01:
            t.ok(abs(seen / rate - 1) < 0.1, f"{name} is as fast as {other}",
                 f"{seen:.1f} and {rate:.1f} GB/s")
        else:
            t.equal(seen > rate, wanted > planned,
                    f"{name} beside {other}: the order is as planned")
    measured[name] = (seen, wanted)


def read_uplinks(path):
    """{box: its uplinks}"""
    with open(path) as f:
        text = topology.strip_comments(f.read())
    found = {}
    for group in topology.groups(text, "appliances"):
        words = group.split('"')[1::2]
        found[words[0]] = tuple(w for w in words if ":" in w)
    return found


def places(lab):
    """All GPUs, which the server has from the beginning; the runtime counts them
    in the order of their addresses."""
    server = lab.guest("server")
    load(server)
    wait_devices(server, 2 * GPUS)
    rows = {}
    # Each port knows the devices behind itself.
    for port in fabric.ctl_json(server, "list fports")["fports"]:
        doc = fabric.ctl_json(server, f"--fport {port['name']} list endpoints")
        rows |= {row["name"]: row for row in doc["endpoints"]
                 if row["pci_name"]}
    order = sorted((row["pci_name"], name) for name, row in rows.items()
                   if ".gpu" in name)
    index = {name: n for n, (_, name) in enumerate(order)}
    names = [f"{box}.gpu{n}" for box in BOXES for n in range(GPUS)]
    return [Place(server, index[name], name, rows[name]["port"])
            for name in names]


for _name in NAMES:
    declare(_name, "wired_", wired)
    declare(_name, "rated_", rated)
