# SPDX-License-Identifier: GPL-2.0-only
"""Open MPI across the guests of a lab, over their Ethernet. There is no SSH
daemon in guests: each takes command lines from a port that only the other
guests reach. Used by peers.py."""

import json

PORT = 514
AGENT = "/usr/local/bin/lab-rsh"
# HOST COMMAND..., as mpirun calls ssh.
SCRIPT = f"""#!/bin/bash
host=$1
shift
exec 3<>"/dev/tcp/$host/{PORT}"
echo "exec 2>&1; {{ $*; }} </dev/null; exit" >&3
exec cat <&3
"""
MPIRUN = ("mpirun --allow-run-as-root --bind-to none --mca pml ob1 "
          f"--mca btl tcp,self --prtemca plm_ssh_agent {AGENT}")


def prepare(guests):
    """Let mpirun start its daemons on the guests."""
    for guest in guests:
        guest.put(SCRIPT.encode(), AGENT, 0o755)
        guest.sh(f"ss -Hltn 'sport = :{PORT}' | grep -q . || setsid busybox "
                 f"nc -ll -p {PORT} -e /bin/bash >/dev/null 2>&1 </dev/null &")


def all_reduce(guests, size, seconds):
    """Time of MPI_Allreduce of fp32, microseconds, one rank on each."""
    first, hosts = guests[0], ",".join(g.name for g in guests)
    out = first.sh(f"{MPIRUN} --host {hosts} -n {len(guests)} "
                   f"/usr/local/bin/bench-mpi {size} {seconds}", timeout=180)
    answer = json.loads(out.splitlines()[-1])
    if not answer["right"] or answer["ranks"] != len(guests):
        raise RuntimeError(f"bench-mpi is wrong: {out}")
    return answer["us"]
