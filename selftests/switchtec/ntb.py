# SPDX-License-Identifier: GPL-2.0-only
"""Both ends of a non-transparent bridge, as the tests of this directory use
them: Linux's drivers in two guests, and ntb_tool, which shows all that an NTB has
as files. The guests have two such bridges, for which there are different drivers."""

import dataclasses
import hashlib
import os
import random
import shlex

import install
import upstream
from scenario import scenario

HERE = os.path.dirname(os.path.abspath(__file__))
TOPOLOGY = os.path.join(HERE, "bridges.topo")
# Ours, which other tests may have left, and what it stands on.
OURS = ["fabrex_ntb", "fabrex_engine", "fabrex"]
# Whoever is loaded first has the NTB, so one of them at a time.
CLIENTS = [*OURS, "ntb_netdev", "ntb_transport", "ntb_perf", "ntb_pingpong",
           "ntb_tool"]
DEBUG = "/sys/kernel/debug"
WINDOW = 64 << 10		# bytes; all of a page of the table
SEND = """
import socket, sys, time
for _ in range(600):
    try:
        s = socket.create_connection((sys.argv[1], 7001), timeout=60)
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
s.sendall(open("/run/data", "rb").read())
s.shutdown(socket.SHUT_WR)
s.recv(1)
"""
RECEIVE = """
import hashlib, socket
s = socket.create_server(("", 7001)).accept()[0]
total = hashlib.sha256()
while data := s.recv(65536):
    total.update(data)
print(total.hexdigest())
"""


@dataclasses.dataclass(frozen=True)
class Bridge:
    """One of them: its function in either guest, and what Linux loads for it."""
    name: str
    device: str
    drivers: tuple
    doorbells: int		# of either end


SWITCHTEC = Bridge("Switchtec", "0000:01:00.1",
                   ("switchtec", "ntb_hw_switchtec"), 28)
EPF = Bridge("EPF", "0000:06:00.0", ("ntb_hw_epf",), 30)
DRIVERS = [*reversed(SWITCHTEC.drivers), *EPF.drivers]


def ntb_scenario(hosts=("a", "b"), topology=TOPOLOGY, kernels=("7.2",),
                 **options):
    """A scenario of guests with Linux's own modules and none of ours."""
    return scenario(hosts=hosts, topology=topology, kernels=kernels,
                    upstream=True, **options)


class Side:
    """One end: a guest and the files of ntb_tool in it."""

    def __init__(self, guest, bridge=SWITCHTEC):
        self.guest = guest
        self.bridge = bridge
        self.tool = f"{DEBUG}/ntb_tool/{bridge.device}"

    def load(self, *clients):
        """The drivers, and these clients instead of others."""
        upstream.unload(self.guest, *CLIENTS)
        upstream.load(self.guest, *self.bridge.drivers, *clients)

    def read(self, name):
        return self.guest.sh(f"cat {self.tool}/{name}")

    def write(self, name, value):
        # The shell's own echo does not say which write failed.
        self.guest.sh(f"printf %s {shlex.quote(str(value))} >{self.tool}/{name}")

    def link(self, on):
        """Bring this side's half of the link up or down."""
        self.write("link", "Y" if on else "N")

    def wait_link(self, on, timeout=20):
        """Wait until the driver says that the link is up, or down."""
        word = "Y" if on else "N"
        return self.guest.run(
            f"timeout {timeout * self.guest.patience} "
            f"sh -c 'printf {word} >{self.tool}/peer0/link_event'",
            timeout + 10).status == 0

    def interrupts(self, name):
        """How many interrupts of that name the guest has had."""
        return int(self.guest.sh(
            f"awk '/{name}/ {{ n += $2 }} END {{ print n + 0 }}' "
            "/proc/interrupts"))

    def words(self, name, offset, count, size=4):
        """Bytes of a file of ntb_tool, as hexadecimal digits."""
        return self.guest.sh(
            f"dd if={self.tool}/{name} bs={size} skip={offset // size} "
            f"count={count} status=none | od -An -v -tx1 | tr -d ' \\n'")


def unload(guest):
    """All drivers of bridges, and their clients."""
    upstream.unload(guest, *CLIENTS, *DRIVERS)


def sides(lab, *clients, bridge=SWITCHTEC):
    """Both ends with these clients loaded, the link not yet up, and no driver of
    the other bridge."""
    ends = [Side(lab.guest(name), bridge) for name in "ab"]
    for end in ends:
        unload(end.guest)
        end.load(*clients)
    return ends


def linked(lab, bridge=SWITCHTEC):
    """Both ends with ntb_tool and the link up."""
    ends = sides(lab, "ntb_tool", bridge=bridge)
    for end in ends:
        end.link(True)
    for end in ends:
        if not end.wait_link(True):
            raise AssertionError(f"{end.guest.name}: no link\n"
                                 + end.guest.dmesg()[-3000:])
    return ends


def wait_ping(own, address):
    """Until the other host answers: an NTB's link takes a while."""
    return own.guest.run(
        f"for i in $(seq {20 * own.guest.patience}); do "
        f"busybox ping -c 1 -W 1 {address} >/dev/null && exit; done; exit 1",
        60).status == 0


def send_file(t, own, peer, address, data):
    """By TCP, compared at the other end."""
    own.guest.put(data, "/run/data")
    peer.guest.put(RECEIVE.encode(), "/run/receive")
    own.guest.put(SEND.encode(), "/run/send")
    server = peer.guest.start_command("python3 /run/receive")
    own.guest.sh(f"python3 /run/send {address}", 60)
    t.equal(server.wait(60).check().stdout.strip(),
            hashlib.sha256(data).hexdigest(),
            f"what {own.guest.name} has sent arrives at {peer.guest.name}")


def exchange(t, a, b):
    """IP over ntb_netdev: both ways, and what is sent is what arrives."""
    address = {"a": "10.78.0.1", "b": "10.78.0.2"}
    for side in (a, b):
        name = side.guest.sh("ls /sys/class/net | grep -v ^lo$")
        side.guest.sh(f"ip address add {address[side.guest.name]}/24 dev {name}"
                      f" && ip link set {name} up")
    for own, peer in ((a, b), (b, a)):
        t.need(wait_ping(own, address[peer.guest.name]),
               f"{peer.guest.name} answers {own.guest.name}",
               own.guest.dmesg()[-2000:])
        send_file(t, own, peer, address[peer.guest.name],
                  random.Random(own.guest.name).randbytes(2 << 20))


def spads(t, a, b, count):
    """Scratchpads of either side, written by the other, read at both."""
    values = random.Random(7).sample(range(1 << 32), 2 * count)
    for own, peer, want in ((a, b, values[:count]), (b, a, values[count:])):
        name = f"from {own.guest.name} to {peer.guest.name}"
        own.guest.sh("\n".join(f"echo {v} >{own.tool}/peer0/spad{i}"
                               for i, v in enumerate(want)))
        for side, path in ((peer, ""), (own, "peer0/")):
            # By the shell itself: a cat for each would take its time.
            got = side.guest.sh(
                f"set -e; cd {side.tool}/{path}; "
                f"for i in {{0..{count - 1}}}; do echo \"$(<spad$i)\"; done")
            t.equal([int(v, 0) for v in got.split()], want,
                    f"{name}, read at {side.guest.name}")


def carry(t, own, peer, number, seed, larger=True):
    """Window `number` of `own` into memory of `peer`: both ways, to the byte.
    larger: it could show more than the memory that it is aimed at."""
    name = f"window {number} from {own.guest.name}"
    data = random.Random(seed).randbytes(WINDOW)
    peer.write(f"peer0/mw_trans{number}", WINDOW)
    own.write(f"peer0/peer_mw_trans{number}", f"0:{WINDOW << larger}")
    inside, outside = (f"{peer.tool}/peer0/mw{number}",
                       f"{own.tool}/peer0/peer_mw{number}")
    own.guest.put(data, "/run/data")
    own.guest.sh(f"dd if=/run/data of={outside} bs=4K status=none")
    t.equal(sha(peer, inside), hashlib.sha256(data).hexdigest(),
            f"{name}: what was stored has arrived")
    data = bytes(reversed(data))
    peer.guest.put(data, "/run/data")
    peer.guest.sh(f"dd if=/run/data of={inside} bs=4K status=none")
    t.equal(sha(own, outside), hashlib.sha256(data).hexdigest(),
            f"{name}: what is there can be loaded")
    beyond = f"peer0/peer_mw{number}"
    if larger:
        t.equal(own.words(beyond, WINDOW, 4), "ff" * 16,
                f"{name}: there is nothing behind it")
    peer.write(f"peer0/mw_trans{number}", 0)
    t.equal(own.words(beyond, 0, 4), "ff" * 16, f"{name}: nothing when cleared")
    own.write(f"peer0/peer_mw_trans{number}", "0:0")


def sha(side, path):
    return side.guest.sh(f"dd if={path} bs=4K count={WINDOW // 4096} "
                         "status=none | sha256sum").split()[0]


def ring(t, own, peer):
    """Each doorbell of `peer`, rung by `own`: that bit and no other."""
    wrong = []
    count = own.bridge.doorbells
    peer.write("db_mask", f"s {(1 << count) - 1}")
    peer.write("db", f"c {(1 << count) - 1}")
    for bit in range(count):
        # One script for each end, as starting it is what takes the time.
        other = own.guest.sh(f"set -e; cd {own.tool}; "
                             f"printf 's {1 << bit}' >peer_db; cat db")
        got = peer.guest.sh(f"set -e; cd {peer.tool}; cat db; "
                            f"printf 'c {1 << bit}' >db; cat db").split()
        if [int(v, 0) for v in (other, *got)] != [0, 1 << bit, 0]:
            wrong.append((bit, other, *got))
    t.equal(wrong, [], f"each doorbell of {peer.guest.name}")


class Pair:
    """Both ends of a bridge, of which either host may go and come back."""

    def __init__(self, lab, bridge):
        self.name = bridge.name
        self.ends = {name: Side(lab.guest(name), bridge) for name in "ab"}

    def other(self, guest):
        return self.ends["b" if guest.name == "a" else "a"]

    def works(self, t, what):
        """The link is up at both, and scratchpads carry both ways: through what
        the drivers have set up anew."""
        a, b = self.ends.values()
        for side in (a, b):
            side.link(True)
        up = [side.wait_link(True) for side in (a, b)]
        t.need(all(up), f"{what}: the link of {self.name} is up again",
               a.guest.dmesg()[-2000:] + b.guest.dmesg()[-2000:])
        values = [random.randrange(1 << 32) for _ in "ab"]
        a.write("peer0/spad5", values[0])
        b.write("peer0/spad5", values[1])
        t.equal([int(b.read("spad5"), 0), int(a.read("spad5"), 0)], values,
                f"{what}: they reach each other by {self.name}")


def load_all(guest, pairs):
    """What a guest has to be given for all bridges."""
    for pair in pairs:
        upstream.load(guest, *pair.ends[guest.name].bridge.drivers)
    upstream.load(guest, "ntb_tool")


def down(t, guest, pairs, what):
    """The other host has heard that this one is gone."""
    for pair in pairs:
        t.ok(pair.other(guest).wait_link(False),
             f"{what}: the link of {pair.name} is down")


def loads_again(t, guest, pairs):
    """A host unloads its modules and loads them again: the links follow."""
    unload(guest)
    down(t, guest, pairs, f"{guest.name} has unloaded its modules")
    load_all(guest, pairs)
    for pair in pairs:
        pair.works(t, f"{guest.name} has loaded them again")


def has_booted(t, guest, pairs, what):
    """After a reset or a new start of a host: the links follow."""
    down(t, guest, pairs, f"{guest.name} was {what}")
    install.install([guest], modules=False)
    upstream.install([guest])
    load_all(guest, pairs)
    for pair in pairs:
        pair.works(t, f"{guest.name} was {what} and has booted")
