/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages to stderr, one line each, with the time since start. Any thread.
 */
#ifndef EMU_LOG_H
#define EMU_LOG_H

#include <stdbool.h>

void log_set_verbose(bool on);

/* What an operator has to know; what went wrong; only with --verbose. */
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
