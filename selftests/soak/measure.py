# SPDX-License-Identifier: GPL-2.0-only
"""What must not grow: objects that the drivers count, descriptors and memory of
the hosts and of the emulator. Read while nothing runs."""

import os

OBJECTS = ("queues", "mrs", "windows", "pinned_bytes", "dmabuf_bytes")


def objects(guest):
    """Live objects of the host's port, and what its kernel has of us."""
    names = " ".join(OBJECTS)
    text = guest.sh("cd /sys/class/fabrex/fabrex*/usage && cat " + names)
    found = dict(zip(OBJECTS, map(int, text.split())))
    found["processes"] = int(guest.sh(
        "ps ax | grep -cE '[d]ma-puppet|[c]oll-rank|[g]pu-churn|[s]oak-hoard' || true"))
    return found


def memory(guest):
    """KiB that the kernel cannot give back, and open files of all."""
    text = guest.sh(
        "echo 3 >/proc/sys/vm/drop_caches; sed -n "
        "'s/^\\(SUnreclaim\\|KernelStack\\|PageTables\\|VmallocUsed\\|Percpu\\):"
        " *\\([0-9]*\\).*/\\1 \\2/p' /proc/meminfo; "
        "echo files $(cut -f1 /proc/sys/fs/file-nr)")
    rows = dict(line.split() for line in text.splitlines())
    return {name: int(value) for name, value in rows.items()}


def emulator(lab):
    """draco-emu's own memory in KiB, without what it shares with guests, and
    its descriptors and threads."""
    pid = lab.emu.child.pid
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        rows = dict(line.split(":", 1) for line in f)
    return {"anonymous": int(rows["RssAnon"].split()[0]),
            "threads": int(rows["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


# Growth that is no leak: caches of the allocator, of processors, of debuggers.
ALLOWED = {"SUnreclaim": 6144, "KernelStack": 1024, "PageTables": 2048,
           "VmallocUsed": 4096, "Percpu": 1024, "files": 64,
           "anonymous": 4096, "threads": 2, "descriptors": 4}
DEBUG_FACTOR = 8	# quarantine, stack depot, lockdep's and kmemleak's own


def all_of(lab):
    """{who: {what: amount}}."""
    found = {name: memory(guest) for name, guest in lab.guests.items()}
    found["draco-emu"] = emulator(lab)
    return found


def grown(first, last, factor=1):
    """What has grown by more than is allowed, as sentences."""
    return [f"{who}: {what} {first[who][what]} -> {last[who][what]}"
            for who in first for what in first[who]
            if last[who][what] - first[who][what] >
            ALLOWED[what] * (factor if who != "draco-emu" else 1)]
