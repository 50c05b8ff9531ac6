# SPDX-License-Identifier: GPL-2.0-only
"""The cache: entries appear whole or not at all, and are built once."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

import cache

HERE = os.path.dirname(os.path.realpath(cache.__file__))


class Cache(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.saved = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = self.dir.name
        quiet = unittest.mock.patch("cache.say")
        quiet.start()
        self.addCleanup(quiet.stop)
        self.addCleanup(self.restore)

    def restore(self):
        if self.saved is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = self.saved
        self.dir.cleanup()

    @staticmethod
    def make(tmp):
        os.mkdir(tmp)
        with open(tmp + "/file", "w") as f:
            f.write("whole")

    def test_named_by_specification(self):
        one = cache.entry("x", {"a": 1}, self.make)
        self.assertEqual(one, cache.entry("x", {"a": 1}, self.fail))
        self.assertNotEqual(one, cache.entry("x", {"a": 2}, self.make))

    def test_failure_leaves_nothing(self):
        def broken(tmp):
            os.mkdir(tmp)
            raise RuntimeError("no")
        with self.assertRaises(RuntimeError):
            cache.entry("x", 1, broken)
        names = [n for n in os.listdir(cache.cache_dir())
                 if not n.endswith(".lock")]
        self.assertEqual(names, [])
        self.assertTrue(os.path.exists(cache.entry("x", 1, self.make)))

    def test_leftovers_of_a_killed_build_are_replaced(self):
        left = os.path.join(cache.cache_dir(), f".x-{cache.digest(1)}.tmp")
        os.mkdir(left)
        path = cache.entry("x", 1, self.make)
        self.assertEqual(os.listdir(path), ["file"])
        self.assertFalse(os.path.exists(left))

    def test_a_resumable_build_goes_on(self):
        def half(tmp):
            self.make(tmp)
            raise RuntimeError("no")

        def rest(tmp):
            self.assertEqual(os.listdir(tmp), ["file"])
        with self.assertRaises(RuntimeError):
            cache.entry("x", 1, half, resume=True)
        path = cache.entry("x", 1, rest, resume=True)
        self.assertEqual(os.listdir(path), ["file"])

    def test_two_processes_build_once(self):
        script = textwrap.dedent(f"""
            import os, sys, time
            sys.path.insert(0, {HERE!r})
            import cache
            def make(tmp):
                with open({self.dir.name!r} + "/built", "a") as f:
                    f.write("x")
                time.sleep(0.5)
                os.mkdir(tmp)
            cache.entry("x", 1, make)
            """)
        runs = [subprocess.Popen([sys.executable, "-c", script],
                                 stderr=subprocess.DEVNULL) for _ in "12"]
        self.assertEqual([r.wait(20) for r in runs], [0, 0])
        with open(self.dir.name + "/built") as f:
            self.assertEqual(f.read(), "x")

    def test_prune_spares_what_is_in_use(self):
        used = cache.entry("used", 1, self.make)
        unused = cache.entry("unused", 1, self.make)
        kept = cache.entry("kept", 1, self.make)
        holder = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {HERE!r});"
             f"import cache; h = cache.hold({used!r}); print('held', "
             "flush=True); sys.stdin.read()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdout.readline()
        try:
            cache.prune({os.path.basename(kept)})
        finally:
            holder.communicate()
        self.assertEqual([os.path.exists(p) for p in (used, unused, kept)],
                         [True, False, True])
