// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program gets that names no port, with the library's own list of
 * transports: the kernel's; loopback only if it was asked for. A program of its
 * own, because the others have a list with the fake one.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fabrex/fabrex.h>

static bool have_device(void)
{
	DIR *dir = opendir("/dev");
	struct dirent *entry;
	bool found = false;

	while (dir && (entry = readdir(dir)))
		found |= !strncmp(entry->d_name, "fabrex", 6);
	if (dir)
		closedir(dir);
	return found;
}

static bool opens(const char *name, const char *fabric)
{
	struct fabrex_port_attr attr;
	struct fabrex_port *port;
	bool ok;

	if (fabrex_open(name, &port)) {
		printf("%s\n", fabrex_strerror_last());
		return false;
	}
	ok = !fabrex_query(port, &attr, sizeof(attr)) &&
	     !strcmp(attr.driver, "loopback") && !strcmp(attr.fabric, fabric);
	printf("%s: port %s of fabric %s\n", attr.driver, attr.name,
	       attr.fabric);
	fabrex_close(port);
	return ok;
}

/* Not among the processes of this machine without being told. */
static bool is_told(void)
{
	static const char *const remedies[] = {
		"no fabric port", "/dev/fabrex0", "\"loopback:NAME\"",
		"FABREX_PORT=loopback:NAME",
	};
	struct fabrex_port *port;
	size_t i;
	int ret = fabrex_open(NULL, &port);

	printf("%d: %s\n", ret, fabrex_strerror_last());
	for (i = 0; i < sizeof(remedies) / sizeof(*remedies); i++)
		if (!strstr(fabrex_strerror_last(), remedies[i]))
			return false;
	return ret == -ENOENT;
}

int main(void)
{
	struct fabrex_port *port;
	char own[32];

	unsetenv("FABREX_PORT");
	unsetenv("FABREX_FABRIC");
	if (!have_device() && !is_told())
		return 1;
	setenv("FABREX_FABRIC", "", 1);
	if (!have_device() && !is_told())
		return 1;
	/* What says which fabric does not ask for one. */
	snprintf(own, sizeof(own), "of-%d", (int)getpid());
	setenv("FABREX_FABRIC", own, 1);
	if (!have_device() && !is_told())
		return 1;
	unsetenv("FABREX_FABRIC");
	/* By name, or by the variable that names a port. */
	if (!opens("loopback:", "default"))
		return 1;
	setenv("FABREX_FABRIC", own, 1);
	if (!opens("loopback:", own))
		return 1;
	setenv("FABREX_PORT", "loopback:", 1);
	if (!opens(NULL, own))
		return 1;
	unsetenv("FABREX_FABRIC");
	if (!opens(NULL, "default"))
		return 1;
	setenv("FABREX_PORT", "", 1);
	if (!have_device() && !is_told())
		return 1;
	/* A name that is somebody else's is not a reason to go elsewhere. */
	if (!fabrex_open("no-such-port", &port))
		return 1;
	printf("%s\n", fabrex_strerror_last());
	return 0;
}
