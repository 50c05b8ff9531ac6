// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holders of a PCI device. First what the device consists of is collected
 * from sysfs, then /proc is searched for anything that uses a part of it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "ctl.h"
#include "holders.h"
#include "json.h"
#include "table.h"
#include "util.h"

#define MAX_DEPTH 8

const struct holder_roots system_roots = { "/proc", "/sys" };

/* A device node that belongs to the device. */
struct node {
	dev_t dev;
	bool block;
	char name[64];		/* below /dev */
};

/* What the device consists of. */
struct parts {
	const struct holder_roots *roots;
	const char *bdf;
	char path[512];		/* of the device below /sys/devices */
	struct node *nodes;
	size_t n;
	struct holders *out;
	char **namespaces;	/* mount namespaces seen already */
	size_t nnamespaces;
};

static void add_holder(struct holders *h, unsigned int pid, const char *comm,
		       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void add_holder(struct holders *h, unsigned int pid, const char *comm,
		       const char *fmt, ...)
{
	struct holder *o;
	va_list ap;

	if (h->n == h->cap) {
		h->cap = h->cap ? h->cap * 2 : 8;
		h->v = xrealloc(h->v, h->cap * sizeof(*h->v));
	}
	o = &h->v[h->n++];
	memset(o, 0, sizeof(*o));
	o->pid = pid;
	snprintf(o->comm, sizeof(o->comm), "%s", comm);
	va_start(ap, fmt);
	vsnprintf(o->reason, sizeof(o->reason), fmt, ap);
	va_end(ap);
}

void holders_free(struct holders *h)
{
	free(h->v);
	memset(h, 0, sizeof(*h));
}

/* DEVNAME= of a uevent file, or the name of the directory. */
static void node_name(const char *dir, char *name, size_t len)
{
	char path[600], line[256];
	FILE *f;

	snprintf(name, len, "%s", strrchr(dir, '/') + 1);
	snprintf(path, sizeof(path), "%s/uevent", dir);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "DEVNAME=", 8))
			snprintf(name, len, "%s", line + 8);
	}
	if (f)
		fclose(f);
}

/* Whether a sysfs directory is of the block subsystem. */
static bool is_block(const char *dir)
{
	char path[600], target[256];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/subsystem", dir);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return !strcmp(strrchr(target, '/') ? strrchr(target, '/') + 1 : target,
		       "block");
}

/* Note the device node of a sysfs directory, if it has one. */
static void add_node(struct parts *p, const char *dir)
{
	unsigned int major, minor;
	char path[600], line[32];
	struct node *n;

	snprintf(path, sizeof(path), "%s/dev", dir);
	if (!read_line(path, line, sizeof(line)) ||
	    sscanf(line, "%u:%u", &major, &minor) != 2)
		return;
	p->nodes = xrealloc(p->nodes, (p->n + 1) * sizeof(*p->nodes));
	n = &p->nodes[p->n++];
	n->dev = makedev(major, minor);
	n->block = is_block(dir);
	node_name(dir, n->name, sizeof(n->name));
}

/* A network interface that is up is in use. */
static void check_interface(struct parts *p, const char *dir)
{
	char path[600], line[32];

	snprintf(path, sizeof(path), "%s/flags", dir);
	if (read_line(path, line, sizeof(line)) &&
	    (strtoul(line, NULL, 0) & IFF_UP))
		add_holder(p->out, 0, "kernel",
			   "network interface %s is up",
			   strrchr(dir, '/') + 1);
}

/* dm, md and the like on top of a block device. */
static void check_stacked(struct parts *p, const char *dir)
{
	struct dirent *d;
	char path[600];
	DIR *h;

	snprintf(path, sizeof(path), "%s/holders", dir);
	h = opendir(path);
	while (h && (d = readdir(h)))
		if (d->d_name[0] != '.')
			add_holder(p->out, 0, "kernel",
				   "block device %s is part of %s",
				   strrchr(dir, '/') + 1, d->d_name);
	if (h)
		closedir(h);
}

static bool parent_is(const char *dir, const char *name)
{
	const char *end = strrchr(dir, '/');
	size_t len = strlen(name);

	return end - dir > (ssize_t)len && end[-(ssize_t)len - 1] == '/' &&
	       !strncmp(end - len, name, len);
}

/* Everything below a directory of sysfs; links lead elsewhere. */
static void walk(struct parts *p, const char *dir, int depth)
{
	struct dirent *d;
	char path[600];
	DIR *h;

	add_node(p, dir);
	if (parent_is(dir, "net"))
		check_interface(p, dir);
	check_stacked(p, dir);
	h = depth < MAX_DEPTH ? opendir(dir) : NULL;
	while (h && (d = readdir(h))) {
		struct stat st;

		if (d->d_name[0] == '.' || !strcmp(d->d_name, "holders") ||
		    !strcmp(d->d_name, "slaves") ||
		    (size_t)snprintf(path, sizeof(path), "%s/%s", dir,
				     d->d_name) >= sizeof(path))
			continue;
		if (d->d_type == DT_UNKNOWN && lstat(path, &st) == 0 &&
		    S_ISDIR(st.st_mode))
			d->d_type = DT_DIR;
		if (d->d_type == DT_DIR)
			walk(p, path, depth + 1);
	}
	if (h)
		closedir(h);
}

/* The VFIO group is no child of the device; its node is named after it. */
static void add_vfio_group(struct parts *p)
{
	char path[600], target[256], dir[600];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/iommu_group", p->path);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return;
	target[n] = '\0';
	snprintf(dir, sizeof(dir), "%s/class/vfio/%s", p->roots->sys,
		 strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
	add_node(p, dir);
	snprintf(dir, sizeof(dir), "%s/class/vfio/noiommu-%s", p->roots->sys,
		 strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
	add_node(p, dir);
}

static const struct node *find_node(const struct parts *p, dev_t dev,
				    bool block)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->nodes[i].dev == dev && p->nodes[i].block == block)
			return &p->nodes[i];
	return NULL;
}

/*
 * A file of the device in sysfs that gives access to it: resource0 and so on,
 * config, rom. Return: its name, or NULL.
 */
static const char *device_file(const struct parts *p, const char *path)
{
	size_t len = strlen(p->path);
	const char *name;

	if (strncmp(path, p->path, len) || path[len] != '/')
		return NULL;
	name = path + len + 1;
	if (strncmp(name, "resource", 8) && strcmp(name, "config") &&
	    strcmp(name, "rom"))
		return NULL;
	return name;
}

/* vfio device descriptors have no name; newer kernels say whose they are. */
static bool vfio_fd_is(const struct parts *p, const char *pid, const char *fd)
{
	char path[600], line[600];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/fdinfo/%s", p->roots->proc, pid,
		 fd);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strncmp(line, "vfio-device-syspath:", 20) &&
			strstr(line, p->bdf) && strlen(line) >= strlen(p->bdf) &&
			!strcmp(line + strlen(line) - strlen(p->bdf), p->bdf);
	}
	if (f)
		fclose(f);
	return found;
}

/* Why an open file holds the device; false if it does not. */
static bool fd_holds(const struct parts *p, const char *pid, const char *fd,
		     char *reason, size_t len)
{
	char path[600], target[600];
	const struct node *node;
	struct stat st;
	const char *s;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s/fd/%s", p->roots->proc, pid, fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	s = device_file(p, target);
	if (s) {
		snprintf(reason, len, "has %s of the device open", s);
		return true;
	}
	if (strstr(target, "[vfio-device]")) {
		snprintf(reason, len, "has the device open through vfio");
		return vfio_fd_is(p, pid, fd);
	}
	/* Anything else would have to be a node; stat() could hang on NFS. */
	if (!strstr(target, "/dev/") || stat(path, &st) ||
	    !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		return false;
	node = find_node(p, st.st_rdev, S_ISBLK(st.st_mode));
	if (node)
		snprintf(reason, len, "has /dev/%s open", node->name);
	return node;
}

/* What of the device the file of a mapping is; false if nothing. */
static bool map_holds(const struct parts *p, const char *file, char *reason,
		      size_t len)
{
	const char *name = device_file(p, file);
	size_t i;

	if (name) {
		snprintf(reason, len, "has %s of the device mapped", name);
		return true;
	}
	if (strncmp(file, "/dev/", 5))
		return false;
	for (i = 0; i < p->n; i++)
		if (!strcmp(file + 5, p->nodes[i].name)) {
			snprintf(reason, len, "has %s mapped", file);
			return true;
		}
	return false;
}

/* Mappings outlive the descriptor they were made through. */
static bool maps_hold(const struct parts *p, const char *pid, char *reason,
		      size_t len)
{
	char path[600], line[1024];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/maps", p->roots->proc, pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		char *file = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		found = file && map_holds(p, file, reason, len);
	}
	if (f)
		fclose(f);
	return found;
}

static void comm_of(const struct parts *p, const char *pid, char *comm,
		    size_t len)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s/comm", p->roots->proc, pid);
	if (!read_line(path, comm, len))
		snprintf(comm, len, "?");
}

static void check_process(struct parts *p, const char *pid)
{
	char path[600], reason[104], comm[16];
	bool held = false;
	struct dirent *d;
	DIR *h;

	snprintf(path, sizeof(path), "%s/%s/fd", p->roots->proc, pid);
	h = opendir(path);
	while (h && !held && (d = readdir(h)))
		held = d->d_name[0] != '.' &&
		       fd_holds(p, pid, d->d_name, reason, sizeof(reason));
	if (h)
		closedir(h);
	if (!held)
		held = maps_hold(p, pid, reason, sizeof(reason));
	if (!held)
		return;
	comm_of(p, pid, comm, sizeof(comm));
	add_holder(p->out, strtoul(pid, NULL, 10), comm, "%s", reason);
}

/* Each mount namespace once. */
static bool new_namespace(struct parts *p, const char *pid)
{
	char path[600], ns[64];
	ssize_t n;
	size_t i;

	snprintf(path, sizeof(path), "%s/%s/ns/mnt", p->roots->proc, pid);
	n = readlink(path, ns, sizeof(ns) - 1);
	if (n < 0)
		return false;
	ns[n] = '\0';
	for (i = 0; i < p->nnamespaces; i++)
		if (!strcmp(p->namespaces[i], ns))
			return false;
	p->namespaces = xrealloc(p->namespaces, (p->nnamespaces + 1) *
				 sizeof(*p->namespaces));
	p->namespaces[p->nnamespaces++] = xstrdup(ns);
	return true;
}

/* A block device that is mounted or swapped to, by number or by source. */
static const struct node *mounted_node(const struct parts *p, const char *line)
{
	unsigned int major, minor;
	const struct node *node;
	const char *source;
	size_t i;

	if (sscanf(line, "%*d %*d %u:%u", &major, &minor) != 2)
		return NULL;
	node = find_node(p, makedev(major, minor), true);
	if (node)
		return node;
	/* btrfs has device numbers of its own. */
	source = strstr(line, " - ");
	source = source ? strstr(source, " /dev/") : NULL;
	for (i = 0; source && i < p->n; i++) {
		size_t len = strlen(p->nodes[i].name);

		if (p->nodes[i].block &&
		    !strncmp(source + 6, p->nodes[i].name, len) &&
		    source[6 + len] == ' ')
			return &p->nodes[i];
	}
	return NULL;
}

static void check_mounts(struct parts *p, const char *pid)
{
	char path[600], line[1024], where[512];
	const struct node *node;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/mountinfo", p->roots->proc, pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		node = mounted_node(p, line);
		if (!node ||
		    sscanf(line, "%*d %*d %*s %*s %511s", where) != 1)
			continue;
		add_holder(p->out, 0, "kernel", "/dev/%s is mounted on %.60s",
			   node->name, where);
	}
	if (f)
		fclose(f);
}

static void check_swap(struct parts *p)
{
	char path[600], line[512];
	size_t i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/swaps", p->roots->proc);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, " \t\n")] = '\0';
		for (i = 0; i < p->n; i++)
			if (p->nodes[i].block && !strncmp(line, "/dev/", 5) &&
			    !strcmp(line + 5, p->nodes[i].name))
				add_holder(p->out, 0, "kernel",
					   "/dev/%s is used for swapping",
					   p->nodes[i].name);
	}
	if (f)
		fclose(f);
}

static bool is_number(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

static int search_proc(struct parts *p, struct err *e)
{
	DIR *h = opendir(p->roots->proc);
	struct dirent *d;
	char self[16];

	if (!h)
		return err_set(e, errno, p->roots->proc, "cannot read %s: %s",
			       p->roots->proc, strerror(errno));
	snprintf(self, sizeof(self), "%d", getpid());
	while ((d = readdir(h))) {
		if (!is_number(d->d_name))
			continue;
		if (new_namespace(p, d->d_name))
			check_mounts(p, d->d_name);
		if (strcmp(d->d_name, self) || p->roots != &system_roots)
			check_process(p, d->d_name);
	}
	closedir(h);
	check_swap(p);
	return 0;
}

int holders_find(const struct holder_roots *roots, const char *bdf,
		 struct holders *h, struct err *e)
{
	struct parts p = { .roots = roots, .bdf = bdf, .out = h };
	char link[600], *real;
	int r;

	snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", roots->sys, bdf);
	real = strchr(bdf, '/') ? NULL : realpath(link, NULL);
	if (!real)
		return err_set(e, ENODEV, bdf, "this host has no PCI device %s",
			       bdf);
	snprintf(p.path, sizeof(p.path), "%s", real);
	free(real);
	walk(&p, p.path, 0);
	add_vfio_group(&p);
	r = search_proc(&p, e);
	free(p.nodes);
	while (p.nnamespaces)
		free(p.namespaces[--p.nnamespaces]);
	free(p.namespaces);
	return r;
}

static const struct column columns[] = {
	{ "PID", "pid", F_NUMBER, false },
	{ "COMMAND", "comm", F_TEXT, false },
	{ "REASON", "reason", F_TEXT, false },
	{ NULL, NULL, F_TEXT, false }
};

static bool looks_like_bdf(const char *word)
{
	unsigned int a, b, c, d;
	int n = 0;

	return sscanf(word, "%x:%x:%x.%u%n", &a, &b, &c, &d, &n) == 4 &&
	       !word[n];
}

/* PCI name of an endpoint given by name. */
static int endpoint_bdf(struct ctl *c, const char *name, const char **bdf)
{
	const struct object *o, *host;
	const struct fport *fp;
	struct object now;
	int r = ctl_load(c);

	if (r)
		return r;
	o = model_want(c->model, name, T_BIT(T_ENDPOINT), &c->err);
	if (!o)
		return -c->err.code;
	fp = model_local(c->model, o->bound);
	if (fp && !*o->pci_name) {
		r = ctl_ask_port(c, fp->index, o->id, &now, &c->err);
		if (r)
			return r;
		o = model_put(c->model, &now);
	}
	*bdf = o->pci_name;
	if (**bdf)
		return 0;
	host = model_owner(c->model, o);
	if (host && !fp)
		return err_set(&c->err, ENODEV, name, "%s belongs to host %s; run "
			       "this command there", name, host->name);
	return err_set(&c->err, ENODEV, name, "%s is not composed to this host",
		       name);
}

static void report_holders(struct ctl *c, const char *bdf,
			   const struct holders *h)
{
	json_object *rows = json_object_new_array();
	size_t i;

	for (i = 0; i < h->n; i++) {
		json_object *o = json_object_new_object();

		rec_put(o, "pid", h->v[i].pid ?
			 json_object_new_int64(h->v[i].pid) : NULL);
		rec_str(o, "comm", h->v[i].comm);
		rec_str(o, "reason", h->v[i].reason);
		json_object_array_add(rows, o);
	}
	c->doc = json_object_new_object();
	rec_str(c->doc, "pci_name", bdf);
	rec_put(c->doc, "holders", rows);
	if (!h->n)
		fprintf(c->out, "nothing holds %s\n", bdf);
	else if (!c->json)
		table_print(c->out, rows, columns, true, c->color);
}

int cmd_holders(struct ctl *c, int argc, char **argv)
{
	struct holders h = { 0 };
	const char *bdf;
	int r = 0;

	if (argc != 1)
		return err_usage(&c->err, NULL, "holders: name one endpoint or "
				 "PCI device; see \"fabrexctl help holders\"");
	bdf = argv[0];
	if (!looks_like_bdf(bdf))
		r = endpoint_bdf(c, argv[0], &bdf);
	if (!r)
		r = holders_find(&system_roots, bdf, &h, &c->err);
	if (!r)
		report_holders(c, bdf, &h);
	holders_free(&h);
	return r;
}
