# SPDX-License-Identifier: GPL-2.0-only
"""make bench-lab: fabrex beside RoCEv2 and TCP between the same guests in the
same run. Rounds of all contenders in turn, so that what disturbs the machine
disturbs all of them; medians, spread and ratios as table, JSON, Markdown."""

import json
import os
import statistics
import time

import build
import kmod
import machine
import peers
import root
from cache import say
from lab import Lab

HOSTS = ["a", "b", "c"]
# In a document, lines between which the table is replaced.
MARKS = ("<!-- make bench-lab -->", "<!-- end of make bench-lab -->")
QUIET = 0.2	# cores; more of other work shows in the figures

class Others:
    """What the rest of the machine does while something is measured, in a lab or by
    processes that we start and wait for."""

    def __init__(self, lab=None):
        children = [g.child for g in lab.guests.values()] + [lab.emu.child] \
            if lab else []
        self.pids = ["self"] + [c.popen.pid for c in children]
        self.begun = self.now()

    def now(self):
        """(seconds, processor seconds of all, of the lab)"""
        tick = os.sysconf("SC_CLK_TCK")
        with open("/proc/stat") as f:
            user, nice, system, _, _, irq, soft = map(
                int, f.readline().split()[1:8])
        own = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/stat") as f:
                # And of children that have ended.
                own += sum(map(int, f.read().rpartition(")")[2].split()[11:15]))
        return (time.monotonic(), (user + nice + system + irq + soft) / tick,
                own / tick)

    def cores(self):
        """How many processors others have used on average."""
        took, busy, own = (b - a for a, b in zip(self.begun, self.now()))
        return max(0, (busy - own) / took)


class Series:
    """The figures of one way, and how they compare with the first way's."""

    def __init__(self, contest, way):
        self.contest = contest
        self.way = way
        self.values = []

    def spread(self, values=None):
        """(median, least, most)"""
        values = values or self.values
        return statistics.median(values), min(values), max(values)

    def better(self, base):
        """How many times better the base is, round by round, as spread()."""
        return self.spread([self.contest.better(own, other) for own, other
                            in zip(base.values, self.values)])


class Bench:
    """All contests, measured in rounds."""

    def __init__(self, contests):
        self.tables = [[Series(c, way) for way in c.ways] for c in contests]
        self.rounds = 0
        self.others = 0
        self.begun = time.gmtime()

    def round(self, lab, effort):
        """Each way once."""
        self.rounds += 1
        for series in (s for table in self.tables for s in table):
            value = series.way.measure(lab, effort)
            if not value > 0:
                raise RuntimeError(f"{series.way.tool} said {value}")
            series.values.append(value)

    def as_dict(self):
        """What --json prints."""
        return {"emulated": True, "about": about(),
                "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", self.begun),
                "versions": peers.versions(), "rounds": self.rounds,
                "cores_used_by_others": self.others,
                "contests": [{
                    "what": table[0].contest.what,
                    "unit": table[0].contest.unit,
                    "ways": [row_dict(s, table[0]) for s in table],
                } for table in self.tables]}


def row_dict(series, base):
    median, least, most = series.spread()
    out = {"name": series.way.name, "tool": series.way.tool,
           "values": series.values, "median": median, "min": least,
           "max": most}
    if series is not base:
        out["fabrex_is_times_better"] = dict(
            zip(("median", "min", "max"), series.better(base)))
    return out


def about():
    """The line that every figure needs beside it."""
    version = root.version("demo", "qemu-system-x86").partition(":")[2]
    return (f"emulated: QEMU {version.partition('+')[0]} "
            f"{machine.accelerator().upper()}, draco-emu, {os.cpu_count()} "
            "cores for everything; guests of 1 processor, a virtio-net link "
            "between each pair (MTU 9000, no offload)")


def when(bench):
    """How it was measured, and how quiet the machine was."""
    return (f"{bench.rounds} rounds of all contenders in turn, "
            + time.strftime("%Y-%m-%d %H:%M UTC", bench.begun)
            + f", other work used {bench.others:.2f} cores meanwhile"
            + (" (not quiet)" if bench.others > QUIET else ""))


def figure(value):
    """Three digits that matter."""
    return f"{value:.0f}" if value >= 100 else \
        f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cells(series, base):
    """A row of the table, as text."""
    row = [series.way.name, series.way.tool]
    row += [figure(v) for v in series.spread()]
    if series is base:
        return row + ["1", ""]
    median, least, most = series.better(base)
    return row + [figure(median), f"{figure(least)} .. {figure(most)}"]


HEAD = ["", "measured by", "median", "min", "max", "fabrex better by factor",
        "range"]


def as_text(bench):
    """The table for people at a terminal."""
    out = [about(), when(bench)]
    for table in bench.tables:
        contest = table[0].contest
        rows = [[f"{contest.what}, {contest.unit}"] + HEAD[1:]]
        rows += [cells(s, table[0]) for s in table]
        wide = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
        out.append("")
        for row in rows:
            out.append("  ".join(
                text.ljust(w) if i < 2 else text.rjust(w)
                for i, (text, w) in enumerate(zip(row, wide))).rstrip())
    return "\n".join(out)


def as_markdown(bench):
    """The same for a document."""
    out = [f"*{about()}.*", "", when(bench) + "; "
           + ", ".join(f"{k} {v}" for k, v in peers.versions().items()) + "."]
    for table in bench.tables:
        contest = table[0].contest
        out += ["", "| " + " | ".join(
            [f"{contest.what}, {contest.unit}"] + HEAD[1:]) + " |",
            "|---|---|--:|--:|--:|--:|--:|"]
        out += ["| " + " | ".join(cells(s, table[0])) + " |" for s in table]
    return "\n".join(out) + "\n"


def keep(path, text, marks=MARKS):
    """Write a table to a file; one that has the marks keeps what is around."""
    old = ""
    if os.path.exists(path):
        with open(path) as f:
            old = f.read()
    if all(mark in old for mark in marks):
        head, _, rest = old.partition(marks[0])
        text = (f"{head}{marks[0]}\n{text}{marks[1]}"
                + rest.partition(marks[1])[2])
    with open(path, "w") as f:
        f.write(text)


def run(rounds, effort, as_json=False, output=None, kernel="7.2"):
    """Build, boot, measure, print; the exit status."""
    build.build("full", ("programs", "bench-programs"))
    kmod.build(kernel)
    bench = Bench(peers.contests() + peers.group_contests(len(HOSTS)))
    with Lab(kernel=kernel, hosts=HOSTS, layer=peers.LAYER,
             network=True) as lab:
        lab.install()
        peers.prepare(lab)
        peers.prepare_group(lab)
        others = Others(lab)
        for number in range(rounds):
            begun = time.monotonic()
            bench.round(lab, effort)
            say(f"round {number + 1} of {rounds}: "
                f"{time.monotonic() - begun:.0f} s")
        bench.others = others.cores()
    print(json.dumps(bench.as_dict(), indent=1) if as_json
          else as_text(bench), flush=True)
    if output:
        keep(output, as_markdown(bench))
        say(f"the same as Markdown: {output}")
    return 0
