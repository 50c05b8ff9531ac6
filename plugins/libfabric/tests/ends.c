// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

static struct end *ends;

/* ---- opening and closing ----------------------------------------------- */

static struct fi_info *wanted(const struct end_wish *wish)
{
	struct fi_info *hints = hints_new(), *info;
	char service[24];

	hints->caps = wish->caps ? wish->caps :
		      FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
	hints->tx_attr->op_flags = wish->tx_flags;
	hints->tx_attr->size = wish->tx_size;
	hints->rx_attr->op_flags = wish->rx_flags;
	hints->rx_attr->size = wish->rx_size;
	hints->domain_attr->threading = wish->threading;
	if (wish->mr_mode)
		hints->domain_attr->mr_mode = wish->mr_mode;
	hints->ep_attr->type = FI_EP_RDM;
	snprintf(service, sizeof(service), "%llu",
		 (unsigned long long)wish->service);
	CHECK_EQ(fi_getinfo(VERSION, NULL, wish->service ? service : NULL,
			    wish->service ? FI_SOURCE : 0, hints, &info), 0);
	fi_freeinfo(hints);
	return info;
}

static void open_fabric(struct end *end, const struct end_wish *wish)
{
	end->opened.info = wanted(wish);
	if (wish->of) {
		end->of = wish->of;
		end->opened.fabric = wish->of->opened.fabric;
		end->opened.domain = wish->of->opened.domain;
		return;
	}
	CHECK_EQ(fi_fabric(end->opened.info->fabric_attr, &end->opened.fabric,
			   NULL), 0);
	CHECK_EQ(fi_domain(end->opened.fabric, end->opened.info,
			   &end->opened.domain, NULL), 0);
}

static void open_counter(struct end *end, uint64_t counts)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

	CHECK_EQ(fi_cntr_open(end->opened.domain, &attr, &end->cntr, NULL), 0);
	CHECK_EQ(fi_ep_bind(end->ep, &end->cntr->fid, counts), 0);
}

void end_open(struct end *end, const struct end_wish *wish)
{
	static const struct end_wish usual;
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	size_t len = sizeof(end->name);

	if (!wish)
		wish = &usual;
	memset(end, 0, sizeof(*end));
	open_fabric(end, wish);
	cq.wait_obj = wish->wait ? wish->wait : FI_WAIT_NONE;
	CHECK_EQ(fi_cq_open(end->opened.domain, &cq, &end->cq, NULL), 0);
	CHECK_EQ(fi_av_open(end->opened.domain, &av, &end->av, NULL), 0);
	CHECK_EQ(fi_endpoint(end->opened.domain, end->opened.info, &end->ep,
			     end), 0);
	CHECK_EQ(fi_ep_bind(end->ep, &end->cq->fid,
			    FI_TRANSMIT | FI_RECV | wish->bind), 0);
	CHECK_EQ(fi_ep_bind(end->ep, &end->av->fid, 0), 0);
	if (wish->counts)
		open_counter(end, wish->counts);
	CHECK_EQ(fi_enable(end->ep), 0);
	CHECK_EQ(fi_getname(&end->ep->fid, end->name, &len), 0);
	end->done = calloc(DONE_MAX, sizeof(*end->done));
	CHECK(end->done);
	end->next = ends;
	ends = end;
}

void end_close(struct end *end)
{
	struct end **at = &ends;

	while (*at && *at != end)
		at = &(*at)->next;
	CHECK(*at);
	*at = end->next;
	CHECK_EQ(fi_close(&end->ep->fid), 0);
	CHECK_EQ(fi_close(&end->av->fid), 0);
	CHECK_EQ(fi_close(&end->cq->fid), 0);
	if (end->cntr)
		CHECK_EQ(fi_close(&end->cntr->fid), 0);
	if (!end->of) {
		CHECK_EQ(fi_close(&end->opened.domain->fid), 0);
		CHECK_EQ(fi_close(&end->opened.fabric->fid), 0);
	}
	fi_freeinfo(end->opened.info);
	free(end->done);
}

fi_addr_t end_know(struct end *end, const char *name)
{
	fi_addr_t addr;

	CHECK_EQ(fi_av_insert(end->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

int av_name(struct end *end, fi_addr_t addr, char name[NAME_SIZE])
{
	size_t len = NAME_SIZE;

	return fi_av_lookup(end->av, addr, name, &len);
}

void pair_open(struct end *a, struct end *b, const struct end_wish *wish)
{
	end_open(a, wish);
	end_open(b, wish);
	CHECK_EQ(end_know(a, b->name), 0);
	CHECK_EQ(end_know(b, a->name), 0);
}

void pair_close(struct end *a, struct end *b)
{
	end_close(a);
	end_close(b);
}

/* ---- completions ------------------------------------------------------- */

static struct done *room(struct end *end)
{
	CHECK(end->ndone < DONE_MAX);
	return &end->done[end->ndone++];
}

static void keep(struct end *end, const struct fi_cq_tagged_entry *entry,
		 fi_addr_t source)
{
	*room(end) = (struct done){
		.context = entry->op_context,
		.flags = entry->flags,
		.data = entry->data,
		.tag = entry->tag,
		.len = entry->len,
		.buf = entry->buf,
		.source = source,
	};
}

static void keep_error(struct end *end)
{
	struct fi_cq_err_entry entry = { 0 };

	CHECK_EQ(fi_cq_readerr(end->cq, &entry, 0), 1);
	*room(end) = (struct done){
		.context = entry.op_context,
		.flags = entry.flags,
		.data = entry.data,
		.tag = entry.tag,
		.len = entry.len,
		.olen = entry.olen,
		.buf = entry.buf,
		.source = FI_ADDR_NOTAVAIL,
		.err = entry.err,
		.prov_errno = entry.prov_errno,
	};
}

static void progress(struct end *end)
{
	struct fi_cq_tagged_entry entries[16];
	fi_addr_t sources[16];
	ssize_t n, i;

	n = fi_cq_readfrom(end->cq, entries, 16, sources);
	if (n == -FI_EAVAIL)
		keep_error(end);
	else if (n != -FI_EAGAIN)
		CHECK(n > 0);
	for (i = 0; i < n; i++)
		keep(end, &entries[i], sources[i]);
}

void ends_progress(void)
{
	struct end *end;

	for (end = ends; end; end = end->next)
		progress(end);
}

static struct done take(struct end *end, size_t at)
{
	struct done done = end->done[at];

	end->ndone--;
	memmove(&end->done[at], &end->done[at + 1],
		(end->ndone - at) * sizeof(done));
	return done;
}

struct done end_next(struct end *end)
{
	UNTIL(end->ndone);
	return take(end, 0);
}

static size_t find(const struct end *end, const void *context)
{
	size_t i;

	for (i = 0; i < end->ndone && end->done[i].context != context; i++)
		;
	return i;
}

bool end_has(const struct end *end, void *context)
{
	return find(end, context) < end->ndone;
}

struct done end_wait(struct end *end, void *context)
{
	UNTIL(end_has(end, context));
	return take(end, find(end, context));
}

struct done end_ok(struct end *end, void *context)
{
	struct done done = end_wait(end, context);

	if (done.err)
		test_note("%s: %s", fi_strerror(done.err),
			  end_why(end, &done));
	CHECK_EQ(done.err, 0);
	return done;
}

const char *end_why(struct end *end, const struct done *done)
{
	static char text[256];

	return fi_cq_strerror(end->cq, done->prov_errno, NULL, text,
			      sizeof(text));
}

/* ---- bytes ------------------------------------------------------------- */

static unsigned char byte_at(size_t at, unsigned int seed)
{
	return (unsigned char)((at * 31 + seed * 17 + (at >> 8)) ^ seed >> 8);
}

void fill(void *to, size_t len, unsigned int seed)
{
	unsigned char *byte = to;
	size_t i;

	for (i = 0; i < len; i++)
		byte[i] = byte_at(i, seed);
}

bool is_filled(const void *at, size_t len, unsigned int seed)
{
	const unsigned char *byte = at;
	size_t i;

	for (i = 0; i < len; i++)
		if (byte[i] != byte_at(i, seed))
			return false;
	return true;
}

uint64_t chance(uint64_t below)
{
	static uint64_t state;
	const char *seed;

	if (!state) {
		seed = getenv("FABREX_FI_SEED");
		state = 88172645463325252ull ^
			(seed ? strtoull(seed, NULL, 0) : 0);
	}
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

/* ---- other processes --------------------------------------------------- */

void actor_start(struct actor *actor, void (*play)(int fd, void *arg),
		 void *arg)
{
	int fds[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	fflush(stdout);
	actor->pid = fork();
	CHECK(actor->pid >= 0);
	if (!actor->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		alarm(test_limit_s);
		play(fds[1], arg);
		fflush(stdout);
		_exit(0);
	}
	close(fds[1]);
	actor->fd = fds[0];
}

void actor_end(struct actor *actor)
{
	int status;

	close(actor->fd);
	CHECK_EQ(waitpid(actor->pid, &status, 0), actor->pid);
	CHECK_EQ(status, 0);
}

void actor_kill(struct actor *actor)
{
	kill(actor->pid, SIGKILL);
	CHECK_EQ(waitpid(actor->pid, NULL, 0), actor->pid);
	close(actor->fd);
}

void say(int fd, const void *data, size_t len)
{
	CHECK_EQ(send(fd, data, len, MSG_NOSIGNAL), len);
}

void hear(int fd, void *data, size_t len)
{
	CHECK_EQ(recv(fd, data, len, 0), len);
}

bool hear_now(int fd, void *data, size_t len)
{
	ssize_t n = recv(fd, data, len, MSG_DONTWAIT);

	CHECK(n == (ssize_t)len || (n < 0 && errno == EAGAIN));
	return n > 0;
}

const char *shared_fabric(void)
{
	static const char *name;

	if (!name)
		name = own_fabric();
	return name;
}
