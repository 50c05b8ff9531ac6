// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decoding and validation of what the device returns. Callers pass copies,
 * which the device cannot change any more. No state and no kernel services: see
 * decode.h.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#include "decode.h"
#include "equal.h"

/* The bits are those of FABREX_CAP_*. */
#define DRACO_OPS_KNOWN	(FABREX_CAP_CHECK |				\
			 (FABREX_CAP_OP(FABREX_OP_SEND + 1) - 1))
#define DRACO_OPS_LEAST	(FABREX_CAP_OP(FABREX_OP_NOP) |			\
			 FABREX_CAP_OP(FABREX_OP_WRITE) |		\
			 FABREX_CAP_OP(FABREX_OP_READ))
_Static_assert(FABREX_CAP_CHECK == 1ull << DRACO_OPS_CHECK,
	       "operations are handed on as they are");

static const struct {
	int error;
	const char *text;
} draco_status[] = {
	[DRACO_SC_OK]		= { 0, "success" },
	[DRACO_SC_BAD_OPCODE]	= { -EOPNOTSUPP, "not supported by the device" },
	[DRACO_SC_BAD_FIELD]	= { -EINVAL, "invalid argument" },
	[DRACO_SC_BAD_ID]	= { -ENOENT, "no such object" },
	[DRACO_SC_NO_RESOURCE]	= { -ENOSPC, "table full" },
	[DRACO_SC_DENIED]	= { -EPERM, "port is not a manager" },
	[DRACO_SC_BUSY]		= { -EBUSY, "in use" },
	[DRACO_SC_BOUND]	= { -EADDRINUSE, "already taken" },
	[DRACO_SC_NOT_BOUND]	= { -ENOTCONN, "not bound" },
	[DRACO_SC_NO_SLOT]	= { -ENOSPC, "no free slot" },
	[DRACO_SC_LINK_DOWN]	= { -ENETDOWN, "link is down" },
	[DRACO_SC_HOST_DOWN]	= { -EHOSTDOWN, "host is down" },
	[DRACO_SC_TIMEOUT]	= { -ETIMEDOUT, "timed out" },
	[DRACO_SC_ABORTED]	= { -ECANCELED, "aborted" },
	[DRACO_SC_DMA_FAULT]	= { -EFAULT, "DMA fault" },
	[DRACO_SC_BAD_KEY]	= { -EACCES, "remote key refused" },
	[DRACO_SC_GONE]		= { -ENODEV, "endpoint was removed" },
	[DRACO_SC_INTERNAL]	= { -EIO, "internal error of the device" },
	[DRACO_SC_IN_PROGRESS]	= { -EALREADY, "change in progress" },
	[DRACO_SC_RETRY]	= { -EAGAIN, "too many wrong keys" },
};

/**
 * draco_status_errno() - translate an admin status
 * @status: DRACO_SC_*
 *
 * Context: Any.
 * Return: 0 or a negative errno; -EPROTO for an unknown status
 */
int draco_status_errno(u16 status)
{
	return status < ARRAY_SIZE(draco_status) ? draco_status[status].error :
						   -EPROTO;
}

/**
 * draco_status_text() - describe an admin status
 * @status: DRACO_SC_*
 *
 * Context: Any.
 * Return: a phrase without object and remedy
 */
const char *draco_status_text(u16 status)
{
	return status < ARRAY_SIZE(draco_status) ? draco_status[status].text :
						   "unknown status";
}

/**
 * draco_name_ok() - check a name that will be printed and shown in sysfs
 * @name: %DRACO_NAME_LEN bytes
 *
 * Context: Any.
 * Return: true if it is NUL-terminated and contains only permitted characters
 */
bool draco_name_ok(const char *name)
{
	size_t i, len = strnlen(name, DRACO_NAME_LEN);

	if (!len || len == DRACO_NAME_LEN || name[0] == '.' || name[0] == '-')
		return false;
	for (i = 0; i < len; i++) {
		char c = name[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-' &&
		    c != ':')
			return false;
	}
	return true;
}

/* Text for people: ends before the first byte that is not printable ASCII. */
static void draco_copy_text(char *to, const char *from, size_t size)
{
	size_t i;

	for (i = 0; i < size - 1 && from[i] >= ' ' && from[i] <= '~'; i++)
		to[i] = from[i];
	memset(to + i, 0, size - i);
}

/* A limit must be a power of two and at least @min; it is lowered to @max. */
static bool draco_limit_pow2(u32 *value, u32 min, u32 max)
{
	if (!is_power_of_2(*value) || *value < min)
		return false;
	if (*value > max)
		*value = max;
	return true;
}

static const char *draco_ident_names(const struct draco_identify *raw,
				     struct draco_ident *ident)
{
	struct fabrex_port_info *info = &ident->info;

	if (!draco_name_ok(raw->name))
		return "name";
	if (!draco_name_ok(raw->host))
		return "host";
	if (!draco_name_ok(raw->fabric))
		return "fabric";
	memcpy(info->name, raw->name, sizeof(info->name));
	memcpy(info->host, raw->host, sizeof(info->host));
	memcpy(info->fabric, raw->fabric, sizeof(info->fabric));
	draco_copy_text(ident->firmware, raw->firmware, DRACO_NAME_LEN);
	return NULL;
}

static const char *draco_ident_identity(const struct draco_identify *raw,
					struct draco_ident *ident)
{
	struct fabrex_port_info *info = &ident->info;
	u32 flags = le32_to_cpu(raw->flags);

	info->object_id = le32_to_cpu(raw->port_id);
	info->peer = le16_to_cpu(raw->peer);
	info->max_peers = le16_to_cpu(raw->max_peers);
	info->generation = le32_to_cpu(raw->generation);
	info->manager = flags & DRACO_IDF_MANAGER;
	if (flags & DRACO_IDF_EMULATED)
		info->flags |= FABREX_PORT_EMULATED;
	ident->links = flags & DRACO_IDF_LINKS;
	ident->mesh = flags & DRACO_IDF_MESH;
	ident->host_id = le32_to_cpu(raw->host_id);
	ident->topology_seq = le64_to_cpu(raw->topology_seq);

	info->caps = le64_to_cpu(raw->operations) & DRACO_OPS_KNOWN;

	if (!info->object_id)
		return "port_id";
	if ((info->caps & DRACO_OPS_LEAST) != DRACO_OPS_LEAST)
		return "operations";
	if (!info->max_peers || info->max_peers > FABREX_MAX_PEERS)
		return "max_peers";
	if (info->peer >= info->max_peers)
		return "peer";
	return NULL;
}

static const char *draco_ident_rings(const struct draco_identify *raw,
				     u32 db_pages,
				     struct fabrex_port_info *info)
{
	info->max_queues = le32_to_cpu(raw->max_queues);
	info->max_sq = le32_to_cpu(raw->max_sq);
	info->max_cq = le32_to_cpu(raw->max_cq);
	info->max_rq = le32_to_cpu(raw->max_rq);
	info->max_cell = le32_to_cpu(raw->max_cell);

	if (!info->max_queues || info->max_queues > db_pages)
		return "max_queues";
	if (!draco_limit_pow2(&info->max_sq, FABREX_SQ_MIN, FABREX_SQ_MAX))
		return "max_sq";
	if (!draco_limit_pow2(&info->max_cq, FABREX_SQ_MIN, FABREX_CQ_MAX))
		return "max_cq";
	if (info->max_rq && !draco_limit_pow2(&info->max_rq, 1, FABREX_RQ_MAX))
		return "max_rq";
	if (info->max_rq && !draco_limit_pow2(&info->max_cell, FABREX_CELL_MIN,
					      FABREX_CELL_MAX))
		return "max_cell";
	return NULL;
}

static const char *draco_ident_memory(const struct draco_identify *raw,
				      u64 window_bytes,
				      struct fabrex_port_info *info)
{
	u64 slot = le64_to_cpu(raw->window_slot_size);

	info->max_mrs = le32_to_cpu(raw->max_mrs);
	info->max_mr_pages = le64_to_cpu(raw->max_mr_pages);
	info->max_transfer = le64_to_cpu(raw->max_transfer);
	info->max_windows = le32_to_cpu(raw->max_windows);

	if (!info->max_mrs || info->max_mrs > 1u << 20)
		return "max_mrs";
	if (!info->max_mr_pages)
		return "max_mr_pages";
	if (!info->max_transfer)
		return "max_transfer";
	/* fabrex_cqe.length has 32 bits. */
	if (info->max_transfer > U32_MAX)
		info->max_transfer = U32_MAX;
	if (!info->max_windows)
		return NULL;
	if (slot < FABREX_PAGE_SIZE || (slot & (slot - 1)))
		return "window_slot_size";
	if (info->max_windows > window_bytes >> ilog2(slot))
		return "max_windows";
	info->window_slot_size = slot;
	return NULL;
}

static const char *draco_ident_objects(const struct draco_identify *raw,
				       struct draco_ident *ident)
{
	u64 sum = 0;
	size_t i;

	/* [0] is the sum of the others. */
	for (i = 1; i < ARRAY_SIZE(raw->objects); i++)
		sum += le32_to_cpu(raw->objects[i]);
	if (sum > DRACO_MAX_OBJECTS)
		return "objects";
	ident->objects = sum;
	return NULL;
}

/**
 * draco_decode_identify() - decode and validate IDENTIFY
 * @raw:          copy of what the device wrote
 * @db_pages:     doorbell pages in BAR 2
 * @window_bytes: size of BAR 4, 0 if there is none
 * @ident:        result
 * @bad:          on error, the name of the invalid field
 *
 * Context: Any.
 * Return: 0 or -EPROTO
 */
int draco_decode_identify(const struct draco_identify *raw, u32 db_pages,
			  u64 window_bytes, struct draco_ident *ident,
			  const char **bad)
{
	memset(ident, 0, sizeof(*ident));
	*bad = draco_ident_names(raw, ident);
	if (!*bad)
		*bad = draco_ident_identity(raw, ident);
	if (!*bad)
		*bad = draco_ident_rings(raw, db_pages, &ident->info);
	if (!*bad)
		*bad = draco_ident_memory(raw, window_bytes, &ident->info);
	if (!*bad)
		*bad = draco_ident_objects(raw, ident);
	return *bad ? -EPROTO : 0;
}

static bool draco_kind_ok(u8 type, u8 kind)
{
	switch (type) {
	case DRACO_OBJ_PORT:
		return kind <= DRACO_PORT_ISL;
	case DRACO_OBJ_ENDPOINT:
		return kind >= DRACO_EP_GPU && kind <= DRACO_EP_FPGA;
	default:
		return true;
	}
}

static bool draco_state_ok(u8 type, u32 state)
{
	switch (type) {
	case DRACO_OBJ_PORT:
		return state <= DRACO_LINK_DISABLED;
	case DRACO_OBJ_HOST:
		return state <= DRACO_HOST_UP;
	case DRACO_OBJ_ENDPOINT:
		return state <= DRACO_EP_ATTACHING;
	default:
		return state <= U8_MAX;
	}
}

static void draco_copy_object(const struct draco_object *raw,
			      struct fabrex_object *object)
{
	memset(object, 0, sizeof(*object));
	object->type = raw->type;
	object->kind = raw->kind;
	object->state = raw->state;
	object->id = le32_to_cpu(raw->id);
	object->parent = le32_to_cpu(raw->parent);
	object->link = le32_to_cpu(raw->link);
	object->bound = le32_to_cpu(raw->bound);
	object->slot = le16_to_cpu(raw->slot);
	object->peer = raw->peer == cpu_to_le16(DRACO_PEER_NONE) ?
		       FABREX_PEER_NONE : le16_to_cpu(raw->peer);
	object->number = le32_to_cpu(raw->number);
	object->generation = le32_to_cpu(raw->generation);
	object->speed = le32_to_cpu(raw->speed);
	object->max_speed = le32_to_cpu(raw->max_speed);
	object->width = le16_to_cpu(raw->width);
	object->max_width = le16_to_cpu(raw->max_width);
	object->pci_vendor = le16_to_cpu(raw->pci_vendor);
	object->pci_device = le16_to_cpu(raw->pci_device);
	object->size = le64_to_cpu(raw->size);
	object->manager = raw->type == DRACO_OBJ_PORT &&
			  raw->kind == DRACO_PORT_HOST &&
			  raw->flags & DRACO_OBJF_MANAGER;
	memcpy(object->name, raw->name, sizeof(object->name));
}

/**
 * draco_decode_object() - decode and validate an object of the fabric
 * @raw:       copy of what the device wrote
 * @max_peers: peer numbers are below this
 * @object:    result
 *
 * Context: Any.
 * Return: 0; -EOPNOTSUPP for a type of a later version, which the caller skips;
 * -EPROTO if it is invalid
 */
int draco_decode_object(const struct draco_object *raw, u32 max_peers,
			struct fabrex_object *object)
{
	if (raw->type > DRACO_OBJ_ENDPOINT)
		return -EOPNOTSUPP;
	if (!raw->type || !raw->id || !draco_name_ok(raw->name) ||
	    !draco_kind_ok(raw->type, raw->kind) ||
	    !draco_state_ok(raw->type, raw->state))
		return -EPROTO;
	draco_copy_object(raw, object);
	if (object->peer != FABREX_PEER_NONE && object->peer >= max_peers)
		return -EPROTO;
	if (object->slot > DRACO_MAX_SLOT)
		return -EPROTO;
	return 0;
}

/**
 * draco_decode_peer() - decode and validate an element of GET_PEERS
 * @raw:       copy of what the device wrote
 * @max_peers: peer numbers are below this
 * @peer:      result
 *
 * Context: Any.
 * Return: 0 or -EPROTO
 */
int draco_decode_peer(const struct draco_peer *raw, u32 max_peers,
		      struct draco_peer_state *peer)
{
	peer->port = le32_to_cpu(raw->port);
	peer->generation = le32_to_cpu(raw->generation);
	peer->peer = le16_to_cpu(raw->peer);
	peer->up = le16_to_cpu(raw->flags) & DRACO_PEERF_UP;
	return peer->port && peer->peer < max_peers ? 0 : -EPROTO;
}

static int draco_check_event(const struct draco_ev *ev, u32 max_peers)
{
	switch (ev->type) {
	case DRACO_EV_LINK:
		return ev->state <= DRACO_LINK_DISABLED ? 0 : -EPROTO;
	case DRACO_EV_PEER_UP:
	case DRACO_EV_PEER_DOWN:
		return ev->arg[0] <= U32_MAX && ev->arg[1] < max_peers ?
		       0 : -EPROTO;
	case DRACO_EV_EP_STATE:
		return ev->state <= DRACO_EP_ATTACHING &&
		       ev->arg[0] <= DRACO_MAX_SLOT ? 0 : -EPROTO;
	case DRACO_EV_RELEASE_REQUEST:
		return ev->arg[1] <= DRACO_MAX_SLOT && ev->arg[2] <= U32_MAX ?
		       0 : -EPROTO;
	case DRACO_EV_QUEUE_ERROR:
	case DRACO_EV_WINDOW_FAULT:
		return ev->arg[0] <= U8_MAX ? 0 : -EPROTO;
	case DRACO_EV_RESET:
	case DRACO_EV_FAULT:
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/**
 * draco_decode_event() - decode and validate an event
 * @raw:       copy of what the device wrote
 * @max_peers: peer numbers are below this
 * @ev:        result
 *
 * Context: Any.
 * Return: 0; -EOPNOTSUPP for a type of a later version; -EPROTO if it is
 * invalid
 */
int draco_decode_event(const struct draco_event *raw, u32 max_peers,
		       struct draco_ev *ev)
{
	size_t i;

	ev->seq = le64_to_cpu(raw->seq);
	ev->type = le16_to_cpu(raw->type);
	ev->obj_type = raw->obj_type;
	ev->flags = raw->flags;
	ev->object = le32_to_cpu(raw->object);
	ev->port = le32_to_cpu(raw->port);
	ev->state = le32_to_cpu(raw->state);
	for (i = 0; i < ARRAY_SIZE(ev->arg); i++)
		ev->arg[i] = le64_to_cpu(raw->arg[i]);
	return draco_check_event(ev, max_peers);
}

/**
 * draco_decode_holder() - decode who holds an endpoint
 * @raw:    copy of what the device wrote; the text comes from another host
 * @holder: result; its strings are terminated and printable
 *
 * Context: Any.
 */
void draco_decode_holder(const struct draco_holder *raw,
			 struct fabrex_holder *holder)
{
	holder->pid = le32_to_cpu(raw->pid);
	holder->port = le32_to_cpu(raw->port);
	draco_copy_text(holder->comm, raw->comm, sizeof(holder->comm));
	draco_copy_text(holder->reason, raw->reason, sizeof(holder->reason));
}

/**
 * draco_encode_holder() - encode who holds an endpoint
 * @holder: who holds it
 * @raw:    for the device
 *
 * Context: Any.
 */
void draco_encode_holder(const struct fabrex_holder *holder,
			 struct draco_holder *raw)
{
	raw->pid = cpu_to_le32(holder->pid);
	raw->port = cpu_to_le32(holder->port);
	draco_copy_text(raw->comm, holder->comm, sizeof(raw->comm));
	draco_copy_text(raw->reason, holder->reason, sizeof(raw->reason));
}

/**
 * draco_decode_counters() - decode counters of a port, queue or endpoint
 * @raw:      copy of what the device wrote
 * @counters: the out_ members are set, the others left alone
 *
 * Context: Any.
 */
void draco_decode_counters(const struct draco_counters *raw,
			   struct fabrex_counters *counters)
{
	counters->out_tx_bytes = le64_to_cpu(raw->tx_bytes);
	counters->out_rx_bytes = le64_to_cpu(raw->rx_bytes);
	counters->out_tx_ops = le64_to_cpu(raw->tx_ops);
	counters->out_rx_ops = le64_to_cpu(raw->rx_ops);
	counters->out_errors = le64_to_cpu(raw->errors);
	counters->out_p2p_bytes = le64_to_cpu(raw->p2p_bytes);
	counters->out_host_bytes = le64_to_cpu(raw->host_bytes);
	counters->out_window_reads = le64_to_cpu(raw->window_reads);
	counters->out_window_writes = le64_to_cpu(raw->window_writes);
	counters->out_doorbells = le64_to_cpu(raw->doorbells);
	counters->out_link_downs = le64_to_cpu(raw->link_downs);
	counters->out_crc_errors = le64_to_cpu(raw->crc_errors);
	counters->out_interrupts = le64_to_cpu(raw->interrupts);
}

/**
 * draco_decode_link() - decode and validate the counters of a link
 * @raw:  from the device
 * @link: result
 *
 * Context: Any.
 * Return: 0, or -EPROTO if it does not have two different ends
 */
int draco_decode_link(const struct draco_link *raw, struct fabrex_link *link)
{
	link->a = le32_to_cpu(raw->a);
	link->id = raw->id ? le32_to_cpu(raw->id) : link->a;
	link->b = le32_to_cpu(raw->b);
	link->a_to_b = le64_to_cpu(raw->a_to_b);
	link->b_to_a = le64_to_cpu(raw->b_to_a);
	return link->a && link->b && link->a != link->b ? 0 : -EPROTO;
}
