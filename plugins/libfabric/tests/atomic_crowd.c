// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Atomic operations that meet: many at a time, from several processes, on the
 * same words and on neighbouring bytes, natively and computed. And a target that
 * is killed.
 */
#include <rdma/fi_atomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "ends.h"

#define CAPS	(FI_MSG | FI_RMA | FI_ATOMIC)
#define BASIC	1		/* FI_MR_BASIC: virtual addresses */
#define ALL	(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ROOM	4096u

static const struct end_wish by_offset = { .caps = CAPS };
static const struct end_wish by_address = { .caps = CAPS, .mr_mode = BASIC };

/* ---- from one endpoint ------------------------------------------------- */

static struct end a, b;
static struct fid_mr *mr;
static uint64_t key, base;
static char *there;		/* b's, which a changes */

static void setup(const struct end_wish *wish)
{
	own_fabric();
	pair_open(&a, &b, wish);
	there = aligned_alloc(64, ROOM);
	CHECK(there);
	memset(there, 0, ROOM);
	CHECK_EQ(fi_mr_reg(b.opened.domain, there, ROOM, ALL, 0, 0, 0, &mr,
			   NULL), 0);
	key = fi_mr_key(mr);
	base = wish->mr_mode == BASIC ? (uintptr_t)there : 0;
}

static void teardown(void)
{
	CHECK(!a.ndone && !b.ndone);
	CHECK_EQ(fi_close(&mr->fid), 0);
	free(there);
	pair_close(&a, &b);
}

/* Each addition sees another value. */
static void pipelined(const struct end_wish *wish, enum fi_datatype type,
		      enum fi_op op)
{
	enum { N = 5000 };
	static uint64_t old[N];
	static bool seen[N];
	uint64_t one = 1;
	unsigned int i;

	setup(wish);
	memset(old, 0, sizeof(old));
	for (i = 0; i < N; i++)
		CHECK_EQ(UNTIL_ROOM(fi_fetch_atomic(a.ep, &one, 1, NULL,
						    &old[i], NULL, 0, base + 8,
						    key, type, op, &old[i])),
			 0);
	for (i = 0; i < N; i++)
		end_ok(&a, &old[i]);
	for (i = 0; i < N; i++) {
		CHECK(old[i] < N && !seen[old[i]]);
		seen[old[i]] = true;
	}
	CHECK_EQ(*(uint64_t *)(void *)(there + 8), N);
	teardown();
}

TEST(pipelined_native)
{
	pipelined(&by_offset, FI_UINT64, FI_SUM);
}

TEST(pipelined_computed)
{
	pipelined(&by_offset, FI_UINT32, FI_SUM);
}

TEST(pipelined_short)
{
	const struct end_wish wish = { .caps = CAPS, .tx_size = 4 };

	pipelined(&wish, FI_UINT16, FI_SUM);
}

TEST(pipelined_virtual)
{
	pipelined(&by_address, FI_UINT32, FI_SUM);
}

/* The first one finds the peer; the buffers are ours at once. */
TEST(inject)
{
	uint8_t count = 0;
	uint32_t value;
	unsigned int i;

	setup(&by_offset);
	for (i = 0; i < 1000; i++) {
		value = 1;
		CHECK_EQ(UNTIL_ROOM(fi_inject_atomic(a.ep, &value, 1, 0,
						     base + 4, key, FI_UINT32,
						     FI_SUM)), 0);
		value = 100;
		CHECK_EQ(UNTIL_ROOM(fi_inject_atomic(a.ep, &count, 1, 0,
						     base + 3, key, FI_UINT8,
						     FI_ATOMIC_WRITE)), 0);
		count++;
	}
	UNTIL(*(volatile uint32_t *)(void *)(there + 4) == 1000);
	CHECK(!a.ndone);
	teardown();
}

/* ---- other processes --------------------------------------------------- */

/*
 * One region of the test's process, which several others change at a time, each
 * in its own way. What is in there:
 */
struct shared {
	uint64_t sum;		/* native, and by comparing and swapping */
	uint32_t halves[2];	/* computed, and native on both */
	uint8_t bytes[8];	/* one for each process */
	double real;
	int16_t most, least;
	uint16_t bits, toggled;
	uint64_t swaps;		/* FI_CSWAP by the program */
	char rest[ROOM];
};

struct crowd {
	uint64_t key;
	char name[NAME_SIZE];
	uint32_t who;
};

#define CROWD	4u
#define TURNS	400u

/* Until no more than these are to complete. */
static void settle(struct end *end, unsigned int *open, unsigned int most)
{
	for (; *open > most; --*open)
		end_ok(end, end);
}

#define DO(value, type, op, member, index)				\
	CHECK_EQ(UNTIL_ROOM(fi_atomic(end.ep, &(value), 1, NULL, 0,	\
		offsetof(struct shared, member) + (index), crowd.key,	\
		type, op, &end)), 0)

/* As a program does it without FI_SUM. */
static void add_by_swap(struct end *end, const struct crowd *crowd)
{
	uint64_t seen = 0, next, old;
	int context;

	for (;;) {
		next = seen + 1;
		CHECK_EQ(UNTIL_ROOM(fi_compare_atomic(end->ep, &next, 1, NULL,
				&seen, NULL, &old, NULL, 0,
				offsetof(struct shared, swaps), crowd->key,
				FI_UINT64, FI_CSWAP, &context)), 0);
		end_ok(end, &context);
		if (old == seen)
			return;
		seen = old;
	}
}

static void change_all(int fd, void *arg)
{
	/* Buffers stay as they are until all is complete. */
	static const uint64_t one = 1, both = 1 | UINT64_C(1) << 32;
	static const uint32_t one32 = 1;
	static const uint16_t ones = 0xffff;
	static const uint8_t one8 = 1;
	static const double half = 0.5;
	unsigned int i, open = 0;
	int16_t numbers16[TURNS];
	struct crowd crowd;
	struct end end;
	uint16_t bit;

	(void)arg;
	end_open(&end, &by_offset);
	hear(fd, &crowd, sizeof(crowd));
	CHECK_EQ(end_know(&end, crowd.name), 0);
	bit = (uint16_t)(1u << crowd.who);
	for (i = 0; i < TURNS; i++) {
		numbers16[i] = (int16_t)((int)i * 10 - (int)crowd.who);
		DO(one, FI_UINT64, FI_SUM, sum, 0);
		DO(both, FI_UINT64, FI_SUM, halves, 0);
		DO(one32, FI_UINT32, FI_SUM, halves, 4 * (i % 2));
		DO(one8, FI_UINT8, FI_SUM, bytes, crowd.who);
		DO(half, FI_DOUBLE, FI_SUM, real, 0);
		DO(numbers16[i], FI_INT16, FI_MAX, most, 0);
		DO(numbers16[i], FI_INT16, FI_MIN, least, 0);
		DO(bit, FI_UINT16, FI_BOR, bits, 0);
		DO(ones, FI_UINT16, FI_BXOR, toggled, 0);
		open += 9;
		if (!(i % 8))
			add_by_swap(&end, &crowd);
		settle(&end, &open, i % 2 ? 60 : 0);
	}
	settle(&end, &open, 0);
	say(fd, &crowd.who, sizeof(crowd.who));
	/* Others may not be ready. */
	hear(fd, &crowd.who, sizeof(crowd.who));
	end_close(&end);
}

static void check_shared(const struct shared *shared)
{
	unsigned int i;

	CHECK_EQ(shared->sum, CROWD * TURNS);
	for (i = 0; i < 2; i++)
		CHECK_EQ(shared->halves[i], CROWD * (TURNS + TURNS / 2));
	for (i = 0; i < 8; i++)
		CHECK_EQ(shared->bytes[i], i < CROWD ? (uint8_t)TURNS : 0);
	CHECK(shared->real == CROWD * TURNS / 2.);
	CHECK_EQ(shared->most, (TURNS - 1) * 10);
	CHECK_EQ(shared->least, 1 - (int)CROWD);
	CHECK_EQ(shared->bits, (1u << CROWD) - 1);
	CHECK_EQ(shared->toggled, 0);
	CHECK_EQ(shared->swaps, CROWD * (TURNS / 8));
}

static void whole_crowd(void)
{
	struct shared *shared = aligned_alloc(64, (sizeof(*shared) + 63) &
						  ~(size_t)63);
	struct actor actors[CROWD];
	struct crowd told;
	uint32_t done;

	shared_fabric();
	for (told.who = 0; told.who < CROWD; told.who++)
		actor_start(&actors[told.who], change_all, NULL);
	CHECK(shared);
	memset(shared, 0, sizeof(*shared));
	end_open(&b, &by_offset);
	CHECK_EQ(fi_mr_reg(b.opened.domain, shared, sizeof(*shared), ALL, 0, 0,
			   0, &mr, NULL), 0);
	told.key = fi_mr_key(mr);
	memcpy(told.name, b.name, NAME_SIZE);
	for (told.who = 0; told.who < CROWD; told.who++)
		say(actors[told.who].fd, &told, sizeof(told));
	/* The target does nothing meanwhile. */
	for (told.who = 0; told.who < CROWD; told.who++)
		hear(actors[told.who].fd, &done, sizeof(done));
	check_shared(shared);
	for (told.who = 0; told.who < CROWD; told.who++) {
		say(actors[told.who].fd, &done, sizeof(done));
		actor_end(&actors[told.who]);
	}
	CHECK_EQ(fi_close(&mr->fid), 0);
	end_close(&b);
	free(shared);
}

TEST(crowd)
{
	whole_crowd();
}

TEST(crowd_without_cma)
{
	setenv("FABREX_LOOPBACK_CMA", "0", 1);
	whole_crowd();
}

/* ---- a target that is killed ------------------------------------------- */

static void be_target(int fd, void *arg)
{
	struct crowd told = { 0 };
	struct end end;
	char *at;

	(void)arg;
	at = calloc(1, ROOM);
	CHECK(at);
	end_open(&end, &by_offset);
	CHECK_EQ(fi_mr_reg(end.opened.domain, at, ROOM, ALL, 0, 0, 0, &mr,
			   NULL), 0);
	told.key = fi_mr_key(mr);
	memcpy(told.name, end.name, NAME_SIZE);
	say(fd, &told, sizeof(told));
	for (;;)
		pause();
}

TEST(killed)
{
	struct actor actor;
	struct crowd told;
	unsigned int i;
	uint64_t one = 1;
	int kind, err;

	shared_fabric();
	actor_start(&actor, be_target, NULL);
	end_open(&a, &by_offset);
	hear(actor.fd, &told, sizeof(told));
	CHECK_EQ(end_know(&a, told.name), 0);
	for (i = 0; i < 100; i++) {
		CHECK_EQ(UNTIL_ROOM(fi_atomic(a.ep, &one, 1, NULL, 0, 0,
					      told.key, FI_UINT32, FI_SUM,
					      &kind)), 0);
		end_ok(&a, &kind);
	}
	actor_kill(&actor);
	/* At last each of them ends with an error. */
	for (i = 0; i < 2; i++) {
		do {
			CHECK_EQ(UNTIL_ROOM(fi_atomic(a.ep, &one, 1, NULL, 0,
					0, told.key, i ? FI_UINT64 : FI_UINT32,
					FI_SUM, &kind)), 0);
			err = end_wait(&a, &kind).err;
		} while (!err);
	}
	end_close(&a);
}
