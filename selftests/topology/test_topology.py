# SPDX-License-Identifier: GPL-2.0-only
"""`fabrexctl topology` and `plan-collective` on the live fabric: what they say
is what the host's kernel has at that moment, and changes with it."""

import json
import os
import sys
import time
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import fabric
from lab import DEFAULT_TOPOLOGY
from scenario import STOCK, scenario

FIRST, SECOND = "columba1.gpu0", "columba1.gpu5"
# NCCL has classes of its own, so these are left to the writer.
IDENTITY = ("vendor", "device", "subsystem_vendor", "subsystem_device")
DEMO = "/tmp/demo.topo"


def export(guest, more="--format nccl"):
    return fabric.ctl(guest, f"topology export --live {more}")


def devices(text):
    """{bus id: (<pci> of a GPU, the <pci>s around it from the top)}."""
    found = {}

    def walk(element, above):
        for child in element:
            if child.tag == "pci" and child.find("gpu") is not None:
                found[child.get("busid")] = (child, above)
            elif child.tag in ("cpu", "pci"):
                walk(child, above + [child] * (child.tag == "pci"))

    walk(ElementTree.fromstring(text), [])
    return found


def kernel(guest, bdf, up=0):
    """Files of a device, or of the bridge that is so far above it."""
    names = IDENTITY + ("max_link_speed", "max_link_width", "numa_node")
    lines = guest.sh(
        f"d=$(readlink -f /sys/bus/pci/devices/{bdf}); "
        f"for i in $(seq {up}); do d=$(dirname $d); done; basename $d; "
        f"for f in {' '.join(names)}; do cat $d/$f || echo; done"
    ).splitlines()
    return dict(zip(("busid",) + names, lines))


def lesser(files):
    """The string of the lowest speed, the lowest width: as the library."""
    speed = min((f["max_link_speed"] for f in files),
                key=lambda s: float(s.split()[0]))
    return speed, min((f["max_link_width"] for f in files), key=int)


def same_as_kernel(t, guest, text, names):
    """The XML has exactly the GPUs that the kernel has, as it has them."""
    found = devices(text)
    real = fabric.gpus(guest)
    t.equal(sorted(found), sorted(real), f"bus ids of {names}")
    for bdf in real:
        if bdf not in found:
            continue
        pci, above = found[bdf]
        device, port, switch = (kernel(guest, bdf, up) for up in (0, 1, 2))
        t.equal((pci.get("link_speed"), pci.get("link_width")),
                lesser([device, port]), f"{bdf}: link as sysfs has it")
        t.equal([pci.get(key) for key in IDENTITY],
                [device[key] for key in IDENTITY], f"{bdf}: identity")
        t.ok(above and above[0].get("busid") == switch["busid"],
             f"{bdf}: below the partition's switch {switch['busid']}",
             [p.get("busid") for p in above])
        # The emulated switch's port says 2.5 GT/s x1; the fabric knows better.
        t.equal([p.get("link_speed") for p in above[:1]], ["16.0 GT/s PCIe"],
                f"{bdf}: whose link is the fabric's")


def becomes(t, guest, count, what):
    """Export until it has that many GPUs: (the last one, seconds taken)."""
    begun = time.monotonic()
    limit = 20 * guest.patience
    while True:
        done = export(guest)
        took = time.monotonic() - begun
        n = len(devices(done.stdout)) if done.status == 0 else 0
        if n == count or took > limit:
            break
    t.equal(n, count, f"{what}: {count} GPUs in the export")
    return done, took


def often(t, guest, rounds=3):
    """Compose and release one more, and see exports follow, however long that
    takes on a machine that emulates this one."""
    times = {"composed": [], "released": []}
    for n in range(rounds):
        t.need(fabric.compose(guest, SECOND, "a").status == 0, "composed")
        times["composed"].append(becomes(t, guest, 2, f"composed, {n}")[1])
        t.need(fabric.release(guest, SECOND).status == 0, "released")
        times["released"].append(becomes(t, guest, 1, f"released, {n}")[1])
    for what, took in times.items():
        text = ", ".join(f"{s:.2f}" for s in took)
        t.diag(f"{what}: the export has it after {text} s")
    other = fabric.ctl(guest, "list endpoints")
    t.diag(f"for comparison: list endpoints takes {other.seconds:.2f} s, "
           f"version {fabric.ctl(guest, 'version').seconds:.2f} s")


@scenario(hosts=["a", "b"])
def export_follows_composition(lab, t):
    """Composed it is there, released it is gone."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    refused = export(a)
    t.equal(refused.status, 6, "nothing to export: no device")
    t.ok("no GPU is composed to host a" in refused.stderr and
         "fabrexctl compose" in refused.stderr, "and what to do",
         refused.stderr)
    t.need(fabric.compose(a, FIRST, "a").status == 0, "the first one composed")
    one, _ = becomes(t, a, 1, "composed")
    t.ok("its port reports a link of 2.5 GT/s PCIe x1" in one.stderr,
         "a link that is misreported is told of", one.stderr)
    same_as_kernel(t, a, one.stdout, FIRST)
    often(t, a)
    t.need(fabric.compose(a, SECOND, "a").status == 0, "and another one")
    two, _ = becomes(t, a, 2, "composed again")
    same_as_kernel(t, a, two.stdout, f"{FIRST}, {SECOND}")
    refused = export(b)
    t.ok(refused.status == 6 and "host b" in refused.stderr,
         "b has none to export", refused.stderr)
    other = export(b, "--format nccl --host a")
    t.equal(len(devices(other.stdout)) if not other.status else other.stderr,
            2, "b can export a's, without addresses")
    t.need(fabric.release(a, FIRST).status == 0, "the first one released")
    left, _ = becomes(t, a, 1, "released")
    same_as_kernel(t, a, left.stdout, SECOND)
    t.need(fabric.release(a, SECOND).status == 0, "the other one, too")
    t.equal(export(a).status, 6, "nothing is left to export")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b"], kernels=STOCK)
def formats_and_plans(lab, t):
    """What is exported validates, reads back, and can be planned for."""
    a = lab.guest("a")
    fabric.release_all(lab, a)
    with open(DEFAULT_TOPOLOGY, "rb") as f:
        a.put(f.read(), DEMO)
    names = [f"columba1.gpu{n}" for n in (0, 1, 4, 5)]
    t.need(fabric.compose(a, " ".join(names), "a").status == 0, "four GPUs")
    fabric.wait_gpus(a, 4)
    for dialect in ("nccl", "rccl"):
        path = f"/tmp/live-{dialect}.xml"
        made = export(a, f"--format {dialect} --topology {DEMO} -o {path}")
        t.need(made.status == 0, f"{dialect}: export", made.stderr)
        doc = fabric.ctl_json(a, f"topology check {path}")
        t.equal((doc["gpus"], doc["plannable"]), (4, True),
                f"{dialect}: four GPUs that can be planned for")
        t.equal(doc["warnings"], [], f"{dialect}: as the library wants it")
        same_as_kernel(t, a, a.sh(f"cat {path}"), dialect)
    live = fabric.ctl_json(a, f"topology check --live --topology {DEMO}")
    t.equal(live["gpus"], 4, "the live fabric itself")
    topo = export(a, "--format topo -o /tmp/live.topo")
    t.need(topo.status == 0, "as a topology file", topo.stderr)
    doc = fabric.ctl_json(a, "topology check /tmp/live.topo")
    t.equal(doc["gpus"], 4, "which has the same GPUs")
    plans = {}
    for source in ("live", "/tmp/live.topo"):
        plans[source] = fabric.ctl_json(
            a, f"plan-collective {source} --collective all_gather")
    for part in ("bound", "optimal"):
        t.equal(plans["live"][part]["busbw_gbps"],
                plans["/tmp/live.topo"][part]["busbw_gbps"],
                f"{part}: the live fabric plans like its file")
    t.ok(plans["live"]["optimal"]["busbw_gbps"] > 0, "at some speed",
         json.dumps(plans["live"]["optimal"]))
    meshed = fabric.ctl_json(
        a, f"plan-collective live --collective all_gather --topology {DEMO}")
    t.ok(meshed["optimal"]["busbw_gbps"] >
         plans["live"]["optimal"]["busbw_gbps"],
         "a mesh that the file tells of makes it faster")
    drawn = fabric.ctl(a, "topology draw --live")
    t.ok(drawn.status == 0 and drawn.stdout.rstrip().endswith("</svg>"),
         "and it can be drawn", drawn.stderr)
    fabric.release_all(lab, a)
