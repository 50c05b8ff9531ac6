// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of what an address is and of its dma-buf, with the test run times:
 * vendors, versions, what is missing, and what is said about it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/seccomp.h>

#include "runtime.h"

static char host[8192];

static struct fabrex_memory query(const void *addr)
{
	struct fabrex_memory m;

	memset(&m, 0xff, sizeof(m));
	CHECK_EQ(fabrex_memory_query(addr, &m, sizeof(m)), 0);
	CHECK(!m.reserved[0] && !m.reserved[3]);
	return m;
}

static void is_host(const void *addr)
{
	struct fabrex_memory m = query(addr);

	CHECK_EQ(m.kind, FABREX_MEMORY_HOST);
	CHECK_EQ(m.device, -1);
	CHECK(!m.base && !m.length && !m.id && !m.pci[0]);
}

static void is_device(const void *addr, uint32_t kind, const void *base,
		      size_t length)
{
	struct fabrex_memory m = query(addr);

	CHECK_EQ(m.kind, kind);
	CHECK(m.base == base);
	CHECK_EQ(m.length, length);
	CHECK(m.id);
}

/* Exports, and looks at byte @at of the memory through the descriptor. */
static int exported_byte(const void *addr, size_t length, uint32_t kind)
{
	uint64_t offset = 77;
	unsigned char byte;
	int fd = -1, ret;

	ret = fabrex_memory_export(addr, length, kind, &fd, &offset);
	if (ret)
		return ret;
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(pread(fd, &byte, 1, lseek(fd, 0, SEEK_CUR) + (off_t)offset),
		 1);
	CHECK_EQ(close(fd), 0);
	return byte;
}

TEST(memory_without_run_times)
{
	struct fabrex_memory small = { .base = host };
	uint64_t offset;
	int fd;

	is_host(host);
	is_host(NULL);
	CHECK_EQ(fabrex_memory_query(host, &small, 8), 0);
	CHECK(small.device == -1 && small.base == host);
	CHECK_EQ(fabrex_memory_export(host, 1, FABREX_MEMORY_AUTO, &fd,
				      &offset), -ENOTSUP);
	CHECK_SAYS("host memory");
	CHECK_EQ(fabrex_memory_export(host, 1, FABREX_MEMORY_HOST, &fd,
				      &offset), -ENOTSUP);
	CHECK_EQ(fabrex_memory_export(host, 1, FABREX_MEMORY_DMABUF, &fd,
				      &offset), -EINVAL);
	CHECK_EQ(fabrex_memory_export(host, 0, FABREX_MEMORY_AUTO, &fd,
				      &offset), -EINVAL);
	CHECK(!dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY));
	CHECK(!dlopen("libhsa-runtime64.so.1", RTLD_NOLOAD | RTLD_LAZY));
}

/* Asking again costs no system call: the kernel would kill. */
TEST(memory_asks_without_system_calls)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		void *cuda = cuda_up("libcuda.so.1");
		char *p = cuda_alloc(cuda, 4096);
		int i;

		is_host(host);
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		for (i = 0; i < 1000; i++)
			is_host(host);
		is_device(p, FABREX_MEMORY_CUDA, p, 4096);
		syscall(SYS_exit, 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* ---- CUDA -------------------------------------------------------------- */

TEST(memory_cuda)
{
	CUdeviceptr managed = 0;
	void *cuda, *pinned;
	char *p, *q;

	is_host(host);
	cuda = cuda_up("libcuda.so.1");
	is_host(host);
	p = cuda_alloc(cuda, 100);
	CHECK((uintptr_t)p % 4096);
	q = cuda_alloc(cuda, 4 << 20);
	is_device(p + 99, FABREX_MEMORY_CUDA, p, 100);
	is_device(q, FABREX_MEMORY_CUDA, q, 4 << 20);
	CHECK(query(p).id != query(q).id);
	CHECK_EQ(query(p).device, 0);
	CHECK(!strcmp(query(p).pci, "0000:a0:00.0"));
	CHECK_EQ(CALL(cuda, cuMemHostAlloc, &pinned, 4096, 0), 0);
	is_host(pinned);
	CHECK_EQ(CALL(cuda, cuMemAllocManaged, &managed, 4096,
		      CU_MEM_ATTACH_GLOBAL), 0);
	is_host((void *)(uintptr_t)managed);
	CHECK_EQ(CALL(cuda, cuMemFree, (CUdeviceptr)(uintptr_t)p), 0);
	is_host(p);
}

/* With a real driver as well, whose allocations begin where they like. */
TEST(memory_cuda_kinds)
{
	CUdeviceptr managed = 0;
	void *cuda, *pinned;
	char *p, *q;
	uint64_t id;

	cuda = cuda_up("libcuda.so.1");
	p = cuda_alloc(cuda, 100);
	q = cuda_alloc(cuda, 4 << 20);
	is_device(p + 99, FABREX_MEMORY_CUDA, p, 100);
	is_device(q + 12345, FABREX_MEMORY_CUDA, q, 4 << 20);
	id = query(q).id;
	CHECK(query(p).id != id);
	CHECK(strlen(query(p).pci) == 12);
	CHECK_EQ(CALL(cuda, cuMemHostAlloc, &pinned, 4096, 0), 0);
	is_host(pinned);
	CHECK_EQ(CALL(cuda, cuMemAllocManaged, &managed, 4096,
		      CU_MEM_ATTACH_GLOBAL), 0);
	is_host((void *)(uintptr_t)managed);
	CHECK_EQ(CALL(cuda, cuMemFree, (CUdeviceptr)(uintptr_t)q), 0);
	is_host(q);
	q = cuda_alloc(cuda, 4 << 20);
	CHECK(query(q).id != id);
}

TEST(memory_cuda_export)
{
	void *cuda = cuda_up("libcuda.so.1");
	char *p = cuda_alloc(cuda, 100), *q = cuda_alloc(cuda, 4 << 20);

	CHECK_EQ(CALL(cuda, cuMemsetD8, (CUdeviceptr)(uintptr_t)p + 50, 0x5a,
		      10), 0);
	CHECK_EQ(CALL(cuda, cuMemsetD8, (CUdeviceptr)(uintptr_t)q + 12345,
		      0xa5, 1), 0);
	CHECK_EQ(exported_byte(p + 50, 10, FABREX_MEMORY_AUTO), 0x5a);
	CHECK_EQ(exported_byte(p + 49, 10, FABREX_MEMORY_CUDA), 0);
	CHECK_EQ(exported_byte(q + 12345, 1, FABREX_MEMORY_CUDA), 0xa5);
	CHECK_EQ(exported_byte(q + 12345, 4 << 20, FABREX_MEMORY_CUDA),
		 -EINVAL);
	CHECK_SAYS("inside one allocation");
	CHECK_SAYS("0000:a0:00.0");
	CHECK_EQ(exported_byte(host, 1, FABREX_MEMORY_CUDA), -ENOTSUP);
	CHECK_SAYS("register it as host memory");
	setenv("FABREX_TEST_NO_PCIE", "1", 1);
	CHECK_EQ(exported_byte(q + 12345, 1, FABREX_MEMORY_CUDA), 0xa5);
}

/* A thread that has no context borrows one, and has none afterwards. */
static void *without_context(void *arg)
{
	void **both = arg;
	CUcontext context;

	CHECK_EQ(exported_byte(both[1], 1, FABREX_MEMORY_AUTO), 0);
	CHECK_EQ(CALL(both[0], cuCtxGetCurrent, &context), 0);
	CHECK(!context);
	return NULL;
}

TEST(memory_cuda_threads)
{
	void *both[2] = { cuda_up("libcuda.so.1") };
	pthread_t thread;

	both[1] = cuda_alloc(both[0], 4096);
	CHECK_EQ(pthread_create(&thread, NULL, without_context, both), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Memory of a device that is not the thread's current one. */
TEST(memory_cuda_of_another_device)
{
	void *cuda = cuda_up("libcuda.so.1");
	CUcontext first, second, now;
	char *p;

	CHECK_EQ(CALL(cuda, cuCtxGetCurrent, &first), 0);
	CHECK_EQ(CALL(cuda, cuDevicePrimaryCtxRetain, &second, 1), 0);
	CHECK_EQ(CALL(cuda, cuCtxSetCurrent, second), 0);
	p = cuda_alloc(cuda, 4096);
	CHECK_EQ(CALL(cuda, cuCtxSetCurrent, first), 0);
	CHECK_EQ(query(p).device, 1);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), 0);
	CHECK_EQ(CALL(cuda, cuCtxGetCurrent, &now), 0);
	CHECK(now == first);
}

TEST(memory_cuda_says_what_is_missing)
{
	void *cuda = cuda_up("libcuda.so.1");
	char *p = cuda_alloc(cuda, 4096);

	setenv("FABREX_TEST_FAIL", "cuMemGetHandleForAddressRange=801", 1);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), -ENOTSUP);
	CHECK_SAYS("cuMemGetHandleForAddressRange: operation not supported");
	setenv("FABREX_TEST_FAIL", "cuMemGetHandleForAddressRange=2", 1);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), -ENOMEM);
	setenv("FABREX_TEST_FAIL", "cuPointerGetAttributes=999", 1);
	is_host(p);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_CUDA), -ENOTSUP);
	CHECK_SAYS("999");
	setenv("FABREX_TEST_FAIL", "", 1);
	setenv("FABREX_TEST_NO_DMABUF", "1", 1);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), -ENOTSUP);
	CHECK_SAYS("open kernel modules");
	unsetenv("FABREX_TEST_NO_DMABUF");
	setenv("FABREX_TEST_NO_RDMA", "1", 1);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), -ENOTSUP);
	CHECK_SAYS("gpuDirectRDMACapable");
}

TEST(memory_cuda_old)
{
	char *p = cuda_alloc(cuda_up("old/libcuda.so.1"), 4096);

	is_device(p, FABREX_MEMORY_CUDA, p, 4096);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), -ENOTSUP);
	CHECK_SAYS("libcuda.so.1 has no cuMemGetHandleForAddressRange");
	CHECK_SAYS("CUDA 11.7");
}

/* Asked for by name it is loaded, and says that nobody has set it up. */
TEST(memory_cuda_loaded_by_kind)
{
	setenv("FABREX_TEST_GPUS", "2", 1);
	CHECK_EQ(exported_byte(host, 1, FABREX_MEMORY_CUDA), -ENOTSUP);
	CHECK_SAYS("not initialised");
	CHECK(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY));
	is_host(host);
	cuda_up("libcuda.so.1");
	CHECK_EQ(exported_byte(host, 1, FABREX_MEMORY_CUDA), -ENOTSUP);
	CHECK_SAYS("not device memory");
}

/* ---- HSA and HIP ------------------------------------------------------- */

static int second_gpu(struct hsa_agent agent, void *arg)
{
	((struct hsa_agent *)arg)->handle = agent.handle;
	return 0;
}

static int the_pool(struct hsa_pool pool, void *arg)
{
	*(struct hsa_pool *)arg = pool;
	return 0;
}

static char *hsa_alloc(void *hsa, size_t size)
{
	struct hsa_agent agent = { 0 };
	struct hsa_pool pool;
	void *p;

	CHECK_EQ(CALL(hsa, hsa_iterate_agents, second_gpu, &agent), 0);
	CHECK_EQ(CALL(hsa, hsa_amd_agent_iterate_memory_pools, agent,
		      the_pool, &pool), 0);
	CHECK_EQ(CALL(hsa, hsa_amd_memory_pool_allocate, pool, size, 0, &p),
		 0);
	return p;
}

/* HSA alone: no number of the allocation, all else. */
TEST(memory_hsa)
{
	void *hsa = runtime_load("libhsa-runtime64.so.1");
	struct fabrex_memory m;
	char *p;

	is_host(host);
	CHECK_EQ(exported_byte(host, 1, FABREX_MEMORY_HIP), -ENOTSUP);
	CHECK_SAYS("not initialised");
	CHECK_EQ(CALL(hsa, hsa_init), 0);
	p = hsa_alloc(hsa, 10000);
	m = query(p + 5000);
	CHECK_EQ(m.kind, FABREX_MEMORY_HIP);
	CHECK(m.base == p && m.length == 10000 && !m.id);
	CHECK(!strcmp(m.pci, "0000:a1:00.0"));
	CHECK_EQ(exported_byte(p + 5000, 5000, FABREX_MEMORY_AUTO), 0);
	CHECK_EQ(exported_byte(p + 5000, 5001, FABREX_MEMORY_AUTO), -EINVAL);
	CHECK_SAYS("inside one allocation");
	setenv("FABREX_TEST_FAIL", "hsa_amd_portable_export_dmabuf_v2=0x1001",
	       1);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), 0);
	setenv("FABREX_TEST_FAIL", "hsa_amd_portable_export_dmabuf=0x1008,"
	       "hsa_amd_portable_export_dmabuf_v2=0x1000", 1);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), -ENOTSUP);
	CHECK_SAYS("status 0x1008");
	CHECK_SAYS("CONFIG_DMABUF_MOVE_NOTIFY");
	CHECK_SAYS("CONFIG_PCI_P2PDMA");
	setenv("FABREX_TEST_FAIL", "hsa_amd_portable_export_dmabuf=0x1004,"
	       "hsa_amd_portable_export_dmabuf_v2=0x1000", 1);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), -ENOTSUP);
	CHECK_SAYS("cannot export");
	setenv("FABREX_TEST_FAIL", "hsa_amd_pointer_info=0x1000", 1);
	is_host(p);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_HIP), -ENOTSUP);
	CHECK_SAYS("hsa_amd_pointer_info: status 0x1000");
}

static void hip_kinds(void *hip)
{
	void *pinned, *managed;
	char *p;

	CHECK_EQ(CALL(hip, hipSetDevice, 1), 0);
	p = hip_alloc(hip, 10000);
	is_device(p + 9999, FABREX_MEMORY_HIP, p, 10000);
	CHECK_EQ(query(p).device, 1);
	CHECK(!strcmp(query(p).pci, "0000:a1:00.0"));
	CHECK_EQ(CALL(hip, hipHostMalloc, &pinned, 4096, 0), 0);
	is_host(pinned);
	CHECK_EQ(CALL(hip, hipMallocManaged, &managed, 4096, 1), 0);
	is_host(managed);
	is_host(host);
	/* Nothing of that is an error of the application's. */
	CHECK_EQ(CALL(hip, hipPeekAtLastError), 0);
	CHECK_EQ(CALL(hip, hipMemset, p + 1234, 0x77, 1), 0);
}

static void hip_exports(const char *file)
{
	void *hip = runtime_load(file);
	char *p;

	CHECK_EQ(CALL(hip, hipInit, 0), 0);
	hip_kinds(hip);
	p = hip_alloc(hip, 10000);
	CHECK_EQ(CALL(hip, hipMemset, p + 1234, 0x77, 1), 0);
	CHECK_EQ(exported_byte(p + 1234, 100, FABREX_MEMORY_AUTO), 0x77);
	CHECK_EQ(CALL(hip, hipPeekAtLastError), 0);
	/* An error that was there before stays. */
	CHECK_EQ(CALL(hip, hipSetDevice, 99), HIP_INVALID_DEVICE);
	is_host(host);
	is_device(p, FABREX_MEMORY_HIP, p, 10000);
	CHECK_EQ(CALL(hip, hipGetLastError), HIP_INVALID_DEVICE);
}

TEST(memory_hip_5)
{
	hip_exports("libamdhip64.so.5");
}

TEST(memory_hip_6)
{
	hip_exports("six/libamdhip64.so.6");
}

TEST(memory_hip_7)
{
	hip_exports("seven/libamdhip64.so.7");
}

/* Where HIP is all there is, the types of its version have to be known. */
TEST(memory_hip_5_alone)
{
	void *hip;
	char *p;

	setenv("FABREX_TEST_NO_HSA", "1", 1);
	hip = runtime_load("libamdhip64.so.5");
	hip_kinds(hip);
	p = hip_alloc(hip, 4096);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), -ENOTSUP);
	CHECK_SAYS("libhsa-runtime64.so.1 is not loaded");
	CHECK_EQ(CALL(hip, hipPeekAtLastError), 0);
}

/* The test runtime's own: copies between GPUs, and what is refused. */
TEST(memory_hip_peers)
{
	void *hip = runtime_load("libamdhip64.so.5"), *stream;
	char *here = hip_alloc(hip, 10000), *there, byte = 0;
	int can = 5;

	CHECK_EQ(CALL(hip, hipDeviceCanAccessPeer, &can, 0, 1), 0);
	CHECK_EQ(can, 1);
	CHECK_EQ(CALL(hip, hipDeviceCanAccessPeer, &can, 1, 1), 0);
	CHECK_EQ(can, 0);
	CHECK_EQ(CALL(hip, hipDeviceCanAccessPeer, &can, 0, 2),
		 HIP_INVALID_DEVICE);
	CHECK_EQ(CALL(hip, hipDeviceEnablePeerAccess, 0, 0),
		 HIP_PEER_UNSUPPORTED);
	CHECK_EQ(CALL(hip, hipDeviceEnablePeerAccess, 1, 1),
		 HIP_INVALID_VALUE);
	CHECK_EQ(CALL(hip, hipDeviceEnablePeerAccess, 1, 0), 0);
	CHECK_EQ(CALL(hip, hipDeviceEnablePeerAccess, 1, 0),
		 HIP_PEER_ENABLED);
	CHECK_EQ(CALL(hip, hipSetDevice, 1), 0);
	there = hip_alloc(hip, 10000);
	CHECK_EQ(CALL(hip, hipStreamCreateWithFlags, &stream,
		      HIP_NON_BLOCKING), 0);
	CHECK_EQ(CALL(hip, hipMemset, here, 0x44, 10000), 0);
	CHECK_EQ(CALL(hip, hipMemset, there, 0x55, 10000), 0);
	CHECK_EQ(CALL(hip, hipMemcpyPeerAsync, there + 3, 0, here, 0, 100,
		      stream), HIP_INVALID_VALUE);
	CHECK_EQ(CALL(hip, hipMemcpyPeerAsync, there + 3, 1, here, 0, 100,
		      stream), 0);
	CHECK_EQ(CALL(hip, hipMemcpy, &byte, there + 3, 1, 2), 0);
	CHECK_EQ(byte, 0x55);		/* not before somebody waits */
	CHECK_EQ(CALL(hip, hipStreamSynchronize, stream), 0);
	CHECK_EQ(CALL(hip, hipMemcpy, &byte, there + 102, 1, 2), 0);
	CHECK_EQ(byte, 0x44);
	CHECK_EQ(CALL(hip, hipMemcpy, &byte, there + 103, 1, 2), 0);
	CHECK_EQ(byte, 0x55);
	CALL(hip, hipGetLastError);
}

TEST(memory_hip_7_alone)
{
	void *hip;
	char *p;

	setenv("FABREX_TEST_NO_HSA", "1", 1);
	hip = runtime_load("seven/libamdhip64.so.7");
	hip_kinds(hip);
	p = hip_alloc(hip, 10000);
	CHECK_EQ(CALL(hip, hipMemset, p + 6000, 0x33, 1), 0);
	CHECK_EQ(exported_byte(p + 6000, 4000, FABREX_MEMORY_AUTO), 0x33);
}

/* An HSA from before its export: HIP 7's stands in; HIP 5 has none. */
TEST(memory_hsa_old)
{
	void *hip;
	char *p;

	runtime_load("old/libhsa-runtime64.so.1");
	hip = runtime_load("seven/libamdhip64.so.7");
	p = hip_alloc(hip, 10000);
	CHECK_EQ(CALL(hip, hipMemset, p + 6000, 0x34, 1), 0);
	CHECK_EQ(exported_byte(p + 6000, 4000, FABREX_MEMORY_AUTO), 0x34);
}

TEST(memory_hsa_old_hip_old)
{
	char *p;

	runtime_load("old/libhsa-runtime64.so.1");
	p = hip_alloc(runtime_load("old/libamdhip64.so.5"), 10000);
	CHECK_EQ(exported_byte(p, 1, FABREX_MEMORY_AUTO), -ENOTSUP);
	CHECK_SAYS("no hsa_amd_portable_export_dmabuf");
	CHECK_SAYS("update ROCm");
}

/* Virtual memory functions: by handle, and without a number. */
TEST(memory_hip_virtual)
{
	struct hip_allocation prop = { .type = 1, .location_type = 1 };
	void *hip = runtime_load("libamdhip64.so.5");
	void *handle, *va;

	CHECK_EQ(CALL(hip, hipMemCreate, &handle, 8192, &prop, 0), 0);
	CHECK_EQ(CALL(hip, hipMemAddressReserve, &va, 8192, 0, NULL, 0), 0);
	is_host(va);
	CHECK_EQ(CALL(hip, hipMemMap, va, 8192, 0, handle, 0), 0);
	CHECK_EQ(query(va).kind, FABREX_MEMORY_HIP);
	CHECK_EQ(query(va).id, 0);
	CHECK_EQ(CALL(hip, hipMemset, (char *)va + 4097, 0x21, 1), 0);
	CHECK_EQ(exported_byte((char *)va + 4097, 4095, FABREX_MEMORY_AUTO),
		 0x21);
	CHECK_EQ(exported_byte((char *)va + 4097, 4096, FABREX_MEMORY_AUTO),
		 -EINVAL);
	setenv("FABREX_TEST_FAIL", "hipMemExportToShareableHandle=1", 1);
	CHECK(exported_byte(va, 1, FABREX_MEMORY_AUTO) < 0);
	CHECK_EQ(CALL(hip, hipPeekAtLastError), 0);
	setenv("FABREX_TEST_FAIL", "", 1);
	CHECK_EQ(CALL(hip, hipMemUnmap, va, 8192), 0);
	CHECK_EQ(CALL(hip, hipMemRelease, handle), 0);
	is_host(va);
}

/* No GPU: the run time says so, and memory is the host's. */
TEST(memory_hip_without_device)
{
	void *hip;
	int n = 7;

	setenv("FABREX_TEST_GPUS", "0", 1);
	hip = runtime_load("libamdhip64.so.5");
	CHECK_EQ(CALL(hip, hipGetDeviceCount, &n), HIP_NO_DEVICE);
	is_host(host);
	CHECK_EQ(exported_byte(host, 1, FABREX_MEMORY_HIP), -ENOTSUP);
	CHECK_SAYS("found no device");
}

/* ---- several ----------------------------------------------------------- */

TEST(memory_of_two_vendors)
{
	void *cuda = cuda_up("libcuda.so.1");
	char *c = cuda_alloc(cuda, 4096), *h;

	is_device(c, FABREX_MEMORY_CUDA, c, 4096);
	h = hip_alloc(runtime_load("six/libamdhip64.so.6"), 4096);
	is_device(h, FABREX_MEMORY_HIP, h, 4096);
	is_device(c, FABREX_MEMORY_CUDA, c, 4096);
	is_host(host);
	CHECK_EQ(exported_byte(h, 1, FABREX_MEMORY_CUDA), -ENOTSUP);
	CHECK_SAYS("not device memory");
	CHECK_EQ(exported_byte(c, 1, FABREX_MEMORY_HIP), -ENOTSUP);
	CHECK_EQ(exported_byte(h, 1, FABREX_MEMORY_HIP), 0);
	CHECK_EQ(exported_byte(c, 1, FABREX_MEMORY_CUDA), 0);
}

static void *ask_often(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_ACQUIRE))
		is_host(host);
	return NULL;
}

/* Loaded while others ask: from the moment it has memory it is known. */
TEST(memory_loaded_while_asked)
{
	pthread_t threads[4];
	bool stop = false;
	char *p, *q;
	int i;

	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, ask_often, &stop),
			 0);
	p = hip_alloc(runtime_load("libamdhip64.so.5"), 4096);
	is_device(p, FABREX_MEMORY_HIP, p, 4096);
	q = cuda_alloc(cuda_up("libcuda.so.1"), 4096);
	is_device(q, FABREX_MEMORY_CUDA, q, 4096);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
}
