// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state file: bindings and generations, one line each, replaced as a
 * whole; without one, the bindings of the topology. Called by emu.c and
 * binding.c; all but binding_save_soon() run in the loop's thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binding.h"
#include "log.h"
#include "port.h"

#define MAGIC_LINE	"draco-emu-state 1"

static struct port *port_called(struct fabric *f, const char *name)
{
	for (unsigned int i = 0; i < f->nports; i++) {
		if (!strcmp(f->ports[i]->name, name))
			return f->ports[i];
	}
	return NULL;
}

/* ---- Reading ---- */

static int bad(const char *path, unsigned int line, const char *why)
{
	log_error("%s:%u: %s; move the file away to start with the topology's bindings",
		  path, line, why);
	return -EINVAL;
}

static int read_generation(struct fabric *f, const char *args)
{
	char name[DRACO_NAME_LEN];
	struct port *p;
	unsigned int n;

	if (sscanf(args, "%31s %u", name, &n) != 2)
		return -EINVAL;
	p = port_called(f, name);
	if (p) {
		atomic_store(&p->generation, n);
		f->objects[p->link->id - 1].generation = n;
	}
	return 0;
}

static int read_binding(struct fabric *f, const char *args)
{
	char ep_name[DRACO_NAME_LEN], port_name[DRACO_NAME_LEN];
	unsigned int slot, ep;
	struct port *p;

	if (sscanf(args, "%31s %31s %u", ep_name, port_name, &slot) != 3)
		return -EINVAL;
	ep = topology_find_endpoint(f->topo, ep_name);
	p = port_called(f, port_name);
	if (ep == TOPO_NONE || !p)
		log_error("state: binding of %s to %s is forgotten: the topology has no such %s",
			  ep_name, port_name, p ? "endpoint" : "port");
	else if (binding_restore(f, ep, p, slot))
		log_error("state: binding of %s to %s is forgotten: no slot is left",
			  ep_name, port_name);
	return 0;
}

static int read_line(struct fabric *f, char *line)
{
	line[strcspn(line, "\n")] = 0;
	if (!strncmp(line, "generation ", 11))
		return read_generation(f, line + 11);
	if (!strncmp(line, "binding ", 8))
		return read_binding(f, line + 8);
	return -EINVAL;
}

static int read_file(struct fabric *f, FILE *in, const char *path)
{
	char line[256];
	unsigned int n = 1;

	if (!fgets(line, sizeof(line), in) ||
	    strcmp(line, MAGIC_LINE "\n"))
		return bad(path, 1, "not a state file of this version");
	while (fgets(line, sizeof(line), in)) {
		n++;
		if (!strchr(line, '\n') || read_line(f, line))
			return bad(path, n, "line is damaged");
	}
	return ferror(in) ? bad(path, n, "cannot be read") : 0;
}

static int state_load(struct fabric *f, const char *path)
{
	FILE *in = fopen(path, "re");
	int err;

	if (!in && errno == ENOENT)
		return -ENOENT;
	if (!in) {
		err = -errno;
		log_error("%s: cannot be read: %s; check its permissions",
			  path, strerror(-err));
		return err;
	}
	err = read_file(f, in, path);
	fclose(in);
	return err;
}

/* ---- Writing ---- */

static void write_lines(struct fabric *f, FILE *out)
{
	fprintf(out, MAGIC_LINE "\n");
	for (unsigned int i = 0; i < f->nports; i++) {
		struct port *p = f->ports[i];

		if (atomic_load(&p->generation))
			fprintf(out, "generation %s %u\n", p->name,
				atomic_load(&p->generation));
	}
	for (unsigned int i = 0; i < f->bindings->n; i++) {
		struct binding *b = &f->bindings->list[i];

		if (b->port)
			fprintf(out, "binding %s %s %u\n",
				f->topo->endpoints[i].name, b->port->name,
				b->slot);
	}
}

static int write_new(struct fabric *f, const char *path)
{
	FILE *out = fopen(path, "we");
	int err = 0;

	if (!out)
		return -errno;
	write_lines(f, out);
	if (fflush(out) || fsync(fileno(out)))
		err = -errno;
	if (fclose(out) && !err)
		err = -errno;
	return err;
}

int state_save(struct fabric *f, const char *path)
{
	char *tmp = NULL;
	int err;

	if (asprintf(&tmp, "%s.new", path) < 0)
		return -ENOMEM;
	err = write_new(f, tmp);
	if (!err && rename(tmp, path))
		err = -errno;
	if (err) {
		log_error("%s: bindings not saved: %s; they last until the emulator ends",
			  path, strerror(-err));
		unlink(tmp);
	}
	free(tmp);
	return err;
}

/* ---- When ---- */

static void save_now(void *arg)
{
	struct fabric *f = arg;

	if (!f->bindings || !f->bindings->state_file)
		return;
	atomic_store(&f->bindings->save_due, false);
	state_save(f, f->bindings->state_file);
}

void binding_save_soon(struct fabric *f)
{
	if (f->bindings && f->bindings->state_file &&
	    !atomic_exchange(&f->bindings->save_due, true))
		loop_defer(save_now, f);
}

static int load_topology(struct fabric *f)
{
	for (unsigned int i = 0; i < f->topo->nbindings; i++) {
		const struct topo_binding *tb = &f->topo->bindings[i];
		struct port *p = NULL;

		for (unsigned int k = 0; k < f->nports; k++) {
			if (f->ports[k]->host == tb->host &&
			    f->ports[k]->index == tb->port)
				p = f->ports[k];
		}
		if (p && binding_restore(f, tb->endpoint, p, 0))
			return -ENOSPC;
	}
	return 0;
}

int binding_load(struct fabric *f)
{
	const char *path = f->bindings->state_file;
	int err = path ? state_load(f, path) : -ENOENT;

	return err == -ENOENT ? load_topology(f) : err;
}
