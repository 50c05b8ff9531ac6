# SPDX-License-Identifier: GPL-2.0-only
"""Quotas of a port, other ones for as long as a test wants them so."""

import contextlib

SYSFS = "/sys/class/fabrex/fabrex0"


def get(guest, name):
    """A number among the port's attributes: quota/bytes, usage/queues."""
    return int(guest.sh(f"cat {SYSFS}/{name}"))


@contextlib.contextmanager
def changed(guest, **limits):
    """queues=, windows=, mrs=, bytes="""
    before = {name: get(guest, f"quota/{name}") for name in limits}
    for name, value in limits.items():
        guest.sh(f"echo {value} >{SYSFS}/quota/{name}")
    try:
        yield
    finally:
        for name, value in before.items():
            guest.sh(f"echo {value} >{SYSFS}/quota/{name}")
