// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fabrex_device_list() on machines made of files: which devices there are, of
 * which kind, and in which order from where.
 */
#include <stdlib.h>

#include "p2p_query.h"

static struct fabrex_local_device devices[8];

static int list(const char *near, uint32_t kinds, size_t n)
{
	const struct p2p_env env = { machine.root, fake_ask };

	memset(devices, 0xa5, sizeof(devices));
	return fxi_p2p_devices(&env, near, kinds, devices, n,
			       sizeof(devices[0]));
}

static void set(const char *name, const char *class, const char *vendor,
		const char *device)
{
	machine_text(&machine, machine_at(&machine, name, "class"), class);
	machine_text(&machine, machine_at(&machine, name, "vendor"), vendor);
	machine_text(&machine, machine_at(&machine, name, "device"), device);
}

/* The addresses, in this order. */
static bool are(const char *a, const char *b, const char *c, const char *d)
{
	const char *const due[] = { a, b, c, d };
	bool same = true;
	size_t i;

	for (i = 0; i < 4 && due[i]; i++)
		if (strcmp(devices[i].pci, due[i])) {
			printf("# %zu: %s, not %s\n", i, devices[i].pci,
			       due[i]);
			same = false;
		}
	return same;
}

/* A GPU and a drive at the first switch, a NIC at the second, a GPU abroad. */
static void open_machine(void)
{
	machine_new(&machine);
	set(PORT, "0x068000\n", "0x1234\n", "0xda00\n");
	set(GPU2, "0x120000\n", "0x1234\n", "0xda10\n");
	set(GPU, "0x010802\n", "0x144d\n", "0xa80a\n");
	set(FAR, "0x020000\n", "0x15b3\n", "0x1021\n");
	set(ABROAD, "0x030200\n", "0x10de\n", "0x2330\n");
}

TEST(device_list_nearest_first)
{
	open_machine();
	CHECK_EQ(list(NULL, 0, 8), 4);
	CHECK(are(GPU, GPU2, FAR, ABROAD));
	CHECK_EQ(devices[3].path, FABREX_P2P_PATH_NONE);
	/* What is at the port's switch, then what is beyond the processor. */
	CHECK_EQ(list("a.0", 0, 8), 4);
	CHECK(are(GPU, GPU2, FAR, ABROAD));
	CHECK_EQ(devices[0].path, FABREX_P2P_PATH_SWITCH);
	CHECK_EQ(devices[0].distance, 4);
	CHECK_EQ(devices[2].path, FABREX_P2P_PATH_ROOT);
	CHECK(devices[2].distance > 4);
	CHECK_EQ(list(FAR, 0, 8), 4);
	CHECK(are(FAR, NULL, NULL, NULL));
	CHECK_EQ(devices[0].path, FABREX_P2P_PATH_SAME);
	CHECK_EQ(devices[1].path, FABREX_P2P_PATH_ROOT);
	/* The node counts before the bridges. */
	machine_text(&machine, machine_at(&machine, PORT, "numa_node"), "1\n");
	machine_text(&machine, machine_at(&machine, FAR, "numa_node"), "0\n");
	machine_text(&machine, machine_at(&machine, ABROAD, "numa_node"),
		     "1\n");
	CHECK_EQ(list("fabrex0", 0, 8), 4);
	CHECK(are(GPU, GPU2, ABROAD, FAR));
	CHECK_EQ(devices[2].numa_node, 1);
	CHECK_EQ(devices[0].numa_node, -1);
	machine_free(&machine);
}

TEST(device_list_kinds)
{
	open_machine();
	CHECK_EQ(list("a.0", FABREX_DEVICE_GPU, 8), 2);
	CHECK(are(GPU2, ABROAD, NULL, NULL));
	CHECK_EQ(devices[0].kind, FABREX_DEVICE_GPU);
	CHECK_EQ(devices[0].class_code, 0x120000);
	CHECK(devices[0].vendor == 0x1234 && devices[0].device == 0xda10);
	CHECK(!devices[0].reserved[0] && !devices[0].reserved[3]);
	CHECK_EQ(list("a.0", FABREX_DEVICE_NVME | FABREX_DEVICE_NIC, 8), 2);
	CHECK(are(GPU, FAR, NULL, NULL));
	CHECK(devices[0].kind == FABREX_DEVICE_NVME &&
	      devices[1].kind == FABREX_DEVICE_NIC);
	CHECK_EQ(list("a.0", FABREX_DEVICE_FPGA, 8), 0);
	/* They have the class of accelerators, too. */
	set(GPU2, "0x120000\n", "0x10ee\n", "0x5001\n");
	CHECK_EQ(list("a.0", FABREX_DEVICE_FPGA, 8), 1);
	set(GPU2, "0x120000\n", "0x1234\n", "0xda13\n");
	CHECK_EQ(list("a.0", FABREX_DEVICE_FPGA, 8), 1);
	CHECK_EQ(list("a.0", FABREX_DEVICE_GPU, 8), 1);
	/* A console, a disk controller, nonsense. */
	set(GPU2, "0x030000\n", "0x1a03\n", "0x2000\n");
	set(GPU, "0x010601\n", "0x8086\n", "0x2922\n");
	set(FAR, "0x12000000\n", "0x1002\n", "0x744c\n");
	CHECK_EQ(list("a.0", 0, 8), 1);
	CHECK(are(ABROAD, NULL, NULL, NULL));
	CHECK_EQ(list("a.0", 16, 8), -EINVAL);
	CHECK_SAYS("0x10");
	CHECK(!strcmp(fabrex_device_kind_str(FABREX_DEVICE_GPU), "gpu") &&
	      !strcmp(fabrex_device_kind_str(FABREX_DEVICE_NVME), "nvme") &&
	      !strcmp(fabrex_device_kind_str(FABREX_DEVICE_NIC), "nic") &&
	      !strcmp(fabrex_device_kind_str(FABREX_DEVICE_FPGA), "fpga") &&
	      !strcmp(fabrex_device_kind_str(3), "unknown"));
	machine_free(&machine);
}

TEST(device_list_of_callers)
{
	unsigned char small[48];

	open_machine();
	CHECK_EQ(list(NULL, 0, 1), 4);
	CHECK_EQ((unsigned char)devices[1].pci[0], 0xa5);
	CHECK_EQ(list("0000:44:00.0", 0, 8), -EINVAL);
	CHECK_SAYS("0000:44:00.0");
	CHECK_EQ(list("b.0", 0, 8), -EINVAL);
	/* A user without privileges sees the same. */
	machine_cut_all(&machine, 64);
	CHECK_EQ(list("a.0", 0, 8), 4);
	CHECK(are(GPU, GPU2, FAR, ABROAD));
	CHECK_EQ(devices[0].path, FABREX_P2P_PATH_SWITCH);
	CHECK(!setenv("FABREX_ROOT", machine.root, 1));
	memset(small, 0xa5, sizeof(small));
	CHECK_EQ(fabrex_device_list(FAR, 0, (void *)small, 2, 20), 4);
	CHECK(!strcmp((char *)small, FAR) && small[16] == FABREX_DEVICE_NIC);
	CHECK(!strcmp((char *)small + 20, GPU) && small[40] == 0xa5);
	CHECK_EQ(fabrex_device_list(NULL, 0, NULL, 1, 8), -EINVAL);
	CHECK_EQ(fabrex_device_list(NULL, 0, NULL, 0, 0), 4);
	/* No PCI at all. */
	machine_remove(&machine, "sys/bus");
	CHECK_EQ(fabrex_device_list(NULL, 0, devices, 8, sizeof(devices[0])),
		 0);
	unsetenv("FABREX_ROOT");
	machine_free(&machine);
}
