// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Topology files: written, so that they read back as the same fabric. What
 * the format cannot say is refused before a byte is written.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topology/topology.h"

#define NCLASSES	(TOPO_FPGA + 1)

struct writer {
	const struct topology *t;
	FILE *f;
	char *err;
	size_t err_len;
};

static int refuse(struct writer *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(struct writer *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->err, w->err_len, fmt, ap);
	va_end(ap);
	return -ENOTSUP;
}

/* ---- can it be said ------------------------------------------------------ */

static int check_switch(struct writer *w, const struct topo_switch *s)
{
	unsigned int gt = s->speed, lanes = s->width;

	if (gt != 5 && gt != 8 && gt != 16 && gt != 32 && gt != 64)
		return refuse(w, "switch \"%s\": a speed of %u GT/s; topology files know 5, 8, 16, 32 and 64",
			      s->name, gt);
	if (!lanes || lanes > 16 || (lanes & (lanes - 1)))
		return refuse(w, "switch \"%s\": %u lanes; topology files know 1, 2, 4, 8 and 16",
			      s->name, lanes);
	if (s->nports < 2 || s->nports > TOPO_MAX_SWITCH_PORTS)
		return refuse(w, "switch \"%s\": %u ports; topology files know 2 to %u",
			      s->name, s->nports, TOPO_MAX_SWITCH_PORTS);
	return 0;
}

/* Names and uplinks are not written: they follow from class and order. */
static int check_endpoints(struct writer *w, const struct topo_appliance *a)
{
	const struct topo_endpoint *ep = &w->t->endpoints[a->first];
	unsigned int total[NCLASSES] = { 0 }, seen[NCLASSES] = { 0 }, i;
	char name[TOPO_NAME_LEN + 24];

	for (i = 0; i < a->nendpoints; i++)
		total[ep[i].class]++;
	for (i = 0; i < a->nendpoints; i++) {
		unsigned int nth = seen[ep[i].class]++;

		snprintf(name, sizeof(name), "%s.%s%u", a->name,
			 topology_class_name(ep[i].class), nth);
		if (strcmp(name, ep[i].name))
			return refuse(w, "endpoint \"%s\": a topology file would call it \"%s\"; rename it there",
				      ep[i].name, name);
		if (ep[i].uplink != nth * a->nuplinks / total[ep[i].class])
			return refuse(w, "endpoint \"%s\": it sits behind uplink %u; topology files share a class out evenly, which puts it behind %u",
				      ep[i].name, ep[i].uplink,
				      nth * a->nuplinks / total[ep[i].class]);
		if (ep[i].size < 4096 || ep[i].size > 1ull << 36 ||
		    (ep[i].size & (ep[i].size - 1)))
			return refuse(w, "endpoint \"%s\": a BAR of %llu bytes; topology files know powers of two from 4K to 64G",
				      ep[i].name,
				      (unsigned long long)ep[i].size);
	}
	return 0;
}

static int check_appliance(struct writer *w, const struct topo_appliance *a)
{
	unsigned int want = a->kind == TOPO_CASCADE ? 2 : 4;

	if (a->nuplinks != want)
		return refuse(w, "appliance \"%s\": %u of its %u uplinks are there; connect the others, a topology file lists all",
			      a->name, a->nuplinks, want);
	if (!a->nendpoints)
		return refuse(w, "appliance \"%s\": it has no endpoints; a topology file lists at least one",
			      a->name);
	return check_endpoints(w, a);
}

static int check(struct writer *w)
{
	const struct topology *t = w->t;
	unsigned int i;
	int err = 0;

	if (!*t->name)
		err = refuse(w, "the fabric has no name; topology files begin with one");
	if (!err && (!t->nswitches || !t->nhosts))
		err = refuse(w, "%s: no %s; a topology file lists at least one",
			     t->name, t->nswitches ? "hosts" : "switches");
	for (i = 0; !err && i < t->nswitches; i++)
		err = check_switch(w, &t->switches[i]);
	for (i = 0; !err && i < t->nhosts; i++)
		if (!t->hosts[i].nports)
			err = refuse(w, "host \"%s\": it has no ports; a topology file lists at least one",
				     t->hosts[i].name);
	for (i = 0; !err && i < t->nappliances; i++)
		err = check_appliance(w, &t->appliances[i]);
	return err;
}

/* ---- text ---------------------------------------------------------------- */

static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\x%02x", (unsigned char)*s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

/* A float: libconfig tells it by its point. */
static void put_gbps(FILE *f, const char *key, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.15g", value);
	fprintf(f, "%s = %s%s;", key, text, strpbrk(text, ".e") ? "" : ".0");
}

static void put_size(FILE *f, const char *key, uint64_t size)
{
	static const char units[] = "KMG";
	int i = -1;

	while (i < 2 && size >= 1024 && !(size % 1024)) {
		size /= 1024;
		i++;
	}
	fprintf(f, "%s = \"%llu", key, (unsigned long long)size);
	if (i >= 0)
		fputc(units[i], f);
	fputs("\";", f);
}

static void put_end(const struct writer *w, const struct topo_end *end)
{
	fprintf(w->f, "\"%s:%u\"", w->t->switches[end->sw].name, end->port);
}

static void put_ends(const struct writer *w, const struct topo_end *ends,
		     unsigned int n)
{
	unsigned int i;

	fputs("( ", w->f);
	for (i = 0; i < n; i++) {
		fputs(i ? ", " : "", w->f);
		put_end(w, &ends[i]);
	}
	fputs(" );", w->f);
}

static const char *comma(unsigned int i, unsigned int n)
{
	return i + 1 < n ? "," : "";
}

static void put_switches(const struct writer *w)
{
	const struct topology *t = w->t;
	unsigned int i;

	fputs("\nswitches = (\n", w->f);
	for (i = 0; i < t->nswitches; i++) {
		const struct topo_switch *s = &t->switches[i];

		fprintf(w->f, "  { name = \"%s\"; ", s->name);
		if (s->model)
			fprintf(w->f, "model = \"%s\"; ",
				topology_model_name(s->model));
		fprintf(w->f, "ports = %u; speed = %u; width = %u; }%s\n",
			s->nports, s->speed, s->width,
			comma(i, t->nswitches));
	}
	fputs(");\n", w->f);
	if (!t->nisls)
		return;
	fputs("\nisls = (\n", w->f);
	for (i = 0; i < t->nisls; i++) {
		fputs("  { a = ", w->f);
		put_end(w, &t->isls[i].a);
		fputs("; b = ", w->f);
		put_end(w, &t->isls[i].b);
		fprintf(w->f, "; }%s\n", comma(i, t->nisls));
	}
	fputs(");\n", w->f);
}

static void put_hosts(const struct writer *w)
{
	const struct topology *t = w->t;
	unsigned int i;

	fputs("\nhosts = (\n", w->f);
	for (i = 0; i < t->nhosts; i++) {
		const struct topo_host *h = &t->hosts[i];

		fprintf(w->f, "  { name = \"%s\"; ports = ", h->name);
		put_ends(w, h->ports, h->nports);
		fprintf(w->f, " manager = %s; slots = %u; p2p_root = %s; }%s\n",
			h->manager ? "true" : "false", h->slots,
			h->p2p_root ? "true" : "false", comma(i, t->nhosts));
	}
	fputs(");\n", w->f);
}

static void put_ntbs(const struct writer *w)
{
	const struct topology *t = w->t;
	unsigned int i;

	if (!t->nntbs)
		return;
	fputs("\nntbs = (\n", w->f);
	for (i = 0; i < t->nntbs; i++) {
		const struct topo_ntb *n = &t->ntbs[i];

		fprintf(w->f, "  { a = \"%s.%u\"; b = \"%s.%u\"; ",
			t->hosts[n->a.host].name, n->a.port,
			t->hosts[n->b.host].name, n->b.port);
		put_size(w->f, "window", n->window);
		fprintf(w->f, " }%s\n", comma(i, t->nntbs));
	}
	fputs(");\n", w->f);
}

/* Endpoints that are alike and follow each other are one entry. */
static void put_endpoints(const struct writer *w,
			  const struct topo_appliance *a)
{
	const struct topo_endpoint *ep = &w->t->endpoints[a->first];
	unsigned int i, n;

	for (i = 0; i < a->nendpoints; i += n) {
		for (n = 1; i + n < a->nendpoints &&
		     ep[i + n].class == ep[i].class &&
		     ep[i + n].size == ep[i].size; n++)
			;
		fprintf(w->f, "      { class = \"%s\"; count = %u; ",
			topology_class_name(ep[i].class), n);
		put_size(w->f, "vram", ep[i].size);
		fprintf(w->f, " }%s\n", i + n < a->nendpoints ? "," : "");
	}
}

static void put_appliances(const struct writer *w)
{
	const struct topology *t = w->t;
	unsigned int i;

	if (!t->nappliances)
		return;
	fputs("\nappliances = (\n", w->f);
	for (i = 0; i < t->nappliances; i++) {
		const struct topo_appliance *a = &t->appliances[i];

		fprintf(w->f, "  { name = \"%s\"; kind = \"%s\";\n    uplinks = ",
			a->name, a->kind == TOPO_CASCADE ? "cascade" : "flat");
		put_ends(w, a->uplinks, a->nuplinks);
		fputs("\n    endpoints = (\n", w->f);
		put_endpoints(w, a);
		fputs("    );\n", w->f);
		if (*a->mesh_kind) {
			fprintf(w->f, "    mesh = { kind = \"%s\"; ",
				a->mesh_kind);
			put_gbps(w->f, "gbps", a->mesh_gbps);
			fputs(" };\n", w->f);
		}
		fprintf(w->f, "  }%s\n", comma(i, t->nappliances));
	}
	fputs(");\n", w->f);
}

static void put_bindings(const struct writer *w)
{
	const struct topology *t = w->t;
	unsigned int i;

	if (!t->nbindings)
		return;
	fputs("\nbindings = (\n", w->f);
	for (i = 0; i < t->nbindings; i++) {
		const struct topo_binding *b = &t->bindings[i];

		fprintf(w->f, "  { endpoint = \"%s\"; port = \"%s.%u\"; }%s\n",
			t->endpoints[b->endpoint].name, t->hosts[b->host].name,
			b->port, comma(i, t->nbindings));
	}
	fputs(");\n", w->f);
}

static void put_limits(const struct writer *w)
{
	const struct topo_limits *l = &w->t->limits;

	fprintf(w->f, "limits = { queues = %u; mrs = %u; window_slots = %u; ",
		l->queues, l->mrs, l->window_slots);
	put_size(w->f, "window_slot_size", l->window_slot_size);
	if (l->doorbell_stride != 4096) {
		fputs("; ", w->f);
		put_size(w->f, "doorbell_stride", l->doorbell_stride);
	}
	fputs(" };\n", w->f);
}

int topology_write(const struct topology *t, FILE *f, char *err,
		   size_t err_len)
{
	struct writer w = { .t = t, .f = f, .err = err, .err_len = err_len };
	int r = check(&w);

	if (r)
		return r;
	fputs("fabric = ", f);
	put_string(f, t->name);
	fputs(";\n", f);
	put_gbps(f, "link_gbps", t->link_gbps);
	fputc('\n', f);
	put_gbps(f, "root_complex_gbps", t->root_complex_gbps);
	fputc('\n', f);
	put_limits(&w);
	put_switches(&w);
	put_hosts(&w);
	put_ntbs(&w);
	put_appliances(&w);
	put_bindings(&w);
	if (!fflush(f) && !ferror(f))
		return 0;
	snprintf(err, err_len, "%s: could not be written; is there room left",
		 t->name);
	return -EIO;
}
