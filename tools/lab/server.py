# SPDX-License-Identifier: GPL-2.0-only
"""Lets other processes reach the guests of a running lab: exec and shells.
`lab up` serves, `lab exec`, `lab shell` and `lab list` are the clients."""

import json
import os
import socket
import tempfile
import threading

import agent
from process import PREFIX

NAME = "lab.sock"


class Server:
    """Serves <run>/lab.sock in threads of its own."""

    def __init__(self, lab):
        self.lab = lab
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(lab.run.file(NAME))
        self.sock.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,),
                             daemon=True).start()

    def serve(self, peer):
        """One client, one command: a JSON line, then frames both ways."""
        with peer:
            request = json.loads(peer.makefile("rb", 0).readline())
            guest = self.lab.guests.get(request.get("host"))
            if request["op"] == "list":
                self.answer(peer, list(self.lab.guests))
            elif not guest or not guest.agent:
                known = ", ".join(self.lab.guests)
                self.answer(peer, {"error": f"no running host "
                                   f"{request.get('host')}; there are {known}"})
            else:
                self.answer(peer, {"ok": True})
                self.relay(peer, guest.agent, request)

    @staticmethod
    def answer(peer, value):
        peer.sendall(json.dumps(value).encode() + b"\n")

    @staticmethod
    def relay(peer, end, request):
        ident, job = end.start(request["argv"], request.get("tty", False))

        def inward():
            parser = agent.Parser()
            try:
                while data := peer.recv(65536):
                    for kind, _, body in parser.feed(data):
                        end.send(kind, ident, body)
            except (OSError, agent.GuestGone):
                pass
            if ident in end.jobs:
                end.signal(ident, 1)

        threading.Thread(target=inward, daemon=True).start()
        kind = None
        while kind not in ("S", "gone"):
            kind, body = job.get()
            try:
                if kind != "gone":
                    peer.sendall(agent.frame(kind, 0, body))
            except OSError:
                return


def running():
    """Run directories of labs that serve, newest first."""
    top = tempfile.gettempdir()
    found = [os.path.join(top, n) for n in os.listdir(top)
             if n.startswith(PREFIX)]
    found = [p for p in found if os.path.exists(os.path.join(p, NAME))]
    return sorted(found, key=os.path.getmtime, reverse=True)


def connect(run_dir, request):
    """(socket, answer) of a request to a running lab."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(os.path.join(run_dir, NAME))
    sock.sendall(json.dumps(request).encode() + b"\n")
    line = b""
    while not line.endswith(b"\n"):
        data = sock.recv(1)
        if not data:
            raise ConnectionError("the lab closed the connection")
        line += data
    return sock, json.loads(line)
