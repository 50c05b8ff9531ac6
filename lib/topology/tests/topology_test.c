// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Topology files: the shipped ones, defaults, and a mistake of every kind with
 * the exact message. Arguments: the files to load.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/tap.h"
#include "topology/topology.h"

static void result(int good, const char *what, const char *got)
{
	ok(good, "%s%s%s", what, good ? "" : "; got: ", good ? "" : got);
}

#define SW	"switches = ( { name = \"s\"; } );\n"
#define HOST	"hosts = ( { name = \"h\"; ports = ( \"s:1\" ); } );\n"
#define F	"fabric = \"f\";\n"
#define BOX	"appliances = ( { name = \"c\"; kind = \"cascade\";\n" \
		"uplinks = ( \"s:2\", \"s:3\" );\n" \
		"endpoints = ( { class = \"gpu\"; } ); } );\n"

#define PAIR	"switches = ( { name = \"s\"; model = \"pfx\"; }, { name = \"u\"; model = \"pfx\"; } );\n" \
		"hosts = ( { name = \"h\"; ports = ( \"s:1\", \"s:2\" ); }, { name = \"i\"; ports = ( \"s:3\", \"u:1\" ); } );\n"

/* Behind each of two ports there are two endpoints; three of them are bound. */
#define PFX_BOUND(x, y, z) \
		"switches = ( { name = \"s\"; model = \"pfx\"; } );\n" \
		"hosts = ( { name = \"h\"; slots = 1; ports = ( \"s:1\" ); },\n" \
		"{ name = \"i\"; slots = 1; ports = ( \"s:4\" ); } );\n" \
		"appliances = ( { name = \"c\"; kind = \"cascade\";\n" \
		"uplinks = ( \"s:2\", \"s:3\" ); endpoints = ( { class = \"gpu\"; count = 4; } ); } );\n" \
		"bindings = ( { endpoint = \"c.gpu0\"; port = \"" x "\"; },\n" \
		"{ endpoint = \"c.gpu1\"; port = \"" y "\"; },\n" \
		"{ endpoint = \"c.gpu2\"; port = \"" z "\"; } );\n"

struct mistake {
	const char *text, *message;
};

static const struct mistake mistakes[] = {
	{ "fabric = ;", "t:1: syntax error; see fabrex-topology(5) for the syntax" },
	{ F "  @include \"/etc/hostname\"\n",
	  "t:2: @include reads other files, which is not done here; put everything into one file" },
	{ "", "t: \"fabric\" is missing; add fabric = \"...\";" },
	{ "fabric = 5;",
	  "t:1: \"fabric\" is not a string; write fabric = \"...\";" },
	{ "fabric = \"\";",
	  "t:1: fabric: name \"\" is not valid; use 1 to 31 characters" },
	{ F "colour = 1;",
	  "t:2: unknown setting \"colour\"; remove it or correct its spelling" },
	{ F, "t: \"switches\" is missing; add switches = ( ... );" },
	{ F "switches = 5;",
	  "t:2: \"switches\" is not a list; write switches = ( ... );" },
	{ F "switches = ();",
	  "t:2: \"switches\" is empty; put at least one element into it" },
	{ F "switches = ( 5 );",
	  "t:2: switch: element 1 is not a group; write { ... }" },
	{ F "switches = ( { ports = 4; } );",
	  "t:2: switch: \"name\" is missing; add name = \"...\";" },
	{ F "switches = ( { name = \"-x\"; } );",
	  "t:2: switch: name \"-x\" is not valid; use 1 to 31 of A-Z a-z 0-9 . _ - and begin with a letter or digit" },
	{ F "switches = ( { name = \"s\"; ports = 65; } );",
	  "t:2: switch \"s\": \"ports\" is 65; choose 2 to 64" },
	{ F "switches = ( { name = \"s\"; ports = \"6\"; } );",
	  "t:2: switch \"s\": \"ports\" is not an integer; write a number from 2 to 64" },
	{ F "switches = ( { name = \"s\"; speed = 17; } );",
	  "t:2: switch \"s\": \"speed\" is 17 GT/s; choose 5, 8, 16, 32 or 64" },
	{ F "switches = ( { name = \"s\"; width = 3; } );",
	  "t:2: switch \"s\": \"width\" is 3 lanes; choose 1, 2, 4, 8 or 16" },
	{ F "switches = ( { name = \"abcdefghijklmnopqrstuvwxyz123\"; ports = 10; } );",
	  "t:2: switch \"abcdefghijklmnopqrstuvwxyz123\": its port would be called \"abcdefghijklmnopqrstuvwxyz123:10\", more than 31 characters; shorten the name" },
	{ F "switches = ( { name = \"s\"; },\n{ name = \"s\"; } );",
	  "t:3: switch \"s\": the name \"s\" is already taken by the switch in line 2; choose another" },
	{ F SW, "t: \"hosts\" is missing; add hosts = ( ... );" },
	{ F SW "hosts = ( { name = \"h\"; } );",
	  "t:3: host \"h\": \"ports\" is missing; add ports = ( ... );" },
	{ F SW "hosts = ( { name = \"h\"; ports = ( \"s1\" ); } );",
	  "t:3: host \"h\": port \"s1\" is not of the form \"switch:port\"; write for example \"s:1\"" },
	{ F SW "hosts = ( { name = \"h\"; ports = ( \"x:1\" ); } );",
	  "t:3: host \"h\": port \"x:1\" is on a switch that does not exist; add it to switches or correct the name" },
	{ F SW "hosts = ( { name = \"h\"; ports = ( \"s:7\" ); } );",
	  "t:3: host \"h\": port \"s:7\": switch \"s\" has ports 1 to 6; choose one of them" },
	{ F SW "hosts = ( { name = \"h\"; ports = ( \"s:0\" ); } );",
	  "t:3: host \"h\": port \"s:0\": switch \"s\" has ports 1 to 6; choose one of them" },
	{ F SW "hosts = ( { name = \"h\"; ports = ( 5 ); } );",
	  "t:3: host \"h\": port is not a string; write \"switch:port\"" },
	{ F SW "hosts = ( { name = \"h\"; slots = 31; ports = ( \"s:1\" ); } );",
	  "t:3: host \"h\": \"slots\" is 31; choose 1 to 30" },
	{ F SW "hosts = ( { name = \"h\"; manager = 1; ports = ( \"s:1\" ); } );",
	  "t:3: host \"h\": \"manager\" is neither true nor false; write one of them" },
	{ F SW "hosts = ( { name = \"h\"; ports = ( \"s:1\", \"s:1\" ); } );",
	  "t:3: host \"h\": port \"s:1\" is already used by host \"h\"; give it another port" },
	{ F SW "hosts = ( { name = \"s\"; ports = ( \"s:1\" ); } );",
	  "t:3: host \"s\": the name \"s\" is already taken by the switch in line 2; choose another" },
	{ F "switches = ( { name = \"s\"; }, { name = \"u\"; } );\n"
	  "isls = ( { a = \"s:6\"; } );" HOST,
	  "t:3: isl: end is not a string; write \"switch:port\"" },
	{ F SW "isls = ( { a = \"s:6\"; b = \"s:5\"; } );" HOST,
	  "t:3: isl: both ends are on switch \"s\"; a link joins two switches" },
	{ F "switches = ( { name = \"s\"; }, { name = \"u\"; } );\n"
	  "isls = ( { a = \"s:1\"; b = \"u:1\"; } );\n" HOST,
	  "t:4: host \"h\": port \"s:1\" is already used by the link s:1 - u:1; give it another port" },
	{ F "switches = ( { name = \"s\"; model = \"pex\"; } );",
	  "t:2: switch \"s\": model \"pex\" is not known; choose \"draco\", \"pfx\" or \"epf\"" },
	{ F "switches = ( { name = \"s\"; model = \"pfx\"; }, { name = \"u\"; } );\n"
	  "isls = ( { a = \"s:6\"; b = \"u:6\"; } );",
	  "t:3: isl: switch \"s\" is of model \"pfx\"; only those of model \"draco\" can be linked" },
	{ F PAIR "ntbs = ( { a = \"h.0\"; b = \"j.0\"; } );",
	  "t:4: ntb: there is no host port \"j.0\"; names are <host>.<index>, counted from 0" },
	{ F PAIR "ntbs = ( { a = \"h.0\"; } );",
	  "t:4: ntb: \"b\" is missing; add b = \"...\";" },
	{ F PAIR "ntbs = ( { a = \"h.0\"; b = \"h.1\"; } );",
	  "t:4: ntb: both ends are ports of host \"h\"; a bridge joins two hosts" },
	{ F PAIR "ntbs = ( { a = \"h.0\"; b = \"i.0\"; },\n"
	  "{ a = \"i.0\"; b = \"h.1\"; } );",
	  "t:5: ntb: port \"i.0\" has a bridge already; a port has one at most" },
	{ F PAIR "ntbs = ( { a = \"h.0\"; b = \"i.0\"; window = \"2M\"; } );",
	  "t:4: ntb: \"window\" is \"2M\"; choose a power of two from 4M to 1G" },
	{ F PAIR "ntbs = ( { a = \"h.0\"; b = \"i.1\"; } );",
	  "t:4: ntb: its ends are on two switches; a bridge joins ports of one" },
	{ F SW "hosts = ( { name = \"h\"; ports = ( \"s:1\" ); },\n"
	  "{ name = \"i\"; ports = ( \"s:2\" ); } );\n"
	  "ntbs = ( { a = \"h.0\"; b = \"i.0\"; } );",
	  "t:5: ntb: port \"h.0\" is on switch \"s\" of model \"draco\", which joins all its host ports by itself; give the switch another model" },
	{ F "switches = ( { name = \"s\"; model = \"epf\"; } );\n" HOST,
	  "t: port \"h.0\" is on switch \"s\" of model \"epf\" and has no bridge; add one to ntbs" },
	{ F SW HOST "appliances = ( { name = \"c\"; kind = \"round\"; } );",
	  "t:4: appliance \"c\": kind \"round\" is not known; choose \"cascade\" or \"flat\"" },
	{ F SW HOST "appliances = ( { name = \"c\"; kind = \"flat\";"
	  " uplinks = ( \"s:2\", \"s:3\" ); } );",
	  "t:4: appliance \"c\": 2 uplinks; kind \"flat\" has 4, list as many ports" },
	{ F SW HOST "appliances = ( { name = \"c\"; kind = \"cascade\";\n"
	  "uplinks = ( \"s:2\", \"s:1\" ); } );",
	  "t:5: appliance \"c\": uplink \"s:1\" is already used by host \"h\"; give it another port" },
	{ F SW HOST "appliances = ( { name = \"c\"; kind = \"cascade\";\n"
	  "uplinks = ( \"s:2\", \"s:3\" );\n"
	  "endpoints = ( { class = \"cat\"; } ); } );",
	  "t:6: appliance \"c\": endpoint class \"cat\" is not known; choose \"gpu\", \"nvme\", \"nic\" or \"fpga\"" },
	{ F SW HOST "appliances = ( { name = \"c\"; kind = \"cascade\";\n"
	  "uplinks = ( \"s:2\", \"s:3\" );\n"
	  "endpoints = ( { class = \"gpu\"; vram = \"3M\"; } ); } );",
	  "t:6: appliance \"c\": \"vram\" is \"3M\"; choose a power of two from 4K to 64G" },
	{ F SW HOST "appliances = ( { name = \"c\"; kind = \"cascade\";\n"
	  "uplinks = ( \"s:2\", \"s:3\" );\n"
	  "endpoints = ( { class = \"gpu\"; vram = \"64 MB\"; } ); } );",
	  "t:6: appliance \"c\": \"vram\" is \"64 MB\"; write digits and K, M or G, such as \"64M\"" },
	{ F SW HOST "appliances = ( { name = \"c\"; kind = \"cascade\";\n"
	  "uplinks = ( \"s:2\", \"s:3\" );\n"
	  "endpoints = ( { class = \"gpu\"; count = 200; },\n"
	  "{ class = \"nic\"; count = 57; } ); } );",
	  "t:7: appliance \"c\": more than 256 endpoints in one appliance; move some to another" },
	{ F SW HOST "appliances = ( { name = \"c\"; kind = \"cascade\";\n"
	  "uplinks = ( \"s:2\", \"s:3\" ); mesh = { kind = \"xgmi\"; };\n"
	  "endpoints = ( { class = \"gpu\"; } ); } );",
	  "t:5: appliance \"c\": \"gbps\" of the mesh is missing; add gbps = 48.0;" },
	{ F SW HOST "limits = { queues = 0; };",
	  "t:4: limits: \"queues\" is 0; choose 1 to 16384" },
	{ F SW HOST "limits = { window_slots = 4096; window_slot_size = \"32M\"; };",
	  "t:4: limits: window_slots x window_slot_size exceeds 64G; make one of them smaller" },
	{ F SW HOST "link_gbps = -1;",
	  "t:4: \"link_gbps\" is -1; choose GB/s above 0 and up to 100000" },
	{ F SW HOST BOX "bindings = ( { endpoint = \"c.gpu1\"; port = \"h.0\"; } );",
	  "t:7: binding \"c.gpu1\": there is no such endpoint; names are <appliance>.<class><index>" },
	{ F SW HOST BOX "bindings = ( { endpoint = \"c.gpu0\"; port = \"h.1\"; } );",
	  "t:7: binding \"c.gpu0\": there is no host port \"h.1\"; names are <host>.<index>, counted from 0" },
	{ F SW HOST BOX "bindings = ( { endpoint = \"c.gpu0\"; port = \"h.0\"; },\n"
	  "{ endpoint = \"c.gpu0\"; port = \"h.0\"; } );",
	  "t:8: binding \"c.gpu0\": it is already bound to \"h.0\"; remove one of the two" },
	{ F "switches = ( { name = \"s\"; }, { name = \"u\"; } );\n"
	  "hosts = ( { name = \"h\"; ports = ( \"u:1\" ); } );\n" BOX
	  "bindings = ( { endpoint = \"c.gpu0\"; port = \"h.0\"; } );",
	  "t:7: binding \"c.gpu0\": no path from its uplink to port \"h.0\"; add an inter-switch link or bind to another port" },
	{ F SW "hosts = ( { name = \"h\"; slots = 1; ports = ( \"s:1\" ); } );\n"
	  "appliances = ( { name = \"c\"; kind = \"cascade\";\n"
	  "uplinks = ( \"s:2\", \"s:3\" );\n"
	  "endpoints = ( { class = \"gpu\"; count = 2; } ); } );\n"
	  "bindings = ( { endpoint = \"c.gpu0\"; port = \"h.0\"; },\n"
	  "{ endpoint = \"c.gpu1\"; port = \"h.0\"; } );",
	  "t:8: binding \"c.gpu1\": port \"h.0\" has only 1 slots; raise slots of host \"h\" or bind to another port" },
	{ F PFX_BOUND("h.0", "i.0", "h.0"),
	  "t:8: binding \"c.gpu1\": \"c.gpu0\", behind the same switch port, is bound to \"h.0\"; bind both to one, a PFX binds ports as a whole" },
	{ F PFX_BOUND("h.0", "h.0", "h.0"),
	  "t:9: binding \"c.gpu2\": port \"h.0\" has only 1 slots; raise slots of host \"h\" or bind to another port" },
};

static void try_mistakes(void)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		const struct mistake *m = &mistakes[i];
		char err[512] = "";
		struct topology *t;

		t = topology_parse(m->text, "t", err, sizeof(err));
		result(!t && !strcmp(err, m->message), m->message, err);
		topology_free(t);
	}
}

static void try_file(const char *path, const char *message)
{
	char err[512] = "";
	struct topology *t = topology_load(path, err, sizeof(err));

	result(!t && !strcmp(err, message), message, err);
	topology_free(t);
}

/* 64 MiB and a byte of blanks. */
static void try_large(void)
{
	const char *path = "/tmp/topology-large.topo";
	char blanks[4096], message[128];
	FILE *f = fopen(path, "w");
	int i;

	memset(blanks, ' ', sizeof(blanks));
	for (i = 0; f && i < (64 << 20) / (int)sizeof(blanks); i++)
		fwrite(blanks, 1, sizeof(blanks), f);
	if (!f || fputc(' ', f) < 0 || fclose(f))
		perror(path);
	snprintf(message, sizeof(message),
		 "%s: more than 64 MiB; no fabric takes so much", path);
	try_file(path, message);
	unlink(path);
}

static void try_files(void)
{
	try_file("/nonexistent.topo",
		 "/nonexistent.topo: cannot be read: No such file or directory; check the path and its permissions");
	try_file("/dev", "/dev: cannot be read: Is a directory; check the path and its permissions");
	try_file("/dev/null", "/dev/null: \"fabric\" is missing; add fabric = \"...\";");
	try_file("/dev/zero", "/dev/zero: a NUL byte is in it; give a file of text");
}

static void try_defaults(void)
{
	char err[512] = "";
	struct topology *t = topology_parse(F SW HOST BOX, "t", err,
					    sizeof(err));
	int ok = t && t->switches[0].nports == 6 &&
		 t->switches[0].speed == 16 && t->switches[0].width == 16 &&
		 t->hosts[0].slots == 16 && !t->hosts[0].manager &&
		 t->hosts[0].p2p_root &&
		 t->limits.queues == 1024 && t->limits.mrs == 16384 &&
		 t->limits.window_slots == 64 &&
		 t->limits.window_slot_size == 1 << 20 &&
		 t->endpoints[0].size == 64 << 20 && t->link_gbps == 27.0;

	result(ok, "defaults", err);
	topology_free(t);
}

/* The default is no, and nobody composes where all have left it at that. */
static void try_managers(void)
{
	static const char wanted[] =
		"t: no host is a manager, so that nobody could compose; write manager = true; into the group of a host that may, for example { name = \"h\"; manager = true; ... }";
	char err[512] = "";
	struct topology *t = topology_parse(F SW HOST BOX, "t", err,
					    sizeof(err));

	result(t && !topology_managed(t, "t", err, sizeof(err)) &&
	       !strcmp(err, wanted), wanted, err);
	if (t)
		t->hosts[0].manager = true;
	result(t && topology_managed(t, "t", err, sizeof(err)),
	       "one manager is enough", err);
	topology_free(t);
}

static void try_uplinks(void)
{
	static const char text[] = F "switches = ( { name = \"s\"; } );\n" HOST
		"appliances = ( { name = \"c\"; kind = \"flat\";\n"
		"uplinks = ( \"s:2\", \"s:3\", \"s:4\", \"s:5\" );\n"
		"endpoints = ( { class = \"gpu\"; count = 8; },\n"
		"{ class = \"nvme\"; }, { class = \"gpu\"; count = 8; } ); } );";
	char err[512] = "";
	struct topology *t = topology_parse(text, "t", err, sizeof(err));
	int ok = t && t->nendpoints == 17 &&
		 !strcmp(t->endpoints[9].name, "c.gpu8") &&
		 !strcmp(t->endpoints[8].name, "c.nvme0") &&
		 t->endpoints[3].uplink == 0 && t->endpoints[4].uplink == 1 &&
		 t->endpoints[8].uplink == 0 && t->endpoints[16].uplink == 3 &&
		 t->endpoints[16].number == 16;

	result(ok, "endpoints are shared out over the uplinks by class", err);
	topology_free(t);
}

/* Written, read, written: the same text both times. */
static void try_write(const struct topology *t, const char *name)
{
	char *first = NULL, *second = NULL, err[512] = "", what[256];
	size_t len;
	FILE *f = open_memstream(&first, &len);
	int ok = f && !topology_write(t, f, err, sizeof(err));
	struct topology *back;

	if (f)
		fclose(f);
	back = ok ? topology_parse(first, "t", err, sizeof(err)) : NULL;
	f = open_memstream(&second, &len);
	ok = back && f && !topology_write(back, f, err, sizeof(err)) &&
	     back->nendpoints == t->nendpoints &&
	     back->nbindings == t->nbindings && back->nisls == t->nisls &&
	     back->nntbs == t->nntbs &&
	     back->link_gbps == t->link_gbps &&
	     (!t->nendpoints ||
	      !memcmp(back->endpoints, t->endpoints,
		      t->nendpoints * sizeof(*t->endpoints))) &&
	     (!t->nbindings ||
	      !memcmp(back->bindings, t->bindings,
		      t->nbindings * sizeof(*t->bindings)));
	if (f)
		fclose(f);
	snprintf(what, sizeof(what), "%s: reads back as it was", name);
	result(ok && !strcmp(first, second), what, *err ? err : first);
	topology_free(back);
	free(first);
	free(second);
}

static void try_odd_values(void)
{
	static const char text[] =
		"fabric = \"a \\\"b\\\\ \\x01c\"; link_gbps = 13.123456789;\n"
		"limits = { queues = 7; window_slot_size = \"1G\"; window_slots = 2; };\n"
		"switches = ( { name = \"s\"; ports = 9; speed = 32; width = 8; }, { name = \"t\"; } );\n"
		"isls = ( { a = \"s:9\"; b = \"t:6\"; } );\n"
		"hosts = ( { name = \"h\"; manager = false; p2p_root = false; slots = 3; ports = ( \"s:1\", \"t:1\" ); } );\n"
		"appliances = ( { name = \"c\"; kind = \"flat\"; uplinks = ( \"s:3\", \"t:2\", \"s:2\", \"t:3\" );\n"
		"  mesh = { kind = \"nvlink\"; gbps = 1.5; };\n"
		"  endpoints = ( { class = \"gpu\"; count = 3; vram = \"4K\"; }, { class = \"nvme\"; },\n"
		"    { class = \"gpu\"; vram = \"64G\"; } ); } );\n"
		"bindings = ( { endpoint = \"c.gpu3\"; port = \"h.1\"; } );\n";
	char err[512] = "";
	struct topology *t = topology_parse(text, "t", err, sizeof(err));

	result(t != NULL, "odd values", err);
	if (t)
		try_write(t, "odd values");
	topology_free(t);
}

static void try_ntbs(void)
{
	static const char text[] = F PAIR
		"ntbs = ( { a = \"i.0\"; b = \"h.1\"; window = \"8M\"; } );\n";
	char err[512] = "";
	struct topology *t = topology_parse(text, "t", err, sizeof(err));
	struct topo_host_port other = { 9, 9 };
	const struct topo_ntb *n = t ? topology_find_ntb(t, 0, 1, &other) :
				       NULL;

	result(n && n->window == 8 << 20 && other.host == 1 && !other.port &&
	       t->switches[0].model == TOPO_PFX, "bridge of a port", err);
	result(t && !topology_find_ntb(t, 0, 0, &other),
	       "a port without a bridge", err);
	if (t)
		try_write(t, "bridges");
	topology_free(t);
}

struct change {
	void (*change)(struct topology *t);
	const char *message;
};

static void no_uplink(struct topology *t)
{
	t->appliances[0].nuplinks = 1;
}

static void other_uplink(struct topology *t)
{
	t->endpoints[0].uplink = 1;
}

static void other_name(struct topology *t)
{
	t->endpoints[0].name[0] = 'x';
}

static void other_size(struct topology *t)
{
	t->endpoints[0].size = 5000;
}

static void gen1(struct topology *t)
{
	t->switches[0].speed = 2;
}

/* What the format cannot say is refused, with nothing written. */
static void try_unsayable(void)
{
	static const struct change changes[] = {
		{ no_uplink, "appliance \"c\": 1 of its 2 uplinks are there; connect the others, a topology file lists all" },
		{ other_uplink, "endpoint \"c.gpu0\": it sits behind uplink 1; topology files share a class out evenly, which puts it behind 0" },
		{ other_name, "endpoint \"x.gpu0\": a topology file would call it \"c.gpu0\"; rename it there" },
		{ other_size, "endpoint \"c.gpu0\": a BAR of 5000 bytes; topology files know powers of two from 4K to 64G" },
		{ gen1, "switch \"s\": a speed of 2 GT/s; topology files know 5, 8, 16, 32 and 64" },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		char err[512] = "", *text = NULL;
		struct topology *t = topology_parse(F SW HOST BOX, "t", err,
						    sizeof(err));
		size_t len = 0;
		FILE *f = open_memstream(&text, &len);
		int r;

		changes[i].change(t);
		r = topology_write(t, f, err, sizeof(err));
		fclose(f);
		result(r < 0 && !len && !strcmp(err, changes[i].message),
		       changes[i].message, err);
		topology_free(t);
		free(text);
	}
}

static void try_rates(void)
{
	static const char text[] = F
		"switches = ( { name = \"s\"; },\n"
		"{ name = \"u\"; speed = 32; width = 8; },\n"
		"{ name = \"v\"; speed = 8; width = 4; } );\n"
		"link_gbps = 20.0;\n" HOST;
	static const double want[] = { 20.0, 20.0, 2.5 };
	char err[512] = "";
	struct topology *t = topology_parse(text, "t", err, sizeof(err));

	for (unsigned int i = 0; i < 3; i++)
		result(t && fabs(topology_link_gbps(t, i) - want[i]) < 1e-9,
		       "rate of a switch's links, by speed and width", err);
	topology_free(t);
}

int main(int argc, char **argv)
{
	printf("TAP version 13\n");
	for (int i = 1; i < argc; i++) {
		char err[512] = "";
		struct topology *t = topology_load(argv[i], err, sizeof(err));

		result(t && topology_managed(t, argv[i], err, sizeof(err)),
		       argv[i], err);
		if (t)
			try_write(t, argv[i]);
		topology_free(t);
	}
	try_mistakes();
	try_files();
	try_large();
	try_defaults();
	try_managers();
	try_uplinks();
	try_odd_values();
	try_ntbs();
	try_unsayable();
	try_rates();
	return tap_done();
}
