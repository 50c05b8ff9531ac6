# SPDX-License-Identifier: GPL-2.0-only
"""dma-bufs of system memory: ABI, transfers, what stays behind. And the watch
page, which tells caches that memory is not what it was."""

from scenario import scenario


def attached(guest):
    """How many devices bufinfo names."""
    guest.run("mountpoint -q /sys/kernel/debug || "
              "mount -t debugfs none /sys/kernel/debug")
    return guest.run("grep -A3 -i 'attached devices' "
                     "/sys/kernel/debug/dma_buf/bufinfo | "
                     "grep -c '[0-9a-f]:[0-9a-f]'").stdout.strip()


def run(lab, t, program, suffix=""):
    a = lab.guest("a")
    refs = a.sh("cat /sys/module/fabrex/refcnt")
    t.program(a, program + suffix, timeout=600)
    t.equal(attached(a), "0", "no device is attached to any dma-buf")
    t.equal(a.sh("cat /sys/module/fabrex/refcnt"), refs,
            "references to fabrex.ko")
    t.equal(a.sh("cat /sys/class/fabrex/fabrex0/usage/dmabuf_bytes"), "0",
            "bytes of dma-bufs")


@scenario(hosts=["a", "b", "c"], kernels=("7.2", "6.12", "debug"))
def udmabuf(lab, t):
    """Registered, written, read, refused, shared, killed; nothing stays."""
    lab.guest("a").allow_log("dma-buf of .*: cannot")
    # What the debug kernel says of a page that is mapped eight times.
    lab.guest("a").allow_log("exceeded 7 overlapping mappings of cacheline")
    run(lab, t, "gpu-udmabuf")


@scenario(hosts=["a", "b", "c"])
def udmabuf_32_bit(lab, t):
    """The same as a 32-bit process."""
    lab.guest("a").allow_log("dma-buf of .*: cannot")
    run(lab, t, "gpu-udmabuf", "-32")


@scenario(hosts=["a", "b", "c"], kernels=("7.2", "6.12", "debug"))
def watch_page(lab, t):
    """munmap, mremap, madvise, mprotect, exec and exit count; fork does not."""
    run(lab, t, "uapi-watch")
    run(lab, t, "uapi-watch", "-32")
