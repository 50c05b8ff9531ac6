// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters: reading them out. Called by the admin commands and the control
 * socket.
 */
#include "counters.h"

#include <string.h>

_Static_assert(sizeof(struct draco_counters) == 16 * sizeof(__le64),
	       "13 counters and 3 reserved words");

void counters_read(struct counters *c, struct draco_counters *out)
{
	uint64_t v[16] = { 0 };

	for (unsigned int i = 0; i < CNT_MAX; i++)
		v[i] = count_get(c, i);
	memcpy(out, v, sizeof(*out));
}

const char *counter_name(enum counter which)
{
	static const char *const names[CNT_MAX] = {
		"tx_bytes", "rx_bytes", "tx_ops", "rx_ops", "errors",
		"p2p_bytes", "host_bytes", "window_reads", "window_writes",
		"doorbells", "link_downs", "crc_errors", "interrupts",
	};

	return which < CNT_MAX ? names[which] : "?";
}
