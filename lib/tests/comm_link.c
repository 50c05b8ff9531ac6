// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of messages between ranks: over the fake fabric, where every byte goes
 * through a queue, and over loopback, where it does not. Ranks are threads.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/failure/failure.h"
#include "coll/link/mailbox.h"
#include "test.h"

#define RANKS	3
#define COMPLETIONS	16	/* that link.c takes at once */
#define SERVICE	"fabric:4711"

struct rank {
	pthread_t thread;
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	uint32_t rank, size;
	bool far;
	void (*work)(struct rank *r);
};

static void *rank_main(void *arg)
{
	static const char *const names[] = { "a.0", "b.0", "c.0" };
	struct rank *r = arg;
	struct fabrex_comm_attr attr = {
		.rank = r->rank, .size = r->size, .bootstrap = SERVICE,
		.timeout_ms = HANG_MS,
	};
	char name[64];

	snprintf(name, sizeof(name), "loopback:link-%d", (int)getpid());
	CHECK_EQ(fabrex_open(r->far ? names[r->rank] : name, &r->port), 0);
	CHECK_EQ(fabrex_comm_create(r->port, &attr, sizeof(attr), &r->comm),
		 0);
	CHECK_EQ(r->comm->links->far, r->far);
	r->work(r);
	fabrex_comm_destroy(r->comm);
	CHECK_EQ(fabrex_close(r->port), 0);
	return NULL;
}

static void run(uint32_t size, bool far, void (*work)(struct rank *r))
{
	struct rank ranks[RANKS] = { 0 };
	uint32_t i;

	for (i = 0; i < size; i++) {
		ranks[i].rank = i;
		ranks[i].size = size;
		ranks[i].far = far;
		ranks[i].work = work;
		CHECK(!pthread_create(&ranks[i].thread, NULL, rank_main,
				      &ranks[i]));
	}
	for (i = 0; i < size; i++)
		CHECK(!pthread_join(ranks[i].thread, NULL));
}

static const struct link_message *next(struct rank *r, uint32_t from,
				       enum link_channel channel)
{
	const struct link_message *m;
	uint32_t patience = 0;

	while (!(m = fxi_link_peek(r->comm, from, channel))) {
		CHECK_EQ(fxi_comm_wait(r->comm, from, patience++), 0);
		CHECK_EQ(fxi_link_progress(r->comm), 0);
	}
	return m;
}

static void *room(struct rank *r, uint32_t to, enum link_channel channel)
{
	uint32_t patience = 0;
	void *p;

	while (!(p = fxi_link_room(r->comm, to, channel))) {
		CHECK_EQ(fxi_comm_wait(r->comm, to, patience++), 0);
		CHECK_EQ(fxi_link_progress(r->comm), 0);
	}
	return p;
}

static uint8_t byte_of(uint32_t rank, uint32_t message, uint32_t i)
{
	return (uint8_t)(rank * 31 + message * 7 + i + (i >> 8));
}

static const uint32_t lengths[] = {
	0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 39, 40, 41, 64, 100,
	1000, 1024, 0, 8, 1,
};
#define LENGTHS	(sizeof(lengths) / sizeof(*lengths))

static void send_one(struct rank *r, uint32_t to, uint32_t message)
{
	uint32_t i, length = lengths[message % LENGTHS];
	enum link_channel channel = message % 3 ? LINK_COLL : LINK_SENDRECV;
	uint8_t small[LINK_SMALL], *p = room(r, to, channel);
	bool in_small = length <= LINK_SMALL && message % 2;

	if (in_small)
		p = small;
	for (i = 0; i < length; i++)
		p[i] = byte_of(r->rank, message, i);
	CHECK_EQ(fxi_link_send(r->comm, to, channel, message, ~(uint64_t)message,
			       in_small ? small : NULL, length), 0);
}

static void receive_one(struct rank *r, uint32_t from, uint32_t message)
{
	enum link_channel channel = message % 3 ? LINK_COLL : LINK_SENDRECV;
	const struct link_message *m = next(r, from, channel);
	const uint8_t *p = fxi_link_payload(r->comm, from, channel);
	uint32_t i;

	CHECK_EQ(m->tag, message);
	CHECK_EQ(m->word, ~(uint64_t)message);
	CHECK_EQ(m->length, lengths[message % LENGTHS]);
	for (i = 0; i < m->length; i++)
		CHECK_EQ(p[i], byte_of(from, message, i));
	fxi_link_pop(r->comm, from, channel);
}

/* Everybody to everybody, themselves too; then a flood in one direction. */
static void all_lengths(struct rank *r)
{
	uint32_t i, message, other;

	for (message = 0; message < 300; message++) {
		for (i = 0; i < r->size; i++)
			send_one(r, (r->rank + i) % r->size, message);
		for (i = 0; i < r->size; i++) {
			other = (r->rank + r->size - i) % r->size;
			receive_one(r, other, message);
		}
	}
	for (message = 0; message < 200 && r->rank == 0; message++)
		send_one(r, 1, message);
	for (message = 0; message < 200 && r->rank == 1; message++)
		receive_one(r, 0, message);
}

TEST(link_messages_far)
{
	run(RANKS, true, all_lengths);
}

TEST(link_messages_near)
{
	run(RANKS, false, all_lengths);
}

/* The slots fill up, not more, and are free again when they were popped. */
static void slots_fill(struct rank *r)
{
	uint32_t i, to = 1;
	uint64_t value = 5;

	if (r->rank == 0) {
		for (i = 0; i < LINK_SLOTS; i++)
			CHECK_EQ(fxi_link_send(r->comm, to, LINK_COLL, i, 0,
					       &value, 8), 0);
		CHECK(!fxi_link_room(r->comm, to, LINK_COLL));
		CHECK_EQ(fxi_link_send(r->comm, to, LINK_COLL, i, 0, &value,
				       8), -EAGAIN);
		CHECK(fxi_link_room(r->comm, to, LINK_SENDRECV));
		CHECK_EQ(fxi_link_send(r->comm, to, LINK_SENDRECV, 77, 0, &value,
				       8), 0);
		/* What rank 1 has taken comes with its own message. */
		next(r, 1, LINK_COLL);
		/* At once, unless headers are being sent again. */
		room(r, to, LINK_COLL);
	} else if (r->rank == 1) {
		CHECK_EQ(next(r, 0, LINK_SENDRECV)->tag, 77);
		CHECK_EQ(next(r, 0, LINK_COLL)->tag, 0);
		fxi_link_pop(r->comm, 0, LINK_COLL);
		CHECK_EQ(fxi_link_send(r->comm, 0, LINK_COLL, 1, 0, &value, 8),
			 0);
	}
}

static void slots(struct rank *r)
{
	struct fabrex_comm *parent = r->comm;

	CHECK_EQ(fabrex_comm_split(parent, 0, 0, &r->comm), 0);
	slots_fill(r);
	fabrex_comm_destroy(r->comm);
	r->comm = parent;
	CHECK_EQ(fabrex_barrier(parent), 0);
}

TEST(link_slots_far)
{
	run(2, true, slots);
}

TEST(link_slots_near)
{
	run(2, false, slots);
}

/* ---- not in order ------------------------------------------------------ */

#define WORDS	(offsetof(struct link_slot, reserved) / sizeof(uint64_t))

static void shuffle(uint32_t *order, uint32_t n, uint32_t seed)
{
	uint32_t i, j, swap;

	for (i = 0; i < n; i++)
		order[i] = i;
	for (i = n - 1; i; i--) {
		seed = seed * 1664525u + 1013904223u;
		j = (seed >> 8) % (i + 1);
		swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
}

/*
 * A message that is there lands once more, over what its slot had before, word
 * by word: it is not seen before the last that differs.
 */
static void land(struct rank *r, uint64_t *before, uint32_t seed)
{
	struct link *link = fxi_link(r->comm, 0, LINK_COLL);
	uint64_t *slot = (uint64_t *)(uintptr_t)
		&link->in[link->popped % LINK_SLOTS];
	uint64_t words[WORDS];
	uint32_t order[WORDS], i, left = 0;

	memcpy(words, slot, sizeof(words));
	memcpy(slot, before, sizeof(words));
	memcpy(before, words, sizeof(words));
	for (i = 0; i < WORDS; i++)
		left += slot[i] != words[i];
	shuffle(order, WORDS, seed);
	for (i = 0; i < WORDS; i++) {
		CHECK_EQ(!fxi_link_peek(r->comm, 0, LINK_COLL), left > 0);
		left -= slot[order[i]] != words[order[i]];
		slot[order[i]] = words[order[i]];
	}
	CHECK(fxi_link_peek(r->comm, 0, LINK_COLL));
}

static void any_order(struct rank *r)
{
	static uint64_t before[LINK_SLOTS][WORDS];
	uint32_t i, other = 1 - r->rank;
	uint64_t value;

	for (i = 0; i < 2000; i++) {
		value = i * 0x9e3779b97f4a7c15ull;
		if (r->rank == 0) {
			room(r, 1, LINK_COLL);
			CHECK_EQ(fxi_link_send(r->comm, 1, LINK_COLL, i % 3,
					       i, &value, 8), 0);
			CHECK_EQ(fxi_link_send(r->comm, 1, LINK_SENDRECV, i, 0,
					       NULL, 0), 0);
		}
		CHECK_EQ(next(r, other, LINK_SENDRECV)->tag, i);
		if (r->rank == 1) {
			land(r, before[i % LINK_SLOTS], i);
			CHECK_EQ(next(r, 0, LINK_COLL)->word, i);
			CHECK(!memcmp(fxi_link_payload(r->comm, 0, LINK_COLL),
				      &value, 8));
			fxi_link_pop(r->comm, 0, LINK_COLL);
			CHECK_EQ(fxi_link_send(r->comm, 0, LINK_SENDRECV, i, 0,
					       NULL, 0), 0);
		}
		fxi_link_pop(r->comm, other, LINK_SENDRECV);
	}
}

TEST(link_words_in_any_order)
{
	run(2, true, any_order);
}

/* ---- lost stores ------------------------------------------------------- */

/* A store through the window that never arrives is made up for by a WRITE. */
static void lost(struct rank *r)
{
	struct mailbox_peer *peer = &r->comm->links->mailbox->peers[1];
	static uint8_t nowhere[1 << 20] __attribute__((aligned(64)));
	volatile uint8_t *pio = peer->pio;
	uint32_t i, patience;

	for (i = 0; i < 3; i++) {
		patience = 0;
		if (r->rank == 1) {
			CHECK_EQ(next(r, 0, LINK_COLL)->tag, i);
			fxi_link_pop(r->comm, 0, LINK_COLL);
			CHECK_EQ(fxi_link_send(r->comm, 0, LINK_COLL, i, 0,
					       NULL, 0), 0);
			continue;
		}
		CHECK(pio);
		CHECK(r->comm->links->mailbox->layout.payload <=
		      sizeof(nowhere));
		peer->pio = nowhere;
		CHECK_EQ(fxi_link_send(r->comm, 1, LINK_COLL, i, 0, NULL, 0),
			 0);
		peer->pio = pio;
		while (!fxi_link_peek(r->comm, 1, LINK_COLL))
			CHECK_EQ(fxi_comm_wait(r->comm, 1, patience++), 0);
		CHECK_EQ(next(r, 1, LINK_COLL)->tag, i);
		fxi_link_pop(r->comm, 1, LINK_COLL);
	}
}

TEST(link_lost_stores)
{
	run(2, true, lost);
}

/*
 * A header that is sent again is read when the queue comes to it: until then
 * nothing else is put in its place, though the other rank has taken the first.
 */
static void resent(struct rank *r)
{
	struct link *link = fxi_link(r->comm, 1, LINK_COLL);
	uint32_t i, acked = link->acked;
	uint64_t at;

	if (r->rank == 0) {
		for (i = 0; i < LINK_SLOTS; i++)
			CHECK_EQ(fxi_link_send(r->comm, 1, LINK_COLL, i, 0,
					       NULL, 0), 0);
		fxi_link_again(r->comm, true);
		CHECK(r->comm->links->asked > 0);
		link->acked = link->sent;
		CHECK(!fxi_link_room(r->comm, 1, LINK_COLL));
		CHECK(!fxi_link_place(r->comm, 1, 1, &at));
		while (r->comm->links->asked)
			CHECK_EQ(fxi_link_poll(r->comm), 0);
		CHECK(fxi_link_room(r->comm, 1, LINK_COLL));
		CHECK(fxi_link_place(r->comm, 1, 1, &at));
		link->acked = acked;
		room(r, 1, LINK_COLL);
		CHECK_EQ(fxi_link_send(r->comm, 1, LINK_COLL, i, 0, NULL, 0),
			 0);
		return;
	}
	for (i = 0; i <= LINK_SLOTS; i++) {
		CHECK_EQ(next(r, 0, LINK_COLL)->tag, i);
		fxi_link_pop(r->comm, 0, LINK_COLL);
	}
}

TEST(link_headers_sent_again_stay)
{
	run(2, true, resent);
}

/* ---- the port ------------------------------------------------------------ */

static void close_and_destroy(struct rank *r)
{
	CHECK_EQ(fabrex_close(r->port), 0);
	fabrex_comm_destroy(r->comm);
	_exit(0);
}

/* Queues and mailboxes are the port's; a child has none of them. */
static void close_too_early(struct rank *r)
{
	struct fabrex_comm *part;
	int status;
	pid_t pid;

	CHECK_EQ(fabrex_comm_split(r->comm, 0, 0, &part), 0);
	CHECK_EQ(fabrex_close(r->port), -EBUSY);
	CHECK_SAYS("2 communicators");
	CHECK_SAYS("fabrex_comm_destroy");
	CHECK_EQ(fabrex_barrier(part), 0);
	fabrex_comm_destroy(part);
	CHECK_EQ(fabrex_close(r->port), -EBUSY);
	CHECK_EQ(fabrex_barrier(r->comm), 0);
	pid = fork();
	if (!pid)
		close_and_destroy(r);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(fabrex_barrier(r->comm), 0);
}

/* ---- failures elsewhere ------------------------------------------------ */

static pthread_barrier_t received;

/* Something in the queue fails, as it does when another rank has left. */
static void fail_one(struct rank *r)
{
	struct mailbox *box = r->comm->links->mailbox;
	const struct mailbox_job job = {
		.what = WRITE_PROBE, .number = r->rank * LINK_CHANNELS,
		.mr = box->ports[0].mr, .length = 8, .remote = 1ull << 40,
	};

	CHECK_EQ(fxi_mailbox_write(r->comm, &job), 0);
}

/* The sender makes no call before it has arrived. */
static void fenced_work(struct rank *r)
{
	uint32_t i;

	for (i = 0; i < 4; i++) {
		if (!r->rank) {
			fail_one(r);
			send_one(r, 1, 18);
		} else {
			receive_one(r, 0, 18);
		}
		pthread_barrier_wait(&received);
	}
	while (!r->rank && r->comm->links->asked)
		CHECK_EQ(fxi_link_poll(r->comm), 0);
	r->comm->links->mailbox->peers[0].unreachable = false;
}

TEST(link_header_is_not_fenced_off)
{
	CHECK(lengths[18] > LINK_SMALL);
	CHECK(!pthread_barrier_init(&received, NULL, 2));
	run(2, true, fenced_work);
}

/*
 * A payload that never arrives. Its failure is looked into before anybody is
 * blamed, and the end of its header is noticed meanwhile: that one must not be
 * sent again, as the receiver would take what was in the slot before.
 */
static void missing_payload(struct rank *r)
{
	struct mailbox *box = r->comm->links->mailbox;
	const struct mailbox_job job = {
		.what = WRITE_PROBE, .number = r->rank * LINK_CHANNELS,
		.mr = box->ports[0].mr,
	};
	struct fabrex_mr *mr = NULL;
	uint32_t i;
	int ret;

	if (!r->rank) {
		/* So that one look at completions ends between the two. */
		for (i = 1; i < COMPLETIONS; i++)
			CHECK_EQ(fxi_mailbox_write(r->comm, &job), 0);
		CHECK_EQ(fabrex_mr_alloc(r->port, 4096, 0, &mr), 0);
		box->layout.payload += 1ull << 40;
		ret = fxi_link_send_from(r->comm, 1, LINK_COLL, 1, 2, mr, 0,
					 100);
		box->layout.payload -= 1ull << 40;
		CHECK_EQ(ret, 0);
		usleep(50000);
		while (!r->comm->error)
			fxi_link_poll(r->comm);
		CHECK_EQ(r->comm->error, -ECONNRESET);
		/* Everything posted before this is complete after it. */
		while (fxi_link_probe(r->comm, 0) == -EINPROGRESS)
			sched_yield();
		CHECK_EQ(r->comm->links->repeated, 0);
		CHECK_EQ(fabrex_mr_deregister(mr), 0);
	}
	pthread_barrier_wait(&received);
	if (r->rank)
		CHECK(!fxi_link_peek(r->comm, 0, LINK_COLL));
	pthread_barrier_wait(&received);
}

TEST(link_header_without_payload)
{
	CHECK(!pthread_barrier_init(&received, NULL, 2));
	run(2, true, missing_payload);
}

/* ---- sleeping ---------------------------------------------------------- */

#define FOR_EVER	(UINT64_MAX / 2)	/* a bell that is missed hangs */

static bool is_asleep(struct rank *r, uint32_t rank)
{
	return __atomic_load_n(fxi_link_board(r->comm, rank, BOARD_AT_BELL),
			       __ATOMIC_ACQUIRE);
}

static const struct link_message *sleep_for_next(struct rank *r, uint32_t from)
{
	const struct link_message *m;

	for (;;) {
		CHECK_EQ(fxi_link_progress(r->comm), 0);
		m = fxi_link_peek(r->comm, from, LINK_COLL);
		if (m)
			return m;
		fxi_link_arm(r->comm);
		CHECK_EQ(fxi_link_progress(r->comm), 0);
		if (!fxi_link_peek(r->comm, from, LINK_COLL))
			fxi_link_sleep(r->comm, FOR_EVER);
	}
}

static void sleepers_agree(struct rank *r)
{
	CHECK(fxi_link_can_sleep(r->comm));
	fxi_link_arm(r->comm);
	while (!is_asleep(r, 1 - r->rank))
		CHECK_EQ(fxi_link_progress(r->comm), 0);
}

/* Small ones and long ones; nobody polls. */
static void sleepers(struct rank *r)
{
	uint32_t i, other = 1 - r->rank, length;
	static const uint8_t bytes[1000];

	sleepers_agree(r);
	for (i = 0; i < 2000; i++) {
		length = i % 3 ? 8 : sizeof(bytes);
		if (length > LINK_SMALL)
			memcpy(fxi_link_room(r->comm, other, LINK_COLL), bytes,
			       length);
		CHECK_EQ(fxi_link_send(r->comm, other, LINK_COLL, i, 0,
				       length > LINK_SMALL ? NULL : bytes,
				       length), 0);
		CHECK_EQ(sleep_for_next(r, other)->tag, i);
		fxi_link_pop(r->comm, other, LINK_COLL);
	}
	CHECK(r->comm->links->asleep);
	fxi_link_stay_awake(r->comm);
	while (is_asleep(r, other))
		CHECK_EQ(fxi_link_progress(r->comm), 0);
}

TEST(link_bells_wake_sleepers)
{
	run(2, true, sleepers);
}

/* More words than the queue has cells for bells: no error, and no lost wake. */
static void many_bells(struct rank *r)
{
	uint64_t word = 0;
	uint32_t i;

	sleepers_agree(r);
	for (i = 0; i < 500 && !r->rank; i++) {
		word = i;
		CHECK_EQ(fxi_link_post(r->comm, 1, BOARD_AT_READ, &word,
				       sizeof(word)), 0);
	}
	if (!r->rank)
		CHECK_EQ(fxi_link_send(r->comm, 1, LINK_COLL, 7, 0, &word, 8),
			 0);
	while (!r->rank && fxi_link_probe(r->comm, 1) == -EINPROGRESS)
		;
	CHECK(!r->comm->error);
	pthread_barrier_wait(&received);
	if (r->rank) {
		CHECK_EQ(sleep_for_next(r, 0)->tag, 7);
		fxi_link_pop(r->comm, 0, LINK_COLL);
		CHECK_EQ(fxi_link_send(r->comm, 0, LINK_COLL, 8, 0, NULL, 0),
			 0);
	} else {
		CHECK_EQ(sleep_for_next(r, 1)->tag, 8);
		fxi_link_pop(r->comm, 1, LINK_COLL);
	}
}

TEST(link_bells_beyond_their_cells)
{
	CHECK(!pthread_barrier_init(&received, NULL, 2));
	run(2, true, many_bells);
}

/* Credits, too: rank 0 sleeps until there is room. */
static void room_wakes(struct rank *r)
{
	uint32_t i;

	sleepers_agree(r);
	for (i = 0; i < 200 && !r->rank; i++) {
		while (!fxi_link_room(r->comm, 1, LINK_COLL)) {
			fxi_link_arm(r->comm);
			if (!fxi_link_room(r->comm, 1, LINK_COLL))
				fxi_link_sleep(r->comm, FOR_EVER);
		}
		CHECK_EQ(fxi_link_send(r->comm, 1, LINK_COLL, i, 0, NULL, 0),
			 0);
	}
	for (i = 0; i < 200 && r->rank; i++) {
		CHECK_EQ(sleep_for_next(r, 0)->tag, i);
		fxi_link_pop(r->comm, 0, LINK_COLL);
	}
}

TEST(link_credits_wake_sleepers)
{
	run(2, true, room_wakes);
}

static pthread_barrier_t armed;

static void *abort_it(void *arg)
{
	struct rank *r = arg;

	pthread_barrier_wait(&armed);
	CHECK_EQ(fabrex_comm_abort(r->comm), 0);
	return NULL;
}

/* Nothing else happens: rank 0 is elsewhere. */
static void abort_wakes(struct rank *r)
{
	pthread_t thread;

	if (r->rank) {
		fxi_link_arm(r->comm);
		CHECK(!pthread_create(&thread, NULL, abort_it, r));
		pthread_barrier_wait(&armed);
		fxi_link_sleep(r->comm, FOR_EVER);
		CHECK(!pthread_join(thread, NULL));
		CHECK_EQ(fabrex_barrier(r->comm), -ECANCELED);
	}
	pthread_barrier_wait(&received);
	if (!r->rank)
		CHECK_EQ(fabrex_barrier(r->comm), -ECONNRESET);
	pthread_barrier_wait(&received);
}

TEST(link_abort_wakes_its_own_thread)
{
	CHECK(!pthread_barrier_init(&received, NULL, 2));
	CHECK(!pthread_barrier_init(&armed, NULL, 2));
	run(2, true, abort_wakes);
}

TEST(comm_keeps_port_open)
{
	run(1, false, close_too_early);
	run(2, false, close_too_early);
	run(2, true, close_too_early);
}
