# SPDX-License-Identifier: GPL-2.0-only
"""Faults injected through draco-emu's control socket, and what programs see
of them."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
import fabric
from puppet import CHECK, NOP, WRITE, Puppet
from scenario import scenario

SIZE = 1 << 16


def pair(lab):
    """a writes to b."""
    a, b = Puppet(lab.guest("a")), Puppet(lab.guest("b"))
    a.mr(0, SIZE)
    a.fill(0, 0, SIZE, 1)
    a.queue(0)
    b.queue(0)
    return a, b, b.mr(0, SIZE)


def inject(lab, t, **request):
    answer = lab.emu_control(request)
    t.need(answer.get("ok"), f"inject {request}", answer)


@scenario(hosts=["a", "b", "c"])
def corrupted_payload(lab, t):
    """CHECK finds what would be silent without it."""
    a, b, rkey = pair(lab)
    inject(lab, t, cmd="fault", kind="corrupt-payload", port="a.0", count=1)
    done = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE, flags=CHECK)
    t.equal(done.status, "DATA", "with CHECK the corruption is reported")
    done = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE, flags=CHECK)
    t.equal(done.status, "OK", "the next one is good")
    t.ok(b.same(0, 0, SIZE, 1), "and complete")
    inject(lab, t, cmd="fault", kind="corrupt-payload", port="a.0", count=1)
    done = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE)
    t.ok(done.status == "OK" and not b.same(0, 0, SIZE, 1),
         "without CHECK it is silent, as documented")
    t.equal(a.ask("counters", 0)[3], 1, "crc_errors counts it")
    a.close()
    b.close()


@scenario(hosts=["a", "b", "c"])
def stuck_completion(lab, t):
    """A completion that never comes: nothing else is disturbed, the queue can
    be destroyed."""
    a, b, rkey = pair(lab)
    a.queue(1)
    inject(lab, t, cmd="fault", kind="stuck-completion", port="a.0", count=1)
    a.post(0, WRITE, b.peer, 0, 0, rkey, 0, 64)
    t.ok(a.poll(0, 500) is None, "no completion")
    t.equal(a.op(1, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "OK",
            "another queue works")
    t.equal(a.errno("qdel", 0), None, "the stuck queue is destroyed")
    a.queue(0)
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "OK",
            "and made again")
    a.close()
    b.close()


@scenario(hosts=["a", "b", "c"])
def lost_doorbell(lab, t):
    """A dropped doorbell is made good by the next."""
    a, b, rkey = pair(lab)
    a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64)
    time.sleep(0.3)	# until the device no longer watches the queue
    inject(lab, t, cmd="fault", kind="drop-doorbell", port="a.0", count=1)
    a.post(0, WRITE, b.peer, 0, 0, rkey, 0, 64)
    first = a.poll(0, 300)
    t.diag("the device " + ("watched the queue by itself" if first else
                            "missed the doorbell"))
    if not first:
        time.sleep(0.3)
        a.post(0, WRITE, b.peer, 0, 0, rkey, 0, 64)
        t.ok(a.poll(0) and a.poll(0), "both complete after the next doorbell")
    a.close()
    b.close()


@scenario(hosts=["a", "b", "c"])
def link_down_and_up(lab, t):
    """b's link goes down: errors, not hangs; old keys work when it is back."""
    a, b, rkey = pair(lab)
    generation = a.ask("peer", "b")[2]
    inject(lab, t, cmd="link", port="b.0", state="down")
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "UNREACHABLE",
            "to the lost host")
    t.equal(b.op(0, NOP, 0).status, "OK", "its own queue still runs")
    b.mr(1, SIZE)
    t.ok(a.wait_event("PEER_DOWN"), "a is told")
    t.ok(b.wait_event("LINK_DOWN"), "b is told")
    t.equal(a.op(0, WRITE, a.peer, 0, 0, a.mr(4, SIZE), 0, 64).status, "OK",
            "others are not disturbed")
    ports = fabric.ctl_json(lab.guest("b"), "list ports")
    t.ok("down" in str(ports), "the list shows it, asked on b itself")
    inject(lab, t, cmd="link", port="b.0", state="up")
    t.equal(fabric.wait_peer(a, "b", True), generation, "same generation")
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "OK",
            "the old key works again")
    t.ok(a.wait_event("PEER_UP") and b.wait_event("LINK_UP"),
         "both are told")
    a.close()
    b.close()


@scenario(hosts=["a", "b", "c"])
def port_disabled_and_reset(lab, t):
    """The operator disables, enables and resets b's port from a."""
    a, b, rkey = pair(lab)
    host = lab.guest("a")
    generation = a.ask("peer", "b")[2]
    t.equal(fabric.ctl(host, "port b.0 disable --force").status, 0, "disable")
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "UNREACHABLE",
            "unreachable")
    t.equal(fabric.ctl(host, "port b.0 enable").status, 0, "enable")
    fabric.wait_peer(a, "b", True)
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status, "OK",
            "reachable with the same key")
    t.equal(fabric.ctl(host, "port b.0 reset --force").status, 0, "reset")
    end = time.monotonic() + 20 * host.patience
    while a.ask("peer", "b")[1:] == [1, generation] and \
            time.monotonic() < end:
        time.sleep(0.1)
    now = fabric.wait_peer(a, "b", True)
    t.ok(now and now > generation, "a new generation",
         f"{generation} -> {now}")
    # b's driver may have to enable it once more.
    while time.monotonic() < end:
        status = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, 64).status
        if status != "UNREACHABLE":
            break
        time.sleep(0.1)
    t.equal(status, "RKEY", "the key of before is refused")
    t.ok(b.state(0)[0] != 0, "b's queue is in error")
    b.kill()
    t.ok(fabric.wait_port(lab.guest("b")), "b's port works")
    b = Puppet(lab.guest("b"))
    t.equal(a.op(0, WRITE, b.peer, 0, 0, b.mr(0, SIZE), 0, 64).status, "OK",
            "with a new one all is well")
    a.close()
    b.close()


@scenario(hosts=["a", "b", "c"])
def cache_hears_of_reset(lab, t):
    """Keys die with a reset: the watch page says so to who caches them."""
    a, b = lab.guest("a"), lab.guest("b")
    cache = b.start_command("faults-stale")
    cache.wait_for("watching")
    t.equal(fabric.ctl(a, "port b.0 reset --force").status, 0, "reset")
    result = cache.wait(60)
    t.ok(not result.status and "told" in result.stdout,
         "the reset is counted, the file can be used again",
         result.stdout + result.stderr)
    t.ok(fabric.wait_port(b), "b's port works")


def lose(lab, t, event, port="b.0", count=1):
    """The next such event for a port is dropped; the device says so."""
    inject(lab, t, cmd="fault", kind="lost-event", port=port, event=event,
           count=count)


@scenario(hosts=["a", "b", "c"])
def lost_link_event(lab, t):
    """A port that was not told of its own link finds out."""
    b = Puppet(lab.guest("b"))
    lose(lab, t, "link")
    inject(lab, t, cmd="link", port="b.0", state="down")
    t.ok(b.wait_event("LINK_DOWN"), "b knows that its link is down")
    t.ok(b.wait_event("LOST"), "and that there may have been more")
    lose(lab, t, "link")
    inject(lab, t, cmd="link", port="b.0", state="up")
    t.ok(b.wait_event("LINK_UP"), "and that it is back")
    t.ok(b.wait_event("LOST"), "said again")
    b.close()


@scenario(hosts=["a", "b", "c"])
def lost_peer_events(lab, t):
    """A peer that goes, and one that comes anew, unheard."""
    a, b = Puppet(lab.guest("a")), lab.guest("b")
    generation = fabric.wait_peer(a, "b", True)
    lose(lab, t, "peer-down", port="a.0")
    inject(lab, t, cmd="link", port="b.0", state="down")
    event = a.wait_event("PEER_DOWN")
    t.ok(event and event[2] == generation, "a knows that b is gone", event)
    # Nothing is kept for a file that has not read that something was lost.
    t.ok(a.wait_event("LOST"), "and that events were lost")
    lose(lab, t, "peer-up", port="a.0")
    inject(lab, t, cmd="link", port="b.0", state="up")
    event = a.wait_event("PEER_UP")
    t.ok(event and event[2] == generation, "and that it is back", event)
    t.ok(a.wait_event("LOST"), "and that events were lost again")
    # Both at once, so that all there is to see is another generation.
    lose(lab, t, "peer-down", port="a.0")
    t.equal(fabric.ctl(lab.guest("c"), "port b.0 reset --force").status, 0,
            "reset of b")
    event = a.wait_event("PEER_UP")
    t.ok(event and event[2] > generation, "a knows the new generation", event)
    t.ok(fabric.wait_port(b), "b's port works")
    t.ok(fabric.wait_peer(a, "b", True), "and a sees it")
    a.close()


@scenario(hosts=["a", "b", "c"])
def lost_own_reset(lab, t):
    """A port that was not told of its reset: keys die all the same, and who
    caches them is told."""
    a, b = lab.guest("a"), lab.guest("b")
    cache = b.start_command("faults-stale")
    cache.wait_for("watching")
    lose(lab, t, "peer-up")
    t.equal(fabric.ctl(a, "port b.0 reset --force").status, 0, "reset")
    result = cache.wait(120)
    t.ok(not result.status and "told" in result.stdout,
         "the reset is counted, the file can be used again",
         result.stdout + result.stderr)
    t.ok(fabric.wait_port(b), "b's port works")


@scenario(hosts=["a", "b", "c"])
def lost_release_request(lab, t):
    """An owner that was not asked answers even so."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, "columba1.gpu4", "b").status == 0, "compose")
    t.equal(len(fabric.wait_gpus(b, 1)), 1, "b has it")
    lose(lab, t, "release-request")
    gone = fabric.release(a, "columba1.gpu4", tries=1)
    t.ok(not gone.status, "released in good order",
         gone.stdout + gone.stderr)
    t.equal(fabric.wait_gpus(b, 0), [], "b's kernel has lost it")


@scenario(hosts=["a", "b", "c"])
def hostile_queues(lab, t):
    """A user who breaks queues all the time takes no event from anybody."""
    a, b = lab.guest("a"), lab.guest("b")
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, "columba1.gpu4", "b").status == 0, "compose")
    t.equal(len(fabric.wait_gpus(b, 1)), 1, "b has it")
    other = Puppet(b)
    flood = b.start_command("exec faults-flood", user="tester",
                            keep_stdin=True)
    flood.wait_for("flooding")
    for state, event in (("down", "LINK_DOWN"), ("up", "LINK_UP")):
        inject(lab, t, cmd="link", port="a.0", state=state)
        inject(lab, t, cmd="link", port="b.0", state=state)
        seen = other.event(120000)
        while seen and seen[0] not in (event, "LOST"):
            seen = other.event(120000)
        t.ok(seen and seen[0] == event, f"{event} arrives, and nothing is lost",
             seen)
    gone = fabric.release(a, "columba1.gpu4", tries=1)
    t.ok(not gone.status, "released while the flood lasts",
         gone.stdout + gone.stderr)
    flood.close_stdin()
    result = flood.wait(120)
    t.ok(not result.status and "broke" in result.stdout, "the user is well",
         result.stdout + result.stderr)
    t.diag(result.stdout.strip())
    other.close()


@scenario(hosts=["a", "b", "c"])
def surprise_removal(lab, t):
    """A GPU is pulled out of the appliance while it is composed."""
    a = lab.guest("a")
    ep = "columba1.gpu5"
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, ep, "a").status == 0, "compose")
    t.equal(len(fabric.wait_gpus(a, 1)), 1, "a has it")
    inject(lab, t, cmd="remove", endpoint=ep)
    t.equal(fabric.wait_gpus(a, 0), [], "a's kernel has lost it")
    t.equal(fabric.wait_state(a, ep, "gone"), "gone", "its state is gone")
    t.ok(fabric.compose(a, ep, "a").status != 0, "it cannot be composed")
    inject(lab, t, cmd="insert", endpoint=ep)
    t.equal(fabric.wait_state(a, ep, "free"), "free", "inserted: free")
    t.equal(fabric.compose(a, ep, "a").status, 0, "composed again")
    t.equal(len(fabric.wait_gpus(a, 1)), 1, "a has it again")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b", "c"])
def switch_reset(lab, t):
    """Everything stops with an error and starts again by itself."""
    a, b, rkey = pair(lab)
    host = lab.guest("a")
    fabric.release_all(lab, host)
    t.need(fabric.compose(host, "columba1.gpu6", "a").status == 0, "compose")
    fabric.wait_gpus(host, 1)
    generation = a.generation
    name = fabric.ctl_json(host, "list switches")
    name = (name if isinstance(name, list) else name["switches"])[0]["name"]
    inject(lab, t, cmd="switch-reset", switch=name)
    end = time.monotonic() + 20 * host.patience
    while a.state(0)[0] == 0 and time.monotonic() < end:
        time.sleep(0.1)
    t.ok(a.state(0)[0] != 0, "queues are in error", a.state(0))
    time.sleep(1)
    t.ok(fabric.wait_port(host) and fabric.wait_port(lab.guest("b")),
         "ports work again by themselves", host.dmesg()[-1500:])
    for p in (a, b):
        p.kill()
    a, b, rkey = pair(lab)
    t.ok(a.generation > generation, "a new generation")
    fabric.wait_peer(a, "b", True)
    t.equal(a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE).status, "OK",
            "traffic after")
    t.ok(b.same(0, 0, SIZE, 1), "with all bytes")
    t.equal(fabric.endpoint(host, "columba1.gpu6")["state"], "bound",
            "bindings survived")
    a.close()
    b.close()
    fabric.release_all(lab, host)


@scenario(hosts=["a", "b", "c"])
def dead_windows(lab, t):
    """Who keeps windows that died with a reset keeps nobody from new ones."""
    size = 32 << 20		# of 1 MiB slots, as many as a user may have
    b = Puppet(lab.guest("b"))
    rkey = b.mr(0, size)
    users = [Puppet(lab.guest("a"), user=u) for u in (None, "tester")]
    for p in users:
        p.ask("window", 0, b.peer, rkey, 0, size, 6)
    late = Puppet(lab.guest("a"), user="tester2")
    t.equal(late.errno("window", 0, b.peer, rkey, 0, size, 6), "ENOSPC",
            "all slots are taken")
    t.equal(fabric.ctl(lab.guest("c"), "port a.0 reset --force").status, 0,
            "reset of a's port")
    t.ok(users[0].wait_event("WINDOW_FAULT", 120000), "the windows are dead")
    t.ok(fabric.wait_port(lab.guest("a")), "a's port works")
    fabric.wait_peer(late, "b", True)
    t.equal(late.errno("window", 0, b.peer, rkey, 0, size, 6), None,
            "another user has their slots")
    t.equal(late.ask("load", 0, 8), [0], "which lead to b")
    t.equal(users[0].ask("load", 0, 8), [0], "and are not seen by the first")
    b.set(0, 0, 64, 7)
    t.equal(late.ask("load", 0, 8), [0x07070707], "b's bytes are seen")
    t.equal(users[0].ask("load", 0, 8), [0], "by the new owner only")
    for p in users:
        t.equal(p.errno("windel", 0), None, "a dead window is destroyed")
    t.equal(late.ask("load", 0, 8), [0x07070707], "without harm to the new one")
    for p in users + [late, b]:
        p.close()


def object_link(lab, name):
    """What an object leads to, as the switch says."""
    objects = lab.emu_control({"cmd": "topology"})["objects"]
    return next(o["link"] for o in objects if o["name"] == name)


@scenario(hosts=["a", "b", "c"])
def uplink_down(lab, t):
    """An appliance's uplink goes down: what is behind it answers ones, can be
    released, and cannot be composed before the link is back."""
    a, ep = lab.guest("a"), "columba1.gpu5"
    uplink = object_link(lab, ep)
    fabric.release_all(lab, a)
    t.need(fabric.compose(a, ep, "a").status == 0, "compose")
    pci = fabric.wait_gpus(a, 1)[0]
    vendor = f"setpci -s {pci} VENDOR_ID"
    t.equal(a.sh(vendor).strip(), "1234", "it answers")
    inject(lab, t, cmd="link", port=uplink, state="down")
    t.equal(a.sh(vendor).strip(), "ffff", "nobody answers")
    t.equal(fabric.endpoint(a, ep)["state"], "bound", "it still is bound")
    t.equal(fabric.ctl(a, f"--json stats {ep}").status, 0,
            "its counters are answered")
    inject(lab, t, cmd="link", port=uplink, state="up")
    end = time.monotonic() + 60
    while a.sh(vendor).strip() == "ffff" and time.monotonic() < end:
        time.sleep(0.05)
    t.equal(a.sh(vendor).strip(), "1234", "the link is back, it answers")
    inject(lab, t, cmd="link", port=uplink, state="down")
    gone = fabric.release(a, ep, tries=1)
    t.ok(not gone.status, "released in good order", gone.stdout + gone.stderr)
    t.equal(fabric.wait_gpus(a, 0), [], "a's kernel has lost it")
    refused = fabric.compose(a, ep, "a")
    t.ok(refused.status and "enable the ports between" in refused.stderr,
         "refused, with the remedy", refused.stderr)
    inject(lab, t, cmd="link", port=uplink, state="up")
    t.equal(fabric.compose(a, ep, "a").status, 0, "composed again")
    t.equal(len(fabric.wait_gpus(a, 1)), 1, "a has it")
    fabric.release_all(lab, a)


@scenario(hosts=["a", "b", "c"])
def slow_link(lab, t):
    """A slow link is slow and correct."""
    a, b, rkey = pair(lab)
    inject(lab, t, cmd="slow", port="b.0", bytes_per_second=1 << 17)
    begun = time.monotonic()
    done = a.op(0, WRITE, b.peer, 0, 0, rkey, 0, SIZE)
    took = time.monotonic() - begun
    t.equal(done.status, "OK", "it completes")
    t.ok(took > 0.25, "slowly", f"{took:.2f} s for 64 KiB at 128 KiB/s")
    t.ok(b.same(0, 0, SIZE, 1), "and right")
    inject(lab, t, cmd="slow", port="b.0", bytes_per_second=0)
    a.close()
    b.close()


@scenario(hosts=["a", "b", "c"])
def hung_admin_command(lab, t):
    """A command that hangs is given up; the port recovers by itself."""
    a = Puppet(lab.guest("a"))
    lab.guest("a").allow_log(r"fabrex_draco.*(timed? ?out|abort|reset|answer)")
    inject(lab, t, cmd="admin-hang", port="a.0", count=1)
    begun = time.monotonic()
    error = a.errno("queue", 0, 8, 8, 0, 0)
    t.ok(error in ("ETIMEDOUT", "ECANCELED", "ENODEV", "EIO", None),
         "the call comes back", error)
    t.diag(f"queue creation came back after {time.monotonic() - begun:.1f} s "
           f"with {error}")
    a.kill()
    t.ok(fabric.wait_port(lab.guest("a")), "the port works")
    a = Puppet(lab.guest("a"))
    a.queue(0)
    t.equal(a.op(0, NOP, 0).status, "OK", "and makes queues")
    a.close()
