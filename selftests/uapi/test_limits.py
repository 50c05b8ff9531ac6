# SPDX-License-Identifier: GPL-2.0-only
"""Who has used up what he may have of a port leaves to others what they may:
users, containers, cgroups."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
import quota
from puppet import CHECK, READ, WRITE, Puppet, PuppetError, counts, wait_counts
from scenario import scenario

LIMITS = {"queues": 16, "windows": 4, "mrs": 32, "bytes": 1 << 20}
SIZE = 1 << 18
CONTAINER = "unshare --pid --fork --kill-child"


def hog(guest, user=None, within=""):
    """A process that has all it can get and goes on trying: (it, what stopped
    it by name)."""
    command = guest.start_command(f"exec {within} dma-hog", user=user,
                                  keep_stdin=True)
    command.wait_for("full")
    lines = (line.split() for line in command.output().split("\n"))
    return command, {w[0]: tuple(w[1:]) for w in lines if len(w) == 3}


def is_full(t, who, said):
    most = LIMITS["bytes"]
    t.equal(said, {"files": ("100", "0"),
                   "queues": (str(LIMITS["queues"]), "EDQUOT"),
                   "bytes": (str(most + 4096), "EDQUOT"),
                   "last": (str(most - (LIMITS["mrs"] - 1) * 4096), "0"),
                   "mrs": (str(LIMITS["mrs"]), "EDQUOT"),
                   "windows": (str(LIMITS["windows"]), "EDQUOT")},
            f"{who} has all it may have, and no more")


def end(t, who, command):
    command.close_stdin()
    t.equal(command.wait(120).stdout.split("\n")[-2], "got 0",
            f"{who} has got nothing more, however often it tried")


def work(t, who, p, b, rkey, rounds=3):
    """Everything a process does, with what arrives compared."""
    for seed in range(1, rounds + 1):
        key = p.mr(0, SIZE)
        p.mr(1, SIZE)
        p.queue(0)
        p.fill(0, 0, SIZE, seed)
        done = p.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE, flags=CHECK)
        right = done.status == "OK" and b.same(0, 0, SIZE, seed)
        done = p.op(0, READ, b.peer, 1, 0, rkey, 0, SIZE, flags=CHECK)
        right = right and done.status == "OK" and p.same(1, 0, SIZE, seed)
        p.ask("window", 0, b.peer, rkey, 0, 4096, 6)
        p.ask("store", 0, 8, seed)
        right = right and p.ask("load", 0, 8) == [seed]
        done = b.op(0, WRITE, p.peer, 0, 0, key, 0, 64)
        t.ok(right and done.status == "OK",
             f"{who} registers, writes, reads, has windows, is written to "
             f"({seed})", done.status)
        for what in ("windel 0", "qdel 0", "mrdel 0", "mrdel 1"):
            p.words(what)


def partner(lab):
    b = Puppet(lab.guest("b"))
    b.queue(0)
    return b, b.mr(0, SIZE)


@scenario(hosts=["a", "b", "c"])
def used_up_by_a_user(lab, t):
    """One user has used up every quota; another works undisturbed."""
    c = lab.guest("c")
    before = counts(c)
    b, rkey = partner(lab)
    with quota.changed(c, **LIMITS):
        command, said = hog(c, user="tester")
        is_full(t, "tester", said)
        t.equal(quota.get(c, "usage/bytes"), LIMITS["bytes"],
                "bytes that are charged")
        p = Puppet(c, user="tester2")
        work(t, "tester2", p, b, rkey)
        poor = Puppet(c, user="tester")
        t.equal([poor.errno("queue", 0, 8, 8, 0, 0),
                 poor.errno("mr", 0, 4096, 15)], ["EDQUOT", "EDQUOT"],
                "another process of tester gets nothing")
        subuid = c.run("dma-hog mapped 1000")
        t.equal(subuid.stdout.strip(), "mapped EDQUOT",
                "nor does one with another uid, of a user namespace of his")
        for how in ("-U -r", "-U -r -p -f --kill-child"):
            own = Puppet(c, user="tester", within=f"unshare {how}")
            t.equal(own.errno("queue", 0, 8, 8, 0, 0), "EDQUOT",
                    f"nor by unshare {how}")
            own.close()
        end(t, "tester", command)
        poor.queue(1, 8, 8, 0)
        t.ok(True, "when the first one has ended, the other gets a queue")
        poor.close()
    p.close()
    b.close()
    t.equal(wait_counts(c, before), before, "nothing is left over")
    t.equal(quota.get(c, "usage/bytes"), 0, "nor charged")


@scenario(hosts=["a", "b", "c"])
def used_up_by_a_container(lab, t):
    """Containers of root have what they may have each of their own."""
    c = lab.guest("c")
    before = counts(c)
    b, rkey = partner(lab)
    with quota.changed(c, **LIMITS):
        command, said = hog(c, within=CONTAINER)
        is_full(t, "a container", said)
        p = Puppet(c, within=CONTAINER)
        work(t, "another container", p, b, rkey)
        host = Puppet(c)
        work(t, "root outside of containers", host, b, rkey, 1)
        pid = c.sh("pgrep -x dma-hog")
        same = Puppet(c, within=f"nsenter --target {pid} --pid")
        t.equal(same.errno("queue", 0, 8, 8, 0, 0), "EDQUOT",
                "who joins the first one does not get more")
        for each in (p, host, same):
            each.close()
        end(t, "the container", command)
    b.close()
    t.equal(wait_counts(c, before), before, "nothing is left over")


CGROUPS = "/sys/fs/cgroup"


def cgroups(guest, t, controller):
    """Two of them, with the controller; SKIP if the kernel has none."""
    guest.sh(f"mountpoint -q {CGROUPS} || mount -t cgroup2 none {CGROUPS}")
    if controller not in guest.sh(f"cat {CGROUPS}/cgroup.controllers").split():
        t.skip(f"this kernel has no CONFIG_CGROUP_{controller.upper()}")
    guest.sh(f"cd {CGROUPS} && echo +{controller} >cgroup.subtree_control && "
             "mkdir -p one two")


def inside(guest, name):
    """A puppet in a cgroup."""
    return Puppet(guest, within=f"bash -c 'echo $$ >{CGROUPS}/{name}/"
                  "cgroup.procs; exec \"$0\"'")


def in_use(guest, name, controller):
    """What the cgroup has of the port: the rest of its line, or None."""
    text = guest.sh(f"cat {CGROUPS}/{name}/{controller}.current")
    for line in text.split("\n"):
        if line.startswith("fabrex0 "):
            return line.removeprefix("fabrex0 ")
    return None


def wait_in_use(guest, name, controller, wanted):
    end = time.monotonic() + 15 * guest.patience
    while (now := in_use(guest, name, controller)) != wanted and \
            time.monotonic() < end:
        time.sleep(0.1)
    return now


def limit(guest, controller, text):
    guest.sh(f"echo 'fabrex0 {text}' >{CGROUPS}/one/{controller}.max")


def replugged(lab, t, controller, none, fill, after):
    """The port goes with all of the cgroup open, and comes back."""
    a = lab.guest("a")
    dead, late = inside(a, "one"), inside(a, "one")
    held = fill(dead)
    t.equal(in_use(a, "one", controller), held, "in use before")
    a.sh("echo 1 >$(readlink -f /sys/class/fabrex/fabrex0/device)/remove")
    t.equal(in_use(a, "one", controller), None, "no port, and nothing of it")
    dead.close()
    a.sh("echo 1 >/sys/bus/pci/rescan")
    t.ok(fabric.wait_port(a), "the port is back")
    t.equal(in_use(a, "one", controller), none, "nothing of it is in use")
    after()
    p = inside(a, "one")
    fill(p)
    now = in_use(a, "one", controller)
    late.close()
    t.equal(in_use(a, "one", controller), now,
            "files of the port that has gone do not count for the new one")
    p.close()
    t.equal(wait_in_use(a, "one", controller, none), none,
            "nothing is in use in the end")
    t.ok("Invalid device" not in a.sh("dmesg"), "the controller is content")


def rdma(handles, objects):
    return f"hca_handle={handles} hca_object={objects}"


@scenario(hosts=["a", "b", "c"])
def rdma_cgroup(lab, t):
    """rdma.max limits open files and objects of a container as a whole."""
    a = lab.guest("a")
    cgroups(a, t, "rdma")
    b, rkey = partner(lab)
    none, most = rdma(0, 0), rdma(2, 4)
    limit(a, "rdma", most)

    def fill(p):
        key = p.mr(0, 4096)
        p.mr(1, 4096)
        p.queue(0)
        p.ask("window", 0, p.peer, key, 0, 4096, 2)
        return most

    p, second = inside(a, "one"), inside(a, "one")
    fill(p)
    t.equal(in_use(a, "one", "rdma"), most, "all that it may have")
    t.equal([p.errno("mr", 2, 4096, 15), second.errno("queue", 1, 8, 8, 0, 0),
             p.errno("window", 1, p.peer, rkey, 0, 4096, 2)], ["EDQUOT"] * 3,
            "no more objects")
    try:
        inside(a, "one").close()
        refused = None
    except PuppetError as e:
        refused = e.errno
    t.equal(refused, "EDQUOT", "no more open files")
    t.equal(in_use(a, "one", "rdma"), most, "nothing has changed")
    other = inside(a, "two")
    work(t, "the other cgroup", other, b, rkey)
    p.words("mrdel 1")
    second.mr(0, 4096)
    t.ok(True, "what one gives back the other can have")
    second.kill()
    t.equal(wait_in_use(a, "one", "rdma", rdma(1, 3)), rdma(1, 3),
            "what has been killed is not in use")
    p.close()
    other.close()
    t.equal(wait_in_use(a, "one", "rdma", none), none, "nor what is closed")
    replugged(lab, t, "rdma", none, fill, lambda: limit(a, "rdma", most))
    b.close()


@scenario(hosts=["a", "b", "c"])
def dmem_cgroup(lab, t):
    """dmem.max limits bytes of regions of a container as a whole."""
    a = lab.guest("a")
    cgroups(a, t, "dmem")
    b, rkey = partner(lab)
    most = 1 << 20
    limit(a, "dmem", most)

    def fill(p):
        p.mr(0, most // 2)
        p.mr(1, most // 2)
        return str(most)

    p = inside(a, "one")
    fill(p)
    t.equal(in_use(a, "one", "dmem"), str(most), "all that it may have")
    t.equal(p.errno("mr", 2, 4096, 15), "EDQUOT", "no more")
    t.equal(in_use(a, "one", "dmem"), str(most), "nothing has changed")
    other = inside(a, "two")
    work(t, "the other cgroup", other, b, rkey)
    p.words("mrdel 1")
    p.mr(1, most // 2)
    p.kill()
    other.close()
    t.equal(wait_in_use(a, "one", "dmem", "0"), "0", "nothing is left")
    replugged(lab, t, "dmem", "0", fill, lambda: limit(a, "dmem", most))
    b.close()
