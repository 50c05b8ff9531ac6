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
 */
#include <linux/crc32c.h>
#include <linux/dma-mapping.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched.h>

#include "ntb.h"

/* Scratchpad of the peer: the window can be used. */
#define SPAD_READY	0
#define READY		(NTB_MAGIC ^ NTB_VERSION)
#define TICK		(HZ / 10)
/* Time that a store takes to the peer, at most. */
#define FLIGHT_NS	(100 * NSEC_PER_USEC)

static unsigned int dead_ms = 5000;
module_param(dead_ms, uint, 0644);
MODULE_PARM_DESC(dead_ms, "milliseconds without a heartbeat or an answer until a peer counts as dead");

/* ---- the inbox --------------------------------------------------------- */

static void fntb_inbox_free(struct fntb_port *np)
{
	if (!np->inbox)
		return;
	ntb_mw_clear_trans(np->ntb, NTB_DEF_PEER_IDX, 0);
	dma_free_coherent(np->dma_dev, np->own.size, np->inbox,
			  np->inbox_dma);
	np->inbox = NULL;
}

static int fntb_inbox_alloc(struct fntb_port *np, resource_size_t size,
			   resource_size_t align)
{
	if (!fntb_layout_init(&np->own, size)) {
		dev_err_once(&np->ntb->dev,
			     "a window of %pa bytes is too small: the peer can show %u at least\n",
			     &size, NTB_INBOX_MIN);
		return -EINVAL;
	}
	np->inbox = dma_alloc_coherent(np->dma_dev, size, &np->inbox_dma,
				       GFP_KERNEL);
	if (!np->inbox)
		return -ENOMEM;
	/* Some NTBs report less than what they need: that of the size. */
	if (IS_ALIGNED(np->inbox_dma, max(size, align)))
		return 0;
	dev_err_once(&np->ntb->dev, "the inbox is not aligned to %pa\n", &size);
	dma_free_coherent(np->dma_dev, size, np->inbox, np->inbox_dma);
	np->inbox = NULL;
	return -ENOMEM;
}

/* As large as the window, up to a limit; known only when the link is up. */
static int fntb_inbox_aim(struct fntb_port *np)
{
	resource_size_t align, multiple, most, size;
	int ret;

	ret = ntb_mw_get_align(np->ntb, NTB_DEF_PEER_IDX, 0, &align, &multiple,
			       &most);
	if (ret)
		return ret;
	size = rounddown_pow_of_two(min_t(resource_size_t, most,
					  NTB_INBOX_MAX));
	size = min_t(resource_size_t, size, 2u << 20);
	if (np->inbox && np->own.size != size)
		fntb_inbox_free(np);
	if (!np->inbox) {
		ret = fntb_inbox_alloc(np, size, align);
		if (ret)
			return ret;
	}
	return ntb_mw_set_trans(np->ntb, NTB_DEF_PEER_IDX, 0, np->inbox_dma,
				size);
}

static int fntb_window_map(struct fntb_port *np)
{
	phys_addr_t base;
	int ret;

	if (np->window)
		return 0;
	ret = ntb_peer_mw_get_addr(np->ntb, 0, &base, &np->window_size);
	if (ret)
		return ret;
	np->window = ioremap_wc(base, np->window_size);
	return np->window ? 0 : -ENOMEM;
}

/* ---- hello ------------------------------------------------------------- */

static u32 fntb_hello_crc(const struct fntb_hello *hello)
{
	return ~crc32c(~0u, hello, offsetof(struct fntb_hello, crc));
}

static void fntb_hello_send(struct fntb_port *np)
{
	struct fntb_hello hello = {
		.magic = cpu_to_le32(NTB_MAGIC),
		.version = cpu_to_le32(NTB_VERSION),
		.epoch = cpu_to_le32(np->epoch),
		.echo = cpu_to_le32(np->peer_epoch),
		.generation = cpu_to_le32(np->generation),
		.peer = cpu_to_le32(np->engine.peer),
		.size = cpu_to_le32(np->own.size),
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
	if (le32_to_cpu(hello->magic) != NTB_MAGIC ||
	    le32_to_cpu(hello->crc) != fntb_hello_crc(hello))
		return false;
	if (le32_to_cpu(hello->version) != NTB_VERSION) {
		dev_err_ratelimited(&np->ntb->dev,
				    "the peer speaks version %u, this driver %u: use the same release on both hosts\n",
				    le32_to_cpu(hello->version), NTB_VERSION);
		return false;
	}
	if (!fntb_name_ok(hello->name) || !fntb_name_ok(hello->host) ||
	    !hello->epoch) {
		dev_err_ratelimited(&np->ntb->dev,
				    "the peer does not say who it is\n");
		return false;
	}
	return true;
}

/* May be called often: an epoch begins when the peer cannot know it. */
static void fntb_epoch_begin(struct fntb_port *np)
{
	do {
		np->epoch = get_random_u32();
	} while (!np->epoch);
	np->peer_epoch = 0;
	np->bell = 0;
	/* Until it says something else, it is asleep. */
	WRITE_ONCE(fntb_inbox_control(np)->bell,
		   cpu_to_le32(NTB_BELL_REQUESTS));
}

/* ---- the peer is there, or is not -------------------------------------- */

static bool fntb_peer_fits(struct fntb_port *np, const struct fntb_hello *hello)
{
	u32 peer = le32_to_cpu(hello->peer);

	if (!fabrex_engine_connect(&np->wire, peer)) {
		dev_err_ratelimited(&np->ntb->dev,
				    "both hosts have number %u: load fabrex_ntb with another number= at one of them\n",
				    peer);
		return false;
	}
	if (fntb_layout_init(&np->theirs, le32_to_cpu(hello->size)) &&
	    np->theirs.size <= np->window_size)
		return true;
	dev_err_ratelimited(&np->ntb->dev,
			    "the peer's inbox of %u bytes does not fit into the window of %pa\n",
			    le32_to_cpu(hello->size), &np->window_size);
	return false;
}

static void fntb_peer_up(struct fntb_port *np, const struct fntb_hello *hello)
{
	np->peer_generation = le32_to_cpu(hello->generation);
	np->peer_beat_at = jiffies;
	fntb_model_fill(np, hello);
	fntb_wire_up(np);
	np->state = NTB_UP;
	fabrex_port_peer(np->port, np->wire.peer, true, np->peer_generation);
	dev_info(&np->ntb->dev, "peer %u is %s on %s\n", np->wire.peer,
		 hello->name, hello->host);
}

static void fntb_peer_down(struct fntb_port *np, const char *why)
{
	if (np->state == NTB_UP) {
		np->state = NTB_HELLO;
		fntb_wire_down(np);
		fntb_model_fill(np, NULL);
		fabrex_port_peer(np->port, np->wire.peer, false,
				 np->peer_generation);
		dev_info(&np->ntb->dev, "peer %u is gone: %s\n", np->wire.peer,
			 why);
	}
	if (np->inbox)
		fntb_epoch_begin(np);
}

static void fntb_step_hello(struct fntb_port *np)
{
	struct fntb_hello hello;

	if (fntb_hello_read(np, &hello))
		np->peer_epoch = le32_to_cpu(hello.epoch);
	fntb_hello_send(np);
	if (np->peer_epoch && le32_to_cpu(hello.echo) == np->epoch &&
	    fntb_peer_fits(np, &hello))
		fntb_peer_up(np, &hello);
}

static void fntb_step_aimed(struct fntb_port *np)
{
	if (ntb_spad_read(np->ntb, SPAD_READY) != READY || fntb_window_map(np))
		return;
	np->state = NTB_HELLO;
	fntb_step_hello(np);
}

static void fntb_step_down(struct fntb_port *np)
{
	if (!ntb_link_is_up(np->ntb, NULL, NULL) || fntb_inbox_aim(np) ||
	    ntb_peer_spad_write(np->ntb, NTB_DEF_PEER_IDX, SPAD_READY, READY))
		return;
	fntb_epoch_begin(np);
	np->state = NTB_AIMED;
	fntb_step_aimed(np);
}

static void fntb_beat(struct fntb_port *np)
{
	if (time_before(jiffies, np->beat_at + TICK))
		return;
	np->beat_at = jiffies;
	iowrite32(++np->beat, np->window + offsetof(struct fntb_control,
						    heartbeat));
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
	if (beat != np->peer_beat) {
		np->peer_beat = beat;
		np->peer_beat_at = jiffies;
	}
	if (time_after(jiffies, np->peer_beat_at + patience))
		return "its heartbeat has stopped";
	if (fntb_wire_waits(np) &&
	    time_after(jiffies, READ_ONCE(np->answered_at) + patience))
		return "it does not answer";
	if (fntb_hello_read(np, &hello) &&
	    (le32_to_cpu(hello.epoch) != np->peer_epoch ||
	     le32_to_cpu(hello.echo) != np->epoch))
		return "it has begun anew";
	return NULL;
}

static bool fntb_step_up(struct fntb_port *np)
{
	const char *why = fntb_complaint(np);
	bool busy;

	if (why) {
		fntb_peer_down(np, why);
		return true;
	}
	fntb_beat(np);
	busy = fntb_wire_serve(np);
	busy |= fntb_wire_take(np);
	return busy;
}

/* One step; true: there was something to do. */
static bool fntb_step(struct fntb_port *np)
{
	if (np->state != NTB_DOWN &&
	    !ntb_link_is_up(np->ntb, NULL, NULL)) {
		fntb_peer_down(np, "the link is down");
		np->state = NTB_DOWN;
		return false;
	}
	switch (np->state) {
	case NTB_DOWN:
		fntb_step_down(np);
		break;
	case NTB_AIMED:
		fntb_step_aimed(np);
		break;
	case NTB_HELLO:
		fntb_step_hello(np);
		break;
	case NTB_UP:
		return fntb_step_up(np);
	}
	return false;
}

/* ---- the thread -------------------------------------------------------- */

/* Tell the peer whether it has to ring. */
static void fntb_bell(struct fntb_port *np, u32 bell)
{
	void __iomem *word = np->window + offsetof(struct fntb_control, bell);

	if (np->state != NTB_UP || np->bell == bell)
		return;
	np->bell = bell;
	iowrite32(bell, word);
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
	} while (np->state == NTB_UP && ktime_get_ns() < end);
	return false;
}

static void fntb_sleep(struct fntb_port *np)
{
	u32 bell = NTB_BELL_REQUESTS;

	if (fntb_wire_waits(np))
		bell |= NTB_BELL_ANSWERS;
	fntb_bell(np, bell);
	if (fntb_last_look(np))
		return;
	wait_event_interruptible_timeout(np->wait, READ_ONCE(np->woken) ||
					 kthread_should_stop(), TICK);
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
	u64 busy = 0;

	while (!kthread_should_stop()) {
		WRITE_ONCE(np->woken, false);
		/* What it was woken for is visible. */
		smp_mb();
		if (fntb_step(np)) {
			busy = ktime_get_ns();
			fntb_bell(np, 0);
			cond_resched();
		} else if (np->state == NTB_UP && fntb_patient(np, busy)) {
			cond_resched();
		} else {
			fntb_sleep(np);
		}
	}
	fntb_peer_down(np, "the driver is being removed");
	/* The peer finds out at once that nobody is there. */
	if (np->state == NTB_HELLO)
		fntb_hello_send(np);
	ntb_peer_spad_write(np->ntb, NTB_DEF_PEER_IDX, SPAD_READY, 0);
	fntb_inbox_free(np);
	if (np->window)
		iounmap(np->window);
	np->window = NULL;
	return 0;
}
