// SPDX-License-Identifier: GPL-2.0-only
/* monitor, port, stats, agent: streams, refusals, counters, answers. */
#include <stdlib.h>

#include "ctl.h"
#include "fake.h"
#include "run_line.h"

static struct event endpoint_event(const struct fake *f, const char *name,
				   uint32_t state)
{
	const struct object *o = model_find(f->m, name, T_ANY);
	struct event ev = {
		.type = FABREX_EVENT_TYPE_ENDPOINT, .seq = 7,
		.time_ns = 1700000000123456789ull, .object_type = T_ENDPOINT,
		.object = o->id, .has_state = true, .state = state,
		.slot = 3,
	};

	strcpy(ev.name, name);
	strcpy(ev.port_name, "a.0");
	return ev;
}

static void monitoring(void)
{
	struct fake *f = fabric_small();
	struct event ev = endpoint_event(f, "columba1.gpu0",
					 FABREX_ENDPOINT_STATE_BOUND);
	struct event link = { .type = FABREX_EVENT_TYPE_LINK,
			      .object_type = T_PORT, .has_state = true };
	struct run r;

	strcpy(link.name, "draco1:4");
	fake_push(f, &ev);
	fake_push(f, &link);
	r = run_line(&f->b, "monitor --count 2 --ready --timeout 5");
	ok(r.code == 0, "monitor: %s", r.err);
	has(r.out, "ready\n");
	has(r.out, ".123 endpoint        columba1.gpu0 bound port a.0 slot 3\n");
	has(r.out, "link            draco1:4 down\n");
	run_free(&r);
	fake_push(f, &ev);
	fake_push(f, &link);
	r = run_line(&f->b, "monitor --type link --count 1 --json");
	ok(r.code == 0 && !strstr(r.out, "columba1"), "--type");
	has(r.out, "{\"type\":\"link\"");
	has(r.out, "\"state\":\"down\"");
	run_free(&r);
	r = run_line(&f->b, "monitor --timeout 0.05");
	ok(r.code == 0 && !*r.out, "--timeout is no error");
	run_free(&r);
	r = run_line(&f->b, "monitor --timeout 0.05 --count 1");
	ok(r.code == EXIT_TIMEOUT, "unless events were asked for: %d", r.code);
	run_free(&r);
	r = run_line(&f->b, "monitor --type lnk");
	ok(r.code == EXIT_USAGE, "a wrong type");
	has(r.err, "did you mean \"link\"?");
	run_free(&r);
	r = run_line(&f->b, "monitor all");
	ok(r.code == EXIT_USAGE, "a word too many");
	run_free(&r);
	fake_free(f);
}

static const struct backend_ops *real_ops;

/* The fabric changes behind the monitor's back, before the second dump. */
static int lossy_objects(struct backend *b, const struct filter *flt,
			 struct model *m, struct err *e)
{
	struct fake *f = (struct fake *)b;

	if (f->dumps == 1)
		fake_bind(f, "columba1.gpu3", "b.0");
	return real_ops->objects(b, flt, m, e);
}

static void losing(void)
{
	struct fake *f = fabric_small();
	struct backend_ops ops = *f->b.ops;
	struct run r;

	real_ops = f->b.ops;
	ops.objects = lossy_objects;
	f->b.ops = &ops;
	fake_lose(f);
	r = run_line(&f->b, "monitor --count 2 --timeout 5 --json");
	ok(r.code == 0, "events lost: %s", r.err);
	has(r.out, "{\"type\":\"lost\"");
	has(r.out, "\"name\":\"columba1.gpu3\",\"state\":\"bound\"");
	has(r.out, "\"resync\":true");
	run_free(&r);
	fake_free(f);
}

static void ports(void)
{
	struct fake *f = fabric_small();
	struct run r;

	r = run_line(&f->b, "port draco1:4");
	has(r.out, "uplink");
	has(r.out, "columba1");
	run_free(&r);
	r = run_line(&f->b, "port a.0 disable");
	ok(r.code == EXIT_BUSY && !f->changes, "own port: %d", r.code);
	has(r.err, "would cut it off");
	run_free(&r);
	r = run_line(&f->b, "port a.0 reset --force");
	ok(r.code == 0 && f->last_action == FABREX_PORT_ACTION_RESET,
	   "by force");
	run_free(&r);
	fake_bind(f, "columba1.gpu0", "b.0");
	r = run_line(&f->b, "port draco1:4 disable");
	ok(r.code == EXIT_BUSY && f->changes == 1, "uplink in use: %d", r.code);
	has(r.err, "columba1.gpu0 by host b");
	run_free(&r);
	r = run_line(&f->b, "port draco1:5 disable -n");
	ok(r.code == 0 && f->changes == 1, "dry run");
	has(r.out, "would disable draco1:5, which is up");
	run_free(&r);
	r = run_line(&f->b, "port draco1:5 disable --json");
	has(r.out, "\"state\":\"disabled\"");
	run_free(&r);
	r = run_line(&f->b, "port draco1:5 enable");
	has(r.out, "draco1:5: enable done, now up");
	run_free(&r);
	f->fail_at = f->changes + 1;
	f->fail_code = EPERM;
	r = run_line(&f->b, "port draco1:5 reset");
	ok(r.code == EXIT_DENIED, "not allowed: %d", r.code);
	has(r.err, "draco1:5: injected failure");
	run_free(&r);
	r = run_line(&f->b, "port draco1:5 enabel");
	ok(r.code == EXIT_USAGE, "a wrong action");
	has(r.err, "did you mean \"enable\"?");
	run_free(&r);
	r = run_line(&f->b, "port draco1:9 enable");
	ok(r.code == EXIT_NOT_FOUND, "a wrong port");
	run_free(&r);
	fake_free(f);
}

static void statistics(void)
{
	struct fake *f = fabric_small();
	struct run r;

	r = run_line(&f->b, "stats --json");
	ok(r.code == 0, "stats: %s", r.err);
	has(r.out, "\"name\":\"a.0\"");
	has(r.out, "\"rx_bytes\":2000");
	has(r.out, "\"interrupts\":13000");
	hasnt(r.out, "per_second");
	run_free(&r);
	r = run_line(&f->b, "stats columba1.gpu0 b.0 --wide");
	has(r.out, "columba1.gpu0");
	has(r.out, "b.0");
	run_free(&r);
	r = run_line(&f->b, "stats --interval 0.01 --count 3 --json");
	ok(r.code == 0, "with rates");
	has(r.out, "\"tx_bytes_per_second\":");
	ok(strchr(r.out, '\n') && strchr(strchr(r.out, '\n') + 1, '\n'),
	   "one line for each sample");
	run_free(&r);
	r = run_line(&f->b, "stats columba1");
	ok(r.code == EXIT_NOT_FOUND, "an appliance has none");
	has(r.err, "is an appliance, not a port or endpoint");
	run_free(&r);
	r = run_line(&f->b, "stats --count 0");
	ok(r.code == EXIT_USAGE, "--count 0");
	run_free(&r);
	r = run_line(&f->b, "stats --interval 0");
	ok(r.code == EXIT_USAGE, "--interval 0");
	run_free(&r);
	fake_free(f);
}

static void links(void)
{
	struct fake *f = fabric_small();
	struct run r;

	r = run_line(&f->b, "stats --links --json");
	ok(r.code == 0, "links: %s", r.err);
	has(r.out, "{\"from\":\"a.0\",\"to\":\"a\",\"link\":\"host\",");
	has(r.out, "{\"from\":\"a\",\"to\":\"a.0\",\"link\":\"host\",");
	has(r.out, "\"to\":\"columba1\",\"link\":\"uplink\",");
	has(r.out, "\"link\":\"isl\",");
	has(r.out, "{\"from\":\"columba1.gpu0\",\"to\":\"columba1\","
		   "\"link\":\"endpoint\",\"capacity\":27000000000,");
	has(r.out, "\"bytes\":1}");
	has(r.out, "{\"from\":\"columba1.gpu7\",\"to\":\"columba1.gpu6\","
		   "\"link\":\"mesh\",\"capacity\":null,\"bytes\":3}");
	hasnt(r.out, "per_second");
	run_free(&r);
	r = run_line(&f->b, "stats columba1.gpu0 --links --json");
	has(r.out, "\"from\":\"columba1.gpu0\"");
	has(r.out, "\"to\":\"columba1.gpu0\"");
	hasnt(r.out, "gpu1");
	hasnt(r.out, "uplink");
	run_free(&r);
	r = run_line(&f->b, "stats -l columba1 --interval 0.01 --count 2");
	ok(r.code == 0, "rates of links");
	has(r.out, "BYTES/s");
	has(r.out, "columba1.gpu1");
	hasnt(r.out, "columba2");
	run_free(&r);
	r = run_line(&f->b, "stats --links draco1");
	ok(r.code == EXIT_NOT_FOUND, "a switch is at no end of a link");
	run_free(&r);
	r = run_line(&f->b, "stats --topology topologies/demo.topo");
	ok(r.code == EXIT_USAGE, "capacities are for links only");
	run_free(&r);
	r = run_line(&f->b, "stats -l --topology topologies/demo.topo");
	ok(r.code == 0, "capacities of a file: %s", r.err);
	has(r.out, "mesh");
	run_free(&r);
	r = run_line(&f->b, "stats -l columba1.gpu6 --interval 0.01 --count 2 "
			    "--topology topologies/demo.topo --json");
	ok(r.code == 0, "rates of a mesh: %s", r.err);
	has(r.out, "\"link\":\"mesh\",\"capacity\":48000000000,"
		   "\"bytes\":");
	hasnt(r.out, "null");
	run_free(&r);
	fake_free(f);
}

static void answering(void)
{
	struct fake *f = fabric_small();
	struct event ev = { .type = FABREX_EVENT_TYPE_RELEASE_REQUEST,
			    .token = 9 };
	struct run r;

	strcpy(ev.name, "columba1.gpu0");
	fake_push(f, &ev);
	r = run_line(&f->b, "agent --once --ready");
	ok(r.code == 0 && f->replied && f->last_granted, "granted: %s", r.err);
	has(r.out, "columba1.gpu0 (no device): granted");
	run_free(&r);
	f->replied = false;
	strcpy(ev.pci_name, "ffff:ff:1f.7");
	fake_push(f, &ev);
	r = run_line(&f->b, "agent --once --json");
	ok(f->replied && f->last_granted, "a device that is gone is granted");
	has(r.out, "\"answer\":\"granted\"");
	run_free(&r);
	f->replied = false;
	ev.surprise = true;
	fake_push(f, &ev);
	r = run_line(&f->b, "agent --once");
	ok(!f->replied, "what is gone by force needs no answer");
	has(r.out, "by force");
	run_free(&r);
	ev = endpoint_event(f, "columba1.gpu7", FABREX_ENDPOINT_STATE_BOUND);
	ev.type = FABREX_EVENT_TYPE_RELEASE_REQUEST;
	ev.timeout_ms = 5000;
	fake_bind(f, "columba1.gpu7", "a.0");
	fake_push(f, &ev);
	r = run_line(&f->b, "agent --once");
	has(r.out, "columba1.gpu7 (ffff:02:00.0): granted");
	run_free(&r);
	r = run_line(&f->b, "agent --once --timeout 0.05");
	ok(r.code == EXIT_TIMEOUT, "nobody asked: %d", r.code);
	run_free(&r);
	r = run_line(&f->b, "holders columba1.gpu0");
	ok(r.code == EXIT_NO_DEVICE, "holders: %d", r.code);
	has(r.err, "not composed to this host");
	run_free(&r);
	fake_bind(f, "columba1.gpu0", "b.0");
	r = run_line(&f->b, "holders columba1.gpu0");
	has(r.err, "belongs to host b");
	run_free(&r);
	fake_free(f);
}

int main(void)
{
	monitoring();
	losing();
	ports();
	statistics();
	links();
	answering();
	return tap_done();
}
