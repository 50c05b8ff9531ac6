# SPDX-License-Identifier: GPL-2.0-only
"""Everything can vanish: processes, modules, devices, hosts, the switch."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
import install
from guest import boot_all
from puppet import WRITE, Puppet, counts, wait_counts
from scenario import scenario

KILLS = int(os.environ.get("FABREX_KILLS", "200"))


def taps(t, name, text, plan):
    """Points of a program that ran in the background."""
    points = [l for l in text.split("\n") if l.startswith(("ok", "not ok"))]
    t.equal(len(points), plan, f"{name} ran to its end")
    for line in points:
        t.ok(line.startswith("ok"), f"{name}: " + line.split(" ", 2)[-1], text)


@scenario(hosts=["a", "b", "c"])
def killed_processes(lab, t):
    """SIGKILL with operations in flight: initiators on b, targets on a whose
    writer on c survives."""
    a, b, c = (lab.guest(n) for n in "abc")
    before = {g.name: counts(g) for g in (a, b, c)}
    victim = Puppet(c)
    rkey = victim.mr(0, 1 << 16)
    survivor = c.start_command("dma-survivor")
    survivor.wait_for("board ")
    board = survivor.output().split()[1]
    begun = time.monotonic()
    runs = [b.start_command(f"dma-killed initiator {KILLS} {victim.peer} "
                            f"{rkey} {1 << 16}"),
            a.start_command(f"dma-killed target {KILLS} {victim.peer} "
                            f"{board}")]
    done = [r.wait(300) for r in runs]
    t.diag(f"{KILLS} + {KILLS} kills in {time.monotonic() - begun:.0f} s")
    taps(t, "initiators", done[0].stdout + done[0].stderr, 2)
    taps(t, "targets", done[1].stdout + done[1].stderr, 3)
    taps(t, "survivor", survivor.wait(90).stdout, 4)
    t.ok(victim.ask("state", 0)[0] in (0,) if victim.queue(0) else False,
         "the process written to still works")
    victim.close()
    for g in (a, b, c):
        t.equal(wait_counts(g, before[g.name]), before[g.name],
                f"counts on {g.name} are those of the start")
        leak = g.kmemleak()
        t.ok(not leak, f"no leak on {g.name}", leak)


@scenario(hosts=["a", "b", "c"])
def killed_after_fork(lab, t):
    """Killed with a child that lives on and has all its descriptors: the writer
    on c sees the death all the same, and memory is unpinned."""
    a, c = lab.guest("a"), lab.guest("c")
    before = {g.name: counts(g) for g in (a, c)}
    survivor = c.start_command("dma-survivor")
    survivor.wait_for("board ")
    board = survivor.output().split()[1]
    asked = Puppet(c)
    peer = asked.peer
    asked.close()
    run = a.start_command(f"dma-killed forked 6 {peer} {board}").wait(300)
    taps(t, "forked", run.stdout + run.stderr, 3)
    taps(t, "survivor", survivor.wait(90).stdout, 4)
    for g in (a, c):
        t.equal(wait_counts(g, before[g.name]), before[g.name],
                f"counts on {g.name} are those of the start")


MR_DESTROY = 0x2a		# include/draco/regs.h
LIMIT = "/sys/module/fabrex_draco/parameters/admin_timeout_ms"


@scenario(hosts=["a", "b", "c"])
def became_another_program(lab, t):
    """exec() closes the descriptor while the switch does not let go of memory:
    the process can be looked at meanwhile, and what it had goes with it."""
    a = lab.guest("a")
    a.allow_log(r"fabrex_draco")
    start, limit = counts(a), a.sh(f"cat {LIMIT}")
    a.sh(f"echo 600000 >{LIMIT}")
    process = a.start_command("exec unplug-exec", keep_stdin=True)
    process.wait_for("ready ")
    pid = process.output().split()[1]
    t.equal(counts(a)["mrs"], start["mrs"] + 1, "it has registered memory")
    hang = {"cmd": "admin-hang", "port": "a.0", "opcode": MR_DESTROY}
    lab.emu_control({**hang, "count": 1000})
    process.write(b"\n")
    seen = a.run("for i in $(seq 600); do grep -q sleep /proc/"
                 f"{pid}/comm && exec timeout 60 cat /proc/{pid}/environ; "
                 "sleep 0.1; done; exit 1", timeout=200)
    t.equal(seen.status, 0, "it is another program, and its environment is read")
    t.equal(counts(a)["mrs"], start["mrs"] + 1, "while the region is still there")
    lab.emu_control({**hang, "count": 0})
    a.sh(f"echo {limit} >{LIMIT}")
    t.equal(fabric.ctl(lab.guest("b"), "port a.0 reset --force").status, 0,
            "a reset of the port ends it")
    t.ok(fabric.wait_port(a), "the port works again")
    t.equal(wait_counts(a, start), start, "the region is gone")
    t.equal(a.run(f"grep -q sleep /proc/{pid}/comm").status, 0,
            "and the new program runs")
    process.kill()
    process.wait(30)


def restart(guest):
    """Power on, modules loaded."""
    guest.restart()
    install.install([guest])


def unload(guest):
    return guest.run("rmmod fabrex_draco", timeout=60)


def sysfs_remove(guest):
    """The PCI function goes away under the driver."""
    return guest.run("echo 1 >$(readlink -f /sys/class/fabrex/fabrex*/device)"
                     "/remove", timeout=60)


def busy_puppets(lab):
    """b writes to a; both hold everything one can hold."""
    a, b = Puppet(lab.guest("a")), Puppet(lab.guest("b"))
    for p in (a, b):
        p.queue(0)
    rkey = a.mr(0, 1 << 20)
    b.mr(0, 1 << 20)
    own = b.mr(1, 4096)
    a.ask("window", 0, b.peer, own, 0, 4096, 6)
    return a, b, rkey


def check_dead(t, a, what):
    """A process whose port has gone: everything says so, nothing hangs."""
    t.ok(a.wait_event("GONE") or a.errno("event", 100) == "ENODEV",
         f"{what}: the process is told")
    t.equal(a.state(0)[0], 2, f"{what}: its queue is dead")
    t.equal(a.errno("mr", 9, 4096, 15), "ENODEV",
            f"{what}: ioctls say ENODEV")
    a.ask("store", 0, 8, 1)
    t.diag(f"{what}: a load from the dead window gives "
           f"{a.ask('load', 0, 8)[0]:#x}")


def vanish_and_return(lab, t, what, take, give_back):
    a, b, rkey = busy_puppets(lab)
    t.equal(b.op(0, WRITE, a.peer, 0, 0, rkey, 0, 64).status, "OK",
            f"{what}: traffic before")
    peer_generation = b.ask("peer", "a")[2]
    result = take(lab.guest("a"))
    t.equal(result.status, 0, f"{what}: done with files open")
    check_dead(t, a, what)
    status = b.op(0, WRITE, a.peer, 0, 0, rkey, 0, 64).status
    t.ok(status in ("UNREACHABLE", "RKEY"), f"{what}: b gets an error",
         status)
    t.ok(fabric.wait_peer(b, "a", False) is not None,
         f"{what}: b sees a go down")
    give_back(lab.guest("a"))
    t.ok(fabric.wait_port(lab.guest("a")), f"{what}: the port comes back")
    generation = fabric.wait_peer(b, "a", True)
    t.ok(generation and generation > peer_generation,
         f"{what}: b sees a new generation")
    t.equal(b.op(0, WRITE, a.peer, 0, 0, rkey, 0, 64).status, "RKEY",
            f"{what}: the stale key is refused")
    t.equal(a.errno("mr", 10, 4096, 15), "ENODEV",
            f"{what}: the old file stays dead")
    a.close()
    again = Puppet(lab.guest("a"))
    key = again.mr(0, 4096)
    t.equal(b.op(0, WRITE, again.peer, 0, 0, key, 0, 64).status, "OK",
            f"{what}: traffic after")
    again.close()
    b.close()
    zero = dict.fromkeys(counts(lab.guest("a")), 0)
    t.equal(wait_counts(lab.guest("a"), zero), zero,
            f"{what}: nothing is left over")


@scenario(hosts=["a", "b", "c"])
def module_unloaded(lab, t):
    """The backend module is unloaded while files are open."""
    path = lab.guest("a").sh("modinfo -F filename fabrex_draco 2>/dev/null || "
                             "true")

    def load(guest):
        ko = next(p for p in install.module_paths(guest.kernel.release)
                  if p.endswith("/fabrex_draco.ko"))
        guest.sh(f"insmod {ko}")

    t.diag(f"module {path or 'from the build directory'}")
    vanish_and_return(lab, t, "unload", unload, load)


@scenario(hosts=["a", "b", "c"])
def device_removed(lab, t):
    """The PCI function is removed while files are open."""
    vanish_and_return(lab, t, "unplug", sysfs_remove,
                      lambda g: g.sh("echo 1 >/sys/bus/pci/rescan"))


@scenario(hosts=["a", "b", "c"])
def qemu_killed(lab, t):
    """A host loses power in the middle of things and comes back."""
    a, b, rkey = busy_puppets(lab)
    for _ in range(8):
        b.post(0, WRITE, a.peer, 0, 0, rkey, 0, 1 << 20)
    generation = b.ask("peer", "a")[2]
    lab.guest("a").kill()
    seen = [b.poll(0) for _ in range(8)]
    t.ok(all(seen), "every operation in flight completes")
    allowed = {"OK", "ABORTED", "UNREACHABLE", "RFAULT", "RKEY"}
    t.ok({c.status for c in seen if c} <= allowed, "with the right errors",
         [c and c.status for c in seen])
    status = b.op(0, WRITE, a.peer, 0, 0, rkey, 0, 64).status
    t.equal(status, "UNREACHABLE", "then a is unreachable")
    restart(lab.guest("a"))
    t.ok(fabric.wait_port(lab.guest("a")), "a is back")
    now = fabric.wait_peer(b, "a", True)
    t.ok(now and now > generation, "as a new generation")
    t.equal(b.op(0, WRITE, a.peer, 0, 0, rkey, 0, 64).status, "RKEY",
            "the stale key of before the reboot is refused")
    again = Puppet(lab.guest("a"))
    key = again.mr(0, 4096)
    b.fill(0, 0, 4096, 3)
    t.equal(b.op(0, WRITE, again.peer, 0, 0, key, 0, 4096).status, "OK",
            "a new key works")
    t.ok(again.same(0, 0, 4096, 3), "and the bytes arrive")
    again.close()
    b.close()


@scenario(hosts=["a", "b", "c"])
def emulator_restarted(lab, t):
    """The switch loses power. Processes get errors, not hangs, and the driver
    lets go. QEMU does not reconnect, so hosts are power-cycled; the switch
    still knows what was bound."""
    a, b, rkey = busy_puppets(lab)
    ga, gb = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, ga)
    t.need(fabric.compose(ga, "columba1.gpu3", "a").status == 0, "compose")
    fabric.wait_gpus(ga, 1)
    for _ in range(8):
        b.post(0, WRITE, a.peer, 0, 0, rkey, 0, 1 << 20)
    lab.emu.kill()
    for p, name in ((a, "a"), (b, "b")):
        t.ok(wait_dead(p), f"queues on {name} are dead or in error", p.state(0))
        t.ok(p.errno("mr", 9, 4096, 15) in ("ENODEV", "EIO", "ETIMEDOUT"),
             f"ioctls on {name} fail")
    b.close()
    t.ok(True, "a process ends in good order")
    t.equal(unload(gb).status, 0, "the driver of a dead device unloads")
    t.equal(unload(ga).status, 0, "also with files open")
    lab.emu.start()
    for guest in lab.guests.values():
        guest.keep_dmesg()
        guest.kill()
    machines = list(lab.guests.values())
    boot_all(machines)
    install.install(machines)
    t.need(all([fabric.wait_port(g) for g in machines]),
           "all ports work again", ga.dmesg()[-2500:])
    a, b, rkey = busy_puppets(lab)
    fabric.wait_peer(b, "a", True)
    t.equal(b.op(0, WRITE, a.peer, 0, 0, rkey, 0, 64).status, "OK",
            "traffic after")
    t.equal(fabric.wait_state(lab.guest("b"), "columba1.gpu3", "bound", 30),
            "bound", "the binding survived")
    t.equal(len(fabric.wait_gpus(ga, 1)), 1, "and the GPU is there")
    for p in (a, b):
        p.close()
    fabric.release_all(lab, ga)


def wait_dead(puppet, timeout=30):
    """Wait until the queue has stopped for good."""
    end = time.monotonic() + timeout * puppet.guest.patience
    while puppet.state(0)[0] == 0 and time.monotonic() < end:
        time.sleep(0.2)
    return puppet.state(0)[0] != 0
