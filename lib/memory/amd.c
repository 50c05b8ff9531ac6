// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * AMD memory. HSA is asked first, because it answers without initialising
 * anything and without leaving an error behind; HIP adds what HSA does not
 * know, and replaces it where there is no HSA. Called through fxi_vendor_amd.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "memory/hip.h"
#include "memory/hsa.h"
#include "memory/lane.h"
#include "memory/pci.h"
#include "memory/vendor.h"

static bool have_hsa(void)
{
	return library_ready(&fxi_library_hsa) && fxi_hsa.pointer_info &&
	       fxi_hsa.agent_info;
}

static bool have_hip(void)
{
	return library_ready(&fxi_library_hip) && fxi_hip.attribute;
}

static int amd_load(void)
{
	int ret;

	/* What the application has loaded of it is enough. */
	fxi_library_notice();
	ret = fxi_library_load(&fxi_library_hsa);
	if (ret)
		ret = fxi_library_load(&fxi_library_hip);
	/* Without either, the message is about the first. */
	if (ret)
		ret = fxi_library_load(&fxi_library_hsa);
	else if (!have_hsa() && !have_hip())
		ret = fxi_error(ENOTSUP, "libhsa-runtime64.so.1 has no hsa_amd_pointer_info, and there is no libamdhip64.so with hipPointerGetAttribute; update ROCm");
	return ret;
}

static bool amd_ready(void)
{
	return have_hsa() || have_hip();
}

/* ---- HIP --------------------------------------------------------------- */

/* The calling thread's last HIP error belongs to the application: keep it. */
static bool hip_attribute(void *value, int attribute, const void *addr)
{
	int pending = HIP_OK;
	bool ok;

	if (!have_hip())
		return false;
	if (fxi_hip.peek_error)
		pending = fxi_hip.peek_error();
	ok = fxi_hip.attribute(value, attribute,
			       (void *)(uintptr_t)addr) == HIP_OK;
	if (!ok && !pending && fxi_hip.take_error)
		fxi_hip.take_error();
	return ok;
}

static uint64_t amd_id(const void *addr)
{
	uint64_t id = 0;

	return hip_attribute(&id, HIP_ATTRIBUTE_BUFFER_ID, addr) ? id : 0;
}

static bool hip_is_device(const void *addr)
{
	int type = 0, managed = 0, version = 0;

	if (!hip_attribute(&type, HIP_ATTRIBUTE_MEMORY_TYPE, addr) ||
	    !fxi_hip.version || fxi_hip.version(&version))
		return false;
	hip_attribute(&managed, HIP_ATTRIBUTE_IS_MANAGED, addr);
	return !managed && type == (version / 10000000 >= 6 ?
				    HIP6_MEMORY_DEVICE : HIP5_MEMORY_DEVICE);
}

static bool hip_find(const void *addr, struct fabrex_memory *memory)
{
	char pci[32] = "";

	if (!hip_is_device(addr))
		return false;
	hip_attribute(&memory->device, HIP_ATTRIBUTE_DEVICE, addr);
	hip_attribute(&memory->base, HIP_ATTRIBUTE_RANGE_START, addr);
	hip_attribute(&memory->length, HIP_ATTRIBUTE_RANGE_SIZE, addr);
	if (fxi_hip.pci_id &&
	    !fxi_hip.pci_id(pci, sizeof(pci), memory->device))
		pci_rewrite(memory->pci, sizeof(memory->pci), pci);
	return true;
}

static const char *hip_text(int error)
{
	const char *text = fxi_hip.error_text ? fxi_hip.error_text(error) :
						NULL;

	return text ? text : "unknown error";
}

/* ---- HSA --------------------------------------------------------------- */

static bool hsa_of_gpu(const struct hsa_pointer_info *info,
		       struct fabrex_memory *memory)
{
	uint32_t type = 0, bdf = 0, domain = 0, node = 0;

	/* Mappings may have no owner; devices always have one. */
	if (fxi_hsa.agent_info(info->owner, HSA_INFO_DEVICE, &type))
		return info->type == HSA_POINTER_VMEM;
	if (type != HSA_TYPE_GPU)
		return false;
	fxi_hsa.agent_info(info->owner, HSA_INFO_DOMAIN, &domain);
	if (!fxi_hsa.agent_info(info->owner, HSA_INFO_BDFID, &bdf))
		pci_write(memory->pci, sizeof(memory->pci), domain, bdf >> 8,
			  bdf >> 3, bdf);
	if (!fxi_hsa.agent_info(info->owner, HSA_INFO_NODE, &node))
		memory->device = (int32_t)node;
	return true;
}

static bool hsa_find(const void *addr, struct fabrex_memory *memory,
		     struct reason *why)
{
	struct hsa_pointer_info info = { .size = sizeof(info) };
	int ret = fxi_hsa.pointer_info(addr, &info, NULL, NULL, NULL);

	if (ret == HSA_NOT_INITIALIZED)
		return fxi_because(why, ENOTSUP, "HSA is loaded, but this process has not initialised it, or found no device; initialise HIP or HSA and allocate there first");
	if (ret)
		return fxi_because(why, ENOTSUP, "hsa_amd_pointer_info: status 0x%x",
				   (unsigned int)ret);
	if (info.type == HSA_POINTER_UNKNOWN ||
	    info.type == HSA_POINTER_LOCKED ||
	    info.type == HSA_POINTER_RESERVED || !hsa_of_gpu(&info, memory))
		return false;
	memory->base = info.agent_base;
	memory->length = info.length;
	return true;
}

/*
 * Mapped by the virtual memory functions: the address can get other memory
 * without an allocation, which no id would show.
 */
static bool is_virtual(const void *addr)
{
	struct hsa_pointer_info info = { .size = sizeof(info) };
	int pending = HIP_OK;
	void *handle;
	bool found;

	if (have_hsa())
		return !fxi_hsa.pointer_info(addr, &info, NULL, NULL, NULL) &&
		       info.type == HSA_POINTER_VMEM;
	if (!fxi_hip.retain_handle || !fxi_hip.release_handle)
		return false;
	if (fxi_hip.peek_error)
		pending = fxi_hip.peek_error();
	found = !fxi_hip.retain_handle(&handle, (void *)(uintptr_t)addr);
	if (found)
		fxi_hip.release_handle(handle);
	else if (!pending && fxi_hip.take_error)
		fxi_hip.take_error();
	return found;
}

static bool amd_find(const void *addr, struct fabrex_memory *memory,
		     struct reason *why)
{
	if (have_hsa() ? !hsa_find(addr, memory, why) :
			 !hip_find(addr, memory))
		return false;
	/* As HIP counts devices, where it knows the memory. */
	hip_attribute(&memory->device, HIP_ATTRIBUTE_DEVICE, addr);
	memory->id = is_virtual(addr) ? 0 : amd_id(addr);
	return true;
}

/* ---- export ------------------------------------------------------------ */

static bool hsa_failed(int status, const char *symbol, struct reason *why)
{
	switch (status) {
	case HSA_INVALID_ALLOCATION:
		return fxi_because(why, EINVAL, "the range is not inside one allocation (%s); register each by itself",
				   symbol);
	case HSA_INVALID_AGENT:
		return fxi_because(why, ENOTSUP, "its device cannot export memory (%s)",
				   symbol);
	}
	return fxi_because(why, ENOTSUP, "%s: status 0x%x; the amdgpu driver needs a kernel with CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA",
			   symbol, (unsigned int)status);
}

static bool hsa_export(const void *addr, size_t length, int *fd,
		       uint64_t *offset, struct reason *why)
{
	int ret = HSA_INVALID_ARGUMENT;

	if (!library_ready(&fxi_library_hsa))
		return fxi_because(why, ENOTSUP, "libhsa-runtime64.so.1 is not loaded");
	/* Over PCIe, not the vendor's own links, where there is a choice. */
	if (fxi_hsa.export_dmabuf_v2)
		ret = fxi_hsa.export_dmabuf_v2(addr, length, fd, offset,
					       HSA_DMABUF_PCIE);
	if (!ret)
		return true;
	if (!fxi_hsa.export_dmabuf)
		return fxi_because(why, ENOTSUP, "libhsa-runtime64.so.1 has no hsa_amd_portable_export_dmabuf; update ROCm");
	ret = fxi_hsa.export_dmabuf(addr, length, fd, offset);
	return ret ? hsa_failed(ret, "hsa_amd_portable_export_dmabuf", why) :
		     true;
}

/* Whole pages around the range, as the function requires. */
static bool hip_export_range(const void *addr, size_t length, int *fd,
			     uint64_t *offset, struct reason *why)
{
	uintptr_t start = page_down((uintptr_t)addr);
	uintptr_t end = page_up((uintptr_t)addr + length);
	int ret;

	if (!fxi_hip.address_handle)
		return false;
	ret = fxi_hip.address_handle(fd, (void *)start, end - start,
				     HIP_RANGE_DMABUF, 0);
	*offset = (uintptr_t)addr - start;
	if (!ret)
		return true;
	return fxi_because(why, ENOTSUP, "hipMemGetHandleForAddressRange: %s",
			   hip_text(ret));
}

/* Memory of the virtual memory functions: the handle that is mapped there. */
static bool hip_export_handle(const struct fabrex_memory *memory,
			      const void *addr, size_t length, int *fd,
			      uint64_t *offset, struct reason *why)
{
	uint64_t skip = (uintptr_t)addr - (uintptr_t)memory->base;
	void *handle;
	int ret;

	if (!fxi_hip.retain_handle || !fxi_hip.export_handle ||
	    !fxi_hip.release_handle || !memory->length)
		return false;
	if (skip + length > memory->length)
		return fxi_because(why, EINVAL, "the range is not inside one allocation; register each by itself");
	if (fxi_hip.retain_handle(&handle, (void *)(uintptr_t)addr))
		return false;
	ret = fxi_hip.export_handle(fd, handle, HIP_HANDLE_FD, 0);
	fxi_hip.release_handle(handle);
	*offset = skip;
	if (!ret)
		return true;
	return fxi_because(why, ENOTSUP, "hipMemExportToShareableHandle: %s; allocate with hipMemHandleTypePosixFileDescriptor",
			   hip_text(ret));
}

static bool amd_export(const struct fabrex_memory *memory, const void *addr,
		       size_t length, int *fd, uint64_t *offset,
		       struct reason *why)
{
	int pending = HIP_OK;
	bool ok;

	if (hsa_export(addr, length, fd, offset, why))
		return true;
	if (!have_hip())
		return false;
	if (fxi_hip.peek_error)
		pending = fxi_hip.peek_error();
	ok = hip_export_range(addr, length, fd, offset, why) ||
	     hip_export_handle(memory, addr, length, fd, offset, why);
	if (!pending && fxi_hip.take_error)
		fxi_hip.take_error();
	return ok;
}

/* ---- copies ------------------------------------------------------------ */

/*
 * Kept until the process ends, for the next port. A reset of the device ends
 * its streams, and the application may get a new one at the same address. HIP
 * has no number that distinguishes them, so idle streams cannot be destroyed
 * safely.
 */
static struct lanes lanes;

static bool hip_copies(void)
{
	return have_hip() && fxi_hip.copy && fxi_hip.stream_create &&
	       fxi_hip.stream_destroy && fxi_hip.stream_wait &&
	       fxi_hip.get_device && fxi_hip.set_device;
}

static bool amd_copies(void)
{
	return hip_copies() ||
	       (library_ready(&fxi_library_hsa) && fxi_hsa.copy);
}

/* A stream belongs to the device that is current when it is made. */
static bool lane_open(struct lane *lane, int device)
{
	int current = device, ret;

	lane->place = (uintptr_t)device;
	lane->serial = 0;
	lane->device = device;
	fxi_hip.get_device(&current);
	ret = fxi_hip.set_device(device);
	if (!ret)
		ret = fxi_hip.stream_create(&lane->stream, LANE_NON_BLOCKING);
	fxi_hip.set_device(current);
	return !ret;
}

static void lane_close(struct lane *lane)
{
	fxi_hip.stream_destroy(lane->stream);
	lane->stream = NULL;
}

static bool copy_by(const struct lane *lane, void *addr, void *buffer,
		    size_t length, bool read)
{
	int ret, waited;

	ret = fxi_hip.copy(read ? buffer : addr, read ? addr : buffer, length,
			   read ? HIP_COPY_FROM_DEVICE : HIP_COPY_TO_DEVICE,
			   lane->stream);
	waited = fxi_hip.stream_wait(lane->stream);
	return !ret && !waited;
}

/* A device that was reset has no streams any more; HIP reports that. */
static bool copy_there(void *addr, void *buffer, size_t length, bool read)
{
	struct lane *kept, once, *lane;
	bool fresh, good;
	int device = 0;

	hip_attribute(&device, HIP_ATTRIBUTE_DEVICE, addr);
	do {
		once.stream = NULL;
		kept = fxi_lane_take(&lanes, (uintptr_t)device, 0);
		lane = kept ? kept : &once;
		fresh = !lane->stream;
		if (fresh && !lane_open(lane, device))
			lane->stream = NULL;
		good = lane->stream &&
		       copy_by(lane, addr, buffer, length, read);
		if (lane->stream && (!kept || !good))
			lane_close(lane);
		if (kept)
			fxi_lane_give(kept);
	} while (!good && !fresh);
	return good;
}

static void amd_forked(void)
{
	fxi_lanes_forget(&lanes);
}

/* On a stream of ours, and not part of what another thread captures. */
static bool hip_copy(void *addr, void *buffer, size_t length, bool read)
{
	int pending = HIP_OK, mode = HIP_CAPTURE_RELAXED;
	bool good, relaxed;

	if (fxi_hip.peek_error)
		pending = fxi_hip.peek_error();
	relaxed = fxi_hip.capture_mode && !fxi_hip.capture_mode(&mode);
	good = copy_there(addr, buffer, length, read);
	if (relaxed)
		fxi_hip.capture_mode(&mode);
	if (!good && !pending && fxi_hip.take_error)
		fxi_hip.take_error();
	return good;
}

/* HIP first: it knows the device's queues, which HSA's copy ignores. */
static bool amd_copy(void *addr, void *buffer, size_t length, bool read)
{
	if (hip_copies())
		return hip_copy(addr, buffer, length, read);
	return library_ready(&fxi_library_hsa) && fxi_hsa.copy &&
	       !fxi_hsa.copy(read ? buffer : addr, read ? addr : buffer,
			     length);
}

const struct vendor fxi_vendor_amd = {
	.kind = FABREX_MEMORY_HIP,
	.name = "HIP",
	.load = amd_load,
	.ready = amd_ready,
	.find = amd_find,
	.id = amd_id,
	.copies = amd_copies,
	.copy = amd_copy,
	.forked = amd_forked,
	.export = amd_export,
};
