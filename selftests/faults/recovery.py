# SPDX-License-Identifier: GPL-2.0-only
"""What the scenarios about recovery share: a port that works again."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
from puppet import WRITE, Puppet, counts, wait_counts

SIZE = 1 << 16
# Far beyond what the driver takes (6 s until it gives the controller up).
HANG = int(os.environ.get("FABREX_HANG", "240"))


def pair(lab):
    """a writes to b; the key."""
    a, b = Puppet(lab.guest("a")), Puppet(lab.guest("b"))
    a.mr(0, SIZE)
    a.fill(0, 0, SIZE, 1)
    a.queue(0)
    b.queue(0)
    return a, b, b.mr(0, SIZE)


def works_again(lab, t, what):
    """Traffic as on the first day, and nothing left over."""
    t.need(fabric.wait_port(lab.guest("b"), HANG), f"{what}: b's port works",
           lab.guest("b").dmesg()[-2500:])
    a, b, rkey = pair(lab)
    t.ok(fabric.wait_peer(a, "b", True), f"{what}: a sees b")
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            f"{what}: traffic after")
    t.ok(b.same(0, 0, SIZE, 1), f"{what}: with all bytes")
    a.close()
    b.close()
    guest = lab.guest("b")
    zero = dict.fromkeys(counts(guest), 0)
    t.equal(wait_counts(guest, zero), zero, f"{what}: nothing is left over")
    leak = guest.kmemleak()
    t.ok(not leak, f"{what}: no leak", leak)
