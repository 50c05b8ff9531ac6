// SPDX-License-Identifier: GPL-2.0-only
/* The program: run.c on the kernel's fabric. Nothing calls this. */
#include <locale.h>
#include <signal.h>

#include "ctl.h"

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	return ctl_run(nl_backend(), argc, argv, stdout, stderr);
}
