// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kernels of an application, compiled at run time as it may do it.
 */
#include <dlfcn.h>

#include "cuda.h"
#include "device.h"
#include "hip.h"
#include "world.h"

#define THREADS	256u

/* The processor, which plays GPU in the tests, has other things to do. */
static const char text[] =
"#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)\n"
"#define pause()\n"
"#else\n"
"extern \"C\" int usleep(unsigned int us);\n"
"#define pause() usleep(100)\n"
"#endif\n"
"extern \"C\" __global__ void mix(unsigned int *to, const unsigned int *from,\n"
"		unsigned int count, unsigned int factor)\n"
"{\n"
"	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
"	for (; i < count; i += gridDim.x * blockDim.x)\n"
"		to[i] = 3 * to[i] + factor * from[i];\n"
"}\n"
"extern \"C\" __global__ void spin(volatile unsigned long long *begun,\n"
"		volatile unsigned long long *end)\n"
"{\n"
"	*begun = 1;\n"
"	while (!*end)\n"
"		pause();\n"
"}\n";

void mix(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t factor)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		to[i] = 3 * to[i] + factor * from[i];
}

/* ---- compiling --------------------------------------------------------- */

/* The same functions at both vendors. */
struct rtc {
	int (*create)(void **program, const char *text, const char *name,
		      int n, const char *const *headers,
		      const char *const *names);
	int (*compile)(void *program, int n, const char *const *options);
	int (*size)(void *program, size_t *size);
	int (*code)(void *program, char *code);
	int (*destroy)(void **program);
};

static void *find(void *lib, const char *prefix, const char *name)
{
	char full[64];
	void *symbol;

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	symbol = dlsym(lib, full);
	CHECK(symbol);
	return symbol;
}

static void load_rtc(struct rtc *rtc, bool cuda)
{
	const char *prefix = cuda ? "nvrtc" : "hiprtc";
	void *lib = dlopen(cuda ? "libnvrtc.so.13" : "libhiprtc.so.7",
			   RTLD_NOW | RTLD_LOCAL);

	if (!lib && cuda)
		lib = dlopen("libnvrtc.so.12", RTLD_NOW | RTLD_LOCAL);
	CHECK(lib);
	*(void **)&rtc->create = find(lib, prefix, "CreateProgram");
	*(void **)&rtc->compile = find(lib, prefix, "CompileProgram");
	*(void **)&rtc->size = find(lib, prefix, cuda ? "GetCUBINSize" :
							"GetCodeSize");
	*(void **)&rtc->code = find(lib, prefix, cuda ? "GetCUBIN" :
							"GetCode");
	*(void **)&rtc->destroy = find(lib, prefix, "DestroyProgram");
}

static void arch_of(const struct gpu *g, char *option, size_t n)
{
	void *device = dlsym(g->cuda, "cuDeviceGet");
	void *attribute = dlsym(g->cuda, "cuDeviceGetAttribute");
	int number, major, minor;

	CHECK(device && attribute);
	CHECK_EQ(((__typeof__(&cuDeviceGet))(uintptr_t)device)
		 (&number, g->device), 0);
	CHECK_EQ(((__typeof__(&cuDeviceGetAttribute))(uintptr_t)attribute)
		 (&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
		  number), 0);
	CHECK_EQ(((__typeof__(&cuDeviceGetAttribute))(uintptr_t)attribute)
		 (&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
		  number), 0);
	snprintf(option, n, "--gpu-architecture=sm_%d%d", major, minor);
}

static char *compile(const struct gpu *g)
{
	char arch[64], *code;
	const char *options[] = { arch };
	void *program;
	struct rtc rtc;
	size_t size;

	load_rtc(&rtc, g->cuda);
	if (g->cuda)
		arch_of(g, arch, sizeof(arch));
	CHECK_EQ(rtc.create(&program, text, "tests", 0, NULL, NULL), 0);
	CHECK_EQ(rtc.compile(program, !!g->cuda, options), 0);
	CHECK_EQ(rtc.size(program, &size), 0);
	code = malloc(size);
	CHECK(code);
	CHECK_EQ(rtc.code(program, code), 0);
	rtc.destroy(&program);
	return code;
}

typedef int module_load(void **module, const void *code);
typedef int module_function(void **function, void *module, const char *name);
typedef int module_launch(void *function, unsigned int grid_x,
			  unsigned int grid_y, unsigned int grid_z,
			  unsigned int block_x, unsigned int block_y,
			  unsigned int block_z, unsigned int shared,
			  void *stream, void **parameters, void **extra);

static void *driver(const struct gpu *g, const char *cuda, const char *hip)
{
	return find(g->cuda ? g->cuda : g->hip, "", g->cuda ? cuda : hip);
}

void gpu_kernels(struct gpu *g)
{
	module_load *load;
	module_function *function;
	char *code;
	void *module;

	if (!g->cuda && !g->hip)
		return;
	*(void **)&load = driver(g, "cuModuleLoadData", "hipModuleLoadData");
	*(void **)&function = driver(g, "cuModuleGetFunction",
				     "hipModuleGetFunction");
	code = compile(g);
	CHECK_EQ(load(&module, code), 0);
	CHECK_EQ(function(&g->mix, module, "mix"), 0);
	CHECK_EQ(function(&g->spin, module, "spin"), 0);
	free(code);
}

/* ---- launching --------------------------------------------------------- */

static void launch(const struct gpu *g, void *stream, void *function,
		   unsigned int blocks, unsigned int threads,
		   void **parameters)
{
	module_launch *call;

	*(void **)&call = driver(g, "cuLaunchKernel", "hipModuleLaunchKernel");
	CHECK_EQ(call(function, blocks, 1, 1, threads, 1, 1, 0, stream,
		      parameters, NULL), 0);
}

void gpu_stream_mix(const struct gpu *g, void *stream, void *to,
		    const void *from, uint32_t count, uint32_t factor)
{
	void *parameters[] = { &to, &from, &count, &factor };

	launch(g, stream, g->mix, count / THREADS + 1, THREADS, parameters);
}

void gpu_stream_spin(const struct gpu *g, void *stream, struct spin *spin)
{
	void *parameters[] = { &spin->begun, &spin->end };
	uint64_t *first = gpu_word(g);

	spin->begun = gpu_word(g);
	spin->end = gpu_word(g);
	/* Run times begin late what nobody waits for, but not with this. */
	gpu_stream_write(g, stream, first, 1);
	launch(g, stream, g->spin, 1, 1, parameters);
}

void spin_await(const struct spin *spin)
{
	while (!*spin->begun)
		usleep(100);
}

void spin_end(const struct spin *spin)
{
	*spin->end = 1;
}
