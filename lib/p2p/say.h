/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sentences of a query. Called by check.c, state.c and query.c. */
#ifndef LIB_P2P_SAY_H
#define LIB_P2P_SAY_H

#include "p2p/p2p.h"

/* Each sets verdict, reason and the sentence; no remedy is left. */
void fxi_say_no(struct p2p_query *q, int reason, const struct pci_dev *blocker,
		uint32_t bits, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void fxi_say_unknown(struct p2p_query *q, int reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void fxi_say_yes(struct p2p_query *q, int path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Add to the sentence that there is. */
void fxi_say_more(struct p2p_query *q, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void fxi_say_remedy(struct p2p_query *q, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* @err keeps us from looking at @name; the kernel may have been asked. */
void fxi_say_unreadable(struct p2p_query *q, const char *name, int err);
/* "downstream port" */
const char *fxi_say_kind(const struct pci_dev *dev);

#endif
