# SPDX-License-Identifier: GPL-2.0-only
"""The data path: in one host through the switch, between hosts, without
system calls, and how fast."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
from puppet import (ALL, CHECK, FETCH_ADD, READ, RECV, RECV_IMM, REMOTE_READ,
                    SEND, WRITE, WRITE_IMM, Puppet)
from scenario import scenario

SIZE = 1 << 20


@scenario(hosts=["a", "b", "c"])
def operations(lab, t):
    """Each operation, each error, ordering, queues; one program per host."""
    for host, programs in (("a", ("ops", "errors", "ops-32", "errors-32")),
                           ("b", ("queues", "order")),
                           ("c", ("atomics", "datagram", "window", "guess"))):
        for program in programs:
            t.program(lab.guest(host), f"dma-{program}")


@scenario(hosts=["a", "b", "c"])
def between_hosts(lab, t):
    """Bytes go from host to host, and nowhere they must not."""
    a, b = Puppet(lab.guest("a")), Puppet(lab.guest("b"))
    a.mr(0, SIZE)
    rkey = b.mr(0, SIZE)
    b.set(0, 0, SIZE, 0xa5)
    a.queue(0)
    _, dest = b.queue(0)
    a.fill(0, 0, SIZE, 5)
    done = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE, flags=CHECK)
    t.equal(done.status, "OK", "1 MiB written from a to b")
    t.ok(b.same(0, 0, SIZE, 5), "every byte arrived on b")
    a.set(0, 0, SIZE, 0)
    t.equal(a.op(0, READ, b.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            "read back")
    t.ok(a.same(0, 0, SIZE, 5), "every byte is back on a")
    a.op(0, WRITE_IMM, b.peer, 0, 0, rkey, 0, 64, imm=77, dest=dest)
    got = b.poll(0)
    t.ok(got and got.opcode == RECV_IMM and got.imm == 77
         and got.peer == a.peer, "immediate arrives on b")
    a.op(0, SEND, b.peer, 0, 0, 0, 0, 100, imm=3, dest=dest)
    got = b.poll(0)
    t.ok(got and got.opcode == RECV and got.length == 100,
         "datagram arrives on b")
    before = b.ask("peek", 0, 0)[0]
    t.equal(a.op(0, FETCH_ADD, b.peer, 0, 8, rkey, 0, 5).status, "OK",
            "fetch-add")
    t.equal(b.ask("peek", 0, 0)[0], (before + 5) % 2**64, "b's word grew")
    for p in (a, b):
        p.close()


@scenario(hosts=["a", "b", "c"])
def refused_between_hosts(lab, t):
    """Wrong key, key of another process or port, peer, range, right: the
    right error, and b's memory as it was."""
    a, b, c = (Puppet(lab.guest(n)) for n in "abc")
    for p in (a, c):
        p.mr(0, SIZE)
        p.fill(0, 0, SIZE, 1)
        p.queue(0)
    rkey = b.mr(0, SIZE)
    b.mr(3, SIZE)
    b.set(0, 0, SIZE, 0xa5)
    only_a = b.mr_for(1, 4096, a.peer)
    read_only = b.mr(2, 4096, REMOTE_READ)
    other = Puppet(lab.guest("b"))	# another process on b
    foreign = other.mr(0, 4096)
    cases = [
        ("a key with one wrong bit", rkey ^ 1 << 41, 0, "RKEY"),
        ("key 0", 0, 0, "RKEY"),
        ("a's own key used at b", a.mr(5, 4096), 0, "RKEY"),
        ("past the end", rkey, SIZE - 32, "RBOUNDS"),
        ("far past the end", rkey, 1 << 63, "RBOUNDS"),
        ("a region without the right", read_only, 0, "RACCESS"),
    ]
    for what, key, offset, status in cases:
        t.equal(a.op(0, WRITE, b.peer, 0, 0, key, offset, 64).status, status,
                what)
    t.equal(c.op(0, WRITE, b.peer, 0, 0, only_a, 0, 64).status, "RPEER",
            "c where only a may write")
    t.equal(a.op(0, WRITE, b.peer, 0, 0, only_a, 0, 64).status, "OK",
            "a may")
    t.ok(b.all(0, 0, SIZE, 0xa5), "b's region is untouched, every byte")
    t.ok(b.all(2, 0, 4096, 0), "so is the read-only one")
    # rkeys are capabilities: whoever is told one may use it; but a process
    # cannot use another's memory as its local side.
    t.equal(a.op(0, WRITE, b.peer, 0, 0, foreign, 0, 64).status, "OK",
            "the other process's key, once told, works")
    b.queue(7)
    for p in (a, b, c, other):
        p.close()


@scenario(hosts=["a", "b", "c"])
def revoked_between_hosts(lab, t):
    """A deregistered or dead process's memory is out of reach at once."""
    a, b = Puppet(lab.guest("a")), Puppet(lab.guest("b"))
    a.mr(0, 4096)
    a.queue(0)
    rkey = b.mr(0, 4096)
    a.ask("window", 0, b.peer, rkey, 0, 4096, 6)
    a.ask("store", 0, 8, 99)
    t.equal(a.ask("load", 0, 8), [99], "a window reaches b")
    b.ask("mrdel", 0)
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "RKEY",
            "deregistered: refused")
    a.ask("store", 0, 8, 5)
    t.equal(a.ask("load", 0, 8), [0xffffffff], "the window is blind")
    t.equal(b.ask("peek", 0, 8)[0] & 0xffffffff, 99, "b's memory is as it was")
    event = a.wait_event("WINDOW_FAULT")
    t.ok(event, "and a is told")
    rkey = b.mr(1, 4096)
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "OK",
            "a new region works")
    b.kill()
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "RKEY",
            "its process was killed: refused")
    a.close()


@scenario(hosts=["a", "b", "c"])
def no_system_calls(lab, t):
    """strace -c of posting and polling: nothing depends on the number of
    operations."""
    a = lab.guest("a")

    def calls(n):
        out = a.run(f"strace -f -c -o /tmp/calls dma-nosyscall {n} && "
                    "cat /tmp/calls", timeout=120, check=True).stdout
        total = re.search(r"^\s*100\.00.*?(\d+)\s+(?:\d+\s+)?total$", out,
                          re.M)
        return int(total.group(1)), out

    few, _ = calls(1)
    many, text = calls(5000)
    t.diag(f"{few} system calls for 1 operation, {many} for 5000")
    t.ok(abs(many - few) <= 4, "posting and polling make no system call",
         text)


def engine_threads(lab):
    """Processor time used by each thread of draco-emu, in ticks."""
    used = {}
    for pid in descendants(lab.emu.child.popen.pid):
        base = f"/proc/{pid}/task"
        for tid in os.listdir(base):
            with open(f"{base}/{tid}/stat") as f:
                words = f.read().rpartition(")")[2].split()
            used[tid] = int(words[11]) + int(words[12])
    return used


def descendants(pid):
    """A process and its children, theirs, and so on."""
    found = [pid]
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/children") as f:
            for child in f.read().split():
                found += descendants(int(child))
    return found


def perf(guest, args, timeout=120):
    return json.loads(guest.sh(f"fabrex-perf {args} --json", timeout=timeout))


def best(doc, size):
    return max(r["mb_per_s"] for r in doc["results"]
               if r["size"] == size) / 1000


@scenario(hosts=["a", "b"], named=True)
def bandwidth(lab, t):
    """1 MiB writes between guests against memcpy of one thread here: on an idle
    machine."""
    a, b = (lab.guest(n) for n in "ab")
    server = b.start_command("fabrex-perf server")
    ratios = []
    for _ in range(3):
        copy = fabric.memcpy_gbps()
        doc = perf(a, "write-bw --peer b --size 1M --duration 1 "
                   f"--reference-gbps {copy:.3f}")
        ratios.append((best(doc, 1 << 20) / copy, best(doc, 1 << 20), copy))
    ratio, moved, copy = max(ratios)
    t.diag(f"{moved:.2f} GB/s of {copy:.2f} GB/s memcpy: {100 * ratio:.0f} %")
    t.ok(ratio >= 0.7, "at least 70 % of one thread's memcpy", str(ratios))
    server.kill()
    server.wait(20)


@scenario(hosts=["a", "b", "c"])
def two_peers(lab, t):
    """Two queues to two peers at a time."""
    a, b, c = (lab.guest(n) for n in "abc")
    servers = [g.start_command("fabrex-perf server") for g in (b, c)]
    before = engine_threads(lab)
    other = a.start_command("fabrex-perf write-bw --peer c --size 1M "
                            "--duration 2 --json")
    doc = perf(a, "write-bw --peer b --size 1M --duration 2")
    both = best(doc, 1 << 20) + best(json.loads(
        other.wait(60).check().stdout), 1 << 20)
    used = sorted(now - before.get(tid, 0)
                  for tid, now in engine_threads(lab).items())
    t.diag(f"two queues to two peers {both:.2f} GB/s, {os.cpu_count()} cores; "
           f"processor time of draco-emu's threads {used[::-1][:3]} ticks")
    t.ok(len(used) > 1 and used[-2] > used[-1] / 5,
         "two queues to two peers are served by two threads", used)
    for s in servers:
        s.kill()
        s.wait(20)
