# SPDX-License-Identifier: GPL-2.0-only
"""One all-reduce over the GPUs of several hosts, seen from outside: what the
GPUs' own engines say about the result, and what the switch has counted. The
ranks are selftests/gpu/rank.c. Used by story.py and selftests/gpu."""

import json
import os
import re
from dataclasses import dataclass

import build
import root
import space
import traffic

FLOAT = 4
DIRECTORY = os.path.join(build.OUT, "selftests", "runtime")
# The runtime of a GPU vendor, for GPUs that exist in draco-emu only, and what
# it has compiled: without that a GPU cannot add up.
RUNTIME = {"LD_LIBRARY_PATH": DIRECTORY}
KERNELS = {"FABREX_TEST_KERNELS": os.path.join(DIRECTORY, "kernels")}


@dataclass
class Gpu:
    """One that a host has: /dev/dgpu<number>."""
    guest: object
    number: int
    address: str
    name: str


def gpus_of(guest):
    """Those with a driver, by number."""
    rows = json.loads(guest.sh("fabrexctl --json list endpoints"))
    names = {row["pci_name"]: row["name"] for row in rows["endpoints"]
             if row["host"] == guest.name}
    found = guest.sh("cd /sys/class && for d in */dgpu*; do [ ! -e $d ] || "
                     "echo ${d##*dgpu} $(readlink -f $d/device); done")
    pairs = [line.split() for line in found.splitlines()]
    return [Gpu(guest, int(number), os.path.basename(path),
                names[os.path.basename(path)])
            for number, path in sorted(pairs, key=lambda p: int(p[0]))]


def expected(ranks, size):
    """CRC32C of the right result, computed here, as a hexadecimal number."""
    return space.run(root.root("demo"), [
        os.path.join(build.OUT, "selftests", "gpu-expected"), str(ranks),
        str(size)], text=True, capture_output=True).stdout.strip()


class Counted:
    """What the switch says about ports, GPUs and links."""

    def __init__(self, guest, ports, names):
        self.guest = guest
        self.ports = ports
        self.names = names
        self.first = self.read()

    def read(self):
        """{(object, counter): value} and {(from, to): bytes}, by link's kind."""
        what = " ".join([*self.ports, *self.names])
        rows = json.loads(self.guest.sh(f"fabrexctl --json stats {what}"))
        links = json.loads(self.guest.sh("fabrexctl --json stats --links"))
        values = {(row["name"], key): row[key] for row in rows["counters"]
                  for key in ("p2p_bytes", "host_bytes")}
        values.update({(row["from"], row["to"], row["link"]): row["bytes"]
                       for row in links["links"]})
        return values

    def stop(self):
        """Counting ends; what was counted is kept."""
        self.more = {key: value - self.first.get(key, 0)
                     for key, value in self.read().items()}

    def of_ports(self, counter):
        return sum(self.more[(port, counter)] for port in self.ports)

    def of_gpu(self, name, counter):
        return self.more[(name, counter)]

    def sent(self, name):
        """By an element, over all of its links."""
        return sum(n for key, n in self.more.items()
                   if len(key) == 3 and key[0] == name)

    def received(self, name):
        return sum(n for key, n in self.more.items()
                   if len(key) == 3 and key[1] == name)

    def over(self, kind):
        """On all links of a kind, in both directions."""
        return sum(n for key, n in self.more.items()
                   if len(key) == 3 and key[2] == kind)


class Reduction:
    """A rank on each of `gpus`, and `size` bytes of FLOAT32. schedule: text of
    one to follow; kernels: the GPUs can add up."""

    def __init__(self, gpus, size, service, schedule, kernels=True):
        self.gpus = gpus
        self.size = size
        env = {**RUNTIME, **(KERNELS if kernels else {})}
        path = f"/tmp/reduction-{service}.sched"
        for guest in {gpu.guest.name: gpu.guest for gpu in gpus}.values():
            guest.put(schedule.encode(), path)
        self.ranks = [gpu.guest.start_command(
            f"exec gpu-rank {rank} {len(gpus)} fabric:{service} {size} {path}",
            env={**env, "HIP_VISIBLE_DEVICES": str(gpu.number)},
            keep_stdin=True) for rank, gpu in enumerate(gpus)]

    def _wait(self, last, pattern):
        """What each rank says, whose last word of it is `last`."""
        for rank in self.ranks:
            rank.wait_for(last, 180)
        return [re.search(pattern, rank.output()) for rank in self.ranks]

    def ready(self):
        """Wait until all have met and have their contributions; then they do
        nothing before go()."""
        for gpu, found in zip(self.gpus,
                              self._wait("\n", r"ready (\S+) (.*)\n")):
            if found[1].lower() != gpu.address:
                raise AssertionError(f"{gpu.name} is {gpu.address}, not "
                                     + found[1])

    def go(self):
        """Do it: (seconds at the slowest rank, checksums by the GPUs)."""
        for rank in self.ranks:
            rank.write(b"go\n")
        found = self._wait("checked\n", r"seconds (\S+)\ncrc32c (\S+)\n")
        return max(float(f[1]) for f in found), [f[2] for f in found]

    def end(self):
        for rank in self.ranks:
            rank.write(b"end\n")
        for rank in self.ranks:
            rank.wait(60).check()


def planned(schedule, gpus, size):
    """{name: (bytes to be sent, to be received)} by the text of a schedule."""
    moved = traffic.traffic(schedule, size // FLOAT, FLOAT)
    return {gpu.name: (sum(n for (f, _), n in moved.items() if f == rank),
                       sum(n for (_, to), n in moved.items() if to == rank))
            for rank, gpu in enumerate(gpus)}
