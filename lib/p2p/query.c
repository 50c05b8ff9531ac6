// SPDX-License-Identifier: LGPL-2.1-or-later
/* fabrex_p2p_query(3) and the words for its numbers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/export.h"
#include "p2p/say.h"

void fxi_p2p_env(struct p2p_env *env)
{
	const char *root = secure_getenv("FABREX_ROOT");

	env->root = root ? root : "";
	env->ask = fxi_p2p_ioctl;
}

int fxi_p2p_find(const struct p2p_env *env, const char *name,
		 struct pci_addr *addr)
{
	if (!name || !*name)
		return fxi_error(EINVAL, "no device was named; name a PCI address such as 0000:04:00.0, or a fabric port of this machine");
	if (fxi_pci_parse(name, addr) || fxi_p2p_port(env, name, addr))
		return 0;
	return fxi_error(EINVAL, "%.64s is neither a PCI address such as 0000:04:00.0 nor a fabric port of this machine",
			 name);
}

static void ask_kernel(struct p2p_query *q, const struct pci_addr *a,
		       const struct pci_addr *b)
{
	fxi_p2p_ask(q->env, a, b, &q->answer);
	q->kernel = q->answer.asked ?
		    (q->answer.kernel ? OPTION_YES : OPTION_NO) :
		    fxi_p2p_kernel(q->env, b);
}

/* 0; -ENOMEM; -EUCLEAN: it is not there, and @q says why; else no access. */
static int load(struct p2p_query *q, const struct pci_addr *addr,
		struct pci_chain *chain, const char *name)
{
	int ret = fxi_pci_chain(q->env->root, addr, chain);

	if (ret == -ENODEV) {
		fxi_say_no(q, FABREX_P2P_NO_DEVICE, NULL, 0,
			   "there is no PCI device %s on this machine", name);
		fxi_say_remedy(q, "see lspci -D, and \"fabrexctl list endpoints\" for what is composed to this host");
		ret = -EUCLEAN;
	} else if (ret == -EUCLEAN || ret == -ENAMETOOLONG) {
		fxi_say_no(q, FABREX_P2P_NO_DEVICE, NULL, 0,
			   "what sysfs says about %s makes no sense", name);
		ret = -EUCLEAN;
	}
	return ret;
}

static void look(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	struct fabrex_p2p *p = q->out;

	fxi_way_find(q->env, &q->way);
	fxi_host_iommu(q->env->root, p->initiator, q->iommu,
		       sizeof(q->iommu));
	p->iommu = fxi_host_translates(q->iommu);
	if (!fxi_check_there(q))
		return;
	ask_kernel(q, &way->a.dev[0]->addr, &way->b.dev[0]->addr);
	fxi_check_way(q);
	fxi_check_state(q);
}

int fxi_p2p_run(const struct p2p_env *env, const char *initiator,
		const char *target, struct fabrex_p2p *out)
{
	struct p2p_query q = { .env = env, .out = out };
	const char *last = out->initiator;
	struct pci_addr a, b;
	int ret;

	memset(out, 0, sizeof(*out));
	ret = fxi_p2p_find(env, initiator, &a);
	if (!ret)
		ret = fxi_p2p_find(env, target, &b);
	if (ret)
		return ret;
	fxi_pci_name(&a, out->initiator);
	fxi_pci_name(&b, out->target);
	ret = load(&q, &a, &q.way.a, last);
	if (!ret) {
		last = out->target;
		ret = load(&q, &b, &q.way.b, last);
	}
	if (!ret) {
		look(&q);
	} else if (ret != -EUCLEAN && ret != -ENOMEM) {
		ask_kernel(&q, &a, &b);
		fxi_check_blind(&q, last, -ret);
	}
	fxi_pci_chain_free(&q.way.a);
	fxi_pci_chain_free(&q.way.b);
	/* -EUCLEAN: @out says what is wrong. */
	return ret == -ENOMEM ? fxi_error(ENOMEM, "fabrex_p2p_query: out of memory") : 0;
}

EXPORT int fabrex_p2p_query(const char *initiator, const char *target,
			    struct fabrex_p2p *p2p, size_t size)
{
	NO_CANCEL();
	struct fabrex_p2p now;
	struct p2p_env env;
	int ret;

	if (!p2p || !size)
		return fxi_error(EINVAL, "fabrex_p2p_query: no place for the answer");
	fxi_p2p_env(&env);
	ret = fxi_p2p_run(&env, initiator, target, &now);
	if (ret)
		return ret;
	memset(p2p, 0, size);
	memcpy(p2p, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}

static const char *word(const char *const *words, size_t n, int i)
{
	return i >= 0 && (size_t)i < n && words[i] ? words[i] : "unknown";
}

#define WORD(table, i)	word(table, sizeof(table) / sizeof(table[0]), i)

EXPORT const char *fabrex_p2p_verdict_str(int verdict)
{
	static const char *const words[] = {
		[FABREX_P2P_UNKNOWN] = "unknown",
		[FABREX_P2P_NO] = "no",
		[FABREX_P2P_YES] = "yes",
	};

	return WORD(words, verdict);
}

EXPORT const char *fabrex_p2p_path_str(int path)
{
	static const char *const words[] = {
		[FABREX_P2P_PATH_NONE] = "none",
		[FABREX_P2P_PATH_SAME] = "same",
		[FABREX_P2P_PATH_SWITCH] = "switch",
		[FABREX_P2P_PATH_ROOT] = "root",
	};

	return WORD(words, path);
}

EXPORT const char *fabrex_p2p_reason_str(int reason)
{
	static const char *const words[] = {
		[FABREX_P2P_OK] = "ok",
		[FABREX_P2P_NO_DEVICE] = "no-device",
		[FABREX_P2P_NO_KERNEL] = "no-kernel-option",
		[FABREX_P2P_ACS] = "acs",
		[FABREX_P2P_ROOT] = "root-complex",
		[FABREX_P2P_MEMORY_OFF] = "memory-off",
		[FABREX_P2P_POWER] = "power",
		[FABREX_P2P_RESET] = "reset",
		[FABREX_P2P_NO_BAR] = "no-bar",
		[FABREX_P2P_BAR_SPACE] = "bar-space",
		[FABREX_P2P_IOMMU] = "iommu",
		[FABREX_P2P_NO_MASTER] = "no-master",
		[FABREX_P2P_REFUSED] = "refused",
		[FABREX_P2P_UNREADABLE] = "unreadable",
	};

	return WORD(words, reason);
}
