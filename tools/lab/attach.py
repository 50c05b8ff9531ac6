# SPDX-License-Identifier: GPL-2.0-only
"""Client of a running lab: a command or an interactive shell in a guest.
Used by the lab command's exec and shell."""

import fcntl
import os
import selectors
import signal
import struct
import sys
import termios
import tty

import agent
import server


def pick(run_dir):
    """The lab to talk to: the one named, or the newest."""
    found = [run_dir] if run_dir else server.running()
    if not found:
        sys.exit("lab: no lab is up; start one with `make lab` or "
                 "`tools/lab/lab up`")
    return found[0]


def window(sock):
    """Tell the guest our terminal's size."""
    try:
        raw = fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8)
    except OSError:
        return
    rows, cols = struct.unpack("HHHH", raw)[:2]
    sock.sendall(agent.frame("W", 0, struct.pack("<HH", rows, cols)))


def pump(sock):
    """Copy both ways until the command exits; its exit status."""
    sel = selectors.DefaultSelector()
    sel.register(sock, selectors.EVENT_READ)
    try:
        sel.register(0, selectors.EVENT_READ)
    except (PermissionError, ValueError):	# a file or closed: send at once
        send_file(sock)
    parser = agent.Parser()
    while True:
        for key, _ in sel.select():
            if key.fileobj == 0:
                data = os.read(0, 32768)
                sock.sendall(agent.frame("I", 0, data))
                if not data:
                    sel.unregister(0)
                continue
            data = sock.recv(1 << 16)
            if not data:
                print("lab: the guest is gone", file=sys.stderr)
                return 255
            for kind, _, body in parser.feed(data):
                if kind == "S":
                    return agent.exit_code(struct.unpack("<I", body)[0])
                write(2 if kind == "E" else 1, body)


def send_file(sock):
    try:
        while data := os.read(0, 32768):
            sock.sendall(agent.frame("I", 0, data))
    except OSError:
        pass
    sock.sendall(agent.frame("I", 0))


def write(fd, data):
    while data:
        data = data[os.write(fd, data):]


def request(run_dir, host, argv, on_tty):
    sock, answer = server.connect(pick(run_dir), {
        "op": "exec", "host": host, "argv": argv, "tty": on_tty})
    if "error" in answer:
        sys.exit("lab: " + answer["error"])
    return sock


def execute(run_dir, host, argv):
    """Run a command with our standard streams; exits with its status."""
    return pump(request(run_dir, host, argv, False))


def shell(run_dir, host):
    """An interactive shell on our terminal."""
    argv = ["env", "TERM=" + os.environ.get("TERM", "linux"), "/bin/bash",
            "-il"]
    sock = request(run_dir, host, argv, True)
    window(sock)
    signal.signal(signal.SIGWINCH, lambda *_: window(sock))
    saved = termios.tcgetattr(0) if os.isatty(0) else None
    try:
        if saved:
            tty.setraw(0)
        return pump(sock)
    finally:
        if saved:
            termios.tcsetattr(0, termios.TCSADRAIN, saved)
