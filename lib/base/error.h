/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calling thread's last error sentence: object, cause, remedy. Called by
 * everything in lib/, read by applications with fabrex_strerror_last().
 */
#ifndef LIB_ERROR_H
#define LIB_ERROR_H

/* Format the sentence; returns -err. */
int fxi_error(int err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));
/* The same without formatting, for paths that are hot. Returns -err. */
int fxi_error_static(int err, const char *sentence);
/* Text of an errno, thread safe. */
const char *fxi_errno_str(int err);

#endif
