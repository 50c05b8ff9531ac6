// SPDX-License-Identifier: GPL-2.0-only
/* See machine.h. */
#include <string.h>

#include "columns.h"
#include "json.h"
#include "machine.h"
#include "pciname.h"
#include "util.h"

/* ---- records ------------------------------------------------------------- */

static void put_link(json_object *o, const char *key, const struct pci_link *l)
{
	json_object *v = NULL;

	if (l->speed) {
		v = json_object_new_object();
		rec_double(v, "gigatransfers", l->speed / 1e3, 1);
		rec_int(v, "width", l->width);
	}
	rec_put(o, key, v);
}

static void put_ids(json_object *o, const char *key, uint32_t vendor,
		    uint32_t device)
{
	char text[16] = "";

	if (vendor)
		snprintf(text, sizeof(text), "%04x:%04x", vendor, device);
	rec_str(o, key, text);
}

static const char *state_of(const struct pci_function *f)
{
	if (f->gone)
		return "gone";
	if (f->unreadable)
		return "unreadable";
	return *f->power ? "asleep" : "ok";
}

static void put_acs(json_object *o, const struct pci_function *f)
{
	char text[16] = "";

	if (f->acs == ACS_OFF || f->acs == ACS_REDIRECT)
		snprintf(text, sizeof(text), "0x%04x", f->acs_control);
	rec_str(o, "acs", acs_name(f->acs));
	rec_str(o, "acs_control", text);
}

json_object *json_function(const struct pci_function *f)
{
	const struct pci_link can = function_attainable(f);
	json_object *o = json_object_new_object();
	char text[128];

	rec_str(o, "pci_name", f->name);
	rec_str(o, "kind", function_kind_name(f->kind));
	rec_bool(o, "kind_supposed", f->supposed);
	pci_name_text(f, text, sizeof(text));
	rec_str(o, "model", text);
	rec_str(o, "state", state_of(f));
	put_link(o, "link", &f->link);
	put_link(o, "capability", &f->most);
	put_link(o, "attainable", &can);
	rec_bool(o, "slow", function_is_slow(f));
	rec_put(o, "numa_node", f->numa_node < 0 ? NULL :
		json_object_new_int(f->numa_node));
	rec_str(o, "driver", f->driver);
	put_acs(o, f);
	rec_str(o, "iommu_group", f->group);
	rec_str(o, "iommu_type", f->group_type);
	rec_str(o, "slot", f->slot);
	rec_str(o, "physical_function", f->physfn);
	rec_int(o, "virtual_functions", f->vfs);
	put_ids(o, "pci_id", f->vendor, f->device);
	put_ids(o, "subsystem_id", f->subvendor, f->subdevice);
	snprintf(text, sizeof(text), "0x%06x", f->class_code);
	rec_str(o, "pci_class", text);
	rec_str(o, "parent", f->up ? f->up->name : NULL);
	rec_str(o, "host_bridge", f->host);
	return o;
}

/* ---- notes --------------------------------------------------------------- */

static void note(json_object *notes, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_object_array_add(notes, json_text(text));
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void note_hidden(const struct pci_tree *t, json_object *notes)
{
	size_t i, acs = 0, supposed = 0;

	for (i = 0; i < t->n; i++) {
		acs += function_hides_acs(&t->v[i]);
		supposed += t->v[i].supposed && !t->v[i].gone;
	}
	if (acs)
		note(notes, "ACS of %zu port%s is not known: only root may read configuration space beyond 64 bytes; \"sudo fabrexctl list machine\" shows it",
		     acs, plural(acs));
	if (supposed)
		note(notes, "what kind of port only root may read, too: %zu bridge%s taken for what %s place in the tree suggests, root port, switch or downstream port",
		     supposed, supposed == 1 ? " is" : "s are",
		     supposed == 1 ? "its" : "their");
}

static void note_states(const struct pci_tree *t, json_object *notes)
{
	const struct pci_function *f;

	for (f = t->v; f < t->v + t->n; f++) {
		if (f->gone)
			note(notes, "%s does not answer: it was pulled or has no power; put it back, or remove it: echo 1 > /sys/bus/pci/devices/%s/remove",
			     f->name, f->name);
		if (f->unreadable)
			note(notes, "the configuration space of %s cannot be read (%s)",
			     f->name, strerror(f->unreadable));
	}
}

json_object *machine_notes(const struct pci_tree *t)
{
	json_object *notes = json_object_new_array();

	if (t->unreadable)
		note(notes, "/sys/bus/pci/devices cannot be read (%s): no PCI device can be seen here; run it outside of the container, or mount sysfs",
		     strerror(t->unreadable));
	else if (!t->n && !t->odd)
		note(notes, "this kernel shows no PCI device");
	if (t->odd)
		note(notes, "%zu entr%s of /sys/bus/pci/devices make%s no sense and %s left out",
		     t->odd, t->odd == 1 ? "y" : "ies", t->odd == 1 ? "s" : "",
		     t->odd == 1 ? "is" : "are");
	note_states(t, notes);
	note_hidden(t, notes);
	return notes;
}

void machine_count(const struct pci_tree *t, char *text, size_t size)
{
	static const struct {
		enum function_kind kind;
		const char *one, *many;
	} words[] = {
		{ FUNCTION_UPSTREAM, "switch", "switches" },
		{ FUNCTION_GPU, "GPU", "GPUs" },
		{ FUNCTION_FPGA, "FPGA", "FPGAs" },
		{ FUNCTION_NVME, "drive", "drives" },
		{ FUNCTION_NIC, "NIC", "NICs" },
		{ FUNCTION_NTB, "NTB", "NTBs" },
	};
	size_t i, k, len = 0, n;

	*text = '\0';
	for (k = 0; k < ARRAY_SIZE(words) && len < size; k++) {
		for (i = 0, n = 0; i < t->n; i++)
			n += t->v[i].kind == words[k].kind && !*t->v[i].physfn;
		if (n)
			len += snprintf(text + len, size - len, "%s%zu %s",
					len ? ", " : "", n,
					n == 1 ? words[k].one : words[k].many);
	}
}

/* ---- commands ------------------------------------------------------------ */

static bool is_wanted(const struct ctl *c, const struct pci_function *f)
{
	const char *kind = c->arg[OPT_KIND];

	return !kind || !strcmp(kind, function_kind_name(f->kind));
}

static json_object *put_machine(struct ctl *c)
{
	json_object *rows = json_object_new_array();
	struct pci_tree t;
	struct p2p_env env;
	char count[128];
	size_t i;

	fxi_p2p_env(&env);
	pci_tree_read(&env, &t);
	for (i = 0; i < t.n; i++)
		if (is_wanted(c, &t.v[i]))
			json_object_array_add(rows, json_function(&t.v[i]));
	machine_count(&t, count, sizeof(count));
	rec_put(c->doc, "devices", rows);
	rec_str(c->doc, "machine", count);
	rec_put(c->doc, "notes", machine_notes(&t));
	pci_tree_free(&t);
	return rows;
}

static int check_kind(struct ctl *c)
{
	const char *const *words = function_kind_words();
	size_t i;

	if (!IS_SET(c, KIND))
		return 0;
	for (i = 0; words[i]; i++)
		if (!strcmp(words[i], c->arg[OPT_KIND]))
			return 0;
	err_usage(&c->err, c->arg[OPT_KIND], "--kind: no kind \"%s\"; there are",
		  c->arg[OPT_KIND]);
	for (i = 0; words[i]; i++)
		err_append(&c->err, "%s %s", i ? "," : "", words[i]);
	return -EINVAL;
}

int machine_table(struct ctl *c)
{
	json_object *rows;
	int r = check_kind(c);

	if (r)
		return r;
	rows = put_machine(c);
	if (!c->json)
		table_print(c->out, rows, function_columns, IS_SET(c, WIDE),
			    c->color);
	return 0;
}

int machine_tree(struct ctl *c)
{
	put_machine(c);
	if (!c->json)
		machine_draw(c->out, c->doc, IS_SET(c, WIDE), c->color);
	return 0;
}
