// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fabrex_port_list() on machines made of files: what is said of a port, which
 * port is the nearest to a device, which GPUs are to a port, and ports that
 * come and go while they are listed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "p2p_query.h"

static struct fabrex_local_port ports[4];

static int list(const char *near, size_t n)
{
	const struct p2p_env env = { machine.root, fake_ask };

	memset(ports, 0xa5, sizeof(ports));
	return fxi_p2p_list(&env, near, ports, n, sizeof(ports[0]));
}

static void set(const char *name, const char *file, const char *text)
{
	machine_text(&machine, machine_at(&machine, name, file), text);
}

static bool is(const char *text, const char *expected)
{
	if (strcmp(text, expected))
		printf("# \"%s\", not \"%s\"\n", text, expected);
	return !strcmp(text, expected);
}

/* Its GPUs have a class; a second port is next to the second switch's GPU. */
static void open_machine(void)
{
	machine_new(&machine);
	set("0000:04:00.0", "class", "0x120000\n");
	set("0000:05:00.0", "class", "0x030200\n");
	set("0000:12:00.0", "class", "0x038000\n");
	set("0001:01:00.0", "class", "0x030000\n");
	set("0001:01:00.0", "vendor", "0x10de\n");
	machine_device(&machine,
		       "pci0000:00/0000:00:06.0/0000:10:00.0/0000:11:00.0",
		       "0000:12:01.0", 0x1234da00, 0);
	machine_text(&machine, "sys/class/fabrex/fabrex10/name", "a.10\n");
	machine_link(&machine, "sys/class/fabrex/fabrex10/device",
		     "../../../bus/pci/devices/0000:12:01.0");
}

TEST(port_list_says_what_is_known)
{
	open_machine();
	CHECK_EQ(list(NULL, 4), 2);
	CHECK(is(ports[0].device, "fabrex0") && is(ports[0].name, "a.0"));
	CHECK(is(ports[0].fabric, "") && is(ports[0].pci, PORT));
	CHECK(!ports[0].link_up && !ports[0].alive);
	CHECK_EQ(ports[0].numa_node, -1);
	CHECK(!ports[0].pcie_speed && !ports[0].pcie_width);
	CHECK_EQ(ports[0].path, FABREX_P2P_PATH_NONE);
	CHECK(!ports[0].reserved[0] && !ports[0].reserved[3]);
	machine_text(&machine, "sys/class/fabrex/fabrex0/fabric", "rack\n");
	machine_text(&machine, "sys/class/fabrex/fabrex0/link", "up\n");
	machine_text(&machine, "sys/class/fabrex/fabrex0/alive", "1\n");
	set(PORT, "numa_node", "1\n");
	set(PORT, "current_link_speed", "32.0 GT/s PCIe\n");
	set(PORT, "current_link_width", "16\n");
	set("0000:12:01.0", "numa_node", "-1\n");
	set("0000:12:01.0", "current_link_speed", "2.5 GT/s PCIe\n");
	set("0000:12:01.0", "current_link_width", "255\n");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK(is(ports[0].fabric, "rack"));
	CHECK(ports[0].link_up == 1 && ports[0].alive == 1);
	CHECK_EQ(ports[0].numa_node, 1);
	CHECK_EQ(ports[0].pcie_speed, 32000);
	CHECK_EQ(ports[0].pcie_width, 16);
	CHECK(is(ports[1].device, "fabrex10") && is(ports[1].name, "a.10"));
	CHECK_EQ(ports[1].numa_node, -1);
	CHECK_EQ(ports[1].pcie_speed, 2500);
	CHECK_EQ(ports[1].pcie_width, 0);
	machine_free(&machine);
}

/* As a real port of the core has it, with no attribute left out. */
static void whole_port(const char *index)
{
	static const char *const attrs[][2] = {
		{ "name", "a.0\n" }, { "host", "a\n" },
		{ "fabric", "rack\n" }, { "driver_name", "fabrex_draco\n" },
		{ "peer", "3\n" }, { "generation", "4294967295\n" },
		{ "emulated", "1\n" }, { "link", "up\n" }, { "alive", "1\n" },
		{ "limits/max_peers", "8\n" }, { "limits/max_queues", "64\n" },
		{ "limits/max_mrs", "1024\n" },
		{ "limits/max_transfer", "4294967296\n" },
	};
	char path[128];
	size_t i;

	for (i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		snprintf(path, sizeof(path), "sys/class/fabrex/fabrex%s/%s",
			 index, attrs[i][0]);
		machine_text(&machine, path, attrs[i][1]);
	}
}

TEST(port_list_says_who_it_is)
{
	uint64_t guid;

	open_machine();
	CHECK_EQ(list(NULL, 4), 2);
	CHECK(is(ports[0].host, "") && is(ports[0].driver, ""));
	CHECK(!ports[0].emulated && !ports[0].peer && !ports[0].generation);
	CHECK(!ports[0].max_peers && !ports[0].max_queues);
	CHECK(ports[0].guid && ports[0].guid != ports[1].guid);
	guid = ports[0].guid;
	whole_port("0");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK(is(ports[0].host, "a") && is(ports[0].driver, "fabrex_draco"));
	CHECK_EQ(ports[0].emulated, 1);
	CHECK_EQ(ports[0].peer, 3);
	CHECK_EQ(ports[0].generation, 4294967295u);
	CHECK_EQ(ports[0].max_peers, 8);
	CHECK_EQ(ports[0].max_queues, 64);
	CHECK_EQ(ports[0].max_mrs, 1024);
	CHECK_EQ(ports[0].max_transfer, 4294967296u);
	/* Of another fabric: FNV-1a of "rack\0a.0\0". */
	CHECK(ports[0].guid != guid);
	CHECK_EQ(ports[0].guid, 0xc79eaa5d45caccb9u);
	/* Nothing in /dev, as in a container; then there is. */
	CHECK(!ports[0].may_open && !ports[1].may_open);
	machine_text(&machine, "dev/fabrex0", "");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK(ports[0].may_open == 1 && !ports[1].may_open);
	machine_free(&machine);
}

TEST(port_list_rate_is_of_the_slowest_link)
{
	open_machine();
	set(PORT, "current_link_speed", "16.0 GT/s PCIe\n");
	set(PORT, "current_link_width", "16\n");
	CHECK_EQ(list(NULL, 4), 2);
	/* 16000 * 128 / 130 = 15753 for each lane. */
	CHECK_EQ(ports[0].rate, 15753 * 16);
	CHECK_EQ(ports[1].rate, 0);
	/* The slot of the switch is slower than what is in it. */
	set("0000:01:00.0", "current_link_speed", "8.0 GT/s PCIe\n");
	set("0000:01:00.0", "current_link_width", "16\n");
	set("0000:00:05.0", "current_link_speed", "Unknown\n");
	set("0000:00:05.0", "current_link_width", "1\n");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK_EQ(ports[0].rate, 7876 * 16);
	CHECK(ports[0].pcie_speed == 16000 && ports[0].pcie_width == 16);
	set("0000:01:00.0", "current_link_speed", "5.0 GT/s PCIe\n");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK_EQ(ports[0].rate, 4000 * 16);
	set("0000:01:00.0", "current_link_speed", "64.0 GT/s PCIe\n");
	set("0000:01:00.0", "current_link_width", "2\n");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK_EQ(ports[0].rate, 64000 * 2);
	machine_free(&machine);
}

TEST(port_list_behind_many_virtual_functions)
{
	char name[16];
	unsigned int i;

	open_machine();
	/* More than fit into any table; they come before the GPUs. */
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "0000:03:%02x.%x", i / 8 + 1,
			 i % 8);
		machine_device(&machine,
			       "pci0000:00/0000:00:05.0/0000:01:00.0/0000:02:00.0",
			       name, 0x1234da10, 0);
		set(name, "class", "0x120000\n");
		set(name, "physfn", "");
	}
	CHECK_EQ(list(NULL, 4), 2);
	CHECK_EQ(ports[0].gpus, 2);
	CHECK(is(ports[0].gpu[0], GPU) && is(ports[0].gpu[1], GPU2));
	CHECK_EQ(ports[1].gpus, 1);
	/* As many GPUs: all are counted, eight are named. */
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "0000:03:%02x.%x", i / 8 + 1,
			 i % 8);
		machine_remove(&machine, machine_at(&machine, name, "physfn"));
	}
	CHECK_EQ(list(NULL, 4), 2);
	CHECK_EQ(ports[0].gpus, 200);
	CHECK(is(ports[0].gpu[0], "0000:03:01.0"));
	CHECK(is(ports[0].gpu[7], "0000:03:01.7"));
	machine_free(&machine);
}

static atomic_bool enough;
static atomic_uint lists;
static char hidden[128], shown[128];

/* Until two more lists have ended: one of them has begun since. */
static void wait_for_lists(void)
{
	unsigned int end = lists + 2;

	while (!enough && (int)(end - lists) > 0)
		usleep(100);
}

/*
 * The directory of port 10 is there, and is not, in one step each, and comes
 * back with another generation, as the kernel has it. In some turns it stays as
 * it is until it was looked at; in the others it changes in the middle of that.
 */
static void *come_and_go(void *unused)
{
	unsigned int turn;
	char text[16];

	(void)unused;
	for (turn = 0; !enough; turn++) {
		rename(shown, hidden);
		if (turn % 4 == 1)
			wait_for_lists();
		usleep(turn * 7919 % 3000);
		snprintf(text, sizeof(text), "%u\n", turn);
		machine_text(&machine, "sys/class/gone/generation", text);
		rename(hidden, shown);
		if (turn % 4 == 3)
			wait_for_lists();
		usleep(turn * 7907 % 9000);
	}
	return NULL;
}

TEST(port_list_while_ports_come_and_go)
{
	unsigned int with = 0, without = 0, i;
	pthread_t thread;
	int n;

	open_machine();
	whole_port("10");
	/* In sysfs entries are links: one whose port has gone already. */
	machine_link(&machine, "sys/class/fabrex/fabrex7",
		     "../../devices/gone/fabrex7");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK(is(ports[1].device, "fabrex10"));
	snprintf(shown, sizeof(shown), "%s/sys/class/fabrex/fabrex10",
		 machine.root);
	snprintf(hidden, sizeof(hidden), "%s/sys/class/gone", machine.root);
	enough = false;
	CHECK(!pthread_create(&thread, NULL, come_and_go, NULL));
	/* Until it was seen both ways often: whole, or not at all. */
	for (i = 0; i < 100000 && (with < 50 || without < 50); i++) {
		n = list(FAR, 4);
		lists++;
		CHECK(n == 1 || n == 2);
		*(n == 2 ? &with : &without) += 1;
		if (n == 1)
			CHECK(is(ports[0].device, "fabrex0"));
		if (n != 2)
			continue;
		CHECK(is(ports[0].device, "fabrex10"));
		CHECK(is(ports[0].name, "a.0") && is(ports[0].host, "a"));
		CHECK(is(ports[0].pci, "0000:12:01.0"));
		CHECK(ports[0].link_up && ports[0].max_transfer);
		CHECK_EQ(ports[0].path, FABREX_P2P_PATH_SWITCH);
	}
	enough = true;
	pthread_join(thread, NULL);
	printf("# listed %u times with it and %u without\n", with, without);
	CHECK(with && without);
	machine_free(&machine);
}

TEST(port_list_nearest_gpus)
{
	open_machine();
	CHECK_EQ(list(NULL, 4), 2);
	/* Both at its own switch; not those elsewhere. */
	CHECK_EQ(ports[0].gpus, 2);
	CHECK(is(ports[0].gpu[0], GPU) && is(ports[0].gpu[1], GPU2));
	CHECK(!*ports[0].gpu[2]);
	CHECK_EQ(ports[0].gpu_path, FABREX_P2P_PATH_SWITCH);
	CHECK_EQ(ports[0].gpu_distance, 4);
	CHECK_EQ(ports[1].gpus, 1);
	CHECK(is(ports[1].gpu[0], FAR));
	CHECK_EQ(ports[1].gpu_path, FABREX_P2P_PATH_SWITCH);
	/* A virtual function is none by itself. */
	set(GPU2, "physfn", "");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK_EQ(ports[0].gpus, 1);
	CHECK(is(ports[0].gpu[0], GPU));
	/* The console is none; then the nearest is beyond the processor. */
	set("0000:12:00.0", "class", "0x030000\n");
	set("0000:12:00.0", "vendor", "0x1a03\n");
	set("0000:12:01.0", "numa_node", "1\n");
	set(GPU, "numa_node", "0\n");
	set(GPU2, "numa_node", "0\n");
	set(ABROAD, "numa_node", "1\n");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK_EQ(ports[1].gpus, 1);
	CHECK(is(ports[1].gpu[0], ABROAD));
	CHECK_EQ(ports[1].gpu_path, FABREX_P2P_PATH_ROOT);
	set(GPU, "class", "0x010802\n");
	set(GPU2, "class", "nonsense\n");
	set(ABROAD, "class", "0x030000\n");
	set(ABROAD, "vendor", "0x102b\n");
	CHECK_EQ(list(NULL, 4), 2);
	CHECK(!ports[0].gpus && !*ports[0].gpu[0]);
	CHECK_EQ(ports[0].gpu_path, FABREX_P2P_PATH_NONE);
	machine_free(&machine);
}

TEST(port_list_nearest_port)
{
	open_machine();
	CHECK_EQ(list(FAR, 4), 2);
	CHECK(is(ports[0].name, "a.10") && is(ports[1].name, "a.0"));
	CHECK_EQ(ports[0].path, FABREX_P2P_PATH_SWITCH);
	CHECK_EQ(ports[0].distance, 2);
	CHECK_EQ(ports[1].path, FABREX_P2P_PATH_ROOT);
	CHECK_EQ(list("04:00.0", 4), 2);
	CHECK(is(ports[0].name, "a.0"));
	/* From no switch of theirs: the node decides. */
	set(PORT, "numa_node", "0\n");
	set("0000:12:01.0", "numa_node", "1\n");
	set(ABROAD, "numa_node", "1\n");
	CHECK_EQ(list(ABROAD, 4), 2);
	CHECK(is(ports[0].name, "a.10"));
	CHECK_EQ(ports[0].path, FABREX_P2P_PATH_ROOT);
	set(ABROAD, "numa_node", "0\n");
	CHECK_EQ(list(ABROAD, 4), 2);
	CHECK(is(ports[0].name, "a.0"));
	CHECK_EQ(list("a.10", 4), 2);
	CHECK(is(ports[0].name, "a.10"));
	CHECK_EQ(ports[0].path, FABREX_P2P_PATH_SAME);
	CHECK_EQ(ports[0].distance, 0);
	machine_free(&machine);
}

TEST(port_list_of_callers)
{
	unsigned char small[64];

	open_machine();
	CHECK_EQ(list(NULL, 0), 2);
	CHECK_EQ((unsigned char)ports[0].device[0], 0xa5);
	CHECK_EQ(list(NULL, 1), 2);
	CHECK_EQ((unsigned char)ports[1].device[0], 0xa5);
	CHECK_EQ(list("0000:44:00.0", 4), -EINVAL);
	CHECK_SAYS("0000:44:00.0");
	CHECK_EQ(list("b.0", 4), -EINVAL);
	CHECK_EQ(list("", 4), -EINVAL);
	CHECK_SAYS("no device was named");
	/* Compiled with less: that much, and the next one behind it. */
	CHECK(!setenv("FABREX_ROOT", machine.root, 1));
	memset(small, 0xa5, sizeof(small));
	CHECK_EQ(fabrex_port_list(NULL, (void *)small, 2, 24), 2);
	CHECK(is((char *)small, "fabrex0") && is((char *)small + 24,
						 "fabrex10"));
	CHECK(is((char *)small + 16, "a.0") && small[48] == 0xa5);
	CHECK_EQ(fabrex_port_list(NULL, NULL, 1, 8), -EINVAL);
	CHECK_EQ(fabrex_port_list(NULL, NULL, 0, 0), 2);
	/* Ports without a function, and a machine without ports. */
	machine_remove(&machine, "sys/class/fabrex/fabrex0/device");
	CHECK_EQ(list(GPU, 4), 2);
	CHECK(is(ports[1].name, "a.0") && is(ports[1].pci, ""));
	CHECK_EQ(ports[1].path, FABREX_P2P_PATH_NONE);
	machine_remove(&machine, "sys/class/fabrex");
	CHECK_EQ(list(NULL, 4), 0);
	unsetenv("FABREX_ROOT");
	machine_free(&machine);
}
