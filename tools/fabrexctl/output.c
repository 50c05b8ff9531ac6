// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that appear whole or not at all: written under another name in the
 * same directory, then renamed. What is no regular file (a terminal, a pipe,
 * /dev/null) is written to as it is.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"

static int complain(struct ctl *c, const struct output *o, const char *what)
{
	int code = errno ? errno : EIO;

	return err_set(&c->err, code, o->path, "cannot write %s: %s: %s; "
		       "nothing was changed", o->path, what, strerror(code));
}

int outputs_add(struct ctl *c, struct outputs *o, const char *path, char *text,
		size_t len)
{
	struct output *at;
	size_t i;

	o->v = xrealloc(o->v, (o->n + 1) * sizeof(*o->v));
	at = &o->v[o->n++];
	*at = (struct output){ .path = xstrdup(path), .text = text,
			       .len = len };
	if (!*path)
		return err_usage(&c->err, NULL, "the name of a file to write "
				 "is empty");
	for (i = 0; i + 1 < o->n; i++)
		if (!strcmp(o->v[i].path, path))
			return err_usage(&c->err, path, "%s is to be written "
					 "twice; name two files", path);
	return 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Permissions as the file has them, or as a new one would. */
static mode_t wanted_mode(const struct stat *st)
{
	mode_t mask;

	if (st)
		return st->st_mode & 07777;
	mask = umask(0);
	umask(mask);
	return 0666 & ~mask;
}

static int write_temporary(struct ctl *c, struct output *o,
			   const struct stat *st)
{
	char *name = xasprintf("%s.XXXXXX", o->target);
	int fd = mkostemp(name, O_CLOEXEC), r = 0;

	if (fd < 0) {
		r = complain(c, o, "no new file beside it");
		free(name);
		return r;
	}
	o->temporary = name;
	if (write_all(fd, o->text, o->len) || fchmod(fd, wanted_mode(st)))
		r = complain(c, o, "write");
	if (close(fd) && !r)
		r = complain(c, o, "close");
	return r;
}

static int prepare(struct ctl *c, struct output *o)
{
	struct stat st;
	bool there;

	o->target = realpath(o->path, NULL);
	if (!o->target)
		o->target = xstrdup(o->path);
	there = !stat(o->target, &st);
	if (there && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return complain(c, o, "open");
	}
	if (there && !S_ISREG(st.st_mode))
		return 0;
	if (there && access(o->target, W_OK))
		return complain(c, o, "open");
	return write_temporary(c, o, there ? &st : NULL);
}

static int commit_one(struct ctl *c, struct output *o)
{
	int fd, r = 0;

	if (o->temporary) {
		if (rename(o->temporary, o->target))
			return complain(c, o, "rename");
		free(o->temporary);
		o->temporary = NULL;
		return 0;
	}
	fd = open(o->target, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return complain(c, o, "open");
	if (write_all(fd, o->text, o->len))
		r = complain(c, o, "write");
	close(fd);
	return r;
}

int outputs_commit(struct ctl *c, struct outputs *o)
{
	size_t i;
	int r = 0;

	for (i = 0; i < o->n && !r; i++)
		r = prepare(c, &o->v[i]);
	for (i = 0; i < o->n && !r; i++)
		r = commit_one(c, &o->v[i]);
	return r;
}

void outputs_free(struct outputs *o)
{
	size_t i;

	for (i = 0; i < o->n; i++) {
		struct output *at = &o->v[i];

		if (at->temporary)
			unlink(at->temporary);
		free(at->temporary);
		free(at->target);
		free(at->path);
		free(at->text);
	}
	free(o->v);
	memset(o, 0, sizeof(*o));
}
