/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * fabrex character device, /dev/fabrex<N>: one for each local fabric port.
 *
 * Every ioctl takes a structure. Its first member, @size, is the size that user
 * space was compiled with. If the kernel's structure is longer, the missing
 * tail is taken as zero; if it is shorter, the excess must be zero (E2BIG
 * otherwise). Results are returned in members named out_*.
 *
 * EINVAL: unknown flags, or reserved fields or padding that are not zero.
 * ENOTTY: unknown ioctl. EOPNOTSUPP: this port does not support it;
 * fabrex_port_query.out_caps shows what a port supports. ENODEV: the port is
 * gone. EBADF: the file is not open for writing, so that only PORT_QUERY,
 * PEER_QUERY, COUNTERS and P2P_QUERY are allowed.
 *
 * Layouts are the same for 32-bit and 64-bit processes. Peer numbers have 32
 * bits here and 16 in ring entries; no fabric has more peers than that.
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
#define FABREX_PORT_EMULATED	(1u << 1) /* the switch is a software model */

/*
 * fabrex_port_query.out_caps: opcodes that the port's queues execute, and other
 * capabilities. If a bit is not set, the opcode completes with
 * FABREX_WC_BAD_OPCODE, or the ioctl fails with EOPNOTSUPP. Ignore unknown
 * bits.
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
 * @out_peer:        peer number of this port, by which others address it
 * @out_max_peers:   peer numbers are below this
 * @out_generation:  of this port; increases each time the port is enabled
 * @out_flags:       FABREX_PORT_*
 * @out_caps:        FABREX_CAP_*
 * @out_max_queues:  total number of queues of this port
 * @out_max_mrs:     total number of memory regions
 * @out_max_windows: total number of window slots
 * @out_max_sq:      largest submission ring, entries
 * @out_max_cq:      largest completion ring, entries
 * @out_max_rq:      largest receive ring, cells
 * @out_max_cell:    largest receive cell, bytes
 * @out_page_size:   page size of this machine; mappings begin and end at
 *                   multiples of it, and a doorbell page has this size
 * @out_window_slot_size: granularity of windows, bytes
 * @out_max_transfer: maximum length of an operation, bytes
 * @out_name:        name of the port in the fabric
 * @out_host:        name of its host
 * @out_fabric:      name of the fabric
 * @out_driver:      name of the backend
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
#define FABREX_PEER_BY_NAME	(1u << 0) /* look up @name instead of @peer */
#define FABREX_PEER_NEXT	(1u << 1) /* the first known peer >= @peer */

/* fabrex_peer_query.out_state */
#define FABREX_PEER_DOWN	0
#define FABREX_PEER_UP		1

/**
 * struct fabrex_peer_query - ioctl(FABREX_IOCTL_PEER_QUERY)
 * @size:           sizeof(struct fabrex_peer_query)
 * @flags:          FABREX_PEER_*
 * @peer:           requested peer number
 * @out_state:      FABREX_PEER_DOWN or _UP
 * @out_generation: of the peer; it differs after the peer has been down
 * @out_peer:       peer number found
 * @__reserved:     must be 0
 * @name:           with FABREX_PEER_BY_NAME: name of a port, or of a host (for
 *                  its first port), NUL terminated. Otherwise all 0
 * @out_name:       name of the port found
 * @out_host:       name of its host
 *
 * ENOENT: no such peer.
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

/* Access rights to a memory region. The owner can always read it. */
#define FABREX_ACCESS_LOCAL_WRITE	(1u << 0)
#define FABREX_ACCESS_REMOTE_READ	(1u << 1)
#define FABREX_ACCESS_REMOTE_WRITE	(1u << 2)
#define FABREX_ACCESS_REMOTE_ATOMIC	(1u << 3)

/* fabrex_mr_register.flags */
#define FABREX_MR_PEERS		(1u << 0) /* only peers in @peers have access */
#define FABREX_MR_DMABUF	(1u << 1) /* memory of dma-buf @fd, at @addr */
#define FABREX_MR_PIN		(1u << 2) /* DMABUF: ask exporter not to move it */
#define FABREX_MR_WATCH		(1u << 3) /* count changes in entry @watch */

#define FABREX_PEER_WORDS_MAX	1024u	/* fabrex_mr_register.npeers */

/**
 * struct fabrex_mr_register - ioctl(FABREX_IOCTL_MR_REGISTER)
 * @size:       sizeof(struct fabrex_mr_register)
 * @flags:      FABREX_MR_*
 * @addr:       address in the calling process; with FABREX_MR_DMABUF, byte
 *              offset into the dma-buf. Need not be aligned
 * @length:     bytes, not 0; need not be aligned
 * @access:     FABREX_ACCESS_*
 * @fd:         with FABREX_MR_DMABUF: a dma-buf; may be closed after the call.
 *              Otherwise 0
 * @peers:      with FABREX_MR_PEERS: address of @npeers words of 64 bits; bit
 *              n % 64 of word n / 64 allows peer n, which must exist. Otherwise
 *              0
 * @npeers:     with FABREX_MR_PEERS: number of words, at most
 *              FABREX_PEER_WORDS_MAX; 0 allows no peer. Otherwise 0
 * @watch:      with FABREX_MR_WATCH: entry of the file's watch page (see
 *              FABREX_IOCTL_WATCH). Otherwise 0
 * @out_key:    64-bit key, both lkey and rkey
 * @out_id:     object for FABREX_IOCTL_DESTROY
 * @__reserved: must be 0
 *
 * Memory of the process stays pinned, and charged to RLIMIT_MEMLOCK, until the
 * region is destroyed and all accesses have ended. The limit applies both to
 * what the process has pinned and to the total pinned through all files of the
 * same user. REMOTE_WRITE and REMOTE_ATOMIC require that the process itself may
 * write the memory. Queues of the same open file use the key as lkey; peers to
 * which the key has been sent use it as rkey, as far as @access and @peers
 * allow.
 *
 * A dma-buf is attached dynamically, with peer-to-peer allowed, and all of it
 * is charged to the quota of bytes. Its exporter may take the memory away at
 * any time: pending operations complete or fail first, and later ones fail with
 * LKEY or RKEY. If the memory has only moved, the region works again, with the
 * same key, as soon as it has been mapped at its new location. If it has been
 * revoked, FABREX_EVENT_MR_REVOKED is reported, and the region can only be
 * destroyed. With FABREX_MR_PIN the exporter is asked not to move the memory
 * (it can still revoke it), and the whole dma-buf is charged to RLIMIT_MEMLOCK.
 * A kernel that cannot attach dynamically always pins. Write access, local or
 * remote, needs a dma-buf that was opened for writing.
 *
 * EFAULT: not mapped or not writable; ENOMEM: RLIMIT_MEMLOCK or out of memory;
 * ENOSPC: the port has no free MR; EDQUOT: the user's quota of regions or
 * bytes, or a cgroup limit; EBADF: @fd is not open; EACCES: it is not open for
 * writing; EINVAL: it is not a dma-buf, or the range is outside of it. Other
 * errors for a dma-buf come from its exporter, for example EOPNOTSUPP if the
 * device cannot reach the memory; the kernel logs the reason, once for each
 * exporter and cause.
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
 * @cell_size:    size of a receive cell, power of two; 0 without @rq_entries
 * @eventfd:      signalled when a completion arrives while the queue is armed,
 *                or -1
 * @__reserved:   must be 0
 * @service:      0, or a number by which peers find this queue with
 *                FABREX_IOCTL_RESOLVE. EADDRINUSE if another queue of the port
 *                uses it; numbers below 1024 need CAP_NET_BIND_SERVICE
 * @out_id:       object for FABREX_IOCTL_DESTROY
 * @out_queue:    queue number, as receivers see it in fabrex_cqe.src_queue
 * @out_key:      unguessable; senders put it into fabrex_sqe.dest_key
 * @out_ring_mmap: mmap() offset of the rings; shared, read and write
 * @out_ring_size: bytes to map there
 * @out_db_mmap:  mmap() offset of the doorbell page; shared, write only or
 *                read and write
 * @out_ctrl_offset: byte offset of struct fabrex_qctrl in the mapping
 * @out_sq_offset: byte offset of the submission ring
 * @out_cq_offset: byte offset of the completion ring
 * @out_rq_offset: byte offset of the receive cells, 0 if there are none
 *
 * mmap offsets are cookies: valid for this open file only, and not reused while
 * it is open. When an object is destroyed or its port is gone, its mappings are
 * replaced by pages of zeroes that no device reads (ring memory keeps its
 * contents, with fabrex_qctrl.state DEAD).
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
 * @peer:       owner of the memory
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
 * EACCES: the peer refuses key, rights or range, and the next call is delayed;
 * EHOSTUNREACH: the peer is down; ENOSPC: no room in the aperture; EAGAIN: too
 * many wrong keys have been tried through this port, by any process.
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
 * Returns when the device no longer uses the object. Closing the file destroys
 * all its objects. ENOENT: this file has no such object.
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
 * @out_tx_bytes: payload bytes sent into the fabric. The names of the other
 *              counters say what they count
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
 * @service:    as passed to FABREX_IOCTL_QUEUE_CREATE at the peer
 * @out_key:    for fabrex_sqe.dest_key
 * @out_queue:  number of the queue
 * @__reserved: must be 0
 *
 * ENOENT: the peer does not offer the service; EHOSTUNREACH: it is down.
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
 * Creates the watch page of this open file: @entries counters of 32 bits, all
 * 0. A region that was registered with FABREX_MR_WATCH increments its counter
 * whenever it may have become stale, that is, may refer to other memory than
 * the addresses it was registered for: before munmap(), mremap(), madvise() or
 * mprotect() of any of them returns, when its dma-buf is moved or revoked, and
 * when the port is reset, which invalidates all keys.
 *
 * A registration cache thus reads one word of memory to find out whether an
 * entry is still valid. If it reads the word before it registers, it misses no
 * later change. Watching has no effect on pinning. Regions may share a counter.
 * EEXIST: the file already has a watch page; EINVAL: too many entries.
 * EOPNOTSUPP from MR_REGISTER: this kernel cannot watch memory of processes.
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
#define FABREX_P2P_REACHABLE	(1u << 1) /* and would map the memory */

/**
 * struct fabrex_p2p_query - ioctl(FABREX_IOCTL_P2P_QUERY)
 * @size:        sizeof(struct fabrex_p2p_query)
 * @flags:       must be 0
 * @domain:      PCI domain of the device whose memory is to be accessed
 * @devfn:       its bus number << 8 | device << 3 | function
 * @out_flags:   FABREX_P2P_*
 * @out_distance: with FABREX_P2P_REACHABLE: number of bridges on the path, up
 *               and down, 0 for the same function. Otherwise 0
 *
 * Reports whether the kernel would map the memory of a PCI device for this
 * port, but not why it would not; "fabrexctl p2p" does. ENOENT: no such device.
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
#define FABREX_EVENT_GONE	7	/* the port is gone; the last event */
#define FABREX_EVENT_LOST	8	/* events were dropped: query the state
					 * again; error: their number
					 */
#define FABREX_EVENT_MR_REVOKED	9	/* id of a region of this file, error */

/**
 * struct fabrex_event - read() from the device returns these
 * @size:       bytes of this record; the next one follows it
 * @type:       FABREX_EVENT_*; ignore unknown ones
 * @peer:       peer number, or 0
 * @generation: of the peer, or 0
 * @id:         object of this file, or 0
 * @error:      FABREX_QERR_*, FABREX_WC_*, an errno (MR_REVOKED) or a count,
 *              by type
 * @time_ns:    CLOCK_MONOTONIC
 * @seq:        number of events of this file so far, including dropped ones
 *
 * The kernel's records may be longer than the reader's structure: the next one
 * begins @size bytes later. read() returns whole records, with one exception:
 * if the first does not fit into the buffer, it is truncated, and its @size is
 * the number of bytes returned. So a read() of one structure always returns one
 * event, whichever version the reader was compiled with. A buffer of less than
 * FABREX_EVENT_SIZE_MIN bytes is refused with EINVAL.
 *
 * poll() reports EPOLLIN when there is an event, EPOLLHUP once the port is
 * gone. EAGAIN: no event, and the file is O_NONBLOCK.
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
