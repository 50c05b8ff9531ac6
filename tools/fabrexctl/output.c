// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that appear whole or not at all: written under another name in the
 * same directory, then renamed. What is no regular file (a terminal, a pipe,
 * /dev/null) is written to as it is, before files get their names: it is the
 * one that can still fail halfway.
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

	return err_set(&c->err, code, o->path, "cannot write %s: %s: %s",
		       o->path, what, strerror(code));
}

/* Which of them have been written when an error comes. */
static void tell_changed(struct ctl *c, const struct outputs *o)
{
	size_t i, n = 0;

	for (i = 0; i < o->n; i++)
		if (o->v[i].changed)
			err_append(&c->err, "%s %s", n++ ? "," : "; written: ",
				   o->v[i].path);
	if (!n)
		err_append(&c->err, "; nothing was changed");
}

int outputs_add(struct ctl *c, struct outputs *o, const char *path, char *text,
		size_t len)
{
	struct output *at;

	o->v = xrealloc(o->v, (o->n + 1) * sizeof(*o->v));
	at = &o->v[o->n++];
	*at = (struct output){ .path = xstrdup(path), .text = text,
			       .len = len };
	if (!*path)
		return err_usage(&c->err, NULL, "the name of the output file "
				 "is empty");
	return 0;
}

/* @begun: some of it has been written, whatever comes then. */
static int write_all(int fd, const char *text, size_t len, bool *begun)
{
	ssize_t n;

	while (len) {
		n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		*begun = true;
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
	bool begun;

	if (fd < 0) {
		r = complain(c, o, "no new file beside it");
		free(name);
		return r;
	}
	o->temporary = name;
	if (write_all(fd, o->text, o->len, &begun) || fchmod(fd, wanted_mode(st)))
		r = complain(c, o, "write");
	if (close(fd) && !r)
		r = complain(c, o, "close");
	return r;
}

/* Where a file will be that is not there yet; NULL: its directory is not. */
static char *new_target(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *parent = !slash ? xstrdup(".") : slash == path ? xstrdup("/") :
		       xasprintf("%.*s", (int)(slash - path), path);
	char *real = realpath(parent, NULL), *target = NULL;

	if (real)
		target = xasprintf("%s/%s", strcmp(real, "/") ? real : "",
				   slash ? slash + 1 : path);
	free(parent);
	free(real);
	return target;
}

/* Which file is meant, however its name is spelled. */
static int resolve(struct ctl *c, struct output *o)
{
	struct stat st;

	o->target = realpath(o->path, NULL);
	if (o->target)
		return 0;
	if (errno != ENOENT)
		return complain(c, o, "open");
	if (!lstat(o->path, &st) && S_ISLNK(st.st_mode))
		return err_set(&c->err, ENOENT, o->path, "cannot write %s: it "
			       "is a symbolic link that leads nowhere; remove "
			       "it, or make what it leads to", o->path);
	errno = ENOENT;
	o->target = new_target(o->path);
	return o->target ? 0 : complain(c, o, "open");
}

static bool same_file(const struct output *a, const struct output *b)
{
	struct stat x, y;

	return !strcmp(a->target, b->target) ||
	       (!stat(a->target, &x) && !stat(b->target, &y) &&
		x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static int resolve_all(struct ctl *c, struct outputs *o)
{
	size_t i, k;
	int r;

	for (i = 0; i < o->n; i++) {
		r = resolve(c, &o->v[i]);
		if (r)
			return r;
		for (k = 0; k < i; k++)
			if (same_file(&o->v[k], &o->v[i]))
				return err_usage(&c->err, o->v[i].path, "%s and "
						 "%s: one file is to be "
						 "written twice; name two",
						 o->v[k].path, o->v[i].path);
	}
	return 0;
}

static int prepare(struct ctl *c, struct output *o)
{
	struct stat st;
	bool there = !stat(o->target, &st);

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

static int commit_device(struct ctl *c, struct output *o)
{
	int fd = open(o->target, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return complain(c, o, "open");
	if (write_all(fd, o->text, o->len, &o->changed))
		r = complain(c, o, "write");
	if (close(fd) && !r)
		r = complain(c, o, "close");
	return r;
}

static int commit_file(struct ctl *c, struct output *o)
{
	if (rename(o->temporary, o->target))
		return complain(c, o, "rename");
	free(o->temporary);
	o->temporary = NULL;
	o->changed = true;
	return 0;
}

static int commit_all(struct ctl *c, struct outputs *o)
{
	size_t i;
	int r = resolve_all(c, o);

	for (i = 0; i < o->n && !r; i++)
		r = prepare(c, &o->v[i]);
	for (i = 0; i < o->n && !r; i++)
		if (!o->v[i].temporary)
			r = commit_device(c, &o->v[i]);
	for (i = 0; i < o->n && !r; i++)
		if (o->v[i].temporary)
			r = commit_file(c, &o->v[i]);
	return r;
}

int outputs_commit(struct ctl *c, struct outputs *o)
{
	int r = commit_all(c, o);

	if (r)
		tell_changed(c, o);
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
