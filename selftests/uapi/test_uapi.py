# SPDX-License-Identifier: GPL-2.0-only
"""The character device's ABI on one host: 64-bit and 32-bit programs, device
node permissions, what users may and may not do."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import quota
import space
from scenario import scenario


@scenario(hosts=["a", "b", "c"])
def layout_and_ioctls(lab, t):
    """Layouts pinned; sizes, tails, flags, reserved fields, pointers."""
    a = lab.guest("a")
    for program in ("layout", "ioctls", "values", "files", "mmap"):
        t.program(a, f"uapi-{program}")


@scenario(hosts=["a", "b", "c"])
def same_for_32_bit(lab, t):
    """The same programs as 32-bit processes on the 64-bit kernel."""
    b = lab.guest("b")
    if b.run("zcat /proc/config.gz 2>/dev/null | grep -q "
             "'IA32_EMULATION is not set'").status == 0:
        t.skip("this kernel runs no 32-bit programs")
    for program in ("layout", "ioctls", "values", "files", "mmap"):
        t.program(b, f"uapi-{program}-32")


@scenario(hosts=["a", "b", "c"])
def quotas(lab, t):
    """RLIMIT_MEMLOCK and quotas, as a user of the device's group."""
    c = lab.guest("c")
    c.sh("modprobe -q udmabuf; chmod 666 /dev/udmabuf")
    with quota.changed(c, bytes=8 << 20):
        t.program(c, "uapi-quota", user="tester")


@scenario(hosts=["a", "b", "c"])
def device_node(lab, t):
    """The node belongs to a group; others are kept out."""
    a = lab.guest("a")
    mode = a.sh("stat -c '%a %U %G' /dev/fabrex0")
    t.equal(mode, "660 root fabrex", "mode and owner of the device node")
    t.equal(a.run("exec 3<>/dev/fabrex0", user="tester").status, 0,
            "a member of the group opens it")
    t.ok(a.run("exec 3<>/dev/fabrex0", user="outsider").status != 0,
         "somebody else does not")
    t.ok(not a.sh("find /dev /sys/class/fabrex/ -name 'fabrex*' -perm -o+w "
                  "! -type l"), "nothing of it is writable by everybody")


@scenario(hosts=["a", "b", "c"])
def sysfs(lab, t):
    """Every attribute can be read and none crashes on garbage."""
    a = lab.guest("a")
    names = a.sh("cd /sys/class/fabrex/fabrex0/ && find . -type f "
                 "-not -name uevent -not -path './power/*'").split()
    t.ok({"./usage/queues", "./usage/pinned_bytes", "./link"} <= set(names),
         "attributes are there", names)
    bad = a.sh("cd /sys/class/fabrex/fabrex0/ && for f in "
               + " ".join(names) + "; do cat $f >/dev/null || echo $f; done")
    t.ok(not bad, "all can be read", bad)
    bad = a.sh("cd /sys/class/fabrex/fabrex0/ && for f in " + " ".join(names)
               + "; do echo garbage >$f && echo $f; done 2>/dev/null; true")
    t.ok(not bad, "none takes garbage", bad)
    with open(os.path.join(space.TREE, "docs/abi/sysfs-class-fabrex")) as f:
        text = f.read()
    missing = [n for n in names if n.removeprefix("./") not in text]
    t.ok(not missing, "all are documented", missing)
