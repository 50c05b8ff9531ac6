// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrexctl on a Switchtec PFX: which commands it sends and which it does not,
 * what it says when the switch refuses, is silent or answers nonsense.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl.h"
#include "look.h"
#include "pfx.h"
#include "run_line.h"

static void runs(struct backend *b, const char *line, const char *says)
{
	struct run r = run_line(b, line);

	ok(r.code == 0, "%s: %d %s", line, r.code, r.err);
	has(r.out, says);
	run_free(&r);
}

/* ---- looking ------------------------------------------------------------- */

static void listing(void)
{
	struct backend *b = pfx_start();
	json_object *doc;

	pfx_fake.port[5].bound = true;
	pfx_fake.port[5].partition = 4;
	pfx_fake.port[5].logical = 2;
	pfx_fake.port[7].bound = true;
	pfx_fake.port[7].partition = 6;
	pfx_fake.port[7].logical = 1;
	pfx_fake.port[8].result = MRPC_BIND_IN_PROGRESS;
	pfx_fake.port[2].down = true;
	pfx_plug(2, 0);
	pfx_plug(2, 1);
	doc = look_json(b, "list endpoints --json");
	ok(look_length(doc, "endpoints") == 8, "eight GPUs");
	ok(!strcmp(look_text(doc, "endpoints.0.pci_name"), "0000:63:00.0"),
	   "the first: %s", look_text(doc, "endpoints.0.pci_name"));
	ok(!strcmp(look_text(doc, "endpoints.1.pci_name"), "0000:63:00.1"),
	   "the second behind the same port");
	ok(!strcmp(look_text(doc, "endpoints.1.host"), "a"), "is a's");
	look_is(doc, "endpoints.1.slot", 2);
	ok(!strcmp(look_text(doc, "endpoints.4.host"), "c"), "one is c's");
	ok(!*look_text(doc, "endpoints.4.pci_name"),
	   "what it is there is not known here");
	ok(!strcmp(look_text(doc, "endpoints.5.state"), "binding"),
	   "one is being bound");
	ok(!strcmp(look_text(doc, "endpoints.6.state"), "free"), "one is free");
	json_object_put(doc);
	doc = look_json(b, "list hosts --json");
	ok(!strcmp(look_text(doc, "hosts.1.state"), "down"), "b is down");
	json_object_put(doc);
	doc = look_json(b, "list fports --json");
	ok(!strcmp(look_text(doc, "fports.0.device"), "/dev/switchtec0") &&
	   !strcmp(look_text(doc, "fports.0.name"), "a.0"), "the local port");
	json_object_put(doc);
	runs(b, "", "fabric lab");
	runs(b, "port pfx1:7", "uplink");
	ok(!pfx_fake.binds && !pfx_fake.unbinds, "nothing was changed");
	pfx_finish(b);
}

/* Without --fabric, and without the kernel's fabric, the file in /etc is used. */
static void chosen(void)
{
	struct backend *b = pfx_start();

	ok(switchtec_is_set_up() && switchtec_is_here(), "it is set up");
	machine_remove(&pfx_machine, "etc/fabrex/fabric.topo");
	ok(!switchtec_is_set_up(), "without the file it is not");
	look_refused(b, "compose gpu --to a", EXIT_NOT_FOUND, "fabric.topo");
	machine_text(&pfx_machine, "etc/fabrex/fabric.topo",
		     "fabric = \"x\"; switches = ( { name = \"d\"; ports = 4; } );"
		     "hosts = ( { name = \"a\"; manager = true; ports = ( \"d:1\" ); } );");
	look_refused(b, "compose gpu --to a", EXIT_FAILED, "no switch whose model is");
	machine_text(&pfx_machine, "etc/fabrex/fabric.topo",
		     "fabric = \"x\"; switches = ( { name = \"p\"; model = \"pfx\"; ports = 4; } );"
		     "hosts = ( { name = \"a\"; manager = true; ports = ( \"p:2\" ); } );");
	look_refused(b, "list endpoints", EXIT_NO_DEVICE, "leads to port 1 of a PFX, where");
	machine_text(&pfx_machine, "etc/fabrex/fabric.topo", pfx_topology);
	machine_text(&pfx_machine, "sys/bus/pci/devices/0000:60:00.1/device",
		     "0x4200\n");
	look_refused(b, "list endpoints", EXIT_NO_DEVICE, "modprobe switchtec");
	machine_remove(&pfx_machine, "sys/class/switchtec");
	look_refused(b, "list endpoints", EXIT_NO_DEVICE, "modprobe switchtec");
	pfx_finish(b);
}

/* With --fabric an error is one; with the file in /etc some mean "no fabric". */
static void named(void)
{
	struct backend *b = pfx_start();
	struct run r;

	machine_remove(&pfx_machine, "sys/class/switchtec");
	look_refused(b, look_line("list --fabric %s/etc/fabrex/fabric.topo",
				  pfx_machine.root),
		     EXIT_NO_DEVICE, "no /dev/switchtecN of a PFX");
	look_refused(b, "list --fabric /nowhere", EXIT_NOT_FOUND, "/nowhere");
	r = run_line(b, "list");
	ok(!r.code, "without it the machine is shown: %s", r.err);
	has(r.out, "no /dev/switchtecN of a PFX");
	run_free(&r);
	pfx_finish(b);
}

/* ---- changes ------------------------------------------------------------- */

static void composing(void)
{
	struct backend *b = pfx_start();
	struct run r;

	pfx_plug(1, 0);
	runs(b, "compose flat.gpu0 --to a", "composed flat.gpu0 to a.0 slot 1, 0000:62:00.0");
	ok(pfx_fake.port[7].bound && pfx_fake.port[7].partition == 4 &&
	   pfx_fake.port[7].logical == 1, "port 7 is in partition 4");
	runs(b, "compose flat.gpu0 --to a", "as it should be");
	look_refused(b, "compose flat.gpu0 --to c", EXIT_BUSY, "bound to a.0");
	runs(b, "compose flat.gpu1 --to c", "slot 1");
	ok(pfx_fake.binds == 2, "two binds");
	pfx_fake.slow = 12;
	runs(b, "compose flat.gpu2 --to c", "slot 2");
	ok(!pfx_fake.slow, "it was waited for");
	runs(b, "compose flat.gpu3 --to b --dry-run", "+ flat.gpu3 to b.0");
	ok(pfx_fake.binds == 3, "a dry run binds nothing");
	runs(b, "release flat.gpu0", "released flat.gpu0 from a.0");
	ok(pfx_power(1) == '0', "its slot was powered off before");
	look_refused(b, "release flat.gpu1", EXIT_BUSY, "Only that host can take it out");
	ok(pfx_fake.unbinds == 1, "and nothing was taken from c");
	pfx_fake.port[8].down = true;
	runs(b, "release flat.gpu1", "released flat.gpu1 from c.0");
	runs(b, "release flat.gpu2 --force", "released");
	r = run_line(b, "port flat:1 reset");
	ok(r.code, "ports cannot be reset");
	run_free(&r);
	look_refused(b, "stats", EXIT_FAILED, "not public");
	look_refused(b, "agent --timeout 1", EXIT_FAILED, "nobody can ask");
	pfx_finish(b);
}

static void shared_ports(void)
{
	struct backend *b = pfx_start();

	pfx_plug(1, 0);
	look_refused(b, "compose box.gpu0 --to a", EXIT_FAILED,
		     "is behind port pfx1:5 together with box.gpu1: this switch");
	ok(!pfx_fake.binds, "nothing was bound");
	/* The second GPU does not come. */
	look_refused(b, "compose pfx1:5 --to a --timeout 0.2", EXIT_TIMEOUT,
		     "no PCI device appeared");
	ok(pfx_fake.binds == 1 && pfx_fake.unbinds == 1 &&
	   !pfx_fake.port[5].bound, "it was undone, once");
	pfx_plug(1, 1);
	runs(b, "compose pfx1:5 --to a",
	     "composed box.gpu1 to a.0 slot 1, 0000:62:00.1");
	ok(pfx_fake.binds == 2, "both by one bind");
	look_refused(b, "release box.gpu1", EXIT_FAILED, "together with box.gpu0");
	runs(b, "release box.gpu1 box.gpu0", "released box.gpu0 from a.0");
	ok(pfx_fake.unbinds == 2, "both by one unbind");
	pfx_plug(1, 2);
	runs(b, "compose box.gpu0 box.gpu1 --to a",
	     "! behind pfx1:5 there are 3 gpu devices");
	pfx_fake.port[5].down = true;
	runs(b, "move pfx1:5 --to c", "composed box.gpu0 to c.0");
	ok(pfx_fake.port[5].partition == 6, "both are c's");
	pfx_finish(b);
}

static void many_managers(void)
{
	struct backend *b = pfx_start();

	pfx_fake.taken = 2;
	runs(b, "compose flat.gpu0 --to c", "slot 3");
	ok(pfx_fake.port[10].bound && pfx_fake.port[9].bound,
	   "what another manager has bound meanwhile stays");
	pfx_fake.refuse = MRPC_BIND_RET_PORT_BOUND;
	look_refused(b, "compose flat.gpu1 --to c", EXIT_BUSY, "another manager");
	pfx_fake.refuse = MRPC_BIND_RET_IN_PROGRESS;
	look_refused(b, "compose flat.gpu1 --to c", EXIT_BUSY, "in progress");
	pfx_fake.refuse = MRPC_BIND_RET_NO_LOGICAL;
	look_refused(b, "compose flat.gpu1 --to c", EXIT_NO_ROOM, "no such logical port");
	pfx_fake.refuse = 0x1234;
	look_refused(b, "compose flat.gpu1 --to c", EXIT_FAILED, "0x1234");
	pfx_finish(b);
}

static void denied(void)
{
	struct backend *b = pfx_start();

	pfx_plug(1, 0);
	runs(b, "compose flat.gpu0 --to a", "composed");
	pfx_fake.refuse = MRPC_RET_DENIED;
	look_refused(b, "compose flat.gpu1 --to c", EXIT_DENIED,
		     "host a (partition 4) may not bind ports");
	look_refused(b, "release flat.gpu0", EXIT_DENIED, "on a manager: c");
	ok(pfx_power(1) == '1', "its slot is on again");
	pfx_finish(b);
}

static void taken_back(void)
{
	struct backend *b = pfx_start();

	machine_text(&pfx_machine, "wish", "bindings = ("
		     "{ endpoint = \"flat.gpu0\"; host = \"c\"; },"
		     "{ endpoint = \"flat.gpu1\"; host = \"c\"; } );");
	pfx_fake.refuse = MRPC_BIND_RET_CHECK;
	pfx_fake.refuse_at = 2;
	look_refused(b, look_line("apply %s/wish", pfx_machine.root),
		     EXIT_FAILED, "its own check has failed; all bindings are as they were");
	ok(pfx_fake.binds == 1 && pfx_fake.unbinds == 1 &&
	   !pfx_fake.port[7].bound, "the first was taken back");
	runs(b, look_line("apply %s/wish", pfx_machine.root),
	     "composed flat.gpu1");
	runs(b, look_line("plan %s/wish", pfx_machine.root), "2 unchanged");
	pfx_finish(b);
}

/* What is sent and then not answered may have been done: it is looked at. */
static void without_an_answer(void)
{
	struct backend *b = pfx_start();

	machine_text(&pfx_machine, "wish", "bindings = ("
		     "{ endpoint = \"flat.gpu0\"; host = \"c\"; },"
		     "{ endpoint = \"flat.gpu1\"; host = \"c\"; } );");
	pfx_fake.lose_at = 2;
	look_refused(b, look_line("apply %s/wish", pfx_machine.root),
		     EXIT_TIMEOUT, "no answer; all bindings are as they were");
	ok(pfx_fake.binds == 2 && pfx_fake.unbinds == 2 &&
	   !pfx_fake.port[7].bound && !pfx_fake.port[8].bound,
	   "the one without an answer was taken back, too");
	pfx_fake.changes = 0;
	pfx_fake.lose_at = 1;
	pfx_fake.lose_kind = EIO;
	look_refused(b, "compose flat.gpu0 --to c", EXIT_FAILED,
		     "all bindings are as they were");
	ok(!pfx_fake.port[7].bound, "whatever the error");
	pfx_fake.lose_at = 0;
	pfx_fake.busy = 3;
	runs(b, "compose flat.gpu0 --to c", "slot 1");
	ok(!pfx_fake.busy, "a busy switch is asked again");
	pfx_finish(b);
}

static void logical_ports(void)
{
	struct backend *b = pfx_start();

	look_refused(b, "compose flat.gpu0 flat.gpu1 flat.gpu2 flat.gpu3 pfx1:5 --to c",
		     EXIT_NO_ROOM, "5 ports are to be bound to c.0, which has 4");
	ok(!pfx_fake.binds, "none was bound");
	runs(b, "compose gpu:4 --to c --no-wait", "composed box.gpu3 to c.0");
	ok(pfx_fake.binds == 2, "two ports of two");
	look_refused(b, "compose box.gpu0 --to a", EXIT_BUSY, "bound to c.0");
	runs(b, "compose gpu:2 --to c --dry-run", "+ flat.gpu1 to c.0");
	runs(b, "compose gpu --to c", "composed flat.gpu0 to c.0 slot 3");
	look_refused(b, "compose gpu:9 --to c", EXIT_NO_ROOM, "only 3 free");
	pfx_finish(b);
}

/* Two functions of one device are one NIC, unless the file lists two. */
static void functions(void)
{
	struct backend *b = pfx_start();
	char *text = xstrdup(pfx_topology), *at;
	int i;

	at = strstr(text, "uplinks = ( \"pfx1:7\"");
	memcpy(strstr(at, "\"gpu\""), "\"nic\"", 5);
	machine_text(&pfx_machine, "etc/fabrex/fabric.topo", text);
	free(text);
	for (i = 0; i < 2; i++) {
		pfx_plug(1, i);
		machine_text(&pfx_machine,
			     look_line("sys/bus/pci/devices/0000:62:00.%d/class", i),
			     "0x020000\n");
	}
	runs(b, "compose flat.nic0 --to a", "composed flat.nic0 to a.0 slot 1, 0000:62:00.0");
	runs(b, "release flat.nic0", "released flat.nic0");
	ok(pfx_power(1) == '0', "in order");
	pfx_finish(b);
}

/* A port of a host that the file does not have. */
static void strangers(void)
{
	struct backend *b = pfx_start();

	pfx_fake.port[7].bound = true;
	pfx_fake.port[7].partition = 9;
	pfx_fake.port[7].logical = 1;
	look_refused(b, "compose flat.gpu0 --to c", EXIT_BUSY,
		     "a host that the topology file does not have");
	look_refused(b, "release flat.gpu0", EXIT_BUSY,
		     "only the host there can take it out");
	runs(b, "release flat.gpu0 --force", "released flat.gpu0");
	pfx_finish(b);
}

/* Below the slot there is not what the file says: it is not touched. */
static void wrong_slot(void)
{
	struct backend *b = pfx_start();

	pfx_fake.port[7].bound = true;
	pfx_fake.port[7].partition = 4;
	pfx_fake.port[7].logical = 3;
	pfx_plug(3, 0);
	machine_text(&pfx_machine, "sys/bus/pci/devices/0000:64:00.0/class",
		     "0x010802\n");
	look_refused(b, "release flat.gpu0", EXIT_NO_DEVICE,
		     "may be the wrong one");
	ok(pfx_power(3) == '1' && !pfx_fake.unbinds, "nothing was touched");
	runs(b, "release flat.gpu0 --force", "released flat.gpu0");
	ok(pfx_power(3) == '1', "not even by force");
	pfx_fake.port[7].bound = true;
	machine_remove(&pfx_machine, "sys/bus/pci/devices/0000:61:02.0");
	machine_text(&pfx_machine,
		     "sys/bus/pci/devices/0000:61:02.0/secondary_bus_number",
		     "100\n");
	look_refused(b, "release flat.gpu0", EXIT_NO_DEVICE,
		     "is up, but nothing");
	machine_remove(&pfx_machine, "sys/bus/pci/devices/0000:60:00.0");
	look_refused(b, "release flat.gpu0", EXIT_FAILED, "no bridge of that number");
	pfx_fake.unbinds = 0;
	pfx_fake.switched = true;
	look_refused(b, "release flat.gpu0 --force", EXIT_BUSY,
		     "another manager has unbound");
	ok(!pfx_fake.unbinds, "what is there now is left alone");
	pfx_finish(b);
}

/* ---- a switch that is broken, or hostile --------------------------------- */

static struct {
	uint32_t command;
	unsigned int at;
	uint8_t value;
	bool cut;
} spoiled;

static void spoil(uint32_t command, uint8_t *out, size_t len)
{
	if (command != spoiled.command || spoiled.at >= len || len < 64)
		return;
	if (spoiled.cut)
		memset(out + spoiled.at, 0, len - spoiled.at);
	else
		out[spoiled.at] = spoiled.value;
}

#define ENTRY(n, field)	(MRPC_LINKS_SIZE * (n) + (field))

static const struct {
	uint32_t command;
	unsigned int at;
	uint8_t value;
	bool cut;
	const char *says;
} nonsense[] = {
	{ MRPC_LINKS, ENTRY(1, 0), 64, false, "answer about links, entry 1: the port is 64" },
	{ MRPC_LINKS, ENTRY(2, 0), 1, false, "a port that an earlier entry has is 1" },
	{ MRPC_LINKS, ENTRY(1, 1), 200, false, "the partition is 200" },
	{ MRPC_LINKS, ENTRY(1, 2), 255, false, "the logical port is 255" },
	{ MRPC_LINKS, ENTRY(1, 4), 3, false, "the configured width is 3" },
	{ MRPC_LINKS, ENTRY(1, 5), 64, false, "the negotiated width is 64" },
	{ MRPC_LINKS, ENTRY(1, 5), 0, false, "the negotiated width is 0" },
	{ MRPC_LINKS, ENTRY(1, 6), 2, false, "the upstream flag is 2" },
	{ MRPC_LINKS, ENTRY(1, 7), 0x87, false, "the rate is 7" },
	{ MRPC_LINKS, ENTRY(5, 3), 0xf0, false, "does not report port 5" },
	{ MRPC_LINKS, ENTRY(5, 6), 1, false, "port 5 of pfx1 is a host port" },
	{ MRPC_LINKS, ENTRY(3, 0), 0, true, "answer about links, entry" },
	{ MRPC_BIND, 0, 49, false, "the number of entries is 49" },
	{ MRPC_BIND, 0, 5, false, "does not report port 10" },
	{ MRPC_BIND, 0, 0, false, "does not report port 5" },
	{ MRPC_BIND, 4, 0x40, false, "answer about bindings, entry 0: the port is 64" },
	{ MRPC_BIND, 4, 6, false, "a port that an earlier entry has is 6" },
	{ MRPC_BIND, 7, 3, false, "the result of the last change is 3" },
	{ MRPC_BIND, 7, 0x10, false, "the partition of a bound port is 255" },
	{ MRPC_BIND, 14, 0, true, "bindings" },
};

static void nonsense_answers(void)
{
	struct backend *b = pfx_start();
	size_t i;

	pfx_fake.spoil = spoil;
	for (i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		spoiled.command = nonsense[i].command;
		spoiled.at = nonsense[i].at;
		spoiled.value = nonsense[i].value;
		spoiled.cut = nonsense[i].cut;
		look_refused(b, "compose flat.gpu0 --to c", EXIT_FAILED,
			     nonsense[i].says);
	}
	ok(!pfx_fake.binds && !pfx_fake.unbinds, "nothing was ever changed");
	pfx_fake.spoil = NULL;
	pfx_fake.silent = true;
	look_refused(b, "compose flat.gpu0 --to c", EXIT_TIMEOUT, "no answer");
	pfx_fake.silent = false;
	machine_text(&pfx_machine, "sys/class/switchtec/switchtec0/partition",
		     "ff\n");
	look_refused(b, "compose flat.gpu0 --to c", EXIT_FAILED,
		     "its attribute \"partition\"");
	pfx_finish(b);
}

int main(void)
{
	listing();
	chosen();
	named();
	composing();
	shared_ports();
	many_managers();
	denied();
	taken_back();
	without_an_answer();
	logical_ports();
	functions();
	strangers();
	wrong_slot();
	nonsense_answers();
	look_clean();
	return tap_done();
}
