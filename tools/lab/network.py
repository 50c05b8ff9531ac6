# SPDX-License-Identifier: GPL-2.0-only
"""An Ethernet between the guests of a lab, beside the fabric: a wire from
each to each, so that no switch takes its share of the processors. A host has
one address and one name, whichever wire leads to it. Used by Lab."""

NET = "10.77.0"
# RoCE packets of 4 KiB fit, and TCP is not held up by small segments.
MTU = 9000
LONGEST = 15 - len("to-")	# of a host's name, IFNAMSIZ


def number(names, name):
    """1 for the first host of the lab, and so on."""
    return 1 + list(names).index(name)


def address(names, name):
    """The IPv4 address of a host."""
    return f"{NET}.{number(names, name)}"


def append(names):
    """What tells a guest's start script who is who."""
    hosts = ",".join(f"{n}={address(names, n)}" for n in names)
    return f"lab.net={hosts} lab.mtu={MTU}"


def wire(names, name, other, file):
    """QEMU's end of the wire from one host to another. A host that is
    started again finds it: who listened listens, who called calls again."""
    own, far = number(names, name), number(names, other)
    first, second = (name, other) if own < far else (other, name)
    end = "server=on" if own < far else "server=off,reconnect-ms=500"
    return ["-netdev", f"stream,id=to-{other},addr.type=unix,"
            f"addr.path={file(f'{first}-{second}.eth')},{end}",
            "-device", f"virtio-net-pci,netdev=to-{other},romfile=,"
            f"host_mtu={MTU},mac=52:54:00:4d:{own:02x}:{far:02x}"]


def devices(names, name, file):
    """QEMU arguments for a host; file(name) is a path for a socket."""
    for other in names:
        if len(other) > LONGEST:
            raise ValueError(f"host {other}: an interface cannot be called "
                             f"to-{other}; {LONGEST} letters at most")
    return [arg for other in names if other != name
            for arg in wire(names, name, other, file)]


def rdma(guest, peer):
    """RDMA over the wire to a peer (RoCEv2, in software): its device."""
    guest.sh("modprobe -a rdma_rxe ib_uverbs; rdma link show "
             f"rxe-{peer}/1 2>/dev/null || rdma link add rxe-{peer} type rxe "
             f"netdev to-{peer}")
    return f"rxe-{peer}"
