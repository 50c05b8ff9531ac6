// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the fabric as the device describes it, and updates the core's model.
 * Called by probe, then only by the event work; draco_object_name() by anybody.
 *
 * First of all, the device returns the number of the last event so far.
 * Whatever is read after that contains all events up to this number, so these
 * are old when they are handled. Later events are applied as usual, whether or
 * not what was read contained their changes already.
 */
#include <linux/mm.h>

#include "command.h"
#include "controller.h"
#include "decode.h"
#include "draco.h"
#include "exec.h"
#include "topology.h"

#define DRACO_SCAN_BYTES	(64u * 1024)
/* Attempts to read a fabric that changes meanwhile; after that, events do the
 * rest.
 */
#define DRACO_SCAN_TRIES	3

/* Objects read so far. */
struct draco_list {
	struct fabrex_object *object;
	u32 n;
	u32 room;
	u32 reported;	/* objects, including skipped ones */
};

static int draco_list_grow(struct draco_list *list, u32 room)
{
	struct fabrex_object *object;

	if (room > DRACO_MAX_OBJECTS)
		return -EPROTO;
	object = kvmalloc_array(room, sizeof(*object), GFP_KERNEL);
	if (!object)
		return -ENOMEM;
	if (list->n)
		memcpy(object, list->object, list->n * sizeof(*object));
	kvfree(list->object);
	list->object = object;
	list->room = room;
	return 0;
}

/* Add the objects of one answer. They are sorted by id, so that a device that
 * repeats itself is detected.
 */
static int draco_list_add(struct draco_dev *dd, struct draco_list *list,
			  const struct draco_object *from, u32 n)
{
	struct fabrex_object *object;
	struct draco_object raw;
	int ret;

	/* Otherwise unknown objects could go on for as
	 * long as there are ids.
	 */
	list->reported += n;
	if (list->reported > DRACO_MAX_OBJECTS)
		return -EPROTO;
	if (list->n + n > list->room) {
		ret = draco_list_grow(list, max(min(2 * list->room,
						    DRACO_MAX_OBJECTS),
						list->n + n));
		if (ret)
			return ret;
	}
	while (n--) {
		raw = *from++;
		object = &list->object[list->n];
		ret = draco_decode_object(&raw, dd->ident.info.max_peers,
					  object);
		if (ret == -EOPNOTSUPP)
			continue;
		if (ret || (list->n && object->id <= object[-1].id)) {
			dev_err_ratelimited(&dd->pdev->dev,
					    "invalid description of object %u\n",
					    le32_to_cpu(raw.id));
			return -EPROTO;
		}
		list->n++;
	}
	return 0;
}

/* One GET_OBJECTS. *@next is the id to continue with, 0 at the end; *@seq is
 * the topology_seq of the state that was described.
 */
static int draco_list_page(struct draco_dev *dd, struct draco_list *list,
			   struct draco_buf *buf, unsigned int flags, u32 *next,
			   u64 *seq)
{
	u32 room = buf->size / sizeof(struct draco_object);
	struct draco_cmd cmd;
	u64 n;
	u32 id;
	int ret;

	draco_cmd_init(&cmd, DRACO_ADM_GET_OBJECTS, 0);
	draco_cmd_data(&cmd, buf, room * sizeof(struct draco_object));
	cmd.sqe.arg[1] = cpu_to_le64(*next);
	cmd.flags = flags;
	ret = draco_exec(dd, &cmd);
	if (ret)
		return ret;
	n = le64_to_cpu(cmd.cpl.result);
	id = le32_to_cpu(cmd.cpl.id);
	if (n > room || (id && (!n || id <= *next)))
		return -EPROTO;
	*next = id;
	*seq = le64_to_cpu(cmd.cpl.result2);
	return draco_list_add(dd, list, buf->va, n);
}

/* Read all objects once. -EAGAIN: the fabric has changed meanwhile. */
static int draco_list_pass(struct draco_dev *dd, struct draco_list *list,
			   struct draco_buf *buf, unsigned int flags)
{
	u64 first = 0, last;
	u32 next = 1;
	int ret;

	list->n = 0;
	list->reported = 0;
	do {
		ret = draco_list_page(dd, list, buf, flags, &next, &last);
		if (ret)
			return ret;
		first = first ?: last;
	} while (next);
	return first == last ? 0 : -EAGAIN;
}

static int draco_list_read(struct draco_dev *dd, struct draco_list *list,
			   unsigned int flags)
{
	unsigned int tries = DRACO_SCAN_TRIES;
	struct draco_buf buf;
	int ret;

	ret = draco_list_grow(list, max(dd->ident.objects, 16u));
	if (ret)
		return ret;
	ret = draco_buf_alloc_upto(dd, &buf, DRACO_SCAN_BYTES);
	if (ret)
		return ret;
	do {
		ret = draco_list_pass(dd, list, &buf, flags);
	} while (ret == -EAGAIN && --tries);
	draco_buf_free(dd, &buf);
	return ret == -EAGAIN ? 0 : ret;
}

/* Result of GET_PEERS. @seq is the number of the last event before it. */
struct draco_peers {
	struct draco_peer_state peer[DRACO_MAX_PEERS];
	u32 n;
	u64 seq;
};

static int draco_peers_add(struct draco_dev *dd, struct draco_peers *peers,
			   const struct draco_peer *from, u32 n)
{
	struct draco_peer_state *peer;
	struct draco_peer raw;

	if (n > DRACO_MAX_PEERS - peers->n)
		return -EPROTO;
	while (n--) {
		raw = *from++;
		peer = &peers->peer[peers->n];
		if (draco_decode_peer(&raw, dd->ident.info.max_peers, peer) ||
		    (peers->n && peer->peer <= peer[-1].peer)) {
			dev_err_ratelimited(&dd->pdev->dev,
					    "invalid description of peer %u\n",
					    le16_to_cpu(raw.peer));
			return -EPROTO;
		}
		peers->n++;
	}
	return 0;
}

/* A single command: the buffer holds as many peers as there can be. */
static int draco_peers_read(struct draco_dev *dd, struct draco_peers *peers,
			    unsigned int flags)
{
	struct draco_buf buf;
	struct draco_cmd cmd;
	u64 n;
	int ret;

	ret = draco_buf_alloc(dd, &buf,
			      DRACO_MAX_PEERS * sizeof(struct draco_peer));
	if (ret)
		return ret;
	draco_cmd_init(&cmd, DRACO_ADM_GET_PEERS, 0);
	draco_cmd_data(&cmd, &buf, DRACO_MAX_PEERS * sizeof(struct draco_peer));
	cmd.flags = flags;
	ret = draco_exec(dd, &cmd);
	n = le64_to_cpu(cmd.cpl.result);
	if (!ret && (n > DRACO_MAX_PEERS || cmd.cpl.id))
		ret = -EPROTO;
	peers->n = 0;
	peers->seq = le64_to_cpu(cmd.cpl.result2);
	if (!ret)
		ret = draco_peers_add(dd, peers, buf.va, n);
	draco_buf_free(dd, &buf);
	return ret;
}

/* Report the peers to the core, and detect that this port itself was reset. */
static void draco_peers_apply(struct draco_dev *dd,
			      const struct draco_peers *peers)
{
	const struct draco_peer_state *peer;
	u32 i;

	for (i = 0; i < peers->n; i++) {
		peer = &peers->peer[i];
		if (peer->port != dd->ident.info.object_id)
			fabrex_port_peer_is(dd->port, peer->peer, peer->up,
					    peer->generation);
		else
			draco_check_generation(dd, peer->generation);
	}
}

/* Returns the first error; in that case nothing is removed from the model. */
static int draco_list_apply(struct draco_dev *dd, const struct draco_list *list)
{
	const struct fabrex_object *object;
	int ret = 0, err;
	u32 i;

	fabrex_model_begin(dd->port);
	for (i = 0; i < list->n; i++) {
		object = &list->object[i];
		err = fabrex_model_update(dd->port, object);
		ret = ret ?: err;
		if (object->id == dd->ident.info.object_id)
			fabrex_port_link(dd->port,
					 object->state == DRACO_LINK_UP);
	}
	if (!ret)
		fabrex_model_end(dd->port);
	return ret;
}

static int draco_fabric_read(struct draco_dev *dd, unsigned int flags)
{
	struct draco_list list = {};
	struct draco_peers *peers;
	int ret;

	peers = kzalloc(sizeof(*peers), GFP_KERNEL);
	if (!peers)
		return -ENOMEM;
	ret = draco_peers_read(dd, peers, flags);
	if (!ret)
		ret = draco_list_read(dd, &list, flags);
	if (!ret)
		ret = draco_list_apply(dd, &list);
	if (!ret) {
		draco_peers_apply(dd, peers);
		dd->events.read_seq = peers->seq;
	}
	kvfree(list.object);
	kfree(peers);
	return ret;
}

/**
 * draco_topology_scan() - read the whole fabric into the core's model
 * @dd:    device
 * @flags: DRACO_CMD_* for the commands
 *
 * Changes of the link and of peers are reported to the core. Everything is read
 * before the model is touched: after an error the model is unchanged, or, if an
 * update failed, contains all old objects; %DRACO_F_RESCAN then remains set.
 *
 * Context: Probe, then the event work only.
 * Return: 0 or a negative errno
 */
int draco_topology_scan(struct draco_dev *dd, unsigned int flags)
{
	int ret;

	clear_bit(DRACO_F_RESCAN, &dd->flags);
	ret = draco_fabric_read(dd, flags);
	if (ret) {
		set_bit(DRACO_F_RESCAN, &dd->flags);
		/* The controller was stopped; this is repeated when it has been
		 * restarted.
		 */
		if (ret == -ENODEV)
			return ret;
		dev_warn_ratelimited(&dd->pdev->dev,
				     "cannot read the fabric: %d\n", ret);
	}
	return ret;
}

/**
 * draco_topology_read() - read one object
 * @dd:     device
 * @id:     object id
 * @object: result
 *
 * Context: Event work.
 * Return: 0; -ENOENT if there is no such object; -EOPNOTSUPP for a type of a
 * later version; another negative errno
 */
int draco_topology_read(struct draco_dev *dd, u32 id,
			struct fabrex_object *object)
{
	struct draco_object raw;
	struct draco_buf buf;
	struct draco_cmd cmd;
	int ret;

	ret = draco_buf_alloc(dd, &buf, sizeof(raw));
	if (ret)
		return ret;
	draco_cmd_init(&cmd, DRACO_ADM_GET_OBJECTS, 0);
	draco_cmd_data(&cmd, &buf, sizeof(raw));
	cmd.sqe.arg[1] = cpu_to_le64(id);
	cmd.flags = DRACO_CMD_DRIVER | DRACO_CMD_LONG;
	ret = draco_exec(dd, &cmd);
	memcpy(&raw, buf.va, sizeof(raw));
	draco_buf_free(dd, &buf);
	if (ret)
		return ret;
	if (!cmd.cpl.result || le32_to_cpu(raw.id) != id)
		return -ENOENT;
	return draco_decode_object(&raw, dd->ident.info.max_peers, object);
}

/**
 * draco_object_name() - get the name of an object for a message
 * @dd:   device
 * @id:   object id
 * @name: result, %FABREX_NAME_LEN bytes
 *
 * Context: Process.
 */
void draco_object_name(struct draco_dev *dd, u32 id, char *name)
{
	struct fabrex_object object;

	if (!fabrex_model_get(dd->port, id, &object))
		strscpy(name, object.name, FABREX_NAME_LEN);
	else
		snprintf(name, FABREX_NAME_LEN, "object %u", id);
}
