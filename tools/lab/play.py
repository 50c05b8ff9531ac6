# SPDX-License-Identifier: GPL-2.0-only
"""make lab: hosts left up for people, a shell on each in tmux.
Without tmux or a terminal it prints how to attach and waits."""

import os
import shlex
import shutil
import signal
import subprocess
import sys

import server
import space
from lab import Lab

LAB = os.path.join(space.TREE, "tools", "lab", "lab")


def run(topology, kernel, hosts):
    """Boot, install, give shells; ends everything when the person leaves."""
    with Lab(topology, kernel, hosts) as lab:
        lab.install()
        server.Server(lab)
        names = list(lab.guests)
        hints(lab, names)
        if shutil.which("tmux") and sys.stdin.isatty() \
                and not os.environ.get("TMUX"):
            tmux(lab, names)
        else:
            print("interrupt (^C) ends the hosts", flush=True)
            try:
                signal.pause()
            except KeyboardInterrupt:
                print()
        for host, text in lab.complaints():
            print(f"--- kernel log of {host} ---\n{text}")
    return 0


def hints(lab, names):
    print(f"{len(names)} hosts are up; logs are in {lab.run.path}")
    for name in names:
        print(f"  tools/lab/lab shell {name}        "
              f"tools/lab/lab exec {name} CMD...")
    print("  try: fabrexctl list", flush=True)


def tmux(lab, names):
    """A window per host; leaving or detaching from tmux ends the lab."""
    name = os.path.basename(lab.run.path)

    def shell(host):
        return shlex.join([sys.executable, LAB, "shell", "--run-dir",
                           lab.run.path, host])

    subprocess.run(["tmux", "new-session", "-d", "-s", name, "-n", names[0],
                    shell(names[0])], check=True)
    try:
        for host in names[1:]:
            subprocess.run(["tmux", "new-window", "-t", name, "-n", host,
                            shell(host)], check=True)
        subprocess.run(["tmux", "select-window", "-t", f"{name}:{names[0]}"],
                       check=True)
        subprocess.run(["tmux", "attach", "-t", name], check=False)
    finally:
        subprocess.run(["tmux", "kill-session", "-t", name], check=False,
                       stderr=subprocess.DEVNULL)
