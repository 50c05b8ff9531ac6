# SPDX-License-Identifier: GPL-2.0-only
"""Building the kernel modules for a kernel, in the root that has its headers.
Used by the lab's modules and kbuild-check verbs; output in build/kmod/."""

import fcntl
import filecmp
import os
import re
import shutil
import subprocess

import kernel
import root
import space

SOURCES = ("Kbuild", "driver", "include", "selftests/gpu/dgpu.h",
           "selftests/gpu/module", "selftests/checkers/module")
BUILD = os.path.join(space.TREE, "build")
# The 7.2 headers lack the script that judges sparse, hence KBUILD_CHECKSRC, and
# Debian's sparse has no __typeof_unqual__.
WARN = ["W=1"]
SPARSE = ["C=2", "KBUILD_CHECKSRC=2", "CF=-D__typeof_unqual__=__typeof__"]
# What Linux' ntb.ko exports, of which a kernel without CONFIG_NTB knows nothing.
NTB_SYMBOLS = ("__ntb_register_client", "ntb_unregister_client", "ntb_set_ctx",
               "ntb_clear_ctx", "ntb_default_port_number",
               "ntb_default_peer_port_count", "ntb_default_peer_port_number",
               "ntb_default_peer_port_idx")
# Tracepoints are made in one file for all others, whatever their layer.
TRACEPOINTS = r"__(tracepoint|traceiter|SC[KT]_+tp_func)_.*"
# Kernel series the driver promises, and the root with its headers.
HEADERS = {"6.1": "bookworm", "6.12": "full", "7.2": "full"}


class KmodError(RuntimeError):
    """The modules do not build, or not without warnings."""


def headers(name):
    """(release, build directory, layer) to build against for a kernel."""
    if name in kernel.STOCK or name in kernel.MADE:
        kern = kernel.kernel(name)
        return kern.release, kern.build, kern.layer
    layer = HEADERS[name]
    release = root.kernels(root.root(layer))[name]
    return release, f"/lib/modules/{release}/build", layer


def out_dir(release, kind="kmod"):
    return os.path.join(BUILD, kind, release)


def sync(dest):
    """Mirror the driver's sources to dest: kernels before 6.13 put objects
    beside sources, and no object belongs in the tree."""
    wanted = set()
    for top in SOURCES:
        base = os.path.join(space.TREE, top)
        files = [base] if os.path.isfile(base) else [
            os.path.join(d, n) for d, _, names in os.walk(base) for n in names]
        for path in files:
            name = os.path.relpath(path, space.TREE)
            wanted.add(name)
            copy_changed(path, os.path.join(dest, name))
    for base, _, names in os.walk(dest):
        for name in names:
            path = os.path.join(base, name)
            source = name.endswith((".c", ".h")) and \
                not name.endswith(".mod.c") or name == "Kbuild"
            if source and os.path.relpath(path, dest) not in wanted:
                os.unlink(path)


def copy_changed(src, dst):
    """Copy what differs, with the time of now: an object that was compiled
    while the source was being edited must look older than the copy."""
    os.makedirs(os.path.dirname(dst), exist_ok=True)
    if not os.path.exists(dst) or not filecmp.cmp(src, dst, shallow=False):
        shutil.copyfile(src, dst)


def build(name, check=False, layer=None, sparse=True):
    """Build for kernel `name`; the directory with the .ko files.

    check: W=1 and, but for sparse=False, sparse (C=2) on everything; any warning
    is an error."""
    release, headers_dir, need = headers(name)
    layer = layer or need
    if check and layer == "demo":
        layer = "full"
    dest = out_dir(release, "kbuild-check" if check else "kmod")
    if not os.path.exists(os.path.join(space.TREE, "Kbuild")):
        raise KmodError("no Kbuild file at the top of the tree")
    os.makedirs(dest, exist_ok=True)
    with open(dest + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(dest, headers_dir, layer, release, check, sparse)
    return dest


def make(dest, headers_dir, layer, release, check, sparse):
    """The build itself, one at a time in a directory."""
    sync(dest)
    symbols = os.path.join(dest, "ntb.symvers")
    with open(symbols, "w") as f:
        f.writelines(f"0x00000000\t{name}\tdrivers/ntb/ntb\tEXPORT_SYMBOL\t\n"
                     for name in NTB_SYMBOLS)
    argv = ["make", "-C", headers_dir, "M=" + dest, f"-j{os.cpu_count()}",
            "FABREX_SELFTESTS=1", "FABREX_NTB=1",
            "KBUILD_EXTRA_SYMBOLS=" + symbols]
    if check:
        space.run(root.root(layer), argv + ["clean"], check=False,
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        argv += WARN + (SPARSE if sparse else [])
    res = space.run(root.root(layer), argv + ["modules"], check=False,
                    text=True, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT)
    if res.returncode:
        raise KmodError(f"modules for {release} do not build:\n{res.stdout}")
    bad = [l for l in res.stdout.splitlines()
           if re.search(r"\b(warning|error):", l) and not theirs(l, dest)]
    if bad and check:
        raise KmodError(f"modules for {release} build with warnings:\n"
                        + "\n".join(bad))
    if bad:
        print("\n".join(bad))
    if check and sparse:
        all_checked(res.stdout, release)
    circles(os.path.join(dest, "driver"), layer)


def circles(driver, layer):
    """No file of a module depends on one above it, by what was compiled."""
    for module in ("core", "draco", "engine", "ntb"):
        strata = os.path.join(driver, module, "strata")
        res = space.run(root.root("full" if layer == "bookworm" else layer),
                        [os.path.join(space.TREE, "tools/check/circles"),
                         "--strata", strata, "--ignore", TRACEPOINTS,
                         driver, driver, module], check=False, text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if res.returncode:
            raise KmodError(res.stdout)


def all_checked(text, release):
    """Kbuild goes on without sparse when it does not like it; we do not."""
    made = len(re.findall(r"^\s+CC \[M\]\s+(?!.*(?:\.mod|-common)\.o$)", text,
                          re.M))
    seen = len(re.findall(r"^\s+CHECK\s", text, re.M))
    if not made or seen < made:
        raise KmodError(f"sparse saw {seen} of {made} files of the modules "
                        f"for {release}:\n{text}")


def theirs(line, dest):
    """Complaints about the kernel's own headers, and what sparse 0.6.4 cannot
    fold in the static assertions of 7.x's MODULE_*() macros."""
    if re.search(r"/usr/src/linux-|^\.\./|Skipping BTF|"
                 r"the compiler differs from", line):
        return True
    m = re.match(r"(\S+?):(\d+):\d+: error: bad constant expression", line)
    if not m:
        return False
    with open(os.path.join(dest, m.group(1))) as f:
        source = f.readlines()[int(m.group(2)) - 1]
    return re.match(r"\s*(MODULE_\w+|module_param\w*|\w+_IMPORT_NS)\b",
                    source) is not None


def modules(release):
    """{module name: path} of what was built for a release."""
    found = {}
    for base, _, names in os.walk(out_dir(release)):
        for name in names:
            if name.endswith(".ko"):
                found[name[:-3]] = os.path.join(base, name)
    return found
