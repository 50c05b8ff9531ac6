# SPDX-License-Identifier: GPL-2.0-only
"""fabrex_ntb, and ntb_transport with TCP, over the same emulated Switchtec: each way
that make bench-ntb compares has the bridge in turn, and says a figure."""

import math

import bridge_bench
import peers
import upstream
from bridge_bench import BANDWIDTH, DMA, LATENCY, PROCESSOR
from scenario import scenario

BRIEF = 0.1
# One of each kind, and each means.
ASKED = ((LATENCY, DMA), (BANDWIDTH, PROCESSOR))


@scenario(hosts=["a", "b"], topology=bridge_bench.TOPOLOGY,
          kernels=("7.2",), layer=peers.LAYER, upstream=True, named=True)
def every_way_says_a_figure(lab, t):
    """What make bench-ntb does, in brief."""
    for guest in lab.guests.values():
        upstream.load(guest, *bridge_bench.DRIVERS)
    asked = [ask for ask in bridge_bench.questions()
             if (ask.what, ask.means) in ASKED and ask.size == 4 << 10]
    series = bridge_bench.Bench(asked)
    series.round(lab, BRIEF)
    for ask, own, other, _ in series.rows():
        for way, (value,) in zip(bridge_bench.WAYS, (own, other)):
            t.ok(math.isfinite(value) and value > 0,
                 f"{way.name}: {ask.what}, {ask.means}", repr(value))
            t.diag(f"{value:.1f} {ask.unit} (emulated)")
    for guest in lab.guests.values():
        upstream.unload(guest, *bridge_bench.CLIENTS,
                        *reversed(bridge_bench.DRIVERS))
