// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random messages to the generic netlink family for a bounded time. Object ids
 * of changes are kept out of the range that exists, so that the fabric is as
 * it was. Run as root and as a user.
 *   fuzz-netlink [SECONDS [SEED]]
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "raw.h"
#include "nl.h"

static uint32_t seed;

static uint32_t rnd(uint32_t n)
{
	return raw_random(&seed) % n;
}

/* Of the last dry run of a bind, so that some know a ticket. */
static uint64_t ticket;
static uint32_t endpoint, host;

static void find(const struct nlattr *attr[], void *arg)
{
	uint32_t type = nl_u32(attr[FABREX_A_OBJECT_TYPE]);

	if (type == FABREX_OBJECT_TYPE_ENDPOINT)
		endpoint = nl_u32(attr[FABREX_A_OBJECT_ID]);
	if (type == FABREX_OBJECT_TYPE_PORT &&
	    nl_u32(attr[FABREX_A_OBJECT_KIND]) == FABREX_PORT_KIND_HOST)
		host = nl_u32(attr[FABREX_A_OBJECT_ID]);
}

static bool get_ticket(void)
{
	const struct nlattr *attr[NL_MAX_ATTR];
	struct nl_msg msg, reply;
	bool good;
	struct nl nl;

	if (nl_open(&nl))
		return false;
	if (!endpoint) {
		nl_begin(&nl, &msg, FABREX_CMD_OBJECT_GET, 0);
		nl_dump(&nl, &msg, 65536, find, NULL, NULL, NULL);
	}
	nl_begin(&nl, &msg, FABREX_CMD_BIND, 0);
	nl_put_u32(&msg, FABREX_A_CHANGE_ID, endpoint);
	nl_put_u32(&msg, FABREX_A_CHANGE_TARGET, host);
	nl_put(&msg, FABREX_A_CHANGE_DRY_RUN, NULL, 0);
	good = !nl_do(&nl, &msg, &reply) && nl_parse((void *)reply.buf, attr) &&
	       attr[FABREX_A_CHANGE_TICKET];
	if (good)
		memcpy(&ticket, attr[FABREX_A_CHANGE_TICKET] + 1,
		       sizeof(ticket));
	nl_close(&nl);
	return good;
}

static bool changes(uint8_t cmd)
{
	return cmd == FABREX_CMD_BIND || cmd == FABREX_CMD_UNBIND ||
	       cmd == FABREX_CMD_PORT_SET || cmd == FABREX_CMD_RELEASE_REPLY;
}

static void attribute(struct nl_msg *msg, uint8_t cmd)
{
	static const uint8_t lengths[] = { 0, 1, 2, 3, 4, 4, 4, 4, 5, 8, 8, 16,
					   33, 120 };
	uint8_t data[128];
	size_t len = lengths[rnd(sizeof(lengths))];
	uint16_t type = rnd(24);
	uint32_t value = rnd(3) ? rnd(64) : raw_random(&seed);

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = rnd(256);
	memcpy(data, &value, sizeof(value));
	if (changes(cmd))
		data[2] |= 1;	/* no object has such an id */
	if (!rnd(20))
		type |= NLA_F_NESTED;
	if (!rnd(20))
		type |= NLA_F_NET_BYTEORDER;
	nl_put(msg, type, data, len);
}

static void request(struct nl *nl, struct nl_msg *msg)
{
	uint8_t cmd = rnd(FABREX_CMD_MAX + 2);
	struct nlmsghdr *nlh = (void *)msg->buf;
	uint64_t near = ticket + rnd(3) - 1;

	nl_begin(nl, msg, cmd, rnd(4) ? NLM_F_ACK : NLM_F_DUMP);
	for (uint32_t n = rnd(6); n; n--)
		attribute(msg, cmd);
	if (rnd(2) && (cmd == FABREX_CMD_CHANGE_GET ||
		       cmd == FABREX_CMD_CHANGE_CANCEL))
		nl_put(msg, FABREX_A_CHANGE_TICKET, &near, sizeof(near));
	if (!rnd(10))		/* bend what is there */
		msg->buf[NLMSG_HDRLEN + 4 + rnd(msg->len)] ^= changes(cmd) ? 0 :
			1u << rnd(8);
	if (!rnd(30))
		msg->len = NLMSG_HDRLEN + rnd(msg->len - NLMSG_HDRLEN);
	nlh->nlmsg_len = msg->len;
}

/* Read what there is; dumps are sometimes left unread. */
static unsigned long drain(struct nl *nl)
{
	static uint8_t buf[65536];
	unsigned long n = 0;

	while (nl_recv(nl, buf, sizeof(buf), 0) > 0)
		n++;
	return n;
}

static bool works(void)
{
	struct nl_msg msg, reply;
	struct nl nl;
	bool good;

	if (nl_open(&nl))
		return false;
	nl_begin(&nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	good = nl_dump(&nl, &msg, 65536, NULL, NULL, NULL, NULL) > 0;
	nl_begin(&nl, &msg, FABREX_CMD_FPORT_GET, 0);
	nl_put_u32(&msg, FABREX_A_FPORT_INDEX, 0);
	good = good && !nl_do(&nl, &msg, &reply);
	nl_close(&nl);
	return good;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 5;
	unsigned long sent = 0, answers = 0, tickets = 0;
	struct nl_msg msg;
	uint64_t end;
	struct nl nl;

	seed = argc > 2 ? strtoul(argv[2], NULL, 0) : time(NULL);
	seed = seed ?: 1;
	printf("TAP version 13\n1..2\n# seed %u, %d s\n", seed, seconds);
	end = raw_now_ns() + seconds * 1000000000ull;
	if (nl_open(&nl))
		return 1;
	while (raw_now_ns() < end) {
		if (!rnd(50))
			tickets += get_ticket();
		request(&nl, &msg);
		sent += !nl_send(&nl, &msg);
		if (rnd(3))
			answers += drain(&nl);
		if (!rnd(200)) {
			nl_close(&nl);
			if (nl_open(&nl))
				break;
		}
	}
	nl_close(&nl);
	printf("# %lu sent, %lu answers, %lu tickets\n", sent, answers, tickets);
	printf("%s 1 messages were sent and answered\n",
	       sent && answers ? "ok" : "not ok");
	printf("%s 2 the family works afterwards\n",
	       works() ? "ok" : "not ok");
	return 0;
}
