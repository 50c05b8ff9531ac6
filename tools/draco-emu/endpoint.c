// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoint functions: an identity, a register block to recognise them by, and
 * memory for peers to read and write. GPUs have an engine (gpu.c); the others
 * do nothing by themselves. They have no MSI-X: QEMU 11.1 aborts when it
 * unplugs a vfio-user-pci that has it (vfio_user_msix_teardown() after the
 * BARs are gone).
 */
#include <draco/gpu.h>
#include <draco/regs.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"
#include "gpu.h"

#define IDENTITY	0x40		/* bytes of registers */
#define REGS_SIZE	0x10000

struct endpoint {
	struct function *function;
	uint8_t regs[IDENTITY];
	const struct endpoint_desc *desc; /* while it is created */
	bool has_engine;
	struct gpu *gpu;
	void (*bars)(void *arg);
	void *arg;
};

static uint32_t read_reg(struct endpoint *e, uint64_t offset)
{
	uint32_t v = 0;

	if (offset < IDENTITY)
		memcpy(&v, e->regs + offset, 4);
	else if (e->gpu)
		v = gpu_read(e->gpu, offset);
	return v;
}

static void write_reg(struct endpoint *e, uint64_t offset, uint32_t v)
{
	if (offset == DRACO_EPR_SCRATCH)
		memcpy(e->regs + offset, &v, 4);
	else if (e->gpu)
		gpu_write(e->gpu, offset, v);
}

/* Aligned accesses of 4, or of 8 as two of 4. */
static bool reg_access(uint64_t offset, size_t count)
{
	return (count == 4 || count == 8) && !(offset & (count - 1));
}

static void ep_read(void *arg, unsigned int bar, uint64_t offset, void *buf,
		    size_t count)
{
	if (bar != ENDPOINT_BAR_REGS || !reg_access(offset, count)) {
		memset(buf, 0xff, count);
		return;
	}
	for (size_t i = 0; i < count; i += 4) {
		uint32_t v = read_reg(arg, offset + i);

		memcpy((char *)buf + i, &v, 4);
	}
}

static void ep_write(void *arg, unsigned int bar, uint64_t offset,
		     const void *buf, size_t count)
{
	if (bar != ENDPOINT_BAR_REGS || !reg_access(offset, count))
		return;
	for (size_t i = 0; i < count; i += 4) {
		uint32_t v;

		memcpy(&v, (const char *)buf + i, 4);
		write_reg(arg, offset + i, v);
	}
}

static void ep_reset(void *arg, enum function_reset why)
{
	struct endpoint *e = arg;

	(void)why;
	memset(e->regs + DRACO_EPR_SCRATCH, 0, 4);
	if (e->gpu)
		gpu_reset(e->gpu);
}

static int ep_memory(void *arg, unsigned int bar, void *mem, int fd)
{
	struct endpoint *e = arg;
	struct gpu_desc d = {
		.name = e->desc->name, .vram = mem, .size = e->desc->size,
		.fd = fd, .link = e->desc->link, .seat = e->desc->seat,
		.host = e->desc->host,
	};

	if (bar != ENDPOINT_BAR_MEMORY || !e->has_engine)
		return 0;
	memcpy(&d.instance, e->regs + DRACO_EPR_INSTANCE, 4);
	e->gpu = gpu_create(&d);
	return e->gpu ? 0 : -ENOMEM;
}

static void ep_dead(void *arg)
{
	struct endpoint *e = arg;

	if (e->gpu)
		gpu_kill(e->gpu);
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
	.memory = ep_memory,
	.dead = ep_dead,
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
	const uint32_t magic = DRACO_EPR_MAGIC_VALUE, kind = d->kind;

	memcpy(e->regs + DRACO_EPR_MAGIC, &magic, 4);
	memcpy(e->regs + DRACO_EPR_KIND, &kind, 4);
	memcpy(e->regs + DRACO_EPR_INSTANCE, &instance, 4);
	memcpy(e->regs + DRACO_EPR_SIZE, &d->size, 8);
	strncpy((char *)e->regs + DRACO_EPR_NAME, d->name,
		IDENTITY - DRACO_EPR_NAME - 1);
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
				 FUNCTION_BAR_MEMORY |
				 (desc->kind == DRACO_EP_GPU ?
				  FUNCTION_BAR_RESIZE : 0),
		},
		.link = desc->link,
	};
	struct endpoint *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return -ENOMEM;
	fill_regs(e, desc, instance);
	e->desc = desc;
	e->has_engine = desc->kind == DRACO_EP_GPU;
	e->bars = bars;
	e->arg = arg;
	*out = e;
	ret = function_create(&d, &endpoint_ops, e, &e->function);
	e->desc = NULL;
	if (ret) {
		*out = NULL;
		gpu_destroy(e->gpu);
		free(e);
	} else if (e->gpu) {
		/* Only now: what fails unmaps its memory. */
		gpu_join(e->gpu);
	}
	return ret;
}

void endpoint_destroy(struct endpoint *e)
{
	if (!e)
		return;
	/* The engine first: it works on the function's memory. */
	if (e->gpu)
		gpu_kill(e->gpu);
	function_destroy(e->function);
	gpu_destroy(e->gpu);
	free(e);
}

struct function *endpoint_function(struct endpoint *e)
{
	return e->function;
}
