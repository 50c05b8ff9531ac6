/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Doubly linked rings: a head, and a member of the same type in each element. */
#ifndef FABREX_LIST_H
#define FABREX_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

/* The structure that has @member at @place. */
#define container(place, type, member) \
	((type *)((char *)(place) - offsetof(type, member)))

static inline void list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_add(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* May be called again for the same node. */
static inline void list_remove(struct list *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
	list_init(node);
}

/* @node may be removed meanwhile. */
#define list_each(node, after, head)				\
	for ((node) = (head)->next, (after) = (node)->next;	\
	     (node) != (head); (node) = (after), (after) = (node)->next)

#endif
