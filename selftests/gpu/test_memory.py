# SPDX-License-Identifier: GPL-2.0-only
"""libfabrex and GPU memory: device pointers of the test run times over
modelled GPUs, the registration cache on a real kernel, the examples."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import build
from gpulab import RUNTIME, TOPOLOGY, gpu_host, moved_bytes
import quota
from process import wait_until
from scenario import scenario

SIZE = 1 << 20
P2P = ("7.2", "debug")		# 6.12 has no PCI_P2PDMA: test_older.py


@scenario(hosts=["a", "b"], topology=TOPOLOGY)
def registration_cache(lab, t):
    """Host memory that changes below the cache; hits, limits, times."""
    a = lab.guest("a")
    t.program(a, "runtime-memory cache")
    calls = int(a.sh("strace -f -e trace=ioctl -o /tmp/calls runtime-memory "
                     "cache >/dev/null && grep -c ioctl /tmp/calls").split()[-1])
    t.ok(calls < 60, "hits cost no system call: few ioctls for 109 cached "
         "transfers", calls)
    t.diag(f"{calls} ioctls for 109 cached transfers")
    with quota.changed(a, mrs=12000):
        t.program(a, "runtime-memory scale > /tmp/out; e=$?; cat /tmp/out; "
                  "exit $e", timeout=600)
    for line in a.sh("grep '^#' /tmp/out").splitlines():
        t.diag(line[2:])


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=P2P)
def device_memory(lab, t):
    """Device pointers: found, registered, moved, cached, taken away."""
    a = gpu_host(lab, "a", 2)
    for part in ("cuda", "hip"):
        t.program(a, f"runtime-memory {part}", env=RUNTIME)


def example(t, a, b, name):
    """Run an example on both hosts; from a to b."""
    path = os.path.join(build.OUT, "examples", name)
    server = b.start_command([path], env=RUNTIME)
    tries = []

    def sent():
        """False while b does not listen yet."""
        tries.append(a.run(f"{path} b", env=RUNTIME))
        return not tries[-1].status or server.poll()

    wait_until(sent, 30 * a.patience, 0.2)
    sender = tries[-1]
    receiver = server.wait(60)
    t.ok(sender.status == 0 and ": ok" in sender.stdout,
         f"{name} b: {' / '.join(sender.stdout.splitlines())}",
         sender.stdout + sender.stderr)
    return t.ok(receiver.status == 0, f"{name}: "
                f"{' / '.join(receiver.stdout.splitlines())}",
                receiver.stdout + receiver.stderr)


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=("7.2",))
def examples(lab, t):
    """From GPU memory on a into GPU memory on b, with HIP and with CUDA."""
    a, b = gpu_host(lab, "a", 1), gpu_host(lab, "b", 1)
    for name in ("hip_write", "cuda_write"):
        before = moved_bytes((a, b))
        example(t, a, b, name)
        p2p, host = (now - was for now, was
                     in zip(moved_bytes((a, b)), before))
        t.equal(p2p, SIZE, "every byte went from endpoint to endpoint")
        t.diag(f"{name}: {host} bytes of host memory, for the meeting")
        t.ok(host < SIZE / 64, "host memory saw the meeting only", host)


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=("7.2",))
def perf_between_gpus(lab, t):
    """fabrex-perf with the memory of either side on a GPU."""
    a, b = gpu_host(lab, "a", 1), gpu_host(lab, "b", 1)
    server = b.start_command("fabrex-perf server --memory hip", env=RUNTIME)
    server.wait_for("serving")
    doc = json.loads(a.sh("fabrex-perf write-bw --peer b --memory cuda "
                          "--size 1M -t 1 --verify --json", env=RUNTIME,
                          timeout=120))
    row = doc["results"][0]
    t.ok(row["verified"], "what a's GPU has is what b's GPU got", doc)
    t.ok(doc["p2p_bytes"] >= row["operations"] * (1 << 20),
         "the bytes went from endpoint to endpoint", doc)
    t.ok(doc["host_bytes"] < 1 << 16, "and not through host memory", doc)
    direct = row["mb_per_s"]
    doc = json.loads(a.sh("fabrex-perf write-bw --peer b --size 1M -t 1 "
                          "--json", timeout=120))
    t.diag(f"GPU to GPU {direct:.0f} MB/s, host memory to GPU "
           f"{doc['results'][0]['mb_per_s']:.0f} MB/s (emulated)")
    server.kill()
    server.wait(20)
