// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of reductions on GPUs with the test run times, whose compiler makes
 * the same kernel for the processor: the bits are those of the host.
 */
#include <errno.h>
#include <pthread.h>

#include "coll/device/device.h"
#include "coll/device/vendor.h"
#include "coll/reduce/reduce.h"
#include "reduce_reference.h"
#include "runtime.h"

#define SLACK	64u		/* bytes behind a buffer, which stay */
#define MAX	(5000u * 8 + SLACK)

/* Device 1 as applications find it. */
struct rig {
	struct device *device;
	char *a, *b;		/* on the device, MAX bytes each */
};

static void rig_open(struct rig *rig, char *memory)
{
	struct fabrex_memory found;
	void *more = NULL;

	CHECK_EQ(fabrex_memory_query(memory, &found, sizeof(found)), 0);
	CHECK(found.kind != FABREX_MEMORY_HOST);
	CHECK_EQ(fxi_device_open(&found, &rig->device), 0);
	CHECK_EQ(fxi_device_alloc(rig->device, MAX, &more), 0);
	rig->a = memory;
	rig->b = more;
}

static void rig_cuda(struct rig *rig)
{
	rig_open(rig, cuda_alloc(cuda_up("libcuda.so.1"), MAX));
}

static void rig_hip(struct rig *rig)
{
	void *hip = runtime_load("libamdhip64.so.5");

	CHECK_EQ(CALL(hip, hipSetDevice, 1), 0);
	rig_open(rig, hip_alloc(hip, MAX));
}

static void rig_close(struct rig *rig)
{
	CHECK_EQ(fxi_device_free(rig->device, rig->b), 0);
	fxi_device_close(rig->device);
}

/* ---- the same bits ------------------------------------------------------ */

static uint8_t one[MAX], two[MAX], three[MAX], got[MAX], want[MAX];

static void compare(struct rig *rig, const struct reduce *r, size_t skip)
{
	const size_t size = reference_size(r->type), bytes = r->count * size;
	char *dst = (r->count & 2 ? rig->a : rig->b) + skip;
	size_t i;

	memset(got, 0, sizeof(got));
	CHECK_EQ(fxi_device_give(rig->device, rig->a + skip, one,
				 bytes + SLACK), 0);
	CHECK_EQ(fxi_device_give(rig->device, rig->b + skip, two,
				 bytes + SLACK), 0);
	CHECK_EQ(fxi_device_reduce(rig->device, dst, rig->a + skip,
				   r->nsrc > 1 ? rig->b + skip : NULL,
				   r->count, r->type, r->op, r->divisor), 0);
	CHECK_EQ(fxi_device_fetch(rig->device, got, dst, bytes + SLACK), 0);
	CHECK_EQ(fxi_device_wait(rig->device), 0);
	fxi_reduce(r);
	for (i = 0; i < r->count; i++)
		if (memcmp(got + i * size, want + i * size, size))
			printf("# type %u op %u divisor %u, %u sources: element %zu of %zu\n",
			       r->type, r->op, r->divisor, r->nsrc, i,
			       (size_t)r->count);
	CHECK(!memcmp(got, want, bytes));
	CHECK(!memcmp(got + bytes, (r->count & 2 ? one : two) + bytes, SLACK));
	reference_reduce(want, r->src, r->nsrc, r->count, r->type, r->op,
			 r->divisor);
	CHECK(!memcmp(got, want, bytes));
}

static void compare_type(struct rig *rig, uint32_t type)
{
	static const uint32_t divisors[] = { 0, 1, 2, 3, 1000, 0x80000001u };
	static const uint16_t counts[] = { 1, 7, 16, 255, 4097, 4994 };
	const size_t size = reference_size(type);
	const void *src[] = { one, two };
	void *dst[] = { want };
	struct reduce r = { .dst = dst, .src = src, .ndst = 1, .type = type };
	size_t i, k;

	for (r.op = FABREX_SUM; r.op <= FABREX_AVG; r.op++)
		for (i = 0; i < sizeof(divisors) / sizeof(*divisors); i++)
			for (k = 0; k < sizeof(counts) / sizeof(*counts);
			     k++) {
				r.count = counts[k];
				r.divisor = divisors[i];
				r.nsrc = k == 3 ? 1 : 2;
				reference_fill(type, one, r.count);
				reference_fill(type, two, r.count);
				compare(rig, &r, k & 1 ? 0 : size);
			}
}

static void compare_types(struct rig *rig, uint32_t first, uint32_t last)
{
	for (; first <= last; first++)
		compare_type(rig, first);
}

TEST(coll_device_cuda_small_integers)
{
	struct rig rig;

	rig_cuda(&rig);
	compare_types(&rig, FABREX_INT8, FABREX_UINT16);
	rig_close(&rig);
}

TEST(coll_device_cuda_large_integers)
{
	struct rig rig;

	rig_cuda(&rig);
	compare_types(&rig, FABREX_INT32, FABREX_UINT64);
	rig_close(&rig);
}

TEST(coll_device_cuda_floating)
{
	struct rig rig;

	rig_cuda(&rig);
	compare_types(&rig, FABREX_FLOAT16, FABREX_FLOAT64);
	rig_close(&rig);
}

TEST(coll_device_hip)
{
	struct rig rig;

	rig_hip(&rig);
	compare_type(&rig, FABREX_INT8);
	compare_types(&rig, FABREX_FLOAT16, FABREX_FLOAT32);
	rig_close(&rig);
}

/* Three sources, one after the other: rounded once, as on the host. */
TEST(coll_device_wide)
{
	static const uint8_t *const sources[] = { one, two, three };
	const void *src[] = { one, two, three };
	struct rig rig;
	uint32_t type, i;
	void *wide, *b;

	rig_cuda(&rig);
	CHECK_EQ(fxi_device_alloc(rig.device, 2 * MAX, &wide), 0);
	b = rig.b;
	for (type = FABREX_FLOAT16; type <= FABREX_BFLOAT16; type++) {
		for (i = 0; i < 3; i++)
			reference_fill(type, (void *)(uintptr_t)sources[i],
				       4001);
		CHECK_EQ(fxi_device_give(rig.device, rig.a, one, 8002), 0);
		CHECK_EQ(fxi_device_give(rig.device, b, two, 8002), 0);
		CHECK_EQ(fxi_device_reduce_wide(rig.device, wide, rig.a, b,
						4001, type, FABREX_SUM, 0,
						DEVICE_WIDE_DST), 0);
		CHECK_EQ(fxi_device_give(rig.device, b, three, 8002), 0);
		CHECK_EQ(fxi_device_reduce_wide(rig.device, rig.a, wide, b,
						4001, type, FABREX_SUM, 3,
						DEVICE_WIDE_SRC), 0);
		CHECK_EQ(fxi_device_fetch(rig.device, got, rig.a, 8002), 0);
		CHECK_EQ(fxi_device_wait(rig.device), 0);
		reference_reduce(want, src, 3, 4001, type, FABREX_AVG, 3);
		CHECK(!memcmp(got, want, 8002));
	}
	CHECK_EQ(fxi_device_free(rig.device, wide), 0);
	rig_close(&rig);
}

/* Every pattern, through the kernel's own conversions. */
TEST(coll_device_conversions)
{
	static uint16_t in[65536], out[65536], expected[65536];
	const void *src[] = { in };
	struct rig rig;
	uint32_t type;
	void *buffer;
	size_t i;

	rig_cuda(&rig);
	CHECK_EQ(fxi_device_alloc(rig.device, sizeof(in), &buffer), 0);
	for (i = 0; i < 65536; i++)
		in[i] = (uint16_t)i;
	for (type = FABREX_FLOAT16; type <= FABREX_BFLOAT16; type++) {
		CHECK_EQ(fxi_device_give(rig.device, buffer, in, sizeof(in)),
			 0);
		CHECK_EQ(fxi_device_reduce(rig.device, buffer, buffer, NULL,
					   65536, type, FABREX_AVG, 3), 0);
		CHECK_EQ(fxi_device_fetch(rig.device, out, buffer,
					  sizeof(out)), 0);
		CHECK_EQ(fxi_device_wait(rig.device), 0);
		reference_reduce(expected, src, 1, 65536, type, FABREX_AVG,
				 3);
		for (i = 0; i < 65536; i++)
			CHECK_EQ(out[i], expected[i]);
	}
	CHECK_EQ(fxi_device_free(rig.device, buffer), 0);
	rig_close(&rig);
}

/* ---- streams ------------------------------------------------------------ */

/* Begun in order, and not awaited before the end. */
static void in_order(struct rig *rig)
{
	uint32_t i, first = 7, value = 0;

	CHECK_EQ(fxi_device_give(rig->device, rig->a, &first, 4), 0);
	for (i = 0; i < 31; i++) {
		CHECK_EQ(fxi_device_reduce(rig->device, rig->a, rig->a,
					   rig->a, 1, FABREX_UINT32,
					   FABREX_SUM, 0), 0);
		if (i % 4 == 2)
			CHECK_EQ(fxi_device_fetch(rig->device, &value, rig->a,
						  4), 0);
	}
	/* The test runtime is late on purpose; a real one may be done. */
	if (!getenv("FABREX_TEST_REAL"))
		CHECK_EQ(value, 0);
	CHECK_EQ(fxi_device_wait(rig->device), 0);
	CHECK_EQ(value, 7u << 31);
}

/* More bytes than there is room for at once, and more of them. */
static void fetch_many(struct rig *rig)
{
	static uint8_t in[600001], all[sizeof(in)], some[40][700];
	void *memory;
	size_t i;

	CHECK_EQ(fxi_device_alloc(rig->device, sizeof(in), &memory), 0);
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7 + i / 251);
	CHECK_EQ(fxi_device_give(rig->device, memory, in, sizeof(in)), 0);
	CHECK_EQ(fxi_device_fetch(rig->device, all, memory, sizeof(all)), 0);
	for (i = 0; i < 40; i++)
		CHECK_EQ(fxi_device_fetch(rig->device, some[i],
					  (char *)memory + 1000 * i,
					  sizeof(some[i])), 0);
	CHECK_EQ(fxi_device_wait(rig->device), 0);
	CHECK(!memcmp(all, in, sizeof(in)));
	for (i = 0; i < 40; i++)
		CHECK(!memcmp(some[i], in + 1000 * i, sizeof(some[i])));
	CHECK_EQ(fxi_device_free(rig->device, memory), 0);
}

TEST(coll_device_fetches)
{
	struct rig rig;

	rig_cuda(&rig);
	fetch_many(&rig);
	rig_close(&rig);
	rig_hip(&rig);
	fetch_many(&rig);
	rig_close(&rig);
}

TEST(coll_device_in_order_cuda)
{
	struct rig rig;

	rig_cuda(&rig);
	in_order(&rig);
	rig_close(&rig);
}

TEST(coll_device_in_order_hip)
{
	struct rig rig;

	rig_hip(&rig);
	in_order(&rig);
	rig_close(&rig);
}

static int sum(struct rig *rig, char *dst, uint32_t type)
{
	return fxi_device_reduce(rig->device, dst, rig->a, rig->b, 4, type,
				 FABREX_SUM, 0);
}

/* Whatever the thread had current is current again. */
TEST(coll_device_contexts)
{
	void *cuda = cuda_up("libcuda.so.1"), *hip;
	CUcontext context;
	struct rig rig;
	int device;

	rig_cuda(&rig);
	CHECK_EQ(CALL(cuda, cuCtxSetCurrent, NULL), 0);
	in_order(&rig);
	CHECK_EQ(CALL(cuda, cuCtxGetCurrent, &context), 0);
	CHECK(!context);
	rig_close(&rig);
	rig_hip(&rig);
	hip = runtime_load("libamdhip64.so.5");
	CHECK_EQ(CALL(hip, hipSetDevice, 0), 0);
	in_order(&rig);
	CHECK_EQ(CALL(hip, hipGetDevice, &device), 0);
	CHECK_EQ(device, 0);
	CHECK_EQ(CALL(hip, hipPeekAtLastError), 0);
	/* Its own error stays. */
	CHECK(CALL(hip, hipSetDevice, 77));
	CHECK_EQ(sum(&rig, rig.a, FABREX_UINT32), 0);
	CHECK_EQ(CALL(hip, hipGetLastError), 101);
	rig_close(&rig);
}

static void *reduce_often(void *memory)
{
	struct fabrex_memory found;
	struct device *device;
	uint32_t i, in = 3, out = 0;
	void *p;

	CHECK_EQ(fabrex_memory_query(memory, &found, sizeof(found)), 0);
	CHECK_EQ(fxi_device_open(&found, &device), 0);
	CHECK_EQ(fxi_device_alloc(device, 4, &p), 0);
	CHECK_EQ(fxi_device_give(device, p, &in, 4), 0);
	for (i = 0; i < 20; i++)
		CHECK_EQ(fxi_device_reduce(device, p, p, p, 1, FABREX_INT32,
					   FABREX_SUM, 0), 0);
	CHECK_EQ(fxi_device_fetch(device, &out, p, 4), 0);
	CHECK_EQ(fxi_device_wait(device), 0);
	CHECK_EQ(out, 3u << 20);
	CHECK_EQ(fxi_device_free(device, p), 0);
	fxi_device_close(device);
	return memory;
}

TEST(coll_device_threads)
{
	char *memory = cuda_alloc(cuda_up("libcuda.so.1"), 4096);
	pthread_t threads[4];
	void *ret;
	int i;

	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, reduce_often,
					memory), 0);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(pthread_join(threads[i], &ret), 0);
		CHECK(ret == memory);
	}
}

/* ---- what goes wrong ---------------------------------------------------- */

TEST(coll_device_arguments)
{
	struct fabrex_memory host = { .kind = FABREX_MEMORY_HOST,
				      .device = -1 };
	struct device *device;
	struct rig rig;

	CHECK_EQ(fxi_device_open(&host, &device), -EINVAL);
	rig_cuda(&rig);
	CHECK_EQ(sum(&rig, rig.a + 2, FABREX_FLOAT32), -EINVAL);
	CHECK_SAYS("aligned");
	CHECK_SAYS("CUDA device 0");
	CHECK_EQ(sum(&rig, rig.a, 13), -EINVAL);
	CHECK_EQ(sum(&rig, rig.a, 0), -EINVAL);
	CHECK_EQ(fxi_device_reduce(rig.device, rig.a, rig.a, rig.b, 0,
				   FABREX_INT8, FABREX_MAX, 0), 0);
	CHECK_EQ(fxi_device_copy(rig.device, rig.a, rig.b, 0), 0);
	CHECK_EQ(fxi_device_free(rig.device, NULL), 0);
	rig_close(&rig);
	fxi_device_close(NULL);
}

static void failing(struct rig *rig, const char *what, int err,
		    const char *says)
{
	void *p;
	int ret;

	setenv("FABREX_TEST_FAIL", what, 1);
	ret = !strncmp(what, "cuMem", 5) || !strncmp(what, "hipMa", 5) ?
	      fxi_device_alloc(rig->device, 64, &p) :
	      sum(rig, rig->a, FABREX_FLOAT32);
	CHECK_EQ(ret, -err);
	CHECK_SAYS(says);
	unsetenv("FABREX_TEST_FAIL");
}

TEST(coll_device_failures_cuda)
{
	struct rig rig;

	rig_cuda(&rig);
	failing(&rig, "nvrtcCompileProgram=6", EIO, "compilation error");
	CHECK_SAYS("sm_90");
	failing(&rig, "cuModuleLoadData=200", EIO, "loading the kernel");
	failing(&rig, "cuLaunchKernel=2", ENOMEM, "out of memory");
	failing(&rig, "cuMemAlloc_v2=2", ENOMEM, "CUDA device 0");
	failing(&rig, "cuCtxPushCurrent_v2=201", EIO, "device context");
	/* And nothing of it is left. */
	CHECK_EQ(sum(&rig, rig.a, FABREX_FLOAT32), 0);
	CHECK_EQ(fxi_device_wait(rig.device), 0);
	rig_close(&rig);
}

TEST(coll_device_failures_hip)
{
	struct rig rig;

	rig_hip(&rig);
	failing(&rig, "hiprtcCompileProgram=6", EIO, "compilation error");
	failing(&rig, "hipModuleGetFunction=500", EIO, "HIP device 1");
	failing(&rig, "hipModuleLaunchKernel=2", ENOMEM, "hip");
	failing(&rig, "hipMalloc=2", ENOMEM, "HIP device 1");
	CHECK_EQ(sum(&rig, rig.a, FABREX_FLOAT32), 0);
	CHECK_EQ(fxi_device_wait(rig.device), 0);
	rig_close(&rig);
}

static void failing_open(struct fabrex_memory *found, const char *what)
{
	struct device *device;

	setenv("FABREX_TEST_FAIL", what, 1);
	CHECK_EQ(fxi_device_open(found, &device), -ENOMEM);
	CHECK_SAYS("device 0");
	unsetenv("FABREX_TEST_FAIL");
}

TEST(coll_device_failing_open)
{
	char *memory = cuda_alloc(cuda_up("libcuda.so.1"), 4096);
	struct fabrex_memory found;

	CHECK_EQ(fabrex_memory_query(memory, &found, sizeof(found)), 0);
	failing_open(&found, "cuDevicePrimaryCtxRetain=2");
	failing_open(&found, "cuStreamCreate=2");
	failing_open(&found, "cuCtxPushCurrent_v2=2");
}

/* The host's memory is not the GPU's; that is seen when it has ended. */
TEST(coll_device_fault)
{
	static char host[4096];
	struct rig rig;

	rig_cuda(&rig);
	CHECK_EQ(sum(&rig, host, FABREX_FLOAT32), 0);
	CHECK_EQ(fxi_device_wait(rig.device), -EIO);
	CHECK_SAYS("begun earlier");
	/* The context is lost, as it is with a real GPU. */
	CHECK_EQ(fxi_device_free(rig.device, rig.b), -EIO);
	fxi_device_close(rig.device);
}

/* A compiler that does not know the device yet. */
TEST(coll_device_newer)
{
	struct rig rig;

	setenv("FABREX_TEST_ARCHS", "75,80,100", 1);
	rig_cuda(&rig);
	compare_type(&rig, FABREX_BFLOAT16);
	/* Nor one that was before it. */
	setenv("FABREX_TEST_ARCHS", "100,120", 1);
	CHECK_EQ(sum(&rig, rig.a, FABREX_INT8), 0);
	CHECK_EQ(fxi_device_wait(rig.device), 0);
	rig_close(&rig);
}

/* A kernel that is wrong: the sentence has the compiler's own. */
TEST(coll_device_refused)
{
	size_t size;
	char *code;

	CHECK(runtime_load("libcuda.so.1"));
	CHECK_EQ(fxi_kernel_compile(&fxi_gpu_cuda, "", 99, &code, &size),
		 -EIO);
	CHECK_SAYS("error");
	CHECK_SAYS("type_of<99>");
}
