# SPDX-License-Identifier: GPL-2.0-only
"""Buffers of a GPU move, are revoked and registered without a pause, while the
switch is reset and the port's driver is taken away and given back."""

import re
import time

import fabric
from gpulab import KERNELS, TOPOLOGY, gpu_host
from scenario import scenario

STOP = "/tmp/churn.stop"
DRIVER = "/sys/bus/pci/drivers/fabrex_draco"


def idle(a):
    """Bytes of dma-bufs that the port has, once all has been closed."""
    return a.sh("for i in $(seq 3000); do "
                "n=$(cat /sys/class/fabrex/fabrex*/usage/dmabuf_bytes); "
                "[ $n = 0 ] && break; sleep 0.1; done; echo $n")


def remove(a):
    """Take the port's driver away and give it back: seconds for the first."""
    pci = a.sh(f"cd {DRIVER} && ls -d 0*")
    begun = time.monotonic()
    a.run(f"echo {pci} >{DRIVER}/unbind", timeout=120).check()
    took = time.monotonic() - begun
    a.run(f"echo {pci} >{DRIVER}/bind", timeout=120).check()
    return took


@scenario(hosts=["a", "b"], topology=TOPOLOGY, kernels=KERNELS)
def churn(lab, t):
    """Registration and moves against removal and reset; nothing stays."""
    a = gpu_host(lab, "a", 1)
    # The last is what the debug kernel says of a page mapped eight times.
    for text in ("dma-buf of .*: cannot", "fabrex_draco.*(reset|disable)",
                 "exceeded 7 overlapping mappings of cacheline"):
        a.allow_log(text)
    a.run(f"rm -f {STOP}")
    churning = a.start_command(f"gpu-churn {STOP}")
    longest = 0
    for n in range(6):
        time.sleep(1.5)
        if n % 2:
            answer = lab.emu_control({"cmd": "switch-reset", "switch": "draco1"})
            t.need(answer.get("ok"), "switch reset", answer)
            t.ok(fabric.wait_port(a), "the port works again",
                 a.dmesg()[-1500:])
        else:
            longest = max(longest, remove(a))
    t.diag(f"removal of the driver took {longest:.1f} s at most")
    time.sleep(1.5)
    a.sh(f"touch {STOP}")
    result = churning.wait(60)
    t.ok(result.status == 0, "nothing strange was seen",
         result.stdout + result.stderr)
    t.diag(result.stdout.strip())
    done = dict(re.findall(r"(\w+) (\d+)", result.stdout))
    for what in ("registered", "moved", "revoked", "reopened"):
        t.ok(int(done.get(what, 0)) > 0, f"some was {what}", done)
    t.equal(idle(a), "0", "no dma-buf stays registered")
    t.equal(a.sh("cat /sys/class/fabrex/fabrex*/usage/mrs"), "0",
            "no region either")
    t.equal(a.run("for i in $(seq 1000); do rmmod draco_gpu && exit 0; "
                  "sleep 0.1; done; exit 1", timeout=60).status, 0,
            "the exporter's module can go")
