// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays libnvrtc and, built with HIP, libhiprtc: compiles a kernel with the
 * compiler of the host ($CXX or c++), so that module.c can run it thread by
 * thread. With $FABREX_TEST_KERNELS, a directory, what it compiled is kept there
 * and taken from there, so that machines without a compiler can have it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

#ifdef HIP
#define NAME(x)		hiprtc##x
#define CODE(x)		hiprtcGetCode##x
#else
#define NAME(x)		nvrtc##x
#define CODE(x)		nvrtcGetCUBIN##x
#define ARCHS		"75,80,90"
#endif

#define RTC_OK			0
#define RTC_OUT_OF_MEMORY	1
#define RTC_INVALID_INPUT	3
#define RTC_INVALID_PROGRAM	4
#define RTC_COMPILATION		6

struct program {
	char *source;
	char *log;
	char *code;
	size_t size;
};

/* Words of the language, and how a kernel is run. */
static const char before[] =
"#include <cstdlib>\n"
"#include <new>\n"
"#include <tuple>\n"
"#include <utility>\n"
"#define __global__\n"
"#define __device__\n"
"struct fabrex_dim { unsigned int x, y, z; };\n"
"static thread_local fabrex_dim threadIdx, blockIdx, blockDim, gridDim;\n"
"typedef void *fabrex_view(void *);\n"
"template <class T> T fabrex_see(T x, fabrex_view *) { return x; }\n"
"template <class T> T *fabrex_see(T *x, fabrex_view *view)\n"
"{ return (T *)view((void *)x); }\n"
"template <class... A, size_t... I>\n"
"void *fabrex_pack(void (*)(A...), void **p, std::index_sequence<I...>)\n"
"{ return new (std::malloc(sizeof(std::tuple<A...>)))\n"
"	std::tuple<A...>(*(A *)p[I]...); }\n"
"template <class... A, size_t... I>\n"
"void fabrex_run(void (*kernel)(A...), void *packed, fabrex_view *view,\n"
"		const unsigned int *g, const unsigned int *b,\n"
"		std::index_sequence<I...>)\n"
"{\n"
"	std::tuple<A...> &t = *(std::tuple<A...> *)packed;\n"
"	std::tuple<A...> seen(fabrex_see(std::get<I>(t), view)...);\n"
"	fabrex_dim &u = blockIdx, &v = threadIdx;\n"
"	gridDim = { g[0], g[1], g[2] };\n"
"	blockDim = { b[0], b[1], b[2] };\n"
"	for (u.z = 0; u.z < g[2]; u.z++)\n"
"	for (u.y = 0; u.y < g[1]; u.y++)\n"
"	for (u.x = 0; u.x < g[0]; u.x++)\n"
"	for (v.z = 0; v.z < b[2]; v.z++)\n"
"	for (v.y = 0; v.y < b[1]; v.y++)\n"
"	for (v.x = 0; v.x < b[0]; v.x++)\n"
"		kernel(std::get<I>(seen)...);\n"
"}\n"
"template <class... A>\n"
"std::index_sequence_for<A...> fabrex_all(void (*)(A...)) { return {}; }\n";

static const char behind[] =
"\nextern \"C\" void *fabrex_pack_%s(void **p)\n"
"{ return fabrex_pack(&%s, p, fabrex_all(&%s)); }\n"
"extern \"C\" void fabrex_run_%s(void *packed, fabrex_view *view,\n"
"	const unsigned int *grid, const unsigned int *block)\n"
"{ fabrex_run(&%s, packed, view, grid, block, fabrex_all(&%s)); }\n";

/* ---- the compiler of the host ------------------------------------------ */

/*
 * Symbolic: what a kernel calls is its own, and not a function of the program
 * that has the same name, as libfabrex has.
 */
#define FLAGS	"-std=c++17 -O1 -w -fPIC -shared -fno-strict-aliasing " \
		"-ffp-contract=off -Wl,-Bsymbolic"

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (c >= '0' && c <= '9');
}

/* The name before the parenthesis. */
static void write_kernel(FILE *f, const char *declared)
{
	const char *end = strchr(declared, '('), *start;
	char name[100] = "";

	if (!end)
		return;
	while (end > declared && !is_name(end[-1]))
		end--;
	for (start = end; start > declared && is_name(start[-1]); start--)
		;
	snprintf(name, sizeof(name), "%.*s", (int)(end - start), start);
	fprintf(f, behind, name, name, name, name, name, name);
}

static bool write_source(const char *path, const char *source)
{
	FILE *f = fopen(path, "w");
	const char *kernel = source;

	if (!f)
		return false;
	fprintf(f, "%s%s", before, source);
	while ((kernel = strstr(kernel, "__global__"))) {
		kernel += strlen("__global__");
		write_kernel(f, kernel);
	}
	return !fclose(f);
}

static char *read_file(const char *path, size_t skip, size_t *size)
{
	FILE *f = fopen(path, "r");
	char *data = NULL;
	long length;

	*size = 0;
	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (length = ftell(f)) >= 0) {
		rewind(f);
		data = calloc(1, skip + (size_t)length + 1);
		if (data)
			*size = fread(data + skip, 1, (size_t)length, f);
	}
	fclose(f);
	return data;
}

/* What is for the language is for the host too. */
static void host_options(char *out, size_t size, int n,
			 const char *const *options)
{
	size_t at = 0;
	int i;

	*out = '\0';
	for (i = 0; i < n; i++)
		if (!strncmp(options[i], "-D", 2))
			at += (size_t)snprintf(out + at, size - at, " '%s'",
					       options[i]);
}

/* FNV-1a. */
static uint64_t hash(uint64_t value, const char *text)
{
	while (*text)
		value = (value ^ (uint8_t)*text++) * 0x100000001b3ull;
	return value;
}

/* The name under which the code of the program is kept; "": nowhere. */
static void kept_path(const struct program *p, const char *options, char *path,
		      size_t size)
{
	const char *dir = getenv("FABREX_TEST_KERNELS");
	uint64_t value = 0xcbf29ce484222325ull;

	*path = '\0';
	value = hash(hash(hash(value, FLAGS), before), behind);
	value = hash(hash(value, p->source), options);
	if (dir)
		snprintf(path, size, "%s/%016llx.so", dir,
			 (unsigned long long)value);
}

static bool take(struct program *p, const char *path)
{
	free(p->log);
	p->log = NULL;
	p->code = read_file(path, sizeof(struct gpu_code), &p->size);
	return p->code;
}

/* Whole, or not at all. */
static void keep(const char *path, const char *kept)
{
	char command[1024];

	snprintf(command, sizeof(command), "cp %s %s.%d && mv %s.%d %s", path,
		 kept, (int)getpid(), kept, (int)getpid(), kept);
	if (system(command))
		fprintf(stderr, "rtc: %s cannot be kept\n", kept);
}

static int compile(struct program *p, const char *dir, int n,
		   const char *const *options)
{
	const char *cxx = getenv("CXX");
	char command[1024], path[200], more[200], kept[512];
	size_t size;

	host_options(more, sizeof(more), n, options);
	kept_path(p, more, kept, sizeof(kept));
	if (*kept && take(p, kept))
		return RTC_OK;
	snprintf(path, sizeof(path), "%s/k.cc", dir);
	if (!write_source(path, p->source))
		return RTC_OUT_OF_MEMORY;
	snprintf(command, sizeof(command),
		 "cd %s && %s " FLAGS "%s -o k.so k.cc 2> log", dir,
		 cxx ? cxx : "c++", more);
	size = (size_t)system(command);
	snprintf(path, sizeof(path), "%s/log", dir);
	if (size) {
		free(p->log);
		p->log = read_file(path, 0, &size);
		return RTC_COMPILATION;
	}
	snprintf(path, sizeof(path), "%s/k.so", dir);
	if (!take(p, path))
		return RTC_OUT_OF_MEMORY;
	if (*kept)
		keep(path, kept);
	return RTC_OK;
}

static void label(struct program *p, int n, const char *const *options)
{
	struct gpu_code *code = (struct gpu_code *)(void *)p->code;
	int i;

	memcpy(code->magic, GPU_CODE_MAGIC, sizeof(code->magic));
	code->size = p->size;
	p->size += sizeof(*code);
	for (i = 0; i < n; i++)
		if (!strncmp(options[i], "--gpu-arch", 10))
			snprintf(code->option, sizeof(code->option), "%s",
				 options[i]);
}

static void clean_up(const char *dir)
{
	static const char *const files[] = { "k.cc", "k.so", "log" };
	char path[200];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
}

/* ---- what is called ---------------------------------------------------- */

API int NAME(CreateProgram)(void **out, const char *source, const char *name,
			    int nheaders, const char *const *headers,
			    const char *const *names);
API int NAME(DestroyProgram)(void **program);
API int NAME(CompileProgram)(void *program, int n,
			     const char *const *options);
API int NAME(GetProgramLogSize)(void *program, size_t *size);
API int NAME(GetProgramLog)(void *program, char *log);
API int CODE(Size)(void *program, size_t *size);
API int CODE()(void *program, char *code);
API const char *NAME(GetErrorString)(int result);

API int NAME(CreateProgram)(void **out, const char *source, const char *name,
			    int nheaders, const char *const *headers,
			    const char *const *names)
{
	struct program *p = calloc(1, sizeof(*p));

	(void)name;
	(void)headers;
	(void)names;
	if (!p || nheaders) {
		free(p);
		return RTC_INVALID_INPUT;
	}
	p->source = strdup(source);
	*out = p;
	return RTC_OK;
}

API int NAME(DestroyProgram)(void **program)
{
	struct program *p = *program;

	free(p->source);
	free(p->log);
	free(p->code);
	free(p);
	*program = NULL;
	return RTC_OK;
}

API int NAME(CompileProgram)(void *program, int n,
			     const char *const *options)
{
	const char *tmp = getenv("TMPDIR");
	char dir[128];
	int ret = gpu_fail(__func__);

	if (ret)
		return ret;
	snprintf(dir, sizeof(dir), "%s/fabrex-rtc-XXXXXX",
		 tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return RTC_OUT_OF_MEMORY;
	ret = compile(program, dir, n, options);
	if (!ret)
		label(program, n, options);
	clean_up(dir);
	return ret;
}

API int NAME(GetProgramLogSize)(void *program, size_t *size)
{
	const struct program *p = program;

	*size = (p->log ? strlen(p->log) : 0) + 1;
	return RTC_OK;
}

API int NAME(GetProgramLog)(void *program, char *log)
{
	const struct program *p = program;

	strcpy(log, p->log ? p->log : "");
	return RTC_OK;
}

API int CODE(Size)(void *program, size_t *size)
{
	const struct program *p = program;

	*size = p->size;
	return p->code ? RTC_OK : RTC_INVALID_PROGRAM;
}

API int CODE()(void *program, char *code)
{
	const struct program *p = program;

	memcpy(code, p->code, p->size);
	return RTC_OK;
}

#ifndef HIP
/* FABREX_TEST_ARCHS=75,80: those that it knows. */
static int archs(int *numbers)
{
	const char *list = getenv("FABREX_TEST_ARCHS");
	int n = 0;

	for (list = list ? list : ARCHS; list; n++) {
		if (numbers)
			numbers[n] = atoi(list);
		list = strchr(list, ',');
		list += !!list;
	}
	return n;
}

API int nvrtcGetNumSupportedArchs(int *n);
API int nvrtcGetSupportedArchs(int *numbers);
API int nvrtcGetPTXSize(void *program, size_t *size);
API int nvrtcGetPTX(void *program, char *code);

API int nvrtcGetNumSupportedArchs(int *n)
{
	*n = archs(NULL);
	return RTC_OK;
}

API int nvrtcGetSupportedArchs(int *numbers)
{
	archs(numbers);
	return RTC_OK;
}

API int nvrtcGetPTXSize(void *program, size_t *size)
{
	return nvrtcGetCUBINSize(program, size);
}

API int nvrtcGetPTX(void *program, char *code)
{
	return nvrtcGetCUBIN(program, code);
}
#endif

API const char *NAME(GetErrorString)(int result)
{
	switch (result) {
	case RTC_OK:
		return "success";
	case RTC_COMPILATION:
		return "compilation error";
	}
	return "error";
}
