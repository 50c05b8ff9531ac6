// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzer: a Switchtec that answers anything to any command, and a sysfs that says
 * anything of it. Whatever it is, no port is bound or unbound but the one that was
 * named, to the partition that the switch itself has said is that host's.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "pfx.h"
#include "run_line.h"

#define NAMED	7		/* port of flat.gpu0 */
#define TARGET	3		/* port of host c */
#define MOST	64		/* commands of one run */

/* Nothing is waited for: there is nobody that would be done meanwhile. */
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	(void)timeout;
	return __real_poll(fds, n, 0);
}

static const uint8_t *input;
static size_t left;
static unsigned int sent;
static uint8_t links[ANSWER_LINKS_SIZE], binds[ANSWER_BINDS_SIZE];

static uint8_t take(void)
{
	if (!left)
		return 0;
	left--;
	return *input++;
}

/* Mostly what a switch would say, with some bytes of it replaced. */
static void spoil(uint8_t *out, size_t len)
{
	unsigned int n = take() & 7;

	while (n--) {
		size_t at = take() | (size_t)(take() & 3) << 8;

		if (at < len)
			out[at] = take();
	}
	if (take() == 0xff && left >= len) {
		memcpy(out, input, len);
		input += len;
		left -= len;
	}
}

/* The partition of the target, as the last answer had it. */
static uint8_t partition_of(unsigned int port)
{
	unsigned int i;

	for (i = 0; i < MRPC_LINKS_PORTS; i++) {
		const uint8_t *e = links + MRPC_LINKS_SIZE * i;

		if (e[3] >> 4 <= 8 && e[0] == port)
			return e[1];
	}
	return MRPC_BIND_NONE;
}

static bool bound_at(uint8_t partition, uint8_t logical)
{
	unsigned int i;

	for (i = 0; i < binds[0] && i < MRPC_BIND_PORTS; i++) {
		const uint8_t *e = binds + 4 + 4 * i;

		if (e[0] == NAMED && e[1] == partition && e[2] == logical &&
		    e[3] >> 4)
			return true;
	}
	return false;
}

static void check_change(const uint8_t *in)
{
	if (in[0] == MRPC_BIND_BIND &&
	    (in[3] != NAMED || in[1] != partition_of(TARGET) ||
	     in[1] == MRPC_BIND_NONE || !in[2] || in[2] > 4))
		abort();
	if (in[0] == MRPC_BIND_UNBIND && !bound_at(in[1], in[2]))
		abort();
}

static int answer(struct switchtec *d, uint32_t command, const void *in,
		  size_t in_len, void *out, size_t out_len, uint32_t *ret,
		  struct err *e)
{
	const uint8_t *b = in;
	int r;

	if (++sent > MOST)
		return err_set(e, ETIMEDOUT, d->node, "no answer");
	if (command == MRPC_BIND && b[0] != MRPC_BIND_INFO)
		check_change(b);
	r = pfx_command(d, command, in, in_len, out, out_len, ret, e);
	if (take() > 0xf0)
		*ret = take();
	spoil(out, out_len);
	if (command == MRPC_LINKS)
		memcpy(links, out, sizeof(links));
	if (command != MRPC_BIND || b[0] != MRPC_BIND_INFO)
		return r;
	if (b[1] == MRPC_BIND_ALL)
		memcpy(binds, out, sizeof(binds));
	else if ((((uint8_t *)out)[7] & 0xf) == MRPC_BIND_IN_PROGRESS)
		return err_set(e, ETIMEDOUT, d->node, "no answer");
	return r;
}

static void attribute(const char *name, const char *usual)
{
	char path[64], text[8];
	size_t n = take();

	snprintf(path, sizeof(path), "sys/class/switchtec/switchtec0/%s", name);
	if (n < 0xf8 || left < sizeof(text)) {
		machine_text(&pfx_machine, path, usual);
		return;
	}
	machine_file(&pfx_machine, path, input, sizeof(text));
	input += sizeof(text);
	left -= sizeof(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const lines[] = {
		"list endpoints --json", "compose flat.gpu0 --to c",
		"release flat.gpu0 --force",
	};
	static struct backend *b;
	struct run r;
	size_t i;

	if (!b) {
		switchtec_free(pfx_start());
		b = switchtec_backend(NULL, answer);
	}
	memset(&pfx_fake, 0, sizeof(pfx_fake));
	input = data;
	left = size;
	attribute("partition", "4\n");
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		sent = 0;
		r = run_line(b, lines[i]);
		if (r.code && !*r.err && !*r.out)
			abort();
		run_free(&r);
	}
	return 0;
}
