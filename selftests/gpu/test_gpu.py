# SPDX-License-Identifier: GPL-2.0-only
"""GPU memory on a host: the exporter by itself, and its import by fabrex."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import quota
from gpulab import KERNELS, TOPOLOGY, gpu_host, load, unload
from scenario import scenario


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def exporter_alone(lab, t):
    """The test driver keeps what its interface promises."""
    a = gpu_host(lab, "a", 1)
    t.program(a, "gpu-exporter")


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def imported(lab, t):
    """dma-bufs of two GPUs below one host as memory regions."""
    a = gpu_host(lab, "a", 2)
    t.program(a, "gpu-import")


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def registered(lab, t):
    """1 MiB to 4 GiB, 10,000 regions, 32 threads; with figures."""
    a = gpu_host(lab, "a", 1)
    with quota.changed(a, mrs=16384, bytes=0):
        out = t.program(a, "gpu-register").stdout
    for line in out.splitlines():
        if line.startswith("# ") and " us" in line:
            t.diag(line[2:])


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def hostile_processes(lab, t):
    """Closed in every order, killed, moved while being registered, random
    calls; the driver goes when all is closed."""
    a = gpu_host(lab, "a", 1)
    t.program(a, "gpu-hostile")
    t.program(a, "gpu-fuzz")
    t.equal(unload(a).status, 0, "the exporter's driver can be unloaded")
    load(a)
