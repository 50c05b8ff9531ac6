// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fabrex_p2p_query() where files are missing, unreadable or full of garbage,
 * and where no descriptor is left: never a wrong yes, never a crash.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "p2p_query.h"

TEST(p2p_garbage_tree)
{
	machine_new(&machine);
	machine_link(&machine, "sys/bus/pci/devices/" GPU, GPU);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	machine_link(&machine, "sys/bus/pci/devices/" GPU, "/proc");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	machine_link(&machine, "sys/bus/pci/devices/" GPU, PORT);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	machine_link(&machine, "sys/bus/pci/devices/" GPU, "../../../devices");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	CHECK(strstr(p.text, "makes no sense"));
	/* A directory that is no device in between; one with no host bridge. */
	machine_text(&machine, "sys/devices/pci0000:00/x/" GPU "/config", "");
	machine_link(&machine, "sys/bus/pci/devices/" GPU,
		     "/sys/devices/pci0000:00/x/" GPU);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	machine_text(&machine, "sys/devices/" GPU "/config", "");
	machine_link(&machine, "sys/bus/pci/devices/" GPU, "/sys/devices/" GPU);
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	/* No configuration space at all, or no file. */
	machine_remove(&machine, "sys/bus/pci/devices/" GPU2 "/config");
	expect(PORT, GPU2, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	machine_text(&machine, "sys/bus/pci/devices/" GPU2 "/config/x", "");
	expect(PORT, GPU2, FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	machine_free(&machine);
}

/* As containers mask files. */
static void mask(const char *name, const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", machine.root,
		 machine_at(&machine, name, file));
	machine_remove(&machine, machine_at(&machine, name, file));
	CHECK_EQ(symlink("/dev/null", path), 0);
}

static void unreadable(const char *what)
{
	CHECK(strstr(p.text, what) != NULL);
	CHECK(*p.remedy && !strstr(p.remedy, "/remove"));
}

/* What cannot be read is neither gone nor good; Linux may still say no. */
TEST(p2p_unreadable)
{
	machine_new(&machine);
	mask(GPU, "config");
	expect(PORT, GPU, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	unreadable(GPU " cannot be read (Permission denied)");
	expect(GPU, PORT, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	expect(PORT, GPU2, FABREX_P2P_YES, FABREX_P2P_OK);
	kernel_says(true, 4);
	expect(PORT, GPU, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	unreadable("; Linux says yes about the way (fabrex0, distance 4)");
	CHECK_EQ(p.distance, 4);
	kernel_says(false, 0);
	/* Of what cannot be seen that is what could be the cause. */
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_ACS);
	answer.kernel = false;
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_NO_KERNEL);
	answer.asked = false;
	/* What can be seen and is in the way is. */
	machine_text(&machine, machine_at(&machine, GPU, "power_state"),
		     "D3cold\n");
	expect(PORT, GPU, FABREX_P2P_NO, FABREX_P2P_POWER);
	mask(GPU2, "resource");
	expect(PORT, GPU2, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	/* A bridge on the way; one that is not. */
	machine_free(&machine);
	machine_new(&machine);
	mask("0000:02:01.0", "config");
	expect(PORT, GPU, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	unreadable("0000:02:01.0");
	expect(PORT, GPU2, FABREX_P2P_YES, FABREX_P2P_OK);
	mask("0000:01:00.0", "config");
	expect(PORT, GPU2, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	machine_free(&machine);
}

TEST(p2p_unreadable_host)
{
	machine_new(&machine);
	mask("0000:00:00.0", "config");
	expect(PORT, FAR, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	unreadable("the host bridge of pci0000:00 cannot be read");
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_acs(&machine, "0000:02:01.0", 0x000c);
	expect(PORT, GPU, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	unreadable("ACS redirect on 0000:02:01.0 sends");
	kernel_says(false, 0);
	expect(PORT, FAR, FABREX_P2P_NO, FABREX_P2P_REFUSED);
	kernel_says(true, 8);
	expect(PORT, FAR, FABREX_P2P_YES, FABREX_P2P_OK);
	CHECK_EQ(p.path, FABREX_P2P_PATH_ROOT);
	answer.asked = false;
	machine_free(&machine);
	machine_new(&machine);
	machine_remove(&machine, "proc/cpuinfo");
	machine_link(&machine, "proc/cpuinfo", "../../../dev/null");
	expect(PORT, FAR, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	unreadable("/proc/cpuinfo");
	machine_poke(&machine, "0000:00:00.0", 2, 0x2030);
	expect(PORT, FAR, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_free(&machine);
}

/* A process that has no file descriptor left. */
TEST(p2p_no_descriptors)
{
	struct rlimit old, none;

	machine_new(&machine);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	expect(PORT, GPU, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	CHECK(strstr(p.text, "Too many open files"));
	CHECK(strstr(p.remedy, "ulimit -n"));
	expect(PORT, FAR, FABREX_P2P_UNKNOWN, FABREX_P2P_UNREADABLE);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	machine_free(&machine);
}

/* Not even the device's directory can be entered: only the kernel is left. */
TEST(p2p_blind)
{
	struct p2p_query q = { .out = &p };

	memset(&p, 0, sizeof(p));
	fxi_check_blind(&q, GPU, EACCES);
	CHECK_EQ(p.verdict, FABREX_P2P_UNKNOWN);
	CHECK_EQ(p.reason, FABREX_P2P_UNREADABLE);
	unreadable(GPU " cannot be read (Permission denied)");
	q.kernel = OPTION_YES;
	q.answer = (struct p2p_answer){ .asked = true, .kernel = true,
					.reachable = true, .distance = 4 };
	fxi_check_blind(&q, GPU, EACCES);
	CHECK_EQ(p.verdict, FABREX_P2P_UNKNOWN);
	CHECK_EQ(p.distance, 4);
	unreadable("Linux says yes about the way");
	q.answer.reachable = false;
	fxi_check_blind(&q, GPU, EACCES);
	CHECK_EQ(p.verdict, FABREX_P2P_NO);
	CHECK_EQ(p.reason, FABREX_P2P_REFUSED);
	q.kernel = OPTION_NO;
	fxi_check_blind(&q, GPU, EACCES);
	CHECK_EQ(p.reason, FABREX_P2P_NO_KERNEL);
}

/* Capabilities that point to themselves, and bridges without end. */
TEST(p2p_loops)
{
	char above[1024] = "pci0002:00", name[32];
	int i;

	machine_new(&machine);
	machine_poke(&machine, GPU, AT_PM, AT_PM << 8 | 0x7f);
	machine_poke(&machine, "0000:02:01.0", AT_ACS, 0x00ff);
	machine_poke(&machine, "0000:02:01.0", AT_ACS + 2, 0x1001);
	expect(PORT, GPU, FABREX_P2P_YES, FABREX_P2P_OK);
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "0002:%02x:00.0", i);
		machine_device(&machine, above, name, 0x1b36000c,
			       EXPRESS_DOWNSTREAM);
		strcat(strcat(above, "/"), name);
	}
	expect(PORT, "0002:31:00.0", FABREX_P2P_NO, FABREX_P2P_NO_DEVICE);
	CHECK(strstr(p.text, "makes no sense"));
	machine_free(&machine);
}

/* Random bytes, cut off anywhere, in every file that is read. */
TEST(p2p_random)
{
	static const char *const files[] = { "config", "resource",
					     "power_state" };
	static const char *const devices[] = { PORT, GPU, "0000:02:00.0",
					       "0000:01:00.0",
					       "0000:00:00.0" };
	uint8_t data[4096];
	unsigned int seed = 1, verdicts[3] = { 0 };
	size_t i, n;
	int round;

	machine_new(&machine);
	for (round = 0; round < 3000; round++) {
		const char *dev = devices[rand_r(&seed) % 5];

		n = rand_r(&seed) % (round % 2 ? 80 : sizeof(data) + 1);
		for (i = 0; i < n; i++)
			data[i] = rand_r(&seed) >> 7;
		/* Capability lists are worth following. */
		if (n > 0x34 && round % 3)
			data[0x34] = 0x40 + (rand_r(&seed) & 0x7c);
		machine_file(&machine, machine_at(&machine, dev,
						  files[round % 7 % 3]),
			     data, n);
		CHECK_EQ(fxi_p2p_run(&(struct p2p_env){ machine.root, fake_ask },
				     PORT, GPU, &p), 0);
		CHECK(p.verdict <= FABREX_P2P_YES);
		verdicts[p.verdict]++;
		CHECK(memchr(p.text, 0, sizeof(p.text)));
		CHECK(memchr(p.remedy, 0, sizeof(p.remedy)));
		CHECK((p.verdict == FABREX_P2P_YES) == !p.reason);
		CHECK(*p.text);
		CHECK(ask_slots(PORT) <= 4);
		if (round % 20 == 19) {
			machine_free(&machine);
			machine_new(&machine);
		}
	}
	printf("# %u unknown, %u no, %u yes\n", verdicts[0], verdicts[1],
	       verdicts[2]);
	CHECK(verdicts[1] && verdicts[2]);
	machine_free(&machine);
}
