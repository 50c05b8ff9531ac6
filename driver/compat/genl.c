// SPDX-License-Identifier: GPL-2.0-only
/* Implements genl.h, and formatted extended acks for kernels without them. */
#define FABREX_COMPAT_GENL_IMPL
#include "genl.h"

struct genl_family *fabrex_genl;

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)

#include <linux/slab.h>

#define EXTACK_BUFS	64

/* Used in turn: a text is read before that many others can be written. */
static char extack_text[EXTACK_BUFS][NETLINK_MAX_FMTMSG_LEN];
static atomic_t extack_next;

char *fabrex_compat_extack_buf(void)
{
	return extack_text[(unsigned int)atomic_inc_return(&extack_next) %
			   EXTACK_BUFS];
}
FABREX_EXPORT(fabrex_compat_extack_buf);

static struct genl_family fabrex_compat_family;

static unsigned int spec_maxattr(const struct fabrex_genl_spec *spec, u8 cmd)
{
	unsigned int i, max = 0;

	for (i = 0; i < spec->n_split_ops; i++)
		if (spec->split_ops[i].cmd == cmd)
			max = max(max, spec->split_ops[i].maxattr);
	return max;
}

/* A single policy for do and dump: accepts what either accepts. */
static const struct nla_policy *spec_policy(const struct fabrex_genl_spec *spec,
					    u8 cmd, unsigned int maxattr)
{
	const struct genl_split_ops *op;
	struct nla_policy *policy;
	unsigned int i, a;

	policy = kcalloc(maxattr + 1, sizeof(*policy), GFP_KERNEL);
	if (!policy)
		return NULL;
	for (i = 0; i < spec->n_split_ops; i++) {
		op = &spec->split_ops[i];
		if (op->cmd != cmd || !op->policy)
			continue;
		for (a = 0; a <= op->maxattr; a++)
			if (op->policy[a].type != NLA_UNSPEC)
				memcpy(&policy[a], &op->policy[a],
				       sizeof(*policy));
	}
	return policy;
}

static struct genl_ops *spec_op(struct genl_ops *ops, u8 *n, u8 cmd)
{
	u8 i;

	for (i = 0; i < *n; i++)
		if (ops[i].cmd == cmd)
			return &ops[i];
	return &ops[(*n)++];
}

static void spec_free(struct genl_ops *ops, u8 n)
{
	u8 i;

	for (i = 0; i < n; i++)
		kfree(ops[i].policy);
	kfree(ops);
}

static int spec_convert(const struct fabrex_genl_spec *spec,
			struct genl_ops *ops, u8 *n)
{
	const struct genl_split_ops *from;
	struct genl_ops *to;
	unsigned int i;

	for (i = 0; i < spec->n_split_ops; i++) {
		from = &spec->split_ops[i];
		to = spec_op(ops, n, from->cmd);
		to->cmd = from->cmd;
		to->flags |= from->flags & GENL_ADMIN_PERM;
		if (from->doit)
			to->doit = from->doit;
		if (from->dumpit)
			to->dumpit = from->dumpit;
		if (to->policy)
			continue;
		to->maxattr = spec_maxattr(spec, from->cmd);
		to->policy = spec_policy(spec, from->cmd, to->maxattr);
		if (!to->policy)
			return -ENOMEM;
	}
	return 0;
}

int fabrex_genl_register(const struct fabrex_genl_spec *spec)
{
	struct genl_family *family = &fabrex_compat_family;
	struct genl_ops *ops;
	u8 n = 0;
	int ret;

	ops = kcalloc(spec->n_split_ops, sizeof(*ops), GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	ret = spec_convert(spec, ops, &n);
	if (ret)
		goto free;
	strscpy(family->name, spec->name, sizeof(family->name));
	family->version = spec->version;
	family->netnsok = spec->netnsok;
	family->parallel_ops = spec->parallel_ops;
	family->module = spec->module;
	family->ops = ops;
	family->n_ops = n;
	family->mcgrps = spec->mcgrps;
	family->n_mcgrps = spec->n_mcgrps;
	fabrex_genl = family;
	ret = genl_register_family(family);
	if (ret)
		goto free;
	return 0;

free:
	spec_free(ops, n);
	return ret;
}

void fabrex_genl_unregister(const struct fabrex_genl_spec *spec)
{
	struct genl_family *family = &fabrex_compat_family;
	struct genl_ops *ops = (struct genl_ops *)family->ops;

	genl_unregister_family(family);
	spec_free(ops, family->n_ops);
}

#else

int fabrex_genl_register(struct genl_family *family)
{
	fabrex_genl = family;
	return genl_register_family(family);
}

void fabrex_genl_unregister(struct genl_family *family)
{
	genl_unregister_family(family);
}

#endif
