# SPDX-License-Identifier: GPL-2.0-only
"""Collectives over the kernel transport: three hosts, contents checked; a host
that loses its link, or its power, is named to the others, who go on."""

import re

import install
from command import CommandTimeout
from scenario import scenario

HOSTS = ["a", "b", "c"]
SOON = 30		# emulated hosts take their time; the ranks say how much


def start(lab, mode, service):
    """A rank on each host, a's is 0; they meet over the fabric alone."""
    return [lab.guest(host).start_command(
        f"coll-rank {mode} {rank} {len(HOSTS)} fabric:{service}")
        for rank, host in enumerate(HOSTS)]


def failed(command, t, who):
    """The rank's report of a failure: (errno, seconds, sentence)."""
    try:
        command.wait_for("end of failure\n", SOON)
    except CommandTimeout as error:
        t.need(False, f"{who} reports a failure", error)
    found = re.search(r"failed (-?\d+) after ([\d.]+) s: (.*)\n",
                      command.output())
    return int(found[1]), float(found[2]), found[3]


def goes_on(t, commands, names):
    """The others shrink to two, and everything is right again."""
    for command, who in zip(commands, names):
        command.wait_for("shrunk to 2", SOON)
        command.wait_for("verified", 2 * SOON)
        t.equal(command.wait(SOON).status, 0, f"{who} goes on, all right")


@scenario(hosts=HOSTS)
def every_collective(lab, t):
    """All of them, small and large, between three hosts."""
    for command, host in zip(start(lab, "verify", 7001), HOSTS):
        result = command.wait(120)
        t.equal(result.status, 0, f"rank on {host}")
        t.ok("verified" in result.stdout, f"contents on {host}",
             result.stdout)


@scenario(hosts=HOSTS)
def link_drops(lab, t):
    """b's link drops: a and c name rank 1, b names itself; two go on."""
    ranks = start(lab, "stay", 7002)
    for command in ranks:
        command.wait_for("ready", SOON)
    answer = lab.emu_control({"cmd": "link", "port": "b.0", "state": "down"})
    t.need(answer.get("ok"), "b's link is down", answer)
    for i, host in ((0, "a"), (2, "c")):
        error, seconds, sentence = failed(ranks[i], t, host)
        t.equal(error, -104, f"{host}: ECONNRESET")
        t.ok("rank 1 (host b" in sentence, f"{host} names rank 1", sentence)
        t.diag(f"{host} knew after {seconds} s (emulated)")
    error, _, sentence = failed(ranks[1], t, "b")
    t.equal(error, -104, "b: ECONNRESET")
    t.ok("this rank 1" in sentence and "link" in sentence,
         "b knows that it is its own link", sentence)
    ranks[1].wait_for("alone", SOON)
    goes_on(t, (ranks[0], ranks[2]), ("a", "c"))
    ranks[1].wait(SOON)
    lab.emu_control({"cmd": "link", "port": "b.0", "state": "up"})


@scenario(hosts=HOSTS)
def host_dies(lab, t):
    """c loses its power in the middle of it."""
    ranks = start(lab, "stay", 7003)
    for command in ranks:
        command.wait_for("ready", SOON)
    lab.guest("c").kill()
    for i, host in ((0, "a"), (1, "b")):
        error, seconds, sentence = failed(ranks[i], t, host)
        t.equal(error, -104, f"{host}: ECONNRESET")
        t.ok("rank 2 (host c" in sentence, f"{host} names rank 2", sentence)
        t.diag(f"{host} knew after {seconds} s (emulated)")
    goes_on(t, ranks[:2], ("a", "b"))
    lab.guest("c").restart()
    install.install([lab.guest("c")])


@scenario(hosts=HOSTS)
def process_dies(lab, t):
    """Only the process on a, which is rank 0, is killed."""
    ranks = start(lab, "stay", 7004)
    for command in ranks:
        command.wait_for("ready", SOON)
    lab.guest("a").sh("kill -9 $(busybox pidof coll-rank)")
    for i, host in ((1, "b"), (2, "c")):
        error, _, sentence = failed(ranks[i], t, host)
        t.equal(error, -104, f"{host}: ECONNRESET")
        t.ok("rank 0 (host a" in sentence, f"{host} names rank 0", sentence)
    goes_on(t, ranks[1:], ("b", "c"))
