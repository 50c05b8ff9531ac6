# SPDX-License-Identifier: GPL-2.0-only
"""What a guest boots from: an initramfs with guestd and two EROFS images,
one of the root and one of kernel modules and lab files. Used by guest.py."""

import glob
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass

import root
import space
from cache import entry

HERE = os.path.dirname(os.path.abspath(__file__))
RECIPE = 2

# Of the root: compilers, emulators and package data stay outside the guest.
EXCLUDE = """
    boot usr/src usr/lib/modules usr/lib/gcc usr/lib/llvm-[0-9]* usr/libexec/gcc
    usr/lib/firmware usr/share/qemu usr/share/doc usr/share/locale
    usr/bin/qemu-[^/]* usr/bin/[^/]*-gcc[^/]* usr/bin/gdb usr/include
    usr/lib/x86_64-linux-gnu/lib(LLVM[.]|clang|lto|bfd)[^/]*
    usr/lib/x86_64-linux-gnu/(qemu|gconv|lib[^/]*[.]a)
    var/lib/apt var/cache var/lib/dpkg usr/share/zoneinfo usr/share/icons
    usr/lib/udev/hwdb.* usr/lib/systemd/system usr/share/valgrind
    usr/lib/python3/dist-packages/mesonbuild
    tmp/[^/]* work root/[^/]* home/[^/]* etc/(lab-rc|passwd|group|shadow)
""".split()

# Modules, whole directories of them or single ones, that a guest may need
# beside what it boots from.
MODULES = """
    kernel/fs/erofs kernel/fs/overlayfs kernel/fs/9p kernel/fs/netfs
    kernel/fs/fuse kernel/fs/configfs kernel/net/9p kernel/net/vmw_vsock
    kernel/drivers/block kernel/drivers/nvme kernel/drivers/vfio
    kernel/drivers/iommu kernel/drivers/dma-buf kernel/drivers/dma
    kernel/drivers/virtio kernel/drivers/uio kernel/drivers/pci
    kernel/drivers/char/hw_random kernel/drivers/misc kernel/drivers/base
    kernel/drivers/ntb kernel/lib kernel/crypto kernel/arch kernel/mm
    kernel/virt kernel/security kernel/drivers/watchdog
    kernel/drivers/net/virtio_net.ko* kernel/drivers/net/net_failover.ko*
    kernel/net/core/failover.ko* kernel/net/ipv4/udp_tunnel.ko*
    kernel/net/ipv6/ip6_udp_tunnel.ko* kernel/drivers/infiniband/core
    kernel/drivers/infiniband/sw/rxe
""".split()

BOOT_MODULES = ["virtio_blk", "erofs", "overlay", "9p", "9pnet_virtio"]

# Unprivileged users for the tests; group fabrex as the udev rule names it.
USERS = """tester:x:1000:1000::/tmp:/bin/bash
tester2:x:1001:1001::/tmp:/bin/bash
outsider:x:1002:1002::/tmp:/bin/bash
"""
GROUPS = """fabrex:x:990:tester,tester2
tester:x:1000:
tester2:x:1001:
outsider:x:1002:
"""

RC = """#!/bin/sh
# Run by guestd before it serves the lab.
umask 022
for word in $(cat /proc/cmdline); do
	case $word in
	lab.host=*) host=${word#lab.host=} ;;
	lab.net=*) net=${word#lab.net=} ;;
	lab.mtu=*) mtu=${word#lab.mtu=} ;;
	esac
done
hostname "$host"
ip link set lo up
# network.py: a wire to each other host, known by its MAC address.
if [ -n "$net" ]; then
	modprobe -q virtio_net
	own=,$net
	own=${own##*,"$host="}
	own=${own%%,*}
	IFS=,
	for peer in $net; do
		name=${peer%=*}
		address=${peer#*=}
		echo "$address $name" >>/etc/hosts
		mac=$(printf '52:54:00:4d:%02x:%02x' "${own##*.}" "${address##*.}")
		dev=$(grep -lx "$mac" /sys/class/net/*/address) || continue
		dev=${dev%/address}
		ip link set "${dev##*/}" name "to-$name"
		ip address add "$own/32" dev "to-$name"
		ip link set "to-$name" mtu "$mtu" up
		ip route add "$address" dev "to-$name" src "$own"
	done
	unset IFS
fi
echo 1 >/proc/sys/kernel/printk_ratelimit
udevd=/usr/lib/systemd/systemd-udevd
[ -x $udevd ] || exit 0
$udevd --daemon --resolve-names=early --children-max=4
"""

# The rules that matter to a fabric: permissions, and drivers by alias.
RULES = ["50-udev-default.rules", "80-drivers.rules"]


@dataclass
class Image:
    """Files QEMU is given."""
    initrd: str
    rootfs: str
    extra: str


def image(kern, layer):
    """The image for a kernel and a root layer, built when missing."""
    rootfs = entry("rootfs-" + layer, rootfs_spec(layer),
                   lambda tmp: make_rootfs(layer, tmp))
    path = entry("guest-" + kern.name, guest_spec(kern, layer),
                 lambda tmp: make_guest(kern, layer, tmp))
    return Image(path + "/initrd", rootfs, path + "/extra.erofs")


def rootfs_spec(layer):
    return {"root": root.spec(layer), "exclude": EXCLUDE}


def guest_spec(kern, layer):
    return {"recipe": RECIPE, "release": kern.release, "modules": MODULES,
            "boot": BOOT_MODULES, "kernel": kern.modules, "layer": layer,
            "guestd": source_digest(), "files": [USERS, GROUPS, RC, RULES]}


def source_digest():
    """guestd is small: any change of its sources makes a new image."""
    total = hashlib.sha256()
    top = os.path.join(HERE, "guestd")
    for name in sorted(os.listdir(top)):
        with open(os.path.join(top, name), "rb") as f:
            total.update(name.encode() + f.read())
    return total.hexdigest()


def make_rootfs(layer, tmp):
    """One EROFS image of a root, uncompressed: TCG has no cycles to spare."""
    argv = ["mkfs.erofs", "--quiet", "-T0"]
    argv += [f"--exclude-regex=^{e}$" for e in EXCLUDE]
    top = root.root(layer)
    # Seen from outside the root, so that the lab's own mounts are not in it.
    inner = f"/tmp/.lab-rootfs-{os.getpid()}"
    os.makedirs(inner, exist_ok=True)
    try:
        script = 'mount --bind "$1" "$2"; shift 2; exec "$@"'
        cmd = space.command(top, argv + [tmp, inner], cwd="/")
        subprocess.run(space.unshare() + ["sh", "-ec", script, "sh", top,
                                          inner] + cmd[len(space.unshare()):], check=True)
    finally:
        os.rmdir(inner)


def make_guest(kern, layer, tmp):
    """The initramfs and the small image above the root's."""
    os.makedirs(tmp)
    extra = tmp + "/extra"
    copy_modules(kern, extra)
    copy_files(layer, extra)
    base = f"{extra}/usr/lib/modules/{kern.release}"
    space.run(root.root("demo"), ["depmod", "-b", extra, "-m",
                                  "/usr/lib/modules", kern.release], cwd="/")
    make_initrd(kern, base, tmp)
    space.run(root.root("demo"), ["mkfs.erofs", "--quiet", "-T0",
                                  "--all-root", tmp + "/extra.erofs", extra])
    shutil.rmtree(extra)


def copy_modules(kern, extra):
    """The wanted part of lib/modules, decompressed once here."""
    base = f"{extra}/usr/lib/modules/{kern.release}"
    os.makedirs(base)
    for name in os.listdir(kern.modules):
        if name.startswith("modules."):
            shutil.copy(f"{kern.modules}/{name}", base)
    for path in [p for part in MODULES
                 for p in glob.glob(f"{kern.modules}/{part}")]:
        target = base + path.removeprefix(kern.modules)
        if os.path.isdir(path):
            shutil.copytree(path, target, dirs_exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(path, target)
    packed = [os.path.join(d, n) for d, _, names in os.walk(base)
              for n in names if n.endswith(".ko.xz")]
    for at in range(0, len(packed), 200):
        subprocess.run(["xz", "-d", "-T0"] + packed[at:at + 200], check=True)


def copy_files(layer, extra):
    """Users, groups, start script and the few udev rules wanted."""
    top = root.root(layer)
    os.makedirs(extra + "/etc")
    for name, more in (("passwd", USERS), ("group", GROUPS)):
        with open(f"{top}/etc/{name}") as f:
            text = f.read() + more
        write(f"{extra}/etc/{name}", text)
    write(extra + "/etc/lab-rc", RC)
    rules = "/usr/lib/udev/rules.d"
    os.makedirs(extra + rules)
    for name in os.listdir(top + rules):
        if name not in RULES:
            os.makedirs(extra + "/etc/udev/rules.d", exist_ok=True)
            os.symlink("/dev/null", f"{extra}/etc/udev/rules.d/{name}")


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def boot_modules(kern, base):
    """Paths of BOOT_MODULES and what they need, in load order."""
    out = []
    for name in BOOT_MODULES:
        res = space.run(root.root("demo"),
                        ["modprobe", "-d", base.split("/usr/")[0] + "/usr",
                         "-S", kern.release, "--show-depends", name],
                        cwd="/", stdout=subprocess.PIPE, text=True)
        for line in res.stdout.splitlines():
            word = line.split()
            if word[0] == "insmod" and word[1] not in out:
                out.append(word[1])
    return out


def make_initrd(kern, base, tmp):
    """guestd as /init with the modules that reach the images."""
    tree = tmp + "/initrd.d"
    os.makedirs(tree + "/newroot")
    for name in ("proc", "sys", "dev", "image", "over", "extra"):
        os.mkdir(f"{tree}/{name}")
    names = []
    for path in boot_modules(kern, base):
        shutil.copy(path, tree)
        names.append("/" + os.path.basename(path))
    write(tree + "/modules", "".join(n + "\n" for n in names))
    src = [os.path.join(HERE, "guestd", n)
           for n in sorted(os.listdir(os.path.join(HERE, "guestd")))
           if n.endswith(".c")]
    demo = root.root("demo")
    space.run(demo, ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static",
                     "-o", tree + "/init"] + src)
    space.run(demo, ["sh", "-c", "find . | cpio --quiet -o -H newc -R 0:0 "
                     f">{tmp}/initrd"], cwd=tree)
    shutil.rmtree(tree)
