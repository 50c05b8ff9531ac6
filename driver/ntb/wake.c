// SPDX-License-Identifier: GPL-2.0-only
/* Waking of a port's thread. Called by client.c, in interrupts, and by wire.c. */
#include "ntb.h"

/**
 * fntb_link_wake() - there may be something to do for the thread
 * @np: port
 *
 * Context: Any.
 */
void fntb_link_wake(struct fntb_port *np)
{
	WRITE_ONCE(np->woken, true);
	wake_up(&np->wait);
}
