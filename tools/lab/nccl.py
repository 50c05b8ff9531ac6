# SPDX-License-Identifier: GPL-2.0-only
"""make check-nccl: the distribution's RCCL finds our plugin by the names that it looks
for, and takes it. No GPU is needed for that. Used by check.py."""

import os

import build
import libfabric

LAYER = "rccl"
PLUGIN = "plugins/nccl/libnccl-net-fabrex.so"

# RCCL loads its net plugin with the first call that needs a network.
ASK = r"""
import ctypes
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
library = ctypes.CDLL("librccl.so.1")
version = ctypes.c_int()
library.ncclGetVersion(ctypes.byref(version))
print("version", version.value)
print("result", library.ncclGetUniqueId(ctypes.byref(Id())))
"""


def names(cwd):
    """The links that are installed beside the object."""
    target = os.path.join(build.directory(libfabric.KIND), PLUGIN)
    for name in ("librccl-net.so", "librccl-net-fabrex.so"):
        os.symlink(target, os.path.join(cwd, name))


def asked(**env):
    """What RCCL says when it is asked for an ID."""
    with libfabric.directory() as cwd:
        names(cwd)
        library = os.path.join(build.directory(libfabric.KIND), "lib")
        result = libfabric.run(
            ["python3", "-c", ASK],
            {"LD_LIBRARY_PATH": f"{cwd}:{library}", "NCCL_DEBUG": "INFO",
             "FABREX_PORT": "loopback:rccl", **env}, LAYER, seconds=120)
    return result.returncode, result.stdout + result.stderr


def takes_it(**env):
    """It has what RCCL looks for; what it has not, which is optional, is said."""
    status, text = asked(**env)
    good = not status and "result 0" in text and \
        "Failed to find ncclCollNetPlugin_v6" in text and \
        "ncclNetPlugin" not in text and "No plugin found" not in text
    return None if good else f"exit status {status}\n{text}"


def misses_it():
    """Asked for a plugin that is not there: the tests before can fail."""
    status, text = asked(NCCL_NET_PLUGIN="nothing")
    good = not status and "result 0" in text and \
        "Failed to find ncclCollNetPlugin_v6" not in text
    return None if good else f"exit status {status}\n{text}"


def everything(check):
    """All that needs more than the tree."""
    build.build(libfabric.KIND, ("programs", PLUGIN))
    for name, function, env in (
            ("RCCL takes the plugin by its usual name", takes_it, {}),
            ("RCCL takes the plugin by NCCL_NET_PLUGIN=fabrex", takes_it,
             {"NCCL_NET_PLUGIN": "fabrex"}),
            ("RCCL does not take a plugin that is not there", misses_it, {})):
        if not check.wanted(name):
            continue
        wrong = function(**env)
        check.tap.point(not wrong, name, detail=wrong or "")
