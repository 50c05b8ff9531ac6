# SPDX-License-Identifier: GPL-2.0-only
"""Programs that know nothing of fabrex, over its provider of libfabric, between hosts:
libfabric's own programs and tests, Open MPI, and the provider's own tests on a
port."""

import re
import subprocess
import time

import build
import fabtests
import install
import libfabric
import mpi
import openmpi
import peers
import remote
import space
from scenario import STOCK, scenario

OWN_TESTS = [f"plugins/libfabric/tests/fi-{name}"
             for name in ("messages", "onesided", "atomic")]
PATIENCE = "FI_FABREX_RESOLVE_MS=120000"
PAIR = {"hosts": ["a", "b"], "layer": peers.LAYER, "network": True,
        "kernels": STOCK}
FABREX = libfabric.Provider("fabrex")
TRIO = {**PAIR, "hosts": ["a", "b", "c"]}


def pingpong(lab, arguments, wrapper=""):
    """fi_pingpong, which compares what arrives: b's output."""
    program = f"fi_pingpong -p fabrex -e rdm {arguments}"
    with peers.serving(lab.guest("a"), f"{PATIENCE} {program}", 47592, True):
        return lab.guest("b").sh(f"{PATIENCE} {wrapper} {program} a",
                                 timeout=300)


@scenario(**PAIR)
def installed(lab, t):
    """Found without a variable, it names port and device; and what arrives is
    what was sent."""
    install.provider(lab.guests.values())
    a = lab.guest("a")
    out = a.sh("fi_info -v -p fabrex")
    t.equal(set(re.findall(r"type: (FI_EP_\w+)", out)), {"FI_EP_RDM"},
            "fi_info lists the provider, with endpoints of one type")
    slot = a.sh("basename $(readlink -f /sys/class/fabrex/fabrex0/device)").strip()
    t.ok(f"bus_id: 0x{slot[5:7]}" in out or slot in out,
         "and the PCI address of the port", f"{slot}\n{out}")
    for size in (1, 8, 4096, 65536, 1048576):
        pingpong(lab, f"-c -I 20 -S {size}")
        t.ok(True, f"fi_pingpong, {size} bytes: what arrives is what was sent")


def calls(lab, size, count):
    """{name: number} of the system calls of fi_pingpong on b, and the seconds that
    it took."""
    begun = time.monotonic()
    pingpong(lab, f"-I {count} -S {size}", "strace -f -c -o /tmp/calls")
    took = time.monotonic() - begun
    text = lab.guest("b").sh("cat /tmp/calls")
    rows = re.findall(r"^ *[0-9.]+ +[0-9.]+ +[0-9]+ +([0-9]+) +(?:[0-9]+ +)?"
                      r"([a-z]\w+)$", text, re.M)
    return {name: int(number) for number, name in rows
            if name != "total"}, took


@scenario(**PAIR)
def no_system_calls(lab, t):
    """Neither messages in cells nor those that the receiver fetches make any, once
    memory is registered. Whoever waits looks for events of the port, by poll() and
    read(), every 10 ms: this depends on time, and not on messages."""
    install.provider(lab.guests.values())
    for size in (8, 65536):
        few, _ = calls(lab, size, 10)
        many, seconds = calls(lab, size, 1000)
        more = {name: number - few.get(name, 0)
                for name, number in many.items()
                if name not in ("poll", "read")
                and number != few.get(name, 0)}
        t.ok(sum(map(abs, more.values())) < 100,
             f"{size} bytes: no system call for each of 1,000 messages", more)
        t.ok(many["poll"] <= 100 * seconds,
             "nor more than a hundred looks for events in a second",
             f"{many['poll']} in {seconds} s")
        t.diag(f"{size} bytes, differences: {more}, poll {many['poll']}")


def ranks(lab, t, program, transport, more=""):
    """A program of selftests/mpi, a rank on each host; its points are ours."""
    install.provider(lab.guests.values())
    where = openmpi.build_programs()
    guests = list(lab.guests.values())
    remote.prepare(guests)
    env = " ".join(f"-x {k}={v}" for k, v in openmpi.ENV.items())
    done = guests[0].run(mpi.command(
        guests, f"{env} -x {PATIENCE} {' '.join(transport.options)} "
        f"{where}/{program} {more}"), timeout=900)
    result = subprocess.CompletedProcess(program, done.status, done.stdout,
                                         done.stdout + done.stderr)
    points = "".join(line + "\n" for line in done.stdout.splitlines()
                     if re.match(r"(not )?ok |1\.\.", line))
    t.writer.include(points, f"{t.name}/{program}")
    wrong = openmpi.right_provider(transport, result)
    t.ok(not wrong and not done.status and
         openmpi.tap_plan(points) == points.count("ok "),
         f"{program} ends well, over the provider",
         f"{wrong}\n{openmpi.trouble(result)}")


@scenario(**TRIO, named=True)
def messages(lab, t):
    """Open MPI's messages between three hosts."""
    ranks(lab, t, "messages", openmpi.tagged(FABREX), "exact")


@scenario(**TRIO, named=True)
def one_sided(lab, t):
    """Windows of Open MPI, by RMA and atomics, between three hosts."""
    ranks(lab, t, "onesided", openmpi.onesided(FABREX))


# Some of these tests ask for buffers of a GiB, and use little of them.
@scenario(**PAIR, memory=4096, named=True)
def fabtests_between(lab, t):
    """libfabric's own tests, unmodified, the server on one host and the client on
    the other, which runfabtests.sh starts by ssh."""
    install.provider(lab.guests.values())
    a, b = lab.guest("a"), lab.guest("b")
    remote.prepare([a, b])
    where = fabtests.copied()
    excluded = fabtests.Excluded(fabtests.EXCLUDE)
    for test_set in fabtests.SETS:
        lines = []
        a.run(" ".join([
            f"{where}/bin/runfabtests.sh -vvv -S -p {where}/bin -T 600",
            f"-t {test_set} -f {fabtests.EXCLUDE} -E {PATIENCE}",
            "fabrex a b"]), timeout=7200,
            on_line=lambda _, line: lines.append(line))
        results = list(fabtests.parse(lines))
        t.ok(results and any("# Total Fail" in line for line in lines),
             f"{test_set}: runfabtests.sh runs to its end", lines[-20:])
        for result in results:
            good = result.result.startswith("Pass")
            t.ok(good or result.result.startswith("Excluded")
                 and excluded.reason(result.test),
                 f"{test_set}: {result.test}",
                 "\n".join([result.result, *result.output[-60:]]))


@scenario(hosts=["a"], layer=peers.LAYER, kernels=STOCK, smp=2, named=True)
def by_device(lab, t):
    """The provider's own tests, which make check runs over loopback, over the
    device: matching, limits, hostile peers, processes that are killed."""
    install.provider(lab.guests.values())
    build.build("full", OWN_TESTS)
    for program in OWN_TESTS:
        t.program(lab.guest("a"), "FABREX_TEST_PORT=/dev/fabrex0 "
                  f"{space.TREE}/build/lab/{program}", timeout=3600)
