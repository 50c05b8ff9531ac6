# SPDX-License-Identifier: GPL-2.0-only
"""The steps of make demo, in order. Called by demo with the hosts up."""

import os
import time

import build
import kmod
from step import StoryFailed

GPU = "columba1.gpu0"
PEER_GPU = "columba1.gpu4"
# The run time of a GPU vendor, for GPUs that exist in draco-emu only.
RUNTIME = {"LD_LIBRARY_PATH": os.path.join(build.OUT, "selftests", "runtime")}
COMPOSE_LIMIT = 1.0
RELEASE_LIMIT = 1.5


def tell(lab, tale):
    """Tell the whole story; StoryFailed ends it early."""
    a, b, c = (lab.guest(n) for n in "abc")
    events = []
    watch = c.start_command("fabrexctl monitor --ready", on_line=lambda _stream,
                            line: events.append(line))
    wait_listening(watch, events)
    fabric(tale, a)
    compose(tale, a)
    refuse(tale, a, b)
    move(tale, a, b)
    transfer(tale, a, b)
    speed(tale, a, b)
    gpu_memory(tale, a, b)
    give_back(tale, a, b)
    stream(tale, watch, events)


def wait_listening(watch, events, timeout=10):
    """Wait until monitor says that it receives events."""
    end = time.monotonic() + timeout
    while not events:
        watch.poll()
        if time.monotonic() > end:
            raise StoryFailed("fabrexctl monitor on c does not get ready")
        time.sleep(0.02)


def fabric(tale, a):
    """What there is."""
    tale.step("The fabric, as host a sees it")
    tale.command(a, "fabrexctl list")
    tale.command(a, "lspci -d 1234:da00 -nn")


def wait_device(guest, present, timeout=10):
    """Wait until the kernel has a GPU, or none; its address."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = guest.run("lspci -Dn -d 1234:da10 | cut -d' ' -f1") \
            .stdout.split()
        if bool(found) == present:
            return found[0] if found else None
        time.sleep(0.02)
    raise StoryFailed(f"{guest.name}: the GPU did not "
                      + ("appear" if present else "go away")
                      + f" within {timeout} s")


def compose(tale, a):
    """A GPU is given to a by native hot-plug."""
    tale.step("Compose a GPU to host a")
    begun = time.monotonic()
    tale.command(a, f"fabrexctl compose {GPU} --to a")
    address = wait_device(a, True)
    took = time.monotonic() - begun
    tale.command(a, f"lspci -nnk -s {address}")
    tale.command(a, "dmesg | grep -E 'pciehp|1234:da10' | tail -3")
    if not tale.figure("command to driver-bindable device", took,
                       COMPOSE_LIMIT):
        raise StoryFailed("compose took too long")


def refuse(tale, a, b):
    """Nobody else gets it while a has it."""
    tale.step("Host b asks for the same GPU, and is refused")
    result = tale.command(b, f"fabrexctl compose {GPU} --to b", status=None)
    if not result.status:
        raise StoryFailed("b got a GPU that a holds")
    tale.note(f"exit status {result.status}; nothing has changed:")
    tale.command(a, "fabrexctl list endpoints --bound")


def move(tale, a, b):
    """a lets go, b gets it."""
    tale.step("Move the GPU to host b")
    begun = time.monotonic()
    tale.command(a, f"fabrexctl release {GPU}")
    wait_device(a, False)
    released = time.monotonic() - begun
    begun = time.monotonic()
    tale.command(a, f"fabrexctl compose {GPU} --to b")
    address = wait_device(b, True)
    composed = time.monotonic() - begun
    tale.command(b, f"lspci -nnk -s {address}")
    tale.command(a, "lspci -d 1234:da10")
    tale.note("(no GPU on a)")
    good = tale.figure("orderly release", released, RELEASE_LIMIT)
    good &= tale.figure("compose", composed, COMPOSE_LIMIT)
    if not good:
        raise StoryFailed("moving took too long")


def transfer(tale, a, b):
    """256 MiB by the switch's DMA engine, checksum compared at the target."""
    tale.step("Write 256 MiB from a to b's registered memory; compare on b")
    server = b.start_command("fabrex-perf server --once")
    tale.command(a, "fabrex-perf transfer --peer b --size 256M", timeout=120)
    tale.note("on b, `fabrex-perf server` said:")
    tale.show(server.wait(30).check().stdout)


def speed(tale, a, b):
    """Latency and bandwidth, in the manner of perftest."""
    tale.step("Latency and bandwidth between a and b")
    server = b.start_command("fabrex-perf server")
    tale.command(a, "fabrex-perf write-lat --peer b --sizes 8:4K:8 "
                 "--duration 0.3")
    tale.command(a, "fabrex-perf write-bw --peer b --sizes 4K:4M:16 "
                 "--duration 0.3")
    tale.command(a, "fabrexctl stats a.0")
    server.kill()
    server.wait(20)
    tale.note("(emulated: the DMA engine is a thread of draco-emu, the guests "
              "are emulated processors)")


def gpu_memory(tale, a, b):
    """From GPU to GPU over the switch, past both processors."""
    tale.step("From the memory of a GPU of a into that of a GPU of b")
    tale.command(a, f"fabrexctl compose {PEER_GPU} --to a")
    wait_device(a, True)
    for guest in (a, b):
        driver = kmod.modules(guest.kernel.release)["draco_gpu"]
        guest.sh(f"insmod {driver}; udevadm settle")
    tale.note("(draco_gpu.ko, the test driver of the modelled GPU, exports "
              "dma-bufs as a vendor's would)")
    tale.command(a, f"fabrexctl p2p a.0 {PEER_GPU}")
    server = b.start_command("fabrex-perf server --memory hip", env=RUNTIME)
    result = tale.command(
        a, "fabrex-perf write-bw --peer b --memory hip --sizes 1M:1M:2 "
        "--duration 0.5 --verify", env=RUNTIME, timeout=120)
    server.kill()
    server.wait(20)
    tale.command(b, f"fabrexctl stats {GPU}")
    if "emulated" not in result.stdout:
        raise StoryFailed("the figures are not said to be emulated")


def give_back(tale, a, b):
    """All as it was."""
    tale.step("Give the GPUs back")
    for guest, gpu in ((a, PEER_GPU), (b, GPU)):
        guest.sh("rmmod draco_gpu")
        tale.command(guest, f"fabrexctl release {gpu}")
        wait_device(guest, False)


def stream(tale, watch, events):
    """What host c, which had no part in it, was told meanwhile."""
    tale.step("The events of all this, as host c received them")
    time.sleep(0.5)
    watch.poll()
    watch.kill(2)
    watch.wait(20)
    tale.command(watch.guest, "fabrexctl list endpoints --bound")
    tale.note("fabrexctl monitor on c printed:")
    tale.show("\n".join(events))
    wanted = [e for e in events if GPU in e]
    if len(wanted) < 8:
        raise StoryFailed("c did not hear of what was composed and released")
