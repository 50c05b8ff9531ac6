// SPDX-License-Identifier: GPL-2.0-only
/* See findings.h. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "findings.h"
#include "json.h"
#include "machine.h"
#include "p2p/sysfs.h"
#include "topology/visible.h"
#include "util.h"

static const char *const level_words[] = {
	[LEVEL_OK] = "ok", [LEVEL_NOTE] = "note", [LEVEL_MISSING] = "missing",
	[LEVEL_UNKNOWN] = "unknown",
};

/* @next: a command, or NULL. */
static void find(struct diagnosis *d, const char *about, enum level level,
		 const char *next, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void find(struct diagnosis *d, const char *about, enum level level,
		 const char *next, const char *fmt, ...)
{
	json_object *o = json_object_new_object();
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	visible(text);
	rec_str(o, "about", about);
	rec_str(o, "level", level_words[level]);
	rec_str(o, "text", text);
	rec_str(o, "next", next);
	json_object_array_add(d->findings, o);
	findings_next(d, next);
}

void findings_next(struct diagnosis *d, const char *command)
{
	size_t i, n = json_object_array_length(d->next);

	for (i = 0; command && i < n; i++)
		if (!strcmp(command, json_object_get_string(
				json_object_array_get_idx(d->next, i))))
			return;
	if (command)
		json_object_array_add(d->next, json_text(command));
}

const struct pci_function *findings_first(const struct diagnosis *d,
					  enum function_kind kind)
{
	size_t i;

	for (i = 0; i < d->tree.n; i++)
		if (d->tree.v[i].kind == kind && !*d->tree.v[i].physfn)
			return &d->tree.v[i];
	return NULL;
}

size_t findings_gpus(const struct diagnosis *d, const struct pci_function **gpu,
		     size_t room)
{
	size_t i, n = 0;

	for (i = 0; i < d->tree.n && n < room; i++)
		if (d->tree.v[i].kind == FUNCTION_GPU && !*d->tree.v[i].physfn)
			gpu[n++] = &d->tree.v[i];
	return n;
}

static const char *name_of(const struct pci_function *f)
{
	static char text[128];

	pci_name_text(f, text, sizeof(text));
	if (!*text)
		snprintf(text, sizeof(text), "%04x:%04x", f->vendor, f->device);
	return text;
}

/* ---- the kernel ---------------------------------------------------------- */

static void find_p2pdma(struct diagnosis *d)
{
	enum config_state config = kernel_config(&d->kernel,
						 "CONFIG_PCI_P2PDMA");
	enum kernel_option p2pdma = fxi_host_p2pdma(d->env.root);

	if (p2pdma == OPTION_UNKNOWN && config != CONFIG_UNSEEN)
		p2pdma = config == CONFIG_OFF ? OPTION_NO : OPTION_YES;
	switch (p2pdma) {
	case OPTION_YES:
		find(d, "kernel", LEVEL_OK, NULL, "it has CONFIG_PCI_P2PDMA: devices can be given each other's memory");
		break;
	case OPTION_NO:
		find(d, "kernel", LEVEL_MISSING, NULL, "it was built without CONFIG_PCI_P2PDMA, so devices cannot be given each other's memory; boot a kernel that has it, such as Debian's from backports");
		break;
	default:
		find(d, "kernel", LEVEL_UNKNOWN, NULL, "whether it has CONFIG_PCI_P2PDMA cannot be seen: neither /proc/kallsyms nor a configuration can be read");
	}
}

static bool has_switchtec(const struct diagnosis *d)
{
	size_t i;

	for (i = 0; i < d->tree.n; i++)
		if (pci_name_is_switchtec(&d->tree.v[i]))
			return true;
	return false;
}

static bool has_ntb(const struct diagnosis *d)
{
	return findings_first(d, FUNCTION_NTB);
}

/* Of what has to be there for a purpose; a module has to be loaded besides. */
static const struct option {
	const char *name;
	const char *without;
	const char *module;	/* does as well; NULL: none */
	bool (*is_needed)(const struct diagnosis *d);	/* NULL: always */
} options[] = {
	{ "CONFIG_HOTPLUG_PCI_PCIE", "devices that are composed while it runs are not seen",
	  NULL, NULL },
	{ "CONFIG_PCI_SW_SWITCHTEC", "Linux's switchtec, which offers /dev/switchtecN, has to be built against its headers",
	  "switchtec", has_switchtec },
	{ "CONFIG_NTB", "Linux's ntb and its drivers have to be built against its headers",
	  "ntb", has_ntb },
};

static void find_option(struct diagnosis *d, const struct option *o)
{
	if (o->is_needed && !o->is_needed(d))
		return;
	if (o->module && kernel_module(&d->kernel, o->module) > MODULE_MISSING) {
		find(d, "kernel", LEVEL_OK, NULL, "it has the module %s",
		     o->module);
		return;
	}
	switch (kernel_config(&d->kernel, o->name)) {
	case CONFIG_ON:
	case CONFIG_MODULE:
		find(d, "kernel", LEVEL_OK, NULL, "it has %s", o->name);
		break;
	case CONFIG_OFF:
		find(d, "kernel", LEVEL_MISSING, NULL, "it was built without %s: %s",
		     o->name, o->without);
		break;
	default:
		break;	/* that there is no configuration is told once */
	}
}

static void find_kernel(struct diagnosis *d)
{
	static const char *const begin[] = { "iommu", "intel_iommu",
		"amd_iommu", "pci=", "pcie_", NULL };
	const struct kernel *k = &d->kernel;
	char words[256];
	size_t i;

	if (*k->release && k->config)
		find(d, "kernel", LEVEL_OK, NULL, "Linux %s; its configuration is in %s",
		     k->release, k->config_from);
	else if (*k->release)
		find(d, "kernel", LEVEL_UNKNOWN, NULL, "Linux %s; its configuration cannot be read, neither in /proc/config.gz nor in /boot/config-%s nor below /lib/modules, so what it was built with is not known",
		     k->release, k->release);
	else
		find(d, "kernel", LEVEL_UNKNOWN, NULL, "which kernel runs cannot be read: /proc/sys/kernel/osrelease");
	find_p2pdma(d);
	for (i = 0; i < ARRAY_SIZE(options); i++)
		find_option(d, &options[i]);
	kernel_words(k, begin, words, sizeof(words));
	if (*words)
		find(d, "kernel", LEVEL_NOTE, NULL, "it was started with %s",
		     words);
}

/* ---- modules ------------------------------------------------------------- */

static void find_blocked(struct diagnosis *d)
{
	if (d->kernel.no_modules)
		find(d, "modules", LEVEL_MISSING, NULL, "this kernel loads no more modules (kernel.modules_disabled is 1), until it is booted again");
	else if (d->kernel.signed_only)
		find(d, "modules", LEVEL_NOTE, NULL, "this kernel refuses modules without a signature that it trusts (Secure Boot, lockdown or module.sig_enforce); the key of DKMS has to be enrolled: mokutil --import");
}

/* The adapter is there, and so is the driver, but they are not together. */
static void find_refused(struct diagnosis *d, const struct pci_function *port)
{
	if (!port || *port->driver)
		return;
	find(d, "modules", LEVEL_MISSING, "sudo dmesg | grep -i -e fabrex -e draco",
	     "fabrex_draco is loaded, but does not drive %s; the kernel log says why it refused",
	     port->name);
}

static void find_fabrex(struct diagnosis *d)
{
	const struct pci_function *port = findings_first(d, FUNCTION_FPORT);
	const char *needs = port ? "the fabric port here needs it" :
			    "nothing on this machine needs it";

	switch (kernel_module(&d->kernel, "fabrex_draco")) {
	case MODULE_LOADED:
	case MODULE_BUILTIN:
		find(d, "modules", LEVEL_OK, NULL, "fabrex and fabrex_draco are loaded");
		find_refused(d, port);
		break;
	case MODULE_INSTALLED:
		find(d, "modules", port ? LEVEL_MISSING : LEVEL_NOTE,
		     port ? "sudo modprobe fabrex_draco" : NULL,
		     "fabrex_draco is installed for this kernel, but not loaded; %s",
		     needs);
		break;
	case MODULE_MISSING:
		find(d, "modules", port ? LEVEL_MISSING : LEVEL_NOTE, NULL,
		     "fabrex_draco is not installed for this kernel; %s%s",
		     needs, port ? "; README.md, \"Install\", says how" : "");
		break;
	default:
		find(d, "modules", LEVEL_UNKNOWN, NULL, "fabrex_draco is not loaded; whether it is installed cannot be seen: /lib/modules/%s/modules.dep cannot be read",
		     *d->kernel.release ? d->kernel.release : "RELEASE");
	}
}

/* A driver of Linux's own for what is here. */
static void find_driver(struct diagnosis *d, const struct pci_function *f,
			const char *about, const char *module)
{
	char command[64];

	if (*f->driver) {
		find(d, about, LEVEL_OK, NULL, "%s (%s) is driven by %s",
		     f->name, name_of(f), f->driver);
		return;
	}
	snprintf(command, sizeof(command), "sudo modprobe %s", module);
	switch (kernel_module(&d->kernel, module)) {
	case MODULE_INSTALLED:
		find(d, about, LEVEL_MISSING, command, "%s (%s) has no driver; %s is installed, but not loaded",
		     f->name, name_of(f), module);
		break;
	case MODULE_MISSING:
		find(d, about, LEVEL_MISSING, NULL, "%s (%s) has no driver: this kernel comes without %s; it can be built against its headers, see docs/hardware.md",
		     f->name, name_of(f), module);
		break;
	case MODULE_UNSEEN:
		find(d, about, LEVEL_UNKNOWN, NULL, "%s (%s) has no driver; whether %s is installed cannot be seen",
		     f->name, name_of(f), module);
		break;
	default:
		find(d, about, LEVEL_MISSING, "sudo dmesg | tail", "%s (%s) has no driver, though %s is loaded; the kernel log says why",
		     f->name, name_of(f), module);
	}
}

/* ---- switches ------------------------------------------------------------ */

static size_t count_ports(const struct pci_function *sw)
{
	size_t i, n = 0;

	for (i = 1; i <= sw->below; i++)
		n += sw[i].up == sw && sw[i].kind == FUNCTION_DOWNSTREAM;
	return n;
}

static const char *family_text(enum switch_family family)
{
	switch (family) {
	case SWITCH_SWITCHTEC_PFX:
		return "; a Switchtec PFX binds its ports by commands through its management function";
	case SWITCH_SWITCHTEC_PAX:
		return "; a Switchtec PAX binds functions by commands, which this stack does not know yet";
	case SWITCH_SWITCHTEC:
		return "; a Switchtec";
	case SWITCH_ADAPTER:
		return "; the adapter of a cable: the switch at its other end decides what appears below it";
	case SWITCH_BROADCOM:
		return "; there is no public command that binds ports of a Broadcom switch, so what is below it stays there";
	default:
		return "; a plain switch: what is below it stays there";
	}
}

static void find_switches(struct diagnosis *d)
{
	const struct pci_function *f;
	size_t n = 0;

	for (f = d->tree.v; f < d->tree.v + d->tree.n; f++) {
		if (f->kind == FUNCTION_UPSTREAM) {
			n++;
			find(d, "switches", LEVEL_OK, NULL, "%s: %s, %zu downstream port%s%s%s",
			     f->name, name_of(f), count_ports(f),
			     count_ports(f) == 1 ? "" : "s",
			     family_text(pci_name_switch(f)), f->supposed ?
			     " (that it is a switch is supposed from its place)" : "");
		}
		if (f->kind == FUNCTION_MANAGEMENT &&
		    pci_name_switch(f) != SWITCH_BROADCOM)
			find_driver(d, f, "switches", "switchtec");
		if (f->kind == FUNCTION_MANAGEMENT &&
		    pci_name_switch(f) == SWITCH_BROADCOM)
			find(d, "switches", LEVEL_NOTE, NULL, "%s (%s) manages a Broadcom switch; its commands are not public",
			     f->name, name_of(f));
	}
	if (!n)
		find(d, "switches", LEVEL_NOTE, NULL, "there is no PCIe switch");
}

static const char *ntb_module(enum ntb_family family)
{
	switch (family) {
	case NTB_SWITCHTEC:
		return "ntb_hw_switchtec";
	case NTB_INTEL:
		return "ntb_hw_intel";
	case NTB_AMD:
		return "ntb_hw_amd";
	case NTB_IDT:
		return "ntb_hw_idt";
	default:
		return "ntb_hw_epf";
	}
}

/* A Switchtec's function is driven by switchtec, on top of which the NTB is. */
static void find_ntbs(struct diagnosis *d)
{
	const struct pci_function *f;
	size_t n = 0;

	for (f = d->tree.v; f < d->tree.v + d->tree.n; f++) {
		enum ntb_family family = pci_name_ntb(f);

		if (f->kind != FUNCTION_NTB)
			continue;
		n++;
		find_driver(d, f, "ntb", family == NTB_SWITCHTEC ? "switchtec" :
			    ntb_module(family));
		if (family == NTB_SWITCHTEC && *f->driver &&
		    kernel_module(&d->kernel, "ntb_hw_switchtec") !=
		    MODULE_LOADED)
			find(d, "ntb", LEVEL_NOTE, NULL, "ntb_hw_switchtec is not loaded, so %s is no NTB to Linux yet",
			     f->name);
	}
	if (!n)
		find(d, "ntb", LEVEL_NOTE, NULL, "there is no NTB");
}

/* ---- DMA engines --------------------------------------------------------- */

/* "dma0chan3" of the function at @pci; false: of none. */
static bool channel_function(const struct diagnosis *d, const char *entry,
			     char pci[PCI_NAME_LEN])
{
	char link[SYSFS_PATH], path[SYSFS_PATH], top[SYSFS_PATH], *word;
	struct pci_addr addr;

	if (fxi_sysfs_path(link, d->env.root, "/sys/class/dma/%s/device", entry) ||
	    fxi_sysfs_path(top, d->env.root, "/sys/devices") ||
	    !fxi_sysfs_resolve(link, top, path))
		return false;
	word = strrchr(path, '/');
	if (!word || !fxi_pci_parse(word + 1, &addr))
		return false;
	fxi_pci_name(&addr, pci);
	return true;
}

static void find_engines(struct diagnosis *d)
{
	unsigned int *channels = xcalloc(d->tree.n + 1, sizeof(*channels));
	unsigned int all = 0, others = 0;
	char path[SYSFS_PATH], pci[PCI_NAME_LEN];
	const struct pci_function *f;
	const char *entry;
	DIR *dir = NULL;
	size_t i;

	if (!fxi_sysfs_path(path, d->env.root, "/sys/class/dma"))
		dir = opendir(path);
	while (dir && (entry = fxi_sysfs_next(dir))) {
		f = channel_function(d, entry, pci) ?
		    pci_tree_find(&d->tree, pci) : NULL;
		if (f)
			channels[f - d->tree.v]++;
		others += !f;
		all++;
	}
	if (dir)
		closedir(dir);
	for (i = 0; i < d->tree.n; i++)
		if (channels[i])
			find(d, "dma", LEVEL_OK, NULL, "%s (%s, %s) has %u DMA channel%s",
			     d->tree.v[i].name, name_of(&d->tree.v[i]),
			     *d->tree.v[i].driver ? d->tree.v[i].driver : "no driver",
			     channels[i], channels[i] == 1 ? "" : "s");
	if (others)
		find(d, "dma", LEVEL_NOTE, NULL, "%u DMA channel%s of no PCI device",
		     others, others == 1 ? "" : "s");
	for (i = 0; i < d->tree.n; i++)
		if (d->tree.v[i].kind == FUNCTION_DMA && !*d->tree.v[i].driver)
			find(d, "dma", LEVEL_NOTE, NULL, "%s (%s) is a DMA engine without a driver",
			     d->tree.v[i].name, name_of(&d->tree.v[i]));
	if (!all)
		find(d, "dma", LEVEL_NOTE, NULL, "no DMA engine is offered to Linux (/sys/class/dma %s)",
		     dir ? "is empty" : "is not there");
	free(channels);
}

/* ---- IOMMU --------------------------------------------------------------- */

static size_t count_entries(const struct diagnosis *d, const char *name)
{
	char path[SYSFS_PATH];
	size_t n = 0;
	DIR *dir = NULL;

	if (!fxi_sysfs_path(path, d->env.root, "%s", name))
		dir = opendir(path);
	while (dir && fxi_sysfs_next(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static void find_neighbours(struct diagnosis *d)
{
	const struct pci_function *gpu[64];
	size_t n = findings_gpus(d, gpu, ARRAY_SIZE(gpu)), i, k, others;

	for (i = 0; i < n; i++) {
		if (!*gpu[i]->group)
			continue;
		for (k = 0, others = 0; k < d->tree.n; k++)
			others += &d->tree.v[k] != gpu[i] &&
				  !function_is_bridge(&d->tree.v[k]) &&
				  !strcmp(d->tree.v[k].group, gpu[i]->group);
		if (others)
			find(d, "iommu", LEVEL_NOTE, NULL, "%s is in IOMMU group %s with %zu other function%s: VFIO gives them away together or not at all",
			     gpu[i]->name, gpu[i]->group, others,
			     others == 1 ? "" : "s");
	}
}

static void find_iommu(struct diagnosis *d)
{
	size_t groups = count_entries(d, "/sys/kernel/iommu_groups");
	size_t units = count_entries(d, "/sys/class/iommu");
	size_t i, translated = 0, identity = 0, grouped = 0;

	for (i = 0; i < d->tree.n; i++) {
		const char *type = d->tree.v[i].group_type;

		grouped += *d->tree.v[i].group != '\0';
		translated += fxi_host_translates(type);
		identity += !strcmp(type, "identity");
	}
	if (!groups && !grouped && !units)
		find(d, "iommu", LEVEL_NOTE, NULL, "no IOMMU is in use: every device, and every peer behind an NTB, may access all memory of this machine; firmware and intel_iommu=on or amd_iommu=on turn it on");
	else if (translated)
		find(d, "iommu", LEVEL_OK, NULL, "an IOMMU translates for %zu of %zu PCI functions, in %zu groups; it makes Linux set ACS redirect on bridges, which sends traffic between devices through the root complex",
		     translated, d->tree.n, groups);
	else if (identity)
		find(d, "iommu", LEVEL_NOTE, NULL, "there is an IOMMU, in pass-through mode (identity) for %zu of %zu PCI functions: it does not protect memory from devices",
		     identity, d->tree.n);
	else
		find(d, "iommu", LEVEL_UNKNOWN, NULL, "there is an IOMMU (%zu unit%s, %zu groups), but in which mode cannot be seen: no iommu_group/type can be read",
		     units, units == 1 ? "" : "s", groups);
	find_neighbours(d);
}

/* ---- ACS ----------------------------------------------------------------- */

static void find_acs(struct diagnosis *d)
{
	size_t redirect = 0, unseen = 0, off = 0;
	const struct pci_function *f;

	for (f = d->tree.v; f < d->tree.v + d->tree.n; f++) {
		if (f->kind != FUNCTION_ROOT_PORT &&
		    f->kind != FUNCTION_DOWNSTREAM)
			continue;
		redirect += f->acs == ACS_REDIRECT;
		unseen += function_hides_acs(f);
		off += f->acs == ACS_OFF || f->acs == ACS_NONE;
	}
	if (redirect)
		find(d, "acs", LEVEL_NOTE, "fabrexctl p2p", "ACS redirects requests at %zu port%s: devices below reach each other through the root complex, if it lets them; \"p2p\" names the bridge and the remedy",
		     redirect, redirect == 1 ? "" : "s");
	if (unseen)
		find(d, "acs", LEVEL_UNKNOWN, "sudo fabrexctl doctor", "whether ACS redirects requests at %zu port%s cannot be seen: only root may read configuration space beyond 64 bytes",
		     unseen, unseen == 1 ? "" : "s");
	if (off && !redirect && !unseen)
		find(d, "acs", LEVEL_OK, NULL, "ACS redirects nothing: a switch passes requests between devices below it on directly");
}

/* ---- devices ------------------------------------------------------------- */

static void find_devices(struct diagnosis *d)
{
	const struct pci_function *f;
	char count[128];

	machine_count(&d->tree, count, sizeof(count));
	if (d->tree.unreadable)
		find(d, "devices", LEVEL_UNKNOWN, NULL, "/sys/bus/pci/devices cannot be read (%s); run it outside of the container",
		     strerror(d->tree.unreadable));
	else
		find(d, "devices", LEVEL_OK, "fabrexctl list machine", "%zu PCI functions: %s", d->tree.n,
		     *count ? count : "no switch, GPU, drive or NIC");
	if (d->tree.odd)
		find(d, "devices", LEVEL_UNKNOWN, NULL, "%zu entries of /sys/bus/pci/devices make no sense; they are left out",
		     d->tree.odd);
	for (f = d->tree.v; f < d->tree.v + d->tree.n; f++) {
		if (f->gone)
			find(d, "devices", LEVEL_MISSING, NULL, "%s does not answer: it was pulled or has no power",
			     f->name);
		if (function_is_slow(f) && f->kind != FUNCTION_GPU)
			find(d, "devices", LEVEL_NOTE, NULL, "%s (%s) has a link of %g GT/s x%u, and is capable of %g GT/s x%u",
			     f->name, name_of(f), f->link.speed / 1e3,
			     f->link.width, f->most.speed / 1e3, f->most.width);
		/* An idle GPU lowers its link's speed, never its width. */
		if (f->kind == FUNCTION_GPU && function_is_slow(f) && f->up &&
		    f->link.width < f->most.width &&
		    f->link.width < f->up->most.width)
			find(d, "devices", LEVEL_NOTE, NULL, "%s (%s) has a link of %u lanes, and is capable of %u; reseat it, or its cable",
			     f->name, name_of(f), f->link.width, f->most.width);
	}
}

void findings_make(struct diagnosis *d)
{
	find_devices(d);
	find_kernel(d);
	find_fabrex(d);
	find_blocked(d);
	if (d->tree.unreadable)
		return;
	find_switches(d);
	find_ntbs(d);
	find_engines(d);
	find_iommu(d);
	find_acs(d);
}
