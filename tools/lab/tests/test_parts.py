# SPDX-License-Identifier: GPL-2.0-only
"""Topology files as the lab reads them, frames, versions, run directories."""

import os
import tempfile
import unittest

import agent
import process
import root
import space
import topology


class Topology(unittest.TestCase):
    def parse(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".topo") as f:
            f.write(text)
            f.flush()
            return topology.hosts(f.name)

    def test_hosts(self):
        text = '''
        hosts = (
          { name = "a"; ports = ( "s:1", "s:2" ); slots = 4; },
          // { name = "commented"; ports = ( "s:9" ); },
          { name = "b#1"; ports = [ "s:3" ]; }	# "quoted comment"
        );
        /* hosts = ( { name = "c"; } ); */
        '''
        self.assertEqual(self.parse(text), [("a", 4, 2), ("b#1", 16, 1)])

    def test_other_lists_are_not_hosts(self):
        text = 'x_hosts = ( { name = "a"; } ); switches = ( { name = "s"; } );'
        self.assertEqual(self.parse(text), [])

    def test_largest_vram(self):
        for text, wanted in (('{ vram = "64M"; }, { vram : "4G"; }', 4 << 30),
                             ('{ count = 2; } // vram = "1G"', 0)):
            with tempfile.NamedTemporaryFile("w", suffix=".topo") as f:
                f.write(text)
                f.flush()
                self.assertEqual(topology.vram(f.name), wanted)

    def test_shipped_files(self):
        top = os.path.join(space.TREE, "topologies")
        names = [n for n in os.listdir(top) if n.endswith(".topo")]
        self.assertIn("demo.topo", names)
        for name in names:
            self.assertTrue(topology.hosts(os.path.join(top, name)), name)


class Frames(unittest.TestCase):
    def test_split_anywhere(self):
        data = agent.frame("O", 7, b"hello") + agent.frame("S", 7, b"\0" * 4)
        for cut in range(len(data)):
            parser = agent.Parser()
            got = list(parser.feed(data[:cut])) + list(parser.feed(data[cut:]))
            self.assertEqual(got, [("O", 7, b"hello"), ("S", 7, b"\0" * 4)])

    def test_resynchronises(self):
        parser = agent.Parser()
        data = b"noise FLA" + agent.frame("H", 0, b"7.2")
        self.assertEqual(list(parser.feed(data)), [("H", 0, b"7.2")])

    def test_exit_codes(self):
        self.assertEqual(agent.exit_code(3 << 8), 3)
        self.assertEqual(agent.exit_code(9), 137)


class Versions(unittest.TestCase):
    def test_newest_is_by_number(self):
        names = [f"linux-image-{v}" for v in (
            "7.2.9+deb13-amd64", "7.2.12+deb13-amd64",
            "7.2.12+deb13-cloud-amd64", "7.20.1+deb13-amd64",
            "6.12.107+deb13-amd64", "7.2.12+deb13-amd64-dbg")]
        self.assertEqual(root.newest(names, "linux-image", "7.2"),
                         "linux-image-7.2.12+deb13-amd64")

    def test_debian_12_names(self):
        names = ["linux-headers-6.1.0-9-amd64", "linux-headers-6.1.0-56-amd64"]
        self.assertEqual(root.newest(names, "linux-headers", "6.1"),
                         "linux-headers-6.1.0-56-amd64")


class RunDirs(unittest.TestCase):
    def test_stale_ones_go_live_ones_stay(self):
        with tempfile.TemporaryDirectory() as top:
            saved, tempfile.tempdir = tempfile.tempdir, top
            try:
                live = process.RunDir()
                stale = os.path.join(top, process.PREFIX + "stale")
                os.mkdir(stale)
                open(stale + "/lock", "w").close()
                process.remove_stale()
                self.assertEqual(os.listdir(top),
                                 [os.path.basename(live.path)])
                live.remove()
                self.assertEqual(os.listdir(top), [])
            finally:
                tempfile.tempdir = saved
