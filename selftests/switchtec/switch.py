# SPDX-License-Identifier: GPL-2.0-only
"""Commands to the emulated Switchtec switch through Linux's own character device,
from a guest, and what is behind its ports once that is in a guest's slots."""

import os

from ntb import HERE, ntb_scenario

TOPOLOGY = os.path.join(HERE, "pfx.topo")
MRPC = os.path.join(HERE, "mrpc")
FILL = os.path.join(HERE, "fill")
BIND, LINKS, ECHO, PING = 0x0c, 0x1c, 0x41, 0x100
DENIED = 0x64010
PARTITION = {"a": 0, "b": 1, "c": 2}
FIRST_SLOT = 2			# of the host, for logical port 1
GPU = "1234:da10"
ANY = "1234:"


def pfx_scenario():
    """A scenario of three hosts, of which a and c are managers."""
    return ntb_scenario(hosts=("a", "b", "c"), topology=TOPOLOGY)


def ask(guest, command, payload, length=64):
    """(return value, output) of a command."""
    words = guest.sh(f"{MRPC} {command:#x} {payload.hex()} {length}").split()
    return int(words[0], 0), bytes.fromhex(words[1])


def begin(guest, host, payload):
    """A command to bind or unbind, which ends with the event."""
    return guest.start_command(
        f"{MRPC} bound {PARTITION[host]} {BIND:#x} {payload.hex()}")


def finish(command):
    """The return value, and whether the event has come."""
    words = command.wait(130).check().stdout.split()
    return int(words[0], 0), words[1] == "event"


def bind(guest, host, logical, port):
    return finish(begin(guest, host,
                        bytes([0, PARTITION[host], logical, port])))


def begin_unbind(guest, host, logical):
    return begin(guest, host, bytes([1, PARTITION[host], logical, 2]))


def unbind(guest, host, logical):
    return finish(begin_unbind(guest, host, logical))


def info(guest, port):
    """(partition, logical port, state) as the switch says."""
    status, out = ask(guest, BIND, bytes([2, port, 0, 0]))
    assert (status, out[0], out[4]) == (0, 1, port), (status, out)
    return tuple(out[5:8])


def link_up(guest, port):
    """What the switch says of the link of a port."""
    status, out = ask(guest, LINKS, (1 << port).to_bytes(8, "little"))
    assert (status, out[0]) == (0, port), (status, out)
    return out[7] >= 0x80


def devices(guest, kind=GPU):
    return [line.split()[0] for line in
            guest.sh(f"lspci -D -d {kind}").splitlines()]


def wait_devices(guest, count, kind=GPU):
    """Wait until it has so many; where they are."""
    guest.run(f"for i in $(seq {int(400 * guest.patience)}); do "
              f"[ $(lspci -d {kind} | wc -l) = {count} ] && exit; sleep 0.05; "
              "done", 40)
    return devices(guest, kind)


def power_off(guest, logical):
    """In order: what is in that slot is taken out by its host."""
    guest.sh(f"echo 0 >/sys/bus/pci/slots/{FIRST_SLOT + logical - 1}/power")
