/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between fabrex.ko and its backends, included by both. A backend
 * registers a port with tables of operations; the core owns the character
 * device, netlink, permissions, quotas, lifetimes and the model.
 */
#ifndef _FABREX_BACKEND_H
#define _FABREX_BACKEND_H

#include <linux/bitmap.h>
#include <linux/device.h>
#include <linux/types.h>
#include <linux/fabrex.h>

#define FABREX_MAX_PEERS	256

struct fabrex_map;
struct fabrex_port;
struct fabrex_queue;
struct fabrex_mr;
struct fabrex_window;
struct pci_dev;
struct netlink_ext_ack;
struct scatterlist;
struct sg_table;

/**
 * struct fabrex_port_info - what a backend tells the core at registration
 * @name:             port name in the fabric, e.g. "a.0"
 * @host:             host name
 * @fabric:           fabric name
 * @driver:           backend name
 * @object_id:        object id of the port in the fabric model
 * @peer:             peer number
 * @max_peers:        peer numbers are below this (<= FABREX_MAX_PEERS)
 * @generation:       number of times the port has been enabled
 * @flags:            FABREX_PORT_*
 * @caps:             FABREX_CAP_OP() and FABREX_CAP_CHECK; the core adds those
 *                    that follow from the operations
 * @manager:          may change the fabric (bind, unbind, control ports)
 * @max_queues:       limit of the port, like the following; see struct
 *                    fabrex_port_query
 * @max_mrs:          number of regions
 * @max_windows:      number of window slots
 * @max_sq:           entries of a submission ring
 * @max_cq:           entries of a completion ring
 * @max_rq:           receive cells of a queue
 * @max_cell:         bytes of a receive cell
 * @max_mr_pages:     pages of a region, if the device takes lists of pages; the
 *                    backend enforces it
 * @max_transfer:     bytes of an operation
 * @window_slot_size: bytes of a slot; power of two
 * @window_base:      CPU physical address of the window aperture
 * @doorbell_base:    CPU physical address of the doorbell pages
 * @doorbell_stride:  distance between doorbell pages in bytes; power of two
 * @doorbell_memory:  there are no doorbell pages: the doorbell of a queue is a
 *                    page of memory, see &fabrex_queue_params.doorbell
 * @dma_dev:          device that does the DMA, for the DMA API; NULL without data
 *                    operations, or if processors move data. Then neither rings
 *                    nor memory of processes are mapped for DMA; it needs
 *                    @doorbell_memory, and @mr_invalidate needs @mr_importer
 */
struct fabrex_port_info {
	char name[FABREX_NAME_LEN];
	char host[FABREX_NAME_LEN];
	char fabric[FABREX_NAME_LEN];
	char driver[FABREX_NAME_LEN];
	u32 object_id;
	u32 peer;
	u32 max_peers;
	u32 generation;
	u32 flags;
	u64 caps;
	bool manager;
	u32 max_queues;
	u32 max_mrs;
	u32 max_windows;
	u32 max_sq;
	u32 max_cq;
	u32 max_rq;
	u32 max_cell;
	u64 max_mr_pages;
	u64 max_transfer;
	u64 window_slot_size;
	phys_addr_t window_base;
	phys_addr_t doorbell_base;
	u32 doorbell_stride;
	bool doorbell_memory;
	struct device *dma_dev;
};

/* Of what has no peer number. */
#define FABREX_PEER_NONE	(~0u)

/**
 * struct fabrex_object - one element of the fabric, as the core mirrors it
 * @type:       FABREX_OBJECT_TYPE_*
 * @kind:       of a port, FABREX_PORT_KIND_*; of an endpoint,
 *              FABREX_ENDPOINT_KIND_*
 * @state:      of a port, FABREX_LINK_STATE_*; of a host,
 *              FABREX_HOST_STATE_*; of an endpoint, FABREX_ENDPOINT_STATE_*
 * @id:         unique across all types, not 0
 * @parent:     of a port, its switch; of an endpoint, its appliance; else 0
 * @link:       what a port leads to: a host, an appliance, the other port of a
 *              link between switches; the uplink port that an endpoint is behind
 * @bound:      host port that an endpoint is bound to, or 0
 * @slot:       physical slot of the endpoint at that host, or 0
 * @peer:       peer number of a host port, else %FABREX_PEER_NONE
 * @number:     of a port on its switch, of an endpoint in its appliance; number
 *              of an appliance's uplinks
 * @generation: of a host port: how many times it has been enabled
 * @speed:      of a port, MT/s for each lane
 * @max_speed:  likewise
 * @width:      lanes of a port or an endpoint; of an appliance, the largest
 *              number of endpoints behind one uplink
 * @max_width:  lanes of a port
 * @pci_vendor: of an endpoint
 * @pci_device: likewise
 * @size:       of an endpoint's largest BAR, bytes
 * @name:       unique in the fabric, NUL-terminated, not empty
 * @manager:    the host port may change the fabric
 * @surprise:   this update is due to a change that the owner was not asked about;
 *              not kept
 */
struct fabrex_object {
	u8 type;
	u8 kind;
	u8 state;
	u32 id;
	u32 parent;
	u32 link;
	u32 bound;
	u16 slot;
	u32 peer;
	u32 number;
	u32 generation;
	u32 speed;
	u32 max_speed;
	u16 width;
	u16 max_width;
	u16 pci_vendor;
	u16 pci_device;
	u64 size;
	char name[FABREX_NAME_LEN];
	bool manager;
	bool surprise;
};

/**
 * struct fabrex_holder - who keeps an endpoint from being released
 * @pid:    process, or 0
 * @port:   object id of the host port
 * @comm:   name of the process
 * @reason: for the person who wanted it released
 */
struct fabrex_holder {
	u32 pid;
	u32 port;
	char comm[16];
	char reason[104];
};

/**
 * struct fabrex_link - what travelled over a link of the fabric
 * @id:     what it is listed under: @a, or of a link inside a mesh, of which an
 *          endpoint may have several, a number above all object ids
 * @a:      object id of one end: the switch port; of a link between switches,
 *          the port with the lower id; of an endpoint's link, the endpoint,
 *          and of a link inside a mesh, one of the two endpoints
 * @b:      object id of the other end
 * @a_to_b: bytes of payload in this direction
 * @b_to_a: likewise
 */
struct fabrex_link {
	u32 id;
	u32 a;
	u32 b;
	u64 a_to_b;
	u64 b_to_a;
};

/**
 * struct fabrex_ring_memory - memory of a part of a queue
 * @va:   kernel address; NULL if the queue has no such part
 * @dma:  DMA address for &fabrex_port_info.dma_dev; 0 without it
 * @size: in bytes, multiple of the page size
 *
 * Physically contiguous. Remains until queue_destroy() has returned, or
 * fabrex_port_fail().
 */
struct fabrex_ring_memory {
	void *va;
	dma_addr_t dma;
	u32 size;
};

/**
 * struct fabrex_queue_params - queue to be created
 * @pd:         protection domain
 * @sq_entries: entries of the submission ring
 * @cq_entries: entries of the completion ring
 * @rq_entries: number of receive cells, or 0
 * @cell_size:  bytes of a receive cell
 * @interrupts: an eventfd is attached: fabrex_port_queue_irq() has an effect
 * @service:    0, or the number that ->resolve() of peers finds
 * @serial:     for fabrex_port_queue_error()
 * @ctrl:       struct fabrex_qctrl
 * @sq:         submission ring
 * @cq:         completion ring
 * @rq:         receive cells
 * @doorbell:   kernel address of the doorbell page, which remains as long as
 *              the rings, with &fabrex_port_info.doorbell_memory; otherwise
 *              NULL
 * @bell:       for fabrex_doorbell_park(), as long as the rings
 */
struct fabrex_queue_params {
	u32 pd;
	u32 sq_entries;
	u32 cq_entries;
	u32 rq_entries;
	u32 cell_size;
	bool interrupts;
	u64 service;
	u64 serial;
	struct fabrex_ring_memory ctrl;
	struct fabrex_ring_memory sq;
	struct fabrex_ring_memory cq;
	struct fabrex_ring_memory rq;
	void *doorbell;
	struct fabrex_map *bell;
};

/**
 * struct fabrex_mr_memory - memory of a region
 * @dev:    that @sgt is mapped for; NULL: memory of a process, and not mapped
 * @sgt:    entries for memory of a process have pages, those for memory of an
 *          exporter may have none
 * @from:   position in @sgt of the first byte that the device may access;
 *          multiple of FABREX_PAGE_SIZE
 * @to:     position of the end; multiple of FABREX_PAGE_SIZE
 * @offset: of the region's first byte, from @from
 *
 * The core has checked that @sgt is long enough, that its extents begin and end
 * at multiples of FABREX_PAGE_SIZE, and that no bounce buffer is involved. @sgt
 * does not change until mr_invalidate() or mr_destroy() has returned, or
 * fabrex_port_fail(). fabrex_pages_begin() converts it to a list of pages.
 */
struct fabrex_mr_memory {
	struct device *dev;
	const struct sg_table *sgt;
	u64 from;
	u64 to;
	u64 offset;
};

/**
 * struct fabrex_mr_params - region to be created
 * @pd:     protection domain
 * @access: FABREX_ACCESS_*
 * @length: in bytes
 * @memory: memory that ->mr_pages() will supply
 * @peers:  bit mask of the peers that may access it
 */
struct fabrex_mr_params {
	u32 pd;
	u32 access;
	u64 length;
	struct fabrex_mr_memory memory;
	u64 peers[FABREX_MAX_PEERS / 64];
};

/**
 * struct fabrex_pages - iterator over memory, in pages of one size
 * @shift: log2 of the size: the largest by which every page lies within the
 *         memory
 * @count: pages
 * @first: offset of the region's first byte in the first page
 */
struct fabrex_pages {
	u32 shift;
	u64 count;
	u64 first;
	/* private: of pages.c */
	const struct fabrex_mr_memory *memory;
	struct scatterlist *sg;
	unsigned int left;
	u64 pos;
	u64 done;
	u64 off;
};

/**
 * struct fabrex_window_params - a window, as its owner asks for it
 * @slot:   first slot of the aperture, chosen by the core
 * @nslots: how many
 * @peer:   owner of the memory
 * @access: FABREX_ACCESS_REMOTE_*
 * @rkey:   key of the peer's region
 * @offset: into the region, multiple of FABREX_PAGE_SIZE
 * @length: bytes
 * @serial: for fabrex_port_window_fault()
 */
struct fabrex_window_params {
	u32 slot;
	u32 nslots;
	u32 peer;
	u32 access;
	u64 rkey;
	u64 offset;
	u64 length;
	u64 serial;
};

/* Names of devices that share an IOMMU group which are reported. */
#define FABREX_GROUP_NAMES	16

/**
 * struct fabrex_iommu_group - what an IOMMU does not tell apart from a device
 * @id:     number of the group
 * @others: how many other devices there are in it
 * @names:  of the first of them
 */
struct fabrex_iommu_group {
	int id;
	u32 others;
	char names[FABREX_GROUP_NAMES][FABREX_NAME_LEN];
};

/**
 * struct fabrex_data_path - how a port moves payload, as it is now
 * @bridge:     driver of the bridge that it is on, or ""
 * @mode:       a word for how payload gets to a peer, or ""
 * @engine:     what moves payload: "switch", "processor" or the name of a DMA
 *              channel; or ""
 * @protection: FABREX_PROTECTION_*; 0 if peers have no access but by keys
 * @reached:    device by which a peer may reach memory: what shares its IOMMU
 *              group is shown; or NULL
 *
 * Shown to users by those words, which are documented in fabrexctl-list(8).
 */
struct fabrex_data_path {
	char bridge[FABREX_NAME_LEN];
	char mode[FABREX_NAME_LEN];
	char engine[FABREX_NAME_LEN];
	u8 protection;
	struct device *reached;
};

/**
 * struct fabrex_fabric_ops - operations that change and observe the fabric
 * @bind:          bind endpoint @ep to host port @port; returns when the slot
 *                 shows presence. Explains errors in @extack. @dry_run: only
 *                 check. -EPERM: the fabric does not allow this port to change
 *                 it, as for @unbind and @port_control. If @cancel becomes
 *                 true, the change is given up soon, with -ECANCELED, unless it
 *                 is too late
 * @unbind:        unbind it. -EBUSY fills in @holder. @force: surprise removal.
 *                 -ETIMEDOUT after @timeout_ms without an answer, or with the
 *                 slot not empty yet. @cancel as for @bind
 * @port_control:  enable, disable or reset a port, FABREX_PORT_ACTION_*
 * @counters:      read the counters of object @id; 0 is the port itself
 * @links:         read the counters of links, in order of their @id, which is
 *                 unique, beginning with the first that is not below @from: at
 *                 most @max, which is not 0. Sets @count to the number of links
 *                 read, not 0 unless none is left, and @next to the id to
 *                 continue with, or to 0
 * @release_reply: reply to a request that the backend has reported with
 *                 fabrex_port_release_request(). If @holder is NULL, it is
 *                 granted, and the backend has the slot powered off
 * @endpoint_pdev: local PCI device of an endpoint that is bound to this port,
 *                 with a reference, or NULL
 *
 * Each may be NULL. Then users get -EOPNOTSUPP; the local PCI devices of
 * endpoints are not known; release requests are not answered.
 *
 * Context: As for struct fabrex_port_ops.
 */
struct fabrex_fabric_ops {
	int (*bind)(struct fabrex_port *port, u32 ep, u32 host_port,
		    bool dry_run, const bool *cancel,
		    struct netlink_ext_ack *extack);
	int (*unbind)(struct fabrex_port *port, u32 ep, bool force,
		      bool dry_run, u32 timeout_ms, const bool *cancel,
		      struct fabrex_holder *holder,
		      struct netlink_ext_ack *extack);
	int (*port_control)(struct fabrex_port *port, u32 id, u32 action,
			    struct netlink_ext_ack *extack);
	int (*counters)(struct fabrex_port *port, u32 id,
			struct fabrex_counters *counters);
	int (*links)(struct fabrex_port *port, u32 from,
		     struct fabrex_link *links, u32 max, u32 *count, u32 *next);
	int (*release_reply)(struct fabrex_port *port, u32 ep, u64 token,
			     const struct fabrex_holder *holder);
	struct pci_dev *(*endpoint_pdev)(struct fabrex_port *port, u32 ep,
					 u16 slot);
};

/**
 * struct fabrex_data_ops - operations that move data
 * @queue_create:   create a queue; sets its number, which is also the index of
 *                  its doorbell page, and the 64-bit key that senders must
 *                  present
 * @queue_destroy:  destroy a queue. When this returns, the device no longer
 *                  accesses the rings, and no operation of the queue is in
 *                  progress
 * @queue_counters: read the counters of a queue. May be NULL
 * @resolve:        find queue number and key of @service at @peer. NULL: the
 *                  port has no services, and no queue is created with one
 * @mr_create:      create a region; sets its number and key
 * @mr_pages:       supply the memory of the region, which becomes valid. After
 *                  mr_invalidate() the memory may be elsewhere, in other
 *                  extents. After an error, part of it may have been supplied
 * @mr_invalidate:  when this returns, no access is in progress and none can
 *                  start; all pages are forgotten, even of a region that was
 *                  not valid. The key remains, and mr_pages makes the region
 *                  valid again. NULL: the port does not support dma-bufs
 * @mr_destroy:     as mr_invalidate, but number and key are never valid again
 * @mr_importer:    device that dma-bufs are to be mapped for, with a reference
 *                  that the core drops; its driver has to stay for as long as
 *                  the port is registered. An ERR_PTR() if there is none now,
 *                  with the reason in the log. NULL: &fabrex_port_info.dma_dev
 * @window_create:  map window slots to a peer's region; sets the window's
 *                  number
 * @window_destroy: when this returns, loads from the slots return all ones
 *
 * Mandatory are @queue_create, @queue_destroy, @mr_create, @mr_pages and
 * @mr_destroy; and, if there are window slots, @window_create and
 * @window_destroy. fabrex_port_register() refuses a table without them. Where
 * one of the others is NULL, users get -EOPNOTSUPP.
 *
 * @mr_invalidate and @mr_destroy are called while the exporter of a dma-buf
 * waits for its memory, with its dma_resv held, even during memory reclaim. So
 * they allocate nothing, wait for nobody who allocates or takes a dma_resv, and
 * return in bounded time, whatever the device does. @mr_invalidate returns 0 or
 * -ENODEV: a device that cannot be made to release the memory has to be
 * stopped. @mr_pages may allocate: it is called with the dma_resv held, but
 * never during reclaim.
 *
 * Context: As for struct fabrex_port_ops.
 */
struct fabrex_data_ops {
	int (*queue_create)(struct fabrex_port *port,
			    const struct fabrex_queue_params *params,
			    u32 *number, u64 *key);
	int (*queue_destroy)(struct fabrex_port *port, u32 number);
	int (*queue_counters)(struct fabrex_port *port, u32 number,
			      struct fabrex_counters *counters);
	int (*resolve)(struct fabrex_port *port, u32 peer, u64 service,
		       u32 *queue, u64 *key);
	int (*mr_create)(struct fabrex_port *port,
			 const struct fabrex_mr_params *params, u32 *number,
			 u64 *key);
	int (*mr_pages)(struct fabrex_port *port, u32 number,
			const struct fabrex_mr_memory *memory);
	int (*mr_invalidate)(struct fabrex_port *port, u32 number);
	int (*mr_destroy)(struct fabrex_port *port, u32 number);
	struct device *(*mr_importer)(struct fabrex_port *port);
	int (*window_create)(struct fabrex_port *port,
			     const struct fabrex_window_params *params,
			     u32 *number);
	int (*window_destroy)(struct fabrex_port *port, u32 number);
};

/**
 * struct fabrex_port_ops - operations of a backend for a port
 * @fabric:    NULL if the port cannot change the fabric
 * @data:      NULL if the port cannot move data. Then limits, capabilities and
 *             window slots in struct fabrex_port_info are 0
 * @data_path: fill in how data is moved; the core has zeroed it. May be NULL:
 *             then nothing is shown
 *
 * At least one of the tables is required. A backend whose hardware is gone returns
 * -ENODEV at once from every operation, also to callers that are already
 * waiting: -ENODEV from a destroy operation tells the core that the device can
 * no longer access memory.
 *
 * Context: Process; sleeps. With registration_lock held for reading, except for
 * calls about dma-bufs as described in &struct fabrex_data_ops. None is called
 * before fabrex_port_register(), or after fabrex_port_unregister() has
 * returned, which waits for calls in progress.
 *
 * Return: 0 or a negative errno. After an error nothing is left behind.
 */
struct fabrex_port_ops {
	const struct fabrex_fabric_ops *fabric;
	const struct fabrex_data_ops *data;
	int (*data_path)(struct fabrex_port *port,
			 struct fabrex_data_path *path);
};

/* Life of a port. Each function has its kernel-doc where it is defined. */
struct fabrex_port *fabrex_port_alloc(struct device *parent,
				      const struct fabrex_port_ops *ops,
				      const struct fabrex_port_info *info,
				      void *priv);
int fabrex_port_register(struct fabrex_port *port);
void fabrex_port_unregister(struct fabrex_port *port);
void fabrex_port_put(struct fabrex_port *port);
void *fabrex_port_priv(struct fabrex_port *port);

/*
 * The device stopped working (reset, fatal error), and works again. A backend
 * calls fabrex_port_fail() once the device can no longer access memory; all
 * operations return -ENODEV from before that until fabrex_port_revive(). The
 * core then takes every object for forgotten: none that was created before is
 * named in a later operation.
 */
void fabrex_port_fail(struct fabrex_port *port, int qerr);
void fabrex_port_revive(struct fabrex_port *port, u32 generation);

/*
 * A doorbell that is memory, of a queue that nobody watches: the next access of
 * the process to its page calls @rung. To be called at creation, and again by
 * who stops watching, before the last look at the queue.
 */
void fabrex_doorbell_park(struct fabrex_map *bell, void (*rung)(void *arg),
			  void *arg);

/* What an IOMMU does not tell apart from a device. */
bool fabrex_iommu_group_read(struct device *dev,
			     struct fabrex_iommu_group *group);

/* Lists of pages, for devices that take them. */
void fabrex_pages_begin(struct fabrex_pages *pages,
			const struct fabrex_mr_memory *memory);
bool fabrex_pages_next(struct fabrex_pages *pages, u64 *addr);

/*
 * The model. Updates between begin and end are a full scan: objects that it does
 * not contain are removed at its end. A scan that is abandoned, as when an update
 * has failed, has no end and removes nothing.
 */
int fabrex_model_update(struct fabrex_port *port,
			const struct fabrex_object *object);
int fabrex_model_get(struct fabrex_port *port, u32 id,
		     struct fabrex_object *object);
void fabrex_model_begin(struct fabrex_port *port);
void fabrex_model_end(struct fabrex_port *port);

/*
 * Events, from process context. Those of queues and windows name the instance
 * by the serial number that it was created with: if its number has been reused,
 * nobody is told.
 */
void fabrex_port_link(struct fabrex_port *port, bool up);
void fabrex_port_peer(struct fabrex_port *port, u32 peer, bool up,
		      u32 generation);
void fabrex_port_queue_error(struct fabrex_port *port, u32 number, u64 serial,
			     u32 qerr);
void fabrex_port_window_fault(struct fabrex_port *port, u32 number, u64 serial,
			      u32 wc);
void fabrex_port_release_request(struct fabrex_port *port, u32 ep, u64 token,
				 u16 slot, u32 timeout_ms);

/*
 * After events may have been dropped: the state as the device reports it (those
 * who have not been told of it are), and what it was in between.
 */
void fabrex_port_peer_is(struct fabrex_port *port, u32 peer, bool up,
			 u32 generation);
void fabrex_port_link_was_down(struct fabrex_port *port);
void fabrex_port_peer_was_down(struct fabrex_port *port, u32 peer,
			       u32 generation);

/**
 * enum fabrex_notice - what objects do not show
 * @FABREX_NOTICE_RESET: a switch was reset
 * @FABREX_NOTICE_FAULT: an element reported a fault
 * @FABREX_NOTICE_LOST:  events were dropped; id and code are 0. After the
 *                       backend has reported the state of everything, as far as
 *                       the device tells it: the rest follows
 */
enum fabrex_notice {
	FABREX_NOTICE_RESET,
	FABREX_NOTICE_FAULT,
	FABREX_NOTICE_LOST,
};

void fabrex_port_notice(struct fabrex_port *port, enum fabrex_notice what,
			u32 id, u64 code);

/*
 * Interrupt of a queue, from any context. One for the previous owner of the
 * number does no harm: an eventfd says that there may be something to see.
 */
void fabrex_port_queue_irq(struct fabrex_port *port, u32 number);

#endif
