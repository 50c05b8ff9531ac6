// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoints behind their sockets: registers, the resizable BAR, death and lost
 * links, the engine through the bus, memory of one binding and of the next.
 */
#define _GNU_SOURCE
#include <draco/gpu.h>
#include <draco/regs.h>
#include <errno.h>
#include <linux/pci_regs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "base/crc32c.h"
#include "endpoint.h"
#include "mesh.h"
#include "tap.h"
#include "vfio_user.h"
#include "vfio_user_proto.h"

#define MIB		(1ull << 20)
#define VRAM		(64 * MIB)
#define BAR_ADDR	0x4000000000ull
#define REBAR		0x100
#define RING		0x10000u

static char sock_path[128];
static struct endpoint *ep;
static struct client cl;
static atomic_bool link_up;
static atomic_uint bars;

static void on_bars(void *arg)
{
	(void)arg;
	bars++;
}

static bool start_kind(unsigned int kind, uint64_t size)
{
	static unsigned int instance;
	struct endpoint_desc d = {
		.name = "box.gpu0", .kind = kind, .vendor = 0x1234,
		.device = 0xda10, .size = size, .link = &link_up,
	};

	atomic_store(&link_up, true);
	return !endpoint_create(&d, sock_path, ++instance, on_bars, NULL,
				&ep) &&
	       !client_connect(&cl, sock_path) && client_version(&cl) > 0;
}

static bool decode(void)
{
	return !client_set_config(&cl, PCI_BASE_ADDRESS_2,
				  (uint32_t)BAR_ADDR, 4) &&
	       !client_set_config(&cl, PCI_BASE_ADDRESS_3, BAR_ADDR >> 32,
				  4) &&
	       !client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MEMORY, 2);
}

static bool start(uint64_t size)
{
	return start_kind(DRACO_EP_GPU, size) && decode();
}

static void stop(void)
{
	client_close(&cl);
	endpoint_destroy(ep);
}

static uint32_t reg(uint64_t offset)
{
	uint32_t v = 0xdead;

	return client_read(&cl, 0, offset, &v, 4) ? 0xdead : v;
}

static void set_reg(uint64_t offset, uint32_t v)
{
	client_write(&cl, 0, offset, &v, 4);
}

static unsigned char *memory(void)
{
	return function_bar_memory(endpoint_function(ep), 2);
}

/* ---- Registers ---- */

static void test_identity(void)
{
	char name[32];
	uint64_t wide;

	CHECK(start(VRAM));
	CHECK_EQ(reg(DRACO_EPR_MAGIC), DRACO_EPR_MAGIC_VALUE);
	CHECK_EQ(reg(DRACO_EPR_KIND), DRACO_EP_GPU);
	CHECK_EQ(reg(DRACO_EPR_SIZE), VRAM);
	CHECK(!client_read(&cl, 0, DRACO_EPR_SIZE, &wide, 8));
	CHECK_EQ(wide, VRAM);
	for (unsigned int i = 0; i < 32; i += 4) {
		uint32_t v = reg(DRACO_EPR_NAME + i);

		memcpy(name + i, &v, 4);
	}
	CHECK(!strcmp(name, "box.gpu0"));
	set_reg(DRACO_EPR_MAGIC, 5);
	set_reg(DRACO_EPR_SCRATCH, 77);
	CHECK_EQ(reg(DRACO_EPR_MAGIC), DRACO_EPR_MAGIC_VALUE);
	CHECK_EQ(reg(DRACO_EPR_SCRATCH), 77);
	CHECK_EQ(reg(0x0ffc), 0);
	CHECK_EQ(reg(0xfffc), 0);
	/* Not what a register takes. */
	wide = 0;
	CHECK(!client_read(&cl, 0, DRACO_EPR_SCRATCH, &wide, 2));
	CHECK_EQ(wide, 0xffff);
	CHECK(!client_write(&cl, 0, DRACO_EPR_SCRATCH, &wide, 3));
	CHECK(!client_write(&cl, 0, DRACO_EPR_SCRATCH + 1, &wide, 4));
	CHECK(!client_write(&cl, 0, DRACO_EPR_SCRATCH, &wide, 8));
	CHECK_EQ(reg(DRACO_EPR_SCRATCH), 77);
	CHECK_EQ(client_call(&cl, VU_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0),
		 0);
	CHECK(decode());
	CHECK_EQ(reg(DRACO_EPR_SCRATCH), 0);
	stop();
}

static void test_others_have_no_engine(void)
{
	CHECK(start_kind(DRACO_EP_NVME, VRAM) && decode());
	CHECK_EQ(reg(DRACO_EPR_KIND), DRACO_EP_NVME);
	set_reg(DRACO_GPU_CTRL, 1);
	CHECK_EQ(reg(DRACO_GPU_CTRL) | reg(DRACO_GPU_STATUS), 0);
	CHECK_EQ(client_config(&cl, REBAR, 4), 0);
	stop();
	CHECK(start_kind(DRACO_EP_NIC, 0) && decode());
	set_reg(DRACO_GPU_CTRL, 1);
	CHECK_EQ(reg(DRACO_GPU_STATUS), 0);
	stop();
}

/* ---- Resizable BAR ---- */

static uint64_t region_size(void)
{
	struct vu_region_info i = { .argsz = sizeof(i), .index = 2 };

	return client_call(&cl, VU_DEVICE_GET_REGION_INFO, &i, sizeof(i), NULL,
			   0, &i, sizeof(i)) < 0 ? 0 : i.size;
}

static uint64_t decoded(void)
{
	uint64_t addr, size;

	if (!function_bar_addr(endpoint_function(ep), 2, &addr, &size))
		return 0;
	return addr == BAR_ADDR ? size : 1;
}

static uint32_t sized(void)
{
	client_set_config(&cl, PCI_BASE_ADDRESS_2, ~0u, 4);
	return client_config(&cl, PCI_BASE_ADDRESS_2, 4);
}

/* 2^@code MiB, as a driver does it. */
static bool resize(unsigned int code)
{
	uint32_t ctrl = client_config(&cl, REBAR + PCI_REBAR_CTRL, 4);

	ctrl = (ctrl & ~0x3f00u) | code << 8;
	return !client_set_config(&cl, PCI_COMMAND, 0, 2) &&
	       !client_set_config(&cl, REBAR + PCI_REBAR_CTRL, ctrl, 4) &&
	       decode();
}

static unsigned int code(void)
{
	return client_config(&cl, REBAR + PCI_REBAR_CTRL, 4) >> 8 & 0x3f;
}

static void test_resize(void)
{
	unsigned int before;
	uint8_t byte = 7;

	CHECK(start(VRAM));
	CHECK_EQ(client_config(&cl, REBAR, 4), 0x00010015);
	CHECK_EQ(client_config(&cl, REBAR + PCI_REBAR_CAP, 4), 0x7f0);
	CHECK_EQ(client_config(&cl, REBAR + PCI_REBAR_CTRL, 4), 0x622);
	CHECK_EQ(decoded(), VRAM);
	CHECK_EQ(region_size(), VRAM);
	memory()[VRAM - 1] = 0x5a;
	before = bars;
	CHECK(resize(2));
	CHECK(bars > before);
	CHECK_EQ(code(), 2);
	CHECK_EQ(decoded(), 4 * MIB);
	CHECK_EQ(region_size(), 4 * MIB);
	CHECK_EQ(reg(DRACO_EPR_SIZE), VRAM);	/* the memory is as it was */
	CHECK(!client_write(&cl, 2, 4 * MIB - 1, &byte, 1));
	CHECK_EQ(memory()[4 * MIB - 1], 7);
	CHECK_EQ(sized(), 0xffc0000cu);
	CHECK(resize(0));
	CHECK_EQ(sized(), 0xfff0000cu);
	CHECK(resize(6));
	CHECK_EQ(decoded(), VRAM);
	CHECK_EQ(memory()[VRAM - 1], 0x5a);
	stop();
}

static void test_resize_refused(void)
{
	CHECK(start(VRAM));
	CHECK(resize(7));			/* larger than VRAM */
	CHECK_EQ(code(), 6);
	CHECK(resize(63));
	CHECK_EQ(code(), 6);
	/* While it decodes. */
	CHECK(!client_set_config(&cl, REBAR + PCI_REBAR_CTRL, 0x122, 4));
	CHECK_EQ(code(), 6);
	CHECK_EQ(decoded(), VRAM);
	/* Bytes that do not reach the field, or only it. */
	CHECK(!client_set_config(&cl, PCI_COMMAND, 0, 2));
	CHECK(!client_set_config(&cl, REBAR + PCI_REBAR_CTRL, 0, 1));
	CHECK_EQ(client_config(&cl, REBAR + PCI_REBAR_CTRL, 4), 0x622);
	CHECK(!client_set_config(&cl, REBAR + PCI_REBAR_CTRL + 1, 3, 1));
	CHECK_EQ(code(), 3);
	/* FLR keeps it, a reset of the machine does not. */
	CHECK(!client_set_config(&cl, 0x60 + PCI_EXP_DEVCTL,
				 PCI_EXP_DEVCTL_BCR_FLR, 2));
	CHECK_EQ(code(), 3);
	CHECK_EQ(client_call(&cl, VU_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0),
		 0);
	CHECK_EQ(code(), 6);
	stop();
	CHECK(start(4096));
	CHECK_EQ(client_config(&cl, REBAR, 4), 0);
	stop();
}

/* A client that was told of a smaller BAR has no business behind its end. */
static void test_resized_bounds(void)
{
	uint8_t byte = 1;

	CHECK(start(VRAM));
	CHECK(resize(0));
	CHECK_EQ(client_write(&cl, 2, MIB, &byte, 1), -EPIPE);
	CHECK_EQ(memory()[MIB], 0);
	stop();
}

/* ---- The engine through the bus ---- */

static struct draco_gpu_cmd *slot(uint32_t n)
{
	return (struct draco_gpu_cmd *)(memory() + RING) + n % 8;
}

static bool enable(void)
{
	set_reg(DRACO_GPU_RING_BASE, RING);
	set_reg(DRACO_GPU_RING_BASE + 4, 0);
	set_reg(DRACO_GPU_RING_SIZE, 8);
	set_reg(DRACO_GPU_CTRL, DRACO_GPU_CTRL_ENABLE);
	return reg(DRACO_GPU_STATUS) == DRACO_GPU_STATUS_READY;
}

static bool wait_reg(uint64_t offset, uint32_t want)
{
	for (int i = 0; i < 120000; i++) {
		if (reg(offset) == want)
			return true;
		usleep(1000);
	}
	return false;
}

static void post(uint32_t n, const struct draco_gpu_cmd *c)
{
	client_write(&cl, 2, RING + n % 8 * 64, c, 64);
	set_reg(DRACO_GPU_TAIL, n + 1);
}

static void test_engine(void)
{
	struct draco_gpu_cmd c = { .op = DRACO_GPU_FILL, .dst = 32 * MIB,
				   .src1 = ~0ull, .length = MIB };
	uint64_t crc;

	CHECK(start(VRAM) && enable());
	post(0, &c);
	c.op = DRACO_GPU_CRC32C;
	c.src0 = 32 * MIB;
	post(1, &c);
	CHECK(wait_reg(DRACO_GPU_HEAD, 2));
	CHECK(!client_read(&cl, 2, RING + 64 + 40, &crc, 8));
	CHECK_EQ(crc, fxi_crc32c(0, memory() + 32 * MIB, MIB));
	CHECK_EQ(memory()[33 * MIB - 1], 0xff);
	CHECK_EQ(slot(1)->status, DRACO_GPU_DONE);
	/* Decoding off: nobody is answered, the engine stays. */
	CHECK(!client_set_config(&cl, PCI_COMMAND, 0, 2));
	CHECK_EQ(reg(DRACO_GPU_STATUS), 0xffffffffu);
	CHECK(decode());
	CHECK_EQ(reg(DRACO_GPU_HEAD), 2);
	CHECK(!client_set_config(&cl, 0x60 + PCI_EXP_DEVCTL,
				 PCI_EXP_DEVCTL_BCR_FLR, 2));
	CHECK(decode());
	CHECK_EQ(reg(DRACO_GPU_STATUS) | reg(DRACO_GPU_HEAD) |
		 reg(DRACO_GPU_CTRL), 0);
	CHECK_EQ(memory()[33 * MIB - 1], 0xff);
	stop();
}

static void keep_busy(void)
{
	struct draco_gpu_cmd c = { .op = DRACO_GPU_COPY, .dst = 1024 * MIB,
				   .src0 = 2048 * MIB, .length = 512 * MIB };

	for (uint32_t n = 0; n < 8; n++)
		post(n, &c);
}

/* ---- Ends ---- */

static void test_dead_under_way(void)
{
	unsigned char *at;

	CHECK(start(4096 * MIB) && enable());
	keep_busy();
	CHECK(wait_reg(DRACO_GPU_STATUS, DRACO_GPU_STATUS_READY |
		       DRACO_GPU_STATUS_BUSY));
	memory()[RING + 600] = 1;
	function_set_dead(endpoint_function(ep));
	at = memory() + RING;
	CHECK_EQ(reg(DRACO_GPU_STATUS), 0xffffffffu);
	CHECK_EQ(client_config(&cl, PCI_VENDOR_ID, 4), 0xffffffffu);
	CHECK_EQ(at[600], 0xff);
	memset(at, 0, 1024);
	set_reg(DRACO_GPU_TAIL, 20);
	set_reg(DRACO_GPU_CTRL, 0);
	set_reg(DRACO_GPU_CTRL, 1);
	usleep(20000);
	for (int i = 0; i < 1024; i++)
		CHECK_EQ(at[i], 0);		/* nobody writes there */
	stop();
}

static void test_gone_under_way(void)
{
	for (int how = 0; how < 3; how++) {
		CHECK(start(4096 * MIB) && enable());
		keep_busy();
		if (how == 0)			/* QEMU dies */
			client_close(&cl);
		else if (how == 1)
			CHECK_EQ(client_call(&cl, VU_DEVICE_RESET, NULL, 0,
					     NULL, 0, NULL, 0), 0);
		stop();
	}
}

static void test_link_down(void)
{
	uint32_t instance;

	CHECK(start(VRAM) && enable());
	instance = reg(DRACO_EPR_INSTANCE);
	memory()[MIB] = 0x77;
	atomic_store(&link_up, false);
	CHECK_EQ(reg(DRACO_EPR_MAGIC), 0xffffffffu);
	CHECK_EQ(client_config(&cl, PCI_VENDOR_ID, 4), 0xffffffffu);
	CHECK(!client_set_config(&cl, PCI_COMMAND, 0, 2));
	set_reg(DRACO_EPR_SCRATCH, 5);
	/* Who has it mapped sees it too; what is stored there is dropped. */
	function_link(endpoint_function(ep), false);
	CHECK_EQ(memory()[MIB], 0xff);
	CHECK_EQ(memory()[MIB + 1], 0xff);
	memory()[MIB] = 1;
	memory()[8 * MIB] = 1;
	function_link(endpoint_function(ep), true);
	CHECK_EQ(memory()[MIB + 1], 0);
	CHECK_EQ(memory()[8 * MIB], 0);
	atomic_store(&link_up, true);
	CHECK_EQ(reg(DRACO_EPR_INSTANCE), instance);
	CHECK_EQ(reg(DRACO_EPR_SCRATCH), 0);
	CHECK_EQ(reg(DRACO_GPU_STATUS), DRACO_GPU_STATUS_READY);
	CHECK_EQ(memory()[MIB], 0x77);
	stop();
}

/* Whoever is bound next finds zeroes, and the former client its own memory. */
static void test_fresh_memory(void)
{
	struct { struct vu_region_info i; struct vu_sparse_cap c; } r = {
		.i = { .argsz = sizeof(r), .index = 2 }
	};
	unsigned char *mine;
	uint32_t instance;
	int fd;

	CHECK(start(VRAM));
	instance = reg(DRACO_EPR_INSTANCE);
	CHECK_EQ(client_call(&cl, VU_DEVICE_GET_REGION_INFO, &r.i, sizeof(r.i),
			     NULL, 0, &r, sizeof(r)), sizeof(r));
	CHECK(cl.reply_fd >= 0);
	fd = dup(cl.reply_fd);
	mine = mmap(NULL, VRAM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(mine != MAP_FAILED);
	memset(mine, 0x5e, 4 * MIB);
	CHECK_EQ(memory()[123], 0x5e);
	stop();
	CHECK(start(VRAM));
	CHECK(reg(DRACO_EPR_INSTANCE) != instance);
	for (uint64_t i = 0; i < 4 * MIB; i++) {
		if (memory()[i])
			CHECK_EQ(i, -1);
	}
	memset(mine, 0x11, MIB);		/* still mapped there */
	memset(memory() + MIB, 0x22, MIB);
	CHECK_EQ(memory()[5], 0);
	CHECK_EQ(mine[MIB], 0x5e);
	munmap(mine, VRAM);
	close(fd);
	stop();
}

static void test_large(void)
{
	uint64_t word = 0x1234;

	CHECK(start(16384 * MIB));
	CHECK_EQ(region_size(), 16384 * MIB);
	CHECK_EQ(sized(), 0xcu);
	CHECK(!client_write(&cl, 2, 16384 * MIB - 8, &word, 8));
	word = 0;
	CHECK(!client_read(&cl, 2, 16384 * MIB - 8, &word, 8));
	CHECK_EQ(word, 0x1234);
	stop();
	CHECK(start(65536 * MIB) && enable());
	stop();
}

/* Its place in the mesh is its own only once nothing can fail any more. */
static void test_seat(void)
{
	struct seat s = { .number = 1, .gpu = { .instance = 1000 } };
	struct endpoint_desc d = {
		.name = "box.gpu0", .kind = DRACO_EP_GPU, .size = VRAM,
		.seat = &s,
	};

	pthread_rwlock_init(&s.lock, NULL);
	s.gpu.vram = &s;
	CHECK(endpoint_create(&d, "/nowhere/e.sock", 1001, NULL, NULL, &ep));
	CHECK(s.gpu.vram == &s && s.gpu.instance == 1000);
	CHECK(!endpoint_create(&d, sock_path, 1002, NULL, NULL, &ep));
	CHECK(s.gpu.vram == memory() && s.gpu.size == VRAM);
	CHECK_EQ(s.gpu.instance, 1002);
	endpoint_destroy(ep);
	CHECK(!s.gpu.vram);
	pthread_rwlock_destroy(&s.lock);
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(identity), T(others_have_no_engine), T(resize), T(resize_refused),
	T(resized_bounds), T(engine), T(dead_under_way), T(gone_under_way),
	T(link_down), T(fresh_memory), T(large), T(seat),
};

int main(int argc, char **argv)
{
	char dir[] = "/tmp/emu-test-XXXXXX";
	int ret;

	if (!mkdtemp(dir))
		return 1;
	snprintf(sock_path, sizeof(sock_path), "%s/e.sock", dir);
	ret = tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		      argc > 1 ? argv[1] : NULL);
	rmdir(dir);
	return ret;
}
