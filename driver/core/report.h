/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports about the fabric, to processes and netlink, and changes of the
 * fabric. For the files that implement netlink commands, and port.c.
 */
#ifndef _FABREX_REPORT_H
#define _FABREX_REPORT_H

#include <linux/netlink.h>

#include "context.h"

struct genl_info;
struct sk_buff;

/* message.c */
int fabrex_nl_may_change(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_may_watch(struct sk_buff *skb, struct netlink_ext_ack *extack);
struct sk_buff *fabrex_nl_new(struct genl_info *info, u8 cmd, void **hdr);
int fabrex_nl_reply(struct sk_buff *msg, struct genl_info *info, void *hdr,
		    int ret);
struct sk_buff *fabrex_nl_new_event(u8 cmd, void **hdr);
void fabrex_nl_multicast(struct sk_buff *skb, unsigned int group);
struct fabrex_port *fabrex_nl_port(struct nlattr *attr,
				   struct netlink_ext_ack *extack);

/* endpoint.c */
struct pci_dev *fabrex_endpoint_pdev(struct fabrex_port *port,
				     const struct fabrex_object *object);
bool fabrex_pdev_driver(struct pci_dev *pdev, char *name, size_t size);
void fabrex_release_queue(struct fabrex_port *port, u32 ep, u64 token,
			  u16 slot);
int fabrex_release_init(void);
void fabrex_release_exit(void);

/**
 * struct fabrex_notice_msg - a netlink event that is about to be sent
 * @type:       FABREX_EVENT_TYPE_*
 * @object:     object concerned, or NULL
 * @port:       object id of the host port concerned, or 0
 * @state:      new state, if @has_state
 * @has_state:  see @state
 * @surprise:   the owner was not asked
 * @generation: of a peer, or 0
 * @slot:       physical slot, or 0
 * @token:      of a release request, or 0
 * @timeout_ms: of a release request, or 0
 * @agent:      sent to the agent's group, too
 */
struct fabrex_notice_msg {
	u32 type;
	const struct fabrex_object *object;
	u32 port;
	u32 state;
	bool has_state;
	bool surprise;
	u32 generation;
	u16 slot;
	u64 token;
	u32 timeout_ms;
	bool agent;
};

/* notify.c */
void fabrex_notify(struct fabrex_port *port,
		   const struct fabrex_notice_msg *msg);

/**
 * struct fabrex_change_info - a change of the fabric
 * @ticket:     names it
 * @op:         FABREX_CHANGE_OP_*
 * @id:         endpoint or port
 * @target:     host port that the endpoint is to be bound to
 * @action:     FABREX_PORT_ACTION_*
 * @timeout_ms: how long the owner may take; 0 for the default
 * @force:      do not ask the owner
 * @dry_run:    only check whether it can be done
 * @pending:    in progress; what follows is not valid yet
 * @error:      positive errno, or 0
 * @slot:       slot of the endpoint, after bind
 * @name:       name of @id
 * @message:    cause and remedy of @error
 * @holder:     who prevented it, if @error is EBUSY
 */
struct fabrex_change_info {
	u64 ticket;
	u32 op;
	u32 id;
	u32 target;
	u32 action;
	u32 timeout_ms;
	bool force;
	bool dry_run;
	bool pending;
	u32 error;
	u32 slot;
	char name[FABREX_NAME_LEN];
	char message[NETLINK_MAX_FMTMSG_LEN];
	struct fabrex_holder holder;
};

/* change.c */
int fabrex_change_start(struct fabrex_port *port,
			struct fabrex_change_info *info);
int fabrex_change_get(struct fabrex_port *port, u64 ticket,
		      struct fabrex_change_info *info);
int fabrex_change_cancel(struct fabrex_port *port, u64 ticket);
int fabrex_change_put_names(struct sk_buff *skb, struct fabrex_port *port,
			    const struct fabrex_change_info *change);
int fabrex_change_put(struct sk_buff *skb, struct fabrex_port *port,
		      const struct fabrex_change_info *change);
void fabrex_change_explain(struct fabrex_port *port,
			   struct netlink_ext_ack *extack, const char *name,
			   int ret);
void fabrex_changes_init(struct fabrex_changes *changes);
int fabrex_changes_open(struct fabrex_port *port);
void fabrex_changes_close(struct fabrex_port *port);
void fabrex_changes_destroy(struct fabrex_changes *changes);
void fabrex_tickets_init(void);

#endif
