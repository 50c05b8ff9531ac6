# SPDX-License-Identifier: GPL-2.0-only
"""Hosts that the topology file does not call managers change nothing, and
let go of what they have."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import fabric
from scenario import scenario

# a is a manager and has two ports, b is none.
TOPOLOGY = os.path.join(HERE, "..", "gpu", "paths.topo")
DENIED = 5
EP, OTHER = "columba1.gpu0", "columba1.gpu1"


def refused(t, guest, args):
    got = fabric.ctl(guest, args)
    t.equal(got.status, DENIED, f"{args}: refused")
    t.ok("b.0: not a manager; ask on host a" in got.stderr,
         "and the message says where to ask", got.stdout + got.stderr)


@scenario(hosts=["a", "b"], topology=TOPOLOGY)
def only_managers_change(lab, t):
    """The switch refuses what a host asks for that is no manager."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    ports = {p["name"]: p["manager"]
             for p in fabric.ctl_json(b, "list ports")["ports"]
             if p["kind"] == "host"}
    t.equal(ports, {"draco1:1": True, "draco1:2": True, "draco1:3": False}
            if "draco1:1" in ports else
            {"a.0": True, "a.1": True, "b.0": False}, "b sees who is one")
    t.need(fabric.compose(a, EP, "a.0").status == 0, "a composes")
    before = {n: r["port"] for n, r in fabric.endpoints(b).items()}
    refused(t, b, f"compose {OTHER} --to b")
    refused(t, b, f"compose {OTHER} --to a")
    refused(t, b, f"release {EP}")
    refused(t, b, f"release {EP} --force")
    refused(t, b, f"move {EP} --to b --force")
    for action in ("disable", "reset", "enable"):
        refused(t, b, f"port a.0 {action} --force")
    refused(t, b, "port draco1:4 disable --force")
    t.equal({n: r["port"] for n, r in fabric.endpoints(b).items()}, before,
            "nothing has changed")
    t.equal(len(fabric.gpus(a)), 1, "a has its GPU")
    t.need(fabric.compose(a, OTHER, "b").status == 0, "a composes for b")
    t.equal(len(fabric.wait_gpus(b, 1)), 1, "b has it")
    refused(t, b, f"release {OTHER}")
    got = fabric.release(a, OTHER)
    t.equal(got.status, 0, "asked by a, b lets it go")
    fabric.release_all(lab, a)
