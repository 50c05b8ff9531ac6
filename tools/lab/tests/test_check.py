# SPDX-License-Identifier: GPL-2.0-only
"""Parts of make check-debug, patience, and results that are held back."""

import io
import os
import unittest
import unittest.mock

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
