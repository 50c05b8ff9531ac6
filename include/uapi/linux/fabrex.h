/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * fabrex character device, /dev/fabrex<N>: one for each local fabric port.
 *
 * Every ioctl takes a structure whose first member @size is what user space
 * was compiled with. A kernel that knows a longer one treats the missing tail
 * as zero; one that knows a shorter one accepts the tail only if it is zero
 * (E2BIG otherwise). Unknown flags, and reserved fields or padding that are
 * not zero, are refused with EINVAL; an unknown ioctl with ENOTTY; one that
 * this port cannot do with EOPNOTSUPP; any after the port has gone with
 * ENODEV. Which operations a port has is said by fabrex_port_query.out_caps.
 * On a file that is not open for writing PORT_QUERY, PEER_QUERY,
 * COUNTERS and P2P_QUERY work, the others are EBADF. Results are in members
 * named out_*.
 * Layouts are the same for 32-bit and 64-bit processes. Peers are numbered with
 * 32 bits here; entries of a ring have room for 16, and no fabric has more.
 */
#ifndef _UAPI_LINUX_FABREX_H
#define _UAPI_LINUX_FABREX_H

#include <linux/types.h>
#include <linux/ioctl.h>
#include <linux/fabrex_ring.h>

#define FABREX_TYPE	0xfa

enum {
	FABREX_CMD_BASE = 0x00,
	FABREX_CMD_PORT_QUERY = FABREX_CMD_BASE,
	FABREX_CMD_PEER_QUERY,
	FABREX_CMD_MR_REGISTER,
	FABREX_CMD_QUEUE_CREATE,
	FABREX_CMD_WINDOW_CREATE,
	FABREX_CMD_DESTROY,
	FABREX_CMD_COUNTERS,
	FABREX_CMD_RESOLVE,
	FABREX_CMD_WATCH,
	FABREX_CMD_P2P_QUERY,
};

#define FABREX_NAME_LEN	32

/* fabrex_port_query.out_flags */
#define FABREX_PORT_LINK_UP	(1u << 0)
#define FABREX_PORT_EMULATED	(1u << 1) /* hardware below is a software model */

/*
 * fabrex_port_query.out_caps: opcodes that queues of the port execute, and what
 * else it can do. What is not there fails with FABREX_WC_BAD_OPCODE, and with
 * EOPNOTSUPP; unknown bits are to be ignored.
 */
#define FABREX_CAP_OP(opcode)	(1ull << (opcode)) /* FABREX_OP_*, below 32 */
#define FABREX_CAP_CHECK	(1ull << 32) /* FABREX_SQE_CHECK */
#define FABREX_CAP_SERVICE	(1ull << 33) /* services, RESOLVE */
#define FABREX_CAP_WINDOW	(1ull << 34) /* WINDOW_CREATE */
#define FABREX_CAP_DMABUF	(1ull << 35) /* FABREX_MR_DMABUF */
#define FABREX_CAP_WATCH	(1ull << 36) /* FABREX_MR_WATCH, of any memory */

/**
 * struct fabrex_port_query - ioctl(FABREX_IOCTL_PORT_QUERY)
 * @size:            sizeof(struct fabrex_port_query)
 * @flags:           must be 0
 * @out_peer:        peer number of this port; what others put in an sqe
 * @out_max_peers:   peer numbers are below this
 * @out_generation:  of this port, increases each time it is enabled
 * @out_flags:       FABREX_PORT_*
 * @out_caps:        FABREX_CAP_*
 * @out_max_queues:  queues that this port has in all
 * @out_max_mrs:     memory regions likewise
 * @out_max_windows: window slots likewise
 * @out_max_sq:      largest submission ring, entries
 * @out_max_cq:      largest completion ring, entries
 * @out_max_rq:      largest receive ring, cells
 * @out_max_cell:    largest receive cell, bytes
 * @out_page_size:   of this machine; what is mapped begins and ends at a
 *                   multiple of it, a doorbell page has this size
 * @out_window_slot_size: granularity of windows, bytes
 * @out_max_transfer: bytes that one operation may move
 * @out_name:        name of the port in the fabric
 * @out_host:        name of its host
 * @out_fabric:      name of the fabric
 * @out_driver:      name of the backend below
 */
struct fabrex_port_query {
	__u32 size;
	__u32 flags;
	__u32 out_peer;
	__u32 out_max_peers;
	__u32 out_generation;
	__u32 out_flags;
	__aligned_u64 out_caps;
	__u32 out_max_queues;
	__u32 out_max_mrs;
	__u32 out_max_windows;
	__u32 out_max_sq;
	__u32 out_max_cq;
	__u32 out_max_rq;
	__u32 out_max_cell;
	__u32 out_page_size;
	__aligned_u64 out_window_slot_size;
	__aligned_u64 out_max_transfer;
	__u8 out_name[FABREX_NAME_LEN];
	__u8 out_host[FABREX_NAME_LEN];
	__u8 out_fabric[FABREX_NAME_LEN];
	__u8 out_driver[FABREX_NAME_LEN];
};
#define FABREX_IOCTL_PORT_QUERY _IO(FABREX_TYPE, FABREX_CMD_PORT_QUERY)

/* fabrex_peer_query.flags */
#define FABREX_PEER_BY_NAME	(1u << 0) /* look @name up instead of @peer */
#define FABREX_PEER_NEXT	(1u << 1) /* first known peer >= @peer */

/* fabrex_peer_query.out_state */
#define FABREX_PEER_DOWN	0
#define FABREX_PEER_UP		1

/**
 * struct fabrex_peer_query - ioctl(FABREX_IOCTL_PEER_QUERY)
 * @size:           sizeof(struct fabrex_peer_query)
 * @flags:          FABREX_PEER_*
 * @peer:           peer number asked for
 * @out_state:      FABREX_PEER_DOWN or _UP
 * @out_generation: of the peer; another value means it has been away
 * @out_peer:       peer number found
 * @__reserved:     must be 0
 * @name:           name of a port or (its first port) of a host; NUL
 *                  terminated. All 0 without FABREX_PEER_BY_NAME
 * @out_name:       name of the port found
 * @out_host:       name of its host
 *
 * ENOENT if there is none.
 */
struct fabrex_peer_query {
	__u32 size;
	__u32 flags;
	__u32 peer;
	__u32 out_state;
	__u32 out_generation;
	__u32 out_peer;
	__aligned_u64 __reserved;
	__u8 name[FABREX_NAME_LEN];
	__u8 out_name[FABREX_NAME_LEN];
	__u8 out_host[FABREX_NAME_LEN];
};
#define FABREX_IOCTL_PEER_QUERY _IO(FABREX_TYPE, FABREX_CMD_PEER_QUERY)

/* Access rights of a memory region. The owner can always read it. */
#define FABREX_ACCESS_LOCAL_WRITE	(1u << 0)
#define FABREX_ACCESS_REMOTE_READ	(1u << 1)
#define FABREX_ACCESS_REMOTE_WRITE	(1u << 2)
#define FABREX_ACCESS_REMOTE_ATOMIC	(1u << 3)

/* fabrex_mr_register.flags */
#define FABREX_MR_PEERS		(1u << 0) /* only peers in @peers have access */
#define FABREX_MR_DMABUF	(1u << 1) /* of the dma-buf @fd, from @addr on */
#define FABREX_MR_PIN		(1u << 2) /* DMABUF: it has to stay in place */
#define FABREX_MR_WATCH		(1u << 3) /* count changes in entry @watch */

#define FABREX_PEER_WORDS_MAX	1024u	/* fabrex_mr_register.npeers */

/**
 * struct fabrex_mr_register - ioctl(FABREX_IOCTL_MR_REGISTER)
 * @size:       sizeof(struct fabrex_mr_register)
 * @flags:      FABREX_MR_*
 * @addr:       address in the calling process; with FABREX_MR_DMABUF an offset
 *              into the dma-buf, in bytes, which need not be aligned
 * @length:     bytes, not 0; need not be aligned
 * @access:     FABREX_ACCESS_*
 * @fd:         with FABREX_MR_DMABUF: a dma-buf; it can be closed afterwards.
 *              Otherwise 0
 * @peers:      with FABREX_MR_PEERS: address of @npeers words of 64 bits; bit
 *              n % 64 of word n / 64 allows peer n, which must exist. Otherwise
 *              0
 * @npeers:     with FABREX_MR_PEERS: words, at most FABREX_PEER_WORDS_MAX; none
 *              for nobody. Otherwise 0
 * @watch:      with FABREX_MR_WATCH: entry of the file's watch page (see
 *              FABREX_IOCTL_WATCH). Otherwise 0
 * @out_key:    64-bit key, both lkey and rkey
 * @out_id:     object for FABREX_IOCTL_DESTROY
 * @__reserved: must be 0
 *
 * Memory of the process stays pinned and charged to RLIMIT_MEMLOCK until it is
 * destroyed and all accesses have ended. The limit applies both to what
 * the process has pinned and to the total pinned through all files of the same
 * user. REMOTE_WRITE and REMOTE_ATOMIC imply that the process could write the
 * memory itself. The key is valid for queues
 * of the same open file as lkey, and as rkey for whoever is told it, within
 * @access and @peers.
 *
 * A dma-buf is attached dynamically, peer to peer allowed. The whole of it is
 * charged to the quota of bytes. Its exporter may take the memory away at any time: operations under
 * way finish or fail before it has, later ones fail with LKEY or RKEY. If it
 * merely moved, the region works again once it has been mapped at the new
 * place, with the same key. If it is gone for good, FABREX_EVENT_MR_REVOKED
 * says so, and the region can only be destroyed. With FABREX_MR_PIN the
 * exporter is asked to keep it in place, so that only revocation remains, and
 * the whole dma-buf is charged to RLIMIT_MEMLOCK.
 * A kernel that cannot attach dynamically pins in any case. Writing, local or
 * remote, needs a dma-buf that was opened for writing.
 *
 * EFAULT: not mapped or not writable; ENOMEM: RLIMIT_MEMLOCK or memory;
 * ENOSPC: no MR left in the port; EDQUOT: the user's quota of regions or bytes,
 * or a limit of the cgroup; EBADF: @fd is not
 * open, EACCES: it is not open for writing, EINVAL: it is no dma-buf, or
 * the range is not inside it. Else, for a dma-buf, what its exporter said,
 * EOPNOTSUPP for example if the device cannot reach it; the kernel log has the
 * reason, once for each exporter and cause.
 */
struct fabrex_mr_register {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 access;
	__s32 fd;
	__aligned_u64 peers;
	__u32 npeers;
	__u32 watch;
	__aligned_u64 out_key;
	__u32 out_id;
	__u32 __reserved;
};
#define FABREX_IOCTL_MR_REGISTER _IO(FABREX_TYPE, FABREX_CMD_MR_REGISTER)

/**
 * struct fabrex_queue_create - ioctl(FABREX_IOCTL_QUEUE_CREATE)
 * @size:         sizeof(struct fabrex_queue_create)
 * @flags:        must be 0
 * @sq_entries:   power of two within the port's limits
 * @cq_entries:   power of two, at least sq_entries + rq_entries
 * @rq_entries:   power of two, or 0 for a queue that receives nothing
 * @cell_size:    bytes of a receive cell, power of two; 0 if no rq_entries
 * @eventfd:      signalled when armed and a completion arrives, or -1
 * @__reserved:   must be 0
 * @service:      0, or a number under which peers find this queue with
 *                FABREX_IOCTL_RESOLVE. EADDRINUSE if another queue of the port
 *                has it; numbers below 1024 need CAP_NET_BIND_SERVICE
 * @out_id:       object for FABREX_IOCTL_DESTROY
 * @out_queue:    queue number, which others see in fabrex_cqe.src_queue
 * @out_key:      unguessable, for fabrex_sqe.dest_key of others
 * @out_ring_mmap: mmap() offset of the rings; shared, read and write
 * @out_ring_size: bytes to map there
 * @out_db_mmap:  mmap() offset of the doorbell page; shared, write only or
 *                read and write
 * @out_ctrl_offset: struct fabrex_qctrl, bytes from the start of the mapping
 * @out_sq_offset: submission ring likewise
 * @out_cq_offset: completion ring likewise
 * @out_rq_offset: receive cells likewise, 0 if there are none
 *
 * mmap offsets are cookies: valid for this open file only, never reused while
 * it is open. Mappings of destroyed objects and of ports that have gone turn
 * into pages of zeroes that nobody reads (ring memory stays as it was, with
 * fabrex_qctrl.state DEAD).
 */
struct fabrex_queue_create {
	__u32 size;
	__u32 flags;
	__u32 sq_entries;
	__u32 cq_entries;
	__u32 rq_entries;
	__u32 cell_size;
	__s32 eventfd;
	__u32 __reserved;
	__aligned_u64 service;
	__u32 out_id;
	__u32 out_queue;
	__aligned_u64 out_key;
	__aligned_u64 out_ring_mmap;
	__aligned_u64 out_ring_size;
	__aligned_u64 out_db_mmap;
	__u32 out_ctrl_offset;
	__u32 out_sq_offset;
	__u32 out_cq_offset;
	__u32 out_rq_offset;
};
#define FABREX_IOCTL_QUEUE_CREATE _IO(FABREX_TYPE, FABREX_CMD_QUEUE_CREATE)

/**
 * struct fabrex_window_create - ioctl(FABREX_IOCTL_WINDOW_CREATE)
 * @size:       sizeof(struct fabrex_window_create)
 * @flags:      must be 0
 * @peer:       whose memory
 * @access:     FABREX_ACCESS_REMOTE_READ and/or _REMOTE_WRITE
 * @rkey:       key of the peer's region
 * @offset:     into the region, multiple of 4096
 * @length:     bytes, not 0
 * @out_mmap:   mmap() offset; shared; PROT_READ needs REMOTE_READ, PROT_WRITE
 *              needs REMOTE_WRITE. Mapped write-combining
 * @out_length: bytes to map, @length rounded up to the page size; accesses
 *              past @length are dropped
 * @out_id:     object for FABREX_IOCTL_DESTROY
 * @__reserved: must be 0
 *
 * EACCES: the peer refuses key, rights or range; the next call waits a while;
 * EHOSTUNREACH: the peer is down; ENOSPC: no room in the aperture; EAGAIN:
 * too many wrong keys were tried through this port, by whomever.
 */
struct fabrex_window_create {
	__u32 size;
	__u32 flags;
	__u32 peer;
	__u32 access;
	__aligned_u64 rkey;
	__aligned_u64 offset;
	__aligned_u64 length;
	__aligned_u64 out_mmap;
	__aligned_u64 out_length;
	__u32 out_id;
	__u32 __reserved;
};
#define FABREX_IOCTL_WINDOW_CREATE _IO(FABREX_TYPE, FABREX_CMD_WINDOW_CREATE)

/**
 * struct fabrex_destroy - ioctl(FABREX_IOCTL_DESTROY)
 * @size:       sizeof(struct fabrex_destroy)
 * @id:         memory region, queue or window of this open file
 *
 * Returns when the device has stopped using it. Closing the file destroys
 * everything that it owns. ENOENT: no such object here.
 */
struct fabrex_destroy {
	__u32 size;
	__u32 id;
};
#define FABREX_IOCTL_DESTROY _IO(FABREX_TYPE, FABREX_CMD_DESTROY)

/**
 * struct fabrex_counters - ioctl(FABREX_IOCTL_COUNTERS)
 * @size:       sizeof(struct fabrex_counters)
 * @id:         a queue of this open file, or 0 for the whole port
 * @out_tx_bytes: payload sent into the fabric; and so on as named
 */
struct fabrex_counters {
	__u32 size;
	__u32 id;
	__aligned_u64 out_tx_bytes;
	__aligned_u64 out_rx_bytes;
	__aligned_u64 out_tx_ops;
	__aligned_u64 out_rx_ops;
	__aligned_u64 out_errors;
	__aligned_u64 out_p2p_bytes;
	__aligned_u64 out_host_bytes;
	__aligned_u64 out_window_reads;
	__aligned_u64 out_window_writes;
	__aligned_u64 out_doorbells;
	__aligned_u64 out_link_downs;
	__aligned_u64 out_crc_errors;
	__aligned_u64 out_interrupts;
};
#define FABREX_IOCTL_COUNTERS _IO(FABREX_TYPE, FABREX_CMD_COUNTERS)

/**
 * struct fabrex_resolve - ioctl(FABREX_IOCTL_RESOLVE)
 * @size:       sizeof(struct fabrex_resolve)
 * @peer:       peer number
 * @service:    as given to FABREX_IOCTL_QUEUE_CREATE there
 * @out_key:    for fabrex_sqe.dest_key
 * @out_queue:  number of the queue
 * @__reserved: must be 0
 *
 * ENOENT: nobody there offers the service; EHOSTUNREACH: the peer is down.
 */
struct fabrex_resolve {
	__u32 size;
	__u32 peer;
	__aligned_u64 service;
	__aligned_u64 out_key;
	__u32 out_queue;
	__u32 __reserved;
};
#define FABREX_IOCTL_RESOLVE _IO(FABREX_TYPE, FABREX_CMD_RESOLVE)

/**
 * struct fabrex_watch - ioctl(FABREX_IOCTL_WATCH)
 * @size:       sizeof(struct fabrex_watch)
 * @flags:      must be 0
 * @entries:    1 to 65536
 * @__reserved: must be 0
 * @out_mmap:   mmap() offset; shared, read only
 * @out_length: bytes to map
 *
 * Makes the watch page of this open file: @entries counters of 32 bits, all 0.
 * A region that was registered with FABREX_MR_WATCH counts its entry up
 * whenever what it was registered for and what it reaches may differ: before
 * munmap(), mremap(), madvise() or mprotect() of any of its addresses returns,
 * when its dma-buf is moved or revoked, and when the port is reset, after which
 * no key of before works. So a cache of registrations looks at
 * one word in memory to know whether one of its own is still good: it reads the
 * word before it registers, and nothing that happens later is missed. What is
 * registered stays pinned whatever its counter says. Regions may share an
 * entry. One for each open file: EEXIST; too many: EINVAL. EOPNOTSUPP from
 * MR_REGISTER: this kernel cannot watch memory of processes.
 */
struct fabrex_watch {
	__u32 size;
	__u32 flags;
	__u32 entries;
	__u32 __reserved;
	__aligned_u64 out_mmap;
	__aligned_u64 out_length;
};
#define FABREX_IOCTL_WATCH _IO(FABREX_TYPE, FABREX_CMD_WATCH)

/* fabrex_p2p_query.out_flags */
#define FABREX_P2P_KERNEL	(1u << 0) /* this kernel has PCI_P2PDMA */
#define FABREX_P2P_REACHABLE	(1u << 1) /* and would map one for the other */

/**
 * struct fabrex_p2p_query - ioctl(FABREX_IOCTL_P2P_QUERY)
 * @size:        sizeof(struct fabrex_p2p_query)
 * @flags:       must be 0
 * @domain:      PCI domain of the device whose memory is to be reached
 * @devfn:       its bus number << 8 | device << 3 | function
 * @out_flags:   FABREX_P2P_*
 * @out_distance: with FABREX_P2P_REACHABLE: bridges on the way, both ways
 *               counted, 0 for the same function; else 0
 *
 * What the kernel would say if the memory of a PCI device were to be mapped
 * for this port. It knows of no reason; "fabrexctl p2p" finds it.
 * ENOENT: there is no such device.
 */
struct fabrex_p2p_query {
	__u32 size;
	__u32 flags;
	__u32 domain;
	__u32 devfn;
	__u32 out_flags;
	__u32 out_distance;
};
#define FABREX_IOCTL_P2P_QUERY _IO(FABREX_TYPE, FABREX_CMD_P2P_QUERY)

/* fabrex_event.type */
#define FABREX_EVENT_LINK_UP	1	/* of this port */
#define FABREX_EVENT_LINK_DOWN	2
#define FABREX_EVENT_PEER_UP	3	/* peer, generation */
#define FABREX_EVENT_PEER_DOWN	4	/* peer, generation */
#define FABREX_EVENT_QUEUE_ERROR 5	/* id of a queue of this file, error */
#define FABREX_EVENT_WINDOW_FAULT 6	/* id of a window of this file, error */
#define FABREX_EVENT_GONE	7	/* the port is gone, nothing follows */
#define FABREX_EVENT_LOST	8	/* error: events dropped, ask again */
#define FABREX_EVENT_MR_REVOKED	9	/* id of a region of this file, error */

/**
 * struct fabrex_event - read() from the device returns these
 * @size:       bytes of this record; the next one begins behind it
 * @type:       FABREX_EVENT_*; unknown ones are to be ignored
 * @peer:       peer number, or 0
 * @generation: of the peer, or 0
 * @id:         object of this file, or 0
 * @error:      FABREX_QERR_*, FABREX_WC_*, an errno (MR_REVOKED) or a count,
 *              by type
 * @time_ns:    CLOCK_MONOTONIC
 * @seq:        events of this file so far, with this one and lost ones
 *
 * A kernel may know more members than the reader, which finds the next record
 * by the @size of this one. Records are whole; only the first that a read()
 * returns is cut to fit into the buffer if it has room for
 * FABREX_EVENT_SIZE_MIN bytes at least, and its @size is then what is there. So
 * a reader of one structure, whichever it was compiled with, always gets one.
 *
 * poll() reports EPOLLIN when there is one, EPOLLHUP once the port has gone.
 * A smaller buffer is EINVAL; no event and O_NONBLOCK is EAGAIN.
 */
struct fabrex_event {
	__u32 size;
	__u32 type;
	__u32 peer;
	__u32 generation;
	__u32 id;
	__u32 error;
	__aligned_u64 time_ns;
	__aligned_u64 seq;
};
#define FABREX_EVENT_SIZE_MIN	32u	/* up to time_ns */

#endif
