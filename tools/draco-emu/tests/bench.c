// SPDX-License-Identifier: GPL-2.0-only
/*
 * What tests of a function start from. See bench.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define REGS		sizeof(model.regs)

struct function *fn;
struct client cl;
int mem_fd = -1;
uint8_t *mem;
char sock_path[128];
struct bench_model model;

/* ---- The model ---- */

static void m_read(void *arg, unsigned int bar, uint64_t offset, void *buf,
		   size_t count)
{
	(void)arg;
	memset(buf, (int)bar + 0x10, count);
	if (!bar && offset + count <= REGS)
		memcpy(buf, model.regs + offset, count);
}

static void m_write(void *arg, unsigned int bar, uint64_t offset,
		    const void *buf, size_t count)
{
	(void)arg;
	model.last_len = count;
	if (!bar && offset + count <= REGS)
		memcpy(model.regs + offset, buf, count);
}

static void m_attach(void *arg)
{
	(void)arg;
	model.attach++;
}

static void m_detach(void *arg)
{
	(void)arg;
	model.detach++;
}

static void m_reset(void *arg, enum function_reset why)
{
	(void)arg;
	if (why == FUNCTION_RESET_FLR)
		model.flr++;
	else if (why == FUNCTION_RESET_DEVICE)
		model.device++;
	else
		model.lost++;
	memset(model.regs, 0, sizeof(model.regs));
}

static void m_master(void *arg, bool on)
{
	(void)arg;
	model.master += on ? 1 : 100;
}

static void m_bars(void *arg)
{
	(void)arg;
	model.bars++;
}

const struct function_ops bench_ops = {
	.bar_read = m_read, .bar_write = m_write, .attach = m_attach,
	.detach = m_detach, .reset = m_reset, .bus_master = m_master,
	.bars = m_bars,
};

/* ---- Set-up ---- */

bool wait_until(atomic_uint *v, unsigned int n)
{
	int i;

	for (i = 0; i < 120000; i++) {
		if (atomic_load(v) >= n)
			return true;
		usleep(1000);
	}
	return false;
}

int memory(unsigned int seals)
{
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, MEM_SIZE))
		abort();
	if (seals)
		fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

bool start(void)
{
	struct function_desc d = {
		.name = "test", .socket = sock_path, .vendor = 0x1234,
		.device = 0xda00, .class_code = 0x068000, .revision = 1,
		.link_speed = 4, .link_width = 16,
		.bar[0] = { .size = 0x10000, .flags = FUNCTION_BAR_64 },
		.bar[2] = { .size = 1 << 20, .flags = FUNCTION_BAR_64 |
			    FUNCTION_BAR_PREFETCH | FUNCTION_BAR_MEMORY },
		.bar[4] = { .size = 1 << 20, .flags = FUNCTION_BAR_64 },
		.msix_vectors = 32, .msix_bar = 0, .msix_table = 0x4000,
		.msix_pba = 0x8000, .dma = true,
	};

	memset(&model, 0, sizeof(model));
	return !function_create(&d, &bench_ops, NULL, &fn);
}

bool negotiate(void)
{
	return !client_connect(&cl, sock_path) && client_version(&cl) > 0;
}

/* Decode BARs, be a master, and map guest memory. */
bool enable(void)
{
	mem_fd = memory(F_SEAL_SHRINK);
	mem = mmap(NULL, MEM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, mem_fd,
		   0);
	return !client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MEMORY |
				  PCI_COMMAND_MASTER, 2) &&
	       !client_map(&cl, GUEST, MEM_SIZE, mem_fd, 0);
}

void stop(void)
{
	client_close(&cl);
	function_destroy(fn);
	fn = NULL;
	if (mem_fd >= 0) {
		munmap(mem, MEM_SIZE);
		close(mem_fd);
	}
	mem_fd = -1;
}

uint64_t counted(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n = 0;

	if (poll(&p, 1, 200) == 1 && read(fd, &n, 8) != 8)
		return 999;
	return n;
}

int bench_main(const struct tap_test *tests, unsigned int n, int argc,
	       char **argv)
{
	char dir[] = "/tmp/emu-test-XXXXXX";
	int ret;

	if (!mkdtemp(dir))
		return 1;
	snprintf(sock_path, sizeof(sock_path), "%s/f.sock", dir);
	ret = tap_run(tests, n, argc > 1 ? argv[1] : NULL);
	rmdir(dir);
	return ret;
}
