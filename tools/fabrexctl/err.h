/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Errors of fabrexctl: an errno, the object it is about, one sentence.
 * Filled in where the cause is known, printed once in run.c.
 */
#ifndef CTL_ERR_H
#define CTL_ERR_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Exit codes; fabrexctl(8) documents them. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_FOUND = 3,
	EXIT_BUSY = 4,
	EXIT_DENIED = 5,
	EXIT_NO_DEVICE = 6,
	EXIT_TIMEOUT = 7,
	EXIT_DIFFERS = 8,
	EXIT_NO_ROOM = 9,
	EXIT_UNREACHABLE = 10,
	EXIT_NO_P2P = 11,
};

struct err {
	int code;		/* errno, 0: no error */
	bool usage;		/* the command line is wrong */
	bool unsure;		/* what failed may have been done all the same */
	char object[64];	/* name of what it is about, or "" */
	char message[512];
};

/**
 * err_set() - record an error
 * @e:      where
 * @code:   errno value
 * @object: name of the object, or NULL
 * @fmt:    one sentence with cause and remedy, without full stop
 *
 * Return: -@code
 */
int err_set(struct err *e, int code, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The command line is wrong: exit code 2. Return: -EINVAL */
int err_usage(struct err *e, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Put a formatted text before the message there is. */
void err_prefix(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void err_append(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Name the object, in the message too unless it is named there already. */
void err_about(struct err *e, const char *object);
void err_clear(struct err *e);

int err_exit_code(const struct err *e);
/* "EBUSY"; for a code without a name, its number. */
const char *err_name(int code);

#endif
