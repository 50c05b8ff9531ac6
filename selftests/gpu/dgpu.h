/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/dgpu<N>: one for each modelled GPU (include/draco/gpu.h), made by the
 * test module draco_gpu.ko in selftests/gpu/module. Shared by the module, by
 * tests and by test run times; not installed.
 *
 * Every ioctl takes a structure whose first member @size is what user space
 * was compiled with; flags and reserved members not known are EINVAL, an
 * unknown ioctl is ENOTTY, any after the GPU has gone is ENODEV. Handles are
 * numbers of one open file. Closing it frees all of its buffers, but for those
 * of which another file has a handle (SHARE, OPEN), too.
 */
#ifndef SELFTEST_DGPU_H
#define SELFTEST_DGPU_H

#include <linux/types.h>
#include <linux/ioctl.h>
#include <draco/gpu.h>

#define DGPU_TYPE	0xfb

enum {
	DGPU_CMD_INFO = 0x00,
	DGPU_CMD_ALLOC,
	DGPU_CMD_FREE,
	DGPU_CMD_EXPORT,
	DGPU_CMD_SUBMIT,
	DGPU_CMD_WAIT,
	DGPU_CMD_MOVE,
	DGPU_CMD_REVOKE,
	DGPU_CMD_BUFFER,
	DGPU_CMD_PEER,
	DGPU_CMD_SHARE,
	DGPU_CMD_OPEN,
};

#define DGPU_NAME_LEN	32

/* dgpu_info.out_flags */
#define DGPU_INFO_ENGINE	(1u << 0) /* SUBMIT works */
#define DGPU_INFO_P2PDMA	(1u << 1) /* the kernel has PCI_P2PDMA */
#define DGPU_INFO_FORCED	(1u << 2) /* loaded with without_p2pdma=1 */

/**
 * struct dgpu_info - ioctl(DGPU_IOCTL_INFO)
 * @size:         sizeof(struct dgpu_info)
 * @flags:        must be 0
 * @out_domain:   PCI domain
 * @out_devfn:    bus number << 8 | device << 3 | function
 * @out_vram:     bytes of memory
 * @out_free:     of those not allocated
 * @out_flags:    DGPU_INFO_*
 * @out_instance: register INSTANCE
 * @out_buffers:  buffers of all files, and those that only dma-bufs keep
 * @out_exports:  dma-bufs
 * @out_mappings: of dma-bufs by importers
 * @out_index:    the N of /dev/dgpu<N>
 * @out_name:     of the endpoint in the fabric
 * @out_mesh:     GPUs that have the same, not 0, are joined by a mesh
 * @out_mesh_number: in the mesh, from 1
 */
struct dgpu_info {
	__u32 size;
	__u32 flags;
	__u32 out_domain;
	__u32 out_devfn;
	__aligned_u64 out_vram;
	__aligned_u64 out_free;
	__u32 out_flags;
	__u32 out_instance;
	__u32 out_buffers;
	__u32 out_exports;
	__u32 out_mappings;
	__u32 out_index;
	__u8 out_name[DGPU_NAME_LEN];
	__u32 out_mesh;
	__u32 out_mesh_number;
};
#define DGPU_IOCTL_INFO	_IO(DGPU_TYPE, DGPU_CMD_INFO)

/* dgpu_alloc.flags */
#define DGPU_ALLOC_CLEAR	(1u << 0) /* zeroed by the engine; a fence says when */
#define DGPU_ALLOC_SCATTER	(1u << 1) /* in pieces of 64 KiB, never adjacent */

/**
 * struct dgpu_alloc - ioctl(DGPU_IOCTL_ALLOC)
 * @size:       sizeof(struct dgpu_alloc)
 * @flags:      DGPU_ALLOC_*
 * @length:     bytes, not 0; rounded up to pages
 * @align:      of the offset in VRAM, a power of two; 0 for one page
 * @out_mmap:   mmap() offset: shared, write-combining. Parts can be mapped
 * @out_handle: the buffer, not 0
 * @__reserved: must be 0
 *
 * ENOSPC: no VRAM left. Contents are as they were left unless CLEAR is given.
 */
struct dgpu_alloc {
	__u32 size;
	__u32 flags;
	__aligned_u64 length;
	__aligned_u64 align;
	__aligned_u64 out_mmap;
	__u32 out_handle;
	__u32 __reserved;
};
#define DGPU_IOCTL_ALLOC	_IO(DGPU_TYPE, DGPU_CMD_ALLOC)

/**
 * struct dgpu_handle - ioctl(DGPU_IOCTL_FREE) and ioctl(DGPU_IOCTL_REVOKE)
 * @size:   sizeof(struct dgpu_handle)
 * @handle: a buffer
 *
 * Both take the memory away from all dma-bufs of the buffer, for good, and
 * return when nobody has it mapped for DMA any more. Mappings of processes
 * fault (SIGBUS) afterwards. FREE makes the handle invalid, too; while other
 * files have handles of the buffer, it does nothing else.
 * ENOENT: no such buffer.
 */
struct dgpu_handle {
	__u32 size;
	__u32 handle;
};
#define DGPU_IOCTL_FREE		_IO(DGPU_TYPE, DGPU_CMD_FREE)
#define DGPU_IOCTL_REVOKE	_IO(DGPU_TYPE, DGPU_CMD_REVOKE)

/* dgpu_export.flags */
#define DGPU_EXPORT_READ_ONLY	(1u << 0) /* the file is not open for writing */

/**
 * struct dgpu_export - ioctl(DGPU_IOCTL_EXPORT)
 * @size:   sizeof(struct dgpu_export)
 * @flags:  DGPU_EXPORT_*
 * @handle: a buffer
 * @out_fd: a new dma-buf, close-on-exec
 * @offset: first byte, of a page
 * @length: bytes, whole pages; 0 for the rest of the buffer
 *
 * ENODEV: it is revoked.
 */
struct dgpu_export {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__s32 out_fd;
	__aligned_u64 offset;
	__aligned_u64 length;
};
#define DGPU_IOCTL_EXPORT	_IO(DGPU_TYPE, DGPU_CMD_EXPORT)

/**
 * struct dgpu_cmd - one engine command
 * @op:       DRACO_GPU_*
 * @type:     of REDUCE, else 0
 * @function: of REDUCE, else 0
 * @status:   DRACO_GPU_DONE or the engine's error, written when it has waited
 * @dst:      buffer written to, 0 if none
 * @src0:     buffer read, 0 if none
 * @src1:     likewise
 * @dst_offset:  into @dst
 * @src0_offset: into @src0
 * @src1_offset: into @src1, or FILL's pattern
 * @length:   bytes
 * @result:   CRC32C, written when it has waited
 *
 * In scattered buffers CRC32C must stay inside one piece, and COPY must not
 * overlap.
 */
struct dgpu_cmd {
	__u8 op;
	__u8 type;
	__u8 function;
	__u8 status;
	__u32 dst;
	__u32 src0;
	__u32 src1;
	__aligned_u64 dst_offset;
	__aligned_u64 src0_offset;
	__aligned_u64 src1_offset;
	__aligned_u64 length;
	__aligned_u64 result;
};

#define DGPU_MAX_CMDS	256

/* dgpu_submit.flags */
#define DGPU_SUBMIT_ASYNC	(1u << 0) /* do not wait; fences are in the dma-bufs */

/**
 * struct dgpu_submit - ioctl(DGPU_IOCTL_SUBMIT)
 * @size:     sizeof(struct dgpu_submit)
 * @flags:    DGPU_SUBMIT_*
 * @cmds:     address of struct dgpu_cmd[]
 * @count:    of them, 1 to DGPU_MAX_CMDS
 * @delay_ms: the engine idles that long before it begins, at most 10000: a
 *            long computation
 * @out_seq:  for DGPU_IOCTL_WAIT
 *
 * Jobs of one GPU find what those before them have left, as if they were executed
 * in order; but short ones without a delay do not wait for those that write to
 * peers. Each puts a fence into the dma-bufs of its buffers: a writer's into @dst,
 * a reader's into the sources. Jobs of other GPUs that still use these buffers
 * (PEER) are waited for first, whatever @flags say. Buffers in system memory are
 * moved back to VRAM first (EBUSY if they are pinned).
 * EIO: a command failed, see their status; EINTR: not waited to the end;
 * ENODEV: a buffer is revoked, or the GPU went away meanwhile.
 */
struct dgpu_submit {
	__u32 size;
	__u32 flags;
	__aligned_u64 cmds;
	__u32 count;
	__u32 delay_ms;
	__aligned_u64 out_seq;
};
#define DGPU_IOCTL_SUBMIT	_IO(DGPU_TYPE, DGPU_CMD_SUBMIT)

/**
 * struct dgpu_wait - ioctl(DGPU_IOCTL_WAIT)
 * @size:       sizeof(struct dgpu_wait)
 * @timeout_ms: at most; ETIMEDOUT
 * @seq:        all jobs up to this one are to be finished
 */
struct dgpu_wait {
	__u32 size;
	__u32 timeout_ms;
	__aligned_u64 seq;
};
#define DGPU_IOCTL_WAIT		_IO(DGPU_TYPE, DGPU_CMD_WAIT)

/* Where a buffer is: dgpu_move.place, dgpu_buffer.out_place */
#define DGPU_PLACE_NONE		0	/* revoked */
#define DGPU_PLACE_VRAM		1
#define DGPU_PLACE_SYSTEM	2

/**
 * struct dgpu_move - ioctl(DGPU_IOCTL_MOVE)
 * @size:   sizeof(struct dgpu_move)
 * @handle: a buffer
 * @place:  DGPU_PLACE_VRAM: another place in VRAM; DGPU_PLACE_SYSTEM
 * @__reserved: must be 0
 *
 * What an eviction does: waits for fences, invalidates all mappings, moves the
 * bytes. EBUSY: it is pinned; ENOSPC, ENOMEM: no room there.
 */
struct dgpu_move {
	__u32 size;
	__u32 handle;
	__u32 place;
	__u32 __reserved;
};
#define DGPU_IOCTL_MOVE		_IO(DGPU_TYPE, DGPU_CMD_MOVE)

/**
 * struct dgpu_buffer - ioctl(DGPU_IOCTL_BUFFER)
 * @size:         sizeof(struct dgpu_buffer)
 * @handle:       a buffer
 * @out_length:   bytes
 * @out_offset:   of its first byte in VRAM, if it is there
 * @out_place:    DGPU_PLACE_*
 * @out_pins:     by importers
 * @out_exports:  dma-bufs of it
 * @out_mappings: of those by importers
 * @out_maps:     so often has it been mapped in all
 * @out_moves:    and moved
 */
struct dgpu_buffer {
	__u32 size;
	__u32 handle;
	__aligned_u64 out_length;
	__aligned_u64 out_offset;
	__u32 out_place;
	__u32 out_pins;
	__u32 out_exports;
	__u32 out_mappings;
	__aligned_u64 out_maps;
	__aligned_u64 out_moves;
};
#define DGPU_IOCTL_BUFFER	_IO(DGPU_TYPE, DGPU_CMD_BUFFER)

/* dgpu_peer.flags */
#define DGPU_PEER_WRITE		(1u << 0) /* from @own to @handle, else back */
#define DGPU_PEER_UNORDERED	(1u << 1) /* against jobs of other GPUs */

/**
 * struct dgpu_peer - ioctl(DGPU_IOCTL_PEER)
 * @size:        sizeof(struct dgpu_peer)
 * @flags:       DGPU_PEER_*
 * @fd:          /dev/dgpu<N> of another GPU
 * @handle:      a buffer of that file
 * @own:         a buffer of this file
 * @__reserved:  must be 0
 * @peer_offset: into @handle
 * @own_offset:  into @own
 * @length:      bytes, not 0
 *
 * The engine of this GPU copies over the mesh, in order with its other jobs and
 * after the jobs of other GPUs that use the two buffers. UNORDERED: they neither
 * wait for it nor it for them, as with memory that HIP and CUDA open by a handle.
 * Jobs that only write to peers may overlap; they end in order. The call waits
 * for its job.
 * EBADF: @fd is not open; EINVAL: it is not a GPU's, or a range is not inside
 * its buffer; ENOENT: no such buffer; EXDEV: no link of a mesh joins the two
 * GPUs; ENODEV: one of them is gone, or a buffer is revoked; EIO: the other one
 * went away meanwhile; EINTR: not waited to the end; otherwise as SUBMIT.
 */
struct dgpu_peer {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 handle;
	__u32 own;
	__u32 __reserved;
	__aligned_u64 peer_offset;
	__aligned_u64 own_offset;
	__aligned_u64 length;
};
#define DGPU_IOCTL_PEER		_IO(DGPU_TYPE, DGPU_CMD_PEER)

/**
 * struct dgpu_share - ioctl(DGPU_IOCTL_SHARE)
 * @size:      sizeof(struct dgpu_share)
 * @handle:    a buffer
 * @out_name:  by which other files of this GPU open it; random, not 0, and the
 *             same whenever it is asked for
 * @out_users: handles of it, this one included
 * @__reserved: must be 0
 */
struct dgpu_share {
	__u32 size;
	__u32 handle;
	__aligned_u64 out_name;
	__u32 out_users;
	__u32 __reserved;
};
#define DGPU_IOCTL_SHARE	_IO(DGPU_TYPE, DGPU_CMD_SHARE)

/**
 * struct dgpu_open - ioctl(DGPU_IOCTL_OPEN)
 * @size:       sizeof(struct dgpu_open)
 * @flags:      must be 0
 * @name:       of a buffer that was shared
 * @out_mmap:   as in struct dgpu_alloc
 * @out_length: bytes
 * @out_handle: another handle of the buffer
 * @__reserved: must be 0
 *
 * ENOENT: no buffer of this GPU has that name, or its last handle is gone;
 * EXDEV: it was made through another device node.
 */
struct dgpu_open {
	__u32 size;
	__u32 flags;
	__aligned_u64 name;
	__aligned_u64 out_mmap;
	__aligned_u64 out_length;
	__u32 out_handle;
	__u32 __reserved;
};
#define DGPU_IOCTL_OPEN		_IO(DGPU_TYPE, DGPU_CMD_OPEN)

#endif
