# SPDX-License-Identifier: GPL-2.0-only
"""Transfers from GPU to GPU, checked and counted, for scenarios."""

from gpulab import (MIB, GpuPuppet, bound, endpoint_bytes, fabric, gpu_host,
                    load, wait_devices)
from puppet import WRITE

SIZE = 64 * MIB


class Counted:
    """Bytes that the switch counts while a block runs."""

    def __init__(self, guest, puppets, endpoints=()):
        self.guest = guest
        self.puppets = puppets
        self.endpoints = endpoints

    def read(self):
        ports = [p.port_counters() for p in self.puppets]
        return (sum(p for p, _ in ports), sum(h for _, h in ports),
                [endpoint_bytes(self.guest, e) for e in self.endpoints])

    def __enter__(self):
        self.before = self.read()
        return self

    def __exit__(self, *exc):
        p2p, host, ends = self.read()
        self.p2p = p2p - self.before[0]
        self.host = host - self.before[1]
        self.ends = [tuple(n - w for n, w in zip(now, was))
                     for now, was in zip(ends, self.before[2])]


def puppets(lab):
    """A process on each of a and b: GPU 0, 64 MiB of it, host memory, a
    queue; [(puppet, endpoint, key of VRAM, key of host memory)]."""
    made = []
    for name in "ab":
        guest = gpu_host(lab, name, 2 if name == "a" else 1)
        p = GpuPuppet(guest)
        address = "%04x:%02x:%02x.%x" % address_of(p.gpu(0))
        endpoint = next(e for e, at in bound(guest, name).items()
                        if at == address)
        key = p.memory(0, SIZE)
        host = p.mr(1, SIZE)
        p.queue(0)
        made.append((p, endpoint, key, host))
    return made


def address_of(answer):
    _, domain, devfn = answer[:3]
    return domain, devfn >> 8, devfn >> 3 & 31, devfn & 7


def direct(t, lab, a, b):
    """The transfer of the issue; seconds."""
    (pa, gpu_a, _, _), (pb, gpu_b, rkey, _) = a, b
    pa.pattern(0, SIZE, 1)
    pb.words("gfill", 0, 0, SIZE, 0)
    crc = pa.crc(0, SIZE)
    t.ok(pb.crc(0, SIZE) != crc, "b's GPU has something else at first")
    with Counted(lab.guest("a"), (pa, pb), (gpu_a, gpu_b)) as c:
        seconds, status = pa.timed(0, WRITE, pb.peer, 0, rkey, SIZE)
    t.equal(status, "OK", "64 MiB from a's GPU to b's GPU")
    t.equal(pb.crc(0, SIZE), crc,
            "b's GPU has the checksum that a's GPU has")
    t.equal(c.p2p, SIZE, "every byte went from endpoint to endpoint")
    t.equal(c.host, 0, "and none through the memory of a host")
    t.equal(c.ends, [(SIZE, 0), (0, SIZE)],
            "all read from one GPU, all stored into the other")
    return seconds


def links(guest, more=""):
    """{(from, to): row} of both directions of all links."""
    doc = fabric.ctl_json(guest, f"stats --links {more}")
    return {(row["from"], row["to"]): row for row in doc["links"]}


def traffic(guest):
    """{(from, to): bytes}"""
    return {way: row["bytes"] for way, row in links(guest).items()}


def process(lab, host, endpoints, size):
    """A process with these GPUs and a region of each: (puppet, {endpoint:
    (region, key)})."""
    guest = lab.guest(host)
    load(guest)
    for endpoint in endpoints:
        fabric.compose(guest, endpoint, host, check=True)
    wait_devices(guest, len(endpoints))
    names = {at: name for name, at in bound(guest, host).items()}
    p = GpuPuppet(guest)
    p.queue(0)
    regions = {}
    for n in range(len(endpoints)):
        address = "%04x:%02x:%02x.%x" % address_of(p.gpu(n, n))
        regions[names[address]] = (n, p.memory(n, size, gpu=n))
    return p, regions
