# SPDX-License-Identifier: GPL-2.0-only
"""Parts of make check-debug, patience, and results that are held back."""

import io
import os
import unittest
import unittest.mock

import build
import check
import parts
import process
import scenario
import tap


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.names = [s.name for s in scenario.load()]

    def test_every_scenario_is_in_one_part(self):
        chosen = [n for part in parts.load()
                  for n in filter(parts.chooser(part), self.names)]
        self.assertEqual(sorted(chosen), sorted(self.names))

    def test_a_scenario_belongs_to_its_file_alone(self):
        """One file may import another's functions."""
        self.assertEqual(len(self.names), len(set(self.names)))
        functions = [s.function.__module__.removeprefix("selftest_")
                     for s in scenario.SCENARIOS]
        self.assertEqual(functions, [s.suite.replace(".", "_")
                                     for s in scenario.SCENARIOS])

    def test_every_word_is_of_use(self):
        words = [w for ws in parts.load().values() for w in ws]
        for word in (*words, *parts.KCSAN):
            self.assertTrue(any(word in n for n in self.names), word)

    def test_numbers(self):
        names = list(parts.load())
        for n, part in enumerate(names, 1):
            by_number = parts.chooser(f"{n}/{len(names)}")
            by_name = parts.chooser(part)
            self.assertEqual(list(map(by_number, self.names)),
                             list(map(by_name, self.names)))

    def test_no_such_part(self):
        for part in ("x", "0/7", "8/7", "1/2", ""):
            with self.assertRaises(KeyError):
                parts.chooser(part)


class Patience(unittest.TestCase):
    def test_more_where_everything_is_checked(self):
        self.assertGreater(process.patience("debug"), process.patience("7.2"))

    def test_of_the_environment(self):
        usual = process.patience()
        with unittest.mock.patch.dict(os.environ, FABREX_PATIENCE="3"):
            self.assertEqual(process.patience(), 3 * usual)


class Held(unittest.TestCase):
    def test_told_later(self):
        held, out = tap.Held(), io.StringIO()
        writer = tap.Writer(out)
        writer.point(True, "first")
        held.include("1..2\nok 1 x\nwhy\nnot ok 2 y\n", "p")
        held.point(True, "z", skip="no")
        held.diag("said")
        self.assertEqual(out.getvalue(), "ok 1 first\n")
        held.tell(writer)
        self.assertEqual(out.getvalue().splitlines(), [
            "ok 1 first", "ok 2 p: x", "not ok 3 p: y", "# why",
            "ok 4 z # SKIP no", "# said"])
        self.assertEqual((held.totals.failed, writer.totals.failed), (1, 1))
        self.assertEqual(writer.totals.line(), "2 passed, 1 failed, 1 skipped")


class Suites(unittest.TestCase):
    """Points of a suite that Meson has run."""

    @staticmethod
    def points(*tests):
        out = io.StringIO()
        with unittest.mock.patch.object(build, "test", return_value=tests):
            check.one_suite("x").tell(tap.Writer(out))
        return [l for l in out.getvalue().splitlines() if l[0] != "#"]

    def test_tap_is_counted(self):
        self.assertEqual(self.points(
            {"name": "unit", "result": "OK", "stdout": "1..2\nok 1 a\nok 2 b\n"},
            {"name": "symbols", "result": "OK", "stdout": "# fine\n"}),
            ["ok 1 check-x: a", "ok 2 check-x: b"])

    def test_a_failure_is_one_point(self):
        self.assertEqual(self.points(
            {"name": "unit", "result": "FAIL", "stdout": "not ok 1 a\n"},
            {"name": "crash", "result": "ERROR", "stdout": "ok 1 b\n"},
            {"name": "symbols", "result": "FAIL", "stderr": "differ\n"}),
            ["not ok 1 check-x: a", "ok 2 check-x: b",
             "not ok 3 check-x: crash: ERROR",
             "not ok 4 check-x: symbols: FAIL"])

    def test_a_suite_without_tap_is_one_point(self):
        self.assertEqual(self.points({"name": "frozen", "result": "OK"}),
                         ["ok 1 check-x"])
