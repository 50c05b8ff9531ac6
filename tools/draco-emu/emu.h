/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What main.c hands to the fabric model: the command line, and the order of
 * start and stop.
 */
#ifndef EMU_EMU_H
#define EMU_EMU_H

#include <stdbool.h>

struct emu_qmp {
	const char *host, *path;
};

struct emu_options {
	const char *topology;
	const char *run_dir;
	const char *state;		/* NULL: bindings are not kept */
	const struct emu_qmp *qmp;	/* --qmp HOST=PATH */
	unsigned int nqmp;
	unsigned int threads;		/* of the DMA engine; 0: by CPUs */
	double throttle;		/* of the links' rates; 0: no limit */
	bool verbose;
};

/*
 * Provided by fabric.c. emu_check: parse, print a summary to stdout, 0 or
 * -errno with the errors on stderr (--check). emu_start: parse, create
 * everything including <run>/control.sock and the function sockets; called in
 * the loop's thread after loop_init(), READY is printed when it returns 0.
 * emu_stop: undo it, after loop_run() has ended or emu_start has failed.
 */
int emu_check(const struct emu_options *o);
int emu_start(const struct emu_options *o);
void emu_stop(void);

/* <run>/<host>.qmp, or what --qmp says for that host. */
void emu_qmp_path(const struct emu_options *o, const char *host, char *buf,
		  unsigned int len);

#endif
