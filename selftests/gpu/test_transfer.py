# SPDX-License-Identifier: GPL-2.0-only
"""GPU memory across hosts: who moves it, where through, and how long it takes
beside the way through host memory. All figures are of the emulator."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from gpulab import KERNELS, MIB, TOPOLOGY
from puppet import CHECK, CMP_SWAP, FETCH_ADD, READ, WRITE
from scenario import scenario
from transfer import SIZE, Counted, direct, puppets


def staged(t, lab, a, b):
    """The same through host memory, by DMA; (seconds, bytes through DRAM)."""
    (pa, _, vram_a, host_a), (pb, gpu_b, vram_b, host_b) = a, b
    pa.pattern(0, SIZE, 2)
    crc = pa.crc(0, SIZE)
    # What is timed is the engine, not page faults of the emulator.
    for p in (pa, pb):
        p.set(1, 0, SIZE, 1)
    with Counted(lab.guest("a"), (pa, pb)) as c:
        steps = [pa.timed(0, WRITE, pa.peer, 0, host_a, SIZE),
                 pa.timed(0, WRITE, pb.peer, 1, host_b, SIZE),
                 pb.timed(0, WRITE, pb.peer, 1, vram_b, SIZE)]
    t.equal([s for _, s in steps], ["OK"] * 3, "staged: three copies")
    t.equal(pb.crc(0, SIZE), crc, "staged: the bytes arrive, too")
    t.equal((c.p2p, c.host), (0, 3 * SIZE),
            "staged: all three touch host memory")
    # Stored and loaded on a, stored and loaded on b.
    return sum(s for s, _ in steps), 4 * SIZE


def staged_by_processors(a, b):
    """As vendors' tools without peer-to-peer do it: the hosts' cores copy."""
    (pa, _, _, _), (pb, _, _, host_b) = a, b
    out = pa.ask("gcpu", 0, 1, SIZE, 0, timeout=120)[0] / 1e9
    across, _ = pa.timed(0, WRITE, pb.peer, 1, host_b, SIZE)
    back = pb.ask("gcpu", 0, 1, SIZE, 1, timeout=120)[0] / 1e9
    return out + across + back


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def gpu_to_gpu_across_hosts(lab, t):
    """64 MiB from VRAM on a to VRAM on b, by no host's core or memory."""
    a, b = puppets(lab)
    direct(t, lab, a, b)		# everything is backed from here on
    seconds = direct(t, lab, a, b)
    through, dram = staged(t, lab, a, b)
    cores = staged_by_processors(a, b)
    for name, took, mem in (
            ("GPU to GPU", seconds, 0),
            ("staged through host memory by DMA", through, dram),
            ("staged, the hosts' cores copy", cores, dram)):
        t.diag(f"{name} (emulated): {1000 * took:.1f} ms for 64 MiB, "
               f"{SIZE / took / 1e9:.2f} GB/s, {mem // MIB} MiB through "
               f"DRAM, {took / seconds:.1f} times as long")
    t.ok(through > seconds, "the way through host memory takes longer",
         (through, seconds))
    for p, *_ in (a, b):
        p.close()


def check_op(t, a, b, rkey, length):
    """WRITE with an end-to-end check, and READ."""
    a.pattern(0, length, 5)
    crc = a.crc(0, length)
    done = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, length, flags=CHECK)
    t.equal((done.status, done.crc), ("OK", crc),
            "WRITE with CHECK: the completion has the GPU's checksum")
    t.equal(b.crc(0, length), crc, "and b's GPU the bytes")
    b.pattern(0, length, 6)
    crc = b.crc(0, length)
    done = a.op(0, READ, b.peer, 0, 0, rkey, 0, length)
    t.equal((done.status, a.crc(0, length)), ("OK", crc),
            "READ from b's GPU into a's")


def check_atomics(t, a, b, rkey):
    """Eight bytes of b's VRAM, changed by a."""
    b.words("gfill", 0, 0, 4096, 40)
    t.equal(a.op(0, FETCH_ADD, b.peer, 0, 0, rkey, 8, 2).status, "OK",
            "fetch-add in b's VRAM")
    b.words("gcpu", 0, 1, 4096, 0)
    t.equal(b.ask("peek", 1, 8)[0], 42, "the word has grown")
    t.equal(a.op(0, CMP_SWAP, b.peer, 0, 0, rkey, 16, 7).status, "OK",
            "compare-and-swap there")
    b.words("gcpu", 0, 1, 4096, 0)
    t.equal(b.ask("peek", 1, 16)[0], 40, "something else was compared")


def check_window(t, a, b, rkey):
    """Loads and stores of a's core in b's VRAM."""
    a.words("window", 0, b.peer, rkey, 8192, 4096, 6)
    b.words("gfill", 0, 8192, 4096, 0x1111111111111111)
    t.equal(a.ask("load", 0, 8), [0x11111111], "a load through a window")
    a.words("store", 0, 8, 99)
    b.words("gcpu", 0, 1, 16384, 0)
    t.equal(b.ask("peek", 1, 8192 + 8)[0] & 0xffffffff, 99,
            "a store through it")
    a.words("windel", 0)


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def every_operation_reaches_vram(lab, t):
    """READ, CHECK, atomics, windows; GPU to host and back; two GPUs below
    one host."""
    (a, gpu_a, own, host_a), (b, gpu_b, rkey, host_b) = puppets(lab)
    n = 8 * MIB
    check_op(t, a, b, rkey, n)
    check_atomics(t, a, b, rkey)
    check_window(t, a, b, rkey)
    with Counted(lab.guest("a"), (a, b), (gpu_a, gpu_b)) as c:
        status = a.op(0, WRITE, b.peer, 0, 0, host_b, 0, n).status
    t.equal(status, "OK", "a's GPU to b's host memory")
    t.equal((c.p2p, c.host, c.ends), (0, n, [(n, 0), (0, 0)]),
            "which counts as host memory")
    t.equal(b.ask("hostcrc", 1, 0, n)[0], a.crc(0, n), "the bytes are there")
    b.fill(1, 0, n, 9)
    t.equal(a.op(0, READ, b.peer, 0, 0, host_b, 0, n).status, "OK",
            "b's host memory to a's GPU")
    t.equal(a.crc(0, n), b.ask("hostcrc", 1, 0, n)[0], "the bytes are there")
    a.gpu(1, 1)
    near = a.memory(2, n, gpu=1)
    a.pattern(0, n, 7)
    with Counted(lab.guest("a"), (a, b), (gpu_a,)) as c:
        status = a.op(0, WRITE, a.peer, 0, 0, near, 0, n).status
    t.equal((status, a.crc(2, n)), ("OK", a.crc(0, n)),
            "two GPUs below one host")
    t.equal((c.p2p, c.host, c.ends), (n, 0, [(n, 0)]),
            "from endpoint to endpoint")
    for p in (a, b):
        p.close()
