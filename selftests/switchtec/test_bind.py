# SPDX-License-Identifier: GPL-2.0-only
"""Commands to the emulated Switchtec switch through Linux' own character device:
ports are bound to partitions, and what is behind them is hot-plugged into hosts
that have no module of ours."""

import os

import upstream
from ntb import DEVICE, HERE, ntb_scenario

MRPC = os.path.join(HERE, "mrpc")
FILL = os.path.join(HERE, "fill")
BIND, LINKS, ECHO, PING = 0x0c, 0x1c, 0x41, 0x100
DENIED = 0x64010
PARTITION = {"a": 0, "b": 1, "c": 2}
FIRST_SLOT = 2			# of the host, for logical port 1
GPU = "1234:da10"
ANY = "1234:"
# What is behind port 9, in the order of its functions.
TOGETHER = ["columba2.gpu0", "columba2.gpu1", "columba2.nvme0"]


def ask(guest, command, payload, length=64):
    """(return value, output) of a command."""
    words = guest.sh(f"{MRPC} {command:#x} {payload.hex()} {length}").split()
    return int(words[0], 0), bytes.fromhex(words[1])


def change(guest, host, payload):
    """Bind or unbind; the return value, and whether the event has come."""
    words = guest.sh(f"{MRPC} bound {PARTITION[host]} {BIND:#x} {payload.hex()}",
                     130).split()
    return int(words[0], 0), words[1] == "event"


def bind(guest, host, logical, port):
    return change(guest, host, bytes([0, PARTITION[host], logical, port]))


def unbind(guest, host, logical):
    return change(guest, host, bytes([1, PARTITION[host], logical, 2]))


def info(guest, port):
    """(partition, logical port, state) as the switch says."""
    status, out = ask(guest, BIND, bytes([2, port, 0, 0]))
    assert (status, out[0], out[4]) == (0, 1, port), (status, out)
    return tuple(out[5:8])


def link_up(guest, port):
    """What the switch says of the link of a port."""
    status, out = ask(guest, LINKS, (1 << port).to_bytes(8, "little"))
    assert (status, out[0]) == (0, port), (status, out)
    return out[7] >= 0x80


def devices(guest, kind=GPU):
    return [line.split()[0] for line in
            guest.sh(f"lspci -D -d {kind}").splitlines()]


def wait_devices(guest, count, kind=GPU):
    """Wait until it has so many; where they are."""
    guest.run(f"for i in $(seq {int(400 * guest.patience)}); do "
              f"[ $(lspci -d {kind} | wc -l) = {count} ] && exit; sleep 0.05; "
              "done", 40)
    return devices(guest, kind)


def power_off(guest, logical):
    """In order: what is in that slot is taken out by its host."""
    guest.sh(f"echo 0 >/sys/bus/pci/slots/{FIRST_SLOT + logical - 1}/power")


def hosts(lab):
    found = [lab.guest(name) for name in "abc"]
    for guest in found:
        upstream.load(guest, "switchtec")
    return found


@ntb_scenario(hosts=("a", "b", "c"))
def commands(lab, t):
    a, b, _ = hosts(lab)
    t.equal(ask(a, ECHO, bytes.fromhex("78563412"), 4),
            (0, bytes.fromhex("87a9cbed")), "the echo is the complement")
    status, out = ask(b, PING, bytes(4), 8)
    t.equal((status, out[0] & 0xff, out[4:]), (0, 3, b"\xff" * 4),
            "the firmware runs")
    t.equal(ask(a, 0x7777, b"")[0], 0x64005, "an unknown command is refused")
    status, out = ask(a, LINKS, bytes(8), 720)
    ports = [out[i:i + 12] for i in range(0, 720, 12)]
    t.equal([tuple(p[:3]) for p in ports if p[3] < 0x80],
            [(1, 0, 0), (2, 1, 0), (3, 2, 0), (4, 255, 255)]
            + [(n, 255, 255) for n in range(5, 11)], "links of all ports")


def arm(lab, cmd="fault", **how):
    """A fault of the next command of a."""
    answer = lab.emu_control({"cmd": cmd, "port": "a.0", "opcode": ECHO, **how})
    assert answer["ok"], answer


def wait_hanging(guest, count):
    """Until so many commands of this guest wait for their answers."""
    guest.sh("until [ $(grep -sl switchtec_dev_read /proc/[0-9]*/wchan | wc -l) "
             f"= {count} ]; do sleep 0.1; done")


@ntb_scenario(hosts=("a", "b", "c"))
def firmware_faults(lab, t):
    """Linux' driver passes on what is wrong with an answer, and lives on without
    one."""
    a, b, _ = hosts(lab)
    sent, answer = bytes.fromhex("78563412"), bytes.fromhex("87a9cbed")
    arm(lab, kind="short-answer", length=2)
    t.equal(ask(a, ECHO, sent, 4), (0, answer[:2] + bytes(2)), "cut off")
    arm(lab, kind="wrong-answer", offset=3, value=9)
    t.equal(ask(a, ECHO, sent, 4), (0, answer[:3] + b"\x09"), "wrong byte")
    arm(lab, kind="wrong-return", value=DENIED)
    t.equal(ask(a, ECHO, sent, 4)[0], DENIED, "wrong return value")
    arm(lab, "admin-hang")
    first = a.start_command(f"{MRPC} {ECHO:#x} {sent.hex()} 4")
    wait_hanging(a, 1)
    second = a.start_command(f"{MRPC} {ECHO:#x} {sent.hex()} 4")
    wait_hanging(a, 2)
    a.sh(f"echo 1 >/sys/bus/pci/devices/{DEVICE}/reset")
    t.ok("Bad message" in first.wait(60).stderr,
         "who waits for an answer hears of the reset")
    t.equal(second.wait(60).check().stdout.split()[1], answer.hex(),
            "whose command has waited gets an answer")
    t.equal(ask(b, ECHO, sent, 4), (0, answer), "b has noticed nothing")


@ntb_scenario(hosts=("a", "b", "c"))
def compose(lab, t):
    a, b, c = hosts(lab)
    t.equal(bind(a, "c", 1, 5), (0, True), "bound, and the event has come")
    found = wait_devices(c, 1)
    t.equal(len(found), 1, "c finds a GPU")
    t.equal(info(a, 5), (2, 1, 0x10), "the switch says where it is")
    t.equal(devices(a) + devices(b), [], "no other host has it")
    t.equal(bind(a, "a", 1, 5)[0], 1, "a bound port cannot be bound again")
    t.equal(bind(a, "c", 1, 6)[0], 2, "nor another to the same place")
    t.equal(bind(b, "b", 1, 6)[0], DENIED, "b may not bind")
    t.equal(bind(c, "c", 2, 6), (0, True), "another manager may")
    t.equal(len(wait_devices(c, 2)), 2, "c has two")
    power_off(c, 1)
    t.equal(len(wait_devices(c, 1)), 1, "c takes the first out in order")
    t.equal(unbind(a, "c", 1), (0, True), "and it is unbound")
    t.equal(info(c, 5), (255, 255, 0), "nobody has it")
    t.equal(bind(a, "a", 3, 5), (0, True), "bound to a")
    t.equal(len(wait_devices(a, 1)), 1, "a finds it")
    t.equal(unbind(c, "c", 2), (0, True), "one in use is taken away, too")
    t.equal(wait_devices(c, 0), [], "c has none")
    t.equal(unbind(a, "a", 3), (0, True), "and that of a")
    t.equal(wait_devices(a, 0), [], "a has none")


@ntb_scenario(hosts=("a", "b", "c"))
def shared_port(lab, t):
    """All that is behind a port is one device of several functions."""
    a, _, c = hosts(lab)
    t.equal(bind(a, "c", 1, 9), (0, True), "a port with three is bound")
    found = wait_devices(c, 3, ANY)
    t.equal([pci[-2:] for pci in found], [".0", ".1", ".2"], "c finds them all")
    t.equal(c.sh(f"{FILL} {' '.join(found)}").split(), TOGETHER,
            "it writes to each and finds what it has written")
    t.equal(bind(a, "a", 1, 9)[0], 1, "nobody else can have it")
    was_up = link_up(a, 9)
    power_off(c, 1)
    t.equal(devices(c, ANY), [], "c takes them out by one command")
    t.equal((was_up, link_up(a, 9)), (True, False), "and a sees that it has")
    t.equal((info(a, 9), unbind(a, "c", 1), info(a, 9)),
            ((2, 1, 0x10), (0, True), (255, 255, 0)), "and they are unbound")
    t.equal(bind(a, "a", 2, 9), (0, True), "bound to a")
    found = wait_devices(a, 3, ANY)
    t.equal(a.sh(f"{FILL} {' '.join(found)}").split(), TOGETHER, "a uses them")
    t.equal(unbind(a, "a", 2), (0, True), "in use, they are taken away")
    t.equal(wait_devices(a, 0, ANY), [], "all of them")
    t.equal(info(a, 9), (255, 255, 0), "nobody has them")


@ntb_scenario(hosts=("a", "b", "c"), fresh=True)
def after_reboot(lab, t):
    """Reset or killed, a host has all of what was bound to it afterwards."""
    a, _, c = hosts(lab)
    t.equal(bind(a, "c", 1, 9), (0, True), "bound to c")
    t.equal(len(wait_devices(c, 3, ANY)), 3, "c finds all three")
    c.reboot(hard=True)
    t.equal(len(wait_devices(c, 3, ANY)), 3,
            "c has them after it has booted again")
    c.kill()
    t.equal((info(a, 9), link_up(a, 9), link_up(a, 3)),
            ((2, 1, 0x10), False, False), "they are bound while c is off")
    c.restart()
    found = wait_devices(c, 3, ANY)
    t.equal(c.sh(f"{FILL} {' '.join(found)}").split(), TOGETHER,
            "and c uses them when it comes back")
