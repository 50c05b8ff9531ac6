// SPDX-License-Identifier: GPL-2.0-only
/* Test points in TAP, and running fabrexctl in this process. */
#include <stdarg.h>
#include <stdlib.h>

#include "ctl.h"
#include "tap.h"

static unsigned int points, failures;

void tap_point(bool good, const char *file, int line, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	char *nl;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (nl = text; (nl = strpbrk(nl, "\n#")); nl++)
		*nl = ' ';
	points++;
	failures += !good;
	printf("%sok %u - %s\n", good ? "" : "not ", points, text);
	if (!good)
		printf("# at %s:%d\n", file, line);
	fflush(stdout);
}

int tap_done(void)
{
	printf("1..%u\n", points);
	return failures || !points;
}

#define MAX_WORDS 2048

struct run run_line(struct backend *be, const char *line)
{
	char *copy = xstrdup(line), *save, *word, *argv[MAX_WORDS];
	char name[] = "fabrexctl", nothing[] = "";
	struct run r = { 0 };
	FILE *out, *err;
	size_t n;
	int argc = 0;

	argv[argc++] = name;
	for (word = strtok_r(copy, " ", &save); word && argc < MAX_WORDS - 1;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(word, "''") ? word : nothing;
	argv[argc] = NULL;
	out = open_memstream(&r.out, &n);
	err = open_memstream(&r.err, &n);
	r.code = ctl_run(be, argc, argv, out, err);
	fclose(out);
	fclose(err);
	free(copy);
	return r;
}

void run_free(struct run *r)
{
	free(r->out);
	free(r->err);
	memset(r, 0, sizeof(*r));
}
