# SPDX-License-Identifier: GPL-2.0-only
"""make bench-libfabric: programs over our provider of libfabric beside the same over
others, beside libfabrex itself and beside Open MPI's own transport, on this machine.
Rounds of all in turn, so that what disturbs the machine disturbs all of them; medians,
spread and ratios as table, JSON, Markdown."""

import json
import os
import statistics
import time
from dataclasses import dataclass

import bench
import build
import fabtests
import libfabric
import openmpi
import root
from cache import say

MARKS = ("<!-- make bench-libfabric -->", "<!-- end of make bench-libfabric -->")
PERF = "tools/perf/fabrex-perf"
KIB, MIB = 1 << 10, 1 << 20
SECONDS = 60
# Times there and back for a second, about; programs count them.
COUNT = {8: 500000, 64 * KIB: 20000, MIB: 800, 4 * MIB: 2000}
VERSIONS = ("libfabric-bin", "openmpi-bin", "netpipe-openmpi")

# One side on each of two processors; the server says nothing of interest.
TWO = r"""
server=$1 client=$2
taskset -c 1 sh -c "$server" >server 2>&1 &
taskset -c 0 sh -c "sleep 0.5; $client"
status=$?
wait $! || { cat server >&2; status=1; }
exit $status
"""


@dataclass(frozen=True)
class Way:
    """One contender: measure(size, effort) gives a figure."""
    name: str
    tool: str
    measure: object


@dataclass(frozen=True)
class Other:
    """What ours is compared with, and what is wanted: at least so many times as
    good, or, if it is a time, at most so much more."""
    way: Way
    ratio: float = 0
    more: float = 0

    def wanted(self, unit):
        return f"at least {self.ratio:g}" if self.ratio else \
            f"at most {self.more * 1e3:g} ns more" if unit == "us" else ""


@dataclass(frozen=True)
class Contest:
    what: str
    size: int
    unit: str		# "us": less is better; "MB/s": more is
    ours: Way
    others: tuple

    def better(self, own, other):
        return other / own if self.unit == "us" else own / other


def two(server, client, env):
    """Run both sides alone; what the client printed."""
    result = libfabric.run(["sh", "-c", TWO, "two", server, client], env,
                           seconds=SECONDS)
    if result.returncode:
        raise RuntimeError(f"{client}: exit status {result.returncode}\n"
                           f"{result.stdout[-1000:]}{result.stderr[-2000:]}")
    return result.stdout


def count(size, effort):
    return max(20, int(COUNT[size] * effort))


def column(text, size, name):
    """A column of the table that libfabric's programs print, of its last row."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    for head, row in zip(reversed(lines[:-1]), reversed(lines[1:])):
        if name in head and len(row) == len(head):
            return float(row[head.index(name)])
    raise RuntimeError(f"no column {name} for {size} bytes in:\n{text}")


def pingpong(provider):
    """libfabric's fi_pingpong, half of a round trip."""
    def measure(size, effort):
        cmd = (f"fi_pingpong -p {provider.name} -e rdm -S {size} "
               f"-I {count(size, effort)}")
        return column(two(cmd, cmd + " 127.0.0.1", provider.env), size,
                      "usec/xfer")
    return Way(f"libfabric, {provider.name}", "fi_pingpong -e rdm", measure)


def rma(provider):
    """fabtests' fi_rma_bw, writes."""
    def measure(size, effort):
        # One buffer again and again, as fabrex-perf does: else it is one of 64,
        # in no cache, whose pages are touched for the first time.
        cmd = (f"{fabtests.path()}/bin/fi_rma_bw -p {provider.name} -e rdm "
               f"-o write -W 1 -S {size} -I {count(size, effort)}")
        return column(two(f"{cmd} -s 127.0.0.1",
                          f"{cmd} -s 127.0.0.1 127.0.0.1", provider.env),
                      size, "MB/sec")
    return Way(f"libfabric, {provider.name}", "fi_rma_bw -o write", measure)


def perf(test, key, options=""):
    """libfabrex without libfabric."""
    program = os.path.join(build.directory(libfabric.KIND), PERF)

    def measure(size, effort):
        # Memory that the program has, not fabrex: such as libfabric's has.
        out = two(f"{program} server --once --quiet {options}",
                  f"{program} {test} --peer 0 --size {size} --duration {effort} "
                  f"--json --quiet {options}", libfabric.ours().env)
        return json.loads(out)["results"][0][key]
    return Way("libfabrex", f"fabrex-perf {test} {options}".strip(), measure)


def netpipe(transport):
    """NetPIPE over MPI, half of a round trip; it writes seconds to a file."""
    def measure(size, effort):
        with libfabric.directory() as cwd:
            result = openmpi.run(
                transport, 2,
                ["NPopenmpi", "-l", str(size), "-u", str(size), "-p", "0", "-n",
                 str(count(size, effort)), "-o", "np"], seconds=SECONDS,
                cwd=cwd, binding=("--bind-to", "core"))
            wrong = openmpi.right_provider(transport, result)
            if result.returncode or wrong:
                raise RuntimeError(f"NPopenmpi: {wrong or ''}\n"
                                   + openmpi.trouble(result))
            with open(cwd + "/np", encoding="ascii") as f:
                return float(f.readlines()[-1].split()[2]) * 1e6
    return Way(f"MPI, {transport.name}", "NPopenmpi", measure)


def contests():
    """All that is compared."""
    ours = libfabric.ours()
    shm = pingpong(libfabric.provider("shm"))
    raw = perf("send-lat", "median_us")
    half = "half of a round trip"
    mpi = netpipe(openmpi.tagged(ours))
    own, tcp = netpipe(openmpi.DEFAULT), netpipe(openmpi.over_tcp())
    return [
        Contest(half, 8, "us", pingpong(ours),
                (Other(shm, ratio=1.2), Other(raw, more=0.1))),
        Contest(half, 64 * KIB, "us", pingpong(ours), (Other(shm, ratio=1),)),
        Contest(half, MIB, "us", pingpong(ours), (Other(shm, ratio=1),)),
        Contest("remote writes", 4 * MIB, "MB/s", rma(ours),
                (Other(perf("write-bw", "mb_per_s", "--memory malloc"),
                       ratio=0.95),)),
        Contest(half, 8, "us", mpi,
                (Other(own, ratio=0.7), Other(tcp, ratio=20))),
        Contest(half, 64 * KIB, "us", mpi, (Other(own, ratio=1), Other(tcp))),
        Contest(half, MIB, "us", mpi,
                (Other(own, ratio=1), Other(tcp, ratio=2))),
    ]


class Bench:
    """All contests, measured in rounds: values by contest and way."""

    def __init__(self, asked):
        self.asked = {c: {w.name: [] for w in ways(c)} for c in asked}
        self.rounds = 0
        self.others = 0
        self.begun = time.gmtime()

    def round(self, effort):
        """Each way once."""
        for contest, values in self.asked.items():
            for way in ways(contest):
                value = way.measure(contest.size, effort)
                if not value > 0:
                    raise RuntimeError(f"{way.tool} said {value}")
                values[way.name].append(value)
        self.rounds += 1

    def rows(self):
        """(contest, other, our values, its values, ratios of the rounds)"""
        for contest, values in self.asked.items():
            own = values[contest.ours.name]
            for other in contest.others:
                theirs = values[other.way.name]
                yield contest, other, own, theirs, [
                    contest.better(*pair) for pair in zip(own, theirs)]

    def as_dict(self):
        """What --json prints."""
        return {"about": about(), "rounds": self.rounds,
                "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", self.begun),
                "cores_used_by_others": self.others,
                "rows": [{
                    "what": contest.what, "size": contest.size,
                    "unit": contest.unit, "ours": contest.ours.name,
                    "our_tool": contest.ours.tool, "values": own,
                    "other": other.way.name, "other_tool": other.way.tool,
                    "other_values": theirs, "ratio": statistics.median(ratios),
                    "wanted": other.wanted(contest.unit),
                    "met": met(other, own, theirs, ratios),
                } for contest, other, own, theirs, ratios in self.rows()]}


def ways(contest):
    return [contest.ours, *(other.way for other in contest.others)]


def met(other, own, theirs, ratios):
    """Whether the medians are as wanted; None if nothing is."""
    if other.ratio:
        return statistics.median(ratios) >= other.ratio
    if other.more:
        return statistics.median(
            a - b for a, b in zip(own, theirs)) <= other.more
    return None


def about():
    """The line that every figure needs beside it."""
    versions = ", ".join(f"{name} {root.version(libfabric.LAYER, name)}"
                         for name in VERSIONS)
    return (f"two processes of one machine of {os.cpu_count()} processors, "
            f"each on its own, over loopback; {versions}")


HEAD = ["what", "bytes", "unit", "ours", "", "beside", "", "better by factor",
        "range", "wanted", "met"]


def cells(contest, other, own, theirs, ratios):
    """A row of the table, as text."""
    verdict = {True: "yes", False: "NO", None: ""}
    return [f"{contest.what}, {contest.ours.name} ({contest.ours.tool})",
            str(contest.size), contest.unit, contest.ours.name,
            bench.figure(statistics.median(own)),
            f"{other.way.name} ({other.way.tool})",
            bench.figure(statistics.median(theirs)),
            bench.figure(statistics.median(ratios)),
            f"{bench.figure(min(ratios))} .. {bench.figure(max(ratios))}",
            other.wanted(contest.unit), verdict[met(other, own, theirs, ratios)]]


def table(series):
    """All rows, the head first; what names ours is in the first column."""
    rows = [HEAD] + [cells(*row) for row in series.rows()]
    return [row[:3] + row[4:] for row in rows]


def as_text(series):
    """The table for people at a terminal."""
    rows = table(series)
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join([about(), bench.when(series), ""] + [
        "  ".join(text.ljust(w) if i in (0, 4, 8) else text.rjust(w)
                  for i, (text, w) in enumerate(zip(row, wide))).rstrip()
        for row in rows])


def as_markdown(series):
    """The same for a document."""
    head, *rows = table(series)
    return "\n".join([
        f"*{about()}.*", "", bench.when(series) + ".", "",
        "| " + " | ".join(head) + " |",
        "|---|--:|---|--:|---|--:|--:|--:|---|---|"]
        + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def run(rounds, effort, as_json=False, output=None):
    """Build, measure, print; the exit status."""
    build.build(libfabric.KIND, (libfabric.TARGET, PERF))
    series = Bench(contests())
    others = bench.Others()
    for number in range(rounds):
        begun = time.monotonic()
        series.round(effort)
        say(f"round {number + 1} of {rounds}: {time.monotonic() - begun:.0f} s")
    series.others = others.cores()
    print(json.dumps(series.as_dict(), indent=1) if as_json
          else as_text(series), flush=True)
    if output:
        bench.keep(output, as_markdown(series), MARKS)
        say(f"the same as Markdown: {output}")
    return 0
