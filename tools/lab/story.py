# SPDX-License-Identifier: GPL-2.0-only
"""The steps of make demo, in order. Called by demo with the hosts up."""

import time

import kmod
import reduction
from reduction import RUNTIME
from step import StoryFailed

GPU = "columba1.gpu0"
PEER_GPU = "columba1.gpu4"
COMPOSE_LIMIT = 1.0
RELEASE_LIMIT = 1.5
SUM = 64 << 20			# bytes that each of six GPUs contributes
SCHEDULE = "/run/sum.sched"


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
    all_reduce(tale, (a, b, c))
    give_back(tale, (a, b, c))
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


def two_for_each(tale, hosts):
    """Every host gets as many GPUs as it lacks; all six, host by host."""
    for guest in hosts:
        lacks = 2 - len(reduction.gpus_of(guest))
        tale.command(guest, f"fabrexctl compose gpu:{lacks} --to {guest.name}")
    driver = kmod.modules(hosts[0].kernel.release)["draco_gpu"]
    for guest in hosts:
        guest.sh(f"[ -d /sys/module/draco_gpu ] || insmod {driver}; "
                 "for i in $(seq 1000); do set -- /dev/dgpu*; [ -e $1 ] && "
                 "[ $# -eq 2 ] && exit 0; sleep 0.02; done; exit 1")
    return [gpu for guest in hosts for gpu in reduction.gpus_of(guest)]


def add_up(gpus, service, wanted, **how):
    """One all-reduce, with a checksum by each GPU: (seconds, what the switch
    has counted)."""
    run = reduction.Reduction(gpus, SUM, service, **how)
    run.ready()
    counted = reduction.Counted(
        gpus[0].guest, sorted({gpu.guest.name + ".0" for gpu in gpus}),
        [gpu.name for gpu in gpus])
    seconds, checksums = run.go()
    counted.stop()
    run.end()
    if set(checksums) != {wanted}:
        raise StoryFailed(f"the GPUs have {checksums}, not {wanted}")
    return seconds, counted


def show_traffic(tale, gpus, counted, schedule):
    """What each GPU has sent and received; all of it as planned. A GPU's
    counter of transfers with host memory has nothing but data."""
    planned = reduction.planned(schedule, gpus, SUM)
    row = "{:14} {:>4} {:>12} {:>12} {:>12} {:>12} {:>12}".format
    tale.show(row("GPU", "HOST", "SENT", "PLANNED", "RECEIVED", "PLANNED",
                  "HOST MEMORY"))
    good = True
    for gpu in gpus:
        sent, received = planned[gpu.name]
        host = counted.of_gpu(gpu.name, "host_bytes")
        tale.show(row(gpu.name, gpu.guest.name, counted.sent(gpu.name), sent,
                      counted.received(gpu.name), received, host))
        good &= (counted.sent(gpu.name), counted.received(gpu.name),
                 host) == (sent, received, 0)
    total = sum(sent for sent, _ in planned.values())
    moved = counted.of_ports("p2p_bytes") + counted.over("mesh")
    tale.note(f"{moved} bytes from GPU to GPU by the counters of the ports, "
              f"{total} by the schedule")
    through = sum(counted.of_gpu(gpu.name, "host_bytes") for gpu in gpus)
    tale.note(f"{through} bytes of data from or to host memory by those of the "
              f"GPUs; {counted.of_ports('host_bytes') / 1e3:.0f} KB of message "
              "headers and probes by those of the ports")
    if not good or moved != total:
        raise StoryFailed("not all of it went from GPU to GPU as planned")


def all_reduce(tale, hosts):
    """The planner's schedule, from GPU memory to GPU memory and, for
    comparison, by way of the hosts' memory."""
    a = hosts[0]
    tale.step("All-reduce of 64 MiB of fp32 over six GPUs of the three hosts")
    gpus = two_for_each(tale, hosts)
    tale.command(a, "fabrexctl plan-collective live --no-prediction --devices "
                 + ",".join(gpu.name for gpu in gpus)
                 + f" --schedule {SCHEDULE}")
    schedule = a.get(SCHEDULE).decode()
    wanted = reduction.expected(len(gpus), SUM)
    tale.note(f"crc32c {wanted} is right, says gpu-expected, which adds up "
              "integers on the machine that emulates the hosts")
    tale.note("six ranks follow the schedule (selftests/gpu/rank.c calls "
              "fabrex_all_reduce()):")
    direct, counted = add_up(gpus, 7801, wanted, schedule=schedule)
    tale.note(f"crc32c {wanted} on each of the six, by the engine of the GPU")
    show_traffic(tale, gpus, counted, schedule)
    tale.note("the same on GPUs without a compiler for kernels, which cannot "
              "add up:")
    staged, counted = add_up(gpus, 7802, wanted, schedule=schedule,
                             kernels=False)
    tale.note(f"crc32c {wanted} on each of the six; "
              f"{counted.of_ports('p2p_bytes')} bytes from GPU to GPU, "
              f"{counted.of_ports('host_bytes')} to or from host memory")
    tale.note(f"time: {direct:.2f} s from GPU to GPU, {staged:.2f} s staged "
              "through host memory")
    tale.note("(emulated: so are the guests' processors, which play the GPUs' "
              "kernels in the GPUs' memory)")


def give_back(tale, hosts):
    """All as it was."""
    tale.step("Give the GPUs back")
    for guest in hosts:
        names = [gpu.name for gpu in reduction.gpus_of(guest)]
        guest.sh("rmmod draco_gpu")
        tale.command(guest, f"fabrexctl release {' '.join(names)}")
        wait_device(guest, False)


def stream(tale, watch, events):
    """What host c was told meanwhile."""
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
