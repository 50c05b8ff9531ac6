# SPDX-License-Identifier: GPL-2.0-only
"""The DKMS test: add, build, install in scratch copies of the roots.
Used by the lab's make-dkms-check verb; results go to build/dkms/<release>."""

import os
import re
import shutil
import subprocess

import kmod
import root
import space

SERIES = ("6.1", "6.12", "7.2")

# The root stays as it is: dkms works on an overlay in memory.
OVERLAY = r"""
set -e
lower=$1; shift
top=$(mktemp -d)
mount -t tmpfs -o size=3g,mode=755 lab "$top"
mkdir "$top/up" "$top/work" "$top/root"
mount -t overlay -o "lowerdir=$lower,upperdir=$top/up,workdir=$top/work" \
	lab "$top/root"
trap 'umount -l "$top"; rmdir "$top"' EXIT
cmd=$1; shift
sh -c "$cmd" in-root "$top/root" "$@"
"""

SCRIPT = r"""
set -e
tree=$1; release=$2; out=$3
name=$(sed -n 's/^PACKAGE_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$tree/dkms.conf")
version=$(sed -n 's/^PACKAGE_VERSION="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$tree/dkms.conf")
mkdir -p "/usr/src/$name-$version"
cd "$tree"
cp -a dkms.conf Kbuild driver include "/usr/src/$name-$version/"
dkms add "$name/$version"
dkms build "$name/$version" -k "$release" || {
	cat "/var/lib/dkms/$name/$version/build/make.log"
	exit 1
}
dkms install "$name/$version" -k "$release" --force
dkms status "$name/$version" -k "$release" | grep -q installed
mkdir -p "$out"
for ko in $(find "/lib/modules/$release/updates" -name "*.ko*"); do
	modinfo -k "$release" "$ko" | grep -q ^vermagic
	cp "$ko" "$out/"
done
find "$out" -name "*.xz" -exec xz -df {} +
dkms remove "$name/$version" --all
[ -z "$(find "/lib/modules/$release/updates" -name 'fabrex*' 2>/dev/null)" ]
"""


def overlaid(layer, argv):
    """Command line that runs argv in a scratch overlay of a root."""
    inner = space.command(root.root(layer), argv, cwd="/")
    at = inner.index("sh")
    setup = inner[at + 2]
    args = inner[at + 5:]
    return (space.unshare() + ["sh", "-c", OVERLAY, "overlay",
                               root.root(layer), setup] + args)


def test(series):
    """Install with dkms for a kernel series; the modules it made."""
    layer = kmod.HEADERS[series]
    release = root.kernels(root.root(layer))[series]
    out = kmod.out_dir(release, "dkms")
    shutil.rmtree(out, ignore_errors=True)
    res = subprocess.run(
        overlaid(layer, ["sh", "-c", SCRIPT, "dkms-test", space.TREE, release,
                         out]),
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    made = sorted(os.listdir(out)) if os.path.isdir(out) else []
    if res.returncode or not made:
        raise kmod.KmodError(f"dkms for {release} failed:\n"
                             + res.stdout[-4000:])
    if re.search(r"\bwarning:", res.stdout):
        raise kmod.KmodError(f"dkms for {release} warns:\n{res.stdout}")
    return release, made
