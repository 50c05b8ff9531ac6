/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What dma-killed's children write into dma-survivor's memory: where there is
 * something to write to. The number is written last and by itself.
 */
#ifndef SELFTEST_BOARD_H
#define SELFTEST_BOARD_H

#include <stdint.h>

#define BOARD_STOP	(~0ull)

struct board {
	uint64_t number;	/* of the child, from 1; BOARD_STOP at the end */
	uint64_t rkey;
	uint64_t length;
	uint64_t peer;
};

#endif
