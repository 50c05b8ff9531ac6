# SPDX-License-Identifier: GPL-2.0-only
"""The steps of make demo, in order. Called by demo with the hosts up."""


def tell(lab, tale):
    """Tell the whole story; StoryFailed ends it early."""
    functions(lab, tale)


def functions(lab, tale):
    """Every host sees its own port of the switch."""
    tale.step("Every host sees its host port, below a PCIe switch")
    for guest in lab.guests.values():
        tale.command(guest, "lspci -d 1234:da00")
