# SPDX-License-Identifier: GPL-2.0-only
"""The other host is not a peer but an enemy that writes what it likes into the inbox.
(What its root could do past the inbox, where no IOMMU keeps it, is another matter:
docs/ntb.md.)"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import upstream
from ports import SWITCHTEC, Side, joined, load, ntb_scenario, sees, unload
from puppet import WRITE, Puppet

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile")
SECONDS = int(os.environ.get("FABREX_FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("FABREX_FUZZ_SEED", "1"))
READY = 0x62746e66 ^ 2
SIZE = 1 << 16


@ntb_scenario()
def writes_into_the_inbox(lab, t):
    """Random and crafted hellos, requests and bytes: no process of the other host
    notices, no memory changes, and an honest peer is welcome afterwards."""
    a, b = joined(lab, t, SWITCHTEC)
    a.allow_log("fabrex_ntb")
    own, other = Puppet(a), Puppet(a)
    own.mr(0, SIZE)
    own.set(0, 0, SIZE, 0xa5)
    own.queue(0)
    rkey = other.mr(0, SIZE)
    other.queue(0)
    unload(b)
    upstream.load(b, *SWITCHTEC.drivers, "ntb_tool")
    side = Side(b)
    side.link(True)
    t.need(side.wait_link(True), "b has a link", b.dmesg()[-2000:])
    side.write("peer0/mw_trans0", SIZE)
    side.write("peer0/peer_mw_trans0", f"0:{SIZE}")
    side.write("peer0/spad0", READY)
    with open(PROGRAM, "rb") as f:
        b.put(f.read(), "/run/hostile")
    run = b.run(f"python3 /run/hostile {side.tool} {SECONDS} {SEED}",
                SECONDS + 500)
    t.diag(f"seed {SEED}: {run.stdout.strip()} (taken for a peer, requests)")
    taken, requests = map(int, run.stdout.split())
    t.ok(taken > 1 and requests > 100, "it got as far as requests",
         run.stdout + run.stderr + a.dmesg()[-2000:])
    # Linux' ntb_tool does not survive being unloaded with windows.
    side.write("peer0/mw_trans0", 0)
    side.write("peer0/peer_mw_trans0", "0:0")
    t.ok(own.all(0, 0, SIZE, 0xa5), "memory of a is as it was, every byte")
    t.equal(own.state(0)[0], 0, "its queue works")
    t.equal(own.op(0, WRITE, own.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            "within the port, too")
    load(b, SWITCHTEC)
    t.need(sees(a, "b", 120), "an honest peer", a.dmesg()[-3000:])
    peer = Puppet(b)
    again = peer.mr(0, SIZE)
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, again, 0, SIZE).status, "OK",
            "can be written to")
    for p in (own, other, peer):
        p.close()
