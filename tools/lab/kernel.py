# SPDX-License-Identifier: GPL-2.0-only
"""Kernels a guest can boot: Debian's 7.2 and 6.12, and those compiled here to
find bugs. Used by image.py (modules), guest.py (bzImage), the module builds."""

import glob
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
RECIPE = 2
# Which root holds the stock kernel of a series.
STOCK = {"7.2": "demo", "6.12": "full"}
# Kernels compiled here: fragments above the defconfig, the later one wins.
MADE = {"debug": ("kernel.config", "debug.config"),
        "kcsan": ("kernel.config", "kcsan.config")}


@dataclass
class Kernel:
    """One bootable kernel."""
    name: str		# as users say it: 7.2, 6.12, debug, kcsan
    release: str	# uname -r
    vmlinuz: str
    modules: str	# the lib/modules/<release> directory
    build: str		# directory to build modules against, inside `layer`
    layer: str		# root the build directory needs


def kernel(name):
    """The kernel of that name, built or installed when missing."""
    if name in MADE:
        return made(name)
    if name not in STOCK:
        known = ", ".join([*STOCK, *MADE])
        raise KeyError(f"no kernel named {name}; there are {known}")
    layer = STOCK[name]
    top = root.root(layer)
    release = root.kernels(top)[name]
    return Kernel(name, release, f"{top}/boot/vmlinuz-{release}",
                  f"{top}/lib/modules/{release}",
                  f"/lib/modules/{release}/build", layer)


def read(path):
    with open(path) as f:
        return f.read()


def patches(name):
    """Paths of a kernel's patches: those of all, then its own."""
    return sorted(glob.glob(PATCHES + "/*.patch")) \
        + sorted(glob.glob(f"{PATCHES}/{name}/*.patch"))


def spec(name):
    """What names a kernel made here in the cache."""
    return {"config": [read(os.path.join(HERE, f)) for f in MADE[name]],
            "recipe": RECIPE, "patches": [read(p) for p in patches(name)],
            "source": root.version("full", SOURCE.rpartition("/")[2])}


def made(name):
    """A kernel compiled once (10 to 15 minutes on two cores)."""
    path = entry("kernel-" + name, spec(name),
                 lambda tmp: build(name, tmp), resume=True)
    release = read(path + "/build/include/config/kernel.release").strip()
    return Kernel(name, release, path + "/bzImage",
                  f"{path}/lib/modules/{release}", path + "/build", "full")


# The source in the root stays as it is: an overlay takes the patches.
PATCHED = r"""
set -e
src=$1; shift
mount -t tmpfs lab /mnt
mkdir /mnt/up /mnt/work
mount -t overlay -o "lowerdir=$src,upperdir=/mnt/up,workdir=/mnt/work" lab "$src"
cd "$src"
while [ "$1" != -- ]; do
	git apply "$1"
	shift
done
shift
cd /
exec "$@"
"""


def build(name, tmp):
    """Configure and compile into tmp/build; keep what modules need of it."""
    top = root.root("full")
    out = tmp + "/build"
    make = ["nice", "make", "-s", "-C", SOURCE, "O=" + out,
            f"-j{os.cpu_count()}", "KBUILD_BUILD_USER=lab",
            "KBUILD_BUILD_HOST=lab"]

    def run(*argv):
        space.run(top, ["sh", "-c", PATCHED, "build", SOURCE, *patches(name),
                        "--", *argv], cwd="/", stdout=subprocess.DEVNULL)

    configure(name, out, make, run)
    run(*make, "bzImage", "modules")
    run(*make, "modules_install", "INSTALL_MOD_PATH=" + tmp)
    shutil.copy(out + "/arch/x86/boot/bzImage", tmp + "/bzImage")
    strip_build(out)
    make_movable(tmp)


def configure(name, out, make, run):
    """A .config that has what the kernel's fragments ask for."""
    os.makedirs(out, exist_ok=True)
    texts = [read(os.path.join(HERE, f)) for f in MADE[name]]
    fragment = out + "/../fragments.config"
    with open(fragment, "w") as f:
        f.write("".join(texts))
    run(*make, "x86_64_defconfig", "kvm_guest.config")
    run(SOURCE + "/scripts/kconfig/merge_config.sh", "-m", "-O", out,
        out + "/.config", fragment)
    run(*make, "olddefconfig")
    check_config(name, texts, read(out + "/.config"))


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


SETTING = re.compile(r"^(?:# )?(CONFIG_\w+)(?:=.*| is not set)$", re.M)


def check_config(name, texts, got):
    """Refuse a kernel that lacks what its fragments ask for."""
    want = {}
    for text in texts:
        want.update({m.group(1): m.group(0) for m in SETTING.finditer(text)})
    have = set(got.splitlines())
    missing = [w for w in want.values()
               if w not in have and not w.endswith("is not set")]
    if missing:
        raise RuntimeError(f"the {name} kernel's fragments ask for what its "
                           "Kconfig does not give: " + " ".join(missing))


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
