# SPDX-License-Identifier: GPL-2.0-only
"""libfabric's own tests, fabtests, unmodified: compiled from Debian's source
package against its library, kept in the cache, run over a provider. Results become
points; what is not run has its reason in a file. Used by applications.py."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field

import libfabric
import process
import root
import space
from cache import entry, name_of, remove

RECIPE = 1
LAYER = libfabric.LAYER
SETS = ("unit", "functional", "short", "standard")
HERE = os.path.join(space.TREE, "plugins", "libfabric")
# What is not run and why; options of fi_ubertest.
EXCLUDE = os.path.join(HERE, "fabtests.exclude")
UBERTEST = os.path.join(HERE, "fabtests.ubertest")
# One test, on an idle machine; its own limit is 120 s.
SECONDS = 120
UBERTEST_SECONDS = 600
SLOW = 20		# seconds that are worth a remark

BUILD = r"""
work=$1 out=$2 source=$3
cp -a "$source/fabtests/." "$work"
cd "$work"
./autogen.sh
./configure --prefix=/fabtests --with-libfabric=/usr
make -s -j"$(nproc)"
make -s install DESTDIR="$work/out"
cp -a test_configs/rdm_stress out/fabtests/share/fabtests/test_configs/
mv out/fabtests "$out"
"""


def source():
    return root.source(LAYER, "libfabric", "libfabric-bin")


def spec():
    """What names them in the cache."""
    return {"recipe": RECIPE, "root": root.spec(LAYER),
            "source": root.source_spec(LAYER, "libfabric", "libfabric-bin")}


def entries():
    """Names of what the cache keeps for these tests, and for mpi4py's."""
    sources = [("libfabric", "libfabric-bin"), ("mpi4py", "python3-mpi4py")]
    return {name_of("fabtests", spec())} | {
        name_of("source-" + package, root.source_spec(LAYER, package, binary))
        for package, binary in sources}


def path():
    """Where they are installed: bin, share/fabtests/test_configs."""
    return entry("fabtests", spec(), make)


def copied():
    """A copy of them in the tree, which guests see."""
    to = os.path.join(space.TREE, "build", "fabtests")
    shutil.copytree(path(), to, symlinks=True, dirs_exist_ok=True)
    return to


def make(tmp):
    """Compile and install into tmp."""
    work = tmp + ".work"
    remove(work)
    os.makedirs(work)
    try:
        res = space.run(root.root(LAYER),
                        ["sh", "-ec", BUILD, "fabtests", work, tmp, source()],
                        cwd="/", check=False, text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if res.returncode:
            raise RuntimeError("fabtests do not compile:\n"
                               + res.stdout[-4000:])
    finally:
        remove(work)


@dataclass
class Result:
    """What runfabtests.sh says about one test."""
    name: str
    result: str = ""
    seconds: str = ""
    output: list = field(default_factory=list)

    @property
    def test(self):
        """As its lists and the patterns of what to exclude name it."""
        return re.sub(r' -p "[^"]*"$', "", self.name)


class Excluded:
    """The file of patterns; the comment above some of them is their reason."""

    def __init__(self, name):
        self.name = name
        self.rows = []		# [pattern, reason]
        self.unused = []
        reason, fresh = [], True
        with open(name, encoding="utf-8") as f:
            for line in map(str.strip, f):
                if line.startswith("#"):
                    reason = ([] if fresh else reason) + [line.lstrip("# ")]
                    fresh = False
                elif line:
                    self.rows.append((line, " ".join(reason)))
                    fresh = True
                else:
                    reason, fresh = [], True
        self.unused = [row[0] for row in self.rows]

    def reason(self, test):
        """Why a test is not run."""
        for pattern, reason in self.rows:
            if re.search(pattern, test):
                if pattern in self.unused:
                    self.unused.remove(pattern)
                return reason
        return ""


def parse(lines):
    """Result after Result, as runfabtests.sh -vvv prints them."""
    found = None
    for line in lines:
        line = line.rstrip("\n")
        m = re.match(r"- name:   (.*)$", line)
        if m:
            if found:
                yield found
            found = Result(m.group(1))
        elif found and re.match(r"  result: ", line):
            found.result = line[10:]
        elif found and re.match(r"  time: ", line):
            found.seconds = line.split(":")[1].strip()
        elif line.startswith("# ----"):
            if found:
                yield found
            found = None
        elif found:
            found.output.append(line)
    if found:
        yield found


def script(provider, test_set, exclude, more=(), seconds=SECONDS):
    """runfabtests.sh's command line. Strict: what the provider says it does not
    have is a failure, unless it is excluded."""
    top = path()
    argv = [top + "/bin/runfabtests.sh", "-vvv", "-S", "-p", top + "/bin",
            "-T", str(int(seconds * process.patience())), "-t", test_set]
    if exclude:
        argv += ["-f", exclude]
    if provider.oob:
        argv += ["-b"]
    return argv + list(more) + [provider.name]


def exclude_file(provider):
    """Ours, or that which fabtests have for another provider."""
    if provider.name == "fabrex":
        return EXCLUDE
    name = (f"{path()}/share/fabtests/test_configs/{provider.name}/"
            f"{provider.name}.exclude")
    return name if os.path.exists(name) else None


def stream(argv, env):
    """Results while they come."""
    with libfabric.directory() as cwd:
        with subprocess.Popen(libfabric.command(argv, env, cwd), text=True,
                              errors="replace", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as child:
            try:
                yield from parse(child.stdout)
            finally:
                child.terminate()


def tell(check, label, result, excluded):
    """One point of a Result."""
    name = f"{label}: {result.test}"
    if result.result.startswith("Excluded"):
        reason = excluded.reason(result.test)
        check.tap.point(bool(reason), name, skip=reason,
                        detail="" if reason else "it is excluded, and no comment "
                        f"in {excluded.name} says why")
        return
    good = result.result.startswith("Pass")
    check.tap.point(good, name, detail="" if good else "\n".join(
        [result.result, f"{result.seconds} s"] + result.output[-80:]))
    if good and int(result.seconds or 0) >= SLOW:
        check.tap.diag(f"{result.seconds} s")


def run_set(check, provider, test_set, excluded):
    """One of runfabtests.sh's sets; its tests are points."""
    label = f"fabtests {test_set}"
    count = 0
    argv = script(provider, test_set, excluded and excluded.name)
    for result in stream(argv, provider.env):
        count += 1
        tell(check, label, result, excluded)
    if not count:
        check.tap.point(False, f"{label}: runfabtests.sh runs tests",
                        detail="it printed no result")


def run_sets(check, provider, sets=SETS):
    """All of them, or those of a name that is wanted; a line of the file of what is
    excluded that excludes nothing is a failure, too."""
    name = exclude_file(provider)
    excluded = Excluded(name) if name else None
    wanted = [s for s in sets if check.wanted("fabtests " + s)]
    for test_set in wanted:
        run_set(check, provider, test_set, excluded)
    if excluded and name == EXCLUDE and wanted == list(SETS):
        check.tap.point(not excluded.unused,
                        "fabtests: each line of what is excluded excludes a test",
                        detail="\n".join(excluded.unused))


def ubertest(check, provider):
    """fi_ubertest with our options: one configuration after the other, whose
    results are counted by runfabtests.sh."""
    label = "fabtests ubertest"
    if not check.wanted(label):
        return
    with libfabric.directory() as cwd:
        name = cwd + "/options"
        with open(UBERTEST, encoding="utf-8") as f, \
                open(name, "w", encoding="utf-8") as out:
            out.write(f.read().replace("PROVIDER", provider.name))
        argv = script(provider, "complex", None, ["-u", name],
                      UBERTEST_SECONDS)
        results = list(stream(argv, provider.env))
    if not results:
        check.tap.point(False, f"{label}: it runs",
                        detail="runfabtests.sh printed no result")
    for result in results:
        # "Pass [passed/all]": what the provider says it does not have is not in
        # our options, so it is a failure here.
        m = re.match(r"Pass \[([0-9]+)/([0-9]+)\]", result.result)
        good = bool(m) and m.group(1) == m.group(2) != "0"
        check.tap.point(good, f"{label}: {result.result}", detail="" if good
                        else "\n".join(wrong_lines(result.output)))
        check.tap.diag(f"{result.seconds} s")


def wrong_lines(lines):
    """Of what fi_ubertest prints, that which did not succeed."""
    return [line for line in lines
            if "Ending test" not in line or "Success" not in line][-80:]


def stress(check, provider):
    """fi_rdm_stress: a server with many threads and 16 clients, each of which asks
    it for messages and RMA as a file of commands says, and leaves as it likes."""
    configs = path() + "/share/fabtests/test_configs/rdm_stress"
    for name in sorted(os.listdir(configs)):
        label = f"fabtests fi_rdm_stress {name}"
        if not check.wanted(label):
            continue
        argv = ["sh", "-c", STRESS, "stress", path() + "/bin/fi_rdm_stress",
                provider.name, f"{configs}/{name}"]
        result = libfabric.run(argv, provider.env, seconds=SECONDS)
        # Its status is not that of the clients: they say what they have done.
        done = set(re.findall(r"^\(([0-9]+)-[0-9]+\) rpc op (?:exit|goodbye)",
                              result.stdout, re.M))
        good = not result.returncode and not result.stderr and \
            len(done) == CLIENTS
        check.tap.point(good, label, detail="" if good else
                        f"exit status {result.returncode}, {len(done)} of "
                        f"{CLIENTS} clients have come to their end\n"
                        + "\n".join(result.stdout.splitlines()[-30:])
                        + "\n" + result.stderr[-4000:])


CLIENTS = 16
# What fabtests promise of their threads, unless they are told (FI_THREAD_DOMAIN:
# never two at a time), is not so here: the server has 32. It goes on for ever, and is
# ended; what it says is of interest only where clients have failed.
STRESS = r"""
"$1" --threading safe -p "$2" -s 127.0.0.1 >server 2>&1 &
server=$!
sleep 1
"$1" --threading safe -p "$2" -u "$3" 127.0.0.1 || status=$?
kill $server 2>/dev/null
wait $server 2>/dev/null
if [ $? != 143 ]; then
	echo the server has ended
	status=1
fi
[ -z "$status" ] || cat server
exit ${status:-0}
"""
