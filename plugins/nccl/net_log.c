// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lines in NCCL's log, and what errors of libfabrex are for NCCL. Used by
 * everything.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "net.h"

static _Atomic(nccl_logger *) logger;

void net_log_to(nccl_logger *log)
{
	if (log)
		atomic_store(&logger, log);
}

void net_say(int level, const char *format, ...)
{
	nccl_logger *log = atomic_load(&logger);
	char line[512];
	va_list args;

	if (!log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log(level, NCCL_LOG_INIT | NCCL_LOG_NET, "NET/" NET_NAME, 0, "%s",
	    line);
}

enum nccl_result net_result(int error)
{
	switch (error) {
	case 0:
		return NCCL_SUCCESS;
	case -EINVAL:
	case -EFAULT:
		return NCCL_INVALID_ARGUMENT;
	case -EHOSTUNREACH:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EPROTO:
	case -ENOENT:
		return NCCL_REMOTE_ERROR;
	default:
		return NCCL_SYSTEM_ERROR;
	}
}
