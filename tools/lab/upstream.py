# SPDX-License-Identifier: GPL-2.0-only
"""Modules of Linux itself that Debian does not build: Switchtec switches, NTBs,
their clients and the DMA tests. Compiled without a change from Debian's source
package against the headers of a 7.2 kernel; guests get them instead of ours.
Used by lab.py and by the tests of other switches."""

import os
import shutil

import kernel
import root
import space
from cache import entry

RECIPE = 1
# Where a guest has them: modprobe -d WHERE NAME.
WHERE = "/run/upstream"

# A module's sources, below drivers/; after those of which it needs symbols.
MODULES = {
    "ntb": ["ntb/core.c", "ntb/msi.c"],
    "ntb_transport": ["ntb/ntb_transport.c"],
    "switchtec": ["pci/switch/switchtec.c"],
    "ntb_hw_switchtec": ["ntb/hw/mscc/ntb_hw_switchtec.c"],
    "ntb_hw_epf": ["ntb/hw/epf/ntb_hw_epf.c"],
    "ntb_perf": ["ntb/test/ntb_perf.c"],
    "ntb_tool": ["ntb/test/ntb_tool.c"],
    "ntb_pingpong": ["ntb/test/ntb_pingpong.c"],
    "ntb_netdev": ["net/ntb_netdev.c"],
    "switchtec_dma": ["dma/switchtec_dma.c"],
    "dmatest": ["dma/dmatest.c"],
}
# What they include that is not below include/.
HEADERS = ["dma/dmaengine.h"]
# The kernel's headers ask these; Debian's configuration does not have them.
OPTIONS = ["CONFIG_NTB", "CONFIG_NTB_MSI"]


def spec(kern):
    """What names them in the cache. A kernel made here can be another one with the
    same release."""
    made = kernel.spec(kern.name) if kern.name in kernel.MADE else None
    return {"recipe": RECIPE, "modules": MODULES, "headers": HEADERS,
            "options": OPTIONS, "release": kern.release,
            "source": root.version("full", os.path.basename(kernel.SOURCE)),
            **({"kernel": made} if made else {})}


def archive(kern):
    """Path of a tar file with lib/modules/RELEASE, built when missing."""
    return entry("upstream-" + kern.name, spec(kern),
                 lambda tmp: build(kern, tmp))


def kbuild():
    """The Kbuild file that makes them of the copied sources."""
    text = "ccflags-y := " + " ".join(f"-D{o}=1" for o in OPTIONS) + "\n"
    for name, sources in MODULES.items():
        objects = [s.removesuffix(".c") + ".o" for s in sources]
        text += f"obj-m += {name}.o\n"
        # A module of one file of its name would depend on itself.
        if objects != [name + ".o"]:
            text += f"{name}-y := {' '.join(objects)}\n"
    return text


def copy_sources(top, work):
    """The files as they are in the package; nothing else of it is needed."""
    for path in HEADERS + [s for names in MODULES.values() for s in names]:
        target = os.path.join(work, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(f"{top}{kernel.SOURCE}/drivers/{path}", target)
    with open(work + "/Kbuild", "w") as f:
        f.write(kbuild())


def build(kern, tmp):
    """Compile into the tar file tmp."""
    top = root.root("full")
    if kern.name in kernel.STOCK and \
            kern.release not in root.kernels(top).values():
        raise RuntimeError(f"root full has no headers of {kern.release}, the "
                           "kernel that guests boot; run tools/lab/lab root "
                           "--refresh full")
    work = tmp + ".work"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    base = work + ".root"
    shutil.rmtree(base, ignore_errors=True)
    try:
        copy_sources(top, work)
        space.run(top, ["make", "-s", "-C", kern.build, "M=" + work,
                        f"-j{os.cpu_count()}", "modules"])
        pack(top, work, base, kern, tmp)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(base, ignore_errors=True)


def pack(top, work, base, kern, tmp):
    """What modprobe -d wants: modules, and what depends on which. A module that
    is built into the kernel is known to be there."""
    where = f"{base}/lib/modules/{kern.release}"
    os.makedirs(where)
    for name in MODULES:
        shutil.copy(f"{work}/{name}.ko", where)
    for name in ("modules.builtin", "modules.builtin.modinfo",
                 "modules.order"):
        if os.path.exists(f"{kern.modules}/{name}"):
            shutil.copy(f"{kern.modules}/{name}", where)
    space.run(top, ["sh", "-ec", 'strip -g "$1"/*.ko; depmod -b "$2" "$3"; '
                    'tar -C "$2" -cf "$4" lib', "pack", where, base,
                    kern.release, tmp], cwd="/")


def install(guests):
    """Put them into guests, as often as these boot."""
    for guest in guests:
        guest.put(archive(guest.kernel), WHERE + ".tar")
        guest.sh(f"mkdir -p {WHERE} && tar -C {WHERE} -xf {WHERE}.tar && "
                 f"rm {WHERE}.tar")


def load(guest, *names):
    """Load modules by name, with parameters if it has any: "ntb_tool",
    "dmatest timeout=2000"."""
    for name in names:
        guest.sh(f"modprobe -d {WHERE} {name}")


def unload(guest, *names):
    """Unload modules; ones that are not loaded are no error. What a process that has
    just been killed has open, it still has for a moment."""
    for name in names:
        guest.sh(f"grep -q '^{name.replace('-', '_')} ' /proc/modules || exit 0;"
                 "for i in $(seq 400); do "
                 f"rmmod {name} 2>/dev/null && exit 0; sleep 0.05; done; "
                 f"rmmod {name}", timeout=60)
