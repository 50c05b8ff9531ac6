# SPDX-License-Identifier: GPL-2.0-only
"""The cache under $XDG_CACHE_HOME/fabrex: content-named entries, built once.
Used by root.py, kernel.py and image.py; nothing else touches the directory."""

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time

import space


def cache_dir():
    """The cache directory, created when missing."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(os.path.abspath(base), "fabrex")
    os.makedirs(path, exist_ok=True)
    return path


def digest(spec):
    """A short stable name for a JSON-able description of an entry."""
    text = json.dumps(spec, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def say(text):
    """Progress for people; standard output stays free for results."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked(name, shared=False):
    """Hold <cache>/<name>.lock; says so when another process makes us wait."""
    path = os.path.join(cache_dir(), name + ".lock")
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with open(path, "a+") as f:
        try:
            fcntl.flock(f, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that is building {name}")
            fcntl.flock(f, mode)
        yield f


def hold(path):
    """Keep prune() away from an entry for as long as this process lives."""
    f = open(os.path.join(cache_dir(), os.path.basename(path) + ".use"), "a+")
    fcntl.flock(f, fcntl.LOCK_SH)
    return f


def name_of(kind, spec):
    """File name of an entry in the cache."""
    return f"{kind}-{digest(spec)}"


def entry(kind, spec, build, force=False, resume=False):
    """Path of the entry `kind` for `spec`; build(tmp) makes it when missing.

    The entry is made under a temporary name and renamed when complete, so a
    build that dies half-way leaves nothing that looks finished. resume: what
    it leaves is where the next build goes on."""
    name = name_of(kind, spec)
    path = os.path.join(cache_dir(), name)
    if os.path.exists(path) and not force:
        return path
    with locked(name):
        if os.path.exists(path) and not force:
            return path
        tmp = os.path.join(cache_dir(), f".{name}.tmp")
        if not resume:
            remove(tmp)
        start = time.monotonic()
        say(f"building {name} (once; kept in {cache_dir()})")
        try:
            build(tmp)
            if os.path.exists(path):
                os.rename(path, tmp + ".old")
            os.rename(tmp, path)
        except BaseException:
            if not resume:
                remove(tmp)
            raise
        remove(tmp + ".old")
        say(f"{name} ready after {time.monotonic() - start:.0f} s")
    return path


def remove(path):
    """Remove a file or tree; mounts below it are refused, not followed."""
    if not os.path.lexists(path):
        return
    real = os.path.realpath(path)
    with open("/proc/self/mounts") as f:
        for line in f:
            if (line.split()[1] + "/").startswith(real + "/"):
                raise RuntimeError(f"{path}: {line.split()[1]} is still "
                                   "mounted below it; unmount it first")
    if os.path.isdir(path) and not os.path.islink(path):
        # Without root, files of other users in a root are sub-ids of ours.
        enter = space.unshare() if os.geteuid() else []
        subprocess.run(enter + ["rm", "-rf", "--", path], check=True)
    else:
        os.unlink(path)


def prune(keep):
    """Remove entries whose names are not in `keep` and that nobody uses."""
    top = cache_dir()
    for name in sorted(os.listdir(top)):
        path = os.path.join(top, name)
        if name in keep or name in ("apt", "ccache") or \
                name.endswith((".lock", ".use")):
            continue
        with open(path.replace("/.", "/") + ".use", "a+") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"{name} is in use, kept")
                continue
            say(f"removing {name}")
            remove(path)
