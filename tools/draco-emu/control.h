/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The control socket: lines of JSON in, lines of JSON out (draco-emu(8)). Loop
 * thread only.
 */
#ifndef EMU_CONTROL_H
#define EMU_CONTROL_H

#include <json-c/json.h>

struct fabric;
struct control;

int control_create(struct fabric *f, const char *path, struct control **out);
void control_destroy(struct control *c);

/* One request; the reply is the caller's to put. For tests, too. */
struct json_object *control_execute(struct fabric *f, const char *line);

#endif
