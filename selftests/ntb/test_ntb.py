# SPDX-License-Identifier: GPL-2.0-only
"""fabrex_ntb on Linux's NTB drivers, between two guests: the tests of the data path
that Draco has to pass, over a Switchtec and over an endpoint NTB, both emulated."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_dma
import fabric
import install
import upstream
from ports import (ENGINES, EPF, SWITCHTEC, joined, load, ntb_scenario,
                   performed, sees, unload)
from puppet import (CHECK, READ, WRITE, WRITE_IMM, Puppet, counts,
                    wait_counts)

KILLS = int(os.environ.get("FABREX_KILLS", "200"))
REVOCATIONS = int(os.environ.get("FABREX_REVOCATIONS", "10"))
# Not dma-window, and of dma-guess what is not about windows: a bridge has none for
# processes.
PROGRAMS = ("ops", "errors", "ops-32", "errors-32", "queues", "order", "atomics",
            "datagram")
KEYS = ("beside_a_working_queue", "new_queues_do_not_help")
SIZE = 1 << 16
CGROUPS = "/sys/fs/cgroup"


def numbers(doc, key):
    """All values of that key, wherever they are."""
    if isinstance(doc, list):
        return [n for part in doc for n in numbers(part, key)]
    if not isinstance(doc, dict):
        return []
    own = [doc[key]] if key in doc else []
    return own + numbers(list(doc.values()), key)


@ntb_scenario()
def operations(lab, t):
    """Over a Switchtec: each operation and each error within the port, and what
    goes to the other host."""
    a, b = joined(lab, t, SWITCHTEC)
    test_dma.between_hosts(lab, t)
    for guest, key in ((a, "tx_bytes"), (b, "rx_bytes")):
        counted = fabric.ctl_json(guest, f"stats {guest.name}.ntb0")
        t.ok(any(n >= 1 << 20 for n in numbers(counted, key)),
             f"{guest.name} has counted what went over the bridge", counted)
    for program in PROGRAMS:
        t.program(a, f"dma-{program}")
    for test in KEYS:
        t.program(a, f"dma-guess -t {test}")
    test_dma.no_system_calls(lab, t)


def described(t, guest, **want):
    """What fabrexctl says of the port there."""
    port, = fabric.ctl_json(guest, "list fports")["fports"]
    t.equal({key: port[key] for key in want}, want,
            f"{guest.name}: how payload is moved, and what protects memory")
    return port


@ntb_scenario(iommu="on")
def grouped(lab, t):
    """With an IOMMU nobody has to be trusted; what the bridge's IOMMU group has
    beside the bridge is named to the operator, in the log and by fabrexctl."""
    a, _ = joined(lab, t, SWITCHTEC, "dead_ms=20000")
    group = f"/sys/bus/pci/devices/{SWITCHTEC.device}/iommu_group"
    others = sorted(set(a.sh(f"ls {group}/devices").split())
                    - {SWITCHTEC.device})
    port = described(t, a, protection="iommu", group_others=len(others),
                     iommu_group=a.sh(f"basename $(readlink {group})").strip())
    t.equal(sorted(port["group_devices"]), others[:16],
            "what shares the group is what sysfs says")
    t.diag(f"beside the bridge: {others}")
    told = [line for line in a.dmesg().splitlines() if "beside this NTB" in line]
    t.ok(bool(told) == bool(others) and
         all(name in told[-1] for name in others),
         "the log names them, too", a.dmesg()[-2000:])
    text = a.sh("fabrexctl list")
    t.ok("an IOMMU translates" in text and all(n in text for n in others),
         "and so does the tree", text)


@ntb_scenario()
def by_dma(lab, t):
    """Large payload is moved by the switch's DMA engine: right, also with CRC, and
    the processor has next to nothing to do with it."""
    a, b = joined(lab, t, SWITCHTEC, engines=ENGINES)
    for guest in (a, b):
        t.ok("4096 bytes or more are moved by DMA channel" in guest.dmesg(),
             f"{guest.name} has found the engine", guest.dmesg()[-2000:])
        port = described(
            t, guest, driver="fabrex_ntb", bridge_driver="ntb_hw_switchtec",
            mode="bounced", protection="trust", iommu_group=None,
            group_others=None, group_devices=None)
        t.ok(port["engine"] in guest.sh("ls /sys/class/dma").split(),
             f"{guest.name}: and by which engine", port["engine"])
    test_dma.between_hosts(lab, t)
    own, peer = Puppet(a), Puppet(b)
    own.mr(0, 4 << 20)
    own.queue(0)
    rkey = peer.mr(0, 4 << 20)
    for seed, (offset, length) in enumerate(
            ((0, 4 << 20), (1, 8191), (4095, 65537), (12345, 1 << 20)), 1):
        own.fill(0, offset, length, seed)
        done = own.op(0, WRITE, peer.peer, 0, offset, rkey, offset, length,
                      flags=CHECK)
        t.ok(done.status == "OK" and peer.same(0, offset, length, seed),
             f"{length} bytes written at {offset}", done.status)
        own.set(0, offset, length, 0)
        done = own.op(0, READ, peer.peer, 0, offset, rkey, offset, length,
                      flags=CHECK)
        t.ok(done.status == "OK" and own.same(0, offset, length, seed),
             f"{length} bytes read at {offset}", done.status)
    for p in (own, peer):
        p.close()
    server = b.start_command("fabrex-perf server")
    for kind in ("write-bw", "read-bw"):
        t.diag(a.sh(f"fabrex-perf {kind} --peer b --size 64K --duration 1 "
                    "--depth 4", 60))
    server.kill()
    server.wait(20)


@ntb_scenario()
def silent_loss(lab, t):
    """A DMA engine says that it is done, and nothing has arrived; or that it has
    failed: neither is taken for success, and it is not used any more."""
    for kind, status, reason in (
            ("lost-store", "RFAULT", "do not arrive at the peer"),
            # Linux' driver stops the channel then, without an end of the copy.
            ("failed-copy", "LFAULT", "is no longer used")):
        a, b = joined(lab, t, SWITCHTEC, engines=ENGINES)
        own, peer = Puppet(a), Puppet(b)
        own.mr(0, SIZE)
        own.queue(0)
        rkey = peer.mr(0, SIZE)
        own.fill(0, 0, SIZE, 9)
        t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, 8192).status, "OK",
                f"{kind}: to begin with")
        lab.emu_control({"cmd": "fault", "port": "a.0", "kind": kind,
                         "count": 1000000})
        t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE).status, status,
                f"{kind}: it is noticed")
        t.ok(reason in a.dmesg(), f"{kind}: and said", a.dmesg()[-2000:])
        described(t, a, engine="processor")
        t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE,
                       flags=CHECK).status, "OK", f"{kind}: the next one works")
        t.ok(peer.same(0, 0, SIZE, 9), f"{kind}: every byte is there")
        lab.emu_control({"cmd": "fault", "port": "a.0", "kind": kind,
                         "count": 0})
        for p in (own, peer):
            p.close()


@ntb_scenario()
def endpoint(lab, t):
    """Over an endpoint NTB, whose window the DMA engine of the other bridge's
    switch does not reach: that is found before anything is entrusted to it."""
    for guest in joined(lab, t, EPF, engines=ENGINES):
        t.ok("is no longer used" in guest.dmesg(),
             f"{guest.name} does not use the engine", guest.dmesg()[-2000:])
        described(t, guest, bridge_driver="ntb_hw_epf", mode="bounced",
                  engine="processor", protection="trust")
    test_dma.between_hosts(lab, t)
    refused(lab, t)


def refused(lab, t):
    """What the other host does not grant is refused, and its memory is as it
    was."""
    a, b = (Puppet(lab.guest(name)) for name in "ab")
    a.mr(0, SIZE)
    a.queue(0)
    rkey = b.mr(0, SIZE)
    b.set(0, 0, SIZE, 0xa5)
    cases = [
        ("a key with one wrong bit", rkey ^ 1 << 41, 0, "RKEY"),
        ("past the end", rkey, SIZE - 32, "RBOUNDS"),
        ("far past the end", rkey, 1 << 63, "RBOUNDS"),
        ("a region without the right", b.mr(1, 4096, 2), 0, "RACCESS"),
        ("a region for another peer", b.mr_for(2, 4096, 200), 0, "RPEER"),
    ]
    for what, key, offset, status in cases:
        t.equal(a.op(0, WRITE, b.peer, 0, 0, key, offset, 64).status, status,
                what)
    _, dest = b.queue(0, rq=8)
    t.equal(a.op(0, WRITE_IMM, b.peer, 0, 0, rkey, SIZE - 32, SIZE,
                 dest=dest).status, "RBOUNDS", "a long one past the end")
    t.equal(a.op(0, WRITE_IMM, b.peer, 0, 0, rkey, 0, SIZE,
                 dest=dest ^ 1 << 40).status, "BAD_QUEUE",
            "a long one for a queue that is not there")
    t.ok(b.all(0, 0, SIZE, 0xa5), "b's region is untouched, every byte")
    b.ask("mrdel", 0)
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "RKEY",
            "a region that was deregistered")
    for p in (a, b):
        p.close()


def ticks(guest, name):
    """Processor time of all threads of that name, in hundredths of a second."""
    return int(guest.sh(
        "cat /proc/[0-9]*/task/[0-9]*/stat 2>/dev/null | "
        f"awk '/\\({name}/ {{ n += $14 + $15 }} END {{ print n + 0 }}'"))


def switches(guest, name):
    """How often threads of that name have been switched away from."""
    return int(guest.sh(
        f"cd /proc; for t in [0-9]*/task/[0-9]*; do "
        f"[ \"$(cat $t/comm 2>/dev/null)\" = {name} ] && cat $t/status; done "
        "| awk '/ctxt_switches/ { n += $2 } END { print n + 0 }'"))


def faults(guest):
    """Page faults of the puppet there."""
    return int(guest.sh(
        "cat /proc/[0-9]*/stat 2>/dev/null | "
        "awk '/\\(dma-puppet/ { n += $10 } END { print n + 0 }'"))


@ntb_scenario()
def idle(lab, t):
    """A port with nothing to do takes no processor time; a process that wakes it
    has one page fault."""
    a, b = joined(lab, t, SWITCHTEC)
    own, peer = Puppet(a), Puppet(b)
    own.mr(0, 4096)
    own.queue(0)
    rkey = peer.mr(0, 4096)
    woken = []
    for _ in range(4):
        time.sleep(1)
        before = faults(a)
        t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, 8).status, "OK",
                "written after a while")
        woken.append(faults(a) - before)
    # The first times the program has pages of its own to fault in.
    t.equal(min(woken), 1, "that takes one page fault")
    time.sleep(1)
    # Not processor time, of which a slow machine counts more.
    begin = time.monotonic()
    before = [switches(g, n) for g in (a, b) for n in ("fabrex", "fabrex-ntb/0")]
    time.sleep(5)
    after = [switches(g, n) for g in (a, b) for n in ("fabrex", "fabrex-ntb/0")]
    ran = [now - was for now, was in zip(after, before)]
    t.ok(before[0] and not ran[0], "idle: the worker does not run at all",
         (before, ran))
    t.ok(max(ran) <= 25 * (time.monotonic() - begin),
         "and the threads of the links only as often as hearts beat", ran)
    for p in (own, peer):
        p.close()


@ntb_scenario()
def charged(lab, t):
    """The time that it takes to move bytes is charged to the cgroup of the process
    that has them moved; cpu.max holds for it."""
    a, _ = joined(lab, t, SWITCHTEC)
    a.sh(f"mountpoint -q {CGROUPS} || mount -t cgroup2 none {CGROUPS}; "
         f"cd {CGROUPS} && echo +cpu >cgroup.subtree_control && mkdir -p work")
    own = Puppet(a, within=f"sh -c 'echo $$ >{CGROUPS}/work/cgroup.procs; "
                           "exec \"$0\"'")
    length = 4 << 20
    rkey = own.mr(0, length)
    own.queue(0)

    def spent():
        words = a.sh(f"cat {CGROUPS}/work/cpu.stat").split()
        return dict(zip(words[::2], map(int, words[1::2])))

    def copy(times):
        begin, before = time.monotonic(), ticks(a, "fabrex\\)")
        for _ in range(times):
            t.equal(own.op(0, WRITE, own.peer, 0, 0, rkey, 0, length,
                           flags=CHECK).status, "OK", "4 MiB within the port")
        return (time.monotonic() - begin,
                (ticks(a, "fabrex\\)") - before) * 10000)

    before, times, worker = spent()["usage_usec"], 0, 0
    # As many as take longer than what cpu.max will allow at once.
    while worker < 200000:
        worker += copy(4)[1]
        times += 4
    used = spent()["usage_usec"] - before
    t.ok(used > 0.8 * worker,
         "the cgroup has been charged what the worker has used", (used, worker))
    a.sh(f"echo 10000 100000 >{CGROUPS}/work/cpu.max")
    before = spent()["usage_usec"]
    took, _ = copy(times)
    used = (spent()["usage_usec"] - before) / 1e6
    t.ok(used < 0.2 * took, "and the worker keeps to cpu.max", (used, took))
    own.close()
    a.sh(f"rmdir {CGROUPS}/work")


@ntb_scenario()
def killed(lab, t):
    """SIGKILL of either side with operations under way, many times."""
    a, b = joined(lab, t, SWITCHTEC)
    before = {g.name: counts(g) for g in (a, b)}
    victim = Puppet(b)
    rkey = victim.mr(0, SIZE)
    survivor = b.start_command("dma-survivor")
    survivor.wait_for("board ")
    board = survivor.output().split()[1]
    for side, key in (("initiator", f"{rkey} {SIZE}"), ("target", board)):
        run = a.start_command(f"dma-killed {side} {KILLS} {victim.peer} {key}")
        done = run.wait(600)
        text = done.stdout + done.stderr
        t.ok("ok 1" in text and "not ok" not in text,
             f"{KILLS} times the {side}", text)
    # Whether it could write before they died is a matter of speed.
    text = survivor.wait(90).stdout.split("ok 4")[0]
    t.ok("ok 3" in text and "not ok 1" not in text and "not ok 2" not in text
         and "not ok 3" not in text, "who wrote to them survives", text)
    t.equal(victim.queue(0) and victim.state(0)[0], 0,
            "and so does who was written to")
    victim.close()
    for g in (a, b):
        t.equal(wait_counts(g, before[g.name]), before[g.name],
                f"counts on {g.name} are those of the start")


def revoke(a, b, t):
    """b takes memory back while a writes and reads it; FABREX_REVOCATIONS times."""
    target = b.start_command(f"dma-revoked target {REVOCATIONS}")
    target.wait_for("board ")
    key, peer = target.output().split()[1:3]
    run = a.start_command(f"dma-revoked initiator {peer} {key}")
    for command, points in ((run, 4), (target, 2)):
        done = command.wait(120 + 2 * REVOCATIONS)
        text = done.stdout + done.stderr
        t.diag(" ".join(l for l in text.splitlines() if l.startswith("#")))
        t.ok(f"ok {points}" in text and "not ok" not in text
             and not done.status, f"{REVOCATIONS} times: {command.guest.name}",
             text)


@ntb_scenario()
def revoked(lab, t):
    """Memory is deregistered while the other host writes and reads it, and used for
    something else at once: nothing arrives late, nothing is read late, whether
    processors or DMA engines move it."""
    for engines in ((), ENGINES):
        a, b = joined(lab, t, SWITCHTEC, engines=engines)
        before = {g.name: counts(g) for g in (a, b)}
        revoke(a, b, t)
        for g in (a, b):
            t.equal(wait_counts(g, before[g.name]), before[g.name],
                    f"counts on {g.name} are those of the start")


@ntb_scenario()
def reloaded(lab, t):
    """The driver of one host goes while the other writes to it, and comes back:
    errors soon, old keys are refused, new ones work."""
    a, b = joined(lab, t, SWITCHTEC)
    own, peer = Puppet(a), Puppet(b)
    own.mr(0, SIZE)
    own.queue(0)
    rkey = peer.mr(0, SIZE)
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            "to begin with")
    for _ in range(16):
        own.post(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE)
    t.equal(b.run("rmmod fabrex_ntb", timeout=60).status, 0,
            "it goes while there is traffic")
    seen = {own.poll(0).status for _ in range(16)}
    t.ok(seen <= {"OK", "ABORTED", "UNREACHABLE"}, "every operation ends", seen)
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, 64).status,
            "UNREACHABLE", "nobody is there")
    t.ok(own.wait_event("PEER_DOWN"), "which is said")
    peer.kill()
    load(b, SWITCHTEC)
    t.need(sees(a, "b"), "it is back", a.dmesg()[-2000:])
    peer = Puppet(b)
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, 64).status, "RKEY",
            "a key of before is refused")
    again = peer.mr(0, SIZE)
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, again, 0, SIZE).status, "OK",
            "one of now works")
    for p in (own, peer):
        p.close()
    for guest in (a, b):
        unload(guest)
        t.equal(guest.sh("grep -c ^fabrex /proc/modules || true"), "0",
                f"{guest.name} unloads them all")


@ntb_scenario()
def lost(lab, t):
    """The cable of one host is pulled, and put back: operations end, its memory is
    as it was, and so are its keys. Then it loses power: they are not."""
    a, b = joined(lab, t, SWITCHTEC)
    own, peer = Puppet(a), Puppet(b)
    own.mr(0, SIZE)
    own.queue(0)
    rkey = peer.mr(0, SIZE)
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            "to begin with")
    for _ in range(8):
        own.post(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE)
    lab.emu_control({"cmd": "link", "port": "b.0", "state": "down"})
    seen = {own.poll(0, 120000).status for _ in range(8)}
    t.ok(seen <= {"OK", "ABORTED", "UNREACHABLE"}, "every operation ends", seen)
    t.ok(own.wait_event("PEER_DOWN", 60000), "which is said")
    lab.emu_control({"cmd": "link", "port": "b.0", "state": "up"})
    t.need(sees(a, "b"), "it is back", a.dmesg()[-2000:])
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            "a key of before works")
    for _ in range(8):
        own.post(0, WRITE, peer.peer, 0, 0, rkey, 0, SIZE)
    b.kill()
    seen = {own.poll(0, 120000).status for _ in range(8)}
    t.ok(seen <= {"OK", "ABORTED", "UNREACHABLE"},
         "without power every operation ends", seen)
    b.restart()
    install.install([b], modules=False)
    upstream.install([b])
    load(b, SWITCHTEC)
    t.need(sees(a, "b"), "it has booted", a.dmesg()[-2000:])
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, rkey, 0, 64).status, "RKEY",
            "a key of before is refused")
    peer = Puppet(b)
    again = peer.mr(0, SIZE)
    t.equal(own.op(0, WRITE, peer.peer, 0, 0, again, 0, SIZE).status, "OK",
            "one of now works")
    for p in (own, peer):
        p.close()


@ntb_scenario()
def collectives(lab, t):
    """A communicator over the bridge: contents of every element are checked."""
    guests = joined(lab, t, SWITCHTEC)
    for service, (kind, size) in enumerate(
            (("all_reduce", "8:16K:16"), ("all_gather", "4K"),
             ("broadcast", "4K"), ("reduce_scatter", "4K")), 7501):
        performed(t, guests, kind, f"--sizes {size} --iterations 3", service)
