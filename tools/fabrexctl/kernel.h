/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the running kernel was built with, and the state of its modules, from
 * files that everybody may read. Called by findings.c.
 */
#ifndef CTL_KERNEL_H
#define CTL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

enum config_state { CONFIG_UNSEEN, CONFIG_OFF, CONFIG_MODULE, CONFIG_ON };

enum module_state {
	MODULE_UNSEEN,		/* it is not loaded; no more is known */
	MODULE_MISSING,		/* not installed for this kernel */
	MODULE_INSTALLED, MODULE_BUILTIN, MODULE_LOADED
};

struct kernel {
	const char *root;
	char release[80];	/* "": not known */
	char *config;		/* NULL: not to be had */
	char config_from[128];	/* path, without the root */
	char *installed, *builtin;	/* depmod's lists; NULL: no such file */
	char *cmdline;
	bool no_modules;	/* modules_disabled: none is loaded any more */
	bool signed_only;	/* sig_enforce, or locked down */
};

void kernel_read(struct kernel *k, const char *root);
void kernel_free(struct kernel *k);
/* "CONFIG_NTB" */
enum config_state kernel_config(const struct kernel *k, const char *option);
/* "ntb_hw_switchtec" */
enum module_state kernel_module(const struct kernel *k, const char *name);
/* Words of the command line that begin like this, with blanks between. */
void kernel_words(const struct kernel *k, const char *const *begin, char *text,
		  size_t size);

#endif
