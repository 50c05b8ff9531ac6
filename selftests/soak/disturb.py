# SPDX-License-Identifier: GPL-2.0-only
"""Those who disturb everybody: what may happen to a fabric and its hosts."""

import os
import signal

from actor import ENDPOINTS, HOSTS, Actor

EVENTS = ("link", "peer-up", "peer-down", "endpoint", "release-request",
          "reset")


class Disturber(Actor):
    """Links, ports, switches, functions, drivers, appliances, hosts."""

    def turn(self):
        self.pause(self.random.uniform(0.5, 6))
        what = self.random.choice(
            [self.link] * 4 + [self.slow] * 2 + [self.pull] * 2 +
            [self.port_reset] * 2 + [self.lost_events] * 2 +
            [self.frozen_host] * 2 +
            [self.function_reset, self.driver, self.switch_reset, self.hang,
             self.stuck_stop, self.sleep])
        self.ledger.count("disturbed: " + what.__name__)
        what()

    def link(self):
        port = self.random.choice(HOSTS) + ".0"
        self.ask(cmd="link", port=port, state="down")
        self.pause(self.random.uniform(0, 2))
        self.ask(cmd="link", port=port, state="up")

    def slow(self):
        port = self.random.choice(HOSTS) + ".0"
        self.ask(cmd="slow", port=port, bytes_per_second=1 << 20)
        self.pause(self.random.uniform(0, 2))
        self.ask(cmd="slow", port=port, bytes_per_second=0)

    def pull(self):
        name = self.random.choice(ENDPOINTS)
        self.ask(cmd="remove", endpoint=name)
        self.pause(self.random.uniform(0, 2))
        self.ask(cmd="insert", endpoint=name)

    def port_reset(self):
        self.ctl(self.host(), f"port {self.random.choice(HOSTS)}.0 reset "
                 "--force", "port reset")

    def function_reset(self):
        self.host().run("echo 1 >$(readlink -f /sys/class/fabrex/fabrex*/"
                        "device)/reset", timeout=120)

    def driver(self):
        """Taken from the function and given back, with files open."""
        self.host().run(
            "cd /sys/bus/pci/drivers/fabrex_draco && d=$(ls -d 0*) && "
            "echo $d >unbind; echo $d >bind", timeout=120)

    def switch_reset(self):
        self.ask(cmd="switch-reset", switch="draco1")

    def hang(self):
        self.ask(cmd="admin-hang", port=self.random.choice(HOSTS) + ".0",
                 count=1)

    def lost_events(self):
        """The next ones of a kind are not heard."""
        self.ask(cmd="fault", kind="lost-event",
                 port=self.random.choice(HOSTS) + ".0",
                 event=self.random.choice(EVENTS),
                 count=self.random.randrange(1, 4))

    def stuck_stop(self):
        """The controller does not stop when it is told to, which it is."""
        host = self.random.choice(HOSTS)
        self.ask(cmd="fault", kind="stuck-stop", port=host + ".0", count=1)
        self.ctl(self.host(but=host), f"port {host}.0 reset --force",
                 "port reset")

    def frozen_host(self):
        """A whole host does nothing for a while: its memory is there."""
        group = self.host().child.pid
        os.killpg(group, signal.SIGSTOP)
        try:
            self.pause(self.random.uniform(0, 3))
        finally:
            os.killpg(group, signal.SIGCONT)

    def sleep(self):
        """Sleep and wake up again, by the kernel's own test of it: processes
        are frozen, or devices sleep as well."""
        level = self.random.choice(["freezer", "devices"])
        done = self.host().sleep(level)
        self.ledger.count(f"sleep: {level} " +
                          ("refused" if done.status else "done"))
        if done.status:
            self.ledger.fail(f"sleep: {level}: {done.stderr}")


def undo(lab):
    """Nothing is broken any more, and nothing is armed."""
    def ask(**request):
        lab.emu_control(request)

    for port in [host + ".0" for host in HOSTS]:
        ask(cmd="link", port=port, state="up")
        ask(cmd="slow", port=port, bytes_per_second=0)
        ask(cmd="admin-hang", port=port, count=0)
        for kind in ("lost-event", "stuck-stop"):
            ask(cmd="fault", kind=kind, port=port, count=0)
    for name in ENDPOINTS:
        ask(cmd="insert", endpoint=name)
