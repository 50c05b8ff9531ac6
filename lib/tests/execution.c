// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Schedules executed by ranks of this one thread, which are stepped in random
 * order, over links of the test's own with as few as one slot: no message may
 * be lost, no rank may wait for ever, every byte has to be right. The executor
 * is compiled in with those links in place of the real ones.
 */
#include <errno.h>
#include <stdlib.h>

/* Inline functions of those headers have it, too. */
#define fxi_now_ns		fake_now_ns

#include "coll/algorithm/execute.h"
#include "mutate.h"
#include "test.h"

#define fxi_link_size		fake_link_size
#define fxi_link_device_size	fake_link_device_size
#define fxi_link_room		fake_link_room
#define fxi_link_send		fake_link_send
#define fxi_link_peek		fake_link_peek
#define fxi_link_payload	fake_link_payload
#define fxi_link_pop		fake_link_pop
#define fxi_link_send_from	fake_link_send_from
#define fxi_link_sent		fake_link_sent
#define fxi_link_flying		fake_link_flying
#define fxi_link_port		fake_link_port
#define fxi_link_decline	fake_link_decline
#define fxi_coll_offer_slots	fake_coll_offer_slots
#define fxi_pass_receive	fake_pass_receive
#define fxi_pass_send		fake_pass_send
#define fxi_pass_widen		fake_pass_widen
#define fxi_pass_settle		fake_pass_settle
#define fxi_pass_copy		fake_pass_copy
#define fxi_execution_advance	fake_execution_advance
#define fxi_execution_check	fake_execution_check
#define fxi_execution_begin	fake_execution_begin
#define fxi_execution_find_ahead	fake_execution_find_ahead
#define fxi_execution_find	fake_execution_find
#define fxi_pieces_rounds	fake_pieces_rounds
#define fxi_pieces_check	fake_pieces_check
#define fxi_piece_start		fake_piece_start
#define fxi_regions_get		fake_regions_get
#define fxi_regions_put		fake_regions_put
#define fxi_region_get_scratch	fake_region_get_scratch
#define fxi_region_has		fake_region_has
#define fxi_region_send		fake_region_send
#define fxi_region_left		fake_region_left
#define fabrex_mr_cache_get	fake_mr_cache_get
#define fabrex_mr_cache_put	fake_mr_cache_put
#define fxi_scheduled		fake_scheduled

int fxi_pass_receive(struct execution *e, uint32_t lane);
void fxi_pass_widen(struct execution *e, uint32_t lane);
int fxi_pass_send(struct execution *e, uint32_t lane);
int fxi_pass_settle(struct execution *e, bool failed);
int fxi_pass_copy(struct execution *e);
void fxi_execution_advance(struct execution *e, uint32_t lane);
int fxi_execution_check(struct execution *e, uint32_t lane,
			const struct link_message *message);
void fxi_execution_begin(struct execution *e);
bool fxi_execution_find_ahead(const struct execution *e, uint32_t lane,
			      struct ahead *tried, struct cursor *c);
bool fxi_execution_find(const struct execution *e, uint32_t lane,
			const struct link_message *message, struct cursor *c);
uint32_t fxi_pieces_rounds(const struct execution *e);
int fxi_pieces_check(const struct execution *e);
uint64_t fxi_piece_start(const struct execution *e, uint64_t count,
			 uint64_t round);
void fxi_regions_get(struct execution *e);
void fxi_region_get_scratch(struct execution *e);
void fxi_regions_put(struct execution *e);
bool fxi_region_has(struct execution *e, uint32_t peer, const uint8_t *from,
		    uint64_t bytes);
int fxi_region_send(struct execution *e, uint32_t lane, const uint8_t *from);
bool fxi_region_left(struct execution *e, uint32_t first, uint32_t n);

/* ---- links ------------------------------------------------------------- */

#define SLOTS	8u

struct way {
	struct link_message messages[SLOTS];
	uint8_t *payloads[SLOTS];
	const uint8_t *from[SLOTS];	/* read when the message lands */
	uint32_t sent, landed, popped;
};

static struct {
	struct way *ways;	/* from * ranks + to */
	uint32_t ranks, slots, size;
	uint32_t pieces;		/* messages of one, at most */
	uint64_t bytes;			/* of payload, so far */
	uint64_t late;			/* messages that landed later */
	uint64_t ahead;			/* and that were sent out of turn */
	uint32_t most;			/* under way from one rank to another */
	uint64_t now, tick;		/* by which it goes on at each look */
} fake;

static struct way *way(uint32_t from, uint32_t to)
{
	CHECK(from != to && from < fake.ranks && to < fake.ranks);
	return &fake.ways[from * fake.ranks + to];
}

static uint32_t fxi_link_size(const struct fabrex_comm *comm)
{
	(void)comm;
	return fake.size;
}

static uint32_t fxi_link_device_size(const struct fabrex_comm *comm)
{
	(void)comm;
	return fake.size * fake.pieces;
}

static void *fxi_link_room(struct fabrex_comm *comm, uint32_t rank,
			   enum link_channel channel)
{
	struct way *l = way(comm->rank, rank);

	CHECK_EQ(channel, LINK_COLL);
	if (l->sent - l->popped == fake.slots)
		return NULL;
	return l->payloads[l->sent % fake.slots];
}

/* Those that are read from where they are take their time. */
static void land(struct way *l)
{
	uint32_t slot;

	while (l->landed != l->sent) {
		slot = l->landed % fake.slots;
		if (l->from[slot]) {
			if (mutate_draw(3))
				return;
			memcpy(l->payloads[slot], l->from[slot],
			       l->messages[slot].length);
			l->from[slot] = NULL;
			fake.late++;
		}
		l->landed++;
		fake.bytes++;
	}
}

static void add(struct way *l, uint32_t tag, uint64_t word, uint32_t length)
{
	CHECK(length && length <= fake.size);
	l->messages[l->sent++ % fake.slots] = (struct link_message){
		.tag = tag, .word = word, .length = length,
	};
	fake.bytes += length;
}

static int fxi_link_send(struct fabrex_comm *comm, uint32_t rank,
			 enum link_channel channel, uint32_t tag,
			 uint64_t word, const void *small, uint32_t length)
{
	void *room = fxi_link_room(comm, rank, channel);

	if (!room)
		return -EAGAIN;
	CHECK(!small || length <= LINK_SMALL);
	if (small)
		memcpy(room, small, length);
	add(way(comm->rank, rank), tag, word, length);
	return 0;
}

static bool is_aside(const struct fabrex_comm *comm);

static int fxi_link_send_from(struct fabrex_comm *comm, uint32_t rank,
			      enum link_channel channel, uint32_t tag,
			      uint64_t word, const struct fabrex_mr *mr,
			      uint64_t offset, uint32_t length)
{
	struct way *l = way(comm->rank, rank);

	if (!fxi_link_room(comm, rank, channel))
		return -EAGAIN;
	fake.ahead += is_aside(comm);
	l->from[l->sent % fake.slots] = (const uint8_t *)mr + offset;
	add(l, tag, word, length);
	if (l->sent - l->landed > fake.most)
		fake.most = l->sent - l->landed;
	return 0;
}

static bool fxi_link_sent(struct fabrex_comm *comm, uint32_t rank,
			  enum link_channel channel)
{
	struct way *l = way(comm->rank, rank);

	CHECK_EQ(channel, LINK_COLL);
	land(l);
	return l->landed == l->sent;
}

uint64_t fxi_now_ns(void)
{
	return fake.now += fake.tick;
}

static uint32_t fxi_link_flying(const struct fabrex_comm *comm, uint32_t rank,
				enum link_channel channel)
{
	struct way *l = way(comm->rank, rank);

	CHECK_EQ(channel, LINK_COLL);
	return (uint32_t)(l->sent - l->landed);
}

static uint32_t fxi_link_port(const struct fabrex_comm *comm, uint32_t rank)
{
	CHECK(rank < comm->size);
	return 0;
}

/* No GPUs here. */
static int fxi_link_decline(struct fabrex_comm *comm, uint32_t rank)
{
	CHECK(rank < comm->size);
	return 0;
}

static int fxi_coll_offer_slots(struct fabrex_coll *coll)
{
	CHECK(!coll->gpu);
	return 0;
}

/* A region is its memory. */
static int fabrex_mr_cache_get(struct fabrex_port *port, void *addr,
			       size_t length, uint32_t access,
			       struct fabrex_mr **mr, uint64_t *offset)
{
	CHECK(!port && length && !access);
	*offset = 0;
	*mr = addr;
	return 0;
}

static void fabrex_mr_cache_put(struct fabrex_mr *mr)
{
	CHECK(mr);
}

static const struct link_message *fxi_link_peek(struct fabrex_comm *comm,
						uint32_t rank,
						enum link_channel channel)
{
	struct way *l = way(rank, comm->rank);

	CHECK_EQ(channel, LINK_COLL);
	land(l);
	return l->landed == l->popped ? NULL :
	       &l->messages[l->popped % fake.slots];
}

static const void *fxi_link_payload(struct fabrex_comm *comm, uint32_t rank,
				    enum link_channel channel)
{
	struct way *l = way(rank, comm->rank);

	CHECK_EQ(channel, LINK_COLL);
	CHECK(l->landed != l->popped);
	return l->payloads[l->popped % fake.slots];
}

/* Whoever looks at it after this sees that it is gone. */
static void fxi_link_pop(struct fabrex_comm *comm, uint32_t rank,
			 enum link_channel channel)
{
	struct way *l = way(rank, comm->rank);

	CHECK_EQ(channel, LINK_COLL);
	CHECK(l->landed != l->popped);
	memset(l->payloads[l->popped++ % fake.slots], 0xee, fake.size);
}

#include "coll/algorithm/region.c"
#include "coll/algorithm/lane.c"
#include "coll/algorithm/pass.c"
#include "coll/algorithm/execute.c"

static void fake_ways_make(uint32_t ranks, uint32_t slots, uint32_t size)
{
	uint32_t i, j;

	fake.ways = calloc((size_t)ranks * ranks, sizeof(*fake.ways));
	CHECK(fake.ways);
	fake.ranks = ranks;
	fake.slots = slots;
	fake.size = size;
	fake.pieces = 1u << mutate_draw(5);
	fake.most = 0;
	fake.bytes = 0;
	fake.late = 0;
	fake.ahead = 0;
	for (i = 0; i < ranks * ranks; i++)
		for (j = 0; j < slots; j++) {
			fake.ways[i].payloads[j] = malloc(size);
			CHECK(fake.ways[i].payloads[j]);
		}
}

static void fake_ways_free(void)
{
	uint32_t i, j;

	for (i = 0; i < fake.ranks * fake.ranks; i++) {
		CHECK_EQ(fake.ways[i].sent, fake.ways[i].popped);
		for (j = 0; j < fake.slots; j++)
			free(fake.ways[i].payloads[j]);
	}
	free(fake.ways);
}

/* ---- ranks ------------------------------------------------------------- */

struct rank {
	struct fabrex_comm comm;
	struct fabrex_coll coll;
	uint8_t *send, *recv;
	bool ended;
};

static bool is_aside(const struct fabrex_comm *comm)
{
	const struct rank *rank = (const struct rank *)comm;
	const struct execution *e = rank->coll.state;

	return e->aside;
}

struct run {
	const struct fabrex_schedule *s;
	struct rank *ranks;
	uint32_t n, type, size;
	uint64_t count;
	bool in_place, coherent;
};

static uint32_t element(uint32_t rank, uint64_t i)
{
	uint64_t x = ((uint64_t)rank + 1) * 0x9e3779b97f4a7c15u ^ i;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)(x >> 20);
}

static uint64_t send_elements(const struct run *r)
{
	return r->s->kind == FABREX_REDUCE_SCATTER ||
	       r->s->kind == FABREX_ALL_TO_ALL ? r->count * r->n : r->count;
}

static uint64_t recv_elements(const struct run *r)
{
	return r->s->kind == FABREX_ALL_GATHER ||
	       r->s->kind == FABREX_ALL_TO_ALL ? r->count * r->n : r->count;
}

/* Values that are finite in every type. */
static void fill(const struct run *r, uint32_t rank, void *to, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++) {
		uint32_t v = element(rank, i);
		uint16_t half = (uint16_t)(0x3000 | (v & 0x8fff));

		if (r->type == FABREX_UINT32)
			memcpy((uint8_t *)to + 4 * i, &v, 4);
		else
			memcpy((uint8_t *)to + 2 * i, &half, 2);
	}
}

static void make_buffers(const struct run *r, struct rank *rank)
{
	uint64_t send = send_elements(r), recv = recv_elements(r);
	uint32_t kind = r->s->kind, me = rank->comm.rank;
	uint64_t large = send > recv ? send : recv;

	rank->recv = malloc(large * r->size + 1);
	CHECK(rank->recv);
	memset(rank->recv, 0xdd, large * r->size);
	rank->send = rank->recv;
	rank->coll.what.recv = rank->recv;
	if (!r->in_place) {
		rank->send = malloc(send * r->size + 1);
		CHECK(rank->send);
	} else if (kind == FABREX_ALL_GATHER) {
		rank->send += me * r->count * r->size;
	} else if (kind == FABREX_REDUCE_SCATTER) {
		rank->coll.what.recv = rank->recv + me * r->count * r->size;
	}
	fill(r, me, rank->send, send);
	rank->coll.what.send = rank->send;
}

static void start(struct run *r, uint32_t i)
{
	struct rank *rank = &r->ranks[i];

	memset(rank, 0, sizeof(*rank));
	rank->comm.rank = i;
	rank->comm.size = r->n;
	rank->comm.nports = 1;
	rank->comm.coherent = r->coherent;
	rank->coll.comm = &rank->comm;
	rank->coll.schedule = r->s;
	rank->coll.what.kind = r->s->kind;
	rank->coll.what.type = r->type;
	rank->coll.what.op = fxi_schedule_reduces(r->s->kind) ? FABREX_SUM : 0;
	rank->coll.what.root = r->s->root;
	rank->coll.what.count = r->count;
	make_buffers(r, rank);
	CHECK_EQ(fxi_scheduled.start(&rank->coll), 0);
}

/* Step them as it comes, sometimes one for long; all together have to end. */
static void step_all(struct run *r)
{
	uint32_t left = r->n, i, vain = 0, times;
	uint64_t before;
	int ret;

	while (left) {
		i = mutate_draw(r->n);
		before = fake.bytes;
		for (times = 1 + mutate_draw(3); times && !r->ranks[i].ended;
		     times--) {
			ret = fxi_scheduled.step(&r->ranks[i].coll);
			CHECK(ret >= 0);
			r->ranks[i].ended = ret;
			left -= (uint32_t)ret;
			if (ret)
				vain = 0;
			else
				CHECK(r->ranks[i].coll.waiting != i);
		}
		vain = fake.bytes != before ? 0 : vain + 1;
		/* Nobody can go on, patient or not. */
		CHECK(vain < 200 * r->n * (PATIENCE + 1));
	}
}

static void finish(struct run *r, uint32_t i)
{
	struct rank *rank = &r->ranks[i];

	fxi_scheduled.end(&rank->coll);
	free(rank->comm.traffic);
	if (!r->in_place)
		free(rank->send);
	free(rank->recv);
}

/* ---- results ----------------------------------------------------------- */

static uint32_t expected(const struct run *r, uint32_t me, uint64_t i)
{
	uint32_t sum = 0, rank;

	switch (r->s->kind) {
	case FABREX_BROADCAST:
		return element(r->s->root, i);
	case FABREX_ALL_GATHER:
		return element((uint32_t)(i / r->count), i % r->count);
	case FABREX_ALL_TO_ALL:
		return element((uint32_t)(i / r->count),
			       me * r->count + i % r->count);
	case FABREX_REDUCE_SCATTER:
		i += me * r->count;
		break;
	}
	for (rank = 0; rank < r->n; rank++)
		sum += element(rank, i);
	return sum;
}

static void check_results(const struct run *r)
{
	uint32_t rank, got;
	uint64_t i;

	for (rank = 0; rank < r->n; rank++) {
		const uint8_t *recv = r->ranks[rank].coll.what.recv;

		if (r->s->kind == FABREX_REDUCE && rank != r->s->root)
			continue;
		for (i = 0; i < recv_elements(r); i++) {
			memcpy(&got, recv + 4 * i, 4);
			CHECK_EQ(got, expected(r, rank, i));
		}
	}
}

/* Only what is to be written is written. */
static void check_sent(const struct run *r)
{
	uint32_t rank, got;
	uint64_t i;

	for (rank = 0; rank < r->n && !r->in_place; rank++)
		for (i = 0; i < send_elements(r); i++) {
			memcpy(&got, r->ranks[rank].send + 4 * i, 4);
			CHECK_EQ(got, element(rank, i));
		}
}

static void execute_begin(struct run *r, uint32_t slots, uint32_t size)
{
	uint32_t i;

	r->n = r->s->ranks;
	r->size = (uint32_t)fabrex_datatype_size(r->type);
	r->ranks = calloc(r->n, sizeof(*r->ranks));
	CHECK(r->ranks);
	fake_ways_make(r->n, slots, size);
	for (i = 0; i < r->n; i++)
		start(r, i);
}

static void execute(struct run *r, uint32_t slots, uint32_t size)
{
	execute_begin(r, slots, size);
	step_all(r);
}

static void end(struct run *r)
{
	uint32_t i;

	for (i = 0; i < r->n; i++)
		finish(r, i);
	fake_ways_free();
	free(r->ranks);
}

static void try(const struct fabrex_schedule *s, uint32_t slots, uint32_t size,
		uint64_t count, bool in_place, bool coherent)
{
	struct run r = {
		.s = s, .count = count, .type = FABREX_UINT32,
		.in_place = in_place && s->kind != FABREX_ALL_TO_ALL,
		.coherent = coherent,
	};

	execute(&r, slots, size);
	check_results(&r);
	check_sent(&r);
	end(&r);
}

/* ---- tests ------------------------------------------------------------- */

static const char *const algorithms[] = {
	"ring", "tree", "halving", "doubling", "direct", "chain", "ring*3",
	"tree*2",
};

#define ALGORITHMS	(sizeof(algorithms) / sizeof(algorithms[0]))

static void try_made(uint32_t kind, const char *algorithm, uint32_t n)
{
	static const uint32_t slots[] = { 1, 2, 8 };
	static const uint32_t sizes[] = { 64, 512, 4096 };
	static const uint32_t counts[] = { 1, 7, 100, 2500 };
	struct fabrex_schedule *s;
	uint32_t i;

	if (fabrex_schedule_make(kind, algorithm, n, n / 3, &s))
		return;
	for (i = 0; i < 4; i++)
		try(s, slots[mutate_draw(3)], sizes[mutate_draw(3)], counts[i],
		    mutate_draw(2), mutate_draw(2));
	fabrex_schedule_free(s);
}

TEST(execution_of_all_made_schedules)
{
	uint32_t kind, n, i;

	mutate_seed(88172645463325252u);
	for (kind = FABREX_ALL_REDUCE; kind <= FABREX_ALL_TO_ALL; kind++)
		for (i = 0; i < ALGORITHMS; i++)
			for (n = 2; n <= 16; n += n < 9 ? 1 : 7)
				try_made(kind, algorithms[i], n);
}

/* Messages that are read late, from buffers which are written to as well. */
/*
 * All messages leave at once, and the root's own result, which no message takes
 * part in, takes more than one step: it has not ended before that is there.
 */
TEST(execution_ends_after_its_own_copies)
{
	const uint32_t size = 4u << 20;
	struct fabrex_schedule *s;

	CHECK_EQ(fabrex_schedule_make(FABREX_BROADCAST, "chain", 2, 0, &s), 0);
	try(s, 8, size, 5u * size / 4, false, true);
	fabrex_schedule_free(s);
}

TEST(execution_from_regions)
{
	struct fabrex_schedule *s;
	uint64_t late = 0;
	uint32_t i, n;

	mutate_seed(1234567891u);
	for (i = 0; i < ALGORITHMS; i++)
		for (n = 2; n <= 5; n++) {
			CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE,
						      algorithms[i], n, 0, &s),
				 0);
			try(s, 3, 16384, 25000, true, false);
			late += fake.late;
			fabrex_schedule_free(s);
		}
	CHECK(late > 100);
}

static void try_text(const char *text)
{
	struct fabrex_schedule *s;

	CHECK_EQ(fabrex_schedule_parse(text, strlen(text), "t", &s), 0);
	try(s, 1, 64, 1000, false, true);
	try(s, 2, 256, 333, true, true);
	try(s, 8, 8192, 20007, false, false);
	fabrex_schedule_free(s);
}

/* Sends of one part to a rank twice, receives from one twice, and relays. */
TEST(execution_of_unusual_schedules)
{
	mutate_seed(362436069u);
	try_text("fabrex-schedule 1\ncollective all-reduce\nranks 3\n"
		 "reduce 0 0>1>2\ncopy 0 2>1>0\n");
	try_text("fabrex-schedule 1\ncollective all-reduce\nranks 4\n"
		 "split 5 1 3\nreduce 0-2 [0>1 1>0 2>3 3>2] [0>2 1>3 2>0 3>1]");
	try_text("fabrex-schedule 1\ncollective reduce-scatter\nranks 3\n"
		 "shard 0 1 2\nshard 1 7\nshard 2 1x3\n"
		 "reduce 0 1>2>0\nreduce 1 2>0 1>0\nreduce 2 0>2>1\n"
		 "reduce 3-4 0>1>2\nreduce 5 1>2\ncopy 5 0>1\n"
		 "reduce 5 1>2\n");
}

/*
 * Rank 1 sends on what comes from rank 0, behind much else, and its own. It does
 * not wait for the former while it has more of the latter.
 */
TEST(execution_overtakes_what_is_late)
{
	static const char text[] =
		"fabrex-schedule 1\ncollective all-gather\nranks 3\n"
		"shard 0 1x4\nshard 1 1\nshard 2 1\n"
		"copy 0-2 0>1 0>2\ncopy 3 0>1>2\n"
		"copy 4 1>0 1>2\ncopy 5 2>0 2>1\n";
	struct fabrex_schedule *s;
	uint64_t ahead = 0;
	uint32_t slots;

	mutate_seed(521288629u);
	CHECK_EQ(fabrex_schedule_parse(text, strlen(text), "t", &s), 0);
	for (slots = 1; slots <= 8; slots *= 2) {
		try(s, slots, 16384, 300000, slots & 2, false);
		ahead += fake.ahead;
	}
	CHECK(ahead > 10);
	fabrex_schedule_free(s);
}

/* As rank 1 begins: what goes ahead in its lane to rank 2? Its act, by chunk. */
static uint32_t chunk_ahead(struct execution *e, struct ahead *tried,
			    struct cursor *c)
{
	uint32_t lane;

	for (lane = 0; !e->p->lanes[lane].sends || e->p->lanes[lane].peer != 2;)
		lane++;
	if (!fxi_execution_find_ahead(e, lane, tried, c))
		return UINT32_MAX;
	return e->p->parts[e->p->acts[c->act].part].chunk;
}

static void arrive(struct execution *e, uint32_t chunk, uint64_t bytes)
{
	uint32_t i;

	for (i = 0; i < e->p->nacts; i++)
		if (!(e->p->acts[i].flags & ACT_SEND) &&
		    e->p->parts[e->p->acts[i].part].chunk == chunk)
			e->done[i] = bytes / e->size;
}

/*
 * Rank 1 passes forty chunks on, and has two of its own, of which the first is in
 * turn. What is least ahead goes first, however many that have not come there are.
 */
TEST(execution_looks_at_all_that_could_go_ahead)
{
	static const char text[] =
		"fabrex-schedule 1\ncollective all-gather\nranks 3\n"
		"shard 0 1x40\nshard 1 1 1\nshard 2 1\n"
		"copy 0-39 0>1>2\ncopy 40-41 1>2 1>0\ncopy 42 2>0 2>1\n";
	struct rank rank = { .comm.size = 3, .comm.nports = 1, .comm.rank = 1,
			     .comm.coherent = true };
	struct ahead tried = { -1, 0 };
	struct fabrex_schedule *s;
	struct execution *e;
	struct cursor c;
	uint32_t i;

	CHECK_EQ(fabrex_schedule_parse(text, strlen(text), "t", &s), 0);
	fake.size = 65536;
	fake.pieces = 4;
	rank.coll.comm = &rank.comm;
	rank.coll.schedule = s;
	rank.coll.what.kind = FABREX_ALL_GATHER;
	rank.coll.what.type = FABREX_INT32;
	rank.coll.what.count = 40 << 20;
	rank.coll.what.send = &rank;
	rank.coll.what.recv = &fake;
	CHECK_EQ(fxi_scheduled.start(&rank.coll), 0);
	e = rank.coll.state;
	CHECK(e->rounds > 8);
	CHECK_EQ(chunk_ahead(e, &tried, &c), 41);
	CHECK_EQ(c.at, 0);
	CHECK_EQ(chunk_ahead(e, &tried, &c), UINT32_MAX);
	/* Half of that has gone; something of others comes. */
	for (i = 0; i < e->p->nacts; i++)
		if (e->p->parts[e->p->acts[i].part].chunk == 41)
			e->done[i] = 10 << 20;
	arrive(e, 17, 64 << 10);
	arrive(e, 39, 4);
	tried = (struct ahead){ -1, 0 };
	CHECK_EQ(chunk_ahead(e, &tried, &c), 17);
	CHECK_EQ(chunk_ahead(e, &tried, &c), 39);
	CHECK_EQ(chunk_ahead(e, &tried, &c), 41);
	CHECK_EQ(c.at, 10 << 20);
	CHECK_EQ(chunk_ahead(e, &tried, &c), UINT32_MAX);
	fxi_scheduled.end(&rank.coll);
	free(rank.comm.traffic);
	fabrex_schedule_free(s);
}

/* No more under way than keeps a slow link busy, however much room there is. */
TEST(execution_does_not_send_far_ahead)
{
	struct fabrex_schedule *s;

	mutate_seed(88675123u);
	CHECK_EQ(fabrex_schedule_make(FABREX_BROADCAST, "tree", 2, 0, &s), 0);
	fake.tick = 2 * PACE_SLOW_NS;
	try(s, 8, 16384, 1000000, false, false);
	CHECK(fake.late > 0);
	CHECK_EQ(fake.most, PACE_LEAST);
	fake.tick = 0;
	try(s, 8, 16384, 1000000, false, false);
	CHECK_EQ(fake.most, 8);
	fabrex_schedule_free(s);
}

/* Whatever was accepted is executed as it should be. */
TEST(execution_of_mutations)
{
	static char text[MUTATE_ROOM];
	struct fabrex_schedule *s;
	uint32_t done = 0, tries;

	mutate_seed(mutate_time());
	for (tries = 0; tries < 20000 && done < 300; tries++) {
		uint32_t kind = 1 + mutate_draw(6);

		if (fabrex_schedule_make(kind,
					 algorithms[mutate_draw(ALGORITHMS)],
					 2 + mutate_draw(5), 0, &s))
			continue;
		CHECK(fabrex_schedule_format(s, text, sizeof(text)) > 0);
		mutate(text, s->ranks);
		mutate(text, s->ranks);
		fabrex_schedule_free(s);
		if (fabrex_schedule_parse(text, strlen(text), "m", &s))
			continue;
		try(s, 1 + mutate_draw(3), 64, 1 + mutate_draw(1000),
		    mutate_draw(2), true);
		fabrex_schedule_free(s);
		done++;
	}
	printf("# %u of %u mutants executed\n", done, tries);
	CHECK(done > 50);
}

/* Bits do not depend on who was first. */
static uint64_t bits(const struct fabrex_schedule *s, uint32_t slots)
{
	struct run r = { .s = s, .count = 777, .type = FABREX_FLOAT16 };
	uint64_t hash[64] = { 0 }, i;
	uint32_t rank;

	execute(&r, slots, 512);
	for (rank = 0; rank < r.n; rank++) {
		hash[rank] = 14695981039346656037u;
		for (i = 0; i < r.count * r.size; i++)
			hash[rank] = (hash[rank] ^ r.ranks[rank].recv[i]) *
				     1099511628211u;
		CHECK_EQ(hash[rank], hash[0]);
	}
	end(&r);
	return hash[0];
}

TEST(execution_is_the_same_every_time)
{
	struct fabrex_schedule *s;
	uint64_t first;
	uint32_t i, again;

	mutate_seed(521288629u);
	for (i = 0; i < ALGORITHMS; i++) {
		CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, algorithms[i],
					      7, 0, &s), 0);
		first = bits(s, 8);
		for (again = 0; again < 5; again++)
			CHECK_EQ(bits(s, 1 + mutate_draw(8)), first);
		fabrex_schedule_free(s);
	}
}

/* A piece of any chunk has to fit into a slot on a GPU, also where those are small. */
static void check_sizes(uint32_t ranks, uint32_t link, uint64_t count,
			uint32_t type)
{
	struct fabrex_schedule *s;
	struct execution *e;
	struct rank rank = { .comm.size = ranks, .comm.coherent = true };
	uint32_t i, round;

	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, "ring", ranks, 0, &s),
		 0);
	fake.size = link;
	fake.pieces = 1u << mutate_draw(5);
	rank.coll.comm = &rank.comm;
	rank.coll.schedule = s;
	rank.coll.what.kind = FABREX_ALL_REDUCE;
	rank.coll.what.type = type;
	rank.coll.what.op = FABREX_SUM;
	rank.coll.what.count = count;
	rank.coll.what.send = rank.coll.what.recv = &rank;
	CHECK_EQ(fxi_scheduled.start(&rank.coll), 0);
	e = rank.coll.state;
	for (i = 0; i < e->p->nparts; i++)
		for (round = 0; round < e->rounds; round++)
			CHECK((fxi_piece_start(e, e->memory[i].count,
					       round + 1) -
			       fxi_piece_start(e, e->memory[i].count, round)) *
			      e->size <= link * fake.pieces);
	fxi_scheduled.end(&rank.coll);
	free(rank.comm.traffic);
	fabrex_schedule_free(s);
}

TEST(execution_of_many_ranks_fits_into_slots)
{
	uint64_t i;

	check_sizes(200, 2048, 1221400, FABREX_UINT8);
	check_sizes(200, 2048, 153100, FABREX_UINT64);
	check_sizes(130, 2048, 398190, FABREX_UINT16);
	for (i = 0; i < 40; i++)
		check_sizes(24, 1024, 24 * 4096 + i * 997, FABREX_UINT8);
}

/*
 * The first of a chain has done its part, and may leave; the second waits for
 * the last, not for the first, whose messages are all here.
 */
static bool waits_for_last(const struct fabrex_schedule *s, uint64_t count)
{
	struct run r = { .s = s, .count = count, .type = FABREX_UINT32 };
	uint32_t i, times;
	bool stuck;

	execute_begin(&r, 8, 4096);
	for (times = 0; times < 4 * PATIENCE; times++)
		for (i = 0; i < 3; i++)
			if (!r.ranks[i].ended)
				r.ranks[i].ended =
					fxi_scheduled.step(&r.ranks[i].coll);
	stuck = r.ranks[0].ended && !r.ranks[2].ended;
	if (stuck)
		CHECK_EQ(r.ranks[2].coll.waiting, 3);
	for (times = 0; times < 40000; times++) {
		i = times % 4;
		if (!r.ranks[i].ended)
			r.ranks[i].ended =
				fxi_scheduled.step(&r.ranks[i].coll);
	}
	end(&r);
	return stuck;
}

TEST(execution_waits_for_who_is_missing)
{
	static const char text[] =
		"fabrex-schedule 1\ncollective reduce\nranks 4\nroot 3\n"
		"reduce 0 0>2>3\nreduce 0 1>3\n";
	struct fabrex_schedule *s;
	uint32_t found = 0;
	uint64_t count;

	CHECK_EQ(fabrex_schedule_parse(text, strlen(text), "t", &s), 0);
	for (count = 1000; count < 24000; count += 1000)
		found += waits_for_last(s, count);
	CHECK(found);
	fabrex_schedule_free(s);
}

/* What is counted is what the chunks' weights say. */
TEST(execution_counts_what_is_sent)
{
	static const char text[] =
		"fabrex-schedule 1\ncollective all-gather\nranks 4\n"
		"shard 0 2 1\nshard 1 2 1\nshard 2 2 1\nshard 3 2 1\n"
		"copy 0 0>1 0>2>3\ncopy 1 0>1>3>2\ncopy 2 1>0 1>3>2\n"
		"copy 3 1>0>2>3\ncopy 4 2>3 2>0>1\ncopy 5 2>3>1>0\n"
		"copy 6 3>2 3>1>0\ncopy 7 3>2>0>1\n";
	struct run r = { .count = 3 * 64 * 100, .type = FABREX_UINT32 };
	struct fabrex_schedule *s;
	const struct fabrex_traffic *t;
	uint64_t third = r.count * 4 / 3;

	mutate_seed(88675123u);
	CHECK_EQ(fabrex_schedule_parse(text, strlen(text), "t", &s), 0);
	r.s = s;
	execute(&r, 8, 4096);
	t = r.ranks[0].comm.traffic;
	CHECK_EQ(t[1].bytes, 6 * third);
	CHECK_EQ(t[2].bytes, 3 * third);
	CHECK(!t[0].bytes && !t[3].bytes);
	CHECK(t[1].messages >= t[1].bytes / 4096);
	end(&r);
	fabrex_schedule_free(s);
}
