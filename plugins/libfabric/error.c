// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Errors in libfabric's words, and what is behind them in one sentence. Used by
 * all files.
 */
#include <stdio.h>

#include "provider.h"

int fi_of_errno(int error)
{
	switch (error) {
	case -EDQUOT:
		return -FI_ENOSPC;
	case -ESTALE:
		return -FI_ECONNREFUSED;
	case -EPERM:
		return -FI_EACCES;
	case -EPROTO:
		return -FI_EIO;
	default:
		return error;
	}
}

static const struct {
	int error;
	const char *text;
} statuses[] = {
	[FABREX_WC_OK] = { 0, "success" },
	[FABREX_WC_BAD_OPCODE] = { FI_EOPNOTSUPP,
		"the device, or the memory, does not support the operation" },
	[FABREX_WC_BAD_DESC] = { FI_EINVAL,
		"the device refuses the operation: length or alignment" },
	[FABREX_WC_LKEY] = { FI_EFAULT,
		"the local memory is no longer registered" },
	[FABREX_WC_LBOUNDS] = { FI_EFAULT,
		"the local buffer exceeds its region" },
	[FABREX_WC_LACCESS] = { FI_EACCES,
		"the local region was not registered for this operation" },
	[FABREX_WC_RKEY] = { FI_EKEYREJECTED,
		"the remote key is unknown or was revoked" },
	[FABREX_WC_RBOUNDS] = { FI_EREMOTEIO,
		"the remote range exceeds its region" },
	[FABREX_WC_RACCESS] = { FI_EACCES,
		"the remote region was not registered for this operation" },
	[FABREX_WC_RPEER] = { FI_EACCES,
		"the remote region is not open to this port" },
	[FABREX_WC_UNREACHABLE] = { FI_EHOSTUNREACH,
		"the peer's port or link is down" },
	[FABREX_WC_RNR] = { FI_ENORX,
		"the peer has no free receive cell" },
	[FABREX_WC_BAD_QUEUE] = { FI_ECONNRESET,
		"the peer's endpoint no longer exists" },
	[FABREX_WC_TOO_LONG] = { FI_EMSGSIZE,
		"the message exceeds the peer's receive cells" },
	[FABREX_WC_DATA] = { FI_ECRC, "the end-to-end check failed" },
	[FABREX_WC_LFAULT] = { FI_EFAULT, "access to local memory failed" },
	[FABREX_WC_RFAULT] = { FI_EREMOTEIO,
		"access to remote memory failed: unmapped, or the peer died" },
	[FABREX_WC_FENCED] = { FI_ECANCELED,
		"not started, since an earlier operation failed" },
	[FABREX_WC_FLUSHED] = { FI_ECANCELED,
		"not started: the queue is gone" },
	[FABREX_WC_ABORTED] = { FI_ECONNABORTED,
		"interrupted by a reset of the port or the loss of its link" },
};
#define STATUSES	((int)(sizeof(statuses) / sizeof(*statuses)))

static const struct {
	int error;
	const char *text;
} causes[] = {
	[CAUSE_GENERATION - CAUSE_GENERATION] = { FI_ECONNREFUSED,
		"the address is of an earlier endpoint, which no longer exists: get the new one's" },
	[CAUSE_ABSENT - CAUSE_GENERATION] = { FI_EHOSTUNREACH,
		"no endpoint has this address: not started, or ended (FI_FABREX_RESOLVE_MS)" },
	[CAUSE_DEAD - CAUSE_GENERATION] = { FI_ECONNRESET,
		"the peer's process or port has ended" },
	[CAUSE_CLOSED - CAUSE_GENERATION] = { FI_ECONNRESET,
		"the peer has closed its endpoint" },
	[CAUSE_REFUSED - CAUSE_GENERATION] = { FI_ECONNREFUSED,
		"the peer refuses to talk to this endpoint: another version of the provider?" },
	[CAUSE_CANCELED - CAUSE_GENERATION] = { FI_ECANCELED,
		"canceled by the program" },
	[CAUSE_TRUNCATED - CAUSE_GENERATION] = { FI_ETRUNC,
		"the message is longer than the buffer" },
	[CAUSE_REGION - CAUSE_GENERATION] = { FI_EFAULT,
		"the memory region of the operation was closed" },
	[CAUSE_PROTOCOL - CAUSE_GENERATION] = { FI_EIO,
		"the peer does not follow the protocol" },
	[CAUSE_SOURCE - CAUSE_GENERATION] = { FI_EADDRNOTAVAIL,
		"the sender is not in the address vector" },
};
_Static_assert(sizeof(causes) / sizeof(*causes) == CAUSE_END - CAUSE_GENERATION,
	       "each cause has a text");

int fi_of_status(int status)
{
	return status >= 0 && status < STATUSES ? statuses[status].error :
	       FI_EIO;
}

/* Programs pass whatever they have. */
static bool is_errno(int cause)
{
	return cause < 0 && cause > -4096;
}

int fi_of_cause(int cause)
{
	if (is_errno(cause))
		return -fi_of_errno(cause);
	if (cause >= CAUSE_GENERATION && cause < CAUSE_END)
		return causes[cause - CAUSE_GENERATION].error;
	return fi_of_status(cause);
}

const char *cause_text(int cause)
{
	if (is_errno(cause))
		return fi_strerror(-cause);
	if (cause >= CAUSE_GENERATION && cause < CAUSE_END)
		return causes[cause - CAUSE_GENERATION].text;
	if (cause >= 0 && cause < STATUSES && statuses[cause].text)
		return statuses[cause].text;
	return "unknown reason";
}

const char *cause_copy(int cause, char *buf, size_t len)
{
	if (!buf || !len)
		return cause_text(cause);
	snprintf(buf, len, "%s", cause_text(cause));
	return buf;
}
