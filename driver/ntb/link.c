// SPDX-License-Identifier: GPL-2.0-only
/*
 * The link of a port, and the thread that keeps it: aims the window, says hello,
 * serves the peer. Called by client.c.
 *
 * A host begins an epoch, a random number, each time that it has to begin anew,
 * and tells its peer, with the epoch that it has heard last. The link is up when
 * each has heard its own; it is down when one of them says something else, or
 * nothing for a while. What was stored in an earlier epoch is not looked at. An
 * epoch is not answered before the earlier one has ended at both sides, so nothing
 * of it is stored later.
 *
 * The thread takes no lock that a process may hold for long: else the peer would
 * miss its heartbeat.
 */
#include <linux/crc32c.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched.h>

#include "ntb.h"

/* Scratchpad, written by the peer: the window can be used. */
#define SPAD_READY	0
#define READY		(FNTB_MAGIC ^ FNTB_VERSION)
/* Time that a store takes to the peer, at most. */
#define FLIGHT_NS	(100 * NSEC_PER_USEC)
/* A link that was up for less has fallen. */
#define FALL		(10 * HZ)
#define FALLS_MAX	6
/* After so many rounds with something to do the peer is told not to ring. To say
 * so for a single request, and to take it back, would cost more than its ring.
 */
#define BUSY_ROUNDS	8

static unsigned int dead_ms = 5000;
module_param(dead_ms, uint, 0644);
MODULE_PARM_DESC(dead_ms, "time without a heartbeat, or without an answer to a request, after which the peer is considered dead, in milliseconds (default: 5000)");

/* ---- hello ------------------------------------------------------------- */

static u32 fntb_hello_crc(const struct fntb_hello *hello)
{
	return ~crc32c(~0u, hello, offsetof(struct fntb_hello, crc));
}

static void fntb_hello_send(struct fntb_port *np)
{
	struct fntb_hello hello = {
		.magic = cpu_to_le32(FNTB_MAGIC),
		.version = cpu_to_le32(FNTB_VERSION),
		.epoch = cpu_to_le32(np->epoch),
		.echo = cpu_to_le32(np->peer_epoch),
		.generation = cpu_to_le32(np->generation),
		.peer = cpu_to_le32(np->engine.peer),
		.size = cpu_to_le32(np->inbox_size),
		.window = cpu_to_le32(min_t(resource_size_t, np->window_size,
					    U32_MAX)),
		.direct = cpu_to_le64(np->offered),
	};

	strscpy(hello.name, np->info.name, sizeof(hello.name));
	strscpy(hello.host, np->info.host, sizeof(hello.host));
	hello.crc = cpu_to_le32(fntb_hello_crc(&hello));
	memcpy_toio(np->window, &hello, sizeof(hello));
	wmb();
}

/* What the peer has said, if it makes sense. */
static bool fntb_hello_read(struct fntb_port *np, struct fntb_hello *hello)
{
	memcpy(hello, &fntb_inbox_control(np)->hello, sizeof(*hello));
	if (le32_to_cpu(hello->magic) != FNTB_MAGIC ||
	    le32_to_cpu(hello->crc) != fntb_hello_crc(hello))
		return false;
	if (le32_to_cpu(hello->version) != FNTB_VERSION) {
		dev_err_ratelimited(&np->ntb->dev,
				    "the peer uses protocol version %u, this driver %u: use the same release on both hosts\n",
				    le32_to_cpu(hello->version), FNTB_VERSION);
		return false;
	}
	if (fntb_name_ok(hello->name) && fntb_name_ok(hello->host) &&
	    hello->epoch)
		return true;
	dev_err_ratelimited(&np->ntb->dev,
			    "the peer's hello has no valid name, host name or epoch\n");
	return false;
}

/* May be called often: an epoch begins when the peer cannot know it. */
static void fntb_epoch_begin(struct fntb_port *np)
{
	do {
		np->epoch = get_random_u32();
	} while (!np->epoch);
	np->peer_epoch = 0;
	np->bell = 0;
	/* Markers of DMA engines, and all else that was there. */
	memset(np->inbox + FNTB_PAGE, 0, np->inbox_size - FNTB_PAGE);
	if (np->offered)
		memset(np->direct->marks, 0, PAGE_SIZE);
	/* Until it says something else, it is asleep. */
	WRITE_ONCE(fntb_inbox_control(np)->bell,
		   cpu_to_le32(FNTB_BELL_REQUESTS));
}

/* ---- the peer is there, or is not -------------------------------------- */

/* Can this host go on with a peer that says this? Both find the same. */
static bool fntb_peer_fits(struct fntb_port *np, const struct fntb_hello *hello)
{
	u32 peer = le32_to_cpu(hello->peer);
	u64 own = min_t(u64, np->inbox_size, le32_to_cpu(hello->window));
	u64 theirs = min_t(u64, np->window_size, le32_to_cpu(hello->size));

	if (!fabrex_engine_connect(&np->wire, peer)) {
		dev_err_ratelimited(&np->ntb->dev,
				    "peer number %u is this host's own, or not below %u: set number= of fabrex_ntb to different values on the two hosts\n",
				    peer, FABREX_MAX_PEERS);
		return false;
	}
	if (fntb_layout_init(&np->own, own) &&
	    fntb_layout_init(&np->theirs, theirs))
		return true;
	dev_err_ratelimited(&np->ntb->dev,
			    "no inbox layout for memory windows of %llu (here) and %llu (peer) bytes\n",
			    own, theirs);
	return false;
}

static void fntb_peer_up(struct fntb_port *np, const struct fntb_hello *hello)
{
	np->peer_generation = le32_to_cpu(hello->generation);
	np->peer_beat = le32_to_cpu(fntb_inbox_control(np)->heartbeat);
	np->peer_beat_at = jiffies;
	np->beat_at = jiffies - FNTB_TICK;
	np->up_at = jiffies;
	fntb_direct_up(np);
	fntb_known_up(np, le64_to_cpu(hello->direct));
	fntb_dma_up(np);
	np->peer_beat_at = jiffies;
	fntb_wire_up(np);
	fntb_model_fill(np, hello);
	np->state = FNTB_UP;
	fabrex_port_peer(np->port, np->wire.peer, true, np->peer_generation);
	dev_info_ratelimited(&np->ntb->dev, "link to peer %u is up: port %s of host %s\n",
			     np->wire.peer, hello->name, hello->host);
}

/* A peer that comes and goes waits longer each time. */
static void fntb_peer_fell(struct fntb_port *np)
{
	if (time_after(jiffies, np->up_at + FALL))
		np->falls = 0;
	else if (np->falls < FALLS_MAX)
		np->falls++;
	np->hello_at = jiffies + ((FNTB_TICK << np->falls) >> 1);
}

static void fntb_peer_down(struct fntb_port *np, const char *why)
{
	if (np->state == FNTB_UP) {
		np->state = FNTB_HELLO;
		fntb_wire_down(np);
		fntb_model_fill(np, NULL);
		fabrex_port_peer(np->port, np->wire.peer, false,
				 np->peer_generation);
		dev_info_ratelimited(&np->ntb->dev, "link to peer %u is down: %s\n",
				     np->wire.peer, why);
		fntb_peer_fell(np);
	}
	if (np->inbox)
		fntb_epoch_begin(np);
}

/* ---- steps up ---------------------------------------------------------- */

/* The peer may use the window. It forgets this when its host is restarted, so it
 * is told as long as it has not said hello.
 */
static void fntb_ready(struct fntb_port *np, bool ready)
{
	ntb_peer_spad_write(np->ntb, NTB_DEF_PEER_IDX, SPAD_READY,
			    ready ? READY : 0);
}

static bool fntb_peer_ready(struct fntb_port *np)
{
	return ntb_spad_read(np->ntb, SPAD_READY) == READY;
}

static void fntb_step_hello(struct fntb_port *np)
{
	struct fntb_hello hello;

	if (time_before(jiffies, np->hello_at))
		return;
	np->hello_at = jiffies + FNTB_TICK / 2;
	fntb_ready(np, true);
	if (!fntb_peer_ready(np)) {
		np->state = FNTB_AIMED;
		return;
	}
	/* What a channel that cannot be stopped stores late would meet another epoch. */
	if (fntb_dma_stuck(np) || !fntb_hello_read(np, &hello) ||
	    !fntb_peer_fits(np, &hello)) {
		np->peer_epoch = 0;
		fntb_hello_send(np);
		return;
	}
	np->peer_epoch = le32_to_cpu(hello.epoch);
	fntb_hello_send(np);
	if (le32_to_cpu(hello.echo) == np->epoch)
		fntb_peer_up(np, &hello);
}

static void fntb_step_aimed(struct fntb_port *np)
{
	if (time_before(jiffies, np->retry_at))
		return;
	np->retry_at = jiffies + FNTB_TICK / 2;
	fntb_ready(np, true);
	if (!fntb_peer_ready(np) || fntb_window_map(np))
		return;
	np->state = FNTB_HELLO;
	fntb_step_hello(np);
}

static void fntb_step_down(struct fntb_port *np)
{
	if (time_before(jiffies, np->retry_at))
		return;
	np->retry_at = jiffies + FNTB_TICK;
	/* What is found now is later than that. */
	WRITE_ONCE(np->moved, 0);
	if (!ntb_link_is_up(np->ntb, NULL, NULL))
		return;
	if (fntb_inbox_aim(np)) {
		np->retry_at = jiffies + 5 * HZ;
		return;
	}
	fntb_direct_aim(np);
	fntb_epoch_begin(np);
	fabrex_port_link(np->port, true);
	np->state = FNTB_AIMED;
	np->retry_at = jiffies;
	fntb_step_aimed(np);
}

/* ---- up ---------------------------------------------------------------- */

static void fntb_beat(struct fntb_port *np)
{
	if (time_before(jiffies, np->beat_at + FNTB_TICK))
		return;
	np->beat_at = jiffies;
	iowrite32(++np->beat, np->window + offsetof(struct fntb_control,
						    heartbeat));
	wmb();
	/* Who waits for room that has come meanwhile? */
	fabrex_engine_room(&np->engine);
}

/* Why the link cannot stay up, or NULL. */
static const char *fntb_complaint(struct fntb_port *np)
{
	u32 beat = le32_to_cpu(READ_ONCE(fntb_inbox_control(np)->heartbeat));
	unsigned long patience = msecs_to_jiffies(READ_ONCE(dead_ms));
	struct fntb_hello hello;

	if (np->broken)
		return np->broken;
	if (READ_ONCE(np->lost))
		return "writes of a DMA channel do not arrive";
	if (beat != np->peer_beat) {
		np->peer_beat = beat;
		np->peer_beat_at = jiffies;
	}
	if (time_after(jiffies, np->peer_beat_at + patience))
		return "its heartbeat has stopped";
	if (fntb_wire_late(np, patience))
		return "it does not answer";
	if (fntb_hello_read(np, &hello) &&
	    (le32_to_cpu(hello.epoch) != np->peer_epoch ||
	     le32_to_cpu(hello.echo) != np->epoch))
		return "it has started a new epoch";
	return NULL;
}

static bool fntb_step_up(struct fntb_port *np)
{
	const char *why;
	bool busy;

	fntb_beat(np);
	fntb_wire_forget(np);
	busy = fntb_wire_serve(np);
	if (fntb_wire_take(np, np->own.slots)) {
		np->took = true;
		busy = true;
	}
	why = fntb_complaint(np);
	if (!why)
		return busy;
	fntb_peer_down(np, why);
	return true;
}

/* Has the NTB's link gone, even if it is back by now? It is asked from time to
 * time only, as that may mean an access to a device that is gone.
 */
static bool fntb_link_lost(struct fntb_port *np)
{
	bool moved = READ_ONCE(np->moved) && xchg(&np->moved, 0);

	if (!moved && time_before(jiffies, np->looked_at + FNTB_TICK))
		return false;
	np->looked_at = jiffies;
	if (np->state == FNTB_UP && !moved)
		moved = !fntb_peer_ready(np);
	return moved || !ntb_link_is_up(np->ntb, NULL, NULL);
}

/* One step; true: there was something to do. */
static bool fntb_step(struct fntb_port *np)
{
	fntb_dma_renew(np);
	if (np->state != FNTB_DOWN && fntb_link_lost(np)) {
		fntb_peer_down(np, "the NTB link went down");
		np->state = FNTB_DOWN;
		np->retry_at = jiffies;
		if (!ntb_link_is_up(np->ntb, NULL, NULL))
			fabrex_port_link(np->port, false);
	}
	switch (np->state) {
	case FNTB_DOWN:
		fntb_step_down(np);
		break;
	case FNTB_AIMED:
		fntb_step_aimed(np);
		break;
	case FNTB_HELLO:
		fntb_step_hello(np);
		break;
	case FNTB_UP:
		return fntb_step_up(np);
	}
	return false;
}

/* ---- the thread -------------------------------------------------------- */

/* Tell the peer whether it has to ring. */
static void fntb_bell(struct fntb_port *np, u32 bell)
{
	void __iomem *word = np->window + offsetof(struct fntb_control, bell);

	if (np->state != FNTB_UP || np->bell == bell)
		return;
	/* Workers read it. */
	WRITE_ONCE(np->bell, bell);
	iowrite32(bell, word);
	wmb();
	/* It has arrived when this has been answered: by nobody, if it is gone. */
	if (bell && ioread32(word) == ~0u && !np->broken)
		np->broken = "it does not answer";
}

/* What the peer sent just before it learnt that it has to ring arrives while
 * this looks; and the tick finds whatever has got lost.
 */
static bool fntb_last_look(struct fntb_port *np)
{
	u64 end = ktime_get_ns() + FLIGHT_NS;

	do {
		if (fntb_step(np))
			return true;
		cpu_relax();
	} while (np->state == FNTB_UP && ktime_get_ns() < end);
	return false;
}

/* The doorbell is masked from the interrupt until here. */
static void fntb_unmask(struct fntb_port *np)
{
	if (!smp_load_acquire(&np->masked))
		return;
	ntb_db_clear(np->ntb, np->bell_bit);
	WRITE_ONCE(np->masked, false);
	ntb_db_clear_mask(np->ntb, np->bell_bit);
}

static void fntb_sleep(struct fntb_port *np)
{
	u32 bell = FNTB_BELL_REQUESTS;

	/* If it was this thread that took the last answers, not a worker, it will
	 * be so for the next ones.
	 */
	if (fntb_wire_waits(np) || np->took)
		bell |= FNTB_BELL_ANSWERS;
	np->took = false;
	fntb_unmask(np);
	fntb_bell(np, bell);
	/* The counterpart of a worker that looks at the bell when it waits. */
	smp_mb();
	if (fntb_last_look(np) ||
	    (fntb_wire_waits(np) && !(bell & FNTB_BELL_ANSWERS)))
		return;
	wait_event_interruptible_timeout(np->wait, READ_ONCE(np->woken) ||
					 kthread_should_stop(), FNTB_TICK);
}

static bool fntb_patient(struct fntb_port *np, u64 since)
{
	return ktime_get_ns() - since <
	       np->engine.poll_us * (u64)NSEC_PER_USEC;
}

/**
 * fntb_link_run() - keep the link, until the thread is stopped
 * @data: port
 *
 * Context: A thread of its own.
 * Return: 0
 */
int fntb_link_run(void *data)
{
	struct fntb_port *np = data;
	u32 rounds = 0;
	u64 busy = 0;

	while (!kthread_should_stop()) {
		WRITE_ONCE(np->woken, false);
		/* What it was woken for is visible. */
		smp_mb();
		if (fntb_step(np)) {
			busy = ktime_get_ns();
			if (++rounds > BUSY_ROUNDS)
				fntb_bell(np, 0);
			cond_resched();
		} else if (np->state == FNTB_UP && fntb_patient(np, busy)) {
			cond_resched();
		} else {
			rounds = 0;
			fntb_sleep(np);
		}
	}
	fntb_peer_down(np, "fabrex_ntb of this host is being removed");
	/* The peer finds out at once that nobody is there. */
	fntb_ready(np, false);
	if (np->state == FNTB_HELLO)
		fntb_hello_send(np);
	return 0;
}

/**
 * fntb_link_begin() - forget what an earlier driver has left
 * @np: port, whose link is not enabled
 *
 * Context: Process.
 */
void fntb_link_begin(struct fntb_port *np)
{
	ntb_spad_write(np->ntb, SPAD_READY, 0);
	np->retry_at = jiffies;
	np->hello_at = jiffies;
	np->looked_at = jiffies;
}
