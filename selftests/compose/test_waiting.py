# SPDX-License-Identifier: GPL-2.0-only
"""Changes that take long hold up nobody: other netlink families, the agent's
answers, one another; they can be given up, and end with the port."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
from scenario import scenario

ONE, TWO, MINE = "columba1.gpu0", "columba1.gpu1", "columba1.gpu2"
GET_COUNTERS, BIND = 0x05, 0x10		# include/draco/regs.h
NEVER_MS = 600000
SIGINT = 2
# Each registers a generic netlink family; which there are is up to the kernel.
FAMILIES = ("nbd", "team", "wireguard", "l2tp_netlink", "macsec", "gtp")


def family_module(guest):
    """A module with a family, not loaded, or None."""
    for name in FAMILIES:
        if guest.run(f"modprobe -n {name} && ! grep -q ^{name} /proc/modules"
                     ).status == 0:
            return name
    return None


def agent(guest):
    """An agent that answers."""
    command = guest.start_command("fabrexctl agent --ready")
    command.wait_for("ready")
    return command


def releasing(guest, names):
    return all(fabric.wait_state(guest, n, "releasing") == "releasing"
               for n in names)


def interrupted(a, c, t):
    """Release two whose owner does not answer, and ^C; whether both waited
    until then, and how it ended."""
    t.need(fabric.compose(a, MINE, "a").status == 0, "one to a")
    waiting = a.start_command(f"exec fabrexctl release {ONE} {TWO} "
                              "--timeout 30")
    t.ok(releasing(c, (ONE, TWO)), "both are being released, at once")
    module = family_module(a)
    if module:
        t.equal(a.run(f"modprobe {module}", timeout=60).status, 0,
                f"{module} registers its family")
        a.run(f"modprobe -r {module}", timeout=60)
    else:
        t.diag("this kernel has no module with a family")
    t.equal(fabric.release(c, MINE).status, 0,
            "a's agent lets another endpoint go")
    rows = fabric.endpoints(c)
    waited = all(rows[n]["state"] == "releasing" for n in (ONE, TWO))
    waiting.kill(SIGINT)
    return waited, waiting.wait(60)


@scenario(hosts=["a", "b", "c"])
def release_waits_alone(lab, t):
    """While two releases wait for an owner that does not answer, a family is
    registered, this host's agent answers another, and ^C gives both up."""
    a, b, c = (lab.guest(n) for n in "abc")
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, f"{ONE} {TWO}", "b").status == 0, "two to b")
    fabric.wait_gpus(b, 2)
    deaf, mine = agent(b), agent(a)
    b.sh("kill -STOP $(pidof fabrexctl)")
    for _ in range(10):
        waited, ended = interrupted(a, c, t)
        # A machine that took longer than owners may: once more.
        if "owner kept it" not in ended.stderr:
            break
    t.ok(waited, "meanwhile the two have waited")
    t.ok(ended.status != 0 and "interrupted" in ended.stderr, "^C ends it",
         ended.stdout + ended.stderr)
    t.ok("as they were before" in ended.stderr, "and says how things are",
         ended.stderr)
    for name in (ONE, TWO):
        t.equal(fabric.wait_state(c, name, "bound"), "bound",
                f"{name} was given up")
    b.sh("kill -CONT $(pidof fabrexctl)")
    got = fabric.release(c, f"{ONE} {TWO}", tries=1)
    t.equal(got.status, 0, "an agent that answers lets both go")
    t.equal(fabric.wait_gpus(b, 0), [], "b has none")
    for command in (deaf, mine):
        command.kill()
        command.wait(20)
    fabric.release_all(lab, a)


def hang(lab, t, opcode, count):
    answer = lab.emu_control({"cmd": "admin-hang", "port": "a.0",
                              "opcode": opcode, "count": count})
    t.need(answer.get("ok"), f"admin-hang {opcode} {count}", answer)


def reset_port(lab, t):
    """Ends every command of a's port."""
    got = fabric.ctl(lab.guest("b"), "port a.0 reset --force")
    t.equal(got.status, 0, "b resets a's port")
    t.ok(fabric.wait_port(lab.guest("a")), "a's port works again")


@scenario(hosts=["a", "b", "c"])
def tickets(lab, t):
    """Tickets: results, events, garbage, as many as there may be."""
    a = lab.guest("a")
    t.program(a, "netlink-ticket -T pending")
    hang(lab, t, BIND, 1000)
    t.program(a, "netlink-ticket -t pending -t garbage")
    hang(lab, t, BIND, 0)


@scenario(hosts=["a", "b", "c"])
def reset_ends_changes(lab, t):
    """A change that the switch never answers ends with a reset of the port."""
    a = lab.guest("a")
    a.allow_log(r"fabrex_draco")
    fabric.release_all(lab, a)
    hang(lab, t, BIND, 1000)
    waiting = a.start_command(f"exec fabrexctl compose {ONE} --to b")
    # Reading goes on as if nothing was under way.
    t.equal(fabric.endpoint(a, ONE)["state"], "free", "it is still free")
    reset_port(lab, t)
    ended = waiting.wait(60)
    t.ok(ended.status != 0 and ended.stderr, "the command ends",
         ended.stdout + ended.stderr)
    hang(lab, t, BIND, 0)
    t.equal(fabric.compose(a, ONE, "b").status, 0, "and another works")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b", "c"])
def readers_hold_up_nobody(lab, t):
    """As many as like read counters that the switch does not tell: composing
    works all the same, and unprivileged reading too, afterwards."""
    a = lab.guest("a")
    a.allow_log(r"fabrex_draco")
    fabric.release_all(lab, a)
    limit = "/sys/module/fabrex_draco/parameters/admin_timeout_ms"
    before = a.sh(f"cat {limit}").strip()
    a.sh(f"echo {NEVER_MS} > {limit}")
    hang(lab, t, GET_COUNTERS, 1000000)
    # Once they are answered they use the processor, which the agent needs, too.
    readers = 40 if a.kernel.name == "debug" else 150
    storm = a.start_command(f"exec netlink-storm {readers}", user="outsider",
                            keep_stdin=True)
    storm.wait_for("running")
    got = fabric.compose(a, ONE, "a")
    t.equal(got.status, 0, "compose")
    got = fabric.release(a, ONE)
    t.equal(got.status, 0, "release")
    a.sh(f"echo {before} > {limit}")
    hang(lab, t, GET_COUNTERS, 0)
    reset_port(lab, t)
    t.equal(a.run("fabrexctl stats", user="outsider").status, 0,
            "counters are read again")
    got = fabric.compose(a, ONE, "a")
    t.equal(got.status, 0, "compose, while all of them read")
    t.equal(fabric.release(a, ONE).status, 0, "release likewise")
    storm.close_stdin()
    ended = storm.wait(120)
    t.diag(ended.stdout.strip())
    t.equal(ended.status, 0, "the readers end")
    fabric.release_all(lab, a)
