/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the topology library: typed access to libconfig settings with errors
 * that name file, line, element and remedy. Not for other programs.
 */
#ifndef LIB_TOPOLOGY_PARSE_H
#define LIB_TOPOLOGY_PARSE_H

#include <libconfig.h>

#include "topology/topology.h"

struct topo_names;

struct topo_parse {
	struct topology *t;
	const char *file;
	char *err;
	size_t err_len;
	struct topo_names *names;
};

/* Where an error is: the setting it is about and how to call the element. */
struct topo_at {
	config_setting_t *set;
	const char *what;	/* "host", "appliance", ... or NULL */
	const char *name;	/* of the element, or NULL while it has none */
};

/* All return 0, or -1 after having written the message. */
int topo_fail(struct topo_parse *p, const struct topo_at *at, const char *fmt,
	      ...) __attribute__((format(printf, 3, 4)));
int topo_known(struct topo_parse *p, const struct topo_at *at,
	       const char *const *known);
int topo_list(struct topo_parse *p, const struct topo_at *at, const char *key,
	      bool required, config_setting_t **list, unsigned int *count);
int topo_string(struct topo_parse *p, const struct topo_at *at,
		const char *key, bool required, const char **value);
int topo_int(struct topo_parse *p, const struct topo_at *at, const char *key,
	     unsigned int min, unsigned int max, unsigned int *value);
int topo_gbps(struct topo_parse *p, const struct topo_at *at, const char *key,
	      double *value);
int topo_bool(struct topo_parse *p, const struct topo_at *at, const char *key,
	      bool *value);
int topo_size(struct topo_parse *p, const struct topo_at *at, const char *key,
	      uint64_t min, uint64_t max, uint64_t *value);
int topo_group(struct topo_parse *p, config_setting_t *list, unsigned int i,
	       const char *what, struct topo_at *at);
/* Memory for the elements of a list; NULL after an error, *count is 0 then. */
void *topo_array(struct topo_parse *p, const struct topo_at *at,
		 unsigned int *count, size_t size);
/* Calls @read_one for each of them, a group; ends with the first that fails. */
int topo_each(struct topo_parse *p, config_setting_t *list, unsigned int count,
	      const char *what, int (*read_one)(struct topo_parse *p,
						struct topo_at *at,
						unsigned int i));

/* Element names: read the "name" of a group, claim one for the whole fabric. */
int topo_name(struct topo_parse *p, struct topo_at *at, char *name);
int topo_claim(struct topo_parse *p, const struct topo_at *at,
	       const char *name);
struct topo_names *topo_names_new(void);
void topo_names_free(struct topo_names *names);

#endif
