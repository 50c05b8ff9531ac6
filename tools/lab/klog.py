# SPDX-License-Identifier: GPL-2.0-only
"""Judging kernel logs: what must never be in one, and the excerpt around it.
Used by guest.py after each run; selftests may call complaints() too."""

import re

BAD = re.compile(
    r"\bWARNING:|\bWARN_ON|\bBUG:|\bBUG_ON|kernel BUG at|\bOops\b|"
    r"general protection fault|\bKASAN\b|\bUBSAN\b|kmemleak: \d+ new|"
    r"refcount_t|possible recursive locking|possible circular locking|"
    r"inconsistent lock state|suspicious RCU usage|lock held when returning|"
    r"invalid wait context|sleeping function called from|"
    r"scheduling while atomic|blocked for more than|soft lockup|hard LOCKUP|"
    r"rcu: INFO: .*(stall|expedited)|unregister_netdevice: waiting|"
    r"list_(add|del) corruption|ODEBUG|DMA-API: .*(error|leak|not freed|"
    r"pending)|Kernel panic|Unable to handle|unreferenced object|\bleak(s|ed)?\b|"
    r"BUG kmalloc|still has locks held|Call Trace:|workqueue lockup|"
    r"Objects remaining in")
GOOD = re.compile(
    r"kmemleak: (Kernel memory leak detector|Automatic memory)|"
    r"KernelAddressSanitizer initialized|UBSAN: .*enabled|"
    r"RAS: Correctable|lockdep debugging|gdbstub|"
    r"software IO TLB|mem auto-init|mtrr|refcount_t: .*selftest|"
    r"Poking KASLR|LSM support for eBPF")
BEFORE, AFTER, MOST = 2, 25, 8


def complaints(text, allowed=()):
    """Excerpts, at most MOST of them, of what a log must not contain."""
    lines = text.splitlines()
    found, skip_to, seen = [], -1, set()
    for at, line in enumerate(lines):
        if at < skip_to or not BAD.search(line) or GOOD.search(line):
            continue
        skip_to = at + AFTER
        line = line.strip()
        if line in seen or any(p.search(line) for p in allowed):
            continue		# the console repeats what dmesg has
        seen.add(line)
        found.append("\n".join(lines[max(0, at - BEFORE):at + AFTER]))
        if len(found) == MOST:
            break
    return found
