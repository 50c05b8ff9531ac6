/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Queries on a machine made of files, and what is expected of the answers.
 * Each file that includes this has a machine of its own.
 */
#ifndef TEST_P2P_QUERY_H
#define TEST_P2P_QUERY_H

#include <errno.h>
#include <fabrex/p2p.h>

#include "machine.h"
#include "p2p/p2p.h"
#include "test.h"

#define PORT	"0000:03:00.0"
#define GPU	"0000:04:00.0"
#define GPU2	"0000:05:00.0"
#define FAR	"0000:12:00.0"
#define ABROAD	"0001:01:00.0"

static struct machine machine;
static struct fabrex_p2p p;
/* What the kernel is made to say; nothing with asked false. */
static struct p2p_answer answer;
static struct pci_addr asked_about;

static inline int fake_ask(const char *root, unsigned int index,
		    const struct pci_addr *addr, struct p2p_answer *out)
{
	CHECK(root == machine.root && index <= 1);
	asked_about = *addr;
	if (!answer.asked)
		return -EACCES;
	*out = answer;
	out->asked = false;
	return 0;
}

static inline int ask(const char *initiator, const char *target)
{
	const struct p2p_env env = { machine.root, fake_ask };
	int ret = fxi_p2p_run(&env, initiator, target, &p);

	if (*p.text)
		printf("# %s\n", p.text);
	if (*p.remedy)
		printf("#   %s\n", p.remedy);
	/* Nothing is cut off. */
	CHECK(strlen(p.text) < sizeof(p.text) - 1);
	CHECK(strlen(p.remedy) < sizeof(p.remedy) - 1);
	return ret;
}

static inline void expect(const char *initiator, const char *target, int verdict,
		   int reason)
{
	CHECK_EQ(ask(initiator, target), 0);
	CHECK_EQ(p.verdict, verdict);
	CHECK_EQ(p.reason, reason);
}

static inline void blames(const char *blocker, uint32_t bits)
{
	CHECK(!strcmp(p.blocker, blocker));
	CHECK_EQ(p.bits, bits);
	if (*blocker)
		CHECK(strstr(p.text, blocker) != NULL);
	CHECK(*p.remedy);
}

static struct p2p_slot slots[P2P_MAX_SLOTS];
static int nslots;

static inline int ask_slots(const char *port)
{
	const struct p2p_env env = { machine.root, fake_ask };

	nslots = fxi_p2p_slots(&env, port, slots);
	return nslots;
}

static inline void kernel_says(bool reachable, uint32_t distance)
{
	answer = (struct p2p_answer){ .asked = true, .kernel = true,
				      .reachable = reachable,
				      .distance = distance };
}

#endif
