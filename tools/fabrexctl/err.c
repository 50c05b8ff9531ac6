// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors: how they are recorded, and which exit code belongs to which errno.
 * Called from everywhere.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

static void err_fill(struct err *e, int code, const char *object,
		     const char *fmt, va_list ap)
{
	e->code = code;
	e->usage = e->unsure = false;
	e->object[0] = '\0';
	if (object)
		snprintf(e->object, sizeof(e->object), "%s", object);
	vsnprintf(e->message, sizeof(e->message), fmt, ap);
}

int err_set(struct err *e, int code, const char *object, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_fill(e, code, object, fmt, ap);
	va_end(ap);
	return -code;
}

int err_usage(struct err *e, const char *object, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_fill(e, EINVAL, object, fmt, ap);
	va_end(ap);
	e->usage = true;
	return -EINVAL;
}

void err_prefix(struct err *e, const char *fmt, ...)
{
	char old[sizeof(e->message)];
	va_list ap;
	size_t n;

	memcpy(old, e->message, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(e->message, sizeof(e->message), fmt, ap);
	va_end(ap);
	n = strlen(e->message);
	snprintf(e->message + n, sizeof(e->message) - n, "%s", old);
}

void err_append(struct err *e, const char *fmt, ...)
{
	size_t n = strlen(e->message);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->message + n, sizeof(e->message) - n, fmt, ap);
	va_end(ap);
}

void err_about(struct err *e, const char *object)
{
	if (!*e->object)
		snprintf(e->object, sizeof(e->object), "%s", object);
	if (!strstr(e->message, object))
		err_prefix(e, "%s: ", object);
}

void err_clear(struct err *e)
{
	memset(e, 0, sizeof(*e));
}

static const struct {
	int code;
	const char *name;
	enum exit_code exit;
} codes[] = {
	{ EPERM, "EPERM", EXIT_DENIED },
	{ EACCES, "EACCES", EXIT_DENIED },
	{ ENOENT, "ENOENT", EXIT_NOT_FOUND },
	{ EBUSY, "EBUSY", EXIT_BUSY },
	{ EADDRINUSE, "EADDRINUSE", EXIT_BUSY },
	{ EALREADY, "EALREADY", EXIT_BUSY },
	{ ENODEV, "ENODEV", EXIT_NO_DEVICE },
	{ ENXIO, "ENXIO", EXIT_NO_DEVICE },
	{ ETIMEDOUT, "ETIMEDOUT", EXIT_TIMEOUT },
	{ ENOSPC, "ENOSPC", EXIT_NO_ROOM },
	{ ENETDOWN, "ENETDOWN", EXIT_UNREACHABLE },
	{ EHOSTDOWN, "EHOSTDOWN", EXIT_UNREACHABLE },
	{ EHOSTUNREACH, "EHOSTUNREACH", EXIT_UNREACHABLE },
	{ EXDEV, "EXDEV", EXIT_NO_P2P },
	{ EINVAL, "EINVAL", EXIT_FAILED },
	{ EIO, "EIO", EXIT_FAILED },
	{ ENOMEM, "ENOMEM", EXIT_FAILED },
	{ EINTR, "EINTR", EXIT_FAILED },
	{ EFAULT, "EFAULT", EXIT_FAILED },
	{ EPROTO, "EPROTO", EXIT_FAILED },
	{ ENOTCONN, "ENOTCONN", EXIT_FAILED },
	{ ECANCELED, "ECANCELED", EXIT_FAILED },
	{ EOPNOTSUPP, "EOPNOTSUPP", EXIT_FAILED },
	{ ENOBUFS, "ENOBUFS", EXIT_FAILED },
	{ EEXIST, "EEXIST", EXIT_FAILED },
	{ EISDIR, "EISDIR", EXIT_FAILED },
	{ ENOTDIR, "ENOTDIR", EXIT_FAILED },
	{ ERANGE, "ERANGE", EXIT_FAILED },
	{ E2BIG, "E2BIG", EXIT_FAILED },
	{ EOVERFLOW, "EOVERFLOW", EXIT_FAILED },
	{ EPIPE, "EPIPE", EXIT_FAILED },
	{ EUCLEAN, "EUCLEAN", EXIT_FAILED },
};

#define NCODES (sizeof(codes) / sizeof(codes[0]))

int err_exit_code(const struct err *e)
{
	size_t i;

	if (!e->code)
		return EXIT_OK;
	if (e->usage)
		return EXIT_USAGE;
	for (i = 0; i < NCODES; i++)
		if (codes[i].code == e->code)
			return codes[i].exit;
	return EXIT_FAILED;
}

const char *err_name(int code)
{
	static char number[16];
	size_t i;

	for (i = 0; i < NCODES; i++)
		if (codes[i].code == code)
			return codes[i].name;
	snprintf(number, sizeof(number), "%d", code);
	return number;
}
