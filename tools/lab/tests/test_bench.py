# SPDX-License-Identifier: GPL-2.0-only
"""Wires between guests; medians and ratios of make bench-lab."""

import os
import tempfile
import unittest

import bench
import network
import peers


class Wires(unittest.TestCase):
    def ends(self, names):
        """{path: [how each end opens it]} of all wires."""
        found = {}
        for name in names:
            for arg in network.devices(names, name, str):
                if arg.startswith("stream,"):
                    option = dict(p.split("=") for p in arg.split(",")[1:])
                    found.setdefault(option["addr.path"], []).append(
                        option["server"])
        return found

    def test_one_between_each_two(self):
        ends = self.ends(["a", "b", "c", "d"])
        self.assertEqual(len(ends), 6)
        for path, both in ends.items():
            self.assertEqual(sorted(both), ["off", "on"], path)

    def test_alone(self):
        self.assertEqual(network.devices(["a"], "a", str), [])

    def test_addresses(self):
        names = ["a", "ba"]
        self.assertEqual(network.address(names, "ba"), "10.77.0.2")
        self.assertIn("lab.net=a=10.77.0.1,ba=10.77.0.2",
                      network.append(names))

    def test_name_too_long(self):
        with self.assertRaises(ValueError):
            network.devices(["a", "x" * 13], "a", str)


class Peers(unittest.TestCase):
    def test_numbers_that_json_lacks(self):
        found = peers.perftest_json(
            '{"results": {"t_typical": 1.5, "t_stdev": -nan, "t_max": inf}}')
        self.assertEqual(found["t_typical"], 1.5)


class Kept(unittest.TestCase):
    def kept(self, before):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "x.md")
            if before is not None:
                with open(path, "w") as f:
                    f.write(before)
            bench.keep(path, "table\n")
            with open(path) as f:
                return f.read()

    def test_file_of_its_own(self):
        self.assertEqual(self.kept(None), "table\n")
        self.assertEqual(self.kept("older table\n"), "table\n")

    def test_place_in_a_document(self):
        begin, end = bench.MARKS
        self.assertEqual(self.kept(f"a\n{begin}\nold\n{end}\nb\n"),
                         f"a\n{begin}\ntable\n{end}\nb\n")


class Figures(unittest.TestCase):
    def measured(self, unit, *columns):
        """A Bench whose ways said these figures, round by round."""
        ways = [peers.Way(f"way{i}", "tool", lambda _lab, _effort, it=iter(c):
                          next(it)) for i, c in enumerate(columns)]
        made = bench.Bench([peers.Contest("thing", unit, ways)])
        for _ in columns[0]:
            made.round(None, 1)
        return made.tables[0]

    def test_less_is_better(self):
        base, other = self.measured("us", [1, 2, 4], [10, 10, 10])
        self.assertEqual(base.spread(), (2, 1, 4))
        self.assertEqual(other.better(base), (5, 2.5, 10))

    def test_more_is_better(self):
        base, other = self.measured("MB/s", [100, 300], [50, 100])
        self.assertEqual(other.better(base), (2.5, 2, 3))

    def test_ratios_are_of_one_round(self):
        base, other = self.measured("us", [1, 10], [2, 20])
        self.assertEqual(other.better(base), (2, 2, 2))

    def test_no_figure_is_an_error(self):
        with self.assertRaises(RuntimeError):
            self.measured("us", [1], [0])
