// SPDX-License-Identifier: LGPL-2.1-or-later
/* Max-min fair rates of flows that share links; see sharing.h. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plan/simulate/sharing.h"

#define NOWHERE (~0u)

struct flow {
	double end;		/* in bytes that its class has served each */
	uint64_t order;		/* of starting: among equal ends */
	uint32_t id;
};

struct class {
	uint32_t first, nlinks;	/* in paths */
	uint32_t nflows, room;
	double weight;		/* of each flow: its rate to that of weight 1 */
	struct flow *flows;	/* a heap, first to end on top */
	double rate;		/* of each flow */
	double served;		/* bytes of each flow, as of @since */
	double since;
	double next;		/* when its first flow ends */
	uint32_t place;		/* in the heap of classes */
	double charge;		/* bytes a second, of all its flows together */
	uint32_t neck;		/* link that limits it */
	uint32_t neck_before, neck_after; /* others that it limits */
	uint32_t next_neck;
	double next_rate;
	uint64_t round;		/* of sharing out for which it was inside */
	bool dirty, fixed;
};

struct link {
	double capacity;
	double used;		/* sum of charges */
	double left, share;	/* while sharing out; of a weight of 1 */
	uint64_t nflows;	/* not yet fixed */
	double weight;		/* of these */
	uint64_t look;		/* when these were set */
	uint32_t first, nactive; /* in users: classes that have flows */
	uint32_t first_necked;	/* class that it limits */
	bool fixes;		/* it limits somebody */
};

struct start {
	double bytes;
	uint32_t class, id;
};

struct sharing {
	uint32_t nlinks, nclasses, class_room;
	struct link *links;
	struct class *classes;
	uint64_t npaths, path_room;
	uint32_t *paths;		/* links of classes */
	uint32_t *at;		/* and where in users each stands there */
	uint64_t *users;	/* path of an active class, by link */
	uint32_t nslots;
	uint32_t *slots;	/* class + 1, by its links */
	uint32_t nheap;
	uint32_t *heap;		/* active classes by next */
	uint32_t ndirty, ninside, nstarts, start_room;
	uint32_t *dirty, *inside, *narrow;
	uint64_t round, look;
	uint32_t *owner;	/* class of a path */
	struct start *starts;
	uint64_t order, work;
};

struct sharing *sharing_new(const double *rate, uint32_t nlinks)
{
	struct sharing *f = calloc(1, sizeof(*f));
	uint32_t i;

	if (!f)
		return NULL;
	f->links = calloc(nlinks + 1, sizeof(*f->links));
	f->nslots = 64;
	f->slots = calloc(f->nslots, sizeof(*f->slots));
	if (!f->links || !f->slots) {
		sharing_free(f);
		return NULL;
	}
	f->nlinks = nlinks;
	for (i = 0; i < nlinks; i++) {
		f->links[i].capacity = rate[i];
		f->links[i].first_necked = NOWHERE;
	}
	return f;
}

void sharing_free(struct sharing *f)
{
	uint32_t i;

	if (!f)
		return;
	for (i = 0; i < f->nclasses; i++)
		free(f->classes[i].flows);
	free(f->links);
	free(f->classes);
	free(f->paths);
	free(f->at);
	free(f->users);
	free(f->slots);
	free(f->heap);
	free(f->dirty);
	free(f->inside);
	free(f->narrow);
	free(f->owner);
	free(f->starts);
	free(f);
}

/* ---- classes ----------------------------------------------------------- */

static uint32_t *slot_of(const struct sharing *f, const uint32_t *links,
			 uint32_t n, double weight)
{
	uint32_t h = 2166136261u, mask = f->nslots - 1, i;

	for (i = 0; i < n; i++)
		h = (h ^ links[i]) * 16777619u;
	for (h ^= h >> 15; f->slots[h & mask]; h++) {
		const struct class *c = &f->classes[f->slots[h & mask] - 1];

		if (c->nlinks == n && c->weight == weight && !memcmp(
				f->paths + c->first, links, n * sizeof(*links)))
			break;
	}
	return &f->slots[h & mask];
}

static int rehash(struct sharing *f)
{
	uint32_t *old = f->slots, i;

	f->slots = calloc(2 * f->nslots, sizeof(*f->slots));
	if (!f->slots) {
		f->slots = old;
		return -ENOMEM;
	}
	f->nslots *= 2;
	free(old);
	for (i = 0; i < f->nclasses; i++)
		*slot_of(f, f->paths + f->classes[i].first,
			 f->classes[i].nlinks, f->classes[i].weight) = i + 1;
	return 0;
}

static int make_room(struct sharing *f, uint32_t nlinks)
{
	uint64_t room = f->path_room ? f->path_room : 64;
	void *p;

	if (2 * (f->nclasses + 1) > f->nslots && rehash(f))
		return -ENOMEM;
	if (f->nclasses == f->class_room) {
		uint32_t n = f->class_room ? 2 * f->class_room : 64;

		p = realloc(f->classes, n * sizeof(*f->classes));
		if (!p)
			return -ENOMEM;
		f->classes = p;
		f->class_room = n;
	}
	while (room < f->npaths + nlinks)
		room *= 2;
	if (room > UINT32_MAX)
		return -ENOMEM;
	p = room == f->path_room ? f->paths :
	    realloc(f->paths, room * sizeof(*f->paths));
	if (!p)
		return -ENOMEM;
	f->paths = p;
	f->path_room = room;
	return 0;
}

int64_t sharing_class(struct sharing *f, const uint32_t *links, uint32_t n,
		      double weight)
{
	uint32_t *slot;

	if (make_room(f, n))
		return -ENOMEM;
	slot = slot_of(f, links, n, weight);
	if (*slot)
		return *slot - 1;
	f->classes[f->nclasses] = (struct class){
		.first = (uint32_t)f->npaths, .nlinks = n, .place = NOWHERE,
		.next = INFINITY, .neck = NOWHERE, .weight = weight,
	};
	memcpy(f->paths + f->npaths, links, n * sizeof(*links));
	f->npaths += n;
	*slot = ++f->nclasses;
	return f->nclasses - 1;
}

int sharing_ready(struct sharing *f)
{
	uint32_t i, k, sum = 0;

	f->at = calloc(f->npaths + 1, sizeof(*f->at));
	f->owner = calloc(f->npaths + 1, sizeof(*f->owner));
	f->users = calloc(f->npaths + 1, sizeof(*f->users));
	f->heap = calloc(f->nclasses + 1, sizeof(*f->heap));
	f->dirty = calloc(f->nclasses + 1, sizeof(*f->dirty));
	f->inside = calloc(f->nclasses + 1, sizeof(*f->inside));
	f->narrow = calloc(f->nlinks + 1, sizeof(*f->narrow));
	if (!f->at || !f->owner || !f->users || !f->heap || !f->dirty ||
	    !f->inside || !f->narrow)
		return -ENOMEM;
	for (i = 0; i < f->nclasses; i++)
		for (k = 0; k < f->classes[i].nlinks; k++) {
			f->owner[f->classes[i].first + k] = i;
			f->links[f->paths[f->classes[i].first + k]].nactive++;
		}
	for (i = 0; i < f->nlinks; i++) {
		f->links[i].first = sum;
		sum += f->links[i].nactive;
		f->links[i].nactive = 0;
	}
	return 0;
}

/* Its links know it only as long as it has flows. */
static void activate(struct sharing *f, struct class *c)
{
	uint32_t w;

	for (w = c->first; w < c->first + c->nlinks; w++) {
		struct link *l = &f->links[f->paths[w]];

		f->at[w] = l->nactive;
		f->users[l->first + l->nactive++] = w;
	}
	c->served = 0;
	c->rate = 0;
}

static void deactivate(struct sharing *f, struct class *c)
{
	uint32_t w;

	for (w = c->first; w < c->first + c->nlinks; w++) {
		struct link *l = &f->links[f->paths[w]];
		uint64_t last = f->users[l->first + --l->nactive];

		f->users[l->first + f->at[w]] = last;
		f->at[last] = f->at[w];
		if (!l->nactive)
			l->used = 0;	/* and no errors add up */
	}
}

/* ---- the heap of classes ----------------------------------------------- */

static bool sooner(const struct sharing *f, uint32_t a, uint32_t b)
{
	double x = f->classes[a].next, y = f->classes[b].next;

	return x < y || (x == y && a < b);
}

static void put(struct sharing *f, uint32_t place, uint32_t class)
{
	f->heap[place] = class;
	f->classes[class].place = place;
}

static void sift_up(struct sharing *f, uint32_t place, uint32_t class)
{
	uint32_t up;

	for (; place; place = up) {
		up = (place - 1) / 2;
		if (!sooner(f, class, f->heap[up]))
			break;
		put(f, place, f->heap[up]);
	}
	put(f, place, class);
}

static void sift_down(struct sharing *f, uint32_t place, uint32_t class)
{
	uint32_t down;

	for (; (down = 2 * place + 1) < f->nheap; place = down) {
		if (down + 1 < f->nheap &&
		    sooner(f, f->heap[down + 1], f->heap[down]))
			down++;
		if (!sooner(f, f->heap[down], class))
			break;
		put(f, place, f->heap[down]);
	}
	put(f, place, class);
}

/* Its next end has changed. */
static void reorder(struct sharing *f, uint32_t class)
{
	struct class *c = &f->classes[class];

	c->next = !c->nflows ? INFINITY : !c->rate ? INFINITY : c->since +
		  fmax(0, c->flows[0].end - c->served) / c->rate;
	if (c->nflows && c->place == NOWHERE) {
		sift_up(f, f->nheap++, class);
	} else if (!c->nflows && c->place != NOWHERE) {
		uint32_t place = c->place, last = f->heap[--f->nheap];

		c->place = NOWHERE;
		if (last != class) {
			sift_up(f, place, last);
			sift_down(f, f->classes[last].place, last);
		}
	} else if (c->nflows) {
		sift_up(f, c->place, class);
		sift_down(f, c->place, class);
	}
}

/* ---- flows ------------------------------------------------------------- */

static void mark(struct sharing *f, uint32_t class)
{
	if (!f->classes[class].dirty)
		f->dirty[f->ndirty++] = class;
	f->classes[class].dirty = true;
}

int sharing_start(struct sharing *f, uint32_t class, double bytes, uint32_t id)
{
	if (f->nstarts == f->start_room) {
		uint32_t n = f->start_room ? 2 * f->start_room : 256;
		void *p = realloc(f->starts, n * sizeof(*f->starts));

		if (!p)
			return -ENOMEM;
		f->starts = p;
		f->start_room = n;
	}
	f->starts[f->nstarts++] = (struct start){ bytes, class, id };
	return 0;
}

static bool ends_before(const struct flow *a, const struct flow *b)
{
	return a->end < b->end || (a->end == b->end && a->order < b->order);
}

static int push(struct sharing *f, struct class *c, const struct start *s)
{
	struct flow new = { c->served + s->bytes, f->order++, s->id };
	uint32_t i, up;

	if (c->nflows == c->room) {
		uint32_t n = c->room ? 2 * c->room : 4;
		void *p = realloc(c->flows, n * sizeof(*c->flows));

		if (!p)
			return -ENOMEM;
		c->flows = p;
		c->room = n;
	}
	for (i = c->nflows++; i; i = up) {
		up = (i - 1) / 2;
		if (!ends_before(&new, &c->flows[up]))
			break;
		c->flows[i] = c->flows[up];
	}
	c->flows[i] = new;
	return 0;
}

uint32_t sharing_pop(struct sharing *f)
{
	struct class *c = &f->classes[f->heap[0]];
	uint32_t class = f->heap[0], id = c->flows[0].id, i = 0, down;
	struct flow last = c->flows[--c->nflows];

	for (; (down = 2 * i + 1) < c->nflows; i = down) {
		if (down + 1 < c->nflows &&
		    ends_before(&c->flows[down + 1], &c->flows[down]))
			down++;
		if (!ends_before(&c->flows[down], &last))
			break;
		c->flows[i] = c->flows[down];
	}
	c->flows[i] = last;
	mark(f, class);
	reorder(f, class);
	return id;
}

double sharing_next(const struct sharing *f)
{
	return f->nheap ? f->classes[f->heap[0]].next : INFINITY;
}

uint64_t sharing_work(const struct sharing *f)
{
	return f->work;
}

/* ---- sharing out ------------------------------------------------------- */

/*
 * Each flow has a neck: a full link on which nobody has more than it; that is
 * what makes rates max-min fair. When flows come and go on a link, those change
 * whose neck it is, and with them those whose necks they cross, and so on: the
 * inside. All others keep their rates and their necks, which nobody inside
 * crosses. The inside shares what they leave. If that makes a neck on which
 * somebody outside has more, he comes inside, and it is done once more.
 */

static void serve(struct class *c, double now)
{
	c->served += c->rate * (now - c->since);
	c->since = now;
}

static int admit(struct sharing *f, double now)
{
	uint32_t i;

	for (i = 0; i < f->nstarts; i++) {
		const struct start *s = &f->starts[i];
		struct class *c = &f->classes[s->class];

		if (!c->nflows && !c->dirty)
			activate(f, c);
		serve(c, now);
		mark(f, s->class);
		if (push(f, c, s))
			return -ENOMEM;
	}
	f->nstarts = 0;
	return 0;
}

static void unlink_neck(struct sharing *f, struct class *c)
{
	if (c->neck == NOWHERE)
		return;
	if (c->neck_before != NOWHERE)
		f->classes[c->neck_before].neck_after = c->neck_after;
	else
		f->links[c->neck].first_necked = c->neck_after;
	if (c->neck_after != NOWHERE)
		f->classes[c->neck_after].neck_before = c->neck_before;
	c->neck = NOWHERE;
}

static void link_neck(struct sharing *f, uint32_t class, uint32_t link)
{
	struct class *c = &f->classes[class];
	uint32_t first = f->links[link].first_necked;

	c->neck = link;
	c->neck_before = NOWHERE;
	c->neck_after = first;
	if (first != NOWHERE)
		f->classes[first].neck_before = class;
	f->links[link].first_necked = class;
}

/* What it had is there for the inside. */
static void come_inside(struct sharing *f, uint32_t class)
{
	struct class *c = &f->classes[class];
	uint32_t k;

	if (c->round == f->round)
		return;
	c->round = f->round;
	unlink_neck(f, c);
	for (k = 0; k < c->nlinks; k++)
		f->links[f->paths[c->first + k]].used -= c->charge;
	c->charge = 0;
	f->inside[f->ninside++] = class;
	f->work += c->nlinks;
}

/* And with them all whose necks they cross, from the @from'th on. */
static void close_inside(struct sharing *f, uint32_t from)
{
	uint32_t i, k;

	for (i = from; i < f->ninside; i++) {
		const struct class *c = &f->classes[f->inside[i]];

		for (k = 0; k < c->nlinks; k++) {
			const struct link *l = &f->links[f->paths[c->first + k]];

			while (l->first_necked != NOWHERE)
				come_inside(f, l->first_necked);
		}
		f->work += c->nlinks;
	}
}

/* The links of the inside, and what they have for it. */
static uint32_t gather(struct sharing *f)
{
	uint32_t i, k, n = 0;

	f->look++;
	for (i = 0; i < f->ninside; i++) {
		struct class *c = &f->classes[f->inside[i]];

		c->fixed = !c->nflows;
		for (k = 0; k < c->nlinks; k++) {
			uint32_t link = f->paths[c->first + k];
			struct link *l = &f->links[link];

			if (l->look != f->look) {
				l->look = f->look;
				l->left = fmax(0, l->capacity - l->used);
				l->nflows = 0;
				l->weight = 0;
				l->fixes = false;
				f->narrow[n++] = link;
			}
			l->nflows += c->nflows;
			l->weight += c->weight * c->nflows;
		}
		f->work += c->nlinks;
	}
	return n;
}

static void fix(struct sharing *f, uint32_t class, uint32_t link, double share)
{
	struct class *c = &f->classes[class];
	uint32_t k;

	c->fixed = true;
	c->next_rate = share * c->weight;
	c->next_neck = link;
	for (k = 0; k < c->nlinks; k++) {
		struct link *l = &f->links[f->paths[c->first + k]];

		l->nflows -= c->nflows;
		l->weight -= c->weight * c->nflows;
		l->left = fmax(0, l->left - c->next_rate * c->nflows);
	}
	f->work += c->nlinks;
}

/*
 * What is left of it for a weight of 1. Weights that were taken away leave
 * errors of rounding; what is not fixed yet weighs more than these.
 */
static double share_of(const struct link *l)
{
	return l->left / l->weight;
}

/* All that cross @link get what is the least there is anywhere. */
static void fix_link(struct sharing *f, uint32_t link, double share)
{
	struct link *l = &f->links[link];
	uint32_t i;

	l->fixes = true;
	l->share = share;
	for (i = 0; i < l->nactive; i++) {
		uint32_t class = f->owner[f->users[l->first + i]];

		if (f->classes[class].round == f->round &&
		    !f->classes[class].fixed)
			fix(f, class, link, share);
	}
	f->work += l->nactive;
}

/*
 * Progressive filling: the link that has least for each flow fixes those that
 * cross it; on with what is left. Equal links go together, so that symmetric
 * fabrics take few rounds. Links that are done go to the end of the array.
 */
static void fill(struct sharing *f, uint32_t n)
{
	double least, share;
	uint32_t i;

	while (n) {
		least = INFINITY;
		f->work += n;
		for (i = 0; i < n;) {
			const struct link *l = &f->links[f->narrow[i]];
			uint32_t link = f->narrow[i];

			if (!l->nflows) {
				f->narrow[i] = f->narrow[--n];
				f->narrow[n] = link;
				continue;
			}
			share = share_of(l);
			least = share < least ? share : least;
			i++;
		}
		for (i = 0; i < n; i++) {
			const struct link *l = &f->links[f->narrow[i]];

			if (l->nflows && share_of(l) <= least * (1 + 1e-12))
				fix_link(f, f->narrow[i], least);
		}
	}
}

/* Who is outside and has more on a link that is now full comes inside. */
static bool invite(struct sharing *f, uint32_t n)
{
	uint32_t before = f->ninside, i, k;

	for (i = 0; i < n; i++) {
		const struct link *l = &f->links[f->narrow[i]];

		for (k = 0; l->fixes && k < l->nactive; k++) {
			uint32_t class = f->owner[f->users[l->first + k]];

			if (f->classes[class].rate > l->share * (1 + 1e-9) *
						     f->classes[class].weight)
				come_inside(f, class);
		}
		f->work += l->fixes ? l->nactive : 1;
	}
	close_inside(f, before);
	return f->ninside > before;
}

static void settle(struct sharing *f, uint32_t class, double now)
{
	struct class *c = &f->classes[class];
	uint32_t k;

	if (!c->nflows)
		return;
	link_neck(f, class, c->next_neck);
	c->charge = c->next_rate * c->nflows;
	for (k = 0; k < c->nlinks; k++)
		f->links[f->paths[c->first + k]].used += c->charge;
	f->work += c->nlinks;
	if (c->rate == c->next_rate && !c->dirty)
		return;
	serve(c, now);
	c->rate = c->next_rate;
	reorder(f, class);
}

int sharing_update(struct sharing *f, double now)
{
	uint32_t i, n;

	if (admit(f, now))
		return -ENOMEM;
	f->round++;
	f->ninside = 0;
	for (i = 0; i < f->ndirty; i++)
		come_inside(f, f->dirty[i]);
	close_inside(f, 0);
	do {
		n = gather(f);
		fill(f, n);
	} while (invite(f, n));
	for (i = 0; i < f->ninside; i++)
		settle(f, f->inside[i], now);
	for (i = 0; i < f->ndirty; i++) {
		struct class *c = &f->classes[f->dirty[i]];

		c->dirty = false;
		if (!c->nflows)
			deactivate(f, c);
	}
	f->ndirty = 0;
	return 0;
}
