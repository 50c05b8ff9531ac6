// SPDX-License-Identifier: GPL-2.0-only
/*
 * "p2p": whether devices of this host can reach each other's memory, and if
 * not, what is in the way. libfabrex knows; here names become devices, and
 * pairs rows. Called by run.c.
 */
#include <fabrex/p2p.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "ctl.h"
#include "json.h"
#include "names.h"

/* One end of a pair. */
struct side {
	char name[CTL_NAME_LEN];	/* as the fabric knows it, or the address */
	char pci[32];			/* "" if it is not on this host */
	char port[CTL_NAME_LEN];	/* endpoints: bound to */
	char port_pci[32];		/* of that port, if it is ours */
	const struct object *host;	/* where it is, if not here */
	bool is_port;
	bool has_memory;	/* that others would want to reach */
};

struct sides {
	struct side *v;
	size_t n;
};

static void add_side(struct sides *s, const struct side *side)
{
	s->v = xrealloc(s->v, (s->n + 1) * sizeof(*s->v));
	s->v[s->n++] = *side;
}

static void set(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

/* ---- from names to sides ------------------------------------------------ */

static void port_side(const struct ctl *c, const struct object *p,
		      struct side *side)
{
	const struct fport *fp = model_local(c->model, p->id);

	memset(side, 0, sizeof(*side));
	set(side->name, sizeof(side->name), p->name);
	side->is_port = true;
	if (fp) {
		set(side->pci, sizeof(side->pci), fp->parent);
		set(side->port_pci, sizeof(side->port_pci), fp->parent);
	} else {
		side->host = model_port_host(c->model, p->id);
	}
}

/* Of the devices of a host with several ports, each port knows its own. */
static int endpoint_device(struct ctl *c, const struct object *ep,
			   const struct fport *fp, struct side *side)
{
	struct object now = *ep;
	int r = 0;

	if (!*now.pci_name)
		r = ctl_ask_port(c, fp->index, ep->id, &now, &c->err);
	if (r)
		return r;
	set(side->pci, sizeof(side->pci), now.pci_name);
	if (*side->pci)
		return 0;
	return err_set(&c->err, ENODEV, ep->name, "%s is bound to %s, but this "
		       "host's kernel has no PCI device for it; see dmesg "
		       "about pciehp and slot %u", ep->name, side->port,
		       ep->slot);
}

static int endpoint_side(struct ctl *c, const struct object *ep,
			 struct side *side)
{
	const struct fport *fp = model_local(c->model, ep->bound);

	memset(side, 0, sizeof(*side));
	set(side->name, sizeof(side->name), ep->name);
	if (!ep->bound)
		return err_set(&c->err, ENOTCONN, ep->name, "%s is bound to no "
			       "host, so nothing can reach it; \"fabrexctl "
			       "compose %s --to HOST\" attaches it", ep->name,
			       ep->name);
	set(side->port, sizeof(side->port), model_name(c->model, ep->bound));
	if (!fp) {
		side->host = model_owner(c->model, ep);
		return 0;
	}
	set(side->port_pci, sizeof(side->port_pci), fp->parent);
	return endpoint_device(c, ep, fp, side);
}

/* "0000:04:00.0" */
static bool is_address(const char *word)
{
	unsigned int domain, bus, device, function;
	char end;

	return (sscanf(word, "%x:%x:%x.%x%c", &domain, &bus, &device,
		       &function, &end) == 4 ||
		sscanf(word, "%x:%x.%x%c", &bus, &device, &function,
		       &end) == 3) &&
	       strlen(word) < sizeof(((struct side *)NULL)->pci);
}

/* An address, or "fabrex0" and "/dev/fabrex0". */
static bool address_side(const struct ctl *c, const char *word,
			 struct side *side)
{
	unsigned int index;
	size_t i;
	char end;

	memset(side, 0, sizeof(*side));
	set(side->name, sizeof(side->name), word);
	set(side->port_pci, sizeof(side->port_pci), ctl_fport(c)->parent);
	if (is_address(word)) {
		set(side->pci, sizeof(side->pci), word);
		return true;
	}
	if (!strncmp(word, "/dev/", 5))
		word += 5;
	if (sscanf(word, "fabrex%u%c", &index, &end) != 1)
		return false;
	for (i = 0; i < c->model->nfports; i++)
		if (c->model->fports[i].index == index) {
			set(side->pci, sizeof(side->pci),
			    c->model->fports[i].parent);
			side->is_port = true;
		}
	return *side->pci;
}

/* It has to be a PCI device here, or to belong to another host. */
static int somewhere(struct ctl *c, const struct side *side)
{
	if (*side->pci || side->host)
		return 0;
	return err_set(&c->err, ENODEV, side->name, "%s is no PCI device of "
		       "this host, and of no other host that is known",
		       side->name);
}

static int word_side(struct ctl *c, const char *word, struct side *side)
{
	const struct object *o;

	o = model_find(c->model, word, T_BIT(T_ENDPOINT) | T_BIT(T_PORT));
	if (!o && address_side(c, word, side))
		return 0;
	if (!o)
		o = model_want(c->model, word, T_BIT(T_ENDPOINT) |
			       T_BIT(T_PORT), &c->err);
	if (!o)
		return -c->err.code;
	if (o->type == T_ENDPOINT) {
		int r = endpoint_side(c, o, side);

		return r ? r : somewhere(c, side);
	}
	if (o->kind != FABREX_PORT_KIND_HOST)
		return err_set(&c->err, EINVAL, word, "port \"%s\" leads to no "
			       "host; name a host port or an endpoint", word);
	port_side(c, o, side);
	return somewhere(c, side);
}

/* All there is on this host; endpoints without a device yet are left out. */
static void local_sides(struct ctl *c, struct sides *s)
{
	const struct model *m = c->model;
	struct side side;
	size_t i;

	for (i = 0; i < m->n; i++)
		if (m->objects[i]->type == T_PORT &&
		    model_local(m, m->objects[i]->id)) {
			port_side(c, m->objects[i], &side);
			if (*side.pci)
				add_side(s, &side);
		}
	for (i = 0; i < m->n; i++)
		if (m->objects[i]->type == T_ENDPOINT &&
		    model_local(m, m->objects[i]->bound)) {
			if (!endpoint_side(c, m->objects[i], &side))
				add_side(s, &side);
			err_clear(&c->err);
		}
}

/* ---- without a fabric ---------------------------------------------------- */

/* A device of the machine; by its address it has memory if it is of such a kind. */
static void device_side(const struct fabrex_local_device *d, struct side *side)
{
	memset(side, 0, sizeof(*side));
	set(side->name, sizeof(side->name), d->pci);
	set(side->pci, sizeof(side->pci), d->pci);
	side->has_memory = d->kind == FABREX_DEVICE_GPU ||
			   d->kind == FABREX_DEVICE_FPGA;
}

static int machine_sides(struct ctl *c, struct sides *s)
{
	struct fabrex_local_device *devices;
	struct side side;
	int i, n = fabrex_device_list(NULL, 0, NULL, 0, 0), room = n;

	if (n < 0)
		return err_set(&c->err, -n, NULL, "could not list the devices of this machine: %s",
			       strerror(-n));
	devices = xcalloc(room + 1, sizeof(*devices));
	n = fabrex_device_list(NULL, 0, devices, room, sizeof(*devices));
	for (i = 0; i < n && i < room; i++) {
		device_side(&devices[i], &side);
		add_side(s, &side);
	}
	free(devices);
	return 0;
}

static int machine_side(struct ctl *c, const char *word, struct side *side)
{
	struct sides all = { 0 };
	size_t i;
	int r;

	if (!is_address(word))
		return err_set(&c->err, ENODEV, word, "\"%s\" is no PCI address, and there is no fabric that could know it: %s",
			       word, c->no_fabric);
	memset(side, 0, sizeof(*side));
	set(side->name, sizeof(side->name), word);
	set(side->pci, sizeof(side->pci), word);
	r = machine_sides(c, &all);
	for (i = 0; i < all.n; i++)
		if (!strcmp(all.v[i].pci, word) ||
		    (!strncmp(all.v[i].pci, "0000:", 5) &&
		     !strcmp(all.v[i].pci + 5, word)))
			*side = all.v[i];
	free(all.v);
	return r;
}

/* ---- answers ------------------------------------------------------------ */

struct answer {
	const struct side *from, *to;
	struct fabrex_p2p p;
	const char *path;	/* "fabric" if not the library's */
	bool both_ways;
};

static int query(struct ctl *c, const char *from, const char *to,
		 struct fabrex_p2p *p)
{
	int r = fabrex_p2p_query(from, to, p, sizeof(*p));

	if (!r)
		return 0;
	return err_set(&c->err, -r, from, r == -EINVAL ? "%s and %s: one of "
		       "them is no PCI address and no fabric port of this "
		       "machine" : "%s to %s: could not look", from, to);
}

/* Put the fabric's names in place of the addresses the sentence begins with. */
static void rename_text(const struct side *from, const struct side *to,
			struct fabrex_p2p *p)
{
	char old[sizeof(p->text)], head[48];

	snprintf(head, sizeof(head), "%s to %s: ", p->initiator, p->target);
	if (strncmp(p->text, head, strlen(head)))
		return;
	memcpy(old, p->text, sizeof(old));
	snprintf(p->text, sizeof(p->text), "%s to %s: %s", from->name,
		 to->name, old + strlen(head));
}

static void say_elsewhere(const struct side *from, const struct side *to,
			  struct fabrex_p2p *p)
{
	p->verdict = FABREX_P2P_UNKNOWN;
	snprintf(p->text, sizeof(p->text), "%s to %s: not known here: both "
		 "belong to host %s", from->name, to->name,
		 from->host->name);
	snprintf(p->remedy, sizeof(p->remedy), "run on host %s: fabrexctl p2p "
		 "%s %s", from->host->name, from->name, to->name);
}

/*
 * Hosts do not reach each other's devices; the switch's DMA engine moves bytes
 * if each host's port reaches the endpoint on its own side.
 */
static int across(struct ctl *c, const struct side *from,
		  const struct side *to, struct fabrex_p2p *p)
{
	const struct side *far = from->host ? from : to;
	const struct side *near = from->host ? to : from;
	char here[128] = "";
	int r = 0;

	if (!near->is_port) {
		r = query(c, near->port_pci, near->pci, p);
		snprintf(here, sizeof(here), "; here the port reaches %s: %s%s%s",
			 near->name, fabrex_p2p_verdict_str(p->verdict),
			 p->reason ? ", " : "",
			 p->reason ? fabrex_p2p_reason_str(p->reason) : "");
	} else {
		p->verdict = FABREX_P2P_YES;
	}
	if (!r && !far->is_port && p->verdict == FABREX_P2P_YES)
		p->verdict = FABREX_P2P_UNKNOWN;
	p->path = FABREX_P2P_PATH_NONE;
	snprintf(p->text, sizeof(p->text), "%s to %s: %s: the switch's DMA "
		 "engine moves it between hosts%s%s%s%s", from->name, to->name,
		 fabrex_p2p_verdict_str(p->verdict), here,
		 far->is_port ? "" : "; whether its port reaches ",
		 far->is_port ? "" : far->name,
		 far->is_port ? "" : " is known there");
	if (!far->is_port && p->verdict == FABREX_P2P_UNKNOWN)
		snprintf(p->remedy, sizeof(p->remedy), "run on host %s: "
			 "fabrexctl p2p %s %s", far->host ? far->host->name :
			 "?", far->port, far->name);
	return r;
}

static int ask(struct ctl *c, const struct side *from, const struct side *to,
	       struct answer *a)
{
	int r = 0;

	memset(a, 0, sizeof(*a));
	a->from = from;
	a->to = to;
	if (from->host && to->host && from->host == to->host) {
		say_elsewhere(from, to, &a->p);
		a->path = "none";
	} else if (from->host && to->host) {
		a->p.verdict = FABREX_P2P_UNKNOWN;
		a->path = "fabric";
		snprintf(a->p.text, sizeof(a->p.text), "%s to %s: not known "
			 "here: the switch's DMA engine moves it between hosts "
			 "%s and %s", from->name, to->name, from->host->name,
			 to->host->name);
		snprintf(a->p.remedy, sizeof(a->p.remedy), "run it on each of them for "
			 "its port and its endpoint");
	} else if (from->host || to->host) {
		r = across(c, from, to, &a->p);
		a->path = "fabric";
	} else {
		r = query(c, from->pci, to->pci, &a->p);
		rename_text(from, to, &a->p);
	}
	return r;
}

static bool same_answer(const struct fabrex_p2p *x, const struct fabrex_p2p *y)
{
	return x->verdict == y->verdict && x->path == y->path &&
	       x->reason == y->reason && x->distance == y->distance &&
	       x->bits == y->bits && !strcmp(x->blocker, y->blocker);
}

/* ---- output ------------------------------------------------------------- */

const struct column p2p_columns[] = {
	{ "FROM", "initiator", F_TEXT, false },
	{ "TO", "target", F_TEXT, false },
	{ "BOTH WAYS", "both_ways", F_FLAG, true },
	{ "P2P", "verdict", F_STATE, false },
	{ "PATH", "path", F_TEXT, false },
	{ "DISTANCE", "distance", F_NUMBER, false },
	{ "REASON", "reason", F_TEXT, false },
	{ "BLOCKER", "blocker", F_TEXT, false },
	{ "BITS", "bits", F_TEXT, false },
	{ "IOMMU", "iommu", F_FLAG, true },
	{ "COMMON", "common", F_TEXT, true },
	{ "FROM DEVICE", "initiator_pci_name", F_TEXT, true },
	{ "TO DEVICE", "target_pci_name", F_TEXT, true },
	{ "HOST", "host", F_TEXT, true },
	{ NULL, NULL, F_TEXT, false }
};

static json_object *answer_json(const struct answer *a)
{
	const struct object *host = a->from->host ? a->from->host : a->to->host;
	bool known = !a->path || a->p.verdict == FABREX_P2P_NO;
	const struct fabrex_p2p *p = &a->p;
	json_object *o = json_object_new_object();
	char bits[16] = "";

	if (p->bits)
		snprintf(bits, sizeof(bits), "0x%04x", p->bits);
	rec_str(o, "initiator", a->from->name);
	rec_str(o, "target", a->to->name);
	rec_bool(o, "both_ways", a->both_ways);
	rec_str(o, "verdict", fabrex_p2p_verdict_str(p->verdict));
	rec_str(o, "path", a->path ? a->path : fabrex_p2p_path_str(p->path));
	rec_put(o, "distance", a->path || p->reason == FABREX_P2P_NO_DEVICE ?
		NULL : json_object_new_int64(p->distance));
	rec_str(o, "reason", known && p->reason ?
		fabrex_p2p_reason_str(p->reason) : NULL);
	rec_str(o, "blocker", p->blocker);
	rec_str(o, "bits", bits);
	rec_bool(o, "iommu", p->iommu);
	rec_str(o, "common", p->common);
	rec_str(o, "initiator_pci_name", a->from->pci);
	rec_str(o, "target_pci_name", a->to->pci);
	rec_str(o, "host", host ? host->name : NULL);
	rec_str(o, "text", p->text);
	rec_str(o, "remedy", p->remedy);
	return o;
}

static int add_answer(struct ctl *c, json_object *rows, const struct answer *a,
		      bool strict)
{
	json_object_array_add(rows, answer_json(a));
	if (strict && a->p.verdict != FABREX_P2P_YES)
		c->exit_code = EXIT_NO_P2P;
	return 0;
}

/* One row if it is the same in both directions, else two. */
static int add_pair(struct ctl *c, json_object *rows, const struct side *x,
		    const struct side *y, bool strict)
{
	struct answer there, back;
	int r = ask(c, x, y, &there);

	if (!r)
		r = ask(c, y, x, &back);
	if (r)
		return r;
	there.both_ways = same_answer(&there.p, &back.p);
	add_answer(c, rows, &there, strict);
	return there.both_ways ? 0 : add_answer(c, rows, &back, strict);
}

static bool same_key(json_object *x, json_object *y, const char *key)
{
	const char *a = rec_get_str(x, key), *b = rec_get_str(y, key);

	return a && b && !strcmp(a, b);
}

/* One blocker stands in the way of many pairs. */
static bool same_cause(json_object *x, json_object *y)
{
	return same_key(x, y, "reason") && same_key(x, y, "blocker");
}

static unsigned int count_cause(json_object *rows, size_t from, size_t to,
				json_object *row)
{
	unsigned int n = 0;

	for (; from < to; from++)
		n += same_cause(json_object_array_get_idx(rows, from), row);
	return n;
}

/* Each cause once, with the first pair that it concerns. */
static void print_reasons(struct ctl *c, json_object *rows)
{
	size_t i, n = json_object_array_length(rows);

	for (i = 0; i < n; i++) {
		json_object *row = json_object_array_get_idx(rows, i);
		const char *remedy = rec_get_str(row, "remedy");
		unsigned int more;

		if ((!strcmp(rec_get_str(row, "verdict"), "yes") && n > 1) ||
		    count_cause(rows, 0, i, row))
			continue;
		more = count_cause(rows, i + 1, n, row);
		fprintf(c->out, "\n%s", rec_get_str(row, "text"));
		if (more)
			fprintf(c->out, " (likewise %u more)", more);
		fputc('\n', c->out);
		if (remedy)
			fprintf(c->out, "    %s\n", remedy);
	}
}

static void show(struct ctl *c, json_object *rows)
{
	c->doc = json_object_new_object();
	rec_put(c->doc, "pairs", rows);
	if (c->json || (*c->no_fabric && !json_object_array_length(rows)))
		return;
	table_print(c->out, rows, p2p_columns, IS_SET(c, WIDE), c->color);
	print_reasons(c, rows);
}

/* Pairs of what is here, all of them or those with @only. */
static int all_pairs(struct ctl *c, const struct side *only, json_object *rows)
{
	struct sides s = { 0 };
	size_t i, j;
	int r = 0;

	local_sides(c, &s);
	for (i = 0; i < s.n && !r && only; i++)
		if (strcmp(s.v[i].pci, only->pci))
			r = add_pair(c, rows, only, &s.v[i], true);
	for (i = 0; i < s.n && !r && !only; i++)
		for (j = i + 1; j < s.n && !r; j++)
			r = add_pair(c, rows, &s.v[i], &s.v[j], false);
	free(s.v);
	return r;
}

/* Only GPUs and the like have memory that others reach for. */
static int machine_pair(struct ctl *c, json_object *rows, const struct side *x,
			const struct side *y, bool strict)
{
	const struct side *from = x->has_memory ? y : x;
	const struct side *to = x->has_memory ? x : y;
	struct answer a;
	int r;

	if (!strcmp(x->pci, y->pci) || !to->has_memory)
		return 0;
	if (from->has_memory)
		return add_pair(c, rows, x, y, strict);
	r = ask(c, from, to, &a);
	return r ? r : add_answer(c, rows, &a, strict);
}

static int machine_pairs(struct ctl *c, const struct side *only,
			 json_object *rows)
{
	struct sides s = { 0 };
	size_t i, j;
	int r = machine_sides(c, &s);

	for (i = 0; i < s.n && !r && only; i++)
		r = machine_pair(c, rows, only, &s.v[i], true);
	for (i = 0; i < s.n && !r && !only; i++)
		for (j = i + 1; j < s.n && !r; j++)
			r = machine_pair(c, rows, &s.v[i], &s.v[j], false);
	free(s.v);
	if (!r && !c->json && !json_object_array_length(rows))
		fputs("there is no pair of a device and the memory of a GPU or "
		      "FPGA on this machine; \"fabrexctl list machine\" shows "
		      "what there is, and two addresses can be named\n", c->out);
	return r;
}

int cmd_p2p(struct ctl *c, int argc, char **argv)
{
	json_object *rows;
	struct side side[2];
	struct answer a;
	int i, r, none;

	if (argc > 2)
		return err_usage(&c->err, argv[2], "p2p: name two at most; "
				 "\"%s\" is too much", argv[2]);
	none = ctl_load_any(c);
	r = none < 0 ? none : 0;
	for (i = 0; i < argc && !r; i++)
		r = none ? machine_side(c, argv[i], &side[i]) :
			   word_side(c, argv[i], &side[i]);
	if (r)
		return r;
	rows = json_object_new_array();
	if (argc < 2 && none) {
		r = machine_pairs(c, argc ? &side[0] : NULL, rows);
	} else if (argc < 2) {
		r = all_pairs(c, argc ? &side[0] : NULL, rows);
	} else {
		r = ask(c, &side[0], &side[1], &a);
		if (!r)
			add_answer(c, rows, &a, true);
	}
	if (r)
		json_object_put(rows);
	else
		show(c, rows);
	return r;
}
