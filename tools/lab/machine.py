# SPDX-License-Identifier: GPL-2.0-only
"""The virtual machine: QEMU's command line, and KVM or TCG.
Used by guest.py; the PCI tree here is what docs/draco.md calls a partition."""

import json
import os

import space

# Below 40 address bits QEMU reserves no hole where firmware puts the windows.
TCG_CPU = "max,la57=off,phys-bits=39"
# One for which Linux lets peers talk through the root complex (p2pdma.c,
# cpu_supports_p2pdma()): AMD, family 0x17.
AMD_CPU = "EPYC,phys-bits=39"

# But for "remap" there is no interrupt remapping, which VFIO wants to be told.
VFIO = "vfio_iommu_type1.allow_unsafe_interrupts=1"
IOMMU = {None: "", "pt": f"intel_iommu=on iommu=pt {VFIO}",
         "on": f"intel_iommu=on {VFIO}", "remap": "intel_iommu=on"}

ROOT_PORT_SLOT = 1000
DRACO_SLOT = 1

# Each hot-plug slot can take a device with this much prefetchable BAR, or
# with the largest VRAM of the topology and as much again. A device with several
# functions, which a PFX's port can have behind it, has to fit as a whole.
SLOT_PREF = 1 << 30
SLOT_MMIO = "2M"

CMDLINE = ("console=ttyS0 loglevel=6 panic=-1 oops=panic softlockup_panic=0 "
           "printk.devkmsg=on random.trust_cpu=1 tsc=reliable no_timer_check "
           "mitigations=off selinux=0 apparmor=0 audit=0 lsm= nokaslr "
           "log_buf_len=4M pci=hpiosize=0 "
           # A guest that gets no processor for a while is not one that hangs.
           "watchdog_thresh=60 workqueue.watchdog_thresh=180 "
           "rcupdate.rcu_cpu_stall_timeout=180 "
           "sysctl.kernel.hung_task_timeout_secs=180 "
           "lab.host={host} lab.tree={tree}")


def accelerator():
    """kvm where it can start a stock kernel, else tcg.

    /dev/kvm can exist on a machine without hardware virtualisation; a guest
    then hangs, so the processor's own flag decides."""
    forced = os.environ.get("FABREX_ACCEL")
    if forced:
        return forced
    with open("/proc/cpuinfo") as f:
        flags = next((l for l in f if l.startswith("flags")), "").split()
    usable = os.access("/dev/kvm", os.R_OK | os.W_OK)
    return "kvm" if usable and {"vmx", "svm"} & set(flags) else "tcg"


def disk(ident, path):
    return ["-drive", f"if=none,id={ident},file={path},format=raw,"
            "readonly=on,file.locking=off,cache=writeback",
            "-device", f"virtio-blk-pci,drive={ident}"]


def cpu(spec, accel):
    """QEMU's -cpu: what the guest asks for, or what suits the accelerator."""
    return spec.cpu or ("host" if accel == "kvm" else TCG_CPU)


def iommu(kind):
    """An IOMMU; it has to come before the devices it serves. Devices
    behind a socket follow its maps only in caching mode."""
    remap = "on" if kind == "remap" else "off"
    return ["-device", f"intel-iommu,intremap={remap},caching-mode=on"] \
        if kind else []


def tree():
    """The file system with the tree. Linux's driver of it cannot start it again
    after sleep, so it has to keep its state: which only PCI Express can say. Its
    port is the last, for partitions to have the first bus numbers."""
    return ["-fsdev", f"local,id=tree,path={space.TREE},security_model=none,"
            "readonly=on,multidevs=remap",
            "-device", "pcie-root-port,id=treeport,bus=pcie.0,addr=0x1e,"
            f"hotplug=off,chassis=99,slot={ROOT_PORT_SLOT + 99}",
            "-device", "virtio-9p-pci,fsdev=tree,mount_tag=tree,bus=treeport,"
            "disable-legacy=on,x-pcie-pm-no-soft-reset=on"]


def partition(index, slots, vram=0, pfx=False):
    """Root port, switch upstream port, and one port per slot below it. That of a
    Switchtec has its management function beside it, where that of a Draco is in
    the first slot.

    The slots are pcie-root-port and not xio3130-downstream: QEMU gives only
    the former a link of more than 2.5 GT/s, hence link-active reporting,
    without which Linux waits 1.1 s before it looks at an added device; and
    firmware sizes its windows by the reserve properties."""
    pref = max(SLOT_PREF, 2 * vram)
    argv = ["-device", f"pcie-root-port,id=rp{index},bus=pcie.0,hotplug=off,"
            f"chassis={index + 1},slot={ROOT_PORT_SLOT}",
            "-device", f"x3130-upstream,id=up{index},bus=rp{index}"
            + (",addr=0.0,multifunction=on" if pfx else "")]
    for slot in range(DRACO_SLOT + pfx, slots + 2):
        argv += ["-device", f"pcie-root-port,id={slot_id(index, slot)},"
                 f"bus=up{index},chassis={index + 1},slot={slot},x-speed=16,"
                 f"x-width=16,io-reserve=0,mem-reserve={SLOT_MMIO},"
                 f"pref64-reserve={pref}"]
    return argv


def slot_id(index, slot):
    """QEMU's name of a slot; draco-emu's device_add uses the same."""
    return f"p{index}.slot{slot}" if index else f"slot{slot}"


def draco(index, sock, dma=None):
    """The function of a partition's host port, behind draco-emu's socket;
    dma: that of a Switchtec's DMA engine, a function of its own."""
    one = {"driver": "vfio-user-pci", "id": f"draco{index}",
           "bus": f"rp{index}" if dma else slot_id(index, DRACO_SLOT),
           "socket": {"type": "unix", "path": sock}}
    if not dma:
        return [one]
    return [dict(one, addr="0.1"),
            dict(one, addr="0.2", id=f"dma{index}",
                 socket={"type": "unix", "path": dma})]


def qemu(spec):
    """QEMU's argv for a guest; spec is a Guest."""
    accel = accelerator()
    argv = ["qemu-system-x86_64", "-name", f"fabrex-{spec.name}",
            "-nodefaults", "-no-user-config", "-display", "none",
            "-machine", "q35,memory-backend=ram,smm=off,sata=off,smbus=off",
            "-accel", accel + spec.accel_options, "-cpu", cpu(spec, accel),
            # Where there can be no second processor, TCG does without what
            # makes locked instructions atomic, and barriers, for others. The
            # devices here are such others.
            "-smp", f"{spec.smp},maxcpus={max(spec.smp, 2)}",
            "-m", f"{spec.memory}M",
            "-object", "memory-backend-memfd,id=ram,share=on,"
            f"size={spec.memory}M",
            "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
            "-kernel", spec.kernel.vmlinuz, "-initrd", spec.image.initrd,
            "-append", CMDLINE.format(host=spec.name, tree=space.TREE)
            + f" {IOMMU[spec.iommu]} {spec.append}"]
    argv += iommu(spec.iommu)
    argv += disk("d0", spec.image.rootfs) + disk("d1", spec.image.extra)
    argv += tree()
    argv += ["-device", "virtio-serial-pci",
             "-chardev", f"socket,id=lab,path={spec.socket('lab')},"
             "server=on,wait=off",
             "-device", "virtserialport,chardev=lab,name=fabrex.lab",
             "-serial", f"file:{spec.console}"]
    for name in ("qmp", "qmp2"):
        argv += ["-qmp", f"unix:{spec.socket(name)},server=on,wait=off"]
    for index in range(max(1, len(spec.draco))):
        argv += partition(index, spec.slots, spec.vram, index in spec.dma)
    for index, sock in enumerate(spec.draco):
        for device in draco(index, sock, spec.dma.get(index)):
            argv += ["-device", json.dumps(device)]
    return argv + list(spec.devices)
