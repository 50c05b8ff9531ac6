// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A futex with a count: a wake that comes between the look for work and the
 * sleep changes the count, and the sleep does not begin.
 */
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "coll/stream/waker.h"

static atomic_uint count;
enum { AWAKE, NAPPING, PARKED };
static atomic_int sleeping;	/* PARKED: without a limit */

uint32_t fxi_waker_seen(void)
{
	return atomic_load(&count);
}

void fxi_waker_sleep(uint32_t seen, uint64_t ns)
{
	const struct timespec limit = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};

	atomic_store(&sleeping, ns ? NAPPING : PARKED);
	if (atomic_load(&count) == seen)
		syscall(SYS_futex, &count, FUTEX_WAIT_PRIVATE, seen,
			ns ? &limit : NULL, NULL, 0);
	atomic_store(&sleeping, AWAKE);
}

/* The count first, then the look: the sleeper does it the other way round. */
static void wake(int at_least)
{
	atomic_fetch_add(&count, 1);
	if (atomic_load(&sleeping) >= at_least)
		syscall(SYS_futex, &count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL,
			NULL, 0);
}

void fxi_waker_wake(void)
{
	wake(NAPPING);
}

void fxi_waker_note(void)
{
	wake(PARKED);
}

void fxi_waker_forked(void)
{
	atomic_store(&sleeping, AWAKE);
}
