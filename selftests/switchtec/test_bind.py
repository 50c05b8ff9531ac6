# SPDX-License-Identifier: GPL-2.0-only
"""Commands to the emulated Switchtec switch through Linux's own character device:
ports are bound to partitions, and what is behind them is hot-plugged into hosts
that have no module of ours."""

import upstream
from ntb import SWITCHTEC
from switch import (ANY, DENIED, ECHO, FILL, LINKS, MRPC, PING, ask, begin_unbind,
                    bind, devices, finish, info, link_up, pfx_scenario, power_off,
                    unbind, wait_devices)

# What is behind port 9, in the order of its functions.
TOGETHER = ["columba2.gpu0", "columba2.gpu1", "columba2.nvme0"]

# What reading says of a command that a reset has ended.
RESET = ("Bad message", "Input/output error")


def hosts(lab):
    found = [lab.guest(name) for name in "abc"]
    for guest in found:
        upstream.load(guest, "switchtec")
    return found


@pfx_scenario()
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


@pfx_scenario()
def firmware_faults(lab, t):
    """Linux's driver passes on what is wrong with an answer, and lives on without
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
    a.sh(f"echo 1 >/sys/bus/pci/devices/{SWITCHTEC.device}/reset")
    # The second is lost, too, if it is sent while the reset is under way.
    told = [command.wait(60) for command in (first, second)]
    errors = [any(word in done.stderr for word in RESET) for done in told]
    t.ok(errors[0], "who waits for an answer hears of the reset", told[0])
    t.ok(errors[1] or answer.hex() in told[1].stdout,
         "so does the next, or has its answer", told[1])
    t.equal(ask(a, ECHO, sent, 4), (0, answer), "then it goes on")
    t.equal(ask(b, ECHO, sent, 4), (0, answer), "b has noticed nothing")
    # With the reset it has lost what events are to interrupt.
    upstream.unload(a, "switchtec")


@pfx_scenario()
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
    power_off(a, 3)
    t.equal(unbind(c, "a", 3), (0, True), "and gives it back")
    t.equal(bind(a, "a", 2, 9), (0, True), "a gets a port with three")
    t.equal(len(wait_devices(a, 3, ANY)), 3, "and finds all three")
    # Both at a time, as each takes its time.
    taken = [begin_unbind(c, "c", 2), begin_unbind(a, "a", 2)]
    t.equal([finish(command) for command in taken], [(0, True)] * 2,
            "those in use are taken away, too")
    t.equal(wait_devices(c, 0, ANY) + wait_devices(a, 0, ANY), [],
            "nobody has any")
    t.equal((info(a, 6), info(a, 9)), ((255, 255, 0),) * 2,
            "and the switch says so")


@pfx_scenario()
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
