// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Errors and versions of the public API. The text of the last failure belongs to
 * the thread: no lock, and another thread's failure does not replace it.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "plan/api/api.h"

#define STRINGIFY_(x)	#x
#define STRINGIFY(x)	STRINGIFY_(x)

static __thread char last[sizeof(((struct plan_error *)0)->text)] = "no error";

EXPORT const char *fabrex_plan_version(void)
{
	return STRINGIFY(FABREX_PLAN_VERSION_MAJOR) "."
	       STRINGIFY(FABREX_PLAN_VERSION_MINOR);
}

EXPORT const char *fabrex_plan_strerror_last(void)
{
	return last;
}

int api_fail(int code, const char *fmt, ...)
{
	char text[sizeof(last)];
	va_list ap;

	/* An argument may be the previous text. */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(last, text, sizeof(last));
	return -code;
}

int api_error(int err, const struct plan_error *e)
{
	if (e->code)
		return api_fail(e->code, "%s", e->text);
	return api_fail(-err, "%s", strerrordesc_np(-err));
}

int api_copy_in(const char *what, void *to, size_t known, const void *from,
		size_t size)
{
	const unsigned char *bytes = from;
	size_t i;

	for (i = known; i < size; i++)
		if (bytes[i])
			return api_fail(E2BIG, "%s: byte %zu of the structure is newer than this library; set it to 0 or update libfabrex-plan",
					what, i);
	memset(to, 0, known);
	memcpy(to, from, size < known ? size : known);
	return 0;
}

void api_copy_out(void *to, size_t size, const void *from, size_t known)
{
	size_t n = size < known ? size : known;

	memcpy(to, from, n);
	memset((char *)to + n, 0, size - n);
}
