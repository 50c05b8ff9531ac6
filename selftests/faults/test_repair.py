# SPDX-License-Identifier: GPL-2.0-only
"""What the driver makes good when the switch does not answer, or answers late:
commands of its own that hang, while things happen in the fabric."""

import contextlib
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
from puppet import Puppet
from scenario import scenario

GET_OBJECTS, RELEASE_REPLY = 0x02, 0x12		# include/draco/regs.h
LIMIT = "/sys/module/fabrex_draco/parameters/admin_timeout_ms"
MANY = 1000000
EP = "columba1.gpu4"


def inject(lab, t, **request):
    answer = lab.emu_control(request)
    t.need(answer.get("ok"), f"inject {request}", answer)


@contextlib.contextmanager
def hanging(lab, t, host, opcode, count):
    """So many of these commands of a host hang, not for long."""
    guest = lab.guest(host)
    guest.allow_log(r"fabrex_draco")
    before = guest.sh(f"cat {LIMIT}")
    guest.sh(f"echo 2000 >{LIMIT}")
    inject(lab, t, cmd="admin-hang", port=f"{host}.0", opcode=opcode,
           count=count)
    try:
        yield guest
    finally:
        lab.emu_control({"cmd": "admin-hang", "port": f"{host}.0",
                         "opcode": opcode, "count": 0})
        guest.sh(f"echo {before} >{LIMIT}")


def composed(lab, t):
    """b has an endpoint, and no agent."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, EP, "b").status == 0, "compose")
    t.equal(len(fabric.wait_gpus(b, 1)), 1, "b has it")
    return a, b


def released(lab, t, a, b):
    gone = fabric.release(a, EP, tries=1)
    t.ok(not gone.status, "released in good order", gone.stdout + gone.stderr)
    t.equal(fabric.wait_gpus(b, 0), [], "b's kernel has lost it")


@scenario(hosts=["a", "b", "c"])
def lost_while_unreadable(lab, t):
    """Events are lost and the fabric cannot be read: the request to let an
    endpoint go is found even so, and processes are told of the loss."""
    a, b = composed(lab, t)
    p = Puppet(b)
    with hanging(lab, t, "b", GET_OBJECTS, MANY):
        inject(lab, t, cmd="fault", kind="lost-event", port="b.0",
               event="release-request", count=1)
        released(lab, t, a, b)
        t.ok(p.wait_event("LOST", 120000), "a process is told")
    t.equal(fabric.wait_state(b, EP, "free"), "free",
            "once it can be read b knows what has become of it")
    p.close()


@scenario(hosts=["a", "b", "c"])
def answer_is_repeated(lab, t):
    """The answer to a request does not get through: there is another one."""
    a, b = composed(lab, t)
    with hanging(lab, t, "b", RELEASE_REPLY, 1):
        released(lab, t, a, b)


def heard(puppet, wanted):
    """All of these events are read, of whichever time."""
    wanted = set(wanted)
    end = time.monotonic() + 120 * puppet.guest.patience
    while wanted and time.monotonic() < end:
        event = puppet.event(1000)
        if event:
            wanted -= {(event[0], event[1]), event[0]}
    return not wanted


@scenario(hosts=["a", "b", "c"])
def flaps_while_unreadable(lab, t):
    """What is up again when the fabric is read was down: who asks for events
    hears of both."""
    a = Puppet(lab.guest("a"))
    fabric.wait_peer(a, "b", True)
    fabric.wait_peer(a, "c", True)
    peer = a.ask("peer", "b")[0]
    # The driver reads what an event was about; the others wait.
    with hanging(lab, t, "a", GET_OBJECTS, 1):
        inject(lab, t, cmd="link", port="c.0", state="down")
        for port in ("b.0", "a.0"):
            for state in ("down", "up"):
                inject(lab, t, cmd="link", port=port, state=state)
        t.ok(heard(a, [("PEER_DOWN", peer), ("PEER_UP", peer), "LINK_DOWN",
                       "LINK_UP"]),
             "that b was gone, and the own link was down")
    inject(lab, t, cmd="link", port="c.0", state="up")
    t.ok(fabric.wait_peer(a, "b", True), "b is there")
    t.ok(fabric.wait_peer(a, "c", True), "c too")
    a.close()
