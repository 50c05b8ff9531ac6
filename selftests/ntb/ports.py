# SPDX-License-Identifier: GPL-2.0-only
"""Ports on the two bridges between the guests a and b: Linux's NTB drivers below,
fabrex_ntb on top of them."""

import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for _name in ("common", "switchtec", "dma"):
    sys.path.insert(0, os.path.join(HERE, "..", _name))
import kmod
import ntb
import upstream
from ntb import CLIENTS, DRIVERS, EPF, OURS, SWITCHTEC, Side
from puppet import Puppet

# Hosts here are slow, and tests are not about when one counts as dead.
PATIENT = "dead_ms=20000"
OPTIONS = "trusted_peer=1 " + PATIENT
ENGINES = ("switchtec_dma",)


def ntb_scenario(kernels=("7.2", "debug"), **options):
    """A scenario of guests that get our modules, too: those are also looked at by
    the kernel that checks itself."""
    return ntb.ntb_scenario(kernels=kernels, **options)


def unload(guest):
    """All clients, and what they stand on."""
    upstream.unload(guest, *CLIENTS, *DRIVERS, *ENGINES)


def load(guest, bridge, options=OPTIONS, engines=()):
    """The port of one host; engines: drivers of DMA engines."""
    unload(guest)
    upstream.load(guest, *bridge.drivers, *engines)
    built = kmod.modules(guest.kernel.release)
    for name in reversed(OURS):
        guest.sh(f"insmod {built[name]} "
                 f"{options if name == 'fabrex_ntb' else ''}")


def joined(lab, t, bridge, options=OPTIONS, engines=()):
    """Both hosts with their port, each of which sees the other."""
    guests = [lab.guest(name) for name in "ab"]
    for guest in guests:
        load(guest, bridge, options, engines)
        t.need(guest.run("udevadm settle; ls /dev/fabrex0").status == 0,
               f"{guest.name} has a port", guest.dmesg()[-3000:])
    for guest, other in zip(guests, "ba"):
        t.need(sees(guest, other), f"{guest.name} sees {other}",
               guest.dmesg()[-3000:])
    return guests


def performed(t, ranks, kind, options, service):
    """fabrex-perf at each of them, on slow hosts too; contents are right."""
    runs = [guest.start_command(
        f"fabrex-perf {kind} {options} --warmup 1 --timeout 120 --death 60 "
        f"--json --world {len(ranks)} --rank {rank} "
        f"--bootstrap fabric:{service}") for rank, guest in enumerate(ranks)]
    done = [run.wait(300) for run in runs]
    t.need(not any(run.status for run in done), kind,
           "".join(run.stdout + run.stderr for run in done))
    t.equal(json.loads(done[0].stdout)["wrong"], 0, f"{kind}: contents")


def sees(guest, other, timeout=60):
    """Whether the other host can be reached, before too long."""
    puppet = Puppet(guest)
    end = time.monotonic() + timeout * guest.patience
    up = False
    while not up and time.monotonic() < end:
        # Until it has said hello the first time, there is no such peer.
        up = not puppet.errno("peer", other) and puppet.ask("peer", other)[1]
        time.sleep(0.1)
    puppet.close()
    return up
