/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dma-bufs of exporters, which must not be mapped while the machine suspends.
 * For mr.c, port.c and module.c.
 */
#ifndef _FABREX_DMABUF_H
#define _FABREX_DMABUF_H

#include <linux/dma-direction.h>

#include "memory.h"
#include "object.h"

struct dma_buf;
struct dma_buf_attachment;

/*
 * FABREX_DMABUF_MAKING: the ioctl that registers it has not returned
 * FABREX_DMABUF_READY:  it can be released by anybody
 * FABREX_DMABUF_GOING:  it is being released
 */
enum fabrex_dmabuf_state {
	FABREX_DMABUF_MAKING,
	FABREX_DMABUF_READY,
	FABREX_DMABUF_GOING,
};

/**
 * struct fabrex_dmabuf - memory of an exporter
 * @list:     in port->dmabufs
 * @res:      region that it is for
 * @watch:    watcher of that region
 * @port:     port of that region
 * @state:    under port->dmabufs_lock
 * @released: completed when nothing of it is attached any more
 * @dmabuf:   with a reference; NULL once revoked
 * @dev:      that it is mapped for, with a reference
 * @attach:   attachment, or NULL. Set before and cleared after anybody but the
 *            exporter can find it
 * @sgt:      mapping, or NULL; under dma_resv
 * @dir:      direction of the mapping
 * @pin:      the exporter is asked to keep it in place
 * @pinned:   it does; under dma_resv
 * @offset:   of the region in the dma-buf, bytes
 * @length:   of the region
 * @supply_lock: see the top of context.h
 * @lock:     likewise; protects what follows
 * @known:    the device knows the region. Cleared by whoever has the device
 *            forget it, before that happens. Also read under supply_lock with
 *            registration_lock
 * @dying:    @remap is not queued any more
 * @remap:    supplies the memory again after a move
 * @tries:    how often @remap has failed; owned by @remap
 */
struct fabrex_dmabuf {
	struct list_head list;
	struct fabrex_res *res;
	struct fabrex_watcher *watch;
	struct fabrex_port *port;
	enum fabrex_dmabuf_state state;
	struct completion released;
	struct dma_buf *dmabuf;
	struct device *dev;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	enum dma_data_direction dir;
	bool pin;
	bool pinned;
	u64 offset;
	u64 length;
	struct mutex supply_lock;
	struct mutex lock;
	bool known;
	bool dying;
	struct delayed_work remap;
	unsigned int tries;
};

/* dmabuf.c */
#if IS_ENABLED(CONFIG_DMA_SHARED_BUFFER)
int fabrex_dmabuf_open(struct fabrex_res *res, struct fabrex_watcher *watch,
		       const struct fabrex_mr_register *cmd, bool writable,
		       struct fabrex_dmabuf **result);
int fabrex_dmabuf_enter(struct fabrex_dmabuf *buf);
void fabrex_dmabuf_leave(struct fabrex_dmabuf *buf, bool ready);
int fabrex_dmabuf_destroy(struct fabrex_dmabuf *buf);
void fabrex_dmabuf_known(struct fabrex_dmabuf *buf, bool known);
void fabrex_dmabuf_memory(const struct fabrex_dmabuf *buf,
			  struct fabrex_mr_memory *memory);
void fabrex_dmabuf_free(struct fabrex_dmabuf *buf);
void fabrex_dmabufs_unregister(struct fabrex_port *port);
int fabrex_dmabufs_init(void);
void fabrex_dmabufs_exit(void);
#else
static inline int fabrex_dmabuf_open(struct fabrex_res *res,
				     struct fabrex_watcher *watch,
				     const struct fabrex_mr_register *cmd,
				     bool writable,
				     struct fabrex_dmabuf **result)
{
	return -EOPNOTSUPP;
}

static inline int fabrex_dmabuf_enter(struct fabrex_dmabuf *buf)
{
	return -EOPNOTSUPP;
}

static inline void fabrex_dmabuf_leave(struct fabrex_dmabuf *buf, bool ready)
{
}

static inline int fabrex_dmabuf_destroy(struct fabrex_dmabuf *buf)
{
	return -EOPNOTSUPP;
}

static inline void fabrex_dmabuf_known(struct fabrex_dmabuf *buf, bool known)
{
}

static inline void fabrex_dmabuf_memory(const struct fabrex_dmabuf *buf,
					struct fabrex_mr_memory *memory)
{
}

static inline void fabrex_dmabuf_free(struct fabrex_dmabuf *buf)
{
}

static inline void fabrex_dmabufs_unregister(struct fabrex_port *port)
{
}

static inline int fabrex_dmabufs_init(void)
{
	return 0;
}

static inline void fabrex_dmabufs_exit(void)
{
}
#endif

/* cause.c, for dmabuf.c */
void fabrex_dmabuf_explain(const struct fabrex_dmabuf *buf, const char *what,
			   int error);

/* sleep.c, for dmabuf.c */
bool fabrex_stay_awake(void);
void fabrex_may_sleep(void);
int fabrex_wait_awake(unsigned long end);
int fabrex_sleep_init(void);
void fabrex_sleep_exit(void);

#endif
