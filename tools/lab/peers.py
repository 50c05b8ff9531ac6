# SPDX-License-Identifier: GPL-2.0-only
"""Ways to move bytes from host a to host b, each measured by the tool that
its users know: fabrex-perf, perftest over RoCEv2 in software, qperf and
iperf3 over TCP. Used by bench.py and selftests/bench/."""

import contextlib
import json
import re
import signal
from dataclasses import dataclass

import install
import mpi
import network
import remote
import root

LAYER = "peers"
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "sec": 1.0}
SERVICE = 7703		# where the ranks of a collective meet
PORTS = {"ib": 18515, "qperf": 19765, "iperf3": 5201}
# Of all-reduces: every size from the first to the last is of interest.
GROUP_SIZES = {8: "8 bytes", 64: "64 bytes", 512: "512 bytes", 4 << 10: "4 KiB",
               32 << 10: "32 KiB", 256 << 10: "256 KiB", 1 << 20: "1 MiB",
               4 << 20: "4 MiB", 16 << 20: "16 MiB"}
VERSIONS = ("perftest", "rdma-core", "qperf", "iperf3", "openmpi-bin")


@dataclass
class Way:
    """One contender: measure(lab, effort) gives one figure, which takes
    about `effort` seconds."""
    name: str
    tool: str
    measure: object


@dataclass
class Contest:
    """The same job done in several ways; the first is what the others are
    compared with."""
    what: str
    unit: str		# "us": less is better; "MB/s": more is
    ways: list

    def better(self, own, other):
        """How many times better `own` is than `other`."""
        return other / own if self.unit == "us" else own / other


def prepare(lab):
    """RDMA over Ethernet between a and b."""
    a, b = lab.guest("a"), lab.guest("b")
    network.rdma(a, "b")
    network.rdma(b, "a")


def prepare_group(lab):
    """MPI between all hosts, over the Ethernet and over the fabric."""
    install.provider(lab.guests.values())
    remote.prepare(list(lab.guests.values()))


def versions():
    """What the peers are, for the reader of the figures."""
    return {name: root.version(LAYER, name) for name in VERSIONS}


@contextlib.contextmanager
def serving(guest, cmd, port=None, ends=False):
    """A server on a guest for as long as the block lasts. port: TCP, waited
    for; ends: it does so by itself when its client has."""
    server = guest.start_command(cmd)
    try:
        if port:
            guest.sh("for i in $(seq 300); do ss -Hltn 'sport = "
                     f":{port}' | grep -q . && exit 0; sleep 0.05; done; "
                     f"echo no server on port {port} >&2; exit 1")
        yield server
        if ends:
            server.wait(30).check()
    finally:
        if not server.poll():
            server.kill(signal.SIGTERM)
            server.wait(20)


def fabrex(lab, arguments, effort):
    """Result object of one fabrex-perf test from a to b."""
    with serving(lab.guest("b"), "fabrex-perf server --once --quiet",
                 ends=True):
        out = lab.guest("a").sh(
            f"fabrex-perf {arguments} --peer b --duration {effort} --json "
            "--quiet", timeout=120)
    answer = json.loads(out)
    if not answer["emulated"]:
        raise RuntimeError("fabrex-perf does not say that it is emulated")
    return answer["results"][0]


def fabrex_write_lat(lab, effort):
    return fabrex(lab, "write-lat --size 8", effort)["median_us"]


def pingpong(lab, how, effort):
    """Half a round trip, with both sides waiting in the same way."""
    with serving(lab.guest("b"), f"bench-pingpong {how}", ends=True):
        out = lab.guest("a").sh(f"bench-pingpong {how} b {effort}",
                                timeout=120)
    return json.loads(out)["median_us"]


def fabrex_poll_lat(lab, effort):
    return pingpong(lab, "poll", effort)


def fabrex_sleep_lat(lab, effort):
    return pingpong(lab, "sleep", effort)


def fabrex_write_bw(lab, effort):
    return fabrex(lab, "write-bw --size 1M", effort)["mb_per_s"]


def perftest_json(text):
    """perftest writes what C prints for a number that it could not compute, such
    as the deviation of times that are all alike: no number of JSON."""
    return json.loads(re.sub(r":\s*-?(nan|inf)\b", ": NaN", text))["results"]


def perftest(lab, tool, size, count):
    """Results of one perftest program from a to b, by its JSON."""
    arguments = f"{tool} -F -s {size} -n {count}"
    with serving(lab.guest("b"), f"{arguments} -d rxe-a", PORTS["ib"], True):
        out = lab.guest("a").sh(
            f"{arguments} -d rxe-b --report_gbits --out_json "
            "--out_json_file=/tmp/perftest.json b >/tmp/perftest.log 2>&1 || "
            "{ cat /tmp/perftest.log >&2; exit 1; }; cat /tmp/perftest.json",
            timeout=120)
    return perftest_json(out)


# perftest counts operations; these many take about a second in emulation.
def count(effort, each_second, least):
    return max(least, int(each_second * effort))


def roce_completion(lab, effort):
    """One write outstanding at a time, so the rate tells how long one takes
    until its acknowledgement has come."""
    rate = perftest(lab, "ib_write_bw -t 1", 8,
                    count(effort, 500, 100))["MsgRate"]
    return 1 / rate


def roce_poll_lat(lab, effort):
    return perftest(lab, "ib_write_lat", 8,
                    count(effort, 1000, 100))["t_typical"]


def roce_sleep_lat(lab, effort):
    return perftest(lab, "ib_send_lat -e", 8,
                    count(effort, 1000, 100))["t_typical"]


def roce_write_bw(lab, effort):
    return perftest(lab, "ib_write_bw", 1 << 20,
                    count(effort, 40, 8))["BW_average"] * 1e3 / 8


def tcp_lat(lab, effort):
    """qperf says half of a round trip, the mean."""
    with serving(lab.guest("b"), "qperf", PORTS["qperf"]):
        out = lab.guest("a").sh(
            f"qperf -m 8 -t {max(1, round(effort))} b tcp_lat", timeout=120)
    m = re.search(r"latency\s*=\s*([0-9.]+)\s*(\w+)", out)
    if not m:
        raise RuntimeError(f"qperf said no latency:\n{out}")
    return float(m.group(1)) * SECONDS[m.group(2)] * 1e6


def tcp_completion(lab, effort):
    """The answer is what proves that a message has arrived."""
    return 2 * tcp_lat(lab, effort)


def tcp_bw(lab, effort):
    with serving(lab.guest("b"), "iperf3 -s -1", PORTS["iperf3"], True):
        out = lab.guest("a").sh(
            f"iperf3 -c b -l 1M -t {max(1, round(effort))} -J", timeout=120)
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8e6


def fabrex_all_reduce(lab, size, effort):
    """Time of one among all hosts, a rank on each, as rank 0 reports it."""
    commands = [guest.start_command(
        f"fabrex-perf all_reduce --bootstrap fabric:{SERVICE} --rank {rank} "
        f"--world {len(lab.guests)} --size {size} --duration {effort} --json "
        "--quiet") for rank, guest in enumerate(lab.guests.values())]
    for command in reversed(commands):
        result = command.wait(180).check()
    answer = json.loads(result.stdout)
    if answer["wrong"] or answer["ranks"] != len(lab.guests):
        raise RuntimeError(f"fabrex-perf all_reduce: {result.stdout}")
    return answer["rows"][0]["out_of_place"]["time_us"]


def group_contests(hosts):
    """What is compared among all hosts of the lab, so many."""
    def ways(size):
        return [
            Way("fabrex", "fabrex-perf all_reduce", lambda lab, effort:
                fabrex_all_reduce(lab, size, effort)),
            Way("Open MPI, TCP", "MPI_Allreduce", lambda lab, effort:
                mpi.all_reduce(list(lab.guests.values()), size, effort))]
    what = f"all-reduce of fp32, {hosts} hosts"
    return [Contest(f"{what}, {text}", "us", ways(size))
            for size, text in GROUP_SIZES.items()]


def mpi_ping_pong(size):
    """Ways of half of a round trip between two ranks of Open MPI."""
    def way(name, options):
        return Way(name, "MPI_Send, MPI_Recv", lambda lab, effort:
                   mpi.ping_pong([lab.guest("a"), lab.guest("b")], size,
                                 effort, options))
    return [way("Open MPI, fabrex (libfabric)", mpi.FABREX),
            way("Open MPI, TCP", mpi.TCP)]


def contests():
    """What is compared between two hosts."""
    return [
        Contest("8 bytes until arrival is confirmed", "us", [
            Way("fabrex, write", "fabrex-perf write-lat", fabrex_write_lat),
            Way("RoCEv2 (rxe), write", "ib_write_bw -t 1", roce_completion),
            Way("TCP, round trip", "2 x qperf tcp_lat", tcp_completion)]),
        Contest("8 bytes, half the round trip, both poll", "us", [
            Way("fabrex, write", "bench-pingpong poll", fabrex_poll_lat),
            Way("RoCEv2 (rxe), write", "ib_write_lat", roce_poll_lat)]),
        Contest("8 bytes, half the round trip, both sleep", "us", [
            Way("fabrex, datagram", "bench-pingpong sleep", fabrex_sleep_lat),
            Way("RoCEv2 (rxe), send", "ib_send_lat -e", roce_sleep_lat),
            Way("TCP", "qperf tcp_lat", tcp_lat)]),
        Contest("bandwidth, 1 MiB", "MB/s", [
            Way("fabrex, writes", "fabrex-perf write-bw", fabrex_write_bw),
            Way("RoCEv2 (rxe), writes", "ib_write_bw", roce_write_bw),
            Way("TCP, one stream", "iperf3 -l 1M", tcp_bw)]),
        *(Contest(f"MPI ping-pong, {text}", "us", mpi_ping_pong(size))
          for size, text in ((8, "8 bytes"), (1 << 20, "1 MiB"))),
    ]
