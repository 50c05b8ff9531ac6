# SPDX-License-Identifier: GPL-2.0-only
"""GPU memory on a host: the exporter by itself, and its import by fabrex."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import TOPOLOGY, gpu_host
from scenario import scenario


@scenario(hosts=["a", "b"], topology=TOPOLOGY)
def exporter_alone(lab, t):
    """The test driver keeps what its interface promises."""
    a = gpu_host(lab, "a", 1)
    t.program(a, "gpu-exporter")


@scenario(hosts=["a", "b"], topology=TOPOLOGY)
def imported(lab, t):
    """dma-bufs of two GPUs below one host as memory regions."""
    a = gpu_host(lab, "a", 2)
    t.program(a, "gpu-import")
