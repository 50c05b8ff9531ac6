// SPDX-License-Identifier: GPL-2.0-only
/* Looking into what a command printed, and at files that it wrote. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl.h"
#include "look.h"
#include "run_line.h"

static char dir[] = "/tmp/fabrexctl-look-XXXXXX";
static bool made;

char *look_line(const char *fmt, ...)
{
	static char lines[8][4096];
	static unsigned int next;
	char *line = lines[next++ % 8];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(lines[0]), fmt, ap);
	va_end(ap);
	return line;
}

void look_refused(struct backend *be, const char *line, int code,
		  const char *says)
{
	struct run r = run_line(be, line);

	ok(r.code == code, "\"%s\" exits with %d (%d)", line, code, r.code);
	has(r.err, says);
	ok(!*r.out, "and prints nothing else");
	run_free(&r);
}

json_object *look_json(struct backend *be, const char *line)
{
	char *with = xasprintf("%s --json", line);
	struct run r = run_line(be, with);
	json_object *doc = json_tokener_parse(r.out);

	ok(!r.code && doc && !*r.err, "%s: %d %s", with, r.code,
	   r.code ? r.out : "");
	run_free(&r);
	free(with);
	return doc ? doc : json_object_new_object();
}

json_object *look_at(json_object *doc, const char *path)
{
	char *copy = xstrdup(path), *save, *word;

	for (word = strtok_r(copy, ".", &save); word && doc;
	     word = strtok_r(NULL, ".", &save)) {
		json_object *next = NULL;

		if (json_object_is_type(doc, json_type_array))
			next = json_object_array_get_idx(doc,
					strtoul(word, NULL, 10));
		else
			json_object_object_get_ex(doc, word, &next);
		doc = next;
	}
	free(copy);
	return doc;
}

const char *look_text(json_object *doc, const char *path)
{
	json_object *v = look_at(doc, path);

	return v ? json_object_get_string(v) : "";
}

double look_number(json_object *doc, const char *path)
{
	json_object *v = look_at(doc, path);

	return json_object_is_type(v, json_type_double) ||
	       json_object_is_type(v, json_type_int) ?
	       json_object_get_double(v) : NAN;
}

long look_length(json_object *doc, const char *path)
{
	json_object *v = look_at(doc, path);

	return json_object_is_type(v, json_type_array) ?
	       (long)json_object_array_length(v) : -1;
}

void look_is(json_object *doc, const char *path, double want)
{
	double got = look_number(doc, path);

	ok(fabs(got - want) <= 0.0006, "%s is %g: %g", path, want, got);
}

const char *look_dir(void)
{
	if (!made && !mkdtemp(dir)) {
		perror(dir);
		exit(1);
	}
	made = true;
	return dir;
}

static int each_name(void (*fn)(const char *name))
{
	DIR *d = opendir(look_dir());
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		n++;
		if (fn)
			fn(e->d_name);
	}
	if (d)
		closedir(d);
	return n;
}

static void remove_name(const char *name)
{
	if (unlink(look_path(name)))
		rmdir(look_path(name));
}

void look_clean(void)
{
	each_name(remove_name);
	rmdir(look_dir());
}

const char *look_path(const char *name)
{
	static char paths[8][512];
	static unsigned int next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", look_dir(), name);
	return path;
}

void look_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f)) {
		perror(path);
		exit(1);
	}
}

char *look_read(const char *path)
{
	FILE *f = fopen(path, "r"), *m;
	char *text = NULL, buf[4096];
	size_t len = 0, n;

	if (!f)
		return NULL;
	m = open_memstream(&text, &len);
	while ((n = fread(buf, 1, sizeof(buf), f)))
		fwrite(buf, 1, n, m);
	fclose(m);
	fclose(f);
	return text;
}

int look_count(void)
{
	return each_name(NULL);
}
