// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles by which a process opens GPU memory of another one. What they promise
 * is in gpu.h. Called by hip.c and cuda.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"
#include "store.h"

#define MAGIC	0x31437049u	/* "IpC1" */

/* What is in a handle; the rest of it is 0. */
struct content {
	uint32_t magic;
	uint32_t vendor;
	struct store_name name;
	uint64_t length;
	uint32_t skip;
	uint32_t place;
};
_Static_assert(sizeof(struct content) <= sizeof(struct gpu_handle), "64 bytes");

uint32_t gpu_place(int gpu)
{
	struct gpu_address a;

	if (!gpu_address(gpu, &a))
		return 0;
	return a.domain << 16 | a.bus << 8 | a.device << 3 | a.function;
}

static int by_place(uint32_t place)
{
	int gpu;

	for (gpu = 0; gpu < gpu_count(); gpu++)
		if (gpu_place(gpu) == place)
			return gpu;
	return -1;
}

int gpu_by_address(const char *text)
{
	unsigned int domain, bus, device, function;

	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device,
		   &function) != 4)
		return -1;
	return by_place(domain << 16 | bus << 8 | device << 3 | function);
}

bool gpu_share(const struct gpu_memory *m, struct gpu_handle *handle)
{
	struct content c = {
		.magic = MAGIC, .vendor = m->vendor, .length = m->length,
		.skip = (uint32_t)m->skip, .place = m->place,
	};

	if (m->kind != GPU_DEVICE || m->foreign || !store_share(m, &c.name))
		return false;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &c, sizeof(c));
	return true;
}

static bool is_reached(int gpu, const struct content *c)
{
	if (gpu_place(gpu) == c->place)
		return true;
	return c->name.mesh && c->name.mesh == store_mesh(gpu);
}

static struct gpu_memory *attach(const struct content *c)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct gpu_memory opened = {
		.vendor = c->vendor, .kind = GPU_DEVICE,
		.device = by_place(c->place), .length = c->length,
		.skip = c->skip, .place = c->place, .foreign = true,
		.size = (c->length + c->skip + page - 1) / page * page,
	};
	struct gpu_memory *m;

	if (!store_attach(&opened, &c->name))
		return NULL;
	m = gpu_enter(&opened);
	if (!m)
		store_close(&opened);
	return m;
}

enum gpu_opened gpu_open(enum gpu_vendor vendor, int gpu,
			 const struct gpu_handle *handle,
			 struct gpu_memory **m)
{
	struct content c;

	memcpy(&c, handle, sizeof(c));
	if (c.magic != MAGIC || c.vendor != (uint32_t)vendor)
		return GPU_OPENED_NOT;
	if (c.name.pid == getpid())
		return GPU_OPENED_OWN;
	if (!is_reached(gpu, &c))
		return GPU_OPENED_FAR;
	*m = gpu_find_foreign(vendor, c.name.key);
	if (!*m)
		*m = attach(&c);
	return *m ? GPU_OPENED : GPU_OPENED_NOT;
}

void gpu_check_closed(const struct gpu_memory *m)
{
	if (m->foreign || m->kind != GPU_DEVICE || !store_is_attached(m))
		return;
	fprintf(stderr, "test runtime: process %d frees GPU memory at %p that another process still has open; what happens then is undefined\n",
		(int)getpid(), (void *)m->base);
	abort();
}
