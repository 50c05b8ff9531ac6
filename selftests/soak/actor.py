# SPDX-License-Identifier: GPL-2.0-only
"""What all actors of the soak are: a thread that draws what it does from its own
random numbers, knows which errors that may end with while others disturb, and
notes what it did and what was wrong. Those who work are in actors.py, those who
disturb in disturb.py and inject.py."""

import collections
import random
import re
import textwrap
import threading
import traceback

import fabric
from puppet import PuppetError

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
                  r"interrupted|again|not bound|bound to no|already|free", re.I)
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

    def operations(self):
        """How many in all."""
        with self.lock:
            return sum(self.done.values())

    def table(self, width=100):
        """Lines `what: kind n, kind n`, most frequent kinds first."""
        rows = {}
        for name, n in sorted(self.done.items(), key=lambda item: -item[1]):
            what, _, kind = name.partition(": ")
            rows.setdefault(what, []).append(f"{kind} {n}".strip())
        return [line for what in sorted(rows) for line in textwrap.wrap(
            f"{what}: " + ", ".join(rows[what]), width,
            subsequent_indent="    ")]


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
            except Exception:	# noqa: an actor that ends is no actor
                self.ledger.fail(f"{self.name}: " + traceback.format_exc())
                self.pause(1)

    def pause(self, seconds):
        self.stopped.wait(seconds)

    def host(self, but=()):
        return self.lab.guest(self.random.choice(
            [h for h in HOSTS if h not in but]))

    def ask(self, **request):
        """A request to draco-emu; its answer."""
        answer = self.lab.emu_control(request)
        if not answer.get("ok"):
            self.ledger.count("refused: " + request["cmd"])
        return answer

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
