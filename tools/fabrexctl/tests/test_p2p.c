// SPDX-License-Identifier: GPL-2.0-only
/*
 * "p2p", and what compose, plan, apply and move say about slots beforehand, on
 * the small fabric and a machine made of files: slot 2 is 0000:02:01.0 with
 * 0000:04:00.0 below, slot 3 0000:02:02.0, slot 4 0000:02:03.0.
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../lib/tests/machine.h"
#include "ctl.h"
#include "fake.h"
#include "run_line.h"

#define GIB (1ull << 30)

static struct machine machine;

static struct fake *start(void)
{
	struct fake *f = fabric_small();

	machine_new(&machine);
	setenv("FABREX_ROOT", machine.root, 1);
	f->pci_domain = 0;
	f->pci_bus = 2;
	return f;
}

static void finish(struct fake *f)
{
	machine_free(&machine);
	fake_free(f);
}

static struct fake *start_bound(void)
{
	struct fake *f = start();

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	fake_bind(f, "columba1.gpu2", "b.0");
	fake_bind(f, "columba1.gpu3", "b.0");
	return f;
}

static struct object *endpoint(struct fake *f, const char *name)
{
	return model_find(f->m, name, T_BIT(T_ENDPOINT));
}

static void line(struct fake *f, const char *words, int code,
		 const char *says)
{
	struct run r = run_line(&f->b, words);

	ok(r.code == code, "\"%s\" exits with %d (%d) %s", words, code, r.code,
	   r.err);
	has(code && code != EXIT_NO_P2P ? r.err : r.out, says);
	run_free(&r);
}

static void all_pairs(void)
{
	struct fake *f = start_bound();
	struct run r;

	r = run_line(&f->b, "p2p");
	ok(r.code == 0, "all pairs: %d %s", r.code, r.err);
	has(r.out, "FROM           TO             P2P  PATH    DISTANCE");
	has(r.out, "a.0            columba1.gpu0  yes  switch         4");
	has(r.out, "a.0            columba1.gpu1  yes  switch         4");
	has(r.out, "columba1.gpu0  columba1.gpu1  yes  switch         4");
	hasnt(r.out, "columba1.gpu2");
	run_free(&r);
	machine_acs(&machine, "0000:02:01.0", 0x001d);
	r = run_line(&f->b, "p2p");
	ok(r.code == 0, "a list is no failure: %d", r.code);
	has(r.out, "no   root           4  acs     0000:02:01.0  0x000c");
	has(r.out, "a.0 to columba1.gpu0: no: ACS redirect");
	has(r.out, "    boot with pci=disable_acs_redir=0000:02:01.0");
	hasnt(r.out, "a.0 to columba1.gpu1");
	/* gpu0 to gpu1 too; the cause is said once. */
	has(r.out, "list to turn it round (likewise 1 more)\n    boot with");
	hasnt(r.out, "columba1.gpu0 to columba1.gpu1");
	run_free(&r);
	/* Directions that differ have a row each. */
	machine_acs(&machine, "0000:02:01.0", 0);
	machine_poke(&machine, "0000:05:00.0", 4, 0x0002);
	r = run_line(&f->b, "p2p --wide");
	has(r.out, "a.0            columba1.gpu1  no         yes  switch");
	has(r.out, "columba1.gpu1  a.0            no         no   switch");
	has(r.out, "no-master");
	run_free(&r);
	finish(f);
}

static void named_pairs(void)
{
	struct fake *f = start_bound();

	line(f, "p2p a.0 columba1.gpu0", 0, "a.0 to columba1.gpu0: yes: "
	     "upstream port 0000:01:00.0 turns it round, distance 4");
	line(f, "p2p fabrex0 0000:04:00.0", 0, "fabrex0 to 0000:04:00.0: yes");
	line(f, "p2p /dev/fabrex0 04:00.0", 0, "yes");
	line(f, "p2p columba1.gpu0", 0, "columba1.gpu0  columba1.gpu1  yes");
	line(f, "p2p columba1.gpu0 0000:12:00.0", EXIT_NO_P2P,
	     "they have only the root complex in common");
	machine_acs(&machine, "0000:02:01.0", 0x001d);
	line(f, "p2p a.0 columba1.gpu0", EXIT_NO_P2P, "ACS redirect");
	line(f, "p2p a.0 columba1.gpu1", 0, "yes");
	line(f, "p2p a.0", EXIT_NO_P2P, "ACS redirect");
	line(f, "p2p a.0 columba1.gpu5", EXIT_FAILED, "bound to no host");
	line(f, "p2p a.0 columba1.gpx0", EXIT_NOT_FOUND, "did you mean");
	line(f, "p2p draco1:4", EXIT_FAILED, "leads to no host");
	line(f, "p2p a.0 fabrex7", EXIT_NOT_FOUND, "fabrex7");
	line(f, "p2p a.0 0000:zz:00.0", EXIT_NOT_FOUND, "0000:zz:00.0");
	line(f, "p2p a b c", EXIT_USAGE, "two at most");
	line(f, "p2p a.0 0000:99:00.0", EXIT_NO_P2P, "no PCI device");
	f->no_device = true;
	line(f, "p2p a.0 columba1.gpu0", EXIT_NO_DEVICE, "no PCI device for");
	f->no_module = true;
	line(f, "p2p columba1.gpu0", EXIT_NO_DEVICE, "not loaded");
	finish(f);
}

static void other_hosts(void)
{
	struct fake *f = start_bound();

	line(f, "p2p a.0 columba1.gpu2", EXIT_NO_P2P,
	     "run on host b: fabrexctl p2p b.0 columba1.gpu2");
	line(f, "p2p columba1.gpu0 columba1.gpu2", EXIT_NO_P2P,
	     "here the port reaches columba1.gpu0: yes");
	line(f, "p2p columba1.gpu2 columba1.gpu0", EXIT_NO_P2P,
	     "run on host b: fabrexctl p2p b.0 columba1.gpu2");
	/* Host memory at the far end: what is here is all there is to know. */
	line(f, "p2p columba1.gpu0 b.0", 0, "yes: the switch's DMA engine");
	line(f, "p2p columba1.gpu2 columba1.gpu3", EXIT_NO_P2P,
	     "run on host b: fabrexctl p2p columba1.gpu2 columba1.gpu3");
	line(f, "p2p c.0 columba1.gpu3", EXIT_NO_P2P, "hosts c and b");
	machine_acs(&machine, "0000:02:01.0", 0x001d);
	line(f, "p2p columba1.gpu0 columba1.gpu2", EXIT_NO_P2P,
	     "no: the switch's DMA engine moves it between hosts; here the "
	     "port reaches columba1.gpu0: no, acs");
	line(f, "p2p columba1.gpu0 b.0", EXIT_NO_P2P, "no, acs");
	finish(f);
}

static void json(void)
{
	static const char *const keys[] = {
		"initiator", "target", "both_ways", "verdict", "path",
		"distance", "reason", "blocker", "bits", "iommu", "common",
		"initiator_pci_name", "target_pci_name", "host", "text",
		"remedy"
	};
	struct fake *f = start_bound();
	json_object *doc, *rows = NULL, *row;
	struct run r;
	size_t i, n;

	machine_acs(&machine, "0000:02:01.0", 0x001d);
	r = run_line(&f->b, "p2p --json");
	doc = json_tokener_parse(r.out);
	json_object_object_get_ex(doc, "pairs", &rows);
	n = rows ? json_object_array_length(rows) : 0;
	ok(n == 3, "three pairs: %zu", n);
	row = n ? json_object_array_get_idx(rows, 0) : NULL;
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		ok(json_object_object_get_ex(row, keys[i], NULL), "key %s",
		   keys[i]);
	ok((size_t)json_object_object_length(row) == ARRAY_SIZE(keys),
	   "and no others");
	has(r.out, "\"bits\":\"0x000c\"");
	has(r.out, "\"distance\":4");
	has(r.out, "\"reason\":\"acs\"");
	json_object_put(doc);
	run_free(&r);
	r = run_line(&f->b, "p2p columba1.gpu0 columba1.gpu2 --json");
	has(r.out, "\"path\":\"fabric\",\"distance\":null");
	has(r.out, "\"host\":\"b\"");
	run_free(&r);
	finish(f);
}

/* ---- before composing --------------------------------------------------- */

static void window_too_small(void)
{
	struct fake *f = start();

	f->names_slot = true;
	endpoint(f, "columba1.gpu0")->size = 4 * GIB;
	line(f, "compose columba1.gpu0 --to a", EXIT_NO_ROOM,
	     "columba1.gpu0 does not fit: its memory needs a window of 4G, "
	     "slot 2 of a.0 (bridge 0000:02:01.0) has 1G and can have 1G");
	ok(!f->changes, "nothing was moved");
	line(f, "compose columba1.gpu0 --to a --dry-run", EXIT_NO_ROOM,
	     "pci=hpmmioprefsize=4G");
	line(f, "compose columba1.gpu0 --to a --no-preflight", 0, "composed");
	line(f, "release columba1.gpu0", 0, "released");
	/* Nothing is known of other hosts, so nothing is said. */
	line(f, "compose columba1.gpu0 --to b", 0, "composed");
	line(f, "move columba1.gpu0 --to a", EXIT_NO_ROOM, "does not fit");
	line(f, "move columba1.gpu0 --to a --force", 0, "composed");
	finish(f);
}

/* Where the second of two comes is not known: any of the free slots. */
static void named_slots(void)
{
	struct fake *f = start();

	f->names_slot = true;
	endpoint(f, "columba1.gpu0")->size = GIB;
	endpoint(f, "columba1.gpu1")->size = GIB;
	machine_memory(&machine, "0000:01:00.0", 0x100000000, 3 * GIB);
	machine_memory(&machine, "0000:02:02.0", 0x180000000, GIB / 4);
	machine_memory(&machine, "0000:02:03.0", 0x190000000, GIB / 2);
	line(f, "compose columba1.gpu0 columba1.gpu1 --to a", EXIT_NO_ROOM,
	     "columba1.gpu1 does not fit");
	line(f, "compose columba1.gpu0 columba1.gpu1 --to a", EXIT_NO_ROOM,
	     "slot 4 of a.0 (bridge 0000:02:03.0) has 512M");
	ok(!f->changes, "nothing was moved");
	endpoint(f, "columba1.gpu1")->size = GIB / 2;
	line(f, "compose columba1.gpu0 columba1.gpu1 --to a", 0,
	     "! columba1.gpu1 fits into some of the free slots of a.0 only, "
	     "not into slot 3 (bridge 0000:02:02.0)");
	finish(f);
}

/* Two that fit, each by itself. */
static void together(void)
{
	struct fake *f = start();

	endpoint(f, "columba1.gpu0")->size = 2 * GIB;
	endpoint(f, "columba1.gpu1")->size = 2 * GIB;
	endpoint(f, "columba1.gpu2")->size = GIB;
	/* One gap of 2 GiB, next to the port, that any of three could have. */
	machine_memory(&machine, "0000:01:00.0", 0x100000000, 4 * GIB);
	machine_memory(&machine, "0000:02:01.0", 0x140000000, GIB);
	machine_memory(&machine, "0000:02:02.0", 0, 0);
	machine_memory(&machine, "0000:02:03.0", 0, 0);
	line(f, "compose columba1.gpu0 --to a --dry-run", 0, "+ columba1.gpu0");
	line(f, "compose columba1.gpu0 columba1.gpu1 --to a", EXIT_NO_ROOM,
	     "columba1.gpu1 does not fit besides the others: together they "
	     "need windows of 4G, the free slots of a.0 can have 3G at most");
	ok(!f->changes, "nothing was moved");
	line(f, "compose columba1.gpu0 columba1.gpu2 --to a --dry-run", 0,
	     "+ columba1.gpu2");
	line(f, "compose columba1.gpu0 columba1.gpu1 --to a --no-preflight",
	     0, "composed columba1.gpu1");
	line(f, "release columba1.gpu0 columba1.gpu1", 0, "released");
	/* Room enough, but in one slot. */
	machine_memory(&machine, "0000:02:01.0", 0x140000000, 256 << 20);
	machine_memory(&machine, "0000:02:02.0", 0x150000000, 256 << 20);
	machine_memory(&machine, "0000:02:03.0", 0x180000000, 2 * GIB);
	endpoint(f, "columba1.gpu0")->size = GIB;
	endpoint(f, "columba1.gpu1")->size = GIB;
	line(f, "compose columba1.gpu0 columba1.gpu1 --to a", EXIT_NO_ROOM,
	     "columba1.gpu1 does not fit besides the others: 2 need a window "
	     "of 1G or more, which 1 free slots of a.0 can have");
	line(f, "compose columba1.gpu0 --to a", 0, "composed");
	finish(f);
}

/* A switch that names none, as Linux does not pass it on. */
static void unnamed_slots(void)
{
	struct fake *f = start();
	struct run r;

	endpoint(f, "columba1.gpu0")->size = GIB;
	machine_memory(&machine, "0000:01:00.0", 0x100000000, 3 * GIB);
	machine_memory(&machine, "0000:02:01.0", 0x140000000, GIB / 4);
	machine_memory(&machine, "0000:02:02.0", 0x180000000, GIB / 8);
	machine_memory(&machine, "0000:02:03.0", 0x190000000, GIB / 2);
	/* Slot 2 can have the whole gap that it is in. */
	line(f, "compose columba1.gpu0 --to a --dry-run", 0,
	     "! columba1.gpu0 needs a window of 1G, slot 2 of a.0");
	machine_poke(&machine, "0000:02:01.0", 0x18, 0x0002);
	line(f, "compose columba1.gpu0 --to a", EXIT_NO_ROOM,
	     "and can have 512M at most");
	machine_poke(&machine, "0000:02:02.0", 0x18, 0x0002);
	machine_poke(&machine, "0000:02:03.0", 0x18, 0x0002);
	line(f, "compose columba1.gpu0 --to a", EXIT_NO_ROOM,
	     "has no bus number");
	machine_free(&machine);
	machine_new(&machine);
	setenv("FABREX_ROOT", machine.root, 1);
	machine_acs(&machine, "0000:02:02.0", 0x0004);
	line(f, "compose columba1.gpu0 --to a --dry-run", 0,
	     "! a.0 may reach columba1.gpu0 through host memory only: ACS");
	r = run_line(&f->b, "compose columba1.gpu0 --to a --require-p2p");
	ok(r.code == EXIT_NO_P2P, "it could come there: %d", r.code);
	has(r.err, "could not reach columba1.gpu0 in slot 3: ACS");
	run_free(&r);
	fake_bind(f, "columba1.gpu1", "a.0");
	fake_bind(f, "columba1.gpu2", "a.0");
	line(f, "compose columba1.gpu0 --to a --require-p2p", 0, "composed");
	finish(f);
}

static void window_grows(void)
{
	struct fake *f = start();
	struct run r;

	f->names_slot = true;
	endpoint(f, "columba1.gpu0")->size = 2 * GIB;
	machine_memory(&machine, "0000:02:02.0", 0, 0);
	machine_memory(&machine, "0000:02:03.0", 0, 0);
	r = run_line(&f->b, "compose columba1.gpu0 --to a --json");
	ok(r.code == 0, "Linux can make room: %d %s", r.code, r.out);
	has(r.out, "\"warnings\":[\"columba1.gpu0 needs a window of 2G");
	run_free(&r);
	machine_poke(&machine, "0000:02:02.0", 0x18, 2);
	line(f, "compose columba1.gpu1 --to a", EXIT_NO_ROOM,
	     "has no bus number");
	finish(f);
}

static void acs_beforehand(void)
{
	struct fake *f = start();
	struct run r;

	machine_acs(&machine, "0000:02:00.0", 0x001d);
	r = run_line(&f->b, "compose columba1.gpu0 --to a");
	ok(r.code == 0, "a warning: %d %s", r.code, r.err);
	has(r.out, "! a.0 will reach columba1.gpu0 through host memory only: "
	    "ACS redirect");
	has(r.out, "pci=disable_acs_redir=0000:02:00.0");
	run_free(&r);
	line(f, "release columba1.gpu0", 0, "released");
	r = run_line(&f->b, "compose columba1.gpu0 --to a --require-p2p");
	ok(r.code == EXIT_NO_P2P && !*r.out, "refused: %d", r.code);
	has(r.err, "could not reach columba1.gpu0 in slot 2: ACS redirect");
	run_free(&r);
	ok(f->changes == 2, "nothing was moved: %u", f->changes);
	r = run_line(&f->b, "compose columba1.gpu0 --to b --require-p2p");
	ok(r.code == EXIT_NO_P2P, "elsewhere it is not known: %d", r.code);
	has(r.err, "is known on host b only");
	run_free(&r);
	line(f, "compose columba1.gpu0 --to a --require-p2p --no-preflight",
	     EXIT_USAGE, "cannot be had with");
	machine_acs(&machine, "0000:02:00.0", 0);
	line(f, "compose columba1.gpu0 --to a --require-p2p", 0, "composed");
	machine_text(&machine, "boot/config-7.2-test",
		     "# CONFIG_PCI_P2PDMA is not set\n");
	line(f, "compose columba1.gpu1 --to a", 0, "CONFIG_PCI_P2PDMA");
	finish(f);
}

static void nothing_visible(void)
{
	struct fake *f = start();
	struct run r;

	machine_remove(&machine, "sys");
	r = run_line(&f->b, "compose columba1.gpu0 --to a");
	ok(r.code == 0, "no PCI tree to look at: %d %s", r.code, r.err);
	hasnt(r.out, "!");
	run_free(&r);
	r = run_line(&f->b, "compose columba1.gpu1 --to a --require-p2p");
	ok(r.code == EXIT_NO_P2P, "but then it is not known: %d", r.code);
	has(r.err, "no free slot of a.0 is visible");
	run_free(&r);
	finish(f);
	/* As a user without privileges sees bridges. */
	f = start();
	machine_cut_all(&machine, 64);
	r = run_line(&f->b, "compose columba1.gpu0 --to a --require-p2p");
	ok(r.code == EXIT_NO_P2P, "nor is it then: %d", r.code);
	has(r.err, "visible to root only");
	run_free(&r);
	finish(f);
}

static void plan_and_apply(void)
{
	char path[] = "/tmp/fabrexctl-p2p-XXXXXX", text[128];
	struct fake *f = start();
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	fputs("bindings = ( { endpoint = \"columba1.gpu0\"; host = \"a\"; } "
	      ");\n", file);
	fclose(file);
	endpoint(f, "columba1.gpu0")->size = 4 * GIB;
	snprintf(text, sizeof(text), "apply %s", path);
	line(f, text, EXIT_NO_ROOM, "does not fit");
	ok(!f->changes, "nothing was moved");
	/* Others may plan too, but not ask the switch. */
	snprintf(text, sizeof(text), "plan %s", path);
	line(f, text, geteuid() ? 0 : EXIT_NO_ROOM,
	     geteuid() ? "+ columba1.gpu0" : "does not fit");
	endpoint(f, "columba1.gpu0")->size = GIB;
	machine_acs(&machine, "0000:02:01.0", 0x0004);
	line(f, text, 0, geteuid() ? "+ columba1.gpu0" : "! a.0 may reach");
	snprintf(text, sizeof(text), "apply %s --no-preflight", path);
	line(f, text, 0, "composed");
	unlink(path);
	finish(f);
}

int main(void)
{
	all_pairs();
	named_pairs();
	other_hosts();
	json();
	window_too_small();
	named_slots();
	together();
	unnamed_slots();
	window_grows();
	acs_beforehand();
	nothing_visible();
	plan_and_apply();
	return tap_done();
}
