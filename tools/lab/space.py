# SPDX-License-Identifier: GPL-2.0-only
"""Entering a root: a private mount namespace, binds and chroot.
Everything that runs inside a root (compilers, QEMU, draco-emu) goes here."""

import os
import shlex
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))

SETUP = r"""
set -e
root=$1; dir=$2; shift 2
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
	mkdir -p "$root$1"
	mount --rbind "$1" "$root$1"
	shift
done
shift
exec chroot "$root" /usr/bin/env -C "$dir" "$@"
"""

ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
       "HOME": "/root", "FABREX_IN_ROOT": "1"}
# Objects outlive a tree: what a clone compiles again is fetched, where the root has
# ccache. A debugger then shows the directory of the tree that was first.
CCACHE = {"CCACHE_BASEDIR": TREE, "CCACHE_NOHASHDIR": "1",
          "CCACHE_MAXSIZE": "2G", "CCACHE_COMPILERCHECK": "content"}
PASS = ("TERM", "CACHE", "MAKEFLAGS", "MFLAGS", "V", "SOURCE_DATE_EPOCH")


def unshare():
    """The unshare command line; without root a user namespace gives it."""
    argv = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        argv += ["--map-root-user", "--map-auto"]
    return argv


def check():
    """Say what is wrong where namespaces cannot be had."""
    res = subprocess.run(unshare() + ["true"], stderr=subprocess.PIPE,
                         text=True, check=False)
    if res.returncode:
        raise RuntimeError(
            f"cannot make a namespace for the lab's roots ({res.stderr.strip()})"
            + ("" if os.geteuid() == 0 else "; run as root, or give this user "
               "a range in /etc/subuid and /etc/subgid and allow "
               "unprivileged user namespaces"))


def command(root, argv, cwd=None, binds=(), env=()):
    """Command line that runs argv in `root` with the tree, /tmp and `binds`
    mounted at their own paths."""
    from cache import cache_dir
    paths = []
    for path in ("/tmp", TREE, cache_dir(), *binds):
        path = os.path.realpath(path)
        if not any((path + "/").startswith(p + "/") for p in paths):
            paths.append(path)
    inner = dict(ENV, CCACHE_DIR=os.path.join(cache_dir(), "ccache"), **CCACHE)
    inner.update({k: os.environ[k] for k in PASS if k in os.environ})
    inner.update({k: v for k, v in os.environ.items()
                  if k.startswith("FABREX_")})
    inner.update(env)
    return (unshare() + ["sh", "-c", SETUP, "in-root", root, cwd or TREE]
            + paths + ["--", "env", "-i"]
            + [f"{k}={v}" for k, v in inner.items()] + list(argv))


def run(root, argv, **kw):
    """Run argv in `root`; kw as for command() plus subprocess.run's own."""
    mine = {k: kw.pop(k) for k in ("cwd", "binds", "env") if k in kw}
    kw.setdefault("check", True)
    return subprocess.run(command(root, argv, **mine), **kw)


def quote(argv):
    """For messages."""
    return " ".join(shlex.quote(a) for a in argv)
