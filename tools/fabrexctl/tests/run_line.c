// SPDX-License-Identifier: GPL-2.0-only
/* Runs fabrexctl in this process. For the tests here. */
#include <stdlib.h>

#include "ctl.h"
#include "run_line.h"

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
