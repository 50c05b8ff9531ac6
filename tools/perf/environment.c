// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where and when figures were made: what has to stand beside them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "environment.h"
#include "group.h"
#include "perf.h"

/* What follows "KEY : " in a file of /proc. */
static void look_up(const char *path, const char *key, char *text, size_t n)
{
	FILE *f = fopen(path, "r");
	char line[256];
	char *colon;

	snprintf(text, n, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		colon = strchr(line, ':');
		if (!colon || strncmp(line, key, strlen(key)))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(text, n, "%s", colon + 1 + strspn(colon + 1, " \t"));
		break;
	}
	if (f)
		fclose(f);
}

void environment_read(struct environment *e)
{
	time_t now = time(NULL);
	struct utsname u;
	struct cpus cpus;
	struct tm tm;
	char kb[64];

	gmtime_r(&now, &tm);
	strftime(e->date, sizeof(e->date), "%Y-%m-%d %H:%M UTC", &tm);
	look_up("/proc/cpuinfo", "model name", e->processor,
		sizeof(e->processor));
	look_up("/proc/meminfo", "MemTotal", kb, sizeof(kb));
	snprintf(e->memory, sizeof(e->memory), "%.0f GiB",
		 strtod(kb, NULL) / 1024 / 1024);
	uname(&u);
	snprintf(e->kernel, sizeof(e->kernel), "%.40s %.60s", u.sysname,
		 u.release);
	cpus_allowed(&cpus);
	cpus_text(&cpus, e->cpus, sizeof(e->cpus));
	snprintf(e->compiler, sizeof(e->compiler), "gcc %s", __VERSION__);
	snprintf(e->library, sizeof(e->library), "libfabrex %s",
		 fabrex_version());
}

static void json_pair(FILE *f, const char *key, const char *text, bool last)
{
	json_string(f, key);
	fprintf(f, ": ");
	json_string(f, text);
	fputs(last ? "" : ", ", f);
}

void environment_json(const struct environment *e, FILE *f)
{
	fprintf(f, "\"environment\": {");
	json_pair(f, "date", e->date, false);
	json_pair(f, "processor", e->processor, false);
	json_pair(f, "processors", e->cpus, false);
	json_pair(f, "memory", e->memory, false);
	json_pair(f, "kernel", e->kernel, false);
	json_pair(f, "compiler", e->compiler, false);
	json_pair(f, "library", e->library, true);
	fprintf(f, "}");
}
