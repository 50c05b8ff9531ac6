// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sentences of a query: object, cause, remedy. Called by check.c, state.c and
 * query.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "p2p/p2p.h"
#include "p2p/say.h"

static void set_name(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static void set_text(struct fabrex_p2p *p, const char *fmt, va_list ap)
{
	size_t n = 0;

	n = snprintf(p->text, sizeof(p->text), "%s to %s: %s: ", p->initiator,
		     p->target, fabrex_p2p_verdict_str(p->verdict));
	if (n < sizeof(p->text))
		vsnprintf(p->text + n, sizeof(p->text) - n, fmt, ap);
}

void fxi_say_no(struct p2p_query *q, int reason, const struct pci_dev *blocker,
		uint32_t bits, const char *fmt, ...)
{
	struct fabrex_p2p *p = q->out;
	va_list ap;

	p->verdict = FABREX_P2P_NO;
	p->reason = reason;
	p->bits = bits;
	set_name(p->blocker, sizeof(p->blocker), blocker ? blocker->name : "");
	p->remedy[0] = '\0';
	va_start(ap, fmt);
	set_text(p, fmt, ap);
	va_end(ap);
}

void fxi_say_unknown(struct p2p_query *q, int reason, const char *fmt, ...)
{
	struct fabrex_p2p *p = q->out;
	va_list ap;

	p->verdict = FABREX_P2P_UNKNOWN;
	p->reason = reason;
	va_start(ap, fmt);
	set_text(p, fmt, ap);
	va_end(ap);
}

void fxi_say_yes(struct p2p_query *q, int path, const char *fmt, ...)
{
	struct fabrex_p2p *p = q->out;
	va_list ap;

	p->verdict = FABREX_P2P_YES;
	p->reason = FABREX_P2P_OK;
	p->path = path;
	p->bits = 0;
	p->blocker[0] = '\0';
	p->remedy[0] = '\0';
	va_start(ap, fmt);
	set_text(p, fmt, ap);
	va_end(ap);
}

void fxi_say_more(struct p2p_query *q, const char *fmt, ...)
{
	struct fabrex_p2p *p = q->out;
	size_t n = strlen(p->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->text + n, sizeof(p->text) - n, fmt, ap);
	va_end(ap);
}

void fxi_say_remedy(struct p2p_query *q, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(q->out->remedy, sizeof(q->out->remedy), fmt, ap);
	va_end(ap);
}

void fxi_say_unreadable(struct p2p_query *q, const char *name, int err)
{
	const char *why = strerrordesc_np(err);
	char linux_says[80] = "";

	if (q->answer.asked && q->answer.reachable)
		snprintf(linux_says, sizeof(linux_says), "; Linux says yes about the way (%s, distance %u)",
			 q->answer.port, q->answer.distance);
	fxi_say_unknown(q, FABREX_P2P_UNREADABLE,
			"what sysfs has about %s cannot be read (%s)%s", name,
			why ? why : "?", linux_says);
	if (err == EMFILE || err == ENFILE || err == ENOMEM)
		fxi_say_remedy(q, "have this process close files, or allow it more (ulimit -n), and ask again");
	else
		fxi_say_remedy(q, "ask where /sys/bus/pci/devices/%s can be read: as root, outside of the container",
			       name);
}

const char *fxi_say_kind(const struct pci_dev *dev)
{
	switch (fxi_pci_type(dev)) {
	case PCI_TYPE_ROOT_PORT:
		return "root port";
	case PCI_TYPE_UPSTREAM:
		return "upstream port";
	case PCI_TYPE_DOWNSTREAM:
		return "downstream port";
	}
	return fxi_pci_bridge(dev) ? "bridge" : "device";
}
