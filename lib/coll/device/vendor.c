// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the files of both vendors share: errors of their runtimes, and looking
 * up functions in a library. The lowest file of lib/coll/device.
 */
#include <dlfcn.h>
#include <errno.h>

#include "base/error.h"
#include "coll/device/vendor.h"

int fxi_gpu_error(const struct gpu_vendor *vendor, int number,
		  const char *what, int result)
{
	int err = result == GPU_OUT_OF_MEMORY ? ENOMEM :
		  result == GPU_NOT_SUPPORTED ? ENOTSUP : EIO;

	return fxi_error(err, "%s device %d: %s: %s (%d)", vendor->name,
			 number, what, vendor->text(result), result);
}

int fxi_gpu_resolve(void *handle, const char *library,
		    const struct library_symbol *symbols, void *table)
{
	const struct library_symbol *s;
	void *symbol;

	for (s = symbols; s->name; s++) {
		symbol = dlsym(handle, s->name);
		if (!symbol) {
			dlerror();
			return fxi_error(ENOTSUP, "%s has no %s, which reductions on the GPU take; update it",
					 library, s->name);
		}
		((void **)table)[s->offset / sizeof(void *)] = symbol;
	}
	return 0;
}

void fxi_gpu_resolve_some(void *handle, const struct library_symbol *symbols,
			  void *table)
{
	const struct library_symbol *s;

	for (s = symbols; s->name; s++)
		((void **)table)[s->offset / sizeof(void *)] =
			dlsym(handle, s->name);
	dlerror();
}
