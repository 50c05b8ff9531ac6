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

# A stack trace is a complaint, except in the dump that follows one of these:
# fault injection says where it strikes, and the allocator what that led to.
TRACE = re.compile(r"\bCall Trace:")
INJECTED = re.compile(r"FAULT_INJECTION: forcing a failure")
STARVED = re.compile(r"page allocation failure: order:|warn_alloc: ")
DUMP_ENDS = re.compile(r"</TASK>|---\[ end trace")
DUMP = 120		# lines, at most
STARVED_WITHIN = 200	# lines after an injection


class Dumps:
    """Whether a line is part of a dump that is excused."""

    def __init__(self):
        self.until = self.injected = -1

    def begin(self, at):
        self.until = at + DUMP

    def see(self, at, line):
        if INJECTED.search(line):
            self.injected = at + STARVED_WITHIN
            self.begin(at)
        elif STARVED.search(line) and at < self.injected:
            self.begin(at)
        elif DUMP_ENDS.search(line):
            self.until = -1

    def excuses(self, at, line):
        return at < self.until and TRACE.search(line)


def complaints(text, allowed=()):
    """Excerpts, at most MOST of them, of what a log must not contain."""
    lines = text.splitlines()
    found, skip_to, seen, dumps = [], -1, set(), Dumps()
    for at, line in enumerate(lines):
        dumps.see(at, line)
        if at < skip_to or not BAD.search(line) or GOOD.search(line) \
                or dumps.excuses(at, line):
            continue
        line = line.strip()
        # A warning's text is on the line before in newer kernels.
        subject = lines[at - 1] + "\n" + line if at and "WARNING:" in line \
            else line
        if any(p.search(subject) for p in allowed):
            dumps.begin(at)	# what else is wrong there still counts
            continue
        skip_to = at + AFTER
        if line in seen:
            continue		# the console repeats what dmesg has
        seen.add(line)
        found.append("\n".join(lines[max(0, at - BEFORE):at + AFTER]))
        if len(found) == MOST:
            break
    return found
