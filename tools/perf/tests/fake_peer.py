#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Ranks of a library that fabrex-perf compare takes for others': as mpirun
("... -n N ...") or as a program without a launcher ("fabrex-perf-gloo N"). It
says what the environment has, and that an iteration takes FAKE_NS, or ten times
that in the program without a launcher."""

import os
import socket
import struct
import sys


def serve(rank, version, ns):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("\0" + os.environ["FABREX_PERF_CONTROL"])
    s.send(struct.pack("<Ii232s", rank, 0, version.encode()))
    while True:
        q = s.recv(64)
        if len(q) != 48 or not q[0]:
            return
        iterations = struct.unpack("<24sQQQ", q)[3]
        if q.startswith(b"reduce_scatter"):
            s.send(struct.pack("<QQiI232s", 0, 0, 95, 0, b"fake: cannot"))
        else:
            s.send(struct.pack("<QQiI232s", 1000, 1000 + iterations * ns, 0, 0,
                               b""))


def main():
    name, args = os.path.basename(sys.argv[0]), sys.argv[1:]
    launcher = name.startswith("mpirun")
    ranks = int(args[args.index("-n") + 1] if launcher else args[0])
    ns = int(os.environ["FAKE_NS"]) * (1 if launcher else 10)
    version = "gloo fake"
    if launcher:
        version = "MPICH fake, yields after " + os.environ.get(
            "MPIR_CVAR_POLLS_BEFORE_YIELD", "many")
    pids = []
    for rank in range(ranks):
        pids.append(os.fork())
        if not pids[-1]:
            serve(rank, version, ns)
            os._exit(0)
    for pid in pids:
        os.waitpid(pid, 0)


main()
