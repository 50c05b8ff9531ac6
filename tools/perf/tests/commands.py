# SPDX-License-Identifier: GPL-2.0-only
"""commands.py PERF FAULTY PAGE DOCS: runs fabrex-perf's collectives, compare and
pictures over the loopback transport, and looks at what they print. FAULTY is
the same program with fault.c; PAGE the man page, whose examples are run; DOCS
docs/benchmarks.md. No time is judged."""

import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom

PERF, FAULTY, PAGE, DOCS = (os.path.abspath(a) for a in sys.argv[1:5])
HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("all_reduce all_gather reduce_scatter broadcast reduce all_to_all "
         "sendrecv").split()
FAST = "--duration 0.0005 --warmup 1 --quiet".split()
LAUNCHERS = ("FABREX_RANK FABREX_SIZE FABREX_BOOTSTRAP OMPI_COMM_WORLD_RANK "
             "PMIX_RANK PMI_RANK SLURM_PROCID").split()
PORTS = ["FABREX_PORT", "FABREX_FABRIC"]
FABRIC = f"perf-test-{os.getpid()}"
state = {"n": 0, "failed": 0}


def ok(good, what, why=""):
    """A line of TAP; `why` follows when it is bad."""
    state["n"] += 1
    print(f"{'' if good else 'not '}ok {state['n']} {what}", flush=True)
    if not good:
        state["failed"] += 1
        print("# " + str(why).strip().replace("\n", "\n# "), flush=True)


def perf(args, program=PERF, path=None, cpus=None, **env):
    """Run it; PATH is `path` if one is given, on `cpus` alone."""
    if isinstance(args, str):
        args = shlex.split(args)
    every = dict(os.environ)
    for name in LAUNCHERS + PORTS:
        every.pop(name, None)
    every.update(env)
    if path is not None:
        every["PATH"] = path
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus or allowed)
    try:
        return subprocess.run([program] + args, env=every, text=True,
                              capture_output=True, timeout=1200, check=False)
    finally:
        os.sched_setaffinity(0, allowed)


def exits(code, args, says, **kw):
    """It must end so, and say that."""
    res = perf(args, **kw)
    ok(res.returncode == code and says in res.stderr,
       f"{args}: exit code {code}, says: {says}",
       f"{res.returncode}: {res.stderr}{res.stdout}")


def bad_arguments():
    for args, says in (
            ("all_reduce -n 0", "--ranks"), ("all_reduce -n 513", "--ranks"),
            ("all_reduce -n 2 --sizes 8:4:2", "--sizes"),
            ("all_reduce -n 2 --type fp31", "--type"),
            ("all_reduce -n 2 --op xor", "--op"),
            ("broadcast -n 2 --root 2", "there is no such rank"),
            ("all_reduce -n 2 --check 2", "--check"),
            ("all_reduce -n 2 --memory tape", "--memory"),
            ("all_reduce -n 2 --plot picture.gif", ".svg or .png"),
            ("barrier -n 2 --plot picture.svg", "no sizes"),
            ("all_reduce -n 2 --rank 0 --world 2", "leave out"),
            ("all_reduce --rank 0", "go together"),
            ("all_reduce --rank 2 --world 2", "count from 0"),
            ("sendrecv -n 2 --schedule x", "follows none"),
            ("all_reduce -n 2 --device loopback:x,,loopback:y", "one comma"),
            ("all_reduce -n 2 --device " + ",".join(["loopback:x"] * 9),
             "more than 8 ports"),
            ("all_reduce -n 2 more", "usage"),
            ("compare everything", "collectives"),
            ("compare --ranks 1", "--ranks"), ("compare --ranks ''", "--ranks"),
            ("compare --repetitions 0", "--repetitions"),
            ("compare --only gossip", "gossip"),
            ("compare --peers nobody", "nobody"),
            ("compare latency --ranks 3", "nothing to measure"),
            ("compare ranks --ranks 513", "--ranks"),
            ("footprint --ranks 1", "--ranks"), ("footprint more", "usage"),
            ("footprint --ranks 2,,3", "--ranks"),
            ("compare --output x.txt", "--output"),
            ("compare --counts /nonexistent", "cannot read"),
            ("compare latency --plot x", ".svg or .png")):
        exits(1, args, says)
    exits(2, "all_reduce -n 2 --schedule /nonexistent", "--schedule")
    exits(2, "all_reduce", "-n N starts local ones",
          FABREX_PORT=f"loopback:{FABRIC}")
    exits(2, "all_reduce -n 2 --algorithms no=such", "")


def ports_are_asked_for():
    """Without a fabric nothing is measured over loopback unless that is said."""
    if not glob.glob("/dev/fabrex*"):
        for args in ("server", "write-lat --peer x", "all_reduce"):
            for env in ({}, {"FABREX_FABRIC": FABRIC}, {"FABREX_PORT": ""}):
                exits(2, args, "FABREX_PORT=loopback:NAME", **env)
    for device, env, fabric in (
            ("", {}, None), ("", {"FABREX_PORT": f"loopback:{FABRIC}"}, FABRIC),
            (f"--device loopback:{FABRIC}-d", {"FABREX_PORT": "no-such-port"},
             FABRIC + "-d")):
        res = perf(shlex.split(f"all_reduce -n 2 --size 8 --json {device}") +
                   FAST, **env)
        row = json.loads(res.stdout or "{}")
        ok(row.get("driver") == "loopback" and
           (row["fabric"] == fabric if fabric else
            re.fullmatch(r"perf-\d+", row["fabric"])),
           f"-n 2 {device} {env}: in fabric {fabric or 'of its own'}",
           res.stdout + res.stderr)
    exits(2, "all_reduce -n 2", "no-such-port", FABREX_PORT="no-such-port")


SWITCH = "pci0000:00/0000:00:05.0/0000:01:00.0"
MACHINE = {	# devices of sysfs: (class, vendor, device, link)
    "pci0000:00/0000:00:05.0": (0x060400, 0x1b36, 0x000c, "32.0 GT/s PCIe"),
    SWITCH: (0x060400, 0x104c, 0x8232, "16.0 GT/s PCIe"),
    f"{SWITCH}/0000:02:00.0": (0x060400, 0x104c, 0x8233, "Unknown"),
    f"{SWITCH}/0000:02:00.0/0000:03:00.0":
        (0x068000, 0x1234, 0xda00, "32.0 GT/s PCIe"),
    f"{SWITCH}/0000:02:01.0": (0x060400, 0x104c, 0x8233, "Unknown"),
    f"{SWITCH}/0000:02:01.0/0000:04:00.0": (0x120000, 0x1234, 0xda10, ""),
    "pci0000:00/0000:00:06.0": (0x010802, 0x144d, 0xa80a, "8.0 GT/s PCIe"),
}
PORT = {"name": 'a."0', "host": "a", "fabric": "rack", "peer": "3",
        "driver_name": "fabrex_draco", "generation": "7", "emulated": "1",
        "link": "up", "alive": "1"}


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else f"{text}\n".encode())


def machine(root):
    """A root with a switch, a port and a GPU in it, and a drive outside."""
    for path, (kind, vendor, device, link) in MACHINE.items():
        at = os.path.join(root, "sys/devices", path)
        config = bytes((vendor & 255, vendor >> 8, device & 255, device >> 8))
        for name, text in (("config", config.ljust(64, b"\0")),
                           ("class", f"{kind:#08x}"),
                           ("vendor", f"{vendor:#06x}"),
                           ("device", f"{device:#06x}"),
                           ("current_link_speed", link),
                           ("current_link_width", "16")):
            write(os.path.join(at, name), text)
        link = os.path.join(root, "sys/bus/pci/devices",
                            os.path.basename(path))
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(at, link)
    port = os.path.join(root, "sys/class/fabrex/fabrex2")
    for name, text in PORT.items():
        write(os.path.join(port, name), text)
    os.symlink(os.path.join(root, "sys/bus/pci/devices/0000:03:00.0"),
               os.path.join(port, "device"))


def ports(tmp):
    """On machines made of files: without a port, and with one."""
    empty, root = os.path.join(tmp, "empty"), os.path.join(tmp, "root")
    res = perf("ports --json", FABREX_ROOT=empty)
    ok(not res.returncode and json.loads(res.stdout) == {"ports": []},
       "no ports are no error", res.stderr)
    ok("no fabric port" in perf("ports", FABREX_ROOT=empty).stdout,
       "which the table says", "")
    machine(root)
    row = json.loads(perf("ports --json", FABREX_ROOT=root).stdout)["ports"]
    near = [(d["pci"], d["kind"], d["path"], d["distance"])
            for d in row[0].pop("devices")]
    ok(near == [("0000:04:00.0", "gpu", "switch", 4),
                ("0000:00:06.0", "nvme", "root", 5)], "devices, nearest first",
       near)
    due = {"device": "fabrex2", "name": 'a."0', "host": "a", "fabric": "rack",
           "driver": "fabrex_draco", "pci": "0000:03:00.0", "peer": 3,
           "generation": 7, "emulated": True, "link_up": True, "alive": True,
           "may_open": False, "numa_node": None, "pcie_width": 16,
           "pcie_speed_mtps": 32000, "rate_mbps": 15753 * 16}
    ok(len(row) == 1 and due.items() <= row[0].items(), "what the port is", row)
    res = perf("ports --near 0000:04:00.0", FABREX_ROOT=root)
    ok(re.search(r"^fabrex2 .* 252\.0  no access, switch, 4 bridges$",
                 res.stdout, re.M), "the table, from a GPU's view", res.stdout)
    exits(2, "ports --near 0000:44:00.0", "no such PCI device",
          FABREX_ROOT=root)
    exits(1, "ports more", "usage")
    exits(1, "ports --far", "usage")


def busbw(kind, ranks, size, us):
    """doc/PERFORMANCE.md of nccl-tests."""
    factor = {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1,
              "reduce": 1, "sendrecv": 1}.get(kind, (ranks - 1) / ranks)
    return factor * size / us / 1e3


def row_ok(kind, ranks, row):
    """Are the numbers of a row each other's?"""
    for place in ("out_of_place", "in_place"):
        p = row[place]
        if p is None:
            if place == "out_of_place" or kind not in ("all_to_all",
                                                       "sendrecv"):
                return False
            continue
        # Loopback has no switch that counts.
        if p["p2p_bytes"] is not None or p["host_bytes"] is not None or \
                p["iterations"] < 1:
            return False
        algbw = row["size"] / p["time_us"] / 1e3
        due = busbw(kind, ranks, row["size"], p["time_us"])
        if p["wrong"] or abs(p["algbw_gb_per_s"] - algbw) > 0.02 * algbw + \
                1e-3 or abs(p["busbw_gb_per_s"] - due) > 0.02 * due + 1e-3:
            return False
    return True


def collectives():
    for ranks in range(1, 9):
        for kind in KINDS if ranks in (1, 2, 3, 8) else KINDS[:1]:
            res = perf([kind, "-n", str(ranks), "--sizes", "8:64K:90",
                        "--json"] + FAST)
            try:
                out = json.loads(res.stdout)
                good = (not res.returncode and out["ranks"] == ranks and
                        out["test"] == kind and out["rows"] and
                        out["exit_code"] == 0 and
                        all(row_ok(kind, ranks, r) for r in out["rows"]))
            except (ValueError, KeyError, TypeError):
                good = False
            ok(good, f"{kind}, {ranks} ranks: right, JSON, bandwidths",
               res.stdout + res.stderr)


def types():
    for name in ("int8 uint8 int16 uint16 int32 uint32 int64 uint64 fp16 bf16 "
                 "fp32 fp64").split():
        for op in ("sum", "prod", "min", "max", "avg"):
            res = perf(["all_reduce", "-n", "3", "--size", "30000", "--type",
                        name, "--op", op] + FAST)
            if res.returncode:
                ok(False, f"{name} {op}", res.stdout + res.stderr)
                return
    ok(True, "all types and operations are checked, and right")


def lines_of(res, start):
    """Lines of what it printed that begin so."""
    return [l for l in res.stdout.splitlines() if l.startswith(start)]


def table():
    res = perf(["broadcast", "-n", "2", "--root", "1", "--size", "4K",
                "--memory", "malloc", "--iterations", "7"] + FAST)
    lines = [l for l in res.stdout.splitlines() if not l.startswith("#")]
    words = lines[0].split() if lines else []
    ok(words[:5] == ["4096", "1024", "fp32", "-", "1"] and len(words) == 18 and
       words[8] == "0" and words[14] == "0" and "malloc" in res.stdout and
       "iterations 7" in res.stdout, "a row has the columns of nccl-tests",
       res.stdout + res.stderr)
    ok(words[9:11] + words[15:17] == ["-"] * 4 and
       lines_of(res, "#")[4].split()[10:12] == ["p2p", "host"],
       "and where the bytes went, which loopback does not count", res.stdout)
    res = perf(["all_gather", "-n", "2", "--size", "4K", "--check", "0"] + FAST)
    ok(not res.returncode and "N/A" in res.stdout, "unchecked is said so",
       res.stdout)
    res = perf(["barrier", "-n", "3"] + FAST)
    ok(not res.returncode and " - " in res.stdout, "barrier",
       res.stdout + res.stderr)


def devices():
    """The test run times, whose devices' memory no processor reaches."""
    if "FABREX_TEST_RUNTIME" not in os.environ:
        print("# no test run times: memory of devices is not tried")
        return
    for kind, stream in [("hip", ""), ("cuda", ""), ("hip", "--stream"),
                         ("cuda", "--stream")]:
        res = perf(f"all_reduce -n 2 --memory {kind} {stream} --iterations 2 "
                   "--sizes 8:128K:128 --warmup 1 --json",
                   FABREX_TEST_GPUS="1")
        try:
            out = json.loads(res.stdout)
            good = out["memory"] == kind and not out["wrong"] and \
                out["stream"] == bool(stream) and \
                len(out["rows"]) == 3 and not res.returncode
        except (ValueError, KeyError):
            good = False
        ok(good, f"all_reduce of memory of {kind} {stream}",
           res.stdout + res.stderr)


def faults():
    for kind in ("all_reduce", "all_gather"):
        args = [kind, "-n", "2", "--size", "4K", "--json"] + FAST
        res = perf(args, program=FAULTY)
        ok(not res.returncode, f"{kind}: no fault, nothing wrong", res.stderr)
        res = perf(args, program=FAULTY, FABREX_PERF_FAULT="4095")
        row = json.loads(res.stdout)["rows"][0]
        ok(res.returncode == 4 and row["out_of_place"]["wrong"] == 2 and
           row["in_place"]["wrong"] == 1,
           f"{kind}: one wrong byte is counted each time it is looked at",
           res.stdout)
    res = perf(["all_reduce", "-n", "3", "--size", "4K"] + FAST,
               program=FAULTY, FABREX_PERF_FAULT="die")
    ok(res.returncode not in (0, 4) and "signal 9" in res.stderr and
       "rank 1" in res.stderr, "a rank that dies is named", res.stderr)


def schedule(tmp):
    path = os.path.join(tmp, "wrong")
    with open(path, "w", encoding="utf-8") as f:
        f.write("this is no schedule\n")
    exits(2, f"all_reduce -n 2 --schedule {path}", "rank 0: --schedule")


def launched():
    """As mpirun or a person would start them, one command for each rank."""
    env = dict(os.environ, FABREX_PORT=f"loopback:{FABRIC}-w")
    ranks = [subprocess.Popen(
        [PERF, "all_reduce", "--bootstrap", "fabric:7801", "--rank", str(r),
         "--world", "2", "--size", "64K", "--json"] + FAST, env=env,
        stdout=subprocess.PIPE, text=True) for r in (1, 0)]
    out = [p.communicate(timeout=600)[0] for p in ranks]
    ok(not out[0] and json.loads(out[1])["wrong"] == 0 and
       not any(p.returncode for p in ranks),
       "ranks that others start meet, and the first one reports", out)


def several_ports():
    """Each two of three ranks have a fabric of their own."""
    pairs = ("ab", "ac"), ("bc", "ab"), ("ac", "bc")
    ranks = [subprocess.Popen(
        [PERF, "all_reduce", "--bootstrap", "fabric:7802", "--rank", str(r),
         "--world", "3", "--size", "60012", "--json", "--device",
         ",".join(f"loopback:{FABRIC}-{pair}" for pair in pairs[r])] + FAST,
        stdout=subprocess.PIPE, text=True) for r in (2, 1, 0)]
    out = [p.communicate(timeout=600)[0] for p in ranks]
    ok(not any(out[:2]) and json.loads(out[2])["wrong"] == 0 and
       not any(p.returncode for p in ranks),
       "ranks that reach each other by several ports", out)


def wait_until(ready):
    end = time.monotonic() + 300
    while not ready() and time.monotonic() < end:
        time.sleep(0.01)


def catches(pid, sig):
    """Whether a process has a handler for a signal."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        caught = next(l for l in f if l.startswith("SigCgt")).split()[1]
    return bool(int(caught, 16) >> (sig - 1) & 1)


def interrupted():
    env = dict(os.environ, FABREX_PORT=f"loopback:{FABRIC}")
    p = subprocess.Popen([PERF, "all_reduce", "-n", "2", "--size", "8",
                          "--duration", "60"], env=env, text=True,
                         stdout=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: catches(p.pid, signal.SIGTERM))
    os.killpg(p.pid, signal.SIGTERM)
    try:
        p.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
    ok(p.returncode == 5, "a signal ends it at once", p.returncode)


def pictures(tmp):
    svg = os.path.join(tmp, "p.svg")
    exits(2, f"all_reduce -n 2 --size 4K --plot {svg} --quiet",
          "install gnuplot-nox", path=tmp)
    if not shutil.which("gnuplot"):
        print("# no gnuplot: pictures are not drawn")
        return
    res = perf(["all_reduce", "-n", "2", "--sizes", "1K:64K:4", "--plot",
                svg] + FAST)
    text = xml.dom.minidom.parse(svg).documentElement
    ok(not res.returncode and not res.stderr and text.tagName == "svg" and
       "in place" in text.toxml() and text.getElementsByTagName("path"),
       "--plot draws an SVG with its lines", res.stderr)
    png = svg[:-3] + "png"
    res = perf(f"compare bandwidth --peers memcpy --sizes 4K:64K:4 -r 2 "
               f"-t 0.001 --plot {png} --quiet")
    with open(png, "rb") as f:
        ok(not res.returncode and f.read(8) == b"\x89PNG\r\n\x1a\n",
           "compare --plot draws a PNG", res.stderr)


def compare(tmp):
    """Without any peer: they are named as missing, ours is measured."""
    md, out = (os.path.join(tmp, "t." + e) for e in ("md", "json"))
    counts = os.path.join(tmp, "counts")
    with open(counts, "w", encoding="utf-8") as f:
        f.write("post: 88.5 100\npoll, too many: 100 100\n")
    res = perf(f"compare all --ranks 2,3 -r 3 -t 0.001 --aims --quiet "
               f"--counts {counts} --output {md} --output {out}", path=tmp)
    with open(out, encoding="utf-8") as f:
        every = json.load(f)
    missing = {k["name"] for k in every["contenders"] if "missing" in k}
    ours = [r["results"][0] for r in every["rows"]]
    ok(not res.returncode and missing >= {"openmpi", "mpich", "ucx",
                                         "libfabric"} and
       {k["name"] for k in every["contenders"]} >= {"ucc", "gloo"} and
       all(len(o.get("us", o.get("count"))) >= 1 for o in ours),
       "compare without peers measures ours and names who is missing",
       res.stdout + res.stderr)
    ratios = [p for r in every["rows"] for p in r["results"] if "ratio" in p]
    ok(ratios and not {p["name"] for p in ratios} & missing and
       all(p["ratio"]["q1"] <= p["ratio"]["median"] <= p["ratio"]["q3"]
           for p in ratios), "no ratio is made up for who is missing", ratios)
    with open(md, encoding="utf-8") as f:
        text = f.read()
    rows = [l for l in text.splitlines() if l.startswith("| ")]
    ok(rows and len({l.count("|") for l in rows}) == 1 and
       "install openmpi-bin" in text and "| post | " in text and
       re.search(r"too many.*NO", text), "Markdown, with counts and remedies",
       text)


def table_of_compare(tmp):
    res = perf("compare bandwidth --peers memcpy -r 2 -t 0.001 --json -Q",
               path=tmp)
    try:
        rows = json.loads(res.stdout)["rows"]
        names = [p["name"] for p in rows[0]["results"]]
    except (ValueError, IndexError):
        names = res.stdout
    ok(names == ["fabrex", "memcpy"], "--peers and --json", names)


def peers(tmp):
    """Other software, of which a program stands in for two: who is the best of
    them, where ours is slower, and what they are told."""
    here = os.path.join(tmp, "peers")
    os.mkdir(here)
    with open(os.path.join(HERE, "fake_peer.py"), encoding="utf-8") as f:
        text = f.read().split("\n", 1)[1]
    for name in ("mpirun.mpich", "mpirun.openmpi", "fabrex-perf-mpich",
                 "fabrex-perf-openmpi", "fabrex-perf-gloo"):
        path = os.path.join(here, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!{sys.executable}\n{text}")
        os.chmod(path, 0o755)
    # Not beside the real ones, which would be taken.
    program = shutil.copy(PERF, here)
    env = {"program": program, "path": here,
           "LD_LIBRARY_PATH": os.path.join(os.path.dirname(PERF),
                                           "../../lib")}
    args = ("compare collectives --only barrier,reduce_scatter --sizes 8 -r 3 "
            "-t 0.0001 --peers mpich,gloo,openmpi,ucc --ranks 2")
    md = os.path.join(tmp, "peers.md")
    one = {min(os.sched_getaffinity(0))}
    res = perf(f"{args} --json --output {md} -Q", FAKE_NS="1", cpus=one, **env)
    every = json.loads(res.stdout)
    said = {k["name"]: k.get("version", k.get("missing"))
            for k in every["contenders"]}
    ok(said["mpich"] == "MPICH fake, yields after 1" and
       said["gloo"] == "gloo fake", "peers on a crowded machine yield", said)
    ok("another library" in said["openmpi"] and
       "no fabrex-perf-ucc" in said["ucc"],
       "who is not what it is said to be is missing, and who is not there",
       said)
    best = {r["what"]: r.get("best") for r in every["rows"]}
    with open(md, encoding="utf-8") as f:
        text = f.read()
    ok(best["barrier"]["name"] == "mpich" and best["barrier"]["missed"] and
       best["reduce_scatter"] is None and
       "* at least as fast as the best of the peers in 0 of 1 rows\n" in text
       and re.search(r"\* miss: barrier, 2 ranks: .* MPICH 0.001 us: 0.00",
                     text) and "MPICH, reduce_scatter, 2 ranks: fake" in text,
       "the best of the peers, misses, and what a peer cannot do",
       [best, text])
    res = perf(f"{args} -Q", FAKE_NS=str(10 ** 10), **env)
    ok("in 1 of 1 rows" in res.stdout and "miss:" not in res.stdout and
       ("after many" in res.stdout or len(os.sched_getaffinity(0)) < 2),
       "no miss where ours is faster", res.stdout + res.stderr)


def footprint():
    """Memory and time of a communicator."""
    res = perf("footprint --ranks 2,6 --json")
    try:
        rows = json.loads(res.stdout)["rows"]
        good = [r["ranks"] for r in rows] == [2, 6] and \
            all(r["setup_ms"] > 0 and r["processes"] == r["ranks"] and
                r["made"]["own_kib"] > 0 and
                r["made"]["mappings"] >= r["ranks"] - 1 and
                r["used"]["resident_kib"] >= r["made"]["own_kib"]
                for r in rows)
    except (ValueError, KeyError):
        good = False
    ok(good and not res.returncode, "footprint: memory, time, mappings",
       res.stdout + res.stderr)
    res = perf("footprint --ranks 3")
    ok(not res.returncode and re.search(r"^ +3 +3 +\d", res.stdout, re.M),
       "footprint: a table", res.stdout + res.stderr)


def bench_ranks(tmp):
    """make bench-ranks KEEP=1, with few ranks and a copy of the document."""
    kept = os.path.join(tmp, "kept.md")
    shutil.copy(DOCS, kept)
    res = perf(f"{PERF} {tmp}/bench --footprint 2,3 --ranks 2,3 --only barrier "
               "-r 2 -t 0.001 -Q", FABREX_KEEP=kept,
               program=os.path.join(HERE, "../bench-ranks"))
    with open(kept, encoding="utf-8") as f:
        text = f.read()
    parts = [text.split(f"<!-- {goal} -->")[1].split("<!-- end")[0] for goal in
             ("make bench-ranks", "make bench-ranks, footprint")]
    ok(not res.returncode and "| barrier | - | 3 |" in parts[0] and
       re.search(r"in \d of 1 steps", parts[0]) and
       re.search(r"^ +3 +3 ", parts[1], re.M) and
       os.path.exists(os.path.join(tmp, "ranks.svg")) ==
       bool(shutil.which("gnuplot")),
       "bench-ranks keeps its tables and its picture",
       [res.stdout, res.stderr, parts])


def growth(tmp):
    """Numbers of ranks below each other, and from which to which it grew."""
    md = os.path.join(tmp, "growth.md")
    res = perf(f"compare ranks --ranks 4,2,3 --only barrier,all_reduce -r 2 "
               f"-t 0.001 --quiet --output {md}", path=tmp)
    with open(md, encoding="utf-8") as f:
        cells = [[c.strip() for c in l.split("|")[1:-1]]
                 for l in f if re.match(r"\| (barrier|all-)", l)]
    ok(not res.returncode and len(cells) == 15 and
       [c[2] for c in cells] == ["2", "3", "4"] * 5 and
       all((c[-1] == "-") == (c[2] == "2") for c in cells) and
       {c[1] for c in cells} == {"-", "8", "8K", "64K", "1M"},
       "compare ranks shows the growth from one number to the next",
       [cells, res.stderr])


def example_lines():
    with open(PAGE, encoding="utf-8") as f:
        page = f.read().split("\n.SH EXAMPLES\n")[1].split("\n.SH ")[0]
    return [l.replace("\\-", "-") for block in
            re.findall(r"^\.EX\n(.*?)^\.EE$", page, re.S | re.M)
            for l in block.splitlines() if l]


def can_run(words):
    """What this machine lacks is not run."""
    return not (words[0] == "mpirun" and not shutil.which("mpirun") or
                "hip" in words or
                "--plot" in words and not shutil.which("gnuplot"))


def examples(tmp):
    """Every example of the man page that this machine can run."""
    env = dict(os.environ, FABREX_PORT=f"loopback:{FABRIC}-e")
    for name in ("OMPI", "PRTE"):
        for word in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM"):
            env[f"{name}_{word}"] = "1"
    server = None
    try:
        for line in example_lines():
            words = shlex.split(line)
            if not can_run(words):
                print(f"# not run here: {line}")
                continue
            words = [PERF if w == "fabrex-perf" else w for w in words]
            if "server" in words:
                server = subprocess.Popen(
                    words + ["--device", f"loopback:{FABRIC}-e/b"], env=env,
                    stdout=subprocess.PIPE)
                server.stdout.readline()	# it serves
                continue
            res = subprocess.run(words, env=env, cwd=tmp, text=True,
                                 capture_output=True, timeout=1200, check=False)
            ok(not res.returncode, "example: " + line,
               res.stdout + res.stderr)
    finally:
        server.terminate()
    ok(server.wait(300) == 0, "the examples' server ends", "")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        bad_arguments()
        ports(tmp)
        ports_are_asked_for()
        collectives()
        types()
        table()
        devices()
        faults()
        schedule(tmp)
        launched()
        several_ports()
        interrupted()
        pictures(tmp)
        compare(tmp)
        table_of_compare(tmp)
        peers(tmp)
        footprint()
        growth(tmp)
        bench_ranks(tmp)
        examples(tmp)
    print(f"1..{state['n']}")
    return state["failed"] != 0


sys.exit(main())
