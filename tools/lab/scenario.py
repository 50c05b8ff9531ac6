# SPDX-License-Identifier: GPL-2.0-only
"""Tests of several hosts: selftests/*/test_*.py declare them with @scenario,
check.py runs them. A scenario is a function of (lab, t)."""

import importlib.util
import os
import sys
import traceback
from dataclasses import dataclass, field

import space
from command import CommandFailed, CommandTimeout
from lab import DEFAULT_TOPOLOGY

SCENARIOS = []

# Kernels of distributions. What exercises programs only has nothing to show on
# a kernel that checks itself, where a program takes twenty times as long.
STOCK = ("7.2", "6.12")


class Skip(Exception):
    """Raised by t.skip()."""


class Failed(AssertionError):
    """Raised by t.need()."""


@dataclass
class Scenario:
    """One declared test; hosts and topology decide which lab it shares."""
    function: object
    hosts: tuple
    topology: str
    kernels: tuple
    fresh: bool
    layer: str
    options: dict = field(default_factory=dict)
    suite: str = ""
    named: bool = False
    timed: bool = False

    @property
    def name(self):
        return f"{self.suite}.{self.function.__name__}"

    def lab_key(self):
        return (self.topology, self.layer, tuple(sorted(self.options.items())))


def scenario(hosts=("a", "b", "c"), topology=DEFAULT_TOPOLOGY,
             kernels=(*STOCK, "debug"), fresh=False, layer="demo",
             named=False, timed=False, **options):
    """Declare a test. fresh: a lab of its own, because it breaks hosts for
    those after it. named: runs only where its whole name is given, as it takes
    long. timed: no other lab runs beside it. options go to Guest (memory, append, iommu, cpu...)."""
    def declare(function):
        # By whatever way it is named: those of one file can share a lab.
        SCENARIOS.append(Scenario(function, tuple(hosts),
                                  topology and os.path.abspath(topology),
                                  tuple(kernels), fresh, layer, options,
                                  named=named, timed=timed))
        return function
    return declare


class T:
    """What a scenario reports to; its points become TAP."""

    def __init__(self, writer, name):
        self.writer = writer
        self.name = name
        self.count = 0

    def ok(self, condition, text, detail=""):
        """One point; a failure does not stop the scenario."""
        self.count += 1
        self.writer.point(bool(condition), f"{self.name}: {text}",
                          detail="" if condition else str(detail))
        return bool(condition)

    def equal(self, got, wanted, text):
        return self.ok(got == wanted, text, f"got {got!r}, want {wanted!r}")

    def need(self, condition, text, detail=""):
        """As ok(), but the scenario ends when it fails."""
        if not self.ok(condition, text, detail):
            raise Failed(text)

    def diag(self, text):
        """A figure or remark, printed as a TAP comment."""
        self.writer.diag(text)

    def skip(self, reason):
        raise Skip(reason)

    def program(self, guest, cmd, timeout=300, **kw):
        """Run a TAP-printing program in a guest; its points become ours."""
        # The harness says on standard error what was expected.
        result = guest.run(f"exec 2>&1; {cmd}", timeout=timeout, **kw)
        label = os.path.basename(str(cmd).split()[0])
        number = self.writer.number
        self.writer.include(result.stdout, f"{self.name}/{label}@{guest.name}")
        self.count += self.writer.number - number
        if result.status in (0, 4) and self.writer.number == number:
            self.ok(result.status, f"{label} prints TAP", result.stdout)
        elif result.status and not self.writer.totals.failed:
            self.ok(False, f"{label} ends well", f"status {result.status}\n"
                    + (result.stdout + result.stderr)[-2000:])
        return result


def load(top="selftests", only=None):
    """Import every test_*.py below `top`; the scenarios whose name contains
    one of the words in `only`."""
    SCENARIOS.clear()
    base = os.path.join(space.TREE, top)
    for path in sorted(os.path.join(d, n) for d, _, names in os.walk(base)
                       for n in names
                       if n.startswith("test_") and n.endswith(".py")):
        suite = os.path.relpath(path, base)[:-3].replace("/test_", ".") \
            .replace("/", ".")
        sys.path.insert(0, os.path.dirname(path))
        spec = importlib.util.spec_from_file_location(
            "selftest_" + suite.replace(".", "_"), path)
        before = len(SCENARIOS)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        # Not those of another file, which it imports.
        SCENARIOS[before:] = [item for item in SCENARIOS[before:]
                              if item.function.__module__ == spec.name]
        for item in SCENARIOS[before:]:
            item.suite = suite
    return [s for s in SCENARIOS
            if not only or any(word in s.name for word in only)]


def run(item, lab, writer):
    """Run one scenario in a lab; True when it and the kernels are clean."""
    t = T(writer, item.name)
    before = writer.totals.failed
    for guest in lab.guests.values():
        guest.mark()
    try:
        item.function(lab, t)
        if not t.count:
            t.ok(True, "runs to its end")
    except Skip as reason:
        writer.point(True, item.name, skip=str(reason))
    except Failed:
        pass
    except (CommandFailed, CommandTimeout, ConnectionError) as e:
        t.ok(False, "commands succeed", str(e))
    except Exception:		# a broken test is a failed test, not the end
        t.ok(False, "runs to its end", traceback.format_exc())
    for guest in lab.guests.values():
        found = guest.complaints_since_mark()
        if found:
            t.ok(False, f"kernel log of {guest.name} is clean",
                 "\n---\n".join(found))
        guest.allowed.clear()
    return writer.totals.failed == before
