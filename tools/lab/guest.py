# SPDX-License-Identifier: GPL-2.0-only
"""One guest: its QEMU, its kernel log, commands and files in it.
Made by Lab; the methods without underscore are for tests."""

import os
import re
import shlex
import time

import klog
import machine
from agent import Agent, GuestGone
from command import Command
from process import Child, patience, wait_until
from qmp import Qmp


class BootFailed(RuntimeError):
    """A guest did not come up; the message has the end of its console."""


# A fabric port's node is made anew when its port is, and belongs to root until
# udev has come to it, which takes a while on a busy machine.
AS_USER = r"""
for node in /dev/fabrex[0-9]*; do
	for try in $(seq 500); do
		[ "$(stat -c %G "$node" 2>&1)" = root ] || break
		sleep 0.02
	done
done
user=$1
shift
exec setpriv --reuid "$user" --regid "$user" --init-groups -- "$@"
"""


class Guest:
    """A host of the fabric. Options: smp, memory (MiB), slots, append
    (kernel command line), devices (more QEMU arguments), draco (sockets,
    one per host port), dma (those of their DMA engines, by number), cpu
    (QEMU's -cpu; machine.AMD_CPU), iommu (None, "pt" for an identity map, "on"
    for a translating one, "remap" for one that also remaps interrupts) and vram
    (bytes, the largest memory BAR that fits into a slot)."""

    def __init__(self, name, run_dir, root, kernel, image, **options):
        if options.get("iommu") not in machine.IOMMU:
            raise ValueError(f"{name}: iommu={options['iommu']!r}; "
                             "None, \"pt\", \"on\" or \"remap\"")
        self.name = name
        self.run_dir = run_dir
        self.root = root
        self.kernel = kernel
        self.image = image
        self.patience = patience(kernel.name)
        # Races need processors that run at the same time.
        self.smp = options.get("smp", 2 if kernel.name == "kcsan" else 1)
        # Shadow and quarantine of KASAN, and page tables for both.
        self.memory = options.get("memory", 1024) \
            * (2 if kernel.name == "debug" else 1)
        self.slots = options.get("slots", 16)
        self.append = options.get("append", "")
        self.devices = options.get("devices", ())
        self.draco = options.get("draco", ())
        self.dma = options.get("dma", {})
        self.cpu = options.get("cpu")
        self.iommu = options.get("iommu")
        self.vram = options.get("vram", 0)
        self.accel_options = options.get("accel_options", "")
        self.console = self.socket("console")
        self.child = None
        self.agent = None
        self.qmp = None
        self.boots = 0
        self.allowed = []
        self.marks = 0
        self.mark_line = ""
        self.marked = {}

    def socket(self, kind):
        return os.path.join(self.run_dir, f"{self.name}.{kind}")

    # Life

    def start(self):
        """Start QEMU; wait_boot() waits for the guest."""
        for kind in ("lab", "qmp", "qmp2"):
            if os.path.exists(self.socket(kind)):
                os.unlink(self.socket(kind))
        self.child = Child(self.root, machine.qemu(self),
                           self.socket("qemu.log"))
        self.boots = 1

        def connected():
            if not self.child.alive():
                raise BootFailed(f"{self.name}: QEMU ended with status "
                                 f"{self.child.popen.returncode}:\n"
                                 + self.child.tail())
            # The last of QEMU's sockets; it can be there and not listen yet.
            try:
                self.qmp = Qmp(self.socket("qmp2"))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            return True

        if not wait_until(connected, 30 * self.patience):
            raise BootFailed(f"{self.name}: QEMU made no QMP socket")
        self.agent = Agent(self.socket("lab"))

    def wait_boot(self, timeout=60):
        """Wait until the guest takes commands."""
        timeout *= self.patience
        if not self.agent.wait_hello(self.boots, timeout):
            raise BootFailed(f"{self.name}: no sign of life after {timeout} s;"
                             f" console:\n{self.console_tail()}\n"
                             + self.child.tail())
        return self

    def alive(self):
        return self.child is not None and self.child.alive()

    def kill(self):
        """SIGKILL for QEMU: the host loses power."""
        if self.child:
            self.child.kill()
        self._disconnect()

    def stop(self):
        """End QEMU without a word to the guest; see Lab.close()."""
        self.kill()

    def reboot(self, timeout=60, hard=False):
        """Reset the machine (hard) or ask the kernel to, as reboot -f would,
        with the selftests' program for that; waits for boot."""
        self.keep_dmesg()
        self.boots += 1
        if hard:
            self.qmp.command("system_reset")
        else:
            self.start_command("unplug-restart")
        return self.wait_boot(timeout)

    def kexec(self, timeout=60):
        """Have the kernel start another one, the same, which waits for boot.
        No firmware runs and no device is reset in between."""
        self.put(self.kernel.vmlinuz, "/run/vmlinuz", timeout=timeout)
        self.put(self.image.initrd, "/run/initrd", timeout=timeout)
        self.keep_dmesg()
        self.boots += 1
        self.start_command("unplug-restart /run/vmlinuz /run/initrd")
        return self.wait_boot(timeout)

    def restart(self, timeout=60):
        """Start QEMU again after kill()."""
        if self.alive():
            self.kill()
        self.start()
        return self.wait_boot(timeout)

    def _disconnect(self):
        for end in (self.agent, self.qmp):
            if end:
                end.close()
        self.agent = None
        self.qmp = None

    # Commands

    def start_command(self, cmd, user=None, cwd=None, env=None, **kw):
        """Start a shell command (or argv list) without waiting: a Command."""
        argv = ["/bin/bash", "-c", cmd] if isinstance(cmd, str) else list(cmd)
        words = [f"{k}={v}" for k, v in (env or {}).items()]
        if words or cwd:
            argv = ["env"] + (["-C", cwd] if cwd else []) + words + argv
        if user:
            argv = ["/bin/sh", "-c", AS_USER, "sh", user] + argv
        if not self.agent:
            raise GuestGone(f"{self.name} is not running")
        return Command(self, argv, **kw)

    def run(self, cmd, timeout=60, check=False, **kw):
        """Run a command to its end: a Result (status, stdout, stderr)."""
        result = self.start_command(cmd, **kw).wait(timeout)
        return result.check() if check else result

    def sh(self, cmd, timeout=60, **kw):
        """Standard output of a command that has to succeed, stripped."""
        return self.run(cmd, timeout, check=True, **kw).stdout.strip()

    def sleep(self, level, timeout=240):
        """Sleep and wake up again: all of it but `level`'s end ("freezer",
        "devices"), as the kernel's own test does; the Result. What is sent to
        the host meanwhile waits: its port would lose it."""
        with self.agent.lock:
            return self.run(
                "cd /sys/power && "
                "echo 1 >/sys/module/suspend/parameters/pm_test_delay && "
                f"echo {level} >pm_test && echo freeze >state; s=$?; "
                "echo none >pm_test; exit $s", timeout)

    def put(self, local, remote, mode=None, timeout=60):
        """Copy a file (path) or bytes into the guest."""
        if isinstance(local, bytes):
            data = local
        else:
            with open(local, "rb") as f:
                data = f.read()
            mode = mode or os.stat(local).st_mode & 0o777
        where = shlex.quote(remote)
        self.run(f"mkdir -p $(dirname {where}) && cat >{where} && "
                 f"chmod {mode or 0o644:o} {where}", timeout, stdin=data,
                 check=True)

    def get(self, remote, local=None):
        """Bytes of a guest's file, also written to `local` when given."""
        command = self.start_command(["cat", "--", remote])
        command.wait().check()
        if local:
            with open(local, "wb") as f:
                f.write(command.out["O"])
        return command.out["O"]

    def wait_file(self, path, timeout=10):
        """Wait in the guest until a path exists."""
        tries = int(timeout * self.patience * 50)
        where = shlex.quote(path)
        return self.run(f"for i in $(seq {tries}); do [ -e {where} ] && exit 0;"
                        " sleep 0.02; done; exit 1", timeout + 30).status == 0

    # Kernel log

    def dmesg(self):
        """The kernel log of this boot."""
        return self.run(["dmesg"]).stdout

    def keep_dmesg(self):
        """Judge the log so far and keep it with the console log."""
        if not self.alive() or not self.agent or self.agent.gone:
            return
        try:
            text = self.run(["dmesg"], timeout=20).stdout
        except (AssertionError, ConnectionError):
            return
        with open(self.socket("dmesg"), "a") as f:
            f.write(text)

    def allow_log(self, pattern):
        """A test that provokes a kernel message names it here (a regex)."""
        self.allowed.append(re.compile(pattern))

    def kernel_complaints(self):
        """Excerpts of WARNINGs, BUGs, lockdep, KASAN, leaks in the logs."""
        self.keep_dmesg()
        texts = []
        for kind in ("dmesg", "console"):
            if os.path.exists(self.socket(kind)):
                with open(self.socket(kind), errors="replace") as f:
                    texts.append(f.read())
        return klog.complaints("\n".join(texts), self.allowed)

    def mark(self):
        """Note where the logs are now, for complaints_since_mark()."""
        self.marked = {kind: os.path.getsize(self.socket(kind))
                       if os.path.exists(self.socket(kind)) else 0
                       for kind in ("dmesg", "console")}
        self.marks += 1
        self.mark_line = f"lab: mark {self.marks}"
        self._kmsg(self.mark_line)

    def _kmsg(self, text):
        try:
            self.run(f"echo '{text}' >/dev/kmsg", timeout=20)
        except (AssertionError, ConnectionError):
            pass		# a dead guest has nothing to say

    def complaints_since_mark(self):
        """As kernel_complaints(), of what was logged since mark()."""
        self.keep_dmesg()
        text = ""
        for kind, start in self.marked.items():
            if os.path.exists(self.socket(kind)):
                with open(self.socket(kind), errors="replace") as f:
                    f.seek(start)
                    text += f.read().rpartition(self.mark_line)[2] + "\n"
        return klog.complaints(text, self.allowed)

    def kmemleak(self):
        """Scan for leaked memory (debug kernel); '' when there is none."""
        path = "/sys/kernel/debug/kmemleak"
        return self.sh(f"[ -e {path} ] || exit 0; echo scan >{path}; sleep 1; "
                       f"echo scan >{path}; cat {path}", timeout=180)

    def console_tail(self, lines=25):
        try:
            with open(self.console, errors="replace") as f:
                return "".join(f.readlines()[-lines:])
        except OSError:
            return ""

    # Hot-plug without draco-emu, for the lab's own tests

    def plug(self, slot, driver, ident, **props):
        """Hot-plug a QEMU device into slot<slot>."""
        self.qmp.command("device_add", {"driver": driver, "id": ident,
                                        "bus": f"slot{slot}", **props})

    def unplug(self, ident, timeout=10):
        """Ask for removal; True once QEMU says it is gone."""
        self.qmp.command("device_del", {"id": ident})
        return self.wait_deleted(ident, timeout)

    def wait_deleted(self, ident, timeout=10):
        return self.qmp.wait_event("DEVICE_DELETED", timeout,
                                   lambda d: d.get("device") == ident) \
            is not None


def boot_all(guests, timeout=90):
    """Start guests together; seconds until all take commands."""
    begun = time.monotonic()
    for guest in guests:
        guest.start()
    for guest in guests:
        guest.wait_boot(timeout)
    return time.monotonic() - begun
