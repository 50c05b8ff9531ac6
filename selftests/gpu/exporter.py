# SPDX-License-Identifier: GPL-2.0-only
"""vfio-pci as an exporter of a GPU's memory, for scenarios: the program
gpu-vfio_tool, driven line by line. Guests need iommu="pt" or "on"."""

import queue
import time

from command import CommandTimeout

VRAM = 2		# the BAR


class ExportError(AssertionError):
    """The tool refused; .errno is the number."""

    def __init__(self, text, errno):
        super().__init__(text)
        self.errno = errno


def acs(guest, bdf, redirect):
    """Set or clear ACS redirect on the slot of a device. The kernel keeps a
    verdict about peers until the exporter's driver goes, so do it before."""
    port = guest.sh(f"basename $(dirname $(readlink -f "
                    f"/sys/bus/pci/devices/{bdf}))")
    guest.sh(f"setpci -s {port} ECAP_ACS+6.w={'1d' if redirect else '0'}")


class Exporter:
    """One dma-buf of a GPU, more with export(). pid and fd name it for
    pidfd_getfd(); run() runs a command that inherits it. When the kernel
    removes the GPU the tool lets go of it, unless keep; then removal waits
    for end()."""

    def __init__(self, guest, bdf, offset=0, length=0, bar=VRAM, keep=False):
        self.guest = guest
        self.lines = queue.Queue()
        self.requested = False		# the kernel wanted it back
        guest.sh("modprobe -a vfio_iommu_type1 vfio-pci")
        self.command = guest.start_command(
            ["gpu-vfio_tool", "-bk" if keep else "-b", bdf, str(bar),
             str(offset), str(length)], on_line=self.take, keep_stdin=True)
        first = self.line(20)
        if not first.startswith("dmabuf "):
            raise ExportError(f"{guest.name}: {first}", 0)
        self.fd = int(first.split()[1])
        self.pid = int(guest.sh(f"pgrep -n -f '^gpu-vfio_tool -bk* {bdf} '"))

    def take(self, _stream, line):
        if line == "request":
            self.requested = True
        else:
            self.lines.put(line)

    def wait_request(self, timeout=20):
        """Whether the kernel asks for the GPU within that time."""
        end = time.monotonic() + timeout * self.guest.patience
        while not self.requested and time.monotonic() < end:
            self.command.poll()
            time.sleep(0.01)
        return self.requested

    def line(self, timeout):
        end = time.monotonic() + timeout * self.guest.patience
        while time.monotonic() < end:
            self.command.poll()
            try:
                return self.lines.get(timeout=0.005)
            except queue.Empty:
                if self.command.result:
                    break
        raise CommandTimeout(f"{self.guest.name}: gpu-vfio_tool said nothing "
                             f"for {timeout} s")

    def ask(self, text, timeout=20):
        """Send a command; the lines before its ok. Raises ExportError."""
        self.command.write((text + "\n").encode())
        before = []
        while (line := self.line(timeout)) != "ok":
            if line.startswith("error "):
                raise ExportError(f"{self.guest.name}: {line}",
                                  int(line.split()[1]))
            before.append(line)
        return before

    def export(self, offset=0, length=0):
        """One more dma-buf; its descriptor there."""
        return int(self.ask(f"export {offset} {length}")[0].split()[1])

    def reset(self):
        self.ask("reset")

    def memory(self, on):
        self.ask("memory " + ("on" if on else "off"))

    def sleep(self, on):
        self.ask("sleep " + ("on" if on else "off"))

    def fill(self, offset, length, byte):
        self.ask(f"fill {offset} {length} {byte}", 60)

    def sum(self, offset, length):
        return int(self.ask(f"sum {offset} {length}", 60)[0].split()[1])

    def run(self, command, timeout=60):
        """A shell command that has the descriptors; its output."""
        return self.ask(f"exec {command}", timeout)

    def close_device(self):
        """The GPU is taken away from importers; the dma-bufs stay open."""
        self.ask("close")

    def end(self):
        self.command.close_stdin()
        return self.command.wait(30)
