// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has the kernels of libfabrex compiled that guests need, which have no
 * compiler: rtc.c keeps them in $FABREX_TEST_KERNELS.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "coll/device/device.h"

static int add(struct device *device, uint32_t type)
{
	void *memory = NULL;
	int ret = fxi_device_alloc(device, 4096, &memory);

	if (!ret)
		ret = fxi_device_reduce(device, memory, memory, memory, 1, type,
					FABREX_SUM, 0);
	if (!ret)
		ret = fxi_device_wait(device);
	if (memory)
		fxi_device_free(device, memory);
	return ret;
}

int main(void)
{
	static const uint32_t types[] = { FABREX_INT32, FABREX_FLOAT32 };
	const struct fabrex_memory memory = { .kind = FABREX_MEMORY_HIP };
	struct device *device;
	size_t i;
	int ret;

	if (!dlopen("libamdhip64.so.5", RTLD_NOW)) {
		fprintf(stderr, "kernels: %s\n", dlerror());
		return 1;
	}
	ret = fxi_device_open(&memory, &device);
	for (i = 0; i < sizeof(types) / sizeof(*types) && !ret; i++)
		ret = add(device, types[i]);
	if (!ret)
		fxi_device_close(device);
	if (ret)
		fprintf(stderr, "kernels: %s\n", fabrex_strerror_last());
	return ret != 0;
}
