# SPDX-License-Identifier: GPL-2.0-only
"""fabrexctl as an operator meets it: the examples of its manual pages, exit
codes, errors as JSON, holders, all-or-nothing, events that are not missed."""

import glob
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
import space
from scenario import STOCK, scenario

MAN = os.path.join(space.TREE, "tools", "fabrexctl", "man")
EP = "columba1.gpu0"

# Opens a PCI resource, maps it, closes it, waits: only the mapping is left.
HOLD = ("exec python3 -c \"import mmap, os, sys\n"
        "fd = os.open('/sys/bus/pci/devices/{pci}/resource0', os.O_RDWR)\n"
        "m = mmap.mmap(fd, 4096)\n"
        "os.close(fd)\n"
        "print('ready', flush=True)\nsys.stdin.read()\"")


def examples(path):
    """Commands of a page's EXAMPLES, each as the reader would type it."""
    with open(path) as f:
        text = f.read()
    m = re.search(r"^\.SH EXAMPLES\n\.EX\n(.*?)^\.EE", text, re.S | re.M)
    if not m:
        return []
    lines = m.group(1).replace("\\-", "-").replace("\\\\", "\\").splitlines()
    commands = []
    while lines:
        command = lines.pop(0)
        if "<<END" in command:
            while lines and not command.endswith("\nEND"):
                command += "\n" + lines.pop(0)
        commands.append(command)
    return commands


@scenario(hosts=["a", "b", "c"], kernels=STOCK)
def manual_page_examples(lab, t):
    """Every example of every page works as printed."""
    a = lab.guest("a")
    seen = 0
    for page in sorted(glob.glob(os.path.join(MAN, "*.8"))):
        commands = examples(page)
        if commands:
            fabric.release_all(lab, a)
        for command in commands:
            got = a.run("cd /tmp && bash -c " + quote(command), timeout=60)
            t.ok(got.status == 0,
                 f"{os.path.basename(page)}: {command.splitlines()[0]}",
                 got.stdout + got.stderr)
            if command.endswith("--json"):
                for line in documents(got.stdout):
                    json.loads(line)
            seen += 1
    t.ok(seen > 25, f"{seen} examples")
    fabric.release_all(lab, a)


def quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def documents(text):
    """JSON that goes to a program has one document in each line."""
    return text.splitlines()


def fails(t, guest, args, status, errno):
    """A failure has its exit code, its errno as JSON, and nothing else."""
    plain = guest.run("fabrexctl " + args)
    t.equal(plain.status, status, f"fabrexctl {args}: exit code")
    t.ok(plain.stderr.startswith("fabrexctl: ") and not plain.stdout,
         "a sentence on stderr, nothing on stdout", plain.stderr)
    got = guest.run("fabrexctl --json " + args)
    error = json.loads(got.stdout)["error"]
    t.equal((got.status, error["errno"], error["exit_code"]),
            (status, errno, status), "and the same as JSON")
    return error


@scenario(hosts=["a", "b", "c"])
def errors_and_exit_codes(lab, t):
    """What fabrexctl(8) says about exit codes."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    fails(t, a, "compose columba1.gpu0", 2, "EINVAL")
    error = fails(t, a, "compose columba1.gpuO --to a", 3, "ENOENT")
    t.ok("columba1.gpu0" in error["message"], "a suggestion",
         error["message"])
    fails(t, a, "compose gpu:99 --to a", 9, "ENOSPC")
    t.need(fabric.compose(a, EP, "a").status == 0, "compose")
    error = fails(t, b, f"compose {EP} --to b", 4, "EADDRINUSE")
    t.ok("a.0" in error["message"] and error["object"] == EP,
         "names the holder", error["message"])
    fails(t, a, "port a.0 disable", 4, "EBUSY")
    fails(t, a, "port draco1:4 disable", 4, "EBUSY")
    fails(t, a, "monitor --count 1 --timeout 0.2 --type port-removed", 7,
          "ETIMEDOUT")
    denied = a.run(f"setpriv --reuid 65534 --regid 65534 --clear-groups "
                   f"fabrexctl release {EP}")
    t.equal(denied.status, 5, "an ordinary user may not release")
    looked = a.run("setpriv --reuid 65534 --regid 65534 --clear-groups "
                   "fabrexctl list endpoints --bound")
    t.ok(looked.status == 0 and EP in looked.stdout, "but may look")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b", "c"])
def held_by_a_mapping(lab, t):
    """holders, the agent and a refused release say the same."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, EP, "a").status == 0, "compose")
    pci = fabric.endpoint(a, EP)["pci_name"]
    t.equal(fabric.ctl_json(a, f"holders {EP}")["holders"], [], "nobody yet")
    user = a.start_command(HOLD.format(pci=pci), keep_stdin=True)
    user.wait_for("ready")
    found = fabric.ctl_json(a, f"holders {pci}")["holders"]
    t.equal(len(found), 1, "one holder")
    t.equal(found[0]["comm"], "python3", "by name")
    t.ok("resource0" in found[0]["reason"], found[0]["reason"])
    error = fails(t, b, f"release {EP} {fabric.PATIENT}", 4, "EBUSY")
    t.ok(str(found[0]["pid"]) in error["message"], "the refusal names it",
         error["message"])
    user.close_stdin()
    user.wait(20)
    t.equal(fabric.release(b, EP).status, 0, "afterwards it is let go")


@scenario(hosts=["a", "b", "c"])
def all_or_nothing(lab, t):
    """An apply that cannot be done whole leaves everything as it was."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, "columba1.gpu0 columba1.gpu1", "a").status == 0,
           "two for a")
    t.need(fabric.compose(b, "columba1.gpu4", "b").status == 0, "one for b")
    before = bindings(a)
    pci = fabric.endpoint(a, "columba1.gpu1")["pci_name"]
    user = a.start_command(HOLD.format(pci=pci), keep_stdin=True)
    user.wait_for("ready")
    b.put(b"bindings = ("
          b"{ endpoint = \"columba1.gpu0\"; port = \"b.0\"; },"
          b"{ endpoint = \"columba1.gpu1\"; port = \"b.0\"; },"
          b"{ class = \"gpu\"; count = 4; host = \"c\"; });", "/tmp/w.conf")
    plan = b.run("fabrexctl plan /tmp/w.conf --detailed-exitcode")
    t.equal(plan.status, 8, "plan finds differences")
    got = b.run("fabrexctl apply /tmp/w.conf --prune "
                + fabric.PATIENT, timeout=120)
    t.equal(got.status, 4, "apply is refused")
    t.ok("as they were before" in got.stderr, "and says so", got.stderr)
    t.equal(bindings(a), before, "all bindings are as before")
    t.equal(len(fabric.wait_gpus(a, 2)), 2, "a has its two devices")
    user.close_stdin()
    user.wait(20)
    got = b.run("fabrexctl apply /tmp/w.conf --prune "
                + fabric.PATIENT, timeout=120)
    t.ok(got.status == 0, "afterwards it works", got.stderr)
    t.equal(len(fabric.wait_gpus(b, 2)), 2, "b has two")
    again = b.run("fabrexctl apply /tmp/w.conf --prune --json")
    t.equal(json.loads(again.stdout)["changes"], [], "again: nothing to do")
    fabric.release_all(lab, a)


def bindings(guest):
    return {n: r["port"] for n, r in fabric.endpoints(guest).items()
            if r["port"]}


@scenario(hosts=["a", "b", "c"])
def events_in_order(lab, t):
    """monitor on a third host sees a composition from free to free."""
    a, c = lab.guest("a"), lab.guest("c")
    fabric.release_all(lab, a)
    watch = c.start_command("fabrexctl monitor --json --ready --timeout 900 "
                            "--type endpoint,lost")
    watch.wait_for("ready")
    t.need(fabric.compose(a, EP, "b").status == 0, "compose")
    got = fabric.release(a, EP)
    t.need(got.status == 0, "release", got.stdout + got.stderr)
    watch.wait_for('"free"')
    watch.kill()
    lines = [json.loads(line) for line in watch.wait(20).stdout.splitlines()
             if line.endswith("}")]
    states = [e["state"] for e in lines if e.get("name") == EP]
    for state in ("binding", "bound", "releasing", "free"):
        t.ok(state in states, f"{EP} was {state}", states)
    t.equal([s for i, s in enumerate(states) if s not in states[:i]],
            ["binding", "bound", "releasing", "free"], "in that order")


@scenario(hosts=["a", "b", "c"], kernels=STOCK)
def completion(lab, t):
    """The script asks the binary, the binary asks the kernel."""
    a = lab.guest("a")
    got = a.sh("fabrexctl __complete compose columba1.gpu").split()
    t.equal(got, [f"columba1.gpu{n}" for n in range(8)], "endpoints")
    got = a.sh("fabrexctl __complete compose gpu:2 --to ''").split()
    t.ok(set(got) >= {"a", "b", "c", "a.0", "b.0", "c.0"}, "hosts", got)
    script = a.sh("fabrexctl completion bash")
    t.equal(a.run("bash -n", stdin=script.encode()).status, 0,
            "the script is one")
