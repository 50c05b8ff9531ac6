/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calling thread's last error message, which names object, cause and
 * remedy. Set by all of lib/, read by applications with fabrex_strerror_last().
 */
#ifndef LIB_ERROR_H
#define LIB_ERROR_H

/* Format the message; returns -err. */
int fxi_error(int err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));
/* The same without formatting, for fast paths. Returns -err. */
int fxi_error_static(int err, const char *message);
/* Text of an errno, thread safe. */
const char *fxi_errno_str(int err);

#endif
