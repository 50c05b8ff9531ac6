# SPDX-License-Identifier: GPL-2.0-only
"""What the scenarios about GPU memory share: hosts with GPUs and their test
driver, and the puppet that drives a process with both devices open."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
import kmod

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu.topo")
GPUS = [f"columba1.gpu{n}" for n in range(4)]


def load(guest, options=""):
    """Load the test driver unless it is there with the same options."""
    path = kmod.modules(guest.kernel.release)["draco_gpu"]
    guest.sh("[ -d /sys/module/draco_gpu ] || { modprobe -q udmabuf; "
             f"insmod {path} {options}; }}")


def unload(guest):
    guest.sh("[ ! -d /sys/module/draco_gpu ] || rmmod draco_gpu")


def owned(guest, host):
    """Names of the endpoints that a host has, in order."""
    return sorted(name for name, row in fabric.endpoints(guest).items()
                  if row["state"] == "bound" and row.get("host") == host)


def compose(guest, host, names):
    """Give GPUs to a host; each has its /dev/dgpu<N> then."""
    for name in names:
        fabric.compose(guest, name, host, check=True)


def gpu_host(lab, name, count, options=""):
    """A host with at least so many GPUs and the test driver loaded."""
    guest = lab.guest(name)
    load(guest, options)
    have = len(fabric.gpus(guest))
    if have < count:
        free = [n for n, row in fabric.endpoints(guest).items()
                if row["state"] == "free" and ".gpu" in n]
        compose(guest, name, free[:count - have])
    guest.sh("for i in $(seq 250); do set -- /dev/dgpu*; "
             f"[ -e $1 ] && [ $# -ge {count} ] && exit 0; sleep 0.02; "
             "done; exit 1")
    return guest
