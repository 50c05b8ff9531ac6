# SPDX-License-Identifier: GPL-2.0-only
"""The Debian roots everything is compiled and run in, in layers.
`demo` is what make demo needs; `full` adds what the tests need; `peers` is
demo and what fabrex is compared with between guests, `bench` the same on one
machine; `gpu` is demo and what compiles the kernels of GPUs; `libfabric` is demo
and programs that speak libfabric; `bookworm` is Debian 12 for its 6.1 kernel
headers and its libfabric, `bookworm-mpi` has its MPI, too. Used by lab, in-root
and kernel.py."""

import os
import re
import subprocess

import apt
import space
from cache import cache_dir, entry, locked, remove

RECIPE = 1

# Package names with {7.2} style versions are looked up: newest that matches.
DEMO = """
    gcc make meson ninja-build pkgconf libc6-dev libnl-3-dev libnl-genl-3-dev libudev-dev
    libjson-c-dev libconfig-dev libexpat1-dev
    qemu-system-x86 seabios ipxe-qemu
    image:7.2 headers:7.2
    busybox kmod udev iproute2 pciutils strace bash-completion jq procps
    file cpio erofs-utils less python3
""".split()

FULL = """
    image:6.12 headers:6.12 linux-source-7.2 sparse dkms
    clang libclang-rt-dev llvm gcc-multilib valgrind man-db python3-yaml
    bc bison flex libelf-dev libssl-dev dwarves rsync xz-utils zstd kmod
    groff mandoc git gdb g++ python3-jsonschema shellcheck
    libamdhip64-dev libhsa-runtime-dev gnuplot-nox
    libfabric-dev libfabric-bin
    ccache
""".split()

# What fabrex is measured against between guests: RDMA over Ethernet, TCP, MPI.
PEERS = """
    rdma-core ibverbs-providers ibverbs-utils perftest qperf iperf3
    openmpi-bin libfabric-bin
""".split()

# And what it is measured against on one machine (make bench).
BENCH = """
    openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev g++ ucx-utils
    libfabric-bin gnuplot-nox valgrind
""".split()

# What speaks libfabric and runs over the provider unchanged: MPI and programs of
# its users. libfabric's own tests and mpi4py's are only in source packages.
LIBFABRIC = """
    libfabric-dev libfabric-bin
    openmpi-bin libopenmpi-dev hpcc netpipe-openmpi python3-mpi4py python3-numpy
    autoconf automake libtool xz-utils
""".split()

# Run-time compilers of the test runtimes need one for C++.
GPU = ["g++"]

# The library that our plugin is for, and what loads it (nccl.py).
RCCL = ["librccl1", "python3-minimal", "iproute2", "mount"]

# And its libfabric, for which the provider is built there, too.
BOOKWORM = """
    gcc make dkms sparse kmod headers:6.1
    meson ninja-build pkgconf libc6-dev libfabric-dev libfabric-bin
""".split()

# And what a command needs there to be alone: libfabric.py.
BOOKWORM_MPI = ["openmpi-bin", "libopenmpi-dev", "iproute2", "mount"]

LAYERS = {
    "demo": {"release": "trixie", "backports": True, "packages": DEMO},
    "full": {"release": "trixie", "backports": True, "packages": FULL,
             "on": "demo", "unpack": "linux-source-7.2"},
    "peers": {"release": "trixie", "backports": True, "packages": PEERS,
              "on": "demo"},
    "bench": {"release": "trixie", "backports": True, "packages": BENCH,
              "on": "demo"},
    "gpu": {"release": "trixie", "backports": True, "packages": GPU,
            "on": "demo"},
    "libfabric": {"release": "trixie", "backports": True,
                  "packages": LIBFABRIC, "on": "demo", "sources": True},
    "rccl": {"release": "trixie", "backports": True, "packages": RCCL,
             "on": "demo"},
    "bookworm": {"release": "bookworm", "backports": False,
                 "packages": BOOKWORM},
    "bookworm-mpi": {"release": "bookworm", "backports": False,
                     "packages": BOOKWORM_MPI,
                     "on": "bookworm"},
}

# No documentation but man pages, no services, no fsync per file; QEMU and
# what a backported kernel needs come from backports.
CONFIG = {
    "/etc/dpkg/dpkg.cfg.d/lab":
        "force-unsafe-io\n"
        "path-exclude=/usr/share/doc/*\n"
        "path-exclude=/usr/share/locale/*\n"
        "path-exclude=/usr/share/info/*\n"
        "path-include=/usr/share/doc/*/copyright\n",
    "/etc/apt/apt.conf.d/99lab":
        'APT::Install-Recommends "false";\n'
        'APT::Keep-Downloaded-Packages "true";\n'
        'APT::Sandbox::User "root";\n',
    "/etc/apt/preferences.d/lab":
        "Package: qemu-* seabios ipxe-qemu linux-base linux-kbuild-* pahole\n"
        "Pin: release n=*-backports\n"
        "Pin-Priority: 990\n",
    "/usr/sbin/policy-rc.d":
        "#!/bin/sh\nexit 101\n",
}

TOOLS = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux", "xz": "xz-utils"}
if os.geteuid() != 0:
    TOOLS["newuidmap"] = "uidmap"


def spec(layer):
    """What names a layer in the cache: everything that shapes it."""
    info = dict(LAYERS[layer], recipe=RECIPE, config=CONFIG)
    if "on" in info:
        info["on"] = spec(info["on"])
    return info


def root(layer, force=False):
    """Path of the layer's root directory, built when missing."""
    return entry("root-" + layer, spec(layer),
                 lambda tmp: make(layer, tmp), force)


def make(layer, tmp):
    """Build one layer at tmp."""
    apt.need(TOOLS)
    space.check()
    info = LAYERS[layer]
    if "on" in info:
        base = root(info["on"])
        subprocess.run(space.unshare() + ["cp", "-a", base, tmp], check=True)
    else:
        bootstrap(tmp, info)
    if info.get("sources"):
        with open(tmp + "/etc/apt/sources.list.d/source.list", "w") as f:
            f.writelines(line + "\n" for line in apt.sources(
                info["release"], False, "deb-src"))
    install(tmp, info)
    if "unpack" in info:
        unpack(tmp, info["unpack"])


def unpack(tmp, name):
    """Replace a kernel source package's tarball by its contents."""
    tar = f"/usr/src/{name}.tar.xz"
    inside(tmp, ["tar", "-C", "/usr/src", "-xf", tar])
    inside(tmp, ["rm", tar])


def bootstrap(tmp, info):
    """A minimal system from this machine's mirrors."""
    if not os.path.exists("/usr/share/keyrings/debian-archive-"
                          f"{info['release']}-stable.gpg"):
        apt.as_root(["apt-get", "install", "-qy", "debian-archive-keyring"])
    argv = ["mmdebstrap", "--mode=root", "--variant=apt", "--format=directory",
            "--skip=cleanup/apt", "--quiet", "--include=ca-certificates"]
    argv += ["--aptopt=" + o.rstrip(";") for o in apt.options()]
    argv += [info["release"], tmp]
    argv += apt.sources(info["release"], info["backports"])
    # util-linux 2.38 maps sub-ids so that root's files stay ours.
    subprocess.run(space.unshare() + argv, check=True)
    configure(tmp)


def configure(tmp):
    """Write CONFIG's files into a new root."""
    for name, text in CONFIG.items():
        with open(tmp + name, "w") as f:
            f.write(text)
    os.chmod(tmp + "/usr/sbin/policy-rc.d", 0o755)


def resolve(tmp, info):
    """Package arguments for apt-get from a layer's list."""
    names = inside(tmp, ["apt-cache", "pkgnames", "linux-"]).split()
    out = []
    for item in info["packages"]:
        kind, _, version = item.partition(":")
        if version:
            out.append(newest(names, "linux-" + kind, version))
        else:
            out.append(item)
    return out


def newest(names, what, version):
    """The newest stock amd64 package `what` of a kernel series."""
    pattern = re.compile(re.escape(what) + r"-(" + re.escape(version)
                         + r"\.[0-9]+(?:\+deb[0-9]+|-[0-9]+))-amd64$")
    found = [n for n in names if pattern.match(n)]
    if not found:
        raise apt.AptError(f"no package {what}-{version}.*-amd64 in the "
                           "mirrors named by this machine's apt configuration")
    key = lambda n: [int(x) for x in re.findall(r"[0-9]+", n)]
    return max(found, key=key)


def inside(tmp, argv, **kw):
    """Run in a root that is still being built; returns its output."""
    env = {"DEBIAN_FRONTEND": "noninteractive", "INITRD": "No"}
    res = space.run(tmp, argv, cwd="/", env=env, text=True,
                    stdout=subprocess.PIPE, **kw)
    return res.stdout


def install(tmp, info):
    """apt-get install with a download cache shared between roots."""
    debs = os.path.join(cache_dir(), "apt")
    os.makedirs(debs + "/partial", exist_ok=True)
    inside(tmp, ["apt-get", "update", "-qq"])
    with locked("apt"):
        inside(tmp, ["apt-get", "install", "-qqy", "-o",
                     "Dir::Cache::archives=" + debs] + resolve(tmp, info))


def kernels(path):
    """{'7.2': '7.2.12+deb13-amd64', ...} of the headers in a root."""
    found = {}
    for name in sorted(os.listdir(path + "/lib/modules")):
        m = re.match(r"([0-9]+\.[0-9]+)\.", name)
        if m and os.path.isdir(f"{path}/lib/modules/{name}"):
            found[m.group(1)] = name
    return found


def version(layer, package):
    """Version of an installed package, from the root's dpkg database."""
    with open(root(layer) + "/var/lib/dpkg/status") as f:
        for block in f.read().split("\n\n"):
            if block.startswith(f"Package: {package}\n"):
                return re.search(r"^Version: (.*)$", block, re.M).group(1)
    raise apt.AptError(f"package {package} is not in the root {layer}")


def source(layer, package, binary):
    """Path of what a source package has from its authors, without Debian's changes;
    fetched and unpacked when missing. The version is that of `binary`, which is made
    of it and installed in the layer."""
    return entry("source-" + package, source_spec(layer, package, binary),
                 lambda tmp: fetch_source(layer, package, binary, tmp))


def source_spec(layer, package, binary):
    """What names it in the cache; Debian's rebuilds have the same source."""
    return {"package": package,
            "version": re.sub(r"\+b[0-9]+$", "", version(layer, binary))}


def fetch_source(layer, package, binary, tmp):
    """Unpack into tmp. apt compares the archive with the signed list."""
    what = source_spec(layer, package, binary)
    work = tmp + ".work"
    remove(work)
    os.makedirs(work)
    os.makedirs(tmp)
    try:
        space.run(root(layer), ["sh", "-ec", FETCH, "fetch", package,
                                what["version"], tmp], cwd=work)
    except subprocess.CalledProcessError as e:
        remove(tmp)
        raise apt.AptError(
            f"this machine's mirrors do not have the source package {package} "
            f"{what['version']}; if they have a newer one, run tools/lab/lab "
            f"root --refresh {layer}") from e
    finally:
        remove(work)


# Whatever the archive's first directory is called.
FETCH = r"""
apt-get source -qq --download-only --tar-only "$1=$2" >&2
tar -C "$3" --strip-components=1 -xf "$1"_*.orig.tar.*
"""
