// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink requests, answers and dumps, for tests. */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nl.h"

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

static int resolve(struct nl *nl);

int nl_open(struct nl *nl)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	int one = 1, err;

	memset(nl, 0, sizeof(*nl));
	nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (nl->fd < 0)
		return -errno;
	setsockopt(nl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(nl->fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	if (bind(nl->fd, (struct sockaddr *)&addr, sizeof(addr)))
		return -errno;
	err = resolve(nl);
	if (err)
		close(nl->fd);
	return err;
}

void nl_close(struct nl *nl)
{
	close(nl->fd);
}

void nl_begin(struct nl *nl, struct nl_msg *msg, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = (void *)msg->buf;
	struct genlmsghdr *genl = NLMSG_DATA(nlh);

	memset(msg->buf, 0, NLMSG_SPACE(sizeof(*genl)));
	nlh->nlmsg_type = nl->family;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++nl->seq;
	genl->cmd = cmd;
	genl->version = 1;
	msg->len = NLMSG_LENGTH(sizeof(*genl));
}

void nl_put(struct nl_msg *msg, uint16_t type, const void *data, size_t len)
{
	struct nlattr *attr = (void *)(msg->buf + NLMSG_ALIGN(msg->len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memset(attr + 1, 0, NLA_ALIGN(len));
	if (len)
		memcpy(attr + 1, data, len);
	msg->len = NLMSG_ALIGN(msg->len) + NLA_HDRLEN + NLA_ALIGN(len);
}

void nl_put_u32(struct nl_msg *msg, uint16_t type, uint32_t value)
{
	nl_put(msg, type, &value, sizeof(value));
}

void nl_put_str(struct nl_msg *msg, uint16_t type, const char *value)
{
	nl_put(msg, type, value, strlen(value) + 1);
}

int nl_send(struct nl *nl, const struct nl_msg *msg)
{
	((struct nlmsghdr *)msg->buf)->nlmsg_len = msg->len;
	return send(nl->fd, msg->buf, msg->len, 0) < 0 ? -errno : 0;
}

long nl_recv(struct nl *nl, void *buf, size_t size, int timeout_ms)
{
	struct pollfd p = { .fd = nl->fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, timeout_ms) != 1)
		return -ETIMEDOUT;
	n = recv(nl->fd, buf, size, MSG_TRUNC);
	if (n < 0)
		return -errno;
	return (size_t)n > size ? -EMSGSIZE : n;
}

bool nl_parse(const struct nlmsghdr *nlh, const struct nlattr *attr[])
{
	size_t at = NLMSG_LENGTH(GENL_HDRLEN);

	memset(attr, 0, NL_MAX_ATTR * sizeof(*attr));
	while (at + NLA_HDRLEN <= nlh->nlmsg_len) {
		const struct nlattr *a = (void *)((uint8_t *)nlh + at);

		if (a->nla_len < NLA_HDRLEN || at + a->nla_len > nlh->nlmsg_len)
			return false;
		if ((a->nla_type & NLA_TYPE_MASK) < NL_MAX_ATTR)
			attr[a->nla_type & NLA_TYPE_MASK] = a;
		at += NLA_ALIGN(a->nla_len);
	}
	return at >= nlh->nlmsg_len;
}

uint32_t nl_u32(const struct nlattr *attr)
{
	uint32_t v = 0;

	if (attr)
		memcpy(&v, attr + 1, sizeof(v));
	return v;
}

const char *nl_str(const struct nlattr *attr)
{
	return attr ? (const char *)(attr + 1) : "";
}

/* Keep the text that an NLMSG_ERROR or NLMSG_DONE carries. */
static void keep_extack(struct nl *nl, const struct nlmsghdr *nlh)
{
	size_t at = NLMSG_LENGTH(sizeof(struct nlmsgerr));
	const struct nlmsgerr *e = NLMSG_DATA(nlh);

	if (nlh->nlmsg_type == NLMSG_DONE)
		at = NLMSG_LENGTH(sizeof(int));
	else if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		at += e->msg.nlmsg_len - sizeof(e->msg);
	nl->extack[0] = 0;
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	while (at + NLA_HDRLEN <= nlh->nlmsg_len) {
		const struct nlattr *a = (void *)((uint8_t *)nlh + at);

		if (a->nla_type == NLMSGERR_ATTR_MSG)
			snprintf(nl->extack, sizeof(nl->extack), "%s",
				 (const char *)(a + 1));
		if (a->nla_len < NLA_HDRLEN)
			return;
		at += NLA_ALIGN(a->nla_len);
	}
}

#define EACH_MSG(nlh, buf, n) \
	for (struct nlmsghdr *nlh = (void *)(buf); NLMSG_OK(nlh, n); \
	     nlh = NLMSG_NEXT(nlh, n))

int nl_do(struct nl *nl, struct nl_msg *msg, struct nl_msg *reply)
{
	/* Not larger: the kernel fills dumps to the size it saw last. */
	_Alignas(8) uint8_t buf[NL_SMALL];
	int err;

	((struct nlmsghdr *)msg->buf)->nlmsg_flags |= NLM_F_ACK;
	err = nl_send(nl, msg);
	if (reply)
		reply->len = 0;
	while (!err) {
		long n = nl_recv(nl, buf, sizeof(buf), 60000);

		if (n < 0)
			return n;
		EACH_MSG(nlh, buf, n) {
			if (nlh->nlmsg_seq != nl->seq)
				continue;
			if (nlh->nlmsg_type == NLMSG_ERROR) {
				keep_extack(nl, nlh);
				return ((struct nlmsgerr *)NLMSG_DATA(nlh))
					->error;
			}
			if (reply && !reply->len) {
				reply->len = nlh->nlmsg_len;
				memcpy(reply->buf, nlh, nlh->nlmsg_len);
			}
		}
	}
	return err;
}

int nl_change(struct nl *nl, struct nl_msg *msg)
{
	const struct nlattr *attr[NL_MAX_ATTR];
	struct nl_msg reply, ask;
	uint64_t ticket;
	uint32_t fport;
	int err = nl_do(nl, msg, &reply), tries;

	if (err)
		return err;
	if (!nl_parse((void *)reply.buf, attr) ||
	    !attr[FABREX_A_CHANGE_TICKET])
		return -EBADMSG;
	memcpy(&ticket, attr[FABREX_A_CHANGE_TICKET] + 1, sizeof(ticket));
	fport = nl_u32(attr[FABREX_A_CHANGE_FPORT]);
	for (tries = 0; tries < 12000; tries++) {
		nl_begin(nl, &ask, FABREX_CMD_CHANGE_GET, 0);
		nl_put_u32(&ask, FABREX_A_CHANGE_FPORT, fport);
		nl_put(&ask, FABREX_A_CHANGE_TICKET, &ticket, sizeof(ticket));
		err = nl_do(nl, &ask, &reply);
		if (err)
			return err;
		if (!nl_parse((void *)reply.buf, attr))
			return -EBADMSG;
		if (!attr[FABREX_A_CHANGE_PENDING])
			break;
		poll(NULL, 0, 10);
	}
	snprintf(nl->extack, sizeof(nl->extack), "%s",
		 nl_str(attr[FABREX_A_CHANGE_MESSAGE]));
	return attr[FABREX_A_CHANGE_ERROR] ?
	       -(int)nl_u32(attr[FABREX_A_CHANGE_ERROR]) : -ETIMEDOUT;
}

/* One datagram of a dump: 1 goes on, 0 done, or a negative errno. */
static int dump_part(struct nl *nl, uint8_t *buf, long n, nl_each each,
		     void *arg, int *count, bool *interrupted)
{
	const struct nlattr *attr[NL_MAX_ATTR];

	EACH_MSG(nlh, buf, n) {
		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR && interrupted)
			*interrupted = true;
		if (nlh->nlmsg_type == NLMSG_DONE ||
		    nlh->nlmsg_type == NLMSG_ERROR) {
			keep_extack(nl, nlh);
			return *(int *)NLMSG_DATA(nlh);
		}
		if (!nl_parse(nlh, attr))
			return -EBADMSG;
		++*count;
		if (each)
			each(attr, arg);
	}
	return 1;
}

int nl_dump(struct nl *nl, struct nl_msg *msg, size_t bufsize, nl_each each,
	    void *arg, int *calls, bool *interrupted)
{
	uint8_t *buf = malloc(bufsize);
	int count = 0, more = 1;

	((struct nlmsghdr *)msg->buf)->nlmsg_flags |= NLM_F_DUMP;
	if (!buf)
		return -ENOMEM;
	more = nl_send(nl, msg) ?: 1;
	while (more > 0) {
		long n = nl_recv(nl, buf, bufsize, 60000);

		if (calls)
			++*calls;
		more = n < 0 ? n : dump_part(nl, buf, n, each, arg, &count,
					     interrupted);
	}
	free(buf);
	return more < 0 ? more : count;
}

/* Group id of a multicast group in CTRL_ATTR_MCAST_GROUPS. */
static uint32_t group(const struct nlattr *groups, const char *name)
{
	const uint8_t *p = (void *)(groups + 1);
	const uint8_t *end = (uint8_t *)groups + groups->nla_len;

	while (p + NLA_HDRLEN < end) {
		const struct nlattr *one = (void *)p;
		const uint8_t *q = p + NLA_HDRLEN;
		const char *found = "";
		uint32_t id = 0;

		while (q + NLA_HDRLEN <= p + one->nla_len) {
			const struct nlattr *a = (void *)q;

			if (a->nla_type == CTRL_ATTR_MCAST_GRP_NAME)
				found = nl_str(a);
			if (a->nla_type == CTRL_ATTR_MCAST_GRP_ID)
				id = nl_u32(a);
			q += NLA_ALIGN(a->nla_len);
		}
		if (!strcmp(found, name))
			return id;
		p += NLA_ALIGN(one->nla_len);
	}
	return 0;
}

static int resolve(struct nl *nl)
{
	const struct nlattr *attr[NL_MAX_ATTR];
	struct nl_msg msg, reply;
	int err;

	nl->family = GENL_ID_CTRL;
	nl_begin(nl, &msg, CTRL_CMD_GETFAMILY, 0);
	nl_put_str(&msg, CTRL_ATTR_FAMILY_NAME, "fabrex");
	err = nl_do(nl, &msg, &reply);
	if (err)
		return err;
	if (!reply.len || !nl_parse((void *)reply.buf, attr) ||
	    !attr[CTRL_ATTR_FAMILY_ID] || !attr[CTRL_ATTR_MCAST_GROUPS])
		return -EBADMSG;
	nl->family = *(uint16_t *)(attr[CTRL_ATTR_FAMILY_ID] + 1);
	nl->events = group(attr[CTRL_ATTR_MCAST_GROUPS], "events");
	nl->agent = group(attr[CTRL_ATTR_MCAST_GROUPS], "agent");
	nl->changes = group(attr[CTRL_ATTR_MCAST_GROUPS], "changes");
	return 0;
}
