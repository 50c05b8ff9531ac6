# SPDX-License-Identifier: GPL-2.0-only
"""The DMA engine of the emulated Switchtec switch, with Linux's own driver:
dmatest compares what has been copied, ntb_perf copies through windows."""

import re

import upstream
from ntb import DEBUG, OURS, SWITCHTEC, ntb_scenario, sides

DEVICE = SWITCHTEC.device
ENGINE = DEVICE.replace(".1", ".2")
CHANNELS = 2
ROUNDS = 200
PERF = f"{DEBUG}/ntb_perf/{DEVICE}"
PAGES = 2 << 20		# bytes before the direct window
LOOKED_AT = 4096


def channels(guest):
    upstream.load(guest, "switchtec_dma")
    return guest.sh(f"ls /sys/bus/pci/devices/{ENGINE}/dma").split()


@ntb_scenario()
def dmatest(lab, t):
    a = lab.guest("a")
    # Who has a channel has the module.
    upstream.unload(a, *OURS)
    names = channels(a)
    t.equal(len(names), CHANNELS, "channels of the engine")
    for name in names:
        upstream.load(a, "dmatest")
        a.sh("cd /sys/module/dmatest/parameters; echo 65536 >test_buf_size; "
             f"echo {ROUNDS} >iterations; echo 60000 >timeout; "
             f"echo {name} >channel; echo 1 >run; cat wait", 120)
        results = re.findall(rf"{name}-copy\d+: summary (\d+) tests, "
                          r"(\d+) failures", a.dmesg())
        t.equal(results[-1:], [(str(ROUNDS), "0")],
                f"{name}: copies of random sizes, each compared")
        upstream.unload(a, "dmatest")
    upstream.unload(a, "switchtec_dma")


# What a window shows, by the processor of the host that has it.
LOOK = f"""
import hashlib, mmap, os
fd = os.open("/sys/bus/pci/devices/{DEVICE}/resource2", os.O_RDWR)
window = mmap.mmap(fd, {LOOKED_AT}, offset={PAGES})
print(hashlib.sha256(window[:]).hexdigest())
"""


def told(side):
    """Has ntb_perf heard of the other end's buffer, and that of its own?"""
    return side.guest.run(
        "for i in $(seq 20); do grep -q 'In buffer size' "
        f"{PERF}/info && ! grep -q 'xlat 0x0*.p' {PERF}/info && exit; "
        "sleep 0.1; done; exit 1").status == 0


def perf_ends(lab):
    """Both ends with ntb_perf that have told each other about their buffers. In
    7.2 it forgets what it is told before it has noticed itself that the link is
    up, and then waits for ever: both load it anew."""
    for _ in range(20):
        ends = sides(lab, "ntb_perf use_dma=1 total_order=20 chunk_order=16")
        if all([told(side) for side in ends]):
            return ends
    raise AssertionError("ntb_perf is not ready\n"
                         + ends[0].guest.sh(f"cat {PERF}/info"))


# Named: on a busy machine ntb_perf may lose that race each time.
@ntb_scenario(named=True)
def through_windows(lab, t):
    """ntb_perf has the engine store random bytes into the peer's memory, and says
    "passed" whatever arrives: so they are looked at, and logs are read."""
    for guest in lab.guests.values():
        channels(guest)
        guest.put(LOOK.encode(), "/run/look")
    ends = perf_ends(lab)
    for side in ends:
        name = side.guest.name
        before = side.interrupts("switchtec_dma")
        seen = [side.guest.sh("python3 /run/look")]
        for _ in range(2):
            side.guest.sh(f"timeout {60 * side.guest.patience} sh -c "
                          f"'echo 0 >{PERF}/run'", 70)
            seen.append(side.guest.sh("python3 /run/look"))
        t.ok("copied 1048576 bytes" in side.guest.sh(f"cat {PERF}/run"),
             f"{name}: all of it is copied", side.guest.sh(f"cat {PERF}/run"))
        t.equal(len(set(seen)), 3, f"{name}: other bytes each time")
        t.ok(side.interrupts("switchtec_dma") > before,
             f"{name}: by the engine")
        t.ok("failed, SC" not in side.guest.dmesg(), f"{name}: without errors")
    for side in ends:
        upstream.unload(side.guest, "ntb_perf", "switchtec_dma")
