// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Error messages and names of completion statuses. The message is kept per
 * thread: it needs no lock, and other threads' failures do not overwrite it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <fabrex/fabrex.h>

#include "base/error.h"
#include "base/export.h"

#define STRINGIFY_(x)	#x
#define STRINGIFY(x)	STRINGIFY_(x)

static __thread const char *last_message;
static __thread char last_buffer[320];
static __thread char errno_buffer[64];

int fxi_error(int err, const char *fmt, ...)
{
	char message[sizeof(last_buffer)];
	va_list ap;

	/* An argument may be the previous message. */
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	memcpy(last_buffer, message, sizeof(last_buffer));
	last_message = last_buffer;
	return -err;
}

int fxi_error_static(int err, const char *message)
{
	last_message = message;
	return -err;
}

const char *fxi_errno_str(int err)
{
	const char *text = strerrordesc_np(err);

	if (text)
		return text;
	snprintf(errno_buffer, sizeof(errno_buffer), "error %d", err);
	return errno_buffer;
}

EXPORT const char *fabrex_strerror_last(void)
{
	return last_message ? last_message : "no error";
}

EXPORT const char *fabrex_version(void)
{
	return STRINGIFY(FABREX_VERSION_MAJOR) "."
	       STRINGIFY(FABREX_VERSION_MINOR);
}

EXPORT const char *fabrex_wc_str(int status)
{
	static const char *const names[] = {
		[FABREX_WC_OK] = "ok",
		[FABREX_WC_BAD_OPCODE] = "operation unknown to the device",
		[FABREX_WC_BAD_DESC] = "bad descriptor",
		[FABREX_WC_LKEY] = "bad local key",
		[FABREX_WC_LBOUNDS] = "beyond the end of the local region",
		[FABREX_WC_LACCESS] = "local region lacks the right",
		[FABREX_WC_RKEY] = "bad remote key",
		[FABREX_WC_RBOUNDS] = "beyond the end of the remote region",
		[FABREX_WC_RACCESS] = "remote region lacks the right",
		[FABREX_WC_RPEER] = "remote region not open to this peer",
		[FABREX_WC_UNREACHABLE] = "peer unreachable",
		[FABREX_WC_RNR] = "receiver has no free cell",
		[FABREX_WC_BAD_QUEUE] = "no such target queue or wrong key",
		[FABREX_WC_TOO_LONG] = "datagram exceeds the target's cell",
		[FABREX_WC_DATA] = "end-to-end check failed",
		[FABREX_WC_LFAULT] = "access to local memory failed",
		[FABREX_WC_RFAULT] = "access to remote memory failed",
		[FABREX_WC_FENCED] = "not started: an earlier one failed",
		[FABREX_WC_FLUSHED] = "not started: the queue is gone",
		[FABREX_WC_ABORTED] = "interrupted by reset or link loss",
	};

	if (status < 0 || status >= (int)(sizeof(names) / sizeof(names[0])))
		return "unknown status";
	return names[status];
}
