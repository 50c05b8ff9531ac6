# SPDX-License-Identifier: GPL-2.0-only
"""Open MPI across the guests of a lab, over their Ethernet. Used by peers.py and
selftests/libfabric."""

import json

import remote

MPIRUN = ("mpirun --allow-run-as-root --bind-to none "
          f"--prtemca plm_ssh_agent {remote.AGENT}")
TCP = "--mca pml ob1 --mca btl tcp,self"
# Debian's openmpi-mca-params.conf switches mtl/ofi off.
FABREX = "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include fabrex"


def command(guests, arguments):
    """The command line that starts a program on each guest, on the first one."""
    hosts = ",".join(g.name for g in guests)
    return f"{MPIRUN} --host {hosts} -n {len(guests)} {arguments}"


def measured(guests, size, seconds, options, what=""):
    """Microseconds that bench-mpi says, one rank on each."""
    out = guests[0].sh(command(guests, f"{options} /usr/local/bin/bench-mpi "
                               f"{size} {seconds} {what}"), timeout=180)
    answer = json.loads([line for line in out.splitlines()
                         if line.startswith("{")][-1])
    if not answer["right"] or answer["ranks"] != len(guests):
        raise RuntimeError(f"bench-mpi is wrong: {out}")
    return answer["us"]


def all_reduce(guests, size, seconds):
    """Time of MPI_Allreduce of fp32."""
    return measured(guests, size, seconds, TCP)


def ping_pong(guests, size, seconds, options=TCP):
    """Half of a round trip."""
    return measured(guests, size, seconds, options, "pingpong")
