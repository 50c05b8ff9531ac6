/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Client of one QEMU's monitor (QMP). Connects when the socket appears, again
 * after QEMU went. Loop thread only; callbacks too.
 */
#ifndef EMU_QMP_H
#define EMU_QMP_H

#include <stdbool.h>
#include <json-c/json.h>

struct qmp;

/* @error: NULL, or QEMU's "class: text", or "disconnected". */
typedef void (*qmp_reply_fn)(void *arg, struct json_object *ret,
			     const char *error);

struct qmp_listener {
	void (*state)(void *arg, bool up);
	void (*event)(void *arg, const char *name, struct json_object *data);
	void *arg;
	struct qmp_listener *next;
};

int qmp_create(const char *host, const char *path, struct qmp **out);
void qmp_destroy(struct qmp *q);
bool qmp_up(struct qmp *q);
void qmp_listen(struct qmp *q, struct qmp_listener *l);
void qmp_unlisten(struct qmp *q, struct qmp_listener *l);

/* @arguments is taken over; may be NULL. -ENOTCONN if not up. */
int qmp_execute(struct qmp *q, const char *command,
		struct json_object *arguments, qmp_reply_fn fn, void *arg);
/* No reply is delivered to @arg any more. */
void qmp_cancel(struct qmp *q, void *arg);

#endif
