// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fabrex_p2p_query() on machines made of files: for each the verdict, the
 * path, the culprit and its bit, and what the sentences name.
 */
#include <stdlib.h>
#include <unistd.h>

#include "p2p_query.h"

TEST(p2p_same_switch)
{
	machine_new(&machine);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.path, FABREX_P2P_PATH_SWITCH);
	CHECK_EQ(p.distance, 4);
	CHECK_EQ(p.iommu, 0);
	CHECK(!strcmp(p.common, "0000:01:00.0"));
	CHECK(!*p.blocker && !*p.remedy && !p.bits);
	CHECK(strstr(p.text, "0000:03:00.0 to 0000:04:00.0: yes: ") == p.text);
	expect(GPU, GPU2, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.distance, 4);
	expect(GPU, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.path, FABREX_P2P_PATH_SAME);
	CHECK_EQ(p.distance, 0);
	machine_free(&machine);
}

TEST(p2p_names)
{
	machine_new(&machine);
	expect("a.0", GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK(!strcmp(p.initiator, PORT));
	expect("fabrex0", "04:00.0", FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK(!strcmp(p.target, GPU));
	CHECK_EQ(ask("b.0", GPU), -EINVAL);
	CHECK_SAYS("b.0 is neither a PCI address");
	CHECK_EQ(ask("fabrex1", GPU), -EINVAL);
	CHECK_EQ(ask("fabrex0x", GPU), -EINVAL);
	CHECK_EQ(ask("../../0000:03:00.0", GPU), -EINVAL);
	CHECK_EQ(ask("", GPU), -EINVAL);
	CHECK_EQ(ask(PORT, NULL), -EINVAL);
	CHECK_EQ(ask("0000:03:00.8", GPU), -EINVAL);
	CHECK_EQ(ask("0000:03:20.0", GPU), -EINVAL);
	CHECK_EQ(ask("0000:03:00.0 ", GPU), -EINVAL);
	CHECK_EQ(ask("000000:03:00.0", GPU), -EINVAL);
	expect(PORT, "0000:44:00.0", FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	CHECK(strstr(p.text, "there is no PCI device 0000:44:00.0"));
	machine_free(&machine);
}

TEST(p2p_acs)
{
	machine_new(&machine);
	/* Source validation and upstream forwarding redirect nothing. */
	machine_acs(&machine, "0000:02:01.0", 0x0011);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_acs(&machine, "0000:02:01.0", 0x001d);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_ACS);
	blames("0000:02:01.0", 0x000c);
	CHECK_EQ(p.path, FABREX_P2P_PATH_ROOT);
	CHECK_EQ(p.distance, 4);
	CHECK(strstr(p.text, "Request Redirect, Completion Redirect, 0x000c"));
	CHECK(strstr(p.text, "downstream port 0000:02:01.0 sends"));
	CHECK(strstr(p.text, "host bridge 8086:29c0 is not on Linux's list"));
	CHECK(strstr(p.remedy, "pci=disable_acs_redir=0000:02:01.0, or"));
	/* Both ways blame the same port. */
	expect(GPU, PORT, FABREX_P2P_NO, FABREX_P2P_ACS);
	blames("0000:02:01.0", 0x000c);
	/* It does not concern others. */
	expect(PORT, GPU2, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_acs(&machine, "0000:02:00.0", 0x0004);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_ACS);
	blames("0000:02:00.0", 0x0004);
	CHECK(strstr(p.text, "and 1 more"));
	CHECK(strstr(p.remedy, "=0000:02:00.0;0000:02:01.0,"));
	machine_free(&machine);
}

TEST(p2p_acs_egress)
{
	machine_new(&machine);
	machine_acs(&machine, "0000:02:00.0", 0x0020);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_ACS);
	blames("0000:02:00.0", 0x0020);
	CHECK(strstr(p.text, "(Egress Control, 0x0020)"));
	machine_acs(&machine, "0000:02:00.0", 0x002c);
	machine_acs(&machine, "0000:02:01.0", 0x002c);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_ACS);
	CHECK(strstr(p.text, "Completion Redirect, Egress Control, 0x002c"));
	/* Above the switch nothing passes. */
	machine_acs(&machine, "0000:02:00.0", 0);
	machine_acs(&machine, "0000:02:01.0", 0);
	machine_acs(&machine, "0000:00:05.0", 0x000c);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_free(&machine);
}

TEST(p2p_root_complex)
{
	machine_new(&machine);
	expect(PORT, FAR, FABREX_P2P_NO, FABREX_P2P_ROOT);
	blames("0000:00:05.0", 0);
	CHECK_EQ(p.path, FABREX_P2P_PATH_ROOT);
	CHECK_EQ(p.distance, 8);
	CHECK(!*p.common);
	CHECK(strstr(p.text, "0000:00:06.0"));
	CHECK(strstr(p.text, "host bridge 8086:29c0"));
	expect(PORT, ABROAD, FABREX_P2P_NO, FABREX_P2P_ROOT);
	CHECK(strstr(p.text, "PCI domains 0000 and 0001"));
	CHECK_EQ(p.distance, 6);
	machine_free(&machine);
}

TEST(p2p_allowed_bridge)
{
	machine_new(&machine);
	/* Xeon Scalable: to other host bridges too, if they are listed. */
	machine_poke(&machine, "0000:00:00.0", 2, 0x09a2);
	expect(PORT, FAR, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.path, FABREX_P2P_PATH_ROOT);
	CHECK_EQ(p.distance, 8);
	CHECK(strstr(p.text, "host bridge 8086:09a2"));
	expect(PORT, ABROAD, FABREX_P2P_NO, FABREX_P2P_ROOT);
	CHECK(strstr(p.text, "8086:3c00 passes requests on only within"));
	machine_poke(&machine, "0001:00:00.0", 2, 0x2030);
	expect(PORT, ABROAD, FABREX_P2P_YES, FABREX_P2P_OK);
	/* Xeon E5: within one host bridge. */
	machine_poke(&machine, "0000:00:00.0", 2, 0x3c00);
	expect(PORT, FAR, FABREX_P2P_YES, FABREX_P2P_OK);
	expect(PORT, ABROAD, FABREX_P2P_NO, FABREX_P2P_ROOT);
	/* With ACS redirect requests go there, and come back. */
	machine_acs(&machine, "0000:02:00.0", 0x000c);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.path, FABREX_P2P_PATH_ROOT);
	CHECK(strstr(p.text, "ACS redirect on 0000:02:00.0"));
	machine_free(&machine);
}

/* Without 00:00.0 the first root port stands for the host bridge. */
TEST(p2p_host_by_root_port)
{
	machine_new(&machine);
	machine_remove(&machine, "sys/devices/pci0000:00/0000:00:00.0");
	machine_poke(&machine, "0000:00:05.0", 0, 0x8086);
	machine_poke(&machine, "0000:00:05.0", 2, 0x2030);
	expect(PORT, FAR, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK(strstr(p.text, "8086:2030"));
	/* An endpoint there does not. */
	machine_device(&machine, "pci0000:00", "0000:00:01.0", 0x80862030,
		       EXPRESS_ENDPOINT);
	expect(PORT, FAR, FABREX_P2P_NO, FABREX_P2P_ROOT);
	CHECK(strstr(p.text, "no host bridge that Linux could know"));
	machine_free(&machine);
}

TEST(p2p_amd)
{
	machine_new(&machine);
	machine_cpu(&machine, "AuthenticAMD", 0x17);
	expect(PORT, FAR, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK(strstr(p.text, "AMD processor of family 0x17"));
	expect(PORT, ABROAD, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_cpu(&machine, "AuthenticAMD", 0x15);
	expect(PORT, FAR, FABREX_P2P_NO, FABREX_P2P_ROOT);
	machine_cpu(&machine, "HygonGenuine", 0x18);
	expect(PORT, FAR, FABREX_P2P_NO, FABREX_P2P_ROOT);
	machine_text(&machine, "proc/cpuinfo", "vendor_id");
	expect(PORT, FAR, FABREX_P2P_NO, FABREX_P2P_ROOT);
	machine_remove(&machine, "proc/cpuinfo");
	expect(PORT, FAR, FABREX_P2P_NO, FABREX_P2P_ROOT);
	machine_free(&machine);
}

TEST(p2p_asleep)
{
	machine_new(&machine);
	machine_poke(&machine, GPU, AT_PM + 4, 0x0003);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_POWER);
	blames(GPU, 0x0003);
	CHECK(strstr(p.text, "sleeps in D3hot"));
	CHECK_EQ(p.distance, 4);
	machine_poke(&machine, GPU, AT_PM + 4, 0x0000);
	machine_text(&machine, machine_at(&machine, GPU, "power_state"),
		     "D3cold\n");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_POWER);
	CHECK(strstr(p.text, "sleeps in D3cold"));
	/* The initiator too; the sleep of a third does not matter. */
	expect(GPU, PORT, FABREX_P2P_NO, FABREX_P2P_POWER);
	expect(PORT, GPU2, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_free(&machine);
}

TEST(p2p_memory_off)
{
	machine_new(&machine);
	machine_poke(&machine, GPU, 0x04, 0x0004);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_MEMORY_OFF);
	blames(GPU, 0x0002);
	CHECK(strstr(p.remedy, "/sys/bus/pci/devices/" GPU "/enable"));
	/* It may still write elsewhere. */
	expect(GPU, PORT, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_poke(&machine, GPU, 0x04, 0x0006);
	machine_poke(&machine, "0000:02:01.0", 0x04, 0x0004);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_MEMORY_OFF);
	blames("0000:02:01.0", 0x0002);
	machine_free(&machine);
}

TEST(p2p_no_master)
{
	machine_new(&machine);
	machine_poke(&machine, PORT, 0x04, 0x0002);
	machine_link(&machine, machine_at(&machine, PORT, "driver"),
		     "/sys/bus");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_MASTER);
	blames(PORT, 0x0004);
	CHECK(strstr(p.remedy, "setpci -s " PORT " COMMAND=4:4"));
	expect(GPU, PORT, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_poke(&machine, PORT, 0x04, 0x0006);
	machine_poke(&machine, "0000:02:00.0", 0x04, 0x0002);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_MASTER);
	blames("0000:02:00.0", 0x0004);
	/* Turned round below it, so the upstream port's does not matter. */
	machine_poke(&machine, "0000:02:00.0", 0x04, 0x0006);
	machine_poke(&machine, "0000:01:00.0", 0x04, 0x0002);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_cpu(&machine, "AuthenticAMD", 0x19);
	expect(PORT, FAR, FABREX_P2P_NO, FABREX_P2P_NO_MASTER);
	blames("0000:01:00.0", 0x0004);
	machine_free(&machine);
}

TEST(p2p_in_reset)
{
	machine_new(&machine);
	machine_poke(&machine, "0000:02:01.0", 0x3e, 0x0040);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_RESET);
	blames("0000:02:01.0", 0x0040);
	CHECK(strstr(p.remedy, "setpci -s 0000:02:01.0 BRIDGE_CONTROL=0:40"));
	/* Then it does not answer either: the cause is still the bridge. */
	machine_config(&machine, GPU, 0xff, 4096);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_RESET);
	machine_poke(&machine, "0000:02:01.0", 0x3e, 0);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	blames(GPU, 0);
	machine_poke(&machine, "0000:02:01.0", AT_EXPRESS + 0x12, 0);
	expect(GPU, PORT, FABREX_P2P_NO, FABREX_P2P_RESET);
	blames("0000:02:01.0", 0x2000);
	machine_poke(&machine, "0000:02:01.0", AT_EXPRESS + 0x10, 0x0010);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_RESET);
	blames("0000:02:01.0", 0x0010);
	/* A link that is not reported is none that is down. */
	machine_poke(&machine, "0000:02:02.0", AT_EXPRESS + 0x12, 0);
	machine_poke(&machine, "0000:02:02.0", AT_EXPRESS + 0x0e, 0);
	expect(PORT, GPU2, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_free(&machine);
}

/* After a reset: registers are empty, Linux still believes in its addresses. */
TEST(p2p_was_reset)
{
	machine_new(&machine);
	machine_poke(&machine, GPU, 0x18, 0x000c);
	machine_poke(&machine, GPU, 0x1a, 0);
	machine_poke(&machine, GPU, 0x1c, 0);
	machine_poke(&machine, GPU, 0x04, 0);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_RESET);
	blames(GPU, 0x18);
	CHECK(strstr(p.text, "BAR 2 has lost its address"));
	machine_free(&machine);
}

TEST(p2p_bars)
{
	machine_new(&machine);
	machine_memory(&machine, GPU, 0, 64 << 20);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_BAR_SPACE);
	blames(GPU, 0x18);
	CHECK(strstr(p.text, "BAR 2 (64 MiB)"));
	/* As older kernels show it: no range, a register with a type. */
	machine_memory(&machine, GPU, 0, 0);
	machine_poke(&machine, GPU, 0x18, 0x000c);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_BAR_SPACE);
	machine_poke(&machine, GPU, 0x18, 0);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_BAR);
	blames(GPU, 0);
	expect(GPU, PORT, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_free(&machine);
}

/* Lines 0 and 2 of "resource". */
static void two_bars(const char *first, const char *second)
{
	char text[512];

	snprintf(text, sizeof(text), "%s\n0x0 0x0 0x0\n%s\n", first, second);
	machine_text(&machine, machine_at(&machine, GPU, "resource"), text);
}

/* One of several without an address: what matters is whether it is the memory. */
TEST(p2p_some_bars)
{
	static const char regs[] = "0xfe000000 0xfe00ffff 0x40200";
	static const char memory[] = "0x140000000 0x143ffffff 0x14220c";

	machine_new(&machine);
	machine_poke(&machine, GPU, 0x12, 0xfe00);
	two_bars(regs, memory);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK(!strstr(p.text, "no address"));
	two_bars("0x0 0xffff 0x20040200", memory);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK(strstr(p.text, "; its BAR 0 has no address"));
	two_bars(regs, "0x0 0x3ffffff 0x2014220c");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_BAR_SPACE);
	blames(GPU, 0x18);
	/* No size to compare, as older kernels show it. */
	machine_poke(&machine, GPU, 0x18, 0x000c);
	machine_poke(&machine, GPU, 0x1a, 0);
	machine_poke(&machine, GPU, 0x1c, 0);
	two_bars(regs, "0x0 0x0 0x0");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_BAR_SPACE);
	machine_poke(&machine, GPU, 0x18, 0x0004);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK(strstr(p.text, "; its BAR 2 has no address"));
	/* Enhanced Allocation: the registers are 0, and are not what counts. */
	machine_poke(&machine, GPU, 0x12, 0);
	machine_poke(&machine, GPU, 0x18, 0);
	two_bars("0x0 0x0 0x0", memory);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_RESET);
	two_bars("0x0 0x0 0x0", "0x140000000 0x143ffffff 0x14223c");
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_free(&machine);
}

/* Identifiers, BARs and Memory Space Enable of a Virtual Function are void. */
TEST(p2p_virtual_function)
{
	int at;

	machine_new(&machine);
	machine_poke(&machine, GPU, 0x00, 0xffff);
	machine_poke(&machine, GPU, 0x02, 0xffff);
	machine_poke(&machine, GPU, 0x04, 0x0004);
	for (at = 0x10; at < 0x28; at += 2)
		machine_poke(&machine, GPU, at, 0);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	machine_link(&machine, machine_at(&machine, GPU, "physfn"),
		     "/sys/bus");
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.distance, 4);
	expect(GPU, PORT, FABREX_P2P_YES, FABREX_P2P_OK);
	kernel_says(true, 4);
	asked_about.bus = 0;
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(asked_about.bus, 4);
	answer.asked = false;
	/* What it does have is looked at. */
	machine_poke(&machine, GPU, 0x04, 0);
	expect(GPU, PORT, FABREX_P2P_NO, FABREX_P2P_NO_MASTER);
	machine_poke(&machine, GPU, AT_PM + 4, 0x0003);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_POWER);
	machine_memory(&machine, GPU, 0, 64 << 20);
	machine_poke(&machine, GPU, AT_PM + 4, 0);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_BAR_SPACE);
	machine_config(&machine, GPU, 0xff, 4096);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	machine_free(&machine);
}

TEST(p2p_iommu)
{
	machine_new(&machine);
	machine_iommu(&machine, PORT, "identity\n");
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.iommu, 0);
	machine_iommu(&machine, PORT, "DMA-FQ\n");
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.iommu, 1);
	/* What Linux does with bridges when there is an IOMMU. */
	machine_acs(&machine, "0000:02:00.0", 0x001d);
	machine_acs(&machine, "0000:02:01.0", 0x001d);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_ACS);
	CHECK(strstr(p.remedy, "because of the IOMMU"));
	machine_cpu(&machine, "AuthenticAMD", 0x19);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK(strstr(p.text, "translated by the IOMMU"));
	machine_iommu(&machine, PORT, "blocked\n");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_IOMMU);
	blames(PORT, 0);
	machine_free(&machine);
}

TEST(p2p_kernel_option)
{
	machine_new(&machine);
	machine_text(&machine, "boot/config-7.2-test",
		     "CONFIG_PCI=y\n# CONFIG_PCI_P2PDMA is not set\n");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_KERNEL);
	CHECK(strstr(p.text, "CONFIG_PCI_P2PDMA"));
	CHECK_EQ(p.distance, 4);
	CHECK(*p.remedy);
	/* It may be of another build: names of its functions say more. */
	machine_text(&machine, "proc/kallsyms",
		     "0000000000000000 T pci_p2pdma_distance_many\n");
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_text(&machine, "proc/kallsyms", "");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_KERNEL);
	machine_remove(&machine, "boot");
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_text(&machine, "proc/kallsyms",
		     "0000000000000000 T pci_enable_device\n");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_KERNEL);
	machine_text(&machine, "proc/kallsyms",
		     "0000000000000000 T pci_enable_device\n"
		     "0000000000000000 T pci_p2pdma_distance_many\n");
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	/* The module knows best. */
	kernel_says(false, 0);
	answer.kernel = false;
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_KERNEL);
	expect(GPU, GPU2, FABREX_P2P_NO, FABREX_P2P_NO_KERNEL);
	machine_free(&machine);
}

TEST(p2p_kernel_disagrees)
{
	machine_new(&machine);
	kernel_says(true, 4);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(asked_about.bus, 4);
	/* The port is asked about the other one, whichever way. */
	expect(GPU, PORT, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(asked_about.bus, 4);
	kernel_says(false, 0);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_REFUSED);
	CHECK(strstr(p.text, "Linux refuses it (fabrex0), although"));
	CHECK(strstr(p.text, "0000:01:00.0"));
	CHECK(*p.remedy && !*p.blocker);
	/* It agrees, so the cause that was found stands. */
	machine_acs(&machine, "0000:02:01.0", 0x000c);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_ACS);
	/* A newer kernel knows more host bridges than we do. */
	kernel_says(true, 4);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.path, FABREX_P2P_PATH_ROOT);
	CHECK(strstr(p.text, "Linux says so (fabrex0), though host bridge"));
	/* Its yes is about the way only. */
	machine_poke(&machine, GPU, 0x04, 0);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_MEMORY_OFF);
	machine_free(&machine);
}

TEST(p2p_no_privilege)
{
	machine_new(&machine);
	machine_acs(&machine, "0000:02:01.0", 0x000c);
	machine_cut_all(&machine, 64);
	expect(PORT, GPU, FABREX_P2P_UNKNOWN, FABREX_P2P_ACS);
	CHECK(strstr(p.text, "CAP_SYS_ADMIN"));
	CHECK(strstr(p.remedy, "run as root to see which bridge"));
	kernel_says(false, 0);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_ACS);
	CHECK(!*p.blocker);
	CHECK(strstr(p.remedy, "run as root to see which bridge"));
	kernel_says(true, 4);
	expect(PORT, GPU2, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.path, FABREX_P2P_PATH_SWITCH);
	/* Nothing hidden is needed for these. */
	kernel_says(false, 0);
	expect(PORT, FAR, FABREX_P2P_NO, FABREX_P2P_ROOT);
	answer.asked = false;
	machine_cpu(&machine, "AuthenticAMD", 0x1a);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_free(&machine);
}

/* A kernel that sees 256 bytes of a bridge sees no ACS either. */
TEST(p2p_conventional_config)
{
	machine_new(&machine);
	machine_acs(&machine, "0000:02:01.0", 0x000c);
	machine_cut(&machine, "0000:02:01.0", AT_ACS + 4);
	expect(PORT, GPU, FABREX_P2P_UNKNOWN, FABREX_P2P_ACS);
	machine_cut(&machine, "0000:02:01.0", 256);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_free(&machine);
}

TEST(p2p_public)
{
	struct fabrex_p2p big[2];
	int i;

	machine_new(&machine);
	setenv("FABREX_ROOT", machine.root, 1);
	memset(big, 0x55, sizeof(big));
	CHECK_EQ(fabrex_p2p_query("a.0", GPU, big, sizeof(big)), 0);
	CHECK_EQ(big[0].verdict, FABREX_P2P_YES);
	CHECK_EQ(big[1].verdict, 0);
	/* An older caller has room for less. */
	memset(big, 0x55, sizeof(big));
	CHECK_EQ(fabrex_p2p_query("a.0", GPU, big, 8), 0);
	CHECK_EQ(big[0].path, FABREX_P2P_PATH_SWITCH);
	CHECK_EQ(big[0].reason, 0x55555555);
	CHECK_EQ(fabrex_p2p_query("a.0", GPU, NULL, sizeof(big)), -EINVAL);
	CHECK_EQ(fabrex_p2p_query("x", GPU, big, sizeof(big)), -EINVAL);
	for (i = -2; i < 20; i++)
		CHECK(*fabrex_p2p_verdict_str(i) && *fabrex_p2p_path_str(i) &&
		      *fabrex_p2p_reason_str(i));
	CHECK(!strcmp(fabrex_p2p_verdict_str(FABREX_P2P_YES), "yes"));
	CHECK(!strcmp(fabrex_p2p_path_str(FABREX_P2P_PATH_SWITCH), "switch"));
	CHECK(!strcmp(fabrex_p2p_reason_str(FABREX_P2P_ACS), "acs"));
	unsetenv("FABREX_ROOT");
	machine_free(&machine);
}

/* ---- slots -------------------------------------------------------------- */

static const struct p2p_slot *slot_at(unsigned int number)
{
	int i;

	for (i = 0; i < nslots; i++)
		if (slots[i].number == number)
			return &slots[i];
	return NULL;
}

TEST(p2p_slot)
{
	const struct p2p_slot *slot;

	machine_new(&machine);
	CHECK_EQ(ask_slots("a.0"), 3);
	/* The port is in slot 1 itself. */
	CHECK(!slot_at(1) && slot_at(2) && slot_at(3));
	slot = slot_at(4);
	CHECK(slot && !strcmp(slot->bridge, "0000:02:03.0"));
	CHECK_EQ(slot->first_bus, 6);
	CHECK_EQ(slot->last_bus, 6);
	CHECK_EQ(slot->window, 1 << 30);
	CHECK_EQ(slot->room, 1 << 30);
	CHECK_EQ(slot->spare, 0);
	CHECK_EQ(slot->p2p.verdict, FABREX_P2P_YES);
	CHECK_EQ(slot->p2p.distance, 4);
	CHECK(!strcmp(slot->p2p.target, "slot 4"));
	machine_acs(&machine, "0000:02:03.0", 0x0004);
	CHECK_EQ(ask_slots("fabrex0"), 3);
	CHECK_EQ(slot_at(4)->p2p.reason, FABREX_P2P_ACS);
	CHECK(strstr(slot_at(4)->p2p.text, "0000:03:00.0 to slot 4: no"));
	CHECK_EQ(slot_at(3)->p2p.verdict, FABREX_P2P_YES);
	/* Linux is asked about the bridge; the device is one step more. */
	kernel_says(true, 3);
	CHECK_EQ(ask_slots("a.0"), 3);
	CHECK_EQ(slot_at(3)->p2p.distance, 4);
	CHECK_EQ(asked_about.bus, 2);
	CHECK_EQ(ask_slots("b.0"), -ENODEV);
	CHECK_EQ(ask_slots("0000:44:00.0"), -ENODEV);
	/* On the root bus there is no switch beside it. */
	CHECK_EQ(ask_slots("0000:00:05.0"), 0);
	answer.asked = false;
	/* Where another port of this host is nothing can come. */
	machine_text(&machine, "sys/class/fabrex/fabrex1/name", "a.1\n");
	machine_link(&machine, "sys/class/fabrex/fabrex1/device",
		     "../../../bus/pci/devices/" GPU2);
	CHECK_EQ(ask_slots("a.0"), 2);
	CHECK(slot_at(2) && !slot_at(3) && slot_at(4));
	CHECK_EQ(ask_slots("a.1"), 2);
	CHECK(!slot_at(1) && slot_at(2) && slot_at(4));
	machine_cut_all(&machine, 64);
	CHECK_EQ(ask_slots("a.0"), -EPERM);
	machine_free(&machine);
}

TEST(p2p_slot_room)
{
	machine_new(&machine);
	/* No window yet: as large as what others have left. */
	machine_memory(&machine, "0000:02:03.0", 0, 0);
	CHECK_EQ(ask_slots("a.0"), 3);
	CHECK_EQ(slot_at(4)->window, 0);
	CHECK_EQ(slot_at(4)->room, 1 << 30);
	CHECK_EQ(slot_at(4)->spare, 1 << 30);
	/* Two gaps side by side are one, if they are aligned. */
	machine_memory(&machine, "0000:02:02.0", 0, 0);
	CHECK_EQ(ask_slots("a.0"), 3);
	CHECK_EQ(slot_at(4)->room, 2ll << 30);
	CHECK_EQ(slot_at(4)->spare, 2ll << 30);
	machine_memory(&machine, "0000:01:00.0", 0, 0);
	CHECK_EQ(ask_slots("a.0"), 3);
	CHECK_EQ(slot_at(4)->room, 0);
	/* Nonsense does no harm. */
	machine_memory(&machine, "0000:01:00.0", 1, ~0ull - 1);
	CHECK_EQ(ask_slots("a.0"), 3);
	machine_memory(&machine, "0000:02:01.0", 0x7fffffffffffffff, 1);
	CHECK_EQ(ask_slots("a.0"), 3);
	machine_config(&machine, "0000:02:02.0", 0xff, 4096);
	CHECK_EQ(ask_slots("a.0"), 2);
	machine_free(&machine);
}
