# SPDX-License-Identifier: GPL-2.0-only
"""draco-emu as the lab runs it: start, restart, control requests.
Made by Lab; tests reach it as lab.emu."""

import json
import os
import socket
import subprocess
import threading

import build
from process import Child, patience, wait_until


class EmuError(RuntimeError):
    """draco-emu did not start, or refused a request."""


class Emu:
    """One draco-emu process serving a topology file. throttle: a factor for
    --throttle, 0 for no limit; none: what FABREX_THROTTLE says, or no limit."""

    def __init__(self, root, topology, run_dir, hosts, binary=None, wrap=(),
                 throttle=None):
        self.root = root
        self.topology = os.path.abspath(topology)
        self.run_dir = run_dir
        self.hosts = hosts
        self.binary = binary or os.path.join(
            build.OUT, "tools/draco-emu/draco-emu")
        self.wrap = list(wrap)
        if throttle is None:
            throttle = os.environ.get("FABREX_THROTTLE") or 0
        self.throttle = float(throttle)
        self.child = None

    def start(self, timeout=30):
        """Start and wait for READY on its standard output."""
        timeout *= patience()
        if not os.path.exists(self.binary):
            raise EmuError(f"{self.binary} is missing; run tools/lab/lab build first")
        argv = self.wrap + [self.binary, "--topology", self.topology,
                            "--run-dir", self.run_dir,
                            "--state", self.file("bindings.state")]
        for host in self.hosts:
            argv += ["--qmp", f"{host}={self.run_dir}/{host}.qmp"]
        if self.throttle:
            argv += ["--throttle", str(self.throttle)]
        self.child = Child(self.root, argv, self.file("emu.log"),
                           stdout=subprocess.PIPE)
        ready = threading.Event()
        threading.Thread(target=self._read, args=(self.child.popen.stdout,
                                                  ready), daemon=True).start()
        wait_until(lambda: ready.is_set() or not self.child.alive(), timeout)
        if not ready.is_set():
            self.child.kill()
            raise EmuError("draco-emu did not say READY:\n" + self.child.tail())

    def _read(self, pipe, ready):
        with open(self.file("emu.log"), "ab", buffering=0) as log:
            for line in pipe:
                if line.strip() == b"READY":
                    ready.set()
                log.write(line)

    def file(self, name):
        return os.path.join(self.run_dir, name)

    def alive(self):
        return self.child is not None and self.child.alive()

    def control(self, request, timeout=10):
        """Send one JSON request to the control socket; the JSON answer."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(timeout * patience())
            sock.connect(self.file("control.sock"))
            sock.sendall(json.dumps(request).encode() + b"\n")
            answer = b""
            while not answer.endswith(b"\n"):
                data = sock.recv(65536)
                if not data:
                    raise EmuError(f"control request {request}: draco-emu "
                                   "closed the connection")
                answer += data
        return json.loads(answer)

    def kill(self):
        """SIGKILL: the switch loses power."""
        if self.child:
            self.child.kill()

    def stop(self):
        """SIGTERM; returns the exit status, None when it never ran."""
        return self.child.stop() if self.child else None

    def restart(self):
        """Kill and start again. QEMU does not reconnect, and cannot unplug
        what is dead: hosts need Guest.restart()."""
        self.kill()
        self.start()
