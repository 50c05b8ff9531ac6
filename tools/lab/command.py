# SPDX-License-Identifier: GPL-2.0-only
"""A command running in a guest, and what became of it.
Made by Guest.run() and Guest.start(); tests use both classes."""

import queue
import signal
import struct
import time
from dataclasses import dataclass

import agent


class CommandFailed(AssertionError):
    """A command that had to succeed did not."""


class CommandTimeout(AssertionError):
    """A command did not end in its time; it was killed."""


@dataclass
class Result:
    """What a command left: exit status as a shell's $?, and its output."""
    host: str
    argv: list
    status: int
    stdout: str
    stderr: str
    seconds: float

    def check(self):
        """Raise CommandFailed with the output when the status is not 0."""
        if self.status:
            raise CommandFailed(f"{self.host}: `{self.argv[-1]}` failed with "
                                f"status {self.status}\n{self.stdout}"
                                f"{self.stderr}".rstrip())
        return self


class Command:
    """A command in flight. on_line(stream, line) sees output as it comes."""

    def __init__(self, guest, argv, stdin=b"", on_line=None, keep_stdin=False):
        self.guest = guest
        self.argv = argv
        self.on_line = on_line
        self.out = {"O": b"", "E": b""}
        self.partial = {"O": b"", "E": b""}
        self.result = None
        self.begun = time.monotonic()
        self.ident, self.queue = guest.agent.start(argv)
        if not keep_stdin:
            guest.agent.feed(self.ident, stdin)

    def write(self, data):
        """More standard input, for a command started with keep_stdin."""
        self.guest.agent.send("I", self.ident, data)

    def close_stdin(self):
        self.guest.agent.send("I", self.ident)

    def take(self, kind, body):
        if kind in self.out:
            self.out[kind] += body
            self.lines(kind, body)
        elif kind == "S":
            status = agent.exit_code(struct.unpack("<I", body)[0])
            self.finish(status)
        else:
            raise agent.GuestGone(f"{self.guest.name}: the guest went away "
                                  f"while `{self.argv[-1]}` ran")

    def lines(self, kind, body):
        if not self.on_line:
            return
        *whole, self.partial[kind] = (self.partial[kind] + body).split(b"\n")
        for line in whole:
            self.on_line("stdout" if kind == "O" else "stderr",
                         line.decode(errors="replace"))

    def finish(self, status):
        text = {k: v.decode(errors="replace") for k, v in self.out.items()}
        for kind, rest in self.partial.items():
            if rest and self.on_line:
                self.on_line("stdout" if kind == "O" else "stderr",
                             rest.decode(errors="replace"))
        self.result = Result(self.guest.name, self.argv, status, text["O"],
                             text["E"], time.monotonic() - self.begun)

    def poll(self):
        """Take in what has arrived; the Result once it has ended."""
        while not self.result:
            try:
                self.take(*self.queue.get_nowait())
            except queue.Empty:
                break
        return self.result

    def output(self):
        """Standard output so far."""
        self.poll()
        return self.out["O"].decode(errors="replace")

    def wait(self, timeout=60):
        """The Result; past `timeout`, in seconds of a quiet machine, it hangs
        and is killed (process.patience())."""
        timeout *= self.guest.patience
        end = time.monotonic() + timeout
        while not self.result:
            try:
                self.take(*self.queue.get(timeout=max(0, end -
                                                      time.monotonic())))
            except queue.Empty:
                self.kill()
                raise CommandTimeout(
                    f"{self.guest.name}: `{self.argv[-1]}` still runs after "
                    f"{timeout:.0f} s\n{self.out['O'].decode(errors='replace')}"
                    f"{self.out['E'].decode(errors='replace')}") from None
        return self.result

    def wait_for(self, text, timeout=60):
        """Wait until standard output contains `text`; timeout as above."""
        timeout *= self.guest.patience
        end = time.monotonic() + timeout
        while text not in self.output():
            if self.result or time.monotonic() > end:
                raise CommandTimeout(
                    f"{self.guest.name}: `{self.argv[-1]}` "
                    + ("ended" if self.result else f"ran {timeout:.0f} s")
                    + f" without printing {text!r}\n{self.output()}"
                    + self.out["E"].decode(errors="replace"))
            try:
                self.take(*self.queue.get(timeout=0.05))
            except queue.Empty:
                pass

    def kill(self, sig=signal.SIGKILL):
        """Signal the command's process group."""
        self.guest.agent.signal(self.ident, int(sig))
