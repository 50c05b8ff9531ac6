# SPDX-License-Identifier: GPL-2.0-only
"""Printing a story: numbered steps, the commands as typed, what they took.
Used by the demo."""

import sys
import time


class Story:
    """Prints steps to a terminal or a log, with times."""

    def __init__(self, out=sys.stdout, colour=None):
        self.out = out
        self.number = 0
        self.begun = time.monotonic()
        self.colour = out.isatty() if colour is None else colour

    def _print(self, text, code=None):
        if code and self.colour:
            text = f"\033[{code}m{text}\033[0m"
        print(text, file=self.out, flush=True)

    def step(self, title):
        """Begin the next step."""
        self.number += 1
        took = time.monotonic() - self.begun
        self._print(f"\n[{took:5.1f} s] {self.number}. {title}", "1")

    def note(self, text):
        self._print("    " + text)

    def show(self, text):
        """Output of a command, indented."""
        for line in text.rstrip("\n").splitlines():
            self._print("  | " + line)

    def command(self, guest, cmd, timeout=60, status=0, shown=True, **kw):
        """Type a command on a host, print what it says and how long it took;
        another exit status than expected ends the story."""
        self._print(f"  {guest.name}$ {cmd}", "36")
        result = guest.run(cmd, timeout=timeout, **kw)
        if shown:
            self.show(result.stdout + result.stderr)
        if status is not None and result.status != status:
            raise StoryFailed(
                f"step {self.number}: on {guest.name}, `{cmd}` ended with "
                f"status {result.status}, expected {status}\n"
                + ("" if shown else result.stdout + result.stderr))
        return result

    def figure(self, name, seconds, limit):
        """A measured time against its limit."""
        good = seconds < limit
        self._print(f"    {name}: {seconds:.2f} s (limit {limit:.1f} s)"
                    + ("" if good else "  TOO SLOW"), "32" if good else "31")
        return good

    def end(self, text):
        took = time.monotonic() - self.begun
        self._print(f"\n[{took:5.1f} s] {text}", "1")


class StoryFailed(RuntimeError):
    """A step did not do what the story says."""
