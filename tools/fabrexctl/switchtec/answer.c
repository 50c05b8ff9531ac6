// SPDX-License-Identifier: GPL-2.0-only
/*
 * See answer.h. A switch that answers nonsense must not make us bind somebody's
 * port to the wrong host, so that every field is looked at before any is used.
 */
#include <errno.h>
#include <string.h>

#include "answer.h"

/* Who is named by messages. */
#define LINKS	"the switch's answer about links"
#define BINDS	"the switch's answer about bindings"

static const uint32_t speeds[] = {
	[1] = 2500, [2] = 5000, [3] = 8000, [4] = 16000, [5] = 32000,
	[6] = 64000,
};

#define RATES	(sizeof(speeds) / sizeof(speeds[0]))

static int bad(struct err *e, const char *answer, unsigned int entry,
	       const char *field, unsigned int value)
{
	return err_set(e, EPROTO, answer, "%s, entry %u: %s is %u, which is not "
		       "a valid value; the switch's firmware answers in another "
		       "way than is known here, or is broken", answer, entry,
		       field, value);
}

static bool is_width(unsigned int v)
{
	return v <= 32 && !(v & (v - 1));
}


static int take_link(const uint8_t *in, unsigned int i,
		     struct port_link v[ANSWER_PORTS], struct err *e)
{
	unsigned int rate = in[7] & ~MRPC_LINKS_UP;
	struct port_link *l;

	if (in[0] >= ANSWER_PORTS)
		return bad(e, LINKS, i, "the port", in[0]);
	l = &v[in[0]];
	if (l->there)
		return bad(e, LINKS, i, "a port that an earlier entry has", in[0]);
	if (in[1] != MRPC_BIND_NONE && in[1] >= ANSWER_PARTITIONS)
		return bad(e, LINKS, i, "the partition", in[1]);
	if (in[1] != MRPC_BIND_NONE && in[2] == MRPC_BIND_NONE)
		return bad(e, LINKS, i, "the logical port", in[2]);
	if (!is_width(in[4]))
		return bad(e, LINKS, i, "the configured width", in[4]);
	if (!is_width(in[5]) || ((in[7] & MRPC_LINKS_UP) && !in[5]))
		return bad(e, LINKS, i, "the negotiated width", in[5]);
	if (in[6] > 1)
		return bad(e, LINKS, i, "the upstream flag", in[6]);
	if (rate >= RATES || ((in[7] & MRPC_LINKS_UP) && !rate))
		return bad(e, LINKS, i, "the rate", rate);
	*l = (struct port_link){
		.there = true,
		.up = in[7] & MRPC_LINKS_UP,
		.upstream = in[6],
		.placed = in[1] != MRPC_BIND_NONE,
		.partition = in[1], .logical = in[2],
		.width = in[7] & MRPC_LINKS_UP ? in[5] : 0, .max_width = in[4],
		.speed = in[7] & MRPC_LINKS_UP ? speeds[rate] : 0,
	};
	return 0;
}

int answer_links(const uint8_t *buf, struct port_link v[ANSWER_PORTS],
		 struct err *e)
{
	unsigned int i, n = 0;
	int r = 0;

	memset(v, 0, ANSWER_PORTS * sizeof(*v));
	for (i = 0; i < MRPC_LINKS_PORTS && !r; i++) {
		const uint8_t *in = buf + MRPC_LINKS_SIZE * i;

		/* High half: the stack; there are eight at most. */
		if (in[3] >> 4 > 8)
			continue;
		r = take_link(in, i, v, e);
		n++;
	}
	if (!r && !n)
		r = err_set(e, EPROTO, LINKS, "%s: it has no port", LINKS);
	return r;
}

static int take_bind(const uint8_t *in, unsigned int i,
		     struct port_bind v[ANSWER_PORTS], struct err *e)
{
	unsigned int result = in[3] & 0xf;
	bool bound = in[3] >> 4;
	struct port_bind *b;

	if (in[0] >= ANSWER_PORTS)
		return bad(e, BINDS, i, "the port", in[0]);
	b = &v[in[0]];
	if (b->there)
		return bad(e, BINDS, i, "a port that an earlier entry has", in[0]);
	if (result > MRPC_BIND_IN_PROGRESS)
		return bad(e, BINDS, i, "the result of the last change",
			   result);
	if (bound && in[1] >= ANSWER_PARTITIONS)
		return bad(e, BINDS, i, "the partition of a bound port",
			   in[1]);
	if (bound && in[2] == MRPC_BIND_NONE)
		return bad(e, BINDS, i, "the logical port of a bound port",
			   in[2]);
	*b = (struct port_bind){
		.there = true, .bound = bound, .result = result,
		.partition = in[1], .logical = in[2],
	};
	return 0;
}

int answer_binds(const uint8_t *buf, uint8_t port,
		 struct port_bind v[ANSWER_PORTS], struct err *e)
{
	unsigned int i, n = buf[0];
	int r = 0;

	memset(v, 0, ANSWER_PORTS * sizeof(*v));
	if (n > MRPC_BIND_PORTS || (port != MRPC_BIND_ALL && n != 1))
		return err_set(e, EPROTO, BINDS, "%s: the number of entries is "
			       "%u, where %s can be; the switch's firmware "
			       "answers in another way than is known here, or "
			       "is broken", BINDS, n, port == MRPC_BIND_ALL ?
			       "48 at most" : "one");
	for (i = 0; i < n && !r; i++)
		r = take_bind(buf + 4 + 4 * i, i, v, e);
	if (!r && port != MRPC_BIND_ALL && !v[port].there)
		r = bad(e, BINDS, 0, "the port", buf[4]);
	return r;
}
