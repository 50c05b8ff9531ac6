// SPDX-License-Identifier: GPL-2.0-only
/*
 * The injected fault "late-access". The store goes to a bus address as broken
 * hardware would send it: no key is looked up and no gate of a region entered.
 * (The port's gate is, so that there still is a port.)
 */
#include "late.h"

#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "port.h"

struct late {
	struct work work;
	struct port *port;
	uint64_t addr;
	size_t len;
	bool waited;
	unsigned char data[64];
};

static void store(struct late *l)
{
	struct audit_access audit;

	if (!port_enter(l->port))
		return;
	audit_begin(&audit, l->port, l->addr, l->len, true);
	mem_write(l->port, l->addr, l->data, l->len);
	audit_end(&audit);
	port_leave(l->port);
}

static enum run_result late_run(struct work *w, bool light)
{
	struct late *l = (struct late *)w;

	(void)light;
	if (!l->waited) {
		l->waited = true;
		w->due_ns = engine_now_ns() + LATE_MS * 1000000ull;
		return RUN_DELAY;
	}
	store(l);
	return RUN_IDLE;
}

static void late_put(struct work *w)
{
	free(w);
}

void late_access(struct port *p, uint64_t addr, const void *data, size_t len)
{
	struct late *l = calloc(1, sizeof(*l));

	if (!l)
		return;
	l->work.run = late_run;
	l->work.put = late_put;
	l->port = p;
	l->addr = addr;
	l->len = len < sizeof(l->data) ? len : sizeof(l->data);
	memcpy(l->data, data, l->len);
	engine_kick(&p->fabric->engine, &l->work);
}
