// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model: the fabric as a port sees it. Called by report.c, by backends, and
 * by whatever answers queries about the fabric.
 *
 * Its mutex is held only briefly, and nothing but allocation sleeps under it.
 */
#include <linux/slab.h>
#include <linux/stringhash.h>

#include <uapi/linux/fabrex_netlink.h>

#include "context.h"

/* More objects than any fabric has: a device that reports more is broken.
 * During a scan, as many again may be waiting to be removed.
 */
#define MODEL_MAX	65536u

/**
 * struct fabrex_node - object in the model
 * @object: as the backend has reported it
 * @hash:   in model->names
 * @scan:   number of the last scan that contained it
 */
struct fabrex_node {
	struct fabrex_object object;
	struct hlist_node hash;
	u32 scan;
};

static u32 name_hash(const char *name)
{
	return full_name_hash(NULL, name, strnlen(name, FABREX_NAME_LEN));
}

/**
 * fabrex_model_init() - initialise an empty model
 * @model: zeroed
 *
 * Context: Process.
 * Return: 0
 */
int fabrex_model_init(struct fabrex_model *model)
{
	mutex_init(&model->lock);
	xa_init(&model->objects);
	hash_init(model->names);
	model->generation = 1;
	return 0;
}

/**
 * fabrex_model_destroy() - free a model
 * @model: no longer in use
 *
 * Context: Process.
 */
void fabrex_model_destroy(struct fabrex_model *model)
{
	struct fabrex_node *node;
	unsigned long id;

	xa_for_each(&model->objects, id, node)
		kfree(node);
	xa_destroy(&model->objects);
	mutex_destroy(&model->lock);
}

static void model_changed(struct fabrex_model *model)
{
	lockdep_assert_held(&model->lock);
	if (!++model->generation)
		model->generation = 1;
}

static void model_remove(struct fabrex_model *model, struct fabrex_node *node)
{
	xa_erase(&model->objects, node->object.id);
	hash_del(&node->hash);
	model->count--;
	model_changed(model);
	kfree(node);
}

/* Compare members one by one, because of the padding. */
static bool object_same(const struct fabrex_object *a,
			const struct fabrex_object *b)
{
	return a->type == b->type && a->kind == b->kind &&
	       a->state == b->state && a->parent == b->parent &&
	       a->link == b->link && a->bound == b->bound &&
	       a->slot == b->slot && a->peer == b->peer &&
	       a->number == b->number && a->generation == b->generation &&
	       a->speed == b->speed && a->max_speed == b->max_speed &&
	       a->width == b->width && a->max_width == b->max_width &&
	       a->pci_vendor == b->pci_vendor &&
	       a->pci_device == b->pci_device && a->size == b->size &&
	       a->manager == b->manager &&
	       !strcmp(a->name, b->name);
}

static struct fabrex_node *node_new(const struct fabrex_object *object)
{
	struct fabrex_node *node;

	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return NULL;
	node->object = *object;
	node->object.name[FABREX_NAME_LEN - 1] = 0;
	node->object.surprise = false;
	return node;
}

/* Mark the object as part of the current scan, or the last one. */
static void model_see(struct fabrex_model *model, struct fabrex_node *node)
{
	if (node->scan != model->scan)
		model->seen++;
	node->scan = model->scan;
}

/* Is there room for a new object? */
static bool model_has_room(const struct fabrex_model *model)
{
	if (!model->scanning)
		return model->count < MODEL_MAX;
	return model->seen < MODEL_MAX && model->count < 2 * MODEL_MAX;
}

/* Replace @old, which may be NULL, by @new. */
static int model_replace(struct fabrex_model *model, struct fabrex_node *old,
			 struct fabrex_node *new)
{
	int ret;

	ret = xa_err(xa_store(&model->objects, new->object.id, new,
			      GFP_KERNEL));
	if (ret)
		return ret;
	hash_add(model->names, &new->hash, name_hash(new->object.name));
	new->scan = old ? old->scan : model->scan - 1;
	model_see(model, new);
	if (old) {
		hash_del(&old->hash);
		kfree(old);
	} else {
		model->count++;
	}
	model_changed(model);
	return 0;
}

/**
 * fabrex_model_store() - update or add an object
 * @port:   port
 * @object: its new state, copied
 * @before: result: the previous state, if it has changed
 *
 * Context: Process; sleeps.
 * Return: 1 if a known object has changed since the first scan ended; 0;
 * -EINVAL if id or name is missing; -ENOSPC if there are too many objects;
 * -ENOMEM
 */
int fabrex_model_store(struct fabrex_port *port,
		       const struct fabrex_object *object,
		       struct fabrex_object *before)
{
	struct fabrex_model *model = &port->model;
	struct fabrex_node *node, *old;
	int ret = 0;

	if (!object->id || !object->name[0])
		return -EINVAL;
	node = node_new(object);
	if (!node)
		return -ENOMEM;
	mutex_lock(&model->lock);
	old = xa_load(&model->objects, object->id);
	if (old && object_same(&old->object, &node->object)) {
		model_see(model, old);
		kfree(node);
	} else {
		if (old)
			*before = old->object;
		ret = old || model_has_room(model) ?
		      model_replace(model, old, node) : -ENOSPC;
		if (ret)
			kfree(node);
		else
			ret = old && model->complete;
	}
	mutex_unlock(&model->lock);
	return ret;
}

/**
 * fabrex_model_get() - look up an object by id
 * @port:   port
 * @id:     object id
 * @object: result
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENOENT
 */
int fabrex_model_get(struct fabrex_port *port, u32 id,
		     struct fabrex_object *object)
{
	struct fabrex_model *model = &port->model;
	struct fabrex_node *node;

	mutex_lock(&model->lock);
	node = xa_load(&model->objects, id);
	if (node)
		*object = node->object;
	mutex_unlock(&model->lock);
	return node ? 0 : -ENOENT;
}
FABREX_EXPORT(fabrex_model_get);

/**
 * fabrex_model_begin() - begin a full scan
 * @port: port
 *
 * Objects that are not updated before fabrex_model_end() are removed by it. If
 * an update fails, the scan is abandoned without an end: all objects stay, and
 * another scan follows.
 *
 * Context: Process; sleeps.
 */
void fabrex_model_begin(struct fabrex_port *port)
{
	mutex_lock(&port->model.lock);
	port->model.scan++;
	port->model.seen = 0;
	port->model.scanning = true;
	mutex_unlock(&port->model.lock);
}
FABREX_EXPORT(fabrex_model_begin);

/**
 * fabrex_model_end() - end a full scan
 * @port: port
 *
 * Context: Process; sleeps.
 */
void fabrex_model_end(struct fabrex_port *port)
{
	struct fabrex_model *model = &port->model;
	struct fabrex_node *node;
	unsigned long id;

	mutex_lock(&model->lock);
	if (model->scanning)
		xa_for_each(&model->objects, id, node)
			if (node->scan != model->scan)
				model_remove(model, node);
	model->scanning = false;
	model->complete = true;
	mutex_unlock(&model->lock);
}
FABREX_EXPORT(fabrex_model_end);

/**
 * fabrex_model_next() - find the next object that matches
 * @port:   port
 * @from:   lowest id to consider
 * @match:  called with the lock of the model held; NULL matches any object
 * @arg:    argument of @match
 * @object: result
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOENT if there is none
 */
int fabrex_model_next(struct fabrex_port *port, u32 from,
		      bool (*match)(const struct fabrex_object *object,
				    const void *arg),
		      const void *arg, struct fabrex_object *object)
{
	struct fabrex_model *model = &port->model;
	unsigned long id = from;
	struct fabrex_node *node;
	int ret = -ENOENT;

	mutex_lock(&model->lock);
	xa_for_each_start(&model->objects, id, node, from) {
		if (match && !match(&node->object, arg))
			continue;
		*object = node->object;
		ret = 0;
		break;
	}
	mutex_unlock(&model->lock);
	return ret;
}

/* With the lock of the model held. */
static struct fabrex_node *model_find(struct fabrex_model *model,
				      const char *name)
{
	struct fabrex_node *node;

	hash_for_each_possible(model->names, node, hash, name_hash(name))
		if (!strcmp(node->object.name, name))
			return node;
	return NULL;
}

/**
 * fabrex_model_find() - look up an object by name
 * @port:   port
 * @name:   NUL-terminated
 * @object: result
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENOENT
 */
int fabrex_model_find(struct fabrex_port *port, const char *name,
		      struct fabrex_object *object)
{
	struct fabrex_node *node;

	mutex_lock(&port->model.lock);
	node = model_find(&port->model, name);
	if (node)
		*object = node->object;
	mutex_unlock(&port->model.lock);
	return node ? 0 : -ENOENT;
}

/**
 * fabrex_model_name() - get the name of an object for a message
 * @port: port
 * @id:   object id
 * @name: result, FABREX_NAME_LEN bytes; "#id" if the object is unknown
 *
 * Context: Process; sleeps.
 */
void fabrex_model_name(struct fabrex_port *port, u32 id, char *name)
{
	struct fabrex_object object;

	if (fabrex_model_get(port, id, &object))
		snprintf(name, FABREX_NAME_LEN, "#%u", id);
	else
		strscpy(name, object.name, FABREX_NAME_LEN);
}

/**
 * fabrex_model_generation() - get a number that changes whenever the model does
 * @port: port
 *
 * Context: Any.
 * Return: the number, never 0
 */
u32 fabrex_model_generation(struct fabrex_port *port)
{
	return READ_ONCE(port->model.generation);
}

/* With the lock of the model held. */
static struct fabrex_node *model_peer_node(struct fabrex_model *model,
					   u32 peer)
{
	struct fabrex_node *node;
	unsigned long id;

	xa_for_each(&model->objects, id, node)
		if (node->object.type == FABREX_OBJECT_TYPE_PORT &&
		    node->object.kind == FABREX_PORT_KIND_HOST &&
		    node->object.peer == peer)
			return node;
	return NULL;
}

/**
 * fabrex_model_peer() - record that a peer was enabled or disabled
 * @port:       port
 * @peer:       number, below max_peers
 * @up:         new state
 * @generation: of the peer's port
 * @object:     result: the peer's port, if the model contains it
 *
 * Context: Process; sleeps.
 * Return: true if it does
 */
bool fabrex_model_peer(struct fabrex_port *port, u32 peer, bool up,
		       u32 generation, struct fabrex_object *object)
{
	struct fabrex_model *model = &port->model;
	struct fabrex_node *node;

	guard(mutex)(&model->lock);
	model->peers[peer] = (struct fabrex_peer) {
		.seen = true,
		.up = up,
		.generation = generation,
	};
	node = model_peer_node(model, peer);
	if (node)
		*object = node->object;
	return node;
}

/**
 * fabrex_model_peer_down() - record that a peer, not known to be up, is down
 * @port:       port
 * @peer:       number, below max_peers
 * @generation: of the peer's port
 *
 * Context: Process; sleeps.
 */
void fabrex_model_peer_down(struct fabrex_port *port, u32 peer, u32 generation)
{
	mutex_lock(&port->model.lock);
	port->model.peers[peer] = (struct fabrex_peer) {
		.seen = true,
		.generation = generation,
	};
	mutex_unlock(&port->model.lock);
}

/**
 * fabrex_model_peer_known() - get the last recorded state of a peer
 * @port:  port
 * @peer:  number, below max_peers
 * @known: result
 *
 * Context: Process; sleeps.
 */
void fabrex_model_peer_known(struct fabrex_port *port, u32 peer,
			     struct fabrex_peer *known)
{
	mutex_lock(&port->model.lock);
	*known = port->model.peers[peer];
	mutex_unlock(&port->model.lock);
}

/**
 * fabrex_model_forget_peers() - forget peers, as events may be missed
 * @port: port
 *
 * Context: Process; sleeps.
 */
void fabrex_model_forget_peers(struct fabrex_port *port)
{
	mutex_lock(&port->model.lock);
	memset(port->model.peers, 0, sizeof(port->model.peers));
	mutex_unlock(&port->model.lock);
}

/* Is a host port enabled? Its last event decides; without one, the host's
 * state.
 */
static bool model_peer_up(struct fabrex_model *model,
			  const struct fabrex_object *object, u32 *generation)
{
	const struct fabrex_peer *peer = &model->peers[object->peer];
	struct fabrex_node *host;

	*generation = object->generation;
	if (object->state != FABREX_LINK_STATE_UP)
		return false;
	if (peer->seen && (s32)(peer->generation - object->generation) >= 0) {
		*generation = peer->generation;
		return peer->up;
	}
	host = xa_load(&model->objects, object->link);
	return object->generation && host &&
	       host->object.state == FABREX_HOST_STATE_UP;
}

/**
 * struct peer_wanted - which peer to find
 * @number: its number, or the lowest one to consider
 * @next:   any from @number on
 * @host:   only those of this host, unless 0
 */
struct peer_wanted {
	u32 number;
	bool next;
	u32 host;
};

static bool peer_fits(const struct fabrex_object *object,
		      const struct peer_wanted *wanted, u32 max_peers)
{
	if (object->type != FABREX_OBJECT_TYPE_PORT ||
	    object->kind != FABREX_PORT_KIND_HOST || object->peer >= max_peers)
		return false;
	if (wanted->host && object->link != wanted->host)
		return false;
	return wanted->next ? object->peer >= wanted->number :
			      object->peer == wanted->number;
}

/* Of the matching peers, the one with the lowest number. */
static struct fabrex_node *model_peer_find(struct fabrex_model *model,
					   const struct peer_wanted *wanted,
					   u32 max_peers)
{
	struct fabrex_node *node, *best = NULL;
	unsigned long id;

	xa_for_each(&model->objects, id, node)
		if (peer_fits(&node->object, wanted, max_peers) &&
		    (!best || node->object.peer < best->object.peer))
			best = node;
	return best;
}

static int model_peer_wanted(struct fabrex_model *model,
			     const struct fabrex_peer_query *cmd,
			     struct peer_wanted *wanted)
{
	struct fabrex_node *node;

	*wanted = (struct peer_wanted) {
		.number = cmd->peer,
		.next = cmd->flags & FABREX_PEER_NEXT,
	};
	if (!(cmd->flags & FABREX_PEER_BY_NAME))
		return 0;
	node = model_find(model, cmd->name);
	if (!node)
		return -ENOENT;
	if (node->object.type == FABREX_OBJECT_TYPE_HOST) {
		wanted->host = node->object.id;
		wanted->next = true;
		wanted->number = 0;
		return 0;
	}
	wanted->number = node->object.peer;
	return node->object.type == FABREX_OBJECT_TYPE_PORT ? 0 : -ENOENT;
}

static int peer_query_check(const struct fabrex_peer_query *cmd)
{
	bool by_name = cmd->flags & FABREX_PEER_BY_NAME;

	if (cmd->flags & ~(FABREX_PEER_BY_NAME | FABREX_PEER_NEXT) ||
	    cmd->__reserved)
		return -EINVAL;
	if (by_name)
		return cmd->flags & FABREX_PEER_NEXT || cmd->peer ||
		       !cmd->name[0] ||
		       !memchr(cmd->name, 0, sizeof(cmd->name)) ? -EINVAL : 0;
	return memchr_inv(cmd->name, 0, sizeof(cmd->name)) ? -EINVAL : 0;
}

static void peer_query_answer(struct fabrex_model *model,
			      const struct fabrex_object *object,
			      struct fabrex_peer_query *cmd)
{
	struct fabrex_node *host = xa_load(&model->objects, object->link);
	u32 generation;

	cmd->out_state = model_peer_up(model, object, &generation) ?
			 FABREX_PEER_UP : FABREX_PEER_DOWN;
	cmd->out_generation = generation;
	cmd->out_peer = object->peer;
	memset(cmd->out_name, 0, sizeof(cmd->out_name));
	memset(cmd->out_host, 0, sizeof(cmd->out_host));
	strscpy(cmd->out_name, object->name, sizeof(cmd->out_name));
	if (host)
		strscpy(cmd->out_host, host->object.name,
			sizeof(cmd->out_host));
}

/**
 * fabrex_cmd_peer_query() - FABREX_IOCTL_PEER_QUERY
 * @ucmd: ioctl
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOENT if there is no such peer; -EINVAL
 */
int fabrex_cmd_peer_query(struct fabrex_ucmd *ucmd)
{
	struct fabrex_port *port = ucmd->file->port;
	struct fabrex_model *model = &port->model;
	struct fabrex_peer_query *cmd = ucmd->cmd;
	struct fabrex_node *node = NULL;
	struct peer_wanted wanted;
	int ret;

	ret = peer_query_check(cmd);
	if (ret)
		return ret;
	mutex_lock(&model->lock);
	ret = model_peer_wanted(model, cmd, &wanted);
	if (!ret)
		node = model_peer_find(model, &wanted, port->info.max_peers);
	if (node)
		peer_query_answer(model, &node->object, cmd);
	mutex_unlock(&model->lock);
	return node ? fabrex_respond(ucmd) : -ENOENT;
}
