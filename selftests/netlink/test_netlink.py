# SPDX-License-Identifier: GPL-2.0-only
"""The generic netlink family, as root and as users."""

from scenario import scenario


@scenario(hosts=["a", "b", "c"])
def reading(lab, t):
    """Everybody may read: dumps, filters, single objects."""
    t.program(lab.guest("a"), "netlink-dump")
    t.program(lab.guest("b"), "netlink-dump", user="outsider")


@scenario(hosts=["a", "b", "c"])
def changing(lab, t):
    """Only root may change; refusals name object, cause and remedy."""
    t.program(lab.guest("a"), "netlink-change -T permission")
    t.program(lab.guest("b"), "netlink-change -t permission", user="tester")


@scenario(hosts=["a", "b", "c"])
def privileges(lab, t):
    """CAP_NET_ADMIN, containers and lent sockets change nothing and see no
    traffic of others; CAP_SYS_ADMIN on the host is enough."""
    t.program(lab.guest("a"), "netlink-permission")


@scenario(hosts=["a", "b", "c"])
def malformed(lab, t):
    """Garbage is refused."""
    t.program(lab.guest("c"), "netlink-garbage")
