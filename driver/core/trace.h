/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints of the core: objects that are created and destroyed, and events
 * of the fabric. In tracefs under events/fabrex. For all files; trace.c knows
 * the structures.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fabrex

#if !defined(_FABREX_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _FABREX_TRACE_H

#include <linux/tracepoint.h>

struct fabrex_event;
struct fabrex_mr_params;
struct fabrex_notice_msg;
struct fabrex_port;
struct fabrex_queue_create;
struct fabrex_res;
struct fabrex_window_create;

TRACE_EVENT(fabrex_port,
	TP_PROTO(const struct fabrex_port *port, const char *what),
	TP_ARGS(port, what),
	TP_STRUCT__entry(
		__field(int, index)
		__field(u32, generation)
		__string(what, what)
	),
	TP_fast_assign(
		__entry->index = port->index;
		__entry->generation = port->generation;
		fabrex_assign_str(what, what);
	),
	TP_printk("fabrex%d %s generation=%u", __entry->index,
		  __get_str(what), __entry->generation)
);

TRACE_EVENT(fabrex_queue_create,
	TP_PROTO(const struct fabrex_res *res,
		 const struct fabrex_queue_create *cmd, int ret),
	TP_ARGS(res, cmd, ret),
	TP_STRUCT__entry(
		__field(int, index)
		__field(u32, id)
		__field(u32, number)
		__field(u32, sq)
		__field(u32, cq)
		__field(u32, rq)
		__field(u64, service)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->index = res->port->index;
		__entry->id = res->id;
		__entry->number = res->number;
		__entry->sq = cmd->sq_entries;
		__entry->cq = cmd->cq_entries;
		__entry->rq = cmd->rq_entries;
		__entry->service = cmd->service;
		__entry->ret = ret;
	),
	TP_printk("fabrex%d id=%u queue=%u sq=%u cq=%u rq=%u service=%llu ret=%d",
		  __entry->index, __entry->id, __entry->number, __entry->sq,
		  __entry->cq, __entry->rq, __entry->service, __entry->ret)
);

/* Without the key, because whoever knows it may access the memory. */
TRACE_EVENT(fabrex_mr_register,
	TP_PROTO(const struct fabrex_res *res,
		 const struct fabrex_mr_params *params, u64 addr, int ret),
	TP_ARGS(res, params, addr, ret),
	TP_STRUCT__entry(
		__field(int, index)
		__field(u32, id)
		__field(u32, number)
		__field(u64, addr)
		__field(u64, length)
		__field(u32, access)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->index = res->port->index;
		__entry->id = res->id;
		__entry->number = res->number;
		__entry->addr = addr;
		__entry->length = params->length;
		__entry->access = params->access;
		__entry->ret = ret;
	),
	TP_printk("fabrex%d id=%u mr=%u addr=%#llx length=%llu access=%#x ret=%d",
		  __entry->index, __entry->id, __entry->number, __entry->addr,
		  __entry->length, __entry->access, __entry->ret)
);

TRACE_EVENT(fabrex_mr_move,
	TP_PROTO(const struct fabrex_res *res, const char *what, int ret),
	TP_ARGS(res, what, ret),
	TP_STRUCT__entry(
		__field(int, index)
		__field(u32, id)
		__field(u32, number)
		__string(what, what)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->index = res->port->index;
		__entry->id = res->id;
		__entry->number = res->number;
		fabrex_assign_str(what, what);
		__entry->ret = ret;
	),
	TP_printk("fabrex%d id=%u mr=%u %s ret=%d", __entry->index,
		  __entry->id, __entry->number, __get_str(what), __entry->ret)
);

TRACE_EVENT(fabrex_window_create,
	TP_PROTO(const struct fabrex_res *res,
		 const struct fabrex_window_create *cmd, int ret),
	TP_ARGS(res, cmd, ret),
	TP_STRUCT__entry(
		__field(int, index)
		__field(u32, id)
		__field(u32, number)
		__field(u32, peer)
		__field(u64, offset)
		__field(u64, length)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->index = res->port->index;
		__entry->id = res->id;
		__entry->number = res->number;
		__entry->peer = cmd->peer;
		__entry->offset = cmd->offset;
		__entry->length = cmd->length;
		__entry->ret = ret;
	),
	TP_printk("fabrex%d id=%u window=%u peer=%u offset=%#llx length=%llu ret=%d",
		  __entry->index, __entry->id, __entry->number, __entry->peer,
		  __entry->offset, __entry->length, __entry->ret)
);

TRACE_EVENT(fabrex_destroy,
	TP_PROTO(const struct fabrex_res *res, int ret),
	TP_ARGS(res, ret),
	TP_STRUCT__entry(
		__field(int, index)
		__field(int, type)
		__field(u32, id)
		__field(u32, number)
		__field(bool, dead)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->index = res->port->index;
		__entry->type = res->type;
		__entry->id = res->id;
		__entry->number = res->number;
		__entry->dead = res->dead;
		__entry->ret = ret;
	),
	TP_printk("fabrex%d %s id=%u number=%u%s ret=%d", __entry->index,
		  __print_symbolic(__entry->type,
				   { FABREX_RES_QUEUE, "queue" },
				   { FABREX_RES_WINDOW, "window" },
				   { FABREX_RES_MR, "mr" }),
		  __entry->id, __entry->number, __entry->dead ? " dead" : "",
		  __entry->ret)
);

TRACE_EVENT(fabrex_event,
	TP_PROTO(const struct fabrex_port *port,
		 const struct fabrex_event *event),
	TP_ARGS(port, event),
	TP_STRUCT__entry(
		__field(int, index)
		__field(u32, type)
		__field(u32, peer)
		__field(u32, id)
		__field(u32, error)
	),
	TP_fast_assign(
		__entry->index = port->index;
		__entry->type = event->type;
		__entry->peer = event->peer;
		__entry->id = event->id;
		__entry->error = event->error;
	),
	TP_printk("fabrex%d type=%u peer=%u id=%u error=%u", __entry->index,
		  __entry->type, __entry->peer, __entry->id, __entry->error)
);

TRACE_EVENT(fabrex_notify,
	TP_PROTO(const struct fabrex_port *port,
		 const struct fabrex_notice_msg *msg),
	TP_ARGS(port, msg),
	TP_STRUCT__entry(
		__field(int, index)
		__field(u32, type)
		__field(u32, object)
		__field(u32, port)
		__field(u32, state)
		__field(u16, slot)
	),
	TP_fast_assign(
		__entry->index = port->index;
		__entry->type = msg->type;
		__entry->object = msg->object ? msg->object->id : 0;
		__entry->port = msg->port;
		__entry->state = msg->state;
		__entry->slot = msg->slot;
	),
	TP_printk("fabrex%d type=%u object=%u port=%u state=%u slot=%u",
		  __entry->index, __entry->type, __entry->object,
		  __entry->port, __entry->state, __entry->slot)
);

TRACE_EVENT(fabrex_change,
	TP_PROTO(const struct fabrex_port *port, const char *what, u32 id,
		 u32 arg, int ret),
	TP_ARGS(port, what, id, arg, ret),
	TP_STRUCT__entry(
		__field(int, index)
		__string(what, what)
		__field(u32, id)
		__field(u32, arg)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->index = port->index;
		fabrex_assign_str(what, what);
		__entry->id = id;
		__entry->arg = arg;
		__entry->ret = ret;
	),
	TP_printk("fabrex%d %s id=%u arg=%u ret=%d", __entry->index,
		  __get_str(what), __entry->id, __entry->arg, __entry->ret)
);

TRACE_EVENT(fabrex_release,
	TP_PROTO(const struct fabrex_port *port, u32 ep, bool held, int ret),
	TP_ARGS(port, ep, held, ret),
	TP_STRUCT__entry(
		__field(int, index)
		__field(u32, ep)
		__field(bool, held)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->index = port->index;
		__entry->ep = ep;
		__entry->held = held;
		__entry->ret = ret;
	),
	TP_printk("fabrex%d endpoint=%u %s ret=%d", __entry->index,
		  __entry->ep, __entry->held ? "held" : "granted",
		  __entry->ret)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
