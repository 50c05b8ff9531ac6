/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Draco host port: field definitions of registers, admin commands and events.
 * The only code that the driver and the emulator share; docs/draco.md is the
 * normative text. All structures are little-endian and naturally aligned.
 */
#ifndef DRACO_REGS_H
#define DRACO_REGS_H

#include <linux/types.h>
#include <linux/fabrex_ring.h>

/* PCI identity. 0x1234 is not assigned by the PCI-SIG (emulators use it). */
#define DRACO_PCI_VENDOR		0x1234
#define DRACO_PCI_DEVICE_PORT		0xda00	/* host port, class 0x068000 */
#define DRACO_PCI_DEVICE_GPU		0xda10	/* emulated GPU, class 0x120000 */
#define DRACO_PCI_DEVICE_NVME		0xda11	/* emulated drive, class 0x018000 */
#define DRACO_PCI_DEVICE_NIC		0xda12	/* emulated NIC, class 0x028000 */
#define DRACO_PCI_DEVICE_FPGA		0xda13	/* emulated FPGA, class 0x120000 */

/* Base address registers of the host port function. */
#define DRACO_BAR_REGS			0	/* 64 KiB, 64-bit, registers + MSI-X */
#define DRACO_BAR_DOORBELL		2	/* one page per queue, see CAP */
#define DRACO_BAR_WINDOW		4	/* window aperture, prefetchable */
#define DRACO_BAR_REGS_SIZE		0x10000
#define DRACO_MSIX_TABLE_OFFSET		0x4000
#define DRACO_MSIX_PBA_OFFSET		0x8000

/* Registers in BAR 0, accessed by 32 bits; 64-bit ones as two, low half first. */
#define DRACO_REG_MAGIC			0x0000	/* RO */
#define DRACO_REG_VERSION		0x0004	/* RO, major << 16 | minor */
#define DRACO_REG_CAP			0x0008	/* RO, 64 bits */
#define DRACO_REG_CTRL			0x0010	/* RW */
#define DRACO_REG_STATUS		0x0014	/* RO */
#define DRACO_REG_ADMIN_SIZE		0x0018	/* RW, entries of both rings */
#define DRACO_REG_ERROR			0x001c	/* RO, DRACO_FATAL_* */
#define DRACO_REG_ADMIN_SQ		0x0020	/* RW, 64 bits, page aligned */
#define DRACO_REG_ADMIN_CQ		0x0028	/* RW, 64 bits, page aligned */
#define DRACO_REG_PORT_ID		0x0030	/* RO, object id of this port */
#define DRACO_REG_GENERATION		0x0034	/* RO, of this port */
#define DRACO_REG_ADMIN_SQ_TAIL		0x1000	/* WO, doorbell */
#define DRACO_REG_ADMIN_CQ_HEAD		0x1004	/* WO, doorbell */

#define DRACO_MAGIC			0x4f435244u	/* "DRCO" */
#define DRACO_VERSION			0x00010000u

#define DRACO_CAP_ADMIN_MAX(c)		((__u32)((c) & 0xffff)) /* entries */
#define DRACO_CAP_TIMEOUT(c)		((__u32)(((c) >> 16) & 0xff)) /* 100 ms */
/* fabrex_qctrl.db_needed may become 0. */
#define DRACO_CAP_SHADOW_DB		(1ull << 32)
/* log2 of the distance between doorbell pages. */
#define DRACO_CAP_DB_SHIFT(c)		(12 + (__u32)(((c) >> 36) & 0xf))

#define DRACO_CTRL_ENABLE		(1u << 0)
#define DRACO_STATUS_READY		(1u << 0)
#define DRACO_STATUS_FATAL		(1u << 1)
#define DRACO_STATUS_LINK		(1u << 2)	/* fabric side link is up */

#define DRACO_FATAL_NONE		0
#define DRACO_FATAL_ADMIN_RING		1	/* admin ring invalid or unreachable */
#define DRACO_FATAL_ADMIN_INDEX		2	/* doorbell value out of range */
#define DRACO_FATAL_RESET		3	/* the switch was reset */

#define DRACO_ADMIN_MIN			4u

/* Admin commands. */
#define DRACO_ADM_IDENTIFY		0x01
#define DRACO_ADM_GET_OBJECTS		0x02
#define DRACO_ADM_GET_EVENTS		0x03	/* pending until there is one */
#define DRACO_ADM_ABORT			0x04
#define DRACO_ADM_GET_COUNTERS		0x05
#define DRACO_ADM_GET_LOG		0x06
#define DRACO_ADM_GET_PEERS		0x07
#define DRACO_ADM_GET_REQUESTS		0x08
#define DRACO_ADM_GET_LINKS		0x09	/* with DRACO_IDF_LINKS */
#define DRACO_ADM_BIND			0x10
#define DRACO_ADM_UNBIND		0x11
#define DRACO_ADM_RELEASE_REPLY		0x12
#define DRACO_ADM_PORT_CONTROL		0x13
#define DRACO_ADM_QUEUE_CREATE		0x20
#define DRACO_ADM_QUEUE_DESTROY		0x21
#define DRACO_ADM_RESOLVE		0x22
#define DRACO_ADM_MR_CREATE		0x28
#define DRACO_ADM_MR_PAGES		0x29
#define DRACO_ADM_MR_DESTROY		0x2a
#define DRACO_ADM_MR_INVALIDATE		0x2b
#define DRACO_ADM_WINDOW_CREATE		0x30
#define DRACO_ADM_WINDOW_DESTROY	0x31

/**
 * struct draco_acmd - admin submission, 64 bytes
 * @opcode:   DRACO_ADM_*
 * @flags:    per command
 * @cid:      command identifier, unique among those in flight
 * @id:       object, queue, MR or window that the command refers to
 * @data:     bus address of a physically contiguous buffer, 8-byte aligned
 * @data_len: its length in bytes, at most %DRACO_ADM_DATA_MAX
 * @__rsvd:   0
 * @arg:      per command
 */
struct draco_acmd {
	__u8	opcode;
	__u8	flags;
	__le16	cid;
	__le32	id;
	__le64	data;
	__le32	data_len;
	__le32	__rsvd;
	__le64	arg[5];
};

#define DRACO_ADM_DATA_MAX		(128u * 1024)

/**
 * struct draco_acpl - admin completion, 32 bytes
 * @result:  per command
 * @result2: per command
 * @id:      per command, usually the id of the created object
 * @__rsvd:  0
 * @sq_head: submission entries consumed, modulo ring size
 * @cid:     of the command
 * @status:  DRACO_SC_*
 * @flags:   bit 0: phase, 1 in the first pass; written last
 */
struct draco_acpl {
	__le64	result;
	__le64	result2;
	__le32	id;
	__le32	__rsvd;
	__le16	sq_head;
	__le16	cid;
	__le16	status;
	__le16	flags;
};

/* Admin status. */
#define DRACO_SC_OK			0
#define DRACO_SC_BAD_OPCODE		1	/* EOPNOTSUPP */
#define DRACO_SC_BAD_FIELD		2	/* EINVAL */
#define DRACO_SC_BAD_ID			3	/* ENOENT: no such object */
#define DRACO_SC_NO_RESOURCE		4	/* ENOSPC: table full */
#define DRACO_SC_DENIED			5	/* EPERM: port is not a manager */
#define DRACO_SC_BUSY			6	/* EBUSY: in use, holder in data */
#define DRACO_SC_BOUND			7	/* EADDRINUSE: bound; service taken */
#define DRACO_SC_NOT_BOUND		8	/* ENOTCONN */
#define DRACO_SC_NO_SLOT		9	/* ENOSPC: no free downstream slot */
#define DRACO_SC_LINK_DOWN		10	/* ENETDOWN */
#define DRACO_SC_HOST_DOWN		11	/* EHOSTDOWN: host down or absent */
#define DRACO_SC_TIMEOUT		12	/* ETIMEDOUT: owner or slot too late */
#define DRACO_SC_ABORTED		13	/* ECANCELED */
#define DRACO_SC_DMA_FAULT		14	/* EFAULT: access to data failed */
#define DRACO_SC_BAD_KEY		15	/* EACCES: remote key refused */
#define DRACO_SC_GONE			16	/* ENODEV: endpoint not in appliance */
#define DRACO_SC_INTERNAL		17	/* EIO */
#define DRACO_SC_IN_PROGRESS		18	/* EALREADY: bind/unbind in progress */
#define DRACO_SC_RETRY			19	/* EAGAIN: too many wrong keys */

#define DRACO_NAME_LEN			32

/* IDENTIFY: data receives this structure. */
struct draco_identify {
	__le32	port_id;	/* object id of this port */
	__le32	host_id;	/* object id of its host */
	__le16	peer;		/* peer number of this port */
	__le16	max_peers;	/* peer numbers are below this, at most 256 */
	__le32	generation;	/* of this port */
	__le32	flags;		/* DRACO_IDF_* */
	__le32	max_queues;	/* doorbell pages in BAR 2 */
	__le32	max_mrs;
	__le32	max_windows;	/* window slots in BAR 4 */
	__le64	window_slot_size; /* bytes of one window slot, power of two */
	__le64	max_transfer;	/* bytes of one operation */
	__le64	max_mr_pages;
	__le32	max_sq;		/* entries; powers of two */
	__le32	max_cq;
	__le32	max_rq;
	__le32	max_cell;	/* bytes of a receive cell */
	__le32	objects[8];	/* number of objects, by DRACO_OBJ_* */
	__le64	topology_seq;	/* changes with every event that alters an object */
	char	name[DRACO_NAME_LEN];	/* of this port */
	char	host[DRACO_NAME_LEN];	/* of its host */
	char	fabric[DRACO_NAME_LEN];
	char	firmware[DRACO_NAME_LEN];
	__le64	operations;	/* bit n: queues execute FABREX_OP_* n; bit
				 * DRACO_OPS_CHECK: with FABREX_SQE_CHECK */
	__u8	__rsvd[16];
};

#define DRACO_OPS_CHECK			32

#define DRACO_IDF_MANAGER		(1u << 0) /* may bind, unbind, control ports */
#define DRACO_IDF_EMULATED		(1u << 1) /* a software model */
#define DRACO_IDF_LINKS			(1u << 2) /* GET_LINKS is supported */
#define DRACO_IDF_MESH			(1u << 3) /* and its flag MESH */

/* Object types. Ids are unique across all types; 0 means "none". */
#define DRACO_OBJ_SWITCH		1
#define DRACO_OBJ_PORT			2
#define DRACO_OBJ_HOST			3
#define DRACO_OBJ_APPLIANCE		4
#define DRACO_OBJ_ENDPOINT		5

/* draco_object.kind for ports; 0 for objects that are neither of the two. */
#define DRACO_PORT_UNUSED		0
#define DRACO_PORT_HOST			1
#define DRACO_PORT_UPLINK		2	/* to an appliance */
#define DRACO_PORT_ISL			3	/* to another switch */
/* draco_object.kind for endpoints. */
#define DRACO_EP_GPU			1
#define DRACO_EP_NVME			2
#define DRACO_EP_NIC			3
#define DRACO_EP_FPGA			4

/* draco_object.state for ports. */
#define DRACO_LINK_DOWN			0
#define DRACO_LINK_UP			1
#define DRACO_LINK_DISABLED		2
/* draco_object.state for hosts. */
#define DRACO_HOST_DOWN			0
#define DRACO_HOST_UP			1	/* at least one port is enabled */
/* draco_object.state for endpoints. */
#define DRACO_EP_FREE			0
#define DRACO_EP_BINDING		1	/* hot-plug in progress */
#define DRACO_EP_BOUND			2
#define DRACO_EP_RELEASING		3	/* owner asked, or slot not empty */
#define DRACO_EP_GONE			4	/* removed from the appliance */
#define DRACO_EP_ATTACHING		5	/* bound; its host is not up yet */

/**
 * struct draco_object - one element of the topology, 128 bytes
 * @type:       DRACO_OBJ_*
 * @kind:       by type
 * @state:      by type
 * @flags:      DRACO_OBJF_*
 * @id:         object id
 * @parent:     port: switch; endpoint: appliance; else 0
 * @link:       port: what it leads to (host, appliance, or the port at the
 *              other end of the ISL); endpoint: the uplink port that it is
 *              behind
 * @bound:      endpoint: host port that it is bound to, else 0
 * @slot:       endpoint: physical slot number in the partition, else 0
 * @peer:       host port: peer number, else 0xffff
 * @number:     port: number on its switch; endpoint: index in its appliance;
 *              appliance: number of uplinks
 * @generation: host port: how many times it has been enabled
 * @speed:      port: current link speed in MT/s for each lane (16000 for Gen4)
 * @max_speed:  port: maximum speed in MT/s
 * @width:      port: current lanes; endpoint: lanes; appliance: maximum number
 *              of endpoints behind one uplink
 * @max_width:  port: maximum lanes
 * @pci_vendor: endpoint: PCI identity
 * @pci_device: endpoint: PCI identity
 * @size:       endpoint: bytes of its largest BAR
 * @name:       unique in the fabric, NUL terminated
 * @__rsvd:     0
 */
struct draco_object {
	__u8	type;
	__u8	kind;
	__u8	state;
	__u8	flags;
	__le32	id;
	__le32	parent;
	__le32	link;
	__le32	bound;
	__le16	slot;
	__le16	peer;
	__le32	number;
	__le32	generation;
	__le32	speed;
	__le32	max_speed;
	__le16	width;
	__le16	max_width;
	__le16	pci_vendor;
	__le16	pci_device;
	__le64	size;
	char	name[DRACO_NAME_LEN];
	__u8	__rsvd[40];
};

/* draco_object.peer of anything but a host port */
#define DRACO_PEER_NONE			0xffff

/* draco_object.flags */
#define DRACO_OBJF_MANAGER		(1u << 0) /* host port: may change the fabric */

/*
 * GET_OBJECTS: arg[0]: type (0: all); arg[1]: first id to return. Writes
 * objects to data in order of id. result: number written; result2:
 * topology_seq; id: the next id to request, 0 at the end.
 */

/*
 * GET_EVENTS: data receives as many struct draco_event as exist and fit: first
 * those of the fabric, then errors of this function's queues and windows, which
 * are stored for each queue and window separately and are never dropped.
 * Completes when there is an event, or when one was dropped. result: number
 * written; result2: number dropped since the previous GET_EVENTS because the
 * function's queue was full. To recover, query the state by GET_PEERS,
 * GET_OBJECTS and GET_REQUESTS.
 *
 * GET_LOG: arg[0]: first sequence number to return; result: number written.
 * Never waits; the switch keeps the last 1,024 events of all ports.
 */
struct draco_event {
	__le64	seq;		/* fabric-wide, without gaps; 0 for errors of
				 * queues and windows */
	__le64	time_ns;	/* since the switch started */
	__le16	type;		/* DRACO_EV_* */
	__u8	obj_type;	/* of @object */
	__u8	flags;		/* DRACO_EVF_* */
	__le32	object;		/* object id; queue or window id for faults */
	__le32	port;		/* affected host port, or 0 */
	__le32	state;		/* new state of @object */
	__le64	arg[4];		/* per type */
};

#define DRACO_EV_LINK			0x01	/* port: state changed */
#define DRACO_EV_PEER_UP		0x02	/* port; arg[0] generation, arg[1] peer */
#define DRACO_EV_PEER_DOWN		0x03	/* port; arg[0] generation, arg[1] peer */
#define DRACO_EV_EP_STATE		0x04	/* endpoint; arg[0] slot */
/* To the owner only: arg[0] token, arg[1] slot, arg[2] ms to answer. With FORCE
 * the endpoint is already gone.
 */
#define DRACO_EV_RELEASE_REQUEST	0x05
/* To the owner only: arg[0] FABREX_QERR_*, arg[1] serial of the queue. */
#define DRACO_EV_QUEUE_ERROR		0x06
/* To the owner only: arg[0] FABREX_WC_*, arg[1] serial of the window. */
#define DRACO_EV_WINDOW_FAULT		0x07
#define DRACO_EV_RESET			0x08	/* switch was reset */
#define DRACO_EV_FAULT			0x09	/* injected or hardware fault; arg[0] code */

/* draco_event.arg[0] of DRACO_EV_FAULT. */
#define DRACO_FAULT_STUCK_COMPLETION	1
#define DRACO_FAULT_CORRUPT_COMPLETION	2
#define DRACO_FAULT_CORRUPT_PAYLOAD	3
#define DRACO_FAULT_DROP_DOORBELL	4
#define DRACO_FAULT_SLOW_LINK		5
#define DRACO_FAULT_ADMIN_HANG		6
#define DRACO_FAULT_LATE_ACCESS		7
#define DRACO_FAULT_STUCK_STOP		8
#define DRACO_FAULT_LOST_EVENT		9

#define DRACO_EVF_SURPRISE		(1u << 0) /* the owner was not asked */
#define DRACO_EVF_FORCE			(1u << 1)

/**
 * struct draco_peer - state of a host port as a function knows it, 16 bytes
 * @port:       object id
 * @generation: of the port
 * @peer:       peer number
 * @flags:      DRACO_PEERF_*
 * @__rsvd:     0
 */
struct draco_peer {
	__le32	port;
	__le32	generation;
	__le16	peer;
	__le16	flags;
	__le32	__rsvd;
};

/* Enabled and reachable: the last event was PEER_UP. */
#define DRACO_PEERF_UP			(1u << 0)

/*
 * GET_PEERS: arg[0]: first peer number to return. Writes all host ports to data
 * in order of peer number, including the function's own. result: number
 * written; id: the next peer number to request, 0 at the end; result2: sequence
 * number of the last event that the result reflects.
 *
 * GET_REQUESTS: writes the pending RELEASE_REQUESTs to this port to data, as
 * struct draco_event, with the remaining time in arg[2]. result: number
 * written.
 */

/*
 * BIND: id: endpoint; arg[0]: object id of the host port; flags: DRY_RUN.
 * Completes when the slot reports presence. result: slot. UNBIND: id: endpoint;
 * arg[0]: ms to wait for the owner (0: 5000); flags: FORCE, DRY_RUN. Completes
 * when the slot is empty. With %DRACO_SC_BUSY, data (if there is any) receives
 * a struct draco_holder.
 */
#define DRACO_BINDF_DRY_RUN		(1u << 0)
#define DRACO_BINDF_FORCE		(1u << 1)

struct draco_holder {
	__le32	pid;		/* 0: none or not known */
	__le32	port;		/* host port object id of the owner */
	char	comm[16];	/* process, NUL terminated */
	char	reason[104];	/* in words, NUL terminated */
};

/*
 * RELEASE_REPLY: id: endpoint; arg[0]: token of the request; arg[1]: verdict;
 * data contains a struct draco_holder if the verdict is BUSY. With OK the owner
 * powers the slot off, unless it never used the device.
 */
#define DRACO_RELEASE_OK		0
#define DRACO_RELEASE_BUSY		1

/* PORT_CONTROL: id: port; arg[0]: one of: */
#define DRACO_PORTC_ENABLE		1
#define DRACO_PORTC_DISABLE		2
#define DRACO_PORTC_RESET		3

/*
 * QUEUE_CREATE: data contains this structure. id in the completion: queue
 * number, which is also the number of its doorbell page; result: the 64-bit key
 * that senders must present. Rings are page-aligned and physically contiguous.
 */
struct draco_queue_create {
	__le32	pd;		/* protection domain, chosen by the driver */
	__le32	sq_entries;	/* power of two */
	__le32	cq_entries;	/* power of two, >= sq_entries + rq_entries */
	__le32	rq_entries;	/* power of two, or 0: does not receive */
	__le32	cell_size;	/* power of two, 0 if rq_entries is 0 */
	__le16	vector;		/* MSI-X vector, 0xffff: none */
	__le16	flags;		/* 0 */
	__le64	service;	/* 0, or a number that peers can RESOLVE;
				 * unique at the port, else BOUND */
	__le64	ctrl;		/* struct fabrex_qctrl */
	__le64	sq;
	__le64	cq;
	__le64	rq;
	__le64	serial;		/* returned in QUEUE_ERROR; chosen by the
				 * driver to tell instances apart */
};

#define DRACO_NO_VECTOR			0xffff

/*
 * RESOLVE: id: peer number; arg[0]: service. Completes with id: queue number;
 * result: key. BAD_ID: the peer does not offer the service; HOST_DOWN: the peer
 * is down.
 */

/* Access rights to a memory region, as FABREX_ACCESS_* of the uapi. */
#define DRACO_ACCESS_LOCAL_WRITE	(1u << 0)
#define DRACO_ACCESS_REMOTE_READ	(1u << 1)
#define DRACO_ACCESS_REMOTE_WRITE	(1u << 2)
#define DRACO_ACCESS_REMOTE_ATOMIC	(1u << 3)

/*
 * MR_CREATE: data contains this structure. id: MR number; result: 64-bit key.
 * The region can be accessed after MR_PAGES has supplied all of its pages.
 * MR_PAGES: id: MR; arg[0]: index of the first page; arg[1]: log2 of the page
 * size, or 0 if it does not change; data: __le64 bus addresses.
 * MR_INVALIDATE: id: MR. Completes when no access is in progress and none can
 * start. The key remains, and MR_PAGES with all pages makes it valid again.
 * MR_DESTROY: as MR_INVALIDATE, but the key is never valid again.
 */
struct draco_mr_create {
	__le32	pd;
	__le32	access;		/* DRACO_ACCESS_* */
	__le64	length;		/* bytes */
	__le64	first;		/* offset of byte 0 in the first page */
	__le32	page_shift;	/* 12..30 */
	__le32	__rsvd;
	__le64	npages;
	__le64	peers[4];	/* bit n: peer n may access it remotely */
};

#define DRACO_MAX_PEERS			256

/*
 * WINDOW_CREATE: data contains this structure. id: window number. Every access
 * is checked again: when the key has been revoked or the peer is gone, loads
 * return all ones, stores are dropped, and one WINDOW_FAULT is raised.
 */
struct draco_window_create {
	__le32	slot;		/* first window slot, chosen by the driver */
	__le32	nslots;
	__le16	peer;
	__le16	__rsvd0;
	__le32	access;		/* REMOTE_READ and/or REMOTE_WRITE */
	__le64	rkey;
	__le64	offset;		/* into the region, multiple of 4096 */
	__le64	length;		/* bytes, at most nslots * window_slot_size */
	__le64	serial;		/* returned in WINDOW_FAULT */
};

/*
 * GET_COUNTERS: id: object (port or endpoint), 0 for this host port, or, with
 * arg[0] = 1, a queue of this port. data receives this structure.
 */
struct draco_counters {
	__le64	tx_bytes;	/* payload sent by the object into the fabric */
	__le64	rx_bytes;
	__le64	tx_ops;
	__le64	rx_ops;
	__le64	errors;		/* operations that were refused or failed */
	__le64	p2p_bytes;	/* endpoint memory to endpoint memory */
	__le64	host_bytes;	/* host memory at one end or both */
	__le64	window_reads;
	__le64	window_writes;
	__le64	doorbells;
	__le64	link_downs;
	__le64	crc_errors;
	__le64	interrupts;
	__le64	__rsvd[3];
};

#define DRACO_COUNTERS_OBJECT		0
#define DRACO_COUNTERS_QUEUE		1

/*
 * GET_LINKS: arg[0]: first id to return. Writes links to data in order of @id,
 * or @a where that is 0. result: number written; id: the next id to request, 0
 * at the end.
 */
#define DRACO_LINKSF_MESH		(1u << 0) /* links inside meshes, too */

/**
 * struct draco_link - what travelled over a link of the fabric, 64 bytes
 * @a:      end under which it is listed: a switch port, of an inter-switch link
 *          the one with the lower id; or an endpoint
 * @b:      the other end: host, appliance or switch port; of an endpoint's link,
 *          its appliance; of a link inside a mesh, an endpoint as well
 * @a_to_b: bytes of payload in this direction
 * @b_to_a: likewise
 * @id:     of a link inside a mesh: what it is listed under, above the ids of
 *          all objects; else 0
 * @__rsvd: 0
 */
struct draco_link {
	__le32	a;
	__le32	b;
	__le64	a_to_b;
	__le64	b_to_a;
	__le32	id;
	__le32	__rsvd0;
	__le64	__rsvd[4];
};

#endif
