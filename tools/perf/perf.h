/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fabrex-perf: options, sessions between the two sides, results. One file for
 * each kind of test; main.c chooses, session.c lets the sides meet.
 */
#ifndef PERF_H
#define PERF_H

#include <getopt.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <fabrex/fabrex.h>

/* Exit codes, as in fabrex-perf(1). */
enum {
	EXIT_OK = 0,
	EXIT_USAGE = 1,
	EXIT_SETUP = 2,		/* port, peer, memory, queue */
	EXIT_FAILED = 3,	/* an operation did not complete with OK */
	EXIT_MISMATCH = 4,	/* bytes arrived that were not sent */
	EXIT_INTERRUPTED = 5,
};

enum test_id {
	T_WRITE_BW = 1, T_READ_BW, T_WRITE_LAT, T_READ_LAT, T_SEND_LAT,
	T_ATOMIC_LAT, T_WINDOW_LAT, T_WINDOW_BW, T_MSG_RATE, T_TRANSFER,
};

enum memory_kind { MEMORY_HOST, MEMORY_HIP, MEMORY_CUDA, MEMORY_MALLOC };

struct options {
	const char *device;
	const char *peer;
	const char *file;
	const char *plot;
	uint64_t service;
	uint64_t size_from, size_to, size_factor;
	uint64_t iterations;	/* 0: by time */
	double seconds;
	double warmup;
	double reference_gbps;	/* 0: none */
	uint32_t depth;
	uint32_t batch;
	uint32_t queues;
	int timeout_ms;
	enum memory_kind memory; /* of this side */
	bool events;
	bool check;
	bool verify;
	bool json;
	bool once;
	bool quiet;
};

struct test {
	const char *name;
	enum test_id id;
	const char *what;
	int (*run)(const struct options *o, const struct test *test);
	const char *size;	/* default of --sizes */
	uint32_t depth;
	uint32_t batch;
};

#define DEFAULT_SERVICE	7700
#define PERF_CELL	4096u
#define MAX_QUEUES	64u
#define MAX_DEPTH	8192u

/* ---- memory.c ---------------------------------------------------------- */

struct memory {
	enum memory_kind kind;
	uint8_t *addr;		/* host: to be used; device: its address */
	uint64_t length;
	struct fabrex_mr *mr;
	void *library;
	void *context;		/* CUDA */
};

const char *memory_name(enum memory_kind kind);
bool memory_parse(const char *name, enum memory_kind *kind);
/*
 * Registers it; MEMORY_HOST is fabrex_mr_alloc()'s. Without a port the others
 * are not registered. 0 or a negative errno, for which memory_why() has a
 * sentence.
 */
int memory_open(struct memory *m, struct fabrex_port *port,
		enum memory_kind kind, uint64_t length);
/* Ends the region too; free: after the port, with which it ended. */
void memory_close(struct memory *m);
void memory_free(struct memory *m);
int memory_write(struct memory *m, uint64_t offset, const void *from,
		 uint64_t n);
int memory_read(struct memory *m, uint64_t offset, void *to, uint64_t n);
int memory_fill(struct memory *m, uint64_t offset, uint64_t n, uint64_t seed);
int memory_crc(struct memory *m, uint64_t offset, uint64_t n, uint32_t *crc);
/* A stream of the device that has it; the same results. */
int memory_stream_open(struct memory *m, void **stream);
int memory_stream_wait(struct memory *m, void *stream);
void memory_stream_close(struct memory *m, void *stream);
const char *memory_why(void);

/* ---- session.c: what both sides say ------------------------------------ */

#define PERF_MAGIC	0x46524550u	/* "PERF" */
#define PERF_VERSION	2u

/* Blob of the client. */
struct perf_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t test;
	uint32_t reserved;
	uint64_t key;		/* of the client's control queue */
	uint64_t region;	/* bytes the server shall register */
};

/* Blob of the server. */
struct perf_answer {
	uint32_t magic;
	uint32_t version;
	int32_t error;		/* negative errno, or 0 */
	uint32_t reserved;
	uint64_t key;
	struct fabrex_remote region;
	char text[200];		/* sentence if error */
};

/* Inline datagrams on the control queues, kind in imm. */
enum perf_msg_kind {
	MSG_ECHO = 1,		/* any payload, send it back */
	MSG_PING,		/* is anybody there */
	MSG_SUM,		/* checksum of length bytes at offset, please */
	MSG_SUM_IS,
	MSG_FILL,		/* put the pattern of seed there, then SUM_IS */
	MSG_BYE,
};

struct perf_msg {
	uint64_t offset;
	uint64_t length;
	uint64_t value;		/* seed, or checksum */
};

/* Control queue with a partner. */
struct control {
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;	/* payload of echoes */
	uint32_t peer;
	uint64_t dest_key;
};

struct session {
	struct fabrex_port *port;
	struct fabrex_port_attr attr;
	struct fabrex_peer peer;
	struct control control;
	struct fabrex_remote remote;
	struct memory memory;
	uint64_t region;
	struct fabrex_stats before;
};

extern atomic_int interrupted;

int control_open(struct control *c, struct fabrex_port *port);
void control_close(struct control *c);
int control_send(struct control *c, uint32_t kind, const struct perf_msg *m);
/* Opens port, finds peer, meets server, registers @region bytes here and
 * there. 0 or an exit code, after printing why.
 */
int session_open(struct session *s, const struct options *o,
		 const struct test *test, uint64_t region);
void session_close(struct session *s);
/* Bytes between endpoints, and with host memory at an end, that the port here
 * has started since the session began. False: it does not say.
 */
bool session_moved(struct session *s, uint64_t *p2p, uint64_t *host);
/* Ask the server; its answer in *value. 0 or an exit code. */
int session_ask(struct session *s, uint32_t kind, uint64_t offset,
		uint64_t length, uint64_t *value);
int serve(const struct options *o);

/* ---- tests ------------------------------------------------------------- */

int run_bandwidth(const struct options *o, const struct test *test);
int run_latency(const struct options *o, const struct test *test);
int run_send_latency(const struct options *o, const struct test *test);
int run_window(const struct options *o, const struct test *test);
int run_transfer(const struct options *o, const struct test *test);

/* ---- stats.c ----------------------------------------------------------- */

/* Latencies in ns; every further one replaces an older at random. */
struct samples {
	uint32_t *ns;
	size_t n, max;
	uint64_t seen;
	uint32_t state;
};

int samples_init(struct samples *s, size_t max);
void samples_add(struct samples *s, uint64_t ns);
void samples_free(struct samples *s);
uint64_t now_ns(void);

struct result {
	uint64_t size;
	uint64_t iterations;
	uint64_t bytes;
	double seconds;
	double min_us, median_us, p99_us, max_us;
	bool verified;
};

void result_latency(struct result *r, struct samples *all, size_t n);

/* ---- report.c ---------------------------------------------------------- */

struct plot;

struct report {
	const struct options *o;
	const struct test *test;
	struct session *s;
	double memcpy_gbps;
	unsigned int rows;
	uint64_t last_progress;
	struct plot *plot;
};

void report_begin(struct report *r, const struct options *o,
		  const struct test *test, struct session *s);
/* What the port says about where the bytes went. */
void report_moved(const struct options *o, struct session *s);
void report_row(struct report *r, const struct result *row);
/* Exit code: @code, or that of a picture that could not be drawn. */
int report_end(struct report *r, int code);
/* A line that is overwritten, on a terminal and not more often than 5 Hz. */
void report_progress(struct report *r, uint64_t size, double part);
void report_progress_clear(struct report *r);
/* Text as a JSON string. */
void json_string(FILE *f, const char *text);
/* One thread copying @size byte blocks, GB/s. */
double memcpy_gbps(uint64_t size);
/* "64K" and the like, in a buffer of SIZE_STR. */
#define SIZE_STR	24
const char *size_str(uint64_t size, char *buffer);

/* ---- parse.c ----------------------------------------------------------- */

/* "FROM:TO:FACTOR", "FROM:TO" or "SIZE". False: it is not a value. */
bool parse_sizes(const char *text, uint64_t *from, uint64_t *to,
		 uint64_t *factor);
bool parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value);
bool parse_u32(const char *text, uint32_t max, uint32_t *value);
/* "2,4,8": up to @n numbers of ranks, from 2 to @max. */
bool parse_ranks(const char *text, uint32_t max, uint32_t *ranks, uint32_t n,
		 uint32_t *nranks);
bool parse_double(const char *text, double min, double max, double *value);
/* Says so, naming the option; the exit code. */
int bad_value(const struct option *longs, int option, const char *value);

/* ---- data.c ------------------------------------------------------------ */

void fill_pattern(void *data, size_t n, uint64_t seed);

/* Say what failed, with the library's sentence. */
int fail_setup(const char *what);
int fail_memory(const char *what);
int fail_wc(const struct fabrex_wc *wc, const char *what);

#endif
