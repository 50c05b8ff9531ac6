// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: registers of the non-transparent bridge. Tables of windows and
 * requesters, which a host locks, writes and has configured; doorbells and
 * messages between partitions.
 */
#include <string.h>

#include "pfx.h"

#define NOBODY		PFX_PARTITIONS

/* Which words of the table of windows there are: BAR 2 and 4. */
static bool has_windows(unsigned int bar)
{
	return bar == 2 || bar == 4;
}

/* ---- Information ---- */

uint32_t pfx_info_read(struct pfx_part *p, uint32_t offset)
{
	uint64_t map = 0, target = p->peer ? 1ull << p->peer->id : 0;

	for (unsigned int i = 0; i < p->pfx->nparts; i++) {
		if (pfx_has_ntb(p->pfx->parts[i]))
			map |= 1ull << i;
	}
	switch (offset) {
	case INFO_PARTITIONS:
		return p->pfx->nparts | p->id << 8;
	case INFO_EP_MAP:
		return (uint32_t)map;
	case INFO_EP_MAP + 4:
		return (uint32_t)(map >> 32);
	case INFO_REQUESTER:
		return PFX_CPU;
	default:
		break;
	}
	/* No crosslink; low and high half of the target's bit. */
	if (offset == INFO_TARGETS + p->id * 16 + 4)
		return (uint32_t)target;
	return offset == INFO_TARGETS + p->id * 16 + 8 ?
	       (uint32_t)(target >> 32) : 0;
}

/* ---- Control: who may write ---- */

/* The block of a partition: its own host and the one behind its bridge. */
static struct pfx_part *block_of(struct pfx_part *p, uint32_t *offset)
{
	unsigned int id = *offset / GAS_NTB_CTRL_SIZE;

	*offset %= GAS_NTB_CTRL_SIZE;
	if (!pfx_has_ntb(p))
		return NULL;
	return id == p->id ? p : id == p->peer->id ? p->peer : NULL;
}

/*
 * As the one who asks sees it: two hosts that lock the same block take turns,
 * and each finds it as it has left it.
 */
static uint32_t status_of(const struct pfx_ctrl *c, const struct pfx_part *who)
{
	if (c->owner == who->id)
		return CTRL_LOCKED;
	return c->waiting >> who->id & 1 ? CTRL_LOCKING : CTRL_NORMAL;
}

static void lock_next(struct pfx_ctrl *c)
{
	c->owner = NOBODY;
	if (!c->waiting)
		return;
	c->owner = __builtin_ctzll(c->waiting);
	c->waiting &= c->waiting - 1;
	c->written = c->active;
}

static void do_lock(struct pfx_ctrl *c, const struct pfx_part *who)
{
	if (c->owner == who->id)
		return;
	c->waiting |= 1ull << who->id;
	if (c->owner == NOBODY)
		lock_next(c);
}

/* Refused, it stays locked, for another try. */
static void do_configure(struct pfx_part *block, const struct pfx_part *who)
{
	struct pfx_ctrl *c = &block->ctrl;

	if (c->owner != who->id || !pfx_window_check(block))
		return;
	c->active = c->written;
	lock_next(c);
}

static void give_up_lock(struct pfx_ctrl *c, const struct pfx_part *who)
{
	c->waiting &= ~(1ull << who->id);
	if (c->owner == who->id)
		lock_next(c);
}

static void do_op(struct pfx_part *block, const struct pfx_part *who,
		  uint32_t op)
{
	switch (op) {
	case OP_LOCK:
		do_lock(&block->ctrl, who);
		break;
	case OP_CONFIGURE:
		do_configure(block, who);
		break;
	case OP_RESET:
		give_up_lock(&block->ctrl, who);
		break;
	}
}

void pfx_ctrl_reset(struct pfx_part *p)
{
	struct pfx_ctrl *c = &p->ctrl;
	uint64_t waiting = c->waiting;
	unsigned int owner = c->owner;

	memset(c, 0, sizeof(*c));
	for (unsigned int i = 0; i < CTRL_NBARS; i++)
		c->written.bar[i].ctl = pfx_has_ntb(p) && has_windows(i) ?
					BAR_VALID : 0;
	c->active = c->written;
	/* Its peer goes on with what it is doing. */
	c->waiting = waiting;
	c->owner = owner;
	if (!pfx_has_ntb(p)) {
		c->owner = NOBODY;
		return;
	}
	give_up_lock(c, p);
	give_up_lock(&p->peer->ctrl, p);
}

/* ---- Control: tables ---- */

/* The word of the tables at @offset, or NULL. */
static uint32_t *bar_word(struct pfx_tables *t, uint32_t offset)
{
	unsigned int bar = (offset - CTRL_BARS) / 16 % CTRL_NBARS;

	if (offset >= CTRL_BARS_EXT)
		return (offset & 15) ? NULL : &t->bar[bar].size_high;
	switch (offset & 15) {
	case 0:
		return &t->bar[bar].ctl;
	case 4:
		return &t->bar[bar].size;
	default:
		return &t->bar[bar].addr[offset >> 2 & 1];
	}
}

static bool is_requester(uint32_t offset)
{
	return offset >= CTRL_REQ && offset < CTRL_REQ + 4 * PFX_REQUESTERS;
}

static uint32_t *table_word(struct pfx_tables *t, uint32_t offset)
{
	if (offset >= CTRL_BARS && offset < CTRL_BARS_EXT + 16 * CTRL_NBARS)
		return bar_word(t, offset);
	if (is_requester(offset))
		return &t->req[(offset - CTRL_REQ) / 4];
	if (offset >= CTRL_LUT && offset < CTRL_LUT + 8 * PFX_LUT_ENTRIES)
		return &t->lut[(offset - CTRL_LUT) / 8][offset >> 2 & 1];
	return NULL;
}

/* The switch has an id on the other side for each requester, also for one that is not
 * configured yet: Linux reads them when it boots, for its IOMMU. They are those of no
 * function that is there.
 */
static uint32_t with_proxy(uint32_t word, uint32_t offset)
{
	uint32_t proxy = 0x80 + (offset - CTRL_REQ) / 4;

	word &= ~(0xffu << REQ_PROXY_SHIFT);
	return word | proxy << REQ_PROXY_SHIFT;
}

uint32_t pfx_ctrl_read(struct pfx_part *p, uint32_t offset)
{
	struct pfx_part *block = block_of(p, &offset);
	struct pfx_ctrl *c;
	uint32_t *word;

	if (!block)
		return 0;
	c = &block->ctrl;
	switch (offset) {
	case CTRL_STATUS:
		return status_of(c, p);
	case CTRL_BAR_ERROR:
		return c->bar_error;
	case CTRL_LUT_ENTRIES:
		return PFX_LUT_ENTRIES;
	case CTRL_LUT_ERROR:
		return c->lut_error;
	case CTRL_REQ_SIZE:
		return PFX_REQUESTERS;
	case CTRL_REQ_ERROR:
		return c->req_error;
	default:
		break;
	}
	word = table_word(c->owner == p->id ? &c->written : &c->active, offset);
	if (!word)
		return 0;
	return is_requester(offset) ? with_proxy(*word, offset) : *word;
}

void pfx_ctrl_write(struct pfx_part *p, uint32_t offset, uint32_t v,
		    uint32_t mask)
{
	struct pfx_part *block = block_of(p, &offset);
	uint32_t *word, valid;

	if (!block)
		return;
	if (offset == CTRL_OP) {
		do_op(block, p, v & mask);
		return;
	}
	word = table_word(&block->ctrl.written, offset);
	if (!word || block->ctrl.owner != p->id)
		return;
	valid = *word & BAR_VALID;
	*word = pfx_merge(*word, v, mask);
	if (is_requester(offset))
		*word = with_proxy(*word, offset);
	else if (offset < CTRL_BARS_EXT && !(offset & 15))
		*word = (*word & ~BAR_VALID) | valid;
}

/* ---- Doorbells ---- */

/* Doorbells are the switch's, messages the partition's. */
static uint64_t pending(const struct pfx_part *p)
{
	uint64_t v = p->pfx->doorbells;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		if (p->dbmsg.in[i].full && p->dbmsg.in[i].mask)
			v |= 1ull << (DOORBELLS + i);
	}
	return v;
}

static void interrupt(struct pfx_part *p, uint64_t bits)
{
	uint64_t vectors = 0;

	for (bits &= p->dbmsg.in_mask; bits; bits &= bits - 1)
		vectors |= 1ull << (p->dbmsg.vector[__builtin_ctzll(bits)] & 63);
	for (; vectors; vectors &= vectors - 1)
		pfx_raise(p, __builtin_ctzll(vectors));
}

static void ring(struct pfx_part *p, uint64_t bits)
{
	struct pfx *x = p->pfx;
	uint64_t fresh = bits & p->dbmsg.out_mask & ~x->doorbells &
			 ((1ull << DOORBELLS) - 1);

	x->doorbells |= fresh;
	for (unsigned int i = 0; i < x->nparts; i++)
		interrupt(x->parts[i], fresh);
}

static void set_in_mask(struct pfx_part *p, uint64_t mask)
{
	uint64_t lifted = mask & ~p->dbmsg.in_mask;

	p->dbmsg.in_mask = mask;
	interrupt(p, pending(p) & lifted);
}

/* ---- Messages ---- */

/* What waits to be sent goes as soon as there is room for it. */
static void deliver(struct pfx_part *from, unsigned int i)
{
	unsigned int to = from->dbmsg.map >> (8 * i) & 0xff;
	unsigned int slot = to % MESSAGES;
	struct pfx_message *out = &from->dbmsg.out[i], *in;

	/* It reaches the host behind the bridge, and its own. */
	if (!from->peer || (to / MESSAGES != from->peer->id)) {
		out->full = false;
		return;
	}
	in = &from->peer->dbmsg.in[slot];
	if (in->full)
		return;
	*in = (struct pfx_message){ .value = out->value, .full = true,
				    .mask = in->mask, .source = from->id };
	out->full = false;
	if (in->mask)
		interrupt(from->peer, 1ull << (DOORBELLS + slot));
}

static void send(struct pfx_part *p, unsigned int i, uint32_t v)
{
	p->dbmsg.out[i].value = v;
	p->dbmsg.out[i].full = true;
	deliver(p, i);
}

static void taken(struct pfx_part *p, unsigned int i)
{
	p->dbmsg.in[i].full = false;
	for (unsigned int k = 0; p->peer && k < MESSAGES; k++) {
		if (p->peer->dbmsg.out[k].full)
			deliver(p->peer, k);
	}
}

static uint32_t read_message(struct pfx_part *p, uint32_t offset)
{
	bool in = offset >= MSG_IN;
	const struct pfx_message *m = in ?
		&p->dbmsg.in[(offset - MSG_IN) / 8] :
		&p->dbmsg.out[(offset - MSG_OUT) / 8];

	if (!(offset & 4))
		return m->value;
	return m->full | (uint32_t)m->mask << 8 | (uint32_t)m->source << 16;
}

/* Status: a one clears it; mask: one has it interrupt. */
static void write_message(struct pfx_part *p, uint32_t offset, uint32_t v,
			  uint32_t mask)
{
	unsigned int i = (offset - MSG_IN) / 8;
	bool was;

	if (offset < MSG_IN) {
		if (!(offset & 4))
			send(p, (offset - MSG_OUT) / 8, v & mask);
		return;
	}
	if (!(offset & 4))
		return;
	was = p->dbmsg.in[i].mask;
	if (mask & 0xff00)
		p->dbmsg.in[i].mask = v >> 8 & 1;
	if (v & mask & 1)
		taken(p, i);
	else if (p->dbmsg.in[i].full && p->dbmsg.in[i].mask && !was)
		interrupt(p, 1ull << (DOORBELLS + i));
}

/* ---- Registers of both ---- */

void pfx_dbmsg_reset(struct pfx_part *p)
{
	memset(&p->dbmsg, 0, sizeof(p->dbmsg));
}

/* A partition has only its own block. */
static bool own_block(const struct pfx_part *p, uint32_t *offset)
{
	unsigned int id = *offset / GAS_NTB_DBMSG_SIZE;

	*offset %= GAS_NTB_DBMSG_SIZE;
	return id == p->id && pfx_has_ntb(p);
}

static uint32_t half(uint64_t v, uint32_t offset)
{
	return (uint32_t)(offset & 4 ? v >> 32 : v);
}

/* @old with the bytes of one half stored. */
static uint64_t with_half(uint64_t old, uint32_t offset, uint32_t v,
			  uint32_t mask)
{
	unsigned int shift = offset & 4 ? 32 : 0;
	uint64_t m = (uint64_t)mask << shift;

	return (old & ~m) | ((uint64_t)v << shift & m);
}

uint32_t pfx_dbmsg_read(struct pfx_part *p, uint32_t offset)
{
	const struct pfx_dbmsg *d = &p->dbmsg;
	uint32_t v = 0;

	if (!own_block(p, &offset))
		return 0;
	if (offset >= DB_VECTORS && offset < MSG_MAP) {
		memcpy(&v, d->vector + offset - DB_VECTORS, 4);
		return v;
	}
	if (offset >= MSG_OUT && offset < MSG_END)
		return read_message(p, offset);
	switch (offset & ~7u) {
	case DB_OUT_MASK:
		return half(d->out_mask, offset);
	case DB_IN:
		return half(pending(p), offset);
	case DB_IN_MASK:
		return half(d->in_mask, offset);
	}
	return offset == MSG_MAP ? d->map : 0;
}

static void write_vectors(struct pfx_dbmsg *d, uint32_t offset, uint32_t v,
			  uint32_t mask)
{
	uint32_t old;

	memcpy(&old, d->vector + offset - DB_VECTORS, 4);
	old = pfx_merge(old, v, mask);
	memcpy(d->vector + offset - DB_VECTORS, &old, 4);
}

void pfx_dbmsg_write(struct pfx_part *p, uint32_t offset, uint32_t v,
		     uint32_t mask)
{
	struct pfx_dbmsg *d = &p->dbmsg;

	if (!own_block(p, &offset))
		return;
	if (offset >= DB_VECTORS && offset < MSG_MAP) {
		write_vectors(d, offset, v, mask);
	} else if (offset >= MSG_OUT && offset < MSG_END) {
		write_message(p, offset, v, mask);
	} else if (offset == MSG_MAP) {
		d->map = pfx_merge(d->map, v, mask);
	} else if ((offset & ~7u) == DB_OUT) {
		ring(p, with_half(0, offset, v, mask));
	} else if ((offset & ~7u) == DB_OUT_MASK) {
		d->out_mask = with_half(d->out_mask, offset, v, mask);
	} else if ((offset & ~7u) == DB_IN) {
		p->pfx->doorbells &= ~with_half(0, offset, v, mask);
	} else if ((offset & ~7u) == DB_IN_MASK) {
		set_in_mask(p, with_half(d->in_mask, offset, v, mask));
	}
}
