#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the lab's own parts that need no guest; prints TAP.
Run by make check-host ARGS=lab."""

import glob
import importlib
import os
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import tap


class TapResult(unittest.TestResult):
    """Turns unittest's outcomes into TAP points."""

    def __init__(self, writer):
        super().__init__()
        self.writer = writer

    @staticmethod
    def name(test):
        return test.id().replace("unittest.loader._FailedTest.", "")

    def addSuccess(self, test):
        self.writer.point(True, self.name(test))

    def addSkip(self, test, reason):
        self.writer.point(True, self.name(test), skip=reason)

    def addFailure(self, test, err):
        self.writer.point(False, self.name(test),
                          detail=self._exc_info_to_string(err, test))

    addError = addFailure


def main():
    writer = tap.Writer()
    suite = unittest.TestSuite()
    for path in sorted(glob.glob(HERE + "/test_*.py")):
        module = importlib.import_module(os.path.basename(path)[:-3])
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    suite.run(TapResult(writer))
    return 1 if writer.totals.failed else 0


sys.exit(main())
