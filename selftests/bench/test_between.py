# SPDX-License-Identifier: GPL-2.0-only
"""The fabric and an Ethernet between the same hosts: every way to move bytes
that make bench-lab compares does move them, and says a figure."""

import math

import install
import peers
from scenario import scenario

SIZE = 4 << 20
BRIEF = 0.2

OPTIONS = {"hosts": ["a", "b"], "layer": peers.LAYER, "network": True,
           "kernels": ("7.2", "6.12")}


def wire_bytes(guest, peer):
    """What has left a guest on the wire to a peer."""
    return int(guest.sh(f"cat /sys/class/net/to-{peer}/statistics/tx_bytes"))


@scenario(**OPTIONS)
def bytes_arrive_by_each(lab, t):
    """Contents compared at the other end: fabric, RoCEv2, TCP."""
    a, b = lab.guest("a"), lab.guest("b")
    t.equal(b.sh("getent ahostsv4 a | awk 'NR == 1 { print $1 }'"),
            lab.address("a"), "hosts know each other's addresses")
    before = wire_bytes(a, "b")
    with peers.serving(b, "fabrex-perf server --once --quiet", ends=True):
        out = a.sh(f"fabrex-perf transfer --peer b --size {SIZE} --quiet")
    t.ok(": equal" in out, "by the fabric, checksums compared", out)
    t.ok(wire_bytes(a, "b") - before < SIZE // 100,
         "nothing of that was on the Ethernet")
    peers.prepare(lab)
    with peers.serving(b, "ibv_rc_pingpong -c -g 1 -s 65536 -n 64", 18515,
                       ends=True) as server:
        a.sh("ibv_rc_pingpong -c -g 1 -s 65536 -n 64 b")
    t.equal(server.result.status, 0, "by RoCEv2, contents validated")
    t.ok(wire_bytes(a, "b") - before > 64 * 65536, "on the Ethernet")
    a.sh(f"head -c {SIZE} /dev/urandom >/tmp/bytes")
    # Its standard input does not end: nc would hang up then.
    with peers.serving(b, "mkfifo /tmp/open; busybox nc -l -p 4000 <>/tmp/open"
                       " | sha256sum", 4000, ends=True) as server:
        a.sh("cat /tmp/bytes >/dev/tcp/b/4000")
    t.equal(server.result.stdout.split()[:1],
            a.sh("sha256sum </tmp/bytes").split()[:1], "by TCP, unchanged")


@scenario(**OPTIONS, named=True)
def every_way_says_a_figure(lab, t):
    """What make bench-lab does, in brief, and with two hosts."""
    peers.prepare(lab)
    peers.prepare_group(lab)
    for contest in peers.contests() + peers.group_contests(2):
        for way in contest.ways:
            value = way.measure(lab, BRIEF)
            t.ok(math.isfinite(value) and value > 0,
                 f"{contest.what}: {way.tool}", repr(value))
            t.diag(f"{way.name}: {value:.1f} {contest.unit} (emulated)")


@scenario(**OPTIONS, named=True)
def wires_outlive_hosts(lab, t):
    """Whichever end of the wire loses power, the other need not restart."""
    for name, other in (("a", "b"), ("b", "a")):
        guest = lab.guest(name)
        guest.restart()
        found = lab.guest(other).run(
            f"for i in $(seq 100); do busybox ping -c 1 -W 1 {name} && exit 0; "
            "sleep 0.2; done; exit 1")
        t.equal(found.status, 0, f"{other} reaches {name} after its restart")
        install.install([guest])
