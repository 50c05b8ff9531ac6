# SPDX-License-Identifier: GPL-2.0-only
"""A small QMP client: commands, and waiting for events.
Used by guest.py on the lab's own QMP socket (draco-emu has another)."""

import json
import socket
import time


class QmpError(RuntimeError):
    """QEMU refused a command."""


class Qmp:
    """One QMP connection; not shared between threads."""

    def __init__(self, path, timeout=30):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.buf = b""
        self.events = []
        self.receive(timeout)
        self.command("qmp_capabilities")

    def receive(self, timeout):
        """One message, or socket.timeout."""
        self.sock.settimeout(timeout)
        while b"\n" not in self.buf:
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError("QEMU closed its QMP socket")
            self.buf += data
        line, _, self.buf = self.buf.partition(b"\n")
        return json.loads(line)

    def command(self, name, arguments=None, timeout=30):
        """Run a command; its return value, or QmpError."""
        message = {"execute": name, "arguments": arguments or {}}
        self.sock.sendall(json.dumps(message).encode() + b"\n")
        while True:
            answer = self.receive(timeout)
            if "event" in answer:
                self.events.append(answer)
            elif "error" in answer:
                raise QmpError(f"{name}: {answer['error']['desc']}")
            elif "return" in answer:
                return answer["return"]

    def wait_event(self, name, timeout, match=lambda data: True):
        """The next event of that name, past ones included; None in time."""
        end = time.monotonic() + timeout
        while True:
            for event in self.events:
                if event["event"] == name and match(event.get("data", {})):
                    self.events.remove(event)
                    return event
            left = end - time.monotonic()
            if left <= 0:
                return None
            try:
                message = self.receive(left)
            except socket.timeout:
                return None
            if "event" in message:
                self.events.append(message)

    def close(self):
        self.sock.close()
