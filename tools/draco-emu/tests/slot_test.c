// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hot-plug against a fake QEMU: plugging, power-off, surprise, choice of slot,
 * routing of addresses to endpoints, QEMU coming and going.
 */
#define _GNU_SOURCE
#include <draco/gpu.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_qemu.h"
#include "function.h"
#include "loop.h"
#include "qmp.h"
#include "slot.h"
#include "tap.h"

#define MEM_SIZE	(1u << 20)
#define VRAM		(4u << 20)
#define BAR_ADDR	0x400000000ull

static char dir[] = "/tmp/emu-test-XXXXXX";
static char port_path[128], qmp_path[128];
static struct function *port;
static struct qmp *qmp;
static struct slots *slots;
static struct fake_qemu *vm;
static int mem_fd;

static struct {
	int plugged, failed, emptied, up, down, last;
	void *cookie;
} seen;

static void on_plugged(void *arg, unsigned int slot, void *cookie, int err)
{
	(void)arg;
	seen.last = (int)slot;
	seen.cookie = cookie;
	if (err)
		seen.failed++;
	else
		seen.plugged++;
}

static void on_emptied(void *arg, unsigned int slot, void *cookie)
{
	(void)arg;
	seen.last = (int)slot;
	seen.cookie = cookie;
	seen.emptied++;
}

static void on_host(void *arg, bool up)
{
	(void)arg;
	if (up)
		seen.up++;
	else
		seen.down++;
}

static const struct slots_ops ops = { on_plugged, on_emptied, on_host };

/* ---- Running the loop until something has happened ---- */

#define HUNG_MS	120000

static struct {
	struct loop_timer timer;
	int *value, want;
	uint64_t end;
} until;

static void look(void *arg)
{
	(void)arg;
	if (*until.value >= until.want || loop_now_ms() > until.end)
		loop_quit();
	else
		loop_timer_start(&until.timer, 5, look, NULL);
}

static bool run_until(int *value, int want, uint64_t ms)
{
	until.value = value;
	until.want = want;
	until.end = loop_now_ms() + ms;
	loop_timer_start(&until.timer, 0, look, NULL);
	loop_run();
	return *value >= want;
}

static void run_for(uint64_t ms)
{
	static int never;

	run_until(&never, 1, ms);
}

/* ---- Set-up ---- */

static bool start(unsigned int count)
{
	struct function_desc d = {
		.name = "port", .socket = port_path, .vendor = 0x1234,
		.link_speed = 4, .link_width = 16,
		.bar[0] = { .size = 0x10000 }, .dma = true,
	};
	static const struct function_ops none;
	struct slots_desc sd = {
		.host = "a", .run_dir = dir, .first = 2, .count = count,
	};

	memset(&seen, 0, sizeof(seen));
	if (loop_init() || function_create(&d, &none, NULL, &port) ||
	    qmp_create("a", qmp_path, &qmp))
		return false;
	sd.qmp = qmp;
	sd.port = port;
	return !slots_create(&sd, &ops, NULL, &slots);
}

static bool boot(void)
{
	int ups = seen.up;

	vm = fake_qemu_start(qmp_path, port_path, mem_fd, MEM_SIZE);
	return run_until(&seen.up, ups + 1, HUNG_MS);
}

static void stop(void)
{
	if (vm)
		fake_qemu_kill(vm);
	vm = NULL;
	slots_destroy(slots);
	qmp_destroy(qmp);
	function_destroy(port);
	loop_free();
}

static atomic_bool link_up = true;
static const struct endpoint_desc endpoint = {
	.link = &link_up,
	.name = "box.gpu0", .kind = 1, .vendor = 0x1234, .device = 0xda10,
	.size = VRAM,
};

static int plug(void *cookie)
{
	struct slots_function fn = { endpoint, cookie };
	int slot = slots_pick(slots, 0), ret;

	if (slot < 0)
		return slot;
	ret = slots_plug(slots, slot, &fn, 1);
	return ret ? ret : slot;
}

/* A device of @n functions into slot 2; a byte of @cookies for each. */
static int plug_many(char *cookies, unsigned int n)
{
	struct slots_function fn[SLOT_FUNCTIONS + 1];

	for (unsigned int i = 0; i < n; i++)
		fn[i] = (struct slots_function){ endpoint, cookies + i };
	return slots_plug(slots, 2, fn, n);
}

static int kind_of(uint64_t addr)	/* 2 endpoint, 1 host, 0 nothing */
{
	struct dma_hold h;

	if (!slots_peer(slots, addr, 8, DMA_PROT_READ, &h)) {
		dma_put(&h);
		return h.cookie ? 2 : -1;
	}
	if (dma_get(function_dma(port), addr, 8, DMA_PROT_READ, &h))
		return 0;
	dma_put(&h);
	return 1;
}

/* ---- Tests ---- */

static void test_plug(void)
{
	int x;

	CHECK(start(4));
	CHECK_EQ(plug(&x), -EHOSTDOWN);
	CHECK(boot() && slots_host_up(slots));
	CHECK_EQ(plug(&x), 2);
	CHECK_EQ(seen.plugged, 0);		/* never from inside */
	CHECK(run_until(&seen.plugged, 1, HUNG_MS));
	CHECK_EQ(seen.last, 2);
	CHECK(seen.cookie == &x);
	CHECK_EQ(fake_qemu_vendor(vm, "slot2"), 0x1234);
	CHECK(fake_qemu_power_off(vm, "slot2"));
	CHECK(run_until(&seen.emptied, 1, HUNG_MS));
	CHECK(seen.cookie == &x);
	CHECK(!slots_endpoint(slots, 2, 0));
	stop();
	CHECK_EQ(seen.emptied, 1);
}

static void test_choice(void)
{
	CHECK(start(3) && boot());
	CHECK_EQ(plug(&seen), 2);
	CHECK_EQ(plug(&seen), 3);
	CHECK_EQ(plug(&seen), 4);
	CHECK_EQ(plug(&seen), -ENOSPC);
	CHECK(run_until(&seen.plugged, 3, HUNG_MS));
	CHECK(fake_qemu_power_off(vm, "slot3"));
	CHECK(run_until(&seen.emptied, 1, HUNG_MS));
	run_for(2100);				/* slot 3 has rested */
	CHECK(fake_qemu_power_off(vm, "slot2"));
	CHECK(run_until(&seen.emptied, 2, HUNG_MS));
	CHECK_EQ(plug(&seen), 3);
	CHECK_EQ(plug(&seen), 2);		/* no other is free */
	stop();
}

static void test_refused(void)
{
	CHECK(start(2) && boot());
	fake_qemu_refuse(vm, 1);
	CHECK_EQ(plug(&seen), 2);
	CHECK(run_until(&seen.failed, 1, HUNG_MS));
	CHECK_EQ(seen.plugged, 0);
	CHECK_EQ(seen.emptied, 0);
	CHECK(!slots_endpoint(slots, 2, 0));
	stop();
}

static void test_routing(void)
{
	uint8_t *vram;
	int x;

	CHECK(start(4) && boot());
	CHECK_EQ(kind_of(0x1000), 1);
	CHECK_EQ(plug(&x), 2);
	CHECK(run_until(&seen.plugged, 1, HUNG_MS));
	CHECK_EQ(kind_of(BAR_ADDR), 0);
	CHECK(fake_qemu_set_bar(vm, "slot2", ENDPOINT_BAR_MEMORY, BAR_ADDR));
	CHECK_EQ(kind_of(BAR_ADDR), 2);
	CHECK_EQ(kind_of(BAR_ADDR + VRAM), 0);
	vram = function_bar_memory(endpoint_function(slots_endpoint(slots, 2, 0)),
				   ENDPOINT_BAR_MEMORY);
	struct dma_hold h;

	CHECK(!slots_peer(slots, BAR_ADDR + 4096, 1 << 30, DMA_PROT_WRITE, &h));
	CHECK(h.ptr == vram + 4096 && h.cookie == &x);
	CHECK_EQ(h.len, VRAM - 4096);
	CHECK(!dma_put(&h));
	CHECK(fake_qemu_set_bar(vm, "slot2", ENDPOINT_BAR_MEMORY,
				BAR_ADDR + (1 << 30)));
	CHECK_EQ(kind_of(BAR_ADDR), 0);
	CHECK_EQ(kind_of(BAR_ADDR + (1 << 30)), 2);
	CHECK(fake_qemu_power_off(vm, "slot2"));
	CHECK(run_until(&seen.emptied, 1, HUNG_MS));
	CHECK_EQ(kind_of(BAR_ADDR + (1 << 30)), 0);
	stop();
}

static unsigned char *vram_of(unsigned int slot)
{
	struct endpoint *e = slots_endpoint(slots, slot, 0);

	return function_bar_memory(endpoint_function(e), ENDPOINT_BAR_MEMORY);
}

/* An engine at work: sums up its memory for as long as it may. */
static bool start_engine(const char *bus)
{
	struct draco_gpu_cmd *ring = (void *)vram_of(2);

	for (int i = 0; i < 8; i++) {
		memset(&ring[i], 0, sizeof(ring[i]));
		ring[i].op = DRACO_GPU_REDUCE;
		ring[i].type = DRACO_GPU_BF16;
		ring[i].dst = ring[i].src0 = ring[i].src1 = VRAM / 2;
		ring[i].length = VRAM / 2;
	}
	return fake_qemu_write(vm, bus, DRACO_GPU_RING_SIZE, 8) &&
	       fake_qemu_write(vm, bus, DRACO_GPU_CTRL, 1) &&
	       fake_qemu_write(vm, bus, DRACO_GPU_TAIL, 8);
}

/* Nothing of one binding is left in the next, however the first ended. */
static void test_next_owner(void)
{
	for (int how = 0; how < 3; how++) {
		int empty;

		CHECK(start(4) && boot());
		CHECK_EQ(plug(&seen), 2);
		CHECK(run_until(&seen.plugged, 1, HUNG_MS));
		CHECK(fake_qemu_set_bar(vm, "slot2", 2, BAR_ADDR));
		memset(vram_of(2) + VRAM / 2, 0x77, VRAM / 2);
		CHECK(start_engine("slot2"));
		empty = seen.emptied;
		if (how == 0)
			slots_kill(slots, 2, &seen);	/* pulled out */
		if (how == 2) {			/* QEMU dies */
			fake_qemu_kill(vm);
			vm = NULL;
		} else {
			CHECK(fake_qemu_power_off(vm, "slot2"));
		}
		CHECK(run_until(&seen.emptied, empty + 1, HUNG_MS));
		if (!vm)
			CHECK(boot());
		CHECK_EQ(kind_of(BAR_ADDR), 0);
		CHECK(plug(&seen) >= 2);
		CHECK(run_until(&seen.plugged, 2, HUNG_MS));
		for (unsigned int i = 0; i < VRAM; i++) {
			if (vram_of((unsigned int)seen.last)[i])
				CHECK_EQ(i, -1);
		}
		stop();
	}
}

/* Only while it decodes, and what a lost link hides comes back with it. */
static void test_decoding(void)
{
	CHECK(start(4) && boot());
	CHECK_EQ(plug(&seen), 2);
	CHECK(run_until(&seen.plugged, 1, HUNG_MS));
	CHECK(fake_qemu_set_bar(vm, "slot2", 2, BAR_ADDR));
	CHECK_EQ(kind_of(BAR_ADDR), 2);
	CHECK(fake_qemu_command(vm, "slot2", 0));
	CHECK_EQ(kind_of(BAR_ADDR), 0);
	CHECK(fake_qemu_command(vm, "slot2", 2));
	CHECK_EQ(kind_of(BAR_ADDR), 2);
	atomic_store(&link_up, false);
	CHECK_EQ(fake_qemu_vendor(vm, "slot2"), 0xffff);
	atomic_store(&link_up, true);
	CHECK_EQ(fake_qemu_vendor(vm, "slot2"), 0x1234);
	/* A smaller BAR is a smaller target. */
	CHECK(fake_qemu_command(vm, "slot2", 0));
	CHECK(fake_qemu_config(vm, "slot2", 0x109, 1));
	CHECK(fake_qemu_command(vm, "slot2", 2));
	CHECK_EQ(kind_of(BAR_ADDR + (2 << 20) - 8), 2);
	CHECK_EQ(kind_of(BAR_ADDR + (2 << 20)), 0);
	stop();
}

/* A host may swap the addresses of two endpoints one after the other. */
static void test_overlap(void)
{
	CHECK(start(4) && boot());
	CHECK(plug(&seen) == 2 && plug(&seen) == 3);
	CHECK(run_until(&seen.plugged, 2, HUNG_MS));
	CHECK(fake_qemu_set_bar(vm, "slot2", 2, BAR_ADDR));
	CHECK(fake_qemu_set_bar(vm, "slot3", 2, BAR_ADDR));
	CHECK_EQ(kind_of(BAR_ADDR), 2);
	CHECK(fake_qemu_set_bar(vm, "slot2", 2, BAR_ADDR + VRAM));
	CHECK_EQ(kind_of(BAR_ADDR), 2);
	CHECK_EQ(kind_of(BAR_ADDR + VRAM), 2);
	stop();
}

static void test_surprise(void)
{
	CHECK(start(4) && boot());
	CHECK_EQ(plug(&seen), 2);
	CHECK(run_until(&seen.plugged, 1, HUNG_MS));
	CHECK(fake_qemu_set_bar(vm, "slot2", ENDPOINT_BAR_MEMORY, BAR_ADDR));
	slots_kill(slots, 2, &seen);
	CHECK_EQ(kind_of(BAR_ADDR), 0);
	CHECK_EQ(fake_qemu_vendor(vm, "slot2"), 0xffff);
	CHECK_EQ(seen.emptied, 0);
	run_for(2300);				/* nobody powered it off */
	CHECK_EQ(fake_qemu_device_dels(vm), 1);
	CHECK(fake_qemu_power_off(vm, "slot2"));
	CHECK(run_until(&seen.emptied, 1, HUNG_MS));
	CHECK_EQ(plug(&seen), 3);
	CHECK(run_until(&seen.plugged, 2, HUNG_MS));
	CHECK_EQ(fake_qemu_vendor(vm, "slot3"), 0x1234);
	stop();
}

static void test_host_gone(void)
{
	CHECK(start(4) && boot());
	CHECK_EQ(plug(&seen), 2);
	CHECK(run_until(&seen.plugged, 1, HUNG_MS));
	CHECK_EQ(plug(&seen), 3);		/* still under way */
	fake_qemu_kill(vm);
	vm = NULL;
	CHECK(run_until(&seen.down, 1, HUNG_MS));
	CHECK_EQ(seen.emptied + seen.failed, 2);
	CHECK(!slots_host_up(slots));
	CHECK_EQ(kind_of(0x1000), 0);
	CHECK(boot());
	CHECK_EQ(seen.up, 2);
	CHECK(plug(&seen) >= 2);
	CHECK(run_until(&seen.plugged, 2, HUNG_MS));
	CHECK_EQ(kind_of(0x1000), 1);
	stop();
}

/* ---- Several functions ---- */

static int vendor_of(unsigned int function)
{
	char bus[16];

	snprintf(bus, sizeof(bus), "slot2:%u", function);
	return (int)fake_qemu_vendor(vm, bus);
}

static void test_functions(void)
{
	char cookies[SLOT_FUNCTIONS];
	struct dma_hold h;

	CHECK(start(4) && boot());
	CHECK_EQ(plug_many(cookies, SLOT_FUNCTIONS + 1), -EINVAL);
	CHECK_EQ(plug_many(cookies, SLOT_FUNCTIONS), 0);
	CHECK_EQ(plug_many(cookies, 1), -EBUSY);
	CHECK(run_until(&seen.plugged, SLOT_FUNCTIONS, HUNG_MS));
	for (unsigned int i = 0; i < SLOT_FUNCTIONS; i++)
		CHECK_EQ(vendor_of(i), 0x1234);
	/* Each has memory of its own. */
	CHECK(fake_qemu_set_bar(vm, "slot2:0", 2, BAR_ADDR));
	CHECK(fake_qemu_set_bar(vm, "slot2:5", 2, BAR_ADDR + VRAM));
	CHECK(!slots_peer(slots, BAR_ADDR + VRAM, 8, DMA_PROT_READ, &h));
	CHECK(h.cookie == cookies + 5);
	dma_put(&h);
	CHECK(!slots_peer(slots, BAR_ADDR, 8, DMA_PROT_READ, &h));
	CHECK(h.cookie == cookies);
	dma_put(&h);
	/* They go together, and each is heard of. */
	CHECK_EQ(seen.emptied, 0);
	CHECK(fake_qemu_power_off(vm, "slot2"));
	CHECK(run_until(&seen.emptied, SLOT_FUNCTIONS, HUNG_MS));
	CHECK_EQ(kind_of(BAR_ADDR + VRAM), 0);
	CHECK_EQ(seen.plugged, SLOT_FUNCTIONS);
	CHECK_EQ(seen.failed, 0);
	stop();
	CHECK_EQ(seen.emptied, SLOT_FUNCTIONS);
}

/* While one of them is alive, the guest keeps the slot. */
static void test_one_of_them(void)
{
	char cookies[2];

	CHECK(start(2) && boot());
	CHECK_EQ(plug_many(cookies, 2), 0);
	CHECK(run_until(&seen.plugged, 2, HUNG_MS));
	CHECK(fake_qemu_set_bar(vm, "slot2:0", 2, BAR_ADDR));
	CHECK(fake_qemu_set_bar(vm, "slot2:1", 2, BAR_ADDR + VRAM));
	slots_kill(slots, 2, cookies);
	CHECK_EQ(vendor_of(0), 0xffff);
	CHECK_EQ(vendor_of(1), 0x1234);
	CHECK_EQ(kind_of(BAR_ADDR), 0);
	CHECK_EQ(kind_of(BAR_ADDR + VRAM), 2);
	run_for(2300);
	CHECK_EQ(fake_qemu_device_dels(vm), 0);
	slots_kill(slots, 2, cookies + 1);
	run_for(2300);
	CHECK_EQ(fake_qemu_device_dels(vm), 1);
	CHECK(fake_qemu_power_off(vm, "slot2"));
	CHECK(run_until(&seen.emptied, 2, HUNG_MS));
	stop();
}

/* All of them, or none, whichever QEMU does not take. */
static void test_roll_back(void)
{
	char cookies[3];

	CHECK(start(2) && boot());
	for (int nth = 1; nth <= 3; nth++) {
		fake_qemu_refuse(vm, (unsigned int)nth);
		CHECK_EQ(plug_many(cookies, 3), 0);
		CHECK(run_until(&seen.failed, 3 * nth, HUNG_MS));
		CHECK_EQ(seen.plugged, 0);
		for (unsigned int i = 0; i < 3; i++)
			CHECK_EQ(vendor_of(i), 0);
		CHECK(!slots_endpoint(slots, 2, 0));
	}
	CHECK_EQ(plug_many(cookies, 3), 0);
	CHECK(run_until(&seen.plugged, 3, HUNG_MS));
	CHECK_EQ(seen.emptied, 0);
	CHECK_EQ(fake_qemu_device_dels(vm), 0);
	stop();
}

static void test_host_gone_with_many(void)
{
	char cookies[4];

	CHECK(start(2) && boot());
	CHECK_EQ(plug_many(cookies, 4), 0);	/* under way */
	fake_qemu_kill(vm);
	vm = NULL;
	CHECK(run_until(&seen.down, 1, HUNG_MS));
	CHECK_EQ(seen.emptied + seen.failed, 4);
	CHECK(boot());
	CHECK_EQ(plug_many(cookies, 4), 0);
	CHECK(run_until(&seen.plugged, 4, HUNG_MS));
	stop();
}

static const struct tap_test tests[] = {
	{ "plug", test_plug },
	{ "choice", test_choice },
	{ "refused", test_refused },
	{ "routing", test_routing },
	{ "overlap", test_overlap },
	{ "next_owner", test_next_owner },
	{ "decoding", test_decoding },
	{ "surprise", test_surprise },
	{ "host_gone", test_host_gone },
	{ "functions", test_functions },
	{ "one_of_them", test_one_of_them },
	{ "roll_back", test_roll_back },
	{ "host_gone_with_many", test_host_gone_with_many },
};

int main(int argc, char **argv)
{
	int ret;

	if (!mkdtemp(dir))
		return 1;
	snprintf(port_path, sizeof(port_path), "%s/a.sock", dir);
	snprintf(qmp_path, sizeof(qmp_path), "%s/a.qmp", dir);
	mem_fd = memfd_create("guest", MFD_ALLOW_SEALING);
	if (ftruncate(mem_fd, MEM_SIZE) ||
	    fcntl(mem_fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return 1;
	ret = tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		      argc > 1 ? argv[1] : NULL);
	unlink(qmp_path);
	rmdir(dir);
	return ret;
}
