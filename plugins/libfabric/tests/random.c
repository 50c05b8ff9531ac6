// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Hints, and sequences of calls on open and closed objects, that nobody thought
 * of: no crash, and what is promised can be had. FABREX_FI_SEED and
 * FABREX_FI_ROUNDS choose which, and how many.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../provider.h"
#include "support.h"

static uint64_t state;
static unsigned long rounds;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static void begin(unsigned long n)
{
	const char *seed = getenv("FABREX_FI_SEED");
	const char *many = getenv("FABREX_FI_ROUNDS");

	state = seed ? strtoull(seed, NULL, 0) : 1;
	state = (state + 1) * UINT64_C(0x9e3779b97f4a7c15);
	rounds = many ? strtoul(many, NULL, 0) : n;
	own_fabric();
}

/* ---- hints ------------------------------------------------------------- */

static uint64_t some_number(void)
{
	static const uint64_t known[] = { 1, 2, 4, 8, 64, 4096, INT32_MAX,
					  UINT32_MAX, SIZE_MAX, SIZE_MAX / 2 };

	switch (draw(4)) {
	case 0:
		return 0;
	case 1:
		return known[draw(sizeof(known) / sizeof(known[0]))];
	case 2:
		return UINT64_C(1) << draw(64);
	default:
		return state;
	}
}

/* Mostly nothing: one wish in a thousand can be met only if few are made. */
static uint64_t maybe(void)
{
	return draw(8) ? 0 : some_number();
}

static char *some_text(void)
{
	static const char *const texts[] = {
		"", "fabrex", "loopback:", "loopback:x", "loopback:/",
		"fi_fabrex://a.0:1", "fi_fabrex://:", "a.0", "a:b", "%s%n",
		"0123456789012345678901234567890123456789012345678901234567",
	};

	return draw(6) ? NULL :
	       strdup(texts[draw(sizeof(texts) / sizeof(texts[0]))]);
}

static void some_contexts(struct fi_tx_attr *tx, struct fi_rx_attr *rx)
{
	tx->caps = maybe();
	tx->op_flags = maybe();
	tx->msg_order = maybe();
	tx->comp_order = maybe();
	tx->inject_size = maybe();
	tx->size = maybe();
	tx->iov_limit = maybe();
	tx->rma_iov_limit = maybe();
	tx->tclass = (uint32_t)maybe();
	rx->caps = maybe();
	rx->op_flags = maybe();
	rx->msg_order = maybe();
	rx->comp_order = maybe();
	rx->size = maybe();
	rx->iov_limit = maybe();
}

static void some_endpoint(struct fi_ep_attr *ep)
{
	ep->type = (enum fi_ep_type)maybe();
	ep->protocol = (uint32_t)maybe();
	ep->protocol_version = (uint32_t)maybe();
	ep->max_msg_size = maybe();
	ep->msg_prefix_size = maybe();
	ep->max_order_raw_size = maybe();
	ep->mem_tag_format = maybe();
	ep->tx_ctx_cnt = maybe();
	ep->rx_ctx_cnt = maybe();
}

static void some_domain(struct fi_domain_attr *domain)
{
	domain->name = some_text();
	domain->threading = (enum fi_threading)maybe();
	domain->control_progress = (enum fi_progress)maybe();
	domain->data_progress = (enum fi_progress)maybe();
	domain->resource_mgmt = (enum fi_resource_mgmt)maybe();
	domain->av_type = (enum fi_av_type)maybe();
	domain->mr_mode = (int)some_number();
	domain->mr_key_size = maybe();
	domain->cq_data_size = maybe();
	domain->cq_cnt = maybe();
	domain->ep_cnt = maybe();
	domain->max_ep_tx_ctx = maybe();
	domain->max_ep_stx_ctx = maybe();
	domain->cntr_cnt = maybe();
	domain->mr_iov_limit = maybe();
	domain->caps = maybe();
	domain->max_err_data = maybe();
	domain->mr_cnt = maybe();
}

static struct fi_info *some_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	CHECK(hints);
	hints->caps = maybe();
	hints->mode = some_number();
	hints->addr_format = (uint32_t)maybe();
	hints->src_addr = some_text();
	if (hints->src_addr)
		hints->src_addrlen = draw(strlen(hints->src_addr) + 2);
	hints->dest_addr = some_text();
	if (hints->dest_addr)
		hints->dest_addrlen = draw(strlen(hints->dest_addr) + 2);
	some_contexts(hints->tx_attr, hints->rx_attr);
	some_endpoint(hints->ep_attr);
	some_domain(hints->domain_attr);
	hints->fabric_attr->name = some_text();
	return hints;
}

/* Each of the parts may be left away. */
static struct fi_info leave_away(const struct fi_info *hints)
{
	struct fi_info copy = *hints;

	if (!draw(8))
		copy.tx_attr = NULL;
	if (!draw(8))
		copy.rx_attr = NULL;
	if (!draw(8))
		copy.ep_attr = NULL;
	if (!draw(8))
		copy.domain_attr = NULL;
	if (!draw(8))
		copy.fabric_attr = NULL;
	return copy;
}

static uint32_t some_version(void)
{
	static const uint32_t versions[] = {
		FI_VERSION(1, 0), FI_VERSION(1, 4), FI_VERSION(1, 5),
		FI_VERSION(1, 17), VERSION,
	};

	return versions[draw(sizeof(versions) / sizeof(versions[0]))];
}

/* What is given is what was asked for, and is taken by fi_domain(). */
static void check_given(uint32_t version, const struct fi_info *hints,
			struct fi_info *given)
{
	struct fid_domain *domain;
	struct fid_fabric *fabric;

	CHECK_EQ(hints->caps & ~given->caps, 0);
	if (hints->tx_attr)
		CHECK(hints->tx_attr->inject_size <= given->tx_attr->inject_size
		      && hints->tx_attr->size <= given->tx_attr->size);
	if (draw(20))
		return;
	given->fabric_attr->api_version = version;
	CHECK_EQ(fabric_open(given->fabric_attr, &fabric, NULL), 0);
	CHECK_EQ(fi_domain(fabric, given, &domain, NULL), 0);
	CHECK_EQ(fi_close(&domain->fid), 0);
	CHECK_EQ(fi_close(&fabric->fid), 0);
}

TEST(hints_at_random)
{
	struct fi_info *hints, *given, copy, *passed;
	char *node, *service;
	unsigned long i, n = 0;
	uint32_t version;
	int ret;

	begin(20000);
	for (i = 0; i < rounds; i++) {
		hints = some_hints();
		copy = leave_away(hints);
		version = some_version();
		node = some_text();
		service = some_text();
		passed = draw(50) ? &copy : NULL;
		ret = info_get(version, node, service, draw(4) ? 0 : maybe(),
			       passed, &given);
		CHECK(ret == -FI_ENODATA || (!ret && given));
		if (!ret) {
			n++;
			if (passed)
				check_given(version, passed, given);
			fi_freeinfo(given);
		}
		fi_freeinfo(hints);
		free(node);
		free(service);
	}
	printf("# %lu of %lu hints were met\n", n, rounds);
}

/* ---- calls ------------------------------------------------------------- */

/* Objects by kind: open, closed, or not yet there. */
#define KINDS	7
#define SLOTS	4
enum kind { FABRIC, DOMAIN, EQ, CQ, CNTR, AV, MR };

static struct fid *slots[KINDS][SLOTS];
static struct fi_info *info;
static char memory[65536];

static struct fid *some(enum kind kind)
{
	return slots[kind][draw(SLOTS)];
}

static struct fid *any(void)
{
	return some((enum kind)draw(KINDS));
}

#define OF(type, fid)	((type *)(void *)(fid))

static void open_one(enum kind kind, struct fid **slot)
{
	struct fi_eq_attr eq = { .wait_obj = (enum fi_wait_obj)draw(8),
				 .flags = draw(2) ? FI_WRITE : 0 };
	struct fi_cq_attr cq = { .wait_obj = (enum fi_wait_obj)draw(8),
				 .format = (enum fi_cq_format)draw(6),
				 .wait_cond = (enum fi_cq_wait_cond)draw(3) };
	struct fi_cntr_attr cntr = { .wait_obj = (enum fi_wait_obj)draw(8) };
	struct fi_av_attr av = { .type = (enum fi_av_type)draw(4),
				 .flags = draw(3) ? 0 : FI_EVENT };
	struct fid *of = some(kind == DOMAIN || kind == EQ ? FABRIC : DOMAIN);
	void *out = NULL;
	int ret = -1;

	if (kind == FABRIC)
		ret = fabric_open(info->fabric_attr, (void *)&out, NULL);
	else if (!of)
		return;
	else if (kind == DOMAIN)
		ret = fi_domain(OF(struct fid_fabric, of), info, (void *)&out,
				NULL);
	else if (kind == EQ)
		ret = fi_eq_open(OF(struct fid_fabric, of), &eq, (void *)&out,
				 NULL);
	else if (kind == CQ)
		ret = fi_cq_open(OF(struct fid_domain, of), &cq, (void *)&out,
				 NULL);
	else if (kind == CNTR)
		ret = fi_cntr_open(OF(struct fid_domain, of), &cntr,
				   (void *)&out, NULL);
	else if (kind == AV)
		ret = fi_av_open(OF(struct fid_domain, of), &av, (void *)&out,
				 NULL);
	else
		ret = fi_mr_reg(OF(struct fid_domain, of), memory + draw(999),
				1 + draw(9999), draw(2) ? FI_RECV : some_number(),
				0, 0, 0, (void *)&out, NULL);
	if (!ret)
		*slot = out;
}

/* An open one is not forgotten. */
static void maybe_open(void)
{
	enum kind kind = (enum kind)draw(KINDS);
	struct fid **slot = &slots[kind][draw(SLOTS)];

	if (!*slot || (*slot)->fclass == FI_CLASS_UNSPEC)
		open_one(kind, slot);
}

static void call_eq(struct fid_eq *eq)
{
	struct fi_eq_err_entry error = { .data = 0 };
	struct fi_eq_entry entry = { .data = 0 };
	uint32_t event;

	fi_eq_write(eq, (uint32_t)some_number(), &entry, draw(sizeof(entry)), 0);
	fi_eq_read(eq, &event, &entry, draw(2) ? sizeof(entry) : 1, maybe());
	fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0);
	fi_eq_readerr(eq, &error, maybe());
	fi_eq_strerror(eq, (int)some_number(), NULL, (char *)&entry, draw(9));
}

static void call_cq(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry[4];
	struct fi_cq_err_entry error = { .err_data_size = 0 };
	fi_addr_t source[4];

	fi_cq_read(cq, entry, draw(5));
	fi_cq_readfrom(cq, entry, draw(5), source);
	fi_cq_sread(cq, entry, draw(5), (void *)(uintptr_t)some_number(), 0);
	fi_cq_readerr(cq, &error, maybe());
	fi_cq_signal(cq);
	fi_cq_strerror(cq, (int)some_number(), NULL, NULL, 0);
}

static void call_cntr(struct fid_cntr *cntr)
{
	fi_cntr_read(cntr);
	fi_cntr_readerr(cntr);
	fi_cntr_add(cntr, some_number());
	fi_cntr_set(cntr, some_number());
	fi_cntr_adderr(cntr, some_number());
	fi_cntr_seterr(cntr, some_number());
	fi_cntr_wait(cntr, some_number(), 0);
}

static void call_av(struct fid_av *av)
{
	char text[ADDRESS_MAX] = "";
	char *word = some_text();
	size_t len = draw(sizeof(text));
	fi_addr_t addr = some_number();
	int error;

	fi_av_straddr(av, "fi_fabrex://a.0:1", text, &len);
	strcpy(text, draw(2) ? "fi_fabrex://b.0:2" : "fi_fabrex://b 0");
	fi_av_insert(av, text, 1, draw(4) ? &addr : NULL,
		     draw(2) ? 0 : FI_SYNC_ERR, draw(4) ? &error : NULL);
	fi_av_insertsvc(av, word, draw(2) ? "7" : NULL, &addr, maybe(), NULL);
	fi_av_insertsym(av, "n1", 1 + draw(2), "5", draw(2), NULL, 0, NULL);
	len = draw(sizeof(text));
	fi_av_lookup(av, draw(100), text, &len);
	addr = draw(100);
	fi_av_remove(av, &addr, draw(2), draw(9) ? 0 : 1);
	free(word);
}

static void call_mr(struct fid_mr *mr)
{
	uint64_t base, key;
	size_t size = draw(16);

	fi_mr_raw_attr(mr, &base, (uint8_t *)&key, &size, 0);
	fi_mr_enable(mr);
	fi_mr_desc(mr);
}

static void call_of_kind(enum kind kind, struct fid *fid)
{
	struct fid *fids[2] = { any(), any() };

	switch (kind) {
	case FABRIC:
		fi_trywait(OF(struct fid_fabric, fid), fids, (int)draw(3));
		break;
	case DOMAIN:
		if (fids[0])
			fi_domain_bind(OF(struct fid_domain, fid), fids[0],
				       maybe());
		break;
	case EQ:
		call_eq(OF(struct fid_eq, fid));
		break;
	case CQ:
		call_cq(OF(struct fid_cq, fid));
		break;
	case CNTR:
		call_cntr(OF(struct fid_cntr, fid));
		break;
	case AV:
		call_av(OF(struct fid_av, fid));
		break;
	case MR:
		call_mr(OF(struct fid_mr, fid));
		break;
	}
}

static void call_something(void)
{
	enum kind kind = (enum kind)draw(KINDS);
	struct fid *fid = some(kind);
	uint64_t words[8] = { 0 };

	if (!fid)
		return;
	call_of_kind(kind, fid);
	fid->ops->bind(fid, any(), maybe());
	/* Not FI_GETWAIT and the like with something of another size. */
	fi_control(fid, draw(2) ? FI_GETWAITOBJ : 100 + (int)draw(99), words);
	fi_open_ops(fid, "x", 0, NULL, NULL);
}

/* Whatever is open, in an order that can work. */
static void close_all(void)
{
	static const enum kind order[] = { MR, AV, CNTR, CQ, DOMAIN, EQ, FABRIC };
	size_t i, n;

	for (i = 0; i < KINDS; i++)
		for (n = 0; n < SLOTS; n++)
			if (slots[order[i]][n])
				fi_close(slots[order[i]][n]);
	for (i = 0; i < KINDS; i++)
		for (n = 0; n < SLOTS; n++)
			CHECK(!slots[i][n] ||
			      slots[i][n]->fclass == FI_CLASS_UNSPEC);
}

TEST(calls_at_random)
{
	struct fi_info *hints = hints_new();
	unsigned int before;
	unsigned long i;
	struct fid *fid;

	begin(5000);
	hints->caps = FI_MSG | FI_RMA;
	CHECK_EQ(info_get(VERSION, NULL, NULL, 0, hints, &info), 0);
	info->fabric_attr->api_version = VERSION;
	fi_freeinfo(hints);
	before = open_descriptors();
	for (i = 0; i < rounds; i++) {
		if (draw(3))
			maybe_open();
		call_something();
		fid = draw(6) ? NULL : any();
		if (fid)
			fi_close(fid);
	}
	close_all();
	CHECK_EQ(open_descriptors(), before);
	fi_freeinfo(info);
}
