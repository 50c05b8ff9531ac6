# SPDX-License-Identifier: GPL-2.0-only
"""The plugin of NCCL and RCCL over a device: the tests that make check runs over
loopback."""

import build
import space
from scenario import scenario

PLUGIN = "plugins/nccl/libnccl-net-fabrex.so"
TESTS = "plugins/nccl/tests/nccl-conform"


@scenario(hosts=["a"])
def by_device(lab, t):
    """Connecting, sizes, groups, rings, processes that close or are killed."""
    build.build("full", [PLUGIN, TESTS])
    where = f"{space.TREE}/build/lab"
    t.program(lab.guest("a"), "FABREX_TEST_PORT=/dev/fabrex0 "
              f"FABREX_NCCL_PLUGIN={where}/{PLUGIN} {where}/{TESTS}",
              timeout=1200)
