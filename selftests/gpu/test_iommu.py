# SPDX-License-Identifier: GPL-2.0-only
"""Hosts with an IOMMU, with two partitions, with large GPUs: that the fabric
works there, and that vfio-pci exports a GPU's memory."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "common")]
import fabric
import machine
import quota
from exporter import VRAM, ExportError, Exporter, acs
from scenario import scenario

PATHS = os.path.join(HERE, "paths.topo")
BIG = os.path.join(HERE, "big.topo")
KERNELS = ("7.2", "debug")
EINVAL, ENODEV = 22, 19


def compose(t, guest, name, port):
    """Compose through the port meant; the GPU's address."""
    done = fabric.ctl(guest, f"--fport {port} compose {name} --to {port} "
                      + fabric.PATIENT)
    t.need(done.status == 0, f"{name} composed to {port}", done.stderr)
    rows = fabric.ctl_json(guest, f"--fport {port} list endpoints")
    rows = rows if isinstance(rows, list) else rows["endpoints"]
    return next(r["pci_name"] for r in rows if r["name"] == name)


def transfers(t, guest, text):
    """Memory to memory between the host's two ports, checked."""
    server = guest.start_command("fabrex-perf server --once --device a.1")
    server.wait_for("serving")
    done = guest.run("fabrex-perf transfer --device a.0 --peer a.1 "
                     "--size 16M --timeout 600", timeout=660)
    t.ok(done.status == 0 and "equal" in done.stdout, text,
         done.stdout + done.stderr)
    server.wait(30)


def group(guest, bdf):
    return guest.sh(f"basename $(readlink /sys/bus/pci/devices/{bdf}/"
                    "iommu_group)")


def redirects(guest, bdf):
    """Whether the slot of a device redirects requests of peers."""
    return "ReqRedir+" in guest.sh(
        f"lspci -vv -s $(basename $(dirname $(readlink -f "
        f"/sys/bus/pci/devices/{bdf}))) | grep ACSCtl")


@scenario(hosts=["a"], topology=PATHS, kernels=KERNELS)
def two_partitions(lab, t):
    """Two host ports are two functions below two root ports."""
    a = lab.guest("a")
    first, second = (compose(t, a, f"columba1.gpu{n}", f"a.{n}")
                     for n in (0, 1))
    tops = [a.sh(f"readlink -f /sys/bus/pci/devices/{bdf}").split("/")[4]
            for bdf in (first, second)]
    t.ok(tops[0] != tops[1], "the GPUs are below two root ports", tops)
    t.ok(not redirects(a, first), "without an IOMMU no slot redirects")
    transfers(t, a, "a.0 writes to a.1")
    fabric.release(a, "columba1.gpu0 columba1.gpu1")


@scenario(hosts=["a"], topology=PATHS, kernels=KERNELS, iommu="pt",
          cpu=machine.AMD_CPU)
def vfio_exports(lab, t):
    """Each GPU has its group; dma-bufs of its memory; ways to revoke."""
    a = lab.guest("a")
    t.equal(a.sh("sed -n 's/^cpu family.*: //p' /proc/cpuinfo | uniq"), "23",
            "the processor is one that lets peers use the root complex")
    gpu, other = (compose(t, a, f"columba1.gpu{n}", "a.0") for n in (0, 1))
    t.ok(group(a, gpu) != group(a, other), "every GPU is a group of its own")
    t.ok(redirects(a, gpu), "with an IOMMU the slots redirect")
    acs(a, gpu, False)
    t.ok(not redirects(a, gpu), "setpci turns that off")
    one = Exporter(a, gpu)
    t.ok("/dmabuf:" in a.sh(f"readlink /proc/{one.pid}/fd/{one.fd}"),
         "the descriptor is a dma-buf")
    one.fill(8192, 4096, 3)
    t.equal(one.sum(8192, 8192), 3 * 4096, "its memory can be written")
    for bad in ((0, 100), (1 << 40, 4096)):
        try:
            one.export(*bad)
            t.ok(False, f"a dma-buf of {bad} is refused")
        except ExportError as e:
            t.equal(e.errno, EINVAL, f"a dma-buf of {bad} is refused")
    one.reset()
    one.memory(False)
    one.memory(True)
    one.sleep(True)
    one.sleep(False)
    t.ok(one.export(4096, 4096) > 0, "after all ways to revoke it exports on")
    one.close_device()
    try:
        one.reset()
        t.ok(False, "a closed device takes no command")
    except ExportError as e:
        t.equal(e.errno, ENODEV, "a closed device takes no command")
    t.equal(one.end().status, 0, "the tool ends well")
    transfers(t, a, "host memory, identity map")
    fabric.release(a, "columba1.gpu0 columba1.gpu1")


@scenario(hosts=["a"], topology=PATHS, kernels=KERNELS, iommu="pt",
          cpu=machine.AMD_CPU)
def vfio_imported(lab, t):
    """Regions of its dma-bufs, through the root complex: two GPUs beside the
    port, then one below the host's other port."""
    a = lab.guest("a")
    a.sh("modprobe -a vfio_iommu_type1 vfio-pci")
    near, beside, far = (compose(t, a, f"columba1.gpu{n}", port) for n, port
                         in ((0, "a.0"), (1, "a.0"), (2, "a.1")))
    t.program(a, f"FABREX_VFIO='{near} {beside}' gpu-vfio", timeout=900)
    t.program(a, f"FABREX_VFIO='{near} {far}' FABREX_REVOKES=8 gpu-vfio",
              timeout=300)
    # Linux 7.2's dma_buf_free_sgt() frees no list: that is vfio-pci's leak.
    a.allow_log(r"kmemleak: \d+ new suspected memory leaks")
    leaks = [x for x in a.kmemleak().split("unreferenced object")[1:]
             if "dma_buf_phys_vec_to_sgt" not in x]
    t.ok(not leaks, "no leak of ours", "".join(leaks))
    fabric.release(a, "columba1.gpu0 columba1.gpu1 columba1.gpu2")


@scenario(hosts=["a"], topology=PATHS, kernels=KERNELS, iommu="pt",
          cpu=machine.AMD_CPU)
def vfio_gives_back(lab, t):
    """A user of the GPU is named; one that listens lets go when the GPU is
    pulled, for one that does not the kernel waits."""
    a = lab.guest("a")
    gpu = compose(t, a, "columba1.gpu2", "a.0")
    one = Exporter(a, gpu)
    done = fabric.release(a, "columba1.gpu2")
    t.ok(done.status and f"gpu-vfio_tool ({one.pid})" in done.stderr,
         "an orderly release names the holder", done.stderr)
    t.ok(not one.requested, "and takes nothing away")
    t.need(lab.emu_control({"cmd": "remove", "endpoint": "columba1.gpu2"})
           .get("ok"), "the GPU is pulled")
    t.ok(one.wait_request(), "its user is asked to let go")
    t.equal(fabric.wait_gpus(a, 0), [], "and the device goes")
    t.equal(one.end().status, 0, "the user ends well")
    lab.emu_control({"cmd": "insert", "endpoint": "columba1.gpu2"})
    gpu = compose(t, a, "columba1.gpu3", "a.0")
    compose(t, a, "columba1.gpu2", "a.0")
    deaf = Exporter(a, gpu, keep=True)
    forced = a.start_command("fabrexctl release --force columba1.gpu3")
    t.ok(gpu in fabric.wait_gpus(a, 1, timeout=3),
         "with a user that does not listen the device stays")
    # The PCI core removes one device after the other.
    for _ in range(fabric.TRIES):
        late = fabric.ctl(a, "release columba1.gpu2")
        # A machine that took longer than owners may: once more.
        if "owner kept it" not in late.stderr:
            break
    t.ok(late.status == fabric.TIMED_OUT and "slot not empty" in late.stderr,
         "another that is let go meanwhile is not gone in time", late.stderr)
    t.ok("free as soon as its slot is empty" in late.stderr,
         "which is said", late.stderr)
    t.equal(fabric.endpoint(a, "columba1.gpu2")["state"], "releasing",
            "its owner does not have it back")
    again = a.start_command("fabrexctl release columba1.gpu2 --timeout 30")
    deaf.end()
    got = again.wait(100)
    if got.status == fabric.TIMED_OUT:
        got = fabric.release(a, "columba1.gpu2")
    t.equal(got.status, 0, "asking again waits for its slot")
    t.equal(fabric.endpoint(a, "columba1.gpu2")["state"], "free",
            "then it is free")
    t.equal(fabric.wait_gpus(a, 0), [], "until it ends")
    t.equal(forced.wait(40).status, 0, "the release is done")


@scenario(hosts=["a"], topology=PATHS, kernels=KERNELS, iommu="on",
          cpu=machine.AMD_CPU)
def translated(lab, t):
    """Rings and regions have bus addresses of the IOMMU's choice."""
    a = lab.guest("a")
    transfers(t, a, "host memory, translated")
    gpu = compose(t, a, "columba1.gpu0", "a.0")
    other = compose(t, a, "columba1.gpu1", "a.0")
    a.sh("modprobe -a vfio_iommu_type1 vfio-pci")
    t.program(a, f"FABREX_VFIO='{gpu} {other}' FABREX_REVOKES=8 "
              "FABREX_TRANSLATED=1 gpu-vfio", timeout=600)
    fabric.release(a, "columba1.gpu0 columba1.gpu1")


@scenario(hosts=["a"], topology=BIG, kernels=KERNELS, iommu="pt")
def four_gib(lab, t):
    """A BAR of 4 GiB finds its place, up to its last page."""
    a = lab.guest("a")
    names = [f"columba1.gpu{n}" for n in range(4)]
    gpus = [compose(t, a, name, "a.0") for name in names]
    one = Exporter(a, gpus[-1])
    last = (4 << 30) - 4096
    one.fill(last, 4096, 5)
    t.equal(one.sum(last, 4096), 5 * 4096, "the last page is memory")
    t.equal(a.sh(f"stat -c %s /sys/bus/pci/devices/{gpus[0]}/"
                 f"resource{VRAM}"), str(4 << 30), "the BAR has 4 GiB")
    one.end()
    for gpu in ("0000:03:00.0", *gpus[:2]):
        acs(a, gpu, False)
    # A host with less memory than its GPUs have; quotas go by the host's.
    with quota.changed(a, bytes=0):
        t.program(a, f"FABREX_VFIO='{gpus[0]} {gpus[1]}' FABREX_REVOKES=4 "
                  "gpu-vfio", timeout=300)
    fabric.release(a, " ".join(names))
