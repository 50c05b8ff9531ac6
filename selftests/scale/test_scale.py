# SPDX-License-Identifier: GPL-2.0-only
"""A fabric of 16 switches, 64 hosts and 1,024 endpoints, seen by one guest."""

import json
import os

import space
from scenario import scenario

SWITCHES, HOSTS, APPLIANCES, GPUS = 16, 64, 128, 8
TOPOLOGY = os.path.join(space.TREE, "build", "scale.topo")


def text():
    """Each switch: 4 hosts, 8 appliances with 2 uplinks, ISLs in a ring."""
    def many(items):
        return "(\n  " + ",\n  ".join(items) + "\n);\n"

    switches = many(f'{{ name = "draco{n}"; ports = 24; }}'
                    for n in range(1, SWITCHES + 1))
    isls = many(f'{{ a = "draco{n}:23"; b = "draco{n % SWITCHES + 1}:24"; }}'
                for n in range(1, SWITCHES + 1))
    hosts = many(f'{{ name = "h{n}"; manager = {"true" if n == 0 else "false"};'
                 f' ports = ( "draco{n // 4 + 1}:{n % 4 + 1}" ); }}'
                 for n in range(HOSTS))
    appliances = many(
        f'{{ name = "columba{n}"; kind = "cascade"; uplinks = ( '
        f'"draco{n // 8 + 1}:{5 + n % 8 * 2}", '
        f'"draco{n // 8 + 1}:{6 + n % 8 * 2}" ); endpoints = ( {{ class = '
        f'"gpu"; count = {GPUS}; vram = "1M"; }} ); }}'
        for n in range(APPLIANCES))
    return (f'fabric = "large";\nswitches = {switches}isls = {isls}'
            f'hosts = {hosts}appliances = {appliances}')


os.makedirs(os.path.dirname(TOPOLOGY), exist_ok=True)
with open(TOPOLOGY, "w") as f:
    f.write(text())


@scenario(hosts=["h0"], topology=TOPOLOGY)
def large_fabric(lab, t):
    """Listed and dumped whole; filters do not dump all."""
    host = lab.guest("h0")
    host.run("fabrexctl list fports")	# page the program in
    whole = host.run("fabrexctl --json list", timeout=60)
    t.need(whole.status == 0, "list --json", whole.stderr)
    t.diag(f"list --json: {whole.seconds:.2f} s, {len(whole.stdout)} bytes")
    json.loads(whole.stdout)
    for what, count in (("endpoints", APPLIANCES * GPUS), ("hosts", HOSTS),
                        ("switches", SWITCHES)):
        got = host.run(f"fabrexctl --json list {what}", timeout=60)
        doc = json.loads(got.stdout)
        rows = doc if isinstance(doc, list) else doc[what]
        t.equal(len(rows), count, f"{what} are all there")
        t.diag(f"{what}: {got.seconds:.2f} s")
    tree = host.run("fabrexctl list", timeout=60)
    t.diag(f"tree: {tree.seconds:.2f} s")
    t.equal(tree.status, 0, "the tree")
    t.program(host, "netlink-dump")
    few = received(host, "list endpoints --host h0")
    many = received(host, "list endpoints")
    t.diag(f"bytes received: filtered {few}, whole {many}")
    t.ok(few < many / 4, "a filtered query does not dump everything")


def received(host, args):
    """Bytes that a fabrexctl command takes from its netlink sockets."""
    out = host.sh("strace -e trace=recvmsg,recvfrom -e signal=none -o /tmp/t "
                  f"fabrexctl --json {args} >/dev/null; "
                  r"sed -n 's/.*MSG_PEEK.*//; s/.* = \([0-9]*\)$/\1/p' /tmp/t",
                  timeout=60)
    return sum(map(int, out.split()))
