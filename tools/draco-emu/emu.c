// SPDX-License-Identifier: GPL-2.0-only
/*
 * Puts the emulator together: topology, model, functions, slots, monitors,
 * control socket, engine; and takes it apart. Called by main.c.
 */
#include "emu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binding.h"
#include "control.h"
#include "epf.h"
#include "fabric.h"
#include "function.h"
#include "log.h"
#include "loop.h"
#include "pfx.h"
#include "pfx_dma.h"
#include "port.h"
#include "qmp.h"
#include "slot.h"

#define WATCHDOG_MS	500

static struct emu {
	struct topology *topo;
	struct fabric fabric;
	bool has_fabric;
	struct qmp **qmps;		/* by host */
	struct control *control;
	struct loop_timer watchdog;
} emu;

static struct topology *load(const char *path)
{
	char err[512];
	struct topology *t = topology_load(path, err, sizeof(err));

	if (t && !topology_managed(t, path, err, sizeof(err))) {
		topology_free(t);
		t = NULL;
	}
	if (!t)
		fprintf(stderr, "%s\n", err);
	return t;
}

int emu_check(const struct emu_options *o)
{
	struct topology *t = load(o->topology);

	if (!t)
		return -EINVAL;
	printf("%s: fabric \"%s\"\n", o->topology, t->name);
	printf("  %u switches, %u inter-switch links\n", t->nswitches,
	       t->nisls);
	printf("  %u hosts with %u ports\n", t->nhosts,
	       topology_host_ports(t));
	printf("  %u appliances with %u endpoints, %u bound at first start\n",
	       t->nappliances, t->nendpoints, t->nbindings);
	topology_free(t);
	return 0;
}

/* Port 0 is also <run>/<host>.sock. */
static void link_first(const struct emu_options *o, const char *host)
{
	char target[64], path[512];

	snprintf(target, sizeof(target), "%s.0.sock", host);
	snprintf(path, sizeof(path), "%s/%s.sock", o->run_dir, host);
	unlink(path);
	if (symlink(target, path))
		log_error("%s: %s; use %s instead", path, strerror(errno),
			  target);
}

static int start_slots(struct port *p, const struct emu_options *o)
{
	const struct topo_host *h = &emu.topo->hosts[p->host];
	struct slots_desc d = {
		.host = h->name, .index = p->index, .run_dir = o->run_dir,
		.first = TOPO_FIRST_SLOT, .count = h->slots,
		.qmp = emu.qmps[p->host], .port = p->fn,
	};

	return slots_create(&d, &binding_slots_ops, p, &p->slots);
}

static int start_dma(struct pfx_dma *dma, const struct emu_options *o)
{
	struct function_desc d;
	char path[512];

	pfx_dma_describe(dma, &d);
	snprintf(path, sizeof(path), "%s/%s.sock", o->run_dir, dma->name);
	d.socket = path;
	return function_create(&d, &pfx_dma_function_ops, dma, &dma->fn);
}

static int start_port(struct port *p, const struct emu_options *o)
{
	const char *host = emu.topo->hosts[p->host].name;
	struct function_desc d;
	char path[512];
	int err;

	if (p->part)
		pfx_describe(p->part, &d);
	else if (p->end)
		epf_describe(p->end, &d);
	else
		port_describe(p, &d);
	snprintf(path, sizeof(path), "%s/%s.%u.sock", o->run_dir, host,
		 p->index);
	d.socket = path;
	if (p->part)
		err = function_create(&d, &pfx_function_ops, p->part, &p->fn);
	else if (p->end)
		err = function_create(&d, &epf_function_ops, p->end, &p->fn);
	else
		err = function_create(&d, &port_function_ops, p, &p->fn);
	if (!err && p->part)
		err = start_dma(p->part->dma, o);
	if (err)
		return err;
	if (!p->index)
		link_first(o, host);
	return start_slots(p, o);
}

static int start_qmps(const struct emu_options *o)
{
	char path[512];
	int err;

	emu.qmps = calloc(emu.topo->nhosts, sizeof(*emu.qmps));
	if (!emu.qmps)
		return -ENOMEM;
	for (unsigned int i = 0; i < emu.topo->nhosts; i++) {
		emu_qmp_path(o, emu.topo->hosts[i].name, path, sizeof(path));
		err = qmp_create(emu.topo->hosts[i].name, path, &emu.qmps[i]);
		if (err)
			return err;
	}
	return 0;
}

static int start_control(const struct emu_options *o)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/control.sock", o->run_dir);
	return control_create(&emu.fabric, path, &emu.control);
}

static void watch_clients(void *arg)
{
	struct fabric *f = arg;

	for (unsigned int i = 0; i < f->nports; i++) {
		function_unstick(f->ports[i]->fn);
		if (f->ports[i]->part)
			function_unstick(f->ports[i]->part->dma->fn);
	}
	loop_timer_start(&emu.watchdog, WATCHDOG_MS, watch_clients, f);
}

static int start_model(const struct emu_options *o)
{
	int err = fabric_init(&emu.fabric, emu.topo);

	if (err == -ENOMEM)
		log_error("fabric model: %s; free some memory",
			  strerror(-err));
	if (err)
		return err;
	emu.has_fabric = true;
	throttle_set(&emu.fabric, o->throttle);
	err = binding_init(&emu.fabric, o->state);
	return err ? err : binding_load(&emu.fabric);
}

int emu_start(const struct emu_options *o)
{
	int err;

	emu.topo = load(o->topology);
	if (!emu.topo)
		return -EINVAL;
	err = start_model(o);
	if (!err)
		err = start_qmps(o);
	for (unsigned int i = 0; !err && i < emu.fabric.nports; i++)
		err = start_port(emu.fabric.ports[i], o);
	if (!err)
		err = start_control(o);
	if (!err)
		watch_clients(&emu.fabric);
	/* Last: what the functions have left for it waits until now. */
	return err ? err : engine_start(&emu.fabric.engine, o->threads);
}

/*
 * Functions first: that stops the ports, whose accesses go through the slots
 * of all ports of their host.
 */
static void stop_ports(struct fabric *f)
{
	for (unsigned int i = 0; i < f->nports; i++) {
		if (f->ports[i]->part)
			function_destroy(f->ports[i]->part->dma->fn);
	}
	for (unsigned int i = 0; i < f->nports; i++) {
		if (f->ports[i]->fn)
			function_destroy(f->ports[i]->fn);
		f->ports[i]->fn = NULL;
	}
	for (unsigned int i = 0; i < f->nports; i++) {
		slots_destroy(f->ports[i]->slots);
		f->ports[i]->slots = NULL;
	}
}

void emu_stop(void)
{
	control_destroy(emu.control);
	loop_timer_stop(&emu.watchdog);
	if (emu.has_fabric) {
		/* A function that is being reset waits for the engine. */
		if (!emu.fabric.engine.threads)
			engine_start(&emu.fabric.engine, 1);
		stop_ports(&emu.fabric);
		engine_stop(&emu.fabric.engine);
		binding_exit(&emu.fabric);
	}
	for (unsigned int i = 0; emu.qmps && i < emu.topo->nhosts; i++)
		qmp_destroy(emu.qmps[i]);
	free(emu.qmps);
	if (emu.has_fabric)
		fabric_free(&emu.fabric);
	topology_free(emu.topo);
	memset(&emu, 0, sizeof(emu));
}
