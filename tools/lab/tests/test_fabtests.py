# SPDX-License-Identifier: GPL-2.0-only
"""What fabtests.py makes of runfabtests.sh's output and of the file that says what
is not run, and openmpi.py of what Open MPI says. The programs themselves:
make check-libfabric."""

import io
import os
import tempfile
import unittest

import fabtests
import openmpi
import tap

# As runfabtests.sh -vvv prints it.
OUTPUT = """\
- name:   fi_rdm -p "fabrex"
  timestamp: 20261128-071030+0000
  result: Pass
  time:   2
  server_stdout: |
    Waiting for message from client...
- name:   fi_dgram -p "fabrex"
  timestamp: 20261128-071033+0000
  result: Excluded
  time:   0
- name:   fi_flood -e rdm -v -T 1 -p "fabrex"
  timestamp: 20261128-071033+0000
  result: Fail
  time:   7
  client_cmd: fi_flood -e rdm
  client_stdout: |
    fi_getinfo(): common/shared.c:1072, ret=-61 (No data available)
# ------------------------------------------------------------------------------
# Total Pass                                                 1
""".splitlines(keepends=True)

EXCLUDE = """\
# About the file.

# datagrams are
# not offered
^fi_dgram
-e dgram

# another reason
^fi_scalable_ep
"""


class Check:
    """As much of check.Check as is used."""

    def __init__(self):
        self.out = io.StringIO()
        self.tap = tap.Writer(self.out)


class Parse(unittest.TestCase):
    def test_results(self):
        found = list(fabtests.parse(OUTPUT))
        self.assertEqual([(r.test, r.result, r.seconds) for r in found],
                         [("fi_rdm", "Pass", "2"), ("fi_dgram", "Excluded", "0"),
                          ("fi_flood -e rdm -v -T 1", "Fail", "7")])
        self.assertIn("ret=-61", found[2].output[-1])

    def test_half_a_result(self):
        found = list(fabtests.parse(OUTPUT[:1]))
        self.assertEqual(found[0].result, "")

    def test_points(self):
        check, excluded = Check(), excluded_of(EXCLUDE)
        for result in fabtests.parse(OUTPUT):
            fabtests.tell(check, "unit", result, excluded)
        text = check.out.getvalue()
        self.assertIn("ok 1 unit: fi_rdm\n", text)
        self.assertIn("ok 2 unit: fi_dgram # SKIP datagrams are not offered\n",
                      text)
        self.assertIn("not ok 3 unit: fi_flood -e rdm -v -T 1\n", text)
        self.assertIn("No data available", text)
        self.assertEqual(check.tap.totals.line(),
                         "1 passed, 1 failed, 1 skipped")

    def test_excluded_without_a_reason(self):
        check = Check()
        for result in fabtests.parse(OUTPUT[6:10]):
            fabtests.tell(check, "unit", result, excluded_of("^fi_dgram\n"))
        self.assertEqual(check.tap.totals.failed, 1)

    def test_nothing_said_is_no_success(self):
        check = Check()
        fabtests.tell(check, "unit", fabtests.Result("fi_rdm"), None)
        self.assertEqual(check.tap.totals.failed, 1)


def excluded_of(text):
    with tempfile.NamedTemporaryFile("w", delete=False) as f:
        f.write(text)
    try:
        return fabtests.Excluded(f.name)
    finally:
        os.unlink(f.name)


class Exclude(unittest.TestCase):
    def test_reasons(self):
        excluded = excluded_of(EXCLUDE)
        self.assertEqual(excluded.reason("fi_av_xfer -e dgram"),
                         "datagrams are not offered")
        self.assertEqual(excluded.reason("fi_scalable_ep"), "another reason")
        self.assertEqual(excluded.reason("fi_rdm"), "")
        self.assertEqual(excluded.unused, ["^fi_dgram"])

    def test_all_of_ours_have_one(self):
        rows = fabtests.Excluded(fabtests.EXCLUDE).rows
        self.assertTrue(rows)
        for pattern, reason in rows:
            self.assertGreater(len(reason), 20, pattern)
            # runfabtests.sh puts commas between them.
            self.assertNotIn(",", pattern)


class OpenMpi(unittest.TestCase):
    """Whether it was our provider that the ranks took."""

    class Result:
        returncode = 0
        stdout = ""

        def __init__(self, stderr):
            self.stderr = stderr

    MTL = "[vm:7] x/mtl_ofi_component.c:343: mtl:ofi:provider: fabrex\n" \
        "[vm:7] x/mtl_ofi_component.c:368: mtl:ofi:provider:domain: a.0\n"
    CORE = "libfabric:6:1::core:core:fi_fabric_():1598<info> Using fabrex " \
        "provider 2.1, path:/x/libfabrex-fi.so\n"
    OTHER = "[vm:8] x/mtl_ofi_component.c:343: mtl:ofi:provider: shm\n"

    def wrong(self, stderr, provider=True):
        transport = openmpi.tagged(Fabrex) if provider else openmpi.DEFAULT
        return openmpi.right_provider(transport, self.Result(stderr))

    def test_ours(self):
        self.assertIsNone(self.wrong(self.MTL))
        self.assertIsNone(self.wrong(self.CORE))
        self.assertIsNone(self.wrong(self.MTL + self.CORE))

    def test_another(self):
        self.assertIn("shm", self.wrong(self.MTL + self.OTHER))
        self.assertIn("no provider", self.wrong(""))

    def test_none(self):
        self.assertIsNone(self.wrong("", False))
        self.assertIn("fabrex", self.wrong(self.MTL, False))

    def test_plan(self):
        self.assertEqual(openmpi.tap_plan("ok 1 - a\n1..33\n"), 33)
        self.assertIsNone(openmpi.tap_plan("ok 1 - a\n"))


class Fabrex:
    name = "fabrex"
