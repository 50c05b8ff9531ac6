// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Regions that are files (dma-bufs, memory files): the owner's service thread
 * passes the descriptor once, and each process uses it itself. Called by
 * remote.c and window.c, and by service.c for what comes over connections.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

/* ---- one file ---------------------------------------------------------- */

static int sync_ioctl(int fd, uint64_t flags)
{
	struct dma_buf_sync sync = { .flags = flags };
	int ret;

	do {
		ret = ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
	} while (ret && (errno == EINTR || errno == EAGAIN));
	return ret;
}

void fxi_loop_file_sync(const struct loop_file *f, bool start, bool read)
{
	if (f->sync)
		sync_ioctl(f->fd, (read ? DMA_BUF_SYNC_READ :
					  DMA_BUF_SYNC_RW) |
				  (start ? DMA_BUF_SYNC_START :
					   DMA_BUF_SYNC_END));
}

static bool is_dmabuf(int fd)
{
	return !sync_ioctl(fd, DMA_BUF_SYNC_READ | DMA_BUF_SYNC_START) &&
	       !sync_ioctl(fd, DMA_BUF_SYNC_READ | DMA_BUF_SYNC_END);
}

/*
 * A file that may shrink is not mapped: an access beyond its end would be a
 * signal, while read and write just fail.
 */
static bool mappable(const struct loop_file *f)
{
	int seals = fcntl(f->fd, F_GET_SEALS);

	return f->sync || (seals >= 0 && seals & F_SEAL_SHRINK);
}

/*
 * The file position is shared with the application: it is moved only for a
 * dma-buf whose size an old kernel does not report otherwise.
 */
static off_t size_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -1;
	return st.st_size || S_ISREG(st.st_mode) ? st.st_size :
						   lseek(fd, 0, SEEK_END);
}

int fxi_loop_file_map(struct loop_file *f, bool writable)
{
	uint64_t skew = f->offset % LOOP_PAGE;
	off_t size = size_of(f->fd);
	void *p;

	if (size < 0 || f->offset > (uint64_t)size ||
	    f->length > (uint64_t)size - f->offset)
		return -EINVAL;
	f->sync = is_dmabuf(f->fd);
	if (!mappable(f))
		return 0;
	f->mapped = (size_t)(f->length + skew);
	p = mmap(NULL, f->mapped, PROT_READ | (writable ? PROT_WRITE : 0),
		 MAP_SHARED, f->fd, (off_t)(f->offset - skew));
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, f->mapped, MADV_DONTFORK);
	f->mapping = p;
	f->base = (char *)p + skew;
	return 0;
}

void fxi_loop_file_end(struct loop_file *f, bool unmap)
{
	if (f->mapping && unmap)
		munmap(f->mapping, f->mapped);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

static uint8_t copy_file(const struct loop_file *f, uint64_t offset,
			 char *buffer, uint64_t length, bool read)
{
	uint64_t done = 0;
	ssize_t n;

	while (done < length) {
		n = read ? pread(f->fd, buffer + done, length - done,
				 (off_t)(f->offset + offset + done)) :
			   pwrite(f->fd, buffer + done, length - done,
				  (off_t)(f->offset + offset + done));
		if (n > 0)
			done += (uint64_t)n;
		else if (!n || errno != EINTR)
			return FABREX_WC_RFAULT;
	}
	return FABREX_WC_OK;
}

uint8_t fxi_loop_file_copy(const struct loop_file *f, uint64_t offset,
			   void *buffer, uint64_t length, bool read)
{
	if (offset > f->length || length > f->length - offset)
		return FABREX_WC_RFAULT;
	if (!f->base)
		return copy_file(f, offset, buffer, length, read);
	fxi_loop_file_sync(f, true, read);
	if (read)
		memcpy(buffer, f->base + offset, length);
	else
		memcpy(f->base + offset, buffer, length);
	fxi_loop_file_sync(f, false, read);
	return FABREX_WC_OK;
}

/* ---- those of peers ---------------------------------------------------- */

struct loop_file *fxi_loop_file_find(struct transport *t, uint32_t number,
				     uint64_t key)
{
	struct loop_file *f = t->state->files;

	while (f && (f->number != number || f->key != key))
		f = f->next;
	return f;
}

static void drop(struct transport *t, struct loop_file **link)
{
	struct loop_file *f = *link;

	*link = f->next;
	f->next = t->state->dropped;
	t->state->dropped = f;
	fxi_loop_grace_begin(t, &f->grace);
	pthread_cond_broadcast(&t->state->changed);
}

void fxi_loop_files_drop(struct transport *t, uint32_t number, uint64_t key)
{
	struct loop_file **link = &t->state->files;

	while (*link) {
		if ((*link)->number == number && (!key || (*link)->key == key))
			drop(t, link);
		else
			link = &(*link)->next;
	}
	fxi_loop_files_reap(t);
}

bool fxi_loop_files_reap(struct transport *t)
{
	struct loop_file **link = &t->state->dropped, *f;

	while ((f = *link)) {
		if (!fxi_loop_grace_over(t, &f->grace)) {
			link = &f->next;
			continue;
		}
		*link = f->next;
		fxi_loop_file_end(f, true);
	}
	return t->state->dropped;
}

/* Lock held. The owner calls it back like a window. */
static struct loop_file *ask(struct transport *t, uint32_t number,
			     uint64_t key)
{
	struct loop_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->number = number;
	f->key = key;
	f->fd = -1;
	f->asked = true;
	if (t->state->slots[number].state != SLOT_KNOWN ||
	    !fxi_loop_window_mark(t, number, key)) {
		free(f);
		return NULL;
	}
	fxi_loop_tell(t, number, LOOP_FILE, key);
	f->next = t->state->files;
	t->state->files = f;
	return f;
}

/* Lock held, and dropped meanwhile: the list may change. */
static int await(struct transport *t, uint32_t number, uint64_t key,
		 struct loop_file **out)
{
	uint64_t end = fxi_now_ns() +
		       t->state->settings.quiesce_ms * 500000ull;
	struct timespec ts = {
		.tv_sec = (time_t)(end / 1000000000u),
		.tv_nsec = (long)(end % 1000000000u),
	};
	int ret = 0, old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	while ((*out = fxi_loop_file_find(t, number, key)) && (*out)->asked && !ret &&
	       t->peers[number].up)
		ret = pthread_cond_timedwait(&t->state->changed, &t->lock,
					     &ts);
	pthread_setcancelstate(old, NULL);
	if (!*out || (*out)->asked)
		return ret ? -ret : -EHOSTUNREACH;
	return -(*out)->error;
}

int fxi_loop_file_get(struct transport *t, uint32_t number, uint64_t key,
		      struct loop_file **out)
{
	int ret = 0;

	pthread_mutex_lock(&t->lock);
	*out = fxi_loop_file_find(t, number, key);
	if (!*out)
		*out = ask(t, number, key);
	if (!*out)
		ret = -EHOSTUNREACH;
	else if ((*out)->asked)
		ret = await(t, number, key, out);
	else
		ret = -(*out)->error;
	pthread_mutex_unlock(&t->lock);
	return ret;
}

void fxi_loop_file_answer(struct transport *t, uint32_t number,
			  const struct loop_message *m, int *passed)
{
	struct loop_file *f = fxi_loop_file_find(t, number, m->value[0]);

	if (!f || !f->asked)
		return;
	f->asked = false;
	f->error = m->value[1] < 4096 ? (int)m->value[1] : EPROTO;
	if (!f->error && *passed < 0)
		f->error = EMFILE;
	if (!f->error) {
		f->fd = *passed;
		*passed = -1;
		f->offset = m->value[2];
		f->length = m->value[3];
		f->error = -fxi_loop_file_map(f, m->value[4]);
	}
	pthread_cond_broadcast(&t->state->changed);
}

/* ---- ours -------------------------------------------------------------- */

int fxi_loop_file_is(struct transport *t, uint32_t number, uint64_t key,
		     struct loop_message *m)
{
	uint32_t index = key & (SEGMENT_MRS - 1);
	const struct loop_region *r = &t->state->regions[index];
	const struct segment_mr *mr = &t->segment->mrs[index];
	bool ok = key && mr->key == key && r->file &&
		  mr->peers[number / 64] >> number % 64 & 1;

	m->value[1] = EACCES;
	if (!ok)
		return -1;
	m->value[1] = 0;
	m->value[2] = r->file->offset;
	m->value[3] = r->file->length;
	m->value[4] = !!(mr->access & ~FABREX_MR_REMOTE_READ);
	return r->file->fd;
}

static void free_list(struct loop_file *f, bool unmap)
{
	struct loop_file *next;

	for (; f; f = next) {
		next = f->next;
		free(f->grace.actives);
		fxi_loop_file_end(f, unmap);
	}
}

void fxi_loop_files_free(struct transport *t, bool unmap)
{
	uint32_t i;

	free_list(t->state->files, unmap);
	free_list(t->state->dropped, unmap);
	for (i = 0; i < SEGMENT_PEERS; i++)
		fxi_loop_outbox_clear(t, i);
	for (i = 0; i < SEGMENT_MRS; i++)
		if (t->state->regions[i].file)
			fxi_loop_file_end(t->state->regions[i].file, unmap);
}
