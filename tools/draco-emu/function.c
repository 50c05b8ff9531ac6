// SPDX-License-Identifier: GPL-2.0-only
/*
 * One PCI function behind a vfio-user socket. Its thread accepts one client at
 * a time and serves it; config space and BAR accesses run there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "function_state.h"
#include "log.h"

#define STACK_SIZE	(256 * 1024)
#define MESSAGE_MS	4000	/* QEMU waits 5 s for our replies */

/* ---- Interrupts ---- */

static unsigned int be_irqs(void *arg, unsigned int index)
{
	struct function *f = arg;

	return index == VU_IRQ_MSIX ? f->desc.msix_vectors : 0;
}

static void be_trigger(void *arg, unsigned int vector)
{
	function_raise(arg, vector);
}

/* ---- DMA ---- */

struct dma_map *function_dma(struct function *f)
{
	return f->desc.dma ? f->dma : NULL;
}

int function_message(struct function *f, bool write, uint64_t addr, void *buf,
		     size_t len)
{
	if (!dma_map_enabled(f->dma))
		return -EFAULT;
	return vu_channel_dma(f->channel, write, addr, buf, len, MESSAGE_MS);
}

/* Off at once and for good when dead; set_dead() may come at any time. */
static void gate_dma(struct function *f)
{
	bool on;

	pthread_mutex_lock(&f->gate_lock);
	on = f->desc.dma && pci_config_bus_master(&f->config) &&
	     atomic_load(&f->attached) && !atomic_load(&f->dead);
	if (on != dma_map_enabled(f->dma))
		dma_map_enable(f->dma, on);
	pthread_mutex_unlock(&f->gate_lock);
}

static int be_map(void *arg, uint64_t addr, uint64_t len, unsigned int prot,
		  int fd, uint64_t offset)
{
	struct function *f = arg;

	/* Not a master: the range is kept for later unmaps, nothing more. */
	return dma_map_add_fd(f->dma, addr, len, prot, f->desc.dma ? fd : -1,
			      offset);
}

static int be_unmap(void *arg, uint64_t addr, uint64_t len)
{
	struct function *f = arg;

	return dma_map_del_range(f->dma, addr, len);
}

static void be_unmap_all(void *arg)
{
	struct function *f = arg;

	dma_map_clear(f->dma);
}

/* Client memory vanished: whoever does that is thrown out. */
static void on_memory_fault(void *arg)
{
	struct function *f = arg;

	log_error("%s: client shrank memory it had shared; closing it",
		  f->name);
	pthread_mutex_lock(&f->client_lock);
	if (f->client_fd >= 0)
		shutdown(f->client_fd, SHUT_RDWR);
	pthread_mutex_unlock(&f->client_lock);
}

/* ---- Config space and BARs ---- */

/* Not pulled out, and the way to it is up. */
static bool answers(const struct function *f)
{
	return !atomic_load(&f->dead) &&
	       (!f->desc.link || atomic_load(f->desc.link));
}

static void update_bars(struct function *f)
{
	bool decode = pci_config_memory(&f->config) && !atomic_load(&f->dead);
	bool changed = false;
	unsigned int i;

	for (i = 0; i < FUNCTION_BARS; i++) {
		uint64_t addr = 0;

		if (f->desc.bar[i].size && decode)
			addr = pci_config_bar(&f->config, i);
		/* It changes only while the address is 0. */
		atomic_store(&f->bar_size[i], f->config.bar[i].size);
		if (atomic_exchange(&f->bar_addr[i], addr) != addr)
			changed = true;
	}
	if (changed && f->ops.bars)
		f->ops.bars(f->arg);
}

static void update_command(struct function *f)
{
	bool on = pci_config_bus_master(&f->config);

	gate_dma(f);
	update_bars(f);
	if (on == f->bus_master)
		return;
	f->bus_master = on;
	if (f->ops.bus_master)
		f->ops.bus_master(f->arg, on);
}

static void reset(struct function *f, enum function_reset why)
{
	/* Whoever waits for the client waits for this thread. */
	vu_channel_pause(f->channel, true);
	if (f->ops.reset)
		f->ops.reset(f->arg, why);
	vu_channel_pause(f->channel, why == FUNCTION_RESET_LOST);
	pci_config_reset(&f->config, why == FUNCTION_RESET_FLR);
	pthread_mutex_lock(&f->irq_lock);
	f->pending = 0;
	pthread_mutex_unlock(&f->irq_lock);
	update_command(f);
}

static void write_config(struct function *f, uint64_t offset, const void *buf,
			 size_t len)
{
	unsigned int what = pci_config_write(&f->config, (uint32_t)offset, buf,
					 len);

	if (what & CONFIG_FLR) {
		log_debug("%s: function level reset", f->name);
		reset(f, FUNCTION_RESET_FLR);
		return;
	}
	if (what & CONFIG_COMMAND)
		update_command(f);
	else if (what & CONFIG_BARS)
		update_bars(f);
}

static bool in_msix(const struct function *f, unsigned int bar, uint64_t offset,
		    size_t len, uint32_t start, uint32_t size)
{
	return f->desc.msix_vectors && bar == f->desc.msix_bar &&
	       offset < (uint64_t)start + size && start < offset + len;
}

/* Pending bits are the only part of MSI-X that the client asks us for. */
static bool msix_read(struct function *f, unsigned int bar, uint64_t offset,
		      void *buf, size_t len)
{
	uint64_t pending, i;

	if (in_msix(f, bar, offset, len, f->desc.msix_table,
		    f->desc.msix_vectors * 16)) {
		memset(buf, 0, len);
		return true;
	}
	if (!in_msix(f, bar, offset, len, f->desc.msix_pba, 8))
		return false;
	pthread_mutex_lock(&f->irq_lock);
	pending = f->pending;
	pthread_mutex_unlock(&f->irq_lock);
	memset(buf, 0, len);
	for (i = 0; i < len; i++)
		if (offset + i >= f->desc.msix_pba &&
		    offset + i < f->desc.msix_pba + 8)
			((uint8_t *)buf)[i] = (uint8_t)
				(pending >> 8 * (offset + i - f->desc.msix_pba));
	return true;
}

static void be_read(void *arg, unsigned int region, uint64_t offset, void *buf,
		    size_t len)
{
	struct function *f = arg;

	memset(buf, 0xff, len);
	if (!answers(f))
		return;
	if (region == VU_REGION_CONFIG)
		pci_config_read(&f->config, (uint32_t)offset, buf, len);
	else if (!pci_config_memory(&f->config))
		return;
	else if (f->bar_mem[region])
		memcpy(buf, (char *)f->bar_mem[region] + offset, len);
	else if (!msix_read(f, region, offset, buf, len) && f->ops.bar_read)
		f->ops.bar_read(f->arg, region, offset, buf, len);
}

static void be_write(void *arg, unsigned int region, uint64_t offset,
		     const void *buf, size_t len)
{
	struct function *f = arg;

	if (!answers(f))
		return;
	if (region == VU_REGION_CONFIG)
		write_config(f, offset, buf, len);
	else if (!pci_config_memory(&f->config))
		return;
	else if (f->bar_mem[region])
		memcpy((char *)f->bar_mem[region] + offset, buf, len);
	else if (!in_msix(f, region, offset, len, f->desc.msix_table,
			  f->desc.msix_vectors * 16) && f->ops.bar_write)
		f->ops.bar_write(f->arg, region, offset, buf, len);
}

static void be_region(void *arg, unsigned int index, struct vu_region *r)
{
	struct function *f = arg;

	if (index == VU_REGION_CONFIG)
		r->size = CONFIG_SIZE;
	if (index >= FUNCTION_BARS)
		return;
	r->size = f->config.bar[index].size;
	r->fd = f->bar_fd[index];
	r->mmap_size = r->size;
}

static void be_reset(void *arg)
{
	struct function *f = arg;

	log_debug("%s: device reset", f->name);
	reset(f, FUNCTION_RESET_DEVICE);
}

static void be_attach(void *arg)
{
	struct function *f = arg;

	atomic_store(&f->attached, true);
	if (f->ops.attach)
		f->ops.attach(f->arg);
}

static const struct vu_backend backend = {
	.attach = be_attach,
	.region = be_region,
	.read = be_read,
	.write = be_write,
	.irqs = be_irqs,
	.set_irq = function_set_irq,
	.trigger = be_trigger,
	.map = be_map,
	.unmap = be_unmap,
	.unmap_all = be_unmap_all,
	.reset = be_reset,
};

/* ---- The client ---- */

static void client_lost(struct function *f)
{
	bool was = atomic_exchange(&f->attached, false);

	gate_dma(f);
	function_drop_irqs(f);
	if (was) {
		reset(f, FUNCTION_RESET_LOST);
		if (f->ops.detach)
			f->ops.detach(f->arg);
	}
	dma_map_clear(f->dma);
}

static void serve_client(struct function *f, int fd)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);
	int ret;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	log_debug("%s: client connected, process %d", f->name, who.pid);
	pthread_mutex_lock(&f->client_lock);
	f->client_fd = fd;
	if (atomic_load(&f->stop))
		shutdown(fd, SHUT_RDWR);
	pthread_mutex_unlock(&f->client_lock);

	ret = vu_serve(fd, f->name, &backend, f, f->channel);

	pthread_mutex_lock(&f->client_lock);
	f->client_fd = -1;
	pthread_mutex_unlock(&f->client_lock);
	client_lost(f);
	close(fd);
	log_debug("%s: client gone (%s)", f->name,
		  ret ? strerror(-ret) : "closed");
}

static void *function_thread(void *arg)
{
	struct function *f = arg;
	struct pollfd p[2] = {
		{ .fd = f->listen_fd, .events = POLLIN },
		{ .fd = f->stop_fd, .events = POLLIN },
	};

	while (!atomic_load(&f->stop)) {
		int fd;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (atomic_load(&f->stop))
			break;
		fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			serve_client(f, fd);
		else if (errno == EMFILE || errno == ENFILE)
			usleep(100000);
	}
	return NULL;
}

/* ---- Creation ---- */

static bool valid_desc(const struct function_desc *d)
{
	unsigned int i;

	for (i = 0; i < FUNCTION_BARS; i++) {
		uint64_t size = d->bar[i].size;
		bool wide = d->bar[i].flags & FUNCTION_BAR_64;

		if (!size)
			continue;
		if (size < 4096 || (size & (size - 1)))
			return false;
		if (wide ? i + 1 >= FUNCTION_BARS || d->bar[i + 1].size :
		    size > 0x80000000u)
			return false;
	}
	if (!d->msix_vectors)
		return true;
	return d->msix_vectors <= FUNCTION_MSIX_MAX &&
	       d->msix_bar < FUNCTION_BARS && !(d->msix_table & 7) &&
	       !(d->msix_pba & 7) &&
	       d->msix_table + d->msix_vectors * 16 <=
			d->bar[d->msix_bar].size &&
	       d->msix_pba + 8 <= d->bar[d->msix_bar].size;
}

/* Sealed, so that a client that maps it cannot take it away from under us. */
static int create_bar(struct function *f, unsigned int i)
{
	uint64_t size = f->desc.bar[i].size;
	int fd = memfd_create(f->name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p;

	if (fd < 0)
		return -errno;
	f->bar_fd[i] = fd;
	if (ftruncate(fd, (off_t)size) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, size, MADV_DONTDUMP);
	f->bar_mem[i] = p;
	return f->ops.memory ? f->ops.memory(f->arg, i, p, fd) : 0;
}

static int create_bars(struct function *f)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < FUNCTION_BARS && !ret; i++)
		if (f->desc.bar[i].size &&
		    (f->desc.bar[i].flags & FUNCTION_BAR_MEMORY))
			ret = create_bar(f, i);
	if (ret)
		log_error("%s: memory of BAR %u, 0x%llx bytes: %s", f->name,
			  i - 1,
			  (unsigned long long)f->desc.bar[i - 1].size,
			  strerror(-ret));
	return ret;
}

static int create_socket(struct function *f)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(f->path) >= sizeof(a.sun_path)) {
		log_error("%s: socket path %s is longer than %zu bytes; use a shorter --run-dir",
			  f->name, f->path, sizeof(a.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(a.sun_path, f->path);
	f->stop_fd = eventfd(0, EFD_CLOEXEC);
	f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
			      SOCK_NONBLOCK, 0);
	if (f->stop_fd < 0 || f->listen_fd < 0)
		return -errno;
	unlink(f->path);
	if (bind(f->listen_fd, (struct sockaddr *)&a, sizeof(a)) ||
	    listen(f->listen_fd, 1)) {
		int ret = -errno;

		log_error("%s: socket %s: %s", f->name, f->path,
			  strerror(-ret));
		return ret;
	}
	return 0;
}

static int start_thread(struct function *f)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	ret = pthread_create(&f->thread, &attr, function_thread, f);
	pthread_attr_destroy(&attr);
	if (ret)
		log_error("%s: no thread: %s", f->name, strerror(ret));
	else
		pthread_setname_np(f->thread, "function");
	return -ret;
}

static void function_free(struct function *f)
{
	unsigned int i;

	if (f->listen_fd >= 0) {
		close(f->listen_fd);
		unlink(f->path);
	}
	if (f->stop_fd >= 0)
		close(f->stop_fd);
	dma_map_destroy(f->dma);
	vu_channel_destroy(f->channel);
	for (i = 0; i < FUNCTION_BARS; i++) {
		if (f->bar_mem[i])
			munmap(f->bar_mem[i], f->desc.bar[i].size);
		if (f->bar_fd[i] >= 0)
			close(f->bar_fd[i]);
		if (f->aside_fd[i] >= 0)
			close(f->aside_fd[i]);
	}
	pthread_mutex_destroy(&f->irq_lock);
	pthread_mutex_destroy(&f->client_lock);
	pthread_mutex_destroy(&f->gate_lock);
	free(f->name);
	free(f->path);
	free(f);
}

static struct function *function_alloc(const struct function_desc *desc)
{
	struct function *f = calloc(1, sizeof(*f));
	unsigned int i;

	if (!f)
		return NULL;
	f->desc = *desc;
	f->name = strdup(desc->name);
	f->path = strdup(desc->socket);
	f->desc.name = f->name;
	f->desc.socket = f->path;
	f->listen_fd = f->stop_fd = f->client_fd = -1;
	atomic_init(&f->signalling, -1);
	for (i = 0; i < FUNCTION_BARS; i++)
		f->bar_fd[i] = f->aside_fd[i] = -1;
	for (i = 0; i < FUNCTION_MSIX_MAX; i++)
		f->irq_fd[i] = -1;
	pthread_mutex_init(&f->irq_lock, NULL);
	pthread_mutex_init(&f->client_lock, NULL);
	pthread_mutex_init(&f->gate_lock, NULL);
	f->dma = dma_map_create(VU_MAX_DMA_MAPS, false, on_memory_fault, f);
	pci_config_init(&f->config, desc);
	f->channel = vu_channel_create();
	if (f->name && f->path && f->dma && f->channel)
		return f;
	function_free(f);
	return NULL;
}

int function_create(const struct function_desc *desc,
		    const struct function_ops *ops, void *arg,
		    struct function **out)
{
	struct function *f;
	int ret;

	if (!valid_desc(desc)) {
		log_error("%s: function description is not valid", desc->name);
		return -EINVAL;
	}
	f = function_alloc(desc);
	if (!f)
		return -ENOMEM;
	f->ops = *ops;
	f->arg = arg;
	*out = f;			/* the thread's callbacks may want it */
	ret = create_bars(f);
	if (!ret)
		ret = create_socket(f);
	if (!ret)
		ret = start_thread(f);
	if (ret) {
		function_free(f);
		*out = NULL;
	}
	return ret;
}

/* It may wait for one who waits for the client's eventfd. */
static void join_thread(struct function *f)
{
	struct timespec t;

	do {
		function_unstick(f);
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_sec++;
	} while (pthread_timedjoin_np(f->thread, NULL, &t));
}

void function_destroy(struct function *f)
{
	uint64_t one = 1;

	if (!f)
		return;
	pthread_mutex_lock(&f->client_lock);
	atomic_store(&f->stop, true);
	if (f->client_fd >= 0)
		shutdown(f->client_fd, SHUT_RDWR);
	pthread_mutex_unlock(&f->client_lock);
	if (write(f->stop_fd, &one, sizeof(one)) < 0)
		log_error("%s: cannot wake its thread", f->name);
	join_thread(f);
	function_free(f);
}

/* ---- Questions and death ---- */

bool function_bar_addr(struct function *f, unsigned int bar, uint64_t *addr,
		       uint64_t *size)
{
	uint64_t a = atomic_load(&f->bar_addr[bar]);

	if (!a || atomic_load(&f->dead))
		return false;
	*addr = a;
	*size = atomic_load(&f->bar_size[bar]);
	return true;
}

void *function_bar_memory(struct function *f, unsigned int bar)
{
	return f->bar_mem[bar];
}

/* Next piece of @fd that is in use, from *@from on. */
static bool next_data(int fd, off_t end, off_t *from, off_t *to)
{
	*from = *from < end ? lseek(fd, *from, SEEK_DATA) : -1;
	if (*from < 0)
		return false;
	*to = lseek(fd, *from, SEEK_HOLE);
	if (*to < 0)
		*to = end;
	return true;
}

/* The client has it mapped: what was in use reads as ones from now on. */
static void blank_bar(struct function *f, unsigned int i)
{
	off_t end = (off_t)f->desc.bar[i].size, from, to;

	for (from = 0; next_data(f->bar_fd[i], end, &from, &to); from = to)
		memset((char *)f->bar_mem[i] + from, 0xff, (size_t)(to - from));
}

/* Copies what is in use of @from, through @mem, the mapping of one of the two. */
static bool copy_data(int from, int to, char *mem, off_t end, bool load)
{
	off_t at, next;
	ssize_t n;

	for (at = 0; next_data(from, end, &at, &next);) {
		while (at < next) {
			size_t len = (size_t)(next - at);

			n = load ? pread(from, mem + at, len, at) :
				   pwrite(to, mem + at, len, at);
			if (n <= 0)
				return false;
			at += n;
		}
	}
	return true;
}

static void set_aside(struct function *f, unsigned int i)
{
	off_t end = (off_t)f->desc.bar[i].size;
	int fd = memfd_create(f->name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, end) ||
	    !copy_data(f->bar_fd[i], fd, f->bar_mem[i], end, false)) {
		log_error("%s: no memory to put BAR %u aside; processors still reach it",
			  f->name, i);
		if (fd >= 0)
			close(fd);
		return;
	}
	f->aside_fd[i] = fd;
	blank_bar(f, i);
}

static void put_back(struct function *f, unsigned int i)
{
	off_t end = (off_t)f->desc.bar[i].size;

	if (fallocate(f->bar_fd[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      0, end) ||
	    !copy_data(f->aside_fd[i], f->bar_fd[i], f->bar_mem[i], end, true))
		log_error("%s: memory of BAR %u is not what it was: %s",
			  f->name, i, strerror(errno));
	close(f->aside_fd[i]);
	f->aside_fd[i] = -1;
}

void function_link(struct function *f, bool up)
{
	for (unsigned int i = 0; i < FUNCTION_BARS; i++) {
		if (!f->bar_mem[i] || atomic_load(&f->dead))
			continue;
		if (!up && f->aside_fd[i] < 0)
			set_aside(f, i);
		else if (up && f->aside_fd[i] >= 0)
			put_back(f, i);
	}
}

void function_set_dead(struct function *f)
{
	unsigned int i;

	if (atomic_exchange(&f->dead, true))
		return;
	pthread_mutex_lock(&f->gate_lock);
	dma_map_enable(f->dma, false);
	pthread_mutex_unlock(&f->gate_lock);
	if (f->ops.dead)
		f->ops.dead(f->arg);
	for (i = 0; i < FUNCTION_BARS; i++)
		if (f->bar_mem[i])
			blank_bar(f, i);
}

bool function_attached(struct function *f)
{
	return atomic_load(&f->attached);
}

const char *function_name(struct function *f)
{
	return f->name;
}
