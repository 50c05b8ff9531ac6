# SPDX-License-Identifier: GPL-2.0-only
"""Child processes and the run directory: nothing outlives the lab.
Used by guest.py, emu.py and lab.py."""

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time

import space

PREFIX = "fabrex-lab-"
STALE_SECONDS = 60

# Limits say when something hangs, and nothing about speed: each is a multiple
# of what it takes on a quiet machine, a larger one on kernels that check
# everything. FABREX_PATIENCE is for machines that are slower still.
PATIENCE = {"debug": 20, "kcsan": 20}
USUAL_PATIENCE = 8


def patience(kernel=None):
    """What a limit in seconds is multiplied with, for guests of a kernel."""
    return PATIENCE.get(kernel, USUAL_PATIENCE) \
        * float(os.environ.get("FABREX_PATIENCE", "1"))


class Child:
    """A process in a root, in its own process group, killed with us."""

    def __init__(self, root, argv, log, stdin=None, stdout=None, env=()):
        self.argv = argv
        self.log = log
        cmd = space.command(root, ["setpriv", "--pdeathsig", "KILL", "--"]
                            + argv, env=env)
        with open(log, "ab") as f:
            self.popen = subprocess.Popen(
                cmd, stdin=stdin or subprocess.DEVNULL, stdout=stdout or f,
                stderr=f, start_new_session=True)
        self.pid = self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def signal(self, sig):
        if self.alive():
            os.kill(self.pid, sig)

    def stop(self, grace=2.0):
        """TERM, then KILL; returns the exit status."""
        self.signal(signal.SIGTERM)
        try:
            return self.popen.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()
        return self.popen.returncode

    def kill(self):
        """SIGKILL for the whole group, and wait for the child."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait(10)

    def tail(self, lines=15):
        """The end of its log, for messages."""
        try:
            with open(self.log, errors="replace") as f:
                return "".join(f.readlines()[-lines:])
        except OSError:
            return ""


class RunDir:
    """A private directory for sockets and logs, removed when we end.

    The name is short: socket paths are limited to 107 bytes."""

    def __init__(self, path=None):
        remove_stale()
        if path:
            os.makedirs(path, exist_ok=True)
        self.path = path or tempfile.mkdtemp(prefix=PREFIX)
        self.lock = open(os.path.join(self.path, "lock"), "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        atexit.register(self.remove)

    def file(self, name):
        return os.path.join(self.path, name)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)
        atexit.unregister(self.remove)


def remove_stale():
    """Remove run directories whose lab was killed before it could. One that is
    just being made, by another thread perhaps, is not locked yet."""
    top = tempfile.gettempdir()
    for name in os.listdir(top):
        path = os.path.join(top, name)
        if not name.startswith(PREFIX):
            continue
        try:
            status = os.stat(path)
            if status.st_uid != os.geteuid() or \
                    time.time() - status.st_mtime < STALE_SECONDS:
                continue
            with open(path + "/lock") as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except FileNotFoundError:
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue


def wait_until(ready, timeout, step=0.02):
    """Poll ready() until it is true; False when it never was."""
    end = time.monotonic() + timeout
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True
