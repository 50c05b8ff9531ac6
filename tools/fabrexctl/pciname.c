// SPDX-License-Identifier: GPL-2.0-only
/* See pciname.h. Numbers: those that Linux's drivers and the vendors publish. */
#include <libudev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pciname.h"
#include "topology/visible.h"
#include "util.h"

#define ANY		0x10000u
#define MICROSEMI	0x11f8u
#define EFAR		0x1055u	/* Switchtec parts sold by others */
#define BROADCOM	0x1000u
#define PLX		0x10b5u
#define INTEL		0x8086u
#define AMD		0x1022u
#define HYGON		0x1d94u
#define IDT		0x111du
#define GIGAIO		0x1ce5u
#define DRACO		0xff83u
#define KUMA		0xff82u

#define CLASS_NTB	0x0680u	/* base class and subclass: bridge, other */
#define CLASS_MEMORY	0x0580u
#define CLASS_SYSTEM	0x0880u
#define CLASS_BRIDGE	0x0604u

/*
 * The first one that fits. @class: base class and subclass, for what several
 * functions of a chip have in common. OTHER says nothing about the kind.
 */
static const struct known {
	uint32_t vendor, device, subvendor, subdevice, class;
	enum function_kind kind;
	const char *name;
} known[] = {
	{ MICROSEMI, 0x4000, GIGAIO, DRACO, CLASS_BRIDGE, FUNCTION_OTHER,
	  "GigaIO FabreX switch (Draco), Switchtec PFX 100xG4" },
	{ MICROSEMI, 0x4000, GIGAIO, DRACO, CLASS_NTB, FUNCTION_NTB,
	  "GigaIO FabreX switch (Draco), management and NTB" },
	{ MICROSEMI, 0x4000, GIGAIO, DRACO, CLASS_MEMORY, FUNCTION_MANAGEMENT,
	  "GigaIO FabreX switch (Draco), management" },
	{ BROADCOM, 0xc010, GIGAIO, KUMA, ANY, FUNCTION_OTHER,
	  "GigaIO FabreX adapter (Kuma), Broadcom PEX88000" },
	{ 0x1234, 0xda00, ANY, ANY, ANY, FUNCTION_FPORT,
	  "emulated Draco" },
	{ 0x1234, 0xda10, ANY, ANY, ANY, FUNCTION_OTHER,
	  "emulated GPU of fabrex" },
	{ BROADCOM, 0xc010, ANY, ANY, ANY, FUNCTION_OTHER,
	  "Broadcom PEX88000 (Gen4)" },
	{ BROADCOM, 0xc030, ANY, ANY, ANY, FUNCTION_OTHER,
	  "Broadcom PEX89000 (Gen5)" },
	{ BROADCOM, 0x00b2, ANY, ANY, ANY, FUNCTION_MANAGEMENT,
	  "Broadcom PEX management" },
	{ PLX, 0x87d0, ANY, ANY, ANY, FUNCTION_DMA, "PLX ExpressLane DMA" },
	{ PLX, ANY, ANY, ANY, CLASS_BRIDGE, FUNCTION_OTHER,
	  "PLX (Broadcom) switch" },
	{ MICROSEMI, ANY, ANY, ANY, CLASS_NTB, FUNCTION_NTB, NULL },
	{ MICROSEMI, ANY, ANY, ANY, CLASS_MEMORY, FUNCTION_MANAGEMENT, NULL },
	{ MICROSEMI, ANY, ANY, ANY, CLASS_SYSTEM, FUNCTION_DMA, NULL },
	{ EFAR, ANY, ANY, ANY, CLASS_NTB, FUNCTION_NTB, NULL },
	{ EFAR, ANY, ANY, ANY, CLASS_MEMORY, FUNCTION_MANAGEMENT, NULL },
	{ EFAR, ANY, ANY, ANY, CLASS_SYSTEM, FUNCTION_DMA, NULL },
	{ INTEL, 0x201c, ANY, ANY, CLASS_NTB, FUNCTION_NTB,
	  "Intel NTB, Xeon Scalable" },
	{ INTEL, 0x347e, ANY, ANY, CLASS_NTB, FUNCTION_NTB,
	  "Intel NTB, Xeon Scalable of the third generation" },
	{ INTEL, 0x0db4, ANY, ANY, CLASS_NTB, FUNCTION_NTB,
	  "Intel NTB, Xeon 6" },
	{ INTEL, 0x7868, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x3c0d, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x3c0e, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x3c0f, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x0e0d, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x0e0e, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x0e0f, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x2f0d, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x2f0e, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x2f0f, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x6f0d, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x6f0e, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ INTEL, 0x6f0f, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Intel NTB" },
	{ AMD, 0x145b, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "AMD NTB" },
	{ AMD, 0x148b, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "AMD NTB" },
	{ AMD, 0x14c0, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "AMD NTB" },
	{ AMD, 0x14c3, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "AMD NTB" },
	{ AMD, 0x155a, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "AMD NTB" },
	{ AMD, 0x17d4, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "AMD NTB" },
	{ AMD, 0x17d7, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "AMD NTB" },
	{ HYGON, 0x145b, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "Hygon NTB" },
	{ IDT, ANY, ANY, ANY, CLASS_NTB, FUNCTION_NTB, "IDT NTB" },
	{ 0x104c, 0xb00d, ANY, ANY, ANY, FUNCTION_NTB, "NTB of an endpoint" },
	{ 0x1957, 0x0809, ANY, ANY, ANY, FUNCTION_NTB, "NTB of an endpoint" },
	{ 0x1912, 0x0030, ANY, ANY, ANY, FUNCTION_NTB, "NTB of an endpoint" },
	{ 0x104c, 0x8232, ANY, ANY, ANY, FUNCTION_OTHER,
	  "Texas Instruments XIO3130 switch" },
	{ 0x104c, 0x8233, ANY, ANY, ANY, FUNCTION_OTHER,
	  "Texas Instruments XIO3130 switch" },
	{ 0x1b36, 0x000c, ANY, ANY, ANY, FUNCTION_OTHER, "QEMU port" },
};

static bool fits(uint32_t want, uint32_t have)
{
	return want == ANY || want == have;
}

static const struct known *find(const struct pci_function *f)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (fits(known[i].vendor, f->vendor) &&
		    fits(known[i].device, f->device) &&
		    fits(known[i].subvendor, f->subvendor) &&
		    fits(known[i].subdevice, f->subdevice) &&
		    fits(known[i].class, f->class_code >> 8))
			return &known[i];
	return NULL;
}

enum function_kind pci_name_kind(const struct pci_function *f)
{
	const struct known *k = find(f);

	return k ? k->kind : FUNCTION_OTHER;
}

/* ---- Switchtec parts ----------------------------------------------------- */

/* 40xx to 45xx and so on; Gen3 is 8531 to 8576. */
static const struct part {
	uint32_t prefix, mask;
	unsigned int gen;
	const char *line;
} parts[] = {
	{ 0x8530, 0xfff0, 3, "PFX" }, { 0x8540, 0xfff0, 3, "PSX" },
	{ 0x8550, 0xfff0, 3, "PAX" },
	{ 0x4000, 0xff00, 4, "PFX" }, { 0x4100, 0xff00, 4, "PSX" },
	{ 0x4200, 0xff00, 4, "PAX" }, { 0x4300, 0xff00, 4, "PFX-A" },
	{ 0x4400, 0xff00, 4, "PSX-A" }, { 0x4500, 0xff00, 4, "PAX-A" },
	{ 0x5000, 0xff00, 5, "PFX" }, { 0x5100, 0xff00, 5, "PSX" },
	{ 0x5200, 0xff00, 5, "PAX" }, { 0x5300, 0xff00, 5, "PFX-A" },
	{ 0x5400, 0xff00, 5, "PSX-A" }, { 0x5500, 0xff00, 5, "PAX-A" },
	{ 0x6000, 0xf000, 6, "" },
};

bool pci_name_is_switchtec(const struct pci_function *f)
{
	const uint32_t class = f->class_code >> 8;

	return (f->vendor == MICROSEMI || f->vendor == EFAR) &&
	       (class == CLASS_BRIDGE || class == CLASS_NTB ||
		class == CLASS_MEMORY || class == CLASS_SYSTEM);
}

static const struct part *find_part(const struct pci_function *f)
{
	size_t i;

	for (i = 0; f->vendor == MICROSEMI && i < ARRAY_SIZE(parts); i++)
		if ((f->device & parts[i].mask) == parts[i].prefix)
			return &parts[i];
	return NULL;
}

static void name_switchtec(const struct pci_function *f, char *text,
			   size_t size)
{
	const struct part *p = find_part(f);
	const char *what = f->kind == FUNCTION_NTB ? ", management and NTB" :
			   f->kind == FUNCTION_MANAGEMENT ? ", management" :
			   f->kind == FUNCTION_DMA ? ", DMA engine" : "";

	if (p)
		snprintf(text, size, "Switchtec %s%s(Gen%u)%s", p->line,
			 *p->line ? " " : "", p->gen, what);
	else
		snprintf(text, size, "Switchtec%s", what);
}

enum switch_family pci_name_switch(const struct pci_function *f)
{
	const struct part *p = find_part(f);

	if (f->subvendor == GIGAIO && f->subdevice == KUMA)
		return SWITCH_ADAPTER;
	if (f->vendor == BROADCOM || f->vendor == PLX)
		return SWITCH_BROADCOM;
	if (!pci_name_is_switchtec(f))
		return SWITCH_PLAIN;
	if (p && !strncmp(p->line, "PAX", 3))
		return SWITCH_SWITCHTEC_PAX;
	return p && !strncmp(p->line, "PFX", 3) ? SWITCH_SWITCHTEC_PFX :
						  SWITCH_SWITCHTEC;
}

enum ntb_family pci_name_ntb(const struct pci_function *f)
{
	switch (f->vendor) {
	case MICROSEMI:
	case EFAR:
		return NTB_SWITCHTEC;
	case INTEL:
		return NTB_INTEL;
	case AMD:
	case HYGON:
		return NTB_AMD;
	case IDT:
		return NTB_IDT;
	case 0x104c:
	case 0x1957:
	case 0x1912:
		return NTB_EPF;
	}
	return NTB_OTHER;
}

/* ---- udev's database ----------------------------------------------------- */

static struct udev_hwdb *database(void)
{
	static struct udev_hwdb *hwdb;
	static bool tried;
	struct udev *udev;

	if (tried)
		return hwdb;
	tried = true;
	udev = udev_new();
	if (udev)
		hwdb = udev_hwdb_new(udev);
	return hwdb;
}

static const char *value(struct udev_list_entry *list, const char *key)
{
	struct udev_list_entry *e = udev_list_entry_get_by_name(list, key);

	return e ? udev_list_entry_get_value(e) : NULL;
}

/* "NVIDIA" of "NVIDIA Corporation", "AMD" of "Advanced ... [AMD/ATI]". */
static void short_vendor(const char *vendor, char *to, size_t size)
{
	static const char *const ends[] = { " Corporation", " Corp", " Inc",
					    " Limited", NULL };
	const char *in = strchr(vendor, '['), *at;
	int i;

	snprintf(to, size, "%s", in ? in + 1 : vendor);
	to[strcspn(to, in ? "/]" : ",/[(")] = '\0';
	for (i = 0; ends[i]; i++) {
		at = strstr(to, ends[i]);
		if (at)
			to[at - to] = '\0';
	}
}

static void look_up(const struct pci_function *f, char *text, size_t size)
{
	struct udev_list_entry *list;
	const char *vendor, *model;
	char alias[96], maker[48];

	if (!database())
		return;
	snprintf(alias, sizeof(alias),
		 "pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", f->vendor,
		 f->device, f->subvendor, f->subdevice, f->class_code >> 16,
		 f->class_code >> 8 & 0xff, f->class_code & 0xff);
	list = udev_hwdb_get_properties_list_entry(database(), alias, 0);
	vendor = value(list, "ID_VENDOR_FROM_DATABASE");
	model = value(list, "ID_MODEL_FROM_DATABASE");
	if (vendor && model) {
		short_vendor(vendor, maker, sizeof(maker));
		snprintf(text, size, "%s %s", maker, model);
	}
	visible(text);
}

void pci_name_text(const struct pci_function *f, char *text, size_t size)
{
	const struct known *k = find(f);

	*text = '\0';
	if (k && k->name)
		snprintf(text, size, "%s", k->name);
	else if (pci_name_is_switchtec(f))
		name_switchtec(f, text, size);
	else if (!secure_getenv("FABREX_ROOT"))
		look_up(f, text, size);
}
