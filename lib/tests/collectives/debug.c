// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What FABREX_DEBUG may say, what is written where, and that it is true:
 * fabrex_debug(7).
 */
#include <errno.h>
#include <regex.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "device.h"
#include "world.h"

#define LINES	400u
#define PATH	"/tmp/fabrex-debug-test"

/* ---- the log ----------------------------------------------------------- */

struct log {
	char path[128];
	char *text, *line[LINES];
	uint32_t lines;
};

static void log_name(struct log *log, int pid)
{
	char host[64];

	CHECK(!gethostname(host, sizeof(host)));
	snprintf(log->path, sizeof(log->path), PATH ".%s.%d%%", host, pid);
}

static void log_begin(struct log *log, const char *words)
{
	memset(log, 0, sizeof(*log));
	log_name(log, (int)getpid());
	unlink(log->path);
	setenv("FABREX_DEBUG", words, 1);
	setenv("FABREX_DEBUG_FILE", PATH ".%h.%p%%", 1);
}

/* All lines so far. */
static void log_read(struct log *log)
{
	FILE *f = fopen(log->path, "r");
	struct stat st;
	char *at;

	free(log->text);
	log->lines = 0;
	log->text = NULL;
	if (!f)
		return;
	CHECK(!fstat(fileno(f), &st));
	log->text = calloc(1, (size_t)st.st_size + 1);
	CHECK(log->text);
	CHECK_EQ(fread(log->text, 1, (size_t)st.st_size, f), st.st_size);
	fclose(f);
	for (at = log->text; *at; at = strchr(at, 0) + 1) {
		CHECK(log->lines < LINES);
		log->line[log->lines++] = at;
		CHECK(strchr(at, '\n'));
		*strchr(at, '\n') = 0;
	}
}

static void log_end(struct log *log)
{
	free(log->text);
	unlink(log->path);
	unsetenv("FABREX_DEBUG");
	unsetenv("FABREX_DEBUG_FILE");
}

/* How many lines have both. */
static uint32_t count(const struct log *log, const char *a, const char *b)
{
	uint32_t i, n = 0;

	for (i = 0; i < log->lines; i++)
		n += strstr(log->line[i], a) && strstr(log->line[i], b);
	return n;
}

/* Another port of this rank, which reads the environment. */
static struct fabrex_port *port_open(void)
{
	struct fabrex_port *port;
	char name[64];

	snprintf(name, sizeof(name), "loopback:test-%d", (int)getppid());
	CHECK_EQ(fabrex_open(name, &port), 0);
	return port;
}

static struct fabrex_comm *comm_of(struct world *w, struct fabrex_port *port,
				   const char *algorithms)
{
	struct world other = { .port = port, .rank = w->rank, .size = w->size };

	return world_comm(&other, algorithms);
}

/* ---- words ------------------------------------------------------------- */

static void words_work(struct world *w)
{
	static const char *const bad[] = {
		"cool", "coll,", ",", "coll,,path", "coll path", "ALL", "1",
	};
	static const char *const bad_files[] = {
		"/nowhere/at/all", "/tmp/%x", "/tmp/%", "/tmp",
	};
	struct fabrex_port *port;
	char name[64];
	size_t i;

	(void)w;
	snprintf(name, sizeof(name), "loopback:test-%d", (int)getppid());
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("FABREX_DEBUG", bad[i], 1);
		CHECK_EQ(fabrex_open(name, &port), -EINVAL);
		CHECK_SAYS("FABREX_DEBUG");
		CHECK_SAYS("port, path, memory, bootstrap, coll or failure");
	}
	setenv("FABREX_DEBUG", "coll", 1);
	for (i = 0; i < sizeof(bad_files) / sizeof(*bad_files); i++) {
		setenv("FABREX_DEBUG_FILE", bad_files[i], 1);
		CHECK(fabrex_open(name, &port) < 0);
		CHECK_SAYS("FABREX_DEBUG_FILE");
	}
	/* Nobody asked for a log: its file does not matter. */
	setenv("FABREX_DEBUG", "", 1);
	CHECK_EQ(fabrex_open(name, &port), 0);
	CHECK_EQ(fabrex_close(port), 0);
	unsetenv("FABREX_DEBUG");
	unsetenv("FABREX_DEBUG_FILE");
}

TEST(debug_words)
{
	world_run(1, words_work, NULL);
}

/* ---- lines ------------------------------------------------------------- */

static void format_work(struct world *w)
{
	char host[64], text[256];
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	struct log log;
	regex_t regex;
	uint32_t i;

	log_begin(&log, "all");
	port = port_open();
	comm = comm_of(w, port, NULL);
	CHECK_EQ(fabrex_barrier(comm), 0);
	fabrex_comm_destroy(comm);
	CHECK(!gethostname(host, sizeof(host)));
	snprintf(text, sizeof(text), "^fabrex %s %d/[0-9]+ (port|path|memory|bootstrap|coll|failure)( rank %u)?: [ -~]+$",
		 host, (int)getpid(), w->rank);
	CHECK(!regcomp(&regex, text, REG_EXTENDED | REG_NOSUB));
	log_read(&log);
	for (i = 0; i < log.lines; i++) {
		test_note("%s", log.line[i]);
		CHECK(!regexec(&regex, log.line[i], 0, NULL, 0));
	}
	regfree(&regex);
	CHECK_EQ(count(&log, " port: ", "transport loopback, because of"), 1);
	CHECK(count(&log, " path", "mapped"));
	CHECK_EQ(count(&log, " bootstrap rank", "\"fabric:4242\""), 1);
	CHECK_EQ(count(&log, " bootstrap rank", "is connected"), 1);
	CHECK_EQ(count(&log, " coll rank", "barrier of 0 bytes"), 1);
	CHECK_EQ(fabrex_close(port), 0);
	log_end(&log);
}

TEST(debug_format)
{
	world_run(2, format_work, NULL);
}

/* Only what was asked for, and nothing if nothing was. */
static void asked_work(struct world *w)
{
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	struct log log;

	log_begin(&log, "bootstrap,coll");
	port = port_open();
	unsetenv("FABREX_DEBUG");
	CHECK_EQ(fabrex_close(port), 0);
	port = port_open();
	comm = comm_of(w, port, NULL);
	CHECK_EQ(fabrex_barrier(comm), 0);
	fabrex_comm_destroy(comm);
	log_read(&log);
	CHECK_EQ(log.lines, 0);
	CHECK_EQ(fabrex_close(port), 0);
	setenv("FABREX_DEBUG", "bootstrap,coll", 1);
	port = port_open();
	comm = comm_of(w, port, NULL);
	CHECK_EQ(fabrex_barrier(comm), 0);
	fabrex_comm_destroy(comm);
	log_read(&log);
	CHECK(log.lines > 1);
	CHECK_EQ(count(&log, " bootstrap ", "") + count(&log, " coll ", ""),
		 log.lines);
	CHECK_EQ(fabrex_close(port), 0);
	log_end(&log);
}

TEST(debug_only_what_was_asked_for)
{
	world_run(2, asked_work, NULL);
}

/* A child has a file of its own. */
static void child_work(struct world *w)
{
	struct fabrex_port *port;
	struct log log, child;
	pid_t pid;
	int status;

	(void)w;
	log_begin(&log, "port");
	port = port_open();
	pid = fork();
	if (!pid) {
		struct fabrex_port *other;

		_exit(fabrex_open("loopback:test-child", &other) != 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	memset(&child, 0, sizeof(child));
	log_name(&child, (int)pid);
	log_read(&child);
	log_read(&log);
	CHECK_EQ(count(&child, "transport loopback", "test-child"), 1);
	CHECK_EQ(count(&log, "transport loopback", "test-child"), 0);
	CHECK_EQ(count(&log, "transport loopback", ""), 1);
	unlink(child.path);
	free(child.text);
	CHECK_EQ(fabrex_close(port), 0);
	log_end(&log);
}

TEST(debug_in_a_child)
{
	world_run(1, child_work, NULL);
}

/* ---- is it true? ------------------------------------------------------- */

#define MOST	(1u << 20)

static int perform(struct fabrex_comm *comm, uint32_t kind, uint64_t bytes,
		   uint8_t *x)
{
	uint32_t n = fabrex_comm_size(comm);
	struct fabrex_collective what = {
		.kind = kind, .type = FABREX_UINT8, .op = FABREX_SUM,
		.send = x, .recv = x + MOST, .count = bytes,
	};

	if (kind == FABREX_ALL_GATHER || kind == FABREX_REDUCE_SCATTER ||
	    kind == FABREX_ALL_TO_ALL)
		what.count /= n;
	return world_call(comm, &what);
}

/* As they are in lines. */
static const char *const kinds[] = {
	[FABREX_ALL_REDUCE] = "all-reduce of ",
	[FABREX_ALL_GATHER] = "all-gather of ",
	[FABREX_REDUCE_SCATTER] = "reduce-scatter of ",
	[FABREX_BROADCAST] = "broadcast of ",
	[FABREX_REDUCE] = "reduce of ",
	[FABREX_ALL_TO_ALL] = "all-to-all of ",
};

/* The one line about it, which says what fabrex_comm_algorithm() does. */
static void check_line(struct log *log, struct fabrex_comm *comm,
		       uint32_t kind, uint64_t bytes)
{
	char begin[64], answer[96], name[64];

	CHECK_EQ(fabrex_comm_algorithm(comm, kind, bytes, name, sizeof(name)),
		 0);
	snprintf(begin, sizeof(begin), ": %s%llu bytes ", kinds[kind],
		 (unsigned long long)bytes);
	snprintf(answer, sizeof(answer), "): %s, ", name);
	log_read(log);
	test_note("%s %s", begin, answer);
	CHECK_EQ(count(log, begin, ""), 1);
	CHECK_EQ(count(log, begin, answer), 1);
}

static void agree_on(struct world *w, struct log *log,
		     struct fabrex_port *port, const char *algorithms,
		     uint8_t *x)
{
	static const uint64_t sizes[] = { 16, 1024, 8192, 65536, MOST };
	struct fabrex_comm *comm = comm_of(w, port, algorithms);
	uint32_t kind, lines;
	size_t i;

	CHECK(!truncate(log->path, 0));
	for (kind = FABREX_ALL_REDUCE; kind <= FABREX_ALL_TO_ALL; kind++)
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			CHECK_EQ(perform(comm, kind, sizes[i], x), 0);
			check_line(log, comm, kind, sizes[i]);
		}
	/* The same again, and others of the same class: nothing new. */
	lines = log->lines;
	for (kind = FABREX_ALL_REDUCE; kind <= FABREX_ALL_TO_ALL; kind++)
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			CHECK_EQ(perform(comm, kind, sizes[i], x), 0);
	CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 17, x), 0);
	log_read(log);
	CHECK_EQ(log->lines, lines);
	fabrex_comm_destroy(comm);
}

static void agree_work(struct world *w)
{
	static uint8_t x[2 * MOST];
	struct fabrex_schedule *schedule;
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	struct log log;

	log_begin(&log, "coll");
	port = port_open();
	agree_on(w, &log, port, NULL, x);
	agree_on(w, &log, port, "all_reduce:-4K=flat,4K-=ring*2;broadcast:tree",
		 x);
	CHECK(count(&log, ": ring*2, ", "of FABREX_ALGORITHMS"));
	comm = comm_of(w, port, NULL);
	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, "ring", w->size, 0,
				      &schedule), 0);
	CHECK_EQ(fabrex_comm_schedule(comm, FABREX_ALL_REDUCE, schedule), 0);
	fabrex_schedule_free(schedule);
	CHECK(!truncate(log.path, 0));
	CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 4096, x), 0);
	check_line(&log, comm, FABREX_ALL_REDUCE, 4096);
	CHECK(count(&log, "the schedule of fabrex_comm_schedule()", ""));
	fabrex_comm_destroy(comm);
	CHECK_EQ(fabrex_close(port), 0);
	log_end(&log);
}

TEST(debug_agrees_with_comm_algorithm)
{
	world_run(2, agree_work, NULL);
	world_run(4, agree_work, NULL);
}

static void failure_work(struct world *w)
{
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	struct log log;

	log_begin(&log, "failure");
	port = port_open();
	comm = comm_of(w, port, NULL);
	if (w->rank == 1)
		CHECK_EQ(fabrex_comm_abort(comm), 0);
	CHECK(fabrex_barrier(comm) < 0);
	CHECK(fabrex_barrier(comm) < 0);
	log_read(&log);
	CHECK_EQ(log.lines, 1);
	CHECK_EQ(count(&log, "rank 1 (host ", "has aborted"), 1);
	CHECK_EQ(count(&log, "this rank 1 (", "fabrex_comm_abort()"),
		 w->rank == 1);
	fabrex_comm_destroy(comm);
	CHECK_EQ(fabrex_close(port), 0);
	log_end(&log);
}

TEST(debug_failure)
{
	world_run(3, failure_work, NULL);
}

/* Ordinary memory cannot be mapped: what is done in place of that. */
static void path_work(struct world *w)
{
	static uint8_t x[2 * MOST];
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	struct log log;

	log_begin(&log, "path");
	port = port_open();
	comm = comm_of(w, port, "all_reduce:direct");
	CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 65536, x), 0);
	CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 65536, x), 0);
	log_read(&log);
	CHECK_EQ(count(&log, "all-reduce of 65536 bytes ",
		       "staged in place of direct"), 1);
	CHECK_EQ(count(&log, "messages of 1 other ranks: to 1 by stores to mapped memory",
		       ""), 1);
	fabrex_comm_destroy(comm);
	CHECK_EQ(fabrex_close(port), 0);
	log_end(&log);
}

TEST(debug_path)
{
	world_run(2, path_work, NULL);
}

/* Buffers on GPUs, of the test run times: which kind, and where it reduces. */
static void memory_work(struct world *w)
{
	const char *kind = w->rank ? "HIP" : "CUDA";
	char device[64], answer[64];
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	struct gpu gpu;
	struct log log;
	uint8_t *x;

	log_begin(&log, "memory");
	port = port_open();
	comm = comm_of(w, port, "all_reduce:flat");
	if (w->rank)
		gpu_hip(&gpu, 2 * MOST);
	else
		gpu_cuda(&gpu, 2 * MOST);
	x = (uint8_t *)gpu.memory;
	CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 4096, x), 0);
	CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 4096, x), 0);
	log_read(&log);
	CHECK_EQ(log.lines, 2);
	snprintf(device, sizeof(device), ": %s device ", kind);
	snprintf(answer, sizeof(answer), "%s to %s memory, ", kind, kind);
	CHECK_EQ(count(&log, device, ""), 1);
	CHECK_EQ(count(&log, "all-reduce of 4096 bytes ", answer), 1);
	CHECK_EQ(count(&log, device, "reduces by itself"),
		 count(&log, answer, "copied and reduced by the GPU"));
	CHECK_EQ(count(&log, device, "cannot reduce"),
		 count(&log, answer, "as the GPU cannot reduce"));
	fabrex_comm_destroy(comm);
	comm = comm_of(w, port, "all_reduce:ring");
	CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 4096, x), 0);
	CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 4096, x), 0);
	log_read(&log);
	CHECK_EQ(count(&log, answer, "performed on the GPU"), 1);
	CHECK_EQ(count(&log, device, "has slots for other ranks"), 1);
	fabrex_comm_destroy(comm);
	CHECK_EQ(fabrex_close(port), 0);
	log_end(&log);
}

TEST(debug_memory)
{
	world_run(2, memory_work, NULL);
}

/* How data on GPUs gets to the other rank, and why not in a better way. */
static void peers_work(struct world *w)
{
	static const struct {
		const char *name, *value, *answer, *why;
	} ways[] = {
		{ "NOTHING", "", "the runtime copies it", "" },
		{ "FABREX_TEST_NO_MESH", "1", "the fabric writes it",
		  "has no path to the GPU at 0000:a" },
		{ "FABREX_TEST_FAIL", "cuIpcGetMemHandle=801",
		  "the fabric writes it", "cannot be opened by other processes" },
		{ "FABREX_TEST_FAIL", "cuIpcOpenMemHandle_v2=1",
		  "the fabric writes it", "invalid argument" },
	};
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	struct gpu gpu;
	struct log log;
	size_t i;

	log_begin(&log, "path,memory");
	port = port_open();
	gpu_cuda_on(&gpu, (int)w->rank, 2 * MOST);
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		test_note("%s=%s", ways[i].name, ways[i].value);
		setenv(ways[i].name, ways[i].value, 1);
		comm = comm_of(w, port, "all_reduce:ring");
		CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 4096,
				 (uint8_t *)gpu.memory), 0);
		CHECK_EQ(perform(comm, FABREX_ALL_REDUCE, 4096,
				 (uint8_t *)gpu.memory), 0);
		log_read(&log);
		CHECK_EQ(count(&log, "data on GPUs for rank", ""), i + 1);
		CHECK_EQ(count(&log, ways[i].answer, ways[i].why), 1);
		if (!i && w->rank)
			CHECK_EQ(fabrex_barrier(w->comm), 0);
		fabrex_comm_destroy(comm);
		if (!i && !w->rank)
			CHECK_EQ(fabrex_barrier(w->comm), 0);
		unsetenv(ways[i].name);
	}
	log_read(&log);
	CHECK_EQ(count(&log, "are not freed before this process ends",
		       "rank 1 still has them open"), !w->rank);
	CHECK_EQ(fabrex_close(port), 0);
	log_end(&log);
}

TEST(debug_path_of_gpus)
{
	world_run(2, peers_work, NULL);
}
