// SPDX-License-Identifier: GPL-2.0-only
/*
 * compose, release, move, plan and apply against a fabric that fails: the
 * outcome, the messages, and that a failure leaves all bindings as they were.
 */
#include <stdlib.h>
#include <unistd.h>

#include "ctl.h"
#include "fake.h"
#include "run_line.h"

static char wish_path[] = "/tmp/fabrexctl-test-XXXXXX";

static void write_wish(const char *text)
{
	FILE *f = fopen(wish_path, "w");

	fputs(text, f);
	fclose(f);
}

static struct run run_file(struct fake *f, const char *before)
{
	char line[256];

	snprintf(line, sizeof(line), "%s %s", before, wish_path);
	return run_line(&f->b, line);
}

static void same_bindings(struct fake *f, const char *before, const char *what)
{
	char *after = fake_bindings(f);

	ok(!strcmp(before, after), "%s: bindings \"%s\"%s%s", what, before,
	   strcmp(before, after) ? " became " : "",
	   strcmp(before, after) ? after : "");
	free(after);
}

static void composing(void)
{
	struct fake *f = fabric_small();
	struct run r;

	r = run_line(&f->b, "compose columba1.gpu0 --to a");
	ok(r.code == 0, "compose: %d %s", r.code, r.err);
	has(r.out, "composed columba1.gpu0 to a.0 slot 2, ffff:02:00.0");
	run_free(&r);
	r = run_line(&f->b, "compose columba1.gpu0 --to a");
	ok(r.code == 0 && f->changes == 1, "a second time changes nothing");
	has(r.out, "columba1.gpu0 is as it should be");
	run_free(&r);
	r = run_line(&f->b, "compose columba1.gpu0 --to b");
	ok(r.code == EXIT_BUSY, "bound elsewhere: %d", r.code);
	has(r.err, "bound to a.0 (host a)");
	has(r.err, "fabrexctl move columba1.gpu0 --to b");
	ok(!*r.out, "nothing on stdout");
	run_free(&r);
	r = run_line(&f->b, "compose gpu:2 --to b --json");
	ok(r.code == 0, "compose gpu:2");
	has(r.out, "\"endpoint\":\"columba1.gpu1\"");
	has(r.out, "\"endpoint\":\"columba1.gpu2\"");
	run_free(&r);
	same_bindings(f, "columba1.gpu0=a.0 columba1.gpu1=b.0 "
		      "columba1.gpu2=b.0 ", "nearest free ones");
	r = run_line(&f->b, "compose gpu:1@columba2 nvme --to c --no-wait");
	ok(r.code == 0, "by appliance: %s", r.err);
	run_free(&r);
	same_bindings(f, "columba1.gpu0=a.0 columba1.gpu1=b.0 "
		      "columba1.gpu2=b.0 columba2.gpu0=c.0 columba2.nvme0=c.0 ",
		      "the nearest port of a host with two");
	fake_free(f);
}

static void refusing(void)
{
	static const struct {
		const char *line;
		int code;
		const char *says;
	} cases[] = {
		{ "compose", EXIT_USAGE, "name the endpoints" },
		{ "compose columba1.gpu0", EXIT_USAGE, "--to" },
		{ "compose columba1.gpu9 --to a", EXIT_NOT_FOUND,
		  "did you mean \"columba1.gpu" },
		{ "compose columba1.gpu0 --to aa", EXIT_NOT_FOUND,
		  "did you mean \"a\"?" },
		{ "compose columba1.gpu0 --to draco1:4", EXIT_FAILED,
		  "leads to no host" },
		{ "compose columba1.gpu0 --to columba1", EXIT_NOT_FOUND,
		  "is an appliance, not a port or host" },
		{ "compose columba1.gpu0 columba1.gpu0 --to a", EXIT_USAGE,
		  "named twice" },
		{ "compose gpu:99 --to a", EXIT_NO_ROOM, "only 12 free" },
		{ "compose gpu:x --to a", EXIT_USAGE, "is no selector" },
		{ "compose tpu:1 --to a", EXIT_USAGE, "is no selector" },
		{ "compose gpu:1@columba3 --to a", EXIT_NOT_FOUND,
		  "did you mean \"columba1\"?" },
		{ "compose b --to a", EXIT_NOT_FOUND, "is a host, not an "
		  "endpoint" },
		{ "release", EXIT_USAGE, "name the endpoints" },
		{ "release nothing*", EXIT_NOT_FOUND, "matches" },
		{ "release columba1.gpu0 --timeout soon", EXIT_USAGE,
		  "no number of seconds" },
		{ "move gpu:2 --to a", EXIT_NOT_FOUND, "no endpoint" },
		{ "plan", EXIT_USAGE, "name one file" },
		{ "plan /nonexistent", EXIT_NOT_FOUND, "cannot read" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake *f = fabric_small();
		struct run r = run_line(&f->b, cases[i].line);

		ok(r.code == cases[i].code, "\"%s\" exits with %d (%d)",
		   cases[i].line, cases[i].code, r.code);
		has(r.err, cases[i].says);
		ok(!*r.out && !f->changes, "and prints and changes nothing");
		run_free(&r);
		fake_free(f);
	}
}

static void releasing(void)
{
	struct fake *f = fabric_small();
	struct run r;

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	fake_bind(f, "columba1.gpu2", "b.0");
	f->held = model_find(f->m, "columba1.gpu1", T_ANY)->id;
	r = run_line(&f->b, "release columba1.gpu0 columba1.gpu1");
	ok(r.code == EXIT_BUSY, "one is held: %d", r.code);
	has(r.err, "pid 42 (python3)");
	has(r.err, "--force");
	has(r.err, "all bindings are as they were before");
	run_free(&r);
	same_bindings(f, "columba1.gpu0=a.0 columba1.gpu1=a.0 "
		      "columba1.gpu2=b.0 ", "all or none");
	r = run_line(&f->b, "release columba1.gpu[01] --force -n");
	ok(r.code == 0, "dry run");
	has(r.out, "- columba1.gpu0 from a.0");
	run_free(&r);
	same_bindings(f, "columba1.gpu0=a.0 columba1.gpu1=a.0 "
		      "columba1.gpu2=b.0 ", "a dry run changes nothing");
	r = run_line(&f->b, "release columba1.gpu[01] --force");
	ok(r.code == 0, "by force: %s", r.err);
	run_free(&r);
	r = run_line(&f->b, "release columba1.gpu1 --json");
	ok(r.code == 0, "what is free already");
	has(r.out, "\"columba1.gpu1\"");
	run_free(&r);
	same_bindings(f, "columba1.gpu2=b.0 ", "released");
	fake_free(f);
}

static void moving(void)
{
	struct fake *f = fabric_small();
	struct run r;

	fake_bind(f, "columba1.gpu0", "a.0");
	r = run_line(&f->b, "move columba1.gpu0 --to b");
	ok(r.code == 0, "move: %s", r.err);
	has(r.out, "released columba1.gpu0 from a.0");
	has(r.out, "composed columba1.gpu0 to b.0");
	run_free(&r);
	same_bindings(f, "columba1.gpu0=b.0 ", "moved");
	f->fail_at = f->changes + 2;
	f->fail_code = ENETDOWN;
	r = run_line(&f->b, "move columba1.gpu0 --to a --json");
	ok(r.code == EXIT_UNREACHABLE, "the second half fails: %d", r.code);
	has(r.out, "\"errno\":\"ENETDOWN\"");
	has(r.out, "all bindings are as they were before");
	run_free(&r);
	same_bindings(f, "columba1.gpu0=b.0 ", "the former binding is back");
	f->no_device = true;
	f->fail_at = 0;
	r = run_line(&f->b, "move columba1.gpu0 --to a --timeout 0.1");
	ok(r.code == EXIT_TIMEOUT, "no device appears: %d", r.code);
	has(r.err, "no PCI device appeared");
	run_free(&r);
	same_bindings(f, "columba1.gpu0=b.0 ", "back after that too");
	f->fail_at = f->changes + 2;
	f->fail_count = 9;
	r = run_line(&f->b, "move columba1.gpu0 --to a");
	has(r.err, "NOT all could be undone, look at columba1.gpu0");
	run_free(&r);
	same_bindings(f, "", "a rollback that fails is not claimed");
	fake_free(f);
}

/* A host with two ports is asked through the one that a device is behind. */
static void second_port(void)
{
	struct fake *f = fabric_small();
	struct run r;

	fake_local(f, "b.0");
	r = run_line(&f->b, "compose columba1.gpu0 --to b.0 --timeout 0.5");
	ok(r.code == 0, "the other port: %d %s", r.code, r.err);
	has(r.out, "composed columba1.gpu0 to b.0 slot 2, ffff:02:00.0");
	run_free(&r);
	r = run_line(&f->b, "-p b.0 compose columba1.gpu1 --to a.0 -t 0.5");
	ok(r.code == 0, "and the other way: %d %s", r.code, r.err);
	has(r.out, "composed columba1.gpu1 to a.0 slot 2, ffff:02:00.0");
	run_free(&r);
	r = run_line(&f->b, "move columba1.gpu1 --to b.0 --timeout 0.5");
	has(r.out, "composed columba1.gpu1 to b.0 slot 3, ffff:03:00.0");
	run_free(&r);
	r = run_line(&f->b, "holders columba1.gpu1");
	hasnt(r.err, "not composed to this host");
	has(r.err, "ffff:03:00.0");
	run_free(&r);
	same_bindings(f, "columba1.gpu0=b.0 columba1.gpu1=b.0 ", "both ports");
	fake_free(f);
}

static const char wishes[] =
	"bindings = (\n"
	"  { endpoint = \"columba1.gpu0\"; port = \"b.0\"; },\n"
	"  { endpoint = \"columba1.gpu1\"; host = \"a\"; },\n"
	"  { class = \"gpu\"; count = 3; host = \"a\"; },\n"
	"  { class = \"nvme\"; host = \"b\"; appliance = \"columba2\"; }\n"
	");\n";

static struct fake *before_apply(void)
{
	struct fake *f = fabric_small();

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu5", "a.0");
	fake_bind(f, "columba2.gpu3", "c.0");
	return f;
}

static void applying(void)
{
	struct fake *f = before_apply();
	struct run r;

	write_wish(wishes);
	r = run_file(f, "plan --detailed-exitcode");
	ok(r.code == EXIT_DIFFERS, "differences: %d %s", r.code, r.err);
	has(r.out, "- columba1.gpu0 from a.0\n+ columba1.gpu0 to b.0\n");
	has(r.out, "+ columba1.gpu1 to a.0");
	has(r.out, "= columba1.gpu5");
	has(r.out, "6 to do, 1 unchanged");
	hasnt(r.out, "columba2.gpu3");
	run_free(&r);
	ok(f->changes == 0, "plan changes nothing");
	r = run_file(f, "apply -n");
	ok(r.code == 0 && f->changes == 0, "apply --dry-run neither");
	run_free(&r);
	r = run_file(f, "apply");
	ok(r.code == 0 && f->changes == 6, "apply: %s", r.err);
	run_free(&r);
	same_bindings(f, "columba1.gpu0=b.0 columba1.gpu1=a.0 "
		      "columba1.gpu2=a.0 columba1.gpu3=a.0 columba1.gpu5=a.0 "
		      "columba2.gpu3=c.0 columba2.nvme0=b.0 ", "applied");
	r = run_file(f, "apply");
	ok(r.code == 0 && f->changes == 6, "again: nothing to do");
	run_free(&r);
	r = run_file(f, "plan --detailed-exitcode --json");
	ok(r.code == 0, "no differences: %d", r.code);
	has(r.out, "\"changes\":[]");
	run_free(&r);
	r = run_file(f, "apply --prune");
	ok(r.code == 0 && f->changes == 7, "prune: %s", r.err);
	has(r.out, "released columba2.gpu3 from c.0");
	run_free(&r);
	fake_free(f);
}

/* Each change fails once, early or late; each time all must be as before. */
static void sweeping(void)
{
	static const int codes[] = { EIO, ENETDOWN, EBUSY };
	struct fake *f;
	unsigned int n, late, swept = 0;
	char *before;

	write_wish(wishes);
	for (n = 1; n <= 7; n++)
		for (late = 0; late < 2; late++) {
			struct run r;

			f = before_apply();
			before = fake_bindings(f);
			f->fail_at = n;
			f->fail_late = late;
			f->fail_code = late ? ETIMEDOUT : codes[n % 3];
			r = run_file(f, "apply --prune");
			ok(r.code != 0, "change %u fails%s: %s", n,
			   late ? " late" : "", r.err);
			same_bindings(f, before, "rolled back");
			swept += r.code != 0;
			free(before);
			run_free(&r);
			fake_free(f);
		}
	ok(swept == 14, "every change was made to fail");
}

static void swapping(void)
{
	struct fake *f = fabric_small();
	struct run r;

	/* Both hosts are full: only releasing first makes this possible. */
	f->slots = 1;
	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "b.0");
	write_wish("bindings = ("
		   "{ endpoint = \"columba1.gpu0\"; port = \"b.0\"; },"
		   "{ endpoint = \"columba1.gpu1\"; port = \"a.0\"; });");
	f->fail_at = 4;
	r = run_file(f, "apply");
	ok(r.code == EXIT_FAILED, "a swap fails at its last step");
	has(r.err, "all bindings are as they were before");
	run_free(&r);
	same_bindings(f, "columba1.gpu0=a.0 columba1.gpu1=b.0 ", "undone");
	f->fail_at = 0;
	r = run_file(f, "apply");
	ok(r.code == 0, "a swap: %s", r.err);
	run_free(&r);
	same_bindings(f, "columba1.gpu0=b.0 columba1.gpu1=a.0 ", "swapped");
	fake_free(f);
}

static void wrong_files(void)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "no list \"bindings\"" },
		{ "bindings = 3;", "must be a list" },
		{ "bindings = ( 3 );", ":1: each binding is a group" },
		{ "bindings = (\n{ endpoint = \"x\"; prot = \"a.0\"; } );",
		  ":2: prot is no setting of a binding; did you mean port?" },
		{ "bindings = ( { endpoint = \"columba1.gpu0\"; } );",
		  "neither host nor port" },
		{ "bindings = ( { host = \"a\"; } );",
		  "either endpoint or class" },
		{ "bindings = ( { class = \"gpu\"; count = 0; host = \"a\"; } "
		  ");", "count must be" },
		{ "bindings = ( { class = \"gpu\"; count = \"2\"; host = "
		  "\"a\"; } );", "count must be" },
		{ "bindings = ( { class = \"tpu\"; host = \"a\"; } );",
		  "not tpu" },
		{ "bindings = ( { endpoint = 7; host = \"a\"; } );",
		  "must be a name" },
		{ "bindings = (", "syntax error" },
		{ "bindings = (\n\n{ endpoint = \"columba1.gpu8\"; host = "
		  "\"a\"; } );", ":3: no endpoint called \"columba1.gpu8\"; "
		  "did you mean" },
		{ "bindings = ( { endpoint = \"columba1.gpu0\"; host = \"a\"; "
		  "}, { endpoint = \"columba1.gpu0\"; host = \"b\"; } );",
		  "wished for twice" },
		{ "bindings = ( { class = \"gpu\"; count = 13; host = \"a\"; } "
		  ");", "only 12 free" },
		{ "fabric = \"other\"; bindings = ();", "for the fabric "
		  "\"other\", this one is \"test\"" },
		{ "bindings = ( { endpoint = \"columba1.gpu0\"; host = \"a\"; "
		  "count = 2; } );", "go with class" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake *f = fabric_small();
		struct run r;

		write_wish(cases[i].text);
		r = run_file(f, "apply");
		ok(r.code != 0 && !f->changes, "wrong file %zu: %d", i, r.code);
		has(r.err, cases[i].says);
		run_free(&r);
		fake_free(f);
	}
}

static void topology_file(void)
{
	struct fake *f = fabric_small();
	struct run r;

	write_wish("fabric = \"test\"; switches = ( { name = \"x\"; } );\n"
		   "bindings = ( { endpoint = \"columba1.gpu0\"; "
		   "port = \"a.0\"; } );");
	r = run_file(f, "apply");
	ok(r.code == 0, "a topology file is a wish too: %s", r.err);
	run_free(&r);
	write_wish("bindings = ();");
	r = run_file(f, "apply --prune --json");
	ok(r.code == 0, "an empty list with --prune: %s", r.err);
	run_free(&r);
	same_bindings(f, "", "releases all");
	fake_free(f);
}

int main(void)
{
	int fd = mkstemp(wish_path);

	if (fd < 0)
		return 1;
	close(fd);
	composing();
	refusing();
	releasing();
	moving();
	second_port();
	applying();
	sweeping();
	swapping();
	wrong_files();
	topology_file();
	unlink(wish_path);
	return tap_done();
}
