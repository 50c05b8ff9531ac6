# SPDX-License-Identifier: GPL-2.0-only
"""fabrexctl on an emulated Switchtec PFX: hosts that have Linux's own driver and no
module of ours compose with it, refuse what would do harm, and leave others alone."""

import json
import os
import signal
import sys

import upstream
from ntb import SWITCHTEC, Side, exchange, unload
from switch import BIND, TOPOLOGY, pfx_scenario

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
import space
from fabric import ctl

BUSY, DENIED, TIMED_OUT, FAILED = 4, 5, 7, 1
NAMES = [f"columba1.gpu{n}" for n in range(4)]
HOLD = ("exec python3 -c \"import mmap, os, sys\n"
        "fd = os.open('/sys/bus/pci/devices/{pci}/resource0', os.O_RDWR)\n"
        "m = mmap.mmap(fd, 4096)\n"
        "print('ready', flush=True)\nsys.stdin.read()\"")


def page():
    """Command lines of its block of shell."""
    with open(os.path.join(space.TREE, "docs", "compose-switchtec.md")) as f:
        block = f.read().split("```sh\n")[1].split("```")[0]
    return [line.split("#")[0].removeprefix("fabrexctl ").strip()
            for line in block.splitlines()]


def operators(lab):
    """a, b and c with the driver and the file of the fabric; nothing is bound."""
    guests = [lab.guest(name) for name in "abc"]
    with open(TOPOLOGY, "rb") as f:
        text = f.read()
    for guest in guests:
        upstream.load(guest, "switchtec")
        guest.sh("mkdir -p /etc/fabrex")
        guest.put(text, "/etc/fabrex/fabric.topo")
    free_all(guests)
    return guests


def free_all(guests):
    have = owners(guests[0])
    for guest in guests:
        mine = [name for name in have if have[name] == guest.name]
        if mine:
            ctl(guest, f"release {' '.join(mine)}", timeout=120)
        fabric.wait_gpus(guest, 0)


def owners(guest):
    """{endpoint: host} of what is bound."""
    return {name: row["host"] for name, row in fabric.endpoints(guest).items()
            if row["state"] == "bound"}


def refused(t, guest, args, status, says, timeout=60):
    """It fails with that exit status and says why."""
    done = ctl(guest, args, timeout=timeout)
    t.ok(done.status == status and says in done.stderr,
         f"{args}: refused", (done.status, done.stdout, done.stderr))


@pfx_scenario()
def operator(lab, t):
    """From the first look to an empty fabric."""
    a, b, c = operators(lab)
    t.equal(a.run("lsmod | grep -c ^fabrex").stdout.strip(), "0",
            "none of our modules is loaded")
    rows = fabric.endpoints(a)
    t.equal({row["state"] for row in rows.values()}, {"free"},
            "all endpoints are free")
    ports = {p["name"]: p
             for p in fabric.ctl_json(a, "list ports")["ports"]}
    t.equal((ports["c.0"]["state"], ports["pfx1:5"]["kind"],
             ports["a.0"]["local"]), ("up", "uplink", True), "ports")
    watch = a.start_command("fabrexctl --json monitor --type endpoint --ready")
    watch.wait_for("ready")
    change = fabric.ctl_json(a, f"compose {NAMES[0]} --to a")["changes"][0]
    t.diag(f"compose to a usable device: {change['seconds']} s (emulated)")
    t.equal(fabric.gpus(a), [change["pci_name"]],
            "a has a GPU where it is said to be")
    t.equal(ctl(a, f"compose {NAMES[1]} --to c").status, 0, "compose to c")
    t.equal(len(fabric.wait_gpus(c, 1)), 1, "c finds it")
    t.equal(owners(c), {NAMES[0]: "a", NAMES[1]: "c"}, "c sees the same")
    refused(t, a, f"compose {NAMES[1]} --to a", BUSY, "bound to c.0")
    refused(t, b, f"compose {NAMES[2]} --to b", DENIED, "a manager: a, c")
    refused(t, a, f"release {NAMES[1]}", BUSY, "run this command there")
    t.equal(len(fabric.gpus(c)), 1, "c still has it")
    in_use(t, a, change["pci_name"])
    t.equal(ctl(c, f"move {NAMES[1]} --to b", timeout=120).status, 0,
            "c gives its own to b")
    t.equal([len(fabric.wait_gpus(g, n)) for g, n in ((b, 1), (c, 0))], [1, 0],
            "b has it, c has not")
    b.sh("for s in /sys/bus/pci/slots/*; do "
         "[ -n \"$(lspci -s $(cat $s/address))\" ] && echo 0 >$s/power; done; "
         "true")
    t.equal(fabric.wait_gpus(b, 0), [], "b, no manager, takes it out in order")
    t.equal(ctl(a, f"release {NAMES[1]}").status, 0, "then a may release it")
    t.equal(ctl(a, f"release {NAMES[0]}").status, 0, "and its own")
    t.equal((fabric.wait_gpus(a, 0), owners(a)), ([], {}), "all are free")
    events(t, watch)


def in_use(t, guest, pci):
    """A device that a process has mapped is not taken away, unless by force."""
    user = guest.start_command(HOLD.format(pci=pci), keep_stdin=True)
    user.wait_for("ready")
    refused(t, guest, f"release {NAMES[0]}", BUSY, "is in use: pid")
    t.equal(fabric.gpus(guest), [pci], "it is still there")
    user.close_stdin()
    user.wait(20)


def events(t, watch):
    """What a monitor has printed meanwhile."""
    watch.kill(signal.SIGTERM)
    lines = [json.loads(line) for line in watch.wait(20).stdout.splitlines()
             if line.startswith("{")]
    seen = [(e["name"], e["state"]) for e in lines if e["type"] == "endpoint"]
    for name in NAMES[:2]:
        states = [state for who, state in seen if who == name]
        t.ok("bound" in states and states[-1] == "free",
             f"the monitor has seen {name} come and go", seen)


@pfx_scenario()
def by_file(lab, t):
    """plan and apply; what cannot be done whole is taken back."""
    a, _, c = operators(lab)
    a.put(b"bindings = (\n"
          b"  { endpoint = \"columba1.gpu2\"; host = \"c\"; },\n"
          b"  { class = \"gpu\"; count = 2; host = \"a\"; } );\n", "/tmp/w.conf")
    t.equal(ctl(a, "plan /tmp/w.conf --detailed-exitcode").status, 8,
            "plan finds differences")
    t.equal(ctl(a, "apply /tmp/w.conf").status, 0, "apply")
    t.equal([len(fabric.wait_gpus(g, n)) for g, n in ((a, 2), (c, 1))], [2, 1],
            "all are where the file says")
    t.equal(ctl(a, "plan /tmp/w.conf --detailed-exitcode").status, 0,
            "a second time changes nothing")
    before = owners(a)
    a.put(b"bindings = (\n"
          b"  { endpoint = \"columba1.gpu0\"; host = \"a\"; },\n"
          b"  { endpoint = \"columba1.gpu1\"; host = \"c\"; },\n"
          b"  { endpoint = \"columba1.gpu2\"; host = \"c\"; },\n"
          b"  { endpoint = \"columba1.gpu3\"; host = \"c\"; } );\n",
          "/tmp/v.conf")
    lab.emu_control({"cmd": "remove", "endpoint": NAMES[3]})
    done = ctl(a, "apply /tmp/v.conf --prune", timeout=120)
    lab.emu_control({"cmd": "insert", "endpoint": NAMES[3]})
    t.ok(done.status != 0, "what the switch refuses in the middle",
         done.stdout + done.stderr)
    t.ok("as they were before" in done.stderr, "is taken back", done.stderr)
    t.equal(owners(a), before, "all bindings are as before")


@pfx_scenario()
def as_written(lab, t):
    """The commands of the operator's page."""
    a, *_ = operators(lab)
    for line in page():
        done = ctl(a, line, timeout=120)
        t.ok(done.status == 0, f"fabrexctl {line}", done.stdout + done.stderr)


@pfx_scenario()
def shared_port(lab, t):
    """Two GPUs and a drive behind one port: they are bound together or not at all,
    and only if somebody has named all of them."""
    a, _, c = operators(lab)
    refused(t, a, "compose columba2.gpu0 --to c", FAILED,
            "together with columba2.gpu1, columba2.nvme0")
    t.equal(owners(a), {}, "nothing was bound")
    change = fabric.ctl_json(a, "compose pfx1:9 --to a")["changes"]
    t.equal(sorted(row["pci_name"] for row in change),
            sorted(a.sh("lspci -D -d 1234: | cut -d' ' -f1").split()),
            "all three have come, each where it is said to be")
    refused(t, a, "release columba2.gpu1", FAILED, "together with")
    drive = next(row["pci_name"] for row in change
                 if row["endpoint"] == "columba2.nvme0")
    user = a.start_command(HOLD.format(pci=drive), keep_stdin=True)
    user.wait_for("ready")
    refused(t, a, "release pfx1:9", BUSY, f"{drive}, which came with pfx1:9, is")
    user.close_stdin()
    user.wait(20)
    t.equal(ctl(a, "move pfx1:9 --to c", timeout=120).status, 0, "all go to c")
    t.equal((len(fabric.wait_gpus(c, 2)), fabric.wait_gpus(a, 0)), (2, []),
            "c has both GPUs, a none")
    t.equal(ctl(a, "compose gpu:2 --to a", timeout=120).status, 0,
            "a selector takes ports that have one each")
    t.equal(len(fabric.wait_gpus(a, 2)), 2, "a has two")
    mine = sorted(name for name, host in owners(a).items() if host == "a")
    used = fabric.endpoint(a, mine[0])["pci_name"]
    user = a.start_command(HOLD.format(pci=used), keep_stdin=True)
    user.wait_for("ready")
    t.equal(ctl(a, f"release {mine[0]} --force", timeout=120).status, 0,
            "what is in use is taken away by force")
    t.ok(used not in fabric.wait_gpus(a, 1), "it is gone")
    user.close_stdin()
    user.wait(20)


@pfx_scenario()
def hostile_firmware(lab, t):
    """A command that is denied, and answers that are cut off or wrong."""
    a, *_ = operators(lab)
    try_it = f"compose {NAMES[0]} --to c"
    lab.emu_control({"cmd": "fault", "port": "a.0", "kind": "wrong-return",
                     "opcode": BIND, "sub": 0, "value": 0x64010})
    refused(t, a, try_it, DENIED, "the switch's configuration denies it")
    for fault, says in (
            ({"kind": "short-answer", "length": 12}, "answer about bindings"),
            ({"kind": "wrong-answer", "offset": 0, "value": 49},
             "the number of entries is 49"),
            ({"kind": "wrong-answer", "offset": 0, "value": 2},
             "does not report port"),
            ({"kind": "corrupt-completion"}, "the number of entries is 255")):
        lab.emu_control({"cmd": "fault", "port": "a.0", "opcode": BIND,
                         "sub": 2, **fault})
        refused(t, a, try_it, FAILED, says)
    t.equal(owners(a), {}, "nothing was ever bound")


@pfx_scenario()
def two_managers(lab, t):
    """Both want everything at once: each GPU goes to one of them, whoever is
    refused is told so, and nothing is lost."""
    a, b, c = operators(lab)
    for turn in range(3):
        tries = [guest.start_command(
            "for n in 0 1 2 3; do fabrexctl compose columba1.gpu$n --to "
            f"{guest.name} --no-wait 2>&1 || true; done") for guest in (a, c)]
        said = "".join(command.wait(120).stdout for command in tries)
        have = owners(b)
        t.equal(sorted(have), NAMES, f"{turn}: every GPU is bound")
        t.equal(said.count("composed"), 4, f"{turn}: each once")
        told = [line for line in said.splitlines() if "composed" not in line]
        t.ok(len(told) == 4 and all(any(word in line for word in (
                 "bound", "until that has", "in progress")) for line in told),
             f"{turn}: the others are told", told)
        for guest in (a, c):
            mine = sorted(n for n in have if have[n] == guest.name)
            t.equal(len(fabric.wait_gpus(guest, len(mine))), len(mine),
                    f"{turn}: {guest.name} has {len(mine)}")
            if mine:
                t.equal(ctl(guest, f"release {' '.join(mine)}",
                            timeout=120).status, 0, f"{turn}: released")
    t.equal(owners(b), {}, "all are free")


@pfx_scenario()
def silent_firmware(lab, t):
    """No answer is an error in time, not a command that hangs."""
    a, _, c = operators(lab)
    lab.emu_control({"cmd": "admin-hang", "port": "a.0", "opcode": BIND,
                     "count": 1})
    refused(t, a, f"compose {NAMES[0]} --to c", TIMED_OUT,
            "has not answered command 0xc")
    refused(t, a, f"compose {NAMES[0]} --to c", TIMED_OUT, "another program's")
    t.equal(ctl(c, f"compose {NAMES[0]} --to c").status, 0,
            "for another manager the switch goes on")
    t.equal(len(fabric.wait_gpus(c, 1)), 1, "and binds")
    upstream.unload(a, "switchtec")
    a.sh(f"echo 1 >/sys/bus/pci/devices/{SWITCHTEC.device}/reset")
    upstream.load(a, "switchtec")
    t.equal(owners(a), {NAMES[0]: "c"}, "after a reset it answers again")


@pfx_scenario()
def others(lab, t):
    """IP through the bridge between a and b, while GPUs come and go at a and c."""
    a, b, c = operators(lab)
    ends = [Side(guest) for guest in (a, b)]
    for end in ends:
        end.load("ntb_netdev")
    busy = c.start_command(
        "for n in 0 1 2; do fabrexctl compose columba1.gpu$n --to c && "
        "fabrexctl release columba1.gpu$n || exit 1; done")
    exchange(t, *ends)
    done = busy.wait(300)
    t.ok(done.status == 0, "GPUs have come and gone meanwhile",
         done.stdout + done.stderr)
    for end in ends:
        unload(end.guest)
