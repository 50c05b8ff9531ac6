# SPDX-License-Identifier: GPL-2.0-only
"""`fabrexctl p2p` against what a real transfer then does: the verdict, the
culprit it names and the remedy, each tried out. The transfer registers a GPU's
memory for a port and writes into it from host memory; the GPU sums up what has
arrived."""

import json
import os
import queue
import random
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", d) for d in ("gpu", "common")]
import fabric
import gpulab
import machine
from command import CommandTimeout
from scenario import scenario

PATHS = os.path.join(HERE, "..", "gpu", "paths.topo")
NEW = ("7.2", "debug")
GPU = [f"columba1.gpu{n}" for n in range(4)]


class Transfer:
    """A process that has a port and a GPU open (p2p/transfer.c)."""

    def __init__(self, guest, port, bdf):
        self.lines = queue.Queue()
        self.seed = 0
        self.command = guest.start_command(
            ["p2p-transfer", port, bdf], keep_stdin=True,
            on_line=lambda _stream, line: self.lines.put(line))
        self.line()

    def line(self, timeout=30):
        end = time.monotonic() + timeout * self.command.guest.patience
        while time.monotonic() < end:
            self.command.poll()
            try:
                return self.lines.get(timeout=0.005)
            except queue.Empty:
                if self.command.result:
                    break
        raise CommandTimeout("p2p-transfer does not answer")

    def ask(self, text):
        self.command.write((text + "\n").encode())
        return self.line()

    def write(self):
        """Status of a write, and what it writes."""
        self.seed += 1
        return self.ask(f"write {self.seed}"), self.seed

    def arrives(self, look="holds"):
        """Whether a write arrives in a region that is registered already, and
        what happened. look="shows": by the CPU's eyes."""
        status, _ = self.write()
        there = self.ask(f"{look} {self.seed}") if status == "OK" else status
        return there == "yes", status if status == there else \
            f"{status}, there: {there}"

    def end(self):
        self.command.close_stdin()
        self.command.wait(30)


def attempt(guest, port, bdf):
    """Register, write, compare: (whether all worked, what did not)."""
    run = Transfer(guest, port, bdf)
    registered = run.ask("register")
    good, why = run.arrives() if registered == "ok" else (False, registered)
    run.end()
    return good, why


def address(guest, name):
    """Of an endpoint; the port that it is bound to knows it."""
    port = fabric.endpoint(guest, name)["port"]
    rows = fabric.ctl_json(guest, f"--fport {port} list endpoints")
    return next(r["pci_name"] for r in rows["endpoints"] if r["name"] == name)


def port_address(guest, port):
    rows = fabric.ctl_json(guest, "list fports")["fports"]
    return next(r["pci_name"] for r in rows if r["name"] == port)


def above(guest, bdf):
    """The bridge that a device is in: its slot."""
    return guest.sh("basename $(dirname $(readlink -f "
                    f"/sys/bus/pci/devices/{bdf}))").strip()


def compose(t, guest, name, port):
    """Give a GPU to a port of the host; its address when it has a driver."""
    done = fabric.ctl(guest, f"--fport {port} compose {name} --to {port} "
                      + fabric.PATIENT)
    t.need(done.status == 0, f"{name} composed to {port}", done.stderr)
    bdf = address(guest, name)
    guest.sh(f"for i in $(seq 5000); do [ -e /sys/bus/pci/devices/{bdf}/driver "
             "] && exit 0; sleep 0.02; done; exit 1")
    return bdf


def ask(guest, a, b):
    """The row of a pair, and the exit status."""
    done = fabric.ctl(guest, f"--json p2p {a} {b}")
    return json.loads(done.stdout)["pairs"][0], done.status


def same_as_transfer(t, guest, port, name, what):
    """The verdict on a pair is what a transfer does; the row."""
    row, status = ask(guest, port, name)
    good, why = attempt(guest, port, address(guest, name))
    t.diag(row["text"])
    t.equal(row["verdict"], "yes" if good else "no",
            f"{what}: verdict is what the transfer did ({why})")
    t.equal(status, 0 if good else 11, f"{what}: exit status")
    if not good:
        t.ok(row["remedy"], f"{what}: there is a remedy")
    return row


def culprit(t, row, reason, blocker, bits, what):
    t.equal((row["verdict"], row["reason"], row["blocker"], row["bits"]),
            ("no", reason, blocker, bits), f"{what}: culprit")
    t.ok(blocker is None or blocker in row["text"],
         f"{what}: the sentence names it", row["text"])


def good(t, row, path, distance, what):
    t.equal((row["verdict"], row["reason"], row["path"], row["distance"]),
            ("yes", None, path, distance), f"{what}: yes and how")


def follow(guest, row):
    """Do what the remedy says, as far as it is a command to type."""
    command = re.search(r"setpci -s \S+ \S+=\S+?(?=[ ,;]|$)", row["remedy"])
    guest.sh(command.group(0))
    return command.group(0)


def allow(guest):
    """What Linux says about pairs that it refuses; our devices in reset."""
    guest.allow_log(r"ACS redirect|disable_acs_redir|p2pdma|P2PDMA|"
                    r"peer-to-peer|draco_gpu")


@scenario(hosts=["a"], topology=PATHS, kernels=NEW)
def same_switch_and_acs(lab, t):
    """Below one switch; then ACS redirect on either slot, and the remedy."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    bdf = compose(t, a, GPU[0], "a.0")
    port, slot = port_address(a, "a.0"), above(a, bdf)
    row = same_as_transfer(t, a, "a.0", GPU[0], "one switch")
    good(t, row, "switch", 4, "one switch")
    t.equal(row["initiator_pci_name"], port, "of that port")
    for bridge in (slot, above(a, port)):
        a.sh(f"setpci -s {bridge} ECAP_ACS+6.w=1d")
        row = same_as_transfer(t, a, "a.0", GPU[0], f"ACS on {bridge}")
        culprit(t, row, "acs", bridge, "0x000c", f"ACS on {bridge}")
        t.ok(f"pci=disable_acs_redir={bridge}," in row["remedy"],
             "the kernel parameter names it")
        follow(a, row)
        row = same_as_transfer(t, a, "a.0", GPU[0], "after the remedy")
        good(t, row, "switch", 4, "after the remedy")
    both = fabric.ctl_json(a, "p2p")["pairs"]
    mine = [r for r in both if {r["initiator"], r["target"]} ==
            {"a.0", GPU[0]}]
    t.ok(mine and mine[0]["verdict"] == "yes", "the list says so too", both)
    fabric.release(a, GPU[0])


@scenario(hosts=["a"], topology=PATHS, kernels=NEW)
def only_the_root_complex(lab, t):
    """Two host ports, two root ports: q35's root complex is not trusted."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    compose(t, a, GPU[0], "a.0")
    compose(t, a, GPU[1], "a.1")
    for port, name in (("a.0", GPU[1]), ("a.1", GPU[0])):
        row = same_as_transfer(t, a, port, name, f"{port} to {name}")
        t.equal((row["reason"], row["path"], row["common"]),
                ("root-complex", "root", None), "only the root complex")
        t.ok("8086:29c0" in row["text"], "the host bridge is named")
    # Its own switch is the remedy.
    row = same_as_transfer(t, a, "a.1", GPU[1], "same switch")
    good(t, row, "switch", 4, "same switch")
    row, status = ask(a, GPU[0], GPU[1])
    t.equal((row["verdict"], row["reason"], status), ("no", "root-complex", 11),
            "GPU to GPU likewise")
    fabric.release(a, f"{GPU[0]} {GPU[1]}")


ROUNDS = 25


@scenario(hosts=["a"], topology=PATHS, kernels=NEW)
def agrees_with_linux(lab, t):
    """Whatever bits the bridges have, what is found explains what Linux says:
    a "refused", or a yes that is only Linux's, would be a case not known."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    compose(t, a, GPU[0], "a.0")
    compose(t, a, GPU[1], "a.1")
    bridges = a.sh("cd /sys/bus/pci/devices; for d in *; do setpci -s $d "
                   "ECAP_ACS+6.w >/dev/null 2>&1 && echo $d; done; :").split()
    chance = random.Random(1)
    seen, odd = set(), []
    for _ in range(ROUNDS):
        bits = [chance.choice((0, 0, 0, 1, 0x11, 4, 8, 0xc, 0x1d))
                for _ in bridges]
        a.sh("; ".join(f"setpci -s {b} ECAP_ACS+6.w={v:x}"
                       for b, v in zip(bridges, bits)))
        for row in fabric.ctl_json(a, "p2p")["pairs"]:
            seen.add((row["verdict"], row["reason"]))
            if row["reason"] == "refused" or "Linux says so" in row["text"]:
                odd.append(row["text"])
    a.sh("; ".join(f"setpci -s {b} ECAP_ACS+6.w=0" for b in bridges))
    t.equal(odd, [], f"{ROUNDS} settings of {len(bridges)} bridges")
    t.ok({("yes", None), ("no", "acs"), ("no", "root-complex")} <= seen,
         "verdicts of all kinds were among them", seen)
    fabric.release(a, f"{GPU[0]} {GPU[1]}")


@scenario(hosts=["a"], topology=PATHS, kernels=NEW, cpu=machine.AMD_CPU)
def trusted_root_complex(lab, t):
    """On AMD's Zen Linux sends it through the root complex."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    bdf = compose(t, a, GPU[0], "a.0")
    compose(t, a, GPU[1], "a.1")
    row = same_as_transfer(t, a, "a.0", GPU[1], "other switch")
    good(t, row, "root", 8, "other switch")
    t.ok("AMD processor of family 0x17" in row["text"], "and says why",
         row["text"])
    a.sh(f"setpci -s {above(a, bdf)} ECAP_ACS+6.w=1d")
    row = same_as_transfer(t, a, "a.0", GPU[0], "ACS redirect")
    good(t, row, "root", 4, "ACS redirect")
    a.sh(f"setpci -s {above(a, bdf)} ECAP_ACS+6.w=0")
    row = same_as_transfer(t, a, "a.0", GPU[0], "no ACS redirect")
    good(t, row, "switch", 4, "no ACS redirect")
    fabric.release(a, f"{GPU[0]} {GPU[1]}")


def with_iommu(lab, t, translates):
    """With an IOMMU Linux sets ACS redirect on all bridges."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    bdf = compose(t, a, GPU[0], "a.0")
    slots = [above(a, port_address(a, "a.0")), above(a, bdf)]
    row = same_as_transfer(t, a, "a.0", GPU[0], "as booted")
    culprit(t, row, "acs", slots[0], "0x000c", "as booted")
    t.equal(row["iommu"], translates, "whether addresses are translated")
    t.ok(";".join(slots) in row["remedy"] and "IOMMU" in row["remedy"],
         "the remedy names both slots and why", row["remedy"])
    follow(a, row)
    row = same_as_transfer(t, a, "a.0", GPU[0], "one of two")
    culprit(t, row, "acs", slots[1], "0x000c", "one of two")
    follow(a, row)
    row = same_as_transfer(t, a, "a.0", GPU[0], "both")
    good(t, row, "switch", 4, "both")
    t.equal(row["iommu"], translates, "the IOMMU is as it was")
    fabric.release(a, GPU[0])


@scenario(hosts=["a"], topology=PATHS, kernels=NEW, iommu="on")
def iommu_translates(lab, t):
    """The IOMMU translates: ACS is what is in the way."""
    with_iommu(lab, t, True)


@scenario(hosts=["a"], topology=PATHS, kernels=NEW, iommu="pt")
def iommu_passes_through(lab, t):
    """The IOMMU passes through: ACS all the same."""
    with_iommu(lab, t, False)


def on_the_way_up(lab, t, translates):
    """A trusted root complex with an IOMMU in it: ACS redirects all up to it,
    and down again it comes, translated or not."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    compose(t, a, GPU[0], "a.0")
    compose(t, a, GPU[1], "a.1")
    for name, distance in ((GPU[0], 4), (GPU[1], 8)):
        row = same_as_transfer(t, a, "a.0", name, name)
        good(t, row, "root", distance, name)
        t.equal((row["iommu"], "translated by the IOMMU" in row["text"]),
                (translates, translates), "whether it is translated")
    fabric.release(a, f"{GPU[0]} {GPU[1]}")


@scenario(hosts=["a"], topology=PATHS, kernels=NEW, iommu="on",
          cpu=machine.AMD_CPU)
def translated_on_the_way_up(lab, t):
    """Through the root complex with an IOMMU that translates."""
    on_the_way_up(lab, t, True)


@scenario(hosts=["a"], topology=PATHS, kernels=NEW, iommu="pt",
          cpu=machine.AMD_CPU)
def not_translated_on_the_way_up(lab, t):
    """The same with one that passes through."""
    on_the_way_up(lab, t, False)


@scenario(hosts=["a"], topology=PATHS, kernels=NEW, iommu="on",
          append="pci=disable_acs_redir=0000:02:00.0;0000:02:01.0")
def remedy_at_boot(lab, t):
    """The kernel parameter that the remedy names, with a translating IOMMU."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    compose(t, a, GPU[0], "a.0")
    row = same_as_transfer(t, a, "a.0", GPU[0], "parameter")
    good(t, row, "switch", 4, "parameter")
    t.equal(row["iommu"], True, "the IOMMU translates")
    fabric.release(a, GPU[0])


@scenario(hosts=["a"], topology=PATHS, kernels=("6.12",))
def kernel_without_p2pdma(lab, t):
    """Debian's 6.12 has no PCI_P2PDMA."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    made = fabric.ctl(a, f"compose {GPU[0]} --to a.0 {fabric.PATIENT}")
    t.equal(made.status, 0, "composed all the same")
    t.ok("! a.0 will reach" in made.stdout and "CONFIG_PCI_P2PDMA"
         in made.stdout, "with a warning", made.stdout)
    refused = fabric.ctl(a, f"compose {GPU[1]} --to a.0 --require-p2p")
    t.equal(refused.status, 11, "--require-p2p refuses")
    t.ok("CONFIG_PCI_P2PDMA" in refused.stderr, "and says why",
         refused.stderr)
    t.equal(fabric.endpoint(a, GPU[1])["state"], "free", "nothing moved")
    row = same_as_transfer(t, a, "a.0", GPU[0], "6.12")
    culprit(t, row, "no-kernel-option", None, None, "6.12")
    t.ok("CONFIG_PCI_P2PDMA=y" in row["remedy"], "the option is the remedy")
    fabric.release(a, GPU[0])


def state_case(t, guest, run, name, command, undo, reason, blocker, bits,
               look="holds"):
    """Something happens to a device that a region is registered in."""
    guest.sh(command)
    row, _ = ask(guest, "a.0", GPU[0])
    status, seed = run.write()
    t.diag(row["text"])
    t.ok(status in ("RFAULT", "LFAULT"), f"{name}: a write fails", status)
    culprit(t, row, reason, blocker, bits, name)
    done = follow(guest, row) if undo is None else guest.sh(undo)
    t.equal(run.ask(f"shows {seed}"), "no", f"{name}: nothing has arrived")
    row, _ = ask(guest, "a.0", GPU[0])
    arrived, why = run.arrives(look)
    t.equal((row["verdict"], arrived), ("yes", True),
            f"{name}: after the remedy ({done.strip()}) both work ({why})")


@scenario(hosts=["a"], topology=PATHS, kernels=NEW, fresh=True)
def device_not_in_order(lab, t):
    """Memory decoding off, asleep, in reset: Linux would say yes."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    bdf = compose(t, a, GPU[0], "a.0")
    slot = above(a, bdf)
    run = Transfer(a, "a.0", bdf)
    t.need(run.ask("register") == "ok", "registered while it is in order")
    t.ok(run.arrives()[0], "a write arrives")
    state_case(t, a, run, "memory off", f"setpci -s {bdf} COMMAND=0:2", None,
               "memory-off", bdf, "0x0002")
    state_case(t, a, run, "asleep", f"setpci -s {bdf} CAP_PM+4.w=3:3",
               f"setpci -s {bdf} CAP_PM+4.w=0:3; sleep 0.05", "power", bdf,
               "0x0003", "shows")
    a.sh(f"setpci -s {slot} BRIDGE_CONTROL=40:40")
    row, _ = ask(a, "a.0", GPU[0])
    t.equal(run.write()[0], "RFAULT", "bus in reset: a write fails")
    culprit(t, row, "reset", slot, "0x0040", "bus in reset")
    follow(a, row)
    row, _ = ask(a, "a.0", GPU[0])
    t.equal(run.write()[0], "RFAULT", "after it: it fails too")
    culprit(t, row, "reset", bdf, row["bits"], "after the reset")
    run.end()
    for line in re.findall(r"echo 1 > [^; ]+", row["remedy"]):
        a.sh(line + "; sleep 0.3")
    a.sh(f"for i in $(seq 5000); do [ -e /sys/bus/pci/devices/{bdf}/driver ] "
         "&& exit 0; sleep 0.02; done; exit 1")
    row = same_as_transfer(t, a, "a.0", GPU[0], "set up anew")
    good(t, row, "switch", 4, "set up anew")
    fabric.release(a, GPU[0])


@scenario(hosts=["a", "b"], topology=PATHS, kernels=NEW)
def preflight(lab, t):
    """compose warns before, refuses on request, and p2p agrees afterwards."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    slot = above(a, port_address(a, "a.0"))
    a.sh(f"setpci -s {slot} ECAP_ACS+6.w=1d")
    refused = fabric.ctl(a, f"compose {GPU[0]} --to a.0 --require-p2p")
    t.equal(refused.status, 11, "refused on request")
    t.ok(slot in refused.stderr, "the bridge is named", refused.stderr)
    t.equal(fabric.endpoint(a, GPU[0])["state"], "free", "nothing moved")
    made = fabric.ctl(a, f"compose {GPU[0]} --to a.0 {fabric.PATIENT}")
    t.equal(made.status, 0, "composed with a warning")
    t.ok(slot in made.stdout and "! " in made.stdout, "that names the bridge",
         made.stdout)
    row = same_as_transfer(t, a, "a.0", GPU[0], "afterwards")
    culprit(t, row, "acs", slot, "0x000c", "afterwards")
    a.sh(f"setpci -s {slot} ECAP_ACS+6.w=0")
    made = fabric.ctl(a, f"compose {GPU[1]} --to b")
    t.ok(made.status == 0 and "!" not in made.stdout,
         "nothing is said of another host", made.stdout + made.stderr)
    row, status = ask(a, GPU[0], GPU[1])
    t.equal((row["path"], row["verdict"], row["host"], status),
            ("fabric", "unknown", "b", 11), "between hosts: ask there")
    words = re.search(r"fabrexctl (p2p .*)$", row["remedy"]).group(1)
    # b's kernel may still be looking at its new device.
    b = lab.guest("b")
    for _ in range(100):
        there = fabric.ctl(b, words)
        if "no PCI device for it" not in there.stderr:
            break
        time.sleep(0.1)
    t.ok("memory decoding" in there.stdout or there.status == 0,
         "which can be done", there.stdout + there.stderr)
    fabric.release(a, f"{GPU[0]} {GPU[1]}")


@scenario(hosts=["a"], topology=PATHS, kernels=NEW)
def seen_by_users(lab, t):
    """A user without rights gets the verdict, not the bridge."""
    a = lab.guest("a")
    allow(a)
    gpulab.load(a)
    bdf = compose(t, a, GPU[0], "a.0")
    done = fabric.ctl(a, f"--json p2p a.0 {GPU[0]}", user="tester2")
    row = json.loads(done.stdout)["pairs"][0]
    t.equal((row["verdict"], row["path"], row["distance"]),
            ("yes", "switch", 4), "the group may ask the kernel")
    slot = above(a, bdf)
    a.sh(f"setpci -s {slot} ECAP_ACS+6.w=1d")
    done = fabric.ctl(a, f"--json p2p a.0 {GPU[0]}", user="tester2")
    row = json.loads(done.stdout)["pairs"][0]
    t.equal((row["verdict"], row["reason"], row["blocker"]),
            ("no", "acs", None), "which says no")
    t.ok("run as root" in row["remedy"], "and root sees more", row["remedy"])
    a.sh(f"setpci -s {slot} ECAP_ACS+6.w=0")
    fabric.release(a, GPU[0])
