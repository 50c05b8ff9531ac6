# SPDX-License-Identifier: GPL-2.0-only
"""What schedules move, from their text."""

import os
import unittest

import space
import traffic

SCHEDULES = os.path.join(space.TREE, "topologies", "schedules")
HEAD = "fabrex-schedule 1\ncollective all-reduce\nranks 3\n"


def read(name):
    with open(os.path.join(SCHEDULES, name), encoding="utf-8") as f:
        return f.read()


class Traffic(unittest.TestCase):
    def test_ring(self):
        """Each rank sends two chunks of the four twice to the next, two once."""
        moved = traffic.traffic(read("ring-4.sched"), 1 << 20, 4)
        self.assertEqual(moved, {(r, (r + 1) % 4): 6 << 20 for r in range(4)})

    def test_exchange(self):
        """In brackets, each rank sends all to two others."""
        moved = traffic.traffic(read("exchange-4.sched"), 1000, 4)
        self.assertEqual(sum(moved.values()), 8 * 4000)
        self.assertEqual(moved[(0, 1)], 4000)
        self.assertNotIn((0, 3), moved)

    def test_weights(self):
        """Limits are rounded down to 64 bytes, except for the end."""
        text = HEAD + "split 1 3x2\nreduce 0 0>1>2\n  2>1\ncopy 1-2 2>0 #1>2\n"
        moved = traffic.traffic(text, 10001, 4)
        ends = [0, 10001 // 7 // 16 * 16, 10001 * 4 // 7 // 16 * 16, 10001]
        self.assertEqual(ends[1:3], [1424, 5712])
        self.assertEqual(moved, {(0, 1): 4 * 1424, (1, 2): 4 * 1424,
                                 (2, 1): 4 * 1424,
                                 (2, 0): 4 * (10001 - 1424)})

    def test_small(self):
        """Small chunks end where their elements do."""
        text = HEAD + "split 1x3\nreduce 0 0>1\ncopy 1,2 1>0\n"
        self.assertEqual(traffic.traffic(text, 100, 4),
                         {(0, 1): 33 * 4, (1, 0): 67 * 4})

    def test_unknown(self):
        with self.assertRaises(traffic.BadSchedule):
            traffic.traffic(HEAD + "shard 0 1\n", 10, 4)


if __name__ == "__main__":
    unittest.main()
