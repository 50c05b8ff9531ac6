# SPDX-License-Identifier: GPL-2.0-only
"""Open MPI across the guests of a lab, over their Ethernet. Used by peers.py and
selftests/libfabric."""

import json

import remote

MPIRUN = ("mpirun --allow-run-as-root --bind-to none "
          f"--prtemca plm_ssh_agent {remote.AGENT}")
TCP = "--mca pml ob1 --mca btl tcp,self"


def command(guests, arguments):
    """The command line that starts a program on each guest, on the first one."""
    hosts = ",".join(g.name for g in guests)
    return f"{MPIRUN} --host {hosts} -n {len(guests)} {arguments}"


def all_reduce(guests, size, seconds):
    """Time of MPI_Allreduce of fp32, microseconds, one rank on each."""
    out = guests[0].sh(command(guests, f"{TCP} /usr/local/bin/bench-mpi {size} "
                               f"{seconds}"), timeout=180)
    answer = json.loads(out.splitlines()[-1])
    if not answer["right"] or answer["ranks"] != len(guests):
        raise RuntimeError(f"bench-mpi is wrong: {out}")
    return answer["us"]
