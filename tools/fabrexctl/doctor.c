// SPDX-License-Identifier: GPL-2.0-only
/*
 * "doctor": what this machine has, what this stack can do with it, and what to
 * run next. Looks only; docs/hardware.md has the same by hardware. Called by
 * run.c.
 */
#include <stdlib.h>
#include <string.h>

#include <fabrex/p2p.h>

#include "findings.h"
#include "json.h"
#include "table.h"

/* ---- what can be done ---------------------------------------------------- */

struct verdicts {
	size_t yes, no, unknown;
	struct fabrex_p2p first;	/* that is not yes */
};

static void able(json_object *list, struct diagnosis *d, const char *what,
		 const char *answer, const char *next, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

static void able(json_object *list, struct diagnosis *d, const char *what,
		 const char *answer, const char *next, const char *fmt, ...)
{
	json_object *o = json_object_new_object();
	char text[1600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rec_str(o, "what", what);
	rec_str(o, "answer", answer);
	rec_str(o, "text", text);
	rec_str(o, "next", next);
	json_object_array_add(list, o);
	findings_next(d, next);
}

static bool has_switch(const struct diagnosis *d, enum switch_family family)
{
	size_t i;

	for (i = 0; i < d->tree.n; i++)
		if (d->tree.v[i].kind == FUNCTION_UPSTREAM &&
		    pci_name_switch(&d->tree.v[i]) == family)
			return true;
	return false;
}

static const struct fport *a_manager(const struct diagnosis *d)
{
	const struct model *m = d->c->model;
	size_t i;

	for (i = 0; d->fabric && i < m->nfports; i++)
		if (m->fports[i].manager && m->fports[i].alive)
			return &m->fports[i];
	return NULL;
}

static void say_compose(struct diagnosis *d, json_object *list)
{
	const struct fport *manager = a_manager(d);

	if (manager)
		able(list, d, "compose", "yes", "fabrexctl list", "through the fabric port %s, as root",
		     manager->name);
	else if (d->fabric)
		able(list, d, "compose", "no", "fabrexctl list fports", "the fabric does not take a port of this host for a manager; run it on a host that is one, and look here");
	else if (findings_first(d, FUNCTION_FPORT))
		able(list, d, "compose", "no", NULL, "there is a fabric port, but no driver for it; see above, modules");
	else if (d->c->own)
		able(list, d, "compose", "no", "fabrexctl list", "%s",
		     d->c->no_fabric);
	else if (has_switch(d, SWITCH_SWITCHTEC_PFX))
		able(list, d, "compose", "unknown", NULL, "a Switchtec PFX can bind ports, if its firmware lets this host: write its topology file, see docs/compose-switchtec.md, then \"fabrexctl --fabric FILE list\"; docs/hardware.md says what has been tried and what to run first");
	else if (has_switch(d, SWITCH_SWITCHTEC_PAX))
		able(list, d, "compose", "no", NULL, "this stack does not know the commands of a PAX yet");
	else if (has_switch(d, SWITCH_BROADCOM))
		able(list, d, "compose", "no", NULL, "there is no public command that binds ports of the Broadcom switch here; its devices are this machine's for good");
	else if (has_switch(d, SWITCH_ADAPTER))
		able(list, d, "compose", "no", NULL, "the adapter here leads to no switch at present; look at its cable");
	else if (d->tree.unreadable)
		able(list, d, "compose", "unknown", NULL, "no PCI device can be seen here");
	else
		able(list, d, "compose", "no", NULL, "there is no switch here that can be told to");
}

static const struct fport *a_live_port(const struct diagnosis *d)
{
	const struct model *m = d->c->model;
	size_t i;

	for (i = 0; d->fabric && i < m->nfports; i++)
		if (m->fports[i].alive)
			return &m->fports[i];
	return NULL;
}

static void say_hosts(struct diagnosis *d, json_object *list)
{
	const struct pci_function *ntb = findings_first(d, FUNCTION_NTB);
	const struct fport *port = a_live_port(d);

	if (port)
		able(list, d, "move bytes between hosts", "yes", "fabrex-perf ports", "through the fabric port %s",
		     port->name);
	else if (ntb && pci_name_ntb(ntb) == NTB_IDT)
		able(list, d, "move bytes between hosts", "no", NULL, "there is an NTB of IDT, and this stack has no driver for it yet; Linux's ntb_netdev carries IP over it");
	else if (ntb)
		able(list, d, "move bytes between hosts", "no", "sudo modprobe fabrex_ntb", "there is an NTB; load its driver, and fabrex_ntb, on both hosts, see docs/ntb.md");
	else if (d->tree.unreadable)
		able(list, d, "move bytes between hosts", "unknown", NULL, "no PCI device can be seen here");
	else
		able(list, d, "move bytes between hosts", "no", NULL, "there is neither a fabric port nor an NTB");
	able(list, d, "move bytes between processes", "yes", NULL, "on this machine, without any hardware: FABREX_PORT=loopback:NAME, see docs/loopback.md");
}

static void ask_pairs(const struct pci_function *const *gpu, size_t n,
		      struct verdicts *v)
{
	struct fabrex_p2p p;
	size_t i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++) {
			if (i == k || fabrex_p2p_query(gpu[i]->name,
						       gpu[k]->name, &p,
						       sizeof(p)))
				continue;
			if (p.verdict != FABREX_P2P_YES &&
			    !v->no && !v->unknown)
				v->first = p;
			v->yes += p.verdict == FABREX_P2P_YES;
			v->no += p.verdict == FABREX_P2P_NO;
			v->unknown += p.verdict == FABREX_P2P_UNKNOWN;
		}
}

static void say_gpus(struct diagnosis *d, json_object *list)
{
	const struct pci_function *gpu[16];
	size_t all = findings_gpus(d, gpu, sizeof(gpu) / sizeof(*gpu)), n, i;
	struct verdicts v = { 0 };

	if (d->tree.unreadable) {
		able(list, d, "GPU to GPU", "unknown", NULL, "no PCI device can be seen here");
		return;
	}
	/* Looking at one that sleeps would wake it up. */
	for (i = 0, n = 0; i < all; i++)
		if (!function_is_cold(gpu[i]))
			gpu[n++] = gpu[i];
	if (n < 2) {
		able(list, d, "GPU to GPU", all < 2 ? "no" : "unknown", NULL,
		     all < 2 ? "there are not two GPUs" : "all but one GPU sleep, and are not woken up to look at them; \"fabrexctl p2p\" does that");
		return;
	}
	ask_pairs(gpu, n, &v);
	if (!v.no && !v.unknown)
		able(list, d, "GPU to GPU", "yes", "fabrexctl p2p", "each of %zu GPUs reaches the memory of each other one",
		     n);
	else
		able(list, d, "GPU to GPU", v.no ? "no" : "unknown",
		     "fabrexctl p2p", "%zu of %zu directions; %s%s%s",
		     v.yes, v.yes + v.no + v.unknown, v.first.text,
		     *v.first.remedy ? "; " : "", v.first.remedy);
	able(list, d, "plan collectives", "yes",
	     "fabrexctl plan-collective live", "for the GPUs of this machine, and write their topology for NCCL and RCCL");
}

/* ---- output -------------------------------------------------------------- */

static void print_sentence(FILE *f, json_object *row, const char *word)
{
	const char *next = rec_get_str(row, "next");

	fprintf(f, "%s%s\n", word, rec_get_str(row, "text"));
	if (next)
		fprintf(f, "             next: %s\n", next);
}

static void print_findings(struct ctl *c, json_object *rows)
{
	size_t i, n = json_object_array_length(rows);
	const char *about, *last = "";
	char word[32];

	for (i = 0; i < n; i++) {
		json_object *row = json_object_array_get_idx(rows, i);

		about = rec_get_str(row, "about");
		if (strcmp(about, last))
			fprintf(c->out, "%s\n", about);
		last = about;
		snprintf(word, sizeof(word), "  %-8s ", rec_get_str(row, "level"));
		print_sentence(c->out, row, word);
	}
}

static void print_abilities(struct ctl *c, json_object *rows)
{
	size_t i, n = json_object_array_length(rows);
	char word[80];

	fputs("\nwhat this stack can do here\n", c->out);
	for (i = 0; i < n; i++) {
		json_object *row = json_object_array_get_idx(rows, i);
		const char *answer = rec_get_str(row, "answer");
		const char *on = c->color ? state_color(answer) : "";

		snprintf(word, sizeof(word), "  %s: %s%s%s: ",
			 rec_get_str(row, "what"), on, answer,
			 *on ? COLOR_OFF : "");
		print_sentence(c->out, row, word);
	}
}

static void print_next(struct ctl *c, json_object *list)
{
	size_t i, n = json_object_array_length(list);

	if (n)
		fputs("\nwhat to run next\n", c->out);
	for (i = 0; i < n; i++)
		fprintf(c->out, "  %s\n", json_object_get_string(
			json_object_array_get_idx(list, i)));
	fputs("\nNothing was changed by looking. None of this stack has been "
	      "seen on a real fabric switch yet: docs/hardware.md\n", c->out);
}

int cmd_doctor(struct ctl *c, int argc, char **argv)
{
	struct diagnosis d = { .c = c };
	json_object *abilities;
	int r;

	if (argc)
		return err_usage(&c->err, argv[0], "doctor: takes no argument; \"%s\" is too much",
				 argv[0]);
	r = ctl_open_any(c);
	if (r < 0 && !c->own)
		return r;
	/* A Switchtec that does not answer as it should is a finding, too. */
	if (r < 0) {
		snprintf(c->no_fabric, sizeof(c->no_fabric), "%s",
			 c->err.message);
		err_clear(&c->err);
	}
	d.fabric = !r;
	fxi_p2p_env(&d.env);
	pci_tree_read(&d.env, &d.tree);
	kernel_read(&d.kernel, d.env.root);
	d.findings = json_object_new_array();
	d.next = json_object_new_array();
	abilities = json_object_new_array();
	findings_make(&d);
	say_compose(&d, abilities);
	say_hosts(&d, abilities);
	say_gpus(&d, abilities);
	c->doc = json_object_new_object();
	rec_str(c->doc, "kernel", d.kernel.release);
	rec_str(c->doc, "no_fabric", c->no_fabric);
	rec_put(c->doc, "findings", d.findings);
	rec_put(c->doc, "abilities", abilities);
	rec_put(c->doc, "next", d.next);
	print_findings(c, d.findings);
	print_abilities(c, abilities);
	print_next(c, d.next);
	kernel_free(&d.kernel);
	pci_tree_free(&d.tree);
	return 0;
}
