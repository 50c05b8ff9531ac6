/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BAR 0 of a Switchtec PFX's management function, its global address space:
 * blocks, registers and their bits, as far as the model has them.
 */
#ifndef EMU_PFX_GAS_H
#define EMU_PFX_GAS_H

#define GAS_SIZE		0x400000u

/* ---- Blocks ---- */

#define GAS_MRPC		0x000000u
#define GAS_MRPC_END		0x000820u
#define GAS_SW_EVENT		0x001800u
#define GAS_SW_EVENT_END	0x001980u
#define GAS_SYS			0x002000u
#define GAS_SYS_END		0x002160u
#define GAS_FLASH		0x002200u
#define GAS_PART		0x004000u	/* one for each partition */
#define GAS_PART_SIZE		0x400u
#define GAS_NTB_INFO		0x010000u
#define GAS_NTB_INFO_END	0x010320u
#define GAS_NTB_CTRL		0x014000u	/* one for each partition */
#define GAS_NTB_CTRL_SIZE	0x2000u
#define GAS_NTB_DBMSG		0x074000u	/* one for each partition */
#define GAS_NTB_DBMSG_SIZE	0x4000u
#define GAS_PFF			0x134000u	/* one for each port function */
#define GAS_PFF_SIZE		0x1000u
#define GAS_PFF_MAX		255u

/* ---- Commands (MRPC) ---- */

#define MRPC_INPUT		0x000u
#define MRPC_OUTPUT		0x400u
#define MRPC_PAYLOAD		1024u
#define MRPC_CMD		0x800u
#define MRPC_STATUS		0x804u
#define MRPC_RETURN		0x808u

#define MRPC_IN_PROGRESS	1u
#define MRPC_DONE		2u
#define MRPC_ERROR		0xffu

/* ---- System information ---- */

#define SYS_DEVICE_ID		0x00u
#define SYS_DEVICE_VERSION	0x04u
#define SYS_FIRMWARE_VERSION	0x08u
#define SYS_PARTITION		0x48u
#define SYS_VENDOR		0x13cu
#define SYS_PRODUCT		0x144u
#define SYS_REVISION		0x15cu

/* ---- Partitions ---- */

#define PART_USP		0x10u
#define PART_VEP		0x14u
#define PART_DSP		0x18u
#define PART_DSPS		47u
#define PART_VECTORS		0x100u		/* of the VEP and the USP */
#define PART_NONE		0xffu

/* Event headers, with five words of data each. */
#define EVENT_STRIDE		24u
#define PART_EVENT_RESET	0x124u
#define PART_EVENT_MRPC		0x13cu
#define PART_EVENT_ASYNC	0x154u
#define PART_EVENT_BINDING	0x16cu
#define PART_EVENT_INTERCOMM	0x184u
#define SW_EVENT_FIRST		0x30u
#define PFF_EVENT_FIRST		0xc10u
#define PFF_EVENT_HOTPLUG	0xc88u
#define PFF_EVENT_LINK		0xd30u
#define PFF_EVENT_END		0xd48u

#define EVENT_OCCURRED		(1u << 0)	/* write 1 to clear */
#define EVENT_ENABLES		0x1eu		/* log, CLI, interrupt, fatal */
#define EVENT_INTERRUPT		(1u << 3)
#define EVENT_COUNT_SHIFT	5
#define EVENT_NOT_SUPPORTED	(1u << 31)

/* ---- Port functions ---- */

#define PFF_ID			0x00u		/* vendor, device */
#define PFF_BARS		0x10u
#define PFF_LINK		0x74u		/* speed 16-19, width 20-25 */

/* ---- NTB: information ---- */

#define INFO_PARTITIONS		0x00u		/* count, own, 2 reserved */
#define INFO_EP_MAP		0x04u		/* 64 bits */
#define INFO_REQUESTER		0x0cu
#define INFO_TARGETS		0x20u		/* 16 bytes for each partition */

/* ---- NTB: control ---- */

#define CTRL_STATUS		0x00u
#define CTRL_OP			0x04u
#define CTRL_BAR_ERROR		0x10u
#define CTRL_LUT_ENTRIES	0x14u
#define CTRL_LUT_ERROR		0x18u
#define CTRL_REQ_SIZE		0x1cu
#define CTRL_REQ_ERROR		0x20u
#define CTRL_BARS		0x40u		/* control, size, address */
#define CTRL_BARS_EXT		0xa0u		/* high part of the size */
#define CTRL_NBARS		6u
#define CTRL_REQ		0x400u
#define CTRL_LUT		0x1000u

#define OP_LOCK			1u
#define OP_CONFIGURE		2u
#define OP_RESET		3u

#define CTRL_NORMAL		1u
#define CTRL_LOCKED		2u
#define CTRL_LOCKING		3u

#define BAR_VALID		(1u << 0)
#define BAR_DIRECT		(1u << 4)
#define BAR_LUT			(1u << 5)
#define BAR_LUT_SHIFT(ctl)	((ctl) >> 8 & 0x3f)	/* log2 of a page */
#define BAR_LUT_PAGES(ctl)	(((ctl) >> 14 & 0x3ff) + 1)
#define BAR_SIZE_LOW		0xfffff000u
#define BAR_ADDRESS		(~0xfffull)
#define BAR_TARGET		0x3fu		/* partition, of the address */

#define LUT_ON			(1u << 0)
#define LUT_TARGET(entry)	((entry) >> 1 & 0x3f)

#define REQ_ON			(1u << 0)
#define REQ_PROXY_SHIFT		1
#define REQ_ID_SHIFT		16

/* ---- NTB: doorbells and messages ---- */

#define DB_OUT			0x1000u
#define DB_OUT_MASK		0x1008u
#define DB_IN			0x1010u
#define DB_IN_MASK		0x1018u		/* 1: interrupts */
#define DB_VECTORS		0x1020u		/* a byte for each doorbell */
#define MSG_MAP			0x1060u		/* a byte for each message */
#define MSG_OUT			0x1068u		/* value, status */
#define MSG_IN			0x1088u		/* value; status, mask, source */
#define MSG_END			0x10a8u
#define DB_MSIX_TABLE		0x2000u
#define DB_MSIX_PBA		0x3000u

#define DOORBELLS		60u		/* 60 to 63 are the messages */
#define MESSAGES		4u

#endif
