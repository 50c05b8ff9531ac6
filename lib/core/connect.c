// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Listen, connect and accept: two processes find each other by a service number
 * and exchange blobs in datagrams of one cell. Public half: fabrex_connect(3).
 *
 * Client: queue, resolve, SEND HELLO {nonce, key of its queue, blob}.
 * Server: RECV, check, SEND ANSWER {the nonce, blob} to that queue.
 * Nothing received is trusted: what is not as it should be is dropped silently.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/internal.h"

#define MAGIC		0x32544d58u	/* "XMT2" */
#define CELL		1024u
#define LISTEN_CELLS	64u
#define CONNECT_CELLS	8u
#define RETRY_MS	2
#define RESOLVE_MS	20
#define RECHECK_MS	500
#define PEERS		256u	/* told apart: all that a fabric has */
#define VAIN_MOST	256u
#define VAIN_NS		100000000u

enum { KIND_HELLO = 1, KIND_ANSWER };

/* Little-endian on the wire; 64 bytes, then the blob. */
struct datagram {
	__le32 magic;
	__le16 kind;
	__le16 length;		/* of the blob */
	__le64 nonce;
	__le64 service;
	__le64 key;		/* HELLO: of the queue for the answer */
	__le32 reserved[8];
	uint8_t blob[FABREX_BLOB_MAX];
};
#define HEADER	offsetof(struct datagram, blob)

_Static_assert(sizeof(struct datagram) == CELL, "one cell");

/* A queue with a region for the datagrams it sends. */
struct post_box {
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;
	struct datagram *slots;	/* one for each SEND that can be outstanding */
	struct datagram *out;	/* the one written last */
	uint64_t token;		/* user_data of the last SEND */
	uint32_t outstanding;	/* SENDs without a completion yet */
};

/* A HELLO that was taken from the ring; it keeps one cell of it reserved. */
struct kept {
	struct fabrex_request request;
	uint16_t length;
	uint8_t blob[FABREX_BLOB_MAX];
};

/*
 * Answers in vain: to keys that a peer has named and that were wrong, because
 * the client has gone or is guessing. They are charged to our port's budget
 * (docs/draco.md, section 10). Each peer has VAIN_MOST, and one more every
 * VAIN_NS, so that no single one can exhaust it.
 */
struct vain {
	uint32_t count;
	uint64_t since;		/* ns; when count was right */
};

struct fabrex_listener {
	struct post_box box;
	pid_t pid;		/* whose it is: not a child's */
	uint64_t service;
	unsigned int nkept;
	unsigned int first;
	struct kept kept[LISTEN_CELLS];
	struct vain vain[PEERS];
};

/* One validated datagram. */
struct letter {
	uint16_t kind;
	uint16_t length;
	uint32_t peer;
	uint32_t src_queue;
	uint64_t key;
	uint64_t nonce;
	uint64_t service;
	const uint8_t *blob;
};

static enum port_user box_user(uint64_t service)
{
	return service ? USER_LISTENER : USER_CONNECT;
}

/* Of a listener with its service, of fabrex_connect() without. */
static int box_open(struct post_box *box, struct fabrex_port *port,
		    uint64_t service, uint32_t cells)
{
	struct fabrex_queue_attr attr = {
		.sq_entries = FABREX_SQ_MIN, .rq_entries = cells,
		.cell_size = CELL, .flags = FABREX_QUEUE_EVENTFD,
		.service = service,
	};
	int ret;

	box->port = port;
	box->token = 0;
	box->outstanding = 0;
	ret = fabrex_mr_alloc(port, FABREX_SQ_MIN * sizeof(struct datagram), 0,
			      &box->mr);
	if (ret)
		return ret;
	box->slots = fabrex_mr_addr(box->mr);
	box->out = box->slots;
	ret = fabrex_queue_create(port, &attr, sizeof(attr), &box->queue);
	if (ret)
		fabrex_mr_deregister(box->mr);
	else
		fxi_port_hold(port, box_user(service));
	return ret;
}

static void box_close(struct post_box *box, uint64_t service)
{
	fabrex_queue_destroy(box->queue);
	fabrex_mr_deregister(box->mr);
	fxi_port_drop(box->port, box_user(service));
}

/* Copies what passes the checks. False: the datagram is not one of ours. */
static bool letter_read(const struct fabrex_wc *wc, struct letter *letter)
{
	const struct datagram *d = wc->data;

	if (wc->opcode != FABREX_OP_RECV || wc->status != FABREX_WC_OK ||
	    wc->length < HEADER || wc->length > CELL ||
	    le32toh(d->magic) != MAGIC)
		return false;
	letter->kind = le16toh(d->kind);
	letter->length = le16toh(d->length);
	letter->peer = wc->peer;
	letter->src_queue = wc->src_queue;
	letter->key = le64toh(d->key);
	letter->nonce = le64toh(d->nonce);
	letter->service = le64toh(d->service);
	letter->blob = d->blob;
	return letter->length == wc->length - HEADER;
}

/*
 * Into the next slot: with fewer than FABREX_SQ_MIN SENDs outstanding, the
 * device does not use it any more. -EBUSY otherwise.
 */
static int letter_write(struct post_box *box, uint16_t kind, uint64_t nonce,
			uint64_t service, const void *blob, size_t length)
{
	struct datagram *d = &box->slots[(box->token + 1) % FABREX_SQ_MIN];

	if (box->outstanding >= FABREX_SQ_MIN)
		return fxi_error(EBUSY, "port %s: earlier datagrams have not been sent yet; try again later",
				 box->port->attr.name);
	box->out = d;
	memset(d, 0, HEADER);
	d->magic = htole32(MAGIC);
	d->kind = htole16(kind);
	d->length = htole16((uint16_t)length);
	d->nonce = htole64(nonce);
	d->service = htole64(service);
	d->key = htole64(fabrex_queue_key(box->queue));
	if (length)
		memcpy(d->blob, blob, length);
	return 0;
}

/* Post what letter_write() left in the box. */
static int box_send(struct post_box *box, uint32_t peer, uint64_t key)
{
	size_t offset = (size_t)((char *)box->out - (char *)box->slots);
	int ret;

	ret = fabrex_post_send(box->queue, peer, key, box->mr, offset,
			       HEADER + le16toh(box->out->length), 0,
			       ++box->token);
	if (!ret)
		box->outstanding++;
	return ret;
}

static int timed_out(struct post_box *box, const char *what)
{
	return fxi_error(ETIMEDOUT, "port %s: %s before the timeout",
			 box->port->attr.name, what);
}

/* Next completion; -ETIMEDOUT at the deadline. */
static int box_next(struct post_box *box, struct fabrex_wc *wc,
		    uint64_t deadline)
{
	int ret;

	for (;;) {
		ret = fabrex_poll(box->queue, wc, 1);
		if (ret > 0 && !(wc->opcode & FABREX_OP_RECV))
			box->outstanding--;
		if (ret)
			return ret < 0 ? ret : 0;
		ret = fabrex_wait(box->queue, fxi_remaining_ms(deadline));
		if (ret < 0)
			return ret;
		if (!ret)
			return timed_out(box, "nothing came");
	}
}

static int give_blob(struct fabrex_port *port, const uint8_t *blob,
		     size_t length, void *theirs, size_t *theirs_len)
{
	size_t space = theirs_len ? *theirs_len : 0;

	if (theirs_len)
		*theirs_len = length;
	else if (!theirs)
		return 0;
	if (length > space)
		return fxi_error(EMSGSIZE, "port %s: the other side's blob has %zu bytes, there is space for %zu; supply more",
				 port->attr.name, length, space);
	if (length)
		memcpy(theirs, blob, length);
	return 0;
}

static int check_blob(struct fabrex_port *port, const void *mine,
		      size_t length)
{
	if (length <= FABREX_BLOB_MAX && (mine || !length))
		return 0;
	return fxi_error(EINVAL, "port %s: blob of %zu bytes; send at most %u",
			 port->attr.name, length, FABREX_BLOB_MAX);
}

/* ---- server ------------------------------------------------------------ */

EXPORT int fabrex_listen(struct fabrex_port *port, uint64_t service,
			 struct fabrex_listener **out)
{
	struct fabrex_listener *l;
	int ret;

	if (!service)
		return fxi_error(EINVAL, "port %s: service 0 cannot be offered; use 1024 or more",
				 port->attr.name);
	l = calloc(1, sizeof(*l));
	if (!l)
		return fxi_error(ENOMEM, "port %s: listener: out of memory",
				 port->attr.name);
	l->service = service;
	l->pid = getpid();
	ret = box_open(&l->box, port, service, LISTEN_CELLS);
	if (ret) {
		free(l);
		return ret;
	}
	*out = l;
	return 0;
}

EXPORT void fabrex_listener_close(struct fabrex_listener *l)
{
	if (!l)
		return;
	/* Queue and region of a child end with its port, which may be closed. */
	if (l->pid == getpid())
		box_close(&l->box, l->service);
	free(l);
}

/*
 * Keep a HELLO for later. Its cell is given back only when it is taken, so
 * that no more come in than can be kept: the others' SENDs end with RNR and
 * are repeated.
 */
static bool keep(struct fabrex_listener *l, const struct fabrex_wc *wc)
{
	struct letter letter;
	struct kept *k;

	if (!letter_read(wc, &letter) || letter.kind != KIND_HELLO ||
	    letter.service != l->service || l->nkept == LISTEN_CELLS)
		return false;
	k = &l->kept[(l->first + l->nkept++) % LISTEN_CELLS];
	memset(&k->request, 0, sizeof(k->request));
	k->request.peer = letter.peer;
	k->request.key = letter.key;
	k->request.nonce = letter.nonce;
	k->length = letter.length;
	memcpy(k->blob, letter.blob, letter.length);
	return true;
}

/* Handle one completion of the listener's queue; true if it is our SEND's. */
static bool listener_take(struct fabrex_listener *l,
			  const struct fabrex_wc *wc)
{
	if (!(wc->opcode & FABREX_OP_RECV))
		return wc->user_data == l->box.token;
	if (!keep(l, wc))
		fabrex_recv_done(l->box.queue, 1);
	return false;
}

EXPORT int fabrex_request_next_sized(struct fabrex_listener *l,
				     struct fabrex_request *request,
				     void *theirs, size_t *theirs_len,
				     int timeout_ms, size_t size)
{
	uint64_t deadline = fxi_deadline(timeout_ms);
	struct fabrex_wc wc;
	struct kept *k;
	int ret;

	while (!l->nkept) {
		ret = box_next(&l->box, &wc, deadline);
		if (ret == -ETIMEDOUT)
			return timed_out(&l->box, "nobody connected");
		if (ret)
			return ret;
		listener_take(l, &wc);
	}
	k = &l->kept[l->first];
	l->first = (l->first + 1) % LISTEN_CELLS;
	l->nkept--;
	fabrex_recv_done(l->box.queue, 1);
	fxi_copy_out(request, size, &k->request, sizeof(k->request));
	return give_blob(l->box.port, k->blob, k->length, theirs, theirs_len);
}

/* Completion status of the SEND just posted; others are kept. */
static int listener_sent(struct fabrex_listener *l, uint64_t deadline)
{
	struct fabrex_wc wc;
	int ret;

	do {
		ret = box_next(&l->box, &wc, deadline);
		if (ret)
			return ret;
	} while (!listener_take(l, &wc));
	return wc.status;
}

static struct vain *vain_of(struct fabrex_listener *l, uint32_t peer)
{
	struct vain *v = &l->vain[peer % PEERS];
	uint64_t now = fxi_now_ns(), regained = (now - v->since) / VAIN_NS;

	if (regained >= v->count) {
		*v = (struct vain){ .since = now };
	} else {
		v->count -= (uint32_t)regained;
		v->since += regained * VAIN_NS;
	}
	return v;
}

static int answer_once(struct fabrex_listener *l,
		       const struct fabrex_request *r, const void *mine,
		       size_t length, uint64_t deadline)
{
	int ret;

	ret = letter_write(&l->box, KIND_ANSWER, r->nonce, l->service, mine,
			   length);
	if (!ret)
		ret = box_send(&l->box, r->peer, r->key);
	return ret ? ret : listener_sent(l, deadline);
}

/* What the caller has of a request that fabrex_request_next() gave it. */
static int request_read(struct fabrex_port *port, struct fabrex_request *to,
			const void *from, size_t size)
{
	int ret;

	memset(to, 0, sizeof(*to));
	ret = fxi_copy_in(port, "request", to, sizeof(*to), from, size);
	if (!ret && (size < sizeof(*to) || to->reserved))
		ret = fxi_error(EINVAL, "port %s: request: not one of fabrex_request_next()",
				port->attr.name);
	return ret;
}

EXPORT int fabrex_request_answer_sized(struct fabrex_listener *l,
				       const struct fabrex_request *request,
				       const void *mine, size_t mine_len,
				       int timeout_ms, size_t size)
{
	NO_CANCEL();
	uint64_t deadline = fxi_deadline(timeout_ms);
	int ret = check_blob(l->box.port, mine, mine_len);
	struct fabrex_request r;

	if (!ret)
		ret = request_read(l->box.port, &r, request, size);
	if (ret)
		return ret;
	if (vain_of(l, r.peer)->count >= VAIN_MOST)
		return fxi_error(ECONNRESET, "port %s: answer to peer %u: its clients have used too many wrong keys; answer this request again in %u ms",
				 l->box.port->attr.name, r.peer,
				 VAIN_NS / 1000000);
	while ((ret = answer_once(l, &r, mine, mine_len, deadline)) ==
	       FABREX_WC_RNR) {
		if (!fxi_remaining_ms(deadline))
			return timed_out(&l->box, "the client did not accept the answer");
		poll(NULL, 0, RETRY_MS);
	}
	if (ret <= 0)
		return ret;
	if (ret == FABREX_WC_BAD_QUEUE)
		vain_of(l, r.peer)->count++;
	return fxi_error(ECONNRESET, "port %s: answer to peer %u: %s; the client has gone",
			 l->box.port->attr.name, r.peer, fabrex_wc_str(ret));
}

EXPORT int fabrex_accept(struct fabrex_listener *l, const void *mine,
			 size_t mine_len, void *theirs, size_t *theirs_len,
			 uint32_t *peer, int timeout_ms)
{
	uint64_t deadline = fxi_deadline(timeout_ms);
	size_t space = theirs_len ? *theirs_len : 0;
	struct fabrex_request request;
	int ret;

	do {
		if (theirs_len)
			*theirs_len = space;
		ret = fabrex_request_next(l, &request, theirs, theirs_len,
					  fxi_remaining_ms(deadline));
		if (ret)
			return ret;
		ret = fabrex_request_answer(l, &request, mine, mine_len,
					    fxi_remaining_ms(deadline));
	} while (ret == -ECONNRESET);
	if (!ret && peer)
		*peer = request.peer;
	return ret;
}

/* ---- client ------------------------------------------------------------ */

struct client {
	struct post_box box;
	uint32_t peer;
	uint64_t service;
	uint64_t nonce;
	uint32_t queue;		/* of the listener, as last resolved */
	uint64_t key;
	uint64_t deadline;
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* No service there yet, or the peer is just coming up: worth another try. */
static int client_resolve(struct client *c)
{
	int ret;

	for (;;) {
		ret = fabrex_resolve(c->box.port, c->peer, c->service,
				     &c->queue, &c->key);
		if (ret != -ENOENT && ret != -EHOSTUNREACH)
			return ret;
		if (!fxi_remaining_ms(c->deadline))
			return ret;
		poll(NULL, 0, RESOLVE_MS);
	}
}

static bool is_answer(const struct client *c, const struct fabrex_wc *wc,
		      struct letter *letter)
{
	return letter_read(wc, letter) && letter->kind == KIND_ANSWER &&
	       letter->nonce == c->nonce && letter->service == c->service &&
	       letter->peer == c->peer && letter->src_queue == c->queue;
}

/* 1: answer in *letter, which holds a cell; 0: SEND ended, *status. */
static int client_step(struct client *c, struct letter *letter, int *status,
		       uint64_t deadline)
{
	struct fabrex_wc wc;
	int ret;

	for (;;) {
		ret = box_next(&c->box, &wc, deadline);
		if (ret)
			return ret;
		if (!(wc.opcode & FABREX_OP_RECV)) {
			*status = wc.status;
			return 0;
		}
		if (is_answer(c, &wc, letter))
			return 1;
		fabrex_recv_done(c->box.queue, 1);
	}
}

/* The listener that got the HELLO is still the one that offers the service. */
static bool same_listener(struct client *c)
{
	uint32_t queue;
	uint64_t key;

	return !fabrex_resolve(c->box.port, c->peer, c->service, &queue,
			       &key) && queue == c->queue && key == c->key;
}

/* HELLO was sent. 1: answer; 0: send it again; negative: give up. */
static int client_await(struct client *c, struct letter *letter)
{
	int status, ret;

	for (;;) {
		ret = client_step(c, letter, &status,
				  earlier(c->deadline,
					  fxi_deadline(RECHECK_MS)));
		if (ret != -ETIMEDOUT)
			return ret;
		if (!fxi_remaining_ms(c->deadline))
			return fxi_error(ETIMEDOUT, "port %s: service %llu at peer %u did not answer before the timeout; its server may be busy",
					 c->box.port->attr.name,
					 (unsigned long long)c->service,
					 c->peer);
		if (same_listener(c))
			continue;
		/* It may have answered before it was closed. */
		ret = client_step(c, letter, &status, fxi_deadline(0));
		return ret == -ETIMEDOUT ? 0 : ret;
	}
}

/* One HELLO and its answer; results as client_await(). */
static int client_greet(struct client *c, struct letter *letter)
{
	int status = 0, ret;

	ret = client_resolve(c);
	if (ret)
		return ret;
	ret = box_send(&c->box, c->peer, c->key);
	if (ret)
		return ret;
	ret = client_step(c, letter, &status, c->deadline);
	if (ret)
		return ret;
	if (status == FABREX_WC_OK)
		return client_await(c, letter);
	if (!fxi_remaining_ms(c->deadline))
		return fxi_error(ETIMEDOUT, "port %s: service %llu at peer %u: %s until the timeout",
				 c->box.port->attr.name,
				 (unsigned long long)c->service, c->peer,
				 fabrex_wc_str(status));
	if (status != FABREX_WC_RNR && status != FABREX_WC_BAD_QUEUE &&
	    status != FABREX_WC_UNREACHABLE)
		return fxi_error(EIO, "port %s: request to peer %u: %s",
				 c->box.port->attr.name, c->peer,
				 fabrex_wc_str(status));
	poll(NULL, 0, RETRY_MS);
	return 0;
}

static int new_nonce(struct fabrex_port *port, uint64_t *nonce)
{
	if (getrandom(nonce, sizeof(*nonce), 0) == sizeof(*nonce))
		return 0;
	return fxi_error(EIO, "port %s: no random numbers from the kernel",
			 port->attr.name);
}

static void client_end(void *arg)
{
	struct client *c = arg;

	box_close(&c->box, 0);
}

/* Until it has an answer, which the letter is, or may give up. */
static int client_run(struct client *c, struct letter *letter)
{
	int ret;

	do {
		ret = client_greet(c, letter);
	} while (!ret);
	return ret;
}

EXPORT int fabrex_connect(struct fabrex_port *port, uint32_t peer,
			  uint64_t service, const void *mine, size_t mine_len,
			  void *theirs, size_t *theirs_len, int timeout_ms)
{
	struct client c = {
		.peer = peer, .service = service,
		.deadline = fxi_deadline(timeout_ms),
	};
	struct letter letter;
	int ret;

	ret = check_blob(port, mine, mine_len);
	if (!ret)
		ret = new_nonce(port, &c.nonce);
	if (!ret)
		ret = box_open(&c.box, port, 0, CONNECT_CELLS);
	if (ret)
		return ret;
	/* A thread that is cancelled meanwhile leaves nothing behind. */
	pthread_cleanup_push(client_end, &c);
	ret = letter_write(&c.box, KIND_HELLO, c.nonce, service, mine,
			   mine_len);
	if (!ret)
		ret = client_run(&c, &letter);
	if (ret > 0)
		ret = give_blob(port, letter.blob, letter.length, theirs,
				theirs_len);
	pthread_cleanup_pop(1);
	return ret;
}
