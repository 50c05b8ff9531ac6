# SPDX-License-Identifier: GPL-2.0-only
"""Reading and counting results, and judging kernel logs."""

import io
import re
import unittest

import klog
import tap

KSELFTEST = """TAP version 13
1..3
# Starting 3 tests
#  RUN           global.a ...
ok 1 global.a
not ok 2 global.b
ok 3 global.c # SKIP no device
# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
"""

NESTED = """KTAP version 1
1..1
    KTAP version 1
    1..2
    ok 1 first
    not ok 2 second
not ok 1 suite
"""


class Count(unittest.TestCase):
    def test_flat(self):
        totals = tap.count(KSELFTEST)
        self.assertEqual(totals.line(), "1 passed, 1 failed, 1 skipped")
        self.assertEqual(totals.failures, ["global.b"])

    def test_parents_are_not_counted_again(self):
        self.assertEqual(tap.count(NESTED).line(),
                         "1 passed, 1 failed, 0 skipped")

    def test_text_is_no_point(self):
        self.assertEqual(tap.count("okay\nnot okay\nlook 1\n").line(),
                         "0 passed, 0 failed, 0 skipped")

    def test_include_renumbers_and_keeps_skips(self):
        writer = tap.Writer(io.StringIO())
        writer.point(True, "before")
        self.assertFalse(writer.include(KSELFTEST, "x"))
        lines = [l for l in writer.out.getvalue().splitlines()
                 if not l.startswith("#")]
        self.assertEqual(lines, ["ok 1 before", "ok 2 x: global.a",
                                 "not ok 3 x: global.b",
                                 "ok 4 x: global.c # SKIP no device"])


class KernelLog(unittest.TestCase):
    bad = [
        "[    1.0] WARNING: CPU: 0 PID: 1 at mm/slub.c:1 foo+0x1/0x2",
        "[    1.0] BUG: KASAN: slab-use-after-free in foo+0x1/0x2",
        "[    1.0] BUG: unable to handle page fault for address: 00",
        "[    1.0] Oops: 0000 [#1] SMP",
        "[    1.0] WARNING: possible circular locking dependency detected",
        "[    1.0] refcount_t: underflow; use-after-free.",
        "[    1.0] INFO: task foo:12 blocked for more than 60 seconds.",
        "[    1.0] kmemleak: 3 new suspected memory leaks (see /sys)",
        "[    1.0] BUG: sleeping function called from invalid context at x.c",
        "[    1.0] UBSAN: array-index-out-of-bounds in x.c:1:2",
        "[    1.0] fabrex 0000:03:00.0: 2 regions leaked",
        "[    1.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
    ]
    good = [
        "[    0.0] kmemleak: Kernel memory leak detector initialized",
        "[    0.0] KernelAddressSanitizer initialized (generic)",
        "[    0.0] Warning: PCI driver foo has a struct",
        "[    0.0] pcieport 0000:02:01.0: pciehp: Slot(2): Link Up",
        "[    0.0] debugging is fine",
    ]

    def test_bad_lines_are_found(self):
        for line in self.bad:
            self.assertEqual(len(klog.complaints("before\n" + line)), 1, line)

    def test_good_lines_are_not(self):
        for line in self.good:
            self.assertEqual(klog.complaints(line), [], line)

    def test_excerpt_has_context(self):
        log = "\n".join(["one", "two", "three", self.bad[0], "after"])
        self.assertEqual(klog.complaints(log),
                         ["\n".join(["two", "three", self.bad[0], "after"])])

    def test_allowed_lines(self):
        allowed = [re.compile("regions leaked")]
        self.assertEqual(klog.complaints(self.bad[10], allowed), [])
        self.assertEqual(len(klog.complaints("\n".join(
            [self.bad[10]] + ["x"] * 30 + [self.bad[3]]), allowed)), 1)

    def test_the_text_of_a_warning_may_come_before_it(self):
        log = "\n".join(["[ cut here ]", "DMA-API: exceeded 7 mappings",
                         "WARNING: kernel/dma/debug.c:465 at add_dma_entry"])
        self.assertEqual(klog.complaints(log, [re.compile("exceeded 7")]), [])
        self.assertEqual(len(klog.complaints(log, [re.compile("other")])), 1)

    def test_an_allowed_line_hides_no_other(self):
        allowed = [re.compile("regions leaked")]
        log = "\n".join([self.bad[10], "Call Trace:", " <TASK>", "f+0x1/0x2",
                         " </TASK>", "BUG: another one"])
        found = klog.complaints(log, allowed)
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].endswith("BUG: another one"))

    injected = ["FAULT_INJECTION: forcing a failure.", "name failslab, x",
                "Call Trace:", " <TASK>", " dump_stack_lvl+0x1/0x2",
                " </TASK>"]

    def test_fault_injection_dumps_stacks(self):
        log = self.injected + ["a: page allocation failure: order:0, mode:0x1",
                               "Call Trace:", " <TASK>", " </TASK>"]
        self.assertEqual(klog.complaints("\n".join(log)), [])

    def test_traces_after_an_injection_count(self):
        for more in (["Call Trace:"], ["y"] * 200 + ["Call Trace:"],
                     ["BUG: KASAN: slab-use-after-free in f"]):
            log = "\n".join(self.injected + more)
            self.assertEqual(len(klog.complaints(log)), 1, more)

    def test_a_bug_within_an_injection_counts(self):
        log = self.injected[:3] + ["BUG: sleeping function called from x"] \
            + self.injected[3:]
        self.assertEqual(len(klog.complaints("\n".join(log))), 1)

    def test_starved_without_injection_counts(self):
        log = ["a: page allocation failure: order:0, mode:0x1", "Call Trace:"]
        self.assertEqual(len(klog.complaints("\n".join(log))), 1)

    def test_repeated_lines_are_told_once(self):
        log = "\n".join([self.bad[3]] + ["x"] * 40 + [self.bad[3]])
        self.assertEqual(len(klog.complaints(log)), 1)
