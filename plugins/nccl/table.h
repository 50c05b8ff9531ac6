/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rules of a tuner's file: which algorithm, protocol and number of channels a
 * collective takes at which sizes. The format is that of NCCL's example of a tuner
 * and of RCCL's built-in one, so that one file serves all three. A rule is a line
 * of eight to ten columns:
 *
 *	collective_type,min_bytes,max_bytes,algorithm,protocol,channels,
 *	nNodes,nRanks[,numPipeOps[,regBuff]]
 *
 * -1 in the last four means any, and NCCL's own number for channels; the last two
 * may be empty. Both sizes belong to the range. Blank lines and lines that begin
 * with '#' say nothing.
 *
 * Those two take the first rule in the file that matches. Here the most specific
 * one is taken, wherever it stands: first nRanks decides, then nNodes, numPipeOps,
 * regBuff. Rules with the same collective and the same of these four must not
 * overlap.
 */
#ifndef PLUGINS_NCCL_TABLE_H
#define PLUGINS_NCCL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define TUNER_ANY	(-1)

struct tuner_rule {
	uint64_t min_bytes, max_bytes;
	int collective;
	int nodes, ranks;		/* these four: or TUNER_ANY */
	int pipe_ops, registered;
	int algorithm, protocol;
	int channels;			/* TUNER_ANY: the library's own */
};

/* What a rule is wanted for. */
struct tuner_call {
	uint64_t bytes;
	int collective;
	int nodes, ranks;
	int pipe_ops;
	int registered;			/* 0 or 1 */
};

struct tuner_table;

/*
 * Reads the file @path. A line that is no rule is passed over, and @complain told
 * why; after TABLE_COMPLAINTS of these, only how many more there are. NULL: it
 * cannot be read; errno says why.
 */
struct tuner_table *table_read(const char *path,
			       void (*complain)(void *arg, const char *sentence),
			       void *arg);
void table_free(struct tuner_table *table);

#define TABLE_COMPLAINTS	20u
#define TABLE_LINE		1024u		/* longest line, in characters */
#define TABLE_SIZE		(64u << 20)	/* longest file, in bytes */
/* NCCL keeps the number of channels in eight bits, with a sign. */
#define TABLE_CHANNELS		127

/*
 * Forgets what a communicator with so many nodes and ranks cannot use. Return: the
 * table, which may have moved.
 */
struct tuner_table *table_keep(struct tuner_table *table, int nodes, int ranks);
size_t table_count(const struct tuner_table *table);
/* NULL: no rule. Neither locks nor allocates. */
const struct tuner_rule *table_find(const struct tuner_table *table,
				    const struct tuner_call *call);

#endif
