/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What fabrexctl needs of a fabric. nl.c implements it on the kernel's
 * netlink family, switchtec/ on the commands of Switchtec switches, tests/fake.c
 * in memory. Commands call nothing else.
 */
#ifndef CTL_BACKEND_H
#define CTL_BACKEND_H

#include <signal.h>

#include "model.h"

struct counters {
	uint32_t id;
	uint64_t v[13];		/* in the order of counter_names[] */
};

#define NCOUNTERS 13

/* What a link has carried; @a and @b are the ids of its ends. */
struct link_bytes {
	uint32_t a, b;
	uint64_t a_to_b, b_to_a;
};

/* Always in the same order. v is to be freed. */
struct link_list {
	struct link_bytes *v;
	size_t n, cap;
};

/* An event of the fabric, or of this machine's ports. */
struct event {
	uint32_t fport;
	uint32_t type;
	uint64_t time_ns;
	uint64_t seq;
	uint32_t object_type;
	uint32_t object;
	char name[CTL_NAME_LEN];
	bool has_state;
	uint32_t state;
	uint32_t port;
	char port_name[CTL_NAME_LEN];
	uint32_t slot;
	bool surprise;
	uint32_t generation;
	uint64_t token;
	uint32_t timeout_ms;
	char pci_name[32];
};

/* Who keeps an endpoint. */
struct holder {
	uint32_t pid;		/* 0: not a process */
	char comm[16];
	char reason[104];
};

/* A release among several. */
struct release {
	uint32_t ep;
	bool done;
	double seconds;
	struct err err;		/* why not; no code: not tried */
};

struct backend;

/**
 * struct backend_ops - one kind of fabric
 *
 * All return 0 or a negative errno with @e filled in; @e->unsure if a change may
 * have been made all the same.
 *
 * @open:      connect; ENODEV if there is no module
 * @fports:    add the local ports to the model
 * @objects:   add what matches the filter to the model
 * @object:    one element, by id, or by type and name
 * @bind:      attach; with @dry only say whether it could be done, and if it is
 *              known in which slot (else 0)
 * @unbind:    detach; @timeout_ms 0 is the switch's own default
 * @unbind_all: NULL, or several at once; after the first that fails none is begun and those
 *             under way are given up. The errno and @e are that one's
 * @port_set:  FABREX_PORT_ACTION_*
 * @counters:  of a port or endpoint, 0: the local port
 * @links:     of all links; @l may have memory that is used again
 * @subscribe: receive events from now on, of group @group
 * @event_fd:  readable when there are events
 * @events:    call @fn for each that is there; ENOBUFS if some were lost
 * @release_reply: @h NULL grants
 * @places:   NULL, or: how many uplinks can be bound to that host port
 * @differs:  NULL, or: what has come with an endpoint that is bound to this host is
 *             not what the fabric is said to have. Return: true with a sentence
 */
struct backend_ops {
	int (*open)(struct backend *b, struct err *e);
	void (*close)(struct backend *b);
	int (*fports)(struct backend *b, struct model *m, struct err *e);
	int (*objects)(struct backend *b, const struct filter *f,
		       struct model *m, struct err *e);
	int (*object)(struct backend *b, uint32_t type, uint32_t id,
		      const char *name, struct object *o, struct err *e);
	int (*bind)(struct backend *b, uint32_t ep, uint32_t port, bool dry,
		    uint32_t *slot, struct err *e);
	int (*unbind)(struct backend *b, uint32_t ep, bool force, bool dry,
		      uint32_t timeout_ms, struct err *e);
	int (*unbind_all)(struct backend *b, struct release *v, size_t n,
			  bool force, uint32_t timeout_ms, struct err *e);
	int (*port_set)(struct backend *b, uint32_t id, uint32_t action,
			struct err *e);
	int (*counters)(struct backend *b, uint32_t id, struct counters *c,
			struct err *e);
	int (*links)(struct backend *b, struct link_list *l, struct err *e);
	int (*subscribe)(struct backend *b, const char *group, struct err *e);
	int (*event_fd)(struct backend *b);
	int (*events)(struct backend *b,
		      int (*fn)(const struct event *ev, void *arg), void *arg,
		      struct err *e);
	int (*release_reply)(struct backend *b, const struct event *ev,
			     const struct holder *h, struct err *e);
	unsigned int (*places)(struct backend *b, uint32_t port);
	bool (*differs)(struct backend *b, uint32_t ep, char *text, size_t len);
};

struct backend {
	const struct backend_ops *ops;
	bool has_fport;		/* requests go to this local port */
	uint32_t fport;
	bool whole_ports;	/* what is behind an uplink is bound together */
	bool cannot_ask;	/* owners cannot be asked to release */
	bool managing;		/* local ports carry commands, no bytes */
	double change_seconds;	/* that a change may take; 0: see steps.c */
	const char *wiring;	/* topology file that it is made from, or NULL */
	const volatile sig_atomic_t *stop; /* true: give up what can be */
};

extern const char *const counter_names[NCOUNTERS];

/* Room for one more at the end. */
struct link_bytes *link_list_add(struct link_list *l);

/* The kernel. */
struct backend *nl_backend(void);

#endif
