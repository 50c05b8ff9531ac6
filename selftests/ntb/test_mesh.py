# SPDX-License-Identifier: GPL-2.0-only
"""Communicators of three hosts with a bridge between each two: every rank has two
ports, each of which reaches one of the others."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "coll"))
import install
import kmod
import upstream
from ports import (EPF, OPTIONS, OURS, SWITCHTEC, ntb_scenario, performed,
                   unload)
from test_coll import SOON, failed, goes_on

HOSTS = ("a", "b", "c")
TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mesh.topo")
# Between small and large, and no multiple of anything.
SIZES = "12:120012:100"


def mesh_scenario():
    return ntb_scenario(hosts=HOSTS, topology=TOPOLOGY)


def load(guest):
    """Both ports of a host, whatever bridge they are on. Loaded once: guests are
    shared."""
    if guest.run("ls /dev/fabrex1").status == 0:
        return
    unload(guest)
    upstream.load(guest, *SWITCHTEC.drivers, *EPF.drivers)
    built = kmod.modules(guest.kernel.release)
    for name in reversed(OURS):
        guest.sh(f"insmod {built[name]} "
                 f"{OPTIONS if name == 'fabrex_ntb' else ''}")


def joined(lab, t):
    """All three; communicators themselves wait for links that are not up yet."""
    guests = [lab.guest(name) for name in HOSTS]
    for guest in guests:
        load(guest)
    for guest in guests:
        t.need(guest.run("udevadm settle; ls /dev/fabrex0 /dev/fabrex1").status
               == 0, f"{guest.name} has two ports", guest.dmesg()[-3000:])
    return guests


def start(guests, mode, service):
    """A rank on each host, a's is 0, with both ports in either order."""
    return [guest.start_command(
        f"coll-rank {mode} {rank} {len(guests)} fabric:{service} "
        + ("fabrex0 fabrex1" if rank % 2 else "fabrex1 fabrex0"))
        for rank, guest in enumerate(guests)]


@mesh_scenario()
def every_collective(lab, t):
    """All of them, small and large, between three hosts: contents are checked."""
    for command, host in zip(start(joined(lab, t), "verify", 7601), HOSTS):
        result = command.wait(180)
        t.equal(result.status, 0, f"rank on {host}")
        t.ok("verified" in result.stdout, f"contents on {host}",
             result.stdout + result.stderr)


@mesh_scenario()
def all_ports(lab, t):
    """fabrex-perf takes them all; two ranks on a host use one of its ports."""
    guests = joined(lab, t)
    ranks = [guests[0], *guests]
    for service, kind in enumerate(
            ("all_reduce", "all_gather", "all_to_all", "broadcast"), 7611):
        performed(t, ranks, kind, f"--device all --sizes {SIZES} --iterations 2",
                  service)


@mesh_scenario()
def host_dies(lab, t):
    """c loses its power: a and b name it, each by its own bridge, and go on."""
    guests = joined(lab, t)
    ranks = start(guests, "stay", 7631)
    for command in ranks:
        command.wait_for("ready", SOON)
    guests[2].kill()
    for i, host in ((0, "a"), (1, "b")):
        error, seconds, sentence = failed(ranks[i], t, host)
        t.equal(error, -104, f"{host}: ECONNRESET")
        t.ok("rank 2 (host c" in sentence, f"{host} names rank 2", sentence)
        t.diag(f"{host} knew after {seconds} s (emulated)")
    goes_on(t, ranks[:2], ("a", "b"))
    guests[2].restart()
    install.install(guests[2:], modules=False)
    upstream.install(guests[2:])
