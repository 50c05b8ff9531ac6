# SPDX-License-Identifier: GPL-2.0-only
"""Kernels a guest can boot: Debian's 7.2 and 6.12, and the debug build.
Used by image.py (modules), guest.py (bzImage) and the module builds."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import root
import space
from cache import entry

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = "/usr/src/linux-source-7.2"
PATCHES = os.path.join(HERE, "patches")
RECIPE = 1
# Which root holds the stock kernel of a series.
STOCK = {"7.2": "demo", "6.12": "full"}


@dataclass
class Kernel:
    """One bootable kernel."""
    name: str		# as users say it: 7.2, 6.12, debug
    release: str	# uname -r
    vmlinuz: str
    modules: str	# the lib/modules/<release> directory
    build: str		# directory to build modules against, inside `layer`
    layer: str		# root the build directory needs


def kernel(name):
    """The kernel of that name, built or installed when missing."""
    if name == "debug":
        return debug()
    if name not in STOCK:
        known = ", ".join([*STOCK, "debug"])
        raise KeyError(f"no kernel named {name}; there are {known}")
    layer = STOCK[name]
    top = root.root(layer)
    release = root.kernels(top)[name]
    return Kernel(name, release, f"{top}/boot/vmlinuz-{release}",
                  f"{top}/lib/modules/{release}",
                  f"/lib/modules/{release}/build", layer)


def patches():
    """Text of the debug kernel's patches."""
    text = ""
    for name in sorted(os.listdir(PATCHES)):
        with open(os.path.join(PATCHES, name)) as f:
            text += f.read()
    return text


def debug_spec():
    """What names the debug kernel in the cache."""
    with open(os.path.join(HERE, "debug.config")) as f:
        config = f.read()
    return {"config": config, "recipe": RECIPE, "patches": patches(),
            "source": root.version("full", SOURCE.rpartition("/")[2])}


def debug():
    """The debug kernel, compiled once (about 15 minutes on two cores)."""
    path = entry("kernel-debug", debug_spec(), build_debug, resume=True)
    with open(path + "/build/include/config/kernel.release") as f:
        release = f.read().strip()
    return Kernel("debug", release, path + "/bzImage",
                  f"{path}/lib/modules/{release}", path + "/build", "full")


# The source in the root stays as it is: an overlay takes the patches.
PATCHED = r"""
set -e
src=$1; patches=$2; shift 2
mount -t tmpfs lab /mnt
mkdir /mnt/up /mnt/work
mount -t overlay -o "lowerdir=$src,upperdir=/mnt/up,workdir=/mnt/work" lab "$src"
cd "$src"
for p in "$patches"/*.patch; do git apply "$p"; done
cd /
exec "$@"
"""


def build_debug(tmp):
    """Configure and compile into tmp/build; keep what modules need of it."""
    top = root.root("full")
    out = tmp + "/build"
    os.makedirs(out, exist_ok=True)
    make = ["nice", "make", "-s", "-C", SOURCE, "O=" + out,
            f"-j{os.cpu_count()}", "KBUILD_BUILD_USER=lab",
            "KBUILD_BUILD_HOST=lab"]

    def run(*argv):
        space.run(top, ["sh", "-c", PATCHED, "build", SOURCE, PATCHES, *argv],
                  cwd="/", stdout=subprocess.DEVNULL)

    run(*make, "x86_64_defconfig", "kvm_guest.config")
    shutil.copy(os.path.join(HERE, "debug.config"), tmp + "/debug.config")
    run(SOURCE + "/scripts/kconfig/merge_config.sh", "-m", "-O", out,
        out + "/.config", tmp + "/debug.config")
    run(*make, "olddefconfig")
    check_config(tmp + "/debug.config", out + "/.config")
    run(*make, "bzImage", "modules")
    run(*make, "modules_install", "INSTALL_MOD_PATH=" + tmp)
    shutil.copy(out + "/arch/x86/boot/bzImage", tmp + "/bzImage")
    strip_build(out)
    make_movable(tmp)


MOVABLE = f"""\
# Where this file is, so that the directory can be renamed.
export KBUILD_OUTPUT := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))
include {SOURCE}/Makefile
"""


def make_movable(tmp):
    """kbuild noted the name that the cache gives to what is not finished."""
    with open(tmp + "/build/Makefile", "w") as f:
        f.write(MOVABLE)
    for release in os.listdir(tmp + "/lib/modules"):
        link = f"{tmp}/lib/modules/{release}/build"
        os.unlink(link)
        os.symlink("../../../build", link)


def check_config(wanted, got):
    """Refuse a kernel that lacks what debug.config asks for."""
    with open(got) as f:
        lines = set(f.read().splitlines())
    with open(wanted) as f:
        want = [l.strip() for l in f if re.match(r"CONFIG_\w+=", l)]
    missing = [w for w in want if w not in lines]
    if missing:
        raise RuntimeError("debug.config asks for what this kernel's Kconfig "
                           "does not give: " + " ".join(missing))


def strip_build(out):
    """Drop object files; headers, scripts and symbol versions stay."""
    keep = (out + "/scripts", out + "/tools")
    for base, dirs, names in os.walk(out):
        if base.startswith(keep):
            continue
        for name in names:
            if name.endswith((".o", ".a", ".cmd", ".ko", ".mod.c")) \
                    or name.startswith(("vmlinux", "bzImage", ".tmp_")):
                os.unlink(os.path.join(base, name))
