# SPDX-License-Identifier: GPL-2.0-only
"""Topology files as the lab reads them, frames, versions, run directories."""

import os
import tempfile
import time
import unittest
import unittest.mock

import agent
import emu
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


class Throttle(unittest.TestCase):
    def factor(self, throttle, environment):
        with unittest.mock.patch.dict(os.environ, environment):
            return emu.Emu("/", "x.topo", "/run", [], throttle=throttle).throttle

    def test_a_lab_overrides_the_environment(self):
        everywhere = {"FABREX_THROTTLE": "0.01"}
        self.assertEqual(self.factor(None, everywhere), 0.01)
        self.assertEqual(self.factor(0.5, everywhere), 0.5)
        self.assertEqual(self.factor(0, everywhere), 0)
        self.assertEqual(self.factor(None, {"FABREX_THROTTLE": "0"}), 0)
        self.assertEqual(self.factor(None, {"FABREX_THROTTLE": ""}), 0)


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
    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        saved = unittest.mock.patch.object(tempfile, "tempdir", top.name)
        saved.start()
        self.addCleanup(saved.stop)

    def unlocked(self, age):
        path = tempfile.mkdtemp(prefix=process.PREFIX)
        with open(os.path.join(path, "lock"), "w", encoding="utf-8"):
            pass
        then = time.time() - age
        os.utime(path, (then, then))
        return path

    def test_one_that_is_being_made_stays(self):
        path = self.unlocked(0)
        process.remove_stale()
        self.assertTrue(os.path.exists(path))

    def test_one_that_was_left_goes(self):
        path = self.unlocked(3600)
        process.remove_stale()
        self.assertFalse(os.path.exists(path))

    def test_one_in_use_stays(self):
        used = process.RunDir()
        os.utime(used.path, (0, 0))
        process.remove_stale()
        self.assertTrue(os.path.exists(used.path))
        used.remove()
        self.assertFalse(os.path.exists(used.path))
