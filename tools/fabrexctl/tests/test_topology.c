// SPDX-License-Identifier: GPL-2.0-only
/*
 * "topology": every verb on every file of topologies/, refusals, and files that
 * are written whole or not at all. Runs in the directory with topologies/.
 */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl.h"
#include "fake.h"
#include "look.h"
#include "run_line.h"

static const struct {
	const char *path;
	int gpus;
	int elements;		/* GPUs, switches, root ports, ... */
} files[] = {
	{ "topologies/1s-1rp-std-cascade.topo", 16, 27 },
	{ "topologies/1s-2rp-split-cascade.topo", 16, 29 },
	{ "topologies/1s-2rp-std-cascade.topo", 16, 29 },
	{ "topologies/2s-2rp-split-flat.topo", 16, 29 },
	{ "topologies/2s-2rp-std-flat.topo", 16, 29 },
	{ "topologies/demo.topo", 8, 15 },
};

#define FLAT "topologies/2s-2rp-split-flat.topo"

static struct fake *f;


static void refused(const char *line, int code, const char *says)
{
	look_refused(&f->b, line, code, says);
}

/* ---- show, check --------------------------------------------------------- */

static void shown(void)
{
	json_object *doc;
	struct run r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		doc = look_json(&f->b, look_line("topology show %s",
					       files[i].path));
		ok(look_length(doc, "ranks") == files[i].gpus, "%d ranks",
		   files[i].gpus);
		ok(look_length(doc, "elements") == files[i].elements,
		   "%d elements: %ld", files[i].elements,
		   look_length(doc, "elements"));
		ok(!strcmp(look_text(doc, "elements.0.name"),
			   "columba1.gpu0"), "the first of them");
		json_object_put(doc);
		r = run_line(&f->b, look_line("topology check %s",
					    files[i].path));
		ok(!r.code, "%s: %s", files[i].path, r.err);
		has(r.out, "can be planned for");
		run_free(&r);
	}
}

static void tables(void)
{
	json_object *doc = look_json(&f->b, "topology show " FLAT);
	struct run r = run_line(&f->b, "topology show " FLAT);

	has(r.out, "16 GPUs in 2 boxes");
	has(r.out, "columba1:up0   draco1:1      cable  27.000  27.000");
	has(r.out, "columba1  xgmi     56  48.000");
	hasnt(r.out, "columba1.gpu0  columba1.gpu1");
	run_free(&r);
	r = run_line(&f->b, "topology show --wide " FLAT);
	has(r.out, "columba1.gpu0  columba1.gpu1");
	run_free(&r);
	ok(look_length(doc, "links") == 84, "84 links: %ld",
	   look_length(doc, "links"));
	ok(look_length(doc, "meshes") == 2 &&
	   look_number(doc, "meshes.0.directed_links") == 56, "two meshes");
	json_object_put(doc);
}

static void chosen(void)
{
	json_object *doc;

	doc = look_json(&f->b, "topology show --devices 9,columba1.gpu2,0 "
			FLAT);
	ok(look_length(doc, "ranks") == 3, "three devices");
	ok(!strcmp(look_text(doc, "ranks.0"), "columba2.gpu1") &&
	   !strcmp(look_text(doc, "ranks.1"), "columba1.gpu2") &&
	   !strcmp(look_text(doc, "ranks.2"), "columba1.gpu0"),
	   "in the order in which they were named");
	json_object_put(doc);
	doc = look_json(&f->b, "topology show --host server " FLAT);
	ok(look_length(doc, "ranks") == 16, "of one host");
	json_object_put(doc);
}

static void bad_files(void)
{
	const char *p = look_path("bad.graph");

	refused("topology show /nonexistent", EXIT_NOT_FOUND, "/nonexistent");
	refused(look_line("topology show %s", look_dir()), EXIT_FAILED,
		"directory");
	look_write(p, "");
	refused(look_line("topology check %s", p), EXIT_FAILED, "empty");
	look_write(p, "graph = \"x\";\nnodes = (\n"
		   "  { name = \"g0\"; kind = \"gpu\"; },\n"
		   "  { name = \"g1\"; kind = \"gpu\"; }\n);\nlinks = ( );\n");
	refused(look_line("topology check %s", p), EXIT_FAILED,
		look_line("%s:3: no path leads from g0 to g1", p));
	refused(look_line("plan-collective %s", p), EXIT_FAILED, "no path leads");
	look_write(p, "graph = \"x\";\nnodes = (\n"
		   "  { name = \"g0\"; kind = \"gpu\"; },\n"
		   "  { name = \"g0\"; kind = \"gpu\"; }\n);\n");
	refused(look_line("topology check %s", p), EXIT_FAILED, ":4");
	look_write(p, "graph = \"x\";\nnodes = (\n"
		   "  { name = \"g0\"; kind = \"gpu\"; },\n"
		   "  { name = \"g1\"; kind = \"gpu\"; }\n);\n"
		   "links = ( { a = \"g0\"; b = \"g1\"; gbps = 0.0; } );\n");
	refused(look_line("topology show %s", p), EXIT_FAILED, ":6");
	look_write(p, "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci>\n");
	refused(look_line("topology show %s", p), EXIT_FAILED, p);
	unlink(p);
}

static void bad_lines(void)
{
	static const struct {
		const char *line;
		int code;
		const char *says;
	} cases[] = {
		{ "topology", EXIT_USAGE, "name a verb" },
		{ "topology shw " FLAT, EXIT_USAGE, "did you mean \"show\"?" },
		{ "topology zzz " FLAT, EXIT_USAGE, "no verb \"zzz\"" },
		{ "topology show", EXIT_USAGE, "name a file" },
		{ "topology show a b", EXIT_USAGE, "\"b\" is too much" },
		{ "topology show --live x", EXIT_USAGE, "either --live" },
		{ "topology show --topology x " FLAT, EXIT_USAGE, "is a file" },
		{ "topology show --limit 3 " FLAT, EXIT_USAGE,
		  "--limit does not apply to \"topology show\"" },
		{ "topology show --devices 16 " FLAT, EXIT_FAILED, "16" },
		{ "topology show --devices 1,1 " FLAT, EXIT_FAILED, "twice" },
		{ "topology show --devices draco1 " FLAT, EXIT_FAILED,
		  "draco1" },
		{ "topology check --devices 1 " FLAT, EXIT_FAILED,
		  "2 or more" },
		{ "topology show --host x " FLAT, EXIT_FAILED, "\"x\"" },
		{ "topology export --format xml " FLAT, EXIT_USAGE,
		  "none of rccl, nccl, graph, topo" },
		{ "topology draw --schedule all " FLAT, EXIT_USAGE,
		  "none of rings, optimal, none" },
		{ "topology draw --collective alltoall " FLAT, EXIT_USAGE,
		  "none of all-gather, reduce-scatter, all-reduce" },
		{ "topology compare", EXIT_USAGE, "name the files" },
		{ "topology compare --root 1 " FLAT " /nonexistent",
		  EXIT_USAGE, "has no root" },
		{ "topology compare --size 5T " FLAT, EXIT_USAGE,
		  "is no size" },
		{ "topology design", EXIT_USAGE, "--switches is missing" },
		{ "topology design x", EXIT_USAGE, "is too much" },
		{ "topology design --switches 0", EXIT_USAGE, "no number" },
		{ "topology predict " FLAT, EXIT_USAGE, "--model is missing" },
		{ "topology predict --model 6.7X " FLAT, EXIT_USAGE,
		  "no number of parameters" },
		{ "topology predict --model 6.7B " FLAT, EXIT_USAGE,
		  "--layers is missing" },
		{ "topology predict --model 6.7B --parallel pipe " FLAT,
		  EXIT_USAGE, "none of data" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		refused(cases[i].line, cases[i].code, cases[i].says);
}

/* ---- import, export ------------------------------------------------------ */

/* What says how fast anything can be is the same. */
static void same_plan(const char *a, const char *b)
{
	json_object *x, *y;

	x = look_json(&f->b, look_line("plan-collective --collective all_gather "
				     "%s", a));
	y = look_json(&f->b, look_line("plan-collective --collective all_gather "
				     "%s", b));
	ok(!strcmp(look_text(x, "bound.algbw_exact"),
		   look_text(y, "bound.algbw_exact")) &&
	   !strcmp(look_text(x, "ring.busbw_exact"),
		   look_text(y, "ring.busbw_exact")), "%s is as %s: %s, %s", b,
	   a, look_text(x, "bound.algbw_exact"),
	   look_text(y, "bound.algbw_exact"));
	json_object_put(x);
	json_object_put(y);
}

static void converted(void)
{
	const char *graph = look_path("a.graph"), *xml = look_path("a.xml");
	char *first, *second;
	json_object *doc;
	struct run r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		r = run_line(&f->b, look_line("topology import %s -o %s",
					    files[i].path, graph));
		ok(!r.code && !*r.out, "import %s: %s", files[i].path, r.err);
		run_free(&r);
		same_plan(files[i].path, graph);
		first = look_read(graph);
		r = run_line(&f->b, look_line("topology import %s", graph));
		ok(first && !strcmp(first, r.out), "and once more the same");
		run_free(&r);
		free(first);
	}
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		r = run_line(&f->b, look_line("topology export %s", files[i].path));
		ok(!r.code, "export %s: %s", files[i].path, r.err);
		has(r.out, "<system version=\"2\"");
		run_free(&r);
		r = run_line(&f->b, look_line("topology export --format nccl %s "
					    "-o %s", files[i].path, xml));
		ok(!r.code, "into a file: %s", r.err);
		run_free(&r);
		first = look_read(xml);
		has(first, "<system version=\"1\"");
		has(first, "\"16.0 GT/s PCIe\"");
		r = run_line(&f->b, look_line("topology check %s", xml));
		ok(!r.code, "and it can be planned for: %s", r.err);
		hasnt(r.out, "!");
		run_free(&r);
		doc = look_json(&f->b, look_line("topology show %s", xml));
		ok(look_length(doc, "ranks") == files[i].gpus, "%d ranks",
		   files[i].gpus);
		json_object_put(doc);
		r = run_line(&f->b, look_line("topology import %s -o %s", xml,
					      graph));
		run_free(&r);
		r = run_line(&f->b, look_line("topology export --format nccl %s",
					    graph));
		second = r.out;
		ok(!strcmp(first, second), "export, import, export");
		run_free(&r);
		free(first);
	}
	r = run_line(&f->b, look_line("topology export --format topo %s -o %s",
				    FLAT, graph));
	ok(!r.code, "a topology file again: %s", r.err);
	run_free(&r);
	same_plan(FLAT, graph);
	unlink(graph);
	unlink(xml);
	look_write(graph, "graph = \"x\";\nnodes = ( );\n");
	refused(look_line("topology export --format topo %s", graph),
		EXIT_FAILED, graph);
	unlink(graph);
}

/* A host with a switch of @gpus GPUs; a warning's worth of odd bytes. */
static void write_large(const char *path, int gpus, int per_switch)
{
	FILE *o = fopen(path, "w");
	int i, k;

	fputs("graph = \"large\";\nnodes = (\n"
	      "  { name = \"rc\"; kind = \"root-complex\"; }", o);
	for (i = 0; i < gpus / per_switch; i++) {
		fprintf(o, ",\n  { name = \"s%d\"; kind = \"pci-switch\"; up = "
			"\"rc\"; }", i);
		for (k = 0; k < per_switch; k++)
			fprintf(o, ",\n  { name = \"g%d-%d\"; kind = \"gpu\"; "
				"up = \"s%d\"; }", i, k, i);
	}
	fputs("\n);\nlinks = (\n", o);
	for (i = 0; i < gpus / per_switch; i++) {
		fprintf(o, "%s  { a = \"rc\"; b = \"s%d\"; gbps = 27.0; }",
			i ? ",\n" : "", i);
		for (k = 0; k < per_switch; k++)
			fprintf(o, ",\n  { a = \"s%d\"; b = \"g%d-%d\"; gbps "
				"= 27.0; }", i, i, k);
	}
	fputs("\n);\n", o);
	fclose(o);
}

/* What a library cannot load is not written, and not called good. */
static void too_large(void)
{
	const char *p = look_path("large.graph"), *x = look_path("large.xml");
	struct run r;
	json_object *doc;
	char *text, *value;

	write_large(p, 192, 8);
	refused(look_line("topology export --format nccl %s -o %s", p, x),
		EXIT_FAILED, "the library takes");
	text = look_read(x);
	ok(!text, "nothing is written");
	r = run_line(&f->b, "topology export --format nccl " FLAT);
	value = xasprintf("%300s", "");
	memset(value, 'f', 300);
	text = xasprintf("%.*s arch=\"%s\"%s", (int)(strstr(r.out, "<gpu") + 4 -
			 r.out), r.out, value, strstr(r.out, "<gpu") + 4);
	run_free(&r);
	look_write(x, text);
	r = run_line(&f->b, look_line("topology check %s", x));
	ok(r.code == EXIT_FAILED, "a file that no library loads: %d", r.code);
	has(r.out, "does not load this file");
	has(r.out, "more than 253 bytes");
	run_free(&r);
	r = run_line(&f->b, look_line("topology check --json %s", x));
	doc = json_tokener_parse(r.out);
	ok(r.code == EXIT_FAILED && doc && !json_object_get_boolean(
	   look_at(doc, "valid")) && look_length(doc, "violations") == 1,
	   "the same in JSON: %s", r.out);
	json_object_put(doc);
	run_free(&r);
	free(text);
	free(value);
	doc = look_json(&f->b, "topology check " FLAT);
	ok(!look_at(doc, "valid") && !look_length(doc, "violations"),
	   "no XML, nothing to be valid");
	json_object_put(doc);
	unlink(p);
	unlink(x);
}

/* A pipe is read once; a byte order mark hides no XML. */
static void read_once(void)
{
	const char *p = look_path("x.xml"), *fifo = look_path("fifo");
	json_object *doc;
	struct run r;
	char *text;
	pid_t pid;

	r = run_line(&f->b, "topology export --format nccl " FLAT);
	text = xasprintf("\xef\xbb\xbf%s", r.out);
	run_free(&r);
	look_write(p, text);
	doc = look_json(&f->b, look_line("topology check %s", p));
	ok(look_at(doc, "valid") && look_length(doc, "violations") == 1,
	   "a byte order mark is a violation, %ld",
	   look_length(doc, "violations"));
	json_object_put(doc);
	if (mkfifo(fifo, 0600))
		perror(fifo);
	pid = fork();
	if (!pid) {
		look_write(fifo, text + 3);
		_exit(0);
	}
	alarm(600);
	doc = look_json(&f->b, look_line("topology check %s", fifo));
	alarm(0);
	ok(json_object_get_boolean(look_at(doc, "valid")), "from a pipe");
	json_object_put(doc);
	waitpid(pid, NULL, 0);
	free(text);
	unlink(p);
	unlink(fifo);
}

/* Limits are the same whatever reads a topology file. */
static void limited(void)
{
	const char *p = look_path("many.topo");
	FILE *o = fopen(p, "w");
	int i;

	fputs("fabric = \"x\";\n", o);
	for (i = 0; i < 20000; i++)
		fprintf(o, "a%d = 1;\n", i);
	fclose(o);
	refused(look_line("topology export --format topo %s", p), EXIT_FAILED,
		"more than 1024 settings");
	refused(look_line("topology show live --topology %s", p), EXIT_FAILED,
		"more than 1024 settings");
	if (truncate(p, (64 << 20) + 1))
		perror(p);
	refused(look_line("topology export --format topo %s", p), EXIT_FAILED,
		"more than 64 MiB");
	refused(look_line("topology show %s", p), EXIT_FAILED,
		"more than 64 MiB");
	unlink(p);
}

/* Bytes of a file command no terminal, and do not make JSON something else. */
static void hostile_text(void)
{
	const char *p = look_path("esc.graph");
	json_object *doc;
	struct run r;

	look_write(p, "graph = \"a\x1b]0;b\xff\xc2\x9b\xc3\xa4\";\nnodes = (\n"
		   "  { name = \"g0\"; kind = \"gpu\"; },\n"
		   "  { name = \"g1\"; kind = \"gpu\"; }\n);\n"
		   "links = ( { a = \"g0\"; b = \"g1\"; gbps = 1.0; } );\n");
	r = run_line(&f->b, look_line("topology show %s", p));
	ok(!strchr(r.out, '\x1b'), "no escape is passed on");
	has(r.out, "a?]0;b??\xc3\xa4");
	run_free(&r);
	r = run_line(&f->b, look_line("plan-collective %s", p));
	ok(!strchr(r.out, '\x1b'), "no escape is passed on");
	run_free(&r);
	doc = look_json(&f->b, look_line("topology check %s", p));
	ok(!strcmp(look_text(doc, "fabric"), "a?]0;b??\xc3\xa4"), "is UTF-8");
	json_object_put(doc);
	look_write(p, "graph = \"x\";\nnodes = (\n"
		   "  { name = \"\x1b[31m\xff\"; kind = \"gpu\"; }\n);\n");
	r = run_line(&f->b, look_line("topology show %s", p));
	ok(r.code, "a name with an escape");
	ok(!strchr(r.err, '\x1b'), "nor by an error");
	has(r.err, "?[31m?");
	run_free(&r);
	r = run_line(&f->b, look_line("topology show --json %s", p));
	ok(!strchr(r.out, '\xff'), "nor bytes that are no UTF-8");
	run_free(&r);
	unlink(p);
}

/* A GPU called "0" is not GPU 0: numbers go first, with each option. */
static void numbers_first(void)
{
	const char *p = look_path("n.graph");
	json_object *doc;

	look_write(p, "graph = \"x\";\nnodes = (\n"
		   "  { name = \"1\"; kind = \"gpu\"; },\n"
		   "  { name = \"0\"; kind = \"gpu\"; },\n"
		   "  { name = \"7\"; kind = \"gpu\"; }\n);\n"
		   "links = ( { a = \"0\"; b = \"1\"; gbps = 1.0; },\n"
		   "  { a = \"0\"; b = \"7\"; gbps = 1.0; } );\n");
	doc = look_json(&f->b, look_line("plan-collective --collective "
					 "broadcast --root 0 %s", p));
	look_is(doc, "root", 0);
	json_object_put(doc);
	doc = look_json(&f->b, look_line("topology show --devices 0,1 %s", p));
	ok(!strcmp(look_text(doc, "ranks.0"), "1"), "--devices too");
	json_object_put(doc);
	refused(look_line("plan-collective --collective broadcast --root 7 %s",
			  p), EXIT_USAGE, "ranks are 0 to 2");
	unlink(p);
}

static void as_json(void)
{
	json_object *doc = look_json(&f->b, "topology export --devices 0,1 "
				     "--format nccl " FLAT);

	has(look_text(doc, "text"), "<gpu dev=\"0\"");
	hasnt(look_text(doc, "text"), "<gpu dev=\"2\"");
	ok(!look_at(doc, "output"), "no file");
	json_object_put(doc);
}

/* The fabric as it is composed: live.c has tests of its own. */
static void live(void)
{
	struct fake *small = fabric_small();
	json_object *doc;
	struct run r;

	look_refused(&small->b, "topology show live", EXIT_NO_DEVICE,
		     "no GPU is composed");
	look_refused(&small->b, "plan-collective live", EXIT_NO_DEVICE,
		     "no GPU is composed");
	fake_bind(small, "columba1.gpu1", "b.0");
	fake_bind(small, "columba1.gpu3", "b.0");
	fake_bind(small, "columba2.gpu0", "c.0");
	doc = look_json(&small->b, "topology show live --host b");
	ok(look_length(doc, "ranks") == 2 &&
	   !strcmp(look_text(doc, "ranks.1"), "columba1.gpu3"),
	   "GPUs of one host: %ld", look_length(doc, "ranks"));
	json_object_put(doc);
	look_refused(&small->b, "topology export --live", EXIT_NO_DEVICE,
		     "composed to host a");
	r = run_line(&small->b, "topology export --live --host b");
	ok(!r.code, "an XML of another host than this: %s", r.err);
	has(r.out, "<gpu dev=\"1\"");
	hasnt(r.out, "<gpu dev=\"2\"");
	run_free(&r);
	r = run_line(&small->b, "plan-collective --live --host b");
	ok(!r.code, "and a plan: %s", r.err);
	has(r.out, "all-reduce of 2 GPUs");
	run_free(&r);
	fake_free(small);
}

/* ---- files --------------------------------------------------------------- */

static void written_whole(void)
{
	const char *p = look_path("out"), *l = look_path("link");
	struct stat st;
	struct run r;
	char *text;

	look_write(p, "as it was\n");
	chmod(p, 0640);
	if (symlink(p, l))
		perror(l);
	refused(look_line("topology import /nonexistent -o %s", p),
		EXIT_NOT_FOUND, "/nonexistent");
	text = look_read(p);
	ok(!strcmp(text, "as it was\n"), "a failure leaves the file");
	free(text);
	r = run_line(&f->b, look_line("topology import %s -o %s", FLAT, l));
	ok(!r.code, "through a link: %s", r.err);
	run_free(&r);
	text = look_read(p);
	has(text, "graph = \"2s-2rp-split-flat\"");
	free(text);
	ok(!lstat(l, &st) && S_ISLNK(st.st_mode), "the link stays one");
	ok(!stat(p, &st) && (st.st_mode & 07777) == 0640,
	   "permissions stay: %o", st.st_mode & 07777);
	ok(look_count() == 2, "nothing else is left behind: %d",
	   look_count());
	unlink(p);
	unlink(l);
	refused(look_line("topology import %s -o %s/no/x", FLAT, look_dir()),
		EXIT_NOT_FOUND, "cannot write");
	refused(look_line("topology import %s -o %s", FLAT, look_dir()),
		EXIT_FAILED, "cannot write");
	refused(look_line("topology import %s -o ''", FLAT), EXIT_USAGE,
		"empty");
	refused(look_line("topology import %s -o /dev/full", FLAT), EXIT_NO_ROOM,
		"cannot write /dev/full");
	r = run_line(&f->b, look_line("topology import %s -o /dev/null", FLAT));
	ok(!r.code && !stat("/dev/null", &st) && S_ISCHR(st.st_mode),
	   "/dev/null stays a device");
	run_free(&r);
	ok(!look_count(), "nothing is left behind: %d", look_count());
}

/* Several at once: all, or none, and never one over the other. */
static void written_together(void)
{
	const char *p = look_path("out"), *q = look_path("link");
	char *text;
	struct run r;

	look_write(p, "as it was\n");
	refused(look_line("plan-collective %s --schedule %s --ring-schedule "
			  "/dev/full", FLAT, p), EXIT_NO_ROOM,
		"nothing was changed");
	text = look_read(p);
	ok(!strcmp(text, "as it was\n"), "a full device leaves the file");
	free(text);
	refused(look_line("plan-collective %s --schedule %s --ring-schedule "
			  "%s/./out", FLAT, p, look_dir()), EXIT_USAGE,
		"written twice");
	unlink(p);
	refused(look_line("plan-collective %s --schedule %s --ring-schedule "
			  "%s/./out", FLAT, p, look_dir()), EXIT_USAGE,
		"written twice");
	look_write(p, "as it was\n");
	if (link(p, q))
		perror(q);
	refused(look_line("plan-collective %s --schedule %s --ring-schedule "
			  "%s", FLAT, p, q), EXIT_USAGE, "written twice");
	unlink(q);
	unlink(p);
	if (symlink(p, q))
		perror(q);
	refused(look_line("topology import %s -o %s", FLAT, q), EXIT_NOT_FOUND,
		"leads nowhere");
	unlink(q);
	r = run_line(&f->b, look_line("plan-collective %s --schedule %s "
				      "--ring-schedule /dev/null", FLAT, p));
	ok(!r.code, "a file and a device: %s", r.err);
	run_free(&r);
	text = look_read(p);
	ok(text && *text, "both are written");
	free(text);
	unlink(p);
	ok(!look_count(), "nothing is left behind: %d", look_count());
}

/* ---- pictures ------------------------------------------------------------ */

static void drawn(void)
{
	static const char *const schedules[] = { "none", "rings", "optimal" };
	const char *p = look_path("x.svg");
	struct run r;
	char *text;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		for (k = 0; k < ARRAY_SIZE(schedules); k++) {
			r = run_line(&f->b, look_line("topology draw %s -o %s "
				"--schedule %s --collective broadcast",
				files[i].path, p, schedules[k]));
			ok(!r.code, "draw: %s", r.err);
			run_free(&r);
			text = look_read(p);
			ok(text && strstr(text, "<svg ") &&
			   strstr(text, "</svg>") &&
			   strstr(text, "columba1"), "a picture of %s with %s",
			   files[i].path, schedules[k]);
			free(text);
		}
	unlink(p);
}

/* ---- comparing, designing, predicting ------------------------------------ */

static void compared(void)
{
	/* Those that were measured, but for the last two, nearly alike. */
	static const char *const order[] = {
		"2s-2rp-split-flat", "1s-2rp-split-cascade",
	};
	char *line = xstrdup("topology compare --collective all-gather");
	json_object *doc;
	struct run r;
	size_t i, k, found = 0;
	double before = INFINITY, v;

	for (i = 0; i < 5; i++) {
		char *more = xasprintf("%s %s", line, files[i].path);

		free(line);
		line = more;
	}
	doc = look_json(&f->b, line);
	ok(look_length(doc, "wirings") == 5, "five wirings");
	for (i = 0; i < 5; i++) {
		v = look_number(doc, look_line("wirings.%zu.optimal_busbw_gbps",
					     i));
		ok(v <= before, "not faster than the one before: %g", v);
		before = v;
		for (k = found; k < ARRAY_SIZE(order); k++)
			if (!strcmp(order[k], look_text(doc, look_line(
				    "wirings.%zu.fabric", i)))) {
				ok(k == found, "%s", order[k]);
				found++;
				break;
			}
	}
	ok(found == ARRAY_SIZE(order), "in the order that was measured");
	has(look_text(doc, "wirings.3.fabric"), "2rp-std");
	has(look_text(doc, "wirings.4.fabric"), "2rp-std");
	look_is(doc, "wirings.0.optimal_busbw_gbps", 202.5);
	look_is(doc, "wirings.0.ring_busbw_gbps", 108);
	json_object_put(doc);
	r = run_line(&f->b, line);
	has(r.out, "202.500");
	has(r.out, "27 GB/s");
	run_free(&r);
	free(line);
}

/* One bad file does not take away what is known of the others. */
static void compared_with_bad(void)
{
	const char *p = look_path("bad.topo");
	json_object *doc;
	struct run r;
	char *line;

	look_write(p, "fabric = 3;\n");
	line = xasprintf("topology compare %s /nonexistent %s", p, FLAT);
	r = run_line(&f->b, line);
	ok(r.code == EXIT_FAILED, "the first one's error: %d", r.code);
	has(r.out, "108.000");
	has(r.out, "! cannot read /nonexistent");
	has(r.out, look_line("! %s", p));
	run_free(&r);
	r = run_line(&f->b, look_line("%s --json", line));
	doc = json_tokener_parse(r.out);
	ok(r.code == EXIT_FAILED && look_length(doc, "wirings") == 3,
	   "three rows: %d", r.code);
	look_is(doc, "wirings.0.gpus", 16);
	ok(!look_at(doc, "wirings.0.error") && !look_at(doc, "wirings.1.gpus"),
	   "bad ones are last");
	has(look_text(doc, "wirings.1.error"), "/nonexistent");
	has(look_text(doc, "wirings.2.error"), p);
	json_object_put(doc);
	run_free(&r);
	free(line);
	unlink(p);
}

static void designed(void)
{
	const char *p = look_path("best.topo");
	json_object *doc;
	struct run r;

	r = run_line(&f->b, look_line("topology design --switches 2 --boxes 2 "
				    "--uplinks 4 --host-ports 2 --collective "
				    "all-gather -o %s", p));
	ok(!r.code, "design: %s", r.err);
	has(r.out, "202.500");
	run_free(&r);
	doc = look_json(&f->b, look_line("plan-collective %s --collective "
				       "all-gather", p));
	look_is(doc, "optimal.busbw_gbps", 202.5);
	json_object_put(doc);
	unlink(p);
	refused("topology design --switches 1 --boxes 2 --uplinks 4 "
		"--host-ports 2", EXIT_FAILED, "port");
}

static void predicted(void)
{
	json_object *doc;
	struct run r;

	doc = look_json(&f->b, "topology predict --model 6.7B --layers 32 "
			"--hidden 4096 --batch 16 --parallel zero3 --tflops 40 "
			FLAT);
	ok(look_length(doc, "steps") == 2, "optimal and rings");
	ok(look_number(doc, "steps.0.seconds") > 0 &&
	   look_number(doc, "steps.0.seconds") <=
	   look_number(doc, "steps.1.seconds") * 1.001,
	   "the optimum is not slower: %g, %g",
	   look_number(doc, "steps.0.seconds"),
	   look_number(doc, "steps.1.seconds"));
	/* 6 FLOP for each parameter and token, shared out over 16 GPUs */
	ok(fabs(look_number(doc, "steps.0.compute_seconds") /
		(6 * 6.7e9 * 16 * 2048 / 16 / 40e12) - 1) < 0.35,
	   "computing takes what it takes: %g",
	   look_number(doc, "steps.0.compute_seconds"));
	json_object_put(doc);
	doc = look_json(&f->b, "topology predict --model 8B --layers 32 "
			"--hidden 4096 --parallel tensor --tflops 100 --memory "
			"2000 --devices 0,1,2,3 " FLAT);
	ok(!strcmp(look_text(doc, "steps.0.unit"), "tokens") &&
	   look_number(doc, "steps.0.per_second") > 10, "tokens: %g",
	   look_number(doc, "steps.0.per_second"));
	json_object_put(doc);
	r = run_line(&f->b, "topology predict --model 8B --layers 32 --hidden "
		     "4096 --batch 16 --tflops 40 " FLAT);
	ok(!r.code, "data parallel is the default: %s", r.err);
	has(r.out, "SAMPLES/S");
	run_free(&r);
	doc = look_json(&f->b, "topology predict --model 1B --layers 24 "
			"--hidden 2048 --batch 16 --tflops 40 --jobs "
			"0,2,4,6,8,10,12,14;1,3,5,7,9,11,13,15 " FLAT);
	ok(look_length(doc, "jobs") == 4, "two jobs, two schedules");
	ok(look_number(doc, "jobs.0.communicate_slowdown") > 1.6 &&
	   look_number(doc, "jobs.0.communicate_slowdown") < 2.1 &&
	   look_number(doc, "jobs.3.communicate_slowdown") > 1.8 &&
	   look_number(doc, "jobs.3.communicate_slowdown") < 2.1,
	   "that share uplinks: %g, %g",
	   look_number(doc, "jobs.0.communicate_slowdown"),
	   look_number(doc, "jobs.3.communicate_slowdown"));
	json_object_put(doc);
	doc = look_json(&f->b, "topology predict --model 1B --layers 24 "
			"--hidden 2048 --batch 16 --tflops 40 --jobs 0-7;8-15 "
			FLAT);
	look_is(doc, "jobs.0.slowdown", 1);
	json_object_put(doc);
}

int main(void)
{
	f = fabric_small();
	shown();
	tables();
	chosen();
	bad_files();
	bad_lines();
	converted();
	too_large();
	read_once();
	limited();
	hostile_text();
	numbers_first();
	as_json();
	live();
	written_whole();
	written_together();
	drawn();
	compared();
	compared_with_bad();
	designed();
	predicted();
	fake_free(f);
	look_clean();
	return tap_done();
}
