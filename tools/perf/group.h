/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes that are measured: the ranks of one contender, forked from here or
 * started by a launcher, each at the other end of a socket (protocol.h).
 */
#ifndef PERF_GROUP_H
#define PERF_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "peers/protocol.h"

#define GROUP_MAX	512u

/* Processors that this process may use, in ascending order. */
struct cpus {
	uint32_t n;
	int cpu[1024];
};

void cpus_allowed(struct cpus *cpus);
/* To the (@rank modulo n)th. False: the system refuses. */
bool cpus_pin(const struct cpus *cpus, uint32_t rank);
/* "0,1,5" */
void cpus_text(const struct cpus *cpus, char *text, size_t n);

/*
 * What a forked rank does. @open returns its state, or NULL with a sentence in
 * @hello->text; @measure fills in @reply.
 */
struct worker_kind {
	const char *name;
	void *(*open)(const void *arg, uint32_t rank, uint32_t ranks,
		      struct peer_hello *hello);
	void (*measure)(void *state, const struct peer_request *request,
			struct peer_reply *reply);
	void (*close)(void *state);
};

struct group {
	char name[32];
	char text[232];		/* version, or why something has failed */
	uint32_t ranks;
	uint32_t pids;
	pid_t pid[GROUP_MAX];
	int fd[GROUP_MAX];
	bool open;
};

/*
 * Before so many ranks of ours are started: where they share few processors, it
 * takes a while until all their ports have answered each other.
 */
void group_patience(uint32_t ranks);
/* All: 0, or a negative errno with a sentence in group->text. */
int group_fork(struct group *group, const struct worker_kind *kind,
	       const void *arg, uint32_t ranks, const struct cpus *cpus);
/* @argv is executed and its ranks connect; @output takes what it prints. */
int group_launch(struct group *group, const char *name, const char *const argv[],
		 uint32_t ranks, const struct cpus *cpus, const char *output);
/* Seconds of one iteration, from the first rank's begin to the last's end. */
int group_measure(struct group *group, const struct peer_request *request,
		  double *seconds);
void group_end(struct group *group);

#endif
