# SPDX-License-Identifier: GPL-2.0-only
"""Those who work: compose, move bytes, compute together, register and hoard."""

import re
import signal

import fabric
from actor import (ENDPOINTS, HOSTS, RANK_ERRNOS, SIZE, STATUSES, Actor)
from puppet import CHECK, READ, WRITE, Puppet, PuppetError


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
        self.halt(self.random.choice(ranks))
        victim = self.random.choice(ranks)
        victim.kill()
        if self.stopped.is_set():
            self.hurry(ranks)
        for rank in ranks:
            result = rank.wait(120)
            self.ledger.count("rank killed" if rank is victim else
                              "rank ended")
            self.judge(result)

    def halt(self, rank):
        """One is stopped for a while; the others wait for it."""
        rank.kill(signal.SIGSTOP)
        self.pause(self.random.uniform(0, 3))
        rank.kill(signal.SIGCONT)

    def hurry(self, ranks):
        """Those who have not met would wait for each other for a minute."""
        if not all("ready" in rank.output() for rank in ranks):
            for rank in ranks:
                rank.kill()

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


class Hoarder(Actor):
    """A user who takes all that quotas give, and gives it back, all the time:
    nobody else notices."""

    def turn(self):
        hoard = self.host().start_command("exec soak-hoard", user="tester",
                                          keep_stdin=True)
        self.pause(self.random.uniform(2, 20))
        if self.random.random() < 0.3:
            hoard.kill()
            self.ledger.count("hoard: killed")
        else:
            hoard.close_stdin()
        result = hoard.wait(120)
        for what, n in re.findall(r"^(\w+) (\d+)$", result.stdout, re.M):
            self.ledger.count(f"hoard: {what}", int(n))
        if result.status not in (0, 137):
            self.ledger.fail(f"hoard: status {result.status}: "
                             + (result.stdout + result.stderr)[-500:])
