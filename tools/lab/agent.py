# SPDX-License-Identifier: GPL-2.0-only
"""The lab's end of the port to guestd: frames, and commands in flight.
Used by guest.py; guestd/proto.h describes the frames."""

import os
import queue
import socket
import struct
import threading
import time

MAGIC = b"FLAB"
HEAD = struct.Struct("<4sIII")
CHUNK = 32768


class GuestGone(ConnectionError):
    """The guest died or was reset while a command ran in it."""


def frame(kind, ident, data=b""):
    """Bytes of one frame; kind is one letter of enum frame_type."""
    return HEAD.pack(MAGIC, ord(kind), ident, len(data)) + data


class Parser:
    """Turns received bytes into frames; resynchronises after a reset."""

    def __init__(self):
        self.buf = b""

    def feed(self, data):
        self.buf += data
        while True:
            at = self.buf.find(MAGIC)
            if at < 0:
                self.buf = self.buf[-3:]
                return
            self.buf = self.buf[at:]
            if len(self.buf) < HEAD.size:
                return
            _, kind, ident, size = HEAD.unpack_from(self.buf)
            if len(self.buf) < HEAD.size + size:
                return
            body = self.buf[HEAD.size:HEAD.size + size]
            self.buf = self.buf[HEAD.size + size:]
            yield chr(kind), ident, body


class Agent:
    """Connection to one guest's guestd, for any number of commands."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.lock = threading.RLock()
        self.jobs = {}
        self.next_id = 1
        self.hellos = 0
        self.release = None
        self.changed = threading.Condition()
        self.gone = False
        self.thread = threading.Thread(target=self.reader, daemon=True)
        self.thread.start()

    def reader(self):
        parser = Parser()
        while True:
            try:
                data = self.sock.recv(1 << 20)
            except OSError:
                data = b""
            if not data:
                break
            for kind, ident, body in parser.feed(data):
                self.deliver(kind, ident, body)
        with self.changed:
            self.gone = True
            self.changed.notify_all()
        self.fail_jobs()

    def deliver(self, kind, ident, body):
        if kind == "H":
            self.fail_jobs()
            with self.changed:
                self.hellos += 1
                self.release = body.decode()
                self.changed.notify_all()
            return
        job = self.jobs.get(ident)
        if job:
            job.put((kind, body))
            if kind == "S":
                del self.jobs[ident]

    def fail_jobs(self):
        for ident in list(self.jobs):
            self.jobs.pop(ident).put(("gone", b""))

    def wait_hello(self, count, timeout):
        """Wait for the count-th start of guestd since the connection."""
        with self.changed:
            ok = self.changed.wait_for(
                lambda: self.hellos >= count or self.gone, timeout)
        return ok and not self.gone

    def send(self, kind, ident, data=b""):
        with self.lock:
            try:
                self.sock.sendall(frame(kind, ident, data))
            except OSError as e:
                raise GuestGone("the guest is gone") from e

    def start(self, argv, tty=False):
        """Start a command; its number and the queue of what it says."""
        job = queue.Queue()
        with self.lock:
            ident = self.next_id
            self.next_id += 1
        self.jobs[ident] = job
        data = b"".join(a.encode() + b"\0" for a in argv)
        self.send("T" if tty else "X", ident, data)
        if self.gone:
            raise GuestGone("the guest is gone")
        return ident, job

    def feed(self, ident, data):
        """Give a command its whole standard input."""
        for at in range(0, len(data), CHUNK):
            self.send("I", ident, data[at:at + CHUNK])
        self.send("I", ident)

    def signal(self, ident, sig):
        self.send("K", ident, struct.pack("<I", sig))

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        self.thread.join(5)


def exit_code(status):
    """As a shell would put a wait status: 0-255, 128 + signal."""
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)
