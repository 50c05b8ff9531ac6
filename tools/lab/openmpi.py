# SPDX-License-Identifier: GPL-2.0-only
"""Open MPI's programs on one machine, unchanged, over its default transport and over
libfabric: those of selftests/mpi, hpcc, NetPIPE, mpi4py's own tests. Used by
applications.py and fi_bench.py."""

import os
import re
import subprocess
from dataclasses import dataclass

import apt
import libfabric
import root
import space

SOURCES = os.path.join(space.TREE, "selftests", "mpi")
OUT = os.path.join(space.TREE, "build", "mpi")
PROGRAMS = ("messages", "onesided")
WARNINGS = "-Wall -Wextra -Werror -Wshadow -Wstrict-prototypes " \
    "-Wmissing-prototypes".split()
# Ranks are more than processors here: each gives way while it waits.
MPIRUN = ["mpirun", "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE"]
MPIRUN_4 = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
# Open MPI says what mtl/ofi has chosen, and libfabric what is opened: by its name
# (2.1), or by that of the fabric (1.17).
ENV = {"OMPI_MCA_opal_common_ofi_verbose": "1", "FI_LOG_LEVEL": "info",
       "FI_LOG_SUBSYS": "core"}
# Debian's openmpi-mca-params.conf switches mtl/ofi off, as it does btl/ofi.
TAGGED = ("--mca", "pml", "cm", "--mca", "mtl", "ofi")
ONESIDED = ("--mca", "pml", "ob1", "--mca", "osc", "rdma", "--mca", "btl",
            "ofi,self", "--mca", "btl_ofi_mode", "2")
# Open MPI 4.1 does not know yet that libfabric's "net" is TCP, and takes it first;
# this is the list of Open MPI 5.
EXCLUDED = "shm,sockets,tcp,udp,rstream,usnic,net"
OLD = ("--mca", "mtl_ofi_provider_exclude", EXCLUDED,
       "--mca", "btl_ofi_provider_exclude", EXCLUDED)
CHOSEN = re.compile(r"mtl:ofi:prov(?:ider)?: (\S+)|<info> Using (\S+) provider|"
                    r"<info> Opened fabric: (\S+)")


@dataclass
class Transport:
    """How a program's ranks are told to reach each other, if at all."""
    name: str
    options: tuple = ()
    provider: object = None		# None: libfabric has none that is ours


DEFAULT = Transport("Open MPI's default transport")


def tagged(provider):
    """Messages by libfabric's tagged ones; the provider is not named."""
    return Transport(f"pml/cm over {provider.name}", TAGGED, provider)


def onesided(provider):
    """Everything by libfabric's RMA and atomics, messages too: osc/rdma needs the
    BTLs, which pml/cm of Open MPI 5.0 does not start."""
    return Transport(f"osc/rdma over {provider.name}", ONESIDED, provider)


def over_tcp():
    """libfabric's provider for TCP, which Open MPI only takes if it is named."""
    return Transport("pml/cm over libfabric's tcp",
                     (*TAGGED, "--mca", "mtl_ofi_provider_include", "tcp"),
                     libfabric.Provider("tcp;ofi_rxm",
                                        env={"FI_PROVIDER": "tcp;ofi_rxm"}))


def build_programs(layer=libfabric.LAYER):
    """Compile those of selftests/mpi; the directory where they are."""
    out = os.path.join(OUT, layer)
    os.makedirs(out, exist_ok=True)
    for name in PROGRAMS:
        sources = [f"{SOURCES}/{n}.c" for n in (name, "points")]
        res = space.run(root.root(layer),
                        ["mpicc", "-O2", "-g", *WARNINGS, "-o",
                         f"{out}/{name}", *sources, "-pthread"], check=False,
                        text=True, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT)
        if res.returncode:
            raise RuntimeError(f"selftests/mpi/{name}.c does not compile:\n"
                               + res.stdout[-4000:])
    return out


def run(transport, ranks, argv, layer=libfabric.LAYER, seconds=60, cwd=None,
        binding=("--bind-to", "none")):
    """mpirun; a CompletedProcess with what the ranks printed, apart from what
    Open MPI says of its choices on standard error."""
    mpirun = MPIRUN if layer == libfabric.LAYER else [*MPIRUN_4, *OLD]
    provider = transport.provider
    return libfabric.run(
        [*mpirun, *binding, "-n", str(ranks), *transport.options, *argv],
        {**(provider.env if provider else {}), **ENV}, layer, seconds, cwd)


def chosen(result):
    """The providers that the ranks say they have taken."""
    found = {"".join(names) for names in CHOSEN.findall(result.stderr)}
    return sorted({"fabrex" if name in libfabric.FABRICS else name
                   for name in found})


def right_provider(transport, result):
    """None, or what is wrong with the ranks' choice. Below some providers of
    libfabric there are others."""
    wanted = transport.provider.name if transport.provider else None
    found = chosen(result)
    good = found == [wanted] if wanted == "fabrex" else \
        wanted in found and "fabrex" not in found if wanted else not found
    return None if good else f"the ranks have taken {found or 'no provider'}, " \
        f"not {wanted or 'none'}"


def trouble(result, lines=60):
    """What to show of a run that failed."""
    err = [line for line in result.stderr.splitlines()
           if not re.match(r"libfabric:.*<info>|.* mca: base: ", line)]
    return "\n".join([f"exit status {result.returncode}"]
                     + result.stdout.splitlines()[-lines:] + err[-lines:])


def points(check, transport, ranks, argv, what, **kw):
    """Run a program that prints TAP; its points are ours, and one more is that it
    ended well, over what it was to use."""
    result = run(transport, ranks, argv, **kw)
    label = f"{what}, {ranks} ranks, {transport.name}"
    before = check.tap.number
    clean = check.tap.include(result.stdout, label)
    complete = tap_plan(result.stdout) == check.tap.number - before
    wrong = right_provider(transport, result)
    good = complete and not wrong and not (clean and result.returncode)
    check.tap.point(good, f"{label}: ends well, over the right transport",
                    detail="" if good else f"{wrong or ''}\n{trouble(result)}")


def tap_plan(text):
    """How many points a program has said that there are."""
    m = re.search(r"^1\.\.([0-9]+)$", text, re.M)
    return int(m.group(1)) if m else None


def messages(check, transport, ranks, what="messages", **kw):
    """selftests/mpi/messages.c; what its points are is the same for all."""
    where = build_programs(kw.get("layer", libfabric.LAYER))
    exact = ["exact"] if transport.provider else []
    points(check, transport, ranks, [where + "/messages", *exact], what, **kw)


def windows(check, transport, ranks, what="one-sided", **kw):
    """selftests/mpi/onesided.c."""
    where = build_programs(kw.get("layer", libfabric.LAYER))
    points(check, transport, ranks, [where + "/onesided"], what, **kw)


# HPL's input file, and hpcc's two lines at its end: as small as it can be and
# still have several blocks on each rank. What follows a value is for people.
HPCC = """of hpcc, for a check that the results are right

HPL.out  of HPL itself
8        to a file
1        size
{size}   of the matrix
1        size of blocks
40
0        rows first
1        grid of processes
{rows}
{columns}
16.0     of the residual
1
2        factorization: right
1
4
1
2
1
1
1
1        broadcast: ring
1
1        ahead
2        exchange: mixed
64
0
0
1
8        alignment
separator
0        more sizes for PTRANS
1000
0        more blocks for PTRANS
40
"""
# What hpcc says when it is right.
HPCC_RIGHT = {
    "all of it": r"^Success=1$",
    "HPL": r"PASSED$",
    "PTRANS": r"^PTRANS_residual=0(\.0*)?$",
    # It allows itself to lose one update of a hundred.
    "RandomAccess": r"^MPIRandomAccess_ErrorsFraction=0(\.00[0-9]*)?$",
    "FFT": r"^MPIFFT_maxErr=[0-9.]+e-1[0-9]$",
}
# Of its results, what depends on the input only, and on no clock.
HPCC_SAME = re.compile(
    r"^((?:CommWorldProcs|HPL_N|PTRANS_residual|PTRANS_n|MPIRandomAccess_N|"
    r"MPIFFT_N|MPIFFT_maxErr|Success)=.*)$", re.M)
GRIDS = {2: (1, 2), 4: (2, 2), 8: (2, 4)}


def hpcc(check, transports, ranks, size=160):
    """The HPC Challenge benchmark, which checks its own results; those that do not
    depend on time are the same over each transport."""
    texts = [hpcc_once(check, t, ranks, size) for t in transports]
    same = [HPCC_SAME.findall(text) for text in texts]
    good = len(same[0]) > 5 and all(s == same[0] for s in same)
    check.tap.point(good, f"hpcc, {ranks} ranks: the same over each transport",
                    detail="" if good else
                    "\n\n".join("\n".join(s) for s in same))


def hpcc_once(check, transport, ranks, size):
    rows, columns = GRIDS[ranks]
    with libfabric.directory() as cwd:
        with open(cwd + "/hpccinf.txt", "w", encoding="ascii") as f:
            f.write(HPCC.format(size=size, rows=rows, columns=columns))
        result = run(transport, ranks, ["hpcc"], seconds=300, cwd=cwd)
        try:
            with open(cwd + "/hpccoutf.txt", encoding="utf-8") as f:
                text = f.read()
        except OSError:
            text = ""
    missing = [what for what, pattern in HPCC_RIGHT.items()
               if not re.search(pattern, text, re.M)]
    wrong = right_provider(transport, result)
    good = not (missing or wrong or result.returncode)
    check.tap.point(good, f"hpcc, {ranks} ranks, {transport.name}",
                    detail="" if good else f"not right: {missing}; "
                    f"{wrong or ''}\n{trouble(result)}\n"
                    + "\n".join(line for line in text.splitlines()
                                if re.match(r"[A-Za-z_]+=", line)))
    return text


def netpipe(check, transport, most=1 << 20):
    """NetPIPE's check of what arrives, sizes from one byte to `most`."""
    label = f"netpipe, {transport.name}"
    result = run(transport, 2, ["NPopenmpi", "-i", "-u", str(most)],
                 seconds=120)
    wrong = right_provider(transport, result)
    text = result.stdout + result.stderr
    good = not result.returncode and not wrong and \
        "Integrity check passed" in text and "failed" not in text
    check.tap.point(good, f"{label}: what arrives is what was sent",
                    detail="" if good else f"{wrong or ''}\n{trouble(result)}")


MPI4PY_SECONDS = 600
MPI4PY_LEAST = 200	# results, of all ranks
# Processes that are started and joined later: mpirun 5.0.7 itself ends with a
# signal then, whatever the transport.
MPI4PY_EXCLUDE = ["-e", "test_spawn", "-e", "test_dynproc"]
# What Open MPI 5.0 does not have under pml/cm, whatever is below: windows without
# shared memory, which need BTLs, and communicators that are revoked. Windows are
# for the transport that has them, the slowest where ranks share processors.
MPI4PY_NOT_CM = re.compile(r"Win|RMA|test_ulfm")
# Shared ones are made by a component of their own, osc/sm, which is not chosen here.
MPI4PY_WINDOWS = re.compile(r"\(test_(rma|win)(?!.*AllocateShared)")
MPI4PY_RESULT = re.compile(
    r"^(\S+ \(\S+\))[^\n]* \.\.\. (ok|FAIL|ERROR|skipped)", re.M)
# What it writes is of one rank, and only then whole lines.
MPI4PY_RANK = 'exec python3 "$@" 2>"rank-$OMPI_COMM_WORLD_RANK"'


def mpi4py_source():
    """Its source package, or a directory that FABREX_MPI4PY names, for machines
    whose mirrors have binary packages only."""
    return os.environ.get("FABREX_MPI4PY") or \
        root.source(libfabric.LAYER, "mpi4py", "python3-mpi4py")


def mpi4py_once(transport, ranks, top):
    """(CompletedProcess, {(rank, test): result})"""
    found = {}
    choice = list(MPI4PY_EXCLUDE)
    if "cm" in transport.options:
        choice += ["-e", "test_ulfm"]
    if "rdma" in transport.options:
        choice += ["-i", "test_rma", "-i", "test_win"]
    with libfabric.directory() as cwd:
        result = run(transport, ranks, [
            "sh", "-c", MPI4PY_RANK, "rank", top + "/test/main.py", "-v",
            *choice], seconds=MPI4PY_SECONDS, cwd=cwd)
        for rank in range(ranks):
            try:
                with open(f"{cwd}/rank-{rank}", encoding="utf-8",
                          errors="replace") as f:
                    text = f.read()
            except OSError:
                text = ""
            found.update(((rank, name), how) for name, how in
                         MPI4PY_RESULT.findall(text))
            result.stderr += text
    return result, found


def mpi4py_differences(transport, base, found):
    """Lines of what is not as it was."""
    for (rank, name), how in base.items():
        if "cm" in transport.options and MPI4PY_NOT_CM.search(name) or \
                "rdma" in transport.options and \
                not MPI4PY_WINDOWS.search(name):
            continue
        if found.get((rank, name)) != how:
            yield f"rank {rank}: {name}: {found.get((rank, name))}, not {how}"


def mpi4py(check, transports, ranks):
    """mpi4py's own test suite: each test of each rank has the result that it has
    over the first transport."""
    label = f"mpi4py, {ranks} ranks"
    try:
        top = mpi4py_source()
    except apt.AptError as e:
        check.tap.point(True, label, skip=str(e))
        return
    base = None
    for transport in transports:
        result, found = mpi4py_once(transport, ranks, top)
        wrong = right_provider(transport, result)
        base = base or found
        differ = list(mpi4py_differences(transport, base, found))
        good = len(found) > MPI4PY_LEAST and \
            not (wrong or differ or result.returncode)
        check.tap.point(good, f"{label}, {transport.name}",
                        detail="" if good else "\n".join(
                            [wrong or "", *differ[:40], trouble(result)]))
        check.tap.diag(f"{len(found)} results")
