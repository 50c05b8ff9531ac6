# SPDX-License-Identifier: GPL-2.0-only
"""Test results: writing TAP, reading TAP and KTAP, counting.
Used by check.py and scenario.py."""

import re
import sys
from dataclasses import dataclass, field

POINT = re.compile(r"^\s*(not )?ok\b(?:\s+\d+)?\s*-?\s*(.*?)"
                   r"(?:\s+#\s*(SKIP|XFAIL|TODO)\b\s*(.*))?$", re.I)


@dataclass
class Totals:
    """Counts over everything `make check` ran."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures

    def line(self):
        return (f"{self.passed} passed, {self.failed} failed, "
                f"{self.skipped} skipped")


def count(text, prefix=""):
    """Totals of the leaf points in TAP or KTAP text.

    A KTAP parent repeats its children's outcome: a point that follows
    deeper-indented points is not counted again."""
    totals = Totals()
    depth = 0
    for line in text.splitlines():
        m = POINT.match(line)
        if not m:
            continue
        indent = len(line) - len(line.lstrip())
        parent, depth = indent < depth, indent
        if parent:
            continue
        tally(totals, bool(m.group(1)), m.group(3), prefix + m.group(2))
    return totals


def tally(totals, bad, directive, name):
    if directive and directive.upper() == "SKIP":
        totals.skipped += 1
    elif bad and not directive:
        totals.failed += 1
        totals.failures.append(name)
    else:
        totals.passed += 1


class Held:
    """Points and remarks of what runs beside others, for a Writer later."""

    def __init__(self):
        self.number = 0
        self.totals = Totals()
        self.events = []

    def diag(self, text):
        self.events.append(("diag", text))

    def point(self, ok, name, skip=None, detail=""):
        self.number += 1
        self.events.append(("point", ok, name, skip, detail))
        tally(self.totals, not ok, "SKIP" if skip else None, name)

    def include(self, text, prefix):
        return Writer.include(self, text, prefix)

    def tell(self, writer):
        """All of it, in its order."""
        for kind, *args in self.events:
            getattr(writer, kind)(*args)


class Writer:
    """Prints numbered TAP points and keeps the totals."""

    def __init__(self, out=sys.stdout):
        self.out = out
        self.number = 0
        self.totals = Totals()

    def diag(self, text):
        for line in text.splitlines():
            print("# " + line, file=self.out, flush=True)

    def point(self, ok, name, skip=None, detail=""):
        self.number += 1
        word = "ok" if ok else "not ok"
        tail = f" # SKIP {skip}" if skip else ""
        print(f"{word} {self.number} {name}{tail}", file=self.out, flush=True)
        if detail:
            self.diag(detail)
        tally(self.totals, not ok, "SKIP" if skip else None, name)

    def include(self, text, prefix):
        """Points of a program's TAP, renumbered, under a prefix."""
        before = self.totals.failed
        depth = 0
        pending = []
        for line in text.splitlines():
            m = POINT.match(line)
            if not m:
                pending.append(line)
                continue
            indent = len(line) - len(line.lstrip())
            parent, depth = indent < depth, indent
            if parent:
                continue
            skip = m.group(4) or "no reason given" \
                if (m.group(3) or "").upper() == "SKIP" else None
            bad = bool(m.group(1)) and not m.group(3)
            self.point(not bad, f"{prefix}: {m.group(2)}", skip,
                       "\n".join(pending) if bad else "")
            pending = []
        return self.totals.failed == before
