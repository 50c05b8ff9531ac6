# SPDX-License-Identifier: GPL-2.0-only
"""Where programs that speak libfabric run, unchanged: in a root that has them, in
namespaces of their own, over one of libfabric's providers: ours, or one that it is
compared with. Used by fabtests.py, openmpi.py and fi_bench.py."""

import contextlib
import os
import subprocess
import tempfile
from dataclasses import dataclass, field

import build
import process
import root
import space

LAYER = "libfabric"
KIND = "full"		# the build directory of ours that is tested
TARGET = "plugins/libfabric/libfabrex-fi.so"
FABRIC = "check"	# of loopback; nobody else is in these namespaces
FABRICS = (FABRIC, "demo")	# and that of the hosts in the lab
HUNG = 124		# exit status of what was ended, as timeout(1) has it

# Processes of a test see no others: runfabtests.sh ends, by name, all that there
# are of it, and addresses and shared memory of one run are not those of another.
# They end with us.
ALONE = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--net", "--pid",
         "--ipc", "--fork", "--kill-child", "--mount-proc", "sh", "-ec",
         'ip link set lo up; mount -t tmpfs tmpfs /dev/shm; exec "$@"', "alone"]


@dataclass
class Provider:
    """One of libfabric's providers, and what programs need to find it. oob: its
    addresses are not those of IP, so programs exchange them by other means."""
    name: str
    oob: bool = False
    env: dict = field(default_factory=dict)


def ours(kind=KIND):
    """The provider in the build tree, over loopback."""
    where = os.path.join(build.directory(kind), "plugins", "libfabric")
    return Provider("fabrex", env={"FI_PROVIDER_PATH": where,
                                   "FABREX_PORT": "loopback:" + FABRIC})


def provider(name):
    """By its name. Providers of libfabric's own are there to try the tests."""
    if name == "fabrex":
        return ours()
    return Provider(name, oob=name == "shm")


def command(argv, env=(), cwd=None, layer=LAYER):
    """The command line that runs argv alone in a root."""
    return space.command(root.root(layer), ALONE + list(argv), cwd=cwd,
                         env=dict(env))


@contextlib.contextmanager
def directory():
    """A working directory for programs that leave files behind."""
    with tempfile.TemporaryDirectory(prefix="fabrex-run-") as path:
        yield path


def run(argv, env=(), layer=LAYER, seconds=60, cwd=None):
    """Run it; a CompletedProcess with what it printed. The limit in seconds, on an
    idle machine, catches what hangs."""
    with directory() as temporary:
        # As is said of mpirun, processes that have the same number elsewhere
        # leave files of the same name.
        env = {"TMPDIR": temporary, **dict(env)}
        cmd = command(argv, env, cwd or temporary, layer)
        with subprocess.Popen(cmd, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as child:
            try:
                out, err = child.communicate(
                    timeout=seconds * process.patience())
                status = child.returncode
            except subprocess.TimeoutExpired:
                child.terminate()	# unshare, and all in its namespace
                out, err = child.communicate()
                err += "\n(ended: it hung)\n"
                status = HUNG
    return subprocess.CompletedProcess(argv, status, out, err)
