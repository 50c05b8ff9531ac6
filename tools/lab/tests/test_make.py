# SPDX-License-Identifier: GPL-2.0-only
"""make on a machine that has nothing: one line says what to install, and
nothing is installed."""

import os
import shutil
import subprocess
import tempfile
import unittest

import root
import space


class Bare(unittest.TestCase):
    def setUp(self):
        # Whatever else make wants to run is not there.
        self.path = tempfile.mkdtemp(prefix="fabrex-bare-")
        self.addCleanup(shutil.rmtree, self.path)
        for name in ("make", "sh"):
            os.symlink(shutil.which(name), os.path.join(self.path, name))

    def make(self, *goals):
        """Its one line of output; it has to fail."""
        res = subprocess.run([os.path.join(self.path, "make"), "-C", space.TREE,
                              "--no-print-directory", *goals],
                             env={"PATH": self.path}, text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(res.returncode, 2, res.stdout)
        lines = res.stdout.splitlines()
        self.assertEqual(len(lines), 1, res.stdout)
        return lines[0]

    def packages(self, *goals):
        text = self.make(*goals).partition("apt-get install ")[2]
        return text.removesuffix(".  Stop.").split()

    def test_native_build(self):
        wanted = self.packages()
        self.assertIn("meson", wanted)
        self.assertIn("libnl-3-dev", wanted)
        self.assertEqual(self.packages("install"), wanted)
        # The lab's root has them, and the README names them.
        self.assertLessEqual(set(wanted), set(root.DEMO))
        with open(os.path.join(space.TREE, "README.md")) as f:
            line = next(l for l in f if l.startswith("sudo apt install make"))
        # ninja-build comes with meson.
        self.assertLessEqual(set(wanted) - {"ninja-build"}, set(line.split()))

    def test_library_alone(self):
        wanted = self.packages("check-cuda")
        self.assertIn("meson", wanted)
        self.assertNotIn("libnl-3-dev", wanted)

    def test_lab(self):
        self.assertEqual(self.packages("demo"), ["python3"])
        self.assertEqual(self.packages("check", "ARGS=x"), ["python3"])
