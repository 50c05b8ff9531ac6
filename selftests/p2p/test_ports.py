# SPDX-License-Identifier: GPL-2.0-only
"""fabrex_port_list() and fabrex_device_list(), as `fabrex-perf ports` prints
them, against sysfs, lspci and fabrexctl: with GPUs that are composed to either
port of a host, for users, without a port, and while ports come and go."""

import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "common")]
import fabric
import kmod
from scenario import scenario

PATHS = os.path.join(HERE, "..", "gpu", "paths.topo")
KERNELS = ("7.2", "6.12", "debug")
GPU = [f"columba1.gpu{n}" for n in range(4)]
MEMBER = "setpriv --reuid tester --regid tester --init-groups"
NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
CLASS = "/sys/class/fabrex"
PCI = "/sys/bus/pci/devices"
# What is listed, and the attribute that has it.
ATTRIBUTES = {
    "name": "name", "host": "host", "fabric": "fabric", "peer": "peer",
    "driver": "driver_name", "generation": "generation",
    "max_peers": "limits/max_peers", "max_queues": "limits/max_queues",
    "max_mrs": "limits/max_mrs", "max_transfer": "limits/max_transfer",
}


def ports(guest, args="", become=""):
    """The rows, by the port's name in their order."""
    done = guest.run(f"{become} fabrex-perf ports --json {args}", check=True)
    return {row["name"]: row for row in json.loads(done.stdout)["ports"]}


def attributes(guest, device):
    """What sysfs says of a port, as the list has it."""
    files = " ".join(ATTRIBUTES.values())
    lines = guest.sh(f"cd {CLASS}/{device} && cat {files} link alive emulated"
                     ).splitlines()
    said = dict(zip(ATTRIBUTES, lines))
    for name in said:
        if said[name].isdigit():
            said[name] = int(said[name])
    said["link_up"] = lines[-3] == "up"
    said["alive"] = lines[-2] == "1"
    said["emulated"] = lines[-1] == "1"
    return said


def function(guest, device):
    """What sysfs says of its PCI function."""
    pci = guest.sh(f"basename $(readlink -f {CLASS}/{device}/device)")
    node, speed, width = guest.sh(
        f"cd {PCI}/{pci} && cat numa_node current_link_speed "
        "current_link_width").splitlines()
    return {"pci": pci, "numa_node": int(node) if int(node) >= 0 else None,
            "pcie_speed_mtps": int(float(speed.split()[0]) * 1000)
            if speed[0].isdigit() else None,
            "pcie_width": int(width) if 0 < int(width) <= 32 else None}


def compose(t, guest, name, port):
    """Give a GPU to a port of the host; its PCI address."""
    done = fabric.ctl(guest, f"--fport {port} compose {name} --to {port} "
                      + fabric.PATIENT)
    t.need(done.status == 0, f"{name} composed to {port}", done.stderr)
    rows = fabric.ctl_json(guest, f"--fport {port} list endpoints")
    return next(r["pci_name"] for r in rows["endpoints"] if r["name"] == name)


def gpus(row):
    """Of a port: (address, path, bridges), the nearest first."""
    return [(d["pci"], d["path"], d["distance"]) for d in row["devices"]
            if d["kind"] == "gpu"]


def remaining(row):
    """But for GPUs: what is composed changes nothing else."""
    return {k: v for k, v in row.items() if k != "devices"}


@scenario(hosts=["a"], topology=PATHS, kernels=KERNELS)
def as_sysfs_and_lspci_say(lab, t):
    """Two ports, a GPU composed to each."""
    a = lab.guest("a")
    bdf = [compose(t, a, GPU[0], "a.0"), compose(t, a, GPU[1], "a.1")]
    t.equal(sorted(bdf), sorted(fabric.wait_gpus(a, 2)), "lspci has both GPUs")
    listed = ports(a)
    rows = fabric.ctl_json(a, "list fports")["fports"]
    mine = {r["name"]: r["pci_name"] for r in rows if r["pci_name"]}
    t.equal({n: r["pci"] for n, r in listed.items()}, mine,
            "the ports that fabrexctl has, where lspci has them")
    t.equal(list(listed), ["a.0", "a.1"], "in the order of their devices")
    for name, row in listed.items():
        t.equal({k: row[k] for k in attributes(a, row["device"])},
                attributes(a, row["device"]), f"{name}: what sysfs says")
        t.equal({k: row[k] for k in function(a, row["device"])},
                function(a, row["device"]), f"{name}: its PCI function")
    t.equal(len({r["guid"] for r in listed.values()}), 2, "two guids")
    for port, near, far in (("a.0", 0, 1), ("a.1", 1, 0)):
        # Without a driver the verdict is no; the path is the same.
        done = fabric.ctl(a, f"--json p2p {port} {GPU[near]}")
        row = json.loads(done.stdout)["pairs"][0]
        t.equal(gpus(listed[port])[0],
                (bdf[near], row["path"], row["distance"]),
                f"{port}: the GPU of its switch first, as fabrexctl p2p says")
        t.equal(row["path"], "switch", f"{port}: which is a common switch")
        t.equal([g[:2] for g in gpus(listed[port])],
                [(bdf[near], "switch"), (bdf[far], "root")],
                f"{port}: then the other one, by the root complex")
    for near, first in ((bdf[0], "a.0"), (bdf[1], "a.1"), ("a.1", "a.1")):
        t.equal(list(ports(a, f"--near {near}"))[0], first,
                f"{first} is the nearest to {near}")
    fabric.release(a, GPU[1])
    fabric.wait_gpus(a, 1)
    now = ports(a)
    t.equal([g[:2] for g in gpus(now["a.1"])], [(bdf[0], "root")],
            "released: only the other switch's GPU")
    t.equal([remaining(r) for r in now.values()],
            [remaining(r) for r in listed.values()], "the ports are the same")
    fabric.release(a, GPU[0])


@scenario(hosts=["a"], topology=PATHS, kernels=KERNELS)
def users_see_them_too(lab, t):
    """Without privileges the list is the same, but for who may open a port."""
    a = lab.guest("a")
    compose(t, a, GPU[0], "a.0")
    fabric.wait_gpus(a, 1)
    root = ports(a)
    for user, become, may in (("a member of group fabrex", MEMBER, True),
                              ("nobody", NOBODY, False)):
        seen = ports(a, become=become)
        t.equal({r["may_open"] for r in seen.values()}, {may},
                f"{user} may open them: {may}")
        for row in seen.values():
            row["may_open"] = True
        t.equal(seen, root, f"{user}: all else as root sees it")
    done = a.run(f"{NOBODY} fabrex-perf server --once")
    t.ok(done.status == 2 and "permission denied" in done.stderr,
         "who may not open a port is told, and gets no other", done.stderr)
    fabric.release(a, GPU[0])


def load(guest, *names):
    """Put modules in that were taken out."""
    files = kmod.modules(guest.kernel.release)
    for name in names:
        guest.sh(f"insmod {files[name]}")


def lines(command):
    """Whole lines of its output so far."""
    return command.output().split("\n")[:-1]


def wait_lines(command, more):
    """Until it has printed so many more."""
    end = len(lines(command)) + more
    while not command.result and len(lines(command)) < end:
        command.poll()
        time.sleep(0.02)


@scenario(hosts=["a"], topology=PATHS, kernels=KERNELS, fresh=True)
def while_ports_come_and_go(lab, t):
    """The driver is unloaded and loaded while somebody lists without end: a port
    is listed whole or not at all. Without one, loopback is not what one gets."""
    a = lab.guest("a")
    whole = {n: remaining(r) for n, r in ports(a).items()}
    listing = a.start_command("while fabrex-perf ports --json; do :; done")
    wait_lines(listing, 2)
    for _ in range(4):
        a.sh("rmmod fabrex_draco")
        wait_lines(listing, 3)
        load(a, "fabrex_draco")
        wait_lines(listing, 3)
    t.ok(not listing.result, "nothing failed meanwhile", listing.result)
    listing.kill()
    listing.wait(30)
    seen, torn = set(), []
    for line in lines(listing):
        rows = json.loads(line)["ports"]
        seen.add(len(rows))
        for row in rows:
            due = whole.get(row["name"], {})
            torn += [(k, row[k]) for k in due
                     if row[k] != due[k] and
                     k not in ("device", "generation", "link_up", "alive",
                               "may_open")]
            if not due:
                torn.append(row)
    t.diag(f"{len(lines(listing))} lists, with {sorted(seen)} ports")
    t.equal(torn, [], "every port was whole")
    t.ok({0, 2} <= seen, "it was seen with and without ports", seen)
    a.sh("rmmod fabrex_draco && rmmod fabrex")
    t.equal(ports(a), {}, "no module: no ports, no error")
    for env in ({}, {"FABREX_FABRIC": "here"}):
        for args in ("server --once", "all_reduce", "write-lat --peer b"):
            done = a.run("fabrex-perf " + args, env=env)
            t.ok(done.status == 2 and "FABREX_PORT=loopback:NAME" in
                 done.stderr, f"{args}, {env}: loopback has to be asked for",
                 done.stderr)
    load(a, "fabrex", "fabrex_draco")
    t.ok(fabric.wait_port(a), "the ports are back")
