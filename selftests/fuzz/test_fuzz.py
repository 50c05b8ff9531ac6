# SPDX-License-Identifier: GPL-2.0-only
"""Random ioctls and random netlink messages; the seeds are printed."""

import os

from scenario import scenario

SECONDS = os.environ.get("FABREX_FUZZ_SECONDS", "10")
SEED = os.environ.get("FABREX_FUZZ_SEED", "")


@scenario(hosts=["a", "b", "c"])
def random_requests(lab, t):
    """ioctl on one host, netlink on two others, at the same time."""
    a, b, c = (lab.guest(n) for n in "abc")
    others = [b.start_command(f"fuzz-netlink {SECONDS} {SEED}"),
              c.start_command(f"fuzz-netlink {SECONDS} {SEED}",
                              user="tester")]
    result = t.program(a, f"fuzz-ioctl {SECONDS} {SEED}", user="tester")
    t.diag(result.stdout.split("\n")[2])
    for name, command in zip(("root", "user"), others):
        done = command.wait(120)
        t.diag(next((l for l in done.stdout.split("\n") if "seed" in l), ""))
        t.ok(done.status == 0 and "not ok" not in done.stdout,
             f"random netlink as {name}", done.stdout + done.stderr)


@scenario(hosts=["a", "b", "c"])
def random_requests_as_root(lab, t):
    """The device's ioctls again, with nobody's limits."""
    t.program(lab.guest("b"), f"fuzz-ioctl {SECONDS} {SEED}")
