# SPDX-License-Identifier: GPL-2.0-only
"""A kernel without PCI_P2PDMA: GPU memory is refused with a reason, or, from a
driver that does not ask the kernel, works as on others."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import TOPOLOGY, GpuPuppet, audit, gpu_host, reload
from revocation import SIZE, Party, Tally, nothing_late, quick_round
from scenario import scenario
from transfer import direct, puppets

FORCED = "without_p2pdma=1"


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=("6.12",))
def refused_with_a_reason(lab, t):
    """The exporter asks the kernel for a way, which knows of none."""
    a = gpu_host(lab, "a", 1)
    reload(a, 1)
    p = GpuPuppet(a)
    p.gpu(0)
    p.alloc(0, 0, 1 << 20)
    p.export(0, 0)
    t.equal(p.errno("bmr", 0, 0, 0, 4096, 15, 0), "EOPNOTSUPP",
            "registration is refused with the documented error")
    t.equal(p.errno("bmr", 0, 0, 0, 4096, 15, 4), "EOPNOTSUPP",
            "and a pinned one")
    log = a.sh("dmesg | grep -i 'cannot'")
    t.ok("PCI_P2PDMA" in log and "dma-buf of draco_gpu" in log,
         "the kernel's log has the reason", log)
    t.equal(log.count("dma-buf of draco_gpu"), 1, "once")
    p.close()


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=("6.12",))
def works_unasked(lab, t):
    """A driver that maps its memory all the same, as vendors' drivers do."""
    for name, count in (("a", 2), ("b", 2)):
        guest = gpu_host(lab, name, count)
        reload(guest, count, FORCED)
    a = lab.guest("a")
    t.program(a, "gpu-exporter")
    t.program(a, "gpu-import")
    t.program(a, "gpu-hostile")
    pair = puppets(lab)
    direct(t, lab, *pair)
    for p, *_ in pair:
        p.close()
    parties = Party(lab, "a"), Party(lab, "b")
    audit(lab, "on")
    tally = Tally()
    for n in range(16):
        quick_round(tally, *parties, n)
    tally.report(t, f"buffers of {SIZE >> 20} MiB revoked under traffic")
    nothing_late(t, lab, 16)
    for party in parties:
        party.close()
    for name, count in (("a", 2), ("b", 2)):
        reload(lab.guest(name), count)
