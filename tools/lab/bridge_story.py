# SPDX-License-Identifier: GPL-2.0-only
"""The story of make demo-ntb: two hosts on a Switchtec, with Linux's own drivers. A
GPU is composed by the switch's own commands, and bytes go from host to host over
its bridge. Used by demo-ntb."""

import time

import kmod
import upstream
from step import StoryFailed

GPU = "columba1.gpu0"
SIZE = "64M"
# Without an IOMMU, as here, root of the other host could reach all memory.
OPTIONS = "trusted_peer=1 dead_ms=20000"


def wait(guest, command, timeout=60):
    """Until it succeeds."""
    end = time.monotonic() + timeout
    while guest.run(command).status:
        if time.monotonic() > end:
            raise StoryFailed(f"on {guest.name}, `{command}` does not succeed "
                              f"in {timeout} s")
        time.sleep(0.1)


def tell(tale, a, b, topology):
    """All of it."""
    drivers(tale, a, b)
    compose(tale, a, topology)
    ports(tale, a, b)
    transfer(tale, a, b)


def drivers(tale, a, b):
    tale.step("Load Linux's drivers of the switch, of its bridge and of its DMA "
              "engine")
    for guest in (a, b):
        upstream.load(guest, "switchtec", "ntb_hw_switchtec", "switchtec_dma")
    tale.command(a, "ls -l /dev/switchtec0; ls /sys/bus/ntb/devices "
                 "/sys/class/dma")


def compose(tale, a, topology):
    tale.step(f"Bind the port of {GPU} to a, by /dev/switchtec0")
    a.sh("mkdir -p /etc/fabrex")
    with open(topology, "rb") as f:
        a.put(f.read(), "/etc/fabrex/fabric.topo")
    tale.command(a, f"fabrexctl compose {GPU} --to a", timeout=120)
    wait(a, "lspci -d 1234:da10 | grep -q .")
    tale.command(a, "lspci -nn -d 1234:da10")
    tale.command(a, "fabrexctl list endpoints")


def ports(tale, a, b):
    tale.step("Load fabrex_ntb on both: ports of fabrex on the bridge")
    built = kmod.modules(a.kernel.release)
    for guest in (a, b):
        for name in ("fabrex", "fabrex_engine", "fabrex_ntb"):
            guest.sh(f"insmod {built[name]} "
                     f"{OPTIONS if name == 'fabrex_ntb' else ''}")
    for guest, other in ((a, "b.ntb0"), (b, "a.ntb0")):
        wait(guest, f"fabrexctl --fport {guest.name}.ntb0 list | grep -q {other}")
    tale.command(a, "fabrexctl --fport a.ntb0 list")


def transfer(tale, a, b):
    tale.step(f"Write {SIZE} from a to b's registered memory; compare on b")
    server = b.start_command("fabrex-perf server --once")
    tale.command(a, f"fabrex-perf transfer --peer b --size {SIZE}", timeout=300)
    tale.note("on b, `fabrex-perf server` said:")
    tale.show(server.wait(60).check().stdout)
    tale.command(a, "dmesg | grep 'fabrex_ntb.*payloads'")
    tale.command(a, "fabrexctl --fport a.ntb0 stats a.ntb0")
    tale.note("(emulated: switch, bridge and DMA engine are draco-emu; the "
              "drivers are Linux's own and ours)")
