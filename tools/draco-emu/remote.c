// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moving bytes by messages to the client where there is no memory to point at,
 * and by pointer where there is. Called by copy.c.
 */
#include "remote.h"

#include <errno.h>
#include <string.h>

#include "audit.h"
#include "fabric.h"
#include "function.h"

/* Consecutive addresses; *n: how many of them could be moved at once. */
static int move_run(struct side *s, bool write, uint64_t addr, void *buf,
		    uint64_t *n)
{
	struct mem m;
	int err = mem_get(s->port, addr, *n,
			  write ? DMA_PROT_WRITE : DMA_PROT_READ, &m);

	s->ep = err ? NULL : m.ep;
	s->at = err ? NULL : m.at;
	if (err == -ENODATA)
		return function_message(s->port->fn, write, addr, buf, *n);
	if (err)
		return err;
	*n = m.hold.len;
	if (write)
		memcpy(m.hold.ptr, buf, *n);
	else
		memcpy(buf, m.hold.ptr, *n);
	count_ep(m.ep, !write, *n);
	return mem_put(&m);
}

static unsigned int move(struct side *s, bool write, uint64_t done, char *buf,
			 uint64_t n)
{
	while (n) {
		struct audit_access audit;
		uint64_t addr, run;
		int err;

		run = mr_run(s->mr, s->offset + done, n, &addr);
		audit_begin(&audit, s->port, addr, run, write);
		err = move_run(s, write, addr, buf, &run);
		audit_end(&audit);
		if (err)
			return s->fault;
		done += run;
		buf += run;
		n -= run;
	}
	return FABREX_WC_OK;
}

unsigned int remote_load(struct side *s, uint64_t done, void *buf, uint64_t n)
{
	return move(s, false, done, buf, n);
}

unsigned int remote_store(struct side *s, uint64_t done, void *buf,
			  uint64_t n)
{
	return move(s, true, done, buf, n);
}
