# SPDX-License-Identifier: GPL-2.0-only
"""fabrex_ntb on Linux's NTB drivers, between two guests: the tests of the data path
that Draco has to pass, over a Switchtec and over an endpoint NTB, both emulated."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_dma
from ports import EPF, SWITCHTEC, joined, ntb_scenario

# Without dma-window: a bridge has no windows for processes.
PROGRAMS = ("ops", "errors", "ops-32", "errors-32", "queues", "order", "atomics",
            "datagram", "guess")


@ntb_scenario()
def switchtec(lab, t):
    a, _ = joined(lab, t, SWITCHTEC)
    t.diag(a.sh("fabrexctl list"))
    test_dma.between_hosts(lab, t)
    for program in PROGRAMS:
        t.program(a, f"dma-{program}")


@ntb_scenario()
def epf(lab, t):
    joined(lab, t, EPF)
    test_dma.between_hosts(lab, t)
