// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Enumerates the wirings of given parts, equivalent ones once: host ports on
 * switches, cables between switches, and for each box how many of its uplinks go
 * to which switch and belong to which host port. Called by design.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/design/cabling.h"

#define SYMMETRIES	(720u * 24u)
/* Places tried and comparisons of whole wirings, of a level: about 2 s. */
#define WORK_MOST	100000000u
#define WORK_RENAMED	100u	/* a comparison of wirings takes so long */

/* Switches and host ports renamed, with the same host ports on each. */
struct symmetry {
	uint8_t sw[CABLING_SWITCHES];
	uint8_t port[CABLING_PORTS];
};

struct lister {
	const struct plan_parts *p;
	struct plan_error *e;
	enum cabling_level level;
	struct cabling now;
	uint32_t free[CABLING_SWITCHES];	/* ports */
	/* Places that have a way to their host port, and how far it is. */
	uint32_t nplaces;
	uint8_t places[CABLING_PLACES];
	uint32_t nsymmetries;	/* that keep the host ports; */
	struct symmetry *symmetries;
	uint32_t nfixing;	/* of these, that keep the cables too */
	uint16_t *fixing;
	struct cabling *found;
	uint32_t nfound, room;
	uint64_t visited;	/* leaves, before symmetry */
	uint64_t work;
};

/* ---- are there parts enough --------------------------------------------- */

static int check_range(const struct plan_parts *p, struct plan_error *e)
{
	static const char *const of[] = {
		"switches", "ports of a switch", "boxes", "host ports",
		"cables between switches", "GPUs of a box",
	};
	const uint32_t limits[][3] = {
		{ p->switches, 1, CABLING_SWITCHES },
		{ p->switch_ports, 2, 64 },
		{ p->boxes, 1, CABLING_BOXES },
		{ p->host_ports, 1, CABLING_PORTS },
		{ p->isls, 0, CABLING_ISLS },
		{ p->gpus, p->uplinks, 64 },
	};
	size_t i;

	if (p->uplinks != 2 && p->uplinks != 4)
		return plan_fail(e, EINVAL, "boxes with %u uplinks: a box is cascade, with 2, or flat, with 4; choose one of these",
				 p->uplinks);
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i][0] < limits[i][1] || limits[i][0] > limits[i][2])
			return plan_fail(e, EINVAL, "%u %s: %u to %u can be searched",
					 limits[i][0], of[i], limits[i][1],
					 limits[i][2]);
	if (!(p->link_gbps > 0 && p->link_gbps <= 1000) ||
	    !(p->mesh_gbps >= 0 && p->mesh_gbps <= 1000) ||
	    !(p->root_complex_gbps >= 0 && p->root_complex_gbps <= 1000))
		return plan_fail(e, EINVAL, "a capacity is out of range; links carry more than 0 and up to 1000 GB/s, mesh and root complex 0 (none) to 1000");
	if (p->boxes * p->gpus < 2)
		return plan_fail(e, EINVAL, "one GPU in all; a collective takes 2 or more");
	return 0;
}

int cabling_check(const struct plan_parts *p, struct plan_error *e)
{
	uint32_t have = p->switches * p->switch_ports;
	uint32_t uplinks = p->boxes * p->uplinks;
	int err = check_range(p, e);

	if (err)
		return err;
	if (have < uplinks + 1)
		return plan_fail(e, EINVAL, "switches are %u port%s short: %u uplinks (%u boxes with %u each) and a host port take %u, %u switch%s of %u ports %s %u; add a switch, or take boxes with fewer uplinks",
				 uplinks + 1 - have,
				 uplinks + 1 - have == 1 ? "" : "s", uplinks,
				 p->boxes, p->uplinks, uplinks + 1,
				 p->switches, p->switches == 1 ? "" : "es",
				 p->switch_ports,
				 p->switches == 1 ? "has" : "have", have);
	if (p->boxes * p->gpus > 30 * p->host_ports)
		return plan_fail(e, EINVAL, "host ports are %u short: each partition has 30 slots, %u GPUs take %u host ports; add Kumas to the server",
				 (p->boxes * p->gpus + 29) / 30 - p->host_ports,
				 p->boxes * p->gpus,
				 (p->boxes * p->gpus + 29) / 30);
	return 0;
}

/* ---- what is alike ------------------------------------------------------- */

/* The next permutation; false after the last one. */
static bool permute(uint8_t *p, uint32_t n)
{
	uint32_t i, k;
	uint8_t x;

	for (i = n; i > 1 && p[i - 2] >= p[i - 1]; i--)
		;
	if (i <= 1)
		return false;
	for (k = n - 1; p[k] <= p[i - 2]; k--)
		;
	x = p[k];
	p[k] = p[i - 2];
	p[i - 2] = x;
	for (k = n - 1; i - 1 < k; i++, k--) {
		x = p[k];
		p[k] = p[i - 1];
		p[i - 1] = x;
	}
	return true;
}

/* Renamings after which each host port is where one was before. */
static void list_symmetries(struct lister *l)
{
	const struct cabling *c = &l->now;
	struct symmetry s;
	uint32_t i;

	l->nsymmetries = 0;
	for (i = 0; i < l->p->switches; i++)
		s.sw[i] = (uint8_t)i;
	do {
		for (i = 0; i < c->nports; i++)
			s.port[i] = (uint8_t)i;
		do {
			for (i = 0; i < c->nports; i++)
				if (c->home[s.port[i]] != s.sw[c->home[i]])
					break;
			if (i == c->nports)
				l->symmetries[l->nsymmetries++] = s;
		} while (permute(s.port, c->nports));
	} while (permute(s.sw, l->p->switches));
}

static int by_uplinks(const void *a, const void *b)
{
	return memcmp(a, b, CABLING_PLACES);
}

static void rename_isls(const struct lister *l, const struct symmetry *s,
			struct cabling *out)
{
	uint32_t i, k, a, b;

	memset(out->isls, 0, sizeof(out->isls));
	for (i = 0; i < l->p->switches; i++)
		for (k = i + 1; k < l->p->switches; k++) {
			a = s->sw[i] < s->sw[k] ? s->sw[i] : s->sw[k];
			b = s->sw[i] < s->sw[k] ? s->sw[k] : s->sw[i];
			out->isls[a][b] = l->now.isls[i][k];
		}
}

static void rename_all(const struct lister *l, const struct symmetry *s,
		       struct cabling *out)
{
	const struct cabling *c = &l->now;
	uint32_t i, k, a, b;

	*out = *c;
	memset(out->uplinks, 0, sizeof(out->uplinks));
	rename_isls(l, s, out);
	for (k = 0; k < l->p->boxes; k++)
		for (i = 0; i < l->nplaces; i++) {
			a = l->places[i] / CABLING_PORTS;
			b = l->places[i] % CABLING_PORTS;
			out->uplinks[k][cabling_place(s->sw[a], s->port[b])] =
				c->uplinks[k][l->places[i]];
		}
	qsort(out->uplinks, l->p->boxes, sizeof(out->uplinks[0]), by_uplinks);
}

/* Of @gpus in a box, the first that belongs to uplink @n or one after it. */
static uint32_t first_gpu(const struct plan_parts *p, uint32_t gpus, uint32_t n)
{
	return (n * gpus + p->uplinks - 1) / p->uplinks;
}

/* Slots: each GPU is bound to the host port of its uplink. */
static bool slots_suffice(const struct plan_parts *p, const struct cabling *c)
{
	uint32_t slots[CABLING_PORTS] = { 0 }, b, i, n;

	for (b = 0; b < p->boxes; b++)
		for (n = 0, i = 0; i < CABLING_PLACES; i++) {
			slots[i % CABLING_PORTS] -= first_gpu(p, p->gpus, n);
			n += c->uplinks[b][i];
			slots[i % CABLING_PORTS] += first_gpu(p, p->gpus, n);
		}
	for (i = 0; i < CABLING_PORTS; i++)
		if (slots[i] > 30)
			return false;
	return true;
}

/*
 * Of all that are alike, the least one is taken. Uplinks are in order of places,
 * so one that is alike may have other GPUs at its host ports: only those that
 * have slots for them count.
 */
static bool is_least(struct lister *l)
{
	struct cabling sorted = l->now, other;
	uint32_t i;

	qsort(sorted.uplinks, l->p->boxes, sizeof(sorted.uplinks[0]),
	      by_uplinks);
	for (i = 0; i < l->nfixing; i++) {
		l->work += WORK_RENAMED;
		rename_all(l, &l->symmetries[l->fixing[i]], &other);
		if (memcmp(&other, &sorted, sizeof(other)) < 0 &&
		    slots_suffice(l->p, &other))
			return false;
	}
	return true;
}

/*
 * Cables come before uplinks where wirings are compared, so those that are not
 * the least as they are need no uplinks tried. Unless slots depend on which
 * uplink is where: then one with lesser cables may lack slots.
 */
static bool isls_least(struct lister *l)
{
	bool alike = l->p->gpus % l->p->uplinks == 0;
	struct cabling other;
	uint32_t i;
	int way;

	l->nfixing = 0;
	for (i = 0; i < l->nsymmetries; i++) {
		l->work++;
		rename_isls(l, &l->symmetries[i], &other);
		way = memcmp(other.isls, l->now.isls, sizeof(other.isls));
		if (way < 0 && alike)
			return false;
		if (way <= 0)
			l->fixing[l->nfixing++] = (uint16_t)i;
	}
	return true;
}

/* ---- all that can be ----------------------------------------------------- */

static int too_many(struct lister *l)
{
	return plan_fail(l->e, E2BIG, "more than %u wirings are possible, or they take too long to be listed; give fewer switches, cables between switches, or host ports, or plan for a part of the boxes",
			 CABLING_MOST);
}

static bool too_long(struct lister *l)
{
	return ++l->work > WORK_MOST;
}

/* A host port without uplinks is no better than none. */
static bool all_ports_used(const struct lister *l)
{
	uint32_t used = 0, b, i;

	for (b = 0; b < l->p->boxes; b++)
		for (i = 0; i < l->nplaces; i++)
			if (l->now.uplinks[b][l->places[i]])
				used |= 1u << l->places[i] % CABLING_PORTS;
	return used == (1u << l->now.nports) - 1;
}

/* As many at all places that the box is at, or one more. */
static bool is_even(const struct lister *l, uint32_t b)
{
	uint32_t least = UINT32_MAX, most = 0, i, n;

	for (i = 0; i < l->nplaces; i++) {
		n = l->now.uplinks[b][l->places[i]];
		if (n && n < least)
			least = n;
		if (n > most)
			most = n;
	}
	return most <= least + 1;
}

/* Boxes 0 to @b, which are in order, are of two kinds or one. */
static bool two_kinds(const struct lister *l, uint32_t b)
{
	uint32_t i, changes = 0;

	for (i = 1; i <= b; i++)
		changes += by_uplinks(l->now.uplinks[i - 1],
				      l->now.uplinks[i]) != 0;
	return changes < 2;
}

static int take(struct lister *l)
{
	struct cabling *more;

	if (++l->visited > 50ull * CABLING_MOST)
		return too_many(l);
	if (!all_ports_used(l) || !slots_suffice(l->p, &l->now) || !is_least(l))
		return 0;
	if (l->nfound == CABLING_MOST)
		return too_many(l);
	if (l->nfound == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		more = realloc(l->found, l->room * sizeof(*more));
		if (!more)
			return plan_fail(l->e, ENOMEM, "out of memory");
		l->found = more;
	}
	l->found[l->nfound++] = l->now;
	return 0;
}

/*
 * Uplinks of box @b to place @at of the list and those after it, @left of them;
 * boxes in order, since they are alike.
 */
static int place_uplinks(struct lister *l, uint32_t b, uint32_t at,
			 uint32_t left)
{
	uint32_t n, sw;
	int err = 0;

	if (too_long(l))
		return too_many(l);
	if (!left) {
		if (b && by_uplinks(l->now.uplinks[b - 1],
				    l->now.uplinks[b]) > 0)
			return 0;
		if ((l->level >= CABLING_EVEN && !is_even(l, b)) ||
		    (l->level >= CABLING_TWO && !two_kinds(l, b)))
			return 0;
		return b + 1 == l->p->boxes ? take(l) :
		       place_uplinks(l, b + 1, 0, l->p->uplinks);
	}
	if (at == l->nplaces)
		return 0;
	sw = l->places[at] / CABLING_PORTS;
	n = at + 1 == l->nplaces ? left : 0;
	for (; n <= left && n <= l->free[sw] && !err; n++) {
		l->now.uplinks[b][l->places[at]] = (uint8_t)n;
		l->free[sw] -= n;
		err = place_uplinks(l, b, at + 1, left - n);
		l->free[sw] += n;
	}
	l->now.uplinks[b][l->places[at]] = 0;
	return err;
}

/* Is there a host port on switch @sw? */
static bool has_port(const struct lister *l, uint32_t sw)
{
	uint32_t p;

	for (p = 0; p < l->now.nports; p++)
		if (l->now.home[p] == sw)
			return true;
	return false;
}

/* Places whose switch is joined with that of the host port. */
static void list_places(struct lister *l)
{
	uint32_t n = l->p->switches, reach[CABLING_SWITCHES], i, k, j, p;

	for (i = 0; i < n; i++)
		reach[i] = 1u << i;
	for (j = 0; j < n; j++)
		for (i = 0; i < n; i++)
			for (k = i + 1; k < n; k++)
				if (l->now.isls[i][k]) {
					reach[i] |= reach[k];
					reach[k] |= reach[i];
				}
	l->nplaces = 0;
	for (i = 0; i < n; i++)
		for (p = 0; p < l->now.nports; p++)
			if (reach[i] >> l->now.home[p] & 1 &&
			    (l->level < CABLING_NEAR || l->now.home[p] == i ||
			     !has_port(l, i))) {
				l->places[l->nplaces++] =
					(uint8_t)cabling_place(i, p);
				if (l->level >= CABLING_EVEN && !has_port(l, i))
					break;
			}
}

/* Free ports of switches that have a place, or of all. */
static uint32_t count_free(const struct lister *l, bool all)
{
	uint32_t n = 0, i, counted = 0;

	for (i = 0; i < l->nplaces; i++)
		counted |= 1u << l->places[i] / CABLING_PORTS;
	for (i = 0; i < l->p->switches; i++)
		n += all || counted >> i & 1 ? l->free[i] : 0;
	return n;
}

/* Joined switches have as many cables between them as other joined ones. */
static bool joined_alike(const struct lister *l)
{
	uint32_t a, b, n, same = 0;

	for (a = 0; a < l->p->switches; a++)
		for (b = a + 1; b < l->p->switches; b++) {
			n = l->now.isls[a][b];
			if (n && same && n != same)
				return false;
			same = n ? n : same;
		}
	return true;
}

/* Cables between switches a and b and the pairs after these. */
static int place_isls(struct lister *l, uint32_t a, uint32_t b, uint32_t left)
{
	uint32_t n;
	int err = 0;

	if (too_long(l))
		return too_many(l);
	if (b == l->p->switches) {
		a++;
		b = a + 1;
	}
	if (b >= l->p->switches) {
		if (l->level >= CABLING_TWO && !joined_alike(l))
			return 0;
		list_places(l);
		if (count_free(l, false) < l->p->boxes * l->p->uplinks ||
		    !isls_least(l))
			return 0;
		return place_uplinks(l, 0, 0, l->p->uplinks);
	}
	for (n = 0; n <= left && n <= l->free[a] && n <= l->free[b] && !err;
	     n++) {
		l->now.isls[a][b] = (uint8_t)n;
		l->now.nisls += n;
		l->free[a] -= n;
		l->free[b] -= n;
		err = place_isls(l, a, b + 1, left - n);
		l->free[a] += n;
		l->free[b] += n;
		l->now.nisls -= n;
	}
	l->now.isls[a][b] = 0;
	return err;
}

/* Host ports on switch @sw and those after it, no more on any than before. */
static int place_ports(struct lister *l, uint32_t sw, uint32_t left,
		       uint32_t most)
{
	uint32_t uplinks = l->p->boxes * l->p->uplinks, n, i;
	int err = 0;

	if (!left) {
		n = count_free(l, true);
		if (n < uplinks)
			return 0;
		n = (n - uplinks) / 2;	/* each cable takes two ports */
		list_symmetries(l);
		return place_isls(l, 0, 1, n < l->p->isls ? n : l->p->isls);
	}
	if (sw == l->p->switches)
		return 0;
	for (n = 1; n <= left && n <= most && n <= l->free[sw] && !err; n++) {
		for (i = 0; i < n; i++)
			l->now.home[l->now.nports + i] = (uint8_t)sw;
		l->now.nports += n;
		l->free[sw] -= n;
		err = place_ports(l, sw + 1, left - n, n);
		l->free[sw] += n;
		l->now.nports -= n;
	}
	return err;
}

/* All parts may be there, and still no wiring: switches that nothing joins. */
static int none(const struct plan_parts *p, struct plan_error *e)
{
	return plan_fail(e, EINVAL, "no wiring: %u uplinks of %u boxes do not fit on switches of %u ports that have one of %u host ports or are joined with one by one of %u cables, with at most 30 GPUs for each host port; allow more cables between switches, or more host ports",
			 p->boxes * p->uplinks, p->boxes, p->switch_ports,
			 p->host_ports, p->isls);
}

static int list_level(struct lister *l)
{
	uint32_t i, ports;
	int err = 0;

	l->nfound = 0;
	l->visited = l->work = 0;
	memset(&l->now, 0, sizeof(l->now));
	for (i = 0; i < l->p->switches; i++)
		l->free[i] = l->p->switch_ports;
	for (ports = 1; ports <= l->p->host_ports && !err; ports++)
		err = place_ports(l, 0, ports, l->level < CABLING_EVEN ? ports :
				  (ports + l->p->switches - 1) /
				  l->p->switches);
	if (!err && !l->nfound)
		err = none(l->p, l->e);
	return err;
}

int cabling_list(const struct plan_parts *p, struct cabling **out,
		 uint32_t *n, enum cabling_level *level, struct plan_error *e)
{
	struct lister l = { .p = p, .e = e };
	int err = -E2BIG;

	l.symmetries = calloc(SYMMETRIES, sizeof(*l.symmetries));
	l.fixing = calloc(SYMMETRIES, sizeof(*l.fixing));
	if (!l.symmetries || !l.fixing) {
		free(l.symmetries);
		free(l.fixing);
		return plan_fail(e, ENOMEM, "out of memory");
	}
	for (; l.level < CABLING_LEVELS && err == -E2BIG; l.level++) {
		*level = l.level;
		err = list_level(&l);
	}
	free(l.symmetries);
	free(l.fixing);
	if (err) {
		free(l.found);
		return err;
	}
	if (e)
		e->code = 0;
	*out = l.found;
	*n = l.nfound;
	return 0;
}

uint32_t cabling_uneven(const struct plan_parts *p, const struct cabling *c)
{
	uint32_t ports[CABLING_PORTS] = { 0 }, b, i, n = 0;

	for (b = 0; b < p->boxes; b++)
		for (i = 0; i < CABLING_PLACES; i++) {
			n += c->uplinks[b][i] * c->uplinks[b][i];
			ports[i % CABLING_PORTS] += c->uplinks[b][i];
		}
	for (i = 0; i < CABLING_PORTS; i++)
		n += ports[i] * ports[i];
	return n;
}

/* ---- as a topology file -------------------------------------------------- */

uint32_t cabling_taken(const struct plan_parts *p, const struct cabling *c,
		       uint32_t sw)
{
	uint32_t n = 0, i, k;

	for (i = 0; i < c->nports; i++)
		n += c->home[i] == sw;
	for (i = 0; i < p->switches; i++)
		n += c->isls[i < sw ? i : sw][i < sw ? sw : i];
	for (i = 0; i < p->boxes; i++)
		for (k = 0; k < CABLING_PORTS; k++)
			n += c->uplinks[i][cabling_place(sw, k)];
	return n;
}

/* Ports of each switch are given out in order. */
struct writer {
	FILE *f;
	const struct plan_parts *p;
	const struct cabling *c;
	uint32_t used[CABLING_SWITCHES];
};

static void write_switches(struct writer *w)
{
	uint32_t i;

	fprintf(w->f, "switches = (\n");
	for (i = 0; i < w->p->switches; i++)
		fprintf(w->f, "  { name = \"draco%u\"; ports = %u; }%s\n", i + 1,
			w->p->switch_ports, i + 1 < w->p->switches ? "," : "");
	fprintf(w->f, ");\n\nhosts = (\n  { name = \"server\"; manager = true; ports = (");
	for (i = 0; i < w->c->nports; i++)
		fprintf(w->f, "%s \"draco%u:%u\"", i ? "," : "",
			w->c->home[i] + 1u, ++w->used[w->c->home[i]]);
	fprintf(w->f, " ); slots = 30; p2p_root = %s; }\n);\n",
		w->p->root_complex_gbps > 0 ? "true" : "false");
}

/* From the last ports of a switch downwards. */
static void write_isls(struct writer *w)
{
	uint32_t last[CABLING_SWITCHES], a, b, n, first = 1;

	for (a = 0; a < w->p->switches; a++)
		last[a] = w->p->switch_ports;
	for (a = 0; a < w->p->switches; a++)
		for (b = a + 1; b < w->p->switches; b++)
			for (n = w->c->isls[a][b]; n; n--, first = 0)
				fprintf(w->f, "%s  { a = \"draco%u:%u\"; b = \"draco%u:%u\"; }",
					first ? "\nisls = (\n" : ",\n", a + 1,
					last[a]--, b + 1, last[b]--);
	if (!first)
		fprintf(w->f, "\n);\n");
}

/* The place of uplink @n of box @b: places in order. */
static uint32_t uplink_place(const struct writer *w, uint32_t b, uint32_t n)
{
	uint32_t place = 0, seen = 0;

	while (place < CABLING_PLACES &&
	       (seen += w->c->uplinks[b][place]) <= n)
		place++;
	return place;
}

static void write_boxes(struct writer *w, uint32_t gpus, double mesh_gbps)
{
	uint32_t b, n, sw;

	fprintf(w->f, "\nappliances = (");
	for (b = 0; b < w->p->boxes; b++) {
		fprintf(w->f, "%s\n  { name = \"columba%u\"; kind = \"%s\";\n    uplinks = (",
			b ? "," : "", b + 1,
			w->p->uplinks == 2 ? "cascade" : "flat");
		for (n = 0; n < w->p->uplinks; n++) {
			sw = uplink_place(w, b, n) / CABLING_PORTS;
			fprintf(w->f, "%s \"draco%u:%u\"", n ? "," : "", sw + 1,
				++w->used[sw]);
		}
		fprintf(w->f, " );\n    endpoints = ( { class = \"gpu\"; count = %u; } );",
			gpus);
		if (mesh_gbps > 0)
			fprintf(w->f, "\n    mesh = { kind = \"xgmi\"; gbps = %.3f; };",
				mesh_gbps);
		fprintf(w->f, "\n  }");
	}
	fprintf(w->f, "\n);\n");
}

static void write_bindings(struct writer *w, uint32_t gpus)
{
	uint32_t b, i, n, place;

	fprintf(w->f, "\nbindings = (");
	for (b = 0; b < w->p->boxes; b++)
		for (n = 0; n < w->p->uplinks; n++) {
			place = uplink_place(w, b, n);
			for (i = first_gpu(w->p, gpus, n);
			     i < first_gpu(w->p, gpus, n + 1); i++)
				fprintf(w->f, "%s\n  { endpoint = \"columba%u.gpu%u\"; port = \"server.%u\"; }",
					b || i ? "," : "", b + 1, i,
					place % CABLING_PORTS);
		}
	fprintf(w->f, "\n);\n");
}

char *cabling_text(const struct plan_parts *p, const struct cabling *c,
		   uint32_t gpus, double mesh_gbps)
{
	char *text = NULL;
	size_t size;
	struct writer w = { .f = open_memstream(&text, &size), .p = p, .c = c };

	if (!w.f)
		return NULL;
	fprintf(w.f, "fabric = \"design\";\nlink_gbps = %.3f;\n",
		p->link_gbps);
	if (p->root_complex_gbps > 0)
		fprintf(w.f, "root_complex_gbps = %.3f;\n",
			p->root_complex_gbps);
	fprintf(w.f, "\n");
	write_switches(&w);
	write_isls(&w);
	write_boxes(&w, gpus, mesh_gbps);
	write_bindings(&w, gpus);
	if (fclose(w.f)) {
		free(text);
		return NULL;
	}
	return text;
}
