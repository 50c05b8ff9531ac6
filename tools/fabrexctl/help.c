// SPDX-License-Identifier: GPL-2.0-only
/* "help" and "version". Called by run.c. */
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl.h"
#include "json.h"
#include "names.h"

/* Return: true if there was a manual page to show. */
static bool show_man(const char *page)
{
	int status, null;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return false;
	if (!pid) {
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		execlp("man", "man", page, NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static json_object *commands_json(const struct command *cmd)
{
	json_object *list = json_object_new_array();

	for (; cmd->name; cmd++) {
		json_object *o;

		if (!cmd->summary)
			continue;
		o = json_object_new_object();
		rec_str(o, "name", cmd->name);
		rec_str(o, "arguments", cmd->args);
		rec_str(o, "summary", cmd->summary);
		rec_put(o, "verbs", cmd->verbs ? commands_json(cmd->verbs) :
			NULL);
		json_object_array_add(list, o);
	}
	return list;
}

int cmd_help(struct ctl *c, int argc, char **argv)
{
	const struct command *cmd = NULL;
	char page[64] = "fabrexctl";

	if (argc > 1)
		return err_usage(&c->err, argv[1], "help: one command at a "
				 "time");
	if (argc) {
		cmd = command_find(argv[0]);
		if (!cmd || !cmd->summary)
			return err_usage(&c->err, argv[0], "help: no command "
					 "\"%s\"; see \"fabrexctl help\"",
					 argv[0]);
		snprintf(page, sizeof(page), "fabrexctl-%s", cmd->name);
	}
	if (c->json) {
		c->doc = json_object_new_object();
		rec_put(c->doc, "commands", commands_json(command_table()));
		return 0;
	}
	if (c->real_out == stdout && show_man(page))
		return 0;
	if (cmd)
		command_usage(c->out, cmd, NULL);
	else
		command_overview(c->out);
	return 0;
}

int cmd_version(struct ctl *c, int argc, char **argv)
{
	if (argc)
		return err_usage(&c->err, argv[0], "version: \"%s\" is too "
				 "much", argv[0]);
	c->doc = json_object_new_object();
	rec_str(c->doc, "version", FABREXCTL_VERSION);
	rec_str(c->doc, "netlink_family", FABREX_FAMILY_NAME);
	rec_int(c->doc, "netlink_version", FABREX_FAMILY_VERSION);
	fprintf(c->out, "fabrexctl %s\n", FABREXCTL_VERSION);
	return 0;
}
