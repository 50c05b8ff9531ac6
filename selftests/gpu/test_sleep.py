# SPDX-License-Identifier: GPL-2.0-only
"""A host that sleeps with GPU memory registered, and its GPU's driver moving
everything out before, as drivers of real GPUs do (gpu/module/sleep.c)."""

import os
import queue
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import (KERNELS, MR_PIN, SYSTEM, TOPOLOGY, VRAM, GpuPuppet, audit,
                    fabric)
from puppet import WRITE
from revocation import (PART, SIZE, before, no_leaks, nothing_late, parties,
                        storm_at)
from scenario import scenario

HANG = 240


def exporter(guest, name):
    return int(guest.sh(f"cat /sys/module/draco_gpu/parameters/{name}"))


def wait_exporter(guest, name, value):
    """Wait until a parameter of the GPUs' driver has that value."""
    return guest.run(f"for i in $(seq {HANG * 20}); do "
                     f"grep -qx {value} /sys/module/draco_gpu/parameters/{name}"
                     " && exit 0; sleep 0.05; done; exit 1",
                     timeout=HANG).status == 0


def wait_mapped(puppet, buf, place):
    """Wait until the buffer is mapped at that place."""
    state = puppet.ask("gstate", buf)
    for _ in range(HANG * 20):
        if state[0] == place and state[3]:
            break
        puppet.guest.sh("sleep 0.05")
        state = puppet.ask("gstate", buf)
    return state


def frozen(t, a, b):
    """The sleep is called off: processes were frozen and GPUs emptied, no
    device has slept. Regions come back by themselves."""
    key = a.victim()
    a.puppet.pattern(5, SIZE, 77)
    b.puppet.pattern(0, SIZE, 78)
    crc = b.puppet.crc(0, SIZE)
    storm = storm_at(a, b, key, False, WRITE)
    t.need(storm.wait(good=4), "freezer: traffic before")
    while a.puppet.event(0):
        pass			# of what was before
    back = exporter(a.guest, "brought_back")
    a.guest.sleep("freezer", HANG).check()
    t.equal(exporter(a.guest, "brought_back") > back or
            wait_mapped(a.puppet, 5, VRAM)[0] == VRAM, True,
            "freezer: the buffer comes back to VRAM afterwards")
    t.ok(storm.wait(good=4, timeout=HANG),
         "freezer: traffic goes on with the same key")
    ended, _, lost = storm.calm()
    t.ok(set(ended) <= {"OK", "RKEY", "ABORTED"} and not lost,
         "freezer: operations have ended as they may", (ended, lost))
    t.equal(a.puppet.crc(5, SIZE), crc, "freezer: with the right bytes")
    t.ok(a.puppet.event(0) is None, "freezer: nobody was told anything")
    a.puppet.words("mrdel", 5)
    a.puppet.words("gfree", 5)


def slept(t, a, b):
    """Devices sleep as well: the port is down meanwhile, and its regions are
    gone."""
    key = a.victim()
    a.puppet.pattern(5, SIZE, 79)
    crc = a.puppet.crc(5, SIZE)
    b.puppet.pattern(0, SIZE, 79)
    generation = fabric.wait_peer(b.puppet, "a", True)
    storm = storm_at(a, b, key, False, WRITE)
    t.need(storm.wait(good=4), "devices: traffic before")
    a.guest.sleep("devices", HANG).check()
    t.need(fabric.wait_port(a.guest, HANG), "devices: the port works again",
           a.guest.dmesg()[-2500:])
    t.ok(storm.wait(bad=3, timeout=HANG), "devices: b's operations fail")
    ended, _, lost = storm.calm()
    t.ok(not lost, "devices: and all complete", ended)
    t.diag(f"devices: {ended}")
    t.ok(a.puppet.wait_event("QUEUE_ERROR"), "devices: the process is told")
    now = fabric.wait_peer(b.puppet, "a", True)
    t.ok(now and now > generation, "devices: a new generation",
         f"{generation} -> {now}")
    a.puppet.words("mrdel", 5)
    key, a.id = a.register(False)
    t.equal(a.puppet.crc(5, SIZE), crc, "devices: the GPU's bytes are there")
    t.equal(a.puppet.ask("gstate", 5)[0], VRAM, "devices: in VRAM")
    b.puppet.pattern(0, SIZE, 80)
    crc = b.puppet.crc(0, SIZE)
    t.equal(b.puppet.op(0, WRITE, a.peer, 0, 0, key, 0, PART).status, "OK",
            "devices: traffic after")
    t.equal(a.puppet.crc(5, SIZE), crc, "devices: with all bytes")
    a.puppet.words("mrdel", 5)
    a.puppet.words("gfree", 5)


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def suspended_with_gpu_memory(lab, t):
    """Suspend and resume, twice each, with traffic before, meanwhile and
    after."""
    start = before(lab)
    a, b = parties(lab)
    audit(lab, "on")
    for _ in range(2):
        frozen(t, a, b)
        slept(t, a, b)
        # Queue and region of before are dead now.
        a.puppet.words("qdel", 0)
        a.puppet.words("mrdel", 0)
        a.puppet.words("gfree", 0)
        a.key = a.puppet.memory(0, SIZE)
        a.puppet.queue(0)
    t.ok(exporter(a.guest, "evicted_early") > 0, "the GPUs were emptied")
    t.equal(exporter(a.guest, "evicted_late"), 0,
            "and nothing was brought back before processes were frozen")
    t.equal(exporter(a.guest, "brought_back_early"), 0,
            "nor afterwards, before their driver was done")
    nothing_late(t, lab, 4)
    for party in (a, b):
        party.close()
    no_leaks(t, lab, start)


def start(puppet, *args):
    """Have a puppet do something that takes long."""
    puppet.command.write((" ".join(str(a) for a in args) + "\n").encode())


def finish(puppet):
    """What became of it."""
    end = time.monotonic() + HANG * puppet.guest.patience
    while time.monotonic() < end:
        puppet.command.poll()
        try:
            return puppet.lines.get(timeout=0.05)
        except queue.Empty:
            pass
    return None


def registrant(guest, index):
    """A process about to register memory of that GPU."""
    p = GpuPuppet(guest)
    p.gpu(1, index)
    p.alloc(5, 1, SIZE)
    p.export(63, 5)
    return p


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def sleep_while_registering(lab, t):
    """Who registers GPU memory just then keeps no machine awake, and does not
    bring the memory back before it has slept."""
    begin = before(lab)
    a, b = parties(lab)
    guest = a.guest
    # The kernel gives processes 20 s to freeze; 30 s of work for the GPU. What
    # is pinned is not evicted, or that would wait for the work as well.
    p = registrant(guest, a.index)
    for _ in range(3):
        p.words("gjob", 5, SIZE, 1, 10000)
    maps = a.puppet.ask("ginfo", 1)[3]
    start(p, "bmr", 5, 63, 0, SIZE, 15, MR_PIN)
    for _ in range(HANG * 20):
        if a.puppet.ask("ginfo", 1)[3] > maps:
            break
        guest.sh("sleep 0.05")
    guest.sleep("freezer", HANG).check()
    t.ok(True, "the machine sleeps while a registration waits for a GPU")
    answer = finish(p)
    t.ok(answer and answer.startswith("ok"), "which is made afterwards", answer)
    p.close()

    p = registrant(guest, a.index)
    early = exporter(guest, "brought_back_early")
    guest.sh("echo 4000 >/sys/module/draco_gpu/parameters/evict_ms")
    sleeping = guest.start_command(
        "echo freezer >/sys/power/pm_test; echo freeze >/sys/power/state; "
        "status=$?; echo none >/sys/power/pm_test; exit $status")
    t.need(wait_exporter(guest, "emptied", "Y"), "GPUs are being emptied")
    start(p, "bmr", 5, 63, 0, SIZE, 15, 0)
    t.equal(sleeping.wait(HANG).status, 0, "the machine sleeps")
    answer = finish(p)
    t.ok(answer and answer.startswith("ok"), "the registration is made", answer)
    t.equal(exporter(guest, "brought_back_early"), early,
            "and has brought nothing back meanwhile")
    guest.sh("echo 300 >/sys/module/draco_gpu/parameters/evict_ms")
    p.close()
    for party in (a, b):
        party.close()
    no_leaks(t, lab, begin)
