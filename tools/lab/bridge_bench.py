# SPDX-License-Identifier: GPL-2.0-only
"""make bench-ntb: fabrex_ntb beside Linux's ntb_transport with TCP, between the same
two guests over the same emulated Switchtec, with and without its DMA engine. Either
has the bridge in turn, so that what disturbs the machine disturbs both; medians,
spread and ratios as table, JSON, Markdown."""

import json
import os
import statistics
import time
from dataclasses import dataclass

import bench
import build
import kmod
import machine
import peers
import root
import space
import upstream
from cache import say
from lab import Lab

TOPOLOGY = os.path.join(space.TREE, "selftests/switchtec/bridges.topo")
MARKS = ("<!-- make bench-ntb -->", "<!-- end of make bench-ntb -->")
SIZES = (8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
STREAMS = (4 << 10, 64 << 10, 1 << 20)
LATENCY, BANDWIDTH = "until arrival is confirmed", "bandwidth"
PROCESSOR, DMA = "payload by processors", "payload by the DMA engine"
# Of the clients, the one that is loaded first has the bridge.
DRIVERS = ("switchtec", "ntb_hw_switchtec", "switchtec_dma")
CLIENTS = ("fabrex_ntb", "fabrex_engine", "fabrex", "ntb_netdev",
           "ntb_transport")
ADDRESS = {"a": "10.78.0.1", "b": "10.78.0.2"}
OPTIONS = "trusted_peer=1 dead_ms=20000"
PATIENCE = 120		# seconds, for links and servers
SLOWEST = 60		# seconds in which a message arrives, however slow the bridge
# How many times better fabrex is meant to be: for the smallest message, and else.
WANTED_SMALL, WANTED = 5, 1


@dataclass(frozen=True)
class Question:
    """What is asked of both: a figure for messages of that size."""
    what: str
    means: str
    size: int
    unit: str

    def better(self, own, other):
        """How many times better `own` is than `other`."""
        return other / own if self.unit == "us" else own / other

    def wanted(self):
        """How many times better fabrex is meant to be."""
        return WANTED_SMALL if (self.what, self.size) == (LATENCY, SIZES[0]) \
            else WANTED


def questions():
    """All of them."""
    return [Question(LATENCY, means, size, "us")
            for means in (PROCESSOR, DMA) for size in SIZES] + \
           [Question(BANDWIDTH, means, size, "MB/s")
            for means in (PROCESSOR, DMA) for size in STREAMS]


def wait(guest, command, what):
    """Until it succeeds in a guest."""
    done = guest.run(f"for i in $(seq {10 * PATIENCE}); do {command} "
                     ">/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1",
                     20 * PATIENCE)
    if done.status:
        raise RuntimeError(f"{guest.name}: {what} in {PATIENCE} s\n"
                           + guest.dmesg()[-2000:])


class Fabrex:
    """fabrex_ntb has the bridge."""
    name = "fabrex"

    def load(self, guests, means):
        built = kmod.modules(guests[0].kernel.release)
        for guest in guests:
            for name in ("fabrex", "fabrex_engine"):
                guest.sh(f"insmod {built[name]}")
            guest.sh(f"insmod {built['fabrex_ntb']} {OPTIONS} "
                     f"use_dma={int(means == DMA)}")
        for guest, other in zip(guests, "ba"):
            wait(guest, f"fabrexctl list | grep -q {other}.ntb0",
                 f"no port of {other}")
        for guest in guests:
            engine = json.loads(guest.sh("fabrexctl list fports --json")
                                )["fports"][0]["engine"]
            if (engine == "processor") == (means == DMA):
                raise RuntimeError(f"{guest.name}: moved by {engine}")

    def measure(self, guests, ask, effort):
        a, b = guests
        # Asleep, as TCP waits: with one processor, who polls is in its own way.
        test, key = ("write-lat", "median_us") if ask.what == LATENCY else \
                    ("write-bw", "mb_per_s")
        with peers.serving(b, "fabrex-perf server --once --quiet", ends=True):
            out = a.sh(f"fabrex-perf {test} --events --size {ask.size} "
                       f"--peer b --duration {effort} --json --quiet", timeout=300)
        return json.loads(out)["results"][0][key]


class Tcp:
    """ntb_transport and ntb_netdev have it."""
    name = "ntb_netdev, TCP"

    def load(self, guests, means):
        for guest in guests:
            upstream.load(guest, f"ntb_transport use_dma={int(means == DMA)}",
                          "ntb_netdev")
        for guest in guests:
            wait(guest, "ls /sys/class/net | grep -v ^lo$", "no ntb_netdev")
            name = guest.sh("ls /sys/class/net | grep -v ^lo$")
            guest.sh(f"ip address add {ADDRESS[guest.name]}/24 dev {name} && "
                     f"ip link set {name} up")
        for guest, other in zip(guests, "ba"):
            wait(guest, f"busybox ping -c 1 -W 1 {ADDRESS[other]}",
                 f"{other} does not answer")

    def measure(self, guests, ask, effort):
        a, b = guests
        if ask.what == LATENCY:
            with peers.serving(b, "bench-tcp", 7791):
                out = a.sh(f"bench-tcp {ADDRESS['b']} {effort} {ask.size}",
                           timeout=300)
            return json.loads(out)[0]["median_us"]
        return self.stream(a, b, ask.size, max(1, round(effort)))

    def stream(self, a, b, size, seconds):
        """MB/s; where not one message has arrived in that time, over more of it."""
        with peers.serving(b, "iperf3 -s -1", peers.PORTS["iperf3"], True):
            out = a.sh(f"iperf3 -c {ADDRESS['b']} -l {size} -t {seconds} -J",
                       timeout=300)
        rate = json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8e6
        if not rate and seconds < SLOWEST:
            return self.stream(a, b, size, 4 * seconds)
        return rate


WAYS = (Fabrex(), Tcp())


class Bench:
    """All questions, asked in rounds; values by question and way."""

    def __init__(self, asked):
        self.asked = {ask: {way.name: [] for way in WAYS} for ask in asked}
        self.rounds = 0
        self.others = 0
        self.begun = time.gmtime()

    def round(self, lab, effort):
        """Each way has the bridge once by each means."""
        guests = [lab.guest(name) for name in "ab"]
        for means in (PROCESSOR, DMA):
            for way in WAYS:
                for guest in guests:
                    upstream.unload(guest, *CLIENTS)
                way.load(guests, means)
                for ask, values in self.asked.items():
                    if ask.means == means:
                        value = way.measure(guests, ask, effort)
                        if not value > 0:
                            raise RuntimeError(f"{way.name} said {value}")
                        values[way.name].append(value)
        self.rounds += 1

    def rows(self):
        """(question, fabrex's values, TCP's values, how many times better fabrex is
        in each round)"""
        for ask, values in self.asked.items():
            own, other = (values[way.name] for way in WAYS)
            yield ask, own, other, [ask.better(*v) for v in zip(own, other)]

    def as_dict(self):
        """What --json prints."""
        return {"emulated": True, "about": about(), "rounds": self.rounds,
                "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", self.begun),
                "cores_used_by_others": self.others,
                "iperf3": root.version(peers.LAYER, "iperf3"),
                "rows": [{
                    "what": ask.what, "means": ask.means, "size": ask.size,
                    "unit": ask.unit, "fabrex": own, "tcp": other,
                    "fabrex_is_times_better": statistics.median(better),
                    "wanted": ask.wanted(),
                } for ask, own, other, better in self.rows()]}


def about():
    """The line that every figure needs beside it."""
    version = root.version("demo", "qemu-system-x86").partition(":")[2]
    return (f"emulated: QEMU {version.partition('+')[0]} "
            f"{machine.accelerator().upper()}, draco-emu's Switchtec, "
            f"{os.cpu_count()} cores for everything; guests of 1 processor; "
            "Linux's own ntb_hw_switchtec and switchtec_dma below both")


HEAD = ["what", "moved by", "size", "unit", "fabrex", "TCP",
        "fabrex better by factor", "range", "wanted", "met"]


def size_text(size):
    """As people write it."""
    for shift, unit in ((20, "M"), (10, "K")):
        if size >> shift:
            return f"{size >> shift}{unit}"
    return str(size)


def cells(ask, own, other, better):
    """A row of the table, as text."""
    factor = statistics.median(better)
    return [ask.what, ask.means, size_text(ask.size), ask.unit,
            bench.figure(statistics.median(own)),
            bench.figure(statistics.median(other)), bench.figure(factor),
            f"{bench.figure(min(better))} .. {bench.figure(max(better))}",
            str(ask.wanted()), "yes" if factor >= ask.wanted() else "NO"]


def table(series):
    """All rows, the head first."""
    return [HEAD] + [cells(*row) for row in series.rows()]


def as_text(series):
    """The table for people at a terminal."""
    rows = table(series)
    wide = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return "\n".join([about(), bench.when(series), ""] + [
        "  ".join(text.ljust(w) if i < 2 else text.rjust(w) for i, (text, w)
                  in enumerate(zip(row, wide))).rstrip() for row in rows])


def as_markdown(series):
    """The same for a document."""
    head, *rows = table(series)
    return "\n".join([
        f"*{about()}.*", "",
        f"{bench.when(series)}; iperf3 {root.version(peers.LAYER, 'iperf3')}.",
        "", "| " + " | ".join(head) + " |",
        "|---|---|--:|---|--:|--:|--:|--:|--:|---|"]
        + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def run(rounds, effort, as_json=False, output=None):
    """Build, boot, measure, print; the exit status."""
    build.build("demo", ("programs", "bench-programs"))
    kmod.build("7.2")
    series = Bench(questions())
    with Lab(kernel="7.2", hosts=["a", "b"], topology=TOPOLOGY,
             layer=peers.LAYER, upstream=True) as lab:
        lab.install()
        for guest in lab.guests.values():
            upstream.load(guest, *DRIVERS)
        others = bench.Others(lab)
        for number in range(rounds):
            begun = time.monotonic()
            series.round(lab, effort)
            say(f"round {number + 1} of {rounds}: "
                f"{time.monotonic() - begun:.0f} s")
        series.others = others.cores()
    print(json.dumps(series.as_dict(), indent=1) if as_json
          else as_text(series), flush=True)
    if output:
        bench.keep(output, as_markdown(series), MARKS)
        say(f"the same as Markdown: {output}")
    return 0
