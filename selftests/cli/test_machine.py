# SPDX-License-Identifier: GPL-2.0-only
"""A machine without a fabric: the modules are not loaded, the switch and the GPUs
are still there. What fabrexctl says of them to a user is what sysfs has, and what
it supposes without privilege is what root can read."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import fabric
import kmod
import space
from scenario import STOCK, scenario

NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
PCI = "/sys/bus/pci/devices"
GPUS = ["columba1.gpu0", "columba1.gpu1"]
RECORDER = os.path.join(space.TREE, "tools", "fabrexctl", "tests",
                        "record-machine")
# What is read of each device, and the key of its record.
ATTRIBUTES = {"class": "pci_class", "numa_node": "numa_node",
              "current_link_width": "link", "max_link_width": "capability"}
COMMANDS = ("", "list", "list machine --wide", "list devices --wide", "doctor",
            "p2p", "topology show live",
            "topology export live --format graph")


def without_modules(lab, t, guest):
    """Two GPUs are here to stay, but no fabric."""
    fabric.release_all(lab, guest)
    for gpu in GPUS:
        t.need(fabric.compose(guest, gpu, "a").status == 0, "compose")
    fabric.wait_gpus(guest, len(GPUS))
    addresses = sorted(fabric.endpoint(guest, gpu)["pci_name"] for gpu in GPUS)
    guest.sh("rmmod fabrex_draco && rmmod fabrex")
    return addresses


def devices(guest, become=""):
    done = guest.run(f"{become} fabrexctl list --json", check=True)
    doc = json.loads(done.stdout)
    return doc, {d["pci_name"]: d for d in doc["devices"]}


def as_sysfs(guest, name):
    """The attributes as records have them; no link has 0 or 255 lanes."""
    lines = guest.sh(f"cd {PCI}/{name} && for f in {' '.join(ATTRIBUTES)}; "
                     "do cat $f 2>/dev/null || echo -; done").splitlines()
    said = dict(zip(ATTRIBUTES, lines))
    for key in ("numa_node", "current_link_width", "max_link_width"):
        said[key] = int(said[key]) if said[key].isdigit() else None
    for key in ("current_link_width", "max_link_width"):
        if said[key] in (0, 255):
            said[key] = None
    return said


def as_listed(record):
    said = {name: record[key] for name, key in ATTRIBUTES.items()}
    for key in ("current_link_width", "max_link_width"):
        said[key] = said[key] and said[key]["width"]
    return said


@scenario(hosts=["a"], kernels=STOCK, fresh=True, iommu="on")
def no_fabric(lab, t):
    """The tree, to a user and to root, compared with sysfs; nothing is opened for
    writing; without a writable /sys, and without any."""
    a = lab.guest("a")
    gpus = without_modules(lab, t, a)
    doc, seen = devices(a, NOBODY)
    t.ok(doc["fabric"] is None and "not loaded" in doc["no_fabric"],
         "there is no fabric", doc["no_fabric"])
    t.equal(sorted(seen), a.sh(f"ls {PCI}").split(), "every function is listed")
    for name in seen:
        t.equal(as_listed(seen[name]), as_sysfs(a, name), f"{name}: as sysfs")
    t.equal(sorted(n for n in seen if seen[n]["kind"] == "gpu"), gpus,
            "the GPUs")
    compare_with_root(t, a, seen, doc["notes"])
    what_is_said(t, a, gpus)
    only_looking(t, a)
    in_a_container(t, a)
    files = kmod.modules(a.kernel.release)
    a.sh(f"insmod {files['fabrex']} && insmod {files['fabrex_draco']}")
    t.ok(fabric.wait_port(a), "the port is back")
    t.ok(fabric.ctl(a, "").stdout.startswith("fabric "),
         "and so is the fabric")
    fabric.release_all(lab, a)


def compare_with_root(t, a, seen, notes):
    """Root reads the type of a port and ACS from registers."""
    _, known = devices(a)
    t.equal({n: d["kind"] for n, d in seen.items()},
            {n: d["kind"] for n, d in known.items()},
            "what a user is told of ports is what their registers say")
    ports = [n for n, d in known.items() if d["kind"].endswith("-port")]
    t.ok(all(seen[n]["kind_supposed"] and not known[n]["kind_supposed"]
             for n in ports) and len(ports) > 3, "and marked as supposed")
    t.ok(all(seen[n]["acs"] is None for n in ports) and
         any("ACS of" in n for n in notes), "ACS is not known to a user",
         notes)
    for name in ports:
        control = a.run(f"setpci -s {name} ECAP_ACS+6.w")
        want = "0x" + control.stdout.strip() if control.status == 0 else None
        t.equal(known[name]["acs_control"], want, f"{name}: ACS")
    t.ok(any(known[n]["acs"] == "redirect" for n in ports),
         "with an IOMMU it redirects")


def what_is_said(t, a, gpus):
    said = a.run(f"{NOBODY} fabrexctl", check=True).stdout
    t.ok(all(f"{name}  GPU" in said for name in gpus) and "switch" in said,
         "the tree", said)
    doctor = json.loads(a.run("fabrexctl doctor --json", check=True).stdout)
    able = {row["what"]: row for row in doctor["abilities"]}
    texts = [row["text"] for row in doctor["findings"]]
    t.equal(able["compose"]["answer"], "no", "nothing can be composed")
    t.ok("no driver for it" in able["compose"]["text"] and
         any(text.startswith("fabrex_draco is not installed for this kernel; "
                             "the fabric port here needs it")
             for text in texts), "and which module is missing", texts)
    t.ok(any("an IOMMU translates" in text for text in texts), "the IOMMU",
         texts)
    t.ok(any("ACS redirects requests at" in text for text in texts),
         "and what it makes of ACS")
    t.equal(able["GPU to GPU"]["answer"], "no", "GPUs do not reach each other")
    pairs = json.loads(a.run("fabrexctl p2p --json", check=True).stdout)
    ways = [p for p in pairs["pairs"]
            if {p["initiator"], p["target"]} == set(gpus)]
    t.ok(ways and all(p["verdict"] == "no" and p["reason"] == "acs"
                      for p in ways), "p2p says so, too", ways)
    graph = json.loads(a.run(f"{NOBODY} fabrexctl topology show live --json",
                             check=True).stdout)
    t.equal(graph["ranks"], gpus, "two ranks")
    for name in ("nccl", "rccl"):
        xml = a.run(f"fabrexctl topology export live --format {name}",
                    check=True).stdout
        t.ok(all(f'busid="{g}"' in xml for g in gpus), f"for {name}", xml)
    wrong = a.run("fabrexctl list endpoints")
    t.ok(wrong.status == 6 and "shows this machine" in wrong.stderr,
         "what only a fabric has says where to look", wrong.stderr)


def only_looking(t, a):
    """As root, who could."""
    for command in COMMANDS:
        done = a.run("strace -f -e trace=openat,open,creat,unlink,unlinkat,"
                     "rename,mkdir,write,ioctl,finit_module -o /tmp/calls "
                     f"fabrexctl {command}", timeout=120)
        calls = a.sh("cat /tmp/calls").splitlines()
        wrong = [c for c in calls if
                 any(w in c for w in ("O_WRONLY", "O_RDWR", "O_CREAT", "creat(",
                                      "unlink", "rename", "mkdir",
                                      "finit_module"))
                 or (" write(" in c and not c.split(" write(")[1]
                     .startswith(("1,", "2,")))]
        t.ok(done.status == 0 and calls and not wrong,
             f"fabrexctl {command}: only looks", wrong or done.stderr)


def in_a_container(t, a):
    """/sys that is read-only says the same; without one, there is nothing."""
    plain = a.run(f"{NOBODY} fabrexctl list machine --wide", check=True).stdout
    sealed = a.run("unshare -m sh -c 'mount -o remount,bind,ro /sys && "
                   f"exec {NOBODY} fabrexctl list machine --wide'")
    t.equal((sealed.status, sealed.stdout), (0, plain), "a read-only /sys")
    for command, says in (("", "/sys/bus/pci/devices cannot be read"),
                          ("doctor", "compose: unknown"),
                          ("p2p", "there is no pair"),
                          ("topology show live", "cannot be read")):
        none = a.run("unshare -m sh -c 'mount -t tmpfs none /sys && "
                     f"exec {NOBODY} fabrexctl {command}'")
        t.ok(none.status == 0 and says in none.stdout,
             f"fabrexctl {command}, without /sys", none.stdout + none.stderr)
    a.put(RECORDER, "/tmp/record-machine", 0o755)
    text = a.run("python3 /tmp/record-machine", check=True).stdout
    t.ok(text.count("\nconfig:4096 ") > 5 and "[sys/class/iommu/" in text,
         "the machine can be recorded", text[:500])
