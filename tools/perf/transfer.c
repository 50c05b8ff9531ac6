// SPDX-License-Identifier: GPL-2.0-only
/*
 * transfer: a pattern or a file is written once into the peer's registered
 * memory, and both sides say the checksum that their processor computes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perf.h"

#define CHUNK	(1u << 20)

static int file_size(const char *path, uint64_t *size)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size) {
		fprintf(stderr, "fabrex-perf: %s: not a readable file with contents: %s\n",
			path, strerror(errno));
		return EXIT_USAGE;
	}
	*size = (uint64_t)st.st_size;
	return 0;
}

static int read_file(const char *path, uint8_t *to, uint64_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t got = 0;
	ssize_t n = 0;

	while (fd >= 0 && got < size) {
		n = read(fd, to + got, size - got);
		if (n <= 0)
			break;
		got += (uint64_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (got == size)
		return 0;
	fprintf(stderr, "fabrex-perf: %s: %s\n", path,
		fd < 0 || n < 0 ? strerror(errno) : "file became shorter");
	return EXIT_USAGE;
}

static int load_file(struct session *s, const char *path, uint64_t size)
{
	uint8_t *copy = malloc(size);
	int ret;

	if (!copy) {
		fprintf(stderr, "fabrex-perf: out of memory\n");
		return EXIT_SETUP;
	}
	ret = read_file(path, copy, size);
	if (!ret && memory_write(&s->memory, 0, copy, size))
		ret = fail_memory("filling memory");
	free(copy);
	return ret;
}

/* Chunks in order, `depth' of them outstanding. */
static int write_all(const struct options *o, struct session *s,
		     struct fabrex_queue *q, struct report *progress)
{
	uint64_t posted = 0, done = 0, chunks = (s->region + CHUNK - 1) / CHUNK;
	struct fabrex_wc wc;
	int n;

	while (done < chunks && !interrupted) {
		if (posted < chunks && posted - done < o->depth) {
			uint64_t at = posted * CHUNK, left = s->region - at;

			if (fabrex_post_write(q, s->memory.mr, at, &s->remote, at,
					      left < CHUNK ? left : CHUNK,
					      o->check ? FABREX_SQE_CHECK : 0,
					      at))
				return fail_setup("transfer");
			posted++;
			continue;
		}
		if (o->events)
			fabrex_wait(q, 100);
		n = fabrex_poll(q, &wc, 1);
		if (n < 0)
			return fail_setup("transfer");
		if (n && wc.status)
			return fail_wc(&wc, "transfer");
		done += (uint64_t)n;
		if (!(done % 16))
			report_progress(progress, s->region,
					(double)done / (double)chunks);
	}
	return interrupted ? EXIT_INTERRUPTED : 0;
}

static void say(const struct options *o, struct session *s,
		double seconds, uint32_t mine, uint32_t theirs)
{
	double mb = (double)s->region / 1e6;
	char size[SIZE_STR];

	if (o->json) {
		printf("{\"test\": \"transfer\", \"port\": ");
		json_string(stdout, s->attr.name);
		printf(", \"peer\": ");
		json_string(stdout, s->peer.name);
		printf(", \"emulated\": %s, \"bytes\": %llu, "
		       "\"seconds\": %.6f, \"mb_per_s\": %.3f, "
		       "\"crc32c_here\": \"%08x\", \"crc32c_peer\": \"%08x\", "
		       "\"equal\": %s",
		       s->attr.emulated ? "true" : "false",
		       (unsigned long long)s->region, seconds, mb / seconds,
		       mine, theirs, mine == theirs ? "true" : "false");
		report_moved(o, s);
		printf("}\n");
		return;
	}
	printf("%s bytes written from %s to %s%s in %.3f s, %.1f MB/s\n",
	       size_str(s->region, size), s->attr.name, s->peer.name,
	       s->attr.emulated ? " (emulated)" : "", seconds, mb / seconds);
	printf("crc32c here %08x, at the peer %08x: %s\n", mine, theirs,
	       mine == theirs ? "equal" : "DIFFERENT");
	report_moved(o, s);
}

static int transfer(const struct options *o, const struct test *test,
		    struct session *s)
{
	struct fabrex_queue_attr attr = {
		.sq_entries = FABREX_SQ_MIN,
		.flags = o->events ? FABREX_QUEUE_EVENTFD : 0,
	};
	struct report progress = { .o = o, .test = test, .s = s };
	struct fabrex_queue *q;
	uint64_t begin, theirs = 0;
	double seconds;
	uint32_t mine;
	int ret;

	while (attr.sq_entries < o->depth)
		attr.sq_entries <<= 1;
	if (fabrex_queue_create(s->port, &attr, sizeof(attr), &q))
		return fail_setup("cannot create a queue");
	if (memory_crc(&s->memory, 0, s->region, &mine))
		return fail_memory("transfer");
	begin = now_ns();
	ret = write_all(o, s, q, &progress);
	seconds = (double)(now_ns() - begin) / 1e9;
	report_progress_clear(&progress);
	if (!ret)
		ret = session_ask(s, MSG_SUM, 0, s->region, &theirs);
	if (ret)
		return ret;
	say(o, s, seconds, mine, (uint32_t)theirs);
	return mine == theirs ? 0 : EXIT_MISMATCH;
}

int run_transfer(const struct options *o, const struct test *test)
{
	uint64_t size = o->size_to;
	struct session s;
	int ret = 0;

	if (o->file)
		ret = file_size(o->file, &size);
	if (!ret)
		ret = session_open(&s, o, test, size);
	if (ret)
		return ret;
	if (o->file)
		ret = load_file(&s, o->file, size);
	else if (memory_fill(&s.memory, 0, size, now_ns()))
		ret = fail_memory("filling memory");
	if (!ret)
		ret = transfer(o, test, &s);
	session_close(&s);
	return ret;
}
