// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kinds of memory: which vendor's runtime knows an address, and its dma-buf.
 * Public half: fabrex_memory_query(3).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "memory/cuda.h"
#include "memory/hip.h"
#include "memory/hsa.h"
#include "memory/memory.h"
#include "memory/vendor.h"

static const struct vendor *const vendors[] = {
	&fxi_vendor_amd, &fxi_vendor_cuda, NULL,
};

struct library *const fxi_libraries[] = {
	&fxi_library_hsa, &fxi_library_hip, &fxi_library_cuda, NULL,
};

bool fxi_because(struct reason *why, int err, const char *fmt, ...)
{
	va_list ap;

	if (!why || why->err)
		return false;
	why->err = err;
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return false;
}

static const struct vendor *vendor_of(uint32_t kind)
{
	const struct vendor *const *v = vendors;

	while (*v && (*v)->kind != kind)
		v++;
	return *v;
}

static void host_memory(struct fabrex_memory *memory)
{
	memset(memory, 0, sizeof(*memory));
	memory->kind = FABREX_MEMORY_HOST;
	memory->device = -1;
}

static int find_by(const struct vendor *vendor, const void *addr,
		   struct fabrex_memory *memory)
{
	struct reason why = { 0 };
	int ret = vendor->load();

	if (ret)
		return ret;
	memset(memory, 0, sizeof(*memory));
	memory->kind = vendor->kind;
	if (vendor->find(addr, memory, &why))
		return 0;
	fxi_because(&why, ENOTSUP, "it is not device memory of this runtime; register it as host memory");
	return fxi_error(why.err, "%s memory at %p: %s", vendor->name, addr,
			 why.text);
}

int fxi_memory_find(const void *addr, uint32_t kind,
		    struct fabrex_memory *memory)
{
	const struct vendor *const *v;

	if (fxi_memory_is_device(kind))
		return find_by(vendor_of(kind), addr, memory);
	fxi_library_notice();
	for (v = vendors; *v; v++) {
		if (!(*v)->ready())
			continue;
		memset(memory, 0, sizeof(*memory));
		memory->kind = (*v)->kind;
		if ((*v)->find(addr, memory, NULL))
			return 0;
	}
	host_memory(memory);
	return 0;
}

int fxi_memory_find_for_region(const void *addr, uint32_t kind,
			       struct fabrex_memory *memory)
{
	int ret = fxi_memory_find(addr, kind, memory);
	const struct vendor *const *v;
	struct reason why = { 0 };

	if (ret || memory->kind != FABREX_MEMORY_HOST)
		return ret;
	for (v = vendors; *v; v++)
		if ((*v)->migrates && (*v)->ready() &&
		    (*v)->migrates(addr, &why))
			return fxi_error(why.err, "%s memory at %p: %s",
					 (*v)->name, addr, why.text);
	return 0;
}

uint64_t fxi_memory_id(uint32_t kind, const void *addr)
{
	return vendor_of(kind)->id(addr);
}

bool fxi_memory_copies(uint32_t kind)
{
	return vendor_of(kind)->copies();
}

void fxi_memory_rest(void)
{
	const struct vendor *const *v;

	for (v = vendors; *v; v++)
		if ((*v)->rest && (*v)->ready())
			(*v)->rest();
}

void fxi_memory_forked(void)
{
	const struct vendor *const *v;

	for (v = vendors; *v; v++)
		(*v)->forked();
}

bool fxi_memory_copy(uint32_t kind, void *addr, void *buffer, size_t length,
		     bool read)
{
	return vendor_of(kind)->copy(addr, buffer, length, read);
}

void fxi_memory_registered(uint32_t kind, const void *addr)
{
	const struct vendor *vendor = vendor_of(kind);

	if (vendor->registered)
		vendor->registered(addr);
}

bool fxi_memory_settle(uint32_t kind, const void *addr, bool may_wait)
{
	const struct vendor *vendor = vendor_of(kind);

	return !vendor->settle || vendor->settle(addr, may_wait);
}

int fxi_memory_export(const struct fabrex_memory *memory, const void *addr,
		      size_t length, int *fd, uint64_t *offset)
{
	const struct vendor *vendor = vendor_of(memory->kind);
	struct reason why = { 0 };

	if (vendor->export(memory, addr, length, fd, offset, &why)) {
		fcntl(*fd, F_SETFD, FD_CLOEXEC);
		return 0;
	}
	return fxi_error(why.err, "%s memory of %zu bytes at %p%s%s: no dma-buf: %s",
			 vendor->name, length, addr,
			 *memory->pci ? " on " : "", memory->pci, why.text);
}

EXPORT int fabrex_memory_query(const void *addr, struct fabrex_memory *memory,
			       size_t size)
{
	NO_CANCEL();
	struct fabrex_memory found;
	int ret = fxi_memory_find(addr, FABREX_MEMORY_AUTO, &found);

	if (!ret)
		fxi_copy_out(memory, size, &found, sizeof(found));
	return ret;
}

EXPORT int fabrex_memory_export(const void *addr, size_t length,
				enum fabrex_memory_kind kind, int *fd,
				uint64_t *offset)
{
	NO_CANCEL();
	struct fabrex_memory memory;
	int ret;

	if (!addr || !length)
		return fxi_error(EINVAL, "dma-buf of %zu bytes at %p: give it an address and a length",
				 length, addr);
	if (kind != FABREX_MEMORY_AUTO && !fxi_memory_is_device(kind))
		return fxi_error(kind == FABREX_MEMORY_HOST ? ENOTSUP : EINVAL,
				 "dma-buf of memory at %p: kind %u has none to give; use FABREX_MEMORY_AUTO, _HIP or _CUDA",
				 addr, (unsigned int)kind);
	ret = fxi_memory_find(addr, kind, &memory);
	if (ret)
		return ret;
	if (memory.kind == FABREX_MEMORY_HOST)
		return fxi_error(ENOTSUP, "memory at %p is host memory, as far as the loaded runtimes know; register its address",
				 addr);
	return fxi_memory_export(&memory, addr, length, fd, offset);
}
