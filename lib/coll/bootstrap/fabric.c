// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The exchange over the fabric itself: rank 0 offers a service; the others send
 * it a greeting, which names the memory where it may write the table of all.
 * Called by bootstrap.c.
 *
 * Rank n: landing region, HELLO {rank, size, landing, its part}, answer, wait.
 * Rank 0: when all have come, WRITE the table to every landing, then, if all of
 * these arrived, the word that says so.
 *
 * If a rank has several ports, rank 0 offers the service at each, and the others
 * look for it through each.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "coll/bootstrap/methods.h"

#define MAGIC		0x31544f4f42584246ull	/* "FBXBOOT1" */
#define LANDING		64u	/* bytes before the table */
#define SCAN_MS		5
#define WATCH_MS	100
#define CONNECT_MS	2000
#define GRACE_LOOKS	30u	/* at a root that offers nothing any more */
#define ELSEWHERE_MS	300	/* until other ports than the own are tried */
#define UNSEEN		3u	/* ports beside the own ones */
#define TURN_MS		5	/* at one of several listeners */

enum { STATE_NONE, STATE_ALL, STATE_FAILED };

struct hello {
	uint64_t magic;
	uint64_t nonce;		/* of this attempt, which may be repeated */
	uint32_t size;
	uint32_t rank;
	uint32_t bytes;		/* of its part, which follows */
	uint32_t reserved;
	struct fabrex_remote landing;
};

struct answer {
	uint64_t magic;
	uint32_t error;		/* errno, 0: welcome */
	uint32_t reserved;
	char text[200];
};

static int min_ms(int a, int b)
{
	return a >= 0 && a < b ? a : b;
}

static const char *port_name(const struct bootstrap *b)
{
	return b->port->attr.name;
}

int fxi_fabric_check(struct bootstrap *b)
{
	const char *text = b->address + strlen("fabric:");
	char *end;

	errno = 0;
	b->service = strtoull(text, &end, 0);
	if (*text < '0' || *text > '9' || errno || *end || !b->service)
		return fxi_error(EINVAL, "port %s: bootstrap \"%s\": after fabric: comes a service number, for example fabric:5000",
				 b->port->attr.name, b->address);
	return 0;
}

/* ---- rank 0 ------------------------------------------------------------ */

/* What rank 0 has at one of its ports. */
struct door {
	struct fabrex_port *port;
	struct fabrex_listener *listener;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;		/* the memory */
};

struct host {
	struct bootstrap *b;
	struct door doors[COMM_PORTS];
	uint8_t *memory;		/* its own landing: word, table */
	size_t bytes;
	struct fabrex_remote *landings;
	uint8_t *doors_of;		/* by rank: through which it came */
	uint64_t *nonces;
	bool *came;
};

static void stop_listening(struct host *h)
{
	uint32_t i;

	for (i = 0; i < h->b->nports; i++) {
		fabrex_listener_close(h->doors[i].listener);
		h->doors[i].listener = NULL;
	}
}

static void host_close(struct host *h)
{
	uint32_t i;

	stop_listening(h);
	for (i = h->b->nports; i--;) {
		fabrex_queue_destroy(h->doors[i].queue);
		fabrex_mr_deregister(h->doors[i].mr);
	}
	free(h->landings);
	free(h->doors_of);
	free(h->nonces);
	free(h->came);
}

static int door_open(struct host *h, struct door *door, size_t bytes)
{
	const struct fabrex_queue_attr attr = { .sq_entries = FABREX_SQ_MIN };
	int ret;

	if (!h->memory)
		ret = fabrex_mr_alloc(door->port, bytes, 0, &door->mr);
	else
		ret = fabrex_mr_register(door->port, h->memory, bytes, 0,
					 &door->mr);
	if (ret)
		return ret;
	if (!h->memory)
		h->memory = fabrex_mr_addr(door->mr);
	ret = fabrex_queue_create(door->port, &attr, sizeof(attr),
				  &door->queue);
	return ret ? ret : fabrex_listen(door->port, h->b->service,
					 &door->listener);
}

static int host_open(struct host *h)
{
	uint32_t i, n = h->b->rendezvous.size;
	int ret = 0;

	h->landings = calloc(n, sizeof(*h->landings));
	h->doors_of = calloc(n, sizeof(*h->doors_of));
	h->nonces = calloc(n, sizeof(*h->nonces));
	h->came = calloc(n, sizeof(*h->came));
	if (!h->landings || !h->doors_of || !h->nonces || !h->came)
		return fxi_error(ENOMEM, "port %s: communicator of %u ranks: out of memory",
				 port_name(h->b), n);
	for (i = 0; i < h->b->nports && !ret; i++) {
		h->doors[i].port = h->b->ports[i];
		ret = door_open(h, &h->doors[i], LANDING + n * h->bytes);
	}
	return ret;
}

static uint32_t refuse(struct answer *answer, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static uint32_t refuse(struct answer *answer, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(answer->text, sizeof(answer->text), fmt, ap);
	va_end(ap);
	return (uint32_t)err;
}

/* 0, or an errno, with its reason in the answer. */
static uint32_t judge(const struct host *h, const struct hello *hello,
		      size_t length, struct answer *answer)
{
	uint32_t size = h->b->rendezvous.size;

	if (length < sizeof(*hello) || hello->magic != MAGIC)
		return refuse(answer, EPROTO, "not a greeting of this version");
	if (hello->size != size)
		return refuse(answer, EINVAL, "it waits for %u ranks, not for %u",
			      size, hello->size);
	if (!hello->rank || hello->rank >= size || hello->bytes != h->bytes ||
	    length != sizeof(*hello) + h->bytes ||
	    hello->landing.length < LANDING + size * h->bytes)
		return refuse(answer, EPROTO, "rank %u with %u bytes makes no sense",
			      hello->rank, hello->bytes);
	if (h->came[hello->rank] && h->nonces[hello->rank] != hello->nonce)
		return refuse(answer, EEXIST, "rank %u is there already",
			      hello->rank);
	return 0;
}

static void greet(struct host *h, uint32_t door,
		  const struct fabrex_request *request, const uint8_t *blob,
		  size_t length)
{
	uint64_t deadline = h->b->rendezvous.deadline;
	struct answer answer = { .magic = MAGIC };
	struct hello hello = { 0 };
	int ms = fxi_remaining_ms(deadline);

	memcpy(&hello, blob, length < sizeof(hello) ? length : sizeof(hello));
	answer.error = judge(h, &hello, length, &answer);
	if (ms < 0 || ms > CONNECT_MS)
		ms = CONNECT_MS;
	if (fabrex_request_answer(h->doors[door].listener, request, &answer,
				  sizeof(answer), ms) || answer.error)
		return;
	h->came[hello.rank] = true;
	h->doors_of[hello.rank] = (uint8_t)door;
	h->nonces[hello.rank] = hello.nonce;
	h->landings[hello.rank] = hello.landing;
	memcpy(h->memory + LANDING + hello.rank * h->bytes,
	       blob + sizeof(hello), h->bytes);
}

static bool all_came(const struct host *h)
{
	uint32_t rank;

	for (rank = 0; rank < h->b->rendezvous.size; rank++)
		if (!h->came[rank])
			return false;
	return true;
}

/* At all doors in turn. -ETIMEDOUT: nobody by the deadline. */
static int next_request(struct host *h, uint32_t *door,
			struct fabrex_request *request, uint8_t *blob,
			size_t *length)
{
	uint64_t deadline = h->b->rendezvous.deadline;
	size_t room = *length;
	int ret, ms;

	do {
		*door = (*door + 1) % h->b->nports;
		*length = room;
		ms = fxi_remaining_ms(deadline);
		if (h->b->nports > 1)
			ms = min_ms(ms, TURN_MS);
		ret = fabrex_request_next(h->doors[*door].listener, request,
					  blob, length, ms);
	} while (ret == -ETIMEDOUT && fxi_remaining_ms(deadline));
	return ret;
}

static int collect(struct host *h)
{
	struct fabrex_request request;
	uint8_t blob[FABREX_BLOB_MAX];
	uint32_t door = 0;
	size_t length;
	int ret;

	while (!all_came(h)) {
		length = sizeof(blob);
		ret = next_request(h, &door, &request, blob, &length);
		if (ret == -ETIMEDOUT)
			return fxi_rendezvous_missing(h->b, h->came);
		if (ret)
			return ret;
		greet(h, door, &request, blob, length);
	}
	return 0;
}

/* Counts completions; *failed is the first rank whose WRITE failed. */
static int reap(struct door *door, uint32_t *done, uint32_t *failed)
{
	struct fabrex_wc wc[8];
	int i, n = fabrex_poll(door->queue, wc, 8);

	for (i = 0; i < n; i++) {
		(*done)++;
		if (wc[i].status != FABREX_WC_OK && !*failed)
			*failed = (uint32_t)wc[i].user_data;
	}
	return n;
}

static int reap_all(struct host *h, uint32_t *done, uint32_t *failed)
{
	uint32_t i;
	bool some = false;
	int n;

	for (i = 0; i < h->b->nports; i++) {
		n = reap(&h->doors[i], done, failed);
		if (n < 0)
			return n;
		some |= n > 0;
	}
	if (!some)
		poll(NULL, 0, 0);
	return 0;
}

/* WRITE a part of its own landing to all others. */
static int distribute(struct host *h, size_t offset, size_t length,
		      uint32_t *failed)
{
	uint32_t rank = 1, done = 0, n = h->b->rendezvous.size;
	int ret = 0;

	while (!ret && done < n - 1) {
		if (rank < n) {
			struct door *door = &h->doors[h->doors_of[rank]];

			ret = fabrex_post_write(door->queue, door->mr, offset,
						&h->landings[rank], offset,
						length, 0, rank);
			rank += !ret;
			ret = ret == -EAGAIN ? 0 : ret;
		}
		if (!ret)
			ret = reap_all(h, &done, failed);
		if (!ret && !fxi_remaining_ms(h->b->rendezvous.deadline))
			ret = fxi_error(ETIMEDOUT, "port %s: communicator: the table of ranks could not be written to all of them within the time given; give more timeout_ms",
					port_name(h->b));
	}
	return ret;
}

static int host_serve(struct host *h)
{
	uint64_t *word = (uint64_t *)(void *)h->memory;
	uint32_t failed = 0, ignored = 0;
	int ret;

	ret = collect(h);
	if (!ret)
		ret = distribute(h, LANDING, h->b->rendezvous.size * h->bytes,
				 &failed);
	/*
	 * Greetings from now on are for the next communicator. Not earlier: many
	 * tables take long, and the service shows the others that this rank
	 * lives.
	 */
	stop_listening(h);
	if (ret)
		return ret;
	*word = failed ? STATE_FAILED | (uint64_t)failed << 32 : STATE_ALL;
	ret = distribute(h, 0, sizeof(*word), &ignored);
	if (!ret && failed)
		ret = fxi_error(ECONNRESET, "port %s: communicator: rank %u has gone during the rendezvous; start again",
				port_name(h->b), failed);
	return ret;
}

static int host_exchange(struct bootstrap *b, const void *mine, void *all,
			 size_t bytes)
{
	struct host h = { .b = b, .bytes = bytes };
	int ret = host_open(&h);

	if (!ret) {
		h.came[0] = true;
		memcpy(h.memory + LANDING, mine, bytes);
		ret = host_serve(&h);
	}
	if (!ret)
		memcpy(all, h.memory + LANDING, b->rendezvous.size * bytes);
	host_close(&h);
	return ret;
}

/* ---- the others -------------------------------------------------------- */

struct guest {
	struct bootstrap *b;
	struct fabrex_port *ports[COMM_PORTS + UNSEEN]; /* the rank's, others */
	uint32_t nports;
	uint64_t elsewhere;		/* deadline: only the own one until then */
	struct fabrex_port *port;	/* of these, where rank 0 was found */
	const void *mine;		/* for the table */
	size_t bytes;
	uint64_t nonce;
	struct fabrex_mr *mr;		/* at that port */
	struct fabrex_port *mr_port;
	uint8_t *landing;
	uint32_t root;			/* peer that answered */
	size_t length;			/* of the greeting */
	uint8_t greeting[FABREX_BLOB_MAX];
};

static bool offers(const struct guest *g, uint32_t peer)
{
	uint32_t number;
	uint64_t key;

	return !fabrex_resolve(g->port, peer, g->b->service, &number, &key);
}

/* The peer that offers the service: perhaps this port, to another process. */
static bool find_root_here(struct guest *g)
{
	struct fabrex_peer p;
	uint32_t from = 0;

	g->root = g->port->attr.peer;
	if (offers(g, g->root))
		return true;
	while (!fabrex_peer_next(g->port, from, &p)) {
		g->root = p.peer;
		if (p.up && offers(g, p.peer))
			return true;
		from = p.peer + 1;
	}
	return false;
}

static bool find_root(struct guest *g)
{
	uint32_t i;

	for (i = 0; i < g->nports; i++) {
		g->port = g->ports[i];
		if (find_root_here(g))
			return true;
		if (i + 1 >= g->b->nports && fxi_remaining_ms(g->elsewhere))
			break;
	}
	return false;
}

/* A port that only might have helped has not; the rank's own fails for good. */
static int port_failed(struct guest *g, int ret)
{
	uint32_t i;

	for (i = 0; i < g->b->nports; i++)
		if (g->port == g->ports[i])
			return ret;
	fabrex_mr_deregister(g->mr);
	g->mr = NULL;
	g->mr_port = NULL;
	while (g->ports[i] != g->port)
		i++;
	fabrex_close(g->port);
	g->ports[i] = g->ports[--g->nports];
	return 0;
}

static int no_root(const struct guest *g)
{
	return fxi_error(ETIMEDOUT, "port %s: communicator: rank 0 has not offered %s on fabric %s within the time given; start it, or give more timeout_ms",
			 port_name(g->b), g->b->address,
			 g->b->port->attr.fabric);
}

static int refused(const struct guest *g, const struct answer *answer)
{
	char text[sizeof(answer->text)];

	fxi_printable(text, answer->text, sizeof(text));
	return fxi_error(answer->error == EINVAL ? EINVAL : EPROTO,
			 "port %s: communicator: rank 0 at %s refuses: %s",
			 port_name(g->b), g->b->address, text);
}

/* Where the table will arrive; and the greeting, which says so. */
static int landing_open(struct guest *g)
{
	struct hello hello = {
		.magic = MAGIC, .size = g->b->rendezvous.size,
		.rank = g->b->rendezvous.rank, .bytes = (uint32_t)g->bytes,
		.nonce = g->nonce,
	};
	int ret;

	if (g->mr_port == g->port)
		return 0;
	fabrex_mr_deregister(g->mr);
	g->mr = NULL;
	g->mr_port = NULL;
	ret = fabrex_mr_alloc(g->port, LANDING + hello.size * g->bytes,
			      FABREX_MR_LOCAL_WRITE | FABREX_MR_REMOTE_WRITE,
			      &g->mr);
	if (ret)
		return ret;
	g->mr_port = g->port;
	g->landing = fabrex_mr_addr(g->mr);
	fabrex_mr_remote(g->mr, &hello.landing);
	memcpy(g->greeting, &hello, sizeof(hello));
	memcpy(g->greeting + sizeof(hello), g->mine, g->bytes);
	g->length = sizeof(hello) + g->bytes;
	return 0;
}

/* 1: welcome; 0: try again. */
static int guest_greet(struct guest *g)
{
	struct bootstrap *b = g->b;
	struct answer answer;
	size_t length = sizeof(answer);
	int ret;

	if (!find_root(g)) {
		poll(NULL, 0, SCAN_MS);
		return 0;
	}
	ret = landing_open(g);
	if (ret)
		return port_failed(g, ret);
	ret = fabrex_connect(g->port, g->root, b->service, g->greeting,
			     g->length, &answer, &length,
			     min_ms(fxi_remaining_ms(b->rendezvous.deadline),
				    CONNECT_MS));
	if (ret || length != sizeof(answer) || answer.magic != MAGIC)
		return ret == -ENOMEM || ret == -ENODEV ?
		       port_failed(g, ret) : 0;
	return answer.error ? refused(g, &answer) : 1;
}

/*
 * A root that does not offer the service any more is telling the others, or has
 * died. Looks are counted, not time: on a machine that is slow or was suspended
 * this rank does not look either.
 */
static bool root_lives(struct guest *g, uint32_t *gone)
{
	struct fabrex_peer p;

	if (offers(g, g->root)) {
		*gone = 0;
		return true;
	}
	if (g->root != g->port->attr.peer &&
	    fabrex_peer_next(g->port, g->root, &p) == 0 &&
	    p.peer == g->root && !p.up)
		return false;
	return ++*gone < GRACE_LOOKS;
}

/* The answer may have come too late for fabrex_connect(): rank 0 goes on. */
static bool is_told(const struct guest *g)
{
	const uint64_t *word = (const uint64_t *)(const void *)g->landing;

	return g->mr && __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static int guest_await(struct guest *g)
{
	uint64_t *word = (uint64_t *)(void *)g->landing;
	uint64_t state, watch = fxi_deadline(WATCH_MS);
	uint32_t gone = 0;

	while (!(state = __atomic_load_n(word, __ATOMIC_ACQUIRE))) {
		if (!fxi_remaining_ms(g->b->rendezvous.deadline))
			return fxi_error(ETIMEDOUT, "port %s: communicator: not all of %u ranks have come to %s within the time given; rank 0 says which",
					 port_name(g->b), g->b->rendezvous.size,
					 g->b->address);
		poll(NULL, 0, 1);
		if (fxi_remaining_ms(watch))
			continue;
		watch = fxi_deadline(WATCH_MS);
		if (!root_lives(g, &gone) &&
		    !__atomic_load_n(word, __ATOMIC_ACQUIRE))
			return fxi_error(ECONNRESET, "port %s: communicator: rank 0 has gone during the rendezvous; start again",
					 port_name(g->b));
	}
	if ((uint32_t)state == STATE_ALL)
		return 0;
	return fxi_error(ECONNRESET, "port %s: communicator: rank %u has gone during the rendezvous; start again",
			 port_name(g->b), (uint32_t)(state >> 32));
}

/*
 * The rank's own ports; with a single one, those of its host that see what it does
 * not, too.
 */
static void guest_open(struct guest *g)
{
	g->nports = g->b->nports;
	memcpy(g->ports, g->b->ports, g->nports * sizeof(*g->ports));
	if (g->nports == 1)
		g->nports += fxi_unseen_open(g->b->port, g->ports + 1, UNSEEN);
	g->elsewhere = fxi_deadline(ELSEWHERE_MS);
	if (getrandom(&g->nonce, sizeof(g->nonce), 0) < 0)
		g->nonce = fxi_now_ns();
}

static void guest_close(struct guest *g)
{
	fabrex_mr_deregister(g->mr);
	while (g->nports > g->b->nports)
		fabrex_close(g->ports[--g->nports]);
}

static int guest_exchange(struct bootstrap *b, const void *mine, void *all,
			  size_t bytes)
{
	struct guest g = { .b = b, .mine = mine, .bytes = bytes };
	int ret;

	guest_open(&g);
	do {
		ret = guest_greet(&g);
		if (!ret && is_told(&g))
			ret = 1;
		if (!ret && !fxi_remaining_ms(b->rendezvous.deadline))
			ret = no_root(&g);
	} while (!ret);
	if (ret > 0)
		ret = guest_await(&g);
	if (!ret)
		memcpy(all, g.landing + LANDING, b->rendezvous.size * bytes);
	guest_close(&g);
	return ret;
}

int fxi_fabric_exchange(struct rendezvous *rendezvous, const void *mine,
			void *all, size_t bytes)
{
	struct bootstrap *b = bootstrap_of(rendezvous);

	if (rendezvous->rank)
		return guest_exchange(b, mine, all, bytes);
	return host_exchange(b, mine, all, bytes);
}
