// SPDX-License-Identifier: GPL-2.0-only
/* The model: look-ups, suggestions, distances, words. */
#include <stdlib.h>

#include "fake.h"
#include "names.h"
#include "run_line.h"
#include "util.h"

static void lookups(void)
{
	struct fake *f = fabric_large();
	struct object *o, changed;
	struct err e = { 0 };
	size_t i, good = 0;

	for (i = 0; i < f->m->n; i++)
		good += model_get(f->m, f->m->objects[i]->id) ==
				f->m->objects[i] &&
			model_find(f->m, f->m->objects[i]->name, T_ANY) ==
				f->m->objects[i];
	ok(good == f->m->n && good > 1400, "all %zu found by id and name",
	   good);
	ok(!model_get(f->m, 0) && !model_get(f->m, 99999), "unknown ids");
	ok(!model_find(f->m, "h0", T_BIT(T_PORT)), "types are respected");
	o = model_find(f->m, "h1", T_ANY);
	changed = *o;
	strcpy(changed.name, "renamed");
	ok(model_put(f->m, &changed) == o, "an object is replaced in place");
	ok(!model_find(f->m, "h1", T_ANY) &&
	   model_find(f->m, "renamed", T_ANY) == o, "and found by its new name");
	ok(!model_want(f->m, "box1.gpu77", T_BIT(T_ENDPOINT), &e) &&
	   e.code == ENOENT, "ENOENT for a wrong name");
	has(e.message, "did you mean \"box1.gpu7\"?");
	model_want(f->m, "box1", T_BIT(T_ENDPOINT), &e);
	has(e.message, "\"box1\" is an appliance, not an endpoint");
	model_want(f->m, "zzzzzzzzzz", T_BIT(T_HOST) | T_BIT(T_PORT), &e);
	has(e.message, "no port or host called \"zzzzzzzzzz\"; see");
	fake_free(f);
}

static unsigned int hops(struct fake *f, const char *port, const char *ep)
{
	return model_hops(f->m, model_find(f->m, port, T_ANY)->id,
			  model_find(f->m, ep, T_ANY));
}

static void distances(void)
{
	struct fake *f = fabric_small();
	struct object o;

	ok(hops(f, "a.0", "columba1.gpu0") == 1, "same switch: 1");
	ok(hops(f, "a.0", "columba2.gpu0") == 2, "over a link: 2");
	o = *model_find(f->m, "draco1:6", T_ANY);
	o.state = FABREX_LINK_STATE_DOWN;
	model_put(f->m, &o);
	o = *model_find(f->m, "draco2:6", T_ANY);
	o.state = FABREX_LINK_STATE_DOWN;
	model_put(f->m, &o);
	ok(hops(f, "a.0", "columba2.gpu0") == NO_HOPS, "link down: none");
	o = *model_find(f->m, "draco1:4", T_ANY);
	o.state = FABREX_LINK_STATE_DISABLED;
	model_put(f->m, &o);
	ok(hops(f, "a.0", "columba1.gpu0") == NO_HOPS, "uplink off: none");
	ok(hops(f, "a.0", "columba1.gpu4") == 1, "the other uplink is there");
	fake_free(f);
	f = fabric_large();
	ok(hops(f, "h0.0", "box0.gpu0") == 1 &&
	   hops(f, "h0.0", "box127.gpu0") == 16 &&
	   hops(f, "h63.0", "box0.gpu0") == 16, "a chain of 16 switches");
	fake_free(f);
}

static void words(void)
{
	char text[64];

	ok(name_distance("gpu0", "gpu0") == 0 &&
	   name_distance("gpu0", "gpu1") == 1 &&
	   name_distance("gpu10", "gpu01") == 1 &&
	   name_distance("", "abc") == 3 && name_distance("abc", "") == 3,
	   "distances of words");
	types_text(T_BIT(T_HOST) | T_BIT(T_PORT), text, sizeof(text));
	ok(!strcmp(text, "port or host"), "types in words: %s", text);
	ok(!strcmp(state_name(T_ENDPOINT, 5), "attaching") &&
	   !strcmp(state_name(T_ENDPOINT, 77), "unknown"), "states");
	ok(endpoint_kind("gpu") == FABREX_ENDPOINT_KIND_GPU &&
	   !endpoint_kind("?") && !endpoint_kind("gpus"), "kinds");
}

static void numbers(void)
{
	uint64_t v;
	double d;

	ok(parse_u64("7", 1, 9, &v) && v == 7, "a number");
	ok(!parse_u64("-7", 0, 9, &v) && !parse_u64("", 0, 9, &v) &&
	   !parse_u64("7x", 0, 9, &v) && !parse_u64("10", 0, 9, &v) &&
	   !parse_u64("99999999999999999999999", 0, UINT64_MAX, &v),
	   "what is none");
	ok(parse_seconds("0.25", &d) && d == 0.25, "seconds");
	ok(!parse_seconds("-1", &d) && !parse_seconds("nan", &d) &&
	   !parse_seconds("1s", &d) && !parse_seconds("1e99", &d),
	   "what are none");
}

int main(void)
{
	lookups();
	distances();
	words();
	numbers();
	return tap_done();
}
