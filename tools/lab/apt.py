# SPDX-License-Identifier: GPL-2.0-only
"""What this machine's own apt configuration says: mirrors, keys, options.
Used by root.py to make roots of other Debian releases from the same mirrors."""

import os
import re
import shutil
import subprocess

from cache import say

FORMAT = "$(SITE)|$(CODENAME)|$(LABEL)|$(SIGNED_BY)|$(ORIGIN)"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ARCHIVES = {"main": "Debian", "security": "Debian-Security"}


class AptError(RuntimeError):
    """The apt configuration cannot serve what the lab needs."""


def output(*argv):
    return subprocess.run(argv, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def targets():
    """Rows (site, codename, label, keyring) of the configured archives."""
    rows = []
    text = output("apt-get", "indextargets", "--format", FORMAT,
                  "Created-By: Packages")
    for line in text.splitlines():
        site, codename, label, key, origin = line.split("|")
        if origin == "Debian":
            rows.append((site, codename, label, key))
    return rows


def mirrors():
    """{'main': (url, keyring), 'security': (url, keyring)} of this machine.

    apt-get indextargets answers from the downloaded lists; a machine that has
    none yet is asked to update them first."""
    rows = targets()
    if not rows:
        say("no package lists on this machine yet, running apt-get update")
        as_root(["apt-get", "update", "-q"])
        rows = targets()
    found = {}
    for kind, label in ARCHIVES.items():
        for site, _, row_label, key in rows:
            if row_label == label:
                key = key if key.startswith("/") else KEYRING
                found.setdefault(kind, (site, key))
    if "main" not in found:
        raise AptError("apt's configuration on this machine names no Debian "
                       "archive; add one to /etc/apt/sources.list.d and run "
                       "apt-get update")
    return found


def sources(release, backports, kind="deb"):
    """sources.list lines for `release`, from this machine's mirrors; those of
    source packages if kind is "deb-src"."""
    where = mirrors()
    wanted = [("main", release), ("main", release + "-updates")]
    if backports:
        wanted.append(("main", release + "-backports"))
    wanted.append(("security", release + "-security"))
    lines = []
    for archive, suite in wanted:
        if archive in where:
            url, key = where[archive]
            lines.append(f"{kind} [signed-by={key}] {url} {suite} main")
    return lines


def options():
    """Acquire:: options (proxies, checks) of this machine, for mmdebstrap."""
    keep = re.compile(r'^Acquire::(http|https|ftp|Retries|Check-|ForceIPv)'
                      r'[^ ]* "[^"]*";$')
    skip = re.compile(r' "";$|User-Agent|Dl-Limit')
    return [line for line in output("apt-config", "dump").splitlines()
            if keep.match(line) and not skip.search(line)]


def as_root(argv):
    """Run a command as root, through sudo where we are not."""
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            raise AptError("need root for: " + " ".join(argv))
        argv = ["sudo", "-E"] + argv
    subprocess.run(argv, check=True, env=env, stdout=subprocess.DEVNULL)


def need(tools):
    """Install the packages of missing host tools: {command: package}."""
    missing = sorted({pkg for cmd, pkg in tools.items()
                      if not shutil.which(cmd)})
    if not missing:
        return
    say("installing on this machine: " + " ".join(missing))
    try:
        try:
            as_root(["apt-get", "install", "-qy", "--no-install-recommends"]
                    + missing)
        except subprocess.CalledProcessError:
            as_root(["apt-get", "update", "-q"])
            as_root(["apt-get", "install", "-qy", "--no-install-recommends"]
                    + missing)
    except (AptError, subprocess.CalledProcessError) as e:
        raise AptError(f"cannot install {' '.join(missing)} ({e}); run: "
                       f"apt-get install {' '.join(missing)}") from e
