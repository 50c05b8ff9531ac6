/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * The emulated GPU: registers and command ring of endpoint 0xda10, shared by
 * draco-emu and the test driver. Normative text: docs/gpu.md.
 * All fields are little-endian.
 */
#ifndef DRACO_GPU_H
#define DRACO_GPU_H

#include <linux/types.h>

#define DRACO_PCI_DEVICE_GPU	0xda10

/* BAR 0: registers; BAR 2: VRAM, 64-bit, prefetchable, resizable. */
#define DRACO_GPU_BAR_REGS	0
#define DRACO_GPU_BAR_VRAM	2

/* BAR 0, identity: common to all emulated endpoints; read-only except SCRATCH. */
#define DRACO_EPR_MAGIC		0x0000	/* "DREP" */
#define DRACO_EPR_KIND		0x0004	/* DRACO_EP_* */
#define DRACO_EPR_INSTANCE	0x0008	/* new at every binding */
#define DRACO_EPR_SCRATCH	0x000c
#define DRACO_EPR_SIZE		0x0010	/* 64 bits: bytes of memory */
#define DRACO_EPR_NAME		0x0020	/* 32 bytes */
#define DRACO_EPR_MAGIC_VALUE	0x50455244u

/*
 * BAR 0, engine. The ring is in VRAM: RING_SIZE entries (a power of two, 8 to
 * 4096) of struct draco_gpu_cmd at offset RING_BASE (64-byte aligned). Indices
 * are free-running 32-bit counts. The host writes entries, then TAIL; the
 * engine executes them in order, writes result and status of the entry, then
 * increments HEAD. If TAIL is more than RING_SIZE ahead of HEAD, or the ring is
 * outside VRAM, the state is FATAL until 0 is written to ENABLE.
 */
#define DRACO_GPU_CTRL		0x1000	/* RW: DRACO_GPU_CTRL_* */
#define DRACO_GPU_STATUS	0x1004	/* RO: DRACO_GPU_STATUS_* */
#define DRACO_GPU_RING_BASE	0x1008	/* RW, 64 bits, while disabled */
#define DRACO_GPU_RING_SIZE	0x1010	/* RW, while disabled */
#define DRACO_GPU_TAIL		0x1014	/* WO */
#define DRACO_GPU_HEAD		0x1018	/* RO */

/*
 * BAR 0, mesh: links to other GPUs of the appliance. Two GPUs with the same
 * MESH_ID that is not 0 are joined by a link.
 */
#define DRACO_GPU_MESH_ID	0x1020	/* RO: of the mesh; 0: in none */
#define DRACO_GPU_MESH_NUMBER	0x1024	/* RO: its own, from 1 */
#define DRACO_GPU_MESH_SIZE	0x1028	/* RO: GPUs in the mesh, bound or not */

#define DRACO_GPU_CTRL_ENABLE	(1u << 0)

#define DRACO_GPU_STATUS_READY	(1u << 0)
#define DRACO_GPU_STATUS_BUSY	(1u << 1)	/* a command is in progress */
#define DRACO_GPU_STATUS_FATAL	(1u << 2)

/* Operations: byte ranges of VRAM; addresses are offsets into VRAM. */
#define DRACO_GPU_NOP		0x00
#define DRACO_GPU_FILL		0x01	/* dst := 64-bit pattern @src1, repeated */
#define DRACO_GPU_COPY		0x02	/* dst := src0; as memmove */
#define DRACO_GPU_REDUCE	0x03	/* dst := src0 @function src1, by @type */
#define DRACO_GPU_CRC32C	0x04	/* result := CRC32C of src0 */
#define DRACO_GPU_PEER_READ	0x05	/* dst := src0 of @peer */
#define DRACO_GPU_PEER_WRITE	0x06	/* dst of @peer := src0 */

/* draco_gpu_cmd.type. fp16 and bf16 are computed in fp32 and rounded to nearest
 * even once for each element; int32 wraps around.
 */
#define DRACO_GPU_FP32		0
#define DRACO_GPU_FP16		1
#define DRACO_GPU_BF16		2
#define DRACO_GPU_INT32		3

/* draco_gpu_cmd.function. MIN and MAX of a NaN and a number are the number. */
#define DRACO_GPU_SUM		0
#define DRACO_GPU_PROD		1
#define DRACO_GPU_MIN		2
#define DRACO_GPU_MAX		3

/* draco_gpu_cmd.status, written by the engine */
#define DRACO_GPU_PENDING	0	/* as the host must write it */
#define DRACO_GPU_DONE		1
#define DRACO_GPU_BAD_COMMAND	2	/* op, type, function, reserved field */
#define DRACO_GPU_BAD_RANGE	3	/* outside VRAM, or overlapping the ring */
#define DRACO_GPU_BAD_ALIGN	4	/* address or length not a multiple of the
					 * element size (FILL: 8 bytes) */
#define DRACO_GPU_NO_LINK	5	/* the mesh has no link to @peer */
#define DRACO_GPU_NO_PEER	6	/* @peer is not bound to the same host, or
					 * not any more */

/**
 * struct draco_gpu_cmd - entry of the engine's ring, 64 bytes
 * @op:       DRACO_GPU_*
 * @type:     of REDUCE, else 0
 * @function: of REDUCE, else 0
 * @status:   0; written by the engine, last
 * @cookie:   not interpreted
 * @dst:      offset of the destination
 * @src0:     offset of the source
 * @src1:     offset of the second source (REDUCE), or the pattern (FILL)
 * @length:   bytes; 0 does nothing
 * @result:   0; written by the engine
 * @peer:     of PEER_READ and PEER_WRITE: MESH_NUMBER of the other GPU, else 0
 * @instance: likewise: its INSTANCE
 * @__rsvd:   0
 */
struct draco_gpu_cmd {
	__u8	op;
	__u8	type;
	__u8	function;
	__u8	status;
	__le32	cookie;
	__le64	dst;
	__le64	src0;
	__le64	src1;
	__le64	length;
	__le64	result;
	__le32	peer;
	__le32	instance;
	__le64	__rsvd;
};

#endif
