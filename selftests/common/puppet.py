# SPDX-License-Identifier: GPL-2.0-only
"""A process on a guest, driven by a scenario through dma/puppet.c: regions,
queues and windows by small numbers, operations, memory compared there."""

import queue as queues
import time

from command import CommandTimeout

NOP, WRITE, READ, WRITE_IMM, FETCH_ADD, CMP_SWAP, SEND = range(7)
RECV, RECV_IMM = 0x80, 0x81
FENCE, QUIET, CHECK, INLINE = 1, 2, 4, 8
LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC = 1, 2, 4, 8
ALL = 15
WC = ("OK BAD_OPCODE BAD_DESC LKEY LBOUNDS LACCESS RKEY RBOUNDS RACCESS RPEER "
      "UNREACHABLE RNR BAD_QUEUE TOO_LONG DATA LFAULT RFAULT FENCED FLUSHED "
      "ABORTED").split()
EVENTS = (None, "LINK_UP", "LINK_DOWN", "PEER_UP", "PEER_DOWN", "QUEUE_ERROR",
          "WINDOW_FAULT", "GONE", "LOST", "MR_REVOKED")


class PuppetError(AssertionError):
    """The puppet answered with an error; .errno has its name."""

    def __init__(self, text, errno):
        super().__init__(text)
        self.errno = errno


class Completion:
    """What poll() and op() return; status by name."""

    def __init__(self, words):
        (self.opcode, status, self.length, self.imm, self.crc, self.peer,
         self.index, self.user_data) = map(int, words)
        self.status = WC[status] if status < len(WC) else f"status {status}"


class Puppet:
    """One process with the device open. Commands raise PuppetError."""

    program = "dma-puppet"

    def __init__(self, guest, user=None, within=""):
        """within: a command that runs the puppet, such as unshare."""
        self.guest = guest
        self.lines = queues.Queue()
        self.command = guest.start_command(
            f"exec {within} {self.program}" if user or within else
            [self.program], user=user,
            on_line=lambda stream, line: self.lines.put(line),
            keep_stdin=True)
        try:
            self.peer, self.generation, self.flags = self.ask("open")
        except PuppetError:
            self.kill()
            raise

    def line(self, text, timeout):
        self.command.write((text + "\n").encode())
        end = time.monotonic() + timeout * self.guest.patience
        while time.monotonic() < end:
            self.command.poll()
            try:
                return self.lines.get(timeout=0.005)
            except queues.Empty:
                if self.command.result:
                    break
        raise CommandTimeout(f"{self.guest.name}: puppet does not answer "
                             f"`{text}` within {timeout} s")

    def words(self, *args, timeout=40):
        text = " ".join(str(a) for a in args)
        first, *rest = self.line(text, timeout).split()
        if first != "ok":
            raise PuppetError(f"{self.guest.name}: `{text}`: "
                              + " ".join(rest), " ".join(rest))
        return rest

    def ask(self, *args, timeout=40):
        return [int(w) for w in self.words(*args, timeout=timeout)]

    def errno(self, *args):
        """Name of the error that a command must end with; None if it works."""
        try:
            self.words(*args)
            return None
        except PuppetError as e:
            return e.errno

    def mr(self, n, length, access=ALL):
        """Register zeroed pages; the key."""
        return self.ask("mr", n, length, access)[0]

    def mr_for(self, n, length, peer, access=ALL):
        return self.ask("mr-for", n, length, access, peer)[0]

    def queue(self, n, sq=64, cq=256, rq=64, service=0):
        """Create a queue; (number, key)."""
        return tuple(self.ask("queue", n, sq, cq, rq, service)[:2])

    def _op(self, verb, q, opcode, peer, mr, loffset, rkey, roffset, length,
            flags=0, imm=0, dest=0):
        return self.words(verb, q, opcode, flags, peer, mr, loffset, rkey,
                          roffset, length, imm, dest)

    def op(self, q, opcode, peer, mr="-", loffset=0, rkey=0, roffset=0,
           length=0, **kw):
        """Post one operation and wait for its Completion."""
        return Completion(self._op("op", q, opcode, peer, mr, loffset, rkey,
                                   roffset, length, **kw))

    def post(self, q, opcode, peer, mr="-", loffset=0, rkey=0, roffset=0,
             length=0, **kw):
        self._op("post", q, opcode, peer, mr, loffset, rkey, roffset, length,
                 **kw)

    def limit(self, timeout_ms, usual_ms):
        """A limit that a test gives is exact: nothing may come within it."""
        return int(usual_ms * self.guest.patience) if timeout_ms is None \
            else timeout_ms

    def poll(self, q, timeout_ms=None):
        """The next Completion, None when there is none in time."""
        timeout_ms = self.limit(timeout_ms, 20000)
        try:
            return Completion(self.words("poll", q, timeout_ms,
                                         timeout=timeout_ms / 1000 + 20))
        except PuppetError as e:
            if e.errno == "ETIMEDOUT":
                return None
            raise

    def fill(self, mr, offset, length, seed):
        self.words("fill", mr, offset, length, seed)

    def same(self, mr, offset, length, seed):
        """Is that part of the region exactly fill()'s pattern?"""
        return self.ask("differs", mr, offset, length, seed)[0] == -1

    def set(self, mr, offset, length, value):
        self.words("set", mr, offset, length, value)

    def all(self, mr, offset, length, value):
        return self.ask("all", mr, offset, length, value)[0] == 1

    def state(self, q):
        """(state, error, sq_head) of a queue's control page."""
        return tuple(self.ask("state", q))

    def event(self, timeout_ms=None):
        """(type name, peer, generation, id, error); None in time."""
        timeout_ms = self.limit(timeout_ms, 10000)
        try:
            kind, *rest = self.ask("event", timeout_ms,
                                   timeout=timeout_ms / 1000 + 20)
            return (EVENTS[kind], *rest)
        except PuppetError as e:
            if e.errno == "ETIMEDOUT":
                return None
            raise

    def wait_event(self, kind, timeout_ms=None):
        """Read events until one of that type; None in time."""
        timeout_ms = self.limit(timeout_ms, 20000)
        end = time.monotonic() + timeout_ms / 1000
        while time.monotonic() < end:
            ev = self.event(1000)
            if ev and ev[0] == kind:
                return ev
        return None

    def kill(self):
        self.command.kill()
        self.command.wait(30)

    def close(self):
        """End it in good order."""
        self.command.close_stdin()
        self.command.wait(30)


def counts(guest):
    """The driver's live objects, from sysfs."""
    names = ("queues", "mrs", "windows", "pinned_bytes")
    text = guest.sh("cd /sys/class/fabrex/fabrex*/usage && cat "
                    + " ".join(names))
    return dict(zip(names, map(int, text.split())))


def wait_counts(guest, wanted, timeout=15):
    """Wait for the counts to become `wanted`; what they are in the end."""
    end = time.monotonic() + timeout * guest.patience
    while (now := counts(guest)) != wanted and time.monotonic() < end:
        time.sleep(0.1)
    return now
