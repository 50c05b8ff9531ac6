// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The verdict on the way between two devices, state of the devices aside:
 * kernel option, ACS redirect, root complex; then the kernel's own answer,
 * which decides. Called by query.c and slot.c.
 */
#include <stdio.h>
#include <string.h>

#include "p2p/say.h"

static void redirect_names(uint32_t bits, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s%s%s",
		 bits & PCI_ACS_RR ? "Request Redirect" : "",
		 bits & PCI_ACS_RR && bits & ~PCI_ACS_RR ? ", " : "",
		 bits & PCI_ACS_CR ? "Completion Redirect" : "",
		 bits & PCI_ACS_CR && bits & PCI_ACS_EC ? ", " : "",
		 bits & PCI_ACS_EC ? "Egress Control" : "");
}

/* The kernel parameter that names all bridges, the command for the first. */
static void acs_remedy(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	char list[128] = "";
	size_t i, n = 0, known = sizeof(way->redirect) /
				 sizeof(way->redirect[0]);

	for (i = 0; i < way->redirects && i < known; i++) {
		const char *name = way->redirect[i]->name;

		if (n + strlen(name) + 2 > sizeof(list))
			break;
		n += snprintf(list + n, sizeof(list) - n, "%s%s", i ? ";" : "",
			      name);
	}
	fxi_say_remedy(q, "boot with pci=disable_acs_redir=%s, or until then: setpci -s %s ECAP_ACS+6.w=0:2c%s%s",
		       list, way->redirect[0]->name,
		       way->redirects > 1 ? ", likewise the others" : "",
		       *q->iommu ? " (Linux sets it because of the IOMMU)"
				 : "");
}

static void no_acs(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	const struct pci_dev *dev = way->redirect[0];
	uint32_t bits = fxi_pci_acs_redirect(dev);
	char names[64], more[24] = "";

	redirect_names(bits, names, sizeof(names));
	if (way->redirects > 1)
		snprintf(more, sizeof(more), " and %u more",
			 way->redirects - 1);
	fxi_say_no(q, FABREX_P2P_ACS, dev, bits,
		   "ACS redirect (%s, 0x%04x) on %s %s%s sends it to the root complex, and %s",
		   names, bits, fxi_say_kind(dev), dev->name, more,
		   way->host.text);
	acs_remedy(q);
}

static void no_root(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	const struct pci_dev *ra = way->a.dev[way->a.n - 1];
	const struct pci_dev *rb = way->b.dev[way->b.n - 1];

	if (ra->addr.domain != rb->addr.domain)
		fxi_say_no(q, FABREX_P2P_ROOT, ra, 0,
			   "only the root complex joins PCI domains %04x and %04x, and %s",
			   ra->addr.domain, rb->addr.domain, way->host.text);
	else
		fxi_say_no(q, FABREX_P2P_ROOT, ra, 0,
			   "they have only the root complex in common (%s, %s), and %s",
			   ra->name, rb->name, way->host.text);
	fxi_say_remedy(q, "use a port and a device below the same switch, or a host whose root complex passes it on: AMD Zen or newer, Xeon Scalable");
}

static void yes_root(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	char why[64] = "";

	if (way->common)
		snprintf(why, sizeof(why), "; ACS redirect on %s sends it there",
			 way->redirect[0]->name);
	fxi_say_yes(q, FABREX_P2P_PATH_ROOT,
		    "through the root complex (%s)%s, distance %u%s",
		    way->host.text, why, way->distance,
		    q->out->iommu ? ", translated by the IOMMU" : "");
}

static void yes_switch(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;

	if (!way->distance)
		fxi_say_yes(q, FABREX_P2P_PATH_SAME, "it is one device");
	else
		fxi_say_yes(q, FABREX_P2P_PATH_SWITCH,
			    "%s %s turns it round, distance %u",
			    fxi_say_kind(way->b.dev[way->ib]),
			    way->b.dev[way->ib]->name, way->distance);
}

/* A common bridge, but whether ACS redirects below it is not to be seen. */
static void hidden(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;

	if (way->host.allowed) {
		fxi_say_yes(q, FABREX_P2P_PATH_SWITCH,
			    "%s turns it round, or with ACS redirect the root complex (%s), distance %u",
			    way->b.dev[way->ib]->name, way->host.text,
			    way->distance);
		return;
	}
	q->out->path = FABREX_P2P_PATH_SWITCH;
	fxi_say_unknown(q, FABREX_P2P_ACS,
			"%s would turn it round, but whether ACS redirects it cannot be seen without CAP_SYS_ADMIN",
			way->b.dev[way->ib]->name);
	fxi_say_remedy(q, "run as root to see which bridge");
}

/* Whether the root complex passes it on is not to be seen. */
static void unseen_root(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	const char *redirects = way->redirects ? way->redirect[0]->name : NULL;

	fxi_say_unknown(q, FABREX_P2P_UNREADABLE,
			"%s%s%s, and %s (%s)", redirects ?
			"ACS redirect on " : "they have only the root complex in common",
			redirects ? redirects : "",
			redirects ? " sends it to the root complex" : "",
			way->host.text, strerrordesc_np(way->host.unreadable));
	fxi_say_remedy(q, "ask where it can be read: as root, outside of the container, with files left to open");
}

static void topology(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	bool root = !way->common || way->redirects;

	q->out->path = root ? FABREX_P2P_PATH_ROOT : FABREX_P2P_PATH_SWITCH;
	if (root && way->host.allowed)
		yes_root(q);
	else if (root && way->host.unreadable)
		unseen_root(q);
	else if (way->redirects)
		no_acs(q);
	else if (root)
		no_root(q);
	else if (way->hidden)
		hidden(q);
	else
		yes_switch(q);
}

/* ---- the kernel's answer ------------------------------------------------ */

static void kernel_yes(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	struct fabrex_p2p *p = q->out;

	if (p->verdict == FABREX_P2P_YES)
		return;
	if (p->verdict == FABREX_P2P_NO ||
	    p->reason == FABREX_P2P_UNREADABLE) {
		fxi_say_yes(q, p->path, "Linux says so (%s), though %s; it may know more host bridges",
			    q->answer.port, way->host.text);
		return;
	}
	fxi_say_yes(q, FABREX_P2P_PATH_SWITCH, "%s turns it round, distance %u; Linux says so (%s)",
		    way->b.dev[way->ib]->name, q->answer.distance,
		    q->answer.port);
}

static void kernel_no(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	struct fabrex_p2p *p = q->out;

	if (p->verdict == FABREX_P2P_NO)
		return;
	if (p->reason == FABREX_P2P_UNREADABLE) {
		fxi_say_no(q, FABREX_P2P_REFUSED, NULL, 0,
			   "Linux refuses it (%s); it would go through the root complex, and %s",
			   q->answer.port, way->host.text);
		fxi_say_remedy(q, "data has to go through host memory");
		return;
	}
	if (way->hidden && !way->host.allowed) {
		p->path = FABREX_P2P_PATH_ROOT;
		fxi_say_no(q, FABREX_P2P_ACS, NULL, 0,
			   "Linux says so (%s): ACS redirect below %s sends it to the root complex, and %s",
			   q->answer.port, way->b.dev[way->ib]->name,
			   way->host.text);
		fxi_say_remedy(q, "run as root to see which bridge");
		return;
	}
	fxi_say_no(q, FABREX_P2P_REFUSED, NULL, 0,
		   "Linux refuses it (%s), although by configuration space %s could pass it on, distance %u",
		   q->answer.port,
		   p->path == FABREX_P2P_PATH_ROOT ? "the root complex" :
		   way->common ? way->b.dev[way->ib]->name : "?",
		   way->distance);
	fxi_say_remedy(q, "see the kernel log for p2pdma; data has to go through host memory");
}

static void no_kernel(struct p2p_query *q)
{
	fxi_say_no(q, FABREX_P2P_NO_KERNEL, NULL, 0,
		   "this kernel was built without CONFIG_PCI_P2PDMA");
	fxi_say_remedy(q, "boot a kernel with CONFIG_PCI_P2PDMA=y; until then data has to go through host memory");
}

void fxi_check_blind(struct p2p_query *q, const char *name, int err)
{
	if (q->kernel == OPTION_NO) {
		no_kernel(q);
		return;
	}
	if (!q->answer.asked || q->answer.reachable) {
		q->out->distance = q->answer.distance;
		fxi_say_unreadable(q, name, err);
		return;
	}
	fxi_say_no(q, FABREX_P2P_REFUSED, NULL, 0,
		   "Linux refuses it (%s); why cannot be seen, as what sysfs has about %s cannot be read",
		   q->answer.port, name);
	fxi_say_remedy(q, "ask where /sys/bus/pci/devices/%s can be read: as root, outside of the container",
		       name);
}

void fxi_check_way(struct p2p_query *q)
{
	struct fabrex_p2p *p = q->out;

	p->distance = q->way.distance;
	if (q->way.common)
		snprintf(p->common, sizeof(p->common), "%s",
			 q->way.b.dev[q->way.ib]->name);
	topology(q);
	if (q->kernel == OPTION_NO) {
		no_kernel(q);
		return;
	}
	if (!q->answer.asked)
		return;
	if (!q->answer.reachable) {
		kernel_no(q);
		return;
	}
	p->distance = q->answer.distance;
	kernel_yes(q);
}
