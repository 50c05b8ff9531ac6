# SPDX-License-Identifier: GPL-2.0-only
"""Putting what was built into running guests: modules, programs, udev rule.
Used by Lab.install(); nothing is copied, the guests see the tree."""

import os
import shlex

import kmod
import space

# fabrex first: the others use its symbols.
ORDER = ["fabrex", "fabrex_draco"]

SCRIPT = r"""
set -e
tree=$1; shift
# One ln for all: starting a process is slow on the debug kernel.
out=$(readlink -f "$tree/build/lab")
programs=
for f in "$out"/tools/*/* "$out"/selftests/*; do
	[ -f "$f" ] && [ -x "$f" ] && programs="$programs $f"
done
[ -z "$programs" ] || ln -sf -t /usr/local/bin $programs
libraries=
for f in "$out"/lib/*.so* "$out"/lib/plan/*.so*; do
	[ -f "$f" ] && libraries="$libraries $f"
done
[ -z "$libraries" ] || ln -sf -t /usr/lib/x86_64-linux-gnu $libraries
for f in "$tree"/dist/*.rules "$tree"/tools/*/*.rules \
	"$tree"/driver/*.rules; do
	[ -f "$f" ] && ln -sf "$f" /etc/udev/rules.d/ && rules=1
done
# On a busy machine udevd may still be starting. Without it nobody would ever give
# the nodes of the modules below their group.
if [ -n "$rules" ] && [ -x /usr/bin/udevadm ]; then
	for try in $(seq 200); do
		udevadm control --reload && break
		sleep 0.3
	done
fi
for f in "$tree"/tools/fabrexctl/*completion*; do
	[ -f "$f" ] && ln -sf "$f" \
		/usr/share/bash-completion/completions/fabrexctl
done
for ko; do
	insmod "$ko"
done
# What fabrex-agent.service does where there is an init.
if [ $# -gt 0 ] && command -v fabrexctl >/dev/null; then
	setsid fabrexctl agent </dev/null >/var/log/fabrex-agent.log 2>&1 &
fi
exit 0
"""


# Where libfabric looks for providers without a variable.
PROVIDERS = "/usr/lib/x86_64-linux-gnu/libfabric"


def provider(guests):
    """Our provider of libfabric, as a package puts it in place."""
    for guest in guests:
        guest.sh(f"mkdir -p {PROVIDERS}; ln -sf {space.TREE}/build/lab/plugins/"
                 f"libfabric/libfabrex-fi.so {PROVIDERS}/")


def module_paths(release):
    """The built modules of a kernel release, in load order."""
    built = kmod.modules(release)
    names = [n for n in ORDER if n in built]
    return [built[n] for n in names]


def start(guest, modules=True):
    """Begin installing into a guest; the Command to wait for."""
    paths = module_paths(guest.kernel.release) if modules else []
    words = " ".join(shlex.quote(p) for p in [space.TREE] + paths)
    return guest.start_command(f"sh -s -- {words}", stdin=SCRIPT.encode())


def install(guests, modules=True, timeout=300):
    """Install into all guests at once."""
    for guest in guests:
        if modules and not module_paths(guest.kernel.release):
            raise kmod.KmodError(
                f"no modules built for {guest.kernel.release} in "
                f"{os.path.relpath(kmod.out_dir(guest.kernel.release))}; run "
                f"tools/lab/lab modules {guest.kernel.name}")
    for command in [start(g, modules) for g in guests]:
        command.wait(timeout).check()
