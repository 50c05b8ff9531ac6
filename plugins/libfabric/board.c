// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The board of a domain: what its peers may read at any time. A read of nothing
 * tells them whether this process still lives; a table tells them where regions
 * begin, if they are addressed virtually. Used by domain.c and mr.c; read by
 * rma.c and progress.c of the peers.
 */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define LINES_MIN	64u
#define LINES_MAX	(1u << 16)
#define PLACES		(sizeof(((struct board_line *)0)->place) / \
			 sizeof(((struct board_line *)0)->place[0]))

struct board {
	struct fabrex_mr *mr;
	struct board_line *table;
	uint32_t lines, used;
};

/* Twice the places of the regions that the port can have, within reason. */
static uint32_t lines_for(const struct domain *domain)
{
	uint32_t lines = LINES_MIN;

	if (!domain->virt_addr)
		return 0;
	while (lines < LINES_MAX && lines * PLACES / 2 < domain->attr.max_mrs)
		lines *= 2;
	return lines;
}

int board_open(struct domain *domain)
{
	struct board *board = calloc(1, sizeof(*board));
	int ret;

	if (!board)
		return -FI_ENOMEM;
	board->lines = lines_for(domain);
	ret = fabrex_mr_alloc(domain->port,
			      (board->lines + 1) * sizeof(*board->table),
			      FABREX_MR_REMOTE_READ, &board->mr);
	if (ret) {
		WARN(FI_LOG_DOMAIN, "%s\n", fabrex_strerror_last());
		free(board);
		return fi_of_errno(ret);
	}
	board->table = (struct board_line *)fabrex_mr_addr(board->mr) + 1;
	domain->board = board;
	return 0;
}

void board_close(struct domain *domain)
{
	if (!domain->board)
		return;
	fabrex_mr_deregister(domain->board->mr);
	free(domain->board);
	domain->board = NULL;
}

void board_remote(const struct domain *domain, struct fabrex_remote *remote)
{
	fabrex_mr_remote(domain->board->mr, remote);
}

/*
 * A peer has the key only after this: whatever it reads meanwhile of the place,
 * it does not take for its own. The base is there before the key.
 */
int board_insert(struct domain *domain, uint64_t key, uint64_t base)
{
	struct board *board = domain->board;
	uint32_t line, i;
	uint64_t old;

	if (!board->lines)
		return 0;
	if (board->used >= board->lines * PLACES * 3 / 4) {
		WARN(FI_LOG_MR,
		     "a domain with virtual addresses has room for %u regions: take FI_MR_VIRT_ADDR from mr_mode\n",
		     board->used);
		return -FI_ENOSPC;
	}
	for (line = BOARD_LINE(key, board->lines);;
	     line = (line + 1) & (board->lines - 1)) {
		for (i = 0; i < PLACES; i++) {
			old = board->table[line].place[i].key;
			if (old && old != BOARD_DELETED)
				continue;
			__atomic_store_n(&board->table[line].place[i].base,
					 base, __ATOMIC_RELAXED);
			__atomic_store_n(&board->table[line].place[i].key, key,
					 __ATOMIC_RELEASE);
			board->used++;
			return 0;
		}
	}
}

void board_delete(struct domain *domain, uint64_t key)
{
	struct board *board = domain->board;
	struct board_line *at;
	uint32_t n, i;

	for (n = 0; n < board->lines; n++) {
		at = &board->table[(BOARD_LINE(key, board->lines) + n) &
				   (board->lines - 1)];
		for (i = 0; i < PLACES && at->place[i].key; i++) {
			if (at->place[i].key != key)
				continue;
			__atomic_store_n(&at->place[i].key, BOARD_DELETED,
					 __ATOMIC_RELEASE);
			board->used--;
			return;
		}
		if (i < PLACES)
			return;
	}
}
