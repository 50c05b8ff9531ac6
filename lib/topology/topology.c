// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Topology files: entry points, the top level of the file, and look-ups. The
 * elements are read in switches.c, hosts.c, ntbs.c and appliances.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/elements.h"
#include "topology/pcie.h"

#define TEXT_LIMIT	(64u << 20)	/* bytes of a file */

static const char *const top_known[] = {
	"fabric", "switches", "isls", "hosts", "ntbs", "appliances",
	"bindings", "link_gbps", "root_complex_gbps", "limits", NULL
};

static const char *const limits_known[] = {
	"queues", "mrs", "window_slots", "window_slot_size",
	"doorbell_stride", NULL
};

struct topology *topology_new(const char *name)
{
	struct topology *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->link_gbps = 27.0;
	t->root_complex_gbps = 27.0;
	t->limits.queues = 1024;
	t->limits.mrs = 16384;
	t->limits.window_slots = 64;
	t->limits.window_slot_size = 1u << 20;
	t->limits.doorbell_stride = 4096;
	return t;
}

static int read_limits(struct topo_parse *p, const struct topo_at *root)
{
	config_setting_t *m = config_setting_get_member(root->set, "limits");
	struct topo_limits *l = &p->t->limits;
	struct topo_at at = { m, "limits", NULL };

	if (!m)
		return 0;
	if (!config_setting_is_group(m))
		return topo_fail(p, &at, "not a group; write limits = { ... };");
	if (topo_known(p, &at, limits_known) ||
	    topo_int(p, &at, "queues", 1, 16384, &l->queues) ||
	    topo_int(p, &at, "mrs", 1, 1u << 20, &l->mrs) ||
	    topo_int(p, &at, "window_slots", 1, 4096, &l->window_slots) ||
	    topo_size(p, &at, "window_slot_size", 4096, 1ull << 30,
		      &l->window_slot_size) ||
	    topo_size(p, &at, "doorbell_stride", 4096, 65536,
		      &l->doorbell_stride))
		return -1;
	if (l->window_slots * l->window_slot_size > 1ull << 36)
		return topo_fail(p, &at,
				 "window_slots x window_slot_size exceeds 64G; make one of them smaller");
	return 0;
}

static int read_top(struct topo_parse *p, const struct topo_at *root)
{
	struct topo_at at = *root;
	const char *s = NULL;

	if (topo_known(p, root, top_known) ||
	    topo_string(p, root, "fabric", true, &s))
		return -1;
	at.what = "fabric";
	if (!*s || strlen(s) >= TOPO_NAME_LEN) {
		at.set = config_setting_get_member(root->set, "fabric");
		return topo_fail(p, &at,
				 "name \"%s\" is not valid; use 1 to %u characters",
				 s, TOPO_NAME_LEN - 1);
	}
	memcpy(p->t->name, s, strlen(s) + 1);
	if (topo_gbps(p, root, "link_gbps", &p->t->link_gbps) ||
	    topo_gbps(p, root, "root_complex_gbps", &p->t->root_complex_gbps))
		return -1;
	return read_limits(p, root);
}

static int read_all(struct topo_parse *p, config_t *cfg)
{
	struct topo_at root = { config_root_setting(cfg), NULL, NULL };

	if (read_top(p, &root) || topo_read_switches(p, &root) ||
	    topo_read_isls(p, &root) || topo_read_hosts(p, &root) ||
	    topo_read_ntbs(p, &root) || topo_read_appliances(p, &root))
		return -1;
	return topo_read_bindings(p, &root);
}

static int syntax_error(struct topo_parse *p, config_t *cfg)
{
	snprintf(p->err, p->err_len,
		 "%s:%d: %s; see fabrex-topology(5) for the syntax", p->file,
		 config_error_line(cfg), config_error_text(cfg));
	return -1;
}

/*
 * libconfig's @include would have whoever reads a fabric from somebody else
 * read any file. Line of the first one; 0: there is none.
 */
static unsigned int include_line(const char *text)
{
	unsigned int line;

	for (line = 1; ; line++) {
		text += strspn(text, " \t\r\f\v");
		if (!strncmp(text, "@include", strlen("@include")))
			return line;
		text = strchr(text, '\n');
		if (!text)
			return 0;
		text++;
	}
}

static int parse_text(struct topo_parse *p, config_t *cfg, const char *text)
{
	unsigned int line = include_line(text);

	if (line) {
		snprintf(p->err, p->err_len,
			 "%s:%u: @include reads other files, which is not done here; put everything into one file",
			 p->file, line);
		return -1;
	}
	if (!config_read_string(cfg, text))
		return syntax_error(p, cfg);
	return read_all(p, cfg);
}

struct topology *topology_parse(const char *text, const char *name, char *err,
				size_t err_len)
{
	struct topo_parse p = { .file = name, .err = err, .err_len = err_len };
	config_t cfg;
	int ret = -1;

	config_init(&cfg);
	p.t = topology_new("");
	p.names = topo_names_new();
	if (!p.t || !p.names)
		snprintf(err, err_len, "%s: out of memory; free some", name);
	else
		ret = parse_text(&p, &cfg, text);
	topo_names_free(p.names);
	config_destroy(&cfg);
	if (!ret)
		return p.t;
	topology_free(p.t);
	return NULL;
}

/* All of it, up to one byte more than there may be, and a NUL behind. */
static char *read_stream(FILE *f, size_t *n)
{
	size_t room = 1 << 16;
	char *text = malloc(room), *more;

	for (*n = 0; text; text = more) {
		*n += fread(text + *n, 1, room - *n - 1, f);
		text[*n] = 0;
		if (*n + 1 < room || *n > TEXT_LIMIT)
			break;
		room *= 2;
		more = realloc(text, room);
		if (!more)
			free(text);
	}
	if (text && ferror(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static char *read_text(const char *path, size_t *n)
{
	FILE *f = fopen(path, "re");
	char *text;
	int err;

	if (!f)
		return NULL;
	errno = 0;
	text = read_stream(f, n);
	err = errno;
	fclose(f);
	errno = err;
	return text;
}

struct topology *topology_load(const char *path, char *err, size_t err_len)
{
	struct topology *t = NULL;
	size_t n = 0;
	char *text = read_text(path, &n);

	if (!text)
		snprintf(err, err_len,
			 "%s: cannot be read: %s; check the path and its permissions",
			 path, strerror(errno));
	else if (n > strlen(text))
		snprintf(err, err_len,
			 "%s: a NUL byte is in it; give a file of text", path);
	else if (n > TEXT_LIMIT)
		snprintf(err, err_len,
			 "%s: more than %u MiB; no fabric takes so much", path,
			 TEXT_LIMIT >> 20);
	else
		t = topology_parse(text, path, err, err_len);
	free(text);
	return t;
}

bool topology_managed(const struct topology *t, const char *name, char *err,
		      size_t err_len)
{
	for (unsigned int i = 0; i < t->nhosts; i++)
		if (t->hosts[i].manager)
			return true;
	snprintf(err, err_len,
		 "%s: no host is a manager, so that nobody could compose; write manager = true; into the group of a host that may, for example { name = \"%s\"; manager = true; ... }",
		 name, t->hosts[0].name);
	return false;
}

void topology_free(struct topology *t)
{
	if (!t)
		return;
	for (unsigned int i = 0; i < t->nswitches; i++)
		free(t->switches[i].ports);
	for (unsigned int i = 0; i < t->nhosts; i++)
		free(t->hosts[i].ports);
	free(t->switches);
	free(t->isls);
	free(t->hosts);
	free(t->ntbs);
	free(t->appliances);
	free(t->endpoints);
	free(t->bindings);
	free(t);
}

unsigned int topology_find_endpoint(const struct topology *t, const char *name)
{
	for (unsigned int i = 0; i < t->nendpoints; i++) {
		if (!strcmp(t->endpoints[i].name, name))
			return i;
	}
	return TOPO_NONE;
}

unsigned int topology_find_host(const struct topology *t, const char *name)
{
	for (unsigned int i = 0; i < t->nhosts; i++) {
		if (!strcmp(t->hosts[i].name, name))
			return i;
	}
	return TOPO_NONE;
}

double topology_link_gbps(const struct topology *t, unsigned int sw)
{
	const struct topo_switch *s = &t->switches[sw];

	return t->link_gbps * pcie_rate(s->speed, s->width) / pcie_rate(16, 16);
}

const char *topology_model_name(enum topo_model model)
{
	static const char *const names[] = {
		[TOPO_DRACO] = "draco", [TOPO_PFX] = "pfx",
		[TOPO_EPF] = "epf",
	};

	return model <= TOPO_EPF ? names[model] : "?";
}

const char *topology_class_name(enum topo_class class)
{
	static const char *const names[] = {
		[TOPO_GPU] = "gpu", [TOPO_NVME] = "nvme",
		[TOPO_NIC] = "nic", [TOPO_FPGA] = "fpga",
	};

	if (class < TOPO_GPU || class > TOPO_FPGA)
		return "?";
	return names[class];
}

unsigned int topology_host_ports(const struct topology *t)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->nhosts; i++)
		n += t->hosts[i].nports;
	return n;
}

unsigned int topology_peer(const struct topology *t, unsigned int host,
			   unsigned int index)
{
	unsigned int n = index;

	for (unsigned int h = 0; h < host; h++)
		n += t->hosts[h].nports;
	return n;
}
