// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI Express configuration space: header, power management, MSI-X, PCI
 * Express, Resizable BAR and ACS capabilities. QEMU shadows BARs and MSI-X; writes
 * arrive here too.
 */
#include <linux/pci_regs.h>
#include <string.h>

#include "config.h"

#define CAP_PM		0x40
#define CAP_MSIX	0x50
#define CAP_EXP		0x60
#define CAP_REBAR	0x100		/* extended, as are all that follow */
#define CAP_ACS		0x100
#define REBAR_MIN	(1ull << 20)	/* size that encodes as 0 */
#define REBAR_SIZE_BYTE	(CAP_REBAR + PCI_REBAR_CTRL + 1) /* bits 13:8 */

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, (uint16_t)v);
	put16(p + 2, (uint16_t)(v >> 16));
}

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static void init_header(struct config *c, const struct function_desc *d)
{
	uint8_t *p = c->data;

	put16(p + PCI_VENDOR_ID, d->vendor);
	put16(p + PCI_DEVICE_ID, d->device);
	put16(p + PCI_STATUS, PCI_STATUS_CAP_LIST);
	put32(p + PCI_CLASS_REVISION, d->class_code << 8 | d->revision);
	put16(p + PCI_SUBSYSTEM_VENDOR_ID, d->subvendor);
	put16(p + PCI_SUBSYSTEM_ID, d->subdevice);
	p[PCI_CAPABILITY_LIST] = CAP_PM;
	put16(c->writable + PCI_COMMAND, PCI_COMMAND_MEMORY |
	      PCI_COMMAND_MASTER | PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
	      PCI_COMMAND_INTX_DISABLE);
	c->writable[PCI_CACHE_LINE_SIZE] = 0xff;
	c->writable[PCI_INTERRUPT_LINE] = 0xff;
}

static void init_bars(struct config *c, const struct function_desc *d)
{
	unsigned int i;

	for (i = 0; i < FUNCTION_BARS; i++) {
		const struct function_bar *b = &d->bar[i];
		uint8_t *p = c->data + PCI_BASE_ADDRESS_0 + 4 * i;
		uint8_t *w = c->writable + PCI_BASE_ADDRESS_0 + 4 * i;
		uint64_t mask = ~(b->size - 1);

		if (!b->size)
			continue;
		put32(p, (b->flags & FUNCTION_BAR_64 ?
			  PCI_BASE_ADDRESS_MEM_TYPE_64 : 0) |
			 (b->flags & FUNCTION_BAR_PREFETCH ?
			  PCI_BASE_ADDRESS_MEM_PREFETCH : 0));
		put32(w, (uint32_t)mask);
		if (b->flags & FUNCTION_BAR_64)
			put32(w + 4, (uint32_t)(mask >> 32));
	}
}

static void init_pm(struct config *c)
{
	uint8_t *p = c->data + CAP_PM;

	p[0] = PCI_CAP_ID_PM;
	p[1] = CAP_MSIX;
	put16(p + PCI_PM_PMC, 3);
	put16(p + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
	put16(c->writable + CAP_PM + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
}

static void init_msix(struct config *c, const struct function_desc *d)
{
	uint8_t *p = c->data + CAP_MSIX;

	p[0] = PCI_CAP_ID_MSIX;
	p[1] = CAP_EXP;
	put16(p + PCI_MSIX_FLAGS, (uint16_t)(d->msix_vectors - 1));
	put32(p + PCI_MSIX_TABLE, d->msix_table | d->msix_bar);
	put32(p + PCI_MSIX_PBA, d->msix_pba | d->msix_bar);
	put16(c->writable + CAP_MSIX + PCI_MSIX_FLAGS,
	      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
}

static void init_exp(struct config *c, const struct function_desc *d)
{
	uint8_t *p = c->data + CAP_EXP, *w = c->writable + CAP_EXP;
	uint32_t link = d->link_speed | (uint32_t)d->link_width << 4;

	p[0] = PCI_CAP_ID_EXP;
	put16(p + PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	put32(p + PCI_EXP_DEVCAP, 1 /* 256 bytes */ | PCI_EXP_DEVCAP_EXT_TAG |
	      PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR);
	put16(p + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_RELAX_EN |
	      PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B);
	put16(w + PCI_EXP_DEVCTL, 0x7fff);
	put32(p + PCI_EXP_LNKCAP, link);
	put16(p + PCI_EXP_LNKSTA, (uint16_t)link);
	put16(w + PCI_EXP_LNKCTL, PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_RCB);
	put32(p + PCI_EXP_DEVCAP2, PCI_EXP_DEVCAP2_COMP_TMOUT_DIS);
	put16(w + PCI_EXP_DEVCTL2, PCI_EXP_DEVCTL2_COMP_TMOUT_DIS |
	      PCI_EXP_DEVCTL2_COMP_TIMEOUT);
	put32(p + PCI_EXP_LNKCAP2, ((1u << d->link_speed) - 1) << 1);
	put16(p + PCI_EXP_LNKCTL2, d->link_speed);
}

/* Nothing to control: no request of this function reaches another one of its device. */
static void init_acs(struct config *c)
{
	put32(c->data + CAP_ACS, PCI_EXT_CAP_ID_ACS | 1u << 16);
}

/* ---- Resizable BAR ---- */

static unsigned int rebar_code(uint64_t size)
{
	unsigned int code = 0;

	while (REBAR_MIN << code < size)
		code++;
	return code;
}

static void init_rebar(struct config *c)
{
	uint8_t *p = c->data + CAP_REBAR;
	unsigned int top = rebar_code(c->full_size);

	put32(p, PCI_EXT_CAP_ID_REBAR | 1u << 16);
	put32(p + PCI_REBAR_CAP, ((2u << top) - 1) << 4);
	put32(p + PCI_REBAR_CTRL, c->resizable | 1u << 5 | top << 8);
}

static void find_resizable(struct config *c)
{
	unsigned int i;

	for (i = 0; i < FUNCTION_BARS; i++)
		if ((c->bar[i].flags & FUNCTION_BAR_RESIZE) &&
		    c->bar[i].size >= REBAR_MIN)
			break;
	c->resizable = i;
	if (i == FUNCTION_BARS)
		return;
	c->full_size = c->bar[i].size;
	init_rebar(c);
}

/* Address bits below the size read 0 and cannot be written. */
static void set_size(struct config *c, uint64_t size)
{
	uint8_t *p = c->data + PCI_BASE_ADDRESS_0 + 4 * c->resizable;
	uint8_t *w = c->writable + PCI_BASE_ADDRESS_0 + 4 * c->resizable;
	uint64_t mask = ~(size - 1);

	c->bar[c->resizable].size = size;
	put32(w, (uint32_t)mask);
	put32(p, (get32(p) & (uint32_t)mask) | (get32(p) & 0xf));
	if (c->bar[c->resizable].flags & FUNCTION_BAR_64) {
		put32(w + 4, (uint32_t)(mask >> 32));
		put32(p + 4, get32(p + 4) & (uint32_t)(mask >> 32));
	}
	put32(c->data + CAP_REBAR + PCI_REBAR_CTRL,
	      c->resizable | 1u << 5 | rebar_code(size) << 8);
}

/* The size field was written as part of a store; @code is what it got. */
static void resize(struct config *c, unsigned int code)
{
	if (pci_config_memory(c) || code > rebar_code(c->full_size))
		return;
	set_size(c, REBAR_MIN << code);
}

void pci_config_init(struct config *c, const struct function_desc *d)
{
	memset(c, 0, sizeof(*c));
	memcpy(c->bar, d->bar, sizeof(c->bar));
	init_header(c, d);
	init_bars(c, d);
	init_pm(c);
	if (d->msix_vectors)
		init_msix(c, d);
	else
		c->data[CAP_PM + 1] = CAP_EXP;
	init_exp(c, d);
	if (d->isolated)
		init_acs(c);
	find_resizable(c);
}

void pci_config_read(const struct config *c, uint32_t offset, void *buf, size_t len)
{
	memcpy(buf, c->data + offset, len);
}

static bool touches(uint32_t offset, size_t len, uint32_t reg, uint32_t size)
{
	return offset < reg + size && reg < offset + len;
}

unsigned int pci_config_write(struct config *c, uint32_t offset, const void *buf,
			  size_t len)
{
	const uint8_t *from = buf;
	unsigned int what = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		uint8_t w = c->writable[offset + i], *p = c->data + offset + i;

		*p = (uint8_t)((*p & ~w) | (from[i] & w));
		if (offset + i == CAP_EXP + PCI_EXP_DEVCTL + 1 &&
		    (from[i] & PCI_EXP_DEVCTL_BCR_FLR >> 8))
			what |= CONFIG_FLR;
	}
	if (c->resizable < FUNCTION_BARS && offset <= REBAR_SIZE_BYTE &&
	    REBAR_SIZE_BYTE - offset < len) {
		resize(c, from[REBAR_SIZE_BYTE - offset] & 0x3f);
		what |= CONFIG_BARS;
	}
	if (touches(offset, len, PCI_COMMAND, 2) ||
	    touches(offset, len, CAP_PM + PCI_PM_CTRL, 1))
		what |= CONFIG_COMMAND;
	if (touches(offset, len, PCI_BASE_ADDRESS_0, 24))
		what |= CONFIG_BARS;
	return what;
}

void pci_config_reset(struct config *c, bool keep_bars)
{
	uint32_t devctl = CAP_EXP + PCI_EXP_DEVCTL;
	uint32_t i;

	for (i = 0; i < CONFIG_SIZE; i++) {
		if (keep_bars && touches(i, 1, PCI_BASE_ADDRESS_0, 24))
			continue;
		if (i == PCI_INTERRUPT_LINE || i == CAP_EXP + PCI_EXP_LNKCTL)
			continue;	/* not reset by an FLR */
		c->data[i] &= (uint8_t)~c->writable[i];
	}
	put16(c->data + devctl, PCI_EXP_DEVCTL_RELAX_EN |
	      PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B);
	if (!keep_bars && c->resizable < FUNCTION_BARS)
		set_size(c, c->full_size);
}

/* In another state than D0 only configuration requests are answered. */
static bool awake(const struct config *c)
{
	return !(get16(c->data + CAP_PM + PCI_PM_CTRL) &
		 PCI_PM_CTRL_STATE_MASK);
}

bool pci_config_bus_master(const struct config *c)
{
	return awake(c) && get16(c->data + PCI_COMMAND) & PCI_COMMAND_MASTER;
}

bool pci_config_memory(const struct config *c)
{
	return awake(c) && get16(c->data + PCI_COMMAND) & PCI_COMMAND_MEMORY;
}

uint64_t pci_config_bar(const struct config *c, unsigned int bar)
{
	const uint8_t *p = c->data + PCI_BASE_ADDRESS_0 + 4 * bar;
	uint64_t addr = get32(p) & (uint32_t)PCI_BASE_ADDRESS_MEM_MASK;

	if (c->bar[bar].flags & FUNCTION_BAR_64)
		addr |= (uint64_t)get32(p + 4) << 32;
	return addr;
}
