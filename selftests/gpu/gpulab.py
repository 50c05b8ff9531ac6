# SPDX-License-Identifier: GPL-2.0-only
"""What the scenarios about GPU memory share: hosts with GPUs and their test
driver, and the puppet that drives a process with both devices open."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import build
import fabric
import kmod
from puppet import ALL, WC, Puppet

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu.topo")
# The runtimes of the tests, in place of real ones, and what they compiled.
DIRECTORY = os.path.join(build.OUT, "selftests", "runtime")
RUNTIME = {
    "LD_LIBRARY_PATH": DIRECTORY,
    "FABREX_TEST_KERNELS": os.path.join(DIRECTORY, "kernels"),
}
KERNELS = ("7.2", "debug")	# with PCI_P2PDMA
VRAM, SYSTEM = 1, 2		# places of buffers
MR_PIN = 4
MIB = 1 << 20


def load(guest, options=""):
    """Load the test driver unless it is there."""
    path = kmod.modules(guest.kernel.release)["draco_gpu"]
    guest.sh("[ -d /sys/module/draco_gpu ] || { modprobe -q udmabuf; "
             f"insmod {path} {options}; }}")


def unload(guest):
    """Take it out, which works when no file and no dma-buf is open."""
    return guest.run("for i in $(seq 1000); do rmmod draco_gpu 2>/dev/null && "
                     "exit 0; sleep 0.05; done; rmmod draco_gpu", timeout=60)


def bound(guest, host):
    """{endpoint: PCI address} of the GPUs that a host has."""
    return {name: row["pci_name"]
            for name, row in sorted(fabric.endpoints(guest).items())
            if row["state"] == "bound" and row["host"] == host}


def free(guest):
    """Names of the GPUs that nobody has."""
    return sorted(name for name, row in fabric.endpoints(guest).items()
                  if row["state"] == "free" and ".gpu" in name)


def wait_devices(guest, count):
    """Wait until there are so many /dev/dgpu<N>."""
    guest.sh("for i in $(seq 5000); do set -- /dev/dgpu*; [ -e $1 ] || shift; "
             f"[ $# -eq {count} ] && exit 0; sleep 0.02; done; "
             "echo $# GPUs; exit 1", timeout=200)


def gpu_host(lab, name, count, options=""):
    """A host with so many GPUs, no more, and the test driver loaded."""
    guest = lab.guest(name)
    load(guest, options)
    have = list(bound(guest, name))
    for endpoint in have[count:]:
        fabric.release(guest, endpoint, check=True)
    for endpoint in free(guest)[:max(0, count - len(have))]:
        fabric.compose(guest, endpoint, name, check=True)
    wait_devices(guest, count)
    return guest


def reload(guest, count, options=""):
    """The test driver with other options, for the GPUs that are there."""
    unload(guest).check()
    load(guest, options)
    wait_devices(guest, count)


def moved_bytes(guests):
    """(from endpoint to endpoint, with host memory at one end), all ports."""
    rows = [fabric.ctl_json(g, "stats")["counters"][0] for g in guests]
    return (sum(r["p2p_bytes"] for r in rows),
            sum(r["host_bytes"] for r in rows))


class Storm:
    """Operations without end on a queue of a puppet."""

    def __init__(self, puppet, q, opcode, peer, mr, loffset, rkey, roffset,
                 length, depth=8):
        self.puppet = puppet
        self.q = q
        puppet.words("storm", q, opcode, 0, peer, mr, loffset, rkey, roffset,
                     length, 0, 0, 0, depth)

    def look(self):
        """(completed well, completed with an error) so far."""
        return tuple(self.puppet.ask("look", self.q))

    def wait(self, good=0, bad=0, timeout=20):
        """Wait for so many more of both; whether they came."""
        g, b = self.look()
        end = time.monotonic() + timeout * self.puppet.guest.patience
        while time.monotonic() < end:
            now = self.look()
            if now[0] >= g + good and now[1] >= b + bad:
                return True
            time.sleep(0.002)
        return False

    def calm(self):
        """End it: ({status: count}, OKs after a failure, never completed)."""
        relapses, lost, *counts = self.puppet.ask("calm", self.q)
        return ({WC[i]: n for i, n in enumerate(counts) if n}, relapses, lost)


class GpuPuppet(Puppet):
    """A process with fabrex and GPUs open. GPUs, buffers and dma-bufs have
    small numbers like regions and queues."""

    program = "gpu-puppet"

    def gpu(self, n, first=0):
        """Open the first /dev/dgpu<N> from N on; (N, domain, devfn, VRAM,
        flags)."""
        return self.ask("gpu", n, first)

    def alloc(self, buf, gpu, length, flags=0):
        self.words("galloc", buf, gpu, length, flags)

    def export(self, dmabuf, buf, offset=0, length=0, flags=0):
        self.words("gexport", dmabuf, buf, offset, length, flags)

    def dmabuf_mr(self, mr, dmabuf, offset, length, access=ALL, flags=0):
        """Register part of a dma-buf; its key."""
        return self.ask("bmr", mr, dmabuf, offset, length, access, flags)[0]

    def vram_mr(self, mr, buf, length, access=ALL, flags=0):
        """Register a buffer and forget the dma-buf; its key."""
        self.export(63, buf)
        try:
            return self.dmabuf_mr(mr, 63, 0, length, access, flags)
        finally:
            self.words("bclose", 63)

    def memory(self, n, length, gpu=0, flags=0):
        """A buffer and a region of the same number; the key."""
        self.alloc(n, gpu, length, flags)
        return self.vram_mr(n, n, length)

    def pattern(self, buf, length, seed):
        self.words("gpattern", buf, length, seed)

    def crc(self, buf, length, offset=0):
        """What the GPU's own checksum engine says."""
        return self.ask("gcrc", buf, offset, length)[0]

    def peer_copy(self, own, peer, length, write):
        """Over the mesh, by the engine of the first buffer's GPU, from it
        (write) or into it; seconds. PuppetError: errno."""
        return self.ask("gpeer", own, peer, length, int(write))[0] / 1e9

    def timed(self, q, opcode, peer, mr, rkey, length):
        """One operation over all of two regions; (seconds, status)."""
        ns, status = self.ask("timed", q, opcode, 0, peer, mr, 0, rkey, 0,
                              length, 0, 0, 0)
        return ns / 1e9, WC[status]

    def port_counters(self):
        """(bytes between endpoints, bytes with host memory at one end)."""
        return tuple(self.ask("counters", "-")[4:6])


def endpoint_bytes(guest, name):
    """(read from, stored into) an endpoint's memory, counted by the switch."""
    doc = fabric.ctl_json(guest, f"stats {name}")
    row = doc["counters"][0]
    return row["tx_bytes"], row["rx_bytes"]


def audit(lab, action):
    """The emulator's own log of accesses to memory named by keys."""
    return lab.emu_control({"cmd": "audit", "action": action})
