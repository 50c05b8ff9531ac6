// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of regions of device memory on the fake fabric, with the test run
 * times: what a peer writes is in the device's memory, and nothing is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/core.h"
#include "runtime.h"

/* Bytes from the pair's port a into a region of port b. */
static void write_into(struct pair *p, struct fabrex_mr *mr, uint64_t offset)
{
	struct fabrex_remote to;
	struct fabrex_wc wc;

	memcpy(p->pa, "into the device", 16);
	fabrex_mr_remote(mr, &to);
	CHECK_EQ(fabrex_post_write(p->qa, p->ma, 0, &to, offset, 16, 0, 1), 0);
	poll_n(p->qa, &wc, 1);
	CHECK_EQ(wc.status, FABREX_WC_OK);
}

TEST(device_cuda)
{
	void *cuda = cuda_up("libcuda.so.1");
	char *d = cuda_alloc(cuda, 3 << 20), back[16] = "";
	const uint32_t peers[] = { 0 };
	struct fabrex_mr *mr, *only;
	struct pair p;
	int files;

	pair_open(&p, NULL);
	files = open_files();
	CHECK_EQ(fabrex_mr_register(p.b, d + 5000, 100000, FABREX_MR_ALL,
				    &mr), 0);
	CHECK_EQ(fabrex_mr_kind(mr), FABREX_MEMORY_CUDA);
	CHECK(fabrex_mr_addr(mr) == d + 5000);
	CHECK(fake_mr_pinned(mr->object.id));
	CHECK_EQ(open_files(), files);
	write_into(&p, mr, 777);
	CHECK_EQ(CALL(cuda, cuMemcpyDtoH, back,
		      (CUdeviceptr)(uintptr_t)d + 5777, 16), 0);
	CHECK(!strcmp(back, "into the device"));
	CHECK_EQ(fabrex_mr_register_for(p.b, d, 100, FABREX_MR_ALL, peers, 1,
					&only), 0);
	CHECK_EQ(fabrex_mr_kind(only), FABREX_MEMORY_CUDA);
	CHECK_EQ(fabrex_mr_kind(p.ma), FABREX_MEMORY_HOST);
	pair_close(&p);
}

/* The same with memory that both sides have on a device. */
TEST(device_hip)
{
	void *hip = runtime_load("libamdhip64.so.5");
	char *d = hip_alloc(hip, 9000), back[16] = "";
	struct fabrex_mr *mr;
	struct pair p;

	pair_open(&p, NULL);
	CHECK_EQ(fabrex_mr_register(p.b, d + 1, 8999, FABREX_MR_ALL, &mr), 0);
	CHECK_EQ(fabrex_mr_kind(mr), FABREX_MEMORY_HIP);
	write_into(&p, mr, 8999 - 16);
	CHECK_EQ(CALL(hip, hipMemcpy, back, d + 9000 - 16, 16, 2), 0);
	CHECK(!strcmp(back, "into the device"));
	CHECK_EQ(CALL(hip, hipPeekAtLastError), 0);
	pair_close(&p);
}

/* What cannot be exported is refused, and no descriptor is left open. */
TEST(device_failures)
{
	void *cuda = cuda_up("libcuda.so.1");
	char *d = cuda_alloc(cuda, 1 << 20);
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	int files;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	files = open_files();
	fake_mr_errors(1, EOPNOTSUPP);
	CHECK_EQ(fabrex_mr_register(port, d, 4096, 0, &mr), -EOPNOTSUPP);
	setenv("FABREX_TEST_FAIL", "cuMemGetHandleForAddressRange=801", 1);
	CHECK_EQ(fabrex_mr_register(port, d, 4096, 0, &mr), -ENOTSUP);
	CHECK_SAYS("no dma-buf");
	setenv("FABREX_TEST_FAIL", "", 1);
	CHECK_EQ(fabrex_mr_register(port, d, 2 << 20, 0, &mr), -EINVAL);
	CHECK_EQ(open_files(), files);
	fabrex_close(port);
}

TEST(device_attributes)
{
	struct {
		struct fabrex_mr_attr attr;
		uint64_t newer;
	} a = { .attr = { .length = 4096, .access = FABREX_MR_ALL } };
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	int fd = memfd_create("dma-buf", MFD_CLOEXEC);

	CHECK_EQ(ftruncate(fd, 8192), 0);
	CHECK_EQ(fabrex_open("a.0", &port), 0);
	a.attr.kind = FABREX_MEMORY_DMABUF;
	a.attr.fd = fd;
	a.attr.offset = 100;
	CHECK_EQ(fabrex_mr_register_attr(port, &a.attr, sizeof(a), &mr), 0);
	CHECK_EQ(fabrex_mr_kind(mr), FABREX_MEMORY_DMABUF);
	CHECK(!fabrex_mr_addr(mr));
	CHECK(fake_mr_pinned(mr->object.id));
	a.attr.flags = FABREX_MR_MAY_MOVE;
	CHECK_EQ(fabrex_mr_register_attr(port, &a.attr, sizeof(a.attr), &mr),
		 0);
	CHECK(!fake_mr_pinned(mr->object.id));
	/* An older caller's structure ends before the reserved words. */
	CHECK_EQ(fabrex_mr_register_attr(port, &a.attr,
					 offsetof(struct fabrex_mr_attr,
						  reserved), &mr), 0);
	CHECK_EQ(close(fd), 0);
	a.newer = 1;
	CHECK_EQ(fabrex_mr_register_attr(port, &a.attr, sizeof(a), &mr),
		 -E2BIG);
	fabrex_close(port);
}

TEST(device_bad_attributes)
{
	struct fabrex_mr_attr attr = {
		.length = 4096, .access = FABREX_MR_ALL,
		.kind = FABREX_MEMORY_DMABUF, .offset = 100,
	};
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	attr.fd = memfd_create("dma-buf", MFD_CLOEXEC);
	CHECK_EQ(ftruncate(attr.fd, 8192), 0);
	CHECK_EQ(fabrex_open("a.0", &port), 0);
	attr.flags = 2;
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EINVAL);
	CHECK_SAYS("unknown flags 0x2");
	attr.flags = 0;
	attr.kind = 9;
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EINVAL);
	CHECK_SAYS("unknown kind 9");
	attr.kind = FABREX_MEMORY_HOST;
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EINVAL);
	CHECK_SAYS("FABREX_MEMORY_DMABUF");
	attr.flags = FABREX_MR_MAY_MOVE;
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EINVAL);
	CHECK_SAYS("leave out FABREX_MR_MAY_MOVE");
	attr.flags = 0;
	CHECK_EQ(close(attr.fd), 0);
	attr.fd = -1;
	attr.offset = 0;
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EINVAL);
	CHECK_SAYS("address and a length");
	attr.kind = FABREX_MEMORY_DMABUF;
	attr.offset = UINT64_MAX - 5;
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EINVAL);
	attr.offset = 0;
	attr.npeers = 1;
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EINVAL);
	attr.npeers = 0;
	attr.reserved[2] = 1;
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -EINVAL);
	CHECK_SAYS("reserved[2]");
	fabrex_close(port);
}

TEST(device_by_kind)
{
	void *cuda = cuda_up("libcuda.so.1");
	struct fabrex_mr_attr a = {
		.addr = cuda_alloc(cuda, 1 << 20), .length = 4096,
		.kind = FABREX_MEMORY_CUDA,
	};
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_mr_register_attr(port, &a, sizeof(a), &mr), 0);
	CHECK_EQ(fabrex_mr_kind(mr), FABREX_MEMORY_CUDA);
	a.kind = FABREX_MEMORY_HIP;
	CHECK_EQ(fabrex_mr_register_attr(port, &a, sizeof(a), &mr), -ENOTSUP);
	a.kind = FABREX_MEMORY_AUTO;
	CHECK_EQ(fabrex_mr_register_attr(port, &a, sizeof(a), &mr), 0);
	CHECK_EQ(fabrex_mr_kind(mr), FABREX_MEMORY_CUDA);
	fabrex_close(port);
}

/* It would be moved away from under its region. */
TEST(device_cuda_managed)
{
	void *cuda = cuda_up("libcuda.so.1"), *pinned;
	struct fabrex_mr_attr a = { .length = 4096 };
	struct fabrex_port *port;
	CUdeviceptr managed = 0;
	struct fabrex_mr *mr;
	uint64_t offset;

	CHECK_EQ(CALL(cuda, cuMemAllocManaged, &managed, 4096,
		      CU_MEM_ATTACH_GLOBAL), 0);
	a.addr = (void *)(uintptr_t)managed;
	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_mr_register(port, a.addr, 4096, 0, &mr), -ENOTSUP);
	CHECK_SAYS("CUDA memory at 0x");
	CHECK_SAYS("managed");
	CHECK_SAYS("FABREX_MEMORY_HOST");
	CHECK_EQ(fabrex_mr_cache_get(port, a.addr, 64, 0, &mr, &offset),
		 -ENOTSUP);
	a.kind = FABREX_MEMORY_CUDA;
	CHECK_EQ(fabrex_mr_register_attr(port, &a, sizeof(a), &mr), -ENOTSUP);
	CHECK_SAYS("managed");
	CHECK_EQ(fake_objects(), 0);
	a.kind = FABREX_MEMORY_HOST;
	CHECK_EQ(fabrex_mr_register_attr(port, &a, sizeof(a), &mr), 0);
	CHECK_EQ(fabrex_mr_kind(mr), FABREX_MEMORY_HOST);
	CHECK_EQ(CALL(cuda, cuMemHostAlloc, &pinned, 4096, 0), 0);
	CHECK_EQ(fabrex_mr_register(port, pinned, 4096, 0, &mr), 0);
	fabrex_close(port);
}

/* ---- with the cache ---------------------------------------------------- */

static struct fabrex_mr *cached(struct fabrex_port *port, char *addr,
				uint32_t kind)
{
	struct fabrex_mr *mr;
	uint64_t offset;

	CHECK_EQ(fabrex_mr_cache_get(port, addr, 4096, FABREX_MR_ALL, &mr,
				     &offset), 0);
	CHECK_EQ(fabrex_mr_kind(mr), kind);
	fabrex_mr_cache_put(mr);
	return mr;
}

/* Freed and allocated again: the same address, other memory. */
TEST(device_cache_free_and_alloc)
{
	void *cuda = cuda_up("libcuda.so.1"), *hip;
	struct fabrex_mr_cache_stats s;
	struct fabrex_port *port;
	char *d, *again;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	d = cuda_alloc(cuda, 4 << 20);
	cached(port, d, FABREX_MEMORY_CUDA);
	cached(port, d, FABREX_MEMORY_CUDA);
	CHECK_EQ(fake_registrations(), 1);
	CHECK_EQ(CALL(cuda, cuMemFree, (CUdeviceptr)(uintptr_t)d), 0);
	again = cuda_alloc(cuda, 4 << 20);
	CHECK(again == d);
	cached(port, d, FABREX_MEMORY_CUDA);
	CHECK_EQ(fake_registrations(), 2);
	CHECK_EQ(CALL(cuda, cuMemFree, (CUdeviceptr)(uintptr_t)d), 0);
	/* Another vendor's memory at an address that was a CUDA one. */
	hip = runtime_load("libamdhip64.so.5");
	again = hip_alloc(hip, 4 << 20);
	CHECK(again == d);
	cached(port, d, FABREX_MEMORY_HIP);
	cached(port, d, FABREX_MEMORY_HIP);
	CHECK_EQ(fake_registrations(), 3);
	CHECK_EQ(fabrex_mr_cache_stats(port, &s, sizeof(s)), 0);
	CHECK(s.hits == 2 && s.misses == 3 && s.stale == 2 && s.regions == 1);
	fabrex_close(port);
}

/* Local use of a part has the whole allocation registered, once. */
TEST(device_cache_widens)
{
	char *d = cuda_alloc(cuda_up("libcuda.so.1"), 1 << 20);
	struct fabrex_port *port;
	struct fabrex_mr *mr, *part;
	uint64_t offset;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_mr_cache_get(port, d + 12345, 10, 0, &mr, &offset), 0);
	CHECK(fabrex_mr_addr(mr) == d && fabrex_mr_length(mr) == 1 << 20);
	CHECK_EQ(offset, 12345);
	CHECK_EQ(fabrex_mr_cache_get(port, d, 1 << 20, 0, &part, &offset), 0);
	CHECK(part == mr && !offset);
	CHECK_EQ(fabrex_mr_cache_get(port, d + 12345, 10,
				     FABREX_MR_REMOTE_READ, &part, &offset),
		 0);
	CHECK(part != mr && fabrex_mr_length(part) == 10 && !offset);
	CHECK_EQ(fake_registrations(), 2);
	fabrex_close(port);
}

/* Where the whole is too much a part may do; who waits for it comes along. */
TEST(device_cache_too_much)
{
	char *d = cuda_alloc(cuda_up("libcuda.so.1"), 1 << 20);
	struct fabrex_mr_cache_stats s;
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	uint64_t offset;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	fake_mr_errors(1, EINVAL);
	CHECK_EQ(fabrex_mr_cache_get(port, d + 4096, 10, 0, &mr, &offset), 0);
	CHECK(fabrex_mr_addr(mr) == d + 4096 && fabrex_mr_length(mr) == 10);
	CHECK(!offset);
	CHECK_EQ(fabrex_mr_cache_stats(port, &s, sizeof(s)), 0);
	CHECK(s.regions == 1 && s.bytes == 10);
	/* The part is found by itself; it is not what it was to be. */
	CHECK_EQ(fabrex_mr_cache_get(port, d + 4100, 2, 0, &mr, &offset), 0);
	CHECK_EQ(offset, 4);
	CHECK_EQ(fake_registrations(), 2);
	fake_mr_errors(2, EINVAL);
	CHECK_EQ(fabrex_mr_cache_get(port, d, 10, 0, &mr, &offset), -EINVAL);
	CHECK_EQ(fabrex_mr_cache_stats(port, &s, sizeof(s)), 0);
	CHECK(s.regions == 1 && s.bytes == 10);
	fabrex_close(port);
}

/* What may move is not locked: its exporter is out of something else. */
TEST(device_no_memory)
{
	char *d = cuda_alloc(cuda_up("libcuda.so.1"), 1 << 20);
	static char host[4096] __attribute__((aligned(4096)));
	const struct fabrex_mr_attr attr = {
		.addr = d, .length = 4096, .kind = FABREX_MEMORY_CUDA,
		.flags = FABREX_MR_MAY_MOVE,
	};
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	cached(port, host, FABREX_MEMORY_HOST);
	fake_mr_errors(1, ENOMEM);
	CHECK_EQ(fabrex_mr_register_attr(port, &attr, sizeof(attr), &mr),
		 -ENOMEM);
	CHECK_EQ(fake_objects(), 1);
	fabrex_close(port);
}

/* Pinned, it counts for the same limit as the host's memory. */
TEST(device_makes_room)
{
	char *d = cuda_alloc(cuda_up("libcuda.so.1"), 1 << 20);
	static char host[4096] __attribute__((aligned(4096)));
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	cached(port, host, FABREX_MEMORY_HOST);
	fake_mr_errors(1, ENOMEM);
	CHECK_EQ(fabrex_mr_register(port, d, 4096, 0, &mr), 0);
	CHECK_EQ(fake_objects(), 1);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	cached(port, d, FABREX_MEMORY_CUDA);
	CHECK_EQ(fake_objects(), 1);
	fake_mr_errors(1, ENOMEM);
	CHECK_EQ(fabrex_mr_register(port, host, 4096, 0, &mr), 0);
	CHECK_EQ(fake_objects(), 1);
	fabrex_close(port);
}

/* The host's memory is what has a limit in bytes. */
TEST(device_cache_limit)
{
	static char host[8192] __attribute__((aligned(4096)));
	char *d = cuda_alloc(cuda_up("libcuda.so.1"), 1 << 20);
	struct fabrex_mr_cache_stats s;
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_mr_cache_limit(port, 8, 4096), 0);
	cached(port, d, FABREX_MEMORY_CUDA);
	cached(port, host, FABREX_MEMORY_HOST);
	CHECK_EQ(fake_objects(), 2);
	cached(port, host + 4096, FABREX_MEMORY_HOST);
	CHECK_EQ(fake_objects(), 2);
	CHECK_EQ(fabrex_mr_cache_stats(port, &s, sizeof(s)), 0);
	CHECK(s.evicted == 1 && s.bytes == 2 * 4096);
	cached(port, d, FABREX_MEMORY_CUDA);
	CHECK_EQ(fake_registrations(), 3);
	CHECK_EQ(fabrex_mr_cache_limit(port, 0, 0), 0);
	CHECK_EQ(fake_objects(), 0);
	fabrex_close(port);
}

/* Memory without a number may change unnoticed: not kept, and not widened. */
TEST(device_cache_virtual)
{
	struct hip_allocation prop = { .type = 1, .location_type = 1 };
	void *hip = runtime_load("libamdhip64.so.5");
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	void *handle, *va;
	uint64_t offset;

	CHECK_EQ(CALL(hip, hipMemCreate, &handle, 8192, &prop, 0), 0);
	CHECK_EQ(CALL(hip, hipMemAddressReserve, &va, 8192, 0, NULL, 0), 0);
	CHECK_EQ(CALL(hip, hipMemMap, va, 8192, 0, handle, 0), 0);
	CHECK_EQ(fabrex_open("a.0", &port), 0);
	cached(port, va, FABREX_MEMORY_HIP);
	CHECK_EQ(fake_objects(), 0);
	cached(port, va, FABREX_MEMORY_HIP);
	CHECK_EQ(fake_registrations(), 2);
	CHECK_EQ(fabrex_mr_cache_get(port, (char *)va + 100, 10, 0, &mr,
				     &offset), 0);
	CHECK(fabrex_mr_length(mr) == 10 && !offset);
	fabrex_close(port);
}

static void *registers(void *port)
{
	static char page[4096];
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_mr_register(port, page, sizeof(page), 0, &mr), 0);
	return mr;
}

/* Between the kernel's answer and the library's list it is not unknown. */
TEST(event_of_a_region_being_made)
{
	struct transport_event unknown = {
		.type = FABREX_EV_MR_REVOKED, .id = 1 << 20,
	};
	struct fabrex_port_event ev;
	struct fabrex_port *port;
	pthread_t thread;
	void *mr;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	fake_event(0, &unknown);
	CHECK_EQ(fabrex_event_read(port, &ev, 0), -EAGAIN);
	fake_mr_revoked(true);
	CHECK_EQ(pthread_create(&thread, NULL, registers, port), 0);
	CHECK_EQ(fabrex_event_read(port, &ev, HANG_MS), 0);
	CHECK_EQ(pthread_join(thread, &mr), 0);
	CHECK(ev.type == FABREX_EV_MR_REVOKED && ev.mr == mr);
	/* Nothing is being made any more. */
	fake_mr_revoked(false);
	fake_event(0, &unknown);
	CHECK_EQ(fabrex_event_read(port, &ev, 0), -EAGAIN);
	fabrex_close(port);
}

TEST(event_of_a_revoked_region)
{
	struct transport_event e = {
		.type = FABREX_EV_MR_REVOKED, .error = EFAULT,
	};
	struct fabrex_port_event ev;
	struct pair p;

	pair_open(&p, NULL);
	e.id = p.ma->object.id;
	fake_event(0, &e);
	CHECK_EQ(fabrex_event_read(p.a, &ev, HANG_MS), 0);
	CHECK(ev.type == FABREX_EV_MR_REVOKED && ev.mr == p.ma && !ev.queue &&
	      !ev.window && ev.error == EFAULT);
	pair_close(&p);
}
