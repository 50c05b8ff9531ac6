// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Atomic operations: every operation on every type by every call, compared with
 * what C computes; their flags; and all that is refused.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>

#include "ends.h"

#define CAPS	(FI_MSG | FI_RMA | FI_ATOMIC)
#define BASIC	1		/* FI_MR_BASIC: virtual addresses */
#define ALL	(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ROOM	4096u
#define MANY	64u		/* elements at a time */
#define OP_DIFF	19		/* FI_DIFF, since 2.0 */
#define OPS	(OP_DIFF + 1)
#define TYPES	((int)FI_LONG_DOUBLE_COMPLEX + 8)

enum call { BASE, FETCH, COMPARE, CALLS };

static const uint64_t flag_of[CALLS] = {
	[FETCH] = FI_FETCH_ATOMIC, [COMPARE] = FI_COMPARE_ATOMIC,
};

static const struct end_wish by_offset = { .caps = CAPS };
static const struct end_wish by_address = { .caps = CAPS, .mr_mode = BASIC };

/* ---- what C computes --------------------------------------------------- */

#define SWAPS								\
	case FI_MIN:							\
		if (b < a)						\
			a = b;						\
		break;							\
	case FI_MAX:							\
		if (b > a)						\
			a = b;						\
		break;							\
	case FI_ATOMIC_WRITE:						\
		a = b;							\
		break;							\
	case FI_CSWAP:							\
		a = c == a ? b : a;					\
		break;							\
	case FI_CSWAP_NE:						\
		a = c != a ? b : a;					\
		break;							\
	case FI_CSWAP_LE:						\
		a = c <= a ? b : a;					\
		break;							\
	case FI_CSWAP_LT:						\
		a = c < a ? b : a;					\
		break;							\
	case FI_CSWAP_GE:						\
		a = c >= a ? b : a;					\
		break;							\
	case FI_CSWAP_GT:						\
		a = c > a ? b : a;					\
		break;							\
	case FI_LOR:							\
		a = a || b;						\
		break;							\
	case FI_LAND:							\
		a = a && b;						\
		break;							\
	case FI_LXOR:							\
		a = (a && !b) || (!a && b);				\
		break

#define MODEL_INTEGER(type)						\
static void model_##type(int op, void *at, const void *by, const void *with) \
{									\
	type a, b, c;							\
									\
	memcpy(&a, at, sizeof(a));					\
	memcpy(&b, by, sizeof(b));					\
	memcpy(&c, with, sizeof(c));					\
	switch (op) {							\
	SWAPS;								\
	case FI_SUM:							\
		(void)__builtin_add_overflow(a, b, &a);			\
		break;							\
	case OP_DIFF:							\
		(void)__builtin_sub_overflow(a, b, &a);			\
		break;							\
	case FI_PROD:							\
		(void)__builtin_mul_overflow(a, b, &a);			\
		break;							\
	case FI_BOR:							\
		a = (type)(a | b);					\
		break;							\
	case FI_BAND:							\
		a = (type)(a & b);					\
		break;							\
	case FI_BXOR:							\
		a = (type)(a ^ b);					\
		break;							\
	case FI_MSWAP:							\
		a = (type)((b & c) | (a & ~c));				\
		break;							\
	}								\
	memcpy(at, &a, sizeof(a));					\
}

#define MODEL_REAL(type)						\
static void model_##type(int op, void *at, const void *by, const void *with) \
{									\
	type a, b, c;							\
									\
	memcpy(&a, at, sizeof(a));					\
	memcpy(&b, by, sizeof(b));					\
	memcpy(&c, with, sizeof(c));					\
	switch (op) {							\
	SWAPS;								\
	case FI_SUM:							\
		a = a + b;						\
		break;							\
	case OP_DIFF:							\
		a = a - b;						\
		break;							\
	case FI_PROD:							\
		a = a * b;						\
		break;							\
	}								\
	memcpy(at, &a, sizeof(a));					\
}

MODEL_INTEGER(int8_t)
MODEL_INTEGER(uint8_t)
MODEL_INTEGER(int16_t)
MODEL_INTEGER(uint16_t)
MODEL_INTEGER(int32_t)
MODEL_INTEGER(uint32_t)
MODEL_INTEGER(int64_t)
MODEL_INTEGER(uint64_t)
MODEL_REAL(float)
MODEL_REAL(double)

static const struct {
	size_t size;
	void (*model)(int op, void *at, const void *by, const void *with);
} types[] = {
	[FI_INT8] = { 1, model_int8_t },
	[FI_UINT8] = { 1, model_uint8_t },
	[FI_INT16] = { 2, model_int16_t },
	[FI_UINT16] = { 2, model_uint16_t },
	[FI_INT32] = { 4, model_int32_t },
	[FI_UINT32] = { 4, model_uint32_t },
	[FI_INT64] = { 8, model_int64_t },
	[FI_UINT64] = { 8, model_uint64_t },
	[FI_FLOAT] = { 4, model_float },
	[FI_DOUBLE] = { 8, model_double },
};
#define OFFERED	((int)(sizeof(types) / sizeof(*types)))

static bool is_real(int type)
{
	return type == FI_FLOAT || type == FI_DOUBLE;
}

/* Small numbers, so that they are often equal, and now and then any bits. */
static void number(int type, char *at)
{
	int64_t small = (int64_t)chance(7) - 3;
	uint64_t any = chance(UINT64_MAX);
	double real = (double)small / 2;
	float single = (float)real;

	if (type == FI_DOUBLE)
		memcpy(at, &real, sizeof(real));
	else if (type == FI_FLOAT)
		memcpy(at, &single, sizeof(single));
	else if (chance(3))
		memcpy(at, &small, types[type].size);
	else
		memcpy(at, &any, types[type].size);
}

static void numbers(int type, char *at, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		number(type, at + i * types[type].size);
}

/* ---- two endpoints ----------------------------------------------------- */

static struct end a, b;
static struct fid_mr *mr;
static uint64_t key, base;
static char *there;		/* b's, which a changes */

static uint64_t base_of(const struct end *end, const void *at)
{
	return end->opened.info->domain_attr->mr_mode &
	       (FI_MR_VIRT_ADDR | BASIC) ? (uintptr_t)at : 0;
}

static struct fid_mr *reg(struct end *end, void *at, size_t len,
			  uint64_t access)
{
	struct fid_mr *new;

	CHECK_EQ(fi_mr_reg(end->opened.domain, at, len, access, 0, 0, 0, &new,
			   NULL), 0);
	return new;
}

static void setup(const struct end_wish *wish)
{
	own_fabric();
	pair_open(&a, &b, wish);
	there = aligned_alloc(64, ROOM);
	CHECK(there);
	memset(there, 0, ROOM);
	mr = reg(&b, there, ROOM, ALL);
	key = fi_mr_key(mr);
	base = base_of(&b, there);
}

static void teardown(void)
{
	CHECK(!a.ndone && !b.ndone);
	CHECK_EQ(fi_close(&mr->fid), 0);
	free(there);
	pair_close(&a, &b);
}

/* ---- what is offered --------------------------------------------------- */

static int query(int type, int op, enum call call, size_t *count)
{
	struct fi_atomic_attr attr = { 0 };
	int ret = fi_query_atomic(a.opened.domain, (enum fi_datatype)type,
				  (enum fi_op)op, &attr, flag_of[call]);

	if (!ret) {
		CHECK(type < OFFERED);
		CHECK_EQ(attr.size, types[type].size);
	}
	*count = attr.count;
	return ret;
}

static int valid(int type, int op, enum call call, size_t *count)
{
	enum fi_datatype t = (enum fi_datatype)type;
	enum fi_op o = (enum fi_op)op;

	switch (call) {
	case BASE:
		return fi_atomicvalid(a.ep, t, o, count);
	case FETCH:
		return fi_fetch_atomicvalid(a.ep, t, o, count);
	default:
		return fi_compare_atomicvalid(a.ep, t, o, count);
	}
}

static bool must_be_offered(int type, int op, enum call call)
{
	if (type >= OFFERED)
		return false;
	if (call == COMPARE)
		return op >= FI_CSWAP && op <= FI_MSWAP - is_real(type);
	if (op == FI_LOR || op == FI_LAND || op == FI_LXOR)
		return !is_real(type);
	if (op == FI_BOR || op == FI_BAND || op == FI_BXOR)
		return !is_real(type);
	if (op == OP_DIFF)
		return FI_MAJOR_VERSION >= 2;
	return op <= FI_PROD || op == FI_ATOMIC_WRITE ||
	       (op == FI_ATOMIC_READ && call == FETCH);
}

TEST(offered)
{
	size_t count, same;
	int type, op, call;

	setup(&by_offset);
	for (type = 0; type < TYPES; type++) {
		for (op = 0; op < OPS + 4; op++) {
			for (call = 0; call < CALLS; call++) {
				int ret = query(type, op, call, &count);

				test_note("type %d, op %d, call %d", type, op,
					  call);
				CHECK(!ret || ret == -FI_EOPNOTSUPP);
				if (must_be_offered(type, op, call))
					CHECK_EQ(ret, 0);
				CHECK_EQ(valid(type, op, call, &same), ret);
				if (!ret)
					CHECK(count && count == same);
			}
		}
	}
	CHECK(query(FI_INT64, FI_NOOP, BASE, &count));
	CHECK(fi_query_atomic(a.opened.domain, FI_INT64, FI_SUM, NULL,
			      FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC));
	CHECK(fi_query_atomic(a.opened.domain, FI_INT64, FI_SUM, NULL,
			      FI_TAGGED));
	teardown();
}

/* ---- every operation --------------------------------------------------- */

enum way { PLAIN, VECTOR, MESSAGE, INJECT, WAYS };

static char by[ROOM], with[ROOM], result[ROOM], expected[ROOM], before[ROOM];

struct act {
	int type, op;
	enum call call;
	enum way way;
	size_t at, n;		/* elements */
};

/* In up to three parts. */
static size_t cut(struct fi_ioc *ioc, char *from, size_t n, size_t size,
		  size_t first)
{
	size_t parts = 0, left = n, len = first;

	while (left) {
		len = parts == 2 || len > left || !len ? left : len;
		ioc[parts].addr = from + (n - left) * size;
		ioc[parts++].count = len;
		left -= len;
		len = n / 2;
	}
	return parts;
}

static ssize_t submit_plain(const struct act *act, uint64_t at)
{
	enum fi_datatype t = (enum fi_datatype)act->type;
	enum fi_op o = (enum fi_op)act->op;

	switch (act->call) {
	case BASE:
		return fi_atomic(a.ep, by, act->n, NULL, 0, at, key, t, o, &a);
	case FETCH:
		return fi_fetch_atomic(a.ep, o == FI_ATOMIC_READ ? NULL : by,
				       act->n, NULL, result, NULL, 0, at, key,
				       t, o, &a);
	default:
		return fi_compare_atomic(a.ep, by, act->n, NULL, with, NULL,
					 result, NULL, 0, at, key, t, o, &a);
	}
}

static ssize_t submit_vector(const struct act *act, uint64_t at)
{
	enum fi_datatype t = (enum fi_datatype)act->type;
	size_t size = types[act->type].size, n1, n2, n3;
	enum fi_op o = (enum fi_op)act->op;
	struct fi_ioc v1[3], v2[3], v3[3];

	n1 = cut(v1, by, act->n, size, 1);
	n2 = cut(v2, with, act->n, size, 2);
	n3 = cut(v3, result, act->n, size, act->n / 2);
	switch (act->call) {
	case BASE:
		return fi_atomicv(a.ep, v1, NULL, n1, 0, at, key, t, o, &a);
	case FETCH:
		return fi_fetch_atomicv(a.ep, v1, NULL, n1, v3, NULL, n3, 0,
					at, key, t, o, &a);
	default:
		return fi_compare_atomicv(a.ep, v1, NULL, n1, v2, NULL, n2, v3,
					  NULL, n3, 0, at, key, t, o, &a);
	}
}

/* The targets are parts, too; and flags are of this call alone. */
static ssize_t submit_message(const struct act *act, uint64_t at,
			      uint64_t flags)
{
	size_t size = types[act->type].size, i;
	struct fi_ioc v1[3], v2[3], v3[3], v4[3];
	struct fi_rma_ioc targets[3];
	struct fi_msg_atomic msg = {
		.msg_iov = v1,
		.rma_iov = targets,
		.datatype = (enum fi_datatype)act->type,
		.op = (enum fi_op)act->op,
		.context = &a,
	};
	size_t n2, n3;

	msg.iov_count = cut(v1, by, act->n, size, 3);
	n2 = cut(v2, with, act->n, size, 1);
	n3 = cut(v3, result, act->n, size, 2);
	msg.rma_iov_count = cut(v4, NULL, act->n, size, act->n / 3);
	for (i = 0; i < msg.rma_iov_count; i++)
		targets[i] = (struct fi_rma_ioc){
			.addr = at + (uintptr_t)v4[i].addr,
			.count = v4[i].count,
			.key = key,
		};
	switch (act->call) {
	case BASE:
		return fi_atomicmsg(a.ep, &msg, flags);
	case FETCH:
		if (act->op == FI_ATOMIC_READ) {
			msg.msg_iov = NULL;
			msg.iov_count = 0;
		}
		return fi_fetch_atomicmsg(a.ep, &msg, v3, NULL, n3, flags);
	default:
		return fi_compare_atomicmsg(a.ep, &msg, v2, NULL, n2, v3, NULL,
					    n3, flags);
	}
}

static ssize_t submit(const struct act *act, uint64_t at)
{
	ssize_t ret;

	switch (act->way) {
	case PLAIN:
		return submit_plain(act, at);
	case VECTOR:
		return submit_vector(act, at);
	case MESSAGE:
		return submit_message(act, at, FI_DELIVERY_COMPLETE);
	default:
		ret = submit_message(act, at, FI_INJECT);
		if (!ret) {	/* they are ours again */
			memset(by, 0xee, sizeof(by));
			memset(with, 0xee, sizeof(with));
		}
		return ret;
	}
}

static void one(const struct act *act)
{
	size_t size = types[act->type].size, from = act->at * size, i;
	struct done done;

	test_note("type %d, op %d, call %d, way %d: %zu from %zu", act->type,
		  act->op, act->call, act->way, act->n, act->at);
	fill(there, ROOM, (unsigned int)act->at);
	numbers(act->type, there + from, act->n);
	numbers(act->type, by, act->n);
	numbers(act->type, with, act->n);
	memset(result, 0x5a, sizeof(result));
	memcpy(before, there, ROOM);
	memcpy(expected, there, ROOM);
	for (i = 0; i < act->n; i++)
		types[act->type].model(act->op, expected + from + i * size,
				       by + i * size, with + i * size);
	CHECK_EQ(UNTIL_ROOM(submit(act, base + from)), 0);
	done = end_ok(&a, &a);
	CHECK_EQ(done.flags, FI_ATOMIC | (act->call == BASE ? FI_WRITE :
							      FI_READ));
	CHECK(!memcmp(there, expected, ROOM));
	if (act->call != BASE)
		CHECK(!memcmp(result, before + from, act->n * size));
	for (i = act->call == BASE ? 0 : act->n * size; i < ROOM; i++)
		CHECK_EQ((unsigned char)result[i], 0x5a);
}

static void all_ways(int type, int op, enum call call)
{
	static const size_t counts[] = { 1, 1, 2, 3, 5, 8, 17, MANY };
	struct act act = { .type = type, .op = op, .call = call };
	unsigned int i;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		act.n = counts[i];
		act.at = chance(20);
		act.way = (enum way)(i % WAYS);
		one(&act);
		act.at = chance(20);
		act.way = (enum way)chance(WAYS);
		one(&act);
	}
}

static void all_operations(const struct end_wish *wish)
{
	int type, op, call;
	size_t count;

	setup(wish);
	for (type = 0; type < OFFERED; type++)
		for (op = 0; op < OPS; op++)
			for (call = 0; call < CALLS; call++)
				if (!query(type, op, (enum call)call, &count))
					all_ways(type, op, (enum call)call);
	teardown();
}

TEST(operations)
{
	all_operations(&by_offset);
}

TEST(operations_virtual)
{
	all_operations(&by_address);
}

TEST(operations_serial)
{
	const struct end_wish wish = {
		.caps = CAPS,
		.threading = FI_THREAD_DOMAIN,
	};

	all_operations(&wish);
}

/* Data goes through bounce buffers of libfabrex. */
TEST(operations_without_cma)
{
	setenv("FABREX_LOOPBACK_CMA", "0", 1);
	all_operations(&by_offset);
}

/* As many elements as the provider says. */
TEST(count)
{
	size_t count, size, i;
	uint16_t *big, *old;
	struct fid_mr *big_mr;

	setup(&by_offset);
	CHECK_EQ(query(FI_UINT16, FI_SUM, FETCH, &count), 0);
	size = count * sizeof(*big);
	big = aligned_alloc(64, (size + 127) & ~(size_t)63);
	old = calloc(count, sizeof(*old));
	CHECK(big && old);
	for (i = 0; i < count; i++)
		big[i] = (uint16_t)i;
	big_mr = reg(&b, big, (size + 127) & ~(size_t)63, ALL);
	CHECK_EQ(fi_fetch_atomic(a.ep, big, count, NULL, old, NULL, 0,
				 base_of(&b, big), fi_mr_key(big_mr),
				 FI_UINT16, FI_ATOMIC_READ, &a), 0);
	end_ok(&a, &a);
	for (i = 0; i < count; i++)
		CHECK_EQ(old[i], (uint16_t)i);
	CHECK_EQ(fi_atomic(a.ep, old, count, NULL, 0, base_of(&b, big),
			   fi_mr_key(big_mr), FI_UINT16, FI_SUM, &a), 0);
	end_ok(&a, &a);
	for (i = 0; i < count; i++)
		CHECK_EQ(big[i], (uint16_t)(2 * i));
	CHECK(fi_atomic(a.ep, old, count + 1, NULL, 0, 0, fi_mr_key(big_mr),
			FI_UINT16, FI_SUM, &a) < 0);
	CHECK_EQ(fi_close(&big_mr->fid), 0);
	free(big);
	free(old);
	teardown();
}

/* ---- flags ------------------------------------------------------------- */

/* What is fenced sees all that was before, whatever that takes. */
TEST(fence)
{
	const struct act read = {
		.type = FI_UINT32, .op = FI_ATOMIC_READ, .call = FETCH, .n = 4,
	};
	uint32_t values[4] = { 1, 2, 3, 4 }, seen;
	unsigned int i, k;

	setup(&by_offset);
	for (i = 1; i <= 200; i++) {
		for (k = 0; k < 4; k++)
			CHECK_EQ(UNTIL_ROOM(fi_inject_atomic(a.ep, values + k,
					1, 0, base + 4 * k, key, FI_UINT32,
					FI_SUM)), 0);
		CHECK_EQ(UNTIL_ROOM(submit_message(&read, base, FI_FENCE)), 0);
		end_ok(&a, &a);
		for (k = 0; k < 4; k++) {
			memcpy(&seen, result + 4 * k, 4);
			CHECK_EQ(seen, i * values[k]);
		}
	}
	teardown();
}

/* Only what asks for a completion has one. */
TEST(selective)
{
	const struct end_wish wish = {
		.caps = CAPS,
		.bind = FI_SELECTIVE_COMPLETION,
	};
	const struct act act = {
		.type = FI_UINT64, .op = FI_SUM, .call = BASE, .n = 1,
	};
	uint64_t one = 1;

	setup(&wish);
	memcpy(by, &one, sizeof(one));
	CHECK_EQ(UNTIL_ROOM(submit_message(&act, base, FI_COMPLETION)), 0);
	end_ok(&a, &a);
	CHECK_EQ(UNTIL_ROOM(submit_message(&act, base, 0)), 0);
	CHECK_EQ(fi_atomic(a.ep, &one, 1, NULL, 0, base, key, FI_UINT64,
			   FI_SUM, &a), 0);
	UNTIL(*(volatile uint64_t *)(void *)there == 3);
	CHECK(!a.ndone);
	/* Errors are told. */
	CHECK_EQ(fi_atomic(a.ep, &one, 1, NULL, 0, base, key + 1, FI_UINT64,
			   FI_SUM, &a), 0);
	CHECK(end_wait(&a, &a).err);
	teardown();
}

/* An endpoint of its own memory. */
TEST(own)
{
	fi_addr_t self;
	uint16_t one = 1, old;
	struct fid_mr *own;

	setup(&by_offset);
	own = reg(&a, there + 64, 64, ALL);
	self = end_know(&a, a.name);
	CHECK_EQ(UNTIL_ROOM(fi_fetch_atomic(a.ep, &one, 1, NULL, &old, NULL,
					    self, 6, fi_mr_key(own), FI_UINT16,
					    FI_SUM, &a)), 0);
	end_ok(&a, &a);
	CHECK_EQ(old, 0);
	CHECK_EQ(there[70], 1);
	CHECK_EQ(fi_close(&own->fid), 0);
	teardown();
}

/* ---- what cannot be done ----------------------------------------------- */

static int failure(enum fi_datatype type, enum fi_op op, uint64_t at,
		   uint64_t with_key, size_t n)
{
	CHECK_EQ(UNTIL_ROOM(fi_fetch_atomic(a.ep, by, n, NULL, result, NULL, 0,
					    at, with_key, type, op, &a)), 0);
	return end_wait(&a, &a).err;
}

static void all_wrong(const struct end_wish *wish)
{
	static const struct {
		enum fi_datatype type;
		enum fi_op op;
	} all[] = {
		{ FI_UINT64, FI_SUM }, { FI_UINT64, FI_BOR },
		{ FI_UINT32, FI_SUM }, { FI_UINT16, FI_ATOMIC_READ },
		{ FI_DOUBLE, FI_PROD },
	};
	struct fid_mr *closed;
	uint64_t gone, of_gone;
	unsigned int i;

	setup(wish);
	closed = reg(&b, there, ROOM, ALL);
	gone = fi_mr_key(closed);
	of_gone = base_of(&b, there);
	CHECK_EQ(failure(FI_UINT64, FI_SUM, of_gone, gone, 1), 0);
	CHECK_EQ(fi_close(&closed->fid), 0);
	fill(there, ROOM, 1);
	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		test_note("%u", i);
		CHECK_EQ(failure(all[i].type, all[i].op, base, key + 1, 1),
			 FI_EKEYREJECTED);
		CHECK_EQ(failure(all[i].type, all[i].op, of_gone, gone, 20),
			 FI_EKEYREJECTED);
		CHECK_EQ(failure(all[i].type, all[i].op, base + ROOM, key, 1),
			 FI_EREMOTEIO);
		CHECK(failure(all[i].type, all[i].op, base - 8, key, 1));
		CHECK(failure(all[i].type, all[i].op, UINT64_MAX - 7, key, 1));
		/* Not at a multiple of its size. */
		CHECK_EQ(failure(all[i].type, all[i].op, base + 9, key, 1),
			 FI_EINVAL);
	}
	CHECK(is_filled(there, ROOM, 1));
	teardown();
}

TEST(wrong)
{
	all_wrong(&by_offset);
}

TEST(wrong_virtual)
{
	all_wrong(&by_address);
}

TEST(rights)
{
	struct fid_mr *read_only, *none;

	setup(&by_offset);
	read_only = reg(&b, there, ROOM, FI_REMOTE_READ);
	none = reg(&b, there, ROOM, FI_READ);
	fill(there, ROOM, 1);
	CHECK_EQ(failure(FI_UINT32, FI_ATOMIC_READ, 4, fi_mr_key(read_only),
			 9), 0);
	CHECK(!memcmp(result, there + 4, 36));
	CHECK_EQ(failure(FI_UINT64, FI_SUM, 0, fi_mr_key(read_only), 1),
		 FI_EACCES);
	CHECK_EQ(failure(FI_UINT8, FI_SUM, 3, fi_mr_key(read_only), 1),
		 FI_EACCES);
	CHECK_EQ(failure(FI_UINT64, FI_SUM, 0, fi_mr_key(none), 1),
		 FI_EACCES);
	CHECK_EQ(failure(FI_UINT64, FI_ATOMIC_READ, 0, fi_mr_key(none), 1),
		 FI_EACCES);
	CHECK(is_filled(there, ROOM, 1));
	CHECK_EQ(fi_close(&read_only->fid), 0);
	CHECK_EQ(fi_close(&none->fid), 0);
	teardown();
}

/* What peers may only write can be changed, though not fetched by a read. */
TEST(write_only)
{
	struct fid_mr *write_only;
	uint8_t one = 1;

	setup(&by_offset);
	write_only = reg(&b, there, ROOM, FI_REMOTE_WRITE);
	CHECK_EQ(fi_atomic(a.ep, &one, 1, NULL, 0, 5, fi_mr_key(write_only),
			   FI_UINT8, FI_SUM, &a), 0);
	end_ok(&a, &a);
	CHECK_EQ(there[5], 1);
	CHECK_EQ(fi_close(&write_only->fid), 0);
	teardown();
}

TEST(refused)
{
	const struct act act = {
		.type = FI_UINT64, .op = FI_SUM, .call = BASE, .n = 1,
	};
	struct fi_ioc ioc = { by, 1 }, two[5] = { { by, 1 }, { by, 1 } };
	struct fi_ioc result_ioc = { result, 2 };

	setup(&by_offset);
	CHECK_EQ(fi_atomic(a.ep, by, 1, NULL, 0, base, key, FI_UINT64,
			   FI_CSWAP, &a), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_atomic(a.ep, by, 1, NULL, 0, base, key, FI_LONG_DOUBLE,
			   FI_SUM, &a), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_atomic(a.ep, by, 1, NULL, 0, base, key,
			   (enum fi_datatype)1000, FI_SUM, &a),
		 -FI_EOPNOTSUPP);
	CHECK_EQ(fi_atomic(a.ep, by, 1, NULL, 0, base, key, FI_UINT64,
			   (enum fi_op)1000, &a), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_atomic(a.ep, by, 1, NULL, 99, base, key, FI_UINT64, FI_SUM,
			   &a), -FI_EINVAL);
	CHECK_EQ(fi_atomicv(a.ep, two, NULL, 5, 0, base, key, FI_UINT64,
			    FI_SUM, &a), -FI_EINVAL);
	CHECK_EQ(fi_fetch_atomicv(a.ep, &ioc, NULL, 1, &result_ioc, NULL, 1, 0,
				  base, key, FI_UINT64, FI_SUM, &a),
		 -FI_EINVAL);
	CHECK_EQ(submit_message(&act, base, FI_REMOTE_CQ_DATA),
		 -FI_EBADFLAGS);
	CHECK(fi_inject_atomic(a.ep, by, a.opened.info->tx_attr->inject_size,
			       0, base, key, FI_UINT64, FI_SUM) < 0);
	teardown();
}
