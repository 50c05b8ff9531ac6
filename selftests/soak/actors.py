# SPDX-License-Identifier: GPL-2.0-only
"""Those who work, and those who disturb, at the same time: each is a thread
that draws what it does from its own random numbers, knows which errors that
may end with while others disturb, and notes what it did and what was wrong."""

import collections
import random
import re
import threading
import time

import fabric
from command import CommandTimeout
from puppet import CHECK, READ, WRITE, Puppet, PuppetError

HOSTS = "abc"
# GPU 0 stays with host a, whose test driver has it open.
CHURNED, ENDPOINTS = "columba1.gpu0", [f"columba1.gpu{n}" for n in range(1, 8)]
SIZE = 1 << 16

# What a fabric that is being disturbed may answer; anything else is wrong.
ERRNOS = {"ENODEV", "EIO", "ETIMEDOUT", "ENOENT", "ECANCELED", "ENETDOWN",
          "EHOSTUNREACH", "EHOSTDOWN", "ENETRESET", "ECONNRESET", "ENXIO",
          "EAGAIN", "EACCES"}
STATUSES = {"OK", "UNREACHABLE", "RKEY", "LKEY", "ABORTED", "FENCED",
            "FLUSHED", "RFAULT", "LFAULT"}
# fabrexctl: gone, busy, no device, not in time, no room, unreachable.
EXITS = {0, 3, 4, 6, 7, 9, 10}
# The rest of it, by what it says.
SAYS = re.compile(r"EIO|Input/output error|canceled|cancelled|reset|aborted|"
                  r"interrupted|again|not bound|already|free", re.I)
RANK_ERRNOS = {-104, -110, -103, -5, -19, -100, -113, -111, -2, -107, -125,
               -112, -11, -32}


class Ledger:
    """What was done how often, and what was wrong; shared by all actors."""

    def __init__(self):
        self.lock = threading.Lock()
        self.done = collections.Counter()
        self.wrong = []

    def count(self, what, n=1):
        with self.lock:
            self.done[what] += n

    def fail(self, text):
        with self.lock:
            self.wrong.append(text)


class Actor(threading.Thread):
    """One of them, for one round."""

    def __init__(self, lab, ledger, seed, stop):
        super().__init__(name=type(self).__name__, daemon=True)
        self.lab = lab
        self.ledger = ledger
        self.random = random.Random(f"{seed}.{self.name}")
        self.stopped = stop

    def run(self):
        while not self.stopped.is_set():
            try:
                self.turn()
            except (PuppetError, ConnectionError) as e:
                if getattr(e, "errno", None) not in ERRNOS:
                    self.ledger.fail(f"{self.name}: {e}")
                self.pause(0.2)
            except (CommandTimeout, AssertionError, OSError, ValueError) as e:
                self.ledger.fail(f"{self.name}: {type(e).__name__}: {e}")
                self.pause(1)

    def pause(self, seconds):
        self.stopped.wait(seconds)

    def host(self, but=()):
        return self.lab.guest(self.random.choice(
            [h for h in HOSTS if h not in but]))

    def ctl(self, guest, args, what):
        """fabrexctl, whose end is judged."""
        result = fabric.ctl(guest, args)
        kind = "done" if not result.status else f"status {result.status}"
        self.ledger.count(f"{what}: {kind}")
        if result.status not in EXITS and not (
                result.status == 1 and SAYS.search(result.stderr)):
            self.ledger.fail(f"{guest.name}: fabrexctl {args}: status "
                             f"{result.status}: {result.stderr[-500:]}")
        return result


class Composer(Actor):
    """Gives GPUs to hosts, takes them away, moves them, by force at times."""

    def turn(self):
        name, verb = self.random.choice(ENDPOINTS), self.random.random()
        to = self.random.choice(HOSTS)
        if verb < 0.45:
            self.ctl(self.host(), f"compose {name} --to {to} {fabric.PATIENT}",
                     "compose")
        elif verb < 0.65:
            self.ctl(self.host(), f"move {name} --to {to} {fabric.PATIENT}",
                     "move")
        else:
            force = " --force" if verb > 0.85 else ""
            self.ctl(self.host(), f"release {name} {fabric.PATIENT}{force}",
                     "release" + force)
        self.pause(self.random.random() * 0.5)


class Traffic(Actor):
    """Two processes; one writes into the other's memory, reads it back and has
    both compared. Either may be killed at any time, and often is."""

    def turn(self):
        here, there = self.random.sample(HOSTS, 2)
        puppets = []
        try:
            for name in (here, there):
                puppets.append(Puppet(self.lab.guest(name)))
            self.session(*puppets)
        finally:
            for p in puppets:
                self.end(p)

    def session(self, a, b):
        for p in (a, b):
            p.queue(0)
            p.mr(0, SIZE)
        rkey = b.mr(1, SIZE)
        for n in range(self.random.randrange(1, 30)):
            if self.stopped.is_set():
                return
            self.exchange(a, b, rkey, self.random.randrange(1, 1 << 30))

    def exchange(self, a, b, rkey, seed):
        a.fill(0, 0, SIZE, seed)
        done = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE, flags=CHECK)
        self.judge("write", done)
        if done.status != "OK":
            raise PuppetError(done.status, "EIO")
        if not b.same(1, 0, SIZE, seed):
            self.ledger.fail("traffic: written, and other bytes are there")
        a.set(0, 0, SIZE, 0)
        done = a.op(0, READ, b.peer, 0, 0, rkey, 0, SIZE)
        self.judge("read", done)
        if done.status == "OK" and not a.same(0, 0, SIZE, seed):
            self.ledger.fail("traffic: read, and other bytes arrived")

    def judge(self, what, done):
        self.ledger.count(f"{what}: {done.status}")
        if done.status not in STATUSES:
            self.ledger.fail(f"traffic: {what} ended with {done.status}")

    def end(self, puppet):
        """In good order, or with operations under way."""
        kill = self.random.random() < 0.5
        try:
            if kill:
                puppet.kill()
            else:
                puppet.close()
            self.ledger.count("process " + ("killed" if kill else "ended"))
        except ConnectionError:
            pass


class Collectives(Actor):
    """Three ranks that check every result, until one of them is killed or the
    fabric fails; then the others find out, and end by themselves."""

    service = 9000

    def turn(self):
        Collectives.service += 1
        ranks = [self.lab.guest(h).start_command(
            f"coll-rank stay {n} 3 fabric:{Collectives.service}")
            for n, h in enumerate(HOSTS)]
        self.pause(self.random.uniform(2, 15))
        victim = self.random.choice(ranks)
        victim.kill()
        for rank in ranks:
            result = rank.wait(120)
            self.ledger.count("rank killed" if rank is victim else
                              "rank ended")
            self.judge(result)

    def judge(self, result):
        for line in result.stdout.splitlines():
            if re.search(r"element \d+ is", line):
                self.ledger.fail("collectives: " + line)
            found = re.search(r"^(?:failed|alone) (-?\d+)", line) or \
                re.search(r"^rank \d+: [\w ]+: (-?\d+):", line)
            if found and int(found[1]) not in RANK_ERRNOS:
                self.ledger.fail(f"collectives: {line}")
            if "verified" in line or "ready" in line:
                self.ledger.count("collectives: " + line.split()[0])
        if result.status not in (0, 1, 137):
            self.ledger.fail(f"collectives: a rank ended with status "
                             f"{result.status}: {result.stderr[-500:]}")


class Disturber(Actor):
    """Links, ports, switches, functions, drivers, appliances."""

    def turn(self):
        self.pause(self.random.uniform(0.5, 6))
        what = self.random.choice(
            [self.link] * 4 + [self.slow] * 2 + [self.pull] * 2 +
            [self.port_reset] * 2 + [self.function_reset, self.driver,
                                     self.switch_reset, self.hang])
        self.ledger.count("disturbed: " + what.__name__)
        what()

    def ask(self, **request):
        answer = self.lab.emu_control(request)
        if not answer.get("ok"):
            self.ledger.count("refused: " + request["cmd"])
        return answer

    def link(self):
        port = self.random.choice(HOSTS) + ".0"
        self.ask(cmd="link", port=port, state="down")
        self.pause(self.random.uniform(0, 2))
        self.ask(cmd="link", port=port, state="up")

    def slow(self):
        port = self.random.choice(HOSTS) + ".0"
        self.ask(cmd="slow", port=port, bytes_per_second=1 << 20)
        self.pause(self.random.uniform(0, 2))
        self.ask(cmd="slow", port=port, bytes_per_second=0)

    def pull(self):
        name = self.random.choice(ENDPOINTS)
        self.ask(cmd="remove", endpoint=name)
        self.pause(self.random.uniform(0, 2))
        self.ask(cmd="insert", endpoint=name)

    def port_reset(self):
        self.ctl(self.host(), f"port {self.random.choice(HOSTS)}.0 reset "
                 "--force", "port reset")

    def function_reset(self):
        self.host().run("echo 1 >$(readlink -f /sys/class/fabrex/fabrex*/"
                        "device)/reset", timeout=120)

    def driver(self):
        """Taken from the function and given back, with files open."""
        self.host().run(
            "cd /sys/bus/pci/drivers/fabrex_draco && d=$(ls -d 0*) && "
            "echo $d >unbind; echo $d >bind", timeout=120)

    def switch_reset(self):
        self.ask(cmd="switch-reset", switch="draco1")

    def hang(self):
        self.ask(cmd="admin-hang", port=self.random.choice(HOSTS) + ".0",
                 count=1)


class Churn(Actor):
    """GPU memory that moves and is revoked while it is being registered."""

    stop_file = "/tmp/soak.stop"

    def turn(self):
        a = self.lab.guest("a")
        a.run(f"rm -f {self.stop_file}")
        churning = a.start_command(f"gpu-churn {self.stop_file}")
        self.pause(self.random.uniform(5, 30))
        a.run(f"touch {self.stop_file}")
        result = churning.wait(120)
        for what, n in re.findall(r"(\w+) (\d+)", result.stdout):
            self.ledger.count(f"GPU memory {what}", int(n))
        if result.status:
            self.ledger.fail("GPU memory: " + (result.stdout
                                               + result.stderr)[-500:])


ACTORS = (Composer, Traffic, Collectives, Disturber, Churn)


def play(lab, ledger, seed, seconds):
    """All of them at once for so long; returns when each has ended."""
    stop = threading.Event()
    actors = [kind(lab, ledger, seed, stop) for kind in ACTORS]
    for actor in actors:
        actor.start()
    time.sleep(seconds)
    stop.set()
    for actor in actors:
        actor.join()
