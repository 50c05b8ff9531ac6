# SPDX-License-Identifier: GPL-2.0-only
"""Composition: a GPU given to a host, refused to another, moved, kept over a
reboot; other hosts are not disturbed."""

import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
import install
from process import wait_until
from puppet import WRITE, Puppet
from scenario import scenario

EP = "columba1.gpu0"


@scenario(hosts=["a", "b", "c"])
def compose_refuse_move_release(lab, t):
    """The operator's day."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    begun = time.monotonic()
    made = fabric.compose(a, EP, "a")
    t.need(made.status == 0, "compose to a", made.stdout + made.stderr)
    pci = fabric.wait_gpus(a, 1)
    t.need(len(pci) == 1, "a's kernel sees a GPU", a.dmesg()[-2000:])
    t.diag("compose to driver-bindable device: "
           f"{time.monotonic() - begun:.2f} s, of that the command "
           f"{made.seconds:.2f} s")
    t.ok("pciehp" in a.dmesg(), "it came by native hot-plug")
    t.equal(fabric.gpus(b), [], "b's kernel does not see it")
    row = fabric.endpoint(b, EP)
    t.equal(row["state"], "bound", "b sees that it is bound")
    refused = fabric.compose(b, EP, "b")
    t.ok(refused.status != 0, "refused to b while a holds it")
    t.ok("a.0" in refused.stderr, "the message says who holds it",
         refused.stderr)
    t.equal(fabric.endpoint(a, EP)["state"], "bound", "nothing changed")
    gone = fabric.release(a, EP)
    t.need(gone.status == 0, "release", gone.stdout + gone.stderr)
    t.diag(f"orderly release: {gone.seconds:.2f} s")
    t.equal(fabric.wait_gpus(a, 0), [], "a's kernel has lost it")
    t.equal(fabric.compose(a, EP, "b").status, 0, "a composes it to b")
    t.equal(len(fabric.wait_gpus(b, 1)), 1, "b's kernel sees it")
    t.equal(fabric.ctl(b, f"move {EP} --to c {fabric.PATIENT}").status, 0, "moved to c")
    t.equal(len(fabric.wait_gpus(lab.guest("c"), 1)), 1, "c has it")
    t.equal(fabric.wait_gpus(b, 0), [], "b does not")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b", "c"])
def several_and_dry_run(lab, t):
    """By kind and count; a dry run changes nothing; all eight at once."""
    a = lab.guest("a")
    fabric.release_all(lab, a)
    t.equal(fabric.compose(a, "gpu:2", "a", "--dry-run").status, 0, "dry run")
    t.equal(fabric.gpus(a), [], "changes nothing")
    t.equal(fabric.compose(a, "gpu:8", "a").status, 0, "all eight to a")
    t.equal(len(fabric.wait_gpus(a, 8)), 8, "a's kernel sees eight")
    bars = a.sh("for d in $(lspci -Dn -d 1234:da10 | cut -d' ' -f1); do "
                "awk '$1 != 0 {n++} END {print n}' "
                "/sys/bus/pci/devices/$d/resource; done").split()
    t.ok(all(int(n) >= 1 for n in bars), "all have their BARs placed", bars)
    t.ok(fabric.compose(a, "gpu:1", "b").status != 0, "there is none left")
    names = [n for n, r in fabric.endpoints(a).items()
             if r["state"] == "bound"]
    t.ok(fabric.released(a, names), "all released")
    t.equal(fabric.wait_gpus(a, 0), [], "a's kernel has none")


@scenario(hosts=["a", "b", "c"])
def refused_while_in_use(lab, t):
    """A process that uses the device keeps it; the refusal names it."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, EP, "a").status == 0, "compose")
    pci = fabric.wait_gpus(a, 1)[0]
    user = a.start_command(
        "exec -a gpu-job python3 -c \"import mmap, os, sys\n"
        f"fd = os.open('/sys/bus/pci/devices/{pci}/resource0', os.O_RDWR)\n"
        "m = mmap.mmap(fd, 4096)\n"
        "print('ready', flush=True)\nsys.stdin.read()\"", keep_stdin=True)
    user.wait_for("ready")
    refused = fabric.release(b, EP)
    t.ok(refused.status != 0, "orderly release is refused while in use",
         refused.stdout + refused.stderr)
    text = refused.stdout + refused.stderr
    t.ok("python3" in text or "gpu-job" in text, "by name of the process",
         text)
    t.equal(fabric.endpoint(b, EP)["state"], "bound", "it is still bound")
    t.equal(len(fabric.gpus(a)), 1, "and still there")
    user.close_stdin()
    user.wait(20)
    t.equal(fabric.release(b, EP).status, 0, "afterwards it is let go")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b", "c"])
def forced(lab, t):
    """--force takes it away from a process that uses it; the host survives."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, EP, "a").status == 0, "compose")
    pci = fabric.wait_gpus(a, 1)[0]
    user = a.start_command(
        "exec python3 -c \"import mmap, os, time\n"
        f"fd = os.open('/sys/bus/pci/devices/{pci}/resource0', os.O_RDWR)\n"
        "m = mmap.mmap(fd, 4096)\n"
        "print('ready', flush=True)\ntime.sleep(3000)\"")
    user.wait_for("ready")
    t.equal(fabric.release(b, EP, "--force").status, 0, "force")
    t.equal(fabric.compose(b, EP, "b").status, 0, "free for b at once")
    t.equal(len(fabric.wait_gpus(b, 1)), 1, "b's kernel sees it")
    t.equal(fabric.wait_gpus(a, 0), [], "a's kernel has lost it")
    user.kill()
    user.wait(20)
    fabric.release_all(lab, a)
    t.equal(fabric.compose(a, EP, "a").status, 0, "and a can have it again")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b", "c"])
def declarative(lab, t):
    """plan shows the difference, apply makes it so, a second one is empty."""
    a = lab.guest("a")
    fabric.release_all(lab, a)
    with open(lab.emu.topology) as f:
        text = f.read()
    head = text.split("bindings", 1)[0]
    wish = head + ('bindings = ( { endpoint = "columba1.gpu1"; port = "a.0"; }'
                   ', { endpoint = "columba1.gpu2"; port = "b.0"; } );\n')
    a.put(wish.encode(), "/tmp/wish.topo")
    plan = fabric.ctl(a, "plan /tmp/wish.topo")
    t.ok("columba1.gpu1" in plan.stdout and "columba1.gpu2" in plan.stdout,
         "plan names both", plan.stdout + plan.stderr)
    t.equal(fabric.gpus(a), [], "plan changes nothing")
    done = fabric.ctl(a, f"apply /tmp/wish.topo {fabric.PATIENT}")
    t.equal(done.status, 0, "apply")
    t.equal(len(fabric.wait_gpus(a, 1)), 1, "a has one")
    t.equal(len(fabric.wait_gpus(lab.guest("b"), 1)), 1, "b has one")
    again = fabric.ctl(a, "plan --detailed-exitcode /tmp/wish.topo")
    t.diag(f"second plan: status {again.status}: {again.stdout.strip()}")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b", "c"])
def event_stream(lab, t):
    """monitor on c tells what a and b do, in order, as JSON lines."""
    a, c = lab.guest("a"), lab.guest("c")
    fabric.release_all(lab, a)
    lines = []
    watch = c.start_command("fabrexctl monitor --json --ready", on_line=lambda
                            _stream, line: lines.append(line))

    def states():
        watch.poll()
        events = [json.loads(l) for l in lines if l.startswith("{")]
        return [e.get("state") for e in events if e.get("name") == EP]

    limit = 30 * c.patience
    t.need(wait_until(lambda: watch.poll() or lines, limit), "monitor listens")
    fabric.compose(a, EP, "a")
    fabric.release(a, EP)
    t.ok(wait_until(lambda: states()[-1:] == ["free"] and "bound" in states(),
                    limit), "compose and release are in the stream",
         lines)
    watch.kill(2)
    watch.wait(20)


def keep_changing(guest, endpoint, changes, log):
    """Compose and release until that many changes have been made."""
    for made in range(changes):
        verb = fabric.release if made % 2 else \
            lambda g, e: fabric.compose(g, e, "a")
        result = verb(guest, endpoint)
        if result.status:
            log.append(result.stdout + result.stderr)
            return
    log.append(changes)


@scenario(hosts=["a", "b", "c"])
def others_not_disturbed(lab, t):
    """Host a's composition changes 100 times; a transfer from b to c with
    end-to-end verification loses and corrupts nothing."""
    a, b, c = (lab.guest(n) for n in "abc")
    # The PCI core takes 5 to 20 s for a change there.
    changes = 6 if a.kernel.name == "debug" else 26
    fabric.release_all(lab, a)
    receiver = c.start_command("dma-stream receive 6000", keep_stdin=True)
    receiver.wait_for("key ")
    key = receiver.output().split()[1]
    probe = Puppet(b)
    peer = probe.ask("peer", "c")[0]
    probe.close()
    sender = b.start_command(f"dma-stream send {peer} {key} 6000",
                             keep_stdin=True)
    sender.wait_for("running")
    log = []
    begun = time.monotonic()
    workers = [threading.Thread(target=keep_changing,
                                args=(a, f"columba1.gpu{n}", changes,
                                      log))
               for n in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    took = time.monotonic() - begun
    sender.close_stdin()
    sent = sender.wait(60)
    receiver.close_stdin()
    got = receiver.wait(60)
    t.equal(log, [changes] * 4, f"4 x {changes} changes of a's composition")
    s = json.loads(sent.stdout.strip().split("\n")[-1])
    r = json.loads(got.stdout.strip().split("\n")[-1])
    t.diag(f"{took:.0f} s of changes; {s['messages']} messages, "
           f"{s['bytes'] >> 20} MiB verified")
    t.diag(f"lost {s['lost'] + r['lost']}, corrupted "
           f"{s['corrupted'] + r['corrupted']}, longest completion "
           f"{s['worst_us'] / 1000:.1f} ms, mean "
           f"{s['mean_us'] / 1000:.2f} ms")
    t.ok(s["messages"] > 100, "there was traffic")
    t.equal(r["messages"], s["messages"], "all messages arrived")
    t.equal(s["lost"] + r["lost"], 0, "nothing lost")
    t.equal(s["corrupted"] + r["corrupted"], 0, "nothing corrupted")
    t.equal(s["failed"] + r["failed"], 0, "nothing failed")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b", "c"])
def bindings_survive_reboot(lab, t):
    """A rebooted host finds its endpoints again; meanwhile they stay its."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, "gpu:2", "b").status == 0, "two GPUs to b")
    t.equal(len(fabric.wait_gpus(b, 2)), 2, "b has them")
    mine = [n for n, r in fabric.endpoints(a).items()
            if r["state"] == "bound"]
    b.kill()
    state = fabric.wait_state(a, mine[0], "attaching")
    t.equal(state, "attaching", "while b is off they wait for it")
    t.ok(fabric.compose(a, mine[0], "a").status != 0, "and are nobody else's")
    b.restart()
    install.install([b])
    t.ok(fabric.wait_port(b), "b's port works again")
    t.equal(len(fabric.wait_gpus(b, 2)), 2, "b has them again")
    t.equal(fabric.wait_state(a, mine[0], "bound"), "bound", "a sees that")
    fabric.release_all(lab, a)
