// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All interleavings of the receive ring's protocol (lib/transport/loopback/
 * send.c and fast.h), in a model: two senders, of which one may die
 * anywhere, over links that may be full, a receiver that sleeps, and whose own
 * operation comes to its end, and the service thread that cleans up after the
 * dead. Stores wait in a buffer for each of them, as on x86, and become
 * visible in order, but any time later. Each protection is left out once, which
 * has to be found. Run by main.c.
 */
#include <stdlib.h>

#include "test.h"

#define CELLS	2u
#define STORES	6u

enum { LOCK, TAIL, HEAD, ARMED, WAKES, SEQ, DATA = SEQ + CELLS,
       VARS = DATA + CELLS };
enum { DOOMED, SENDER, RECEIVER, CLEANER, PROCS };

/* What is left out. */
enum flaw {
	NOTHING, NO_BARRIER, NO_MEMBARRIER, NO_REPAIR, NO_LAST_WAKE,
	SEQ_BEFORE_DATA, NO_CLEANER, NO_OUTBOX, WAKE_BY_ONE, FLAWS
};

/* An operation of the receiver's queue, posted by another of its threads. */
enum { OWN_NONE, OWN_DONE, OWN_SEEN };

struct proc {
	uint8_t pc, reg, sent, stores;
	struct { uint8_t var, value; } store[STORES];
};

struct state {
	uint8_t var[VARS];
	struct proc proc[PROCS];
	uint8_t dead, known;	/* of DOOMED; to SENDER */
	uint8_t has_armed;	/* the receiver's own memory */
	uint8_t next;		/* cell the receiver looks at */
	uint8_t got[2];		/* messages of each sender */
	uint8_t kept[2];	/* wake-ups that the link had no room for */
	uint8_t own;
	uint8_t wrong;
};

struct model {
	enum flaw flaw;
	bool membarrier;	/* senders have no barrier */
	bool more;		/* full links and own operations */
	uint8_t each;		/* messages of a sender: fewer then */
	struct state *states;	/* seen; a hash table, and a list to do */
	uint32_t *table;
	uint32_t count, room, bad, ends;
};

/* ---- memory ------------------------------------------------------------ */

static uint8_t load(const struct state *s, const struct proc *p, uint8_t var)
{
	int i;

	for (i = p->stores - 1; i >= 0; i--)
		if (p->store[i].var == var)
			return p->store[i].value;
	return s->var[var];
}

static void store(struct proc *p, uint8_t var, uint8_t value)
{
	CHECK(p->stores < STORES);
	p->store[p->stores].var = var;
	p->store[p->stores++].value = value;
}

static bool drain(struct state *s, struct proc *p)
{
	if (!p->stores)
		return false;
	s->var[p->store[0].var] = p->store[0].value;
	p->stores--;
	memmove(&p->store[0], &p->store[1], sizeof(p->store) -
		sizeof(p->store[0]));
	memset(&p->store[p->stores], 0, sizeof(p->store[0]));
	return true;
}

/* ---- those who take part ----------------------------------------------- */

static uint8_t message(unsigned int who, uint8_t count)
{
	return (uint8_t)(who * 16 + count + 1);
}

/* Instructions with LOCK have an empty buffer, and leave one. */
static bool locked(struct state *s, const struct model *m, unsigned int who)
{
	struct proc *p = &s->proc[who];
	uint8_t holder = s->var[LOCK], tail;

	if (p->stores)
		return false;
	if (holder && !(s->known && holder == DOOMED + 1))
		return false;
	s->var[LOCK] = (uint8_t)(who + 1);
	tail = s->var[TAIL];
	if (holder && m->flaw != NO_REPAIR &&
	    s->var[SEQ + tail % CELLS] == tail + 1)
		store(p, TAIL, (uint8_t)(tail + 1));
	return true;
}

static bool step_sender(struct state *s, const struct model *m,
			unsigned int who)
{
	struct proc *p = &s->proc[who];
	bool early = m->flaw == SEQ_BEFORE_DATA;
	uint8_t cell;

	cell = p->reg % CELLS;
	switch (p->pc) {
	case 0:
		if (p->sent == m->each || !locked(s, m, who))
			return false;
		break;
	case 1:
		p->reg = load(s, p, TAIL);
		if (p->reg - load(s, p, HEAD) < (int)CELLS)
			break;
		store(p, LOCK, 0);	/* RNR: again */
		p->pc = 0;
		return true;
	case 2:
	case 3:
		if ((p->pc == 2) == early)
			store(p, (uint8_t)(SEQ + cell), (uint8_t)(p->reg + 1));
		else
			store(p, (uint8_t)(DATA + cell), message(who, p->sent));
		break;
	case 4:
		store(p, TAIL, (uint8_t)(p->reg + 1));
		break;
	case 5:
		store(p, LOCK, 0);
		break;
	case 6:
		if (p->stores && !m->membarrier && m->flaw != NO_BARRIER)
			return false;
		break;
	case 7:
		if (load(s, p, ARMED))
			break;
		p->pc = 10;
		return true;
	case 8:
		if (p->stores)
			return false;
		p->pc = s->var[ARMED] ? 9 : 10;
		s->var[ARMED] = 0;
		return true;
	case 9:
		s->var[WAKES]++;
		break;
	case 10:
		p->sent++;
		p->reg = 0;
		p->pc = 0;
		return true;
	}
	p->pc++;
	return true;
}

/* Whole, once, in order. */
static void take(struct state *s, uint8_t data)
{
	unsigned int who = data / 16;

	if (who > SENDER || data != message(who, s->got[who]))
		s->wrong = 1;
	else
		s->got[who]++;
}

static bool step_receiver(struct state *s, const struct model *m)
{
	struct proc *p = &s->proc[RECEIVER];
	uint8_t cell = s->next % CELLS;
	unsigned int i;

	switch (p->pc) {
	case 0:
	case 4:
		if (s->own == OWN_DONE) {
			s->own = OWN_SEEN;
			p->pc = 0;
		} else if (load(s, p, (uint8_t)(SEQ + cell)) == s->next + 1)
			p->pc = 1;
		else
			p->pc = p->pc ? 5 : 2;
		return true;
	case 1:
		take(s, load(s, p, (uint8_t)(DATA + cell)));
		store(p, HEAD, ++s->next);
		p->pc = 0;
		return true;
	case 2:
		s->has_armed = 1;
		store(p, ARMED, 1);
		break;
	case 3:
		if (p->stores)
			return false;
		for (i = 0; m->membarrier && m->flaw != NO_MEMBARRIER &&
			    i <= SENDER; i++)
			if (s->proc[i].stores)
				return false;
		break;
	case 5:
		if (!s->var[WAKES])
			return false;
		s->var[WAKES] = 0;
		p->pc = 0;
		return true;
	}
	p->pc++;
	return true;
}

/* The dead one's stores are all visible by now: the kernel has run since. */
static bool step_cleaner(struct state *s, const struct model *m)
{
	struct proc *p = &s->proc[CLEANER];

	if (!s->dead || s->proc[DOOMED].stores || m->flaw == NO_CLEANER)
		return false;
	switch (p->pc) {
	case 0:
		if (s->var[LOCK] == DOOMED + 1) {
			s->known = 1;
			if (!locked(s, m, CLEANER))
				return false;
			break;
		}
		p->pc = 2;
		return true;
	case 1:
		store(p, LOCK, 0);
		break;
	case 2:
		if (p->stores)
			return false;
		if (m->flaw == NO_LAST_WAKE ? s->var[ARMED] : s->has_armed) {
			s->var[ARMED] = 0;
			s->var[WAKES]++;
		}
		break;
	default:
		return false;
	}
	p->pc++;
	return true;
}

/* While nobody else has the queue: a lock of the application's sees to that. */
static bool complete_own(struct state *s, const struct model *m)
{
	const struct proc *p = &s->proc[RECEIVER];

	if (!m->more || s->own || p->stores || (p->pc != 0 && p->pc != 5))
		return false;
	s->own = OWN_DONE;
	if (!s->has_armed)
		return true;
	s->has_armed = 0;
	if (m->flaw != WAKE_BY_ONE || s->var[ARMED])
		s->var[WAKES]++;
	s->var[ARMED] = 0;
	return true;
}

/* The link has no room at the moment, and then it has. */
static bool no_room(struct state *s, const struct model *m, unsigned int who)
{
	struct proc *p = &s->proc[who];

	if (!m->more || p->pc != 9 || (who == DOOMED && s->dead))
		return false;
	s->kept[who] += m->flaw != NO_OUTBOX;
	p->pc++;
	return true;
}

static bool has_room(struct state *s, unsigned int who)
{
	if (!s->kept[who] || (who == DOOMED && s->dead))
		return false;
	s->kept[who]--;
	s->var[WAKES]++;
	return true;
}

/* ---- search ------------------------------------------------------------ */

enum { DIE = 2 * PROCS, LEARN, OWN, FULL, ROOM = FULL + 2,
       CHOICES = ROOM + 2 };

static bool choose(struct state *s, const struct model *m, unsigned int choice)
{
	if (choice >= PROCS && choice < 2 * PROCS)
		return drain(s, &s->proc[choice - PROCS]);
	switch (choice) {
	case DOOMED:
		return !s->dead && step_sender(s, m, DOOMED);
	case SENDER:
		return step_sender(s, m, SENDER);
	case RECEIVER:
		return step_receiver(s, m);
	case CLEANER:
		return step_cleaner(s, m);
	case DIE:
		if (s->dead)
			return false;
		s->dead = 1;
		return true;
	case OWN:
		return complete_own(s, m);
	case FULL + DOOMED:
	case FULL + SENDER:
		return no_room(s, m, choice - FULL);
	case ROOM + DOOMED:
	case ROOM + SENDER:
		return has_room(s, choice - ROOM);
	}
	if (s->known || !s->dead || s->proc[DOOMED].stores)
		return false;
	s->known = 1;
	return true;
}

static void add(struct model *m, const struct state *s)
{
	const uint8_t *bytes = (const uint8_t *)s;
	uint32_t hash = 2166136261u, i;

	for (i = 0; i < sizeof(*s); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	for (i = hash % m->room; m->table[i]; i = (i + 1) % m->room)
		if (!memcmp(&m->states[m->table[i] - 1], s, sizeof(*s)))
			return;
	CHECK(m->count < m->room / 2);
	m->states[m->count] = *s;
	m->table[i] = ++m->count;
}

/* Nothing more can happen: what was completed has arrived, nobody waits. */
static bool end_is_right(const struct state *s, const struct model *m)
{
	const struct proc *dead = &s->proc[DOOMED];

	return s->proc[SENDER].sent == m->each &&
	       s->got[SENDER] == m->each &&
	       s->got[DOOMED] >= dead->sent &&
	       s->got[DOOMED] <= dead->sent + (dead->pc > 0) &&
	       !s->var[LOCK] && s->own != OWN_DONE;
}

static void explore(struct model *m)
{
	struct state begin, s;
	unsigned int choice;
	uint32_t at;
	bool any;

	memset(&begin, 0, sizeof(begin));
	m->room = 1u << 23;
	m->states = calloc(m->room / 2, sizeof(*m->states));
	m->table = calloc(m->room, sizeof(*m->table));
	CHECK(m->states && m->table);
	add(m, &begin);
	for (at = 0; at < m->count && !m->bad; at++) {
		any = false;
		for (choice = 0; choice < CHOICES; choice++) {
			s = m->states[at];
			if (!choose(&s, m, choice))
				continue;
			any |= choice != DIE;
			add(m, &s);
			m->bad += s.wrong;
		}
		m->ends += !any;
		m->bad += !any && !end_is_right(&m->states[at], m);
	}
	free(m->states);
	free(m->table);
}

static uint32_t violations(enum flaw flaw, bool membarrier, bool more)
{
	struct model m = {
		.flaw = flaw, .membarrier = membarrier, .more = more,
		.each = more ? 1 : 2,
	};

	explore(&m);
	printf("# flaw %d, %s: %u states, %u ends, %s\n", flaw,
	       membarrier ? "membarrier" : "barriers", m.count, m.ends,
	       m.bad ? "wrong" : "right");
	return m.bad;
}

TEST(ring_interleavings)
{
	CHECK_EQ(violations(NOTHING, false, false), 0);
	CHECK_EQ(violations(NOTHING, true, false), 0);
	CHECK_EQ(violations(NOTHING, false, true), 0);
	CHECK_EQ(violations(NOTHING, true, true), 0);
}

TEST(ring_interleavings_find_flaws)
{
	CHECK(violations(NO_BARRIER, false, false));
	CHECK(violations(NO_MEMBARRIER, true, false));
	CHECK(violations(NO_REPAIR, false, false));
	CHECK(violations(NO_LAST_WAKE, false, false));
	CHECK(violations(SEQ_BEFORE_DATA, false, false));
	CHECK(violations(NO_CLEANER, false, false));
	CHECK(violations(NO_OUTBOX, false, true));
	CHECK(violations(WAKE_BY_ONE, false, true));
}
