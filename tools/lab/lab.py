# SPDX-License-Identifier: GPL-2.0-only
"""The lab for tests and the demo: guests around draco-emu, cleaned up after.

    with Lab(topology="topologies/demo.topo", hosts=["a", "b", "c"]) as lab:
        lab.guest("a").sh("fabrexctl list")
"""

import os
import signal
import sys

import emu
import image
import install
import kernel
import network
import root
import space
import topology as topo
import upstream
from cache import hold, say
from guest import Guest, boot_all
from process import RunDir

DEFAULT_TOPOLOGY = os.path.join(space.TREE, "topologies", "demo.topo")


class Lab:
    """N guests and the fabric that joins them.

    topology: file, or None for guests without a fabric; kernel: "7.2",
    "6.12" or "debug"; hosts: names (default: all in the file); layer: the
    root the guests see, "demo", "full" or "peers"; run_dir: default a new one
    in /tmp; keep_logs: directory to copy consoles and logs to on close;
    network: an Ethernet between the guests (network.py), which know each
    other by name; throttle: links carry so much of their rates, see
    draco-emu(8); upstream: the guests get Linux's own modules for other fabrics
    instead of ours (upstream.py). Other options go to every Guest."""

    def __init__(self, topology=DEFAULT_TOPOLOGY, kernel="7.2", hosts=None,
                 layer="demo", run_dir=None, keep_logs=None, emu_binary=None,
                 emu_wrap=(), network=False, throttle=None, upstream=False,
                 **options):
        self.closed = False
        self.keep_logs = keep_logs
        self.emu = None
        self.guests = {}
        self.network = network
        self.throttle = throttle
        self.upstream = upstream
        self.run = RunDir(run_dir)
        catch_signals()
        try:
            self._make(topology, kernel, hosts, layer, emu_binary, emu_wrap,
                       options)
        except BaseException:
            self.run.remove()
            raise

    def _make(self, topology, kernel_name, hosts, layer, binary, wrap,
              options):
        kern = kernel.kernel(kernel_name)
        img = image.image(kern, layer)
        top = root.root("demo")
        self.uses = [hold(p) for p in (top, root.root(layer), img.rootfs,
                                       os.path.dirname(img.initrd))]
        known = {n: (slots, ports) for n, slots, ports in
                 topo.hosts(topology)} if topology else {}
        models = topo.models(topology) if topology else {}
        if topology:
            options.setdefault("vram", topo.vram(topology))
        names = hosts or list(known) or ["a"]
        for name in names:
            if topology and name not in known:
                raise KeyError(f"{topology}: no host {name}; there are "
                               + ", ".join(known))
            opts = dict(options)
            if topology:
                opts.setdefault("slots", known[name][0])
                opts["draco"] = [self.run.file(port_socket(name, index))
                                 for index in range(known[name][1])]
                opts["dma"] = {index: self.run.file(f"{name}.{index}.dma.sock")
                               for index, model in enumerate(models[name])
                               if model == "pfx"}
            if self.network:
                self._wire(opts, names, name)
            self.guests[name] = Guest(name, self.run.path, top, kern, img,
                                      **opts)
        if topology:
            self.emu = emu.Emu(top, topology, self.run.path, names,
                               binary, wrap, self.throttle)

    def _wire(self, opts, names, name):
        """Options that put a host on the Ethernet."""
        opts["devices"] = [*opts.get("devices", ()),
                           *network.devices(names, name, self.run.file)]
        opts["append"] = opts.get("append", "") + " " + network.append(names)

    def address(self, name):
        """A host's address on the Ethernet; its name does as well in there."""
        return network.address(self.guests, name)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        self.close()

    def start(self):
        """Start draco-emu and all guests; seconds until all are up."""
        if self.emu:
            self.emu.start()
        return boot_all(self.guests.values())

    def install(self, modules=True):
        """Load the modules and put programs and the udev rule in place."""
        guests = list(self.guests.values())
        install.install(guests, modules and not self.upstream)
        if self.upstream:
            upstream.install(guests)

    def guest(self, name):
        return self.guests[name]

    def emu_control(self, request, timeout=10):
        """A fault-injection or query request to draco-emu."""
        return self.emu.control(request, timeout)

    def complaints(self):
        """What the guests' kernel logs must not contain:
        [(host, excerpt)]; empty when all is well."""
        found = []
        for name, guest in self.guests.items():
            found += [(name, text) for text in guest.kernel_complaints()]
        return found

    def close(self):
        """End everything; keeps the logs when asked to. Idempotent."""
        if self.closed:
            return
        self.closed = True
        if self.keep_logs:
            self._save_logs()
        for guest in self.guests.values():
            guest.stop()
        if self.emu:
            self.emu.stop()
        self.run.remove()

    def _save_logs(self):
        os.makedirs(self.keep_logs, exist_ok=True)
        for guest in self.guests.values():
            guest.keep_dmesg()
        for name in os.listdir(self.run.path):
            if name.endswith((".console", ".log", ".dmesg")):
                with open(self.run.file(name), "rb") as src, \
                     open(os.path.join(self.keep_logs, name), "wb") as dst:
                    dst.write(src.read())


def port_socket(host, index):
    """draco-emu's name for the socket of a host's index-th port."""
    return f"{host}.{index}.sock" if index else f"{host}.sock"


def catch_signals():
    """Turn TERM and HUP into an exception, so that clean-up runs."""
    def stop(number, _frame):
        say(f"{signal.Signals(number).name}, cleaning up")
        sys.exit(128 + number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        try:
            signal.signal(number, stop)
        except ValueError:
            return		# not the main thread: its owner decides
