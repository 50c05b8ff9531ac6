# SPDX-License-Identifier: GPL-2.0-only
"""make check: host tests, module builds, dkms, then scenarios in guests.
Prints TAP and last the line `N passed, N failed, N skipped`."""

import concurrent.futures
import os
import subprocess
import threading
import time

import applications
import build
import dkms
import kmod
import nccl
import parts as part_list
import scenario
import space
import tap
from cache import say
from guest import BootFailed
from kernel import MADE
from lab import Lab

LOGS = os.path.join(space.TREE, "build", "logs")
LAYER = "full"		# harness, 32-bit compiler, clang
FUZZ_BRIEF_SECONDS = 3	# for each target in make check


class Check:
    """One run of the tests; `only` filters scenarios and parts by name,
    `chosen` is a further condition."""

    def __init__(self, only=(), chosen=None):
        self.only = only
        self.chosen = chosen or (lambda name: True)
        self.tap = tap.Writer()
        self.begun = time.monotonic()

    def took(self):
        return time.monotonic() - self.begun

    def point(self, name, function, *args):
        """A test that is one function: what it raises is the failure."""
        begun = time.monotonic()
        try:
            result = function(*args)
        except (RuntimeError, OSError, subprocess.CalledProcessError) as e:
            self.tap.point(False, name, detail=str(e))
            return None
        self.tap.point(True, name)
        self.tap.diag(f"{time.monotonic() - begun:.1f} s")
        return result

    def wanted(self, name):
        return self.chosen(name) and \
            (not self.only or any(word in name for word in self.only))

    def finish(self):
        if self.only and not self.tap.number:
            self.tap.point(False, "a test whose name has one of: "
                           + " ".join(self.only), detail="there is none")
        for name in self.tap.totals.failures:
            self.tap.diag("failed: " + name)
        self.tap.diag(f"{self.took():.0f} s")
        print(self.tap.totals.line(), flush=True)
        return 1 if self.tap.totals.failed else 0


def host(check):
    """Host-side tests, a suite of Meson's at a time. Most of them use one
    processor, so two suites run beside each other."""
    needs = {name: ids for name, ids in build.suites(LAYER).items()
             if check.wanted("check-" + name)}
    if not needs:
        return
    build.build(LAYER, build.files(LAYER, set().union(*needs.values())))
    telling = threading.Lock()

    def run_suite(name):
        held = one_suite(name)
        with telling:
            held.tell(check.tap)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(run_suite, name) for name in needs]:
            done.result()


def one_suite(suite):
    """What the tests of a suite print, for later. Each point of a program that
    prints TAP counts; other tests count only when they fail, or as one point if
    the suite has no others."""
    held = tap.Held()
    label = "check-" + suite
    begun = time.monotonic()
    for test in build.test(LAYER, suite):
        text = test.get("stdout", "") + test.get("stderr", "")
        clean = held.include(test.get("stdout", ""), label)
        if clean and test["result"] not in ("OK", "SKIP"):
            held.point(False, f"{label}: {test['name']}: {test['result']}",
                       detail=text[-4000:])
    if not held.number:
        held.point(True, label)
    held.diag(f"{label}: {time.monotonic() - begun:.1f} s")
    return held


def fuzz(seconds, seed=0, quiet=True):
    """Each fuzz target for some seconds, seed 0 being another one each time;
    what Meson logs of each."""
    build.build("fuzz", build.files("fuzz", build.suites("fuzz")["fuzz"]))
    return build.test("fuzz", "fuzz", {"FUZZ_SECONDS": str(seconds),
                                       "FUZZ_SEED": str(seed)}, quiet)


def fuzz_briefly(check):
    """The fuzz targets find nothing within a few seconds."""
    label = f"fuzz, {FUZZ_BRIEF_SECONDS} s each target"
    if not check.wanted(label):
        return
    begun = time.monotonic()
    tests = fuzz(FUZZ_BRIEF_SECONDS, seed=1)
    check.tap.point(all(t["result"] == "OK" for t in tests), label,
                    detail="".join(t["stdout"] for t in tests
                                   if t["result"] != "OK")[-4000:])
    for line in "".join(t["stdout"] for t in tests).splitlines():
        if line.startswith("# ") or "executed_units" in line:
            check.tap.diag(line.lstrip("# "))
    check.tap.diag(f"{time.monotonic() - begun:.1f} s")


def kbuild(check, thorough):
    """W=1 on the three kernels, with sparse on all or on the one that runs the
    tests: it finds the same on each."""
    for name in kmod.HEADERS:
        sparse = thorough or name == "7.2"
        label = f"kbuild {name} W=1" + (" C=2" if sparse else "")
        if check.wanted(label):
            check.point(label, kmod.build, name, True, None, sparse)


def dkms_install(check):
    """dkms add, build, install, remove; then load what it made."""
    for series in dkms.SERIES:
        label = f"dkms {series}"
        if not check.wanted(label):
            continue
        made = check.point(label, dkms.test, series)
        if made and series != "6.1":
            check.point(f"{label}: modules load and unload in a guest",
                        load_in_guest, series, made[0])


def load_in_guest(series, release):
    """insmod and rmmod of dkms's modules on the kernel they are for."""
    out = kmod.out_dir(release, "dkms")
    with Lab(None, series, ["a"]) as lab:
        guest = lab.guest("a")
        guest.sh(f"mkdir -p /lib/modules/{release}/updates/dkms; "
                 f"cp {out}/*.ko /lib/modules/{release}/updates/dkms/; "
                 f"depmod {release}; modprobe -v fabrex_draco; "
                 "lsmod | grep fabrex; modprobe -r fabrex_draco; "
                 "! lsmod | grep -q ^fabrex")
        found = lab.complaints()
    if found:
        raise kmod.KmodError("kernel log:\n" + "\n".join(t for _, t in found))


def elsewhere(check):
    """Kernels that scenarios need which cannot run on the usual one."""
    return sorted({s.kernels[0] for s in scenario.load()
                   if len(s.kernels) == 1 and check.wanted(s.name)
                   and not s.named}
                  - {"7.2", *MADE})


def guests(check, kernel, alone=False):
    """All scenarios that name this kernel, sharing labs where they can; with
    alone only those that name no other."""
    items = [s for s in scenario.load() if suits(s, kernel)
             and check.wanted(s.name) and (not s.named or s.name in check.only)
             and (not alone or len(s.kernels) == 1)]
    groups = {}
    for item in items:
        key = item.lab_key() + ((item.name,) if item.fresh else ())
        groups.setdefault(key, []).append(item)
    numbered = [(group, os.path.join(LOGS, f"lab{n}"))
                for n, group in enumerate(groups.values())]
    pairs = [n for n in numbered if not needs_machine(n[0])]
    for group, logs in numbered:
        if needs_machine(group):
            timed(check.tap, kernel, group, logs)
    beside_each_other(check, kernel, pairs)


def suits(item, kernel):
    """The KCSAN kernel runs what the debug kernel does, of its kind."""
    if kernel == "kcsan":
        return kernel in item.kernels or "debug" in item.kernels and \
            any(word in item.name for word in part_list.KCSAN)
    return kernel in item.kernels


def hosts_of(group):
    return list(dict.fromkeys(h for s in group for h in s.hosts))


def needs_machine(group):
    """Whether no other lab is to run beside it."""
    return len(hosts_of(group)) > 1 or any(s.timed for s in group)


def beside_each_other(check, kernel, numbered):
    """Labs of one host, which has one processor: two at a time."""
    def one(group, logs):
        held = tap.Held()
        timed(held, kernel, group, logs)
        return held

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(one, *n) for n in numbered]:
            done.result().tell(check.tap)


def timed(writer, kernel, group, logs):
    """One lab's scenarios, and what they took: where the time goes."""
    begun = time.monotonic()
    run_group(writer, kernel, group, logs)
    writer.diag(f"lab of {', '.join(hosts_of(group))}: "
                f"{time.monotonic() - begun:.0f} s")


def run_group(writer, kernel, group, logs):
    """Run scenarios in one lab; a failure gets the next one a new lab."""
    group = list(group)
    while group:
        try:
            with Lab(group[0].topology, kernel, hosts_of(group),
                     layer=group[0].layer, keep_logs=logs,
                     **group[0].options) as lab:
                lab.install()
                while group and run_scenario(group.pop(0), lab, writer) \
                        and healthy(lab):
                    pass
        except (BootFailed, RuntimeError, OSError, AssertionError) as e:
            name = group.pop(0).name if group else "lab"
            writer.point(False, f"{name}: the lab starts", detail=str(e))


def run_scenario(item, lab, writer):
    begun = time.monotonic()
    good = scenario.run(item, lab, writer)
    writer.diag(f"{item.name}: {time.monotonic() - begun:.1f} s")
    return good


def healthy(lab):
    """Whether the next scenario can use this lab."""
    return all(g.alive() and g.agent and not g.agent.gone
               for g in lab.guests.values()) and \
        (not lab.emu or lab.emu.alive())


def between_hosts(check):
    """Programs that speak libfabric, in guests; also those that make check leaves
    out, as they take long."""
    names = [s.name for s in scenario.load()
             if s.suite == "libfabric.hosts" and check.wanted(s.name)]
    if names:
        own = Check(names)
        own.tap = check.tap
        guests(own, "7.2")


def libfabric(only=(), provider="fabrex"):
    """make check-libfabric: all programs that speak libfabric; its status."""
    check = Check(only)
    try:
        say("building the provider of libfabric")
        build.build(LAYER, ("programs", applications.PROVIDER))
        applications.everything(check, provider)
        if provider == "fabrex":
            kmod.build("7.2")
            between_hosts(check)
    except (build.BuildError, RuntimeError) as e:
        check.tap.point(False, "build", detail=str(e))
    return check.finish()


def with_rccl(only=()):
    """make check-nccl: tests of the plugin, and RCCL loads it; its status."""
    check = Check(only, lambda name: "nccl" in name or "RCCL" in name)
    try:
        host(check)
        nccl.everything(check)
    except (build.BuildError, RuntimeError) as e:
        check.tap.point(False, "build", detail=str(e))
    return check.finish()


def run(only=(), kernel="7.2", what=("host", "kbuild", "dkms", "guest"),
        part=None):
    """The whole check, or a part of it; its exit status."""
    check = Check(only, part_list.chooser(part) if part else None)
    try:
        if "host" in what or "guest" in what:
            say("building programs, tests and modules")
            build.build(LAYER, ("programs", "guest-programs"))
            kmod.build(kernel)
        if "host" in what:
            host(check)
            fuzz_briefly(check)
        if "kbuild" in what:
            kbuild(check, "guest" not in what)
        if "dkms" in what:
            dkms_install(check)
        if "guest" in what:
            guests(check, kernel)
            for other in elsewhere(check) if kernel == "7.2" else ():
                kmod.build(other)
                guests(check, other, alone=True)
    except (build.BuildError, kmod.KmodError) as e:
        check.tap.point(False, "build", detail=str(e))
    return check.finish()
