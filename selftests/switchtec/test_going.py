# SPDX-License-Identifier: GPL-2.0-only
"""Either host unloads its modules, is reset, is killed, and comes back: what Linux'
drivers of both bridges make of it, and what a host finds of what is bound to it. In
one scenario, as booting is what takes the time."""

import switch
from ntb import (EPF, SWITCHTEC, Pair, carry, has_booted, load_all, loads_again,
                 ntb_scenario, ring, unload)

PORT = 4			# three GPUs are behind it


def bound_to_b(t, a, b, what):
    found = switch.wait_devices(b, 3)
    t.equal(b.sh(f"{switch.FILL} {' '.join(found)}").split(),
            [f"columba1.gpu{n}" for n in range(3)],
            f"{what}: b uses all that is bound to it")
    t.equal((switch.info(a, PORT), switch.link_up(a, PORT)),
            ((1, 1, 0x10), True), f"{what}: the switch says the same")


@ntb_scenario()
def come_and_go(lab, t):
    a, b = (lab.guest(name) for name in "ab")
    pairs = [Pair(lab, SWITCHTEC), Pair(lab, EPF)]
    for guest in (a, b):
        unload(guest)
        load_all(guest, pairs)
    for pair in pairs:
        pair.works(t, "to begin with")
    t.equal(switch.bind(a, "b", 1, PORT), (0, True), "three GPUs bound to b")
    bound_to_b(t, a, b, "to begin with")
    for guest in (a, b):
        loads_again(t, guest, pairs)
        guest.reboot(hard=True)
        has_booted(t, guest, pairs, "reset")
        bound_to_b(t, a, b, f"{guest.name} was reset")
        guest.kill()
        if guest is b:
            t.equal((switch.info(a, PORT), switch.link_up(a, PORT),
                     switch.link_up(a, 2)), ((1, 1, 0x10), False, False),
                    "b is off: they are bound to it, and without a link")
        guest.restart()
        has_booted(t, guest, pairs, "killed")
        bound_to_b(t, a, b, f"{guest.name} was killed")
    a, b = pairs[0].ends.values()
    ring(t, a, b)
    carry(t, b, a, 1, 3)
    carry(t, *pairs[1].ends.values(), 0, 3)
