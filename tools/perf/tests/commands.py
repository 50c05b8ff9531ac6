# SPDX-License-Identifier: GPL-2.0-only
"""commands.py PERF FAULTY PAGE: runs fabrex-perf's collectives, compare and
pictures over the loopback transport, and looks at what they print. FAULTY is
the same program with fault.c; PAGE the man page, whose examples are run. No
time is judged."""

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

PERF, FAULTY, PAGE = (os.path.abspath(a) for a in sys.argv[1:4])
KINDS = ("all_reduce all_gather reduce_scatter broadcast reduce all_to_all "
         "sendrecv").split()
FAST = "--duration 0.0005 --warmup 1 --quiet".split()
LAUNCHERS = ("FABREX_RANK FABREX_SIZE FABREX_BOOTSTRAP OMPI_COMM_WORLD_RANK "
             "PMIX_RANK PMI_RANK SLURM_PROCID").split()
FABRIC = f"perf-test-{os.getpid()}"
state = {"n": 0, "failed": 0}


def ok(good, what, why=""):
    """A line of TAP; `why` follows when it is bad."""
    state["n"] += 1
    print(f"{'' if good else 'not '}ok {state['n']} {what}", flush=True)
    if not good:
        state["failed"] += 1
        print("# " + str(why).strip().replace("\n", "\n# "), flush=True)


def perf(args, program=PERF, path=None, **env):
    """Run it; PATH is `path` if one is given."""
    if isinstance(args, str):
        args = shlex.split(args)
    every = dict(os.environ, FABREX_FABRIC=FABRIC, **env)
    for name in LAUNCHERS:
        every.pop(name, None)
    if path is not None:
        every["PATH"] = path
    return subprocess.run([program] + args, env=every, capture_output=True,
                          text=True, timeout=1200, check=False)


def exits(code, args, says, **kw):
    """It must end so, and say that."""
    res = perf(args, **kw)
    ok(res.returncode == code and says in res.stderr,
       f"{args}: exit code {code}, says: {says}",
       f"{res.returncode}: {res.stderr}{res.stdout}")


def bad_arguments():
    for args, says in (
            ("all_reduce -n 0", "--ranks"), ("all_reduce -n 65", "--ranks"),
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
            ("all_reduce -n 2 more", "usage"),
            ("compare everything", "collectives"),
            ("compare --ranks 1", "--ranks"), ("compare --ranks ''", "--ranks"),
            ("compare --repetitions 0", "--repetitions"),
            ("compare --only gossip", "gossip"),
            ("compare --peers nobody", "nobody"),
            ("compare latency --ranks 3", "nothing to measure"),
            ("compare ranks --ranks 65", "--ranks"),
            ("compare --output x.txt", "--output"),
            ("compare --counts /nonexistent", "cannot read"),
            ("compare latency --plot x", ".svg or .png")):
        exits(1, args, says)
    exits(2, "all_reduce -n 2 --schedule /nonexistent", "--schedule")
    exits(2, "all_reduce", "-n N starts local ones")
    exits(2, "all_reduce -n 2 --algorithms no=such", "")


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


def table():
    res = perf(["broadcast", "-n", "2", "--root", "1", "--size", "4K",
                "--memory", "malloc", "--iterations", "7"] + FAST)
    lines = [l for l in res.stdout.splitlines() if not l.startswith("#")]
    words = lines[0].split() if lines else []
    ok(words[:5] == ["4096", "1024", "fp32", "-", "1"] and len(words) == 14 and
       words[8] == "0" and words[12] == "0" and "malloc" in res.stdout and
       "iterations 7" in res.stdout, "a row has the columns of nccl-tests",
       res.stdout + res.stderr)
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
    for kind in ("hip", "cuda"):
        res = perf(f"all_reduce -n 2 --memory {kind} --sizes 8:128K:128 "
                   "--iterations 2 --warmup 1 --json", FABREX_TEST_GPUS="1")
        try:
            out = json.loads(res.stdout)
            good = out["memory"] == kind and not out["wrong"] and \
                len(out["rows"]) == 3 and not res.returncode
        except (ValueError, KeyError):
            good = False
        ok(good, f"all_reduce of memory of {kind}", res.stdout + res.stderr)


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
    env = dict(os.environ, FABREX_FABRIC=FABRIC + "-w")
    ranks = [subprocess.Popen(
        [PERF, "all_reduce", "--bootstrap", "fabric:7801", "--rank", str(r),
         "--world", "2", "--size", "64K", "--json"] + FAST, env=env,
        stdout=subprocess.PIPE, text=True) for r in (1, 0)]
    out = [p.communicate(timeout=600)[0] for p in ranks]
    ok(not out[0] and json.loads(out[1])["wrong"] == 0 and
       not any(p.returncode for p in ranks),
       "ranks that others start meet, and the first one reports", out)


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
    env = dict(os.environ, FABREX_FABRIC=FABRIC)
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
    ok(not res.returncode and missing >= {"openmpi", "ucx", "libfabric"} and
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
    env = dict(os.environ, FABREX_FABRIC=FABRIC + "-e")
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
        collectives()
        types()
        table()
        devices()
        faults()
        schedule(tmp)
        launched()
        interrupted()
        pictures(tmp)
        compare(tmp)
        table_of_compare(tmp)
        growth(tmp)
        examples(tmp)
    print(f"1..{state['n']}")
    return state["failed"] != 0


sys.exit(main())
