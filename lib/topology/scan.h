/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A first look at libconfig text of unknown origin, before libconfig parses it.
 * For whoever reads such text: topology files, and the planner's graph files.
 */
#ifndef LIB_TOPOLOGY_SCAN_H
#define LIB_TOPOLOGY_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* What kind of file it is: which of these is set at the top level. */
struct topo_scan {
	bool fabric, graph;
};

/**
 * topology_scan() - refuse text that libconfig should not be given
 * @text:    of @length bytes
 * @name:    of the file, for the message
 * @out:     the kind of the file
 * @err:     receives one line "file:line: cause; remedy"
 * @err_len: size of @err
 *
 * Refused are a NUL byte; @include, which reads other files; brackets nested
 * more than 32 deep, as the parser recurses; and more than 1024 settings in one
 * group, as libconfig searches each group linearly.
 *
 * Return: 0, or -1 with @err filled in.
 */
int topology_scan(const char *text, size_t length, const char *name,
		  struct topo_scan *out, char *err, size_t err_len);

#endif
