/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of fabrex.ko share: ports, open files and the objects that
 * they own. Not for backends; their contract is backend.h.
 *
 * Locks, in the order in which they are taken:
 *
 *   mmap_lock                 of a process; never taken below any of ours
 *   dma_resv                  of a dma-buf. Exporters hold it when they call
 *                             us, so it is never waited for below any of ours
 *   fabrex_sleep_lock         rwsem of sleep.c; a dma-buf is being mapped
 *   port->registration_lock   rwsem; held for reading while an operation of
 *                             the backend runs and while objects come and go
 *   dmabuf->supply_lock       mutex; pages are being supplied for it
 *   dmabuf->lock              mutex; what the device and the work item know of
 *                             it. Taken by exporters' calls without
 *                             registration_lock, also during memory reclaim:
 *                             nothing below it may allocate
 *   port->changes.lock        mutex; changes of the fabric that are under way
 *   port->files_lock          mutex; port->files
 *   port->slots_lock          mutex; port->slots
 *   port->users_lock          mutex; port->users
 *   port->cgroup.lock         mutex; what is charged to cgroups
 *   file->map_lock            rwsem; map->live. Also taken below mmap_lock, by
 *                             page faults, so nothing below it may fault
 *   i_mmap_rwsem              by unmap_mapping_range(), with map_lock released
 *   model->lock               mutex; the model
 *   xa_lock of file->objects, file->maps, port->queues, port->windows,
 *   port->dmabufs_lock, file->events.lock, watch->lock
 *                             innermost spinlocks
 *
 * No user memory is touched below registration_lock: a process could make a
 * fault last for ever, and with it the removal of the device.
 */
#ifndef _FABREX_CORE_H
#define _FABREX_CORE_H

#include <linux/cdev.h>
#include <linux/cgroup_rdma.h>
#include <linux/cleanup.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/dma-direction.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/idr.h>
#include <linux/kref.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/netlink.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/semaphore.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#if IS_ENABLED(CONFIG_CGROUP_DMEM)
#include <linux/cgroup_dmem.h>
#endif

#include "backend.h"
#include "layout.h"
#include "ops.h"

#define FABREX_MAX_PORTS	256
#define FABREX_EVENT_SLOTS	64	/* events kept for a file; power of two */

struct cred;
struct fabrex_cgroup_charge;
struct fabrex_file;
struct genl_info;
struct pid_namespace;
struct sk_buff;

/* In the order in which they are destroyed when a file is closed. */
enum fabrex_res_type {
	FABREX_RES_QUEUE,
	FABREX_RES_WINDOW,
	FABREX_RES_MR,
	FABREX_RES_TYPES
};

/**
 * struct fabrex_user - what one user has of one port: an account
 * @list:   in port->users
 * @ref:    open files and objects; the last put is under port->users_lock. 0:
 *          kept until @paid
 * @uid:    who, see fabrex_user_get()
 * @container: and where, with a reference
 * @used:   by type; windows count in slots
 * @bytes:  of regions
 * @locked: pages of them, by callers whom RLIMIT_MEMLOCK limits
 * @trying: somebody has the device try a key
 * @turn:   those who wait for that to end
 * @paid:   ktime until which wrong keys are being paid for; of who is @trying
 */
struct fabrex_user {
	struct list_head list;
	refcount_t ref;
	kuid_t uid;
	struct pid_namespace *container;
	atomic64_t used[FABREX_RES_TYPES];
	atomic64_t bytes;
	atomic64_t locked;
	atomic_t trying;
	wait_queue_head_t turn;
	s64 paid;
};

/**
 * struct fabrex_cgroup - a port, as controllers of cgroups see it
 * @lock:       protects @registered and @charges
 * @registered: controllers know it
 * @charges:    struct fabrex_cgroup_charge
 * @rdma:       device of the rdma controller
 * @dmem:       region of the dmem controller
 */
struct fabrex_cgroup {
	struct mutex lock;
	bool registered;
	struct list_head charges;
#if IS_ENABLED(CONFIG_CGROUP_RDMA)
	struct rdmacg_device rdma;
#endif
#if IS_ENABLED(CONFIG_CGROUP_DMEM)
	struct dmem_cgroup_region *dmem;
#endif
};

/**
 * struct fabrex_peer - what was said of a peer last
 * @seen:       anything at all
 * @up:         it is enabled
 * @generation: of its port
 */
struct fabrex_peer {
	bool seen;
	bool up;
	u32 generation;
};

/**
 * struct fabrex_model - mirror of the fabric as a port sees it
 * @lock:       protects everything below, and the nodes
 * @objects:    struct fabrex_node by id
 * @names:      the same by name
 * @count:      nodes
 * @generation: changes whenever a node does; never 0
 * @scan:       number of the full rescan; nodes of an older one are removed
 * @seen:       nodes that it contains
 * @scanning:   between fabrex_model_begin() and fabrex_model_end()
 * @complete:   a full scan has ended, from now on changes are events
 * @peers:      by number
 */
struct fabrex_model {
	struct mutex lock;
	struct xarray objects;
	DECLARE_HASHTABLE(names, 9);
	u32 count;
	u32 generation;
	u32 scan;
	u32 seen;
	bool scanning;
	bool complete;
	struct fabrex_peer peers[FABREX_MAX_PEERS];
};

#define FABREX_QUERIES	8

/**
 * struct fabrex_change_info - a change of the fabric
 * @ticket:     names it
 * @op:         FABREX_CHANGE_OP_*
 * @id:         endpoint or port
 * @target:     host port that an endpoint is bound to
 * @action:     of a port
 * @timeout_ms: that the owner has; 0 for the default
 * @force:      do not ask the owner
 * @dry_run:    only say whether it could be done
 * @pending:    it is under way; what follows says nothing yet
 * @error:      positive errno, or 0
 * @slot:       that an endpoint was bound to
 * @name:       of @id
 * @message:    cause and remedy of @error
 * @holder:     if that is EBUSY
 */
struct fabrex_change_info {
	u64 ticket;
	u32 op;
	u32 id;
	u32 target;
	u32 action;
	u32 timeout_ms;
	bool force;
	bool dry_run;
	bool pending;
	u32 error;
	u32 slot;
	char name[FABREX_NAME_LEN];
	char message[NETLINK_MAX_FMTMSG_LEN];
	struct fabrex_holder holder;
};

/**
 * struct fabrex_changes - changes of the fabric through a port
 * @lock:     protects what follows up to @ndone
 * @wq:       makes them; NULL before register and after unregister
 * @pending:  under way
 * @done:     over, oldest first
 * @npending: number
 * @ndone:    number
 * @queries:  places for struct fabrex_query
 */
struct fabrex_changes {
	struct mutex lock;
	struct workqueue_struct *wq;
	struct list_head pending;
	struct list_head done;
	u32 npending;
	u32 ndone;
	struct semaphore queries;
};

/**
 * struct fabrex_query - something short that the device is asked
 * @work:     does
 * @ref:      who waits, and @work
 * @done:     completed by @work
 * @port:     whom to ask
 * @run:      how
 * @shared:   everybody may ask: a few at a time only
 * @ret:      of @run
 * @id:       element
 * @counters: of it
 * @token:    of a release request
 * @busy:     refuse it
 * @holder:   why
 */
struct fabrex_query {
	struct work_struct work;
	struct kref ref;
	struct completion done;
	struct fabrex_port *port;
	int (*run)(struct fabrex_query *query);
	bool shared;
	int ret;
	u32 id;
	struct fabrex_counters counters;
	u64 token;
	bool busy;
	struct fabrex_holder holder;
};

/**
 * struct fabrex_port - a local fabric port, /dev/fabrex<index>
 * @dev:        device of class fabrex; its references keep the port
 * @cdev:       character device
 * @index:      number
 * @info:       what the backend said; constant
 * @can:        FABREX_CAN_*, by the operations of the backend; constant
 * @caps:       FABREX_CAP_*; constant
 * @priv:       of the backend
 * @max_segment: of the device that does the DMA
 * @registration_lock: protects @ops and @alive, and the set of objects of all
 *              files against fail, revive and unregister, which write
 * @ops:        of the backend; NULL once unregistered
 * @alive:      false between fail and revive
 * @listed:     netlink can find it; events are sent
 * @retired:    @index may be somebody else's by now
 * @generation: of the port
 * @link_up:    fabric side link
 * @files_lock: protects @files
 * @files:      open ones
 * @queues:     by backend's number; read under RCU
 * @windows:    likewise
 * @slots_lock: protects @slots
 * @slots:      window slots in use
 * @users_lock: protects @users
 * @users:      struct fabrex_user
 * @quota:      of each user, by type; 0 is no limit
 * @quota_bytes: likewise
 * @cgroup:     what the controllers of cgroups know of it
 * @count:      objects that exist, by type
 * @charged:    bytes of all users
 * @pinned:     bytes
 * @dmabufs_lock: protects @dmabufs and the state of those in it
 * @dmabufs:    struct fabrex_dmabuf, from before it is attached until it is
 *              detached
 * @dmabufs_wait: one has left, or was made
 * @dmabuf_bytes: registered of them
 * @open_files: number
 * @pds:        protection domains, one for each file
 * @zombies:    objects of closed files that the device did not let go;
 *              protected by @zombies_lock
 * @zombies_lock: innermost
 * @wc:         the window aperture was reserved as write-combining
 * @event_seq:  of netlink events
 * @serials:    of queues and windows, the last one given
 * @changes:    of the fabric through this port
 * @model:      mirror of the fabric
 */
struct fabrex_port {
	struct device dev;
	struct cdev cdev;
	int index;
	struct fabrex_port_info info;
	u32 can;
	u64 caps;
	void *priv;
	unsigned int max_segment;

	struct rw_semaphore registration_lock;
	const struct fabrex_port_ops *ops;
	bool alive;
	bool listed;
	bool retired;
	u32 generation;
	bool link_up;

	struct mutex files_lock;
	struct list_head files;
	struct xarray queues;
	struct xarray windows;

	struct mutex slots_lock;
	unsigned long *slots;

	struct mutex users_lock;
	struct list_head users;
	u32 quota[FABREX_RES_TYPES];
	u64 quota_bytes;
	struct fabrex_cgroup cgroup;

	atomic_t count[FABREX_RES_TYPES];
	atomic64_t charged;
	atomic64_t pinned;
	spinlock_t dmabufs_lock;
	struct list_head dmabufs;
	wait_queue_head_t dmabufs_wait;
	atomic64_t dmabuf_bytes;
	atomic_t open_files;
	struct ida pds;

	struct list_head zombies;
	spinlock_t zombies_lock;

	bool wc;
	atomic64_t event_seq;
	atomic64_t serials;
	struct fabrex_changes changes;
	struct fabrex_model model;
};

/**
 * struct fabrex_events - what a file has to read
 * @lock:  protects the ring, @lost, @gone and @gone_read
 * @head:  free-running, taken
 * @tail:  free-running, stored
 * @lost:  did not fit
 * @gone:  the port is; the last event
 * @gone_read: and that was read
 * @seq:   all there were
 * @wait:  readers and pollers
 * @read:  one reader at a time
 * @ring:  events
 */
struct fabrex_events {
	spinlock_t lock;
	u32 head;
	u32 tail;
	u32 lost;
	bool gone;
	bool gone_read;
	u64 seq;
	wait_queue_head_t wait;
	struct mutex read;
	struct fabrex_event ring[FABREX_EVENT_SLOTS];
};

/**
 * struct fabrex_file - an open file
 * @rcu:      freed after those that found it through port->queues
 * @ref:      open, and one for each zombie
 * @list:     in port->files
 * @port:     with a reference
 * @user:     who opened it, with a reference
 * @cgroup:   what that is charged to a cgroup
 * @pd:       protection domain
 * @objects:  struct fabrex_res by id; entries of others than the caller's are
 *            touched only under registration_lock
 * @next_id:  cyclic allocation
 * @inode:    of its own, so that its mappings can be zapped
 * @map_lock: protects map->live against faults
 * @maps:     struct fabrex_map by first page offset
 * @next_page: page offset of the next cookie; under xa_lock of @maps
 * @watch:    watch page, set once, or NULL
 * @events:   to be read
 */
struct fabrex_file {
	struct rcu_head rcu;
	refcount_t ref;
	struct list_head list;
	struct fabrex_port *port;
	struct fabrex_user *user;
	struct fabrex_cgroup_charge *cgroup;
	u32 pd;
	struct xarray objects;
	u32 next_id;
	struct inode *inode;
	struct rw_semaphore map_lock;
	struct xarray maps;
	unsigned long next_page;
	struct fabrex_map *watch;
	struct fabrex_events events;
};

/**
 * struct fabrex_res - object of a file: queue, window or memory region
 * @list:    in port->zombies
 * @port:    port; alive as long as a file or a zombie is
 * @file:    owner
 * @user:    whose quota it is charged to, with a reference
 * @maker:   process that made it and with which it ends, with a reference
 * @type:    FABREX_RES_*
 * @charge:  to the quota
 * @bytes:   likewise
 * @locked:  pages of them, charged to @user for RLIMIT_MEMLOCK
 * @cgroup:  what is charged to its maker's
 * @id:      in file->objects
 * @number:  of the backend
 * @visible: user space may name it; under xa_lock of file->objects. Whoever
 *           clears it owns the object
 * @created: the device knows it
 * @dead:    the device has forgotten it
 * @stopped: the device does not use it any more; all resources are back
 * @lost:    the port went with the object still in use; never freed
 * @users:   1, and one for each that uses it just now
 * @idle:    @users has become 0
 *
 * @created, @dead, @stopped and @lost are protected by registration_lock: written by
 * the owner with the lock held for reading, or by anybody who holds it for
 * writing.
 */
struct fabrex_res {
	struct list_head list;
	struct fabrex_port *port;
	struct fabrex_file *file;
	struct fabrex_user *user;
	struct pid *maker;
	enum fabrex_res_type type;
	u32 charge;
	u64 bytes;
	u64 locked;
	struct fabrex_cgroup_charge *cgroup;
	u32 id;
	u32 number;
	bool visible;
	bool created;
	bool dead;
	bool stopped;
	bool lost;
	refcount_t users;
	struct completion idle;
};

/**
 * struct fabrex_res_ops - what differs between the types
 * @detach:  nobody may find or map it any more
 * @destroy: have the device forget it
 * @settle:  the device has: give back what it used
 * @fail:    the device has forgotten it by itself
 * @free:    free the memory, and what it used that needs other locks; of an
 *           object that is lost only what the device does not use. Not below
 *           registration_lock
 */
struct fabrex_res_ops {
	void (*detach)(struct fabrex_res *res);
	int (*destroy)(struct fabrex_res *res);
	void (*settle)(struct fabrex_res *res);
	void (*fail)(struct fabrex_res *res, u32 qerr);
	void (*free)(struct fabrex_res *res);
};

enum fabrex_map_kind {
	FABREX_MAP_RING,
	FABREX_MAP_DOORBELL,
	FABREX_MAP_WINDOW,
};

/**
 * struct fabrex_map - something that can be mapped, named by a cookie
 * @ref:    owner and mappings
 * @file:   the cookie is valid for
 * @kind:   FABREX_MAP_*
 * @page:   cookie: first page offset
 * @npages: size
 * @may:    VM_READ and/or VM_WRITE
 * @live:   there is something behind it; file->map_lock
 * @pfn:    first page frame of a doorbell or window
 * @dummy:  page behind it when that is gone; set once
 * @ring:   memory of the parts of a queue's rings, or at 0 of the watch page or
 *          of a doorbell that is memory
 * @geo:    where they are in the mapping
 */
struct fabrex_map {
	struct kref ref;
	struct fabrex_file *file;
	enum fabrex_map_kind kind;
	unsigned long page;
	unsigned long npages;
	vm_flags_t may;
	bool live;
	unsigned long pfn;
	struct page *dummy;
	void *ring[FABREX_PARTS];
	struct fabrex_geometry geo;
};

/**
 * struct fabrex_queue - a queue of a file
 * @res:     what all objects have
 * @rcu:     freed after those that found it through port->queues
 * @serial:  tells it from those that had its number before
 * @eventfd: to signal, or NULL
 * @rings:   memory
 * @doorbell: its page
 * @dma:     addresses of the parts, for the device
 * @mapped:  bit mask of parts that have one
 */
struct fabrex_queue {
	struct fabrex_res res;
	struct rcu_head rcu;
	u64 serial;
	struct eventfd_ctx *eventfd;
	struct fabrex_map *rings;
	struct fabrex_map *doorbell;
	dma_addr_t dma[FABREX_PARTS];
	unsigned int mapped;
};

struct fabrex_window {
	struct fabrex_res res;
	struct rcu_head rcu;
	u64 serial;
	struct fabrex_map *map;
	u32 slot;
	u32 nslots;
};

/**
 * struct fabrex_pin - pinned memory of a process
 * @mm:       whose pinned_vm it is charged to; grabbed
 * @port:     whose count of pinned bytes
 * @npages:   charged and pinned
 * @offset:   of the first byte in the first page
 * @length:   bytes
 * @writable: the device may write it
 * @mapped:   for DMA
 * @sgt:      pages
 */
struct fabrex_pin {
	struct mm_struct *mm;
	struct fabrex_port *port;
	unsigned long npages;
	unsigned long offset;
	u64 length;
	bool writable;
	bool mapped;
	struct sg_append_table sgt;
};

/*
 * FABREX_DMABUF_MAKING: the ioctl that registers it is still at work
 * FABREX_DMABUF_READY:  who wants to release it may
 * FABREX_DMABUF_GOING:  somebody does
 */
enum fabrex_dmabuf_state {
	FABREX_DMABUF_MAKING,
	FABREX_DMABUF_READY,
	FABREX_DMABUF_GOING,
};

/**
 * struct fabrex_dmabuf - memory of an exporter
 * @list:     in port->dmabufs
 * @mr:       region that it is for
 * @port:     of it
 * @state:    under port->dmabufs_lock
 * @released: nothing of it is attached any more
 * @dmabuf:   with a reference, or NULL once revoked
 * @attach:   or NULL. Set before and cleared after everybody else, except the
 *            exporter, has a way to find it
 * @sgt:      its mapping, or NULL; under dma_resv
 * @dir:      of the mapping
 * @pin:      the exporter is asked to keep it in place
 * @pinned:   it does; under dma_resv
 * @offset:   of the region in it, bytes
 * @length:   of the region
 * @supply_lock: see the top of this file
 * @lock:     likewise; protects what follows
 * @known:    the device knows the region. Cleared by whoever has it forget it,
 *            before that happens. Also read under supply_lock with
 *            registration_lock
 * @dying:    @remap is not queued any more
 * @remap:    supplies the pages again after a move
 * @tries:    how often it has failed; of @remap
 */
struct fabrex_dmabuf {
	struct list_head list;
	struct fabrex_mr *mr;
	struct fabrex_port *port;
	enum fabrex_dmabuf_state state;
	struct completion released;
	struct dma_buf *dmabuf;
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

/**
 * struct fabrex_watcher - who tells a cache that a region has changed
 * @map:      watch page, with a reference; NULL if it is not watched
 * @entry:    counter in it
 * @inserted: @notifier is
 * @lock:     innermost spinlock; @armed, and the collision count of @notifier
 * @armed:    changes count
 * @notifier: of the addresses in the process
 */
struct fabrex_watcher {
	struct fabrex_map *map;
	u32 entry;
	bool inserted;
#if IS_ENABLED(CONFIG_MMU_NOTIFIER)
	spinlock_t lock;
	bool armed;
	struct mmu_interval_notifier notifier;
#endif
};

/**
 * struct fabrex_mr - a memory region
 * @res:    what all objects have
 * @pin:    memory of the process, or
 * @dmabuf: of an exporter
 * @watch:  of either
 */
struct fabrex_mr {
	struct fabrex_res res;
	struct fabrex_pin pin;
	struct fabrex_dmabuf *dmabuf;
	struct fabrex_watcher watch;
};

/**
 * struct fabrex_ucmd - an ioctl under way
 * @file:      called on
 * @ubuf:      structure of the caller
 * @user_size: as the caller knows it
 * @size:      as the kernel does
 * @cmd:       copy of it
 */
struct fabrex_ucmd {
	struct fabrex_file *file;
	void __user *ubuf;
	u32 user_size;
	u32 size;
	void *cmd;
};

/* port.c */
extern struct class fabrex_class;

static inline struct fabrex_port *to_fabrex_port(struct device *dev)
{
	return container_of(dev, struct fabrex_port, dev);
}

struct fabrex_port *fabrex_port_find(unsigned long index);
struct fabrex_port *fabrex_port_next(unsigned long *index);
int fabrex_port_usable(struct fabrex_port *port);
void fabrex_port_lost(struct fabrex_port *port);

/* file.c */
extern const struct file_operations fabrex_fops;

int fabrex_respond(struct fabrex_ucmd *ucmd);
int fabrex_files_init(void);
void fabrex_files_exit(void);
void fabrex_file_put(struct fabrex_file *file);

/* event.c */
void fabrex_events_init(struct fabrex_events *events);
void fabrex_events_push(struct fabrex_events *events,
			const struct fabrex_event *event);
void fabrex_events_lose(struct fabrex_events *events);
void fabrex_events_gone(struct fabrex_events *events);
ssize_t fabrex_events_read(struct fabrex_events *events, char __user *buf,
			   size_t count, bool nonblock);
__poll_t fabrex_events_poll(struct fabrex_events *events, struct file *filp,
			    struct poll_table_struct *wait);

/* res.c */
int fabrex_res_init(struct fabrex_res *res, struct fabrex_file *file,
		    enum fabrex_res_type type, u32 charge);
int fabrex_res_charge_bytes(struct fabrex_res *res, u64 bytes);
int fabrex_res_charge_locked(struct fabrex_res *res, u64 npages);
int fabrex_res_insert(struct fabrex_res *res);
int fabrex_res_made(struct fabrex_res *res, int ret);
int fabrex_res_publish(struct fabrex_res *res, struct fabrex_ucmd *ucmd);
void fabrex_res_discard(struct fabrex_res *res);
struct fabrex_res *fabrex_res_get(struct fabrex_file *file, u32 id,
				  enum fabrex_res_type type);
void fabrex_res_put(struct fabrex_res *res);
void fabrex_res_close(struct fabrex_file *file, struct list_head *gone);
void fabrex_res_leave(struct fabrex_file *file, struct pid *pid);
void fabrex_res_free_all(struct list_head *gone);
void fabrex_res_fail(struct fabrex_port *port, u32 qerr,
		     struct list_head *zombies);
void fabrex_res_unregister(struct fabrex_port *port,
			   struct list_head *zombies);
void fabrex_res_free_zombies(struct list_head *zombies);
int fabrex_cmd_destroy(struct fabrex_ucmd *ucmd);

/* pin.c */
int fabrex_pin_size(u64 addr, u64 length, u64 *npages);
int fabrex_pin(struct fabrex_pin *pin, struct fabrex_port *port, u64 addr,
	       u64 length, bool writable);
int fabrex_pin_map(struct fabrex_pin *pin);
void fabrex_pin_memory(const struct fabrex_pin *pin,
		       struct fabrex_mr_memory *memory);
void fabrex_unpin(struct fabrex_pin *pin);

/* pages.c; what it has for backends is in backend.h */
bool fabrex_coherent(struct fabrex_port *port, const struct sg_table *sgt);
bool fabrex_memory_complete(const struct fabrex_mr_memory *memory);

/* dmabuf.c */
#if IS_ENABLED(CONFIG_DMA_SHARED_BUFFER)
int fabrex_dmabuf_open(struct fabrex_mr *mr,
		       const struct fabrex_mr_register *cmd, bool writable);
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
static inline int fabrex_dmabuf_open(struct fabrex_mr *mr,
				     const struct fabrex_mr_register *cmd,
				     bool writable)
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

/* sleep.c, for dmabuf.c */
bool fabrex_stay_awake(void);
void fabrex_may_sleep(void);
int fabrex_wait_awake(unsigned long end);
int fabrex_sleep_init(void);
void fabrex_sleep_exit(void);

/* watch.c */
void fabrex_watch_count(struct fabrex_watcher *watch);
int fabrex_watch_init(struct fabrex_watcher *watch, struct fabrex_file *file,
		      const struct fabrex_mr_register *cmd);
int fabrex_watch_pin(struct fabrex_watcher *watch, struct fabrex_pin *pin,
		     struct fabrex_port *port, u64 addr, u64 length,
		     bool writable);
void fabrex_watch_exit(struct fabrex_watcher *watch);
int fabrex_cmd_watch(struct fabrex_ucmd *ucmd);

/* p2p.c */
int fabrex_cmd_p2p_query(struct fabrex_ucmd *ucmd);

/* mr.c, queue.c, window.c */
extern const struct fabrex_res_ops fabrex_mr_ops;
extern const struct fabrex_res_ops fabrex_queue_ops;
extern const struct fabrex_res_ops fabrex_window_ops;

int fabrex_cmd_mr_register(struct fabrex_ucmd *ucmd);
int fabrex_cmd_queue_create(struct fabrex_ucmd *ucmd);
int fabrex_cmd_window_create(struct fabrex_ucmd *ucmd);
int fabrex_port_counters(struct fabrex_port *port, u32 id,
			 struct fabrex_counters *counters);
int fabrex_cmd_counters(struct fabrex_ucmd *ucmd);
int fabrex_cmd_resolve(struct fabrex_ucmd *ucmd);

/* map.c */
struct inode *fabrex_inode_new(void);
void fabrex_inode_free(struct inode *inode);
struct fabrex_map *fabrex_map_rings(struct fabrex_file *file,
				    const struct fabrex_geometry *geo);
struct fabrex_map *fabrex_map_watch(struct fabrex_file *file, u32 size);
struct fabrex_map *fabrex_map_doorbell(struct fabrex_file *file, bool memory);
struct fabrex_map *fabrex_map_window(struct fabrex_file *file, vm_flags_t may,
				     u64 length);
void fabrex_map_aim(struct fabrex_map *map, phys_addr_t base);
int fabrex_map_insert(struct fabrex_map *map);
void fabrex_map_remove(struct fabrex_map *map);
void fabrex_map_kill(struct fabrex_map *map);
void fabrex_map_put(struct fabrex_map *map);
u64 fabrex_map_offset(const struct fabrex_map *map);
int fabrex_mmap(struct file *filp, struct vm_area_struct *vma);

/* user.c */
struct fabrex_user *fabrex_user_get(struct fabrex_port *port,
				    const struct cred *cred);
void fabrex_users_free(struct fabrex_port *port);
int fabrex_user_try_begin(struct fabrex_user *user);
void fabrex_user_try_end(struct fabrex_user *user, bool wrong);
void fabrex_user_put(struct fabrex_port *port, struct fabrex_user *user);
int fabrex_charge(struct fabrex_port *port, struct fabrex_user *user,
		  enum fabrex_res_type type, u32 n);
void fabrex_uncharge(struct fabrex_port *port, struct fabrex_user *user,
		     enum fabrex_res_type type, u32 n);
int fabrex_charge_bytes(struct fabrex_port *port, struct fabrex_user *user,
			u64 bytes);
void fabrex_uncharge_bytes(struct fabrex_port *port, struct fabrex_user *user,
			   u64 bytes);
int fabrex_charge_locked(struct fabrex_user *user, u64 *npages);
void fabrex_uncharge_locked(struct fabrex_user *user, u64 npages);
u64 fabrex_quota_bytes_default(void);
void fabrex_quota_init(struct fabrex_port *port);
void fabrex_quotas_init(void);

/* cgroup.c */
struct fabrex_cgroup_charge *fabrex_cgroup_charge(struct fabrex_port *port,
						  bool object);
int fabrex_cgroup_charge_bytes(struct fabrex_port *port,
			       struct fabrex_cgroup_charge *charge, u64 bytes);
void fabrex_cgroup_uncharge(struct fabrex_port *port,
			    struct fabrex_cgroup_charge *charge);
void fabrex_cgroup_init(struct fabrex_port *port);
int fabrex_cgroup_register(struct fabrex_port *port);
void fabrex_cgroup_unregister(struct fabrex_port *port);

/* model.c */
int fabrex_model_init(struct fabrex_model *model);
void fabrex_model_destroy(struct fabrex_model *model);
int fabrex_model_next(struct fabrex_port *port, u32 from,
		      bool (*match)(const struct fabrex_object *object,
				    const void *arg),
		      const void *arg, struct fabrex_object *object);
int fabrex_model_find(struct fabrex_port *port, const char *name,
		      struct fabrex_object *object);
void fabrex_model_name(struct fabrex_port *port, u32 id, char *name);
u32 fabrex_model_generation(struct fabrex_port *port);
void fabrex_model_peer(struct fabrex_port *port, u32 peer, bool up,
		       u32 generation);
void fabrex_model_peer_down(struct fabrex_port *port, u32 peer,
			    u32 generation);
void fabrex_model_peer_known(struct fabrex_port *port, u32 peer,
			     struct fabrex_peer *known);
void fabrex_model_forget_peers(struct fabrex_port *port);
int fabrex_cmd_peer_query(struct fabrex_ucmd *ucmd);

/* ticket.c */
int fabrex_change_start(struct fabrex_port *port,
			struct fabrex_change_info *info);
int fabrex_change_get(struct fabrex_port *port, u64 ticket,
		      struct fabrex_change_info *info);
int fabrex_change_cancel(struct fabrex_port *port, u64 ticket);
void fabrex_changes_init(struct fabrex_changes *changes);
int fabrex_changes_open(struct fabrex_port *port);
void fabrex_changes_close(struct fabrex_port *port);
void fabrex_changes_destroy(struct fabrex_changes *changes);
void fabrex_tickets_init(void);

/* query.c */
struct fabrex_query *fabrex_query_new(struct fabrex_port *port,
				      int (*run)(struct fabrex_query *query));
int fabrex_query_wait(struct fabrex_query *query);
void fabrex_query_put(struct fabrex_query *query);

/* netlink.c, change.c, notify.c */
int fabrex_netlink_init(void);
void fabrex_netlink_exit(void);
int fabrex_nl_may_change(struct sk_buff *skb, struct genl_info *info);
void fabrex_change_explain(struct fabrex_port *port,
			   struct netlink_ext_ack *extack, const char *name,
			   int ret);
void fabrex_change_notify(struct fabrex_port *port,
			  const struct fabrex_change_info *info);
struct pci_dev *fabrex_endpoint_pdev(struct fabrex_port *port,
				     const struct fabrex_object *object);
bool fabrex_pdev_driver(struct pci_dev *pdev, char *name, size_t size);
int fabrex_release_init(void);
void fabrex_release_exit(void);

/**
 * struct fabrex_notice_msg - a netlink event about to be sent
 * @type:       FABREX_EVENT_TYPE_*
 * @object:     element concerned, or NULL
 * @port:       object id of the host port concerned, or 0
 * @state:      new state, if @has_state
 * @has_state:  see @state
 * @surprise:   without asking the owner
 * @generation: of a peer, or 0
 * @slot:       physical slot, or 0
 * @token:      of a release request, or 0
 * @timeout_ms: likewise
 * @agent:      for the agent too
 */
struct fabrex_notice_msg {
	u32 type;
	const struct fabrex_object *object;
	u32 port;
	u32 state;
	bool has_state;
	bool surprise;
	u32 generation;
	u16 slot;
	u64 token;
	u32 timeout_ms;
	bool agent;
};

void fabrex_notify(struct fabrex_port *port,
		   const struct fabrex_notice_msg *msg);

/* sysfs.c */
extern const struct attribute_group *fabrex_port_groups[];

#endif
