# SPDX-License-Identifier: GPL-2.0-only
"""Operations that go wrong one by one, each in a queue of its own, so that the
ledger knows how many did: each is found, none is taken for a good one."""

import contextlib
import signal
import time

from actor import SIZE
from actors import Traffic
from puppet import CHECK, READ, WC, WRITE, PuppetError

PART = 64
HANG = 20
USER_DATA = 0x1234567890abcdef		# what common/rings.c puts in


class Injector(Traffic):
    """Two processes as in Traffic, and faults for the first one's queue."""

    def session(self, a, b):
        self.number, self.key = a.queue(0)
        b.queue(0)
        a.mr(0, SIZE)
        rkey = b.mr(1, SIZE)
        for _ in range(self.random.randrange(1, 12)):
            if self.stopped.is_set():
                return
            self.random.choice([self.payload, self.payload, self.completion,
                                self.stuck, self.doorbell, self.halted])(
                                    a, b, rkey)

    def fault(self, guest, kind, count):
        """Arm it for our queue, or call it off; how many there were so far."""
        return self.ask(cmd="fault", kind=kind, port=guest.name + ".0",
                        queue=self.number, key=hex(self.key),
                        count=count)["taken"]

    @contextlib.contextmanager
    def injected(self, a, kind):
        """One fault; afterwards .taken says whether it happened."""
        before = self.fault(a.guest, kind, 1)
        try:
            # It may have ended, after a reset.
            self.alive(a)
            yield
        finally:
            self.taken = self.fault(a.guest, kind, 0) - before
            if self.taken:
                self.ledger.count(f"{kind}: injected")

    def alive(self, a):
        """Raises what a port that was reset or has gone raises."""
        a.ask("counters", 0)
        if a.state(0)[0]:
            raise PuppetError("the queue is in error", "ECANCELED")

    def outcome(self, kind, found, done):
        """Of an operation with a fault, or without one."""
        if found and self.taken:
            self.ledger.count(f"{kind}: found")
        elif found:
            self.ledger.fail(f"{kind}: reported, and there was none")
        elif self.taken and done and done.status == "OK":
            self.ledger.count(f"{kind}: ACCEPTED")
            self.ledger.fail(f"{kind}: {done.status}, as if nothing was wrong")
        elif self.taken:
            self.ledger.count(f"{kind}: failed otherwise")

    @contextlib.contextmanager
    def counted(self, kind):
        """An operation that ends with an exception has failed as well."""
        self.taken = 0
        try:
            yield
        except (PuppetError, ConnectionError):
            if self.taken:
                self.ledger.count(f"{kind}: failed otherwise")
            raise

    def write(self, a, b, rkey, **kw):
        """One that nobody harms; leaves the session when it fails."""
        done = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE, **kw)
        self.judge("write", done)
        if done.status != "OK":
            raise PuppetError(done.status, "EIO")

    def payload(self, a, b, rkey):
        """Bytes change on the way; the same again is good."""
        kind, seed = "corrupt-payload", self.random.randrange(1, 1 << 30)
        opcode = self.random.choice([WRITE, READ])
        (a if opcode == WRITE else b).fill(int(opcode == READ), 0, SIZE, seed)
        with self.counted(kind):
            with self.injected(a, kind):
                done = a.op(0, opcode, b.peer, 0, 0, rkey, 0, SIZE,
                            flags=CHECK)
            self.outcome(kind, done.status == "DATA", done)
        if done.status not in ("OK", "DATA"):
            self.judge("write" if opcode == WRITE else "read", done)
            raise PuppetError(done.status, "EIO")
        a.fill(0, 0, SIZE, seed)
        self.write(a, b, rkey, flags=CHECK)
        if not b.same(1, 0, SIZE, seed):
            self.ledger.fail(f"{kind}: other bytes in the next operation")

    def completion(self, a, b, rkey):
        """Bits of a completion change: no status or operation that there is."""
        kind = "corrupt-completion"
        with self.counted(kind):
            with self.injected(a, kind):
                done = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, PART)
            self.outcome(kind, done.status not in WC and
                         done.user_data != USER_DATA, done)
        self.write(a, b, rkey)

    def due(self, a):
        """The completion that has to come unless the port fails."""
        end = time.monotonic() + HANG * a.guest.patience
        while not (done := a.poll(0, 500)):
            self.alive(a)
            if time.monotonic() > end:
                self.ledger.fail(f"{a.guest.name}: an operation does not "
                                 "complete")
                raise PuppetError("no completion", "EIO")
        return done

    def stuck(self, a, b, rkey):
        """A completion that does not come: its queue is destroyed, and made
        again."""
        kind = "stuck-completion"
        with self.counted(kind):
            with self.injected(a, kind):
                a.post(0, WRITE, b.peer, 0, 0, rkey, 0, PART)
                done = a.poll(0, 500)
            self.outcome(kind, self.taken and not done, done)
        if not done and not self.taken:
            self.due(a)
        a.words("qdel", 0)
        self.number, self.key = a.queue(0)
        self.write(a, b, rkey)

    def doorbell(self, a, b, rkey):
        """One that is lost is made good by the next."""
        kind = "drop-doorbell"
        with self.counted(kind):
            with self.injected(a, kind):
                a.post(0, WRITE, b.peer, 0, 0, rkey, 0, PART)
                done = a.poll(0, 500)
        due = 0 if done else 1
        if due:
            a.post(0, WRITE, b.peer, 0, 0, rkey, 0, PART)
            due += 1
        for _ in range(due):
            self.due(a)
        if self.taken:
            self.ledger.count(f"{kind}: made good")

    def halted(self, a, b, rkey):
        """A process that is stopped: others reach its memory, what it has
        posted goes on."""
        seed = self.random.randrange(1, 1 << 30)
        a.fill(0, 0, SIZE, seed)
        b.command.kill(signal.SIGSTOP)
        try:
            self.write(a, b, rkey, flags=CHECK)
        finally:
            b.command.kill(signal.SIGCONT)
        if not b.same(1, 0, SIZE, seed):
            self.ledger.fail("stopped process: other bytes are there")
        a.post(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE, flags=CHECK)
        a.command.kill(signal.SIGSTOP)
        self.pause(self.random.uniform(0, 0.5))
        a.command.kill(signal.SIGCONT)
        self.judge("of a stopped process", self.due(a))
