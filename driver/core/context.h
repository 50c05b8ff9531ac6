/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ports and open files, and what they consist of: model, accounts, events,
 * changes. The lowest layer, for all files of the core.
 *
 * Locks, in the order in which they are taken:
 *
 *  mmap_lock of a process; never taken under any of ours dma_resv of a dma-buf.
 * Exporters hold it when they call us, so it is never waited for under any of
 * ours fabrex_sleep_lock rwsem of sleep.c; while a dma-buf is being mapped
 * port->registration_lock rwsem; held for reading during operations of the
 * backend, and while objects are created and destroyed dmabuf->supply_lock
 * mutex; while pages are supplied for it dmabuf->lock mutex; what the device
 * and the work know about it. Taken in calls of exporters without
 * registration_lock, also during memory reclaim: nothing may be allocated under
 * it port->changes.lock mutex; changes of the fabric in progress
 * port->files_lock mutex; port->files port->slots_lock mutex; port->slots
 * port->users_lock mutex; port->users port->cgroup.lock mutex; charges to
 * cgroups file->map_lock rwsem; map->live. Also taken by page faults, under
 * mmap_lock: nothing under it may fault i_mmap_rwsem by unmap_mapping_range(),
 * after map_lock was released model->lock mutex; the model xa_lock of
 * file->objects, file->maps, port->queues, port->windows, port->dmabufs_lock,
 * file->events.lock, watch->lock innermost spinlocks
 *
 * User memory is never accessed with registration_lock held: a process could
 * make the fault last for ever, and thereby block the removal of the device.
 */
#ifndef _FABREX_CONTEXT_H
#define _FABREX_CONTEXT_H

#include <linux/cdev.h>
#include <linux/cgroup_rdma.h>
#include <linux/cleanup.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/idr.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/semaphore.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#if IS_ENABLED(CONFIG_CGROUP_DMEM)
#include <linux/cgroup_dmem.h>
#endif

#include "backend.h"
#include "ops.h"

#define FABREX_MAX_PORTS	256
#define FABREX_EVENT_SLOTS	64	/* events kept for each file; power of two */
#define FABREX_QUERIES		8	/* shared ones that run at a time */
#define FABREX_QUERY_LINKS	64	/* links read by one query */

struct cred;
struct fabrex_cgroup_charge;
struct fabrex_map;
struct pid_namespace;

/* Types of objects, in the order in which closing a file destroys them. */
enum fabrex_res_type {
	FABREX_RES_QUEUE,
	FABREX_RES_WINDOW,
	FABREX_RES_MR,
	FABREX_RES_TYPES
};

/**
 * struct fabrex_user - account: what one user has of one port
 * @list:   in port->users
 * @ref:    open files and objects; the last reference is dropped under
 *          port->users_lock. At 0 the account is kept until @paid
 * @uid:    user, see fabrex_user_get()
 * @container: the user's container, with a reference
 * @used:   quota in use, by type; windows count in slots
 * @bytes:  bytes of regions
 * @locked: pages of regions whose owners RLIMIT_MEMLOCK limits
 * @trying: a key of this user is being tried by the device
 * @turn:   those who wait for @trying to end
 * @paid:   time (ktime) until which wrong keys are paid for; owned by whoever
 *          has set @trying
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
 * struct fabrex_cgroup - a port, as cgroup controllers see it
 * @lock:       protects @registered and @charges
 * @registered: the controllers know the port
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
 * struct fabrex_peer - what was reported last about a peer
 * @seen:       anything has been reported
 * @up:         the peer is enabled
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
 * @count:      number of nodes
 * @generation: changes whenever a node does; never 0
 * @scan:       number of the full scan; nodes of an older one are removed
 * @seen:       number of nodes in that scan
 * @scanning:   between fabrex_model_begin() and fabrex_model_end()
 * @complete:   a full scan has ended; from now on, changes are events
 * @peers:      by peer number
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

/**
 * struct fabrex_changes - changes of the fabric through a port
 * @lock:     protects what follows up to @ndone
 * @wq:       runs them; NULL before register and after unregister
 * @pending:  changes in progress
 * @done:     completed changes, oldest first
 * @npending: number of those in progress
 * @ndone:    number of completed ones that are kept
 * @queries:  places for shared queries, see struct fabrex_query
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
 * struct fabrex_port - a local fabric port, /dev/fabrex<index>
 * @dev:        device of class fabrex; its references keep the port
 * @cdev:       character device
 * @index:      number
 * @info:       from the backend; constant
 * @can:        FABREX_CAN_*, from the backend's operations; constant
 * @caps:       FABREX_CAP_*; constant
 * @priv:       belongs to the backend
 * @max_segment: longest DMA segment of the device
 * @registration_lock: protects @ops and @alive, and the objects of all files
 *              against fail, revive and unregister, which take it for writing
 * @ops:        of the backend; NULL once unregistered
 * @alive:      false between fail and revive
 * @listed:     netlink can find the port; events are sent
 * @retired:    @index may belong to another port by now
 * @generation: of the port
 * @link_up:    link on the fabric side
 * @files_lock: protects @files
 * @files:      open files
 * @queues:     by the backend's number; read under RCU
 * @windows:    likewise
 * @slots_lock: protects @slots
 * @slots:      window slots in use
 * @users_lock: protects @users
 * @users:      accounts, struct fabrex_user
 * @quota:      of each account, by type; 0 is no limit
 * @quota_bytes: likewise, bytes of regions
 * @cgroup:     what cgroup controllers know of the port
 * @count:      number of objects, by type
 * @charged:    bytes of regions of all users
 * @pinned:     bytes
 * @dmabufs_lock: protects @dmabufs and the state of its elements
 * @dmabufs:    struct fabrex_dmabuf, from before it is attached until it is
 *              detached
 * @dmabufs_wait: woken when one of them has left, or is ready
 * @dmabuf_bytes: bytes of regions in dma-bufs
 * @open_files: number
 * @pds:        protection domains, one for each file
 * @zombies:    objects of closed files that the device has not released;
 *              protected by @zombies_lock
 * @zombies_lock: innermost
 * @wc:         the window aperture was reserved as write-combining
 * @event_seq:  number of the last netlink event
 * @serials:    last serial number of a queue or window
 * @changes:    changes of the fabric through this port
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

static inline struct fabrex_port *to_fabrex_port(struct device *dev)
{
	return container_of(dev, struct fabrex_port, dev);
}

/**
 * struct fabrex_events - events of a file that have not been read
 * @lock:  protects the ring, @lost, @gone and @gone_read
 * @head:  number of events taken, free-running
 * @tail:  number of events stored, free-running
 * @lost:  events that did not fit
 * @gone:  the port is gone: the last event
 * @gone_read: that has been read
 * @seq:   number of all events so far
 * @wait:  readers and pollers
 * @read:  held by the one reader at a time
 * @ring:  stored events
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
 * @ref:      one while open, and one for each zombie
 * @list:     in port->files
 * @port:     with a reference
 * @user:     account that opened it, with a reference
 * @cgroup:   what it is charged to
 * @pd:       protection domain
 * @objects:  struct fabrex_res by id; only under registration_lock are entries
 *            touched by others than the caller who made them
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
 * struct fabrex_ucmd - an ioctl in progress
 * @file:      file that it was called on
 * @ubuf:      the caller's structure
 * @user_size: its size as the caller knows it
 * @size:      its size as the kernel knows it
 * @cmd:       the kernel's copy
 */
struct fabrex_ucmd {
	struct fabrex_file *file;
	void __user *ubuf;
	u32 user_size;
	u32 size;
	void *cmd;
};

/**
 * struct fabrex_query - a short question to the device
 * @work:     asks it
 * @ref:      one for the caller, one for @work
 * @done:     completed by @work
 * @port:     port of the device
 * @run:      the question; called with registration_lock held for reading and a
 *            usable port
 * @shared:   open to everybody, so that only a few run at a time
 * @ret:      result of @run
 * @id:       object
 * @counters: of the object
 * @links:    links from @id on
 * @nlinks:   number of these
 * @next:     id to continue with, or 0
 * @token:    of a release request
 * @busy:     the release request is refused
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
	struct fabrex_link links[FABREX_QUERY_LINKS];
	u32 nlinks;
	u32 next;
	u64 token;
	bool busy;
	struct fabrex_holder holder;
};

/* context.c */
int fabrex_port_enlist(struct fabrex_port *port);
void fabrex_port_list(struct fabrex_port *port);
void fabrex_port_delist(struct fabrex_port *port);
struct fabrex_port *fabrex_port_find(unsigned long index);
struct fabrex_port *fabrex_port_next(unsigned long *index);
int fabrex_port_usable(struct fabrex_port *port);
struct device *fabrex_port_importer(struct fabrex_port *port);
void fabrex_file_free(struct fabrex_file *file);
void fabrex_file_put(struct fabrex_file *file);
int fabrex_respond(struct fabrex_ucmd *ucmd);

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

/* model.c; what it has for backends is in backend.h */
int fabrex_model_init(struct fabrex_model *model);
void fabrex_model_destroy(struct fabrex_model *model);
int fabrex_model_store(struct fabrex_port *port,
		       const struct fabrex_object *object,
		       struct fabrex_object *before);
int fabrex_model_next(struct fabrex_port *port, u32 from,
		      bool (*match)(const struct fabrex_object *object,
				    const void *arg),
		      const void *arg, struct fabrex_object *object);
int fabrex_model_find(struct fabrex_port *port, const char *name,
		      struct fabrex_object *object);
void fabrex_model_name(struct fabrex_port *port, u32 id, char *name);
u32 fabrex_model_generation(struct fabrex_port *port);
bool fabrex_model_peer(struct fabrex_port *port, u32 peer, bool up,
		       u32 generation, struct fabrex_object *object);
void fabrex_model_peer_down(struct fabrex_port *port, u32 peer,
			    u32 generation);
void fabrex_model_peer_known(struct fabrex_port *port, u32 peer,
			     struct fabrex_peer *known);
void fabrex_model_forget_peers(struct fabrex_port *port);
int fabrex_cmd_peer_query(struct fabrex_ucmd *ucmd);

/* query.c */
struct fabrex_query *fabrex_query_new(struct fabrex_port *port,
				      int (*run)(struct fabrex_query *query));
int fabrex_query_wait(struct fabrex_query *query);
void fabrex_query_put(struct fabrex_query *query);
int fabrex_port_counters(struct fabrex_port *port, u32 id,
			 struct fabrex_counters *counters);
int fabrex_port_links(struct fabrex_port *port, u32 from,
		      struct fabrex_link *links, u32 max, u32 *count,
		      u32 *next);

#endif
