/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records: what is known about an element as a JSON object. Tables and trees
 * are drawn from the same records, so that they cannot say anything else.
 */
#ifndef CTL_JSON_H
#define CTL_JSON_H

#include <json-c/json.h>

#include "backend.h"
#include "model.h"

/* Keys are not copied: they have to outlive the object. NULL and "" become
 * null.
 */
void rec_str(json_object *o, const char *key, const char *s);
/* A string; bytes that are no UTF-8, so no JSON either, become "?". */
json_object *json_text(const char *s);
void rec_int(json_object *o, const char *key, int64_t v);
void rec_bool(json_object *o, const char *key, bool v);
void rec_double(json_object *o, const char *key, double v, int digits);
void rec_put(json_object *o, const char *key, json_object *v);

const char *rec_get_str(json_object *o, const char *key);
int64_t rec_get_num(json_object *o, const char *key);
bool rec_get_flag(json_object *o, const char *key);

json_object *json_error(const struct err *e);
json_object *json_fport(const struct fport *p);
json_object *json_switch(const struct model *m, const struct object *o);
json_object *json_port(const struct model *m, const struct object *o);
json_object *json_host(const struct model *m, const struct object *o);
json_object *json_appliance(const struct model *m, const struct object *o);
json_object *json_endpoint(const struct model *m, const struct object *o);
json_object *json_event(const struct event *ev);

#endif
