// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One-sided operations with other processes: targets that do nothing at all, and
 * that are killed or closed in the middle. What was to be done with them ends with
 * an error that says so, and others go on.
 */
#include <signal.h>
#include <unistd.h>

#include "region.h"

#define LONG	(1u << 20)

static char out[LONG], in[LONG];

/* What a target tells of itself. */
struct target {
	char name[NAME_SIZE];
	uint64_t key, base;
};

enum role {
	ASLEEP,			/* never looks at its endpoint */
	AWAKE,			/* always does */
	LEAVER,			/* does until it is told to close its endpoint */
};

struct play {
	enum role role;
	const struct end_wish *wish;
};

static void tell(const struct end *end, const struct memory *memory,
		 struct target *target)
{
	target->key = memory->key;
	target->base = memory->base;
	memcpy(target->name, end->name, NAME_SIZE);
}

static void play(int fd, void *arg)
{
	const struct play *is = arg;
	struct target target;
	struct memory memory;
	struct end end;
	char byte;

	end_open(&end, is->wish);
	reg(&end, &memory, in, LONG, ALL);
	tell(&end, &memory, &target);
	say(fd, &target, sizeof(target));
	if (is->role == ASLEEP) {
		hear(fd, &byte, 1);
		return;
	}
	while (is->role == AWAKE || !hear_now(fd, &byte, 1)) {
		ends_progress();
		end.ndone = 0;
	}
	unreg(&memory);
	end_close(&end);
	say(fd, "", 1);
	hear(fd, &byte, 1);
}

static void meet(struct actor *actor, enum role role,
		 const struct end_wish *wish, struct end *end,
		 struct target *target)
{
	struct play is = { role, wish };

	shared_fabric();
	actor_start(actor, play, &is);
	hear(actor->fd, target, sizeof(*target));
	end_open(end, wish);
	CHECK_EQ(end_know(end, target->name), 0);
}

/* Another endpoint here can still be written to. */
static void goes_on(struct end *end, const struct end_wish *wish)
{
	struct target target;
	struct memory memory;
	struct end other;
	fi_addr_t addr;

	end_open(&other, wish);
	reg(&other, &memory, in, LONG, ALL);
	tell(&other, &memory, &target);
	addr = end_know(end, other.name);
	fill(out, 5000, 1);
	CHECK_EQ(fi_write(end->ep, out, 5000, NULL, addr, target.base,
			  target.key, &memory), 0);
	end_ok(end, &memory);
	CHECK(is_filled(in, 5000, 1));
	unreg(&memory);
	end_close(&other);
}

static bool is_death(int err)
{
	return err == FI_ECONNRESET || err == FI_EHOSTUNREACH ||
	       err == FI_EKEYREJECTED || err == FI_EREMOTEIO ||
	       err == FI_ECONNREFUSED || err == FI_ECONNABORTED;
}

static void all_end(struct end *end, int n)
{
	struct done done;

	while (n-- > 0) {
		done = end_next(end);
		if (done.err && !is_death(done.err))
			test_note("%d: %s", done.err, end_why(end, &done));
		CHECK(!done.err || is_death(done.err));
		CHECK(!done.err || *end_why(end, &done));
	}
	CHECK_EQ(end->ndone, 0);
}

static void fails(struct end *end, const struct target *target)
{
	struct done done;

	CHECK_EQ(UNTIL_ROOM(fi_write(end->ep, out, 8, NULL, 0, target->base,
				     target->key, &done)), 0);
	done = end_wait(end, &done);
	CHECK(is_death(done.err));
}

/* Its memory is there although it never does anything. */
TEST(asleep)
{
	struct target target;
	struct actor actor;
	struct end end;
	int i;

	meet(&actor, ASLEEP, &by_offset, &end, &target);
	for (i = 0; i < 100; i++) {
		size_t len = chance(LONG);

		fill(out, len, (unsigned int)i);
		CHECK_EQ(fi_write(end.ep, out, len, NULL, 0, 0, target.key,
				  &end), 0);
		end_ok(&end, &end);
		memset(in, 0, len);
		CHECK_EQ(fi_read(end.ep, in, len, NULL, 0, 0, target.key,
				 &end), 0);
		end_ok(&end, &end);
		CHECK(is_filled(in, len, (unsigned int)i));
	}
	say(actor.fd, "", 1);
	actor_end(&actor);
	end_close(&end);
}

/* It has to answer before its addresses mean anything, and does not. */
TEST(killed_unanswered)
{
	struct target target;
	struct actor actor;
	struct end end;
	int i;

	setenv("FI_FABREX_RESOLVE_MS", "300", 1);
	meet(&actor, ASLEEP, &by_address, &end, &target);
	for (i = 0; i < 10; i++)
		CHECK_EQ(fi_write(end.ep, out, 8, NULL, 0, target.base,
				  target.key, &end), 0);
	for (i = 0; i < 1000; i++)
		ends_progress();
	CHECK_EQ(end.ndone, 0);
	actor_kill(&actor);
	all_end(&end, 10);
	fails(&end, &target);
	goes_on(&end, &by_address);
	end_close(&end);
}

static ssize_t any(struct end *end, const struct target *target)
{
	uint64_t len = chance(2) ? chance(100) : chance(LONG);

	switch (chance(4)) {
	case 0:
		return fi_write(end->ep, out, len, NULL, 0, target->base,
				target->key, NULL);
	case 1:
		return fi_writedata(end->ep, out, len, NULL, 5, 0,
				    target->base, target->key, NULL);
	case 2:
		return fi_read(end->ep, in, len, NULL, 0, target->base,
			       target->key, NULL);
	default:
		return fi_writev(end->ep,
				 (struct iovec[]){ { out, len / 2 },
						   { out + len / 2,
						     len - len / 2 } },
				 NULL, 2, 0, target->base, target->key, NULL);
	}
}

/* Whatever it was doing. */
static void killed(const struct end_wish *wish, bool stopped, int times)
{
	struct target target;
	struct actor actor;
	struct end end;
	int i, posted, ended;

	while (times--) {
		meet(&actor, AWAKE, wish, &end, &target);
		posted = ended = 0;
		for (i = 0; i < 500 + (int)chance(2000); i++) {
			if (posted - ended < 40 && !any(&end, &target))
				posted++;
			ends_progress();
			ended += (int)end.ndone;
			end.ndone = 0;
			if (i == 400 && stopped)
				kill(actor.pid, SIGSTOP);
		}
		actor_kill(&actor);
		for (i = 0; i < 20; i++)
			posted += !any(&end, &target);
		all_end(&end, posted - ended);
		fails(&end, &target);
		goes_on(&end, wish);
		end_close(&end);
	}
}

TEST(killed_offset)
{
	killed(&by_offset, false, 4);
}

TEST(killed_virtual)
{
	killed(&by_address, false, 4);
}

TEST(killed_stopped)
{
	killed(&by_offset, true, 4);
	killed(&by_address, true, 4);
}

/* It closes region and endpoint, and lives on. */
static void leaves(const struct end_wish *wish)
{
	struct target target;
	struct actor actor;
	struct end end;
	char byte;
	int posted = 0, ended = 0;

	meet(&actor, LEAVER, wish, &end, &target);
	while (posted < 400) {
		if (posted - ended < 40 && !any(&end, &target))
			posted++;
		if (posted == 200)
			say(actor.fd, "", 1), posted++, ended++;
		ends_progress();
		ended += (int)end.ndone;
		end.ndone = 0;
	}
	all_end(&end, posted - ended);
	UNTIL(hear_now(actor.fd, &byte, 1));
	fails(&end, &target);
	goes_on(&end, wish);
	say(actor.fd, "", 1);
	actor_end(&actor);
	end_close(&end);
}

TEST(leaves_offset)
{
	leaves(&by_offset);
}

TEST(leaves_virtual)
{
	leaves(&by_address);
}
