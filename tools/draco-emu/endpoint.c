// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoint functions. They do nothing by themselves: an identity, a register
 * block to recognise them by, and memory for peers to read and write. They
 * have no MSI-X: QEMU 11.1 aborts when it unplugs a vfio-user-pci that has it
 * (vfio_user_msix_teardown() after the BARs are gone).
 */
#include <draco/regs.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"

#define REG_MAGIC	0x00
#define REG_KIND	0x04
#define REG_INSTANCE	0x08
#define REG_SCRATCH	0x0c
#define REG_SIZE	0x10
#define REG_NAME	0x20
#define REG_END		0x40
#define REGS_SIZE	0x10000

struct endpoint {
	struct function *function;
	uint8_t regs[REG_END];
	void (*bars)(void *arg);
	void *arg;
};

static void ep_read(void *arg, unsigned int bar, uint64_t offset, void *buf,
		    size_t count)
{
	struct endpoint *e = arg;
	size_t n;

	memset(buf, 0, count);
	if (bar != ENDPOINT_BAR_REGS || offset >= REG_END)
		return;
	n = REG_END - offset;
	memcpy(buf, e->regs + offset, count < n ? count : n);
}

static void ep_write(void *arg, unsigned int bar, uint64_t offset,
		     const void *buf, size_t count)
{
	struct endpoint *e = arg;

	if (bar == ENDPOINT_BAR_REGS && offset == REG_SCRATCH && count == 4)
		memcpy(e->regs + REG_SCRATCH, buf, 4);
}

static void ep_reset(void *arg, enum function_reset why)
{
	struct endpoint *e = arg;

	(void)why;
	memset(e->regs + REG_SCRATCH, 0, 4);
}

static void ep_bars(void *arg)
{
	struct endpoint *e = arg;

	if (e->bars)
		e->bars(e->arg);
}

static const struct function_ops endpoint_ops = {
	.bar_read = ep_read,
	.bar_write = ep_write,
	.reset = ep_reset,
	.bars = ep_bars,
};

static uint32_t class_code(unsigned int kind)
{
	switch (kind) {
	case DRACO_EP_NVME:
		return 0x018000;	/* mass storage, other: no nvme driver */
	case DRACO_EP_NIC:
		return 0x028000;
	default:
		return 0x120000;	/* processing accelerator */
	}
}

static void fill_regs(struct endpoint *e, const struct endpoint_desc *d,
		      unsigned int instance)
{
	const uint32_t magic = ENDPOINT_MAGIC, kind = d->kind;

	memcpy(e->regs + REG_MAGIC, &magic, 4);
	memcpy(e->regs + REG_KIND, &kind, 4);
	memcpy(e->regs + REG_INSTANCE, &instance, 4);
	memcpy(e->regs + REG_SIZE, &d->size, 8);
	strncpy((char *)e->regs + REG_NAME, d->name, REG_END - REG_NAME - 1);
}

int endpoint_create(const struct endpoint_desc *desc, const char *socket,
		    unsigned int instance, void (*bars)(void *arg), void *arg,
		    struct endpoint **out)
{
	struct function_desc d = {
		.name = desc->name,
		.socket = socket,
		.vendor = desc->vendor,
		.device = desc->device,
		.subvendor = desc->vendor,
		.subdevice = desc->device,
		.class_code = class_code(desc->kind),
		.revision = 1,
		.link_speed = 4,
		.link_width = desc->link_width ? desc->link_width : 16,
		.bar[ENDPOINT_BAR_REGS] = { .size = REGS_SIZE },
		.bar[ENDPOINT_BAR_MEMORY] = {
			.size = desc->size,
			.flags = FUNCTION_BAR_64 | FUNCTION_BAR_PREFETCH |
				 FUNCTION_BAR_MEMORY,
		},
	};
	struct endpoint *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return -ENOMEM;
	fill_regs(e, desc, instance);
	e->bars = bars;
	e->arg = arg;
	*out = e;
	ret = function_create(&d, &endpoint_ops, e, &e->function);
	if (ret) {
		*out = NULL;
		free(e);
	}
	return ret;
}

void endpoint_destroy(struct endpoint *e)
{
	if (!e)
		return;
	function_destroy(e->function);
	free(e);
}

struct function *endpoint_function(struct endpoint *e)
{
	return e->function;
}
