# SPDX-License-Identifier: GPL-2.0-only
"""What scenarios ask of the fabric: composing with fabrexctl, the PCI devices
that appear, peers and ports. Only this file knows the command line."""

import ctypes
import json
import time

GPU = "1234:da10"
# What the kernel accepts at most. Tests are not about how soon hosts answer.
PATIENT = "--timeout 30"
TIMED_OUT = 7		# fabrexctl(8), EXIT STATUS
TRIES = 5


def ctl(guest, args, timeout=60, **kw):
    """Run fabrexctl; the Result."""
    return guest.run("fabrexctl " + args, timeout=timeout, **kw)


def ctl_json(guest, args, timeout=60):
    """The JSON document that fabrexctl prints."""
    return json.loads(guest.sh("fabrexctl --json " + args, timeout=timeout))


def patiently(guest, args, tries=TRIES, **kw):
    """Run fabrexctl, again if a host had no time to answer: then all bindings
    are as they were before. One try where it is tested that it does answer."""
    for _ in range(tries):
        result = ctl(guest, f"{args} {PATIENT}", **kw)
        if result.status != TIMED_OUT:
            break
    return result


def compose(guest, endpoint, host, more="", **kw):
    return patiently(guest, f"compose {endpoint} --to {host} {more}", **kw)


def release(guest, endpoint, more="", **kw):
    return patiently(guest, f"release {endpoint} {more}", **kw)


def released(guest, names):
    """Release several at once, or one by one if their owner has no time for
    that, as on a kernel that checks itself; whether all are free then."""
    done = ctl(guest, f"release {' '.join(names)} {PATIENT}")
    if done.status == TIMED_OUT:
        for name in names:
            release(guest, name)
    now = endpoints(guest)
    return done.status in (0, TIMED_OUT) and \
        all(now[name]["state"] == "free" for name in names)


def endpoints(guest):
    """{name: record} of all endpoints."""
    doc = ctl_json(guest, "list endpoints")
    rows = doc if isinstance(doc, list) else doc["endpoints"]
    return {row["name"]: row for row in rows}


def endpoint(guest, name):
    return endpoints(guest)[name]


def gpus(guest):
    """Addresses of the emulated GPUs that the host's kernel sees."""
    return guest.sh(f"lspci -Dn -d {GPU} | cut -d' ' -f1").split()


def wait_gpus(guest, count, timeout=None):
    """Wait for that many; their addresses, however many there are. With a
    timeout exactly so long: for what must not come."""
    end = time.monotonic() + (timeout or 10 * guest.patience)
    while len(found := gpus(guest)) != count and time.monotonic() < end:
        time.sleep(0.05)
    return found


def wait_state(guest, name, state, timeout=15):
    """Wait for an endpoint's state; the state in the end."""
    end = time.monotonic() + timeout * guest.patience
    while (now := endpoint(guest, name)["state"]) != state \
            and time.monotonic() < end:
        time.sleep(0.1)
    return now


def release_all(lab, guest):
    """Nothing is bound any more; for scenarios that begin with that."""
    for name, row in endpoints(guest).items():
        if row["state"] not in ("free", "gone"):
            release(guest, name, "--force")
    for g in lab.guests.values():
        wait_gpus(g, 0)


def wait_peer(puppet, name, up, timeout=30):
    """Wait until a peer is up or down; its generation, None if it is not."""
    end = time.monotonic() + timeout * puppet.guest.patience
    while time.monotonic() < end:
        _, state, generation = puppet.ask("peer", name)
        if bool(state) == up:
            return generation
        time.sleep(0.1)
    return None


def wait_port(guest, timeout=60):
    """Wait until the host's port works (again)."""
    end = time.monotonic() + timeout * guest.patience
    while time.monotonic() < end:
        doc = guest.run("fabrexctl --json list fports")
        if doc.status == 0 and '"alive": true' in doc.stdout.replace(
                '"alive":true', '"alive": true'):
            return True
        time.sleep(0.2)
    return False


def memcpy_gbps(size=1 << 20, span=16 << 20, seconds=0.3):
    """What one thread of this machine copies, as fabrex-perf measures it."""
    src = ctypes.create_string_buffer(span)
    dst = ctypes.create_string_buffer(span)
    ctypes.memset(src, 1, span)
    ctypes.memset(dst, 2, span)
    a, b = ctypes.addressof(src), ctypes.addressof(dst)
    done = at = 0
    begun = time.monotonic()
    while (took := time.monotonic() - begun) < seconds:
        ctypes.memmove(b + at, a + at, size)
        done += size
        at = at + size if at + 2 * size <= span else 0
    return done / took / 1e9
