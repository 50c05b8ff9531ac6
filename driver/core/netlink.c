// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink commands that read ports, objects and counters. Called through the
 * generated fabrex_nl.c (docs/netlink/fabrex.yaml).
 *
 * Reading takes the mutex of the model for one object at a time. Only the local
 * PCI device of an endpoint requires the backend; it is omitted while a port is
 * being registered or unregistered.
 */
#include <linux/pci.h>

#include "genl.h"
#include "fabrex_nl.h"
#include "report.h"

static int put_nonzero(struct sk_buff *skb, int attr, u32 value)
{
	return value ? nla_put_u32(skb, attr, value) : 0;
}

static int put_flag(struct sk_buff *skb, int attr, bool set)
{
	return set ? nla_put_flag(skb, attr) : 0;
}

static int put_fport_names(struct sk_buff *skb, struct fabrex_port *port)
{
	const struct fabrex_port_info *info = &port->info;

	return nla_put_u32(skb, FABREX_A_FPORT_INDEX, port->index) ?:
	       nla_put_string(skb, FABREX_A_FPORT_NAME, info->name) ?:
	       nla_put_string(skb, FABREX_A_FPORT_HOST, info->host) ?:
	       nla_put_string(skb, FABREX_A_FPORT_FABRIC, info->fabric) ?:
	       nla_put_string(skb, FABREX_A_FPORT_DRIVER, info->driver) ?:
	       nla_put_string(skb, FABREX_A_FPORT_PARENT,
			      dev_name(port->dev.parent));
}

static int put_fport_state(struct sk_buff *skb, struct fabrex_port *port)
{
	const struct fabrex_port_info *info = &port->info;

	return nla_put_u32(skb, FABREX_A_FPORT_OBJECT_ID, info->object_id) ?:
	       nla_put_u32(skb, FABREX_A_FPORT_PEER, info->peer) ?:
	       nla_put_u32(skb, FABREX_A_FPORT_GENERATION,
			   READ_ONCE(port->generation)) ?:
	       put_flag(skb, FABREX_A_FPORT_MANAGER, info->manager) ?:
	       put_flag(skb, FABREX_A_FPORT_EMULATED,
			info->flags & FABREX_PORT_EMULATED) ?:
	       put_flag(skb, FABREX_A_FPORT_ALIVE, READ_ONCE(port->alive));
}

static int put_fport_usage(struct sk_buff *skb, struct fabrex_port *port)
{
	return nla_put_u32(skb, FABREX_A_FPORT_QUEUES,
			   atomic_read(&port->count[FABREX_RES_QUEUE])) ?:
	       nla_put_u32(skb, FABREX_A_FPORT_MRS,
			   atomic_read(&port->count[FABREX_RES_MR])) ?:
	       nla_put_u32(skb, FABREX_A_FPORT_WINDOWS,
			   atomic_read(&port->count[FABREX_RES_WINDOW])) ?:
	       nla_put_u64_64bit(skb, FABREX_A_FPORT_PINNED_BYTES,
				 atomic64_read(&port->pinned),
				 FABREX_A_FPORT_PAD) ?:
	       nla_put_u32(skb, FABREX_A_FPORT_OPEN_FILES,
			   atomic_read(&port->open_files)) ?:
	       nla_put_u32(skb, FABREX_A_FPORT_OBJECTS,
			   READ_ONCE(port->model.count));
}

static int put_group(struct sk_buff *skb, struct device *dev)
{
	struct fabrex_iommu_group group;
	struct nlattr *nest;
	int ret;
	u32 i;

	if (!dev || !fabrex_iommu_group_read(dev, &group))
		return 0;
	nest = nla_nest_start(skb, FABREX_A_FPORT_IOMMU_GROUP);
	if (!nest)
		return -EMSGSIZE;
	ret = nla_put_u32(skb, FABREX_A_IOMMU_GROUP_ID, group.id) ?:
	      nla_put_u32(skb, FABREX_A_IOMMU_GROUP_OTHERS, group.others);
	for (i = 0; !ret && i < min(group.others, FABREX_GROUP_NAMES); i++)
		ret = nla_put_string(skb, FABREX_A_IOMMU_GROUP_OTHER,
				     group.names[i]);
	if (!ret)
		nla_nest_end(skb, nest);
	return ret;
}

static int put_word(struct sk_buff *skb, int attr, const char *word)
{
	return *word ? nla_put_string(skb, attr, word) : 0;
}

/* The device that a peer reaches exists as long as registration_lock is held.
 * Like the PCI devices of endpoints, this is omitted while somebody else holds it
 * for long.
 */
static int put_fport_path(struct sk_buff *skb, struct fabrex_port *port)
{
	struct fabrex_data_path path = {};
	int ret = 0;

	if (!down_read_trylock(&port->registration_lock))
		return 0;
	if (port->ops && port->alive && port->ops->data_path &&
	    !port->ops->data_path(port, &path))
		ret = put_word(skb, FABREX_A_FPORT_BRIDGE_DRIVER,
			       path.bridge) ?:
		      put_word(skb, FABREX_A_FPORT_MODE, path.mode) ?:
		      put_word(skb, FABREX_A_FPORT_ENGINE, path.engine) ?:
		      put_nonzero(skb, FABREX_A_FPORT_PROTECTION,
				  path.protection) ?:
		      put_group(skb, path.reached);
	up_read(&port->registration_lock);
	return ret;
}

static int put_fport(struct sk_buff *skb, struct fabrex_port *port)
{
	return put_fport_names(skb, port) ?: put_fport_state(skb, port) ?:
	       put_fport_usage(skb, port) ?: put_fport_path(skb, port);
}

int fabrex_nl_fport_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct fabrex_port *port;
	struct sk_buff *msg;
	void *hdr;
	int ret = -ENOMEM;

	port = fabrex_nl_port(info->attrs[FABREX_A_FPORT_INDEX],
			      info->extack);
	if (IS_ERR(port))
		return PTR_ERR(port);
	msg = fabrex_nl_new(info, FABREX_CMD_FPORT_GET, &hdr);
	if (msg)
		ret = fabrex_nl_reply(msg, info, hdr, put_fport(msg, port));
	put_device(&port->dev);
	return ret;
}

int fabrex_nl_fport_get_dumpit(struct sk_buff *skb,
			       struct netlink_callback *cb)
{
	unsigned long *index = (unsigned long *)cb->ctx;
	struct fabrex_port *port;
	void *hdr;

	while ((port = fabrex_port_next(index))) {
		hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid,
				  cb->nlh->nlmsg_seq, fabrex_genl, NLM_F_MULTI,
				  FABREX_CMD_FPORT_GET);
		if (!hdr || put_fport(skb, port)) {
			if (hdr)
				genlmsg_cancel(skb, hdr);
			put_device(&port->dev);
			break;
		}
		genlmsg_end(skb, hdr);
		put_device(&port->dev);
		(*index)++;
	}
	return skb->len;
}

static int put_object_pci(struct sk_buff *skb, struct fabrex_port *port,
			  const struct fabrex_object *object)
{
	struct pci_dev *pdev = fabrex_endpoint_pdev(port, object);
	char driver[64];
	int ret;

	if (!pdev)
		return 0;
	ret = nla_put_string(skb, FABREX_A_OBJECT_PCI_NAME, pci_name(pdev));
	if (!ret && fabrex_pdev_driver(pdev, driver, sizeof(driver)))
		ret = nla_put_string(skb, FABREX_A_OBJECT_PCI_DRIVER, driver);
	pci_dev_put(pdev);
	return ret;
}

static int put_object_port(struct sk_buff *skb,
			   const struct fabrex_object *object)
{
	int ret;

	ret = nla_put_u32(skb, FABREX_A_OBJECT_KIND, object->kind) ?:
	      nla_put_u32(skb, FABREX_A_OBJECT_STATE, object->state) ?:
	      nla_put_u32(skb, FABREX_A_OBJECT_NUMBER, object->number) ?:
	      nla_put_u32(skb, FABREX_A_OBJECT_SPEED, object->speed) ?:
	      nla_put_u32(skb, FABREX_A_OBJECT_MAX_SPEED,
			  object->max_speed) ?:
	      nla_put_u32(skb, FABREX_A_OBJECT_WIDTH, object->width) ?:
	      nla_put_u32(skb, FABREX_A_OBJECT_MAX_WIDTH, object->max_width);
	if (ret || object->kind != FABREX_PORT_KIND_HOST)
		return ret;
	return nla_put_u32(skb, FABREX_A_OBJECT_PEER, object->peer) ?:
	       nla_put_u32(skb, FABREX_A_OBJECT_GENERATION,
			   object->generation) ?:
	       put_flag(skb, FABREX_A_OBJECT_MANAGER, object->manager);
}

static int put_object_endpoint(struct sk_buff *skb,
			       const struct fabrex_object *object)
{
	return nla_put_u32(skb, FABREX_A_OBJECT_KIND, object->kind) ?:
	       nla_put_u32(skb, FABREX_A_OBJECT_STATE, object->state) ?:
	       put_nonzero(skb, FABREX_A_OBJECT_BOUND, object->bound) ?:
	       put_nonzero(skb, FABREX_A_OBJECT_SLOT, object->slot) ?:
	       nla_put_u32(skb, FABREX_A_OBJECT_NUMBER, object->number) ?:
	       nla_put_u32(skb, FABREX_A_OBJECT_WIDTH, object->width) ?:
	       nla_put_u32(skb, FABREX_A_OBJECT_PCI_VENDOR,
			   object->pci_vendor) ?:
	       nla_put_u32(skb, FABREX_A_OBJECT_PCI_DEVICE,
			   object->pci_device) ?:
	       nla_put_u64_64bit(skb, FABREX_A_OBJECT_SIZE, object->size,
				 FABREX_A_OBJECT_PAD);
}

static int put_object_by_type(struct sk_buff *skb,
			      const struct fabrex_object *object)
{
	switch (object->type) {
	case FABREX_OBJECT_TYPE_PORT:
		return put_object_port(skb, object);
	case FABREX_OBJECT_TYPE_HOST:
		return nla_put_u32(skb, FABREX_A_OBJECT_STATE, object->state);
	case FABREX_OBJECT_TYPE_APPLIANCE:
		return nla_put_u32(skb, FABREX_A_OBJECT_UPLINKS,
				   object->number) ?:
		       nla_put_u32(skb, FABREX_A_OBJECT_UPLINK_ENDPOINTS,
				   object->width);
	case FABREX_OBJECT_TYPE_ENDPOINT:
		return put_object_endpoint(skb, object);
	default:
		return 0;
	}
}

static int put_object(struct sk_buff *skb, struct fabrex_port *port,
		      const struct fabrex_object *object)
{
	return nla_put_u32(skb, FABREX_A_OBJECT_FPORT, port->index) ?:
	       nla_put_u32(skb, FABREX_A_OBJECT_TYPE, object->type) ?:
	       nla_put_u32(skb, FABREX_A_OBJECT_ID, object->id) ?:
	       nla_put_string(skb, FABREX_A_OBJECT_NAME, object->name) ?:
	       put_nonzero(skb, FABREX_A_OBJECT_PARENT, object->parent) ?:
	       put_nonzero(skb, FABREX_A_OBJECT_LINK, object->link) ?:
	       put_object_by_type(skb, object) ?:
	       put_object_pci(skb, port, object);
}

/* A single object, by id or by name. */
static int fabrex_nl_object(struct fabrex_port *port, struct genl_info *info,
			    struct fabrex_object *object)
{
	struct nlattr *id = info->attrs[FABREX_A_OBJECT_ID];
	struct nlattr *name = info->attrs[FABREX_A_OBJECT_NAME];
	struct nlattr *type = info->attrs[FABREX_A_OBJECT_TYPE];
	int ret;

	if (!id == !name) {
		NL_SET_ERR_MSG(info->extack, "specify either an id or a name");
		return -EINVAL;
	}
	ret = id ? fabrex_model_get(port, nla_get_u32(id), object) :
		   fabrex_model_find(port, nla_data(name), object);
	if (!ret && (!type || nla_get_u32(type) == object->type))
		return 0;
	if (id)
		NL_SET_ERR_MSG_FMT(info->extack,
				   "%s has no object %u; list its objects",
				   port->info.name, nla_get_u32(id));
	else
		NL_SET_ERR_MSG_FMT(info->extack, "%.31s: %s; list the names",
				   (char *)nla_data(name),
				   ret ? "not in this fabric" :
					 "of another type");
	return -ENOENT;
}

int fabrex_nl_object_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct fabrex_object object;
	struct fabrex_port *port;
	struct sk_buff *msg;
	void *hdr;
	int ret;

	port = fabrex_nl_port(info->attrs[FABREX_A_OBJECT_FPORT],
			      info->extack);
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = fabrex_nl_object(port, info, &object);
	if (ret)
		goto put;
	ret = -ENOMEM;
	msg = fabrex_nl_new(info, FABREX_CMD_OBJECT_GET, &hdr);
	if (msg)
		ret = fabrex_nl_reply(msg, info, hdr,
				      put_object(msg, port, &object));
put:
	put_device(&port->dev);
	return ret;
}

/**
 * struct object_filter - which objects to dump; 0 matches any
 * @type:   FABREX_OBJECT_TYPE_*
 * @parent: object id
 * @bound:  object id of a host port
 * @host:   object id of a host
 * @ports:  host ports of @host
 * @nports: number of @ports
 */
struct object_filter {
	u32 type;
	u32 parent;
	u32 bound;
	u32 host;
	u32 ports[16];
	u32 nports;
};

static bool host_port_match(const struct fabrex_object *object, const void *arg)
{
	const u32 *host = arg;

	return object->type == FABREX_OBJECT_TYPE_PORT &&
	       object->kind == FABREX_PORT_KIND_HOST && object->link == *host;
}

static void filter_host(struct fabrex_port *port, struct object_filter *filter)
{
	struct fabrex_object object;
	u32 from = 0;

	while (filter->nports < ARRAY_SIZE(filter->ports) &&
	       !fabrex_model_next(port, from, host_port_match, &filter->host,
				  &object)) {
		filter->ports[filter->nports++] = object.id;
		from = object.id + 1;
	}
}

static void filter_init(struct fabrex_port *port, struct nlattr **attrs,
			struct object_filter *filter)
{
	static const struct {
		int attr;
		size_t offset;
	} map[] = {
		{ FABREX_A_OBJECT_TYPE, offsetof(struct object_filter, type) },
		{ FABREX_A_OBJECT_PARENT,
		  offsetof(struct object_filter, parent) },
		{ FABREX_A_OBJECT_BOUND,
		  offsetof(struct object_filter, bound) },
		{ FABREX_A_OBJECT_HOST_ID,
		  offsetof(struct object_filter, host) },
	};
	size_t i;

	memset(filter, 0, sizeof(*filter));
	for (i = 0; i < ARRAY_SIZE(map); i++)
		if (attrs[map[i].attr])
			*(u32 *)((void *)filter + map[i].offset) =
				nla_get_u32(attrs[map[i].attr]);
	if (filter->host)
		filter_host(port, filter);
}

static bool bound_to_host(const struct object_filter *filter, u32 bound)
{
	u32 i;

	for (i = 0; i < filter->nports; i++)
		if (filter->ports[i] == bound)
			return true;
	return false;
}

static bool filter_match(const struct fabrex_object *object, const void *arg)
{
	const struct object_filter *filter = arg;

	return (!filter->type || object->type == filter->type) &&
	       (!filter->parent || object->parent == filter->parent) &&
	       (!filter->bound || object->bound == filter->bound) &&
	       (!filter->host || bound_to_host(filter, object->bound));
}

/**
 * struct object_dump - position of a dump
 * @next: id to continue with
 * @port: index + 1 of the port to read; 0 at the start
 */
struct object_dump {
	u32 next;
	u32 port;
};

static int dump_object(struct sk_buff *skb, struct netlink_callback *cb,
		       struct fabrex_port *port,
		       const struct fabrex_object *object)
{
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  fabrex_genl, NLM_F_MULTI, FABREX_CMD_OBJECT_GET);
	if (!hdr)
		return -EMSGSIZE;
	genl_dump_check_consistent(cb, hdr);
	if (put_object(skb, port, object)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

static void dump_objects(struct sk_buff *skb, struct netlink_callback *cb,
			 struct fabrex_port *port)
{
	struct object_dump *dump = (struct object_dump *)cb->ctx;
	struct object_filter filter;
	struct fabrex_object object;

	filter_init(port, fabrex_dump_attrs(cb), &filter);
	cb->seq = fabrex_model_generation(port);
	while (!fabrex_model_next(port, dump->next, filter_match, &filter,
				  &object)) {
		/* A change since the generation was read is noticed the next
		 * time.
		 */
		if (dump_object(skb, cb, port, &object))
			break;
		dump->next = object.id + 1;
		if (!dump->next)
			break;
	}
}

/* The port must not change in the middle of a dump. */
static struct fabrex_port *dump_port(struct netlink_callback *cb)
{
	struct object_dump *dump = (struct object_dump *)cb->ctx;
	struct fabrex_port *port;

	if (dump->port) {
		port = fabrex_port_find(dump->port - 1);
		return port ?: ERR_PTR(-ENODEV);
	}
	port = fabrex_nl_port(fabrex_dump_attrs(cb)[FABREX_A_OBJECT_FPORT],
			      cb->extack);
	if (!IS_ERR(port))
		dump->port = port->index + 1;
	return port;
}

int fabrex_nl_object_get_dumpit(struct sk_buff *skb,
				struct netlink_callback *cb)
{
	struct fabrex_port *port;

	BUILD_BUG_ON(sizeof(struct object_dump) > sizeof(cb->ctx));
	port = dump_port(cb);
	if (IS_ERR(port))
		return PTR_ERR(port);
	dump_objects(skb, cb, port);
	put_device(&port->dev);
	return skb->len;
}

static int put_counter(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, FABREX_A_COUNTERS_PAD);
}

static int put_counters(struct sk_buff *skb, const struct fabrex_counters *c)
{
	return put_counter(skb, FABREX_A_COUNTERS_TX_BYTES, c->out_tx_bytes) ?:
	       put_counter(skb, FABREX_A_COUNTERS_RX_BYTES, c->out_rx_bytes) ?:
	       put_counter(skb, FABREX_A_COUNTERS_TX_OPS, c->out_tx_ops) ?:
	       put_counter(skb, FABREX_A_COUNTERS_RX_OPS, c->out_rx_ops) ?:
	       put_counter(skb, FABREX_A_COUNTERS_ERRORS, c->out_errors) ?:
	       put_counter(skb, FABREX_A_COUNTERS_P2P_BYTES, c->out_p2p_bytes) ?:
	       put_counter(skb, FABREX_A_COUNTERS_HOST_BYTES,
		       c->out_host_bytes) ?:
	       put_counter(skb, FABREX_A_COUNTERS_WINDOW_READS,
		       c->out_window_reads) ?:
	       put_counter(skb, FABREX_A_COUNTERS_WINDOW_WRITES,
		       c->out_window_writes) ?:
	       put_counter(skb, FABREX_A_COUNTERS_DOORBELLS, c->out_doorbells) ?:
	       put_counter(skb, FABREX_A_COUNTERS_LINK_DOWNS,
		       c->out_link_downs) ?:
	       put_counter(skb, FABREX_A_COUNTERS_CRC_ERRORS,
		       c->out_crc_errors) ?:
	       put_counter(skb, FABREX_A_COUNTERS_INTERRUPTS, c->out_interrupts);
}

static int counters_run(struct fabrex_query *query)
{
	return fabrex_port_counters(query->port, query->id, &query->counters);
}

static int fabrex_nl_counters_read(struct fabrex_port *port, u32 id,
				   struct fabrex_counters *counters,
				   struct netlink_ext_ack *extack)
{
	struct fabrex_query *query = fabrex_query_new(port, counters_run);
	char name[FABREX_NAME_LEN];
	int ret;

	if (!query)
		return -ENOMEM;
	query->id = id;
	query->shared = true;
	ret = fabrex_query_wait(query);
	if (!ret)
		*counters = query->counters;
	fabrex_query_put(query);
	if (!ret)
		return 0;
	fabrex_model_name(port, id ?: port->info.object_id, name);
	if (ret == -EOPNOTSUPP)
		NL_SET_ERR_MSG_FMT(extack, "%s: this port has no counters",
				   name);
	else
		NL_SET_ERR_MSG_FMT(extack,
				   "%s: counters not read (%d); ask for a port or endpoint",
				   name, ret);
	return ret;
}

int fabrex_nl_counters_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *attr = info->attrs[FABREX_A_COUNTERS_ID];
	struct fabrex_counters counters = {};
	u32 id = attr ? nla_get_u32(attr) : 0;
	struct fabrex_port *port;
	struct sk_buff *msg;
	void *hdr;
	int ret;

	port = fabrex_nl_port(info->attrs[FABREX_A_COUNTERS_FPORT],
			      info->extack);
	if (IS_ERR(port))
		return PTR_ERR(port);
	if (id && id != port->info.object_id) {
		ret = fabrex_nl_may_watch(skb, info->extack);
		if (ret)
			goto put;
	}
	ret = fabrex_nl_counters_read(port, id, &counters, info->extack);
	if (ret)
		goto put;
	ret = -ENOMEM;
	msg = fabrex_nl_new(info, FABREX_CMD_COUNTERS_GET, &hdr);
	if (!msg)
		goto put;
	ret = nla_put_u32(msg, FABREX_A_COUNTERS_FPORT, port->index) ?:
	      nla_put_u32(msg, FABREX_A_COUNTERS_ID,
			  id ?: port->info.object_id) ?:
	      put_counters(msg, &counters);
	ret = fabrex_nl_reply(msg, info, hdr, ret);
put:
	put_device(&port->dev);
	return ret;
}
