# SPDX-License-Identifier: GPL-2.0-only
"""make check-libfabric: programs that know nothing of fabrex run over its provider
of libfabric, and do what they do over others. Used by check.py."""

import os
import re
import subprocess

import build
import fabtests
import libfabric
import openmpi

PROVIDER = libfabric.TARGET	# what is to be built before
PINGPONG_SIZES = "1,8,4096,65536,1048576"
RANKS = (2, 3, 4, 8)


def point(check, name, function, *args):
    """A test that is one function; None is good, else it says what is wrong."""
    if not check.wanted(name):
        return
    try:
        wrong = function(*args)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as e:
        wrong = str(e) or repr(e)
    check.tap.point(not wrong, name, detail=wrong or "")


def listed(provider, layer=libfabric.LAYER):
    """fi_info names it, with the one type of endpoint that it has."""
    result = libfabric.run(["fi_info", "-p", provider.name], provider.env,
                           layer)
    text = result.stdout + result.stderr
    types = set(re.findall(r"type: (\S+)", result.stdout))
    good = not result.returncode and types == {"FI_EP_RDM"}
    return None if good else f"fi_info -p {provider.name}:\n{text}"


PINGPONG = r"""
fi_pingpong -p "$1" -e rdm -c -I 1000 -S "$2" &
sleep 1
fi_pingpong -p "$1" -e rdm -c -I 1000 -S "$2" 127.0.0.1
status=$?
wait $! || status=$?
exit $status
"""


def pingpong(provider):
    """libfabric's own program, of every distribution; it compares what arrives."""
    for size in PINGPONG_SIZES.split(","):
        result = libfabric.run(["sh", "-c", PINGPONG, "pingpong",
                                provider.name, size], provider.env)
        if result.returncode:
            return (f"{size} bytes: exit status {result.returncode}\n"
                    f"{result.stdout}{result.stderr}")
    return None


TESTS = "plugins/libfabric/tests/fi-messages"	# of the provider's own
# What make check has less of: messages, and pairs of endpoints.
ENDURANCE = {"messages_without_growth": 10000000, "ends_without_growth": 1000}


def endurance(provider, name):
    """Much of the same without growth."""
    build.build(libfabric.KIND, (TESTS,))
    program = os.path.join(build.directory(libfabric.KIND), TESTS)
    env = {**provider.env, "FABREX_FI_ROUNDS": str(ENDURANCE[name])}
    result = libfabric.run([program, name], env)
    good = not result.returncode and f"ok 1 {name}" in result.stdout
    return None if good else result.stdout + result.stderr


def bookworm(check):
    """The same sources for Debian 12, whose libfabric and Open MPI are older."""
    label = "Debian 12"
    if not check.wanted(label):
        return
    provider = libfabric.ours("bookworm")
    try:
        build.build("bookworm", (PROVIDER,))
    except build.BuildError as e:
        check.tap.point(False, f"{label}: the provider compiles", detail=str(e))
        return
    layer = "bookworm-mpi"
    point(check, f"{label}: fi_info lists the provider", listed, provider,
          layer)
    if check.wanted(f"{label}, messages"):
        openmpi.messages(check, openmpi.tagged(provider), 3, layer=layer,
                         what=f"{label}, messages")
    if check.wanted(f"{label}, one-sided"):
        openmpi.windows(check, openmpi.onesided(provider), 3, layer=layer,
                        what=f"{label}, one-sided")


def ranks(check, provider):
    """Open MPI's programs over its default transport, and over ours."""
    base = openmpi.DEFAULT
    tagged = openmpi.tagged(provider)
    onesided = openmpi.onesided(provider)
    for count in RANKS:
        if check.wanted("messages"):
            for transport in (base, tagged):
                openmpi.messages(check, transport, count)
        if check.wanted("one-sided"):
            for transport in (base, onesided):
                openmpi.windows(check, transport, count)
        if count in openmpi.GRIDS and check.wanted("hpcc"):
            openmpi.hpcc(check, (base, tagged), count)
    if check.wanted("netpipe"):
        for transport in (base, tagged):
            openmpi.netpipe(check, transport)
    if check.wanted("mpi4py"):
        openmpi.mpi4py(check, (base, tagged, onesided), 3)


def everything(check, name="fabrex"):
    """All of it, over a provider; others than ours are there to try the tests."""
    provider = libfabric.provider(name)
    point(check, "fi_info lists the provider", listed, provider)
    point(check, "fi_pingpong", pingpong, provider)
    fabtests.run_sets(check, provider)
    fabtests.ubertest(check, provider)
    fabtests.stress(check, provider)
    ranks(check, provider)
    if name == "fabrex":
        for what, rounds in ENDURANCE.items():
            point(check, f"{what}, {rounds}", endurance, provider, what)
        bookworm(check)
