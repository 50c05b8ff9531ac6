# SPDX-License-Identifier: GPL-2.0-only
"""Programs, libraries and host tests, built by Meson inside a root, each root in
a directory of its own. build/lab leads to what was built last for guests: they,
QEMU and tests find programs there. Used by lab, demo, check.py and bench.py."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess

import kmod
import root
import space

OUT = os.path.join(kmod.BUILD, "lab")
# A build directory's root and Meson's options; warnings of gcc are errors.
KINDS = {
    "demo": ("gpu", ["-Dwerror=true"]),
    "full": ("full", ["-Dwerror=true", "-Dselftests=true"]),
    "bench": ("bench", ["-Dwerror=true"]),
    # The provider for the libfabric of Debian 12; the rest needs more.
    "bookworm": ("bookworm", ["-Dwerror=true", "-Dplanner=false",
                              "-Dfabrexctl=false", "-Demulator=false",
                              "-Dtests=false"]),
    "fuzz": ("full", ["-Dfuzz=true", "-Db_sanitize=address,undefined",
                      "-Db_lundef=false", "--native-file",
                      "tools/lab/clang.ini"]),
}
# Which of them have what guests run.
GUESTS = ("demo", "full")


class BuildError(RuntimeError):
    """Something does not compile, or Meson refuses its description."""


def directory(kind):
    return os.path.join(kmod.BUILD, "root", kind)


def run(kind, argv, quiet=True, env=()):
    """A command in the root of a build directory; its CompletedProcess."""
    # A test that prints what it was given may print any bytes.
    return space.run(root.root(KINDS[kind][0]), argv, env=dict(env), check=False,
                     text=True, errors="replace",
                     stdout=subprocess.PIPE if quiet else None,
                     stderr=subprocess.STDOUT if quiet else None)


def checked(kind, argv, quiet=True):
    res = run(kind, argv, quiet)
    if res.returncode:
        raise BuildError(f"{' '.join(argv[:4])} failed"
                         + (":\n" + res.stdout[-4000:] if quiet else ""))
    return res.stdout


def setup(kind):
    """Configure a directory, again if its root or its options have changed."""
    path = directory(kind)
    layer, options = KINDS[kind]
    argv = ["meson", "setup", path, *options]
    stamp = os.path.join(path, "lab.json")
    made = [root.root(layer), argv]
    try:
        with open(stamp) as f:
            if json.load(f) == made:
                return
    except (OSError, ValueError):
        pass
    shutil.rmtree(path, ignore_errors=True)
    checked(kind, argv)
    with open(stamp, "w") as f:
        json.dump(made, f)


@contextlib.contextmanager
def alone():
    """One process at a time: neither Meson nor ninja locks its directory."""
    os.makedirs(kmod.BUILD, exist_ok=True)
    with open(os.path.join(kmod.BUILD, ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(kind, targets=("programs",), quiet=True):
    """Build targets of meson.build; BuildError when they do not compile."""
    with alone():
        setup(kind)
        checked(kind, ["ninja", "-C", directory(kind), *targets], quiet)
        if kind not in GUESTS:
            return
        link = OUT + ".new"
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(os.path.relpath(directory(kind), kmod.BUILD), link)
        os.rename(link, OUT)


def introspect(kind, what):
    with open(os.path.join(directory(kind), "meson-info",
                           f"intro-{what}.json")) as f:
        return json.load(f)


def suites(kind):
    """{suite: ids of the targets that its tests need}."""
    with alone():
        setup(kind)
    found = {}
    for test in introspect(kind, "tests"):
        for name in test["suite"]:
            found.setdefault(name.rpartition(":")[2], set()).update(
                test["depends"])
    return found


def files(kind, ids):
    """The files of targets, by which ninja knows them."""
    return [os.path.relpath(name, directory(kind))
            for target in introspect(kind, "targets") if target["id"] in ids
            for name in target["filename"]]


def test(kind, suite, env=(), quiet=True):
    """Run the tests of a suite, which have been built; for each what Meson logs:
    a dict of name, result, stdout, stderr."""
    log = "check-" + suite
    # Memory is not filled with another byte each time, which Meson would do.
    env = {"MALLOC_PERTURB_": "0", **dict(env)}
    res = run(kind, ["meson", "test", "-C", directory(kind), "--no-rebuild",
                     "--num-processes", "1", "--suite", suite,
                     "--logbase", log, *(() if quiet else ("--verbose",))],
              quiet, env)
    try:
        with open(os.path.join(directory(kind), "meson-logs",
                               log + ".json")) as f:
            return [json.loads(line) for line in f]
    except OSError as e:
        raise BuildError(f"meson test --suite {suite} failed:\n"
                         f"{res.stdout}") from e
