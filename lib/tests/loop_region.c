// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the end of regions and queues of the loopback transport: who is
 * waited for, what is called back, and what is not used again.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "party.h"
#include "transport/loopback/state.h"

/* ---- windows that are called back --------------------------------------- */

#define PARTS	600
#define RW	(FABREX_MR_REMOTE_READ | FABREX_MR_REMOTE_WRITE)

/* Maps all, and is told of the end of all. */
static void map_parts(int fd, void *arg)
{
	static struct fabrex_remote parts[PARTS];
	struct fabrex_port_event event;
	struct fabrex_window *w;
	struct fabrex_port *port;
	int i;

	(void)arg;
	hear(fd, parts, sizeof(parts));
	CHECK_EQ(fabrex_open(loop_name("mapper"), &port), 0);
	for (i = 0; i < PARTS; i++)
		CHECK_EQ(fabrex_window_map(port, &parts[i], 0, 4096, RW, &w),
			 0);
	tell(fd, "", 1);
	for (i = 0; i < PARTS; i += event.type == FABREX_EV_WINDOW_FAULT)
		CHECK_EQ(fabrex_event_read(port, &event, 5000), 0);
	tell(fd, "", 1);
	fabrex_close(port);
}

/* More messages than a link holds. */
TEST(loop_many_windows_end)
{
	static struct fabrex_remote parts[PARTS];
	struct fabrex_mr *all, *part;
	struct fabrex_port *port;
	struct party p;
	uint64_t start;
	char done;
	int i;

	loop_name_set();
	party_start(&p, map_parts, NULL);
	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_mr_alloc(port, PARTS * 4096, FABREX_MR_ALL, &all), 0);
	for (i = 0; i < PARTS; i++) {
		CHECK_EQ(fabrex_mr_register(port, (char *)fabrex_mr_addr(all) +
					    i * 4096, 4096, FABREX_MR_ALL,
					    &part), 0);
		fabrex_mr_remote(part, &parts[i]);
	}
	tell(p.fd, parts, sizeof(parts));
	hear(p.fd, &done, 1);
	start = fxi_now_ns();
	CHECK_EQ(fabrex_mr_deregister(all), 0);
	CHECK(fxi_now_ns() - start < 4000000000u);
	CHECK(!port->transport->state->quarantine);
	hear(p.fd, &done, 1);
	party_end(&p);
	fabrex_close(port);
}
