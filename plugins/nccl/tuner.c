// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The tuner: has NCCL and RCCL choose what the rules of a file say, which is named
 * by NCCL_TUNER_CONFIG_FILE, and what their own model says where there is no rule.
 * Whatever is wrong with the file or the memory, the communicator goes on without
 * it: an error of init() would end it.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "tuner_abi.h"

#define EXPORT		__attribute__((visibility("default")))
#define NAME		"fabrex"
#define FILE_VARIABLE	"NCCL_TUNER_CONFIG_FILE"
#define LATENCY_VARIABLE	"FABREX_TUNER_LATENCY_US"
#define LATENCY_MAX	1e6

/* Of one communicator. Only read once it is there, by any number of threads. */
struct tuner {
	struct tuner_table *table;
	int nodes, ranks;
};

/*
 * By default the log has no lines about tuning: warnings are about everything, as
 * NCCL's own are.
 */
#define SAY(log, level, about, place, ...) \
	do { \
		if (log) \
			(log)(level, about, place, __LINE__, \
			      NAME " tuner: " __VA_ARGS__); \
	} while (0)
#define WARN(log, ...) \
	SAY(log, NCCL_LOG_WARN, NCCL_ABOUT_ALL, __FILE__, __VA_ARGS__)
#define INFO(log, ...) \
	SAY(log, NCCL_LOG_INFO, NCCL_ABOUT_INIT | NCCL_ABOUT_TUNING, __func__, \
	    __VA_ARGS__)

/* ---- the rules ----------------------------------------------------------- */

static void complain(void *arg, const char *sentence)
{
	const nccl_log_t *log = arg;

	WARN(*log, "%s", sentence);
}

static const char *error_text(int error)
{
	const char *text = strerrordesc_np(error);

	return text ? text : "unknown error";
}

/* NULL: no file, or none that can be read. */
static struct tuner_table *rules(int nodes, int ranks, nccl_log_t log)
{
	const char *path = getenv(FILE_VARIABLE);
	struct tuner_table *table;
	size_t n;

	if (!path || !*path)
		return NULL;
	table = table_read(path, complain, &log);
	if (!table) {
		int error = errno;

		WARN(log, "%s: %s: NCCL chooses by itself; correct or unset "
		     FILE_VARIABLE, path, error == ESPIPE ?
		     "Not a regular file" : error_text(error));
		return NULL;
	}
	n = table_count(table);
	table = table_keep(table, nodes, ranks);
	INFO(log, "%s: %zu rules, %zu of them for %d ranks on %d nodes", path,
	     n, table_count(table), ranks, nodes);
	return table;
}

static enum nccl_result start(void **context, size_t ranks, size_t nodes,
			      nccl_log_t log)
{
	struct tuner *tuner = calloc(1, sizeof(*tuner));

	*context = tuner;
	if (!tuner) {
		WARN(log, "no memory: NCCL chooses by itself");
		return NCCL_SUCCESS;
	}
	tuner->nodes = nodes < INT_MAX ? (int)nodes : INT_MAX;
	tuner->ranks = ranks < INT_MAX ? (int)ranks : INT_MAX;
	tuner->table = rules(tuner->nodes, tuner->ranks, log);
	return NCCL_SUCCESS;
}

static enum nccl_result finalize(void *context)
{
	struct tuner *tuner = context;

	if (tuner)
		table_free(tuner->table);
	free(tuner);
	return NCCL_SUCCESS;
}

/*
 * Before each collective. A cost of nothing is less than any that the library
 * computes. A choice that it does not have, or not for this collective, is no
 * reason to change the number of channels.
 */
static enum nccl_result choose(void *context, int collective, size_t bytes,
			       int pipe_ops, float **costs, int algorithms,
			       int protocols, int registered, int *channels)
{
	const struct tuner *tuner = context;
	const struct tuner_rule *rule;
	struct tuner_call call;
	float *cost;

	if (!tuner || !tuner->table)
		return NCCL_SUCCESS;
	call = (struct tuner_call) {
		.bytes = bytes, .collective = collective,
		.nodes = tuner->nodes, .ranks = tuner->ranks,
		.pipe_ops = pipe_ops, .registered = registered,
	};
	rule = table_find(tuner->table, &call);
	if (!rule || rule->algorithm >= algorithms ||
	    rule->protocol >= protocols)
		return NCCL_SUCCESS;
	cost = (float *)costs + rule->algorithm * protocols + rule->protocol;
	if (*cost == NCCL_COST_IGNORE)
		return NCCL_SUCCESS;
	*cost = 0;
	if (rule->channels != TUNER_ANY)
		*channels = rule->channels;
	return NCCL_SUCCESS;
}

/* ---- the model's latencies ------------------------------------------------ */

/*
 * Digits, with a point among them or not, whatever the program's locale has for a
 * point. Return: 0 if it is something else.
 */
static double decimal(const char *text)
{
	double value = 0, unit = 1;
	bool point = false, digits = false;

	for (; *text; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (*text < '0' || *text > '9')
			return 0;
		digits = true;
		if (point && value > 1e14)
			continue;
		value = value * 10 + (*text - '0');
		unit = point ? unit * 10 : unit;
	}
	return digits ? value / unit : 0;
}

/*
 * The measured latency takes the place of what NCCL takes for it, the step of a
 * ring over the network in the protocol that needs one message for it. All other
 * steps over the network keep the distance that they have from that one: what
 * another protocol or algorithm needs besides is not the network's. Steps of 0
 * are never taken; no other takes less than the latency.
 */
static void set_latencies(struct tuner_constants *constants, nccl_log_t log)
{
	const char *text = getenv(LATENCY_VARIABLE);
	double latency, change;
	int a, p;

	if (!constants || !text || !*text)
		return;
	latency = decimal(text);
	if (!(latency > 0 && latency <= LATENCY_MAX)) {
		WARN(log, LATENCY_VARIABLE "=%.64s: give microseconds such as 1.8, "
		     "more than 0 and at most %g, or unset it; NCCL's own latencies stay",
		     text, LATENCY_MAX);
		return;
	}
	change = latency - constants->hw_latencies[NCCL_HW_NET][NCCL_RING][NCCL_LL];
	for (a = 0; a < NCCL_ALGORITHMS; a++) {
		for (p = 0; p < NCCL_PROTOCOLS; p++) {
			double *step =
				&constants->hw_latencies[NCCL_HW_NET][a][p];

			if (*step > 0)
				*step = *step + change > latency ?
					*step + change : latency;
		}
	}
	INFO(log, "a step of a ring over the network takes %g us, by "
	     LATENCY_VARIABLE, latency);
}

/* ---- the tables ---------------------------------------------------------- */

/* v3 and v4 have no constants. */
static enum nccl_result init_v3(size_t ranks, size_t nodes, nccl_log_t log,
				void **context)
{
	return start(context, ranks, nodes, log);
}

static enum nccl_result init_v5(void **context, uint64_t id, size_t ranks,
				size_t nodes, nccl_log_t log,
				struct tuner_nvl_domains *domains,
				struct tuner_constants *constants)
{
	(void)id;
	(void)domains;
	set_latencies(constants, log);
	return start(context, ranks, nodes, log);
}

/* v3 does not know about registered buffers: rules for these do not apply. */
static enum nccl_result choose_v3(void *context, int collective, size_t bytes,
				  int pipe_ops, float **costs, int algorithms,
				  int protocols, int *channels)
{
	return choose(context, collective, bytes, pipe_ops, costs, algorithms,
		      protocols, 0, channels);
}

EXPORT const struct tuner_v3 ncclTunerPlugin_v3 = {
	.name = NAME,
	.init = init_v3,
	.choose = choose_v3,
	.finalize = finalize,
};

EXPORT const struct tuner_v4 ncclTunerPlugin_v4 = {
	.name = NAME,
	.init = init_v3,
	.choose = choose,
	.finalize = finalize,
};

EXPORT const struct tuner_v5 ncclTunerPlugin_v5 = {
	.name = NAME,
	.init = init_v5,
	.choose = choose,
	.finalize = finalize,
};

/* The file says nothing of chunks: their size is left to the library. */
EXPORT const struct tuner_v6 ncclTunerPlugin_v6 = {
	.name = NAME,
	.init = init_v5,
	.choose = choose,
	.finalize = finalize,
	.chunk = NULL,
};
